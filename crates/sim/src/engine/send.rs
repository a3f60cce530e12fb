//! Bios on their way into the queues: under plugs or past them, and threads that sleep until there is room.

use spindle_array::STRIPE_BLOCK;
use spindle_workload::Op;

use super::bio::{Bio, Chain, Issuer, Manner, Owner};
use super::fair::Who;
use super::load::{Alarm, Stage};
use super::queue::UNPLUG_NS;
use super::threads::{Postponed, Readings, Ready};
use super::{BLOCK, Engine, Outcome, Target};
use crate::request::{BlockRequest, NONE, Origin};

/// Blocks of a row of the stripe cache on one member.
const ROW_BLOCKS: u32 = (STRIPE_BLOCK / BLOCK) as u32;

/// md's thread, as the sender of bios; others have the number of the slot that they work for.
const MD: u32 = u32::MAX;

/// md's thread, as it reads again what found no free request: it does nothing else then.
const MD_RETRIES: u32 = u32::MAX - 1;

/// A bio of a write whose sender sleeps.
pub(super) struct Behind {
    sender: u32,
    queue: u32,
    chain: Chain,
    /// It goes under the plug.
    plugged: bool,
}

impl Engine {
    /// Sends a stretch of a drive, cut where the queue wants it, directly or into the plug; the number of bios.
    #[inline]
    pub(super) fn send(
        &mut self,
        owner: Owner,
        issuer: Issuer,
        queue: usize,
        (lbn, blocks): (u64, u64),
        manner: Manner,
        plugged: bool,
    ) -> Outcome<u32> {
        let most = self.longest(queue, manner.discard, manner.fua);
        let (mut at, end, mut bios) = (lbn, lbn + blocks, 0);
        while at < end {
            let mut blocks = u64::from(most).min(end - at) as u32;
            let is_of_rows = matches!(owner, Owner::Rows(_));
            if is_of_rows && plugged && blocks > ROW_BLOCKS {
                let batch = Bio::new(owner, issuer, at, blocks, manner).request;
                blocks = self.part_of_batch(queue, batch, most);
            }
            let bio = Bio::new(owner, issuer, at, blocks, manner);
            let id = self.bios.add(bio);
            let chain = Chain {
                is_batch: is_of_rows && blocks > ROW_BLOCKS,
                ..Chain::of(id, bio.request)
            };
            if let Target::Array(fabric) = &mut self.target
                && !matches!(owner, Owner::Metadata(_))
            {
                fabric.sent(queue);
            }
            at += u64::from(blocks);
            if self.rules.reading_ns > 0 {
                // Rows of a batch have a bio each.
                let (begun, cut) = match is_of_rows {
                    true => (u64::from(blocks.div_ceil(ROW_BLOCKS)), 0),
                    false => (u64::from(bios == 0), u64::from(at < end) * Readings::CUT),
                };
                let first = match plugged && begun > 1 {
                    true => self.send_first_of_batch(queue, &chain)?,
                    false => 0,
                };
                self.read_clock((begun * Readings::BIO + cut).saturating_sub(first))?;
            }
            bios += 1;
            if self.waits_for_md(&owner, manner.write) {
                self.keep_for_md(queue, chain);
            } else if let Some(sender) = self.asleep_sender(&chain) {
                let (queue, plugged) = (queue as u32, plugged);
                self.behind.push_back(Behind {
                    sender,
                    queue,
                    chain,
                    plugged,
                });
            } else if plugged && !self.has_plugged_queues {
                self.send_plugged(queue, chain)?;
            } else {
                self.enqueue(queue, &chain, false)?;
            }
        }
        Ok(bios)
    }

    /// True if md's thread sends a write, when the array's plug is pulled (2.6.24 `raid10.c`: `make_request`,
    /// `pending_bio_list`).
    #[inline]
    fn waits_for_md(&self, owner: &Owner, write: bool) -> bool {
        self.has_plugged_queues && self.has_mirrors && write && matches!(owner, Owner::Load(_))
    }

    fn keep_for_md(&mut self, queue: usize, chain: Chain) {
        if self.pending.is_empty() {
            self.load.alarm(self.now_ns + UNPLUG_NS, Alarm::Plug);
        }
        self.pending.push_back((queue as u32, chain));
    }

