//! `anticipatory`: batches of synchronous and of asynchronous requests; after a read, the disk is kept waiting a few
//! milliseconds for the next one of the same thread.
//!
//! Linux 2.6.32 `block/as-iosched.c`: `as_dispatch_request`, `as_can_anticipate`, `as_can_break_anticipation`,
//! `as_close_req`, `as_update_iohist`, `as_completed_request`, `update_write_batch`. Threads do not exit here, so
//! what is learnt from exits is left out.

use serde::Serialize;

use super::choose::OneWay;
use super::fifo::{Fifo, Links};
use super::parameter::Parameter;
use super::sorted::{Nodes, Sorted};
use super::{Elevator, JIFFY_NS};
use crate::request::{BlockRequest, Id};

/// Parameters of `as-iosched.c` in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Age at which a synchronous request goes first.
    pub read_expire_ns: u64,
    /// Age at which an asynchronous one does.
    pub write_expire_ns: u64,
    /// Length of a batch of synchronous requests.
    pub read_batch_expire_ns: u64,
    /// Length that a batch of asynchronous ones is tuned to.
    pub write_batch_expire_ns: u64,
    /// Longest wait for a better request; 0 for none.
    pub antic_expire_ns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            read_expire_ns: 125 * JIFFY_NS,
            write_expire_ns: 250 * JIFFY_NS,
            read_batch_expire_ns: 500 * JIFFY_NS,
            write_batch_expire_ns: 125 * JIFFY_NS,
            antic_expire_ns: 6 * JIFFY_NS,
        }
    }
}

impl Settings {
    /// Under the names that sysfs has.
    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::time("read_expire", &mut self.read_expire_ns),
            Parameter::time("write_expire", &mut self.write_expire_ns),
            Parameter::time("read_batch_expire", &mut self.read_batch_expire_ns),
            Parameter::time("write_batch_expire", &mut self.write_batch_expire_ns),
            Parameter::time("antic_expire", &mut self.antic_expire_ns),
        ]
    }
}

const ASYNC: usize = 0;
const SYNC: usize = 1;
/// `MAXBACK`, `BACK_PENALTY`.
const ONE_WAY: OneWay = OneWay {
    back_max: 1024 * 1024,
    back_penalty: 2,
};
/// `MAX_THINKTIME`, jiffies.
const MAX_THINK: u64 = 20;
/// Distance that counts as near, blocks.
const NEAR: u64 = 8192;

pub(super) struct Anticipatory {
    settings: Settings,
    expire_ns: [u64; 2],
    nodes: Nodes,
    links: Links,
    sort_list: [Sorted; 2],
    fifo_list: [Fifo; 2],
    next_rq: [Option<Id>; 2],
    last_sector: [u64; 2],
    waiting: u32,

    new_think_total: u64,
    new_think_mean: u64,
    new_seek_total: u64,
    new_seek_mean: u64,
    threads: Vec<Thread>,

    batch: usize,
    batch_expires_ns: u64,
    last_check_ns: [u64; 2],
    /// Waiting for the old batch to end.
    changed_batch: bool,
    /// Waiting for the first completion of the new one.
    new_batch: bool,
    write_batch_count: u64,
    current_write_count: u64,
    write_batch_idled: bool,
    in_device: u32,

    status: Status,
    antic_start_ns: u64,
    timer_ns: Option<u64>,
    /// Thread of the last synchronous request dispatched.
    expected: Option<u32>,
    /// That request is done.
    expected_finished: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Off,
    WaitRequest,
    WaitNext,
    Finished,
}

/// `struct as_io_context`; means are in fixed point, 1.0 = 256, as in the kernel.
#[derive(Clone, Copy, Default)]
struct Thread {
    started: bool,
    running: bool,
    queued: u32,
    last_end_ns: u64,
    last_position: u64,
    think_samples: u64,
    think_total: u64,
    think_mean: u64,
    seek_samples: u64,
    seek_total: u64,
    seek_mean: u64,
}

