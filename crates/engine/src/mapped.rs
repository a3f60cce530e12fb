//! A shared mapping of the target, as databases use it: a request is a copy to or from the mapping, page faults do the
//! I/O, msync makes it durable. One call at a time, so one thread for each outstanding request.
//!
//! A page that cannot be brought in (an I/O error, a file that was cut, no space for a hole) raises SIGBUS in the thread
//! that touches it. The handler puts a page of zeroes in its place, so that the copy comes to its end; the request fails
//! with EIO, and the pages of the request become those of the target again.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::OnceLock;

use spindle_measure::OpKind;

use crate::backend::Call;
use crate::blocking::{result, trim, zero};
use crate::buffers::Buffers;
use crate::one_call::{Caller, Mover};

/// The advice to the kernel about the order of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    Sequential,
    Random,
}

/// Requirements for a worker's mappings.
#[derive(Debug)]
pub(crate) struct MappedNeed {
    /// The stream's files with their lengths, bytes.
    pub(crate) files: Vec<(RawFd, u64)>,
    pub(crate) is_device: bool,
    /// Opened for writing.
    pub(crate) writes: bool,
    /// Each write is durable before it completes.
    pub(crate) sync_each: bool,
    pub(crate) advice: Advice,
}

/// The back end of one slot.
#[derive(Debug)]
pub(crate) struct MmapBackend {
    views: Vec<View>,
    is_device: bool,
    sync_each: bool,
    buffers: Buffers,
}

impl MmapBackend {
    pub(crate) fn new(need: &MappedNeed, buffers: Buffers) -> io::Result<MmapBackend> {
        catch_bus_errors()?;
        let views = need
            .files
            .iter()
            .map(|&(fd, length)| View::new(fd, length, need.writes, need.advice));
        Ok(MmapBackend {
            views: views.collect::<io::Result<_>>()?,
            is_device: need.is_device,
            sync_each: need.sync_each,
            buffers,
        })
    }
}

impl Caller for MmapBackend {
    fn call(&mut self, call: &Call) -> i32 {
        let view = &self.views[call.file as usize];
        let (offset, len) = (call.offset as usize, call.len as usize);
        if call.kind != OpKind::Fsync && (offset > view.length || len > view.length - offset) {
            return -libc::EINVAL;
        }
        match call.kind {
            OpKind::Read => view.read(self.buffers.read_place(0).address, offset, len),
            OpKind::Write => {
                let place = self.buffers.write_place(0, len, call.done == 0);
                match view.write(place.address, offset, len) {
                    moved if moved >= 0 && self.sync_each => match view.sync(offset, len) {
                        0 => moved,
                        failed => failed,
                    },
                    moved => moved,
                }
            }
            OpKind::Fsync => view.sync(0, view.length),
            OpKind::Trim => result(trim(view.fd, self.is_device, call.offset, len as u64)),
            OpKind::Zero => result(zero(view.fd, self.is_device, call.offset, len as u64)),
            name => unreachable!("{name:?} is for the back end `Names`"),
        }
    }
}

impl Mover for MmapBackend {
    fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }
}

/// The mapping of a file.
#[derive(Debug)]
struct View {
    fd: RawFd,
    base: *mut u8,
    length: usize,
    protection: libc::c_int,
    advice: Advice,
}

// SAFETY: the mapping belongs to this value alone; moving the value to another thread moves the right to use it.
unsafe impl Send for View {}

