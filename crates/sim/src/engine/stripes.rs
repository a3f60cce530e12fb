//! md's stripe cache: every write to a parity array, and every read of a degraded one, goes through it in rows of
//! 4 KiB blocks.
//!
//! Linux 6.1 `drivers/md/raid5.c`: `raid5_get_active_stripe`, `is_inactive_blocked`, `do_release_stripe`,
//! `stripe_add_to_batch_list`, `grow_one_stripe`. Direct I/O is synchronous, so no row is delayed
//! (`STRIPE_PREREAD_ACTIVE` is set at once).

use std::collections::{HashMap, VecDeque};

use spindle_array::{ArrayError, MemberSet, RowPlan, Rows, STRIPE_BLOCK, WriteRule};

use super::slab::Slab;
use crate::request::NONE;

/// `NR_STRIPE_HASH_LOCKS`: lists of inactive heads.
const LISTS: usize = 8;
/// A cache that grows under pressure stops here (the largest `stripe_cache_size`).
const MOST_HEADS: usize = 32_768;

/// A row of blocks in the cache (`stripe_head`).
#[derive(Debug, Clone, Copy)]
struct Head {
    /// Row and group; `None`: never used.
    key: Option<Key>,
    /// Members whose block is in the cache.
    cached: MemberSet,
    /// Work on it, the oldest first.
    first: u32,
    last: u32,
    /// Neighbours in the list of inactive heads.
    before: u32,
    after: u32,
}

/// First member of the group and number of the row.
type Key = (u32, u64);

/// Work of one request on one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    /// The request it belongs to.
    pub(crate) slot: u32,
    pub(crate) write: bool,
    pub(crate) rows: Rows,
    /// Bios under way.
    pub(crate) left: u32,
    pub(crate) stage: Step,
    head: u32,
    /// The next work on the same row.
    next: u32,
    /// The next row of a batch of full stripes, which are written together.
    batched: u32,
    /// Another write that became a part of this one.
    joined: u32,
}

/// The step of a row that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    New,
    /// These blocks are being read.
    Reading(MemberSet),
    Writing,
}

/// The next requests to members for a row, or a batch of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requests {
    pub(crate) work: u32,
    pub(crate) members: MemberSet,
    pub(crate) write: bool,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// Rows of a request that have no head yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    slot: u32,
    write: bool,
    rows: Rows,
}

#[derive(Debug)]
pub(crate) struct Stripes {
    rule: WriteRule,
    chunk: u64,
    heads: Vec<Head>,
    index: HashMap<Key, u32>,
    /// First (the oldest) and last inactive head of each list.
    inactive: [(u32, u32); LISTS],
    active: usize,
    /// A head was wanted and none was there: new rows wait until a quarter is free (`R5_INACTIVE_BLOCKED`).
    is_blocked: bool,
    /// `R5_ALLOC_MORE`, `R5_DID_ALLOC`.
    wants_more: bool,
    has_grown: bool,
    work: Slab<Work>,
    /// Rows for md's thread.
    handle: VecDeque<u32>,
    pending: VecDeque<Pending>,
}

impl Stripes {
    pub(crate) fn new(heads: u32, chunk: u64, rule: WriteRule) -> Stripes {
        let mut stripes = Stripes {
            rule,
            chunk,
            heads: Vec::with_capacity(2 * heads as usize),
            index: HashMap::with_capacity(2 * heads as usize),
            inactive: [(NONE, NONE); LISTS],
            active: 0,
            is_blocked: false,
            wants_more: false,
            has_grown: false,
            work: Slab::with_capacity(2 * heads as usize),
            handle: VecDeque::with_capacity(2 * heads as usize),
            pending: VecDeque::with_capacity(64),
        };
        for _ in 0..heads {
            stripes.grow();
        }
        stripes
    }

    /// `grow_one_stripe`.
    fn grow(&mut self) {
        let id = self.heads.len() as u32;
        self.heads.push(Head {
            key: None,
            cached: MemberSet::EMPTY,
            first: NONE,
            last: NONE,
            before: NONE,
            after: NONE,
        });
        self.park(id, id as usize % LISTS);
    }

    /// Takes the rows of a request.
    pub(crate) fn add(&mut self, slot: u32, write: bool, rows: Rows) {
        self.pending.push_back(Pending { slot, write, rows });
    }

