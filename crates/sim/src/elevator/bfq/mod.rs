//! `bfq`: a queue for each thread, served in budgets of blocks by B-WF2Q+.
//!
//! Linux 6.1 `block/bfq-iosched.c`, `block/bfq-wf2q.c`, without `CONFIG_BFQ_GROUP_IOSCHED`. Names of the kernel's functions
//! are with those here; `docs/explanation/elevators.md` lists what is left out.

mod clock;
mod cooperate;
mod inject;
mod queue;
mod raise;
mod rate;
mod tree;

use serde::Serialize;

use spindle_workload::PriorityClass;

use self::clock::Clock;
use self::queue::{Context, Queue};
use self::raise::{Burst, REFERENCE_RATES};
use self::rate::Rate;
use self::tree::Tree;
use super::choose::OneWay;
use super::fifo::Links;
use super::levels::ASYNC_SLOTS;
use super::parameter::Parameter;
use super::sorted::Nodes;
use super::{Elevator, JIFFY_NS};
use crate::request::{BlockRequest, Id};
use crate::ticks::Ticks;

/// Parameters of `bfq-iosched.c` in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Age at which a synchronous request goes first within its queue.
    pub fifo_expire_sync_ns: u64,
    /// Age at which an asynchronous one does.
    pub fifo_expire_async_ns: u64,
    /// Longest seek backwards, blocks.
    pub back_seek_max: u64,
    /// How much farther a block behind counts than one ahead.
    pub back_seek_penalty: u64,
    /// Largest budget, blocks; 0: it follows the rate of the drive.
    pub max_budget: u64,
    /// Longest service of a synchronous queue.
    pub timeout_sync_ns: u64,
    /// Wait for the next request of a queue.
    pub slice_idle_ns: u64,
    /// Raises the weight of new queues, and of those that were idle for long, for some seconds.
    pub low_latency: bool,
    /// One request at the drive, and the elevator always waits for the queue in service.
    pub strict_guarantees: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            fifo_expire_sync_ns: 125 * JIFFY_NS,
            fifo_expire_async_ns: 250 * JIFFY_NS,
            back_seek_max: 16 * 1024 * 2,
            back_seek_penalty: 2,
            max_budget: 0,
            // HZ / 8.
            timeout_sync_ns: clock::HZ / 8 * clock::JIFFY_NS,
            slice_idle_ns: 8 * JIFFY_NS,
            low_latency: true,
            strict_guarantees: false,
        }
    }
}

impl Settings {
    /// Under the names that sysfs has.
    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::time("fifo_expire_sync", &mut self.fifo_expire_sync_ns),
            Parameter::time("fifo_expire_async", &mut self.fifo_expire_async_ns),
            Parameter::blocks("back_seek_max", &mut self.back_seek_max),
            Parameter::factor("back_seek_penalty", &mut self.back_seek_penalty),
            Parameter::budget("max_budget", 32, &mut self.max_budget),
            Parameter::time("timeout_sync", &mut self.timeout_sync_ns),
            Parameter::time("slice_idle", &mut self.slice_idle_ns),
            Parameter::flag("low_latency", &mut self.low_latency),
            Parameter::flag("strict_guarantees", &mut self.strict_guarantees),
        ]
    }
}

/// `bfq_default_max_budget`, which holds until the smoothed number of budgets is this (`bfq_stats_min_budgets`): the
/// eleventh.
const DEFAULT_BUDGET: i64 = 16 * 1024;
const LEAST_BUDGETS: u64 = 194;
/// `bfq_async_charge_factor`.
const ASYNC_CHARGE: i64 = 3;
/// `BFQQ_SEEK_THR`, blocks.
const SEEK_THRESHOLD: u64 = 8 * 100;
/// `BFQQ_SECT_THR_NONROT`, blocks: larger requests of flash count as sequential.
const FLASH_BLOCKS: u32 = 2 * 32;
/// `BFQ_MIN_TT`.
const MIN_THINK_NS: u64 = 2 * JIFFY_NS;
/// `bfq_timeout` and `bfq_slice_idle`, whatever the settings are.
const TIMEOUT_MS: u64 = clock::HZ / 8 * clock::JIFFY_NS / JIFFY_NS;
const SLICE_MS: u64 = 8;
/// `BFQ_HW_QUEUE_THRESHOLD`, `BFQ_HW_QUEUE_SAMPLES`.
const HW_QUEUE_THRESHOLD: u32 = 3;
const HW_QUEUE_SAMPLES: u32 = 32;
/// The elevator waits so long for a raised queue's next request.
const RAISED_IDLE_NS: u64 = 20 * JIFFY_NS;
/// The weight of best effort, level 4.
const DEFAULT_WEIGHT: u64 = 40;
const CLASSES: usize = 3;

