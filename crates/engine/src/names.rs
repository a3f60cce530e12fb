//! Operations on the names of a tree of files: one blocking call at a time, so one thread for each outstanding one.
//!
//! The tree is in one folder, whose descriptor the caller hands over. Its directories `d0000000`, `d0000001` ... contain
//! the files `f0000000000`, `f0000000001` ..., numbered through; a renamed file is called `r` instead of `f`. Every call
//! names one component relative to an open directory and never follows a link: a link planted in the tree cannot
//! lead out of it. Nothing is allocated or formatted on the heap for an operation.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;

use spindle_measure::OpKind;
use spindle_workload::{Names as Spec, Op};

use crate::backend::{Call, Errno};
use crate::buffers::Buffers;
use crate::one_call::Caller;
use crate::system;
use crate::thread;

/// Digits of a directory's number.
const DIRECTORY_DIGITS: usize = 7;
/// Digits of a file's number.
const FILE_DIGITS: usize = 10;
/// Room for the entries of one `getdents64` call, bytes; glibc's own for directories of files of 4 KiB blocks.
const ENTRIES: usize = 32 << 10;
/// Mode of new files: for the owner alone.
const FILE_MODE: libc::mode_t = 0o600;
const DIRECTORY_MODE: libc::mode_t = 0o700;

/// The back end of one slot.
#[derive(Debug)]
pub(crate) struct Names {
    /// Operation of the stream: says what an fsync is to make durable.
    op: Op,
    root: RawFd,
    /// All descriptors belong to this thread's own table.
    private: bool,
    directories: Directories,
    /// Content of the files.
    content: Option<Buffers>,
    entries: Box<[u8]>,
    /// True if the last file had been renamed: the next one probably has been, too.
    renamed: bool,
}

impl Names {
    /// For the names of the numbers in `part`, shared by `workers`. To be called on the worker's own thread, which must
    /// not need other descriptors afterwards.
    pub(crate) fn new(
        root: RawFd,
        spec: &Spec,
        workers: u32,
        part: Range<u64>,
        content: Option<Buffers>,
    ) -> io::Result<Names> {
        let private = thread::private_files(&[root]);
        let mut names = Names {
            op: spec.operation,
            root,
            private,
            directories: Directories {
                first: 0,
                files_in_each: spec.tree.files_in_each(workers),
                open: Vec::new(),
            },
            content,
            entries: vec![
                0;
                if spec.operation == Op::Readdir {
                    ENTRIES
                } else {
                    0
                }
            ]
            .into(),
            renamed: false,
        };
        if !spec.operation.is_on_directories() {
            names.directories.open_all(root, part)?;
        }
        Ok(names)
    }

    /// Options in force.
    pub(crate) fn features(&self) -> Vec<String> {
        self.private
            .then(|| "private_files".to_owned())
            .into_iter()
            .collect()
    }

    fn create(&mut self, file: u64, len: usize) -> Result<(), Errno> {
        let directory = self.directories.of(file);
        let name = file_name(file, false);
        const FLAGS: libc::c_int = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        let fd = open(directory, name.text(), FLAGS)?;
        let written = match &mut self.content {
            Some(content) if len > 0 => write_all(fd, content, len),
            _ => Ok(()),
        };
        // The descriptor is closed in any case; some file systems report a lack of space only now.
        written.and(close(fd))
    }

    fn rename(&mut self, file: u64) -> Result<(), Errno> {
        let directory = self.directories.of(file);
        let between = |renamed: bool| {
            let (old, new) = (file_name(file, renamed), file_name(file, !renamed));
            rename(directory, old.text(), new.text())
        };
        match between(self.renamed) {
            Err(libc::ENOENT) => {
                between(!self.renamed)?;
                self.renamed = !self.renamed;
                Ok(())
            }
            done => done,
        }
    }

    /// Applies an operation to a file that may have been renamed.
    #[inline]
    fn with_name(
        &mut self,
        file: u64,
        act: impl Fn(RawFd, &CStr) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let directory = self.directories.of(file);
        match act(directory, file_name(file, self.renamed).text()) {
            Err(libc::ENOENT) => {
                act(directory, file_name(file, !self.renamed).text())?;
                self.renamed = !self.renamed;
                Ok(())
            }
            done => done,
        }
    }

