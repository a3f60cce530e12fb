//! Blocks that md writes for itself: superblocks before the first write, and pages of the write-intent bitmap before writes to
//! chunks whose bit is not set.

use spindle_array::STRIPE_BLOCK;

use super::bio::{Bio, Chain, Issuer, Manner, Metadata, Owner};
use super::bitmap::{self, Bitmap, HeldWrite, Pages, Sleeper};
use super::load::{Alarm, Stage};
use super::threads::Readings;
use super::{Engine, Outcome, Target};
use crate::kernel::Kernel;

/// `safe_mode_delay` (`DEFAULT_SAFEMODE_DELAY`, HZ 250): so long after a moment that is a multiple of it, the first after the
/// last write, md's thread wakes (`md_write_end`).
const SAFE_MODE_NS: u64 = 204_000_000;

/// The time at which md's thread wakes, if the last write ended then.
fn wakes_ns(last_end_ns: u64) -> u64 {
    last_end_ns.next_multiple_of(SAFE_MODE_NS) + SAFE_MODE_NS
}

/// How a block of md's own gets between two flushes on a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// One request for all three (blk-mq).
    Sequence,
    /// A barrier: the drive has nothing else to do then (`BIO_RW_BARRIER`).
    Barrier,
    /// Each by itself.
    Flushes,
}

impl Order {
    fn of(kernel: Kernel) -> Order {
        if kernel.multi_queue() {
            Order::Sequence
        } else if kernel.drains_for_barriers() {
            Order::Barrier
        } else {
            Order::Flushes
        }
    }
}

impl Engine {
    /// The first write finds the superblock clean; those that come meanwhile wait too.
    pub(super) fn mark_superblock(&mut self, slot: u32) -> Outcome {
        self.read_clock(Readings::BIO)?;
        self.load.slots[slot as usize].is_begun = true;
        self.sleep(slot);
        self.sleeps = true;
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        fabric.superblock.writers.push(slot);
        if fabric.superblock.left > 0 {
            return Ok(());
        }
        self.write_superblocks()
    }

    /// The bitmap says first that it belongs to the new superblocks (`md_update_sb`, `md_bitmap_update_sb`).
    pub(super) fn write_superblocks(&mut self) -> Outcome {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let Some(bitmap) = &mut fabric.bitmap else {
            return self.write_metadata(Metadata::Superblock);
        };
        // Until the members are counted.
        fabric.superblock.left = 1;
        bitmap.becomes_active();
        bitmap.sleep(Sleeper::Superblocks, Pages::FIRST);
        self.write_pages()
    }

    /// Begins with the member that was added last (`bind_rdev_to_array`, `rdev_for_each`).
    fn write_metadata(&mut self, of: Metadata) -> Outcome {
        let mut members = 0;
        for queue in (0..self.queues.len()).rev() {
            let Target::Array(fabric) = &mut self.target else {
                return Ok(());
            };
            if !fabric.begin_flush(queue) {
                continue;
            }
            members += 1;
            match (of, &mut fabric.bitmap) {
                (Metadata::Bitmap(_), Some(bitmap)) => bitmap.page_sent(),
                _ => fabric.superblock.left = members,
            }
            let order = Order::of(self.rules.kernel);
            if order == Order::Flushes {
                self.queues[queue].flush(of.slot());
                self.touch(queue);
                continue;
            }
            let (lbn, blocks) = fabric.place_of_metadata(of, queue);
            let issuer = Issuer::kernel(self.md_thread());
            let bio = Bio::new(Owner::Metadata(of), issuer, lbn, blocks, Manner::WRITE_BACK);
            let chain = Chain::of(self.bios.add(bio), bio.request);
            self.read_clock(Readings::BIO + Readings::REQUEST)?;
            self.catch_up(queue);
            match order {
                Order::Barrier => self.queues[queue].add_barrier(self.now_ns, chain),
                _ => self.queues[queue].begin_sequence(self.now_ns, chain, of.slot()),
            }
            self.touch(queue);
        }
        Ok(())
    }

