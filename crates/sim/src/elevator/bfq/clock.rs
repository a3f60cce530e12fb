//! bfq's clock: nanoseconds, and jiffies of a kernel with HZ = 250 (Debian's).

pub(super) use crate::ticks::HZ;
use crate::ticks::Ticks;

/// Nanoseconds of a jiffy.
pub(super) use crate::ticks::TICK_NS as JIFFY_NS;

/// Jiffies at which the simulation begins; everything that is 0 in a new elevator is long ago then.
const BOOT: i64 = 1 << 32;
/// `bfq_smallest_from_now`.
pub(super) const LONG_AGO: i64 = i64::MIN / 4;

/// The present.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock {
    pub(super) ns: u64,
    pub(super) jiffies: i64,
}

impl Clock {
    pub(super) fn at(ns: u64, ticks: Ticks) -> Clock {
        Clock {
            ns,
            jiffies: BOOT + ticks.count(ns) as i64,
        }
    }
}

/// `msecs_to_jiffies`.
pub(super) const fn jiffies(ms: u64) -> i64 {
    (ms * HZ).div_ceil(1000) as i64
}

/// `nsecs_to_jiffies` and `msecs_to_jiffies` of a setting.
pub(super) const fn jiffies_of_ns(ns: u64) -> i64 {
    ns.div_ceil(JIFFY_NS) as i64
}
