//! Locks of files.
//!
//! - `i_mutex`: who writes through the page cache has it until the data are in memory, on ext who writes past it until they are on
//!   the drive (`generic_file_aio_write`; XFS: `xfs_write`). Until 3.1 an fsync has it while its log is written (`vfs_fsync_range`).
//!   A direct read takes it for a moment (`xfs_read`, `__blockdev_direct_IO`), and so does a seek until 3.2 (`generic_file_llseek`):
//!   a reader at random places is taken to seek.
//! - `XFS_ILOCK`: until 3.1 an fsync has it alone while its log is written (`xfs_fsync`). Who reads pages that are not in memory needs
//!   it to find their blocks (`xfs_iomap`). So does who writes pages back or past the page cache; that is left out.
//! - `XFS_IOLOCK`: `xfs_read` shares it until its pages are there and copied, `xfs_write` has it alone (2.6.0 to 2.6.36
//!   `fs/xfs/linux-2.6/xfs_lrw.c`, later `fs/xfs/xfs_file.c`, to this day). It is fair (`lib/rwsem-spinlock.c`): who comes behind a waiting writer
//!   waits as well. So one writer among readers first waits until all their reads are done, and none begins meanwhile.

use std::collections::{BTreeMap, VecDeque};

use spindle_workload::Op;

use super::load::Stage;
use super::{Engine, Outcome};
use crate::machine::{Files, FilesKind};

/// A file of the load, and the part of it that is one on the machine (`file_size`).
type File = (u32, u64);

/// `i_mutex`, and `XFS_ILOCK` while an fsync has it.
#[derive(Debug, Default)]
struct Mutex {
    holder: Option<u32>,
    waiting: VecDeque<u32>,
}

/// `XFS_IOLOCK`.
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

    /// Gives it to those in line, as far as it goes. `all_readers`: writers go first, and then all readers; before, each in
    /// its turn.
    fn grant(&mut self, all_readers: bool) -> Vec<(u32, bool)> {
        let mut granted = Vec::new();
        let is_free = self.is_free(true);
        let writer = self.waiting.iter().position(|(_, write)| *write);
        if all_readers
            && is_free
            && let Some(writer) = writer.and_then(|at| self.waiting.remove(at))
        {
            self.waiting.push_front(writer);
        }
        while let Some(&(slot, write)) = self.waiting.front()
            && self.is_free(write)
        {
            self.waiting.pop_front();
            self.take(write);
            granted.push((slot, write));
            if !write && all_readers {
                let readers = self.waiting.iter().filter(|(_, write)| !write);
                self.readers += readers.clone().count() as u32;
                granted.extend(readers);
                self.waiting.retain(|(_, write)| *write);
            }
        }
        granted
    }
}

/// The locks of all files.
#[derive(Debug)]
pub(super) struct Locks {
    file_size: u64,
    is_xfs: bool,
    mutexes: BTreeMap<File, Mutex>,
    io: BTreeMap<File, IoLock>,
    /// The file of each slot that has its `XFS_IOLOCK`, and whether it writes.
    held: BTreeMap<u32, (File, bool)>,
}

impl Locks {
    pub(super) fn of(files: Files) -> Locks {
        Locks::new(files.file_size, files.kind == FilesKind::Xfs)
    }

    /// Those of a `[filesystem]`: the test file is one.
    pub(super) fn of_one_file_of_xfs() -> Locks {
        Locks::new(u64::MAX, true)
    }

    fn new(file_size: u64, is_xfs: bool) -> Locks {
        Locks {
            file_size,
            is_xfs,
            mutexes: BTreeMap::new(),
            io: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }
}

impl Engine {
    fn locks(&mut self) -> Option<&mut Locks> {
        self.journal.as_mut().and_then(|of| of.locks.as_mut())
    }

    fn mutex(&mut self, file: File) -> Option<&mut Mutex> {
        let locks = self.locks()?;
        Some(locks.mutexes.entry(file).or_default())
    }

    fn file_of(&self, slot: u32) -> File {
        let of = &self.load.slots[slot as usize];
        let stream = &self.load.streams[self.load.workers[of.worker as usize].stream];
        let locks = self.journal.as_ref().and_then(|of| of.locks.as_ref());
        match locks {
            Some(locks) if stream.files.is_empty() => (0, of.request.offset / locks.file_size),
            _ => (of.request.file, 0),
        }
    }

