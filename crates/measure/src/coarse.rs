//! Coarse latency counts of each interval: how the distribution moved in time.
//!
//! A bucket is a quarter of a power of two of the whole histogram's slots. Requests are counted as they end: sums of slots,
//! taken at the end of each interval, cost more where an interval has few requests. Few buckets are used in one interval;
//! a series stores those only.

use crate::histogram::{Histogram, PARTS, QUARTERS};

/// Number of buckets: one below 256 ns, then four a power of two up to the end of the histogram.
pub const LATENCY_BUCKETS: usize =
    1 + ((u64::BITS - Histogram::HIGHEST_NS.leading_zeros() - FIRST_BITS) as usize * PARTS);
/// log2 of the end of the first bucket, ns.
const FIRST_BITS: u32 = 8;
/// Bytes of an interval with some forty buckets: reads and writes of a busy second. Memory for this many is reserved
/// at the start, because memory that a long run reserves later is taken while it is measured.
const TYPICAL: usize = 128;

/// Counts by bucket.
pub(crate) type Counts = [u64; LATENCY_BUCKETS];

/// First latency of a bucket, and the first beyond it, ns. The last bucket also counts all longer latencies.
#[must_use]
pub const fn latency_bucket_ns(bucket: usize) -> (u64, u64) {
    (lowest_ns(bucket), lowest_ns(bucket + 1))
}

const fn lowest_ns(bucket: usize) -> u64 {
    if bucket == 0 {
        return 0;
    }
    let (power, quarter) = ((bucket - 1) / PARTS, (bucket - 1) % PARTS);
    ((PARTS + quarter) as u64) << (FIRST_BITS as usize + power - PARTS.trailing_zeros() as usize)
}

/// Adds counts by quarters of a histogram; the first ones are one bucket.
pub(crate) fn add_quarters(counts: &mut Counts, quarters: &[u64; QUARTERS]) {
    let (first, others) = quarters.split_at(QUARTERS + 1 - LATENCY_BUCKETS);
    counts[0] += first.iter().sum::<u64>();
    for (count, quarter) in counts[1..].iter_mut().zip(others) {
        *count += quarter;
    }
}

/// The counts of equally long intervals, one after the other: the number of used buckets, and each of them with its
/// count (LEB128).
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CoarseSeries {
    bytes: Vec<u8>,
    /// Where the last interval begins.
    last: usize,
}

impl CoarseSeries {
    /// Takes the memory of the first `touched` intervals at once.
    pub(crate) fn with_room_for(intervals: usize, touched: usize) -> Self {
        let mut bytes = Vec::with_capacity(intervals.saturating_mul(TYPICAL));
        bytes.resize(intervals.min(touched).saturating_mul(TYPICAL), 0);
        bytes.clear();
        CoarseSeries { bytes, last: 0 }
    }

    pub(crate) fn push(&mut self, counts: &Counts) {
        self.last = self.bytes.len();
        write(counts, |byte| self.bytes.push(byte));
    }

    /// Adds to the interval pushed last, if there is one.
    pub(crate) fn add_to_last(&mut self, counts: &Counts) {
        if self.bytes.is_empty() {
            return;
        }
        let mut sum = *counts;
        Reader(&self.bytes[self.last..]).add_next(&mut sum);
        self.bytes.truncate(self.last);
        self.push(&sum);
    }

    /// Merges neighbours, in place: a pair never takes more room than its parts.
    pub(crate) fn coarsen(&mut self) {
        let (mut read, mut written) = (0, 0);
        while read < self.bytes.len() {
            let mut sum = [0; LATENCY_BUCKETS];
            let mut reader = Reader(&self.bytes[read..]);
            reader.add_next(&mut sum);
            reader.add_next(&mut sum);
            read = self.bytes.len() - reader.0.len();
            self.last = written;
            write(&sum, |byte| {
                self.bytes[written] = byte;
                written += 1;
            });
        }
        self.bytes.truncate(written);
    }

