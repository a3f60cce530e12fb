//! The place of the n-th most popular rank.

use crate::rng::mix;

/// A bijection of `0..count` that leaves no visible order: popular places are spread over the region.
///
/// Multiplication by an odd number and xor with a right shift are each a bijection of b-bit words; a
/// result outside the range is mapped again until it is inside (cycle walking, Black and Rogaway 2002),
/// which takes fewer than two rounds on average as `count` is more than half of 2^b.
#[derive(Debug, Clone)]
pub(crate) struct Scatter {
    count: u64,
    mask: u64,
    shift: u32,
    add: u64,
    factors: [u64; 3],
}

impl Scatter {
    /// A bijection of `0..count` (`count` at least 1) chosen by the seed.
    pub(crate) fn new(count: u64, seed: u64) -> Scatter {
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        let mask = if bits == 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        };
        Scatter {
            count,
            mask,
            shift: (bits / 2).max(1),
            add: mix(seed),
            factors: [mix(seed ^ 1) | 1, mix(seed ^ 2) | 1, mix(seed ^ 3) | 1],
        }
    }

    /// Place of a rank; `rank` is below `count`.
    #[inline]
    pub(crate) fn place(&self, rank: u64) -> u64 {
        let mut x = rank;
        loop {
            x = x.wrapping_add(self.add);
            for factor in self.factors {
                x = x.wrapping_mul(factor) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.count {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_hit_once() {
        for count in [1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000, 4097, 70_000] {
            for seed in 0..4 {
                let scatter = Scatter::new(count, seed);
                let mut seen = vec![false; count as usize];
                for rank in 0..count {
                    let place = scatter.place(rank) as usize;
                    assert!(!std::mem::replace(&mut seen[place], true), "{count} {seed}");
                }
            }
        }
    }

    #[test]
    fn popular_places_are_spread_evenly() {
        let count = 1_000_003;
        for seed in 0..20 {
            let scatter = Scatter::new(count, seed);
            let mut seen = [0_u32; 16];
            for rank in 0..16_000 {
                seen[(scatter.place(rank) * 16 / count) as usize] += 1;
            }
            let chi2: f64 = seen
                .iter()
                .map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0)
                .sum();
            // 15 degrees of freedom: 1 in 10^6 exceeds 53. It may be more even than chance, not less.
            assert!(chi2 < 53.0, "seed {seed}: chi-square {chi2}, {seen:?}");
        }
    }

    #[test]
    fn neighbours_in_rank_are_far_apart() {
        let count = 1 << 20;
        let scatter = Scatter::new(count, 9);
        let near = (1..10_000)
            .filter(|&rank| scatter.place(rank).abs_diff(scatter.place(rank - 1)) < count / 100)
            .count();
        // By chance 2 % are within 1 %.
        assert!(
            near < 400,
            "{near} of 10 000 neighbours are near each other"
        );
    }

    #[test]
    fn full_width_does_not_overflow() {
        let scatter = Scatter::new(u64::MAX, 1);
        assert_ne!(scatter.place(0), scatter.place(u64::MAX - 1));
    }
}