/// `struct bfq_data`.
pub(super) struct Bfq {
    settings: Settings,
    flash: bool,
    one_way: OneWay,
    nodes: Nodes,
    links: Links,
    ticks: Ticks,
    clock: Clock,
    /// The completion that came last runs the queue (`bfq_schedule_dispatch`).
    runs_next: bool,
    queues: Vec<Queue>,
    unused: Vec<usize>,
    contexts: Vec<Context>,
    /// The thread whose request arrives.
    arriving: usize,
    of_level: [Option<usize>; ASYNC_SLOTS],
    of_request: Vec<Belongs>,

    trees: [Tree; CLASSES],
    /// Queues of the active trees, the newest last (`active_list`).
    active: Vec<usize>,
    next: Option<usize>,
    served_entity: Option<usize>,
    idle_class_served: i64,
    in_service: Option<usize>,
    /// Busy queues by class, and those of them that are raised.
    busy: [u32; CLASSES],
    raised_busy: u32,
    /// Weights of busy queues that are not raised, and how many have each.
    weights: Vec<(u64, u32)>,

    budget_start_ns: u64,
    idling_start_ns: u64,
    budgets_assigned: u64,
    max_budget: i64,
    rate: Rate,
    waiting: u32,
    in_driver: u32,
    last_position: u64,
    in_service_position: u64,
    last_completion_ns: u64,
    last_completed: Option<usize>,
    timer_ns: Option<u64>,

    /// True if the drive has a queue of its own, as far as known (`hw_tag`).
    has_queue: Option<bool>,
    is_flash_with_queue: bool,
    most_in_driver: u32,
    queue_samples: u32,

    burst: Burst,
    /// The queue that was made last, as far as later ones may be merged with it.
    last_made: Option<usize>,
    /// Queues by the address of their next request.
    positions: Vec<(u64, usize)>,

    waited_rq: Option<Id>,
    wait_dispatch: bool,
    injected: bool,
    occupied_ns: u64,
    /// No time passes while it works.
    stands_still: bool,
}

/// The queue and the thread of a request.
#[derive(Debug, Clone, Copy, Default)]
struct Belongs {
    queue: usize,
    context: usize,
}

/// Why a queue's service ends.
#[derive(Clone, Copy, PartialEq)]
enum Reason {
    TooIdle,
    BudgetTimeout,
    BudgetExhausted,
    NoMoreRequests,
    Preempted,
}

impl Bfq {
    /// `flash`: the device has no moving head.
    pub(super) fn new(settings: Settings, flash: bool) -> Bfq {
        let ticks = Ticks::default();
        let clock = Clock::at(0, ticks);
        let max_budget = match settings.max_budget {
            0 => DEFAULT_BUDGET,
            set => set as i64,
        };
        Bfq {
            flash,
            one_way: OneWay {
                back_max: settings.back_seek_max,
                back_penalty: settings.back_seek_penalty,
            },
            nodes: Nodes::default(),
            links: Links::default(),
            ticks,
            clock,
            runs_next: false,
            queues: Vec::new(),
            unused: Vec::new(),
            contexts: Vec::new(),
            arriving: 0,
            of_level: [None; ASYNC_SLOTS],
            of_request: Vec::new(),
            trees: Default::default(),
            active: Vec::new(),
            next: None,
            served_entity: None,
            idle_class_served: clock::LONG_AGO,
            in_service: None,
            busy: [0; CLASSES],
            raised_busy: 0,
            weights: Vec::new(),
            budget_start_ns: 0,
            idling_start_ns: 0,
            budgets_assigned: 0,
            max_budget,
            rate: Rate::new(REFERENCE_RATES[usize::from(flash)] * 2 / 3),
            waiting: 0,
            in_driver: 0,
            last_position: 0,
            in_service_position: 0,
            last_completion_ns: 0,
            last_completed: None,
            timer_ns: None,
            has_queue: None,
            is_flash_with_queue: flash,
            most_in_driver: 0,
            queue_samples: 0,
            burst: Burst::default(),
            last_made: None,
            positions: Vec::new(),
            waited_rq: None,
            wait_dispatch: false,
            injected: false,
            occupied_ns: 0,
            stands_still: false,
            settings,
        }
    }

    /// The queue that a thread's requests of this kind go to.
    fn find_queue(&self, request: &BlockRequest) -> Option<usize> {
        let context = self.contexts.get(request.context as usize)?;
        if request.sync {
            context.sync_queue
        } else {
            context.async_queue
        }
    }

