//! The check of a block by carry-less multiplication of 64 bytes at a time: AVX-512 with VPCLMULQDQ.
//!
//! A CRC is a remainder of polynomials over GF(2), so 16 bytes that are `d` bits before the end of a sector count as much
//! as their product with x^d mod P at the end. Every 16 bytes of a sector are multiplied by a factor of their own, without
//! waiting for any other, all products are added up, and the instruction of SSE 4.2 takes the remainder of the sum (after
//! Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009, which multiplies one after
//! another). The CRC itself is taken along: what has its right CRC behind it has the same remainder whatever it is.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm_crc32_u64, _mm_cvtsi128_si64, _mm_unpackhi_epi64, _mm_xor_si128,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_xor_si256, _mm512_add_epi64,
    _mm512_castsi512_si256, _mm512_clmulepi64_epi128, _mm512_extracti64x4_epi64,
    _mm512_loadu_si512, _mm512_mask_cmpneq_epi32_mask, _mm512_set_epi64, _mm512_setzero_si512,
    _mm512_ternarylogic_epi64,
};

use crate::portable;
use crate::stamp::{SECTOR, Stamp};

/// Bytes of a vector.
const VECTOR: usize = 64;
/// Vectors of a sector.
const VECTORS: usize = SECTOR / VECTOR;
/// 32-bit words of the last vector that the stamp fills but for the CRC, which is the sixteenth.
const STAMPED: u16 = 0x7f00;
/// Exclusive or of three, as a table of truth.
const ADD: i32 = 0x96;

/// For the 16 bytes at each place of a sector, the factors of their first and second half.
static FACTORS: [[u64; VECTOR / 8]; VECTORS] = factors();

/// The remainder of a sector that has its right CRC at its end, counted from a register of 0.
const RIGHT: u32 = right();

/// A reflected product is one place too high: x^(d - 1) moves by d bits. The first half is 64 bits before the second.
const fn factors() -> [[u64; VECTOR / 8]; VECTORS] {
    let mut factors = [[0; VECTOR / 8]; VECTORS];
    // x^-1: what becomes 1 when it is multiplied by x.
    let mut power = (0x8000_0000 ^ portable::POLYNOMIAL) << 1 | 1;
    let mut half = SECTOR / 8;
    while half > 0 {
        half -= 1;
        factors[half / 8][half % 8] = (power as u64) << 32;
        power = portable::times_x(power, 64);
    }
    factors
}

const fn right() -> u32 {
    // A register of ones through a sector of zeroes, and the remainder of what has its CRC behind it (whose bits are
    // inverted): 32 ones moved by 32.
    portable::times_x(!0, 8 * SECTOR as u32) ^ portable::times_x(!0, 32)
}

/// The instructions, where there are all of them: only [`Wide::get`] makes one, after asking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide(());

impl Wide {
    /// Them, if this CPU has them.
    #[inline(always)]
    pub(crate) fn get() -> Option<Wide> {
        let has = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("vpclmulqdq")
            && std::arch::is_x86_feature_detected!("sse4.2");
        has.then_some(Wide(()))
    }

    /// True if every sector has its right CRC and matches the stamp, which is the first one's.
    #[inline]
    pub(crate) fn is_sealed(self, sectors: &[[u8; SECTOR]], stamp: &Stamp) -> bool {
        // SAFETY: `self` is the proof that the CPU has the features.
        unsafe { is_sealed(sectors, stamp) }
    }
}

#[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
#[allow(clippy::needless_range_loop)] // as in `crc`: adapters are not always inlined
fn is_sealed(sectors: &[[u8; SECTOR]], stamp: &Stamp) -> bool {
    let ([run, offset, numbers], magic) = stamp.words();
    let mut claim = _mm512_set_epi64(
        i64::from(magic),
        numbers as i64,
        offset as i64,
        run as i64,
        0,
        0,
        0,
        0,
    );
    let next = _mm512_set_epi64(0, 0, SECTOR as i64, 0, 0, 0, 0, 0);
    let mut wrong = 0;
    for sector in sectors {
        let vectors = sector.as_chunks::<VECTOR>().0;
        let mut sum = _mm512_setzero_si512();
        for at in 0..VECTORS {
            let (vector, factors) = (load(&vectors[at]), load_words(&FACTORS[at]));
            let first = _mm512_clmulepi64_epi128::<0x00>(vector, factors);
            let second = _mm512_clmulepi64_epi128::<0x11>(vector, factors);
            sum = _mm512_ternarylogic_epi64::<ADD>(sum, first, second);
        }
        wrong |= remainder(sum) ^ RIGHT;
        let last = load(&vectors[VECTORS - 1]);
        wrong |= u32::from(_mm512_mask_cmpneq_epi32_mask(STAMPED, last, claim));
        claim = _mm512_add_epi64(claim, next);
    }
    wrong == 0
}

