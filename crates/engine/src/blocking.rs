//! pread/pwrite: one call at a time, so one thread for each outstanding request.
#![allow(unsafe_code)]

use std::os::fd::RawFd;

use spindle_measure::OpKind;

use crate::backend::{Call, Errno};
use crate::buffers::Buffers;
use crate::one_call::{Caller, Mover};
use crate::system;
use crate::thread;

/// `_IO(0x12, 119)` and `_IO(0x12, 127)` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = 0x1277;
const BLKZEROOUT: libc::Ioctl = 0x127f;

/// The back end of one slot.
#[derive(Debug)]
pub(crate) struct PreadBackend {
    /// The stream's files.
    fds: Vec<RawFd>,
    /// They belong to this thread's own table.
    private: bool,
    is_device: bool,
    /// fsync as fdatasync.
    data_only: bool,
    buffers: Buffers,
}

impl PreadBackend {
    /// To be called on the worker's own thread, which must not need other descriptors afterwards.
    pub(crate) fn new(
        fds: Vec<RawFd>,
        is_device: bool,
        data_only: bool,
        buffers: Buffers,
    ) -> PreadBackend {
        PreadBackend {
            private: thread::private_files(&fds),
            fds,
            is_device,
            data_only,
            buffers,
        }
    }

    /// Options in force.
    pub(crate) fn features(&self) -> Vec<String> {
        self.private
            .then(|| "private_files".to_owned())
            .into_iter()
            .collect()
    }
}

impl Caller for PreadBackend {
    #[inline(always)]
    fn call(&mut self, call: &Call) -> i32 {
        let fd = self.fds[call.file as usize];
        let done = call.done as usize;
        let rest = call.len as usize - done;
        let offset = call.offset + u64::from(call.done);
        let answer = match call.kind {
            OpKind::Read => {
                let place = self.buffers.read_place(0);
                // SAFETY: the slot's place is `len` bytes long and no other call uses it.
                unsafe { transfer(libc::SYS_pread64, fd, place.address.add(done), rest, offset) }
            }
            OpKind::Write => {
                let place = self
                    .buffers
                    .write_place(0, call.len as usize, call.done == 0);
                // SAFETY: as for reading.
                unsafe {
                    transfer(
                        libc::SYS_pwrite64,
                        fd,
                        place.address.add(done),
                        rest,
                        offset,
                    )
                }
            }
            OpKind::Trim => trim(fd, self.is_device, offset, rest as u64),
            OpKind::Zero => zero(fd, self.is_device, offset, rest as u64),
            OpKind::Fsync => sync_file(fd, self.data_only),
            name => unreachable!("{name:?} is for the back end `Names`"),
        };
        result(answer)
    }
}

impl Mover for PreadBackend {
    fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }
}

impl Drop for PreadBackend {
    fn drop(&mut self) {
        if self.private {
            // Now, not when the thread has ended: code that waits for the thread may want the device for itself.
            thread::close_private(&self.fds);
        }
    }
}

/// Reads or writes `len` bytes.
///
/// # Safety
///
/// `address` points to `len` bytes that no other call uses.
#[inline(always)]
unsafe fn transfer(
    number: libc::c_long,
    fd: RawFd,
    address: *mut u8,
    len: usize,
    offset: u64,
) -> Result<usize, Errno> {
    let arguments = [
        fd as usize,
        address.expose_provenance(),
        len,
        offset as usize,
    ];
    // SAFETY: the caller's.
    unsafe { system::call(number, arguments) }
}

/// Discards: BLKDISCARD on a device, a hole in a file.
pub(crate) fn trim(fd: RawFd, is_device: bool, offset: u64, len: u64) -> Result<usize, Errno> {
    if is_device {
        range_ioctl(fd, BLKDISCARD, offset, len)
    } else {
        allocate(fd, PUNCH, offset, len)
    }
}

/// Zeroes: BLKZEROOUT on a device, FALLOC_FL_ZERO_RANGE in a file.
pub(crate) fn zero(fd: RawFd, is_device: bool, offset: u64, len: u64) -> Result<usize, Errno> {
    if is_device {
        range_ioctl(fd, BLKZEROOUT, offset, len)
    } else {
        allocate(fd, ZERO, offset, len)
    }
}

/// Mode of `fallocate(2)` that makes a hole.
pub(crate) const PUNCH: libc::c_int = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
/// Mode of `fallocate(2)` that zeroes.
pub(crate) const ZERO: libc::c_int = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;

fn range_ioctl(fd: RawFd, request: libc::Ioctl, offset: u64, len: u64) -> Result<usize, Errno> {
    let range = [offset, len];
    let arguments = [
        fd as usize,
        request as usize,
        (&raw const range).expose_provenance(),
    ];
    // SAFETY: both requests read two 64-bit words (block/ioctl.c).
    unsafe { system::call(libc::SYS_ioctl, arguments) }
}

fn allocate(fd: RawFd, mode: libc::c_int, offset: u64, len: u64) -> Result<usize, Errno> {
    let arguments = [fd as usize, mode as usize, offset as usize, len as usize];
    // SAFETY: no pointer is passed.
    unsafe { system::call(libc::SYS_fallocate, arguments) }
}

/// fsync, or fdatasync; 0 or minus errno.
pub(crate) fn sync(fd: RawFd, data_only: bool) -> i32 {
    result(sync_file(fd, data_only))
}

fn sync_file(fd: RawFd, data_only: bool) -> Result<usize, Errno> {
    let number = if data_only {
        libc::SYS_fdatasync
    } else {
        libc::SYS_fsync
    };
    // SAFETY: no pointer is passed.
    unsafe { system::call(number, [fd as usize]) }
}

/// As a ring gives it: bytes moved, or minus errno.
#[inline(always)]
pub(crate) fn result(answer: Result<usize, Errno>) -> i32 {
    match answer {
        Ok(moved) => moved as i32,
        Err(errno) => -errno,
    }
}
