//! The content of a block: an incompressible payload, and in each sector a stamp with the number of its write.

pub(crate) use spindle_verify::crc32c;
use spindle_verify::{PAYLOAD, SECTOR, Stamp, seal};

/// Highest number a write can have: the stamp's generation.
pub(crate) const NUMBER_MAX: u64 = u32::MAX as u64;
/// Place of the run and the letters of the layout in a sector (`crates/verify/src/lib.rs`).
const RUN: std::ops::Range<usize> = PAYLOAD..PAYLOAD + 8;
const LETTERS: std::ops::Range<usize> = PAYLOAD + 24..PAYLOAD + 28;

/// Makes `block` the content of a worker's write `number` to `offset`, a payload being in place.
pub(crate) fn stamp(block: &mut [u8], run: u64, worker: u32, offset: u64, number: u64) {
    let stamp = Stamp {
        run,
        file: worker,
        generation: number as u32,
        offset,
    };
    seal(block, &stamp);
}

/// Fills a block with random bytes.
pub(crate) fn fill(block: &mut [u8], seed: u64) {
    let mut word = seed;
    for chunk in block.chunks_mut(8) {
        // xorshift64*: the payload has to be incompressible, no more.
        word = (word ^ (word >> 12)).max(1);
        word ^= word << 25;
        word ^= word >> 27;
        let bytes = word.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

/// The content of one sector of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sector {
    /// The write of this number, of this run and at its place.
    Here(u64),
    /// A write of this run, but of another place.
    Elsewhere,
    /// Its check sum is wrong.
    Damaged,
    /// Zeroes.
    Zero,
    /// Content of something else.
    Other,
}

/// Classifies the sector at `offset`, which belongs to `worker`.
pub(crate) fn look(sector: &[u8; SECTOR], run: u64, worker: u32, offset: u64) -> Sector {
    match Stamp::of(sector) {
        Some(stamp) if stamp.run != run => Sector::Other,
        Some(stamp) if (stamp.file, stamp.offset) != (worker, offset) => Sector::Elsewhere,
        Some(stamp) => Sector::Here(u64::from(stamp.generation)),
        None if sector.iter().all(|&byte| byte == 0) => Sector::Zero,
        None if sector[RUN] == run.to_le_bytes() || sector[LETTERS] == *b"SpV1" => Sector::Damaged,
        None => Sector::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_says_what_it_is() {
        let mut block = vec![0; 2 * SECTOR];
        fill(&mut block, 3);
        stamp(&mut block, 77, 2, 8192, 5);
        let (sectors, _) = block.as_chunks::<SECTOR>();
        assert_eq!(look(&sectors[0], 77, 2, 8192), Sector::Here(5));
        assert_eq!(look(&sectors[1], 77, 2, 8704), Sector::Here(5));
        assert_eq!(look(&sectors[1], 77, 2, 8192), Sector::Elsewhere);
        assert_eq!(look(&sectors[0], 77, 3, 8192), Sector::Elsewhere);
        assert_eq!(look(&sectors[0], 78, 2, 8192), Sector::Other);
        assert_eq!(look(&[0; SECTOR], 77, 2, 8192), Sector::Zero);
        assert_eq!(look(&[9; SECTOR], 77, 2, 8192), Sector::Other);
        for bit in 0..SECTOR * 8 {
            let mut changed = sectors[0];
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(look(&changed, 77, 2, 8192), Sector::Damaged, "bit {bit}");
        }
    }
}
