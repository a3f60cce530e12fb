//! fsyncs on a file system with a log, and the lock of a file.
//!
//! Direct writes change the file's times, so an fsync writes the inode to the log: one write at a time, and all who come
//! meanwhile share the next one (XFS `xfs_fsync`, `xlog_state_sync`: it waits for the previous log buffer). The log is
//! written in order, on XFS in the middle of the file system (mkfs.xfs: the allocation group in the middle), on ext3 at its beginning.

use std::collections::VecDeque;

use spindle_workload::{Op, Request};

use super::bio::{Bio, Chain, Issuer, Manner, Owner};
use super::iolock::IoLocks;
use super::load::{Slot, Stage};
use super::{BLOCK, Engine, Target};
use crate::error::SimError;
use crate::machine::{Files, FilesKind};

/// Bytes of a log write with an inode: the header of the record, a block, and the inode's core with its headers, another
/// (`xlog_rec_header`, `xfs_inode_log_format`).
const RECORD: u64 = 1024;
/// Bytes of a log write of ext3: descriptor, inode block and commit block of 4 KiB each (`journal_commit_transaction`).
const TRANSACTION: u64 = 12 << 10;
/// Bytes of the log; it begins again from its first byte then.
const LOG: u64 = 32 << 20;

/// The lock of a file.
#[derive(Debug, Default)]
struct Lock {
    holder: Option<u32>,
    waiting: VecDeque<u32>,
}

/// The log of the file system, and the locks of its files.
pub(crate) struct Journal {
    files: Files,
    /// Slot of the log's own write.
    slot: u32,
    first: u64,
    head: u64,
    record: u64,
    /// Slots whose fsync the write under way is for, and those that share the next.
    running: Vec<u32>,
    waiting: Vec<u32>,
    /// By number of the file.
    locks: Vec<Lock>,
    /// Those that buffered readers share, on XFS.
    pub(super) io_locks: Option<IoLocks>,
}

impl Journal {
    /// `capacity`: bytes of the file system. `slot`: one that is no request of the load.
    pub(crate) fn new(files: Files, capacity: u64, slot: u32) -> Journal {
        let middle = capacity / 2 / RECORD * RECORD;
        let (first, record) = match files.kind {
            FilesKind::Xfs => (middle, RECORD),
            FilesKind::Ext3 | FilesKind::Ext2 => (0, TRANSACTION),
        };
        Journal {
            files,
            slot,
            first,
            head: 0,
            record,
            running: Vec::new(),
            waiting: Vec::new(),
            locks: Vec::new(),
            io_locks: IoLocks::of(files),
        }
    }

    /// A slot for the log's writes.
    pub(crate) fn slot() -> Slot {
        Slot {
            worker: 0,
            request: Request {
                offset: 0,
                len: 0,
                file: 0,
                op: Op::Write,
                fsync_after: false,
            },
            issued_ns: 0,
            intended_ns: 0,
            left: 0,
            rest: None,
            waits: false,
            stage: Stage::Log,
            unpaid: false,
        }
    }

    fn lock(&mut self, file: u32) -> &mut Lock {
        let at = file as usize;
        if self.locks.len() <= at {
            self.locks.resize_with(at + 1, Lock::default);
        }
        &mut self.locks[at]
    }
}

impl Engine {
    /// True if an fsync writes a log.
    pub(super) fn syncs_write_a_log(&self) -> bool {
        self.journal
            .as_ref()
            .is_some_and(|journal| journal.files.has_log())
    }

    /// XFS writes its log with `_XBF_RUN_QUEUES`, which is WRITE_SYNC (`XFS_bwrite`, `_xfs_buf_ioapply`); JBD does since 2.6.30.
    pub(super) fn log_is_sync(&self) -> bool {
        let is_xfs = |journal: &Journal| journal.files.kind == FilesKind::Xfs;
        self.journal.as_deref().is_some_and(is_xfs)
            || !self.rules.kernel.counts_requests_by_direction()
    }

