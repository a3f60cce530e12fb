//! `mq-deadline`: deadline for blk-mq, with priority classes and ageing.
//!
//! Linux 6.1 and 6.18 `block/mq-deadline.c`: `dd_dispatch_request`, `dd_dispatch_prio_aged_requests`,
//! `__dd_dispatch_request`, `deadline_from_pos`, `dd_request_merge`, `dd_merged_requests`.

use serde::Serialize;

use spindle_workload::PriorityClass;

use super::Elevator;
use super::JIFFY_NS;
use super::fifo::{Fifo, Links};
use super::parameter::Parameter;
use super::sorted::{Nodes, Sorted};
use crate::kernel::Kernel;
use crate::request::{BlockRequest, Id};

/// Parameters of `mq-deadline.c` in the kernel.
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
    /// Age at which a request of a lower priority class goes before higher ones.
    pub prio_aging_expire_ns: u64,
    /// Classes are kept apart (since 5.14).
    pub classes: bool,
    /// Each direction goes on behind its last address (since 6.5); before, at the request that was next there, which a
    /// change of direction forgets before 5.14.
    pub resume: bool,
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
            prio_aging_expire_ns: 10_000 * JIFFY_NS,
            classes: kernel >= Kernel::new(5, 14, 0),
            resume: kernel >= Kernel::new(6, 5, 0),
        }
    }

    /// Under the names that sysfs has.
    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::time("read_expire", &mut self.read_expire_ns),
            Parameter::time("write_expire", &mut self.write_expire_ns),
            Parameter::time("prio_aging_expire", &mut self.prio_aging_expire_ns),
            Parameter::count("writes_starved", 0, &mut self.writes_starved),
            Parameter::count("fifo_batch", 0, &mut self.fifo_batch),
            Parameter::flag("front_merges", &mut self.front_merges),
        ]
    }
}

const READ: usize = 0;
const WRITE: usize = 1;

pub(super) struct MqDeadline {
    settings: Settings,
    nodes: Nodes,
    links: Links,
    classes: [Class; 3],
    last_direction: usize,
    batching: u32,
    starved: u32,
    waiting: u32,
}

/// `struct dd_per_prio`.
#[derive(Default)]
struct Class {
    sort_list: [Sorted; 2],
    fifo_list: [Fifo; 2],
    /// Where each direction goes on: the next request of the sweep (before 6.5)...
    next_rq: [Option<Id>; 2],
    /// ...or the address of the last one dispatched (since).
    latest_pos: [u64; 2],
    /// Inserted and not completed (`dd_queued`).
    queued: u32,
}

impl MqDeadline {
    pub(super) fn new(settings: Settings) -> MqDeadline {
        MqDeadline {
            settings,
            nodes: Nodes::default(),
            links: Links::default(),
            classes: Default::default(),
            last_direction: WRITE,
            batching: 0,
            starved: 0,
            waiting: 0,
        }
    }

    /// `ioprio_class_to_prio`.
    fn class_of(&self, request: &BlockRequest) -> usize {
        match request.class {
            _ if !self.settings.classes => 1,
            PriorityClass::Realtime => 0,
            PriorityClass::BestEffort => 1,
            PriorityClass::Idle => 2,
        }
    }

    fn expire_ns(&self, direction: usize) -> u64 {
        [self.settings.read_expire_ns, self.settings.write_expire_ns][direction]
    }

    /// `deadline_next_request`.
    fn next_request(&self, class: usize, direction: usize) -> Option<Id> {
        let class = &self.classes[class];
        if self.settings.resume {
            self.nodes
                .at_or_after(&class.sort_list[direction], class.latest_pos[direction])
        } else {
            class.next_rq[direction]
        }
    }