    /// A flush or write of a member is done.
    pub(super) fn metadata_step(&mut self, of: Metadata, queue: usize, written: bool) -> Outcome {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let order = Order::of(self.rules.kernel);
        if written && order != Order::Barrier {
            if order == Order::Flushes {
                fabric.written.push((queue, of));
                self.queues[queue].flush(of.slot());
                self.touch(queue);
            }
            return Ok(());
        }
        if order == Order::Flushes {
            let Some(at) = fabric.written.iter().position(|it| *it == (queue, of)) else {
                // The first of the two flushes.
                let (lbn, blocks) = fabric.place_of_metadata(of, queue);
                let (place, issuer) = ((lbn, blocks.into()), Issuer::kernel(self.md_thread()));
                let owner = Owner::Metadata(of);
                self.send(owner, issuer, queue, place, Manner::WRITE_BACK, false)?;
                return Ok(());
            };
            fabric.written.swap_remove(at);
        }
        fabric.end_flush(queue);
        if let Some(pool) = self.queues[queue].end_sequence(of.slot()) {
            self.touch(queue);
            self.free(queue, pool)?;
        }
        match of {
            Metadata::Superblock => self.superblock_is_on_member(),
            Metadata::Bitmap(_) => self.page_is_on_member(),
        }
    }

    fn superblock_is_on_member(&mut self) -> Outcome {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        fabric.superblock.left -= 1;
        if fabric.superblock.left > 0 {
            return Ok(());
        }
        if std::mem::take(&mut fabric.superblock.is_cleaning)
            && !fabric.superblock.writers.is_empty()
        {
            // They came meanwhile.
            return self.write_superblocks();
        }
        // A note of the rebuild alone leaves the array clean.
        fabric.superblock.active |= !fabric.superblock.writers.is_empty();
        for unit in std::mem::take(&mut fabric.superblock.units) {
            self.write_unit(unit)?;
        }
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let writers = std::mem::take(&mut fabric.superblock.writers);
        let mut threads = Vec::new();
        let mut left = writers.as_slice();
        while let Some(&last) = left.last() {
            // Who slept last is woken first (`prepare_to_wait_event`).
            let of_thread = left
                .iter()
                .rev()
                .take_while(|slot| self.is_of_thread(**slot, last));
            let (before, of_thread) = left.split_at(left.len() - of_thread.count().max(1));
            left = before;
            threads.push((last, of_thread));
        }
        if let Some(turns) = &self.turns {
            // The one of them that has had the processor least is first then.
            let worker = |slot: u32| self.load.slots[slot as usize].worker as usize;
            threads.sort_by_key(|(last, _)| turns.had_ns(worker(*last)));
        }
        for (last, of_thread) in threads {
            if self.load.slots[last as usize].stage == Stage::Pages {
                self.issue(last, true)?;
                self.place_rows()?;
                if let Some(worker) = self.wake(last) {
                    self.go_on(worker)?;
                }
                continue;
            }
            let worker = self.load.slots[last as usize].worker as usize;
            self.batch.extend_from_slice(of_thread);
            // Its call goes on.
            self.batch.extend(self.load.workers[worker].held.drain(..));
            self.load.workers[worker].blocked -= of_thread.len() as u32;
            self.submit()?;
            self.go_on(worker)?;
        }
        Ok(())
    }

    /// True if a slot is of the thread of the load that has the other one. The flusher's slots have the number of a worker too.
    fn is_of_thread(&self, slot: u32, other: u32) -> bool {
        let (of, other) = (
            &self.load.slots[slot as usize],
            &self.load.slots[other as usize],
        );
        of.worker == other.worker && of.stage != Stage::Pages && other.stage != Stage::Pages
    }

    pub(super) fn bitmap(&mut self) -> Option<&mut Bitmap> {
        match &mut self.target {
            Target::Array(fabric) => fabric.bitmap.as_deref_mut(),
            Target::Drive { .. } => None,
        }
    }

