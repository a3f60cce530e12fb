//! md's stripe cache: every write to a parity array, and every read of a degraded one, goes through it in rows of
//! 4 KiB blocks.
//!
//! Linux 6.1 `drivers/md/raid5.c`: `raid5_get_active_stripe`, `is_inactive_blocked`, `do_release_stripe`,
//! `stripe_add_to_batch_list`, `grow_one_stripe`, `raid5_activate_delayed`, `__get_priority_stripe`. Linux 2.6.25
//! `get_active_stripe`, `__release_stripe`, `raid5_unplug_device`, `raid5d`.
//!
//! A row that lacks blocks is delayed, for more of it may be written soon: until no other one is being read for, and
//! before 2.6.39 until the array's plug is pulled too. Synchronous writes are not delayed since 2.6.32.

use std::collections::{HashMap, VecDeque};

use spindle_array::{ArrayError, MemberSet, Rows, STRIPE_BLOCK, WriteMethod, WriteRule};

use super::slab::Slab;
use crate::request::NONE;

/// `NR_STRIPE_HASH_LOCKS`: lists of inactive heads.
const LISTS: usize = 8;
/// Rows of full stripes that may pass one that was read for (`BYPASS_THRESHOLD`).
const MOST_PASSING: i32 = 1;
/// Rows that md's thread takes at a time (`MAX_STRIPE_BATCH`).
const ROWS_AT_ONCE: usize = 8;
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
    place: Place,
    /// Its list of inactive heads.
    list: u8,
    /// It has been taken for new rows, and md's thread has not handled it (`STRIPE_BATCH_READY`).
    is_fresh: bool,
    /// A bio of these rows has been sent (`STRIPE_IO_STARTED`).
    has_begun: bool,
    /// md's thread has taken it with its present rows, and lets it go with them.
    is_taken: bool,
}

/// Where a row of blocks is that may have no work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Someone holds it, or it is in a list with its work.
    Active,
    /// It is free, and comes to the list of inactive ones with the thread's next rows (`temp_inactive_list`).
    Released,
    Inactive,
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
    /// The blocks that it lacks may be read (`STRIPE_PREREAD_ACTIVE`).
    may_read: bool,
    /// It may when it is the first of its row.
    reads_next: bool,
    /// A write of all data of the row (`STRIPE_FULL_WRITE`), under way.
    full_write: bool,
    /// Its entry in a list; 0 if it is in none. `is_listed`: in that of md's thread.
    entry: u64,
    is_listed: bool,
    /// It is in the plug of the thread that wrote it last, or in the hands of the rebuild's.
    is_plugged: bool,
    /// md's thread finds it when it begins anew.
    is_released: bool,
    /// Bios under way.
    pub(crate) left: u32,
    pub(crate) stage: Step,
    head: u32,
    /// The next work on the same row.
    next: u32,
    /// It is in the batch of another row (`batch_head`).
    is_member: bool,
    /// It is written with the row before it, which ends it, too (before 4.1).
    goes_along: bool,
    /// The next row of a batch of full stripes, which are written together.
    batched: u32,
    /// Another write that became a part of this one.
    joined: u32,
    /// Round of setting bits after which md's thread may write it (`bm_seq`).
    bits: u32,
    /// A read that found no free request (`R5_ReadNoMerge`).
    is_retried: bool,
}

impl Work {
    /// Someone else puts it on the list.
    fn is_held(&self) -> bool {
        self.is_plugged || self.is_released
    }
}

/// The step of a row that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    New,
    /// These blocks are being read.
    Reading(MemberSet),
    /// Parity is computed: so many bytes are to be written to these members when md's thread comes to the row again.
    Computed(MemberSet, u64),
    Writing,
    /// Its last bios are done: md's thread is to see it.
    Done,
    /// A read has its data, and md's thread sees it once more (`ops_complete_biofill`).
    Over,
}

/// The way of a row that md's thread has handled, when it has handled those that it took with it
/// (`__release_stripe`).
#[derive(Debug, Clone, Copy)]
enum After {
    /// It is to be handled again.
    List(u32),
    Delay(u32),
    /// The head has no work.
    Free(u32),
}

/// Released since md's thread began last: it finds them when it begins anew (`released_stripes`).
#[derive(Debug, Clone, Copy)]
enum Released {
    /// The last bio of a row's step is done.
    Work(u32),
    /// A head without work.
    Head(u32),
}

/// The next requests to members for a row, or a batch of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requests {
    pub(crate) work: u32,
    pub(crate) members: MemberSet,
    pub(crate) write: bool,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// A read that found no free request.
    pub(crate) is_retried: bool,
}

/// A read of a part of a chunk that found no free request: md's thread reads it again, row by row (`raid5_align_endio`,
/// `retry_aligned_read`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retry {
    /// The request that it is a part of.
    pub(crate) slot: u32,
    pub(crate) member: u32,
    /// The next row, and the end of the last one, bytes on the member.
    pub(crate) at: u64,
    pub(crate) end: u64,
}

/// How a request wants its rows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowManner {
    pub(crate) write: bool,
    /// Someone waits for it.
    pub(crate) sync: bool,
    /// It fails if a row finds no head free (`REQ_RAHEAD`, `R5_GAS_NOBLOCK`).
    pub(crate) gives_up: bool,
    /// Its thread has a plug.
    pub(crate) plugged: bool,
}

/// Rows of a request that have no head yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    slot: u32,
    manner: RowManner,
    /// The last rows of a bio.
    ends_piece: bool,
    /// The first rows of a part that is cut off the rest of its bio.
    is_cut_off: bool,
    rows: Rows,
}

/// The outcome for rows that wait for heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The last row of the request has a head, or needs none.
    All(u32),
    /// The block layer cuts the next part of a bio off.
    Cut,
}

/// Rows in order: work, and its entry. Work that has left the list since has another entry.
type List = VecDeque<(u32, u64)>;

/// The rules of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StripeRules {
    /// Read-modify-write or reconstruct-write.
    pub(crate) write: WriteRule,
    /// A cache under pressure grows, and inactive heads have several lists.
    pub(crate) grows: bool,
    /// Synchronous writes are not delayed.
    pub(crate) sync_at_once: bool,
    /// The thread that writes a page handles its row, and copies the page into the cache.
    pub(crate) by_writer: bool,
    /// Delayed rows wait for the array's plug to be pulled.
    pub(crate) has_plug: bool,
    /// Rows that were delayed are behind full stripes (`hold_list`).
    pub(crate) holds: bool,
    /// A request takes its heads row by row, not block by block.
    pub(crate) by_rows: bool,
}

