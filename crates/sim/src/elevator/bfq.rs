//! `bfq`: a queue for each thread, served in budgets of blocks by B-WF2Q+.
//!
//! Linux 6.1 `block/bfq-iosched.c`, `block/bfq-wf2q.c`, in the essentials: `bfq_select_queue`, `bfq_bfqq_expire`,
//! `__bfq_bfqq_recalc_budget`, `bfq_bfqq_charge_time`, `bfq_better_to_idle`, `bfq_find_next_rq`, `bfq_calc_finish`.
//! `docs/explanation/elevators.md` lists what is left out.

use serde::Serialize;

use spindle_workload::PriorityClass;

use super::choose::OneWay;
use super::fifo::{Fifo, Links};
use super::parameter::Parameter;
use super::sorted::{Nodes, Sorted};
use super::{Elevator, JIFFY_NS};
use crate::request::{BlockRequest, Id};

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
    /// Largest budget, blocks.
    pub max_budget: u64,
    /// Longest service of a synchronous queue.
    pub timeout_sync_ns: u64,
    /// Wait for the next request of a queue.
    pub slice_idle_ns: u64,
    /// Raises the weight of new queues, and of those that were idle for long, for some seconds.
    pub low_latency: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            fifo_expire_sync_ns: 125 * JIFFY_NS,
            fifo_expire_async_ns: 250 * JIFFY_NS,
            back_seek_max: 16 * 1024 * 2,
            back_seek_penalty: 2,
            max_budget: 16 * 1024,
            timeout_sync_ns: 125 * JIFFY_NS,
            slice_idle_ns: 8 * JIFFY_NS,
            low_latency: true,
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
        ]
    }
}

/// `bfq_async_charge_factor`.
const ASYNC_CHARGE: u64 = 3;
/// `BFQQ_SEEK_THR`, blocks.
const SEEK_THRESHOLD: u64 = 8 * 100;
/// `BFQQ_SECT_THR_NONROT`, blocks: larger requests of flash count as sequential.
const FLASH_BLOCKS: u32 = 2 * 32;
/// `BFQ_MIN_TT`.
const MIN_THINK_NS: u64 = 2 * JIFFY_NS;
/// `BFQ_CL_IDLE_TIMEOUT`.
const IDLE_CLASS_NS: u64 = 200 * JIFFY_NS;
/// `BFQ_HW_QUEUE_THRESHOLD`, `BFQ_HW_QUEUE_SAMPLES`.
const HW_QUEUE_THRESHOLD: u32 = 3;
const HW_QUEUE_SAMPLES: u32 = 32;
/// `bfq_wr_coeff`.
const RAISED: u64 = 30;
/// Weight raising of a queue ends after this long (`bfq_wr_duration`, with the peak rate that is assumed at first)...
const RAISED_DISK_NS: u64 = 10_500 * JIFFY_NS;
const RAISED_FLASH_NS: u64 = 3750 * JIFFY_NS;
/// ...or after this service, blocks (`max_service_from_wr`).
const RAISED_BLOCKS: u64 = 120_000;
/// The elevator waits so long for a raised queue's next request.
const RAISED_IDLE_NS: u64 = 20 * JIFFY_NS;
/// A queue that was idle for so long is raised again (`bfq_wr_min_idle_time`).
const IDLE_FOR_LONG_NS: u64 = 2000 * JIFFY_NS;
/// Queues that are made within this time of each other are a burst (`bfq_burst_interval`)...
const BURST_NS: u64 = 180 * JIFFY_NS;
/// ...and so many of them are not raised (`bfq_large_burst_thresh`).
const LARGE_BURST: usize = 8;
/// `WFQ_SERVICE_SHIFT`.
const SERVICE_SHIFT: u32 = 22;
/// The weight of best effort, level 4.
const DEFAULT_WEIGHT: u64 = 40;
const CLASSES: usize = 3;
const LEVELS: usize = 8;

