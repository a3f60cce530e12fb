//! Which elevator, and its parameters as sysfs names them.

use serde::Serialize;

use super::{
    Elevator, JIFFY_NS, anticipatory::Anticipatory as AnticipatoryElevator,
    bfq::Bfq as BfqElevator, cfq::Cfq as CfqElevator, classic::Classic,
    deadline::Deadline as DeadlineElevator, kyber::Kyber as KyberElevator,
    mq_deadline::MqDeadline as MqDeadlineElevator, noop::Noop,
};
use crate::kernel::Kernel;

/// An elevator and its parameters. Times are nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Scheduler {
    /// First come, first served; nothing is merged while it waits (blk-mq).
    None,
    /// First come, first served, with back merges.
    Noop,
    /// Two directions, one-way sweeps in batches, with expiry (up to 4.x).
    Deadline(Deadline),
    /// The same for blk-mq, with priority classes.
    MqDeadline(MqDeadline),
    /// Batches of reads and writes, and waiting for the next read of the same thread.
    Anticipatory(Anticipatory),
    /// A queue for each thread, time slices, idling.
    Cfq(Cfq),
    /// A queue for each thread, budgets of blocks.
    Bfq(Bfq),
    /// Tokens for reads and writes, adapted to latency targets.
    Kyber(Kyber),
    /// First come, first served, without merges.
    Fcfs,
    /// The nearest request.
    Sstf,
    /// Up to the end, then down.
    Scan,
    /// Up to the last request, then down.
    Look,
    /// Up to the last request, then again from the lowest.
    CLook,
}

impl Scheduler {
    /// Names, as sysfs and textbooks have them.
    pub const NAMES: [&'static str; 13] = [
        "none",
        "noop",
        "deadline",
        "mq-deadline",
        "anticipatory",
        "cfq",
        "bfq",
        "kyber",
        "fcfs",
        "sstf",
        "scan",
        "look",
        "c-look",
    ];

