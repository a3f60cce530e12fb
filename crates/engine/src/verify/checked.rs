//! A back end that stamps writes and checks reads. It is a layer between the worker's loop and the
//! back end that makes the calls, so that a load without verification pays nothing.
//!
//! Reads that come back together are checked while the kernel works on those that follow them. For that a slot has two
//! places to read into; it waits only when neither has been checked. The table's entries of a block are copied when
//! the read is issued and when it is done, so that the time of the check makes no difference.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use spindle_measure::{EndedBy, OpKind};
use spindle_verify::Stamp;

use super::entry::Entry;
use super::findings::Tally;
use super::written::{ExpectedContent, Judgement, Verify, place_of};
use crate::backend::{Backend, Call, Errno, Wait};
use crate::buffers::Buffers;
use crate::clock::{Clock, sleep_ns};
use crate::shared::Shared;

/// Time until a write that waits for another one is tried again, ns.
const AGAIN_NS: u64 = 20_000;

/// From this many bytes read together, the check comes after the next requests have been handed over, which takes a
/// system call more; below, before.
const ASIDE_BYTES: u64 = 16 << 10;

/// The state of a back end's completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    No,
    /// Available after a call of `enter`.
    Announced,
    /// To be reaped.
    Posted,
}

/// A back end that reads into memory and writes from it.
pub(crate) trait Memory {
    fn buffers(&mut self) -> &mut Buffers;

    /// True if calls are worked on outside of `enter`.
    fn works_aside(&self) -> bool;

    /// Looks for completions, without a system call.
    fn ready(&mut self) -> Ready;
}

/// The back end.
pub(crate) struct CheckingBackend<'a, B: Backend + Memory> {
    inner: B,
    verify: &'a Verify,
    written: &'a ExpectedContent,
    shared: &'a Shared,
    /// Numbers of the stream's files.
    files: &'a [u32],
    /// For each slot.
    places: Vec<SlotRequest>,
    /// For each place to read into: those of the slots, then the spare ones.
    reads: Vec<Read>,
    /// The table's entries for each read, as they were before and are afterwards: `per_read` for each.
    entries: Vec<[Entry; 2]>,
    per_read: usize,
    /// Reads that are still to be checked, oldest first.
    unchecked: VecDeque<u32>,
    unchecked_bytes: u64,
    /// Checks may be postponed.
    aside: bool,
    /// Writes that wait for another one to the same block.
    held: VecDeque<(u32, Call)>,
    ended: Vec<(u32, i32)>,
    /// Calls that the back end has.
    outstanding: usize,
    clock: Option<Clock>,
    tally: Tally<'a>,
}

/// The request of a slot.
#[derive(Debug, Clone, Copy)]
struct SlotRequest {
    call: Call,
    /// The slot's number for the back end: that of the memory it uses.
    memory: u32,
    /// Number of the file, and entry of the first block.
    file: u32,
    first: usize,
    /// Its blocks are marked as being written.
    claimed: bool,
}

/// The content of a place to read into.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    file: u32,
    offset: u64,
    len: u32,
    /// It is still to be checked.
    unchecked: bool,
}

