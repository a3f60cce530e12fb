//! Pseudo-random numbers: seeded, splittable, and a nanosecond each.

/// The use of a generator. Each purpose has its own sequence, so that changing (say) the share of
/// writes leaves the offsets as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Purpose {
    Offset = 1,
    Size = 2,
    Operation = 3,
    Fsync = 4,
    Arrival = 5,
    Think = 6,
    Content = 7,
    /// Shared by all workers of a stream: they agree on the hot places.
    Scatter = 8,
    /// For writes with places of their own.
    WriteOffset = 9,
    WriteSize = 10,
    WriteScatter = 11,
    /// The next file.
    File = 12,
    WriteFile = 13,
    /// Size of a file.
    FileSize = 14,
}

/// Worker number for sequences that all workers of a stream share.
pub(crate) const SHARED: u32 = u32::MAX;

/// One step of splitmix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection that mixes all bits.
#[inline]
pub(crate) const fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Seed of one purpose of one worker of one stream.
pub(crate) const fn sub_seed(seed: u64, stream: usize, worker: u32, purpose: Purpose) -> u64 {
    let stream = mix(mix(seed) ^ stream as u64);
    mix(mix(stream ^ worker as u64) ^ purpose as u64)
}

/// xoshiro256++ 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2019).
#[derive(Debug, Clone)]
pub(crate) struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Expands a 64-bit seed with splitmix64, as the generator's authors advise.
    pub(crate) fn new(seed: u64) -> Rng {
        let a = mix(seed);
        let b = mix(a);
        let c = mix(b);
        // All four words 0 would be a fixed point.
        Rng {
            state: [a, b, c, mix(c) | 1],
        }
    }

    /// Uniform over all 64-bit words.
    #[inline]
    pub(crate) fn word(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let s2 = s2 ^ s0;
        let s3 = s3 ^ s1;
        self.state = [s0 ^ s3, s1 ^ s2, s2 ^ (s1 << 17), s3.rotate_left(45)];
        result
    }

    /// Uniform over `0..bound`, by multiplication instead of division (Lemire, "Fast random integer
    /// generation in an interval", 2019); without its rejection step the bias is `bound` / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// True with this probability.
    #[inline]
    pub(crate) fn happens(&mut self, chance: Chance) -> bool {
        self.bits53() < chance.0
    }

    /// Uniform over `0..2^53`.
    #[inline]
    pub(crate) fn bits53(&mut self) -> u64 {
        self.word() >> 11
    }

    /// Uniform over (0, 1].
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits53() + 1) as f64 * (1.0 / TWO_53)
    }

    /// Exponentially distributed with mean 1.
    #[inline]
    pub(crate) fn exponential(&mut self) -> f64 {
        // The crate's logarithm, not the platform's: the same bits on every machine.
        -libm::log(self.unit())
    }
}

const TWO_53: f64 = 9_007_199_254_740_992.0;

/// A probability as the integer that 53 random bits are compared with; 0 and 1 are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(probability: f64) -> Chance {
        Chance((probability.clamp(0.0, 1.0) * TWO_53) as u64)
    }

    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First words of the authors' C code with the state {1, 2, 3, 4}.
    #[test]
    fn generator_gives_the_words_of_the_reference_code() {
        let mut rng = Rng {
            state: [1, 2, 3, 4],
        };
        let words: Vec<u64> = (0..4).map(|_| rng.word()).collect();
        assert_eq!(
            words,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn certain_and_impossible_events_are_exact() {
        let mut rng = Rng::new(3);
        for _ in 0..10_000 {
            assert!(rng.happens(Chance::new(1.0)));
            assert!(!rng.happens(Chance::new(0.0)));
        }
    }

    #[test]
    fn sub_seeds_differ_in_every_part() {
        let base = sub_seed(1, 0, 0, Purpose::Offset);
        for other in [
            sub_seed(2, 0, 0, Purpose::Offset),
            sub_seed(1, 1, 0, Purpose::Offset),
            sub_seed(1, 0, 1, Purpose::Offset),
            sub_seed(1, 0, 0, Purpose::Size),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn exponential_has_mean_one() {
        let mut rng = Rng::new(11);
        let mean = (0..200_000).map(|_| rng.exponential()).sum::<f64>() / 200_000.0;
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
    }
}