    /// Gives waiting rows their heads, in the order of their arrival; a request whose last row has one.
    pub(crate) fn place(&mut self) -> Option<u32> {
        while let Some(mut pending) = self.pending.pop_front() {
            let slot = pending.slot;
            while pending.rows.len > 0 {
                let mut rows = pending.rows;
                rows.len = STRIPE_BLOCK;
                let Some(head) = self.head_of(&rows) else {
                    self.pending.push_front(pending);
                    return None;
                };
                pending.rows.offset += STRIPE_BLOCK;
                pending.rows.len -= STRIPE_BLOCK;
                self.attach(head, slot, pending.write, rows);
            }
            if self.pending.front().is_none_or(|next| next.slot != slot) {
                return Some(slot);
            }
        }
        None
    }

    /// Work that a request adds: a part of it for each row.
    pub(crate) fn rows_of(rows: &Rows) -> u32 {
        (rows.len / STRIPE_BLOCK) as u32
    }

    fn head_of(&mut self, rows: &Rows) -> Option<u32> {
        let group = rows.members.iter().next().unwrap_or(0);
        let row = rows.offset / STRIPE_BLOCK;
        let (key, list) = ((group, row), row as usize % LISTS);
        if let Some(&id) = self.index.get(&key) {
            if self.heads[id as usize].first == NONE {
                self.unpark(id, list);
            }
            return Some(id);
        }
        let oldest = self.inactive[list].0;
        if self.is_blocked {
            if oldest == NONE || self.active >= self.heads.len() * 3 / 4 {
                return None;
            }
            self.is_blocked = false;
        }
        if oldest == NONE {
            self.wants_more |= !self.has_grown;
            self.is_blocked = true;
            return None;
        }
        self.unpark(oldest, list);
        let head = &mut self.heads[oldest as usize];
        head.cached = MemberSet::EMPTY;
        if let Some(old) = head.key.replace(key) {
            self.index.remove(&old);
        }
        self.index.insert(key, oldest);
        Some(oldest)
    }

    fn attach(&mut self, head: u32, slot: u32, write: bool, rows: Rows) {
        let id = self.work.add(Work {
            slot,
            write,
            rows,
            left: 0,
            stage: Step::New,
            head,
            next: NONE,
            batched: NONE,
            joined: NONE,
        });
        if write && let Some(kept) = self.open_write(head, &rows) {
            let kept = self.work.get_mut(kept);
            kept.rows.full = kept.rows.full.with(&rows.full);
            kept.rows.partial = kept.rows.partial.with(&rows.partial);
            let before = std::mem::replace(&mut kept.joined, id);
            self.work.get_mut(id).joined = before;
            return;
        }
        let of = &mut self.heads[head as usize];
        match std::mem::replace(&mut of.last, id) {
            NONE => {
                of.first = id;
                self.handle.push_back(id);
            }
            last => self.work.get_mut(last).next = id,
        }
    }

    /// A write of other blocks of the row that has not been begun (`add_stripe_bio`; the blocks are taken by
    /// `ops_run_biodrain`, after the reads).
    fn open_write(&self, head: u32, rows: &Rows) -> Option<u32> {
        let last = self.heads[head as usize].last;
        if last == NONE {
            return None;
        }
        let work = self.work.get(last);
        let taken = work.rows.full.with(&work.rows.partial);
        let is_open = work.write && work.stage != Step::Writing;
        let is_apart = taken.common(&rows.full.with(&rows.partial)).is_empty();
        (is_open && is_apart).then_some(last)
    }

    /// The oldest inactive head becomes active.
    fn unpark(&mut self, id: u32, list: usize) {
        let Head { before, after, .. } = self.heads[id as usize];
        match before {
            NONE => self.inactive[list].0 = after,
            before => self.heads[before as usize].after = after,
        }
        match after {
            NONE => self.inactive[list].1 = before,
            after => self.heads[after as usize].before = before,
        }
        self.active += 1;
    }

    fn park(&mut self, id: u32, list: usize) {
        let last = std::mem::replace(&mut self.inactive[list].1, id);
        let head = &mut self.heads[id as usize];
        (head.before, head.after) = (last, NONE);
        match last {
            NONE => self.inactive[list].0 = id,
            last => self.heads[last as usize].after = id,
        }
    }

