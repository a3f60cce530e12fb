//! CRC-32C (Castagnoli; RFC 3720, appendix B.4) of bytes, and of the sectors of a block side by side.
//!
//! The instruction takes 8 bytes a cycle but gives its answer after three: one sector alone would wait two cycles of
//! three. Each sector has a CRC of its own, so four of them are taken in turns and nothing has to be joined afterwards.
//! (Reads are checked three times as fast where the CPU has AVX-512: see `wide`.)

use crate::hardware;
use crate::portable::Portable;
use crate::stamp::{CRC_AT, Claim, MAGIC, PAYLOAD, SECTOR, Stamp, word};

/// A register with nothing in it yet.
pub(crate) const START: u32 = !0;
/// Sectors that are taken in turns.
const LANES: usize = 4;

/// One way to carry a CRC register on.
pub(crate) trait Step: Copy {
    fn word(self, register: u32, word: u64) -> u32;
    fn half(self, register: u32, half: u32) -> u32;
    fn byte(self, register: u32, byte: u8) -> u32;
}

/// CRC-32C of some bytes.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    match hardware::Instruction::get() {
        Some(instruction) => instruction.crc_of(bytes),
        None => crc_of(Portable, bytes),
    }
}

/// True if every sector's CRC is that of its content.
#[inline]
pub(crate) fn is_intact(sectors: &[[u8; SECTOR]]) -> bool {
    match hardware::Instruction::get() {
        Some(instruction) => instruction.is_intact(sectors),
        None => intact(Portable, sectors),
    }
}

/// Registers after the payload of each sector.
pub(crate) fn registers(block: &[u8], into: &mut [u32]) {
    for (register, sector) in into.iter_mut().zip(block.as_chunks::<SECTOR>().0) {
        *register = !crc32c(&sector[..PAYLOAD]);
    }
}

/// Stamps each sector, given its register after the payload.
#[inline]
pub(crate) fn seal(block: &mut [u8], registers: &[u32], stamp: &Stamp) {
    match hardware::Instruction::get() {
        Some(instruction) => instruction.seal(block, registers, stamp),
        None => stamp_all(Portable, block, registers, stamp),
    }
}

#[inline(always)]
pub(crate) fn crc_of(step: impl Step, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut register = START;
    for word in words {
        register = step.word(register, u64::from_le_bytes(*word));
    }
    for byte in rest {
        register = step.byte(register, *byte);
    }
    !register
}

#[inline(always)]
pub(crate) fn intact(step: impl Step, sectors: &[[u8; SECTOR]]) -> bool {
    let (groups, rest) = sectors.as_chunks::<LANES>();
    let mut wrong = 0;
    for group in groups {
        wrong |= difference(step, group);
    }
    for sector in rest {
        wrong |= difference(step, std::array::from_ref(sector));
    }
    wrong == 0
}

/// Not 0 if the CRC of one of the sectors is not the one it carries.
// Indices instead of iterators: adapters are not always inlined into a function with more CPU features than their own.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn difference<const N: usize>(step: impl Step, sectors: &[[u8; SECTOR]; N]) -> u32 {
    let mut registers = [START; N];
    for at in 0..CRC_AT / 8 {
        for lane in 0..N {
            registers[lane] = step.word(registers[lane], word(&sectors[lane], at));
        }
    }
    let mut wrong = 0;
    for lane in 0..N {
        let claim = Claim::of(&sectors[lane]);
        wrong |= !step.half(registers[lane], claim.magic) ^ claim.crc;
    }
    wrong
}

