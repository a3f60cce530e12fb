//! Levels of priority, as cfq and bfq have them (`IOPRIO_BE_NR`).

use spindle_workload::PriorityClass;

use crate::request::BlockRequest;

pub(crate) const LEVELS: usize = 8;
/// Queues of asynchronous requests: one for each level of the classes realtime and best effort, and one for idle.
pub(crate) const ASYNC_SLOTS: usize = 2 * LEVELS + 1;

/// Slot of an asynchronous queue (`cfq_async_queue_prio`, `bfq_async_queue_prio`).
pub(crate) fn async_slot(request: &BlockRequest) -> usize {
    let level = usize::from(request.level.min(7));
    match request.class {
        PriorityClass::Realtime => level,
        PriorityClass::BestEffort => LEVELS + level,
        PriorityClass::Idle => 2 * LEVELS,
    }
}
