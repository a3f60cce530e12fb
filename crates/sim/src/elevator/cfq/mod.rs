//! `cfq`: a queue for each thread, served in slices of time; synchronous queues are waited for.
//!
//! [`tree`] has the rules since 2.6.22, [`workloads`] what is different since 2.6.33, and [`lists`] the rules before.
//! They keep their requests in [`sets`]. Times are jiffies, as in `block/cfq-iosched.c`.

mod lists;
mod sets;
mod tree;
mod workloads;

use serde::Serialize;

use super::levels::LEVELS;
use super::parameter::Parameter;
use super::{Elevator, JIFFY_NS};
use crate::cache::PAGE;
use crate::kernel::Kernel;
use crate::request::BlockRequest;

/// Parameters of `cfq-iosched.c` in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Requests of one queue in the device.
    pub quantum: u32,
    /// Age at which a synchronous request goes first within its queue.
    pub fifo_expire_sync_ns: u64,
    /// Age at which an asynchronous one does.
    pub fifo_expire_async_ns: u64,
    /// Longest seek backwards, blocks.
    pub back_seek_max: u64,
    /// How much farther a block behind counts than one ahead.
    pub back_seek_penalty: u64,
    /// Slice of a synchronous queue at level 4.
    pub slice_sync_ns: u64,
    /// Slice of an asynchronous queue at level 4.
    pub slice_async_ns: u64,
    /// Requests in a slice of an asynchronous queue, before the level counts.
    pub slice_async_rq: u32,
    /// Wait for the next request of a queue.
    pub slice_idle_ns: u64,
    /// Asynchronous requests are held back after synchronous ones, and seeky queues idle too (since 2.6.32).
    pub low_latency: bool,
    /// Whose rules these are.
    pub kernel: Kernel,
}

impl Settings {
    /// The kernel's defaults.
    #[must_use]
    pub fn of(kernel: Kernel) -> Settings {
        Settings {
            quantum: if kernel < WORKLOADS { 4 } else { 8 },
            // Indexed by rq_is_sync: { HZ / 4, HZ / 8 }.
            fifo_expire_sync_ns: 125 * JIFFY_NS,
            fifo_expire_async_ns: 250 * JIFFY_NS,
            back_seek_max: 16 * 1024 * 2,
            back_seek_penalty: 2,
            slice_sync_ns: 100 * JIFFY_NS,
            slice_async_ns: 40 * JIFFY_NS,
            slice_async_rq: 2,
            slice_idle_ns: 8 * JIFFY_NS,
            low_latency: kernel >= Kernel::new(2, 6, 32),
            kernel,
        }
    }

    /// The queues are in lists ([`lists`]); since 2.6.22 they are in a tree ("cfq-iosched: use a rbtree for the service list").
    fn has_lists(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 22)
    }

    /// Threads that seek share a tree of their own ([`workloads`]).
    fn has_workloads(&self) -> bool {
        self.kernel >= WORKLOADS
    }

    fn slices(&self) -> Slices {
        Slices {
            asynchronous: jiffies(self.slice_async_ns),
            synchronous: jiffies(self.slice_sync_ns),
            idle: jiffies(self.slice_idle_ns),
        }
    }

    /// `cfq_prio_to_maxrq`: requests in a slice of an asynchronous queue.
    fn most_of_slice(&self, level: u8) -> u32 {
        let base = self.slice_async_rq;
        2 * (base + base * (LEVELS as u32 - 1 - u32::from(level)))
    }

    /// Age at which a request goes first within its queue, ns.
    fn fifo_expire_ns(&self, sync: bool) -> u64 {
        if sync {
            self.fifo_expire_sync_ns
        } else {
            self.fifo_expire_async_ns
        }
    }

    /// The queue is waited for although it has requests at the drive (2.6.24; in 2.6.29 not: "still requests with the
    /// driver, don't idle").
    fn idles_beside_requests(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 28)
    }

    /// A drive that has once had more than four requests has tags (2.6.24 `cfq_activate_request`); what wrote the data
    /// before is taken to have sent it so many. Later kernels watch on ("cfq-iosched: fix queue depth detection").
    fn finds_tags_once(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 28)
    }

    /// A request that was waited for goes to the drive at once, however small it is (until 2.6.29; "cfq-iosched: don't let
    /// idling interfere with plugging").
    fn starts_at_once(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 30)
    }

    /// As many requests of a queue as `quantum` go to the drive together (`__cfq_dispatch_requests` in 2.6.24 and 2.6.29).
    fn sends_together(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 30)
    }

    /// The rest of a slice puts a queue farther back, not nearer to the front, and who preempts has no key of his own
    /// (`cfq_service_tree_add` in 2.6.24 and 2.6.29).
    fn adds_what_was_left(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 30)
    }

    /// Seeks and think times count when queues are chosen, and asynchronous requests go before a queue that is waited for
    /// (2.6.32; not in 2.6.29).
    fn weighs_think_times(&self) -> bool {
        self.kernel >= Kernel::new(2, 6, 30)
    }

    /// Idle queues are served a while after the last request of the others only (until 2.6.24; "cfq-iosched: relax
    /// IOPRIO_CLASS_IDLE restrictions").
    fn has_idle_grace(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 25)
    }

    /// A thread's first request is no seek, whatever its place (2.6.31: "cfq-iosched: make seek_mean converge more quickly").
    fn first_is_no_seek(&self) -> bool {
        self.kernel >= Kernel::new(2, 6, 31)
    }

    /// Under the names that sysfs has.
    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::count("quantum", 1, &mut self.quantum),
            Parameter::time("fifo_expire_sync", &mut self.fifo_expire_sync_ns),
            Parameter::time("fifo_expire_async", &mut self.fifo_expire_async_ns),
            Parameter::blocks("back_seek_max", &mut self.back_seek_max),
            Parameter::factor("back_seek_penalty", &mut self.back_seek_penalty),
            Parameter::time("slice_sync", &mut self.slice_sync_ns),
            Parameter::time("slice_async", &mut self.slice_async_ns),
            Parameter::count("slice_async_rq", 1, &mut self.slice_async_rq),
            Parameter::time("slice_idle", &mut self.slice_idle_ns),
            Parameter::flag("low_latency", &mut self.low_latency),
        ]
    }
}