/// The sum of the four parts of 16 bytes.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
fn remainder(sum: __m512i) -> u32 {
    let half = _mm256_xor_si256(
        _mm512_castsi512_si256(sum),
        _mm512_extracti64x4_epi64::<1>(sum),
    );
    let quarter = _mm_xor_si128(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256::<1>(half),
    );
    let first = _mm_cvtsi128_si64(quarter) as u64;
    let second = _mm_cvtsi128_si64(_mm_unpackhi_epi64(quarter, quarter)) as u64;
    _mm_crc32_u64(_mm_crc32_u64(0, first), second) as u32
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; VECTOR]) -> __m512i {
    // SAFETY: 64 bytes are there to be read, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_words(words: &[u64; VECTOR / 8]) -> __m512i {
    // SAFETY: as above.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crc::{crc_of, seal_with_tables};
    use crate::portable::Portable;
    use crate::stamp::CRC_AT;

    const STAMP: Stamp = Stamp {
        run: 0xfedc_ba98_7654_3210,
        file: 0x8000_0001,
        generation: 77,
        offset: u64::MAX - 1023, // it begins anew within the block
    };

    /// Blocks of any content, right by the tables.
    fn block(sectors: usize, seed: u64) -> Vec<u8> {
        let mut word = seed;
        let mut block: Vec<u8> = (0..sectors * SECTOR)
            .map(|_| {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (word >> 56) as u8
            })
            .collect();
        seal_with_tables(&mut block, &STAMP);
        block
    }

    fn is_right(wide: Wide, block: &[u8], stamp: &Stamp) -> bool {
        wide.is_sealed(block.as_chunks::<SECTOR>().0, stamp)
    }

    #[test]
    fn what_the_tables_sealed_is_right_at_any_address() {
        let Some(wide) = Wide::get() else {
            return; // this CPU is not asked
        };
        for sectors in (1..20).chain([128]) {
            for shift in 0..VECTOR {
                let mut room = vec![0xa5; shift];
                room.extend(block(sectors, (sectors * 100 + shift) as u64));
                assert!(is_right(wide, &room[shift..], &STAMP), "{sectors} {shift}");
            }
        }
        for byte in [0, 0xff] {
            let mut block = vec![byte; 4096];
            seal_with_tables(&mut block, &STAMP);
            assert!(is_right(wide, &block, &STAMP));
        }
    }

    #[test]
    fn every_single_bit_counts() {
        let Some(wide) = Wide::get() else {
            return;
        };
        let mut block = block(3, 5);
        for bit in 0..8 * block.len() {
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_right(wide, &block, &STAMP), "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(is_right(wide, &block, &STAMP));
    }

    #[test]
    fn a_crc_is_right_if_the_tables_say_so() {
        let Some(wide) = Wide::get() else {
            return;
        };
        for seed in 0..2000 {
            let mut block = block(1, seed);
            // Content that was changed at will, but for the stamp, under a CRC that is right, or right but for some bits.
            let (at, with) = (seed as usize * 7 % 480, seed as u8);
            block[at] ^= with;
            let crc = crc_of(Portable, &block[..CRC_AT]);
            for wrong in [0, 1 << (seed % 32), seed as u32] {
                block[CRC_AT..].copy_from_slice(&(crc ^ wrong).to_le_bytes());
                assert_eq!(is_right(wide, &block, &STAMP), wrong == 0, "{seed} {wrong}");
            }
        }
    }

    #[test]
    fn a_stamp_that_differs_in_anything_is_not_the_one_asked_for() {
        let Some(wide) = Wide::get() else {
            return;
        };
        let block = block(8, 1);
        for bit in 0..64 {
            let stamp = Stamp {
                run: STAMP.run ^ 1 << bit,
                ..STAMP
            };
            assert!(!is_right(wide, &block, &stamp));
            let stamp = Stamp {
                offset: STAMP.offset ^ 1 << bit,
                ..STAMP
            };
            assert!(!is_right(wide, &block, &stamp));
        }
        for bit in 0..32 {
            let stamp = Stamp {
                file: STAMP.file ^ 1 << bit,
                ..STAMP
            };
            assert!(!is_right(wide, &block, &stamp));
            let stamp = Stamp {
                generation: STAMP.generation ^ 1 << bit,
                ..STAMP
            };
            assert!(!is_right(wide, &block, &stamp));
        }
        // Another layout, under a CRC that is right.
        for sector in 0..8 {
            let mut other = block.clone();
            let bytes = &mut other[sector * SECTOR..(sector + 1) * SECTOR];
            bytes[507] ^= 1;
            let crc = crc_of(Portable, &bytes[..CRC_AT]);
            bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
            assert!(!is_right(wide, &other, &STAMP));
        }
    }
}