    /// `bfq_tot_busy_queues`.
    fn busy_queues(&self) -> u32 {
        self.busy.iter().sum()
    }

    /// `bfq_max_budget`, for new queues.
    fn largest_budget(&self) -> i64 {
        if self.budgets_assigned < LEAST_BUDGETS {
            DEFAULT_BUDGET
        } else {
            self.max_budget
        }
    }

    /// `bfq_min_budget`.
    fn min_budget(&self) -> i64 {
        self.largest_budget() / 32
    }

    /// `bfq_serv_to_charge`.
    fn charge(&self, id: Id, queue: usize, requests: &[BlockRequest]) -> i64 {
        let blocks = i64::from(requests[id as usize].blocks);
        let of = &self.queues[queue];
        if of.sync || of.is_raised() || self.asymmetric(queue) {
            blocks
        } else {
            blocks * ASYNC_CHARGE
        }
    }

    /// `bfq_asymmetric_scenario`: classes differ among the busy queues, or weights and the queue's is not the least.
    /// Raised queues do not count.
    fn asymmetric(&self, queue: usize) -> bool {
        let classes = self.busy.iter().filter(|&&busy| busy > 0).count();
        let least = self.weights.first().map(|&(weight, _)| weight);
        let is_least = least.is_some() && self.queues[queue].counted == least;
        classes > 1 || self.weights.len() > 1 && !is_least
    }

    /// `BFQ_RQ_SEEKY`.
    fn is_far(&self, from: u64, request: &BlockRequest) -> bool {
        let far = from != 0 && from.abs_diff(request.lbn) > SEEK_THRESHOLD;
        far && (!self.flash || request.blocks < FLASH_BLOCKS)
    }

    /// `idling_boosts_thr_without_issues`.
    fn idling_boosts(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        // Not known yet counts as true (`hw_tag` is -1).
        let has_no_queue = self.has_queue == Some(false);
        let is_sequential = !of.is_seeky() && of.io_bound && of.short_think;
        let boosts = !self.flash && has_no_queue || (!self.flash || has_no_queue) && is_sequential;
        of.users > 0 && boosts && self.raised_busy == 0
    }

    /// `idling_needed_for_service_guarantees`.
    fn idling_is_fair(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        let busy = self.busy_queues();
        let needs =
            of.is_raised() && (self.raised_busy < busy || self.in_driver >= of.dispatched + 4);
        of.users > 0 && (needs || self.asymmetric(queue) || busy == 1)
    }

    /// `bfq_better_to_idle`.
    fn better_to_idle(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        if of.users == 0 {
            return false;
        }
        if self.settings.strict_guarantees {
            return true;
        }
        if self.settings.slice_idle_ns == 0 || !of.sync || of.class == 2 {
            return false;
        }
        self.idling_boosts(queue) || self.idling_is_fair(queue)
    }

    /// `bfq_bfqq_must_idle`.
    fn must_idle(&self, queue: usize) -> bool {
        self.queues[queue].sort_list.is_empty() && self.better_to_idle(queue)
    }

    /// `bfq_may_expire_for_budg_timeout`.
    fn may_time_out(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        (!of.waits || of.budget_left() >= of.entity.budget / 3) && of.is_timed_out(self.clock)
    }

    /// `bfq_update_hw_tag`.
    fn learn_queueing(&mut self) {
        self.most_in_driver = self.most_in_driver.max(self.in_driver);
        if self.has_queue == Some(true) || self.in_driver + self.waiting <= HW_QUEUE_THRESHOLD {
            return;
        }
        if let Some(queue) = self.in_service {
            let of = &self.queues[queue];
            let few = of.dispatched + of.queued < HW_QUEUE_THRESHOLD;
            if of.short_think && few && self.in_driver < HW_QUEUE_THRESHOLD {
                return;
            }
        }
        if self.queue_samples < HW_QUEUE_SAMPLES {
            self.queue_samples += 1;
            return;
        }
        let has_queue = self.most_in_driver > HW_QUEUE_THRESHOLD;
        self.has_queue = Some(has_queue);
        self.is_flash_with_queue = self.flash && has_queue;
        self.most_in_driver = 0;
        self.queue_samples = 0;
    }