impl Anticipatory {
    pub(super) fn new(settings: Settings) -> Anticipatory {
        Anticipatory {
            expire_ns: [settings.write_expire_ns, settings.read_expire_ns],
            nodes: Nodes::default(),
            links: Links::default(),
            sort_list: Default::default(),
            fifo_list: Default::default(),
            next_rq: [None; 2],
            last_sector: [0; 2],
            waiting: 0,
            new_think_total: 0,
            new_think_mean: 0,
            new_seek_total: 0,
            new_seek_mean: 0,
            threads: Vec::new(),
            batch: ASYNC,
            batch_expires_ns: settings.read_batch_expire_ns,
            last_check_ns: [0; 2],
            changed_batch: false,
            new_batch: false,
            write_batch_count: (settings.write_batch_expire_ns / JIFFY_NS / 10).max(2),
            current_write_count: 0,
            write_batch_idled: false,
            in_device: 0,
            status: Status::Off,
            antic_start_ns: 0,
            timer_ns: None,
            expected: None,
            expected_finished: false,
            settings,
        }
    }

    /// `as_update_iohist`.
    fn learn(&mut self, now_ns: u64, thread: usize, request: &BlockRequest) {
        if !request.sync {
            return;
        }
        let of = &mut self.threads[thread];
        if of.started || of.running {
            let mut think = 0;
            if of.running && of.queued == 0 {
                think = ((now_ns - of.last_end_ns) / JIFFY_NS).min(MAX_THINK - 1);
            }
            if of.think_samples == 0 {
                self.new_think_total = (7 * self.new_think_total + 256 * think) / 8;
                self.new_think_mean = self.new_think_total / 256;
            }
            of.think_samples = (7 * of.think_samples + 256) / 8;
            of.think_total = (7 * of.think_total + 256 * think) / 8;
            of.think_mean = (of.think_total + 128) / of.think_samples;

            let mut distance = of.last_position.abs_diff(request.lbn);
            if of.seek_samples == 0 {
                self.new_seek_total = (7 * self.new_seek_total + 256 * distance) / 8;
                self.new_seek_mean = self.new_seek_total / 256;
            }
            let slack = if of.seek_samples <= 60 {
                2 * 1024 * 1024
            } else {
                2 * 1024 * 64
            };
            distance = distance.min(of.seek_mean * 4 + slack);
            of.seek_samples = (7 * of.seek_samples + 256) / 8;
            of.seek_total = (7 * of.seek_total + 256 * distance) / 8;
            of.seek_mean = (of.seek_total + of.seek_samples / 2) / of.seek_samples;
        }
        of.last_position = request.end();
        of.started = true;
    }

    /// `as_close_req`.
    fn is_close(&self, now_ns: u64, expected: usize, request: &BlockRequest) -> bool {
        let delay = if self.status == Status::Off || !self.expected_finished {
            0
        } else {
            (now_ns - self.antic_start_ns) / JIFFY_NS
        };
        let near = if delay == 0 {
            NEAR
        } else if delay <= 20 && delay * JIFFY_NS <= self.settings.antic_expire_ns {
            NEAR << delay
        } else {
            return true;
        };
        let (last, next) = (self.last_sector[self.batch], request.lbn);
        if last <= next + near / 2 && next <= last + near {
            return true;
        }
        let of = &self.threads[expected];
        let usual = if of.seek_samples == 0 {
            self.new_seek_mean
        } else {
            of.seek_mean
        };
        usual > last.abs_diff(next)
    }

    /// `as_can_break_anticipation`.
    fn can_break(&mut self, now_ns: u64, request: Option<&BlockRequest>) -> bool {
        let Some(expected) = self.expected else {
            return true;
        };
        if request.is_some_and(|request| request.context == expected) {
            return true;
        }
        if self.expected_finished && now_ns - self.antic_start_ns >= self.settings.antic_expire_ns {
            return true;
        }
        let expected = expected as usize;
        if self.threads[expected].queued > 0 {
            return true;
        }
        if let Some(request) = request
            && request.sync
            && self.is_close(now_ns, expected, request)
        {
            self.learn(now_ns, expected, request);
            return true;
        }
        let of = &self.threads[expected];
        let think = if of.think_samples == 0 {
            self.new_think_mean
        } else {
            of.think_mean
        };
        think * JIFFY_NS > self.settings.antic_expire_ns
    }

    /// `as_can_anticipate`.
    fn can_anticipate(&mut self, now_ns: u64, id: Option<Id>, requests: &[BlockRequest]) -> bool {
        self.expected.is_some()
            && self.status != Status::Finished
            && !self.can_break(now_ns, id.map(|id| &requests[id as usize]))
    }

    fn wait_next(&mut self) {
        self.timer_ns = Some(self.antic_start_ns + self.settings.antic_expire_ns);
        self.status = Status::WaitNext;
    }