#[derive(Debug)]
pub(crate) struct Stripes {
    pub(crate) rules: StripeRules,
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
    /// Rows in the plug of the thread that works (`release_stripe_plug`).
    plugged: Vec<u32>,
    /// Pages that it has copied or computed parity from since `take_pages`.
    pages: u32,
    /// Rows that md's thread has taken, and their way afterwards.
    round: VecDeque<u32>,
    taken: Vec<u32>,
    after: Vec<After>,
    released: VecDeque<Released>,
    /// Heads on their way to the inactive ones.
    free: Vec<u32>,
    /// Heads have become inactive since someone who waits for one looked.
    has_freed: bool,
    /// Rows for md's thread.
    handle: List,
    /// Rows that lack blocks.
    delayed: List,
    /// Rows that lack blocks, which may be read when no full stripe is under way.
    held: List,
    entries: u64,
    /// Rows that may read, and have not been written (`preread_active_stripes`).
    reading: u32,
    /// Full stripes being written (`pending_full_writes`).
    full_writes: u32,
    /// Full stripes that passed the first held row, and that row's entry.
    passed: i32,
    first_held: u64,
    /// The plug is in, and its timer wanted.
    is_plugged: bool,
    wants_timer: bool,
    pending: VecDeque<Pending>,
    /// Writes of blocks of which the row has a write that md's thread has not taken yet (`R5_Overlap`).
    overlapping: VecDeque<Pending>,
    /// Rows of the request that was placed last that found no head.
    given_up: u32,
    /// A row that the rebuild has got and not handed over.
    in_hand: Option<u32>,
    /// Reads that found no free request, the next one last (`retry_read_aligned_list`).
    retries: Vec<Retry>,
    /// The one that md's thread reads (`retry_read_aligned`).
    retried: Option<Retry>,
    /// It has found no free row: md's thread looks again when it begins anew.
    retry_waits: bool,
    /// Rows whose bits of the write-intent bitmap are to be set first.
    bits: Option<Bits>,
    /// Something was released, and rows waited for their bits since.
    took_released: bool,
    /// Rows that have got blocks to write (true) or are written, as offsets on the member; with a bitmap only.
    pub(crate) writes: Vec<(u64, bool)>,
}

/// Rounds of setting bits for rows.
#[derive(Debug, Default)]
struct Bits {
    /// Rows that wait for the next round (`bitmap_list`).
    waiting: List,
    /// Rounds begun and done (`seq_flush`, `seq_write`).
    begun: u32,
    done: u32,
}

impl Stripes {
    pub(crate) fn new(heads: u32, chunk: u64, rules: StripeRules, has_bitmap: bool) -> Stripes {
        let mut stripes = Stripes {
            rules,
            chunk,
            heads: Vec::with_capacity(2 * heads as usize),
            index: HashMap::with_capacity(2 * heads as usize),
            inactive: [(NONE, NONE); LISTS],
            active: 0,
            is_blocked: false,
            wants_more: false,
            has_grown: false,
            work: Slab::with_capacity(2 * heads as usize),
            plugged: Vec::with_capacity(2 * heads as usize),
            pages: 0,
            round: VecDeque::with_capacity(ROWS_AT_ONCE),
            taken: Vec::with_capacity(ROWS_AT_ONCE),
            after: Vec::with_capacity(ROWS_AT_ONCE),
            released: VecDeque::with_capacity(2 * heads as usize),
            free: Vec::with_capacity(2 * heads as usize),
            has_freed: false,
            handle: List::with_capacity(2 * heads as usize),
            delayed: List::with_capacity(2 * heads as usize),
            held: List::with_capacity(2 * heads as usize),
            entries: 0,
            reading: 0,
            full_writes: 0,
            passed: 0,
            first_held: 0,
            is_plugged: false,
            wants_timer: false,
            pending: VecDeque::with_capacity(64),
            overlapping: VecDeque::with_capacity(64),
            given_up: 0,
            in_hand: None,
            retries: Vec::new(),
            retried: None,
            retry_waits: false,
            bits: has_bitmap.then(Bits::default),
            took_released: false,
            writes: Vec::new(),
        };
        for _ in 0..heads {
            let id = stripes.add_head();
            stripes.park(id);
        }
        stripes
    }

    /// Stands for a slot in rows that the rebuild works on.
    pub(crate) const REBUILD: u32 = u32::MAX;

    /// Gives a row that is to be rebuilt a head; false if none is free. `kept`: it is handed to md's thread later.
    pub(crate) fn place_rebuilt(&mut self, rows: Rows, kept: bool) -> bool {
        let Some(head) = self.head_of(&rows, false) else {
            self.unplug();
            return false;
        };
        let of = Pending {
            slot: Stripes::REBUILD,
            manner: RowManner {
                write: true,
                ..RowManner::default()
            },
            ends_piece: true,
            is_cut_off: false,
            rows,
        };
        let id = self.add_work(head, of, rows);
        if self.queue_on(head, id) {
            match kept {
                true => {
                    self.work.get_mut(id).is_plugged = true;
                    self.in_hand = Some(id);
                }
                false => self.list(id),
            }
        }
        true
    }

    /// The rebuild hands over the row that it has in hand.
    pub(crate) fn hand_over(&mut self) {
        if let Some(id) = self.in_hand.take() {
            self.work.get_mut(id).is_plugged = false;
            self.list(id);
        }
    }

    /// Rows of the cache.
    pub(crate) fn size(&self) -> u32 {
        self.heads.len() as u32
    }

    /// True if md's thread has rows to handle.
    pub(crate) fn has_work(&self) -> bool {
        let waits = self.bits.as_ref().is_some_and(|of| !of.waiting.is_empty());
        let retries = (self.retried.is_some() || !self.retries.is_empty()) && !self.retry_waits;
        (!self.handle.is_empty() || !self.released.is_empty() || waits || retries)
            && !self.waits_for_bits()
    }