    /// `bfq_bfqq_handle_idle_busy_switch`.
    fn become_busy(&mut self, queue: usize, requests: &[BlockRequest]) -> bool {
        let now = self.clock.jiffies;
        let of = &self.queues[queue];
        let factor = of.raising.factor;
        let idle_for_long = of.dispatched == 0 && of.budget_timeout + raise::LEAST_IDLE < now;
        let in_time_ns = of.think.last_end_ns + 3 * self.settings.slice_idle_ns;
        let found = self.assess(queue, factor, idle_for_long);
        // bfq_bfqq_update_budg_for_activation.
        let next = self.queues[queue].next_rq;
        let charge = next.map_or(0, |next| self.charge(next, queue, requests));
        let in_time = self.clock.ns <= in_time_ns;
        let of = &mut self.queues[queue];
        let goes_on = of.goes_on && in_time && of.budget_left() > 0;
        of.entity.budget = if goes_on {
            of.budget_left().min(of.max_budget)
        } else {
            of.max_budget.max(charge)
        };
        of.entity.service = 0;
        of.goes_on = goes_on;
        let long_ago = of.budget_timeout + clock::jiffies(10_000) < now;
        if !std::mem::take(&mut of.is_new) && idle_for_long && long_ago {
            of.in_large_burst = false;
            self.burst.queues.retain(|&other| other != queue);
        }
        self.update_raising(queue, &found);
        let of = &mut self.queues[queue];
        of.last_backlogged = now;
        of.service_from_backlogged = 0;
        of.soft_due = false;
        self.add_busy(queue);
        if let Some(serving) = self.in_service {
            let (of, other) = (&self.queues[queue], &self.queues[serving]);
            let is_higher = of.class < other.class || of.entity.weight > other.entity.weight;
            if (goes_on && of.raising.factor >= other.raising.factor
                || is_higher
                || !self.better_to_idle(serving))
                && self.next != self.served_entity
            {
                self.expire(serving, false, Reason::Preempted, requests);
            }
        }
        found.is_interactive
    }

    /// `bfq_bfqq_is_slow`: true if a queue gets little done, and the milliseconds that it is charged for.
    fn is_slow(&self, queue: usize, compensates: bool) -> (bool, u64) {
        let of = &self.queues[queue];
        if !of.sync {
            return (false, 0);
        }
        let end_ns = if compensates {
            self.idling_start_ns
        } else {
            self.clock.ns
        };
        let used_ns = end_ns.saturating_sub(self.budget_start_ns);
        if used_ns < JIFFY_NS {
            let ms = if self.flash {
                MIN_THINK_NS / JIFFY_NS
            } else {
                SLICE_MS
            };
            return (of.is_seeky(), ms);
        }
        let slow = if used_ns / 1000 > 20_000 {
            of.entity.service < self.max_budget / 2
        } else {
            of.is_seeky()
        };
        (slow, used_ns / JIFFY_NS)
    }

    /// `bfq_bfqq_charge_time`.
    fn charge_time(&mut self, queue: usize, ms: u64) {
        let by_time = self.max_budget * ms.min(TIMEOUT_MS) as i64 / TIMEOUT_MS as i64;
        let entity = &mut self.queues[queue].entity;
        let total = by_time.max(entity.service);
        entity.budget = entity.budget.max(total);
        let extra = total - entity.service;
        self.serve(queue, extra);
    }

    /// `bfq_bfqq_expire`. `compensates`: the time of the wait that was in vain does not count.
    fn expire(
        &mut self,
        queue: usize,
        compensates: bool,
        reason: Reason,
        requests: &[BlockRequest],
    ) {
        let (slow, ms) = self.is_slow(queue, compensates);
        let of = &self.queues[queue];
        let is_stale = reason == Reason::BudgetTimeout && of.budget_left() >= of.entity.budget / 3;
        let is_raised = of.is_raised();
        if !is_raised && (slow || is_stale) {
            self.charge_time(queue, ms);
        }
        if self.settings.low_latency && !is_raised {
            self.queues[queue].raising.last_start = self.clock.jiffies;
        }
        self.note_soft_at_expiration(queue);
        self.injected = false;
        self.wait_dispatch = false;
        self.waited_rq = None;
        self.recalculate(queue, reason, requests);
        if !self.queues[queue].sort_list.is_empty() {
            self.leave_service(queue, reason);
            self.note_position(queue, requests);
        } else {
            self.leave_service(queue, reason);
        }
        let of = &mut self.queues[queue];
        let ran_out = matches!(reason, Reason::BudgetTimeout | Reason::BudgetExhausted);
        if !of.busy && !ran_out {
            of.goes_on = true;
        } else {
            of.entity.service = 0;
        }
    }

    /// `__bfq_bfqq_expire`.
    fn leave_service(&mut self, queue: usize, reason: Reason) {
        let now = self.clock.jiffies;
        let keeps = reason == Reason::Preempted && self.idling_is_fair(queue);
        let of = &mut self.queues[queue];
        of.splits |= of.coop && of.is_seeky();
        if of.sort_list.is_empty() && !keeps {
            if of.dispatched == 0 {
                of.budget_timeout = now;
            }
            self.remove_busy(queue, true);
        } else {
            self.requeue(queue, true);
        }
        // __bfq_bfqd_reset_in_service.
        self.queues[queue].waits = false;
        self.timer_ns = None;
        self.in_service = None;
        self.served_entity = None;
        self.release_if_unused(queue);
    }

