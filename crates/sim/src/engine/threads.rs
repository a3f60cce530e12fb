//! The threads of the load: calls, the clock that they read, and their turns on the processor.

use spindle_measure::EndedBy;
use spindle_workload::{Hold, Op};

use super::bio::{Bio, Chain};
use super::fair::Turns;
use super::journal::Journal;
use super::load::{Alarm, Stage};
use super::{Engine, Outcome, Target};

/// Requests of a call that io_uring plugs are more than these (`IO_PLUG_THRESHOLD`).
const UNPLUGGED: usize = 2;

/// Readings of the clock by a thread (Linux 6.1); those in interrupts take no time.
pub(super) struct Readings;

impl Readings {
    /// Spindle's, before a request.
    pub(super) const LOAD: u64 = 1;
    /// Spindle's, after it has got what is done.
    pub(super) const REAPED: u64 = 1;
    /// `bio_issue_init`: bios for md, what md splits off, and bios for members.
    pub(super) const BIO: u64 = 1;
    /// `__bio_split_to_limits`: the first part, and the rest, which is submitted anew.
    pub(super) const CUT: u64 = 2 * Self::BIO;
    /// `blk_mq_rq_ctx_init`: `start_time_ns`.
    pub(super) const REQUEST: u64 = 1;
    /// `blk_mq_start_request`: `io_start_time_ns`, which the throttling of write-back asks for.
    pub(super) const START: u64 = 1;
}

/// A thread that wants the processor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ready {
    Worker(u32),
    /// One that slept for a request of this queue for a bio, and may find one now; md's has no worker.
    Sleeper {
        queue: u32,
        bio: u32,
        worker: Option<u32>,
    },
    /// One that the throttle of write-back lets in, with a bio.
    LetIn {
        bio: u32,
        worker: Option<u32>,
    },
}

impl Ready {
    /// The worker whose thread it is.
    pub(super) fn worker(self) -> Option<u32> {
        match self {
            Ready::Worker(worker) => Some(worker),
            Ready::Sleeper { worker, .. } | Ready::LetIn { worker, .. } => worker,
        }
    }
}

/// Work that an interrupt leaves to threads.
pub(super) enum Postponed {
    Bio(usize, Bio),
    Flushed(usize, u32),
    LetIn(usize, Chain),
    /// The thread that slept until this bio had a request sends what comes behind.
    Behind(Chain),
    /// The log of a file system is written.
    Log,
}

impl Engine {
    /// Handles an alarm.
    pub(super) fn alarm(&mut self, alarm: Alarm) -> Outcome {
        match alarm {
            Alarm::Worker(worker) => {
                let of = &mut self.load.workers[worker as usize];
                let begins = of.wakes_ns.is_none();
                if of.wakes_ns.is_some_and(|at_ns| at_ns <= self.now_ns) {
                    of.wakes_ns = None;
                }
                if let Some(turns) = &mut self.turns {
                    turns.wake(worker as usize);
                    turns.begin(worker as usize);
                }
                if begins
                    && std::mem::replace(&mut self.has_begun, true)
                    && self.thread_start_ns > 0
                {
                    self.spend(self.thread_start_ns)?;
                }
                if !self.opens_file(worker)? {
                    self.fill(worker as usize)?;
                }
                self.gives_processor_up(true);
                Ok(())
            }
            Alarm::Slot(slot) => {
                let worker = self.load.slots[slot as usize].worker as usize;
                self.load.workers[worker].free.push(slot);
                self.fill(worker)
            }
            Alarm::Seen(slot) => self.seen(slot),
            Alarm::End(stream) => {
                self.load
                    .end_stream(stream as usize, self.now_ns, EndedBy::Time);
                self.close(stream as usize)
            }
            Alarm::Flusher => self.look_for_old_pages(),
            Alarm::Page(Some(slot)) => self.go_on_buffered(slot),
            Alarm::Page(None) => {
                if let Some(cache) = &mut self.cache {
                    cache.flusher_copies = false;
                }
                self.run_flusher()
            }
            Alarm::Plug => self.pull_plug(),
            Alarm::Rows => Ok(()),
            Alarm::Bitmap => self.look_at_bitmap(),
            Alarm::SafeMode => self.look_at_superblock(),
            Alarm::Sample => {
                self.load.look(self.now_ns);
                for stream in 0..self.load.streams.len() {
                    self.close(stream)?;
                }
                Ok(())
            }
        }
    }