pub(super) struct Bfq {
    settings: Settings,
    flash: bool,
    one_way: OneWay,
    nodes: Nodes,
    links: Links,
    queues: Vec<Queue>,
    of_thread: Vec<Option<usize>>,
    of_level: [Option<usize>; 2 * LEVELS + 1],
    threads: Vec<Thread>,
    /// Queues with requests, or in service, by class.
    busy: [Vec<usize>; CLASSES],
    /// Virtual time of each class.
    vtime: [u64; CLASSES],
    idle_class_served_ns: u64,
    in_service: Option<usize>,
    budget_start_ns: u64,
    waiting: u32,
    in_driver: u32,
    last_position: u64,
    timer_ns: Option<u64>,
    /// True if the drive has a queue of its own, as far as known (`hw_tag`).
    has_queue: Option<bool>,
    most_in_driver: u32,
    queue_samples: u32,
    /// Queues of the present burst, and when the last of them was made.
    burst: Vec<usize>,
    burst_ns: u64,
    is_large_burst: bool,
}

/// `struct bfq_queue` with its `struct bfq_entity`.
struct Queue {
    sync: bool,
    class: usize,
    /// Without raising.
    weight: u64,
    /// Its thread is taken for an interactive one (`wr_coeff`), since when, and with how many blocks since.
    is_raised: bool,
    raised_ns: u64,
    raised_blocks: u64,
    in_large_burst: bool,
    /// Since when it has had nothing to do; `None` while it has; 0 at first.
    idle_since_ns: Option<u64>,
    /// It became empty and may go on with its budget if its next request comes soon (`non_blocking_wait_rq`).
    waits_for_next: bool,
    /// Its thread issues requests most of the time.
    io_bound: bool,
    begin_ns: u64,
    idle_ns: u64,
    last_end_ns: u64,
    is_new: bool,
    sort_list: Sorted,
    fifo: Fifo,
    next_rq: Option<Id>,
    busy: bool,
    /// Requests that wait.
    queued: u32,
    dispatched: u32,
    wait_request: bool,
    short_think: bool,
    fifo_expire: bool,
    seek_history: u32,
    last_request_pos: u64,
    max_budget: u64,
    budget: u64,
    service: u64,
    start: u64,
    finish: u64,
    timeout_ns: u64,
}

#[derive(Clone, Copy)]
struct Thread {
    last_end_ns: u64,
    samples: u64,
    total_ns: u64,
    mean_ns: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Reason {
    TooIdle,
    BudgetTimeout,
    BudgetExhausted,
    NoMoreRequests,
    Preempted,
}

impl Queue {
    fn is_seeky(&self) -> bool {
        self.seek_history.count_ones() > 19
    }

    fn budget_left(&self) -> u64 {
        self.budget.saturating_sub(self.service)
    }

    fn raised_weight(&self) -> u64 {
        if self.is_raised {
            self.weight * RAISED
        } else {
            self.weight
        }
    }

    fn delta(&self, service: u64) -> u64 {
        ((u128::from(service) << SERVICE_SHIFT) / u128::from(self.raised_weight())) as u64
    }
}

impl Bfq {
    /// `flash`: the device has no moving head.
    pub(super) fn new(settings: Settings, flash: bool) -> Bfq {
        Bfq {
            flash,
            one_way: OneWay {
                back_max: settings.back_seek_max,
                back_penalty: settings.back_seek_penalty,
            },
            nodes: Nodes::default(),
            links: Links::default(),
            queues: Vec::new(),
            of_thread: Vec::new(),
            of_level: [None; 2 * LEVELS + 1],
            threads: Vec::new(),
            busy: Default::default(),
            vtime: [0; CLASSES],
            idle_class_served_ns: 0,
            in_service: None,
            budget_start_ns: 0,
            waiting: 0,
            in_driver: 0,
            last_position: 0,
            timer_ns: None,
            has_queue: None,
            most_in_driver: 0,
            queue_samples: 0,
            burst: Vec::with_capacity(LARGE_BURST),
            burst_ns: 0,
            is_large_burst: false,
            settings,
        }
    }