    /// `__bfq_bfqq_recalc_budget`.
    fn recalculate(&mut self, queue: usize, reason: Reason, requests: &[BlockRequest]) {
        let (most, least) = (self.max_budget, self.min_budget());
        let of = &self.queues[queue];
        let budget = if of.is_raised() {
            2 * least
        } else if of.sync {
            let budget = of.max_budget;
            match reason {
                Reason::TooIdle if of.dispatched > 0 => (budget * 2).min(most),
                Reason::TooIdle if budget > 5 * least => budget - 4 * least,
                Reason::TooIdle => least,
                Reason::BudgetTimeout => (budget * 2).min(most),
                Reason::BudgetExhausted => (budget * 4).min(most),
                Reason::NoMoreRequests => of.entity.service.max(least),
                Reason::Preempted => return,
            }
        } else {
            most
        };
        let budget = if of.sync { budget } else { most };
        let adapts = self.budgets_assigned >= LEAST_BUDGETS && self.settings.max_budget == 0;
        let budget = if adapts { budget.min(most) } else { budget };
        self.queues[queue].max_budget = budget;
        if let Some(next) = self.queues[queue].next_rq {
            let charge = self.charge(next, queue, requests);
            self.queues[queue].entity.budget = budget.max(charge);
        }
    }

    /// `bfq_updated_next_req`: the budget holds at least the next request.
    fn next_changed(&mut self, queue: usize, requests: &[BlockRequest]) {
        let Some(next) = self.queues[queue].next_rq else {
            return;
        };
        if self.in_service == Some(queue) {
            return;
        }
        let charge = self.charge(next, queue, requests);
        let of = &mut self.queues[queue];
        let budget = of.max_budget.max(charge).max(of.entity.service);
        if of.entity.budget != budget {
            of.entity.budget = budget;
            self.requeue(queue, false);
        }
    }

    /// `bfq_select_queue`.
    fn select(&mut self, requests: &[BlockRequest]) -> Option<usize> {
        let mut served = self.in_service;
        if let Some(queue) = served
            && self.may_time_out(queue)
            && !self.must_idle(queue)
        {
            self.expire(queue, false, Reason::BudgetTimeout, requests);
            served = None;
        }
        loop {
            let queue = match served {
                Some(queue) => queue,
                None => self.set_in_service()?,
            };
            let of = &self.queues[queue];
            let reason = if let Some(next) = of.next_rq {
                if self.charge(next, queue, requests) <= of.budget_left() {
                    if std::mem::take(&mut self.queues[queue].waits) {
                        self.timer_ns = None;
                    }
                    return Some(queue);
                }
                Reason::BudgetExhausted
            } else if of.waits || of.dispatched > 0 && self.better_to_idle(queue) {
                return self.choose_instead(queue, requests);
            } else {
                Reason::NoMoreRequests
            };
            self.expire(queue, false, reason, requests);
            served = None;
        }
    }

    /// `bfq_set_in_service_queue`.
    fn set_in_service(&mut self) -> Option<usize> {
        self.in_service = self.take_next();
        self.in_service_position = 0;
        let queue = self.in_service?;
        self.queues[queue].fifo_looked_at = false;
        self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
        self.extend_soft(queue);
        self.set_timeout(queue);
        Some(queue)
    }

    /// `bfq_find_next_rq`; the oldest is looked at once a service.
    fn next_after(&mut self, id: Id, queue: usize, requests: &[BlockRequest]) -> Option<Id> {
        let of = &mut self.queues[queue];
        if !std::mem::replace(&mut of.fifo_looked_at, true)
            && let Some(oldest) = of.fifo.first()
            && oldest != id
            && self.clock.ns >= self.links.expires_ns(oldest)
        {
            return Some(oldest);
        }
        let next = self
            .nodes
            .next(id)
            .or(of.sort_list.first().filter(|&first| first != id));
        let previous = self.nodes.previous(id);
        self.one_way
            .choose(requests[id as usize].lbn, next, previous, requests)
    }