    /// Adds another series interval by interval.
    pub(crate) fn merge(&mut self, other: &CoarseSeries) {
        let old = std::mem::take(&mut self.bytes);
        let (mut mine, mut theirs) = (Reader(&old), Reader(&other.bytes));
        let mut merged = CoarseSeries {
            bytes: Vec::with_capacity(old.len().max(other.bytes.len())),
            last: 0,
        };
        while !mine.is_empty() || !theirs.is_empty() {
            let mut sum = [0; LATENCY_BUCKETS];
            mine.add_next(&mut sum);
            theirs.add_next(&mut sum);
            merged.push(&sum);
        }
        *self = merged;
    }

    /// The intervals in order: the used buckets, with their counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Vec<(u8, u64)>> {
        let mut reader = Reader(&self.bytes);
        std::iter::from_fn(move || {
            if reader.is_empty() {
                return None;
            }
            let mut pairs = Vec::new();
            reader.each(|bucket, count| pairs.push((bucket, count)));
            Some(pairs)
        })
    }
}

fn write(counts: &Counts, mut byte: impl FnMut(u8)) {
    let held = || counts.iter().enumerate().filter(|&(_, &count)| count > 0);
    byte(held().count() as u8);
    for (bucket, &count) in held() {
        byte(bucket as u8);
        let mut rest = count;
        while rest >= 0x80 {
            byte(rest as u8 | 0x80);
            rest >>= 7;
        }
        byte(rest as u8);
    }
}

/// Reads only bytes that `CoarseSeries` has written.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the next interval; does nothing after the last.
    fn add_next(&mut self, sum: &mut Counts) {
        self.each(|bucket, count| sum[usize::from(bucket)] += count);
    }

    fn each(&mut self, mut pair: impl FnMut(u8, u64)) {
        let buckets = self.byte();
        for _ in 0..buckets {
            let bucket = self.byte();
            let count = self.number();
            pair(bucket, count);
        }
    }

    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_from_nothing_to_the_end_of_the_histogram() {
        assert_eq!(LATENCY_BUCKETS, 137);
        assert_eq!(latency_bucket_ns(0), (0, 256));
        assert_eq!(latency_bucket_ns(1), (256, 320));
        assert_eq!(latency_bucket_ns(5), (512, 640));
        assert_eq!(
            latency_bucket_ns(LATENCY_BUCKETS - 1).1,
            Histogram::HIGHEST_NS + 1
        );
        for bucket in 1..LATENCY_BUCKETS {
            let (low, high) = latency_bucket_ns(bucket);
            assert_eq!(latency_bucket_ns(bucket - 1).1, low);
            assert!(high as f64 / low as f64 <= 1.25);
        }
    }

    #[test]
    fn what_is_pushed_merged_and_coarsened_is_kept_to_the_count() {
        let mut counts = [[0; LATENCY_BUCKETS]; 5];
        counts[0][0] = 1;
        counts[0][136] = u64::MAX / 8;
        counts[2][7] = 127;
        counts[3][7] = 128;
        counts[4][99] = 1 << 40;
        let mut series = CoarseSeries::with_room_for(5, 2);
        counts.iter().for_each(|counts| series.push(counts));
        let shown: Vec<_> = series.iter().collect();
        assert_eq!(shown[0], [(0, 1), (136, u64::MAX / 8)]);
        assert_eq!(shown[1], []);
        assert_eq!(shown[4], [(99, 1 << 40)]);

        let mut short = CoarseSeries::with_room_for(1, 0);
        short.push(&counts[2]);
        short.merge(&series);
        assert_eq!(short.iter().count(), 5);
        assert_eq!(
            short.iter().next(),
            Some(vec![(0, 1), (7, 127), (136, u64::MAX / 8)])
        );

        series.add_to_last(&counts[2]);
        series.coarsen();
        let shown: Vec<_> = series.iter().collect();
        assert_eq!(shown.len(), 3);
        assert_eq!(shown[1], [(7, 255)]);
        assert_eq!(shown[2], [(7, 127), (99, 1 << 40)]);
        series.add_to_last(&counts[3]);
        assert_eq!(series.iter().last(), Some(vec![(7, 255), (99, 1 << 40)]));
    }
}
