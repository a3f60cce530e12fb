//! CRC-32C by the CPU's own instruction: SSE 4.2 on x86-64, the CRC extension on 64-bit ARM.
//!
//! The value [`Instruction`] is the proof that this CPU has it: only [`Instruction::get`] makes one, after asking.
#![allow(unsafe_code)]

use crate::crc::Step;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::crc::{crc_of, intact, stamp_all};
use crate::stamp::{SECTOR, Stamp};

/// The instruction, where there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instruction(());

macro_rules! with_feature {
    ($feature:literal, $asked:expr) => {
        impl Instruction {
            /// It, if this CPU has it.
            #[inline(always)]
            pub(crate) fn get() -> Option<Instruction> {
                $asked.then_some(Instruction(()))
            }

            #[inline]
            pub(crate) fn crc_of(self, bytes: &[u8]) -> u32 {
                // SAFETY: `self` is the proof that the CPU has the feature.
                unsafe { crc_with(self, bytes) }
            }

            #[inline]
            pub(crate) fn is_intact(self, sectors: &[[u8; SECTOR]]) -> bool {
                // SAFETY: as above.
                unsafe { intact_with(self, sectors) }
            }

            #[inline]
            pub(crate) fn seal(self, block: &mut [u8], registers: &[u32], stamp: &Stamp) {
                // SAFETY: as above.
                unsafe { seal_with(self, block, registers, stamp) }
            }
        }

        #[target_feature(enable = $feature)]
        fn crc_with(step: Instruction, bytes: &[u8]) -> u32 {
            crc_of(step, bytes)
        }

        #[target_feature(enable = $feature)]
        fn intact_with(step: Instruction, sectors: &[[u8; SECTOR]]) -> bool {
            intact(step, sectors)
        }

        #[target_feature(enable = $feature)]
        fn seal_with(step: Instruction, block: &mut [u8], registers: &[u32], stamp: &Stamp) {
            stamp_all(step, block, registers, stamp);
        }
    };
}

#[cfg(target_arch = "x86_64")]
with_feature!("sse4.2", std::arch::is_x86_feature_detected!("sse4.2"));

#[cfg(target_arch = "x86_64")]
impl Step for Instruction {
    #[inline(always)]
    fn word(self, register: u32, word: u64) -> u32 {
        // SAFETY: `self` is the proof that the CPU has SSE 4.2.
        unsafe { std::arch::x86_64::_mm_crc32_u64(u64::from(register), word) as u32 }
    }

    #[inline(always)]
    fn half(self, register: u32, half: u32) -> u32 {
        // SAFETY: as above.
        unsafe { std::arch::x86_64::_mm_crc32_u32(register, half) }
    }

    #[inline(always)]
    fn byte(self, register: u32, byte: u8) -> u32 {
        // SAFETY: as above.
        unsafe { std::arch::x86_64::_mm_crc32_u8(register, byte) }
    }
}

#[cfg(target_arch = "aarch64")]
with_feature!("crc", std::arch::is_aarch64_feature_detected!("crc"));

#[cfg(target_arch = "aarch64")]
impl Step for Instruction {
    #[inline(always)]
    fn word(self, register: u32, word: u64) -> u32 {
        // SAFETY: `self` is the proof that the CPU has the CRC extension.
        unsafe { std::arch::aarch64::__crc32cd(register, word) }
    }

    #[inline(always)]
    fn half(self, register: u32, half: u32) -> u32 {
        // SAFETY: as above.
        unsafe { std::arch::aarch64::__crc32cw(register, half) }
    }

    #[inline(always)]
    fn byte(self, register: u32, byte: u8) -> u32 {
        // SAFETY: as above.
        unsafe { std::arch::aarch64::__crc32cb(register, byte) }
    }
}

/// Elsewhere there is none, and the tables do the work.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Instruction {
    pub(crate) fn get() -> Option<Instruction> {
        None
    }

    pub(crate) fn crc_of(self, _bytes: &[u8]) -> u32 {
        unreachable!("no value of this type is made")
    }

    pub(crate) fn is_intact(self, _sectors: &[[u8; SECTOR]]) -> bool {
        unreachable!("no value of this type is made")
    }

    pub(crate) fn seal(self, _block: &mut [u8], _registers: &[u32], _stamp: &Stamp) {
        unreachable!("no value of this type is made")
    }
}