    /// `bfq_remove_request`.
    fn take_out(&mut self, id: Id, queue: usize, requests: &[BlockRequest]) {
        if self.queues[queue].next_rq == Some(id) {
            self.queues[queue].next_rq = self.next_after(id, queue, requests);
            self.next_changed(queue, requests);
        }
        let of = &mut self.queues[queue];
        self.links.remove(&mut of.fifo, id);
        self.nodes.remove(&mut of.sort_list, id);
        of.queued -= 1;
        self.waiting -= 1;
        if !of.sort_list.is_empty() {
            self.note_position(queue, requests);
            return;
        }
        of.next_rq = None;
        if of.busy && self.in_service != Some(queue) {
            self.remove_busy(queue, false);
            let entity = &mut self.queues[queue].entity;
            (entity.budget, entity.service) = (0, 0);
        }
        self.forget_position(queue);
    }

    /// `bfq_update_io_thinktime`, `bfq_update_has_short_ttime`, `bfq_update_io_seektime`.
    fn learn(&mut self, queue: usize, request: &BlockRequest) {
        let idle_ns = self.settings.slice_idle_ns;
        let now_ns = self.clock.ns;
        let of = &mut self.queues[queue];
        // Only pauses of an empty queue are thinking.
        if of.dispatched == 0 && !of.busy {
            let think = &mut of.think;
            let think_ns = now_ns.wrapping_sub(think.last_end_ns).min(2 * idle_ns);
            think.samples = (7 * think.samples + 256) / 8;
            think.total_ns = (7 * think.total_ns + 256 * think_ns) / 8;
            think.mean_ns = (think.total_ns + 128) / think.samples;
        }
        if of.sync && of.class != 2 && idle_ns > 0 && !self.was_split_lately(queue) {
            let of = &mut self.queues[queue];
            let is_long = of.think.samples > 80 && of.think.mean_ns > idle_ns / 2;
            let changed = std::mem::replace(&mut of.short_think, !is_long) == is_long;
            let is_due = of.inject.lowered + clock::jiffies(100) <= self.clock.jiffies;
            if changed && of.inject.alone_ns == 0 && (is_due || is_long) {
                self.reset_injection(queue);
            }
        }
        let far = self.is_far(self.queues[queue].last_request_pos, request);
        let of = &mut self.queues[queue];
        of.seek_history = of.seek_history << 1 | u32::from(far);
        self.end_soft_if_seeky(queue);
    }

    /// `bfq_update_io_intensity`.
    fn learn_intensity(&mut self, queue: usize) {
        let now_ns = self.clock.ns;
        let of = &mut self.queues[queue];
        let total_ns = now_ns - of.io_start_ns;
        if of.sort_list.is_empty() && of.dispatched == 0 {
            of.idle_ns = of
                .idle_ns
                .wrapping_add(now_ns.wrapping_sub(of.think.last_end_ns));
        }
        if of.is_new {
            return;
        }
        of.io_bound = of.idle_ns.wrapping_mul(5) <= total_ns;
        if total_ns > 200 * JIFFY_NS {
            of.io_start_ns = now_ns - (total_ns >> 1);
            of.idle_ns >>= 1;
        }
    }

    /// `bfq_add_request`.
    fn add(&mut self, id: Id, queue: usize, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let factor = self.queues[queue].raising.factor;
        self.queues[queue].queued += 1;
        self.waiting += 1;
        if self.queues[queue].sync {
            if self.contexts[request.context as usize].requests <= 1 {
                self.note_lone_request(queue);
            }
            self.learn_intensity(queue);
        }
        let of = &mut self.queues[queue];
        self.nodes.insert(&mut of.sort_list, id, request.lbn);
        let before = of.next_rq;
        of.next_rq = self
            .one_way
            .choose(self.last_position, before, Some(id), requests);
        let changed = of.next_rq != before;
        if changed {
            self.note_position(queue, requests);
        }
        let mut is_interactive = false;
        if self.queues[queue].busy {
            self.raise_async(queue, factor);
            if changed {
                self.next_changed(queue, requests);
            }
        } else {
            is_interactive = self.become_busy(queue, requests);
        }
        let of = &mut self.queues[queue];
        if self.settings.low_latency && (factor == 1 || !of.is_raised() || is_interactive) {
            of.raising.last_start = self.clock.jiffies;
        }
    }

    /// `bfq_rq_enqueued`.
    fn enqueued(&mut self, queue: usize, request: &BlockRequest, requests: &[BlockRequest]) {
        let of = &mut self.queues[queue];
        of.last_request_pos = request.end();
        if self.in_service != Some(queue) || !of.waits {
            return;
        }
        let is_small = of.queued == 1 && request.blocks < 32;
        let timed_out = of.is_timed_out(self.clock);
        if is_small && self.idling_boosts(queue) && !timed_out {
            return;
        }
        self.queues[queue].waits = false;
        self.timer_ns = None;
        if timed_out {
            self.expire(queue, false, Reason::BudgetTimeout, requests);
        }
    }