    /// Gives each free slot of a worker a request that is due, and hands them over.
    #[inline]
    pub(super) fn fill(&mut self, worker: usize) -> Outcome {
        let is_opening = |journal: &Journal| journal.is_opened_for(worker as u32);
        if self.journal.as_deref().is_some_and(is_opening) {
            return Ok(());
        }
        let most = if self.one_call_each { 1 } else { usize::MAX };
        loop {
            let of = &mut self.load.workers[worker];
            if of.blocked == 0 && !of.held.is_empty() {
                self.batch.extend(of.held.drain(..));
            } else {
                self.gather(worker, most)?;
            }
            if self.batch.is_empty() {
                break;
            }
            self.submit()?;
            if self.turns.is_some()
                && (self.load.workers[worker].gave_way || self.gives_turn(worker))
            {
                break;
            }
            let of = &self.load.workers[worker];
            if of.free.is_empty() && of.held.is_empty() {
                break;
            }
        }
        let now_ns = self.now_ns;
        let index = self.load.workers[worker].stream;
        let stream = &mut self.load.streams[index];
        stream.recorder.set_outstanding(now_ns, stream.in_flight);
        if !stream.issuing {
            self.end_idle_thread(worker);
            self.close(index)?;
        }
        Ok(())
    }

    /// One call with the requests of the batch.
    #[inline]
    pub(super) fn submit(&mut self) -> Outcome {
        if self.is_plain
            && let [slot] = self.batch[..]
        {
            self.batch.clear();
            return self.submit_alone(slot);
        }
        // A request that is done at once brings a call of another thread.
        let mut batch = std::mem::take(&mut self.batch);
        let plugged = batch.len() > UNPLUGGED;
        let last_read = match self.has_parity && plugged {
            true => self.last_read(&batch),
            false => 0,
        };
        for (at, &slot) in batch.iter().enumerate() {
            self.sleeps = false;
            // The measured cases go through the page cache by `dd`, which looks at no clock.
            let looks = self.rules.reading_ns > 0 && (!self.one_call_each || self.cache.is_none());
            if looks && !self.load.slots[slot as usize].is_begun && self.looks_at_clock(slot)? {
                break;
            }
            if self.load.slots[slot as usize].rest.is_some() {
                self.send_rest(slot, plugged)?;
            } else {
                self.issue(slot, plugged)?;
            }
            if at < last_read {
                self.place_rows_in_call(slot)?;
            }
            if self.sleeps && self.hold_batch(slot, &batch[at + 1..]) {
                if self.has_parity && !self.queues[0].has_elevator() {
                    self.plug.leave();
                }
                break;
            }
            if !plugged && at + 1 < batch.len() {
                self.send_in_call(slot)?;
            } else if !plugged {
                self.unplug()?;
            }
        }
        // A direct request is waited for (`dio_await_one`).
        let worker_of = |slot: &u32| self.load.slots[*slot as usize].worker;
        let waits = batch
            .first()
            .map(worker_of)
            .is_some_and(|worker| !self.is_buffered(worker));
        batch.clear();
        if self.batch.is_empty() {
            self.batch = batch;
        }
        if waits {
            self.pull_plug()?;
        }
        self.unplug()
    }

    /// One call with one request, where only the plug and the elevators have work afterwards.
    #[inline]
    fn submit_alone(&mut self, slot: u32) -> Outcome {
        self.sleeps = false;
        match self.load.slots[slot as usize].rest.is_some() {
            true => self.send_rest(slot, false)?,
            false => self.issue(slot, false)?,
        }
        if self.has_plugged_queues {
            self.pull_plug()?;
        }
        self.finish_plug()
    }

    /// Place of the last read of a call, 0 without one: up to it the thread has to have its rows before it goes on. Writes wait
    /// for rows in their order whether it sleeps or not.
    fn last_read(&self, slots: &[u32]) -> usize {
        let reads = |slot: &u32| self.load.slots[*slot as usize].request.op == Op::Read;
        slots.iter().rposition(reads).unwrap_or(0)
    }

    /// The thread of a slot gets heads for its rows before it sends the next request of its call, or sleeps.
    fn place_rows_in_call(&mut self, slot: u32) -> Outcome {
        let worker = self.load.slots[slot as usize].worker;
        self.place_rows()?;
        if self.load.workers[worker as usize].blocked > 0 {
            self.sleeps = true;
        } else {
            self.awake.retain(|of| *of != worker);
        }
        Ok(())
    }

    /// The thread of a slot looks at the clock before its request. True if it has to give way after that call, and sends the
    /// request later.
    #[inline(never)]
    fn looks_at_clock(&mut self, slot: u32) -> Outcome<bool> {
        if std::mem::take(&mut self.load.slots[slot as usize].has_looked) {
            return Ok(false);
        }
        self.read_clock(Readings::LOAD)?;
        let worker = self.load.slots[slot as usize].worker as usize;
        let gives_way = self.call_returns(worker)?;
        if gives_way {
            self.load.slots[slot as usize].has_looked = true;
            self.load.workers[worker].held.push_back(slot);
        }
        Ok(gives_way)
    }