    /// `__dd_dispatch_request`: the next of a class, if it came no later than `latest_start_ns`.
    fn dispatch_class(
        &mut self,
        now_ns: u64,
        class: usize,
        latest_start_ns: u64,
        requests: &[BlockRequest],
    ) -> Option<Id> {
        let running = self.next_request(class, self.last_direction);
        let id = match running {
            Some(id) if self.batching < self.settings.fifo_batch => id,
            _ => {
                let direction = self.direction(class)?;
                let oldest = self.classes[class].fifo_list[direction].first()?;
                let next = self.next_request(class, direction);
                self.last_direction = direction;
                self.batching = 0;
                match next {
                    Some(next) if now_ns < self.links.expires_ns(oldest) => next,
                    _ => oldest,
                }
            }
        };
        let direction = usize::from(requests[id as usize].write);
        if self.links.expires_ns(id) - self.expire_ns(direction) > latest_start_ns {
            return None;
        }
        self.batching += 1;
        let next = self.nodes.next(id);
        let of = &mut self.classes[class];
        // Since 5.14 ("block/mq-deadline: Micro-optimize the batching algorithm") the other direction keeps its place.
        if !self.settings.classes {
            of.next_rq = [None; 2];
        }
        of.next_rq[direction] = next;
        of.latest_pos[direction] = requests[id as usize].lbn;
        self.take_out(id, class, direction);
        Some(id)
    }

    fn direction(&mut self, class: usize) -> Option<usize> {
        let fifo_list = &self.classes[class].fifo_list;
        let writes = !fifo_list[WRITE].is_empty();
        if !fifo_list[READ].is_empty() {
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

    fn take_out(&mut self, id: Id, class: usize, direction: usize) {
        let class = &mut self.classes[class];
        if class.next_rq[direction] == Some(id) {
            class.next_rq[direction] = self.nodes.next(id);
        }
        self.nodes.remove(&mut class.sort_list[direction], id);
        self.links.remove(&mut class.fifo_list[direction], id);
        self.waiting -= 1;
    }
}

impl Elevator for MqDeadline {
    fn insert(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let (class, direction) = (self.class_of(request), usize::from(request.write));
        let expires_ns = now_ns + self.expire_ns(direction);
        let class = &mut self.classes[class];
        self.nodes
            .insert(&mut class.sort_list[direction], id, request.lbn);
        self.links
            .push_back(&mut class.fifo_list[direction], id, expires_ns);
        class.queued += 1;
        self.waiting += 1;
    }

    fn dispatch(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<Id> {
        if self.waiting == 0 {
            return None;
        }
        let mixed = self.classes.iter().filter(|class| class.queued > 0).count() > 1;
        if mixed && let Some(latest_ns) = now_ns.checked_sub(self.settings.prio_aging_expire_ns) {
            for class in 1..3 {
                if let Some(id) = self.dispatch_class(now_ns, class, latest_ns, requests) {
                    return Some(id);
                }
            }
        }
        for class in 0..3 {
            let id = self.dispatch_class(now_ns, class, now_ns, requests);
            if id.is_some() || self.classes[class].queued > 0 {
                return id;
            }
        }
        None
    }

    fn completed(&mut self, _: u64, id: Id, requests: &[BlockRequest]) {
        let class = self.class_of(&requests[id as usize]);
        self.classes[class].queued -= 1;
    }

    /// No one looks at a class that waits until a higher one has nothing at the drive.
    fn runs_after_completion(&self) -> bool {
        false
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn front_merge(&self, bio: &BlockRequest, _: &[BlockRequest]) -> Option<Id> {
        let tree = &self.classes[self.class_of(bio)].sort_list[usize::from(bio.write)];
        self.nodes
            .exactly_at(tree, bio.end())
            .filter(|_| self.settings.front_merges)
    }

    fn may_merge(&mut self, _: u64, id: Id, bio: &BlockRequest, requests: &[BlockRequest]) -> bool {
        // blk_rq_merge_ok: only what has the same priority (ioprio) is merged.
        let request = &requests[id as usize];
        (request.class, request.level) == (bio.class, bio.level)
    }

    fn moved(&mut self, _: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let class = self.class_of(request);
        let tree = &mut self.classes[class].sort_list[usize::from(request.write)];
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
        let request = &requests[gone as usize];
        let (class, direction) = (self.class_of(request), usize::from(request.write));
        self.links
            .inherit(&mut self.classes[class].fifo_list[direction], kept, gone);
        self.take_out(gone, class, direction);
        self.classes[class].queued -= 1;
    }
}
