//! Verified blocks: their layout, and the classification of blocks with wrong content.
//!
//! A block is any whole number of sectors of 512 bytes. Every sector ends with a [`Stamp`] of 32 bytes: the run it
//! belongs to, its file and first byte, the generation of that block, and the CRC-32C of all the rest of
//! the sector. So each sector can be checked alone, which the detection of torn writes needs, and a block is right when all
//! its sectors are. Integers are little-endian.
//!
//! | bytes of a sector | content |
//! |---|---|
//! | 0..480 | payload |
//! | 480..488 | run: a number that no other run has |
//! | 488..496 | first byte of this sector, counted from the start of its file |
//! | 496..500 | file: its number within the run |
//! | 500..504 | generation: 1 for the first write of the run to this block, 2 for the next ... |
//! | 504..508 | the letters `SpV1` |
//! | 508..512 | CRC-32C of bytes 0..508 |
//!
//! As the stamp comes last, the CRC of a payload can be kept ([`prepare`]) and only carried on over the stamp
//! ([`seal_prepared`]): a write costs 28 bytes of CRC a sector instead of 508.
//!
//! ```
//! use spindle_verify::{Expected, Kind, Stamp, classify, is_sealed, seal};
//!
//! let stamp = Stamp { run: 7, file: 0, generation: 3, offset: 8192 };
//! let mut block = vec![0x5a; 4096];
//! seal(&mut block, &stamp);
//! assert!(is_sealed(&block, &stamp));
//!
//! block[1000] ^= 4;
//! let fault = classify(&block, &Expected::exactly(&stamp)).expect_err("a bit is flipped");
//! assert_eq!((fault.kind, fault.sectors, fault.first), (Kind::Corrupt, 1, 1));
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod classify;
mod crc;
mod hardware;
mod portable;
mod seal;
mod stamp;
#[cfg(target_arch = "x86_64")]
mod wide;

pub use classify::{Expected, Fault, Kind, classify, classify_zeroes, is_zero};
pub use crc::crc32c;
pub use seal::{is_sealed, prepare, seal, seal_prepared};
pub use stamp::{PAYLOAD, SECTOR, Stamp};