    /// A call of a worker's thread that sends nothing returns: the block layer's thread may take the processor, and another
    /// one after it. True if the thread has to give way.
    #[inline]
    pub(super) fn call_returns(&mut self, worker: usize) -> Outcome<bool> {
        if !self.one_call_each || self.turns.is_none() {
            return Ok(false);
        }
        self.dispatch_in_call()?;
        Ok(self.gives_turn(worker))
    }

    /// True if the thread sleeps within its call, at this request: what it has to send `yet` follows when it is awake.
    fn hold_batch(&mut self, slot: u32, yet: &[u32]) -> bool {
        let worker = self.load.slots[slot as usize].worker as usize;
        let of = &mut self.load.workers[worker];
        let sleeps = (self.has_mirrors || self.has_parity) && !self.one_call_each && of.blocked > 0;
        if sleeps {
            of.held.extend(yet);
        }
        sleeps
    }

    /// A thread waits for the array or drive: before 2.6.39 it pulls the plugs of md's stripe cache and of the queues
    /// (`sync_page`, `blk_run_address_space`; `unplug_slaves`).
    pub(super) fn pull_plug(&mut self) -> Outcome {
        if let Target::Array(fabric) = &mut self.target
            && let Some(stripes) = &mut fabric.stripes
        {
            stripes.unplug();
        }
        if self.has_plugged_queues {
            self.send_pending()?;
            self.unplug_queues();
        }
        Ok(())
    }

    /// The queues of the drives hold nothing up.
    fn unplug_queues(&mut self) {
        for queue in 0..self.queues.len() {
            if self.queues[queue].unplug() {
                self.touch(queue);
            }
        }
    }

    /// Workers that have seen all completions of this moment hand over their next requests.
    #[inline]
    pub(super) fn fill_ready(&mut self) -> Outcome {
        while !self.ready.is_empty() {
            if self.turns.is_some() {
                self.dispatch()?;
            }
            let Some(ready) = self.next_ready() else {
                return Ok(());
            };
            let worker = match ready {
                Ready::Worker(worker) => worker,
                Ready::Sleeper { queue, bio, .. } => {
                    self.look_for_request(queue as usize, bio)?;
                    self.gives_processor_up(true);
                    continue;
                }
                Ready::LetIn { bio, .. } => {
                    let is_its = |(_, chain): &(u32, Chain)| chain.first == bio;
                    if let Some(at) = self.let_in.iter().position(is_its) {
                        let (queue, chain) = self.let_in.swap_remove(at);
                        self.let_in(queue as usize, chain)?;
                    }
                    self.gives_processor_up(true);
                    continue;
                }
            };
            let of = &mut self.load.workers[worker as usize];
            (of.is_ready, of.gave_way) = (false, false);
            if self.rules.reading_ns > 0 {
                self.go_on(worker as usize)?;
                self.gives_processor_up(true);
            } else {
                self.fill(worker as usize)?;
            }
        }
        Ok(())
    }

    /// The next thread that gets the processor: the one that has had it least, or the first.
    #[inline]
    fn next_ready(&mut self) -> Option<Ready> {
        let Some(turns) = &mut self.turns else {
            let first = self.ready.first().copied();
            self.ready.drop_first();
            return first;
        };
        let had_ns = |ready: &Ready| {
            let worker = ready.worker();
            worker.map_or(i64::MIN, |worker| turns.had_ns(worker as usize))
        };
        let at = (0..self.ready.len()).min_by_key(|at| had_ns(&self.ready[*at]))?;
        let ready = self.ready.remove(at);
        if let Some(worker) = ready.worker() {
            turns.begin(worker as usize);
        }
        Some(ready)
    }

    /// True if the thread of a worker has to give way to another one after its call; it goes on later.
    #[inline]
    fn gives_turn(&mut self, worker: usize) -> bool {
        let gives_way = self.turns.as_mut().is_some_and(Turns::gives_way);
        if gives_way {
            self.gives_processor_up(false);
            let of = &mut self.load.workers[worker];
            of.gave_way = true;
            if !std::mem::replace(&mut of.is_ready, true) {
                self.ready.push(Ready::Worker(worker as u32));
            }
        }
        gives_way
    }

    /// The thread that had the processor, if one had it, sleeps or has given way.
    fn gives_processor_up(&mut self, sleeps: bool) {
        if let Some(turns) = &mut self.turns {
            turns.end(sleeps);
        }
    }

    /// A thread reads the clock, so often. Drives finish commands meanwhile.
    #[inline]
    pub(super) fn read_clock(&mut self, readings: u64) -> Outcome {
        if self.rules.reading_ns == 0 || self.in_interrupt {
            return Ok(());
        }
        self.spend(readings * self.rules.reading_ns)
    }

