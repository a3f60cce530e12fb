//! Kernel interfaces without a function in the standard library, for a program that opens a target itself and ends on a
//! signal. The engine itself needs none of them.
#![allow(unsafe_code)]

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

use crate::system::call;

/// Requirements of O_DIRECT, bytes. An `offset` of 0: direct I/O is not possible on this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Offsets and lengths are multiples of this.
    pub offset: u32,
    /// Buffers begin at multiples of this.
    pub memory: u32,
}

// include/uapi/linux/stat.h
const AT_EMPTY_PATH: usize = 0x1000;
const STATX_DIOALIGN: u32 = 0x2000;
const STATX_BYTES: usize = 256;
const AT_DIO_MEMORY: usize = 152;
const AT_DIO_OFFSET: usize = 156;

/// `stx_dio_offset_align` and `stx_dio_mem_align` (Linux 6.1); `None` if the kernel or the file system does not report them.
#[must_use]
pub fn direct_alignment(file: BorrowedFd<'_>) -> Option<Alignment> {
    let mut found = [0_u8; STATX_BYTES];
    let arguments = [
        file.as_raw_fd() as usize,
        c"".as_ptr() as usize,
        AT_EMPTY_PATH,
        STATX_DIOALIGN as usize,
        found.as_mut_ptr() as usize,
    ];
    // SAFETY: the name is an empty text, and the kernel writes at most 256 bytes (struct statx).
    unsafe { call(libc::SYS_statx, arguments) }.ok()?;
    let word = |at: usize| -> Option<u32> {
        let bytes = found.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let granted = word(0)? & STATX_DIOALIGN != 0;
    granted.then_some(Alignment {
        offset: word(AT_DIO_OFFSET)?,
        memory: word(AT_DIO_MEMORY)?,
    })
}

/// CLOCK_MONOTONIC, ns: the scale of the times of [`crate::Appointment`].
#[must_use]
pub fn monotonic_ns() -> u64 {
    crate::clock::monotonic_ns()
}

/// Writes out and forgets what the page cache holds of a file, so that the medium is read. A refusal leaves the cache as it
/// is, which the figures show.
pub fn drop_cache(file: RawFd) {
    // SAFETY: no pointer is passed; a wrong descriptor is refused.
    unsafe {
        libc::fdatasync(file);
        libc::posix_fadvise(file, 0, 0, libc::POSIX_FADV_DONTNEED);
    }
}

/// Sizes of a file system, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that unprivileged users may still write.
    pub available: u64,
    /// All of it.
    pub total: u64,
    /// Its block: the largest alignment that direct I/O can need.
    pub block: u32,
}

/// The space of the file system that a file or folder is on.
///
/// # Errors
/// As fstatvfs(3).
pub fn space(file: BorrowedFd<'_>) -> io::Result<Space> {
    // SAFETY: plain old data for which all zeroes are valid.
    let mut found: libc::statvfs = unsafe { zeroed() };
    // SAFETY: `found` is a valid place for the answer.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut found) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Space {
        available: found.f_bavail.saturating_mul(found.f_frsize),
        total: found.f_blocks.saturating_mul(found.f_frsize),
        block: u32::try_from(found.f_bsize).unwrap_or(u32::MAX),
    })
}

/// SIGINT, SIGTERM and SIGHUP, blocked in this thread and in all that it starts from now on. Those that are ignored (nohup)
/// stay ignored.
#[derive(Debug, Clone, Copy)]
pub struct EndingSignals(libc::sigset_t);

impl EndingSignals {
    /// Blocks them; to be called before any thread is started.
    #[must_use]
    pub fn block() -> EndingSignals {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` makes the set valid; the other calls get valid places, and signal numbers that exist.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                let mut now: libc::sigaction = zeroed();
                libc::sigaction(number, ptr::null(), &raw mut now);
                if now.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(set.as_mut_ptr(), number);
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
            EndingSignals(set.assume_init())
        }
    }

    /// Waits for one of them, and returns its number.
    #[must_use]
    pub fn wait(&self) -> i32 {
        let mut number = 0;
        // SAFETY: both are valid. It fails only for a set of unknown signals.
        unsafe { libc::sigwait(&raw const self.0, &raw mut number) };
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_space_of_a_file_system_is_known() {
        let here = std::fs::File::open(".").expect("the working directory");
        let space = space(here.as_fd()).expect("its space");
        assert!(space.available <= space.total && space.block >= 512);
    }

    #[test]
    fn the_alignment_of_direct_io_is_a_power_of_two_or_unknown() {
        let file = std::fs::File::open("Cargo.toml").expect("this crate's manifest");
        if let Some(alignment) = direct_alignment(file.as_fd()) {
            assert!(alignment.offset == 0 || alignment.offset.is_power_of_two());
            assert!(alignment.memory == 0 || alignment.memory.is_power_of_two());
        }
    }
}
