//! The code of one stripe: parity of its data, and lost blocks from what is left
//! (`lib/raid6/recov.c`, `crypto/async_tx/async_raid6_recov.c`).

use crate::array::{Array, Map};
use crate::error::ArrayError;
use crate::gf::{inverse, multiply, multiply_xor_into, power_of_two, syndrome, xor_into};

/// The roles of a stripe's members for the parity arithmetic. Members count within their group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeCode {
    /// Member with P.
    pub p: usize,
    /// Member with Q.
    pub q: Option<usize>,
    /// Power of the generator with which each member's block is in Q; without meaning for P and Q.
    pub exponents: Vec<u16>,
}

impl Array {
    /// The code of stripe number `stripe` (of a group); `None` for levels without parity.
    pub fn stripe_code(&self, stripe: u64) -> Option<StripeCode> {
        let map = match &self.map {
            Map::Parity(map) => map,
            Map::Nested(map) => map.first_group(),
            _ => return None,
        };
        let (p, q) = map.parity_members(stripe);
        Some(StripeCode {
            p: p as usize,
            q: q.map(|q| q as usize),
            exponents: map.exponents(stripe).to_vec(),
        })
    }
}

impl StripeCode {
    /// Computes P, and Q if there is one, of the data. `blocks` has one block per member, all of one
    /// length.
    pub fn encode(&self, blocks: &mut [Vec<u8>]) -> Result<(), ArrayError> {
        let len = self.check(blocks)?;
        let (p, q) = self.parity_without(blocks, &[], len);
        self.store(blocks, p, q, |_| true);
        Ok(())
    }

    /// Computes the blocks of the `lost` members, whatever they hold, from all others.
    pub fn recover(&self, blocks: &mut [Vec<u8>], lost: &[usize]) -> Result<(), ArrayError> {
        let len = self.check(blocks)?;
        let mut lost = lost.to_vec();
        lost.sort_unstable();
        lost.dedup();
        let parities = 1 + usize::from(self.q.is_some());
        if lost.len() > parities {
            return Err(ArrayError::StripeLost {
                missing: lost.len() as u32,
                parities: parities as u32,
            });
        }
        if lost.iter().any(|member| *member >= blocks.len()) {
            return Err(ArrayError::Blocks(
                "a lost member that the stripe does not have",
            ));
        }
        let data: Vec<usize> = lost
            .iter()
            .copied()
            .filter(|member| *member != self.p && Some(*member) != self.q)
            .collect();
        let (mut p, mut q) = self.parity_without(blocks, &data, len);
        // The share of the lost data in P and Q.
        xor_into(&mut p, &blocks[self.p]);
        if let Some(member) = self.q {
            xor_into(&mut q, &blocks[member]);
        }
        match data.as_slice() {
            [] => {}
            [one] if !lost.contains(&self.p) => blocks[*one] = p,
            [one] => blocks[*one] = scaled(&q, inverse(self.factor(*one))),
            [first, second, ..] => {
                // Solve  P = x + y,  Q = 2^a x + 2^b y.
                let (a, b) = (self.factor(*first), self.factor(*second));
                let divisor = inverse(a ^ b);
                let mut x = scaled(&q, divisor);
                multiply_xor_into(&mut x, &p, multiply(b, divisor));
                xor_into(&mut p, &x);
                blocks[*first] = x;
                blocks[*second] = p;
            }
        }
        let (p, q) = self.parity_without(blocks, &[], len);
        self.store(blocks, p, q, |member| lost.contains(&member));
        Ok(())
    }

    fn factor(&self, member: usize) -> u8 {
        power_of_two(u32::from(self.exponents[member]))
    }

    fn check(&self, blocks: &[Vec<u8>]) -> Result<usize, ArrayError> {
        if blocks.len() != self.exponents.len() {
            return Err(ArrayError::Blocks("not one block for each member"));
        }
        let len = blocks[0].len();
        if blocks.iter().any(|block| block.len() != len) {
            return Err(ArrayError::Blocks("blocks of different lengths"));
        }
        Ok(len)
    }

    /// P and Q with the blocks of `without` taken as zeros.
    fn parity_without(
        &self,
        blocks: &[Vec<u8>],
        without: &[usize],
        len: usize,
    ) -> (Vec<u8>, Vec<u8>) {
        let highest = self.exponents.iter().copied().max().unwrap_or(0);
        let mut slots: Vec<Option<&[u8]>> = vec![None; usize::from(highest) + 1];
        let (mut p, mut q) = (vec![0; len], vec![0; len]);
        let data = (0..blocks.len())
            .filter(|at| *at != self.p && Some(*at) != self.q && !without.contains(at));
        if self.q.is_none() {
            data.for_each(|at| xor_into(&mut p, &blocks[at]));
        } else {
            data.for_each(|at| slots[usize::from(self.exponents[at])] = Some(&blocks[at]));
            syndrome(&slots, &mut p, &mut q);
        }
        (p, q)
    }

    fn store(&self, blocks: &mut [Vec<u8>], p: Vec<u8>, q: Vec<u8>, which: impl Fn(usize) -> bool) {
        if which(self.p) {
            blocks[self.p] = p;
        }
        if let Some(member) = self.q.filter(|member| which(*member)) {
            blocks[member] = q;
        }
    }
}

fn scaled(block: &[u8], factor: u8) -> Vec<u8> {
    let mut product = vec![0; block.len()];
    multiply_xor_into(&mut product, block, factor);
    product
}