    /// The next row, or batch, for md's thread. `missing`: members without the row's data. `Ok(None)`: no more.
    pub(crate) fn next(
        &mut self,
        missing: impl Fn(u64) -> MemberSet,
    ) -> Result<Option<Requests>, ArrayError> {
        let Some(id) = self.handle.pop_front() else {
            if std::mem::take(&mut self.wants_more) && self.heads.len() < MOST_HEADS {
                self.grow();
                self.has_grown = true;
            }
            return Ok(None);
        };
        let work = *self.work.get(id);
        let missing = missing(work.rows.offset + STRIPE_BLOCK);
        let cached = self.heads[work.head as usize].cached;
        let (reads, writes) = if work.write {
            let RowPlan { reads, writes, .. } = work.rows.plan(&cached, &missing, self.rule)?;
            (reads, writes)
        } else {
            (reads(&work.rows, &cached, &missing)?, MemberSet::EMPTY)
        };
        if !reads.is_empty() {
            let stage = Step::Reading(reads);
            return Ok(Some(self.start(id, stage, reads, STRIPE_BLOCK)));
        }
        if !work.write {
            let stage = Step::Reading(MemberSet::EMPTY);
            self.work.get_mut(id).stage = stage;
            return Ok(Some(self.start(id, stage, MemberSet::EMPTY, 0)));
        }
        let len = self.batch(id);
        Ok(Some(self.start(id, Step::Writing, writes, len)))
    }

    fn start(&mut self, id: u32, stage: Step, members: MemberSet, len: u64) -> Requests {
        let work = self.work.get_mut(id);
        work.stage = stage;
        Requests {
            work: id,
            members,
            write: stage == Step::Writing,
            offset: work.rows.offset,
            len,
        }
    }

    /// Joins the full stripes that follow in the list and on the members, within a chunk; their length.
    fn batch(&mut self, id: u32) -> u64 {
        let mut last = *self.work.get(id);
        let (mut at, mut len) = (id, STRIPE_BLOCK);
        while is_full(&last)
            && let Some(&next) = self.handle.front()
            && let work = *self.work.get(next)
            && is_full(&work)
            && work.stage == Step::New
            && work.rows.members == last.rows.members
            && work.rows.offset == last.rows.offset + STRIPE_BLOCK
            && !work.rows.offset.is_multiple_of(self.chunk)
        {
            self.handle.pop_front();
            self.work.get_mut(at).batched = next;
            self.work.get_mut(next).stage = Step::Writing;
            (at, last) = (next, work);
            len += STRIPE_BLOCK;
        }
        len
    }

    pub(crate) fn work_mut(&mut self, id: u32) -> &mut Work {
        self.work.get_mut(id)
    }

    /// All bios of a row's step are done. Reads: md's thread goes on with it. Else the slots of the requests whose part is
    /// done go to `done`.
    pub(crate) fn step_done(&mut self, id: u32, done: &mut VecDeque<u32>) {
        self.has_grown = false;
        let work = *self.work.get(id);
        if let Step::Reading(members) = work.stage {
            let cached = &mut self.heads[work.head as usize].cached;
            *cached = cached.with(&members);
            if work.write {
                self.work.get_mut(id).stage = Step::Reading(MemberSet::EMPTY);
                self.handle.push_back(id);
                return;
            }
        }
        let mut at = id;
        while at != NONE {
            let work = *self.work.get(at);
            let rows = &work.rows;
            let mut known = rows.full.with(&rows.partial);
            if work.write {
                known.insert(rows.p);
                rows.q.into_iter().for_each(|q| known.insert(q));
            }
            let head = &mut self.heads[work.head as usize];
            head.cached = head.cached.with(&known);
            head.first = work.next;
            if work.next == NONE {
                head.last = NONE;
                self.active -= 1;
                self.park(work.head, (rows.offset / STRIPE_BLOCK) as usize % LISTS);
            } else {
                self.handle.push_back(work.next);
            }
            let mut part = at;
            while part != NONE {
                let Work { slot, joined, .. } = *self.work.get(part);
                self.work.remove(part);
                done.push_back(slot);
                part = joined;
            }
            at = work.batched;
        }
    }
}

fn is_full(work: &Work) -> bool {
    let rows = &work.rows;
    let parities = 1 + u32::from(rows.q.is_some());
    work.write && rows.full.len() + parities == rows.members.len()
}

/// Blocks to be read for a read (`need_this_block`): a missing one is computed from all others.
fn reads(rows: &Rows, cached: &MemberSet, missing: &MemberSet) -> Result<MemberSet, ArrayError> {
    let wanted = rows.full.with(&rows.partial).without(cached);
    let missing = rows.members.common(missing);
    if wanted.common(&missing).is_empty() {
        return Ok(wanted);
    }
    let parities = 1 + u32::from(rows.q.is_some());
    if missing.len() > parities {
        return Err(ArrayError::StripeLost {
            missing: missing.len(),
            parities,
        });
    }
    Ok(rows.members.without(&missing).without(cached))
}
