//! Descriptors of the caller as files of our own.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A second descriptor of the same open file; the caller keeps the first.
pub(crate) fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the number is borrowed for this one call, which fails if nothing is open under it.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}

/// One write at an offset, durable when it returns (RWF_DSYNC); how many bytes it took.
pub(crate) fn write_durably(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    let part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: one part, valid for as many bytes as it says, which the call only reads.
    let written = unsafe {
        libc::pwritev2(
            file.as_raw_fd(),
            &raw const part,
            1,
            offset as libc::off_t,
            libc::RWF_DSYNC,
        )
    };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}

/// Memory for direct I/O: `length` bytes at a multiple of `align`.
#[derive(Debug)]
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    skip: usize,
    length: usize,
}

impl Aligned {
    pub(crate) fn new(length: usize, align: usize) -> Aligned {
        let align = align.max(512).next_power_of_two();
        let bytes = vec![0; length + align];
        let skip = bytes.as_ptr().align_offset(align).min(align);
        Aligned {
            bytes,
            skip,
            length,
        }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.skip..self.skip + self.length]
    }
}

/// A file that nobody else sees.
#[cfg(test)]
pub(crate) fn memory_file() -> File {
    use std::os::fd::FromRawFd;

    // SAFETY: the name is a string with its end, and the number that comes back is a new descriptor that nobody owns.
    unsafe {
        let fd = libc::memfd_create(c"durable".as_ptr(), libc::MFD_CLOEXEC);
        assert!(fd >= 0, "{}", io::Error::last_os_error());
        File::from_raw_fd(fd)
    }
}
