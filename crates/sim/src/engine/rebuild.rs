//! A member that is being rebuilt beside the load, or a check of all members: md's thread for it (`md_do_sync`) and its turns with the load.
//!
//! Linux 6.1 `drivers/md/md.c` (`md_do_sync`, `is_mddev_idle`), `raid1.c` and `raid10.c` (`raise_barrier`,
//! `wait_barrier`, `raid1_sync_request`, `raid10_sync_request`), `raid5.c` (`raid5_sync_request`). Mirrors are rebuilt in
//! units of 64 KiB, parity arrays in rows of 4 KiB of the stripe cache.

use super::bio::{Issuer, Manner, Owner};
use super::slab::Slab;
use super::{Engine, Outcome, Target};
use crate::figures::RebuildFigures;
use crate::kernel::Kernel;
use crate::ticks::{HZ, Ticks};

/// `RESYNC_BLOCK_SIZE`, bytes.
const UNIT: u64 = 64 * 1024;
/// `RESYNC_DEPTH` of RAID1, and of RAID10: units that hold the barrier.
const RAID1_DEPTH: u32 = 32;
const RAID10_DEPTH: u32 = 512;
/// Interval between two checks of the speed (`window` of `md_do_sync`), bytes.
const WINDOW: u64 = 128 * 1024;
/// `SYNC_MARKS`, `SYNC_MARK_STEP`.
const MARKS: usize = 10;
const MARK_TICKS: u64 = 3 * HZ;
/// Pause of a rebuild that is too fast, in ticks (`msleep(500)`: one more than these).
const SLEEP_TICKS: u64 = HZ / 2 + 1;
/// Blocks of others since the last check that still count as idle.
const IDLE_BLOCKS: i64 = 64;
/// md notes how far it is after each 16th of the member (`curr_resync_completed`), or after 10 minutes.
const NOTES: u64 = 16;
const NOTE_NS: u64 = 600_000_000_000;

/// Its thread is new, and so behind md's (`START_DEBIT`), for so many ticks: measured in the lab.
const NEW_TICKS: u64 = 2;

/// How an array is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// By rows of the stripe cache.
    Rows,
    /// By units; reads of the load do not wait for them, and writes only in the same bucket.
    Buckets,
    /// By units no longer than this; the load and the rebuild take turns.
    Turns { longest: u64 },
}

/// A stretch of the member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Reads, then the write, that are not done.
    pub(crate) left: u32,
    pub(crate) writing: bool,
}

/// The next action of md's thread for the rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Wait,
    /// It begins this unit.
    Unit(u32),
    /// It wants a head of the stripe cache for the row at this offset; `waited`: the cache was full before.
    Row {
        offset: u64,
        waited: bool,
    },
    /// It hands over the row that it got after waiting.
    HandOver,
    /// It has noted how far it is: md's thread writes the superblocks.
    Note,
    /// It looks whether another thread wants the processor, and md's takes it.
    GiveWay,
}

/// Where md's thread for the rebuild is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Next,
    /// Until nothing of its own is under way, then it notes how far it is.
    Noting,
    /// Others wait at the barrier: it lets them go first.
    Yields(u64),
    /// Until nobody waits at the barrier.
    Raises,
    /// The barrier is up; until the load's requests are done.
    Raised,
    /// Until the stripe cache has a head.
    Blocked,
    /// It has a head, after waiting for one.
    Holds(u64),
    /// It has begun a unit or row.
    Begun,
    Sleeps(u64),
    /// Until nothing of its own is under way.
    Drains,
}

/// The barrier between the load and the rebuild, one for the array or one for each of the buckets.
#[derive(Debug)]
struct Barrier {
    /// Units of the rebuild.
    raised: Vec<u32>,
    /// Requests of the load.
    pending: Vec<u32>,
    /// Slots that wait, with their bucket.
    waiting: Vec<(u32, usize)>,
    /// Those that are about to wait.
    arriving: Vec<(u32, usize)>,
    method: Method,
}

