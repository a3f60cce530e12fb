//! Commands that drives have finished, through their bios up to the load's requests.

use spindle_measure::OpKind;
use spindle_workload::Op;

use super::bio::{Bio, Owner};
use super::load::{Alarm, Stage};
use super::queue::{Done, Finished, Queue};
use super::threads::{Postponed, Readings, Ready};
use super::{Engine, Outcome, Target};

impl Engine {
    /// The first of the finished commands is handled.
    #[inline]
    pub(super) fn finish_first(&mut self) -> Outcome {
        let was_in_interrupt = std::mem::replace(&mut self.in_interrupt, true);
        let outcome = self.finish_command();
        self.in_interrupt = was_in_interrupt;
        outcome
    }

    #[inline]
    fn finish_command(&mut self) -> Outcome {
        // It is read where it is: a copy would have to wait for its parts.
        let Some((queue, completion)) = self.finished.first() else {
            return Ok(());
        };
        let queue = *queue;
        let of = &mut self.queues[queue];
        let mut finished = of.finish(self.now_ns, completion);
        if of.carries_barrier_out() {
            match of.next_of_barrier(self.now_ns, finished) {
                Ok(Some(ended)) => finished = ended,
                Ok(None) => {
                    self.finished.drop_first();
                    self.touch(queue);
                    return Ok(());
                }
                Err(error) => return Err(self.refused(queue, error)),
            }
        }
        if let Some(trace) = &mut self.trace {
            match finished {
                Finished::Flush => trace.flush(queue, completion),
                Finished::Request => trace.request(queue, &of.done, completion),
            }
        }
        self.finished.drop_first();
        self.touch(queue);
        match finished {
            Finished::Flush => {
                // The next flush may begin while these go on.
                let mut slots = std::mem::take(&mut self.flushed);
                self.queues[queue].take_flushed(&mut slots);
                for slot in slots.drain(..) {
                    if self.rules.reading_ns > 0 {
                        self.postponed.push_back(Postponed::Flushed(queue, slot));
                    } else {
                        self.flush_handled(queue, slot)?;
                    }
                }
                self.flushed = slots;
                Ok(())
            }
            Finished::Request => {
                let Done {
                    first, pool, keeps, ..
                } = self.queues[queue].done;
                // The queue runs before the threads that wait for a completion, and they before those that wait for a
                // request (`blk_mq_free_request`).
                if self.rules.reading_ns == 0 && self.has_to_dispatch(queue) {
                    self.dispatch()?;
                    self.touch(queue);
                }
                let mut id = first;
                while id != Queue::END {
                    let bio = *self.bios.get(id);
                    self.bios.remove(id);
                    self.bio_done(queue, &bio)?;
                    id = bio.next;
                }
                let mut goes_on = false;
                while let Some(chain) = self.queues[queue].let_in(self.now_ns, goes_on) {
                    goes_on = true;
                    self.note_let_in(queue, chain);
                }
                // The thread that waits for the completion was woken before those that wait for a request.
                match keeps {
                    true => Ok(()),
                    false => self.free(queue, pool as usize),
                }
            }
        }
    }

    /// A request of a pool is free: threads that sleep for one may go on.
    #[inline(always)]
    pub(super) fn free(&mut self, queue: usize, pool: usize) -> Outcome {
        match &mut self.io_threads {
            Some(threads) => threads.freed.push_back(queue as u32),
            None if self.rules.reading_ns > 0 && self.rules.kernel.multi_queue() => {
                self.wake_sleepers(queue);
            }
            None if !self.queues[queue].is_awaited() => {}
            None => {
                self.queues[queue]
                    .freed(self.now_ns, pool, &mut self.bios)
                    .map_err(|error| self.refused(queue, error))?;
                return self.go_on_admitted(queue);
            }
        }
        Ok(())
    }

    /// Requests that have become parts of others are free.
    pub(super) fn free_merged(&mut self) -> Outcome {
        while let Some(queue) = self.merged.pop() {
            while let Some(pool) = self.queues[queue as usize].next_merged() {
                self.touch(queue as usize);
                self.free(queue as usize, pool)?;
            }
        }
        Ok(())
    }