impl<'a, B: Backend + Memory> CheckingBackend<'a, B> {
    /// `max_len`: the largest request, bytes.
    pub(crate) fn new(
        mut inner: B,
        verify: &'a Verify,
        shared: &'a Shared,
        stream: usize,
        depth: usize,
        max_len: usize,
    ) -> CheckingBackend<'a, B> {
        inner.buffers().prepare_seals();
        let reads = inner.buffers().read_places();
        let written = &*verify.written;
        let per_read = max_len / written.unit() as usize;
        let idle = SlotRequest {
            call: Call {
                kind: OpKind::Read,
                file: 0,
                offset: 0,
                len: 0,
                done: 0,
            },
            memory: 0,
            file: 0,
            first: 0,
            claimed: false,
        };
        CheckingBackend {
            aside: reads > depth && inner.works_aside(),
            inner,
            verify,
            written,
            shared,
            files: &verify.streams[stream],
            places: vec![idle; depth],
            reads: vec![Read::default(); reads],
            entries: vec![Default::default(); reads * per_read],
            per_read,
            unchecked: VecDeque::with_capacity(reads),
            unchecked_bytes: 0,
            held: VecDeque::with_capacity(depth),
            ended: Vec::with_capacity(depth),
            outstanding: 0,
            clock: None,
            tally: Tally::of(&verify.findings),
        }
    }

    fn hand_over(&mut self, slot: u32, call: &Call) {
        self.outstanding += 1;
        self.inner.push(self.places[slot as usize].memory, call);
    }

    /// Marks the blocks of a slot's write and seals its content; false: another write is under way there.
    fn claim(&mut self, slot: u32) -> bool {
        let place = &mut self.places[slot as usize];
        let Call {
            kind, offset, len, ..
        } = place.call;
        let blocks = place.first..place.first + len as usize / self.written.unit() as usize;
        let table = self.written.table();
        if !table.claim(blocks.clone()) {
            return false;
        }
        place.claimed = true;
        if kind == OpKind::Write {
            let unit = self.written.unit();
            let (run, file) = (self.written.run(), place.file);
            self.inner
                .buffers()
                .seal(slot as usize, len as usize, unit as usize, |index| Stamp {
                    run,
                    file,
                    generation: table.get(blocks.start + index).next_generation(),
                    offset: offset + index as u64 * unit,
                });
        }
        true
    }

    /// Tries the writes that wait.
    #[cold]
    fn try_held(&mut self) {
        for _ in 0..self.held.len() {
            let Some((slot, call)) = self.held.pop_front() else {
                break;
            };
            if self.claim(slot) {
                self.hand_over(slot, &call);
            } else {
                self.held.push_back((slot, call));
            }
        }
    }

    /// Applies a completion to the table, and to the read bytes.
    fn settle(&mut self, slot: u32, result: i32) {
        let place = self.places[slot as usize];
        let Call {
            kind, len, done, ..
        } = place.call;
        if result == -libc::EINTR || result == -libc::EAGAIN {
            return; // it comes again
        }
        match kind {
            OpKind::Fsync => {}
            OpKind::Read => {
                if result > 0 && done + result as u32 == len {
                    self.take_down(slot);
                }
            }
            _ => {
                let table = self.written.table();
                let blocks = place.first..place.first + len as usize / self.written.unit() as usize;
                match kind {
                    OpKind::Write if result > 0 && done + (result as u32) < len => return, // the rest comes
                    OpKind::Write if result > 0 => table.release(blocks, Entry::written),
                    OpKind::Zero if result == 0 => table.release(blocks, Entry::zeroed),
                    _ => table.release(blocks, Entry::unknown),
                }
                self.places[slot as usize].claimed = false;
            }
        }
    }

    /// A place to read into for a slot; its old content has been checked.
    fn place_to_read(&mut self, slot: u32) -> u32 {
        let spare = slot + self.places.len() as u32;
        loop {
            if !self.reads[slot as usize].unchecked {
                return slot;
            }
            if !self.reads[spare as usize].unchecked {
                return spare;
            }
            self.check_next();
        }
    }

    /// A slot's read is done: copies the table's entries; true if there is anything to check.
    fn take_down(&mut self, slot: u32) {
        let SlotRequest {
            call,
            memory,
            file,
            first,
            ..
        } = self.places[slot as usize];
        let blocks = call.len as usize / self.written.unit() as usize;
        let from = memory as usize * self.per_read;
        let mut known = false;
        for (index, entry) in self.entries[from..from + blocks].iter_mut().enumerate() {
            entry[1] = self.written.table().get(first + index);
            known |= is_known(*entry);
        }
        if !known {
            // Commonest of all: the run has not written there.
            self.tally.unknown += blocks as u64;
            return;
        }
        self.reads[memory as usize] = Read {
            file,
            offset: call.offset,
            len: call.len,
            unchecked: true,
        };
        self.unchecked.push_back(memory);
        self.unchecked_bytes += u64::from(call.len);
    }

    /// Checks the oldest read; false: there is none.
    fn check_next(&mut self) -> bool {
        let Some(memory) = self.unchecked.pop_front() else {
            return false;
        };
        self.check(memory);
        true
    }

    fn check_all(&mut self) {
        while self.check_next() {}
    }

    /// Checks one read after the other until there are completions or the time is over; true: there is nothing to wait for.
    fn check_while_waiting(&mut self, wait: Wait) -> bool {
        loop {
            match self.inner.ready() {
                Ready::Posted => return true,
                Ready::Announced => return false,
                Ready::No => {}
            }
            if let (Wait::Until(until), Some(clock)) = (wait, self.clock)
                && clock.now() >= until
            {
                return true;
            }
            if !self.check_next() {
                return false;
            }
        }
    }

    /// Compares the bytes of a read with the table.
    fn check(&mut self, memory: u32) {
        let Read {
            file, offset, len, ..
        } = self.reads[memory as usize];
        self.reads[memory as usize].unchecked = false;
        self.unchecked_bytes -= u64::from(len);
        let unit = self.written.unit();
        let from = memory as usize * self.per_read;
        let bytes = self.inner.buffers().was_read(memory as usize, len as usize);
        let blocks = bytes.chunks_exact(unit as usize);
        for (index, (block, entry)) in blocks.zip(&self.entries[from..]).enumerate() {
            if !is_known(*entry) {
                self.tally.unknown += 1;
                continue;
            }
            let offset = offset + index as u64 * unit;
            let [before, after] = *entry;
            match self.written.judge(file, offset, block, before, after) {
                Judgement::Right => self.tally.blocks += 1,
                Judgement::Unknown => self.tally.unknown += 1,
                Judgement::Raced => self.tally.raced += 1,
                Judgement::Wrong(fault) => {
                    self.tally.blocks += 1;
                    self.verify
                        .findings
                        .fault(fault.kind.name(), place_of(file, offset, &fault));
                    if self.verify.fatal {
                        self.shared.end(EndedBy::Error {
                            errno: libc::EILSEQ,
                            op: "verify".to_owned(),
                            file: path_of(self.files, self.written, file),
                            offset,
                            len: unit,
                        });
                    }
                }
            }
        }
    }
}