    fn wait_request(&mut self) {
        if self.status == Status::Off {
            if self.expected.is_none() || self.expected_finished {
                self.wait_next();
            } else {
                self.status = Status::WaitRequest;
            }
        }
    }

    fn is_waiting(&self) -> bool {
        matches!(self.status, Status::WaitRequest | Status::WaitNext)
    }

    fn stop(&mut self) {
        if self.is_waiting() {
            self.timer_ns = None;
            self.status = Status::Finished;
        }
    }

    /// `as_fifo_expired`: looked at once an expiry time only, so that a late queue is not served in FIFO order.
    fn fifo_expired(&mut self, now_ns: u64, kind: usize) -> bool {
        if now_ns - self.last_check_ns[kind] < self.expire_ns[kind] {
            return false;
        }
        self.last_check_ns[kind] = now_ns;
        self.fifo_list[kind]
            .first()
            .is_some_and(|id| now_ns > self.links.expires_ns(id))
    }

    fn batch_expired(&self, now_ns: u64) -> bool {
        if self.changed_batch || self.new_batch {
            return false;
        }
        now_ns > self.batch_expires_ns || (self.batch == ASYNC && self.current_write_count == 0)
    }

    /// `update_write_batch`.
    fn tune_write_batch(&mut self, now_ns: u64) {
        let batch = (self.settings.write_batch_expire_ns / JIFFY_NS) as i64;
        let over = (now_ns / JIFFY_NS) as i64 - (self.batch_expires_ns / JIFFY_NS) as i64;
        let time = (over + batch).max(0);
        if time > batch && !self.write_batch_idled {
            if time > batch * 3 {
                self.write_batch_count /= 2;
            } else {
                self.write_batch_count -= 1;
            }
        } else if time < batch && self.current_write_count == 0 {
            if batch > time * 3 {
                self.write_batch_count *= 2;
            } else {
                self.write_batch_count += 1;
            }
        }
        self.write_batch_count = self.write_batch_count.max(1);
    }

    /// `as_find_next_rq`.
    fn next_after(&self, id: Id, kind: usize, requests: &[BlockRequest]) -> Option<Id> {
        let next = self
            .nodes
            .next(id)
            .or(self.sort_list[kind].first().filter(|&first| first != id));
        let previous = self.nodes.previous(id);
        ONE_WAY.choose(self.last_sector[kind], next, previous, requests)
    }

    fn take_out(&mut self, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let kind = usize::from(request.sync);
        self.threads[request.context as usize].queued -= 1;
        if self.next_rq[kind] == Some(id) {
            self.next_rq[kind] = self.next_after(id, kind, requests);
        }
        self.nodes.remove(&mut self.sort_list[kind], id);
        self.links.remove(&mut self.fifo_list[kind], id);
        self.waiting -= 1;
    }

    /// `as_move_to_dispatch`.
    fn hand_out(&mut self, id: Id, requests: &[BlockRequest]) -> Id {
        let request = &requests[id as usize];
        let kind = usize::from(request.sync);
        self.stop();
        self.status = Status::Off;
        self.last_sector[kind] = request.end();
        if kind == SYNC {
            self.expected = Some(request.context);
        } else {
            self.expected = None;
            self.current_write_count = self.current_write_count.saturating_sub(1);
        }
        self.expected_finished = false;
        self.next_rq[kind] = self.next_after(id, kind, requests);
        self.take_out(id, requests);
        self.in_device += 1;
        id
    }

    /// Begins a batch of the other kind if it is time; the request it begins with.
    fn change_batch(&mut self, now_ns: u64, reads: bool, writes: bool) -> Option<Id> {
        let to = if reads && !(writes && self.batch == SYNC) {
            SYNC
        } else {
            ASYNC
        };
        if self.batch != to {
            self.changed_batch = true;
            if to == ASYNC {
                self.new_batch = false;
            }
        }
        self.batch = to;
        if to == ASYNC {
            self.current_write_count = self.write_batch_count;
            self.write_batch_idled = false;
        }
        self.last_check_ns[to] = now_ns;
        self.fifo_list[to].first()
    }
}