    /// A request is free: threads that sleep for one are to run.
    fn wake_sleepers(&mut self, queue: usize) {
        for at in (0..self.queues[queue].wakes()).rev() {
            let Some(bio) = self.queues[queue].woken(at) else {
                continue;
            };
            let slot = self.issuing_slot(bio);
            let worker = slot.map(|slot| self.load.slots[slot as usize].worker);
            if let (Some(turns), Some(worker)) = (&mut self.turns, worker) {
                turns.wake(worker as usize);
            }
            self.ready.push(Ready::Sleeper {
                queue: queue as u32,
                bio,
                worker,
            });
        }
    }

    /// A thread that was woken takes a free request, or sleeps again.
    pub(super) fn look_for_request(&mut self, queue: usize, bio: u32) -> Outcome {
        self.touch(queue);
        if self.one_call_each
            && self.has_mirrors
            && self.bios.get(bio).request.write
            && self.issuing_slot(bio).is_some()
            && let Some(chain) = self.queues[queue].woken_takes(bio, self.plug.count(queue as u32))
        {
            return self.let_in(queue, chain);
        }
        let request = self.bios.get(bio).request;
        if self.queues[queue].has_free(&request, 0) {
            self.read_clock(self.readings_of_request(queue))?;
        }
        self.queues[queue]
            .woken_looks(self.now_ns, bio, &mut self.bios)
            .map_err(|error| self.refused(queue, error))?;
        self.go_on_admitted(queue)?;
        self.unplug()
    }

    /// Threads that slept until their bio had a request go on, if there are any.
    #[inline]
    pub(super) fn go_on_admitted(&mut self, queue: usize) -> Outcome {
        match self.queues[queue].has_admitted() {
            true => self.go_on_with_requests(queue),
            false => Ok(()),
        }
    }