    fn queue_of(&mut self, now_ns: u64, request: &BlockRequest) -> usize {
        if let Some(queue) = self.find_queue(request) {
            return queue;
        }
        let queue = self.queues.len();
        let class = class_of(request);
        // bfq_set_next_ioprio_data: the idle class has the lowest level; bfq_ioprio_to_weight.
        let level = if class == 2 { 7 } else { request.level.min(7) };
        let weight = 10 * (LEVELS as u64 - u64::from(level));
        self.queues.push(Queue {
            sync: request.sync,
            class,
            weight,
            is_raised: false,
            raised_ns: 0,
            raised_blocks: 0,
            in_large_burst: false,
            idle_since_ns: Some(0),
            waits_for_next: false,
            io_bound: true,
            begin_ns: now_ns,
            idle_ns: 0,
            last_end_ns: now_ns,
            is_new: true,
            sort_list: Sorted::default(),
            fifo: Fifo::default(),
            next_rq: None,
            busy: false,
            queued: 0,
            dispatched: 0,
            wait_request: false,
            short_think: request.sync && class != 2,
            fifo_expire: false,
            // bfq_init_bfqq: a first bit, which may just be the process starting.
            seek_history: 1,
            last_request_pos: 0,
            max_budget: 2 * self.settings.max_budget / 3,
            budget: 0,
            service: 0,
            start: 0,
            finish: 0,
            timeout_ns: 0,
        });
        if request.sync {
            let thread = request.context as usize;
            if self.of_thread.len() <= thread {
                self.of_thread.resize(thread + 1, None);
            }
            self.of_thread[thread] = Some(queue);
        } else {
            self.of_level[async_slot(request)] = Some(queue);
        }
        self.busy[class].reserve(self.queues.len());
        if request.sync {
            self.note_new(now_ns, queue);
        }
        queue
    }

    /// `bfq_handle_burst`, `bfq_add_to_burst`.
    fn note_new(&mut self, now_ns: u64, queue: usize) {
        if self.burst.is_empty() && !self.is_large_burst || now_ns > self.burst_ns + BURST_NS {
            self.is_large_burst = false;
            self.burst.clear();
        }
        self.burst_ns = now_ns;
        if self.is_large_burst {
            self.queues[queue].in_large_burst = true;
            return;
        }
        self.burst.push(queue);
        if self.burst.len() >= LARGE_BURST {
            self.is_large_burst = true;
            for queue in self.burst.drain(..) {
                self.queues[queue].in_large_burst = true;
            }
        }
    }

    fn find_queue(&self, request: &BlockRequest) -> Option<usize> {
        if request.sync {
            *self.of_thread.get(request.context as usize)?
        } else {
            self.of_level[async_slot(request)]
        }
    }

    fn busy_queues(&self) -> usize {
        self.busy.iter().map(Vec::len).sum()
    }

    /// `bfq_serv_to_charge`.
    fn charge(&self, id: Id, queue: usize, requests: &[BlockRequest]) -> u64 {
        let blocks = u64::from(requests[id as usize].blocks);
        let of = &self.queues[queue];
        if of.sync || of.is_raised || self.asymmetric(queue) {
            blocks
        } else {
            blocks * ASYNC_CHARGE
        }
    }

    /// `bfq_asymmetric_scenario`: classes differ among the busy queues, or weights and the queue's is not the least.
    /// Raised queues do not count.
    fn asymmetric(&self, queue: usize) -> bool {
        if self.busy.iter().filter(|busy| !busy.is_empty()).count() > 1 {
            return true;
        }
        let counts = |of: &&Queue| !of.is_raised && (of.busy || of.dispatched > 0);
        let weights = self.queues.iter().filter(counts).map(|of| of.weight);
        let (least, most) = weights.fold((u64::MAX, 0), |(least, most), weight| {
            (least.min(weight), most.max(weight))
        });
        let of = &self.queues[queue];
        let is_least = counts(&of) && of.weight == least;
        least < most && !is_least
    }