    /// True if md's thread sleeps until bits are set.
    pub(crate) fn waits_for_bits(&self) -> bool {
        self.bits.as_ref().is_some_and(|of| of.done != of.begun)
    }

    /// md's thread begins anew: true if bits of rows are to be set first.
    pub(crate) fn begin_bits(&mut self) -> bool {
        if self.waits_for_bits() {
            return false;
        }
        self.took_released |= self.take_released();
        match &mut self.bits {
            Some(bits) if !bits.waiting.is_empty() => {
                bits.begun += 1;
                true
            }
            _ => false,
        }
    }

    /// A round without bits to set.
    pub(crate) fn pass_bits(&mut self) {
        if let Some(bits) = &mut self.bits {
            bits.begun += 1;
            self.bits_are_set();
        }
    }

    /// The bits of the round are set: its rows go to md's thread (`activate_bit_delay`).
    pub(crate) fn bits_are_set(&mut self) {
        let Some(bits) = &mut self.bits else {
            return;
        };
        bits.done = bits.begun;
        let mut waiting = std::mem::take(&mut bits.waiting);
        for (id, entry) in waiting.drain(..) {
            if self.work.get(id).entry == entry {
                self.unlist(id);
                self.list(id);
            }
        }
        if let Some(bits) = &mut self.bits {
            // None has come meanwhile: those that have wait for the next round.
            if bits.waiting.is_empty() {
                bits.waiting = waiting;
            }
        }
    }

    /// True if a row is to wait for its bits (`STRIPE_BIT_DELAY`).
    fn waits_for_its_bits(&self, id: u32) -> bool {
        let of = self.work.get(id);
        self.bits
            .as_ref()
            .is_some_and(|bits| of.write && of.bits > bits.done)
    }

    /// True if someone who waits for a head is to look whether there is one.
    pub(crate) fn wakes_waiters(&self) -> bool {
        self.has_freed && !self.pending.is_empty()
    }

    /// `grow_one_stripe`.
    fn grow(&mut self) {
        let id = self.add_head();
        self.active += 1;
        self.released.push_back(Released::Head(id));
        self.has_grown = true;
    }

    fn add_head(&mut self) -> u32 {
        let id = self.heads.len() as u32;
        self.heads.push(Head {
            key: None,
            cached: MemberSet::EMPTY,
            first: NONE,
            last: NONE,
            before: NONE,
            after: NONE,
            place: Place::Active,
            is_fresh: false,
            has_begun: false,
            is_taken: false,
            list: self.list_of(u64::from(id)) as u8,
        });
        id
    }

    /// The list of inactive heads for a row.
    fn list_of(&self, row: u64) -> usize {
        if self.rules.grows {
            row as usize % LISTS
        } else {
            0
        }
    }

    /// Takes the rows of a request.
    pub(crate) fn add(&mut self, slot: u32, manner: RowManner, rows: Rows, is_cut_off: bool) {
        self.pending.push_back(Pending {
            slot,
            manner,
            ends_piece: false,
            is_cut_off,
            rows,
        });
    }

    /// The rows of a bio have been added.
    pub(crate) fn end_piece(&mut self) {
        if let Some(last) = self.pending.back_mut() {
            last.ends_piece = true;
        }
    }

    /// Gives waiting rows their heads, in the order of their arrival.
    pub(crate) fn place(&mut self) -> Option<Placed> {
        if self.is_blocked && !std::mem::take(&mut self.has_freed) {
            return None;
        }
        while let Some(mut pending) = self.pending.pop_front() {
            let Pending { slot, manner, .. } = pending;
            if std::mem::take(&mut pending.is_cut_off) {
                self.pending.push_front(pending);
                self.has_freed |= self.is_blocked;
                return Some(Placed::Cut);
            }
            while pending.rows.len > 0 {
                let mut rows = pending.rows;
                rows.len = STRIPE_BLOCK;
                match self.head_of(&rows, manner.gives_up) {
                    Some(head) if manner.write && self.has_to_wait(head, &rows) => {
                        self.wait_for_overlap(pending);
                        break;
                    }
                    Some(head) => {
                        pending.rows.offset += STRIPE_BLOCK;
                        pending.rows.len -= STRIPE_BLOCK;
                        self.attach(head, pending, rows);
                    }
                    None if manner.gives_up => {
                        self.give_up(pending);
                        break;
                    }
                    None => {
                        self.pending.push_front(pending);
                        self.unplug();
                        self.release();
                        return None;
                    }
                }
            }
            if pending.rows.len > 0 && !manner.gives_up {
                continue;
            }
            if self.pending.front().is_none_or(|next| next.slot != slot) {
                // The next one looks too, and lets its plug go if it sleeps.
                self.has_freed |= !self.pending.is_empty();
                return Some(Placed::All(slot));
            }
        }
        None
    }

    /// True if the row has a write of these blocks that md's thread has not taken: it takes one at a time (`add_stripe_bio`).
    fn has_to_wait(&self, head: u32, rows: &Rows) -> bool {
        let last = self.heads[head as usize].last;
        if self.rules.has_plug || last == NONE {
            return false;
        }
        let work = self.work.get(last);
        let is_open = work.write
            && work.slot != Stripes::REBUILD
            && matches!(work.stage, Step::New | Step::Reading(_));
        let taken = work.rows.full.with(&work.rows.partial);
        is_open && !taken.common(&rows.full.with(&rows.partial)).is_empty()
    }

    /// A thread sleeps with the rest of its request until the write before it has been taken. Its plug is let go.
    fn wait_for_overlap(&mut self, first: Pending) {
        let slot = first.slot;
        self.overlapping.push_back(first);
        while self.pending.front().is_some_and(|next| next.slot == slot) {
            self.overlapping.extend(self.pending.pop_front());
        }
        self.unplug();
        self.release();
    }

    /// The rest of a bio gets no rows, and fails.
    fn give_up(&mut self, mut at: Pending) {
        let mut left = Self::rows_of(&at.rows);
        while !at.ends_piece
            && let Some(next) = self.pending.pop_front()
        {
            left += Self::rows_of(&next.rows);
            at = next;
        }
        self.given_up += left;
    }

    /// The number of rows of the request that was placed last that found no head: it gave up.
    pub(crate) fn given_up(&mut self) -> u32 {
        std::mem::take(&mut self.given_up)
    }

