//! CRC-32C by tables, eight bytes at a time (Kounavis and Berry, "slicing by 8"), for CPUs without the instruction.

use crate::crc::Step;

/// The polynomial 0x1edc6f41, its bits reversed.
pub(crate) const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[n][byte]`: what a byte becomes after `n` more bytes of zero.
static TABLES: [[u32; 256]; 8] = tables();

/// A register after this many bits of zero: times x to that power, modulo the polynomial.
pub(crate) const fn times_x(register: u32, power: u32) -> u32 {
    let mut register = register;
    let mut bit = 0;
    while bit < power {
        register = (register >> 1) ^ if register & 1 == 1 { POLYNOMIAL } else { 0 };
        bit += 1;
    }
    register
}

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        tables[0][byte] = times_x(byte as u32, 8);
        byte += 1;
    }
    let mut further = 1;
    while further < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[further - 1][byte];
            tables[further][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        further += 1;
    }
    tables
}

/// The tables as a way to carry a register on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

impl Step for Portable {
    #[inline(always)]
    fn word(self, register: u32, word: u64) -> u32 {
        let bytes = (word ^ u64::from(register)).to_le_bytes();
        let mut next = 0;
        for (at, byte) in bytes.into_iter().enumerate() {
            next ^= TABLES[7 - at][usize::from(byte)];
        }
        next
    }

    #[inline(always)]
    fn half(self, register: u32, half: u32) -> u32 {
        let bytes = (half ^ register).to_le_bytes();
        let mut next = 0;
        for (at, byte) in bytes.into_iter().enumerate() {
            next ^= TABLES[3 - at][usize::from(byte)];
        }
        next
    }

    #[inline(always)]
    fn byte(self, register: u32, byte: u8) -> u32 {
        (register >> 8) ^ TABLES[0][((register ^ u32::from(byte)) & 0xff) as usize]
    }
}
