//! Requests of the load that go through the stripe cache, and md's thread that handles its rows.

use spindle_array::STRIPE_BLOCK;

use super::bio::{Issuer, Manner, Owner};
use super::fair::{Fair, Who};
use super::load::{Alarm, Stage};
use super::queue::UNPLUG_NS;
use super::stripes::{Placed, Requests, Stripes};
use super::threads::Readings;
use super::{Engine, Outcome, Target};
use crate::request::Origin;

impl Engine {
    /// True if md's thread, or someone who waits for a row, can go on.
    pub(super) fn has_rows_to_do(&self) -> bool {
        let wakes_waiters = || match &self.target {
            Target::Array(fabric) => fabric.stripes.as_ref().is_some_and(|of| of.wakes_waiters()),
            Target::Drive { .. } => false,
        };
        !self.md_writes_superblock() && (self.has_rows() || wakes_waiters())
    }

    /// True if the stripe cache has rows for md's thread.
    pub(super) fn has_rows(&self) -> bool {
        match &self.target {
            Target::Array(fabric) => {
                let has_work = fabric.stripes.as_ref().is_some_and(|of| of.has_work());
                has_work && !self.md_sleeps() && !self.md_is_busy()
            }
            Target::Drive { .. } => false,
        }
    }

    /// The bio of a request is made, unless it was made before its thread slept.
    pub(super) fn begin_bio(&mut self, slot: u32) -> Outcome {
        match std::mem::take(&mut self.load.slots[slot as usize].is_begun) {
            true => Ok(()),
            false => self.read_clock(Readings::BIO),
        }
    }

    /// Gives rows their heads; threads whose last row has one go on.
    #[inline]
    pub(super) fn place_rows(&mut self) -> Outcome {
        if self.has_parity {
            self.place_rows_of_stripes()?;
        }
        Ok(())
    }

    fn place_rows_of_stripes(&mut self) -> Outcome {
        while let Target::Array(fabric) = &mut self.target
            && let Some(stripes) = &mut fabric.stripes
            && let Some(placed) = stripes.place()
        {
            let Placed::All(slot) = placed else {
                self.read_clock(Readings::CUT)?;
                continue;
            };
            let given_up = stripes.given_up();
            if let Some(worker) = self.wake(slot) {
                self.awake.push(worker as u32);
            }
            if given_up > 0 {
                self.give_up(slot, given_up)?;
            }
        }
        Ok(())
    }

    /// Read-ahead that found no row free fails; the rows that it found are read nevertheless.
    pub(super) fn give_up(&mut self, slot: u32, rows: u32) -> Outcome {
        if let Some(cache) = &mut self.cache {
            cache.fail(slot);
        }
        self.load.slots[slot as usize].left -= rows - 1;
        self.part_done(slot)
    }

    /// md's thread: what the rows in its list need. False if it has lost the processor before its end, to the load's thread from
    /// which it had taken it: at a tick.
    #[inline]
    pub(super) fn handle_rows(&mut self, yields: bool) -> Outcome<bool> {
        match self.has_parity || !self.awake.is_empty() {
            true => self.handle_rows_of_stripes(yields),
            false => Ok(true),
        }
    }

    fn handle_rows_of_stripes(&mut self, yields: bool) -> Outcome<bool> {
        while !self.md_sleeps() && !self.md_is_busy() && !self.md_writes_superblock() {
            if self.is_rebuilding && self.has_rows() && self.md_thread_is_noting()? {
                return Ok(true);
            }
            if self.has_bitmap && self.sets_bits_of_rows()? {
                break;
            }
            if !self.reads_again()? {
                return Ok(true);
            }
            if !self.begin_round() {
                break;
            }
            while let Some(requests) = self.next_rows()? {
                self.send_rows(&requests)?;
            }
            if yields && self.gives_way()? {
                self.let_others_go_on()?;
            }
            if self.has_bitmap && self.fair.is_none() {
                self.pass_rows_with_bits();
            }
            self.end_round();
            self.spend_on_rows();
            if !yields && self.fair.as_mut().is_some_and(Fair::gives_way) {
                return Ok(false);
            }
        }
        if let Target::Array(fabric) = &mut self.target
            && let Some(stripes) = &mut fabric.stripes
            && stripes.takes_timer()
        {
            self.load.alarm(self.now_ns + UNPLUG_NS, Alarm::Plug);
        }
        Ok(true)
    }

    /// True if md's thread waits for a write of the superblock (`md_check_recovery`).
    fn md_writes_superblock(&self) -> bool {
        matches!(&self.target, Target::Array(fabric) if fabric.superblock.left > 0)
    }

    pub(super) fn stripes(&mut self) -> Option<&mut Stripes> {
        match &mut self.target {
            Target::Array(fabric) => fabric.stripes.as_deref_mut(),
            Target::Drive { .. } => None,
        }
    }

    fn begin_round(&mut self) -> bool {
        self.stripes().is_some_and(Stripes::begin_round)
    }

    /// md's thread takes its time for the rows that it had in hand. What they need is sent before, so the next ones wait.
    fn spend_on_rows(&mut self) {
        let pages = self.stripes().map_or(0, Stripes::take_pages);
        let takes_ns = u64::from(pages) * self.rules.stripe_page_ns;
        if takes_ns > 0 {
            self.md_free_ns = self.now_ns + takes_ns;
            self.load.alarm(self.md_free_ns, Alarm::Rows);
        }
    }