    /// Work that a request adds: a part of it for each row.
    pub(crate) fn rows_of(rows: &Rows) -> u32 {
        (rows.len / STRIPE_BLOCK) as u32
    }

    fn head_of(&mut self, rows: &Rows, gives_up: bool) -> Option<u32> {
        let (key, list) = (key_of(rows), self.list_of(rows.offset / STRIPE_BLOCK));
        if let Some(&id) = self.index.get(&key) {
            self.hold(id);
            return Some(id);
        }
        let oldest = self.inactive[list].0;
        if self.is_blocked {
            // Who does not wait leaves it to those who do to find that there is enough.
            if gives_up || oldest == NONE || self.active >= self.heads.len() * 3 / 4 {
                return None;
            }
            self.is_blocked = false;
        }
        if oldest == NONE {
            self.wants_more |= self.rules.grows && !self.has_grown;
            self.is_blocked |= !gives_up;
            self.has_freed = false;
            return None;
        }
        self.hold(oldest);
        let head = &mut self.heads[oldest as usize];
        head.cached = MemberSet::EMPTY;
        (head.is_fresh, head.has_begun) = (true, false);
        if let Some(old) = head.key.replace(key) {
            self.index.remove(&old);
        }
        self.index.insert(key, oldest);
        Some(oldest)
    }

    /// The cache has grown before the load began.
    pub(crate) fn add_heads(&mut self, heads: u32) {
        for _ in 0..heads {
            let id = self.add_head();
            self.park(id);
        }
    }

    /// All blocks of a row are in the cache; nothing is under way.
    pub(crate) fn keep(&mut self, rows: &Rows) {
        let Some(id) = self.head_of(rows, true) else {
            return;
        };
        let head = &mut self.heads[id as usize];
        head.cached = rows.members;
        head.is_fresh = false;
        self.active -= 1;
        self.park(id);
    }

    /// Takes a head out of the list of inactive ones, if it is there (`find_get_stripe`).
    fn hold(&mut self, id: u32) {
        match self.heads[id as usize].place {
            Place::Active => return,
            Place::Released => {}
            Place::Inactive => self.unpark(id),
        }
        self.heads[id as usize].place = Place::Active;
        self.active += 1;
    }

    /// A head that no one holds any more, unless it has got new work (`do_release_stripe`).
    fn free(&mut self, id: u32) {
        let head = &mut self.heads[id as usize];
        if head.first == NONE && head.place == Place::Active {
            head.place = Place::Released;
            self.active -= 1;
            self.free.push(id);
        }
    }

    fn attach(&mut self, head: u32, of: Pending, rows: Rows) {
        let id = self.add_work(head, of, rows);
        let may_read = of.manner.sync && self.rules.sync_at_once && of.manner.write;
        let kept = match of.manner.write {
            true => self.open_write(head, &rows),
            false if self.rules.by_writer => None, // the reader handles it at once
            false => self.open_read(head),
        };
        self.heads[head as usize].is_fresh &= of.manner.write;
        let work = match kept {
            Some(kept) => {
                self.join(kept, id);
                kept
            }
            None => {
                self.queue_on(head, id);
                id
            }
        };
        if let Some(bits) = &self.bits
            && of.manner.write
        {
            self.writes.push((rows.offset, true));
            self.work.get_mut(work).bits = bits.begun + 1;
        }
        if self.heads[head as usize].first == work && self.joins_batch(work) {
            return;
        }
        match self.overlaps(head, work) {
            true => {
                self.work.get_mut(work).reads_next |= may_read;
                self.unplug();
            }
            false if may_read => self.may_read(work),
            false => {}
        }
        self.let_go(head, work, of.manner.plugged);
    }

    /// A thread has added its blocks to a row, and keeps it in its plug if it has one (`release_stripe_plug`). md's thread does
    /// not see it until then, whatever its step is.
    fn let_go(&mut self, head: u32, id: u32, plugged: bool) {
        let first = self.heads[head as usize].first;
        let Work {
            stage,
            is_member,
            goes_along,
            batched,
            ..
        } = *self.work.get(first);
        if self.rules.has_plug {
            if first == id && stage == Step::New {
                self.list(id);
            }
            return;
        }
        let held = match is_member || goes_along || batched != NONE {
            true => id,
            false => first,
        };
        match plugged {
            true => self.plug(held),
            false => self.hand_in(held),
        }
    }

    /// True if a write waits for one of the same blocks that has not been begun (`R5_Overlap`).
    fn overlaps(&self, head: u32, id: u32) -> bool {
        let first = self.heads[head as usize].first;
        first != id && self.work.get(id).write && self.work.get(first).stage == Step::New
    }

    /// A thread without a plug has written to the row (`raid5_release_stripe`).
    fn hand_in(&mut self, id: u32) {
        if self.is_at_rest(id) && !self.work.get(id).is_released {
            self.unlist(id);
            self.work.get_mut(id).is_released = true;
            self.released.push_back(Released::Work(id));
        }
    }

    /// A full stripe that no one has handled becomes a part of the batch of the row before it in the chunk, if that is one
    /// too. A thread that looks at that row takes it off its list (`stripe_add_to_batch_list`).
    fn joins_batch(&mut self, id: u32) -> bool {
        let Work { rows, batched, .. } = *self.work.get(id);
        if !self.rules.grows
            || !self.can_batch(id)
            || rows.offset.is_multiple_of(self.chunk)
            || batched != NONE
        {
            return false;
        }
        let (group, row) = key_of(&rows);
        let Some(&head) = self.index.get(&(group, row - 1)) else {
            return false;
        };
        let before = self.heads[head as usize].first;
        if before == NONE {
            if self.heads[head as usize].place != Place::Active {
                self.hold(head);
                self.released.push_back(Released::Head(head));
            }
            return false;
        }
        let of = self.work.get(before);
        if of.entry != 0 && !of.is_held() {
            self.hand_in(before);
        }
        if !self.can_batch(before) {
            return false;
        }
        let bits = self.work.get(id).bits;
        let of = self.work.get_mut(before);
        (of.batched, of.bits) = (id, of.bits.max(bits));
        self.unlist(id);
        let of = self.work.get_mut(id);
        of.is_member = true;
        self.reading -= u32::from(std::mem::take(&mut of.may_read));
        true
    }