    fn list(&mut self, directory: u64) -> Result<(), Errno> {
        // As with data, looking leaves no access time behind.
        const FLAGS: libc::c_int = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOATIME;
        let fd = open(self.root, directory_name(directory).text(), FLAGS)?;
        let entries = &mut self.entries;
        let listed = loop {
            // SAFETY: the kernel writes at most `len` bytes to the buffer, which nobody else uses.
            let got = unsafe {
                system::call(
                    libc::SYS_getdents64,
                    [
                        fd as usize,
                        entries.as_mut_ptr().expose_provenance(),
                        entries.len(),
                    ],
                )
            };
            match got {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(errno) => break Err(errno),
            }
        };
        listed.and(close(fd))
    }

    /// Makes the last change of a name durable: the file itself if it was made, and the directory it is named in.
    fn sync(&mut self, number: u64) -> Result<(), Errno> {
        if self.op.is_on_directories() {
            return sync(self.root);
        }
        let directory = self.directories.of(number);
        if self.op == Op::Create {
            let fd = open(directory, file_name(number, false).text(), libc::O_RDONLY)?;
            sync(fd).and(close(fd))?;
        }
        sync(directory)
    }
}

impl Caller for Names {
    #[inline(always)]
    fn call(&mut self, call: &Call) -> i32 {
        let done = match call.kind {
            OpKind::Create => self.create(call.offset, call.len as usize),
            OpKind::Open => self.with_name(call.offset, |directory, name| {
                open(directory, name, libc::O_RDONLY).and_then(close)
            }),
            OpKind::Stat => self.with_name(call.offset, attributes),
            OpKind::Rename => self.rename(call.offset),
            OpKind::Unlink => {
                self.with_name(call.offset, |directory, name| remove(directory, name, 0))
            }
            OpKind::Mkdir => make_directory(self.root, directory_name(call.offset).text()),
            OpKind::Rmdir => {
                let name = directory_name(call.offset);
                remove(self.root, name.text(), libc::AT_REMOVEDIR)
            }
            OpKind::Readdir => self.list(call.offset),
            OpKind::Fsync => self.sync(call.offset),
            OpKind::Read | OpKind::Write | OpKind::Trim | OpKind::Zero => Err(libc::EINVAL),
        };
        done.map_or_else(|errno| -errno, |()| 0)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.directories.close_all();
        if self.private {
            // Now, not when the thread has ended: code that waits for the thread may want to unmount.
            thread::close_private(&[self.root]);
        }
    }
}

/// The directories of a worker's files, open for the whole run: the measurement excludes their look-up, and
/// nobody can replace one by a link.
#[derive(Debug)]
struct Directories {
    first: u64,
    files_in_each: u64,
    open: Vec<RawFd>,
}

impl Directories {
    fn open_all(&mut self, root: RawFd, files: Range<u64>) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        self.first = files.start / self.files_in_each;
        let last = (files.end - 1) / self.files_in_each;
        for number in self.first..=last {
            const FLAGS: libc::c_int = libc::O_RDONLY | libc::O_DIRECTORY;
            let name = directory_name(number);
            let mut fd = open(root, name.text(), FLAGS);
            if fd == Err(libc::EMFILE) && raise_limit() {
                fd = open(root, name.text(), FLAGS);
            }
            self.open.push(fd.map_err(|errno| {
                let directory = name.text().to_string_lossy().into_owned();
                let error = io::Error::from_raw_os_error(errno);
                match errno {
                    libc::EMFILE | libc::ENFILE => io::Error::other(format!(
                        "{} are open and {error}; set fewer `directories`, or raise `ulimit -n`",
                        self.open.len()
                    )),
                    _ => io::Error::other(format!("{directory}: {error}")),
                }
            })?);
        }
        Ok(())
    }

    #[inline]
    fn of(&self, file: u64) -> RawFd {
        self.open[(file / self.files_in_each - self.first) as usize]
    }

    fn close_all(&mut self) {
        for fd in self.open.drain(..) {
            let _ = close(fd);
        }
    }
}

/// Raises this process's limit of open files as far as it may; true if that helped.
fn raise_limit() -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid place for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0
        || limit.rlim_cur >= limit.rlim_max
    {
        return false;
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is valid during the call, which reads it.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 }
}

/// A name, its end included.
#[derive(Debug, Clone, Copy)]
struct Name {
    bytes: [u8; 1 + FILE_DIGITS + 1],
    len: usize,
}

impl Name {
    #[inline]
    fn new(letter: u8, number: u64, digits: usize) -> Name {
        let mut bytes = [0; 1 + FILE_DIGITS + 1];
        bytes[0] = letter;
        let mut rest = number;
        for place in bytes[1..=digits].iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        Name {
            bytes,
            len: 1 + digits,
        }
    }

