//! Angles and turns in integers.
//!
//! An [`Angle`] is a fraction of a turn times 2^64, so that adding angles wraps at a full turn by itself. The platters
//! are at angle 0 at time 0.

/// A fraction of a turn, times 2^64.
pub type Angle = u64;

/// Tolerance for a head that is a little past a block and still counts as being in time: 2^-20 of a turn (some
/// 8 ns), the largest error from rounding times to nanoseconds.
const TOLERANCE: Angle = 1 << 44;

/// The turning of the platters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Nanoseconds of a turn, times 2^16.
    turn_q16: u64,
    /// Angle per nanosecond.
    angle_per_ns: u64,
}

impl Rotation {
    /// From revolutions per minute; `None` unless it is between 1 and 1 000 000.
    #[must_use]
    pub fn from_rpm(rpm: f64) -> Option<Self> {
        if !(1.0..=1e6).contains(&rpm) {
            return None;
        }
        let turn_ns = 60e9 / rpm;
        Some(Self {
            turn_q16: (turn_ns * 65536.0).round() as u64,
            angle_per_ns: (18_446_744_073_709_551_616.0 / turn_ns) as u64,
        })
    }

    /// Nanoseconds of one turn, rounded.
    #[must_use]
    pub const fn turn_ns(&self) -> u64 {
        (self.turn_q16 + (1 << 15)) >> 16
    }

    /// Nanoseconds times 2^16 in which one of `blocks_per_track` blocks passes the head.
    #[must_use]
    pub const fn block_q16(&self, blocks_per_track: u32) -> u64 {
        self.turn_q16 / blocks_per_track as u64
    }

    /// Angle of the platters at `now_ns`.
    #[must_use]
    #[inline]
    pub const fn angle_at(&self, now_ns: u64) -> Angle {
        now_ns.wrapping_mul(self.angle_per_ns)
    }

    /// Nanoseconds in which the platters turn by `angle`, rounded up.
    #[must_use]
    #[inline]
    pub const fn time_of(&self, angle: Angle) -> u64 {
        let product = angle as u128 * self.turn_q16 as u128;
        ((product + ((1 << 80) - 1)) >> 80) as u64
    }

    /// How long after `now_ns` the place at `target` comes under the head, in nanoseconds.
    #[must_use]
    #[inline]
    pub const fn wait_ns(&self, now_ns: u64, target: Angle) -> u64 {
        let ahead = target.wrapping_sub(self.angle_at(now_ns));
        if ahead > Angle::MAX - TOLERANCE {
            0
        } else {
            self.time_of(ahead)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_takes_the_time_the_speed_says() {
        let rotation = Rotation::from_rpm(7200.0).unwrap();
        assert_eq!(rotation.turn_ns(), 8_333_333);
        assert_eq!(rotation.time_of(1 << 63), 4_166_667);
    }

    #[test]
    fn after_waiting_the_place_is_under_the_head() {
        let rotation = Rotation::from_rpm(10_045.0).unwrap();
        let mut now = 12_345;
        for step in 0..1000_u64 {
            let target = step.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            now += rotation.wait_ns(now, target);
            assert_eq!(rotation.wait_ns(now, target), 0);
            now += step * 1_000_003;
        }
    }

    #[test]
    fn waiting_is_never_longer_than_a_turn() {
        let rotation = Rotation::from_rpm(15_000.0).unwrap();
        for now in [0, 1, 3_999_999, 4_000_000, 1 << 50] {
            assert!(
                rotation.wait_ns(now, rotation.angle_at(now).wrapping_sub(1 << 50))
                    <= rotation.turn_ns()
            );
        }
    }

    #[test]
    fn a_speed_that_is_none_is_refused() {
        for rpm in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Rotation::from_rpm(rpm).is_none());
        }
    }
}