    fn syncs(&self, slot: u32) -> bool {
        self.load.slots[slot as usize].stage == Stage::Sync
    }

    fn has_mutexes(&self) -> bool {
        self.rules.kernel.syncs_lock_files()
            && (self.journal.as_ref()).is_some_and(|of| of.locks.is_some())
    }

    /// A request needs `i_mutex` or `XFS_ILOCK` of its file, and does not get it: it is in line.
    pub(super) fn waits_for_file(&mut self, slot: u32) -> bool {
        if !self.has_mutexes() {
            return false;
        }
        let of = self.load.slots[slot as usize];
        if of.stage != Stage::Data {
            return false;
        }
        let stream = &self.load.streams[self.load.workers[of.worker as usize].stream];
        let (buffered, seeks) = (stream.buffered, stream.seeks);
        let is_write = !matches!(of.request.op, Op::Read | Op::Rewrite);
        let is_xfs = self.locks().is_some_and(|of| of.is_xfs);
        let file = self.file_of(slot);
        let holder = self.mutex(file).and_then(|of| of.holder);
        let waits = holder.is_some_and(|holder| match (buffered, is_write) {
            (false, true) => !is_xfs,
            (true, false) => seeks || is_xfs && self.syncs(holder),
            (false, false) | (true, true) => true,
        });
        let takes = is_write && (buffered || !is_xfs);
        let Some(mutex) = self.mutex(file) else {
            return false;
        };
        if holder == Some(slot) {
            return false;
        }
        if waits {
            mutex.waiting.push_back(slot);
        } else if takes {
            mutex.holder = Some(slot);
        }
        waits
    }

    /// An fsync does not get its file for itself: it is in line.
    pub(super) fn waits_to_log(&mut self, slot: u32) -> bool {
        if !self.has_mutexes() || !self.syncs(slot) {
            return false;
        }
        let file = self.file_of(slot);
        let Some(mutex) = self.mutex(file) else {
            return false;
        };
        if mutex.holder.is_some() {
            mutex.waiting.push_back(slot);
            return true;
        }
        mutex.holder = Some(slot);
        false
    }

    /// The request has no more need of its file; those in line go on.
    pub(super) fn unlock_file(&mut self, slot: u32) -> Outcome {
        let file = self.file_of(slot);
        match self.mutex(file) {
            Some(mutex) if mutex.holder == Some(slot) => mutex.holder = None,
            _ => return Ok(()),
        }
        while let Some(mutex) = self.mutex(file)
            && mutex.holder.is_none()
            && let Some(next) = mutex.waiting.pop_front()
        {
            let of = self.load.slots[next as usize];
            if let Some(mutex) = self.mutex(file) {
                mutex.holder = Some(next);
            }
            if self.syncs(next) {
                self.join_log(next)?;
                continue;
            }
            self.issue(next, false)?;
            self.unplug()?;
            if matches!(of.request.op, Op::Read | Op::Rewrite)
                && let Some(mutex) = self.mutex(file).filter(|of| of.holder == Some(next))
            {
                mutex.holder = None;
            }
        }
        Ok(())
    }

    /// A buffered request has to wait for its file on XFS: it is in line.
    pub(super) fn waits_for_iolock(&mut self, slot: u32) -> bool {
        let request = self.load.slots[slot as usize].request;
        let (file, stage) = (self.file_of(slot), self.load.slots[slot as usize].stage);
        let Some(locks) = self.locks().filter(|of| of.is_xfs) else {
            return false;
        };
        if stage != Stage::Data {
            return false;
        }
        let write = request.op == Op::Write;
        let lock = locks.io.entry(file).or_default();
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
        let wakes_all_readers = self.rules.kernel.wakes_all_readers();
        let Some(locks) = self.locks() else {
            return Ok(());
        };
        let Some((file, write)) = locks.held.remove(&slot) else {
            return Ok(());
        };
        let lock = locks.io.entry(file).or_default();
        if write {
            lock.has_writer = false;
        } else {
            lock.readers -= 1;
        }
        let granted = lock.grant(wakes_all_readers);
        for (next, write) in &granted {
            locks.held.insert(*next, (file, *write));
        }
        for (next, _) in granted {
            self.begin_buffered(next)?;
        }
        Ok(())
    }
}
