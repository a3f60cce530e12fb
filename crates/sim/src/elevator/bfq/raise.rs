//! Weight raising of threads that seem interactive or soft real-time, and bursts of new queues, which are neither.

use super::clock::{HZ, LONG_AGO, jiffies, jiffies_of_ns};
use super::{Bfq, DEFAULT_WEIGHT};

/// `bfq_wr_coeff`, and `BFQ_SOFTRT_WEIGHT_FACTOR` times that.
const FACTOR: u64 = 30;
const SOFT_FACTOR: u64 = 100;
/// `max_service_from_wr`, blocks.
const MOST_SERVICE: u64 = 120_000;
/// `bfq_wr_rt_max_time`.
const SOFT_LONGEST: i64 = jiffies(300);
/// `bfq_wr_min_idle_time`, `bfq_wr_min_inter_arr_async`.
pub(super) const LEAST_IDLE: i64 = jiffies(2000);
const LEAST_BETWEEN_ASYNC: i64 = jiffies(500);
/// `bfq_wr_max_softrt_rate`, blocks per second.
const SOFT_RATE: u64 = 7000;
/// `bfq_burst_interval`, `bfq_large_burst_thresh`.
pub(super) const BURST: i64 = jiffies(180);
const LARGE_BURST: usize = 8;
/// `ref_rate` and `ref_wr_duration`: a disk, and flash.
pub(super) const REFERENCE_RATES: [u64; 2] = [14_000, 33_000];
const REFERENCE_TIMES: [i64; 2] = [jiffies(7000), jiffies(2500)];

/// Queues that are made at about the same time.
#[derive(Debug)]
pub(super) struct Burst {
    pub(super) queues: Vec<usize>,
    pub(super) size: usize,
    pub(super) is_large: bool,
    last: i64,
}

impl Default for Burst {
    fn default() -> Self {
        Burst {
            queues: Vec::with_capacity(LARGE_BURST),
            size: 0,
            is_large: false,
            last: 0,
        }
    }
}

/// The findings of `bfq_bfqq_handle_idle_busy_switch` about a queue that becomes busy.
pub(super) struct Arrival {
    pub(super) factor: u64,
    pub(super) is_interactive: bool,
    pub(super) deserves: bool,
    pub(super) in_burst: bool,
    pub(super) is_soft: bool,
}

impl Bfq {
    /// `bfq_wr_duration`.
    fn longest_raising(&self) -> i64 {
        let kind = usize::from(self.flash);
        let product = REFERENCE_RATES[kind] * REFERENCE_TIMES[kind] as u64;
        let longest = (product / self.rate.peak) as i64;
        longest.clamp(jiffies(3000), jiffies(25_000))
    }

    fn raise(&mut self, queue: usize) {
        let longest = self.longest_raising();
        let raising = &mut self.queues[queue].raising;
        raising.factor = FACTOR;
        raising.longest = longest;
    }

    /// `switch_back_to_interactive_wr`.
    fn switch_back(&mut self, queue: usize) {
        self.raise(queue);
        let raising = &mut self.queues[queue].raising;
        raising.last_start = raising.interactive_start;
    }

    /// The raising that `bfq_bfqq_save_state` keeps of a queue that is merged before it did anything.
    pub(super) fn fresh_raising(&self) -> super::queue::Raising {
        super::queue::Raising {
            factor: FACTOR,
            longest: self.longest_raising(),
            last_start: self.clock.jiffies,
            interactive_start: LONG_AGO,
            service: 0,
        }
    }

    pub(super) fn is_soft(&self, queue: usize) -> bool {
        self.queues[queue].raising.longest == SOFT_LONGEST
    }

    /// True if a soft real-time queue was interactive before, for not too long.
    fn was_interactive(&self, queue: usize) -> bool {
        let start = self.queues[queue].raising.interactive_start;
        start + self.longest_raising() >= self.clock.jiffies
    }