    /// `bfq_completed_request`.
    fn complete(&mut self, queue: usize, requests: &[BlockRequest]) {
        self.learn_queueing();
        self.in_driver -= 1;
        let of = &mut self.queues[queue];
        of.dispatched -= 1;
        if of.dispatched == 0 && !of.busy {
            of.budget_timeout = self.clock.jiffies;
            self.count_weight(queue, false);
        }
        let of = &mut self.queues[queue];
        of.think.last_end_ns = self.clock.ns;
        let coop = of.coop;
        self.note_completion();
        self.last_completed = (!coop).then_some(queue);
        self.note_soft_at_completion(queue);
        self.runs_next = self.in_driver == 0 && self.waiting > 0;
        if self.in_service != Some(queue) {
            return;
        }
        let of = &self.queues[queue];
        let (is_empty, dispatched) = (of.sort_list.is_empty(), of.dispatched);
        if self.must_idle(queue) {
            // The kernel returns here, before it would run the queue.
            self.runs_next = false;
            if dispatched == 0 {
                self.arm_timer(queue);
            }
        } else if self.may_time_out(queue) {
            self.expire(queue, false, Reason::BudgetTimeout, requests);
        } else if is_empty && (dispatched == 0 || !self.better_to_idle(queue)) {
            self.expire(queue, false, Reason::NoMoreRequests, requests);
        }
    }

    /// `bfq_arm_slice_timer`.
    fn arm_timer(&mut self, queue: usize) {
        let mut idle_ns = self.settings.slice_idle_ns;
        let of = &self.queues[queue];
        if of.is_seeky() && !of.is_raised() && !self.asymmetric(queue) {
            idle_ns = idle_ns.min(MIN_THINK_NS);
        } else if of.is_raised() {
            idle_ns = idle_ns.max(RAISED_IDLE_NS);
        }
        self.queues[queue].waits = true;
        self.idling_start_ns = self.clock.ns;
        self.timer_ns = Some(self.clock.ns + idle_ns);
    }

    /// A request is no more (`bfqq_request_freed`, `bfq_put_queue`).
    fn free(&mut self, id: Id) {
        let of = self.of_request[id as usize];
        self.queues[of.queue].allocated -= 1;
        self.contexts[of.context].requests -= 1;
        self.release_if_unused(of.queue);
    }
}

fn class_of(request: &BlockRequest) -> usize {
    match request.class {
        PriorityClass::Realtime => 0,
        PriorityClass::BestEffort => 1,
        PriorityClass::Idle => 2,
    }
}

impl Elevator for Bfq {
    fn follow(&mut self, ticks: Ticks) {
        self.ticks = ticks;
    }

    /// `__bfq_insert_request`.
    fn insert(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        self.clock = Clock::at(now_ns, self.ticks);
        let request = &requests[id as usize];
        let context = request.context as usize;
        self.arriving = context;
        if self.contexts.len() <= context {
            self.contexts.resize_with(context + 1, Context::default);
        }
        if self.of_request.len() <= id as usize {
            self.of_request.resize(id as usize + 1, Belongs::default());
        }
        let mut queue = self.queue_for(request);
        if let Some(heir) = self.cooperator(queue, request.lbn, context) {
            self.queues[heir].allocated += 1;
            self.queues[queue].allocated -= 1;
            if request.sync && self.contexts[context].sync_queue == Some(queue) {
                self.merge_into(context, queue, heir);
            }
            self.queues[queue].is_new = false;
            self.release_if_unused(queue);
            queue = heir;
        }
        self.of_request[id as usize] = Belongs { queue, context };
        self.learn(queue, request);
        self.add(id, queue, requests);
        let expire_ns = if request.sync {
            self.settings.fifo_expire_sync_ns
        } else {
            self.settings.fifo_expire_async_ns
        };
        let fifo = &mut self.queues[queue].fifo;
        self.links.push_back(fifo, id, now_ns + expire_ns);
        self.enqueued(queue, request, requests);
    }