    /// The elevator of that name with the defaults of a kernel.
    #[must_use]
    pub fn named(name: &str, kernel: Kernel) -> Option<Scheduler> {
        Some(match name {
            "none" => Scheduler::None,
            "noop" => Scheduler::Noop,
            "deadline" => Scheduler::Deadline(Deadline::of(kernel)),
            "mq-deadline" => Scheduler::MqDeadline(MqDeadline::of(kernel)),
            "anticipatory" => Scheduler::Anticipatory(Anticipatory::default()),
            "cfq" => Scheduler::Cfq(Cfq::of(kernel)),
            "bfq" => Scheduler::Bfq(Bfq::default()),
            "kyber" => Scheduler::Kyber(Kyber::default()),
            "fcfs" => Scheduler::Fcfs,
            "sstf" => Scheduler::Sstf,
            "scan" => Scheduler::Scan,
            "look" => Scheduler::Look,
            "c-look" => Scheduler::CLook,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        Scheduler::NAMES[match self {
            Scheduler::None => 0,
            Scheduler::Noop => 1,
            Scheduler::Deadline(_) => 2,
            Scheduler::MqDeadline(_) => 3,
            Scheduler::Anticipatory(_) => 4,
            Scheduler::Cfq(_) => 5,
            Scheduler::Bfq(_) => 6,
            Scheduler::Kyber(_) => 7,
            Scheduler::Fcfs => 8,
            Scheduler::Sstf => 9,
            Scheduler::Scan => 10,
            Scheduler::Look => 11,
            Scheduler::CLook => 12,
        }]
    }

    /// Brings it to life for a device that has a moving head or not.
    #[must_use]
    pub fn build(&self, flash: bool) -> Box<dyn Elevator> {
        match self {
            Scheduler::None => Box::new(Noop::new(false)),
            Scheduler::Noop => Box::new(Noop::new(true)),
            Scheduler::Deadline(settings) => Box::new(DeadlineElevator::new(*settings)),
            Scheduler::MqDeadline(settings) => Box::new(MqDeadlineElevator::new(*settings)),
            Scheduler::Anticipatory(settings) => Box::new(AnticipatoryElevator::new(*settings)),
            Scheduler::Cfq(settings) => Box::new(CfqElevator::new(*settings, flash)),
            Scheduler::Bfq(settings) => Box::new(BfqElevator::new(*settings, flash)),
            Scheduler::Kyber(settings) => Box::new(KyberElevator::new(*settings)),
            Scheduler::Fcfs => Box::new(Classic::fcfs()),
            Scheduler::Sstf => Box::new(Classic::sstf()),
            Scheduler::Scan | Scheduler::Look => Box::new(Classic::look()),
            Scheduler::CLook => Box::new(Classic::c_look()),
        }
    }
}

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

/// `deadline-iosched.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Deadline {
    /// Age at which a read goes first.
    pub read_expire_ns: u64,
    /// Age at which a write goes first.
    pub write_expire_ns: u64,
    /// Times that reads are preferred to waiting writes.
    pub writes_starved: u32,
    /// Requests of a batch.
    pub fifo_batch: u32,
    /// Whether waiting requests are extended to the front.
    pub front_merges: bool,
    /// What a batch is.
    pub rule: BatchRule,
}

impl Deadline {
    /// The kernel's defaults.
    #[must_use]
    pub fn of(kernel: Kernel) -> Deadline {
        Deadline {
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
}

/// `mq-deadline.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MqDeadline {
    /// Age at which a read goes first.
    pub read_expire_ns: u64,
    /// Age at which a write goes first.
    pub write_expire_ns: u64,
    /// Times that reads are preferred to waiting writes.
    pub writes_starved: u32,
    /// Requests of a batch.
    pub fifo_batch: u32,
    /// Whether waiting requests are extended to the front.
    pub front_merges: bool,
    /// Age at which a request of a lower priority class goes before higher ones.
    pub prio_aging_expire_ns: u64,
    /// Classes are kept apart (since 5.14).
    pub classes: bool,
    /// Each direction goes on from where it last was (since 6.5); before, a change of direction forgets it.
    pub resume: bool,
}

impl MqDeadline {
    /// The kernel's defaults.
    #[must_use]
    pub fn of(kernel: Kernel) -> MqDeadline {
        MqDeadline {
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
}

/// `as-iosched.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Anticipatory {
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

impl Default for Anticipatory {
    fn default() -> Self {
        Anticipatory {
            read_expire_ns: 125 * JIFFY_NS,
            write_expire_ns: 250 * JIFFY_NS,
            read_batch_expire_ns: 500 * JIFFY_NS,
            write_batch_expire_ns: 125 * JIFFY_NS,
            antic_expire_ns: 6 * JIFFY_NS,
        }
    }
}

/// `cfq-iosched.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cfq {
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
}

impl Cfq {
    /// The kernel's defaults.
    #[must_use]
    pub fn of(kernel: Kernel) -> Cfq {
        Cfq {
            quantum: 4,
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
        }
    }
}

/// `bfq-iosched.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bfq {
    /// Age at which a synchronous request goes first within its queue.
    pub fifo_expire_sync_ns: u64,
    /// Age at which an asynchronous one does.
    pub fifo_expire_async_ns: u64,
    /// Longest seek backwards, blocks.
    pub back_seek_max: u64,
    /// How much farther a block behind counts than one ahead.
    pub back_seek_penalty: u64,
    /// Largest budget, blocks.
    pub max_budget: u64,
    /// Longest service of a synchronous queue.
    pub timeout_sync_ns: u64,
    /// Wait for the next request of a queue.
    pub slice_idle_ns: u64,
}

impl Default for Bfq {
    fn default() -> Self {
        Bfq {
            fifo_expire_sync_ns: 125 * JIFFY_NS,
            fifo_expire_async_ns: 250 * JIFFY_NS,
            back_seek_max: 16 * 1024 * 2,
            back_seek_penalty: 2,
            max_budget: 16 * 1024,
            timeout_sync_ns: 125 * JIFFY_NS,
            slice_idle_ns: 8 * JIFFY_NS,
        }
    }
}

/// `kyber-iosched.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Kyber {
    /// Target of reads.
    pub read_lat_ns: u64,
    /// Target of writes.
    pub write_lat_ns: u64,
}

impl Default for Kyber {
    fn default() -> Self {
        Kyber {
            read_lat_ns: 2 * JIFFY_NS,
            write_lat_ns: 10 * JIFFY_NS,
        }
    }
}