    fn go_on_with_requests(&mut self, queue: usize) -> Outcome {
        while let Some(chain) = self.queues[queue].admitted() {
            // Its request may be at the drive already.
            self.touch(queue);
            let issuing = self.issuing_slot(chain.first);
            let leaves_it = self.rules.reading_ns > 0 && self.in_interrupt;
            if leaves_it {
                self.postponed.push_back(Postponed::Behind(chain));
            } else {
                self.send_behind(&chain)?;
            }
            if let Some(slot) = issuing
                && self.sleeps_for_requests(slot)
            {
                if let Some(worker) = self.wake(slot) {
                    // Its call returns, and the elevator goes on before the next one.
                    if self.one_call_each && !leaves_it {
                        self.dispatch_in_call()?;
                        self.touch(queue);
                    }
                    if leaves_it && self.io_threads.is_none() {
                        self.make_ready(worker);
                    } else {
                        self.go_on(worker)?;
                    }
                }
            } else if !self.one_call_each {
                let bio = *self.bios.get(chain.first);
                self.go_on_in_thread(&bio)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn bio_done(&mut self, queue: usize, bio: &Bio) -> Outcome {
        if let Target::Array(fabric) = &mut self.target
            && !matches!(bio.owner, Owner::Metadata(_))
        {
            fabric.done(queue, bio.request.end());
        }
        match bio.owner {
            Owner::Load(slot) => self.part_done(slot),
            Owner::Rows(id) => self.rows_part_done(id),
            Owner::Metadata(_) | Owner::Rebuild(_) if self.rules.reading_ns > 0 => {
                self.postponed.push_back(Postponed::Bio(queue, *bio));
                Ok(())
            }
            Owner::Metadata(_) | Owner::Rebuild(_) => self.bio_handled(queue, bio),
        }
    }

    /// A bio of md's own is done.
    pub(super) fn bio_handled(&mut self, queue: usize, bio: &Bio) -> Outcome {
        match bio.owner {
            Owner::Load(_) | Owner::Rows(_) => Ok(()),
            Owner::Metadata(of) => self.metadata_step(of, queue, true),
            Owner::Rebuild(unit) => self.unit_part_done(unit),
        }
    }

    fn rows_part_done(&mut self, id: u32) -> Outcome {
        if let Target::Array(fabric) = &mut self.target
            && let Some(stripes) = &mut fabric.stripes
        {
            let left = &mut stripes.work_mut(id).left;
            *left = left.wrapping_sub(1);
            if *left == 0 {
                stripes.step_done(id);
            }
        }
        Ok(())
    }

    /// A request of the load has been sent in so many parts. Those that were done while it was being sent have been taken
    /// off before.
    #[inline(always)]
    pub(super) fn all_sent(&mut self, slot: u32, parts: u32) -> Outcome {
        let at = &mut self.load.slots[slot as usize];
        at.left = at.left.wrapping_add(parts);
        if at.left > 0 {
            return Ok(());
        }
        self.parts_done(slot)
    }

    /// A part of a request of the load is done.
    #[inline(always)]
    pub(super) fn part_done(&mut self, slot: u32) -> Outcome {
        let at = &mut self.load.slots[slot as usize];
        at.left = at.left.wrapping_sub(1);
        if at.left > 0 {
            return Ok(());
        }
        self.parts_done(slot)
    }

    /// All parts of a request of the load are done.
    #[inline(always)]
    pub(super) fn parts_done(&mut self, slot: u32) -> Outcome {
        let at = &mut self.load.slots[slot as usize];
        if self.is_rebuilding && matches!(at.stage, Stage::Data | Stage::Pages | Stage::Log) {
            self.leave_barrier(slot);
        }
        if self.has_mirrors || self.has_parity {
            self.note_done(slot);
        }
        let at = &mut self.load.slots[slot as usize];
        if at.stage == Stage::Pages {
            self.pages_done(slot);
            return Ok(());
        }
        if at.stage == Stage::Log {
            if self.rules.reading_ns > 0 {
                self.postponed.push_back(Postponed::Log);
                return Ok(());
            }
            return self.log_done();
        }
        let worker = at.worker as usize;
        if at.stage == Stage::Data && at.request.op == Op::Write {
            let stream = self.load.workers[worker].stream;
            if self.load.streams[stream].dsync && self.rules.kernel.flushes() {
                at.stage = Stage::Durable;
                if self.rules.log.is_some() {
                    return self.sync_log(slot);
                }
                self.load.slots[slot as usize].left = self.flush(slot);
                return Ok(());
            }
        }
        if self.rules.cpu_ns == 0 || at.stage == Stage::EndSync {
            if self.rules.reading_ns > 0 {
                self.load.workers[worker].unseen.push_back(slot);
                self.make_ready(worker);
                return Ok(());
            }
            return self.seen(slot);
        }
        let of = &mut self.load.workers[worker];
        of.cpu_ns = of.cpu_ns.max(self.now_ns) + self.rules.cpu_ns;
        let at_ns = of.cpu_ns;
        self.load.alarm(at_ns, Alarm::Seen(slot));
        Ok(())
    }

    /// Records that the worker sees the end of its request.
    #[inline]
    pub(super) fn seen(&mut self, slot: u32) -> Outcome {
        let now_ns = self.now_ns;
        let worker = self.load.slots[slot as usize].worker as usize;
        if self.load.workers[worker].blocked > 0 {
            self.load.workers[worker].unseen.push_back(slot);
            return Ok(());
        }
        let has_log = self.syncs_write_a_log();
        let at = &mut self.load.slots[slot as usize];
        let index = self.load.workers[worker].stream;
        let stream = &mut self.load.streams[index];
        let service_ns = now_ns - at.issued_ns;
        match at.stage {
            Stage::Data | Stage::Durable => {
                if self.journal.is_some() {
                    self.release_iolock(slot)?;
                }
                let at = &mut self.load.slots[slot as usize];
                let stream = &mut self.load.streams[index];
                let kind = OpKind::first_of(at.request.op);
                let bytes = u64::from(at.request.len);
                if let Some(own) = &mut self.load.workers[worker].own {
                    let since_ns = if stream.open {
                        at.intended_ns
                    } else {
                        at.issued_ns
                    };
                    own.record(kind, now_ns, now_ns - since_ns, bytes);
                }
                if stream.open {
                    let latency_ns = now_ns - at.intended_ns;
                    stream
                        .recorder
                        .record_open(kind, now_ns, latency_ns, service_ns, bytes);
                } else {
                    stream.recorder.record(kind, now_ns, service_ns, bytes);
                }
                if at.unpaid && now_ns >= self.load.ramp_ns {
                    at.unpaid = false;
                    stream.budget.pay(at.request.len);
                    self.load.budget.pay(at.request.len);
                    self.load.workers[worker].passes.pay(at.request.len);
                }
                if at.request.op == Op::Rewrite {
                    at.request.op = Op::Write;
                    at.stage = Stage::Data;
                    at.issued_ns = now_ns;
                    self.issue(slot, false)?;
                    return self.unplug();
                }
                let is_last = stream.syncs_between
                    && (stream.budget.spent().is_some() || self.load.budget.spent().is_some());
                if at.request.fsync_after && !is_last {
                    at.stage = Stage::Sync;
                    at.issued_ns = now_ns;
                    if stream.buffered {
                        self.unlock_file(slot)?;
                        return self.begin_sync(slot);
                    }
                    if has_log {
                        self.unlock_file(slot)?;
                        return self.sync_log(slot);
                    }
                    if self.rules.kernel.flushes() {
                        self.load.slots[slot as usize].left = self.flush(slot);
                        return Ok(());
                    }
                    // Nothing to be written back, so the drive gets no command.
                    stream.recorder.record(OpKind::Fsync, now_ns, 0, 0);
                }
                if self.journal.is_some() {
                    self.unlock_file(slot)?;
                }
                self.release(slot)
            }
            Stage::Sync => {
                stream.recorder.record(OpKind::Fsync, now_ns, service_ns, 0);
                self.unlock_file(slot)?;
                self.release(slot)
            }
            Stage::Pages | Stage::Log => Ok(()),
            Stage::EndSync => {
                stream.recorder.record(OpKind::Fsync, now_ns, service_ns, 0);
                stream.in_flight -= 1;
                stream.ended_ns = now_ns;
                self.close(index)
            }
        }
    }

    /// A worker that sleeps no more issues what it has to, then sees all that was done meanwhile at once, and so on
    /// (`io_submit` and `io_getevents`).
    pub(super) fn go_on(&mut self, worker: usize) -> Outcome {
        loop {
            if self.cache.is_some() {
                self.go_on_stalled(worker)?;
            }
            self.fill(worker)?;
            let of = &mut self.load.workers[worker];
            if of.blocked > 0 || of.unseen.is_empty() || of.gave_way {
                return Ok(());
            }
            of.reaping = true;
            if of.reaped == 0 {
                of.reaped = match self.rules.reading_ns {
                    0 => usize::MAX,
                    _ => of.unseen.len(),
                };
                self.read_clock(Readings::REAPED)?;
                // md's thread takes the processor when an interrupt wakes it: it has slept.
                while self.turns.is_some()
                    && let Some(postponed) = self.postponed.pop_front()
                {
                    self.catch_up_on(postponed)?;
                }
                self.call_returns(worker)?;
            }
            while let of = &mut self.load.workers[worker]
                && of.reaped > 0
                && of.blocked == 0
                && !of.gave_way
                && let Some(slot) = of.unseen.pop_front()
            {
                of.reaped -= 1;
                self.seen(slot)?;
            }
            let of = &mut self.load.workers[worker];
            of.reaping = false;
            if self.rules.reading_ns == 0 {
                of.reaped = 0;
            }
        }
    }

    /// The slot is free again.
    #[inline(always)]
    pub(super) fn release(&mut self, slot: u32) -> Outcome {
        let worker = self.load.slots[slot as usize].worker as usize;
        let of = &mut self.load.workers[worker];
        let stream = &mut self.load.streams[of.stream];
        stream.in_flight -= 1;
        let is_last = || stream.budget.spent().or(self.load.budget.spent()).is_some();
        match &mut of.thinker {
            Some(thinker) if !is_last() => {
                let at_ns = self.now_ns + thinker.pause_ns();
                self.load.alarm(at_ns, Alarm::Slot(slot));
            }
            _ => of.free.push(slot),
        }
        if self.one_call_each {
            return self.fill(worker);
        }
        if !std::mem::replace(&mut self.load.workers[worker].is_ready, true) {
            self.ready.push(Ready::Worker(worker as u32));
        }
        Ok(())
    }
}
