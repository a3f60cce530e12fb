//! pread/pwrite: one call at a time, so one thread for each outstanding request.
#![allow(unsafe_code)]

use std::os::fd::RawFd;

use spindle_measure::OpKind;

use crate::backend::{Backend, Call, Errno, Wait};
use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::thread;
use crate::verify::{Memory, Ready};

/// `_IO(0x12, 119)` and `_IO(0x12, 127)` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = 0x1277;
const BLKZEROOUT: libc::Ioctl = 0x127f;

/// The back end of one slot.
#[derive(Debug)]
pub(crate) struct Blocking {
    /// The stream's files.
    fds: Vec<RawFd>,
    /// They belong to this thread's own table.
    private: bool,
    is_device: bool,
    /// fsync as fdatasync.
    data_only: bool,
    buffers: Buffers,
    asked: Option<(u32, Call)>,
    result: Option<(u32, i32)>,
}

impl Blocking {
    /// To be called on the worker's own thread, which must not need other descriptors afterwards.
    pub(crate) fn new(
        fds: Vec<RawFd>,
        is_device: bool,
        data_only: bool,
        buffers: Buffers,
    ) -> Blocking {
        Blocking {
            private: thread::private_files(&fds),
            fds,
            is_device,
            data_only,
            buffers,
            asked: None,
            result: None,
        }
    }

    /// Options in force.
    pub(crate) fn features(&self) -> Vec<String> {
        self.private
            .then(|| "private_files".to_owned())
            .into_iter()
            .collect()
    }

    #[inline]
    fn call(&mut self, call: &Call) -> i32 {
        let fd = self.fds[call.file as usize];
        let done = call.done as usize;
        let rest = call.len as usize - done;
        let offset = call.offset + u64::from(call.done);
        let moved = match call.kind {
            OpKind::Read => {
                let place = self.buffers.read_place(0);
                // The plain system call: libc's pread is a cancellation point and costs 30 ns more in a process with threads.
                // SAFETY: the slot's place holds `len` bytes and no other call uses it.
                unsafe {
                    let address = place.address.add(done);
                    libc::syscall(libc::SYS_pread64, fd, address, rest, offset) as isize
                }
            }
            OpKind::Write => {
                let place = self
                    .buffers
                    .write_place(0, call.len as usize, call.done == 0);
                // SAFETY: as for reading.
                unsafe {
                    let address = place.address.add(done);
                    libc::syscall(libc::SYS_pwrite64, fd, address, rest, offset) as isize
                }
            }
            OpKind::Trim => trim(fd, self.is_device, offset, rest as u64) as isize,
            OpKind::Zero => zero(fd, self.is_device, offset, rest as u64) as isize,
            OpKind::Fsync => return sync(fd, self.data_only),
            name => unreachable!("{name:?} is for the back end `Names`"),
        };
        if moved < 0 {
            -last_errno()
        } else {
            moved as i32
        }
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        if self.private {
            // Now, not when the thread has ended: whoever waits for the thread may want the device for itself.
            thread::close_private(&self.fds);
        }
    }
}

impl Memory for Blocking {
    fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    fn works_aside(&self) -> bool {
        false
    }

    fn ready(&mut self) -> Ready {
        Ready::No
    }
}

impl Backend for Blocking {
    fn begin(&mut self, _clock: Clock) {}

    #[inline(always)]
    fn push(&mut self, slot: u32, call: &Call) {
        self.asked = Some((slot, *call));
    }

    #[inline(always)]
    fn enter(&mut self, _wait: Wait) -> Result<(), Errno> {
        if let Some((slot, call)) = self.asked.take() {
            self.result = Some((slot, self.call(&call)));
        }
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        if let Some((slot, result)) = self.result.take() {
            each(slot, result);
        }
    }

    fn abandon(self) {
        std::mem::forget(self);
    }
}

/// Discards: BLKDISCARD on a device, a hole in a file.
fn trim(fd: RawFd, is_device: bool, offset: u64, len: u64) -> i32 {
    if is_device {
        range_ioctl(fd, BLKDISCARD, offset, len)
    } else {
        allocate(fd, PUNCH, offset, len)
    }
}

/// Zeroes: BLKZEROOUT on a device, FALLOC_FL_ZERO_RANGE in a file.
fn zero(fd: RawFd, is_device: bool, offset: u64, len: u64) -> i32 {
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

fn range_ioctl(fd: RawFd, request: libc::Ioctl, offset: u64, len: u64) -> i32 {
    let range = [offset, len];
    // SAFETY: both requests read two 64-bit words (block/ioctl.c).
    unsafe { libc::ioctl(fd, request, range.as_ptr()) }
}

fn allocate(fd: RawFd, mode: libc::c_int, offset: u64, len: u64) -> i32 {
    // SAFETY: no pointer is passed.
    unsafe { libc::fallocate64(fd, mode, offset as libc::off64_t, len as libc::off64_t) }
}

/// fsync, or fdatasync; 0 or minus errno.
pub(crate) fn sync(fd: RawFd, data_only: bool) -> i32 {
    // SAFETY: no pointer is passed.
    let answer = unsafe {
        if data_only {
            libc::fdatasync(fd)
        } else {
            libc::fsync(fd)
        }
    };
    match answer {
        0 => 0,
        _ => -last_errno(),
    }
}

fn last_errno() -> Errno {
    std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}
