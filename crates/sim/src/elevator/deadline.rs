//! `deadline`: sweeps in one direction, in batches of reads or of writes, with expiry.
//!
//! Linux 2.6.20, 2.6.24 and later, `block/deadline-iosched.c`: `deadline_dispatch_requests`, `deadline_move_request`,
//! `deadline_merge`, `deadline_merged_requests`.

use serde::Serialize;

use super::Elevator;
use super::JIFFY_NS;
use super::fifo::{Fifo, Links};
use super::parameter::Parameter;
use super::sorted::{Nodes, Sorted};
use crate::kernel::Kernel;
use crate::request::{BlockRequest, Id};

/// How the deadline elevator ends and begins batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchRule {
    /// Up to 2.6.23: a gap ends a batch, and a new one begins at the lowest address.
    Contiguous,
    /// 2.6.24: a gap ends a batch, and a new one begins at the oldest request.
    ContiguousFromOldest,
    /// Since: `fifo_batch` requests in sweep order, whatever the gaps; a new batch begins at the oldest.
    Sweep,
}

/// Parameters of `deadline-iosched.c` in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Age at which a read goes first.
    pub read_expire_ns: u64,
    /// Age at which a write goes first.
    pub write_expire_ns: u64,
    /// Times that reads are preferred to waiting writes.
    pub writes_starved: u32,
    /// Requests of a batch.
    pub fifo_batch: u32,
    /// True if waiting requests are extended to the front.
    pub front_merges: bool,
    /// Rule that begins and ends a batch.
    pub rule: BatchRule,
}

impl Settings {
    /// The kernel's defaults.
    #[must_use]
    pub fn of(kernel: Kernel) -> Settings {
        Settings {
            read_expire_ns: 500 * JIFFY_NS,
            write_expire_ns: 5000 * JIFFY_NS,
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
            rule: if kernel < Kernel::new(2, 6, 24) {
                BatchRule::Contiguous
            } else if kernel < Kernel::new(2, 6, 25) {
                BatchRule::ContiguousFromOldest
            } else {
                BatchRule::Sweep
            },
        }
    }

    /// Under the names that sysfs has.
    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::time("read_expire", &mut self.read_expire_ns),
            Parameter::time("write_expire", &mut self.write_expire_ns),
            Parameter::count("writes_starved", 0, &mut self.writes_starved),
            Parameter::count("fifo_batch", 0, &mut self.fifo_batch),
            Parameter::flag("front_merges", &mut self.front_merges),
        ]
    }
}

const READ: usize = 0;
const WRITE: usize = 1;

pub(super) struct Deadline {
    settings: Settings,
    nodes: Nodes,
    links: Links,
    sort_list: [Sorted; 2],
    fifo_list: [Fifo; 2],
    next_rq: [Option<Id>; 2],
    batching: u32,
    last_sector: u64,
    starved: u32,
    waiting: u32,
}

impl Deadline {
    pub(super) fn new(settings: Settings) -> Deadline {
        Deadline {
            settings,
            nodes: Nodes::default(),
            links: Links::default(),
            sort_list: Default::default(),
            fifo_list: Default::default(),
            next_rq: [None; 2],
            batching: 0,
            last_sector: 0,
            starved: 0,
            waiting: 0,
        }
    }

    fn expired(&self, now_ns: u64, direction: usize) -> bool {
        self.fifo_list[direction]
            .first()
            .is_some_and(|id| now_ns > self.links.expires_ns(id))
    }

    fn choose(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<Id> {
        let running = self.next_rq[WRITE].or(self.next_rq[READ]);
        if let Some(id) = running {
            if self.settings.rule != BatchRule::Sweep
                && self.last_sector != requests[id as usize].lbn
            {
                self.batching = self.batching.saturating_add(self.settings.fifo_batch);
            }
            if self.batching < self.settings.fifo_batch {
                return Some(id);
            }
        }
        let direction = self.direction()?;
        let next = self.next_rq[direction];
        if self.settings.rule != BatchRule::Contiguous {
            self.batching = 0;
            return match next {
                Some(next) if !self.expired(now_ns, direction) => Some(next),
                _ => self.fifo_list[direction].first(),
            };
        }
        if self.expired(now_ns, direction) {
            self.batching = 0;
            self.fifo_list[direction].first()
        } else if next.is_some() {
            next
        } else {
            self.batching = 0;
            self.sort_list[direction].first()
        }
    }

    /// Reads, unless there are none or writes have been starved.
    fn direction(&mut self) -> Option<usize> {
        let writes = !self.fifo_list[WRITE].is_empty();
        if !self.fifo_list[READ].is_empty() {
            let starved = self.starved;
            if writes {
                self.starved += 1;
            }
            if !writes || starved < self.settings.writes_starved {
                return Some(READ);
            }
        }
        if writes {
            self.starved = 0;
            return Some(WRITE);
        }
        None
    }

    fn take_out(&mut self, id: Id, direction: usize) {
        if self.next_rq[direction] == Some(id) {
            self.next_rq[direction] = self.nodes.next(id);
        }
        self.nodes.remove(&mut self.sort_list[direction], id);
        self.links.remove(&mut self.fifo_list[direction], id);
        self.waiting -= 1;
    }
}

impl Elevator for Deadline {
    fn insert(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let direction = usize::from(request.write);
        let expire_ns = [self.settings.read_expire_ns, self.settings.write_expire_ns][direction];
        self.nodes
            .insert(&mut self.sort_list[direction], id, request.lbn);
        self.links
            .push_back(&mut self.fifo_list[direction], id, now_ns + expire_ns);
        self.waiting += 1;
    }

    fn dispatch(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<Id> {
        let id = self.choose(now_ns, requests)?;
        self.batching += 1;
        let request = &requests[id as usize];
        let direction = usize::from(request.write);
        self.next_rq = [None; 2];
        self.next_rq[direction] = self.nodes.next(id);
        self.last_sector = request.end();
        self.take_out(id, direction);
        Some(id)
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn front_merge(&self, bio: &BlockRequest, _: &[BlockRequest]) -> Option<Id> {
        let tree = &self.sort_list[usize::from(bio.write)];
        self.nodes
            .exactly_at(tree, bio.end())
            .filter(|_| self.settings.front_merges)
    }

    fn moved(&mut self, _: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let tree = &mut self.sort_list[usize::from(request.write)];
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
        let direction = usize::from(requests[gone as usize].write);
        self.links
            .inherit(&mut self.fifo_list[direction], kept, gone);
        self.take_out(gone, direction);
    }
}
