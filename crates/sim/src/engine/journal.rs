//! fsyncs on a file system with a log.
//!
//! With `[filesystem]` the rules are those of Linux 6.1. A write changes the inode's times once a timer tick (`current_time`,
//! `file_update_time`), and the next fsync writes the log. On ext4 a transaction's descriptor and inode go first, then, between two
//! flushes, the block that commits them (`jbd2_journal_commit_transaction`); XFS writes a record between two flushes
//! (`xlog_write_iclog`: REQ_PREFLUSH and REQ_FUA). Without a change an fsync flushes once, as does an fdatasync. Left out: a
//! journal that is full, and commits every 5 s.
//!
//! With `[files]` the rules are those of older kernels. Direct writes change the file's times, so an fsync writes the inode to the log: one write at a time, and all who come
//! meanwhile share the next one (XFS `xfs_fsync`, `xlog_state_sync`: it waits for the previous log buffer). The log is
//! written in order, on XFS in the middle of the file system (mkfs.xfs: the allocation group in the middle), and so on ext4
//! (e2fsprogs since 1.41 `write_journal_inode`, with flex_bg); on ext3 at its beginning.

use std::collections::VecDeque;

use spindle_workload::{Op, Request};

use super::bio::{Bio, Chain, Issuer, Manner, Owner};
use super::load::{Slot, Stage};
use super::locks::Locks;
use super::{BLOCK, Engine, Outcome, Target};
use crate::machine::{Files, FilesKind, Log, LogKind};
use crate::ticks::Ticks;

/// Bytes of a log write with an inode: the header of the record, a block, and the inode's core with its headers, another
/// (`xlog_rec_header`, `xfs_inode_log_format`).
const RECORD: u64 = 1024;
/// Bytes of a log write of ext3 and ext4: descriptor, inode block and commit block of 4 KiB each (`journal_commit_transaction`).
const TRANSACTION: u64 = 12 << 10;
/// Bytes of the log; it begins again from its first byte then.
const LOG: u64 = 32 << 20;

/// A part of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The journal's superblock, before its first transaction (`JBD2_FLUSHED`).
    Head,
    /// All drives' caches are emptied (REQ_PREFLUSH).
    Flush,
    /// Descriptor and inodes, or the record.
    Record,
    /// The block that commits a transaction.
    Commit,
    /// The caches of the drives that were written to are emptied (REQ_FUA).
    FlushWritten,
}

const TRANSACTION_PARTS: &[Part] = &[
    Part::Head,
    Part::Record,
    Part::Flush,
    Part::Commit,
    Part::FlushWritten,
];
const RECORD_PARTS: &[Part] = &[Part::Flush, Part::Record, Part::FlushWritten];

/// `XLOG_TOTAL_REC_SHIFT`, bytes.
const AHEAD: u64 = 2 << 20;
/// Most reads of a step that opens a file.
const READS: usize = 4;
/// Inodes in a block of a transaction.
const INODES: usize = 16;

/// The inode of a file.
#[derive(Debug, Default)]
struct Inode {
    /// Tick of its times, counted from 1.
    changed: u64,
    /// The transaction that has the change.
    transaction: u64,
    /// XFS: fsyncs that wait for a commit. They share the inode's lock, which who changes the times needs alone
    /// (`xfs_fsync_flush_log`, `xfs_vn_update_time`).
    holders: u32,
    /// Slots of writes that wait until they may change the times, and of what came after them.
    queue: VecDeque<Waiter>,
}

/// A request that waits for an inode.
#[derive(Debug, Clone, Copy)]
struct Waiter {
    slot: u32,
    /// It has changed the times, and waits to look for its blocks.
    is_noted: bool,
}

impl Waiter {
    fn new(slot: u32) -> Waiter {
        Waiter {
            slot,
            is_noted: false,
        }
    }
}

/// Use of a file's inode by a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// It changes no times: the load's files are open with O_NOATIME.
    Reads,
    /// It changes the times.
    Writes,
    /// It changes the times, and looks for the places of blocks, which pages in memory may lack: XFS has the inode's lock alone then
    /// (`xfs_buffered_write_iomap_begin`).
    WritesPages,
}

