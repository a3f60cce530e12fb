//! The latency histogram: log-linear slots, fixed memory, exact moments.
//!
//! Every power of two above 512 ns is cut into 256 equally wide slots; below, a slot is one nanosecond. A slot is
//! reported by its middle, so a percentile is at most 1/512 (0.2 %) away from the latency that has that rank. Count, sum
//! and sum of squares are kept beside the slots as integers: mean and standard deviation have no slot error at all.
//! The derivation is in `docs/explanation/measurement.md`.

/// Values below this have a slot of their own, ns; a power of two.
const LINEAR: u64 = 512;
/// Slots of one power of two.
const HALF: usize = (LINEAR / 2) as usize;
/// log2 of `HALF`.
const HALF_BITS: u32 = HALF.trailing_zeros();
/// log2 of the first value that has no slot.
const RANGE_BITS: u32 = 42;
/// Number of slots: 35 KiB x 2, of which a run touches the few that its latencies fall into.
const SLOTS: usize = (RANGE_BITS - HALF_BITS) as usize * HALF + HALF;
/// Quarters of one power of two.
pub(crate) const PARTS: usize = 4;
/// Slots of a quarter.
const QUARTER: usize = HALF / PARTS;
/// Number of quarters of powers of two.
pub(crate) const QUARTERS: usize = SLOTS / QUARTER;

/// A latency distribution in nanoseconds.
///
/// `record` neither allocates nor fails; memory is fixed (70 KiB). Histograms of workers, intervals or runs are merged
/// by adding counts: percentiles are always taken from a whole distribution, never averaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    sum_of_squares: u128,
    overflow: u64,
    slots: Box<[u64; SLOTS]>,
}

impl Histogram {
    /// Largest latency that has a slot of its own width, ns (73 minutes). Longer ones are counted in the last slot and in
    /// [`overflow`](Self::overflow).
    pub const HIGHEST_NS: u64 = (1 << RANGE_BITS) - 1;
    /// Largest relative error of a percentile.
    pub const RELATIVE_ERROR: f64 = 1.0 / LINEAR as f64;

    /// An empty histogram whose memory is resident, not only reserved: it does not grow page by page while latencies
    /// are recorded that did not occur before.
    #[must_use]
    pub(crate) fn touched() -> Self {
        let mut histogram = Histogram::new();
        histogram.slots.fill(1);
        std::hint::black_box(&mut histogram.slots);
        histogram.slots.fill(0);
        histogram
    }

    /// An empty histogram; the only place that allocates.
    #[must_use]
    pub fn new() -> Self {
        let slots = vec![0; SLOTS].into_boxed_slice();
        Histogram {
            count: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
            sum_of_squares: 0,
            overflow: 0,
            slots: slots
                .try_into()
                .unwrap_or_else(|_| unreachable!("the vector has SLOTS elements")),
        }
    }

    /// Counts one latency.
    #[inline(always)]
    pub fn record(&mut self, ns: u64) {
        self.record_in_quarter(ns);
    }

    /// Counts one latency; its quarter. The first ones are those of the values that have slots of their own.
    #[inline(always)]
    pub(crate) fn record_in_quarter(&mut self, ns: u64) -> usize {
        if ns > Self::HIGHEST_NS {
            self.record_beyond(ns, 1);
            return QUARTERS - 1;
        }
        let slot = slot_of(ns);
        self.slots[slot] += 1;
        self.count += 1;
        if ns < self.min_ns || ns > self.max_ns {
            self.widen(ns);
        }
        // 2^42 ns squared is 2^84: the sum of squares has room for 2^44 of the longest latencies.
        self.sum_ns = self.sum_ns.wrapping_add(u128::from(ns));
        self.sum_of_squares = self
            .sum_of_squares
            .wrapping_add(u128::from(ns) * u128::from(ns));
        slot / QUARTER
    }

    /// Counts the same latency `times` times.
    pub fn record_n(&mut self, ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        if ns > Self::HIGHEST_NS {
            self.record_beyond(ns, times);
            return;
        }
        self.add(ns, slot_of(ns), times);
    }