    /// `stripe_can_batch`.
    fn can_batch(&self, id: u32) -> bool {
        let work = self.work.get(id);
        work.stage == Step::New && is_full(work) && self.heads[work.head as usize].is_fresh
    }

    fn add_work(&mut self, head: u32, of: Pending, rows: Rows) -> u32 {
        self.work.add(Work {
            slot: of.slot,
            write: of.manner.write,
            rows,
            may_read: false,
            reads_next: false,
            full_write: false,
            entry: 0,
            is_listed: false,
            is_plugged: false,
            is_released: false,
            left: 0,
            stage: Step::New,
            head,
            next: NONE,
            is_member: false,
            goes_along: false,
            batched: NONE,
            joined: NONE,
            bits: 0,
            is_retried: false,
        })
    }

    /// Puts work behind the other work on its row; true if there is none.
    fn queue_on(&mut self, head: u32, id: u32) -> bool {
        let of = &mut self.heads[head as usize];
        match std::mem::replace(&mut of.last, id) {
            NONE => of.first = id,
            last => self.work.get_mut(last).next = id,
        }
        self.heads[head as usize].first == id
    }

    /// Adds the blocks of a request to one that has not been begun; a write that was delayed may have all blocks now.
    fn join(&mut self, kept: u32, id: u32) {
        let rows = self.work.get(id).rows;
        let of = self.work.get_mut(kept);
        of.rows.full = of.rows.full.with(&rows.full);
        of.rows.partial = of.rows.partial.with(&rows.partial);
        let before = std::mem::replace(&mut of.joined, id);
        self.work.get_mut(id).joined = before;
    }

    /// True if it is the first of its row, no bio of it is under way, and md's thread has not taken it.
    fn is_at_rest(&self, id: u32) -> bool {
        let of = self.work.get(id);
        let head = &self.heads[of.head as usize];
        head.first == id && of.left == 0 && !head.is_taken
    }

    fn plug(&mut self, id: u32) {
        // It leaves the list of md's thread (`find_get_stripe`).
        self.unlist(id);
        let of = self.work.get_mut(id);
        if !std::mem::replace(&mut of.is_plugged, true) {
            self.plugged.push(id);
        }
    }

    /// The thread sleeps or has finished: md's thread gets the rows of its plug (`raid5_unplug`).
    pub(crate) fn release(&mut self) {
        let mut plugged = std::mem::take(&mut self.plugged);
        for id in plugged.drain(..) {
            let of = self.work.get_mut(id);
            of.is_plugged = false;
            if !of.is_member && !of.is_released && self.is_at_rest(id) {
                self.list(id);
            }
        }
        self.plugged = plugged;
    }

    /// The row may read what it lacks.
    fn may_read(&mut self, id: u32) {
        let of = self.work.get_mut(id);
        self.reading += u32::from(!std::mem::replace(&mut of.may_read, true));
    }

    /// Puts a row at the end of the list for md's thread, unless it is there.
    fn list(&mut self, id: u32) {
        let waits = self.bits.is_some() && self.waits_for_its_bits(id);
        let of = self.work.get_mut(id);
        if !std::mem::replace(&mut of.is_listed, true) {
            self.entries += 1;
            of.entry = self.entries;
            match &mut self.bits {
                Some(bits) if waits => bits.waiting.push_back((id, self.entries)),
                _ => self.handle.push_back((id, self.entries)),
            }
        }
    }

    /// Takes a row off its list.
    fn unlist(&mut self, id: u32) {
        let of = self.work.get_mut(id);
        (of.entry, of.is_listed) = (0, false);
    }

    /// Delays a row that lacks blocks. The plug goes in.
    fn delay(&mut self, id: u32) {
        self.entries += 1;
        self.work.get_mut(id).entry = self.entries;
        self.delayed.push_back((id, self.entries));
        if self.rules.has_plug {
            self.wants_timer |= !std::mem::replace(&mut self.is_plugged, true);
        }
    }

    /// The plug is pulled: someone waits for the array, or its timer has run out (`raid5_unplug_device`).
    pub(crate) fn unplug(&mut self) {
        if std::mem::take(&mut self.is_plugged) {
            self.activate();
        }
    }

    /// True once for each plug: its timer is to be started.
    pub(crate) fn takes_timer(&mut self) -> bool {
        std::mem::take(&mut self.wants_timer)
    }

    /// Delayed rows may read what they lack, unless others are still at it.
    fn activate(&mut self) {
        if self.reading > 0 {
            return;
        }
        while let Some(id) = Self::first(&mut self.delayed, &self.work) {
            self.delayed.pop_front();
            self.may_read(id);
            if self.rules.holds {
                self.entries += 1;
                self.work.get_mut(id).entry = self.entries;
                self.held.push_back((id, self.entries));
            } else {
                self.list(id);
            }
        }
    }

    /// The first row that is still in a list.
    fn first(list: &mut List, work: &Slab<Work>) -> Option<u32> {
        while let Some(&(id, entry)) = list.front() {
            if work.get(id).entry == entry {
                return Some(id);
            }
            list.pop_front();
        }
        None
    }

    /// The next row for md's thread: of those that were delayed only if no full stripe is under way, or some have passed.
    fn take_next(&mut self) -> Option<u32> {
        if let Some(id) = Self::first(&mut self.handle, &self.work) {
            self.handle.pop_front();
            let head = self.work.get(id).head;
            match Self::first(&mut self.held, &self.work) {
                None => self.passed = 0,
                Some(_) if self.heads[head as usize].has_begun => {}
                Some(held) => self.pass(held),
            }
            return Some(id);
        }
        if self.rules.has_plug && !self.is_plugged && self.reading == 0 {
            self.activate();
            if let Some(id) = Self::first(&mut self.handle, &self.work) {
                self.handle.pop_front();
                return Some(id);
            }
        }
        let id = Self::first(&mut self.held, &self.work)?;
        if self.full_writes > 0 && self.passed <= MOST_PASSING {
            return None;
        }
        self.held.pop_front();
        self.passed = (self.passed - MOST_PASSING).max(0);
        Some(id)
    }

    /// A row passes the first of those that wait.
    fn pass(&mut self, held: u32) {
        let entry = self.work.get(held).entry;
        if std::mem::replace(&mut self.first_held, entry) == entry {
            self.passed += 1;
        } else {
            self.passed = (self.passed - MOST_PASSING).max(0);
        }
    }