#[allow(clippy::needless_range_loop)]
#[inline(always)]
pub(crate) fn stamp_all(step: impl Step, block: &mut [u8], registers: &[u32], stamp: &Stamp) {
    let ([run, offset, numbers], magic) = stamp.words();
    let mut offset = offset;
    let sectors = block.as_chunks_mut::<SECTOR>().0;
    let count = sectors.len().min(registers.len());
    let (sectors, registers) = (&mut sectors[..count], &registers[..count]);
    for index in 0..count {
        let mut register = step.word(registers[index], run);
        register = step.word(register, offset);
        register = step.word(register, numbers);
        let crc = !step.half(register, magic);
        let words = sectors[index].as_chunks_mut::<8>().0;
        words[60] = run.to_le_bytes();
        words[61] = offset.to_le_bytes();
        words[62] = numbers.to_le_bytes();
        words[63] = (u64::from(magic) | u64::from(crc) << 32).to_le_bytes();
        offset = offset.wrapping_add(SECTOR as u64);
    }
}

/// As by a CPU without any instruction.
#[cfg(test)]
pub(crate) fn seal_with_tables(block: &mut [u8], stamp: &Stamp) {
    let sectors = block.as_chunks::<SECTOR>().0;
    let payloads: Vec<u32> = sectors
        .iter()
        .map(|sector| !crc_of(Portable, &sector[..PAYLOAD]))
        .collect();
    stamp_all(Portable, block, &payloads, stamp);
}

const _: () = assert!(MAGIC != 0 && PAYLOAD == 60 * 8 && CRC_AT == 63 * 8 + 4);

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
    const VECTORS: [(&[u8], u32); 7] = [
        (&[0; 32], 0x8a91_36aa),
        (&[0xff; 32], 0x62a8_ab43),
        (&ASCENDING, 0x46dd_794e),
        (&DESCENDING, 0x113f_db5c),
        (&ISCSI_READ, 0xd996_3a56),
        (b"123456789", 0xe306_9283),
        (b"", 0),
    ];
    const ASCENDING: [u8; 32] = counted(false);
    const DESCENDING: [u8; 32] = counted(true);
    /// An iSCSI SCSI Read (10) command PDU.
    const ISCSI_READ: [u8; 48] = [
        0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0,
        0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
    ];

    const fn counted(down: bool) -> [u8; 32] {
        let mut bytes = [0; 32];
        let mut at = 0;
        while at < 32 {
            bytes[at] = if down { 31 - at as u8 } else { at as u8 };
            at += 1;
        }
        bytes
    }

    #[test]
    fn published_vectors_hold_with_and_without_the_instruction() {
        for (bytes, crc) in VECTORS {
            assert_eq!(crc_of(Portable, bytes), crc, "{bytes:x?}");
            assert_eq!(crc32c(bytes), crc, "{bytes:x?}");
        }
    }

    #[test]
    fn instruction_and_table_agree_on_any_length() {
        let bytes: Vec<u8> = (0..700_u32).map(|n| (n * n / 8) as u8).collect();
        for length in 0..bytes.len() {
            assert_eq!(
                crc32c(&bytes[..length]),
                crc_of(Portable, &bytes[..length]),
                "{length}"
            );
        }
    }

    #[test]
    fn seals_made_with_the_instruction_hold_without_it() {
        let stamp = Stamp {
            run: u64::MAX - 5,
            file: 9,
            generation: 77,
            offset: 1 << 40,
        };
        for sectors in [1, 2, 3, 4, 5, 8, 9, 128] {
            let mut block: Vec<u8> = (0..sectors * SECTOR).map(|n| (n * 31) as u8).collect();
            let mut payloads = vec![0; sectors];
            registers(&block, &mut payloads);
            seal(&mut block, &payloads, &stamp);
            let both = |block: &[u8]| {
                let sectors = block.as_chunks::<SECTOR>().0;
                assert_eq!(intact(Portable, sectors), is_intact(sectors));
                is_intact(sectors)
            };
            assert!(both(&block));
            let mut other = block.clone();
            stamp_all(Portable, &mut other, &payloads, &stamp);
            assert_eq!(other, block);
            block[sectors * SECTOR - 600.min(sectors * SECTOR)] ^= 1;
            assert!(!both(&block));
        }
    }
}