/// True if the run has written to a block, or was about to.
#[inline(always)]
fn is_known([before, after]: [Entry; 2]) -> bool {
    before != Entry::default() || after.is_busy()
}

/// Name of a file, if the stream has several.
#[cold]
fn path_of(files: &[u32], written: &ExpectedContent, file: u32) -> Option<String> {
    let known = written.known_files().get(file as usize)?;
    (files.len() > 1).then(|| known.file.path.clone())
}

impl<B: Backend + Memory> Backend for CheckingBackend<'_, B> {
    const MAY_HANG: bool = B::MAY_HANG;

    fn begin(&mut self, clock: Clock) {
        self.clock = Some(clock);
        self.inner.begin(clock);
    }

    #[inline]
    fn push(&mut self, slot: u32, call: &Call) {
        let index = slot as usize;
        let claimed = self.places[index].claimed;
        self.places[index].call = *call;
        if call.kind == OpKind::Fsync || call.done > 0 || claimed {
            // The rest of a request, or the same again.
            return self.hand_over(slot, call);
        }
        let file = self.files[call.file as usize];
        let blocks = self.written.blocks(file, call.offset, call.len);
        self.places[index].file = file;
        self.places[index].first = blocks.start;
        self.places[index].memory = slot;
        if call.kind == OpKind::Read {
            let memory = self.place_to_read(slot);
            self.places[index].memory = memory;
            let entries = &mut self.entries[memory as usize * self.per_read..];
            for (entry, block) in entries.iter_mut().zip(blocks) {
                entry[0] = self.written.table().get(block);
            }
        } else if !self.claim(slot) {
            self.verify.waited.fetch_add(1, Relaxed);
            self.held.push_back((slot, *call));
            return;
        }
        self.hand_over(slot, call);
    }

    fn enter(&mut self, wait: Wait) -> Result<(), Errno> {
        if !self.held.is_empty() {
            self.try_held();
        }
        if !self.unchecked.is_empty() && self.outstanding > 0 && wait != Wait::No {
            self.inner.enter(Wait::No)?;
            if self.check_while_waiting(wait) {
                return Ok(());
            }
        }
        if self.held.is_empty() {
            return self.inner.enter(wait);
        }
        // Those they wait for may belong to other workers.
        if self.outstanding == 0 {
            if wait != Wait::No {
                sleep_ns(AGAIN_NS);
            }
            return Ok(());
        }
        let soon = self.clock.map_or(0, |clock| clock.now()) + AGAIN_NS;
        self.inner.enter(match wait {
            Wait::No => Wait::No,
            Wait::One => Wait::Until(soon),
            Wait::Until(until) => Wait::Until(until.min(soon)),
        })
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        // All are taken before the first is checked: checking is not part of any latency but the load's own.
        let (ended, slots) = (&mut self.ended, self.places.len() as u32);
        self.inner.reap(|memory, result| {
            let slot = if memory < slots {
                memory
            } else {
                memory - slots
            };
            ended.push((slot, result));
            each(slot, result);
        });
        self.outstanding -= self.ended.len();
        for index in 0..self.ended.len() {
            let (slot, result) = self.ended[index];
            self.settle(slot, result);
        }
        self.ended.clear();
        if !self.aside || self.unchecked_bytes < ASIDE_BYTES {
            self.check_all();
        }
    }

    fn catch_up(&mut self) -> bool {
        let any = !self.unchecked.is_empty();
        self.check_all();
        any
    }

    fn abandon(self) {
        // Requests under way stay so in the table, and are unknown thereby.
        self.inner.abandon();
    }
}