/// `BARRIER_BUCKETS_NR`, `BARRIER_UNIT_SECTOR_BITS` in bytes.
const BUCKETS_BITS: u32 = 10;
const BUCKET_BITS: u32 = 26;
/// Bytes of a bucket's stretch of the array (`BARRIER_UNIT_SECTOR_SIZE`).
pub(super) const BARRIER_UNIT: u64 = 1 << BUCKET_BITS;

impl Barrier {
    fn new(method: Method) -> Barrier {
        let buckets = match method {
            Method::Buckets => 1 << BUCKETS_BITS,
            _ => 1,
        };
        Barrier {
            raised: vec![0; buckets],
            pending: vec![0; buckets],
            waiting: Vec::new(),
            arriving: Vec::new(),
            method,
        }
    }

    /// `sector_to_idx`, `hash_long`.
    fn bucket(&self, offset: u64) -> usize {
        match self.method {
            Method::Buckets => {
                let hash = (offset >> BUCKET_BITS).wrapping_mul(0x61C8_8646_80B5_83EB);
                (hash >> (64 - BUCKETS_BITS)) as usize
            }
            _ => 0,
        }
    }

    fn depth(&self) -> u32 {
        match self.method {
            Method::Buckets => RAID1_DEPTH,
            _ => RAID10_DEPTH,
        }
    }

    fn is_waited_at(&self, bucket: usize) -> bool {
        self.waiting.iter().any(|&(_, of)| of == bucket)
    }
}

/// The rebuild.
#[derive(Debug)]
pub(crate) struct Rebuild {
    /// `None`: it checks.
    pub(crate) member: Option<u32>,
    size: u64,
    method: Method,
    ticks: Ticks,
    state: State,
    barrier: Barrier,
    pub(crate) units: Slab<Unit>,
    /// Start of the next unit.
    next: u64,
    under_way: u64,
    /// Below this md has noted that the member is complete.
    completed: u64,
    noted_ns: u64,
    speed_min: u64,
    speed_max: u64,
    /// Sleeps when it finds others at work; since 4.1 it waits for its own requests instead.
    sleeps: bool,
    last_check: u64,
    /// At the last check it has given way.
    gave_way: bool,
    /// Ticks and bytes that were done (`resync_mark`), in turn.
    marks: [(u64, u64); MARKS],
    mark: usize,
    /// The mark from which the speed counts.
    since: (u64, u64),
    /// Blocks of others at the last time when they were found at work (`last_events`).
    last_blocks: Vec<i64>,
    /// Its own blocks, counted when they are sent (`sync_io`).
    own_blocks: Vec<i64>,
    done_bytes: u64,
    finished_ns: Option<u64>,
}

impl Rebuild {
    /// Speeds in bytes per second.
    pub(crate) fn new(
        member: Option<u32>,
        size: u64,
        members: usize,
        (speed_min, speed_max): (u64, u64),
        method: Method,
        kernel: Kernel,
    ) -> Rebuild {
        Rebuild {
            member,
            size,
            method,
            ticks: Ticks::default(),
            state: State::Next,
            barrier: Barrier::new(method),
            units: Slab::with_capacity(RAID1_DEPTH as usize),
            next: 0,
            under_way: 0,
            completed: 0,
            noted_ns: 0,
            speed_min,
            speed_max,
            sleeps: kernel < Kernel::new(4, 1, 0),
            last_check: 0,
            gave_way: false,
            marks: [(0, 0); MARKS],
            mark: 0,
            since: (0, 0),
            last_blocks: vec![0; members],
            own_blocks: vec![0; members],
            done_bytes: 0,
            finished_ns: None,
        }
    }

    /// Its sleeps end with ticks.
    pub(crate) fn follow(&mut self, ticks: Ticks) {
        self.ticks = ticks;
        self.since = (ticks.count(0), 0);
        self.marks = [self.since; MARKS];
    }

