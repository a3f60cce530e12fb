//! Stamps a block, and quickly checks that a block matches its stamp.

use crate::crc;
use crate::stamp::{Claim, MAGIC, SECTOR, Stamp};

/// Stamps every sector of a block whose payload is in place. Its length is a multiple of 512; what is beyond the last
/// whole sector stays as it is.
pub fn seal(block: &mut [u8], stamp: &Stamp) {
    let sectors = block.len() / SECTOR;
    let mut at = 0;
    let mut registers = [0; 16];
    while at < sectors {
        let count = registers.len().min(sectors - at);
        let part = &mut block[at * SECTOR..(at + count) * SECTOR];
        crc::registers(part, &mut registers[..count]);
        crc::seal(part, &registers[..count], &stamp.of_sector(at));
        at += count;
    }
}

/// Computes the input of [`seal_prepared`] for each sector's payload; `into` has one entry for each sector.
pub fn prepare(block: &[u8], into: &mut [u32]) {
    crc::registers(block, into);
}

/// The same as [`seal`], for a payload that [`prepare`] has read: it is not read again.
#[inline]
pub fn seal_prepared(block: &mut [u8], prepared: &[u32], stamp: &Stamp) {
    crc::seal(block, prepared, stamp);
}

/// True if a block matches the stamp exactly, in every sector. An empty block does not.
#[must_use]
#[inline]
pub fn is_sealed(block: &[u8], stamp: &Stamp) -> bool {
    let (sectors, rest) = block.as_chunks::<SECTOR>();
    if sectors.is_empty() || !rest.is_empty() {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(wide) = crate::wide::Wide::get() {
        return wide.is_sealed(sectors, stamp);
    }
    is_sealed_word_by_word(sectors, stamp)
}

/// The same where the CPU has no wider instructions.
fn is_sealed_word_by_word(sectors: &[[u8; SECTOR]], stamp: &Stamp) -> bool {
    let mut offset = stamp.offset;
    let mut wrong = false;
    for sector in sectors {
        let claim = Claim::of(sector);
        wrong |= claim.magic != MAGIC || claim.stamp != Stamp { offset, ..*stamp };
        offset = offset.wrapping_add(SECTOR as u64);
    }
    !wrong && crc::is_intact(sectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_cpu_has_the_answer_is_the_same() {
        let stamp = Stamp {
            run: 3,
            file: 1,
            generation: 2,
            offset: 1 << 33,
        };
        for sectors in [1, 2, 4, 7, 8, 64] {
            let mut block: Vec<u8> = (0..sectors * SECTOR).map(|n| (n * 31) as u8).collect();
            seal(&mut block, &stamp);
            let mut right = 0;
            for byte in 0..=block.len() {
                if let Some(byte) = block.get_mut(byte) {
                    *byte ^= 0x10;
                }
                let answer = is_sealed(&block, &stamp);
                let words = is_sealed_word_by_word(block.as_chunks().0, &stamp);
                assert_eq!(answer, words, "{sectors} sectors, byte {byte}");
                right += usize::from(answer);
                if let Some(byte) = block.get_mut(byte) {
                    *byte ^= 0x10;
                }
            }
            assert_eq!(right, 1, "the block as it was sealed");
        }
        assert!(!is_sealed(&[], &stamp) && !is_sealed(&[0; 511], &stamp));
    }
}