/// The commits of a `[filesystem]`.
struct Commits {
    log: Log,
    flushes: bool,
    ticks: Ticks,
    /// By number of the file.
    inodes: Vec<Inode>,
    /// Number of the transaction that takes changes, from 1.
    transaction: u64,
    /// The one before it is being written, and so many of its parts are done.
    is_writing: bool,
    done: usize,
    /// Nothing was written to the journal since mkfs.
    is_empty: bool,
    /// fsyncs of the commit being written that flush once more after it.
    flushers: Vec<u32>,
    /// Memory for those of a commit that ends.
    ended: Vec<u32>,
}

impl Commits {
    fn parts(&self) -> &'static [Part] {
        match self.log.kind {
            LogKind::Transactions(_) => TRANSACTION_PARTS,
            LogKind::Records(_) => RECORD_PARTS,
        }
    }

    fn inode(&mut self, file: u32) -> &mut Inode {
        let at = file as usize;
        if self.inodes.len() <= at {
            self.inodes.resize_with(at + 1, Inode::default);
        }
        &mut self.inodes[at]
    }

    /// A request begins: false if it has to wait, as it changes the inode's times and cannot do so now, or does not get its
    /// lock.
    fn note_access(&mut self, slot: u32, file: u32, now_ns: u64, access: Access) -> bool {
        let transaction = self.transaction;
        let is_recording = self.is_recording();
        let waits = self.locks_inodes() && self.waits_for_inode(file, now_ns, access);
        let changes = self.changes_times(file, now_ns, access);
        let tick = self.ticks.count(now_ns) + 1;
        let inode = self.inode(file);
        if waits {
            inode.queue.push_back(Waiter::new(slot));
            return false;
        }
        if !changes {
            return true;
        }
        inode.changed = tick;
        if is_recording && inode.transaction + 1 == transaction {
            // Its block is on the way to the journal (`BH_Shadow`). Others find the times changed already.
            inode.queue.push_back(Waiter::new(slot));
            return false;
        }
        inode.transaction = transaction;
        true
    }

    /// True if a request changes the times of the inode: writes do once a tick.
    fn changes_times(&mut self, file: u32, now_ns: u64, access: Access) -> bool {
        let tick = self.ticks.count(now_ns) + 1;
        access != Access::Reads && self.inode(file).changed != tick
    }

    /// True if it needs the inode's lock alone.
    fn is_alone(&mut self, file: u32, now_ns: u64, access: Access) -> bool {
        access == Access::WritesPages || self.changes_times(file, now_ns, access)
    }

    /// True if it does not get the inode's lock. That is fair: who comes after one that waits waits too.
    fn waits_for_inode(&mut self, file: u32, now_ns: u64, access: Access) -> bool {
        let alone = self.is_alone(file, now_ns, access);
        let inode = self.inode(file);
        !inode.queue.is_empty() || alone && inode.holders > 0
    }

    /// True if who syncs has the inode's lock until the log is written.
    fn locks_inodes(&self) -> bool {
        matches!(self.log.kind, LogKind::Records(_))
    }

    /// True while the record of an ext4 transaction is being written.
    fn is_recording(&self) -> bool {
        let is_of_record = |part: &Part| matches!(part, Part::Head | Part::Record);
        let is_of_ext4 = matches!(self.log.kind, LogKind::Transactions(_));
        self.is_writing && is_of_ext4 && self.parts().get(self.done).is_some_and(is_of_record)
    }

    /// True if an fsync that comes now and shares the commit flushes once more after it: on ext4 if the commit's own flush
    /// has begun (`jbd2_trans_will_send_data_barrier`), on XFS always, unless it began the commit (`log_flushed` in
    /// `xfs_file_fsync`).
    fn flushes_again(&self) -> bool {
        let is_flush = |part: &Part| *part == Part::Flush;
        let flush = self.parts().iter().position(is_flush);
        self.flushes && (self.locks_inodes() || flush.is_some_and(|flush| self.done >= flush))
    }

    /// Bytes of the transaction or record with all changes.
    fn record(&self) -> u64 {
        match self.log.kind {
            LogKind::Transactions(block) => {
                let has_change = |at: &usize| self.inodes[*at].transaction == self.transaction;
                let changed = (0..self.inodes.len()).filter(has_change);
                let mut last = None;
                let is_next = |block: &usize| last.replace(*block) != Some(*block);
                let blocks = changed.map(|at| at / INODES).filter(is_next).count();
                (1 + blocks as u64) * block
            }
            LogKind::Records(_) => RECORD,
        }
    }

    /// Whole units or blocks of the log.
    fn rounded(&self, bytes: u64) -> u64 {
        match self.log.kind {
            LogKind::Transactions(block) => bytes.next_multiple_of(block),
            LogKind::Records(unit) => bytes.next_multiple_of(unit),
        }
    }

    /// Bytes of the block that commits a transaction.
    fn commit_block(&self) -> u64 {
        match self.log.kind {
            LogKind::Transactions(block) => block,
            LogKind::Records(_) => 0,
        }
    }
}