    /// A direct request needs the lock of its file, and does not have it: it is in line, or goes on if the lock is free.
    pub(super) fn waits_for_file(&mut self, slot: u32) -> bool {
        if !self.rules.kernel.syncs_lock_files() {
            return false;
        }
        let of = self.load.slots[slot as usize];
        let Some(journal) = &mut self.journal else {
            return false;
        };
        let locks = match of.request.op {
            Op::Read => true,
            // generic_file_aio_write has it until the data are there; XFS shares the file among direct writes.
            _ => journal.files.kind != FilesKind::Xfs,
        };
        if of.stage != Stage::Data || !locks {
            return false;
        }
        let is_write = of.request.op != Op::Read;
        let lock = journal.lock(of.request.file);
        if lock.holder == Some(slot) {
            return false;
        }
        if lock.holder.is_some() {
            lock.waiting.push_back(slot);
            return true;
        }
        if is_write {
            lock.holder = Some(slot);
        }
        false
    }

    /// The request has no more need of its file's lock; those in line go on.
    pub(super) fn unlock_file(&mut self, slot: u32) -> Result<(), SimError> {
        let file = self.load.slots[slot as usize].request.file;
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let lock = journal.lock(file);
        if lock.holder != Some(slot) {
            return Ok(());
        }
        lock.holder = None;
        loop {
            let Some(journal) = &mut self.journal else {
                return Ok(());
            };
            let lock = journal.lock(file);
            if lock.holder.is_some() {
                return Ok(());
            }
            let Some(next) = lock.waiting.pop_front() else {
                return Ok(());
            };
            lock.holder = Some(next);
            let of = self.load.slots[next as usize];
            if of.stage == Stage::Sync {
                self.join_log(next)?;
                continue;
            }
            self.issue(next, false)?;
            self.unplug()?;
            if of.request.op == Op::Read
                && let Some(journal) = &mut self.journal
            {
                journal.lock(file).holder = None;
            }
        }
    }

    /// Begins an fsync: the data of the file are on their way to the medium.
    pub(super) fn sync_log(&mut self, slot: u32) -> Result<(), SimError> {
        let file = self.load.slots[slot as usize].request.file;
        let locks = self.rules.kernel.syncs_lock_files();
        let is_sync = self.load.slots[slot as usize].stage == Stage::Sync;
        if locks
            && is_sync
            && let Some(journal) = &mut self.journal
        {
            let lock = journal.lock(file);
            if lock.holder.is_some() {
                lock.waiting.push_back(slot);
                return Ok(());
            }
            lock.holder = Some(slot);
        }
        self.join_log(slot)
    }

    fn join_log(&mut self, slot: u32) -> Result<(), SimError> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        journal.waiting.push(slot);
        if journal.running.is_empty() {
            self.write_log()
        } else {
            Ok(())
        }
    }

    fn write_log(&mut self) -> Result<(), SimError> {
        let kernel = self.rules.kernel;
        let is_array = matches!(self.target, Target::Array(_));
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        std::mem::swap(&mut journal.running, &mut journal.waiting);
        let slot = journal.slot;
        let offset = journal.first + journal.head;
        journal.head = (journal.head + journal.record) % LOG;
        let is_barrier = journal.files.barriers && kernel.drains_for_barriers() && !is_array;
        let of = &mut self.load.slots[slot as usize];
        of.stage = Stage::Log;
        of.request.offset = offset;
        of.request.len = journal.record as u32;
        if !is_barrier {
            self.issue(slot, false)?;
            return self.unplug();
        }
        of.left = 1;
        let Target::Drive { start } = self.target else {
            return Ok(());
        };
        let lbn = start + (self.rules.partition_start + offset) / BLOCK;
        let blocks = (journal.record / BLOCK) as u32;
        let issuer = Issuer::kernel(self.md_thread());
        let bio = Bio::new(Owner::Load(slot), issuer, lbn, blocks, Manner::WRITE_BACK);
        let id = self.bios.add(bio);
        self.catch_up(0);
        self.queues[0].add_barrier(self.now_ns, Chain::of(id, bio.request));
        self.touch(0);
        Ok(())
    }

    /// The log is written: those who waited for it see the end of their fsync, after the drives' caches are empty if the kernel
    /// flushes them.
    pub(super) fn log_done(&mut self) -> Result<(), SimError> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let flushes = journal.files.barriers && self.rules.kernel.flushes();
        let mut slots = std::mem::take(&mut journal.running);
        for slot in slots.drain(..) {
            if flushes {
                self.load.slots[slot as usize].left = self.flush(slot);
            } else {
                self.seen(slot)?;
            }
        }
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        if journal.running.is_empty() {
            journal.running = slots;
            if !journal.waiting.is_empty() {
                return self.write_log();
            }
        }
        Ok(())
    }
}
