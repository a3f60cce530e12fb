//! `kyber`: reads and writes in lists of their own, each with tokens whose number follows latency targets.
//!
//! Linux 6.1 `block/kyber-iosched.c`: `kyber_dispatch_request`, `kyber_dispatch_cur_domain`, `kyber_bio_merge`,
//! `kyber_completed_request`, `kyber_timer_fn`, `calculate_percentile`. Discards and other requests do not occur here; one software queue
//! represents those of all CPUs.

use serde::Serialize;

use super::fifo::{Fifo, Links};
use super::parameter::Parameter;
use super::{Elevator, JIFFY_NS};
use crate::request::{BlockRequest, Id};

/// Parameters of `kyber-iosched.c` in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Target of reads.
    pub read_lat_ns: u64,
    /// Target of writes.
    pub write_lat_ns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            read_lat_ns: 2 * JIFFY_NS,
            write_lat_ns: 10 * JIFFY_NS,
        }
    }
}

impl Settings {
    /// Under the names that sysfs has.
    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::fine_time("read_lat", "read_lat_nsec", &mut self.read_lat_ns),
            Parameter::fine_time("write_lat", "write_lat_nsec", &mut self.write_lat_ns),
        ]
    }
}

const DOMAINS: usize = 2;
const DEPTH: [u32; DOMAINS] = [256, 128];
const BATCH: [u32; DOMAINS] = [16, 8];
/// Newest requests that a bio may become a part of (`blk_bio_list_merge`).
const MERGED_INTO: usize = 8;
/// Buckets of the histograms: quarters of the target, up to twice the target.
const LATENCY_SHIFT: u32 = 2;
const GOOD_BUCKETS: usize = 1 << LATENCY_SHIFT;
const BUCKETS: usize = 2 << LATENCY_SHIFT;
/// The histograms are evaluated once this many samples are there or a second has passed.
const SAMPLES: u32 = 500;
const TIMEOUT_NS: u64 = 1000 * JIFFY_NS;
const TIMER_NS: u64 = 100 * JIFFY_NS;

pub(super) struct Kyber {
    targets: [u64; DOMAINS],
    links: Links,
    /// Requests since the last time that a dispatch found `flushed` empty: only these are merged (`kcqs`).
    arrived: [Fifo; DOMAINS],
    /// Requests that are dispatched next (`rqs`).
    flushed: [Fifo; DOMAINS],
    /// Times at which each request was inserted and dispatched, by id.
    times: Vec<(u64, u64)>,
    domain: usize,
    batching: u32,
    tokens: [u32; DOMAINS],
    in_flight: [u32; DOMAINS],
    waiting: u32,
    total: [Latencies; DOMAINS],
    device: [Latencies; DOMAINS],
    timeout_ns: [Option<u64>; DOMAINS],
    p99: [Option<usize>; DOMAINS],
    timer_ns: Option<u64>,
}

#[derive(Default, Clone, Copy)]
struct Latencies([u32; BUCKETS]);

impl Latencies {
    fn add(&mut self, target_ns: u64, latency_ns: u64) {
        let divisor = (target_ns >> LATENCY_SHIFT).max(1);
        let bucket = (latency_ns.saturating_sub(1) / divisor).min(BUCKETS as u64 - 1);
        self.0[bucket as usize] += 1;
    }

    /// `calculate_percentile`: the bucket, once there are enough samples; the histogram starts anew then.
    fn percentile(
        &mut self,
        percent: u32,
        timeout_ns: &mut Option<u64>,
        now_ns: u64,
    ) -> Option<usize> {
        let samples: u32 = self.0.iter().sum();
        if samples == 0 {
            return None;
        }
        let until_ns = *timeout_ns.get_or_insert(now_ns + TIMEOUT_NS);
        if samples < SAMPLES && now_ns < until_ns {
            return None;
        }
        *timeout_ns = None;
        let mut wanted = (u64::from(samples) * u64::from(percent)).div_ceil(100) as u32;
        let mut bucket = 0;
        while bucket < BUCKETS - 1 && self.0[bucket] < wanted {
            wanted -= self.0[bucket];
            bucket += 1;
        }
        *self = Latencies::default();
        Some(bucket)
    }
}

impl Kyber {
    pub(super) fn new(settings: Settings) -> Kyber {
        Kyber {
            targets: [settings.read_lat_ns, settings.write_lat_ns],
            links: Links::default(),
            arrived: Default::default(),
            flushed: Default::default(),
            times: Vec::new(),
            domain: 0,
            batching: 0,
            tokens: DEPTH,
            in_flight: [0; DOMAINS],
            waiting: 0,
            total: Default::default(),
            device: Default::default(),
            timeout_ns: [None; DOMAINS],
            p99: [None; DOMAINS],
            timer_ns: None,
        }
    }

