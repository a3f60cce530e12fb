//! The time series of one stream: equally long intervals in bounded memory.

use crate::coarse::{CoarseSeries, Counts};
use crate::figures::IntervalFigures;

/// The totals of an interval, as in [`IntervalFigures`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sums {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) read_latency_ns: u64,
    pub(crate) write_latency_ns: u64,
    pub(crate) max_latency_ns: u64,
}

/// Intervals from the end of the ramp on. When it is full, neighbours are merged, and the intervals become twice as long.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    origin_ns: u64,
    interval_ns: u64,
    /// Even, so that merging in pairs leaves nothing over.
    capacity: usize,
    sums: Vec<Sums>,
    latencies: CoarseSeries,
}

/// Intervals whose memory is taken at once: an hour of seconds and some.
const TOUCHED: usize = 4096;

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
        let mut sums = Vec::with_capacity(reserve);
        // Writes to the reserved memory: a run should not take memory from the system bit by bit while it is measured.
        sums.resize(reserve.min(TOUCHED), Sums::default());
        sums.clear();
        Series {
            origin_ns,
            interval_ns,
            capacity: most,
            sums,
            latencies: CoarseSeries::with_room_for(reserve, TOUCHED),
        }
    }

    /// End of the interval that is being filled, ns of the run's clock.
    pub(crate) fn next_boundary_ns(&self) -> u64 {
        let intervals = self.sums.len() as u64 + 1;
        self.origin_ns
            .saturating_add(self.interval_ns.saturating_mul(intervals))
    }

    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// The intervals in order.
    pub(crate) fn intervals(&self) -> impl Iterator<Item = IntervalFigures> {
        self.sums
            .iter()
            .zip(self.latencies.iter())
            .map(|(sums, latency_counts)| IntervalFigures {
                reads: sums.reads,
                writes: sums.writes,
                read_bytes: sums.read_bytes,
                write_bytes: sums.write_bytes,
                read_latency_ns: sums.read_latency_ns,
                write_latency_ns: sums.write_latency_ns,
                max_latency_ns: sums.max_latency_ns,
                latency_counts,
            })
    }

    pub(crate) fn push(&mut self, sums: Sums, latencies: &Counts) {
        self.sums.push(sums);
        self.latencies.push(latencies);
        if self.sums.len() >= self.capacity {
            self.coarsen();
        }
    }

    /// Adds the interval that was being filled when the run ended. If it has no length, the completions of its first
    /// nanosecond belong to the one before.
    pub(crate) fn push_last(&mut self, sums: Sums, latencies: &Counts, end_ns: u64) {
        let start_ns = self.next_boundary_ns().saturating_sub(self.interval_ns);
        if end_ns > start_ns {
            self.sums.push(sums);
            self.latencies.push(latencies);
        } else if let Some(last) = self.sums.last_mut() {
            *last = sum(*last, sums);
            self.latencies.add_to_last(latencies);
        }
    }

    /// Merges neighbours: half as many intervals, each twice as long.
    fn coarsen(&mut self) {
        let merged = self.sums.len().div_ceil(2);
        for index in 0..merged {
            let first = self.sums[2 * index];
            let second = self.sums.get(2 * index + 1).copied().unwrap_or_default();
            self.sums[index] = sum(first, second);
        }
        self.sums.truncate(merged);
        self.latencies.coarsen();
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    /// Coarsens until intervals are at least this long.
    pub(crate) fn coarsen_to(&mut self, interval_ns: u64) {
        while self.interval_ns < interval_ns {
            self.coarsen();
        }
    }

    /// True if intervals of both can be brought to the same boundaries.
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
        if self.sums.len() < other.sums.len() {
            self.sums.resize(other.sums.len(), Sums::default());
        }
        for (mine, theirs) in self.sums.iter_mut().zip(other.sums) {
            *mine = sum(*mine, theirs);
        }
        self.latencies.merge(&other.latencies);
    }
}

fn sum(a: Sums, b: Sums) -> Sums {
    Sums {
        reads: a.reads + b.reads,
        writes: a.writes + b.writes,
        read_bytes: a.read_bytes.wrapping_add(b.read_bytes),
        write_bytes: a.write_bytes.wrapping_add(b.write_bytes),
        read_latency_ns: a.read_latency_ns.saturating_add(b.read_latency_ns),
        write_latency_ns: a.write_latency_ns.saturating_add(b.write_latency_ns),
        max_latency_ns: a.max_latency_ns.max(b.max_latency_ns),
    }
}