/// "cfq-iosched: fairness for sync no-idle queues".
const WORKLOADS: Kernel = Kernel::new(2, 6, 33);
/// `CFQ_IDLE_GRACE`.
const IDLE_GRACE: i64 = 100;
/// `CFQ_MIN_TT`: wait for a thread that seeks, and longest think time of one that is still waited for.
const MIN_THINK: i64 = 2;
/// `CFQQ_SEEK_THR`, blocks.
const SEEK_THRESHOLD: u64 = 8 * 1024;
/// `CFQ_SLICE_SCALE`.
const SLICE_SCALE: i64 = 5;
/// `CFQ_HW_QUEUE_MIN`.
const TAGS_MIN: u32 = 5;
/// Blocks of a page.
const PAGE_BLOCKS: u32 = (PAGE / 512) as u32;

/// `flash`: the device has no moving head. `depth`: requests that it takes at a time.
pub(super) fn build(settings: Settings, flash: bool, depth: u32) -> Box<dyn Elevator> {
    if settings.has_lists() {
        Box::new(lists::CfqLists::new(settings, depth))
    } else {
        Box::new(tree::Cfq::new(settings, flash, depth))
    }
}

/// Lengths of slices at level 4, and the wait for a queue.
#[derive(Debug, Clone, Copy)]
struct Slices {
    asynchronous: i64,
    synchronous: i64,
    idle: i64,
}

impl Slices {
    /// `cfq_prio_slice`.
    fn at(&self, sync: bool, level: u8) -> i64 {
        let base = if sync {
            self.synchronous
        } else {
            self.asynchronous
        };
        base + base / SLICE_SCALE * (4 - i64::from(level))
    }
}

/// `struct cfq_io_context`: how long a thread thinks between two requests.
#[derive(Clone, Copy)]
struct Thread {
    last_end: i64,
    samples: i64,
    total: i64,
    mean: i64,
}

impl Thread {
    fn new(now: i64) -> Thread {
        Thread {
            last_end: now,
            samples: 0,
            total: 0,
            mean: 0,
        }
    }

    /// Adds the threads up to this one.
    fn make_room(threads: &mut Vec<Thread>, context: u32, now: i64) {
        if threads.len() <= context as usize {
            threads.resize(context as usize + 1, Thread::new(now));
        }
    }

    /// `cfq_update_io_thinktime`.
    fn thought(&mut self, now: i64, slice_idle: i64) {
        let think = (now - self.last_end).min(2 * slice_idle);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * think) / 8;
        self.mean = (self.total + 128) / self.samples;
    }
}

/// How far apart the requests of a queue are, blocks.
#[derive(Default)]
struct Seeks {
    samples: u64,
    total: u64,
    mean: u64,
    last_end: u64,
}

impl Seeks {
    /// `cfq_update_io_seektime`. `first_counts`: so does the first request's place.
    fn moved(&mut self, request: &BlockRequest, first_counts: bool) {
        let distance = match self.last_end {
            0 if !first_counts => 0,
            last => last.abs_diff(request.lbn),
        };
        let slack = if self.samples <= 60 {
            2 * 1024 * 1024
        } else {
            2 * 1024 * 64
        };
        let distance = distance.min(self.mean * 4 + slack);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * distance) / 8;
        self.mean = (self.total + self.samples / 2) / self.samples;
        self.last_end = request.end();
    }

    fn is_seeky(&self) -> bool {
        self.mean > SEEK_THRESHOLD
    }
}

fn is_valid(samples: u64) -> bool {
    samples > 80
}

fn jiffies(now_ns: u64) -> i64 {
    (now_ns / JIFFY_NS) as i64
}

/// The timer that comes first, ns.
fn earlier(a: Option<i64>, b: Option<i64>) -> Option<u64> {
    let first = [a, b].into_iter().flatten().min()?;
    Some(first as u64 * JIFFY_NS)
}
