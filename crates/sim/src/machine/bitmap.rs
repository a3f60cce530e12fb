//! Sizes of md's internal write-intent bitmap (mdadm 4.2 `super1.c`: `choose_bm_space`, `add_internal_bitmap1`).

use serde::Serialize;
use spindle_array::Array;

use crate::engine::Bitmap;

const LEAST_CHUNK: u64 = 4096;
/// The superblock, and the space before it (metadata 1.2).
const BEFORE_BITMAP: u64 = 8192;
/// "For practical purpose, 64Meg is a good default chunk size for internal bitmaps."
const DEFAULT_CHUNK: u64 = 64 << 20;

/// A write-intent bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BitmapSetup {
    /// Bytes of the array, or of each member of one with parity, that a bit stands for; `None` for mdadm's choice.
    pub chunk: Option<u64>,
}

impl BitmapSetup {
    /// Bytes that a bit stands for.
    #[must_use]
    pub fn chunk_of(self, array: &Array) -> u64 {
        self.chunk
            .unwrap_or_else(|| least_chunk(array, 0).max(DEFAULT_CHUNK))
    }
}

/// Bytes for which there are bits: addresses of the array, or of a member if there is parity (`resync_max_sectors`).
pub(crate) fn covered(array: &Array) -> u64 {
    match array.level().parities() {
        0 => array.capacity(),
        _ => array.component(),
    }
}

/// The least chunk with which the bits have room before the data. `data_offset`: a bitmap that is added later has all the
/// room there is, of which the simulator has pages for a part.
pub(crate) fn least_chunk(array: &Array, data_offset: u64) -> u64 {
    let room = data_offset
        .saturating_sub(BEFORE_BITMAP)
        .min(Bitmap::MOST_BYTES);
    let most_bits = Bitmap::bits_in(space(array.component()).max(room));
    let mut chunk = LEAST_CHUNK;
    let mut bits = covered(array) / chunk + 1;
    while bits > most_bits {
        chunk *= 2;
        bits = bits.div_ceil(2);
    }
    chunk
}

/// Bytes that mdadm leaves for the bitmap on a member.
fn space(member: u64) -> u64 {
    const GIB: u64 = 1 << 30;
    if member >= 200 * GIB + (64 << 10) {
        128 << 10
    } else if member > 8 * GIB + (4 << 10) {
        64 << 10
    } else {
        4 << 10
    }
}

#[cfg(test)]
mod tests {
    use spindle_array::{ArrayConfig, Level};

    use super::*;

    fn least(level: Level, members: usize, bytes: u64) -> u64 {
        least_chunk(
            &Array::new(ArrayConfig::new(level, vec![bytes; members])).unwrap(),
            0,
        )
    }

    #[test]
    fn the_least_chunk_is_that_of_mdadm() {
        // 4 KiB, 64 KiB and 128 KiB of room: 30720, 522240 and 1046528 bits.
        assert_eq!(least(Level::Raid1, 2, 512 << 20), 32 << 10);
        assert_eq!(least(Level::Raid1, 2, 100 << 30), 256 << 10);
        assert_eq!(least(Level::Raid1, 2, 4 << 40), 8 << 20);
        // Each of its members has 4 TiB, and there are bits for those only.
        assert_eq!(least(Level::Raid5, 4, 4 << 40), 8 << 20);
        assert_eq!(least(Level::Raid10, 4, 4 << 40), 16 << 20);
        let array = Array::new(ArrayConfig::new(Level::Raid1, vec![4 << 40; 2])).unwrap();
        assert_eq!(least_chunk(&array, 128 << 20), 4 << 20);
    }

    #[test]
    fn a_bit_stands_for_64_mib_unless_there_are_too_many() {
        let chunk = |bytes| {
            let array = Array::new(ArrayConfig::new(Level::Raid1, vec![bytes; 2])).unwrap();
            BitmapSetup { chunk: None }.chunk_of(&array)
        };
        assert_eq!(chunk(512 << 20), 64 << 20);
        assert_eq!(chunk(16 << 40), 64 << 20);
        assert_eq!(chunk(100 << 40), 128 << 20);
    }
}
