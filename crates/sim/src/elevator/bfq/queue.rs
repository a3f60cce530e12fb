//! A queue of bfq (`struct bfq_queue`) and a thread's part in the elevator (`struct bfq_io_cq`).

use super::super::fifo::Fifo;
use super::super::sorted::Sorted;
use super::clock::{Clock, LONG_AGO};
use super::tree::Entity;
use crate::request::Id;

/// A queue: the requests of a thread, or of several that cooperate, or the asynchronous ones of a priority.
pub(super) struct Queue {
    pub(super) sync: bool,
    pub(super) class: usize,
    pub(super) entity: Entity,
    /// The only thread that it belongs to (`bic`).
    pub(super) context: Option<usize>,
    /// Threads that use it, or will after merges that are planned (`bfqq_process_refs`).
    pub(super) users: u32,
    /// Requests that exist.
    pub(super) allocated: u32,
    /// Threads that may be merged with it later.
    pub(super) stable_users: u32,
    /// The weight that it is counted under among the busy queues (`weight_counter`).
    pub(super) counted: Option<u64>,
    /// Another may take its place.
    pub(super) is_released: bool,
    /// The queue that takes its requests over.
    pub(super) heir: Option<usize>,

    pub(super) sort_list: Sorted,
    pub(super) fifo: Fifo,
    pub(super) next_rq: Option<Id>,
    /// Address of `next_rq` in the list of positions.
    pub(super) position: Option<u64>,
    pub(super) queued: u32,
    pub(super) dispatched: u32,

    pub(super) is_new: bool,
    pub(super) busy: bool,
    pub(super) waits: bool,
    /// It became empty and may go on with its budget if its next request comes soon (`non_blocking_wait_rq`).
    pub(super) goes_on: bool,
    pub(super) fifo_looked_at: bool,
    pub(super) short_think: bool,
    pub(super) io_bound: bool,
    pub(super) in_large_burst: bool,
    pub(super) soft_due: bool,
    /// Several threads share or shared it, and it is to be taken apart.
    pub(super) coop: bool,
    pub(super) splits: bool,

    pub(super) max_budget: i64,
    /// Jiffies: end of its service, or since when it has had nothing to do.
    pub(super) budget_timeout: i64,

    pub(super) raising: Raising,
    /// Jiffies from which on it may count as soft real-time.
    pub(super) soft_next_start: i64,
    pub(super) last_backlogged: i64,
    pub(super) service_from_backlogged: u64,
    pub(super) first_io: i64,
    pub(super) split_time: i64,
    pub(super) creation: i64,

    pub(super) think: Think,
    pub(super) io_start_ns: u64,
    pub(super) idle_ns: u64,
    pub(super) seek_history: u32,
    pub(super) last_request_pos: u64,

    pub(super) inject: Inject,
    pub(super) waker: Option<usize>,
    pub(super) maybe_waker: Option<usize>,
    pub(super) waker_since_ns: u64,
    pub(super) waker_seen: u32,
    /// The first of the queues that it wakes (`woken_list`), and its own neighbours in the list of its waker.
    pub(super) first_woken: Option<usize>,
    pub(super) next_woken: Option<usize>,
    pub(super) previous_woken: Option<usize>,
}

/// Weight raising.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raising {
    pub(super) factor: u64,
    /// Jiffies.
    pub(super) longest: i64,
    pub(super) last_start: i64,
    pub(super) interactive_start: i64,
    pub(super) service: u64,
}

/// Time between the end of a request and the next one (`struct bfq_ttime`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Think {
    pub(super) last_end_ns: u64,
    pub(super) samples: u64,
    pub(super) total_ns: u64,
    pub(super) mean_ns: u64,
}

/// Requests of others that are served while the queue has none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Inject {
    pub(super) limit: u32,
    /// Time of a request without others beside it.
    pub(super) alone_ns: u64,
    pub(super) lowered: i64,
}

impl Queue {
    pub(super) fn new(sync: bool, class: usize, weight: u64, max_budget: i64, at: Clock) -> Queue {
        Queue {
            sync,
            class,
            entity: Entity::new(weight),
            context: None,
            users: 0,
            allocated: 0,
            stable_users: 0,
            counted: None,
            is_released: false,
            heir: None,
            sort_list: Sorted::default(),
            fifo: Fifo::default(),
            next_rq: None,
            position: None,
            queued: 0,
            dispatched: 0,
            is_new: sync,
            busy: false,
            waits: false,
            goes_on: false,
            fifo_looked_at: false,
            short_think: sync && class != 2,
            io_bound: true,
            in_large_burst: false,
            soft_due: false,
            coop: false,
            splits: false,
            max_budget: 2 * max_budget / 3,
            budget_timeout: LONG_AGO,
            raising: Raising {
                factor: 1,
                longest: 0,
                last_start: at.jiffies,
                interactive_start: LONG_AGO,
                service: 0,
            },
            soft_next_start: at.jiffies,
            last_backlogged: 0,
            service_from_backlogged: 0,
            first_io: 0,
            split_time: LONG_AGO,
            creation: at.jiffies,
            think: Think {
                last_end_ns: at.ns,
                samples: 0,
                total_ns: 0,
                mean_ns: 0,
            },
            io_start_ns: at.ns,
            idle_ns: 0,
            // A first bit, which may just be the process starting.
            seek_history: 1,
            last_request_pos: 0,
            inject: Inject::default(),
            waker: None,
            maybe_waker: None,
            waker_since_ns: 0,
            waker_seen: 0,
            first_woken: None,
            next_woken: None,
            previous_woken: None,
        }
    }

    /// `BFQQ_SEEKY`.
    pub(super) fn is_seeky(&self) -> bool {
        self.seek_history.count_ones() > 19
    }

    /// `bfq_bfqq_budget_left`.
    pub(super) fn budget_left(&self) -> i64 {
        self.entity.budget - self.entity.service
    }

    pub(super) fn is_raised(&self) -> bool {
        self.raising.factor > 1
    }

    /// `bfq_bfqq_budget_timeout`.
    pub(super) fn is_timed_out(&self, at: Clock) -> bool {
        self.budget_timeout <= at.jiffies
    }
}

/// A thread as the elevator knows it.
#[derive(Debug, Default)]
pub(super) struct Context {
    pub(super) sync_queue: Option<usize>,
    pub(super) async_queue: Option<usize>,
    /// Requests under way.
    pub(super) requests: u32,
    /// The queue that its own may be merged with later, and whether such a merge has happened.
    pub(super) stable_merge: Option<usize>,
    pub(super) stably_merged: bool,
    /// The state of its queue when it was merged.
    pub(super) saved: Option<Saved>,
    pub(super) was_in_burst: bool,
    pub(super) was_in_large_burst: bool,
}

/// `bfq_bfqq_save_state`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saved {
    pub(super) inject: Inject,
    pub(super) weight: u64,
    pub(super) think: Think,
    pub(super) short_think: bool,
    pub(super) io_bound: bool,
    pub(super) io_start_ns: u64,
    pub(super) idle_ns: u64,
    pub(super) raising: Raising,
}