    /// A read of the row that has not been begun (`add_stripe_bio`).
    fn open_read(&self, head: u32) -> Option<u32> {
        let last = self.heads[head as usize].last;
        let is_open = |work: &Work| !work.write && work.stage == Step::New;
        (last != NONE && is_open(self.work.get(last))).then_some(last)
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
        let is_open = work.write
            && work.slot != Stripes::REBUILD
            && matches!(work.stage, Step::New | Step::Reading(_));
        let is_apart = taken.common(&rows.full.with(&rows.partial)).is_empty();
        (is_open && is_apart).then_some(last)
    }

    /// Takes a head out of the list of inactive ones.
    fn unpark(&mut self, id: u32) {
        let Head {
            before,
            after,
            list,
            ..
        } = self.heads[id as usize];
        match before {
            NONE => self.inactive[list as usize].0 = after,
            before => self.heads[before as usize].after = after,
        }
        match after {
            NONE => self.inactive[list as usize].1 = before,
            after => self.heads[after as usize].before = before,
        }
    }

    fn park(&mut self, id: u32) {
        let head = &mut self.heads[id as usize];
        let last = std::mem::replace(&mut self.inactive[head.list as usize].1, id);
        (head.before, head.after, head.place) = (last, NONE, Place::Inactive);
        let list = head.list;
        match last {
            NONE => self.inactive[list as usize].0 = id,
            last => self.heads[last as usize].after = id,
        }
    }

    /// md's thread takes what was released since it began last (`release_stripe_list`). True if there was something.
    fn take_released(&mut self) -> bool {
        let has_released = !self.released.is_empty();
        self.has_grown &= !has_released;
        while let Some(released) = self.released.pop_front() {
            match released {
                Released::Work(id) => {
                    let of = self.work.get_mut(id);
                    of.is_released = false;
                    if !of.is_plugged && !of.is_member {
                        self.list(id);
                    }
                }
                Released::Head(id) => self.free(id),
            }
        }
        has_released
    }

    /// md's thread takes its next rows, at most `ROWS_AT_ONCE`, and then frees those of the rows before them that have no
    /// work (`raid5d`, `handle_active_stripes`). False: it has nothing to do.
    pub(crate) fn begin_round(&mut self) -> bool {
        loop {
            let has_released = self.take_released() | std::mem::take(&mut self.took_released);
            if !self.rules.has_plug {
                self.activate();
            }
            while self.round.len() < ROWS_AT_ONCE
                && let Some(id) = self.take_next()
            {
                self.unlist(id);
                self.round.push_back(id);
                let head = self.work.get(id).head;
                self.heads[head as usize].is_taken = true;
                self.taken.push(head);
            }
            self.has_freed |= !self.free.is_empty();
            for at in 0..self.free.len() {
                let id = self.free[at];
                if self.heads[id as usize].place == Place::Released {
                    self.park(id);
                }
            }
            self.free.clear();
            if has_released || !self.round.is_empty() {
                return true;
            }
            if !std::mem::take(&mut self.wants_more) || self.heads.len() >= MOST_HEADS {
                return false;
            }
            self.grow();
        }
    }

    /// The rows that md's thread has taken go to their lists, or are free.
    pub(crate) fn end_round(&mut self) {
        for head in self.taken.drain(..) {
            self.heads[head as usize].is_taken = false;
        }
        for at in 0..self.after.len() {
            match self.after[at] {
                // A thread that has written to it meanwhile has it.
                After::List(id) | After::Delay(id) if self.work.get(id).is_held() => {}
                After::List(id) => self.list(id),
                // One that has released it meanwhile was not the last that held it. It may have let it read, however
                // (`STRIPE_PREREAD_ACTIVE` in `do_release_stripe`).
                After::Delay(id) if self.work.get(id).may_read => self.list(id),
                After::Delay(id) => {
                    self.unlist(id);
                    self.delay(id);
                }
                // A thread that has written to the row meanwhile has let it go before.
                After::Free(head) => match self.heads[head as usize].first {
                    NONE => self.free(head),
                    id if self.work.get(id).is_held() => {}
                    id => self.list(id),
                },
            }
        }
        self.after.clear();
    }

    /// Handles the rows that md's thread has taken, up to one, or a batch, that has requests; slots of requests with a row
    /// that is done go to `done`. `rebuilt`: the member that is being rebuilt. `missing`: members without the row's data.
    pub(crate) fn next(
        &mut self,
        done: &mut VecDeque<u32>,
        rebuilt: Option<u32>,
        missing: impl Fn(u64) -> MemberSet,
    ) -> Result<Option<Requests>, ArrayError> {
        while let Some(first) = self.round.pop_front() {
            let mut id = first;
            while id != NONE {
                let of = *self.work.get(id);
                self.heads[of.head as usize].is_fresh = false;
                id = match of.stage {
                    Step::Over => self.end(id, done),
                    Step::Done if of.write => self.end(id, done),
                    _ => {
                        let requests = self.handle_row(id, done, rebuilt, &missing)?;
                        if requests.is_some() {
                            return Ok(requests);
                        }
                        NONE
                    }
                };
            }
        }
        Ok(None)
    }

    /// A read has found no free request.
    pub(crate) fn retry(&mut self, retry: Retry) {
        self.retries.push(retry);
        // It wakes md's thread, which looks for a row for the one before it too.
        self.retry_waits = false;
    }

    /// md's thread begins anew, and looks again for a row for what is to be read again.
    pub(crate) fn begin_retries(&mut self) {
        self.retry_waits = false;
    }

    /// The read of which the next row is read again.
    pub(crate) fn next_retry(&mut self) -> Option<Retry> {
        if self.retry_waits {
            return None;
        }
        self.retried = self.retried.or_else(|| self.retries.pop());
        self.retried
    }