    fn raised_queues(&self) -> usize {
        let busy = self.busy.iter().flatten();
        busy.filter(|&&queue| self.queues[queue].is_raised).count()
    }

    /// `bfq_better_to_idle`.
    fn better_to_idle(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        if self.settings.slice_idle_ns == 0 || !of.sync || of.class == 2 {
            return false;
        }
        // idling_boosts_thr_without_issues, idling_needed_for_service_guarantees.
        let has_no_queue = self.has_queue == Some(false);
        let is_sequential = !of.is_seeky() && of.io_bound && of.short_think;
        let boosts = !self.flash && has_no_queue || (!self.flash || has_no_queue) && is_sequential;
        let (raised, busy) = (self.raised_queues(), self.busy_queues());
        boosts && raised == 0
            || of.is_raised && (raised < busy || self.in_driver >= of.dispatched + 4)
            || self.asymmetric(queue)
            || busy == 1
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
        self.has_queue = Some(self.most_in_driver > HW_QUEUE_THRESHOLD);
        self.most_in_driver = 0;
        self.queue_samples = 0;
    }

    /// `bfq_update_wr_data`.
    fn end_raising(&mut self, now_ns: u64, queue: usize) {
        let longest_ns = if self.flash {
            RAISED_FLASH_NS
        } else {
            RAISED_DISK_NS
        };
        let of = &mut self.queues[queue];
        if of.is_raised
            && (of.in_large_burst
                || now_ns > of.raised_ns + longest_ns
                || of.raised_blocks > RAISED_BLOCKS)
        {
            of.is_raised = false;
        }
    }

    /// `bfq_bfqq_handle_idle_busy_switch`.
    fn become_busy(&mut self, now_ns: u64, queue: usize, requests: &[BlockRequest]) {
        let in_time_ns = self.queues[queue].last_end_ns + 3 * self.settings.slice_idle_ns;
        let charge = self.queues[queue]
            .next_rq
            .map_or(0, |next| self.charge(next, queue, requests));
        let least = self.settings.max_budget / 32;
        let vtime = self.vtime[self.queues[queue].class];
        let of = &mut self.queues[queue];
        let is_interactive = self.settings.low_latency
            && !of.in_large_burst
            && of.dispatched == 0
            && of.weight == DEFAULT_WEIGHT
            && of
                .idle_since_ns
                .is_some_and(|since_ns| since_ns == 0 || now_ns > since_ns + IDLE_FOR_LONG_NS);
        of.idle_since_ns = None;
        // bfq_bfqq_update_budg_for_activation.
        let goes_on = of.waits_for_next && now_ns <= in_time_ns && of.budget_left() > 0;
        of.budget = if goes_on {
            of.budget_left().min(of.max_budget)
        } else {
            of.max_budget.max(charge)
        };
        of.service = 0;
        of.waits_for_next = false;
        of.is_new = false;
        // bfq_update_bfqq_wr_on_rq_arrival.
        if of.sync && is_interactive {
            if !of.is_raised {
                of.raised_blocks = 0;
                of.budget = of.budget.min(2 * least);
            }
            of.is_raised = true;
            of.raised_ns = now_ns;
        } else if of.in_large_burst {
            of.is_raised = false;
        }
        // __bfq_activate_entity, bfq_update_fin_time_enqueue.
        let is_late = goes_on && vtime > of.finish;
        of.start = if is_late {
            of.finish
        } else {
            of.finish.max(vtime)
        };
        of.finish = of.start + of.delta(of.budget);
        if is_late && vtime > of.finish {
            let shift = (vtime - of.finish) / if of.is_raised { RAISED } else { 1 };
            of.start += shift;
            of.finish += shift;
        }
        of.busy = true;
        let (class, weight) = (of.class, of.raised_weight());
        let raised = of.is_raised;
        self.busy[class].push(queue);
        let Some(serving) = self.in_service else {
            return;
        };
        let other = &self.queues[serving];
        let is_higher = class < other.class || weight > other.raised_weight();
        let wants =
            goes_on && raised >= other.is_raised || is_higher || !self.better_to_idle(serving);
        // next_queue_may_preempt: a lower class is never next (bfq_update_next_in_service).
        if wants && class <= other.class {
            self.expire(now_ns, Reason::Preempted, requests);
        }
    }