    /// md's thread sends the writes that it has (`flush_pending_writes`), as far as it does not sleep.
    pub(super) fn send_pending(&mut self) -> Outcome {
        while let Some((queue, chain)) = self.pending.pop_front() {
            match self.asleep_sender(&chain) {
                Some(sender) => self.behind.push_back(Behind {
                    sender,
                    queue,
                    chain,
                    plugged: false,
                }),
                None => self.enqueue(queue as usize, &chain, false)?,
            }
        }
        Ok(())
    }

    /// Blocks of a batch of rows that go on together: the newest request under the plug may have room for some of them.
    fn part_of_batch(&self, queue: usize, batch: BlockRequest, most: u32) -> u32 {
        let chain = Chain::of(NONE, batch);
        let room = self.plug.room_behind(queue as u32, &chain, most);
        let whole_rows = room.map(|blocks| blocks - blocks % ROW_BLOCKS);
        let some = whole_rows.filter(|blocks| (1..batch.blocks).contains(blocks));
        some.unwrap_or(batch.blocks)
    }

    /// The first bio of a batch of rows finds no room under the plug, which is emptied before the others follow: the readings of
    /// the clock for that.
    fn send_first_of_batch(&mut self, queue: usize, chain: &Chain) -> Outcome<u64> {
        let most = self.longest(queue, chain.request.discard, chain.request.fua);
        if !self.plug.is_full() || self.plug.has_place(queue as u32, chain, most) {
            return Ok(0);
        }
        let readings = Readings::BIO + Readings::REQUEST;
        self.read_clock(readings)?;
        self.empty_plug()?;
        Ok(readings)
    }

    /// Blocks of a request. The longest discard is far longer than any other; what the stripe cache writes with REQ_FUA goes
    /// block by block.
    #[inline]
    pub(super) fn longest(&self, queue: usize, discard: bool, fua: bool) -> u32 {
        match (discard, fua) {
            (true, _) => u32::MAX,
            (false, true) => ROW_BLOCKS,
            (false, false) => self.queues[queue].max_blocks(),
        }
    }

    /// The thread that sends this bio of a write to members, if its order with others counts: that of a request, by
    /// slot, or md's.
    fn sender(&self, chain: &Chain) -> Option<u32> {
        if chain.request.no_merge {
            return Some(MD_RETRIES);
        }
        let has_order = self.has_mirrors || self.has_parity;
        if !has_order || !chain.request.write || chain.request.origin == Origin::Direct {
            return None;
        }
        Some(self.issuing_slot(chain.first).unwrap_or(MD))
    }

    /// True if md's thread sleeps for a request with which it reads something again.
    pub(super) fn md_sleeps(&self) -> bool {
        self.asleep.contains(&MD_RETRIES)
    }

    /// The sender of a bio if it sleeps: the bio follows when it is awake.
    #[inline]
    fn asleep_sender(&self, chain: &Chain) -> Option<u32> {
        if self.asleep.is_empty() {
            return None;
        }
        self.sender(chain)
            .filter(|sender| self.asleep.contains(sender))
    }

    /// The thread that sends a bio sleeps until the bio may have a request.
    #[cold]
    fn fall_asleep(&mut self, queue: usize, chain: &Chain) {
        if let Some(sender) = self.sender(chain) {
            self.asleep.push(sender);
        }
        if let Some(slot) = self.issuing_slot(chain.first) {
            if self.sleeps_for_requests(slot) {
                self.sleep(slot);
            } else {
                self.load.slots[slot as usize].waits = true;
                self.hand_over_bio(slot, queue, *chain);
            }
        }
    }

    /// Takes a bio under the plug: it becomes part of a request there, or of one that waits, or gets one of its own
    /// (`blk_mq_get_new_requests`). For that its thread may have to sleep.
    #[inline]
    fn send_plugged(&mut self, queue: usize, chain: Chain) -> Outcome {
        let most = self.longest(queue, chain.request.discard, chain.request.fua);
        if self.plug.merge(queue as u32, chain, most, &mut self.bios)
            || self.queues[queue].merges_bio(self.now_ns, &chain, &mut self.bios)
        {
            return Ok(());
        }
        if self.is_left_to_md(queue, &chain) {
            return Ok(());
        }
        let plugged = self.plug.count(queue as u32);
        if self.holds_up(&chain) && !self.queues[queue].has_free(&chain.request, plugged) {
            // It sleeps for a request, and a thread that sleeps leaves nothing in its plug.
            self.empty_plug()?;
            return self.enqueue(queue, &chain, false);
        }
        if self.queues[queue].throttle_takes(self.now_ns, &chain) {
            return self.add_to_plug(queue, chain);
        }
        // A thread that sleeps leaves nothing in its plug (`io_schedule`).
        self.empty_plug()?;
        self.fall_asleep(queue, &chain);
        Ok(())
    }