    /// Below this every byte of the member serves reads (`recovery_offset`).
    pub(crate) fn recovered(&self) -> u64 {
        self.completed
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished_ns.is_some()
    }

    /// When it wakes by itself.
    pub(crate) fn wakes_ns(&self) -> Option<u64> {
        match self.state {
            State::Yields(at_ns) | State::Holds(at_ns) | State::Sleeps(at_ns) => Some(at_ns),
            _ => None,
        }
    }

    /// The next step at `now_ns`. `blocks`: the blocks that each drive has moved so far.
    pub(crate) fn step(&mut self, now_ns: u64, blocks: impl Fn(usize) -> u64) -> Step {
        loop {
            let bucket = self.barrier.bucket(self.next);
            let state = match self.state {
                State::Yields(at_ns) | State::Holds(at_ns) | State::Sleeps(at_ns)
                    if now_ns < at_ns =>
                {
                    return Step::Wait;
                }
                State::Noting | State::Drains if self.under_way > 0 => return Step::Wait,
                State::Raises if self.barrier.is_waited_at(bucket) => return Step::Wait,
                State::Raised
                    if self.barrier.pending[bucket] > 0
                        || self.barrier.raised[bucket] >= self.barrier.depth() =>
                {
                    return Step::Wait;
                }
                State::Next if self.next >= self.size => return Step::Wait,
                State::Next if self.has_to_note(now_ns) => State::Noting,
                State::Next => self.begins(now_ns, bucket),
                State::Noting => {
                    self.completed = self.next;
                    self.noted_ns = now_ns;
                    self.state = self.begins(now_ns, bucket);
                    return Step::Note;
                }
                State::Yields(_) => State::Raises,
                State::Raises if self.method == Method::Rows => {
                    return Step::Row {
                        offset: self.next,
                        waited: false,
                    };
                }
                State::Blocked => {
                    return Step::Row {
                        offset: self.next,
                        waited: true,
                    };
                }
                State::Raises => {
                    self.barrier.raised[bucket] += 1;
                    State::Raised
                }
                State::Raised => {
                    self.state = State::Begun;
                    return Step::Unit(self.begin_unit());
                }
                State::Holds(_) => {
                    self.state = State::Begun;
                    return Step::HandOver;
                }
                State::Begun => {
                    if self.gives_way(now_ns) {
                        return Step::GiveWay;
                    }
                    self.after(now_ns, &blocks)
                }
                State::Sleeps(_) => self.pace(now_ns, &blocks),
                State::Drains => State::Next,
            };
            self.state = state;
        }
    }

    fn begins(&self, now_ns: u64, bucket: usize) -> State {
        match self.barrier.is_waited_at(bucket) {
            true => State::Yields(self.ticks.timer_ns(now_ns, 1)),
            false => State::Raises,
        }
    }

    fn has_to_note(&self, now_ns: u64) -> bool {
        self.next - self.completed > self.size / NOTES || now_ns >= self.noted_ns + NOTE_NS
    }

    fn begin_unit(&mut self) -> u32 {
        let longest = match self.method {
            Method::Turns { longest } => longest.min(UNIT),
            _ => UNIT,
        };
        let len = (longest - self.next % longest).min(self.size - self.next);
        let unit = self.units.add(Unit {
            offset: self.next,
            len,
            left: 0,
            writing: false,
        });
        self.next += len;
        self.under_way += len;
        unit
    }

    /// The row that it wanted has a head, or has none. If it waited for the head it sleeps before it hands it over.
    pub(crate) fn row_placed(&mut self, now_ns: u64, placed: bool, len: u64) {
        if !placed {
            self.state = State::Blocked;
            return;
        }
        self.state = match self.state {
            State::Blocked => State::Holds(self.ticks.timer_ns(now_ns, 1)),
            _ => State::Begun,
        };
        self.next += len;
        self.under_way += len;
    }

