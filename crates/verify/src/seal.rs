//! Making a block what its stamp says, and the quick look whether it is.

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

/// What [`seal_prepared`] needs to know of each sector's payload; `into` has one entry for each sector.
pub fn prepare(block: &[u8], into: &mut [u32]) {
    crc::registers(block, into);
}

/// The same as [`seal`], for a payload that [`prepare`] has seen: it is not read again.
#[inline]
pub fn seal_prepared(block: &mut [u8], prepared: &[u32], stamp: &Stamp) {
    crc::seal(block, prepared, stamp);
}

/// Whether a block is exactly what the stamp says, in every sector. An empty block is not.
#[must_use]
#[inline]
pub fn is_sealed(block: &[u8], stamp: &Stamp) -> bool {
    let (sectors, rest) = block.as_chunks::<SECTOR>();
    let mut offset = stamp.offset;
    let mut wrong = sectors.is_empty() || !rest.is_empty();
    for sector in sectors {
        let claim = Claim::of(sector);
        wrong |= claim.magic != MAGIC || claim.stamp != Stamp { offset, ..*stamp };
        offset = offset.wrapping_add(SECTOR as u64);
    }
    !wrong && crc::is_intact(block)
}