    /// True if the thread that sends the bio sends nothing else while it waits for a request: one of io_uring's, and one that
    /// writes to copies or, with io_uring, reads them.
    fn holds_up(&self, chain: &Chain) -> bool {
        let of_copies = self.has_mirrors && (chain.request.write || !self.one_call_each);
        of_copies && self.cache.is_none() || self.is_in_thread() || chain.request.no_merge
    }

    /// A request of its own for a bio under the plug.
    #[inline]
    fn add_to_plug(&mut self, queue: usize, chain: Chain) -> Outcome {
        self.read_clock(Readings::REQUEST)?;
        if self.plug.is_full() {
            self.empty_plug()?;
        }
        self.plug.add(queue as u32, chain);
        Ok(())
    }

    /// The throttle of write-back lets in a bio: its thread is to run.
    #[cold]
    pub(super) fn note_let_in(&mut self, queue: usize, chain: Chain) {
        let slot = self.issuing_slot(chain.first);
        let worker = slot.map(|slot| self.load.slots[slot as usize].worker);
        match (&mut self.turns, worker) {
            (Some(turns), Some(of)) if self.one_call_each && self.cache.is_none() => {
                turns.wake(of as usize);
                self.let_in.push((queue as u32, chain));
                let bio = chain.first;
                self.ready.push(Ready::LetIn { bio, worker });
            }
            _ => self.postponed.push_back(Postponed::LetIn(queue, chain)),
        }
    }

    /// The thread of a bio that may have a request now goes on in its call: the request waits under the plug, for those of
    /// other copies, and further bios become part of it.
    pub(super) fn let_in(&mut self, queue: usize, chain: Chain) -> Outcome {
        let slot = self.issuing_slot(chain.first);
        match slot.is_some_and(|slot| self.has_no_plug(slot)) {
            true => self.enqueue(queue, &chain, true)?,
            false => self.add_to_plug(queue, chain)?,
        }
        self.send_behind(&chain)?;
        if let Some(slot) = slot {
            if let Some(worker) = self.wake(slot) {
                if self.one_call_each && self.cache.is_none() {
                    // Its call returns.
                    self.unplug()?;
                }
                self.go_on(worker)?;
            } else if self.takes_flusher_awake() {
                self.run_flusher()?;
            }
        }
        self.unplug()
    }

    #[inline(always)]
    pub(super) fn enqueue(&mut self, queue: usize, chain: &Chain, plugged: bool) -> Outcome {
        if !plugged && self.queues[queue].merges_bio(self.now_ns, chain, &mut self.bios) {
            if self.queues[queue].has_merged() {
                self.touch(queue);
            }
            return Ok(());
        }
        if !plugged && self.is_left_to_md(queue, chain) {
            return Ok(());
        }
        if !plugged && self.queues[queue].has_free(&chain.request, 0) {
            self.read_clock(self.readings_of_request(queue))?;
        }
        if self.rules.reading_ns > 0 {
            self.pass_events();
        }
        self.catch_up(queue);
        let waits = self.queues[queue]
            .add(self.now_ns, chain, plugged, &mut self.bios)
            .map_err(|error| self.refused(queue, error))?;
        self.sleeps |= waits;
        if waits {
            self.fall_asleep(queue, chain);
        }
        if self.rules.reading_ns > 0 && self.is_touched[queue] {
            // The queues run in the order in which the plug is emptied.
            self.touched.retain(|other| *other as usize != queue);
            self.is_touched[queue] = false;
        }
        self.is_run[queue] |= plugged || waits;
        self.touch(queue);
        Ok(())
    }

    /// Readings of the clock for a request that goes to the queue at once.
    pub(super) fn readings_of_request(&self, queue: usize) -> u64 {
        let is_started = !self.queues[queue].has_elevator();
        Readings::REQUEST + u64::from(is_started) * Readings::START
    }