    fn must_idle(&self, queue: usize) -> bool {
        self.queues[queue].sort_list.is_empty() && self.better_to_idle(queue)
    }

    /// `bfq_may_expire_for_budg_timeout`.
    fn may_time_out(&self, now_ns: u64, queue: usize) -> bool {
        let of = &self.queues[queue];
        (!of.wait_request || of.budget_left() >= of.budget / 3) && now_ns >= of.timeout_ns
    }

    /// `bfq_bfqq_served`.
    fn serve(&mut self, queue: usize, service: u64) {
        let class = self.queues[queue].class;
        let of = &mut self.queues[queue];
        of.service += service;
        if of.is_raised {
            of.raised_blocks += service;
        }
        let weights: u64 = self.busy[class]
            .iter()
            .map(|&queue| self.queues[queue].raised_weight())
            .sum();
        self.vtime[class] +=
            ((u128::from(service) << SERVICE_SHIFT) / u128::from(weights.max(1))) as u64;
    }

    /// `bfq_bfqq_expire`.
    fn expire(&mut self, now_ns: u64, reason: Reason, requests: &[BlockRequest]) {
        let Some(queue) = self.in_service.take() else {
            return;
        };
        self.timer_ns = None;
        let used_ns = now_ns - self.budget_start_ns;
        let of = &mut self.queues[queue];
        of.wait_request = false;
        // bfq_bfqq_is_slow, bfq_bfqq_charge_time: a slow queue is charged for the time instead.
        let slow = of.sync
            && if used_ns > 20 * JIFFY_NS {
                of.service < self.settings.max_budget / 2
            } else {
                of.is_seeky()
            };
        let is_stale = reason == Reason::BudgetTimeout && of.budget_left() >= of.budget / 3;
        if !of.is_raised && (slow || is_stale) {
            let ms = if used_ns < JIFFY_NS {
                if self.flash {
                    MIN_THINK_NS
                } else {
                    self.settings.slice_idle_ns
                }
            } else {
                used_ns
            } / JIFFY_NS;
            let timeout_ms = (self.settings.timeout_sync_ns / JIFFY_NS).max(1);
            let by_time = self.settings.max_budget * ms.min(timeout_ms) / timeout_ms;
            let total = by_time.max(of.service);
            of.budget = of.budget.max(total);
            let extra = total - of.service;
            self.serve(queue, extra);
        }
        self.recalculate(queue, reason, requests);

        // __bfq_requeue_entity, __bfq_deactivate_entity.
        let of = &mut self.queues[queue];
        of.finish = of.start + of.delta(of.service);
        if of.sort_list.is_empty() {
            of.busy = false;
            let class = of.class;
            self.busy[class].retain(|&other| other != queue);
        } else {
            of.start = of.finish;
            of.finish = of.start + of.delta(of.budget);
        }
        let of = &mut self.queues[queue];
        let ran_out = matches!(reason, Reason::BudgetTimeout | Reason::BudgetExhausted);
        of.waits_for_next = !of.busy && !ran_out;
        if !of.waits_for_next {
            of.service = 0;
        }
    }