    /// True once after each window of rows, while it has had the processor more than md's thread (`cond_resched`).
    fn gives_way(&mut self, now_ns: u64) -> bool {
        let is_at_window = self.last_check + WINDOW <= self.next;
        let gives_way = self.method == Method::Rows
            && is_at_window
            && !self.gave_way
            && self.ticks.count(now_ns) < self.ticks.count(0) + NEW_TICKS;
        self.gave_way = gives_way;
        gives_way
    }

    /// A unit or row has begun: it looks at its speed after each window.
    fn after(&mut self, now_ns: u64, blocks: &impl Fn(usize) -> u64) -> State {
        if self.last_check + WINDOW > self.next || self.next >= self.size {
            return State::Next;
        }
        self.last_check = self.next;
        self.pace(now_ns, blocks)
    }

    fn pace(&mut self, now_ns: u64, blocks: &impl Fn(usize) -> u64) -> State {
        let now = self.ticks.count(now_ns);
        let next = (self.mark + 1) % MARKS;
        if now >= self.marks[self.mark].0 + MARK_TICKS {
            self.since = std::mem::replace(&mut self.marks[next], (now, self.done_bytes));
            self.mark = next;
        }
        let (since, since_bytes) = self.since;
        let seconds = (now - since) / HZ + 1;
        let speed = (self.done_bytes - since_bytes) / seconds + 1;
        if speed <= self.speed_min {
            return State::Next;
        }
        if speed > self.speed_max {
            return State::Sleeps(self.ticks.timer_ns(now_ns, SLEEP_TICKS));
        }
        match (self.finds_idle(blocks), self.sleeps) {
            (true, _) => State::Next,
            (false, true) => State::Sleeps(self.ticks.timer_ns(now_ns, SLEEP_TICKS)),
            (false, false) => State::Drains,
        }
    }

    /// `is_mddev_idle`: its own requests count when they are sent, all when they are done. So what it has under way hides as
    /// many blocks of others.
    fn finds_idle(&mut self, blocks: &impl Fn(usize) -> u64) -> bool {
        let mut idle = true;
        for member in 0..self.last_blocks.len() {
            let others = blocks(member) as i64 - self.own_blocks[member];
            if others - self.last_blocks[member] > IDLE_BLOCKS {
                self.last_blocks[member] = others;
                idle = false;
            }
        }
        idle
    }

    /// Its own requests do not count as work of others.
    pub(crate) fn count_own(&mut self, member: usize, bytes: u64) {
        if let Some(own) = self.own_blocks.get_mut(member) {
            *own += (bytes / 512) as i64;
        }
    }

    /// A unit is written.
    pub(crate) fn end_unit(&mut self, now_ns: u64, id: u32) {
        let Unit { offset, len, .. } = *self.units.get(id);
        self.units.remove(id);
        let bucket = self.barrier.bucket(offset);
        self.barrier.raised[bucket] -= 1;
        self.end(now_ns, len);
    }

    /// So many bytes are written.
    pub(crate) fn end(&mut self, now_ns: u64, len: u64) {
        self.under_way -= len;
        self.done_bytes += len;
        if self.done_bytes >= self.size {
            self.completed = self.size;
            self.finished_ns = Some(now_ns);
        }
    }

    /// A request of the load arrives: true if it may go on; otherwise it waits at the barrier. `at_once`: the thread that
    /// sent it waits. io_uring leaves it to a thread of its own instead (REQ_NOWAIT), which is not there yet when md's
    /// thread for the rebuild goes on.
    pub(crate) fn enter(&mut self, slot: u32, write: bool, offset: u64, at_once: bool) -> bool {
        let bucket = self.barrier.bucket(offset);
        let waits = match self.method {
            Method::Rows => return true,
            Method::Buckets => write && self.barrier.raised[bucket] > 0,
            Method::Turns { .. } => self.barrier.raised[bucket] > 0,
        };
        match (waits, at_once) {
            (true, true) => self.barrier.waiting.push((slot, bucket)),
            (true, false) => self.barrier.arriving.push((slot, bucket)),
            (false, _) => self.barrier.pending[bucket] += 1,
        }
        !waits
    }

