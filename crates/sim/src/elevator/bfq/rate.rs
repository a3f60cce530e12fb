//! The peak rate of the drive, from which the largest budget follows (`bfq_update_peak_rate`).

use super::clock::jiffies_of_ns;
use super::{Bfq, MIN_THINK_NS};
use crate::elevator::JIFFY_NS;
use crate::request::BlockRequest;

/// `BFQ_RATE_SHIFT`: rates are blocks per microsecond, times two to this power.
const SHIFT: u32 = 16;
/// `BFQ_RATE_MIN_SAMPLES`, `BFQ_RATE_MIN_INTERVAL`, `BFQ_RATE_REF_INTERVAL`.
const LEAST_SAMPLES: u64 = 32;
const LEAST_NS: u64 = 300 * JIFFY_NS;
const INTERVAL_NS: u64 = 1000 * JIFFY_NS;
const PAUSE_NS: u64 = 100 * JIFFY_NS;

#[derive(Debug, Default)]
pub(super) struct Rate {
    pub(super) peak: u64,
    samples: u64,
    sequential: u64,
    blocks: u64,
    largest: u64,
    first_ns: u64,
    last_ns: u64,
    since_first_ns: u64,
}

impl Rate {
    pub(super) fn new(peak: u64) -> Rate {
        Rate {
            peak,
            ..Rate::default()
        }
    }
}

impl Bfq {
    /// `bfq_calc_max_budget`.
    fn budget_of_rate(&self) -> i64 {
        let timeout_ms =
            jiffies_of_ns(self.settings.timeout_sync_ns) as u64 * 1000 / super::clock::HZ;
        ((self.rate.peak * 1000 * timeout_ms) >> SHIFT) as i64
    }

    /// `bfq_update_peak_rate`.
    pub(super) fn note_dispatch(&mut self, queue: usize, request: &BlockRequest) {
        self.sample(request);
        self.last_position = request.end();
        if self.in_service == Some(queue) {
            self.in_service_position = request.end();
        }
        self.rate.last_ns = self.clock.ns;
    }

    fn sample(&mut self, request: &BlockRequest) {
        let now_ns = self.clock.ns;
        let blocks = u64::from(request.blocks);
        if self.rate.samples == 0 {
            self.begin_rate(Some(request));
            return;
        }
        if now_ns - self.rate.last_ns > PAUSE_NS && self.in_driver == 0 {
            self.end_rate(Some(request));
            return;
        }
        let is_far = self.is_far(self.last_position, request);
        let is_busy = self.in_driver > 0 || now_ns < self.last_completion_ns + MIN_THINK_NS;
        let rate = &mut self.rate;
        rate.samples += 1;
        rate.sequential += u64::from(is_busy && !is_far);
        rate.blocks += blocks;
        rate.largest = if rate.samples.is_multiple_of(32) {
            blocks
        } else {
            rate.largest.max(blocks)
        };
        rate.since_first_ns = now_ns - rate.first_ns;
        if rate.since_first_ns >= INTERVAL_NS {
            self.end_rate(Some(request));
        }
    }

    /// `bfq_reset_rate_computation`.
    fn begin_rate(&mut self, request: Option<&BlockRequest>) {
        let now_ns = self.clock.ns;
        let rate = &mut self.rate;
        let Some(request) = request else {
            rate.samples = 0;
            return;
        };
        (rate.first_ns, rate.last_ns) = (now_ns, now_ns);
        (rate.samples, rate.sequential) = (1, 0);
        rate.blocks = u64::from(request.blocks);
        rate.largest = rate.blocks;
    }

    /// `bfq_update_rate_reset`.
    fn end_rate(&mut self, request: Option<&BlockRequest>) {
        self.update_rate();
        self.begin_rate(request);
    }

    fn update_rate(&mut self) {
        let rate = &mut self.rate;
        if rate.samples < LEAST_SAMPLES || rate.since_first_ns < LEAST_NS {
            return;
        }
        let to_last_ns = self.last_completion_ns.saturating_sub(rate.first_ns);
        rate.since_first_ns = rate.since_first_ns.max(to_last_ns);
        let mut seen = (rate.blocks << SHIFT) / (rate.since_first_ns / 1000);
        let is_mostly_sequential = rate.sequential >= (3 * rate.samples) >> 2;
        if !is_mostly_sequential && seen <= rate.peak || seen > 20 << SHIFT {
            return;
        }
        let weight = 9 * rate.sequential / rate.samples;
        let weight = (weight * rate.since_first_ns / INTERVAL_NS).min(8);
        let divisor = 10 - weight;
        rate.peak = rate.peak * (divisor - 1) / divisor;
        seen /= divisor;
        rate.peak = (rate.peak + seen).max(1);
        if self.settings.max_budget == 0 {
            self.max_budget = self.budget_of_rate();
        }
    }

    /// A completion after a pause in which the drive did next to nothing (`bfq_completed_request`).
    pub(super) fn note_completion(&mut self) {
        let since_us = (self.clock.ns - self.last_completion_ns) / 1000;
        if since_us > MIN_THINK_NS / 1000
            && (self.rate.largest << SHIFT) / since_us < 1 << (SHIFT - 10)
        {
            self.end_rate(None);
        }
        self.last_completion_ns = self.clock.ns;
    }
}