/// The log of the file system, and the locks of its files.
pub(crate) struct Journal {
    rules: LogRules,
    /// Slot of the log's own write.
    slot: u32,
    first: u64,
    head: u64,
    record: u64,
    /// Slots whose fsync the write under way is for, and those that share the next.
    running: Vec<u32>,
    waiting: Vec<u32>,
    /// Memory for those of a commit that ends.
    ended: Vec<u32>,
    /// Places of the reads that open or make the test file, one step after another; reads of a step under way; and workers
    /// that wait until they are done.
    pub(super) opening: VecDeque<Vec<(u64, u64)>>,
    reads: usize,
    openers: Vec<u32>,
    /// Locks of files on older kernels.
    pub(super) locks: Option<Locks>,
}

/// Whose log it is.
enum LogRules {
    Files(Files),
    Commits(Commits),
}

impl Journal {
    /// The log of a `[filesystem]`, with or without flushes. `slot`: one that is no request of the load.
    pub(crate) fn of_file_system(log: Log, flushes: bool, ticks: Ticks, slot: u32) -> Journal {
        Journal {
            rules: LogRules::Commits(Commits {
                log,
                flushes,
                ticks,
                inodes: Vec::new(),
                transaction: 1,
                is_writing: false,
                done: 0,
                is_empty: false,
                flushers: Vec::new(),
                ended: Vec::new(),
            }),
            slot,
            first: log.first,
            head: log.begin,
            record: 0,
            running: Vec::new(),
            waiting: Vec::new(),
            ended: Vec::new(),
            opening: VecDeque::new(),
            reads: 0,
            openers: Vec::new(),
            locks: matches!(log.kind, LogKind::Records(_)).then(Locks::of_one_file_of_xfs),
        }
    }

    /// `capacity`: bytes of the file system. `slot`: one that is no request of the load.
    pub(crate) fn new(files: Files, capacity: u64, slot: u32) -> Journal {
        let middle = capacity / 2 / RECORD * RECORD;
        let (first, record) = match files.kind {
            FilesKind::Xfs => (middle, RECORD),
            FilesKind::Ext4 => (middle, TRANSACTION),
            FilesKind::Ext3 | FilesKind::Ext2 => (0, TRANSACTION),
        };
        Journal {
            rules: LogRules::Files(files),
            slot,
            first,
            head: 0,
            record,
            running: Vec::new(),
            waiting: Vec::new(),
            ended: Vec::new(),
            opening: VecDeque::new(),
            reads: 0,
            openers: Vec::new(),
            locks: Some(Locks::of(files)),
        }
    }

    /// Slots for the log's writes, and for the reads that open a file.
    pub(crate) fn slots() -> impl Iterator<Item = Slot> {
        std::iter::repeat_with(Journal::slot).take(READS)
    }

