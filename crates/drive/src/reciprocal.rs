//! Division by a number that never changes, as a multiplication.

/// Divides by a fixed divisor. Exact as long as dividend times divisor stays below 2^64, which blocks of a zone times
/// blocks of a cylinder do by far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reciprocal {
    divisor: u64,
    /// 2^64 / divisor, rounded up; 0 represents the divisor 1.
    magic: u64,
}

impl Reciprocal {
    pub(crate) const fn new(divisor: u64) -> Self {
        let magic = if divisor <= 1 {
            0
        } else {
            (1_u128 << 64).div_ceil(divisor as u128) as u64
        };
        Self { divisor, magic }
    }

    #[inline]
    pub(crate) const fn divisor(&self) -> u64 {
        self.divisor
    }

    /// Quotient and remainder.
    #[inline]
    pub(crate) const fn div_rem(&self, dividend: u64) -> (u64, u64) {
        let quotient = if self.magic == 0 {
            dividend
        } else {
            ((dividend as u128 * self.magic as u128) >> 64) as u64
        };
        (quotient, dividend - quotient * self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_divides_as_division_does() {
        for divisor in [1, 2, 3, 7, 63, 254, 390, 1024, 65_535, 1_000_003] {
            let reciprocal = Reciprocal::new(divisor);
            let largest = (1_u64 << 63) / divisor;
            for dividend in (0..2000).chain(largest - 2000..largest) {
                assert_eq!(
                    reciprocal.div_rem(dividend),
                    (dividend / divisor, dividend % divisor)
                );
            }
        }
    }
}
