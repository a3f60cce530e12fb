//! What a sector says of itself.

use crate::crc::crc32c;

/// Length of a sector, bytes: the largest piece that every drive writes whole or not at all.
pub const SECTOR: usize = 512;
/// Length of what a sector holds besides its stamp, bytes.
pub const PAYLOAD: usize = 480;
/// Where the CRC lies, and how many bytes it covers.
pub(crate) const CRC_AT: usize = 508;
/// `SpV1`: a sector of another layout is not taken for one of this.
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"SpV1");

const RUN_AT: usize = PAYLOAD;
const OFFSET_AT: usize = 488;
const FILE_AT: usize = 496;
const GENERATION_AT: usize = 500;
const MAGIC_AT: usize = 504;

/// Which block this is. The stamp of a block is that of its first sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Whose it is: a number that no other run has.
    pub run: u64,
    /// Number of the file within the run.
    pub file: u32,
    /// How many writes of the run to this block there were, this one included.
    pub generation: u32,
    /// First byte, counted from the start of the file; a multiple of 512.
    pub offset: u64,
}

impl Stamp {
    /// The stamp of a sector, if it holds one and its CRC is right.
    #[must_use]
    pub fn of(sector: &[u8; SECTOR]) -> Option<Stamp> {
        let claim = Claim::of(sector);
        let right = claim.magic == MAGIC && claim.crc == crc32c(&sector[..CRC_AT]);
        right.then_some(claim.stamp)
    }

    /// That of the block's sector `index`.
    #[must_use]
    pub fn of_sector(&self, index: usize) -> Stamp {
        Stamp {
            offset: self.offset.wrapping_add((index * SECTOR) as u64),
            ..*self
        }
    }

    /// The stamp as the words that lie behind the payload, up to the CRC: three of 64 bits and one of 32.
    #[inline(always)]
    pub(crate) fn words(&self) -> ([u64; 3], u32) {
        let numbers = u64::from(self.file) | u64::from(self.generation) << 32;
        ([self.run, self.offset, numbers], MAGIC)
    }
}

/// What a sector says, right or wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) stamp: Stamp,
    pub(crate) magic: u32,
    pub(crate) crc: u32,
}

impl Claim {
    #[inline(always)]
    pub(crate) fn of(sector: &[u8; SECTOR]) -> Claim {
        Claim {
            stamp: Stamp {
                run: word(sector, RUN_AT),
                file: half(sector, FILE_AT),
                generation: half(sector, GENERATION_AT),
                offset: word(sector, OFFSET_AT),
            },
            magic: half(sector, MAGIC_AT),
            crc: half(sector, CRC_AT),
        }
    }
}

#[inline(always)]
fn word(sector: &[u8; SECTOR], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&sector[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[inline(always)]
fn half(sector: &[u8; SECTOR], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&sector[at..at + 4]);
    u32::from_le_bytes(bytes)
}