    /// Requests that were about to wait do so; false if there are none.
    pub(crate) fn seat(&mut self) -> bool {
        let Barrier {
            waiting, arriving, ..
        } = &mut self.barrier;
        let some = !arriving.is_empty();
        waiting.append(arriving);
        some
    }

    /// A request of the load that went on is done.
    pub(crate) fn leave(&mut self, offset: u64) {
        if self.method != Method::Rows {
            let bucket = self.barrier.bucket(offset);
            let pending = &mut self.barrier.pending[bucket];
            *pending = pending.saturating_sub(1);
        }
    }

    /// A request that waited and may go on now.
    pub(crate) fn admitted(&mut self) -> Option<u32> {
        let Barrier {
            raised,
            pending,
            waiting,
            ..
        } = &mut self.barrier;
        let at = waiting
            .iter()
            .position(|&(_, bucket)| raised[bucket] == 0)?;
        let (slot, bucket) = waiting.remove(at);
        pending[bucket] += 1;
        Some(slot)
    }

    pub(crate) fn figures(&self) -> RebuildFigures {
        RebuildFigures {
            member: self.member,
            bytes: self.size,
            done_bytes: self.done_bytes,
            finished_ns: self.finished_ns,
        }
    }
}

impl Engine {
    /// md writes down that a rebuild begins, as there is another member, and starts the thread for it.
    pub(super) fn begin_rebuild(&mut self) -> Outcome {
        if let Target::Array(fabric) = &mut self.target
            && fabric.is_rebuilding()
        {
            fabric.note_rebuild();
            self.md_thread_is_noting()?;
            self.dispatch()?;
        }
        self.work_on_rebuild()
    }

    /// md's thread for the rebuild goes as far as it can.
    pub(super) fn work_on_rebuild(&mut self) -> Outcome {
        loop {
            let queues = &self.queues;
            let Target::Array(fabric) = &mut self.target else {
                return Ok(());
            };
            let Some(rebuild) = &mut fabric.rebuild else {
                return Ok(());
            };
            match rebuild.step(self.now_ns, |member| queues[member].figures.blocks()) {
                Step::Wait => return Ok(()),
                Step::Unit(unit) => self.read_unit(unit)?,
                Step::Row { offset, waited } => {
                    if !fabric.add_rebuilt_row(self.now_ns, offset, waited)? && waited {
                        return Ok(());
                    }
                }
                Step::HandOver => fabric.hand_over_row(),
                Step::Note => fabric.note_rebuild(),
                Step::GiveWay => self.run_md(true)?,
            }
        }
    }

