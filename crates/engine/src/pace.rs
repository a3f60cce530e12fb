//! An upper bound on the rate of a whole stream, kept by a schedule that its workers share.
//!
//! The generic cell rate algorithm (ITU-T I.371, virtual scheduling): a request may start at the scheduled
//! time, which then moves on by the request's cost; the schedule never lags more than a tolerance behind, so
//! that a stall is not followed by a burst beyond the rate.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spindle_workload::RateLimit;

/// A wake-up that comes late is made up for within this, ns.
const TOLERANCE_NS: u64 = 20_000_000;

/// The schedule; on a cache line of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Pace {
    /// Start of the next request in 1/256 ns, so that rounding costs less than 10 ppm even at 25 million requests a
    /// second.
    next: AtomicU64,
    limit: RateLimit,
}

impl Pace {
    /// The first request may start at `origin`, ns since the start of the run.
    pub(crate) fn new(limit: RateLimit, origin: u64) -> Pace {
        Pace {
            next: AtomicU64::new(origin * 256),
            limit,
        }
    }

    /// Time from which a request of `len` bytes may start, ns.
    #[inline]
    pub(crate) fn claim(&self, len: u32, now: u64) -> u64 {
        let cost = match self.limit {
            RateLimit::Iops { iops } => 1e9 / iops,
            RateLimit::Bytes { bytes_per_s } => f64::from(len) * 1e9 / bytes_per_s,
        };
        let cost = (cost * 256.0).min(1e18) as u64;
        let earliest = now.saturating_sub(TOLERANCE_NS) * 256;
        let mut next = self.next.load(Relaxed);
        loop {
            let start = next.max(earliest);
            match self.next.compare_exchange_weak(
                next,
                start.saturating_add(cost),
                Relaxed,
                Relaxed,
            ) {
                Ok(_) => return start / 256,
                Err(other) => next = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_evenly_spaced() {
        let pace = Pace::new(RateLimit::Iops { iops: 1000.0 }, 5_000_000_000);
        let starts: Vec<u64> = (0..4).map(|_| pace.claim(4096, 5_000_000_000)).collect();
        assert_eq!(
            starts,
            [5_000_000_000, 5_001_000_000, 5_002_000_000, 5_003_000_000]
        );
    }

    #[test]
    fn bytes_count_by_length() {
        let pace = Pace::new(RateLimit::Bytes { bytes_per_s: 1e6 }, 1_000_000_000);
        assert_eq!(pace.claim(1000, 1_000_000_000), 1_000_000_000);
        assert_eq!(pace.claim(500, 1_000_000_000), 1_001_000_000);
        assert_eq!(pace.claim(500, 1_000_000_000), 1_001_500_000);
    }

    #[test]
    fn a_stall_is_not_followed_by_a_flood() {
        let pace = Pace::new(RateLimit::Iops { iops: 1000.0 }, 0);
        let now = 10_000_000_000;
        let at_once = (0..1000).filter(|_| pace.claim(1, now) <= now).count();
        assert!(
            at_once <= 21,
            "{at_once} requests at once after a stall of 10 s"
        );
    }
}