    /// A bio has a request: what its sender has to send besides follows, unless it sleeps for another one.
    pub(super) fn send_behind(&mut self, of: &Chain) -> Outcome {
        let Some(sender) = self.sender(of) else {
            return Ok(());
        };
        if let Some(at) = self.asleep.iter().position(|other| *other == sender) {
            self.asleep.swap_remove(at);
        }
        while !self.asleep.contains(&sender)
            && let Some(at) = self.behind.iter().position(|of| of.sender == sender)
            && let Some(of) = self.behind.remove(at)
        {
            match of.plugged && !self.has_plugged_queues {
                true => self.send_plugged(of.queue as usize, of.chain)?,
                false => self.enqueue(of.queue as usize, &of.chain, false)?,
            }
        }
        Ok(())
    }

    /// The request whose thread sleeps if this bio waits: md's thread writes parity for it, and mirrors before 3.6; what
    /// the flusher writes to mirrors too. With a bitmap it is taken to send all that a thread has held.
    pub(super) fn issuing_slot(&self, bio: u32) -> Option<u32> {
        let bio = self.bios.get(bio);
        let by_itself = match bio.request.origin {
            Origin::Direct | Origin::Passed => self.rules.kernel.writes_mirrors_itself(),
            Origin::Cache | Origin::Flusher => self.rules.kernel.writes_pages_to_mirrors_itself(),
        };
        let copies = self.has_mirrors && (!by_itself || self.has_bitmap);
        let by_md = bio.request.write && (self.has_parity || copies);
        match bio.owner {
            Owner::Load(slot) if !by_md => Some(slot),
            _ => None,
        }
    }

    /// True if the thread that issued the request sleeps until each of its bios has a request. io_uring leaves it to
    /// others, but md does not pass on to copies that it may not wait (`REQ_NOWAIT`; `raid1_read_request`).
    pub(super) fn sleeps_for_requests(&self, slot: u32) -> bool {
        self.one_call_each
            || self.load.slots[slot as usize].stage == Stage::Pages
            || self.has_mirrors
    }

    /// The thread that issued the request sleeps until `wake` is called as often.
    #[inline]
    pub(super) fn sleep(&mut self, slot: u32) {
        if let Some(cache) = &mut self.cache
            && cache.is_of_flusher(slot)
        {
            cache.flusher_blocked += 1;
            return;
        }
        let worker = self.load.slots[slot as usize].worker as usize;
        self.load.workers[worker].blocked += 1;
    }

    /// A reason to sleep is gone; the worker that sleeps no more.
    #[inline]
    pub(super) fn wake(&mut self, slot: u32) -> Option<usize> {
        if let Some(cache) = &mut self.cache
            && cache.is_of_flusher(slot)
        {
            cache.flusher_blocked -= 1;
            cache.flusher_awake |= cache.flusher_blocked == 0;
            return None;
        }
        let worker = self.load.slots[slot as usize].worker as usize;
        let blocked = &mut self.load.workers[worker].blocked;
        *blocked -= 1;
        (*blocked == 0).then_some(worker)
    }

    /// Hands the plug's requests to their queues.
    #[inline]
    fn empty_plug(&mut self) -> Outcome {
        if !self.plug.is_empty() {
            self.hand_plug_over()?;
        }
        self.dispatch_in_call()
    }

    /// Runs the queues that a thread has touched, at the end of its call: the block layer's thread may have to wait for the
    /// processor.
    #[inline]
    pub(super) fn dispatch_in_call(&mut self) -> Outcome {
        match self.turns.is_none() {
            true => self.dispatch(),
            false => self.dispatch_by_turns(),
        }
    }

    #[inline(never)]
    fn dispatch_by_turns(&mut self) -> Outcome {
        let is_left = |queue: &u32| {
            let queue = *queue as usize;
            !self.is_run[queue] && self.queues[queue].has_to_run()
        };
        let waits = self.touched.iter().any(is_left)
            && self.turns.as_mut().is_some_and(|turns| !turns.serves());
        if !waits {
            return self.dispatch();
        }
        self.dispatch_own()
    }

    /// Runs the queues that the thread runs itself; the block layer's thread has the others later.
    fn dispatch_own(&mut self) -> Outcome {
        let mut left = std::mem::take(&mut self.touched);
        let is_run = &self.is_run;
        self.touched
            .extend(left.extract_if(.., |queue| is_run[*queue as usize]));
        self.dispatch()?;
        left.append(&mut self.touched);
        self.touched = left;
        Ok(())
    }