    fn slot() -> Slot {
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
            is_begun: false,
            has_looked: false,
        }
    }

    /// Kind of `[files]`.
    fn kind(&self) -> Option<FilesKind> {
        match &self.rules {
            LogRules::Files(files) => Some(files.kind),
            LogRules::Commits(_) => None,
        }
    }

    fn commits(&mut self) -> Option<&mut Commits> {
        match &mut self.rules {
            LogRules::Files(_) => None,
            LogRules::Commits(commits) => Some(commits),
        }
    }

    /// Steps of reads that make the test file.
    pub(super) fn opens_with(&mut self, steps: &[Vec<(u64, u64)>]) {
        let parts = steps.iter().flat_map(|step| step.chunks(READS));
        self.opening = parts.map(<[_]>::to_vec).collect();
    }

    /// The worker waits until the test file is open.
    pub(super) fn is_opened_for(&self, worker: u32) -> bool {
        self.openers.contains(&worker)
    }

    /// The file system is new: nothing but what mkfs writes is in its log.
    pub(super) fn begin_empty(&mut self) {
        if let Some(commits) = self.commits() {
            commits.is_empty = true;
        }
    }

    /// First byte and bytes that mounting XFS writes: what is left of older records ahead of the log's first
    /// (`xlog_clear_stale_blocks`).
    pub(super) fn written_by_mount(&mut self) -> Option<(u64, u64)> {
        let log = self.commits()?.log;
        let is_xfs = matches!(log.kind, LogKind::Records(_));
        let bytes = AHEAD.min(log.bytes - log.begin.min(log.bytes));
        is_xfs.then_some((log.first + log.begin, bytes))
    }

    /// True if the log's place is one on the array or drive, not in the load's files.
    pub(super) fn has_own_place(&self) -> bool {
        matches!(self.rules, LogRules::Commits(_))
    }
}

impl Engine {
    /// True if an fsync writes a log.
    pub(super) fn syncs_write_a_log(&self) -> bool {
        self.journal.as_ref().is_some_and(|of| match &of.rules {
            LogRules::Files(files) => files.has_log(),
            LogRules::Commits(_) => true,
        })
    }

    /// XFS writes its log with `_XBF_RUN_QUEUES`, which is WRITE_SYNC (`XFS_bwrite`, `_xfs_buf_ioapply`); JBD does since 2.6.30.
    pub(super) fn log_is_sync(&self) -> bool {
        let is_xfs = |journal: &Journal| journal.kind() == Some(FilesKind::Xfs);
        self.journal.as_deref().is_some_and(is_xfs)
            || !self.rules.kernel.counts_requests_by_direction()
    }

    /// Begins an fsync: the data of the file are on their way to the medium.
    pub(super) fn sync_log(&mut self, slot: u32) -> Outcome {
        if self.journal.as_ref().is_some_and(|of| of.has_own_place()) {
            return self.sync_commits(slot);
        }
        if self.waits_to_log(slot) {
            return Ok(());
        }
        self.join_log(slot)
    }

