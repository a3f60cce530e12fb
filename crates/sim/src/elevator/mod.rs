//! Elevators: they choose which waiting request goes to the device next.
//!
//! Each follows the source of a named kernel; `docs/explanation/elevators.md` names the function behind each rule, and
//! the parts that were left out. Times are nanoseconds: where the kernel counts jiffies, HZ is 1000 (bfq: 250).

mod anticipatory;
mod bfq;
mod cfq;
mod choose;
mod classic;
mod deadline;
mod fifo;
mod kyber;
mod levels;
mod mq_deadline;
mod noop;
mod parameter;
mod scheduler;
pub(crate) mod sorted;

use crate::request::{BlockRequest, Id};
use crate::ticks::Ticks;

pub use anticipatory::Settings as AnticipatorySettings;
pub use bfq::Settings as BfqSettings;
pub use cfq::Settings as CfqSettings;
pub use deadline::{BatchRule, Settings as DeadlineSettings};
pub use kyber::Settings as KyberSettings;
pub use mq_deadline::Settings as MqDeadlineSettings;
pub use parameter::{Parameter, ParameterValue};
pub use scheduler::Scheduler;

/// A millisecond: a jiffy of a kernel with HZ = 1000.
pub(crate) const JIFFY_NS: u64 = 1_000_000;

/// Decides the order in which a queue's requests go to the device.
///
/// The queue owns the requests and passes all of them (by id) to every call. A request is `insert`ed, may grow by
/// merges, is handed out by `dispatch` once, and reported `completed`. Nothing is allocated once ids have reached
/// their largest.
pub trait Elevator: Send {
    /// Takes a request.
    fn insert(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]);

    /// The ticks of the run.
    fn follow(&mut self, ticks: Ticks) {
        let _ = ticks;
    }

    /// True if the request that was inserted last is not to wait for more (`blk_start_queueing`).
    fn starts(&self) -> bool {
        false
    }

    /// The request that goes to the device now. `None`: there is none, or the elevator waits for a better one.
    fn dispatch(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<Id>;

    /// A dispatched request is done.
    fn completed(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let _ = (now_ns, id, requests);
    }

    /// Requests that were inserted and not yet dispatched.
    fn waiting(&self) -> u32;

    /// A waiting request that begins where `bio` ends and may be extended to the front.
    fn front_merge(&self, bio: &BlockRequest, requests: &[BlockRequest]) -> Option<Id> {
        let _ = (bio, requests);
        None
    }

    /// True if `bio` may be merged into this waiting request.
    fn may_merge(
        &mut self,
        now_ns: u64,
        id: Id,
        bio: &BlockRequest,
        requests: &[BlockRequest],
    ) -> bool {
        let _ = (now_ns, id, bio, requests);
        true
    }

    /// True if a request may become a part of this waiting one.
    fn may_join(
        &mut self,
        now_ns: u64,
        id: Id,
        other: &BlockRequest,
        requests: &[BlockRequest],
    ) -> bool {
        self.may_merge(now_ns, id, other, requests)
    }

    /// Sixteenths of each word of the map of free requests that one of this kind may use (`limit_depth`); `None`: all.
    fn depth_share(&self, request: &BlockRequest) -> Option<u32> {
        let _ = request;
        None
    }

    /// A thread has ended (`exit_icq`). True if the queue is to ask for requests.
    fn exits(&mut self, now_ns: u64, context: u32) -> bool {
        let _ = (now_ns, context);
        false
    }

    /// Only its threads' readings of the clock take the host time: none passes while the elevator works.
    fn time_stands_still(&mut self) {}

    /// True if the queue is to ask for requests now that one is done, even if the drive had room before.
    fn runs_after_completion(&self) -> bool {
        true
    }

    /// True if requests are merged at all while they wait here.
    fn merges(&self) -> bool {
        true
    }

    /// True if a request that is inserted may become a part of the waiting one that it continues
    /// (`blk_mq_sched_try_insert_merge`).
    fn merges_inserted(&self) -> bool {
        true
    }

    /// A waiting request was extended to the front: it begins elsewhere now.
    fn moved(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let _ = (now_ns, id, requests);
    }

    /// The waiting request before (`elv_former_request`) or after this one.
    fn neighbour(&self, id: Id, after: bool) -> Option<Id> {
        let _ = (id, after);
        None
    }

    /// `gone` became a part of `kept`: it is waiting no more.
    fn joined(&mut self, now_ns: u64, kept: Id, gone: Id, requests: &[BlockRequest]);

    /// Time at which `timer` is to be called; `None` if it need not be.
    fn timer_ns(&self) -> Option<u64> {
        None
    }

    /// Called at that time; the queue asks for a dispatch afterwards.
    fn timer(&mut self, now_ns: u64, requests: &[BlockRequest]) {
        let _ = (now_ns, requests);
    }
}
