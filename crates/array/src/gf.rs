//! GF(2^8) with the polynomial 0x11d and generator 2, and P and Q over blocks of bytes (H. P. Anvin, "The
//! mathematics of RAID-6"; `lib/raid6/algos.c`).
//!
//! The kernels are plain loops over arrays of bytes that the compiler turns into vector code (SSE2 on
//! x86-64, NEON on AArch64): P and Q run at memory speed without any `unsafe`.

/// Low byte of the polynomial x^8 + x^4 + x^3 + x^2 + 1.
const POLYNOMIAL: u8 = 0x1d;
/// Bytes that one round of P and Q takes: as many as fit the vector registers, so that the sums stay in registers.
const LANE: usize = 128;

const TABLES: ([u8; 256], [u8; 256]) = {
    let (mut exp, mut log) = ([0; 256], [0; 256]);
    let (mut power, mut value) = (0, 1u8);
    while power < 255 {
        exp[power] = value;
        log[value as usize] = power as u8;
        value = times2(value);
        power += 1;
    }
    exp[255] = 1;
    (exp, log)
};

const fn times2(value: u8) -> u8 {
    // The sign bit spread over the byte selects the polynomial: vectorises to compare, and, xor.
    (value << 1) ^ (((value as i8) >> 7) as u8 & POLYNOMIAL)
}

/// The generator 2 to the power `power`.
pub fn power_of_two(power: u32) -> u8 {
    TABLES.0[(power % 255) as usize]
}

/// Product of two elements.
pub fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let sum = u32::from(TABLES.1[a as usize]) + u32::from(TABLES.1[b as usize]);
    power_of_two(sum)
}

/// The element that gives 1 multiplied by `a`; 0 for 0, which has none.
pub fn inverse(a: u8) -> u8 {
    if a == 0 {
        0
    } else {
        power_of_two(255 - u32::from(TABLES.1[a as usize]))
    }
}

/// `target ^= source`, as far as the shorter goes.
pub fn xor_into(target: &mut [u8], source: &[u8]) {
    for (to, from) in target.iter_mut().zip(source) {
        *to ^= *from;
    }
}

/// `target ^= source * factor`, as far as the shorter goes: the effect of a changed data block on Q with
/// `factor` = 2^exponent.
pub fn multiply_xor_into(target: &mut [u8], source: &[u8], factor: u8) {
    let masks: [u8; 8] = std::array::from_fn(|bit| 0u8.wrapping_sub(factor >> bit & 1));
    for (to, from) in target.iter_mut().zip(source) {
        let mut value = *from;
        let mut product = 0;
        for mask in masks {
            product ^= value & mask;
            value = times2(value);
        }
        *to ^= product;
    }
}

/// P and Q of data blocks. `slots[i]` is the block with 2^i in Q; `None` counts as zeros. Blocks and
/// results are taken as long as the shortest of them.
pub fn syndrome(slots: &[Option<&[u8]>], p: &mut [u8], q: &mut [u8]) {
    let blocks = slots.iter().flatten().map(|block| block.len());
    let len = blocks.fold(p.len().min(q.len()), usize::min);
    let whole = len - len % LANE;
    for at in (0..whole).step_by(LANE) {
        // Horner's rule: Q = ((d_n * 2 + d_n-1) * 2 + ...) + d_0.
        let (mut sum, mut horner) = ([0; LANE], [0; LANE]);
        for slot in slots.iter().rev() {
            for value in &mut horner {
                *value = times2(*value);
            }
            if let Some(lane) = slot.and_then(|block| block[at..].first_chunk::<LANE>()) {
                for ((sum, horner), byte) in sum.iter_mut().zip(&mut horner).zip(lane) {
                    *sum ^= *byte;
                    *horner ^= *byte;
                }
            }
        }
        p[at..at + LANE].copy_from_slice(&sum);
        q[at..at + LANE].copy_from_slice(&horner);
    }
    for at in whole..len {
        let (mut sum, mut horner) = (0, 0);
        for slot in slots.iter().rev() {
            let byte = slot.map_or(0, |block| block[at]);
            sum ^= byte;
            horner = times2(horner) ^ byte;
        }
        (p[at], q[at]) = (sum, horner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication as polynomials, bit by bit.
    fn slow_multiply(mut a: u8, mut b: u8) -> u8 {
        let mut product = 0;
        while b != 0 {
            if b & 1 == 1 {
                product ^= a;
            }
            let carry = a & 0x80 != 0;
            a <<= 1;
            if carry {
                a ^= 0x1d;
            }
            b >>= 1;
        }
        product
    }

    #[test]
    fn multiplication_is_that_of_polynomials_modulo_0x11d() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), slow_multiply(a, b));
            }
        }
    }

    #[test]
    fn every_element_but_zero_has_an_inverse() {
        for a in 1..=255 {
            assert_eq!(multiply(a, inverse(a)), 1);
        }
    }

    #[test]
    fn blocks_of_any_length_are_treated_byte_by_byte_alike() {
        for len in [0, 1, 127, 128, 129, 4096, 5000] {
            let block = |seed: u32| -> Vec<u8> {
                (0..len as u32)
                    .map(|i| (i.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 13) as u8)
                    .collect()
            };
            let blocks: Vec<Vec<u8>> = (0..7).map(block).collect();
            let slots: Vec<Option<&[u8]>> = blocks
                .iter()
                .enumerate()
                .map(|(at, block)| (at != 3).then_some(block.as_slice()))
                .collect();
            let (mut p, mut q) = (vec![0; len], vec![0; len]);
            syndrome(&slots, &mut p, &mut q);
            let (mut slow_p, mut slow_q) = (vec![0; len], vec![0; len]);
            for (power, slot) in (0..).zip(&slots) {
                for (at, byte) in slot.iter().flat_map(|block| block.iter().enumerate()) {
                    slow_p[at] ^= byte;
                    slow_q[at] ^= slow_multiply(*byte, power_of_two(power));
                }
            }
            assert_eq!((&p, &q), (&slow_p, &slow_q));
            let mut target = block(9);
            multiply_xor_into(&mut target, &blocks[0], 0xa7);
            for (at, byte) in target.iter().enumerate() {
                assert_eq!(*byte, block(9)[at] ^ slow_multiply(blocks[0][at], 0xa7));
            }
        }
    }
}