    /// `__bfq_dispatch_request`.
    fn dispatch(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<Id> {
        if self.waiting == 0 || self.settings.strict_guarantees && self.in_driver > 0 {
            return None;
        }
        self.clock = Clock::at(now_ns, self.ticks);
        let queue = self.select(requests)?;
        let id = self.queues[queue].next_rq?;
        let charge = self.charge(id, queue, requests);
        self.serve(queue, charge);
        let is_served = self.in_service == Some(queue);
        if is_served && std::mem::take(&mut self.wait_dispatch) {
            self.waited_rq = Some(id);
        }
        self.queues[queue].dispatched += 1;
        self.note_dispatch(queue, &requests[id as usize]);
        self.take_out(id, queue, requests);
        if is_served {
            self.end_raising_in_time(queue);
            if self.busy_queues() > 1 && self.queues[queue].class == 2 {
                self.expire(queue, false, Reason::BudgetExhausted, requests);
            }
        }
        self.in_driver += 1;
        Some(id)
    }

    /// `bfq_finish_requeue_request`.
    fn completed(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        self.clock = Clock::at(now_ns, self.ticks);
        let queue = self.of_request[id as usize].queue;
        if self.is_waited_for(id) {
            self.learn_injection(queue);
        }
        self.complete(queue, requests);
        self.free(id);
    }

    fn exits(&mut self, now_ns: u64, context: u32) -> bool {
        self.clock = Clock::at(now_ns, self.ticks);
        let serving = self.in_service;
        if self.contexts.len() > context as usize {
            self.exit(context as usize);
        }
        serving != self.in_service
    }

    fn time_stands_still(&mut self) {
        self.stands_still = true;
    }

    /// `bfq_completed_request`.
    fn runs_after_completion(&self) -> bool {
        self.runs_next
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn front_merge(&self, bio: &BlockRequest, requests: &[BlockRequest]) -> Option<Id> {
        let tree = &self.queues[self.find_queue(bio)?].sort_list;
        self.nodes
            .exactly_at(tree, bio.end())
            .filter(|&id| requests[id as usize].write == bio.write)
    }

    /// `bfq_allow_bio_merge`.
    fn may_merge(&mut self, now_ns: u64, id: Id, bio: &BlockRequest, _: &[BlockRequest]) -> bool {
        self.clock = Clock::at(now_ns, self.ticks);
        let Some(mut queue) = self.find_queue(bio) else {
            return false;
        };
        let context = bio.context as usize;
        if let Some(heir) = self.cooperator(queue, bio.lbn, context) {
            self.merge_into(context, queue, heir);
            queue = heir;
        }
        queue == self.of_request[id as usize].queue
    }

    /// Requests of different queues may become one.
    fn may_join(
        &mut self,
        _: u64,
        kept: Id,
        gone: &BlockRequest,
        requests: &[BlockRequest],
    ) -> bool {
        let kept = &requests[kept as usize];
        (kept.class, kept.level) == (gone.class, gone.level)
    }

    /// `bfq_request_merged`.
    fn moved(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        self.clock = Clock::at(now_ns, self.ticks);
        let queue = self.of_request[id as usize].queue;
        let of = &mut self.queues[queue];
        self.nodes.remove(&mut of.sort_list, id);
        self.nodes
            .insert(&mut of.sort_list, id, requests[id as usize].lbn);
    }

    fn neighbour(&self, id: Id, after: bool) -> Option<Id> {
        if after {
            self.nodes.next(id)
        } else {
            self.nodes.previous(id)
        }
    }

    /// `bfq_requests_merged`.
    fn joined(&mut self, now_ns: u64, kept: Id, gone: Id, requests: &[BlockRequest]) {
        self.clock = Clock::at(now_ns, self.ticks);
        let queue = self.of_request[kept as usize].queue;
        let of_gone = self.of_request[gone as usize].queue;
        if queue == of_gone {
            self.links.inherit(&mut self.queues[queue].fifo, kept, gone);
        }
        if self.queues[queue].next_rq == Some(gone) {
            self.queues[queue].next_rq = Some(kept);
        }
        self.take_out(gone, of_gone, requests);
        self.free(gone);
    }

    /// `bfq_limit_depth`: reads may use all tags.
    fn depth_share(&self, request: &BlockRequest) -> Option<u32> {
        let is_read = request.sync && !request.write;
        let share = match (self.raised_busy > 0, request.sync) {
            (false, false) => 8,
            (false, true) => 12,
            (true, false) => 3,
            (true, true) => 6,
        };
        (!is_read).then_some(share)
    }

    fn timer_ns(&self) -> Option<u64> {
        self.timer_ns
    }

    /// `bfq_idle_slice_timer_body`.
    fn timer(&mut self, now_ns: u64, requests: &[BlockRequest]) {
        self.clock = Clock::at(now_ns, self.ticks);
        self.timer_ns = None;
        let Some(queue) = self.in_service else {
            return;
        };
        let of = &mut self.queues[queue];
        of.waits = false;
        if of.is_timed_out(self.clock) {
            self.expire(queue, true, Reason::BudgetTimeout, requests);
        } else if of.queued == 0 {
            self.expire(queue, true, Reason::TooIdle, requests);
        }
    }
}