    /// The look at a queue that becomes busy: is it interactive or soft real-time, and does it deserve raising?
    pub(super) fn assess(&self, queue: usize, factor: u64, idle_for_long: bool) -> Arrival {
        let of = &self.queues[queue];
        let in_burst = of.in_large_burst;
        let has_default_weight = of.entity.new_weight == DEFAULT_WEIGHT;
        let is_soft = of.seek_history != u32::MAX
            && !in_burst
            && of.soft_next_start < self.clock.jiffies
            && of.dispatched == 0
            && has_default_weight;
        let is_interactive = !in_burst && idle_for_long && has_default_weight;
        let has_owner = of.context.is_some()
            || self
                .contexts
                .get(self.arriving)
                .is_some_and(|of| of.stably_merged);
        let deserves = self.settings.low_latency
            && (of.is_raised() || of.sync && has_owner && (is_interactive || is_soft));
        Arrival {
            factor,
            is_interactive,
            deserves,
            in_burst,
            is_soft,
        }
    }

    /// `bfq_update_bfqq_wr_on_rq_arrival`, and the time of a split before it.
    pub(super) fn update_raising(&mut self, queue: usize, found: &Arrival) {
        let now = self.clock.jiffies;
        if !self.settings.low_latency || self.queues[queue].split_time + LEAST_IDLE >= now {
            return;
        }
        if found.factor == 1 && found.deserves {
            let least = self.min_budget();
            if found.is_interactive {
                self.raise(queue);
                self.queues[queue].raising.service = 0;
            } else {
                let raising = &mut self.queues[queue].raising;
                raising.interactive_start = LONG_AGO;
                raising.factor = FACTOR * SOFT_FACTOR;
                raising.longest = SOFT_LONGEST;
            }
            let budget = &mut self.queues[queue].entity.budget;
            *budget = (*budget).min(2 * least);
        } else if found.factor > 1 {
            if found.is_interactive {
                self.raise(queue);
            } else if found.in_burst {
                self.queues[queue].raising.factor = 1;
            } else if found.is_soft {
                let raising = &mut self.queues[queue].raising;
                if raising.longest != SOFT_LONGEST {
                    raising.interactive_start = raising.last_start;
                    raising.longest = SOFT_LONGEST;
                    raising.factor = FACTOR * SOFT_FACTOR;
                }
                raising.last_start = now;
            }
        }
        if found.factor != self.queues[queue].raising.factor {
            self.queues[queue].entity.prio_changed = true;
        }
    }

    /// An asynchronous request came after a pause, for a queue that is busy with others.
    pub(super) fn raise_async(&mut self, queue: usize, factor: u64) {
        let paused = self.queues[queue].raising.last_start + LEAST_BETWEEN_ASYNC;
        if self.settings.low_latency
            && factor == 1
            && !self.queues[queue].sync
            && paused < self.clock.jiffies
        {
            self.raise(queue);
            self.raised_busy += 1;
            self.queues[queue].entity.prio_changed = true;
        }
    }

    /// `bfq_bfqq_end_wr`.
    fn end_raising(&mut self, queue: usize) {
        let (now, is_soft) = (self.clock.jiffies, self.is_soft(queue));
        let of = &mut self.queues[queue];
        if !is_soft {
            of.soft_next_start = now;
        }
        if of.busy {
            self.raised_busy -= 1;
        }
        of.raising.factor = 1;
        of.raising.longest = 0;
        of.raising.last_start = now;
        of.entity.prio_changed = true;
    }

    fn end_or_switch_back(&mut self, queue: usize) {
        if self.is_soft(queue) && self.was_interactive(queue) {
            self.switch_back(queue);
            self.queues[queue].entity.prio_changed = true;
        } else {
            self.end_raising(queue);
        }
    }

    /// `bfq_update_wr_data`.
    pub(super) fn end_raising_in_time(&mut self, queue: usize) {
        let of = &self.queues[queue];
        if of.is_raised() {
            if of.in_large_burst {
                self.end_raising(queue);
            } else if of.raising.last_start + of.raising.longest < self.clock.jiffies {
                self.end_or_switch_back(queue);
            }
            let of = &self.queues[queue];
            if of.is_raised() && !self.is_soft(queue) && of.raising.service > MOST_SERVICE {
                self.end_raising(queue);
            }
        }
        let of = &self.queues[queue];
        if (of.entity.weight > of.entity.own_weight) != of.is_raised() {
            self.update_weight(queue);
        }
    }

