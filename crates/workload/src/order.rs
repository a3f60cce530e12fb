//! All of 0..count in random order, without a table.

use crate::rng::mix;

/// Luby and Rackoff (1988) need 4 rounds with functions that are as good as random; these are not quite.
const ROUNDS: usize = 8;

/// A bijection of `0..count` whose values in order resemble a random permutation.
///
/// A Feistel network over the two halves of b-bit words (one bit longer the one than the other if b is odd), each
/// round the high half of a product with a keyed odd number; a result outside the range is mapped again until it is
/// inside (cycle walking, Black and Rogaway 2002), fewer than two rounds on average.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    count: u64,
    low_bits: u32,
    high_mask: u64,
    low_mask: u64,
    keys: [u64; ROUNDS],
}

impl Order {
    /// An order of `0..count` (`count` at least 1) chosen by the seed.
    pub(crate) fn new(count: u64, seed: u64) -> Order {
        let bits = (64 - count.saturating_sub(1).leading_zeros()).max(2);
        let low_bits = bits / 2;
        let mask = |bits: u32| (1_u64 << bits) - 1;
        Order {
            count,
            low_bits,
            high_mask: mask(bits - low_bits),
            low_mask: mask(low_bits),
            keys: std::array::from_fn(|round| mix(seed ^ mix(round as u64)) | 1),
        }
    }

    /// The number at this place of the order; `index` is below `count`.
    #[inline]
    pub(crate) fn at(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            let (mut high, mut low) = (x >> self.low_bits, x & self.low_mask);
            for pair in self.keys.chunks_exact(2) {
                high ^= round(low, pair[0]) & self.high_mask;
                low ^= round(high, pair[1]) & self.low_mask;
            }
            x = high << self.low_bits | low;
            if x < self.count {
                return x;
            }
        }
    }
}

/// A word of which the low half is as good as random.
#[inline]
fn round(half: u64, key: u64) -> u64 {
    let product = half.wrapping_add(key).wrapping_mul(key);
    (product ^ (product >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for count in [1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000, 4097, 70_000] {
            for seed in 0..4 {
                let order = Order::new(count, seed);
                let mut seen: Vec<u64> = (0..count).map(|index| order.at(index)).collect();
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..count), "{count} {seed}");
            }
        }
    }

    #[test]
    fn every_order_of_three_is_as_likely() {
        let mut seen = std::collections::BTreeMap::new();
        for seed in 0..60_000 {
            let order = Order::new(3, mix(seed));
            *seen
                .entry([0, 1, 2].map(|index| order.at(index)))
                .or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(
            seen.values().all(|count| (9_000..11_000).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let order = Order::new(u64::MAX, 1);
        assert_ne!(order.at(0), order.at(u64::MAX - 1));
    }
}
