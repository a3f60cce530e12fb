//! What a stream runs on, as far as the engine must know it.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use crate::StreamFile;

/// A stream's target.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// An open file or device.
    File(OpenFile),
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

/// An open file or device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFile {
    /// As the caller described it.
    pub(crate) file: StreamFile,
    /// Whether it is a block device.
    pub(crate) is_device: bool,
    /// Whether it is a directory.
    pub(crate) is_folder: bool,
    /// Opened with O_DIRECT.
    pub(crate) is_direct: bool,
    /// Opened for reading.
    pub(crate) can_read: bool,
    /// Opened for writing.
    pub(crate) can_write: bool,
    /// Device and inode.
    identity: (u64, u64),
}

impl Target {
    pub(crate) fn size_bytes(&self) -> u64 {
        match self {
            Target::File(open) => open.file.size_bytes,
            Target::Folder(_) => 0,
            Target::Null { size_bytes, .. } => *size_bytes,
        }
    }

    pub(crate) fn block_bytes(&self) -> u32 {
        match self {
            Target::File(open) => open.file.block_bytes.max(1),
            Target::Folder(_) | Target::Null { .. } => 1,
        }
    }

    pub(crate) fn memory_align(&self) -> usize {
        match self {
            Target::File(open) => open.file.memory_align as usize,
            Target::Folder(_) | Target::Null { .. } => 1,
        }
    }

    pub(crate) fn fd(&self) -> Option<RawFd> {
        match self {
            Target::File(open) => Some(open.file.fd),
            Target::Folder(fd) => Some(*fd),
            Target::Null { .. } => None,
        }
    }
}

impl OpenFile {
    /// Whether both are the same file, opened the same way.
    pub(crate) fn same_target(&self, other: &OpenFile) -> bool {
        self.identity == other.identity && self.is_direct == other.is_direct
    }

    /// Device and inode.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Asks the kernel what the descriptor is.
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
            identity: (status.st_dev, status.st_ino),
        })
    }
}

/// Reading shall leave no trace on the target, not even an access time, and the kernel need not ask for every request
/// whether one is due, which costs 10 ns. Only the owner of the file and root may have that; for others nothing changes.
fn leave_access_time(fd: RawFd, flags: libc::c_int) {
    // SAFETY: no pointer is passed; a refusal changes nothing.
    unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NOATIME) };
}