    /// A soft real-time queue that only seeks is none (`bfq_update_io_seektime`).
    pub(super) fn end_soft_if_seeky(&mut self, queue: usize) {
        let of = &self.queues[queue];
        if of.is_raised() && self.is_soft(queue) && of.seek_history == u32::MAX {
            self.end_or_switch_back(queue);
        }
    }

    /// The raising of a queue that is restored after a split (`bfq_bfqq_resume_state`).
    pub(super) fn resume_raising(&mut self, queue: usize) {
        let of = &self.queues[queue];
        let is_over =
            of.in_large_burst || of.raising.last_start + of.raising.longest < self.clock.jiffies;
        if of.is_raised() && is_over {
            if self.is_soft(queue)
                && !self.queues[queue].in_large_burst
                && self.was_interactive(queue)
            {
                self.switch_back(queue);
            } else {
                self.queues[queue].raising.factor = 1;
            }
        }
    }

    /// A soft real-time queue that waited for service lasts longer (`__bfq_set_in_service_queue`).
    pub(super) fn extend_soft(&mut self, queue: usize) {
        let now = self.clock.jiffies;
        let is_soft = self.is_soft(queue);
        let of = &mut self.queues[queue];
        if of.raising.last_start < now && of.is_raised() && is_soft && of.budget_timeout < now {
            if of.budget_timeout > of.raising.last_start {
                of.raising.last_start += now - of.budget_timeout;
            } else {
                of.raising.last_start = now;
            }
        }
    }

    /// `bfq_bfqq_softrt_next_start`.
    fn soft_next_start(&self, queue: usize) -> i64 {
        let of = &self.queues[queue];
        let idle = (self.settings.slice_idle_ns / super::clock::JIFFY_NS) as i64;
        let pace = (HZ * of.service_from_backlogged / SOFT_RATE) as i64;
        of.soft_next_start
            .max(of.last_backlogged + pace)
            .max(self.clock.jiffies + idle + 4)
    }

    /// A queue that expires without requests: from when on may it be soft real-time?
    pub(super) fn note_soft_at_expiration(&mut self, queue: usize) {
        if !self.settings.low_latency || !self.queues[queue].sort_list.is_empty() {
            return;
        }
        if self.queues[queue].dispatched == 0 {
            self.queues[queue].soft_next_start = self.soft_next_start(queue);
        } else {
            self.queues[queue].soft_due = true;
        }
    }

    /// The same at the end of its last request.
    pub(super) fn note_soft_at_completion(&mut self, queue: usize) {
        let of = &self.queues[queue];
        if of.soft_due
            && of.dispatched == 0
            && of.sort_list.is_empty()
            && of.raising.factor != FACTOR
        {
            self.queues[queue].soft_next_start = self.soft_next_start(queue);
        }
    }

    /// Longest service of a queue (`bfq_set_budget_timeout`).
    pub(super) fn set_timeout(&mut self, queue: usize) {
        let is_soft = self.is_soft(queue);
        let of = &mut self.queues[queue];
        let factor = if is_soft {
            1
        } else {
            of.entity.weight / of.entity.own_weight
        };
        let timeout = jiffies_of_ns(self.settings.timeout_sync_ns);
        self.budget_start_ns = self.clock.ns;
        of.budget_timeout = self.clock.jiffies + timeout * factor as i64;
    }

    /// `bfq_handle_burst`.
    pub(super) fn handle_burst(&mut self, queue: usize) {
        let now = self.clock.jiffies;
        let of = &self.queues[queue];
        if self.burst.queues.contains(&queue)
            || of.in_large_burst
            || of.split_time + jiffies(10) >= now
        {
            return;
        }
        if self.burst.last + BURST < now {
            self.burst.is_large = false;
            self.burst.queues.clear();
            self.burst.size = 0;
            if self.busy_queues() == 0 {
                self.burst.queues.push(queue);
                self.burst.size = 1;
            }
        } else if self.burst.is_large {
            self.queues[queue].in_large_burst = true;
        } else {
            // bfq_add_to_burst.
            self.burst.size += 1;
            self.burst.queues.push(queue);
            if self.burst.size == LARGE_BURST {
                self.burst.is_large = true;
                for queue in self.burst.queues.drain(..) {
                    self.queues[queue].in_large_burst = true;
                }
            }
        }
        self.burst.last = now;
    }
}
