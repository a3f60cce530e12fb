//! Zipf-distributed ranks, exactly and in constant time.

use crate::alias::AliasTable;
use crate::rng::{Chance, Rng};

/// Rank k of `1..=count` has a chance proportional to k^-theta.
///
/// Rejection (von Neumann) from a stepped envelope: ranks are grouped into buckets that grow with the
/// rank, each as high as its first rank. A bucket is chosen by an alias table, a rank uniformly within
/// it, and kept with the chance (k / first)^-theta. Most are kept at once since that is never below the
/// chance of the bucket's last rank; only the rest need a power. The result is exact for each theta > 0,
/// 1 included, and the table is small whatever the count.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    theta: f64,
    table: AliasTable,
    buckets: Box<[Bucket]>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    first: u64,
    ranks: u64,
    /// Chance of the last rank: whatever is below it needs no power.
    sure: Chance,
}

/// Buckets are a single rank up to here...
const SINGLE: u64 = 32;
/// ...and this part of their first rank beyond.
const GROWTH: u64 = 16;

impl Zipf {
    /// `count` is at least 1, `theta` is positive and finite.
    pub(crate) fn new(count: u64, theta: f64) -> Zipf {
        let mut buckets = Vec::new();
        let mut weights = Vec::new();
        let mut first = 1;
        while first <= count {
            let wanted = if first <= SINGLE { 1 } else { first / GROWTH };
            let ranks = wanted.min(count - first + 1);
            let last = first + ranks - 1;
            let sure = Chance::new(power(last as f64 / first as f64, -theta));
            buckets.push(Bucket { first, ranks, sure });
            weights.push(ranks as f64 * power(first as f64, -theta));
            match first.checked_add(ranks) {
                Some(next) => first = next,
                None => break,
            }
        }
        Zipf {
            theta,
            table: AliasTable::new(&weights),
            buckets: buckets.into_boxed_slice(),
        }
    }

    /// A rank, counted from 0.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let bucket = self.buckets[self.table.draw(rng)];
            if bucket.ranks == 1 {
                return bucket.first - 1;
            }
            let rank = bucket.first + rng.below(bucket.ranks);
            let bits = rng.bits53();
            if bits < bucket.sure.bits() || self.keeps(bucket.first, rank, bits) {
                return rank - 1;
            }
        }
    }

    #[cold]
    fn keeps(&self, first: u64, rank: u64, bits: u64) -> bool {
        bits < Chance::new(power(rank as f64 / first as f64, -self.theta)).bits()
    }
}

/// The crate's power, not the platform's: the same bits on every machine.
fn power(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws must pass a chi-square test against k^-theta, single ranks at the head and groups of ranks
    /// in the tail.
    fn check_frequencies(count: u64, theta: f64) {
        const DRAWS: u32 = 2_000_000;
        let zipf = Zipf::new(count, theta);
        let mut rng = Rng::new(count ^ theta.to_bits());
        let mut seen = vec![0_u32; count as usize];
        for _ in 0..DRAWS {
            seen[zipf.draw(&mut rng) as usize] += 1;
        }
        let total: f64 = (1..=count).map(|k| (k as f64).powf(-theta)).sum();
        let (mut chi2, mut cells) = (0.0, 0.0_f64);
        let (mut expected, mut observed) = (0.0, 0.0);
        for (index, &n) in seen.iter().enumerate() {
            expected += ((index + 1) as f64).powf(-theta) / total * f64::from(DRAWS);
            observed += f64::from(n);
            if expected >= 2000.0 || index + 1 == seen.len() && expected > 10.0 {
                chi2 += (observed - expected).powi(2) / expected;
                cells += 1.0;
                (expected, observed) = (0.0, 0.0);
            }
        }
        let degrees = cells - 1.0;
        // Normal approximation, five sigma.
        let limit = degrees + 5.0 * (2.0 * degrees).sqrt().max(4.0);
        assert!(
            chi2 < limit,
            "n {count}, theta {theta}: chi-square {chi2} for {degrees} degrees"
        );
    }

    #[test]
    fn frequencies_follow_the_power_law() {
        for theta in [0.2, 0.5, 0.99, 1.0, 1.2, 2.5] {
            for count in [1, 2, 33, 1000, 100_000] {
                check_frequencies(count, theta);
            }
        }
    }

    #[test]
    fn a_huge_space_needs_a_small_table_and_stays_inside() {
        for theta in [0.01, 0.99, 10.0] {
            let zipf = Zipf::new(u64::MAX / 512, theta);
            assert!(zipf.buckets.len() < 1024);
            let mut rng = Rng::new(1);
            assert!((0..100_000).all(|_| zipf.draw(&mut rng) < u64::MAX / 512));
        }
    }
}