    /// The part of it that only a plug with requests needs.
    fn hand_plug_over(&mut self) -> Outcome {
        let reverses = self.rules.kernel.reverses_plugs();
        while self.plug.turn_to_left() {
            while let Some((queue, chain)) = self
                .plug
                .take(|queue| reverses && !self.queues[queue as usize].has_elevator())
            {
                self.enqueue(queue as usize, &chain, true)?;
            }
        }
        Ok(())
    }

    /// The thread that works has nothing more to send, and md's thread and the elevators go on: so they do between two
    /// requests of a thread, when it returns from the system call.
    #[inline]
    pub(super) fn unplug(&mut self) -> Outcome {
        if !self.has_parity {
            return self.finish_plug();
        }
        self.place_rows()?;
        self.release_rows();
        if self.md_waits_for_processor() {
            return match self.md_has_plug {
                true => Ok(()),
                false => self.finish_plug(),
            };
        }
        self.run_md(false)
    }

    /// A request of a slot is sent without the plug of its call, which goes on with the next one: md's thread and the block
    /// layer's get the processor when the call returns, and so find what both need. A write to a device has a plug of its
    /// own, and a file's read too, whose end runs the queues (`blkdev_write_iter`, `iomap_dio_rw`).
    #[inline]
    pub(super) fn send_in_call(&mut self, slot: u32) -> Outcome {
        let reads = self.load.slots[slot as usize].request.op == Op::Read;
        let has_own_plug = !reads || self.journal.is_some();
        if self.one_call_each || has_own_plug && !self.has_parity {
            return self.unplug();
        }
        if self.has_parity {
            self.place_rows()?;
            self.release_rows();
            self.wake_md();
        }
        self.dispatch_own()
    }

    /// Empties the plug; the next one is new.
    #[inline]
    pub(super) fn finish_plug(&mut self) -> Outcome {
        if self.has_bitmap && self.has_mirrors {
            self.release_held()?;
        }
        self.empty_plug()?;
        self.plug.finish();
        Ok(())
    }

    /// True if md's thread gets the processor only when the load's sleeps.
    #[inline]
    fn md_waits_for_processor(&mut self) -> bool {
        if self.fair.is_none() || self.md_runs {
            return false;
        }
        self.wake_md();
        self.fair.as_mut().is_some_and(|fair| !fair.gives_way())
    }

    /// md's thread wakes if there are rows for it.
    pub(super) fn wake_md(&mut self) {
        if self.has_rows()
            && let Some(fair) = &mut self.fair
        {
            fair.wake(Who::Md);
        }
    }

    /// The thread that works sleeps or has finished: md's thread gets the rows of its plug.
    #[inline]
    pub(super) fn release_rows(&mut self) {
        if let Target::Array(fabric) = &mut self.target
            && let Some(stripes) = &mut fabric.stripes
        {
            stripes.release();
        }
    }

    /// md's thread and the elevators go on. `yields`: to threads that wait for a head, after a few rows.
    #[inline]
    pub(super) fn run_md(&mut self, yields: bool) -> Outcome {
        if !self.has_parity {
            return self.finish_plug();
        }
        if self.md_runs {
            return Ok(());
        }
        self.place_rows()?;
        self.md_runs = true;
        if let Some(fair) = &mut self.fair {
            if yields {
                fair.sleep(Who::Load);
            }
            fair.switch(Who::Md);
        }
        let is_done = self.handle_rows(yields)?;
        self.md_runs = false;
        self.md_has_plug = !is_done;
        if is_done {
            self.finish_plug()?;
        }
        if let Some(fair) = &mut self.fair {
            if is_done {
                fair.sleep(Who::Md);
            }
            fair.switch(Who::Load);
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn send_member(
        &mut self,
        owner: Owner,
        issuer: Issuer,
        (member, offset, len): (u32, u64, u64),
        manner: Manner,
        plugged: bool,
    ) -> Outcome<u32> {
        let start = match &self.target {
            Target::Drive { start } => *start,
            Target::Array(fabric) => fabric.starts[member as usize],
        };
        // A RAID computes in whole blocks of its own; the ends of a request may be within one of the drive's.
        let first = offset / BLOCK;
        let blocks = (offset + len).div_ceil(BLOCK) - first;
        self.send(
            owner,
            issuer,
            member as usize,
            (start + first, blocks),
            manner,
            plugged,
        )
    }
}