    /// `__bfq_bfqq_recalc_budget`.
    fn recalculate(&mut self, queue: usize, reason: Reason, requests: &[BlockRequest]) {
        let largest = self.settings.max_budget;
        let least = largest / 32;
        let of = &mut self.queues[queue];
        let mut budget = of.max_budget;
        if of.sync {
            budget = match reason {
                Reason::TooIdle if of.dispatched > 0 => (budget * 2).min(largest),
                Reason::TooIdle if budget > 5 * least => budget - 4 * least,
                Reason::TooIdle => least,
                Reason::BudgetTimeout => (budget * 2).min(largest),
                Reason::BudgetExhausted => (budget * 4).min(largest),
                Reason::NoMoreRequests => of.service.max(least),
                Reason::Preempted => return,
            };
        } else {
            budget = largest;
        }
        of.max_budget = budget.min(largest);
        self.set_budget(queue, requests);
    }

    /// `bfq_updated_next_req`: the budget holds at least the next request.
    fn set_budget(&mut self, queue: usize, requests: &[BlockRequest]) {
        if let Some(next) = self.queues[queue].next_rq {
            let charge = self.charge(next, queue, requests);
            let of = &mut self.queues[queue];
            of.budget = of.max_budget.max(charge);
        }
    }

    /// `bfq_lookup_next_entity`: of the highest class, the eligible queue with the smallest finish time.
    fn choose(&mut self, now_ns: u64) -> Option<usize> {
        let idle_starves =
            !self.busy[2].is_empty() && now_ns > self.idle_class_served_ns + IDLE_CLASS_NS;
        let class = if idle_starves {
            2
        } else {
            (0..CLASSES).find(|&class| !self.busy[class].is_empty())?
        };
        if class == 2 || self.busy[2].is_empty() {
            self.idle_class_served_ns = now_ns;
        }
        // bfq_calc_vtime_jump: some queue is always eligible.
        let queues = &self.queues;
        let first = self.busy[class]
            .iter()
            .map(|&queue| queues[queue].start)
            .min()?;
        self.vtime[class] = self.vtime[class].max(first);
        let vtime = self.vtime[class];
        self.busy[class]
            .iter()
            .copied()
            .filter(|&queue| queues[queue].start <= vtime)
            .min_by_key(|&queue| queues[queue].finish)
    }

