//! Division by a number fixed when the array is set up; chunks are nearly always powers of two.

/// Divides by a fixed number, by shifting where that is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Divider {
    by: u64,
    /// log2 of `by`; 64 when it is not a power of two.
    shift: u32,
}

impl Divider {
    /// `by` must not be zero.
    pub(crate) fn new(by: u64) -> Divider {
        let shift = if by.is_power_of_two() {
            by.trailing_zeros()
        } else {
            64
        };
        Divider { by, shift }
    }

    pub(crate) fn by(self) -> u64 {
        self.by
    }

    /// Quotient and remainder.
    #[inline(always)]
    pub(crate) fn split(self, number: u64) -> (u64, u64) {
        if self.shift < 64 {
            (number >> self.shift, number & (self.by - 1))
        } else {
            (number / self.by, number % self.by)
        }
    }
}

/// `n` rounded down to a multiple of `unit`.
pub(crate) const fn round_down(n: u64, unit: u64) -> u64 {
    n - n % unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifting_and_dividing_agree_with_plain_division() {
        for by in [1, 2, 3, 4096, 6 * 1024, 1 << 63, u64::MAX] {
            for n in [0, 1, by - 1, by, u64::MAX - 1, u64::MAX] {
                assert_eq!(Divider::new(by).split(n), (n / by, n % by));
            }
        }
    }
}