    /// Rare after the first few: two predicted compares cost less than updating two numbers.
    #[cold]
    #[inline(never)]
    fn widen(&mut self, ns: u64) {
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    #[cold]
    #[inline(never)]
    fn record_beyond(&mut self, ns: u64, times: u64) {
        self.overflow = self.overflow.saturating_add(times);
        self.add(ns, SLOTS - 1, times);
    }

    fn add(&mut self, ns: u64, slot: usize, times: u64) {
        let (value, weight) = (u128::from(ns), u128::from(times));
        self.slots[slot] = self.slots[slot].saturating_add(times);
        self.count = self.count.saturating_add(times);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(value * weight);
        self.sum_of_squares = self
            .sum_of_squares
            .saturating_add((value * value).saturating_mul(weight));
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.slots.iter_mut().zip(other.slots.iter()) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.overflow = self.overflow.saturating_add(other.overflow);
    }

    /// Empties the histogram; keeps its memory.
    pub fn clear(&mut self) {
        self.count = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.sum_ns = 0;
        self.sum_of_squares = 0;
        self.overflow = 0;
        self.slots.fill(0);
    }

    /// Number of latencies.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of latencies longer than [`HIGHEST_NS`](Self::HIGHEST_NS).
    #[must_use]
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Exact sum, ns.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Smallest, ns; 0 if empty.
    #[must_use]
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Largest, ns; 0 if empty.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Exact mean, ns; 0 if empty.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let count = u128::from(self.count);
        // Integer part and remainder apart: the quotient of two rounded numbers would lose digits of long runs.
        (self.sum_ns / count) as f64 + (self.sum_ns % count) as f64 / self.count as f64
    }

    /// Exact standard deviation of the recorded latencies (divided by their number, not by one less), ns; 0 if empty.
    #[must_use]
    pub fn sdev_ns(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        // sum of squares - sum^2 / n, in integers: with sum = q n + r it is
        // sum of squares - q (sum + r) - r^2 / n, and nothing cancels but integers.
        let count = u128::from(self.count);
        let (quotient, rest) = (self.sum_ns / count, self.sum_ns % count);
        let whole = self
            .sum_of_squares
            .saturating_sub(quotient.saturating_mul(self.sum_ns.saturating_add(rest)));
        let rest = rest as f64;
        let squares = whole as f64 - rest * rest / self.count as f64;
        (squares.max(0.0) / self.count as f64).sqrt()
    }

    /// Latency at a percentile, 0..=100, ns: the middle of the slot that holds the request of rank `ceil(p/100 x count)`,
    /// never outside the smallest and largest recorded; `None` if empty.
    #[must_use]
    pub fn value_at_percentile(&self, percentile: f64) -> Option<u64> {
        self.percentiles(&[percentile])
            .first()
            .map(|&(_, value)| value)
    }

    /// Latencies at ascending percentiles in one pass over the slots: (percentile, ns); empty if the histogram is.
    #[must_use]
    pub fn percentiles(&self, ascending: &[f64]) -> Vec<(f64, u64)> {
        if self.count == 0 {
            return Vec::new();
        }
        let mut slots = self.slots.iter().enumerate();
        let (mut slot, mut seen) = (0, 0);
        let mut reached = 0;
        ascending
            .iter()
            .map(|&percentile| {
                // Never backwards: a list out of order gives the larger value twice instead of a wrong one.
                reached = rank(percentile, self.count).max(reached);
                while seen < reached {
                    let Some((index, &count)) = slots.next() else {
                        break;
                    };
                    slot = index;
                    seen = seen.saturating_add(count);
                }
                (
                    percentile,
                    middle_of(slot).clamp(self.min_ns, self.max_ns.max(self.min_ns)),
                )
            })
            .collect()
    }

    /// The used slots, in order: (middle of the slot in ns, count).
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.slots
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(slot, &count)| (middle_of(slot), count))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Slot of a value up to `Histogram::HIGHEST_NS`.
#[inline]
const fn slot_of(ns: u64) -> usize {
    // Number of low bits that the slot ignores: 0 below LINEAR.
    let blur = u64::BITS - 1 - HALF_BITS - (ns | (LINEAR - 1)).leading_zeros();
    ((blur as usize) << HALF_BITS) + (ns >> blur) as usize
}

/// The value that is reported for a latency: the middle of its slot, ns. Values beyond all slots are unchanged.
pub(crate) fn reported(ns: u64) -> u64 {
    if ns > Histogram::HIGHEST_NS {
        return ns;
    }
    middle_of(slot_of(ns))
}

/// Middle of a slot, ns.
const fn middle_of(slot: usize) -> u64 {
    if slot < LINEAR as usize {
        return slot as u64;
    }
    let blur = (slot >> HALF_BITS) as u32 - 1;
    let lowest = ((slot & (HALF - 1)) + HALF) as u64;
    (lowest << blur) + (1 << (blur - 1))
}

/// Rank of a percentile among `count` values, 1..=count.
fn rank(percentile: f64, count: u64) -> u64 {
    let share = percentile.clamp(0.0, 100.0) / 100.0 * count as f64;
    // 99.9 / 100 x 1000 is 999.0000000000001 in binary: a product that is whole but for rounding counts as whole.
    let nearest = share.round();
    let exact = if (share - nearest).abs() <= share * 4.0 * f64::EPSILON {
        nearest
    } else {
        share.ceil()
    };
    (exact as u64).clamp(1, count)
}
