//! An upper bound on the rate of a stream, as the real engine keeps it.
//!
//! The generic cell rate algorithm (ITU-T I.371, virtual scheduling), with the same tolerance, so that a modelled run
//! is paced like a real one.

use spindle_workload::RateLimit;

/// A stall is made up for within this, ns.
const TOLERANCE_NS: u64 = 20_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Start of the next request in 1/256 ns.
    next: u64,
    limit: RateLimit,
}

impl Pace {
    pub(crate) fn new(limit: RateLimit, origin_ns: u64) -> Pace {
        Pace {
            next: origin_ns.saturating_mul(256),
            limit,
        }
    }

    /// Time from which a request of `len` bytes may start, ns.
    pub(crate) fn claim(&mut self, len: u32, now_ns: u64) -> u64 {
        let cost = match self.limit {
            RateLimit::Iops { iops } => 1e9 / iops,
            RateLimit::Bytes { bytes_per_s } => f64::from(len) * 1e9 / bytes_per_s,
        };
        let cost = (cost * 256.0).min(1e18) as u64;
        let start = self.next.max(now_ns.saturating_sub(TOLERANCE_NS) * 256);
        self.next = start.saturating_add(cost);
        start / 256
    }
}
