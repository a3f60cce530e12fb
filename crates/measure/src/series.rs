//! The time series of one stream: equally long intervals in bounded memory.

use crate::figures::IntervalFigures;

/// Intervals from the end of the ramp on. When it is full, neighbours are merged and the intervals are twice as long.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    origin_ns: u64,
    interval_ns: u64,
    /// Even, so that merging in pairs leaves nothing over.
    capacity: usize,
    intervals: Vec<IntervalFigures>,
}

impl Series {
    pub(crate) fn new(
        origin_ns: u64,
        interval_ns: u64,
        expected_ns: Option<u64>,
        max_intervals: usize,
    ) -> Self {
        let most = max_intervals.clamp(2, 1 << 24).next_multiple_of(2);
        let reserve = expected_ns.map_or(most, |ns| {
            // Completions of the last moment fall into one more.
            usize::try_from(ns / interval_ns)
                .unwrap_or(most)
                .saturating_add(2)
                .min(most)
        });
        Series {
            origin_ns,
            interval_ns,
            capacity: most,
            intervals: Vec::with_capacity(reserve),
        }
    }

    /// End of the interval that is being filled, ns of the run's clock.
    pub(crate) fn next_boundary_ns(&self) -> u64 {
        let intervals = self.intervals.len() as u64 + 1;
        self.origin_ns
            .saturating_add(self.interval_ns.saturating_mul(intervals))
    }

    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    pub(crate) fn intervals(&self) -> &[IntervalFigures] {
        &self.intervals
    }

    pub(crate) fn push(&mut self, interval: IntervalFigures) {
        self.intervals.push(interval);
        if self.intervals.len() >= self.capacity {
            self.coarsen();
        }
    }

    /// The interval that was being filled when the run ended. If it has no length, what completed on its first
    /// nanosecond belongs to the one before.
    pub(crate) fn push_last(&mut self, interval: IntervalFigures, end_ns: u64) {
        let start_ns = self.next_boundary_ns().saturating_sub(self.interval_ns);
        if end_ns > start_ns {
            self.intervals.push(interval);
        } else if let Some(last) = self.intervals.last_mut() {
            *last = sum(*last, interval);
        }
    }

    /// Merges neighbours: half as many intervals, each twice as long.
    fn coarsen(&mut self) {
        let merged = self.intervals.len().div_ceil(2);
        for index in 0..merged {
            let first = self.intervals[2 * index];
            let second = self
                .intervals
                .get(2 * index + 1)
                .copied()
                .unwrap_or_default();
            self.intervals[index] = sum(first, second);
        }
        self.intervals.truncate(merged);
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    /// Coarsens until intervals are at least this long.
    pub(crate) fn coarsen_to(&mut self, interval_ns: u64) {
        while self.interval_ns < interval_ns {
            self.coarsen();
        }
    }

    /// Whether intervals of both can be brought to the same boundaries.
    pub(crate) fn fits(&self, other: &Series) -> bool {
        let (short, long) = if self.interval_ns <= other.interval_ns {
            (self.interval_ns, other.interval_ns)
        } else {
            (other.interval_ns, self.interval_ns)
        };
        self.origin_ns == other.origin_ns
            && long.is_multiple_of(short)
            && (long / short).is_power_of_two()
    }

    /// Adds another worker's series; they must fit.
    pub(crate) fn merge(&mut self, mut other: Series) {
        self.coarsen_to(other.interval_ns);
        other.coarsen_to(self.interval_ns);
        if self.intervals.len() < other.intervals.len() {
            self.intervals
                .resize(other.intervals.len(), IntervalFigures::default());
        }
        for (mine, theirs) in self.intervals.iter_mut().zip(other.intervals) {
            *mine = sum(*mine, theirs);
        }
    }
}

fn sum(a: IntervalFigures, b: IntervalFigures) -> IntervalFigures {
    IntervalFigures {
        reads: a.reads + b.reads,
        writes: a.writes + b.writes,
        read_bytes: a.read_bytes.wrapping_add(b.read_bytes),
        write_bytes: a.write_bytes.wrapping_add(b.write_bytes),
        read_latency_ns: a.read_latency_ns.saturating_add(b.read_latency_ns),
        write_latency_ns: a.write_latency_ns.saturating_add(b.write_latency_ns),
        max_latency_ns: a.max_latency_ns.max(b.max_latency_ns),
    }
}