impl Elevator for Anticipatory {
    fn insert(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let (kind, thread) = (usize::from(request.sync), request.context as usize);
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, Thread::default());
        }
        self.learn(now_ns, thread, request);
        self.threads[thread].queued += 1;
        self.nodes
            .insert(&mut self.sort_list[kind], id, request.lbn);
        let expires_ns = now_ns + self.expire_ns[kind];
        self.links
            .push_back(&mut self.fifo_list[kind], id, expires_ns);
        self.waiting += 1;
        self.next_rq[kind] = ONE_WAY.choose(
            self.last_sector[kind],
            Some(id),
            self.next_rq[kind],
            requests,
        );
        if self.is_waiting() && self.can_break(now_ns, Some(request)) {
            self.stop();
        }
    }

    fn dispatch(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<Id> {
        let reads = !self.fifo_list[SYNC].is_empty();
        let writes = !self.fifo_list[ASYNC].is_empty();
        if self.batch == ASYNC && !reads && (self.current_write_count == 0 || !writes) {
            self.write_batch_idled = true;
        }
        if !(reads || writes) || self.is_waiting() || self.changed_batch {
            return None;
        }
        let mut chosen = None;
        let mut expired = false;
        if !(reads && writes && self.batch_expired(now_ns)) {
            chosen = self.next_rq[self.batch];
            if self.batch == SYNC && self.settings.antic_expire_ns > 0 {
                expired = self.fifo_expired(now_ns, SYNC);
                if !expired && self.can_anticipate(now_ns, chosen, requests) {
                    self.wait_request();
                    return None;
                }
            }
            if !expired && chosen.is_some() && reads && !writes {
                self.batch_expires_ns = now_ns + self.settings.read_batch_expire_ns;
            }
        }
        if !expired {
            if chosen.is_none() {
                chosen = self.change_batch(now_ns, reads, writes);
            }
            expired = self.fifo_expired(now_ns, self.batch);
        }
        if expired {
            chosen = self.fifo_list[self.batch].first();
        }
        if self.changed_batch {
            if self.in_device > 0 {
                return None;
            }
            if self.batch == ASYNC {
                self.batch_expires_ns = now_ns + self.settings.write_batch_expire_ns;
            } else {
                self.new_batch = true;
            }
            self.changed_batch = false;
        }
        chosen.map(|id| self.hand_out(id, requests))
    }

    fn completed(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        if self.changed_batch && self.in_device == 1 {
            let expire_ns = [
                self.settings.write_batch_expire_ns,
                self.settings.read_batch_expire_ns,
            ];
            self.batch_expires_ns = now_ns + expire_ns[self.batch];
            self.changed_batch = false;
            if self.batch == SYNC {
                self.new_batch = true;
            }
        }
        self.in_device -= 1;
        // A batch counts from when a request of its kind has been served.
        if self.new_batch && self.batch == usize::from(request.sync) {
            self.tune_write_batch(now_ns);
            self.batch_expires_ns = now_ns + self.settings.read_batch_expire_ns;
            self.new_batch = false;
        }
        if self.expected == Some(request.context) {
            self.antic_start_ns = now_ns;
            self.expected_finished = true;
            if self.status == Status::WaitRequest {
                self.wait_next();
            }
        }
        if request.sync {
            let of = &mut self.threads[request.context as usize];
            of.running = true;
            of.last_end_ns = now_ns;
        }
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn front_merge(&self, bio: &BlockRequest, requests: &[BlockRequest]) -> Option<Id> {
        let tree = &self.sort_list[usize::from(bio.sync)];
        self.nodes
            .exactly_at(tree, bio.end())
            .filter(|&id| requests[id as usize].write == bio.write)
    }

    fn moved(&mut self, _: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let tree = &mut self.sort_list[usize::from(request.sync)];
        self.nodes.remove(tree, id);
        self.nodes.insert(tree, id, request.lbn);
    }

    fn neighbour(&self, id: Id, after: bool) -> Option<Id> {
        if after {
            self.nodes.next(id)
        } else {
            self.nodes.previous(id)
        }
    }

    fn joined(&mut self, _: u64, kept: Id, gone: Id, requests: &[BlockRequest]) {
        let kind = usize::from(requests[gone as usize].sync);
        self.links.inherit(&mut self.fifo_list[kind], kept, gone);
        self.take_out(gone, requests);
    }

    fn timer_ns(&self) -> Option<u64> {
        self.timer_ns
    }

    fn timer(&mut self, _: u64, _: &[BlockRequest]) {
        self.timer_ns = None;
        if self.is_waiting() {
            self.status = Status::Finished;
        }
    }
}