    #[inline]
    fn text(&self) -> &CStr {
        // SAFETY: letter and digits are not 0, and the byte behind them is.
        unsafe { CStr::from_bytes_with_nul_unchecked(&self.bytes[..=self.len]) }
    }
}

#[inline]
fn file_name(number: u64, renamed: bool) -> Name {
    Name::new(if renamed { b'r' } else { b'f' }, number, FILE_DIGITS)
}

#[inline]
fn directory_name(number: u64) -> Name {
    Name::new(b'd', number, DIRECTORY_DIGITS)
}

#[inline]
fn open(directory: RawFd, name: &CStr, flags: libc::c_int) -> Result<RawFd, Errno> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name is a valid string during the call.
    let fd = unsafe {
        system::call(
            libc::SYS_openat,
            [
                directory as usize,
                address(name),
                flags as usize,
                FILE_MODE as usize,
            ],
        )
    };
    fd.map(|fd| fd as RawFd)
}

#[inline]
fn close(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: only called with descriptors that this module opened, and never again.
    done(unsafe { system::call(libc::SYS_close, [fd as usize]) })
}

#[inline]
fn attributes(directory: RawFd, name: &CStr) -> Result<(), Errno> {
    // SAFETY: `stat` is plain old data for which all zeroes are valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the name is a valid string and `status` a valid place for the answer.
    done(unsafe {
        system::call(
            libc::SYS_newfstatat,
            [
                directory as usize,
                address(name),
                (&raw mut status).expose_provenance(),
                libc::AT_SYMLINK_NOFOLLOW as usize,
            ],
        )
    })
}

#[inline]
fn rename(directory: RawFd, old: &CStr, new: &CStr) -> Result<(), Errno> {
    // SAFETY: both names are valid strings during the call.
    done(unsafe {
        system::call(
            libc::SYS_renameat2,
            [
                directory as usize,
                address(old),
                directory as usize,
                address(new),
                0,
            ],
        )
    })
}

#[inline]
fn remove(directory: RawFd, name: &CStr, flags: libc::c_int) -> Result<(), Errno> {
    // SAFETY: the name is a valid string during the call.
    done(unsafe {
        system::call(
            libc::SYS_unlinkat,
            [directory as usize, address(name), flags as usize],
        )
    })
}

#[inline]
fn make_directory(directory: RawFd, name: &CStr) -> Result<(), Errno> {
    // SAFETY: the name is a valid string during the call.
    done(unsafe {
        system::call(
            libc::SYS_mkdirat,
            [directory as usize, address(name), DIRECTORY_MODE as usize],
        )
    })
}

fn sync(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: no pointer is passed.
    done(unsafe { system::call(libc::SYS_fsync, [fd as usize]) })
}

/// Syncs the whole file system of the descriptor; 0 or minus errno.
pub(crate) fn sync_file_system(fd: RawFd) -> i32 {
    // SAFETY: no pointer is passed.
    match unsafe { libc::syncfs(fd) } {
        0 => 0,
        _ => -last_errno(),
    }
}

/// Fills a new file.
fn write_all(fd: RawFd, content: &mut Buffers, len: usize) -> Result<(), Errno> {
    let place = content.write_place(0, len, true);
    let mut written = 0;
    while written < len {
        // SAFETY: the slot's place is `len` bytes long and no other call uses it.
        let moved = unsafe {
            system::call(
                libc::SYS_write,
                [
                    fd as usize,
                    place.address.add(written).expose_provenance(),
                    len - written,
                ],
            )
        };
        match moved {
            Ok(0) => return Err(libc::EIO),
            Ok(moved) => written += moved,
            Err(libc::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[inline]
fn done(answer: Result<usize, Errno>) -> Result<(), Errno> {
    answer.map(drop)
}

#[inline]
fn address(name: &CStr) -> usize {
    name.as_ptr().expose_provenance()
}

fn last_errno() -> Errno {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_letter_and_number_of_one_length() {
        let text = |name: Name| name.text().to_str().map(str::to_owned);
        assert_eq!(text(file_name(0, false)).as_deref(), Ok("f0000000000"));
        assert_eq!(
            text(file_name(1_234_567, true)).as_deref(),
            Ok("r0001234567")
        );
        assert_eq!(
            text(file_name(9_999_999_999, false)).as_deref(),
            Ok("f9999999999")
        );
        assert_eq!(text(directory_name(42)).as_deref(), Ok("d0000042"));
    }
}