impl View {
    fn new(fd: RawFd, length: u64, writes: bool, advice: Advice) -> io::Result<View> {
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let protection = libc::PROT_READ | if writes { libc::PROT_WRITE } else { 0 };
        // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let view = View {
            fd,
            base: base.cast(),
            length,
            protection,
            advice,
        };
        view.advise(0, length);
        Ok(view)
    }

    /// `offset`: of a page.
    fn advise(&self, offset: usize, len: usize) {
        let advice = match self.advice {
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::Random => libc::MADV_RANDOM,
        };
        // SAFETY: advice on our own mapping; a refusal changes nothing.
        unsafe { libc::madvise(self.base.add(offset).cast(), len, advice) };
    }

    /// Copies out of the mapping; bytes moved, or minus errno.
    fn read(&self, to: *mut u8, offset: usize, len: usize) -> i32 {
        // SAFETY: `to` holds `len` bytes that nobody else uses; `guarded` keeps a fault from ending the process.
        self.guarded(offset, len, |at| unsafe {
            libc::memcpy(to.cast(), at.cast(), len);
        })
    }

    /// Copies into the mapping; bytes moved, or minus errno.
    fn write(&self, from: *const u8, offset: usize, len: usize) -> i32 {
        // SAFETY: as for reading; the mapping may be written, as the target was opened so (`run::inspect`).
        self.guarded(offset, len, |at| unsafe {
            libc::memcpy(at.cast(), from.cast(), len);
        })
    }

    fn guarded(&self, offset: usize, len: usize, copy: impl FnOnce(*mut u8)) -> i32 {
        // SAFETY: the caller has checked that the request is within the mapping.
        let at = unsafe { self.base.add(offset) };
        let (first, behind) = self.pages(offset, len);
        let begin = self.base.addr();
        GUARDED.set((begin + first, begin + behind));
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        copy(at);
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        GUARDED.set((0, 0));
        if FAULTED.replace(false) {
            self.heal(first, behind - first);
            return -libc::EIO;
        }
        len as i32
    }

    /// The pages of a request: offset of the first, and of the end of the last.
    fn pages(&self, offset: usize, len: usize) -> (usize, usize) {
        let page = page_bytes();
        let first = offset / page * page;
        (first, (offset + len).next_multiple_of(page))
    }

    /// Restores the target's pages that the handler has replaced.
    fn heal(&self, offset: usize, len: usize) {
        // SAFETY: replaces pages of our own mapping by those that were mapped there before.
        unsafe {
            libc::mmap(
                self.base.add(offset).cast(),
                len,
                self.protection,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.fd,
                offset as libc::off_t,
            );
        }
        self.advise(offset, len);
    }

    /// Makes a part durable; 0 or minus errno.
    fn sync(&self, offset: usize, len: usize) -> i32 {
        let (first, behind) = self.pages(offset, len);
        // SAFETY: the pages are those of our own mapping.
        let answer =
            unsafe { libc::msync(self.base.add(first).cast(), behind - first, libc::MS_SYNC) };
        if answer == 0 {
            return 0;
        }
        let error = io::Error::last_os_error();
        -error.raw_os_error().unwrap_or(libc::EIO)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: our own mapping, used by no one else.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

fn page_bytes() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    // SAFETY: no argument that could be wrong.
    *PAGE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as usize)
}

thread_local! {
    /// The addresses that the thread is copying from or to, and no others.
    static GUARDED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// A page in that range was missing.
    static FAULTED: Cell<bool> = const { Cell::new(false) };
}

/// The action for SIGBUS that was installed before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once in the life of the process.
fn catch_bus_errors() -> io::Result<()> {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    page_bytes(); // the handler must not be the first to ask
    let installed = *INSTALLED.get_or_init(|| {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: all zeroes are a valid action; the handler has the signature that SA_SIGINFO asks for and calls
        // nothing but mmap, sigaction and what is on its own thread.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
            libc::sigemptyset(&raw mut action.sa_mask);
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) != 0 {
                return false;
            }
            let _ = BEFORE.set(before.assume_init());
            libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) == 0
        }
    });
    if installed {
        Ok(())
    } else {
        Err(io::Error::other("SIGBUS cannot be handled"))
    }
}

extern "C" fn on_bus_error(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel hands over a valid description; of a bus error it has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    let (begin, end) = GUARDED.get();
    if (begin..end).contains(&address) {
        let page = address / page_bytes() * page_bytes();
        // SAFETY: the page belongs to the mapping that this very thread is copying from or to.
        let there = unsafe {
            libc::mmap(
                std::ptr::without_provenance_mut(page),
                page_bytes(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if there != libc::MAP_FAILED {
            FAULTED.set(true);
            return;
        }
    }
    // Not our mapping: the previous action applies when the instruction is tried again.
    if let Some(before) = BEFORE.get() {
        // SAFETY: an action that was in force before.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
}
