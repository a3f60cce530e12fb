//! The lock of a file on XFS that its buffered readers share (`XFS_IOLOCK`).
//!
//! `xfs_read` has it shared until its pages are there and copied, `xfs_write` alone (2.6.0 to 2.6.36 `fs/xfs/linux-2.6/xfs_lrw.c`,
//! later `fs/xfs/xfs_file.c`). It is fair (`lib/rwsem-spinlock.c`): who comes behind a waiting writer waits as well. So one
//! writer among readers first waits until all their reads are done, and none begins meanwhile.

use std::collections::{BTreeMap, VecDeque};

use spindle_workload::Op;

use super::load::Stage;
use super::{Engine, Outcome};
use crate::machine::{Files, FilesKind};

/// The lock of one file.
#[derive(Debug, Default)]
struct IoLock {
    readers: u32,
    has_writer: bool,
    /// Slots in line, and whether they write.
    waiting: VecDeque<(u32, bool)>,
}

impl IoLock {
    fn is_free(&self, write: bool) -> bool {
        !self.has_writer && (!write || self.readers == 0)
    }

    fn take(&mut self, write: bool) {
        if write {
            self.has_writer = true;
        } else {
            self.readers += 1;
        }
    }
}

/// The locks of all files.
#[derive(Debug)]
pub(super) struct IoLocks {
    file_size: u64,
    files: BTreeMap<(u32, u64), IoLock>,
    /// The file of each slot that has its lock, and whether it writes.
    held: BTreeMap<u32, ((u32, u64), bool)>,
}

impl IoLocks {
    /// The locks of a file system; `None` if its readers have none.
    pub(super) fn of(files: Files) -> Option<IoLocks> {
        (files.kind == FilesKind::Xfs).then(|| IoLocks {
            file_size: files.file_size,
            files: BTreeMap::new(),
            held: BTreeMap::new(),
        })
    }
}

impl Engine {
    /// A buffered request has to wait for its file: it is in line.
    pub(super) fn waits_for_iolock(&mut self, slot: u32) -> bool {
        let of = &self.load.slots[slot as usize];
        let stream = &self.load.streams[self.load.workers[of.worker as usize].stream];
        let has_files = !stream.files.is_empty();
        let (request, stage) = (of.request, of.stage);
        let Some(locks) = self.journal.as_mut().and_then(|of| of.io_locks.as_mut()) else {
            return false;
        };
        if stage != Stage::Data {
            return false;
        }
        let write = request.op == Op::Write;
        let file = match has_files {
            true => (request.file, 0),
            false => (0, request.offset / locks.file_size),
        };
        let lock = locks.files.entry(file).or_default();
        if !lock.waiting.is_empty() || !lock.is_free(write) {
            lock.waiting.push_back((slot, write));
            return true;
        }
        lock.take(write);
        locks.held.insert(slot, (file, write));
        false
    }

    /// The request has its data; those in line behind it go on.
    pub(super) fn release_iolock(&mut self, slot: u32) -> Outcome {
        let Some(locks) = self.journal.as_mut().and_then(|of| of.io_locks.as_mut()) else {
            return Ok(());
        };
        let Some((file, write)) = locks.held.remove(&slot) else {
            return Ok(());
        };
        let lock = locks.files.entry(file).or_default();
        if write {
            lock.has_writer = false;
        } else {
            lock.readers -= 1;
        }
        let mut granted = Vec::new();
        while let Some(&(next, write)) = lock.waiting.front()
            && lock.is_free(write)
        {
            lock.waiting.pop_front();
            lock.take(write);
            locks.held.insert(next, (file, write));
            granted.push(next);
        }
        for next in granted {
            self.begin_buffered(next)?;
        }
        Ok(())
    }
}