    /// True if md's thread still copies and computes.
    fn md_is_busy(&self) -> bool {
        self.md_free_ns > self.now_ns
    }

    pub(super) fn end_round(&mut self) {
        if let Some(stripes) = self.stripes() {
            stripes.end_round();
        }
    }

    /// True if md's thread gives way to one that it has woken (`cond_resched`).
    pub(super) fn gives_way(&mut self) -> Outcome<bool> {
        if self.fair.is_none() {
            return Ok(true);
        }
        while let Some(slot) = self.returned.pop_front() {
            self.row_done(slot)?;
        }
        let wakes_waiters = self.stripes().is_some_and(|of| of.wakes_waiters());
        let wakes_readers = self.cache.as_ref().is_some_and(|of| !of.ready.is_empty());
        let Some(fair) = &mut self.fair else {
            return Ok(true);
        };
        if wakes_waiters || wakes_readers || !self.ready.is_empty() {
            fair.wake(Who::Load);
        }
        let gives_way = fair.gives_way();
        if gives_way {
            fair.switch(Who::Load);
        }
        Ok(gives_way)
    }

    /// Threads that waited for a head go on between rows of md's thread.
    fn let_others_go_on(&mut self) -> Outcome {
        self.place_rows()?;
        while let Some(worker) = self.awake.pop() {
            self.go_on(worker as usize)?;
            self.release_rows();
        }
        if self.fair.is_some() {
            self.fill_ready()?;
            self.release_rows();
        }
        if self.cache.is_some() {
            self.go_on_with_pages()?;
            self.release_rows();
            while let Some(slot) = self.seen_now.pop_front() {
                self.seen(slot)?;
                self.go_on_with_pages()?;
                self.release_rows();
            }
        }
        if let Some(fair) = &mut self.fair {
            fair.sleep(Who::Load);
            fair.switch(Who::Md);
        }
        Ok(())
    }

    fn next_rows(&mut self) -> Outcome<Option<Requests>> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(None);
        };
        Ok(fabric.next_rows(&mut self.returned)?)
    }

    pub(super) fn send_rows(&mut self, requests: &Requests) -> Outcome {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let Some(stripes) = &mut fabric.stripes else {
            return Ok(());
        };
        let slot = stripes.work_mut(requests.work).slot;
        let issuer = self.issuer_of_rows(slot);
        let (origin, sync) = if slot == Stripes::REBUILD {
            (Origin::Direct, true)
        } else {
            let waits =
                self.load.slots[slot as usize].stage != Stage::Pages || self.page_issuer(slot).1;
            (self.origin_of(slot, requests.write), waits)
        };
        let manner = Manner {
            write: requests.write,
            discard: false,
            fua: requests.write && self.is_log_forced(slot),
            no_merge: requests.is_retried,
            sync: !requests.write || (sync && self.rules.kernel.parity_writes_are_sync()),
            origin,
        };
        let mut bios = 0;
        // From the last member to the first (`ops_run_io`).
        let mut members = requests.members;
        while let Some(member) = members.iter().last() {
            members.remove(member);
            let part = (member, requests.offset, requests.len);
            if slot == Stripes::REBUILD {
                self.count_rebuild(member, requests.len);
            }
            bios += self.send_member(Owner::Rows(requests.work), issuer, part, manner, true)?;
        }
        if let Target::Array(fabric) = &mut self.target
            && let Some(stripes) = &mut fabric.stripes
        {
            let left = &mut stripes.work_mut(requests.work).left;
            *left = left.wrapping_add(bios);
            if *left == 0 {
                stripes.step_done(requests.work);
            }
        }
        Ok(())
    }

    /// md's thread, with the priority of the request that it works for.
    fn issuer_of_rows(&self, slot: u32) -> Issuer {
        let kernel = Issuer::kernel(self.md_thread());
        if slot == Stripes::REBUILD {
            return kernel;
        }
        let worker = self.load.slots[slot as usize].worker as usize;
        let stream = self.load.workers[worker].stream;
        Issuer {
            priority: self.load.streams[stream].issuer_priority,
            ..kernel
        }
    }

    /// A row that the stripe cache has finished.
    fn row_done(&mut self, slot: u32) -> Outcome {
        if slot != Stripes::REBUILD {
            return self.part_done(slot);
        }
        if let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            rebuild.end(self.now_ns, STRIPE_BLOCK);
            // Its thread runs when md's sleeps, and finds the row free.
            self.rebuild_awake = true;
        }
        Ok(())
    }

    /// The load sees the rows that the stripe cache has finished; threads whose last row has got a head go on.
    pub(super) fn return_rows(&mut self) -> Outcome {
        while let Some(slot) = self.returned.pop_front() {
            self.row_done(slot)?;
        }
        if self.has_bitmap {
            self.note_rows();
        }
        self.place_rows()?;
        while let Some(worker) = self.awake.pop() {
            if !self.is_buffered(worker) && self.load.workers[worker as usize].held.is_empty() {
                // Its call returns, where md's thread may take the processor.
                self.unplug()?;
            }
            self.go_on(worker as usize)?;
            self.unplug()?;
        }
        Ok(())
    }

    /// md's own thread comes after those of the load.
    pub(super) fn md_thread(&self) -> u32 {
        self.load.workers.len() as u32
    }
}
