//! Timer ticks: 250 in a second, as Debian builds its kernels. A timer ends with a tick.

/// Ticks in a second.
pub(crate) const HZ: u64 = 250;
/// Time between two ticks.
pub(crate) const TICK_NS: u64 = 1_000_000_000 / HZ;
/// Timers of `LVL_START(1)` ticks and more end with each eighth tick only, eight times as long ones with each 64th ...
const FINE_TICKS: u64 = 63;
/// Ticks in which the begin of a run is given.
const PHASES: u64 = 8;

/// The ticks of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ticks {
    /// Time from a tick whose number is a multiple of 8 to the begin of the run.
    begun_ns: u64,
}

impl Ticks {
    /// `first_ns`: the first tick whose number is a multiple of 8.
    #[must_use]
    pub fn new(first_ns: u64) -> Ticks {
        let turn_ns = PHASES * TICK_NS;
        Ticks {
            begun_ns: (turn_ns - first_ns % turn_ns) % turn_ns,
        }
    }

    /// Time of the first tick after the begin.
    pub(crate) fn first_ns(self) -> u64 {
        TICK_NS - self.begun_ns % TICK_NS
    }

    /// Number of ticks so far (`jiffies`).
    pub(crate) fn count(self, now_ns: u64) -> u64 {
        (self.begun_ns + now_ns) / TICK_NS
    }

    /// End of a timer that is set for so many ticks (`schedule_timeout`): the next place of the timer wheel
    /// (Linux 6.1 `kernel/time/timer.c`, `calc_wheel_index`).
    pub(crate) fn timer_ns(self, now_ns: u64, ticks: u64) -> u64 {
        let mut shift = 0;
        while ticks >= FINE_TICKS << shift {
            shift += 3;
        }
        let end = (((self.count(now_ns) + ticks) >> shift) + 1) << shift;
        end * TICK_NS - self.begun_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_ends_after_its_ticks_at_the_next_place_of_the_wheel() {
        let ticks = Ticks::new(0);
        assert_eq!(ticks.timer_ns(0, 1), 2 * TICK_NS);
        assert_eq!(ticks.timer_ns(TICK_NS - 1, 1), 2 * TICK_NS);
        assert_eq!(ticks.timer_ns(TICK_NS, 1), 3 * TICK_NS);
        assert_eq!(ticks.timer_ns(0, 62), 63 * TICK_NS);
        assert_eq!(ticks.timer_ns(0, 126), 128 * TICK_NS);
        assert_eq!(ticks.timer_ns(2 * TICK_NS, 126), 136 * TICK_NS);
    }

    #[test]
    fn the_first_tick_may_come_at_any_time() {
        let first_ns = 3 * TICK_NS + 5;
        let ticks = Ticks::new(first_ns);
        assert_eq!(ticks.first_ns(), 5);
        assert_eq!(ticks.timer_ns(0, 1), 5 + TICK_NS);
        assert_eq!(ticks.timer_ns(5, 1), 5 + 2 * TICK_NS);
        assert_eq!(ticks.timer_ns(0, 126) % (PHASES * TICK_NS), first_ns);
        assert_eq!(Ticks::new(0).first_ns(), TICK_NS);
    }
}