    /// md's thread first writes the superblocks, if the rebuild has noted how far it is (`md_check_recovery`). True while it
    /// does that, and nothing else.
    pub(super) fn md_thread_is_noting(&mut self) -> Outcome<bool> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(false);
        };
        if fabric.superblock.left == 0 && std::mem::take(&mut fabric.superblock.is_noted) {
            self.write_superblocks()?;
        }
        Ok(matches!(&self.target, Target::Array(fabric) if fabric.superblock.left > 0))
    }

    fn read_unit(&mut self, unit: u32) -> Outcome {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let mut requests = std::mem::take(&mut self.requests);
        fabric.rebuild_reads(unit, &mut requests)?;
        let issuer = Issuer::kernel(self.md_thread() + 1);
        let mut bios = 0;
        for request in &requests {
            let part = (request.member, request.offset, request.len);
            self.count_rebuild(request.member, request.len);
            bios += self.send_member(Owner::Rebuild(unit), issuer, part, Manner::READ, true)?;
        }
        requests.clear();
        self.requests = requests;
        self.set_unit(unit, bios, false);
        if bios == 0 {
            self.write_unit(unit)?;
        }
        Ok(())
    }

    pub(super) fn count_rebuild(&mut self, member: u32, bytes: u64) {
        if let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            rebuild.count_own(member as usize, bytes);
        }
    }

    fn set_unit(&mut self, unit: u32, left: u32, writing: bool) {
        if let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            let of = rebuild.units.get_mut(unit);
            of.left = left;
            of.writing = writing;
        }
    }

    /// md's thread writes what was read, or compares it; while it writes superblocks, units wait for it.
    pub(super) fn write_unit(&mut self, unit: u32) -> Outcome {
        let is_noting = self.md_thread_is_noting()?;
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        if is_noting {
            fabric.superblock.units.push(unit);
            return Ok(());
        }
        let Some(rebuild) = &fabric.rebuild else {
            return Ok(());
        };
        let of = *rebuild.units.get(unit);
        let Some(member) = rebuild.member else {
            return self.end_unit(unit);
        };
        let part = (member, of.offset, of.len);
        self.count_rebuild(part.0, part.2);
        let issuer = Issuer::kernel(self.md_thread());
        let bios =
            self.send_member(Owner::Rebuild(unit), issuer, part, Manner::WRITE_BACK, true)?;
        self.set_unit(unit, bios, true);
        Ok(())
    }

    pub(super) fn unit_part_done(&mut self, unit: u32) -> Outcome {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let Some(rebuild) = &mut fabric.rebuild else {
            return Ok(());
        };
        let of = rebuild.units.get_mut(unit);
        of.left -= 1;
        if of.left > 0 {
            return Ok(());
        }
        if !of.writing {
            return self.write_unit(unit);
        }
        self.end_unit(unit)
    }

    fn end_unit(&mut self, unit: u32) -> Outcome {
        if let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            rebuild.end_unit(self.now_ns, unit);
        }
        if self.rules.reading_ns > 0 {
            // An interrupt ends all units of a request.
            self.unit_ended = true;
            return Ok(());
        }
        self.units_ended()
    }

    /// The end of a unit wakes md's thread for the rebuild and those who wait at the barrier, and the older thread runs first:
    /// it still finds that others wait.
    pub(super) fn units_ended(&mut self) -> Outcome {
        self.work_on_rebuild()?;
        self.rebuild_went_on()
    }

    /// The rebuild goes on if a row of it or a request that held it up is done, before the next ones wait at the barrier.
    pub(super) fn take_turns(&mut self) -> Outcome {
        if std::mem::take(&mut self.rebuild_awake) {
            self.rebuild_went_on()?;
        }
        if let Target::Array(fabric) = &mut self.target
            && fabric.rebuild.as_mut().is_some_and(Rebuild::seat)
        {
            self.rebuild_went_on()?;
        }
        Ok(())
    }

    /// A part of the rebuild, or a request that held it up, is done: who waited at the barrier goes first.
    fn rebuild_went_on(&mut self) -> Outcome {
        while let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
            && let Some(slot) = rebuild.admitted()
        {
            self.issue_admitted(slot, false)?;
        }
        if let Target::Array(fabric) = &mut self.target
            && fabric.rebuild.as_ref().is_some_and(Rebuild::is_finished)
        {
            fabric.end_rebuild();
        }
        self.work_on_rebuild()
    }

    /// A request of the load that had passed the barrier is done. It wakes the load's thread first, then the rebuild's
    /// (`bio_endio` before `allow_barrier`), which so finds the next request there already.
    pub(super) fn leave_barrier(&mut self, slot: u32) {
        let offset = self.place_of(slot);
        if let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            rebuild.leave(offset);
            self.rebuild_awake = true;
        }
    }
}
