//! A member that is being rebuilt beside the load, at md's pace (`md_do_sync`, `is_mddev_idle`).

use std::collections::VecDeque;

use crate::figures::RebuildFigures;
use crate::kernel::Kernel;

/// `RESYNC_BLOCK_SIZE`, bytes.
pub(crate) const UNIT: u64 = 64 * 1024;
/// Units under way: `RESYNC_DEPTH` of RAID1 and RAID10; the stripe cache of RAID5 and RAID6.
pub(crate) const DEPTH: usize = 32;
/// Interval between two checks of the speed (`window` of `md_do_sync`), bytes.
const WINDOW: u64 = 128 * 1024;
/// `SYNC_MARKS`, `SYNC_MARK_STEP`.
const MARKS: usize = 10;
const MARK_NS: u64 = 3_000_000_000;
/// Pause of a rebuild that is too fast.
const SLEEP_NS: u64 = 500_000_000;
/// Blocks of others within a window that still count as idle.
const IDLE_BLOCKS: u64 = 64;

/// A stretch of the member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Reads, then the write, that are not done.
    pub(crate) left: u32,
    pub(crate) writing: bool,
    pub(crate) done: bool,
}

/// The rebuild.
#[derive(Debug)]
pub(crate) struct Rebuild {
    pub(crate) member: u32,
    size: u64,
    /// Start of the next unit.
    next: u64,
    /// Units under way, by slot, and their order.
    pub(crate) units: Vec<Unit>,
    free: Vec<u32>,
    order: VecDeque<u32>,
    speed_min: u64,
    speed_max: u64,
    /// Sleeps when it finds others at work; since 4.1 it waits for its own requests instead.
    sleeps: bool,
    last_check: u64,
    marks: VecDeque<(u64, u64)>,
    last_blocks: Vec<u64>,
    own_blocks: Vec<u64>,
    paused: Pause,
    done_bytes: u64,
    finished_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    No,
    Until(u64),
    /// Until what is under way is done.
    Drain,
}

impl Rebuild {
    /// Speeds in bytes per second.
    pub(crate) fn new(
        member: u32,
        size: u64,
        members: usize,
        speed_min: u64,
        speed_max: u64,
        kernel: Kernel,
    ) -> Rebuild {
        let idle = Unit {
            offset: 0,
            len: 0,
            left: 0,
            writing: false,
            done: false,
        };
        Rebuild {
            member,
            size,
            next: 0,
            units: vec![idle; DEPTH],
            free: (0..DEPTH as u32).rev().collect(),
            order: VecDeque::with_capacity(DEPTH),
            speed_min,
            speed_max,
            sleeps: kernel < Kernel::new(4, 1, 0),
            last_check: 0,
            marks: VecDeque::from([(0, 0)]),
            last_blocks: vec![0; members],
            own_blocks: vec![0; members],
            paused: Pause::No,
            done_bytes: 0,
            finished_ns: None,
        }
    }

    /// Below this every byte of the member is good.
    pub(crate) fn recovered(&self) -> u64 {
        self.order
            .front()
            .map_or(self.next, |&unit| self.units[unit as usize].offset)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished_ns.is_some()
    }

    /// Time of its next check; `None`: when one of its requests is done, or never.
    pub(crate) fn wakes_ns(&self) -> Option<u64> {
        match self.paused {
            Pause::Until(at_ns) => Some(at_ns),
            _ => None,
        }
    }

    /// A unit to begin now. `blocks`: the blocks that each drive has moved so far.
    pub(crate) fn begin(
        &mut self,
        now_ns: u64,
        mut blocks: impl FnMut(usize) -> u64,
    ) -> Option<u32> {
        match self.paused {
            Pause::Until(at_ns) if now_ns < at_ns => return None,
            Pause::Drain if !self.order.is_empty() => return None,
            Pause::No if self.free.is_empty() => return None,
            _ => {}
        }
        // After a sleep it checks again; after a wait for its own requests it goes on.
        let slept = matches!(self.paused, Pause::Until(_));
        self.paused = Pause::No;
        if self.next >= self.size {
            return None;
        }
        if self.next >= self.last_check + WINDOW || slept {
            self.last_check = self.next;
            self.mark(now_ns);
            self.paused = self.pace(now_ns, &mut blocks);
            match self.paused {
                Pause::No => {}
                // Nothing to wait for: it goes on.
                Pause::Drain if self.order.is_empty() => self.paused = Pause::No,
                _ => return None,
            }
        }
        let id = self.free.pop()?;
        let len = UNIT.min(self.size - self.next);
        self.units[id as usize] = Unit {
            offset: self.next,
            len,
            left: 0,
            writing: false,
            done: false,
        };
        self.next += len;
        self.order.push_back(id);
        Some(id)
    }

    fn mark(&mut self, now_ns: u64) {
        let latest = self.marks.back().map_or(0, |mark| mark.0);
        if now_ns >= latest + MARK_NS {
            if self.marks.len() >= MARKS {
                self.marks.pop_front();
            }
            self.marks.push_back((now_ns, self.done_bytes));
        }
    }

    fn pace(&mut self, now_ns: u64, blocks: &mut impl FnMut(usize) -> u64) -> Pause {
        let (since_ns, since_bytes) = self.marks.front().copied().unwrap_or_default();
        let seconds = (now_ns - since_ns) / 1_000_000_000 + 1;
        let speed = (self.done_bytes - since_bytes) / seconds + 1;
        if speed <= self.speed_min {
            return Pause::No;
        }
        if speed > self.speed_max {
            return Pause::Until(now_ns + SLEEP_NS);
        }
        let mut idle = true;
        for member in 0..self.last_blocks.len() {
            let others = blocks(member).saturating_sub(self.own_blocks[member]);
            if others > self.last_blocks[member] + IDLE_BLOCKS {
                self.last_blocks[member] = others;
                idle = false;
            }
        }
        match (idle, self.sleeps) {
            (true, _) => Pause::No,
            (false, true) => Pause::Until(now_ns + SLEEP_NS),
            (false, false) => Pause::Drain,
        }
    }

    /// Its own requests do not count as work of others.
    pub(crate) fn count_own(&mut self, member: usize, blocks: u32) {
        if let Some(own) = self.own_blocks.get_mut(member) {
            *own += u64::from(blocks);
        }
    }

    /// A unit is written.
    pub(crate) fn end(&mut self, now_ns: u64, id: u32) {
        self.units[id as usize].done = true;
        self.done_bytes += self.units[id as usize].len;
        while let Some(&first) = self.order.front()
            && self.units[first as usize].done
        {
            self.order.pop_front();
            self.free.push(first);
        }
        if self.done_bytes >= self.size {
            self.finished_ns = Some(now_ns);
        }
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
