//! The stamp of a sector.

use crate::crc::crc32c;

/// Length of a sector, bytes: the largest piece that every drive writes whole or not at all.
pub const SECTOR: usize = 512;
/// Length of a sector's content besides its stamp, bytes.
pub const PAYLOAD: usize = 480;
/// Offset of the CRC, and the number of bytes that it covers.
pub(crate) const CRC_AT: usize = 508;
/// `SpV1`: a sector of another layout is not taken for one of this.
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"SpV1");

const RUN_AT: usize = PAYLOAD;
const OFFSET_AT: usize = 488;
/// File and generation are the halves of a word, and so are magic and CRC.
const FILE_AT: usize = 496;
const MAGIC_AT: usize = 504;

/// The identity of a block. The stamp of a block is that of its first sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Number of the run, which no other run has.
    pub run: u64,
    /// Number of the file within the run.
    pub file: u32,
    /// Number of writes of the run to this block, this one included.
    pub generation: u32,
    /// First byte, counted from the start of the file; a multiple of 512.
    pub offset: u64,
}

impl Stamp {
    /// The stamp of a sector, if it has one and its CRC is right.
    #[must_use]
    pub fn of(sector: &[u8; SECTOR]) -> Option<Stamp> {
        let claim = Claim::of(sector);
        let right = claim.magic == MAGIC && claim.crc == crc32c(&sector[..CRC_AT]);
        right.then_some(claim.stamp)
    }

    /// The stamp of the block's sector `index`.
    #[must_use]
    pub fn of_sector(&self, index: usize) -> Stamp {
        Stamp {
            offset: self.offset.wrapping_add((index * SECTOR) as u64),
            ..*self
        }
    }

    /// The stamp as the words after the payload, up to the CRC: three of 64 bits and one of 32.
    #[inline(always)]
    pub(crate) fn words(&self) -> ([u64; 3], u32) {
        let numbers = u64::from(self.file) | u64::from(self.generation) << 32;
        ([self.run, self.offset, numbers], MAGIC)
    }
}

/// The stamp in a sector, right or wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) stamp: Stamp,
    pub(crate) magic: u32,
    pub(crate) crc: u32,
}

impl Claim {
    #[inline(always)]
    pub(crate) fn of(sector: &[u8; SECTOR]) -> Claim {
        let numbers = word(sector, FILE_AT / 8);
        let seal = word(sector, MAGIC_AT / 8);
        Claim {
            stamp: Stamp {
                run: word(sector, RUN_AT / 8),
                file: numbers as u32,
                generation: (numbers >> 32) as u32,
                offset: word(sector, OFFSET_AT / 8),
            },
            magic: seal as u32,
            crc: (seal >> 32) as u32,
        }
    }
}

/// The 64-bit word with a number.
#[inline(always)]
pub(crate) fn word(sector: &[u8; SECTOR], index: usize) -> u64 {
    u64::from_le_bytes(sector.as_chunks::<8>().0[index])
}
