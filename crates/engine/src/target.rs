//! The target of a stream, with the properties that the engine needs.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use spindle_workload::{Stream, StreamError, Workload};

use crate::StreamFile;

/// A stream's target.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// An open file or device, or the open files of a set.
    Files(OpenFiles),
    /// The folder of a tree of files.
    Folder(RawFd),
    /// Nothing: see [`crate::NullTarget`].
    Null {
        /// Size, bytes.
        size_bytes: u64,
        /// Time a request takes, ns.
        service_ns: u64,
    },
}

/// One or more open files, all opened the same way. A device is alone.
#[derive(Debug, Clone)]
pub(crate) struct OpenFiles(Arc<[OpenFile]>);

/// An open file or device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFile {
    /// As the caller described it.
    pub(crate) file: StreamFile,
    /// True for a block device.
    pub(crate) is_device: bool,
    /// True for a directory.
    pub(crate) is_folder: bool,
    /// Opened with O_DIRECT.
    pub(crate) is_direct: bool,
    /// Opened for reading.
    pub(crate) can_read: bool,
    /// Opened for writing.
    pub(crate) can_write: bool,
    /// Length of a file, bytes; 0 for a device.
    pub(crate) length: u64,
    /// Device and inode.
    identity: (u64, u64),
}

impl Target {
    /// Sizes of the files, or of the one target, that a stream's requests go to, bytes.
    pub(crate) fn sizes(
        &self,
        workload: &Workload,
        stream: &Stream,
    ) -> Result<Vec<u64>, StreamError> {
        match self {
            Target::Files(open) => Ok(open.iter().map(|open| open.file.size_bytes).collect()),
            Target::Folder(_) => Ok(vec![0]),
            Target::Null { size_bytes, .. } => match workload.fileset(stream) {
                Some((index, set)) => set.sizes(index, workload.seed, *size_bytes),
                None => Ok(vec![*size_bytes]),
            },
        }
    }

    pub(crate) fn block_bytes(&self) -> u32 {
        match self {
            Target::Files(open) => largest(open, |file| file.block_bytes),
            Target::Folder(_) | Target::Null { .. } => 1,
        }
    }

    pub(crate) fn memory_align(&self) -> usize {
        match self {
            Target::Files(open) => largest(open, |file| file.memory_align) as usize,
            Target::Folder(_) | Target::Null { .. } => 1,
        }
    }

    /// Descriptors, in the order of the stream's files; none for the null target.
    pub(crate) fn fds(&self) -> Vec<RawFd> {
        match self {
            Target::Files(open) => open.iter().map(|open| open.file.fd).collect(),
            Target::Folder(fd) => vec![*fd],
            Target::Null { .. } => Vec::new(),
        }
    }

    /// Name of a stream's file, if it is one of several.
    pub(crate) fn name_of(&self, file: u32) -> Option<String> {
        let Target::Files(open) = self else {
            return None;
        };
        let fd = open.get(file as usize).filter(|_| open.len() > 1)?.file.fd;
        let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
        Some(path.to_string_lossy().into_owned())
    }
}

fn largest(open: &OpenFiles, of: impl Fn(&StreamFile) -> u32) -> u32 {
    open.iter()
        .map(|open| of(&open.file))
        .max()
        .unwrap_or(1)
        .max(1)
}

impl OpenFiles {
    /// `files` has at least one file.
    pub(crate) fn new(files: Vec<OpenFile>) -> OpenFiles {
        debug_assert!(!files.is_empty());
        OpenFiles(files.into())
    }

    /// The one file, or the first of several: all are opened the same way.
    pub(crate) fn first(&self) -> &OpenFile {
        &self.0[0]
    }

    /// True if both are the same files, opened the same way.
    pub(crate) fn same_target(&self, other: &OpenFiles) -> bool {
        let mut pairs = self.iter().zip(other.iter());
        self.len() == other.len() && pairs.all(|(own, other)| own.same_target(other))
    }

    /// True if each file has its full size: a growing file does not yet.
    pub(crate) fn are_whole(&self) -> bool {
        self.iter().all(OpenFile::is_whole)
    }
}

impl std::ops::Deref for OpenFiles {
    type Target = [OpenFile];

    fn deref(&self) -> &[OpenFile] {
        &self.0
    }
}

impl OpenFile {
    /// True if both are the same file, opened the same way.
    pub(crate) fn same_target(&self, other: &OpenFile) -> bool {
        self.identity == other.identity && self.is_direct == other.is_direct
    }

    /// Device and inode.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// True if the file has its full size.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_device || self.length >= self.file.size_bytes
    }

    /// Asks the kernel for the properties of the descriptor.
    pub(crate) fn inspect(file: StreamFile) -> io::Result<OpenFile> {
        // SAFETY: `stat` is plain old data for which all zeroes are valid.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `status` is a valid place for the answer; a wrong descriptor gives an error.
        if unsafe { libc::fstat(file.fd, &raw mut status) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: no pointer is passed.
        let flags = unsafe { libc::fcntl(file.fd, libc::F_GETFL) };
        if flags < 0 {
            return Err(io::Error::last_os_error());
        }
        leave_access_time(file.fd, flags);
        let access = flags & libc::O_ACCMODE;
        Ok(OpenFile {
            file,
            is_device: status.st_mode & libc::S_IFMT == libc::S_IFBLK,
            is_folder: status.st_mode & libc::S_IFMT == libc::S_IFDIR,
            is_direct: flags & libc::O_DIRECT != 0,
            can_read: access != libc::O_WRONLY,
            can_write: access != libc::O_RDONLY,
            length: status.st_size as u64,
            identity: (status.st_dev, status.st_ino),
        })
    }
}

/// Reading shall leave no trace on the target, not even an access time, and the kernel need not check on every request
/// if one is due, which costs 10 ns. Only the owner of the file and root may set this; for others nothing changes.
fn leave_access_time(fd: RawFd, flags: libc::c_int) {
    // SAFETY: no pointer is passed; a refusal changes nothing.
    unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NOATIME) };
}