    /// `bfq_select_queue`.
    fn select(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<usize> {
        if let Some(queue) = self.in_service {
            let reason = if self.may_time_out(now_ns, queue) && !self.must_idle(queue) {
                Reason::BudgetTimeout
            } else if let Some(next) = self.queues[queue].next_rq {
                if self.charge(next, queue, requests) <= self.queues[queue].budget_left() {
                    self.queues[queue].wait_request = false;
                    self.timer_ns = None;
                    return Some(queue);
                }
                Reason::BudgetExhausted
            } else {
                let of = &self.queues[queue];
                if of.wait_request || (of.dispatched > 0 && self.better_to_idle(queue)) {
                    return None;
                }
                Reason::NoMoreRequests
            };
            self.expire(now_ns, reason, requests);
        }
        let queue = self.choose(now_ns)?;
        self.in_service = Some(queue);
        self.budget_start_ns = now_ns;
        let of = &mut self.queues[queue];
        of.fifo_expire = false;
        // bfq_set_budget_timeout.
        let factor = if of.is_raised { RAISED } else { 1 };
        of.timeout_ns = now_ns + factor * self.settings.timeout_sync_ns;
        Some(queue)
    }

    /// `bfq_find_next_rq`; the oldest is looked at once a service.
    fn next_after(
        &mut self,
        now_ns: u64,
        id: Id,
        queue: usize,
        requests: &[BlockRequest],
    ) -> Option<Id> {
        let of = &mut self.queues[queue];
        if !of.fifo_expire {
            of.fifo_expire = true;
            if let Some(oldest) = of.fifo.first()
                && oldest != id
                && now_ns >= self.links.expires_ns(oldest)
            {
                return Some(oldest);
            }
        }
        let next = self
            .nodes
            .next(id)
            .or(of.sort_list.first().filter(|&first| first != id));
        let previous = self.nodes.previous(id);
        self.one_way
            .choose(requests[id as usize].end(), next, previous, requests)
    }

    fn take_out(&mut self, now_ns: u64, id: Id, queue: usize, requests: &[BlockRequest]) {
        if self.queues[queue].next_rq == Some(id) {
            self.queues[queue].next_rq = self.next_after(now_ns, id, queue, requests);
        }
        let of = &mut self.queues[queue];
        self.links.remove(&mut of.fifo, id);
        self.nodes.remove(&mut of.sort_list, id);
        of.queued -= 1;
        self.waiting -= 1;
        if of.sort_list.is_empty() {
            of.next_rq = None;
            if of.busy && self.in_service != Some(queue) {
                of.busy = false;
                let class = of.class;
                self.busy[class].retain(|&other| other != queue);
            }
        }
    }

    /// `bfq_update_io_thinktime`, `bfq_update_io_seektime`, `bfq_update_has_short_ttime`.
    fn learn(&mut self, now_ns: u64, queue: usize, request: &BlockRequest) {
        let idle_ns = self.settings.slice_idle_ns;
        let of = &mut self.queues[queue];
        let thread = &mut self.threads[request.context as usize];
        // Only pauses of an empty queue are thinking.
        if of.dispatched == 0 && !of.busy {
            let think_ns = (now_ns - thread.last_end_ns).min(2 * idle_ns);
            thread.samples = (7 * thread.samples + 256) / 8;
            thread.total_ns = (7 * thread.total_ns + 256 * think_ns) / 8;
            thread.mean_ns = (thread.total_ns + 128) / thread.samples;
        }
        // bfq_update_io_intensity.
        if of.sync {
            if of.queued == 0 && of.dispatched == 0 {
                of.idle_ns += now_ns - of.last_end_ns;
            }
            if !of.is_new {
                of.io_bound = of.idle_ns * 5 <= now_ns - of.begin_ns;
            }
        }
        let far = of.last_request_pos.abs_diff(request.lbn) > SEEK_THRESHOLD;
        let seeky = far && (!self.flash || request.blocks < FLASH_BLOCKS);
        of.seek_history = of.seek_history << 1 | u32::from(seeky);
        if of.sync && of.class != 2 {
            of.short_think = idle_ns > 0 && !(thread.samples > 80 && thread.mean_ns > idle_ns / 2);
        }
        of.last_request_pos = request.end();
    }
}

fn class_of(request: &BlockRequest) -> usize {
    match request.class {
        PriorityClass::Realtime => 0,
        PriorityClass::BestEffort => 1,
        PriorityClass::Idle => 2,
    }
}

fn async_slot(request: &BlockRequest) -> usize {
    let level = usize::from(request.level.min(7));
    match request.class {
        PriorityClass::Realtime => level,
        PriorityClass::BestEffort => LEVELS + level,
        PriorityClass::Idle => 2 * LEVELS,
    }
}

impl Elevator for Bfq {
    fn insert(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let thread = request.context as usize;
        if self.threads.len() <= thread {
            let fresh = Thread {
                last_end_ns: now_ns,
                samples: 0,
                total_ns: 0,
                mean_ns: 0,
            };
            self.threads.resize(thread + 1, fresh);
        }
        let queue = self.queue_of(now_ns, request);
        self.learn(now_ns, queue, request);
        let expire_ns = if request.sync {
            self.settings.fifo_expire_sync_ns
        } else {
            self.settings.fifo_expire_async_ns
        };
        let of = &mut self.queues[queue];
        self.nodes.insert(&mut of.sort_list, id, request.lbn);
        self.links.push_back(&mut of.fifo, id, now_ns + expire_ns);
        self.waiting += 1;
        let next = of.next_rq;
        of.queued += 1;
        let best = self
            .one_way
            .choose(self.last_position, next, Some(id), requests);
        self.queues[queue].next_rq = best;
        if !self.queues[queue].busy {
            self.become_busy(now_ns, queue, requests);
            return;
        }
        if best != next && self.in_service != Some(queue) {
            self.set_budget(queue, requests);
        }
        let of = &mut self.queues[queue];
        if self.in_service == Some(queue) && of.wait_request {
            of.wait_request = false;
            self.timer_ns = None;
            if now_ns >= of.timeout_ns {
                self.expire(now_ns, Reason::BudgetTimeout, requests);
            }
        }
    }