    /// Shares the next write of the log.
    pub(super) fn join_log(&mut self, slot: u32) -> Outcome {
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

    fn write_log(&mut self) -> Outcome {
        let kernel = self.rules.kernel;
        let is_array = matches!(self.target, Target::Array(_));
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        std::mem::swap(&mut journal.running, &mut journal.waiting);
        let slot = journal.slot;
        let offset = journal.first + journal.head;
        journal.head = (journal.head + journal.record) % LOG;
        let LogRules::Files(files) = &journal.rules else {
            return Ok(());
        };
        let is_barrier = files.barriers && kernel.drains_for_barriers() && !is_array;
        let of = &mut self.load.slots[slot as usize];
        of.stage = Stage::Log;
        of.request.offset = offset;
        of.request.len = journal.record as u32;
        if !is_barrier {
            self.issue(slot, false)?;
            self.pull_plug()?;
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

    /// A worker begins: true if it has to wait until the test file is open.
    pub(super) fn opens_file(&mut self, worker: u32) -> Outcome<bool> {
        let Some(journal) = &mut self.journal else {
            return Ok(false);
        };
        if journal.opening.is_empty() && journal.openers.is_empty() {
            return Ok(false);
        }
        journal.openers.push(worker);
        if journal.openers.len() == 1 {
            self.open_file()?;
        }
        Ok(true)
    }

    /// Reads what opens or makes the test file. Once that is there, the slot is the log's again.
    fn open_file(&mut self) -> Outcome {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        journal.reads = journal.reads.saturating_sub(1);
        if journal.reads > 0 {
            return Ok(());
        }
        let slot = journal.slot;
        if let Some(step) = journal.opening.pop_front() {
            let several = step.len() > 1;
            journal.reads = step.len();
            for (at, (first, bytes)) in step.into_iter().enumerate() {
                let slot = slot + at as u32;
                let request = &mut self.load.slots[slot as usize].request;
                (request.op, request.offset, request.len) = (Op::Read, first, bytes as u32);
                self.issue(slot, several)?;
            }
            return self.unplug();
        }
        let openers = std::mem::take(&mut journal.openers);
        self.load.slots[journal.slot as usize].request.op = Op::Write;
        for worker in openers {
            self.go_on(worker as usize)?;
        }
        Ok(())
    }

    /// The log is written: those who waited for it see the end of their fsync, after the drives' caches are empty if the kernel
    /// flushes them.
    pub(super) fn log_done(&mut self) -> Outcome {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        if !journal.openers.is_empty() {
            return self.open_file();
        }
        let LogRules::Files(files) = &journal.rules else {
            return self.commit_part_done();
        };
        let flushes = files.barriers && self.rules.kernel.flushes();
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

    /// A request of the load begins, and uses the inode of its file: false if it has to wait for that.
    pub(super) fn note_access(&mut self, slot: u32) -> bool {
        let of = &self.load.slots[slot as usize];
        if of.stage != Stage::Data {
            return true;
        }
        let (file, now_ns, access) = (of.request.file, self.now_ns, self.access(slot));
        let commits = self.journal.as_deref_mut().and_then(Journal::commits);
        commits.is_none_or(|commits| commits.note_access(slot, file, now_ns, access))
    }

    fn access(&self, slot: u32) -> Access {
        let of = &self.load.slots[slot as usize];
        match of.request.op {
            Op::Read | Op::Rewrite => Access::Reads,
            _ if self.is_buffered(of.worker) => Access::WritesPages,
            _ => Access::Writes,
        }
    }

    /// An fsync of a `[filesystem]`: the data of the file are on the drives, or in their caches.
    fn sync_commits(&mut self, slot: u32) -> Outcome {
        let of = &self.load.slots[slot as usize];
        let stream = &self.load.streams[self.load.workers[of.worker as usize].stream];
        let of_inode = match of.stage {
            Stage::Sync => !stream.fdatasyncs,
            Stage::Durable => stream.osync,
            _ => false,
        };
        let file = of.request.file;
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let Some(commits) = journal.commits() else {
            return Ok(());
        };
        let (flushes, transaction) = (commits.flushes, commits.transaction);
        let (is_writing, locks) = (commits.is_writing, commits.locks_inodes());
        // A longer file, and one with new extents, is only there once the log says so: an fdatasync writes that too.
        let grows = self.growth.as_ref().is_some_and(|of| of.has_change());
        let of_inode = of_inode || grows;
        let inode = commits.inode(file);
        if grows {
            inode.transaction = transaction;
        }
        if of_inode && locks && !inode.queue.is_empty() {
            inode.queue.push_back(Waiter::new(slot));
            return Ok(());
        }
        let is_under_way = is_writing && inode.transaction + 1 == transaction;
        if of_inode && (inode.transaction == transaction || is_under_way) {
            inode.holders += 1;
            if is_under_way {
                if commits.flushes_again() {
                    commits.flushers.push(slot);
                }
                journal.running.push(slot);
                return Ok(());
            }
            journal.waiting.push(slot);
            return match is_writing {
                true => Ok(()),
                false => self.begin_commit(),
            };
        }
        if !flushes {
            return self.parts_done(slot);
        }
        self.load.slots[slot as usize].left = self.flush(slot);
        Ok(())
    }

    fn begin_commit(&mut self) -> Outcome {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        std::mem::swap(&mut journal.running, &mut journal.waiting);
        if let LogRules::Commits(commits) = &mut journal.rules {
            if commits.flushes && commits.locks_inodes() {
                // The first one begins the commit.
                commits.flushers.extend(journal.running.iter().skip(1));
            }
            let plain = commits.record();
            let record = commits.rounded(self.growth.as_mut().map_or(plain, |of| of.log(plain)));
            commits.transaction += 1;
            (commits.is_writing, commits.done) = (true, 0);
            journal.record = record;
        }
        self.write_part()
    }

    /// Begins the next part of the commit, or ends it.
    fn write_part(&mut self) -> Outcome {
        loop {
            let Some(journal) = &mut self.journal else {
                return Ok(());
            };
            let (slot, record) = (journal.slot, journal.record);
            let Some(commits) = journal.commits() else {
                return Ok(());
            };
            let Some(part) = commits.parts().get(commits.done) else {
                return self.end_commit();
            };
            let len = match part {
                Part::Head if !std::mem::take(&mut commits.is_empty) => {
                    commits.done += 1;
                    continue;
                }
                Part::Flush | Part::FlushWritten if !commits.flushes => {
                    commits.done += 1;
                    continue;
                }
                Part::Flush => {
                    self.load.slots[slot as usize].left = self.flush(slot);
                    return Ok(());
                }
                Part::FlushWritten => {
                    self.load.slots[slot as usize].left = self.flush_written(slot)?;
                    return Ok(());
                }
                Part::Head => commits.commit_block(),
                Part::Record => record,
                Part::Commit => commits.commit_block(),
            };
            let (room, begin) = (commits.log.bytes, commits.log.begin);
            if journal.head + len > room {
                journal.head = begin;
            }
            let at = match part {
                Part::Head => 0,
                _ => journal.head,
            };
            if *part != Part::Head {
                journal.head += len;
            }
            let of = &mut self.load.slots[slot as usize];
            (of.request.offset, of.request.len) = (journal.first + at, len as u32);
            self.issue(slot, false)?;
            self.pull_plug()?;
            return self.unplug();
        }
    }

    fn commit_part_done(&mut self) -> Outcome {
        let Some(commits) = self.journal.as_deref_mut().and_then(Journal::commits) else {
            return Ok(());
        };
        let was_recording = commits.is_recording();
        commits.done += 1;
        if was_recording {
            self.let_waiters_go_on()?;
        }
        self.write_part()
    }

    /// Requests that waited for their inodes go on, and fsyncs behind them, as far as they can.
    fn let_waiters_go_on(&mut self) -> Outcome {
        let mut file = 0;
        loop {
            let now_ns = self.now_ns;
            let Some(commits) = self.journal.as_deref_mut().and_then(Journal::commits) else {
                return Ok(());
            };
            let Some(inode) = commits.inodes.get(file) else {
                return Ok(());
            };
            let Some(&Waiter { slot, is_noted }) = inode.queue.front() else {
                file += 1;
                continue;
            };
            let locks = commits.locks_inodes();
            let is_locked = inode.holders > 0 && locks;
            let syncs = self.load.slots[slot as usize].stage != Stage::Data;
            let access = self.access(slot);
            let Some(commits) = self.journal.as_deref_mut().and_then(Journal::commits) else {
                return Ok(());
            };
            let number = file as u32;
            if !syncs && is_locked && commits.is_alone(number, now_ns, access) {
                file += 1;
                continue;
            }
            let transaction = commits.transaction;
            let changes = !is_noted && commits.changes_times(number, now_ns, access);
            let tick = commits.ticks.count(now_ns) + 1;
            let inode = commits.inode(number);
            inode.queue.pop_front();
            // Those behind it are no longer in its way.
            let rest = std::mem::take(&mut inode.queue);
            if syncs {
                self.sync_commits(slot)?;
            } else {
                // On ext4 only who is to change the times waits, and has marked that.
                if changes || !locks {
                    (inode.changed, inode.transaction) = (tick, transaction);
                }
                match access {
                    // Those behind it get the lock in between (`xfs_vn_update_time`, `xfs_buffered_write_iomap_begin`).
                    Access::WritesPages if changes && locks && !rest.is_empty() => {
                        let is_noted = true;
                        inode.queue.push_back(Waiter { slot, is_noted });
                    }
                    Access::WritesPages => self.begin_pages(slot)?,
                    Access::Reads | Access::Writes => self.issue_unlocked(slot, false)?,
                }
                self.unplug()?;
            }
            if let Some(commits) = self.journal.as_deref_mut().and_then(Journal::commits) {
                let inode = commits.inode(number);
                let later = std::mem::replace(&mut inode.queue, rest);
                inode.queue.extend(later);
            }
        }
    }

    /// Those who waited for the commit see the end of their fsync. The next one of ext4 begins before they run, so changes that
    /// they make then are not in it (`kjournald2` does not sleep in between).
    fn end_commit(&mut self) -> Outcome {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let mut slots = std::mem::take(&mut journal.running);
        journal.running = std::mem::take(&mut journal.ended);
        let has_next = !journal.waiting.is_empty();
        let mut flushers = Vec::new();
        if let Some(commits) = journal.commits() {
            flushers = std::mem::replace(&mut commits.flushers, std::mem::take(&mut commits.ended));
            commits.is_writing = false;
            for slot in &slots {
                let file = self.load.slots[*slot as usize].request.file;
                commits.inode(file).holders -= 1;
            }
        }
        if has_next {
            self.begin_commit()?;
        }
        self.let_waiters_go_on()?;
        for slot in slots.drain(..) {
            if flushers.contains(&slot) {
                self.load.slots[slot as usize].left = self.flush(slot);
            } else {
                self.parts_done(slot)?;
            }
        }
        flushers.clear();
        if let Some(journal) = &mut self.journal {
            journal.ended = slots;
            if let Some(commits) = journal.commits() {
                commits.ended = flushers;
            }
        }
        Ok(())
    }

    /// The slot is the log's, and its write is to be on the medium (`REQ_FUA`).
    pub(super) fn is_log_forced(&mut self, slot: u32) -> bool {
        let Some(journal) = self.journal.as_deref_mut().filter(|of| of.slot == slot) else {
            return false;
        };
        let commits = journal.commits();
        commits.is_some_and(|of| {
            let part = of.parts().get(of.done);
            of.flushes
                && match of.log.kind {
                    LogKind::Transactions(_) => part == Some(&Part::Commit),
                    LogKind::Records(_) => part == Some(&Part::Record),
                }
        })
    }

    /// Flushes the drives that have the log's last write, with parity all; their number.
    fn flush_written(&mut self, slot: u32) -> Outcome<u32> {
        let request = self.load.slots[slot as usize].request;
        let Target::Array(fabric) = &mut self.target else {
            return Ok(self.flush_drives(slot));
        };
        if fabric.uses_stripes(true) {
            return Ok(self.flush(slot));
        }
        let mut requests = std::mem::take(&mut self.requests);
        fabric.write(request.offset, u64::from(request.len), &mut requests)?;
        let mut members: Vec<u32> = requests.drain(..).map(|request| request.member).collect();
        members.sort_unstable();
        members.dedup();
        members.retain(|member| fabric.is_present(*member));
        self.requests = requests;
        for member in &members {
            self.queues[*member as usize].flush(slot);
            self.touch(*member as usize);
        }
        Ok(members.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commits(kind: LogKind) -> Commits {
        let log = Log {
            kind,
            first: 0,
            bytes: LOG,
            begin: 0,
        };
        let journal = Journal::of_file_system(log, true, Ticks::new(0), 0);
        let LogRules::Commits(commits) = journal.rules else {
            unreachable!("a file system has commits");
        };
        commits
    }

    #[test]
    fn who_comes_after_the_flush_of_a_commit_flushes_again() {
        let (mut ext4, mut xfs) = (
            commits(LogKind::Transactions(4096)),
            commits(LogKind::Records(1024)),
        );
        let mut again = Vec::new();
        for done in 0..TRANSACTION_PARTS.len() {
            (ext4.done, xfs.done) = (done, done.min(RECORD_PARTS.len()));
            assert!(xfs.flushes_again());
            again.push(ext4.flushes_again());
        }
        // The journal's superblock and the transaction's record come before it.
        assert_eq!(again, [false, false, true, true, true]);
        ext4.flushes = false;
        assert!(!ext4.flushes_again(), "nobody flushes without barriers");
    }
}