    /// Gives the row of a read its head and handles it: the requests for it, if there are any. Without a free head md's thread
    /// comes back to it.
    pub(crate) fn retry_row(
        &mut self,
        rows: Rows,
        done: &mut VecDeque<u32>,
    ) -> Result<Option<Requests>, ArrayError> {
        let Some(Retry { slot, at, end, .. }) = self.retried else {
            return Ok(None);
        };
        let Some(head) = self.head_of(&rows, true) else {
            self.retry_waits = true;
            return Ok(None);
        };
        let at = at + STRIPE_BLOCK;
        self.retried = self.retried.map(|of| Retry { at, ..of });
        self.retried.take_if(|_| at >= end);
        let of = Pending {
            slot,
            manner: RowManner::default(),
            ends_piece: true,
            is_cut_off: false,
            rows,
        };
        let id = self.add_work(head, of, rows);
        self.work.get_mut(id).is_retried = true;
        self.heads[head as usize].is_fresh = false;
        if let Some(kept) = self.retried_read(head) {
            return Ok(self.read_more(kept, id, done));
        }
        match self.queue_on(head, id) {
            true => self.handle_row(id, done, None, |_| MemberSet::EMPTY),
            false => Ok(None),
        }
    }

    /// The read that the row has for the same reason.
    fn retried_read(&self, head: u32) -> Option<u32> {
        let first = self.heads[head as usize].first;
        (first != NONE && self.work.get(first).is_retried).then_some(first)
    }

    /// Other blocks of a row are read beside those that are under way, which are taken to arrive together. Those that have
    /// arrived are handed over now.
    fn read_more(&mut self, kept: u32, id: u32, done: &mut VecDeque<u32>) -> Option<Requests> {
        let Work { slot, rows, .. } = *self.work.get(id);
        let Work { stage, head, .. } = *self.work.get(kept);
        let mut more = rows.full.without(&self.heads[head as usize].cached);
        let mut reading = more;
        if let Step::Reading(members) = stage {
            self.join(kept, id);
            more = more.without(&members);
            reading = members.with(&more);
        } else {
            if stage == Step::Done {
                self.fill(kept, done);
            }
            self.replace_read(kept, id);
            if more.is_empty() {
                done.push_back(slot);
            }
        }
        if more.is_empty() {
            return None;
        }
        Some(self.start(kept, Step::Reading(reading), more, STRIPE_BLOCK))
    }

    /// A read whose requests have their data makes room for another one of its row.
    fn replace_read(&mut self, kept: u32, id: u32) {
        let Work { slot, rows, .. } = *self.work.get(id);
        self.work.remove(id);
        let of = self.work.get_mut(kept);
        (of.slot, of.rows) = (slot, rows);
        let mut part = std::mem::replace(&mut of.joined, NONE);
        while part != NONE {
            let Work { joined, .. } = *self.work.get(part);
            self.work.remove(part);
            part = joined;
        }
    }

    /// The next requests for a row; `None` if it is delayed (`handle_stripe`).
    fn handle_row(
        &mut self,
        id: u32,
        done: &mut VecDeque<u32>,
        rebuilt: Option<u32>,
        missing: impl Fn(u64) -> MemberSet,
    ) -> Result<Option<Requests>, ArrayError> {
        let work = *self.work.get(id);
        if !work.write && work.left > 0 {
            // More of it is read than when it was listed.
            return Ok(None);
        }
        if let Step::Computed(writes, len) = work.stage {
            self.reading -= u32::from(work.may_read);
            self.work.get_mut(id).may_read = false;
            return Ok(Some(self.start(id, Step::Writing, writes, len)));
        }
        let missing = missing(work.rows.offset + STRIPE_BLOCK);
        let cached = self.heads[work.head as usize].cached;
        let wanted = work.rows.full.with(&work.rows.partial);
        let is_lost = !wanted.common(&missing).without(&cached).is_empty();
        let (reads, writes, pages) = if work.slot == Stripes::REBUILD {
            let (reads, writes) = plan_rebuilt(&work.rows, &cached, &missing, rebuilt);
            (reads, writes, work.rows.members.len())
        } else if work.write {
            let plan = work.rows.plan(&cached, &missing, self.rules.write)?;
            let writes = with_rebuilt(plan.writes, &work.rows, rebuilt);
            let copied = match self.rules.by_writer {
                true => 0,
                false => wanted.len(),
            };
            let computed = pages_of_parity(&work.rows, plan.method);
            (plan.reads, writes, copied + computed)
        } else {
            let pages = match is_lost {
                true => work.rows.members.len() - 1,
                false => wanted.len(),
            };
            (
                reads(&work.rows, &cached, &missing)?,
                MemberSet::EMPTY,
                pages,
            )
        };
        if !reads.is_empty() && work.write && !work.may_read && work.slot != Stripes::REBUILD {
            self.after.push(After::Delay(id));
            return Ok(None);
        }
        if !reads.is_empty() && (work.write || work.stage == Step::New) {
            let stage = Step::Reading(reads);
            return Ok(Some(self.start(id, stage, reads, STRIPE_BLOCK)));
        }
        self.after.push(After::List(id));
        if work.write && work.slot != Stripes::REBUILD && self.waits_for_its_bits(id) {
            // Blocks have come since it was delayed.
            return Ok(None);
        }
        if work.write {
            let len = self.batch(id);
            self.pages += pages * (len / STRIPE_BLOCK) as u32;
            self.work.get_mut(id).stage = Step::Computed(writes, len);
            return Ok(None);
        }
        self.pages += pages;
        if !is_lost {
            self.fill(id, done);
        } else {
            // It computes first what is lost.
            self.heads[work.head as usize].cached = cached.with(&wanted);
            self.work.get_mut(id).stage = Step::Done;
        }
        Ok(None)
    }

    /// The pages that md's thread has copied or computed parity from since it was asked last.
    pub(crate) fn take_pages(&mut self) -> u32 {
        std::mem::take(&mut self.pages)
    }

    /// A read gets its data (`ops_run_biofill`).
    fn fill(&mut self, id: u32, done: &mut VecDeque<u32>) {
        self.work.get_mut(id).stage = Step::Over;
        let mut part = id;
        while part != NONE {
            let Work { slot, joined, .. } = *self.work.get(part);
            done.push_back(slot);
            part = joined;
        }
    }

    fn start(&mut self, id: u32, stage: Step, members: MemberSet, len: u64) -> Requests {
        let work = self.work.get_mut(id);
        self.heads[work.head as usize].has_begun |= !members.is_empty();
        work.stage = stage;
        Requests {
            work: id,
            members,
            write: stage == Step::Writing,
            offset: work.rows.offset,
            len,
            is_retried: work.is_retried,
        }
    }