    /// A write of a request to copies waits for the bits of its chunks (`raid1_add_bio_to_plug`); the bios that it becomes.
    pub(super) fn hold_write(
        &mut self,
        slot: u32,
        issuer: Issuer,
        part: (u32, u64, u64),
        manner: Manner,
    ) -> u32 {
        let (member, offset, len) = part;
        let blocks = (offset + len).div_ceil(super::BLOCK) - offset / super::BLOCK;
        let most = self.longest(member as usize, manner.discard, manner.fua);
        let bios = blocks.div_ceil(u64::from(most)) as u32;
        let by_md = !self.rules.kernel.writes_mirrors_itself() || self.has_no_plug(slot);
        if let Target::Array(fabric) = &mut self.target
            && let Some(bitmap) = &mut fabric.bitmap
        {
            let write = HeldWrite {
                slot,
                issuer,
                part,
                manner,
                bios,
            };
            bitmap.hold(write, by_md);
            for _ in 0..bios {
                fabric.sent(member as usize);
            }
        }
        bios
    }

    /// A thread lets its plug go: its writes to copies are sent, after the pages of the bitmap that they need
    /// (`raid1_unplug`, `flush_pending_writes`). Those of md's thread go as soon as it does not sleep.
    pub(super) fn release_held(&mut self) -> Outcome {
        while let Some(bitmap) = self.bitmap()
            && let Some((slot, writes)) = bitmap.take_held()
        {
            let pages = bitmap.take_dirty();
            if pages.is_empty() {
                self.send_held(writes)?;
                continue;
            }
            bitmap.sleep(Sleeper::Writes(Some(slot), writes), pages);
            self.sleep(slot);
            self.write_pages()?;
        }
        while let Some(bitmap) = self.bitmap()
            && let Some(writes) = bitmap.take_left_to_md()
        {
            let pages = bitmap.take_dirty();
            if pages.is_empty() {
                self.send_held(writes)?;
                continue;
            }
            bitmap.sleep(Sleeper::Writes(None, writes), pages);
            self.write_pages()?;
        }
        Ok(())
    }

    fn send_held(&mut self, writes: Vec<HeldWrite>) -> Outcome {
        for of in &writes {
            if let Target::Array(fabric) = &mut self.target {
                for _ in 0..of.bios {
                    fabric.sends_now(of.part.0 as usize);
                }
            }
            self.send_member(Owner::Load(of.slot), of.issuer, of.part, of.manner, true)?;
        }
        if let Some(bitmap) = self.bitmap() {
            bitmap.give_back(writes);
        }
        Ok(())
    }

    /// Writes the pages of the bitmap for which someone sleeps, unless others are under way.
    fn write_pages(&mut self) -> Outcome {
        let pages = self.bitmap().map(Bitmap::take_pages).unwrap_or_default();
        for page in pages {
            self.write_metadata(Metadata::Bitmap(page))?;
        }
        Ok(())
    }

    fn page_is_on_member(&mut self) -> Outcome {
        if let Some(bitmap) = self.bitmap() {
            bitmap.page_done();
        }
        self.write_pages()?;
        while let Some(who) = self.bitmap().and_then(Bitmap::next_awake) {
            match who {
                Sleeper::Superblocks => self.write_metadata(Metadata::Superblock)?,
                Sleeper::Rows => {
                    if let Some(stripes) = self.stripes() {
                        stripes.bits_are_set();
                    }
                }
                Sleeper::Writes(slot, writes) => {
                    self.send_held(writes)?;
                    self.unplug()?;
                    if let Some(slot) = slot {
                        if let Some(worker) = self.wake(slot) {
                            self.go_on(worker)?;
                        } else if self.takes_flusher_awake() {
                            self.run_flusher()?;
                        }
                    }
                }
            }
        }
        match self.bitmap().is_some_and(Bitmap::takes_look) {
            true => self.look_at_bitmap(),
            false => Ok(()),
        }
    }

    /// md's thread has rows whose bits are to be on the members before it handles them. True if it sleeps for that.
    pub(super) fn sets_bits_of_rows(&mut self) -> Outcome<bool> {
        self.note_rows();
        let Target::Array(fabric) = &mut self.target else {
            return Ok(false);
        };
        let (Some(stripes), Some(bitmap)) = (&mut fabric.stripes, &mut fabric.bitmap) else {
            return Ok(false);
        };
        if !stripes.begin_bits() {
            return Ok(stripes.waits_for_bits());
        }
        let pages = bitmap.take_dirty();
        if pages.is_empty() {
            stripes.bits_are_set();
            return Ok(false);
        }
        bitmap.sleep(Sleeper::Rows, pages);
        self.write_pages()?;
        Ok(true)
    }

