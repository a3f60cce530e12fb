//! Weighted choice in constant time.

use crate::rng::Rng;

/// Alias table (Walker 1977, in Vose's construction of 1991): one random word, one look-up.
#[derive(Debug, Clone)]
pub(crate) struct AliasTable {
    slots: Box<[Slot]>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Chance of keeping this slot, scaled to 2^64.
    keep: u64,
    /// The index that is taken otherwise.
    other: u32,
}

impl AliasTable {
    /// A table over `weights`; they are finite, not negative, and not all 0.
    pub(crate) fn new(weights: &[f64]) -> AliasTable {
        let scale = weights.len() as f64 / weights.iter().sum::<f64>();
        let mut share: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let mut slots: Vec<Slot> = (0..share.len())
            .map(|index| Slot {
                keep: u64::MAX,
                other: index as u32,
            })
            .collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..share.len()).partition(|&index| share[index] < 1.0);
        while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
            slots[poor] = Slot {
                keep: (share[poor] * TWO_64) as u64,
                other: rich as u32,
            };
            share[rich] -= 1.0 - share[poor];
            if share[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        AliasTable {
            slots: slots.into_boxed_slice(),
        }
    }

    /// Index of the choice.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> usize {
        // The high half of the product selects the slot, the low half is uniform within it.
        let product = u128::from(rng.word()) * self.slots.len() as u128;
        let index = (product >> 64) as usize;
        let slot = self.slots[index];
        if (product as u64) < slot.keep {
            index
        } else {
            slot.other as usize
        }
    }
}

const TWO_64: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_as_often_as_their_weights_say() {
        let weights = [5.0, 0.0, 1.0, 14.0, 0.25, 3.75, 0.0, 8.0];
        let table = AliasTable::new(&weights);
        let mut rng = Rng::new(5);
        let mut seen = [0_u32; 8];
        for _ in 0..320_000 {
            seen[table.draw(&mut rng)] += 1;
        }
        for (count, weight) in seen.iter().zip(weights) {
            let expected = weight * 10_000.0;
            let sigma = (expected * (1.0 - weight / 32.0)).sqrt();
            assert!(
                (f64::from(*count) - expected).abs() <= 4.5 * sigma,
                "{seen:?}"
            );
        }
    }

    #[test]
    fn one_choice_is_always_taken() {
        let table = AliasTable::new(&[0.3]);
        let mut rng = Rng::new(5);
        assert!((0..1000).all(|_| table.draw(&mut rng) == 0));
    }
}