    /// The rows of a batch are computed together; their length. Before 4.1 they are those that follow in the list and on the
    /// members, within a chunk: md's thread comes to them next in any case.
    fn batch(&mut self, id: u32) -> u64 {
        self.compute(id);
        let mut last = *self.work.get(id);
        let (mut at, mut len) = (id, STRIPE_BLOCK);
        while last.batched != NONE {
            at = last.batched;
            self.compute(at);
            let of = self.work.get_mut(at);
            of.stage = Step::Writing;
            last = *of;
            self.heads[last.head as usize].is_fresh = false;
            len += STRIPE_BLOCK;
        }
        if self.rules.grows {
            return len;
        }
        while is_full(&last)
            && let Some(next) = Self::first(&mut self.handle, &self.work)
            && let work = *self.work.get(next)
            && is_full(&work)
            && work.stage == Step::New
            && work.rows.members == last.rows.members
            && work.rows.offset == last.rows.offset + STRIPE_BLOCK
            && !work.rows.offset.is_multiple_of(self.chunk)
        {
            self.handle.pop_front();
            self.unlist(next);
            self.compute(next);
            self.reading -= u32::from(work.may_read);
            let of = self.work.get_mut(next);
            (of.stage, of.may_read, of.goes_along) = (Step::Writing, false, true);
            self.work.get_mut(at).batched = next;
            (at, last) = (next, work);
            len += STRIPE_BLOCK;
        }
        len
    }

    /// The row has all that it needs: its parity is computed.
    fn compute(&mut self, id: u32) {
        let of = self.work.get_mut(id);
        of.full_write = is_full(of);
        self.full_writes += u32::from(of.full_write);
        if of.write && !self.overlapping.is_empty() {
            // Who waits looks again.
            self.has_freed = true;
            while let Some(waiting) = self.overlapping.pop_back() {
                self.pending.push_front(waiting);
            }
        }
    }

    pub(crate) fn work_mut(&mut self, id: u32) -> &mut Work {
        self.work.get_mut(id)
    }

    /// All bios of a row's step are done: md's thread goes on with it.
    pub(crate) fn step_done(&mut self, id: u32) {
        let work = self.work.get_mut(id);
        let stage = work.stage;
        work.stage = if work.write && stage != Step::Writing {
            Step::Reading(MemberSet::EMPTY)
        } else {
            Step::Done
        };
        if let Step::Reading(members) = stage {
            let cached = &mut self.heads[work.head as usize].cached;
            *cached = cached.with(&members);
        }
        let work = self.work.get_mut(id);
        if !work.is_plugged && !std::mem::replace(&mut work.is_released, true) {
            self.released.push_back(Released::Work(id));
        }
    }

    /// A row, or a batch, is done, and its head free for others; other work on the row, if there is some.
    fn end(&mut self, id: u32, done: &mut VecDeque<u32>) -> u32 {
        let (mut at, mut other) = (id, NONE);
        while at != NONE {
            let work = *self.work.get(at);
            let rows = &work.rows;
            let mut known = match work.slot {
                Stripes::REBUILD => rows.members,
                _ => rows.full.with(&rows.partial),
            };
            if work.write {
                known.insert(rows.p);
                rows.q.into_iter().for_each(|q| known.insert(q));
            }
            self.full_writes -= u32::from(work.full_write);
            let head = &mut self.heads[work.head as usize];
            head.cached = head.cached.with(&known);
            head.first = work.next;
            if work.next == NONE {
                head.last = NONE;
                if work.is_member {
                    self.released.push_back(Released::Head(work.head));
                } else {
                    self.after.push(After::Free(work.head));
                }
            } else if self.work.get(work.next).is_held() {
                // Its thread lets it go later.
            } else if at == id {
                other = work.next;
            } else {
                self.list(work.next);
            }
            if work.next != NONE && self.work.get(work.next).reads_next {
                self.may_read(work.next);
            }
            let mut part = at;
            while part != NONE {
                let Work { slot, joined, .. } = *self.work.get(part);
                self.work.remove(part);
                if self.bits.is_some() && work.write && slot != Stripes::REBUILD {
                    self.writes.push((rows.offset, false));
                }
                if work.stage != Step::Over {
                    done.push_back(slot);
                }
                part = joined;
            }
            at = work.batched;
        }
        other
    }
}

/// The head that a row has.
fn key_of(rows: &Rows) -> Key {
    let group = rows.members.iter().next().unwrap_or(0);
    (group, rows.offset / STRIPE_BLOCK)
}

fn is_full(work: &Work) -> bool {
    let rows = &work.rows;
    let parities = 1 + u32::from(rows.q.is_some());
    work.write && rows.full.len() + parities == rows.members.len()
}

/// Pages that the parities of a row are computed from: what is new and the old data and parity, or all data
/// (`ops_run_prexor`, `ops_run_reconstruct5`, `ops_run_reconstruct6`).
fn pages_of_parity(rows: &Rows, method: WriteMethod) -> u32 {
    let parities = 1 + u32::from(rows.q.is_some());
    let sources = match method {
        WriteMethod::ReadModifyWrite => 2 * rows.full.with(&rows.partial).len() + 1,
        WriteMethod::FullStripe | WriteMethod::ReconstructWrite => rows.members.len() - parities,
    };
    parities * sources
}

/// The rebuild reads all other members and writes the rebuilt one (`handle_parity_checks5`).
fn plan_rebuilt(
    rows: &Rows,
    cached: &MemberSet,
    missing: &MemberSet,
    rebuilt: Option<u32>,
) -> (MemberSet, MemberSet) {
    let rebuilt: MemberSet = rebuilt.into_iter().collect();
    let reads = rows.members.without(missing).without(&rebuilt);
    (reads.without(cached), rebuilt)
}

/// A write reaches the member that is being rebuilt too (`ops_run_io` asks only whether it is there).
fn with_rebuilt(mut writes: MemberSet, rows: &Rows, rebuilt: Option<u32>) -> MemberSet {
    let mut written = rows.full.with(&rows.partial);
    written.insert(rows.p);
    rows.q.into_iter().for_each(|q| written.insert(q));
    if let Some(member) = rebuilt
        && written.contains(member)
    {
        writes.insert(member);
    }
    writes
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