    /// Rows whose bits are set on the members are in the list as early as without a bitmap, if a thread takes no time: else
    /// those that come while md's thread works were behind those that it has, and it would write them in smaller pieces than
    /// any real one.
    pub(super) fn pass_rows_with_bits(&mut self) {
        self.note_rows();
        let Target::Array(fabric) = &mut self.target else {
            return;
        };
        if let (Some(stripes), Some(bitmap)) = (&mut fabric.stripes, &fabric.bitmap)
            && !bitmap.is_dirty()
            && !stripes.waits_for_bits()
        {
            stripes.pass_bits();
        }
    }

    /// The bitmap hears of rows that have got blocks to write, and of those that are written.
    pub(super) fn note_rows(&mut self) {
        let Target::Array(fabric) = &mut self.target else {
            return;
        };
        if let (Some(stripes), Some(bitmap)) = (&mut fabric.stripes, &mut fabric.bitmap) {
            let is_degraded = !fabric.missing.is_empty();
            for (row, begins) in stripes.writes.drain(..) {
                match begins {
                    true => bitmap.begin(row, STRIPE_BLOCK),
                    false => bitmap.end(row, STRIPE_BLOCK, is_degraded),
                }
            }
        }
        self.set_bitmap_alarm();
    }

    /// A request of the load is done: superblock and bitmap hear of it if it was a write.
    pub(super) fn note_done(&mut self, slot: u32) {
        let now_ns = self.now_ns;
        let Target::Array(fabric) = &mut self.target else {
            return;
        };
        let of = &mut fabric.superblock;
        if !of.end_write(now_ns, slot) {
            return;
        }
        if of.is_kept && of.writes == 0 && !std::mem::replace(&mut of.has_alarm, true) {
            self.load.alarm(wakes_ns(now_ns), Alarm::SafeMode);
        }
        if !self.has_mirrors {
            return;
        }
        if let Target::Array(fabric) = &mut self.target
            && let Some(bitmap) = &mut fabric.bitmap
        {
            bitmap.end_of(slot, !fabric.missing.is_empty());
        }
        self.set_bitmap_alarm();
    }

    /// Some time after the last write the superblocks say that the array is clean (`set_in_sync`).
    pub(super) fn look_at_superblock(&mut self) -> Outcome {
        let now_ns = self.now_ns;
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let of = &mut fabric.superblock;
        of.has_alarm = false;
        if !of.active || of.writes > 0 || of.left > 0 {
            return Ok(());
        }
        let at_ns = wakes_ns(of.last_end_ns);
        if at_ns > now_ns {
            of.has_alarm = true;
            self.load.alarm(at_ns, Alarm::SafeMode);
            return Ok(());
        }
        (of.active, of.is_cleaning) = (false, true);
        self.write_superblocks()
    }

    fn set_bitmap_alarm(&mut self) {
        self.look_again_at(self.now_ns + bitmap::INTERVAL_NS);
    }

    fn look_again_at(&mut self, at_ns: u64) {
        if let Some(bitmap) = self.bitmap()
            && bitmap.has_to_look()
            && !std::mem::replace(&mut bitmap.has_alarm, true)
        {
            self.load.alarm(at_ns, Alarm::Bitmap);
        }
    }

    /// md's thread looks for bits to clear, and has pages written that nobody waits for. Where it sends no writes itself it
    /// runs only some time after the last one.
    pub(super) fn look_at_bitmap(&mut self) -> Outcome {
        let runs = !self.has_mirrors || !self.rules.kernel.writes_mirrors_itself();
        let now_ns = self.now_ns;
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let Some(bitmap) = &mut fabric.bitmap else {
            return Ok(());
        };
        bitmap.has_alarm = false;
        if bitmap.puts_look_off() {
            return Ok(());
        }
        let of = &fabric.superblock;
        let at_ns = match of.writes {
            0 => wakes_ns(of.last_end_ns),
            _ => wakes_ns(now_ns),
        };
        if !runs && at_ns > now_ns {
            self.look_again_at(at_ns);
            return Ok(());
        }
        let pages = bitmap.look();
        for page in pages {
            self.write_metadata(Metadata::Bitmap(page))?;
        }
        self.set_bitmap_alarm();
        Ok(())
    }
}