    fn spend(&mut self, ns: u64) -> Outcome {
        let until_ns = self.now_ns + ns;
        let is_ticked = match (&self.turns, &self.fair) {
            (Some(turns), _) => turns.is_ticked(self.now_ns, until_ns),
            (None, Some(fair)) => fair.is_ticked(self.now_ns, until_ns),
            (None, None) => false,
        };
        let ns = ns + u64::from(is_ticked) * self.rules.reading_ns;
        let until_ns = self.now_ns + ns;
        for at in 0..self.touched.len() {
            self.note_events(self.touched[at] as usize);
        }
        self.in_interrupt = true;
        while !self.finished.is_empty() {
            self.finish_first()?;
        }
        loop {
            let (at_ns, source) = self.events.first();
            if at_ns >= until_ns || source >= self.queues.len() {
                break;
            }
            self.now_ns = at_ns.max(self.now_ns);
            self.advance(source);
            self.touch(source);
            self.note_events(source);
            while !self.finished.is_empty() {
                self.finish_first()?;
            }
        }
        self.in_interrupt = false;
        self.now_ns = until_ns;
        if let Some(fair) = &mut self.fair {
            fair.spent(until_ns - ns, until_ns);
            self.wake_md();
        }
        if let Some(turns) = &mut self.turns {
            turns.spent(until_ns - ns, until_ns);
        }
        Ok(())
    }

    /// A thread is to run when the processor is free.
    pub(super) fn make_ready(&mut self, worker: usize) {
        if !std::mem::replace(&mut self.load.workers[worker].is_ready, true) {
            self.ready.push(Ready::Worker(worker as u32));
            if let Some(turns) = &mut self.turns {
                turns.wake(worker);
            }
        }
    }

    /// Does what an interrupt has left to threads.
    pub(super) fn catch_up_on(&mut self, postponed: Postponed) -> Outcome {
        match postponed {
            Postponed::Bio(queue, bio) => self.bio_handled(queue, &bio),
            Postponed::Flushed(queue, slot) => self.flush_handled(queue, slot),
            Postponed::LetIn(queue, chain) => self.let_in(queue, chain),
            Postponed::Behind(chain) => self.send_behind(&chain),
            Postponed::Log => self.log_done(),
        }
    }

    /// Draws requests that are due for a worker's free slots, `most` of them, into the batch.
    #[inline]
    fn gather(&mut self, worker: usize, most: usize) -> Outcome {
        let now_ns = self.now_ns;
        while self.batch.len() < most {
            let of = &mut self.load.workers[worker];
            let index = of.stream;
            let stream = &mut self.load.streams[index];
            if !stream.issuing {
                break;
            }
            if of.free.is_empty() || of.blocked > 0 || of.reaping {
                break;
            }
            let counts = now_ns >= self.load.ramp_ns;
            if stream.limited && counts {
                // Pauses and waits for what comes next count for nothing (the engine's `Worker::check`).
                if let Some(why) = self.load.budget.spent() {
                    self.load.end_all(now_ns, why);
                    for stream in 0..self.load.streams.len() {
                        self.close(stream)?;
                    }
                    break;
                }
                if let Some(why) = stream.budget.spent() {
                    self.load.end_stream(index, now_ns, why);
                    break;
                }
            }
            let idle = of.free.len() == of.depth;
            let held = of.rest.as_mut().and_then(|rest| rest.hold(now_ns, idle));
            if let Some(held) = held {
                if let Hold::Until(until_ns) = held
                    && of.wakes_ns != Some(until_ns)
                {
                    of.wakes_ns = Some(until_ns);
                    self.load.alarm(until_ns, Alarm::Worker(worker as u32));
                }
                break;
            }
            let (due_ns, request) = match of.pending.take() {
                Some(pending) => pending,
                None => of.draw(now_ns, stream),
            };
            if due_ns > now_ns {
                of.pending = Some((due_ns, request));
                if of.wakes_ns != Some(due_ns) {
                    of.wakes_ns = Some(due_ns);
                    self.load.alarm(due_ns, Alarm::Worker(worker as u32));
                }
                break;
            }
            if stream.limited && counts {
                if let Some(why) = of.passes.spent() {
                    of.pending = Some((due_ns, request));
                    if self.load.passes_over(index) {
                        self.load.end_stream(index, now_ns, why);
                    }
                    break;
                }
                of.passes.pay(request.len);
                stream.budget.pay(request.len);
                self.load.budget.pay(request.len);
            }
            let Some(slot) = of.free.pop() else {
                break;
            };
            stream.in_flight += 1;
            if let Some(rest) = &mut of.rest {
                rest.issued(now_ns);
            }
            let limited = stream.limited;
            let at = &mut self.load.slots[slot as usize];
            at.request = request;
            at.issued_ns = now_ns;
            at.intended_ns = due_ns;
            at.stage = Stage::Data;
            at.unpaid = limited && !counts;
            self.batch.push(slot);
        }
        Ok(())
    }
}