    fn dispatch(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<Id> {
        if self.waiting == 0 {
            return None;
        }
        let queue = self.select(now_ns, requests)?;
        let id = self.queues[queue].next_rq?;
        let charge = self.charge(id, queue, requests);
        self.serve(queue, charge);
        self.take_out(now_ns, id, queue, requests);
        self.queues[queue].dispatched += 1;
        self.in_driver += 1;
        self.last_position = requests[id as usize].end();
        self.end_raising(now_ns, queue);
        if self.busy_queues() > 1 && self.queues[queue].class == 2 {
            self.expire(now_ns, Reason::BudgetExhausted, requests);
        }
        Some(id)
    }

    fn completed(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let Some(queue) = self.find_queue(request) else {
            return;
        };
        self.threads[request.context as usize].last_end_ns = now_ns;
        self.learn_queueing();
        self.in_driver -= 1;
        let of = &mut self.queues[queue];
        of.dispatched -= 1;
        of.last_end_ns = now_ns;
        if of.dispatched == 0 && !of.busy {
            of.idle_since_ns = Some(now_ns);
        }
        if self.in_service != Some(queue) {
            return;
        }
        // bfq_completed_request.
        let of = &self.queues[queue];
        if self.must_idle(queue) {
            if of.dispatched == 0 {
                // bfq_arm_slice_timer.
                let mut idle_ns = self.settings.slice_idle_ns;
                if of.is_raised {
                    idle_ns = idle_ns.max(RAISED_IDLE_NS);
                } else if of.is_seeky() && !self.asymmetric(queue) {
                    idle_ns = idle_ns.min(MIN_THINK_NS);
                }
                self.queues[queue].wait_request = true;
                self.timer_ns = Some(now_ns + idle_ns);
            }
        } else if self.may_time_out(now_ns, queue) {
            self.expire(now_ns, Reason::BudgetTimeout, requests);
        } else if of.sort_list.is_empty() && (of.dispatched == 0 || !self.better_to_idle(queue)) {
            self.expire(now_ns, Reason::NoMoreRequests, requests);
        }
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

    fn may_merge(&self, id: Id, bio: &BlockRequest, requests: &[BlockRequest]) -> bool {
        self.find_queue(bio) == self.find_queue(&requests[id as usize])
    }

    fn moved(&mut self, _: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        if let Some(queue) = self.find_queue(request) {
            let of = &mut self.queues[queue];
            self.nodes.remove(&mut of.sort_list, id);
            self.nodes.insert(&mut of.sort_list, id, request.lbn);
        }
    }

    fn neighbour(&self, id: Id, after: bool) -> Option<Id> {
        if after {
            self.nodes.next(id)
        } else {
            self.nodes.previous(id)
        }
    }

    fn joined(&mut self, now_ns: u64, kept: Id, gone: Id, requests: &[BlockRequest]) {
        if let Some(queue) = self.find_queue(&requests[gone as usize]) {
            self.links.inherit(&mut self.queues[queue].fifo, kept, gone);
            self.take_out(now_ns, gone, queue, requests);
        }
    }

    fn timer_ns(&self) -> Option<u64> {
        self.timer_ns
    }

    /// `bfq_idle_slice_timer_body`.
    fn timer(&mut self, now_ns: u64, requests: &[BlockRequest]) {
        self.timer_ns = None;
        let Some(queue) = self.in_service else {
            return;
        };
        self.queues[queue].wait_request = false;
        if now_ns >= self.queues[queue].timeout_ns {
            self.expire(now_ns, Reason::BudgetTimeout, requests);
        } else if self.queues[queue].sort_list.is_empty() {
            self.expire(now_ns, Reason::TooIdle, requests);
        }
    }
}
