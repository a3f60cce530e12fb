//! A back end whose writes carry what they are and whose reads are checked. It stands between the worker's loop and the
//! back end that makes the calls, so that a load that verifies nothing is not touched by any of this.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use spindle_measure::{EndedBy, OpKind};
use spindle_verify::Stamp;

use super::entry::Entry;
use super::findings::Tally;
use super::written::{Judgement, Verify, Written, place_of};
use crate::backend::{Backend, Call, Errno, Wait};
use crate::buffers::Buffers;
use crate::clock::{Clock, sleep_ns};
use crate::shared::Shared;

/// How long until a write that waits for another one is tried again, ns.
const AGAIN_NS: u64 = 20_000;

/// A back end that reads into memory and writes from it.
pub(crate) trait Memory {
    fn buffers(&mut self) -> &mut Buffers;
}

/// The back end.
pub(crate) struct Checked<'a, B: Backend + Memory> {
    inner: B,
    verify: &'a Verify,
    written: &'a Written,
    shared: &'a Shared,
    /// Numbers of the stream's files.
    files: &'a [u32],
    places: Vec<Place>,
    /// Entries of what each slot reads, as they were before: `per_slot` for each.
    seen: Vec<Entry>,
    per_slot: usize,
    /// Writes that wait for another one to the same block.
    held: VecDeque<(u32, Call)>,
    ended: Vec<(u32, i32)>,
    /// Calls that the back end has.
    outstanding: usize,
    clock: Option<Clock>,
    tally: Tally<'a>,
}

/// What a slot is about.
#[derive(Debug, Clone, Copy)]
struct Place {
    call: Call,
    /// Number of the file, and entry of the first block.
    file: u32,
    first: usize,
    /// Its blocks are marked as being written.
    claimed: bool,
}

impl<'a, B: Backend + Memory> Checked<'a, B> {
    /// `max_len`: the largest request, bytes.
    pub(crate) fn new(
        mut inner: B,
        verify: &'a Verify,
        shared: &'a Shared,
        stream: usize,
        depth: usize,
        max_len: usize,
    ) -> Checked<'a, B> {
        inner.buffers().prepare_seals();
        let written = &*verify.written;
        let per_slot = max_len / written.unit() as usize;
        let idle = Place {
            call: Call {
                kind: OpKind::Read,
                file: 0,
                offset: 0,
                len: 0,
                done: 0,
            },
            file: 0,
            first: 0,
            claimed: false,
        };
        Checked {
            inner,
            verify,
            written,
            shared,
            files: &verify.streams[stream],
            places: vec![idle; depth],
            seen: vec![Entry::default(); depth * per_slot],
            per_slot,
            held: VecDeque::with_capacity(depth),
            ended: Vec::with_capacity(depth),
            outstanding: 0,
            clock: None,
            tally: Tally::of(&verify.findings),
        }
    }

    fn hand_over(&mut self, slot: u32, call: &Call) {
        self.outstanding += 1;
        self.inner.push(slot, call);
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

    /// What a completion means for the table, and for what was read.
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
                    self.check(slot);
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

    /// Holds what a slot has read against the table.
    fn check(&mut self, slot: u32) {
        let Place {
            call, file, first, ..
        } = self.places[slot as usize];
        let unit = self.written.unit();
        let seen = slot as usize * self.per_slot;
        let bytes = self
            .inner
            .buffers()
            .was_read(slot as usize, call.len as usize);
        for (index, block) in bytes.chunks_exact(unit as usize).enumerate() {
            let (before, after) = (
                self.seen[seen + index],
                self.written.table().get(first + index),
            );
            if before == Entry::default() && !after.is_busy() {
                // Commonest of all: the run has not written there.
                self.tally.unknown += 1;
                continue;
            }
            let offset = call.offset + index as u64 * unit;
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

/// Name of a file, if the stream has several.
#[cold]
fn path_of(files: &[u32], written: &Written, file: u32) -> Option<String> {
    let known = written.known_files().get(file as usize)?;
    (files.len() > 1).then(|| known.file.path.clone())
}

impl<B: Backend + Memory> Backend for Checked<'_, B> {
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
        if call.kind == OpKind::Read {
            let seen = &mut self.seen[index * self.per_slot..];
            for (seen, block) in seen.iter_mut().zip(blocks) {
                *seen = self.written.table().get(block);
            }
        } else if !self.claim(slot) {
            self.verify.waited.fetch_add(1, Relaxed);
            self.held.push_back((slot, *call));
            return;
        }
        self.hand_over(slot, call);
    }

    fn enter(&mut self, wait: Wait) -> Result<(), Errno> {
        if self.held.is_empty() {
            return self.inner.enter(wait);
        }
        self.try_held();
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
        // All are taken before the first is looked at: checking is not part of any latency but the load's own.
        let ended = &mut self.ended;
        self.inner.reap(|slot, result| {
            ended.push((slot, result));
            each(slot, result);
        });
        self.outstanding -= self.ended.len();
        for index in 0..self.ended.len() {
            let (slot, result) = self.ended[index];
            self.settle(slot, result);
        }
        self.ended.clear();
    }

    fn abandon(self) {
        // What is under way stays so in the table, and is unknown thereby.
        self.inner.abandon();
    }
}