    fn near(&self, bio: &BlockRequest) -> impl Iterator<Item = Id> {
        let arrived = &self.arrived[usize::from(bio.write)];
        self.links.newest_first(arrived).take(MERGED_INTO)
    }

    fn dispatch_domain(&mut self, now_ns: u64) -> Option<Id> {
        let domain = self.domain;
        if self.in_flight[domain] >= self.tokens[domain] {
            return None;
        }
        if self.flushed[domain].is_empty() {
            self.flushed[domain] = std::mem::take(&mut self.arrived[domain]);
        }
        let id = self.links.pop_front(&mut self.flushed[domain])?;
        self.in_flight[domain] += 1;
        self.batching += 1;
        self.waiting -= 1;
        self.times[id as usize].1 = now_ns;
        Some(id)
    }
}

impl Elevator for Kyber {
    fn insert(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        if self.times.len() <= id as usize {
            self.times.resize(id as usize + 1, (0, 0));
        }
        self.times[id as usize] = (now_ns, now_ns);
        let domain = usize::from(requests[id as usize].write);
        self.links.push_back(&mut self.arrived[domain], id, 0);
        self.waiting += 1;
    }

    fn dispatch(&mut self, now_ns: u64, _: &[BlockRequest]) -> Option<Id> {
        if self.batching < BATCH[self.domain]
            && let Some(id) = self.dispatch_domain(now_ns)
        {
            return Some(id);
        }
        self.batching = 0;
        for _ in 0..DOMAINS {
            self.domain = (self.domain + 1) % DOMAINS;
            if let Some(id) = self.dispatch_domain(now_ns) {
                return Some(id);
            }
        }
        None
    }

    fn completed(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let domain = usize::from(requests[id as usize].write);
        let (inserted_ns, dispatched_ns) = self.times[id as usize];
        self.in_flight[domain] -= 1;
        self.total[domain].add(self.targets[domain], now_ns - inserted_ns);
        self.device[domain].add(self.targets[domain], now_ns - dispatched_ns);
        let at_ns = now_ns + TIMER_NS;
        self.timer_ns = Some(self.timer_ns.map_or(at_ns, |timer| timer.min(at_ns)));
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn front_merge(&self, bio: &BlockRequest, requests: &[BlockRequest]) -> Option<Id> {
        let mut near = self.near(bio);
        near.find(|&id| requests[id as usize].lbn == bio.end())
    }

    fn may_merge(&mut self, _: u64, id: Id, bio: &BlockRequest, _: &[BlockRequest]) -> bool {
        self.near(bio).any(|near| near == id)
    }

    /// `kyber_limit_depth`.
    fn depth_share(&self, request: &BlockRequest) -> Option<u32> {
        (!request.sync).then_some(12)
    }

    fn merges_inserted(&self) -> bool {
        false
    }

    /// Two requests are never joined: none has neighbours.
    fn joined(&mut self, _: u64, _: Id, _: Id, _: &[BlockRequest]) {}

    fn timer_ns(&self) -> Option<u64> {
        self.timer_ns
    }

    fn timer(&mut self, now_ns: u64, _: &[BlockRequest]) {
        self.timer_ns = None;
        let mut bad = false;
        for domain in 0..DOMAINS {
            let timeout_ns = &mut self.timeout_ns[domain];
            let p90 = self.device[domain].percentile(90, timeout_ns, now_ns);
            bad |= p90.is_some_and(|bucket| bucket >= GOOD_BUCKETS);
        }
        for (domain, most) in DEPTH.into_iter().enumerate() {
            let timeout_ns = &mut self.timeout_ns[domain];
            let mut p99 = self.total[domain].percentile(99, timeout_ns, now_ns);
            // Domains need not have enough samples at the same time: the last figure is kept for the next
            // congestion, and used once.
            if bad {
                p99 = p99.or(self.p99[domain]);
                self.p99[domain] = None;
            } else if p99.is_some() {
                self.p99[domain] = p99;
            }
            if let Some(p99) = p99
                && (bad || p99 >= GOOD_BUCKETS)
            {
                let depth = (self.tokens[domain] * (p99 as u32 + 1)) >> LATENCY_SHIFT;
                self.tokens[domain] = depth.clamp(1, most);
            }
        }
    }
}
