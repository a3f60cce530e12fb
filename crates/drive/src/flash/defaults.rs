//! Values of a flash drive whose data sheet is silent, with the range of drives that are sold.

use super::Collection;

/// Bytes of a unit. Drives of 4 KiB are the rule; large ones of four bits a cell have 8 KiB to 64 KiB.
pub(crate) const MAPPING: u64 = 4096;
/// Space that the host does not see: 7 % are the difference of GiB and GB. Drives for reading have 7 %, those for mixed
/// use 20 to 28 %, those for writing up to 100 %.
pub(crate) const SPARE: f64 = 0.07;
/// Drives for reading to drives for mixed use.
pub(crate) const SPARE_RANGE: (&str, &str) = ("7%", "28%");
/// Pages that a die erases at once; 256 to 4096.
pub(crate) const PAGES_PER_BLOCK: u32 = 1024;
/// See [`PAGES_PER_BLOCK`].
pub(crate) const PAGES_PER_BLOCK_RANGE: (&str, &str) = ("256", "4096");
/// Erasing a block; 1.5 ms (one bit in a cell) to 15 ms (four).
pub(crate) const ERASE_BLOCK_NS: u64 = 3_500_000;
/// See [`ERASE_BLOCK_NS`].
pub(crate) const ERASE_BLOCK_RANGE: (&str, &str) = ("1.5ms", "15ms");
/// Choice of the blocks to be collected.
pub(crate) const COLLECTION: Collection = Collection::Greedy;
/// Random blocks of which the best is collected, with `collection = "choices"`.
pub(crate) const CHOICES: u32 = 8;
