//! The loop of one worker: fill free slots, hand everything over in one call, take completions.
//!
//! Nothing here allocates, locks or formats while the load is on. Work that is not needed for every request
//! (counters for others to see, ends, halts) is done once a millisecond.

use std::cmp::Reverse;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use spindle_measure::{EndedBy, OpKind};
use spindle_workload::{Hold, Request};

use crate::backend::{Backend, Errno, Wait};
use crate::budget::{CHUNK_NS, PassBudget, Purse};
use crate::clock::{Clock, sleep_ns};
use crate::feed::{Drawn, Source};
use crate::shared::{Shared, StreamShared, WorkerCell};
use crate::slots::{Core, Failure};
use crate::snapshot::Snapshot;
use crate::target::Target;
use crate::thread::Usage;

/// Interval at which a busy worker checks for ends and halts, ns.
const CHECK_NS: u64 = 1_000_000;
/// Longest sleep of an idle worker, ns.
const NAP_NS: u64 = 20_000_000;
/// Longest time before a due time that is spun instead of slept, ns.
const LARGEST_MARGIN_NS: u64 = 150_000;
const FIRST_MARGIN_NS: u64 = 60_000;

/// The settings of a worker's stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Orders {
    /// Stream of the workload.
    pub(crate) stream: usize,
    /// Open loop.
    pub(crate) open: bool,
    /// End of the ramp, ns since the start of the run, as are all times here.
    pub(crate) ramp_end: u64,
    /// First request of the stream.
    pub(crate) first: u64,
    /// End of the stream's time; `u64::MAX`: it has none.
    pub(crate) end: u64,
    /// Writes are forced to the medium after the last request of the stream.
    pub(crate) end_sync: bool,
    /// No fsync follows the last request.
    pub(crate) syncs_between: bool,
    /// Each completion reads the clock.
    pub(crate) exact: bool,
    /// Time that each completion keeps the worker busy, ns.
    pub(crate) cpu_ns: u64,
    pub(crate) tolerate_errors: bool,
    /// There is a CPU for every thread, so the last microseconds before a due time may be spun.
    pub(crate) may_spin: bool,
}

/// The state in which a worker left its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExitReason {
    /// Nothing is outstanding.
    Drained,
    /// Something is, and was given up.
    GaveUp,
    /// The coordinator has the figures; nothing may be touched.
    Taken,
}

/// A request that is drawn but not yet due.
struct Pending {
    due: u64,
    request: Request,
    /// It is taken from the budgets.
    is_paid: bool,
}

/// A worker at work.
pub(crate) struct Worker<'a, B: Backend> {
    backend: B,
    core: &'a mut Core,
    cell: &'a WorkerCell,
    shared: &'a Shared,
    stream: &'a StreamShared,
    orders: Orders,
    target: &'a Target,
    clock: Clock,
    source: Source,
    pending: Option<Pending>,
    /// A free slot is always filled at once.
    simple: bool,
    purse: Purse<'a>,
    issuing: bool,
    /// The stream's time was over.
    timed_out: bool,
    inflight: u64,
    next_check: u64,
    /// Time at which a free slot has something to do, ns.
    next_event: u64,
    /// Time by which a sleep is cut short so as not to be late, ns.
    margin: u64,
    usage_begin: Option<Usage>,
    /// Number of the last snapshot that it has stored.
    left: u64,
}

impl<'a, B: Backend> Worker<'a, B> {
    #[allow(clippy::too_many_arguments)] // Each is one thing of its own.
    pub(crate) fn new(
        mut backend: B,
        core: &'a mut Core,
        cell: &'a WorkerCell,
        shared: &'a Shared,
        orders: Orders,
        target: &'a Target,
        source: Source,
        clock: Clock,
        passes: Option<&'a PassBudget>,
    ) -> Self {
        backend.begin(clock);
        let stream = &shared.streams[orders.stream];
        let purse = Purse::new(shared, stream, passes);
        Worker {
            simple: !(orders.open
                || stream.pace.is_some()
                || purse.is_limited()
                || core.thinks()
                || source.ends()),
            backend,
            core,
            cell,
            shared,
            stream,
            orders,
            target,
            clock,
            source,
            pending: None,
            purse,
            issuing: true,
            timed_out: false,
            inflight: 0,
            next_check: 0,
            next_event: orders.first,
            margin: if orders.may_spin { FIRST_MARGIN_NS } else { 0 },
            usage_begin: None,
            left: 0,
        }
    }

    /// Runs the load to its end; false: the coordinator has taken the core away.
    pub(crate) fn run(mut self) -> bool {
        let mut now = self.clock.now();
        while now < self.orders.first && self.issuing {
            self.check(now);
            now = self.nap(now, self.orders.first);
        }
        let leave = self.work(now);
        if leave == ExitReason::Taken {
            self.backend.abandon();
            return false;
        }
        self.backend.catch_up();
        if leave == ExitReason::GaveUp {
            self.core.report_stuck();
            self.take_failure(true);
        }
        let kept = self.wind_up(leave);
        if leave == ExitReason::GaveUp || !kept {
            self.backend.abandon();
        }
        kept
    }

    fn work(&mut self, mut now: u64) -> ExitReason {
        loop {
            if now >= self.next_check {
                self.check(now);
                if self.cell.shall_give_up() && !self.issuing {
                    return if self.inflight > 0 {
                        ExitReason::GaveUp
                    } else {
                        ExitReason::Drained
                    };
                }
            }
            let turned = if self.simple && self.issuing {
                self.fill();
                self.turn(|_, _| Wait::One)
            } else {
                if self.issuing {
                    now = self.fill_when_due(now);
                }
                if self.inflight == 0 && self.core.unstamped() == 0 {
                    if self.backend.catch_up() {
                        now = self.clock.now();
                        continue;
                    }
                    if !self.issuing {
                        return ExitReason::Drained;
                    }
                    now = self.nap(now, self.next_event);
                    continue;
                }
                self.turn(Self::how_long)
            };
            match turned {
                Ok(Some(last)) => now = last,
                Ok(None) => return ExitReason::Taken,
                Err(errno) => {
                    self.shared.end(EndedBy::Error {
                        errno,
                        op: "io_uring_enter".to_owned(),
                        file: None,
                        offset: 0,
                        len: 0,
                    });
                    self.stop_issuing(self.clock.now());
                    return ExitReason::GaveUp;
                }
            }
        }
    }

    /// Time at which the stream's counted time begins, ns.
    fn count_from(&self) -> u64 {
        self.orders.ramp_end.max(self.orders.first)
    }

    /// Gives each free slot a request.
    #[inline(always)]
    fn fill(&mut self) {
        // The slot that came free last goes first: its memory is the warmest.
        let (core, source) = (&mut *self.core, &mut self.source);
        self.backend.push_all(|| {
            let index = core.free.take()?;
            let request = source.next_request();
            Some((index, core.place(index, request, false)))
        });
    }

    /// Gives each free slot a request that is due; returns the time afterwards.
    fn fill_when_due(&mut self, now: u64) -> u64 {
        let now = self.fill_until_wait(now);
        if self.purse.is_limited()
            && self.next_event != u64::MAX
            && self.next_event > now + CHUNK_NS
        {
            self.give_back();
        }
        now
    }

    /// The same; `next_event`: the time at which the next one is.
    fn fill_until_wait(&mut self, now: u64) -> u64 {
        self.next_event = u64::MAX;
        let idle = self.inflight == 0 && self.core.unstamped() == 0;
        match self.core.rests(now, idle) {
            None => {}
            Some(Hold::Drain) => return now,
            Some(Hold::Until(until)) => {
                self.next_event = until;
                return now;
            }
            Some(Hold::Spin(until)) => {
                let now = self.spin(until.min(now + CHECK_NS));
                self.next_event = now;
                return now;
            }
        }
        while let Some(&Reverse((at, index))) = self.core.thinking.peek() {
            if at > now {
                self.next_event = at;
                break;
            }
            self.core.thinking.pop();
            self.core.free.give(index);
        }
        while let Some(index) = self.core.free.last() {
            let mut next = match self.pending.take() {
                Some(pending) => pending,
                None => match self.draw(now) {
                    Drawn::Request(due, request) => Pending {
                        due,
                        request,
                        is_paid: true,
                    },
                    Drawn::Unpaid => {
                        self.end_or_wait(now);
                        break;
                    }
                    Drawn::Ended => {
                        self.end_of_names(now);
                        return now;
                    }
                },
            };
            if next.due > now {
                self.next_event = self.next_event.min(next.due);
                self.pending = Some(next);
                break;
            }
            next.is_paid = next.is_paid || self.purse.pay(next.request.len, now);
            if !next.is_paid {
                self.pending = Some(next);
                self.end_or_wait(now);
                break;
            }
            let Pending { due, request, .. } = next;
            let in_ramp = self.purse.is_limited() && now < self.orders.ramp_end;
            self.core.free.take();
            let call = if self.orders.open {
                self.core.place_due(index, request, in_ramp, due)
            } else {
                self.core.place(index, request, in_ramp)
            };
            self.backend.push(index, &call);
            if self.core.rests_after_issue(now) {
                break;
            }
        }
        now
    }

    /// Keeps the CPU busy; returns the time afterwards.
    fn spin(&self, until: u64) -> u64 {
        loop {
            let now = self.clock.now();
            if now >= until {
                return now;
            }
            std::hint::spin_loop();
        }
    }

    /// Others do not wait for what this worker holds while it waits itself.
    #[cold]
    fn give_back(&mut self) {
        if let Some(pending) = &mut self.pending
            && std::mem::take(&mut pending.is_paid)
        {
            self.purse.refund(1, i64::from(pending.request.len));
        }
        self.purse.give_back();
    }

    /// A budget is used up; in the ramp, the cost of outstanding requests comes back, unless the ramp ends first. A worker
    /// that waits may just have given something back.
    #[cold]
    fn end_or_wait(&mut self, now: u64) {
        if now < self.orders.ramp_end || self.spent().is_none() {
            self.next_event = self.next_event.min(now + CHECK_NS);
        } else {
            self.end_of_budget(now);
        }
    }

    #[inline]
    fn draw(&mut self, now: u64) -> Drawn {
        let purse = &mut self.purse;
        match (
            self.source.next_paid(|len| purse.pay(len, now)),
            &self.stream.pace,
        ) {
            (Drawn::Request(_, request), Some(pace)) => {
                Drawn::Request(pace.claim(request.len, now), request)
            }
            (drawn, _) => drawn,
        }
    }

    /// Makes one call to the kernel and takes the completions. `None`: the core was taken away.
    #[inline(always)]
    fn turn(&mut self, wait: impl Fn(&Self, u64) -> Wait) -> Result<Option<u64>, Errno> {
        let submitted = self.clock.now();
        self.inflight += self.core.unstamped() as u64;
        self.core.recorder.set_outstanding(submitted, self.inflight);
        self.core.stamp(submitted);
        let wait = wait(self, submitted);

        if B::MAY_HANG {
            self.cell.enter_call();
        }
        let answer = self.backend.enter(wait);
        if B::MAY_HANG && !self.cell.leave_call() {
            return Ok(None);
        }
        answer?;

        let (exact, cpu_ns, clock) = (self.orders.exact, self.orders.cpu_ns, self.clock);
        let batch = if exact { 0 } else { clock.now() };
        let (mut first, mut last, mut count) = (0, 0, 0);
        let core = &mut *self.core;
        self.backend.reap(|index, result| {
            if cpu_ns > 0 {
                sleep_ns(cpu_ns);
            }
            let now = if exact { clock.now() } else { batch };
            if count == 0 {
                first = now;
            }
            last = now;
            count += 1;
            core.complete(index, result, now);
        });
        if count == 0 {
            first = clock.now();
            last = first;
            self.learn(wait, last);
        }
        self.inflight -= count;
        // They ended one by one between the first and the last: the same area as all in the middle.
        let middle = first + (last - first) / 2;
        self.core.recorder.set_outstanding(middle, self.inflight);
        if self.core.attention {
            self.attend();
        }
        Ok(Some(last))
    }

    /// Work besides filling free slots: calls that belong to requests under way, failures, refunds.
    fn attend(&mut self) {
        self.core.attention = false;
        while let Some(index) = self.core.again.pop() {
            let call = self.core.slots[index as usize].call();
            self.backend.push(index, &call);
            self.inflight += 1;
        }
        while let Some(index) = self.core.follow.pop() {
            let call = self.core.slots[index as usize].call();
            if call.kind == OpKind::Fsync && self.orders.syncs_between && self.is_at_its_end() {
                self.core.leave_out(index, self.clock.now());
                continue;
            }
            self.backend.push(index, &call);
            self.core.pushed.push(index);
        }
        self.take_failure(false);
        let (requests, bytes) = std::mem::take(&mut self.core.refund);
        if requests > 0 {
            self.purse.refund(requests, bytes);
        }
    }

    /// Time to wait for a completion, given the next event of the free slots.
    fn how_long(&self, now: u64) -> Wait {
        if !self.issuing || self.next_event == u64::MAX {
            return Wait::One;
        }
        let left = self.next_event.saturating_sub(now);
        if left <= self.margin {
            Wait::No
        } else {
            Wait::Until((self.next_event - self.margin).min(now + NAP_NS))
        }
    }

    /// Learns from a wait without completion how late the kernel wakes.
    fn learn(&mut self, wait: Wait, woken: u64) {
        if let Wait::Until(until) = wait {
            self.learn_lateness(woken.saturating_sub(until));
        }
    }

    fn learn_lateness(&mut self, late: u64) {
        if self.orders.may_spin {
            // Quick to rise, slow to fall: being late costs more than a few microseconds of spinning.
            let wanted = late + late / 4;
            self.margin = if wanted > self.margin {
                wanted
            } else {
                self.margin - (self.margin - wanted) / 64
            }
            .min(LARGEST_MARGIN_NS);
        }
    }

    /// Nothing is outstanding: sleeps until `event`, but not long without a check.
    fn nap(&mut self, now: u64, event: u64) -> u64 {
        let until = event.min(self.orders.end).min(now + NAP_NS);
        let asleep = until.saturating_sub(now).saturating_sub(self.margin);
        let mut now = now;
        if asleep > 0 {
            sleep_ns(asleep);
            let wanted = now + asleep;
            now = self.clock.now();
            self.learn_lateness(now.saturating_sub(wanted));
        }
        if until.saturating_sub(now) <= self.margin {
            while now < until {
                std::hint::spin_loop();
                now = self.clock.now();
            }
        }
        now
    }

    /// The check of once a millisecond.
    #[cold]
    fn check(&mut self, now: u64) {
        self.publish();
        let asked = self.shared.asked.load(Relaxed);
        if asked != self.left {
            self.leave_snapshot(asked, now);
        }
        if self.usage_begin.is_none() && now >= self.count_from() {
            self.usage_begin = Some(Usage::of_this_thread());
        }
        if self.issuing {
            if self.shared.halt.load(Acquire) || self.stream.halt.load(Acquire) {
                self.stop_issuing(now);
            } else if now >= self.orders.end {
                self.timed_out = true;
                self.stop_issuing(now);
            } else if now >= self.orders.ramp_end && self.spent().is_some() {
                self.end_of_budget(now);
            }
        }
        self.next_check = (now + CHECK_NS).min(if self.issuing {
            self.orders.end
        } else {
            u64::MAX
        });
        if self.usage_begin.is_none() {
            self.next_check = self.next_check.min(self.count_from());
        }
    }

    /// Stores a copy of the record so far. The only allocation while a load is on, and only on request.
    #[cold]
    fn leave_snapshot(&mut self, number: u64, now: u64) {
        self.left = number;
        self.cell.leave(Snapshot {
            number,
            at: now,
            recorder: self.core.recorder.clone(),
            usage: self
                .usage_begin
                .map(|begin| Usage::of_this_thread().since(&begin))
                .unwrap_or_default(),
            features: self.core.features.clone(),
        });
    }

    fn stop_issuing(&mut self, now: u64) {
        self.issuing = false;
        self.give_back();
        self.core.ended_at = if self.timed_out { self.orders.end } else { now };
        self.cell.drain_since.store(now.max(1), Relaxed);
        self.next_check = 0;
    }

    fn publish(&self) {
        let totals = self.core.recorder.totals();
        let ((reads, read_bytes), (writes, write_bytes)) = (totals.reads(), totals.writes());
        let counters = &self.cell.counters;
        counters.reads.store(reads, Relaxed);
        counters.read_bytes.store(read_bytes, Relaxed);
        counters.writes.store(writes, Relaxed);
        counters.write_bytes.store(write_bytes, Relaxed);
        counters
            .latency_ns
            .store(totals.counts().latency_ns, Relaxed);
        counters.errors.store(totals.errors, Relaxed);
    }

    /// A failed call ends the run, unless errors are tolerated and the target is still there.
    #[cold]
    fn take_failure(&mut self, fatal: bool) {
        let Some(failure) = self.core.failure.take() else {
            return;
        };
        if fatal || !self.orders.tolerate_errors || is_gone(failure.errno) {
            self.shared.end(failure.ends(Some(self.target)));
            self.next_check = 0;
        }
    }

    /// The budget that is used up for this worker, and true if it is the whole run's. What is paid for is still issued.
    fn spent(&self) -> Option<(bool, EndedBy)> {
        match self.pending {
            Some(Pending { is_paid: true, .. }) => None,
            _ => self.purse.spent(),
        }
    }

    /// True if this worker issues nothing more.
    fn is_at_its_end(&self) -> bool {
        !self.issuing || self.spent().is_some()
    }

    fn end_of_budget(&mut self, now: u64) {
        match self.spent() {
            Some((true, reason)) => self.shared.note(reason),
            Some((false, reason)) => self.stream.note(reason),
            None => {}
        }
        self.stop_issuing(now);
    }

    /// Every name was taken as often as asked.
    fn end_of_names(&mut self, now: u64) {
        self.stream.note(EndedBy::Requests);
        self.stop_issuing(now);
    }

    /// Closes the counts; the last worker of a stream makes the end fsync. False: taken away meanwhile.
    fn wind_up(&mut self, leave: ExitReason) -> bool {
        if self.orders.open {
            self.note_unissued();
        }
        self.source.note_changed(&self.stream.changed);
        let last_of_stream = self.stream.active.fetch_sub(1, AcqRel) == 1;
        if leave == ExitReason::Drained && last_of_stream && !self.end_sync() {
            return false;
        }
        if last_of_stream {
            self.shared.end_others(self.orders.stream);
        }
        if let Some(begin) = self.usage_begin {
            self.core.usage = Usage::of_this_thread().since(&begin);
        }
        self.publish();
        true
    }

    /// The backlog of an overloaded target: its oldest arrival was due this long before the end.
    fn note_unissued(&mut self) {
        let pending = self.pending.take().map(|next| next.due);
        let due = pending.or_else(|| Some(self.source.next_if_any()?.0));
        if let Some(due) = due {
            self.core.unissued_lag = self.core.ended_at.saturating_sub(due);
        }
    }

    fn end_sync(&mut self) -> bool {
        if !self.orders.end_sync {
            return true;
        }
        let failed = matches!(self.shared.ended(), Some(EndedBy::Error { .. }));
        if failed || self.shared.stopped.load(Acquire) {
            return true;
        }
        // The sync may take long, and the record before it is complete.
        self.leave_snapshot(self.shared.asked.load(Relaxed), self.clock.now());
        self.stream.syncing.store(true, Relaxed);
        let changed = &self.stream.changed;
        for (file, fd) in self.target.fds().into_iter().enumerate() {
            let skip = changed
                .get(file)
                .is_some_and(|changed| !changed.load(Relaxed));
            if !skip && !self.end_sync_of(file as u32, fd) {
                return false;
            }
        }
        self.stream.syncing.store(false, Relaxed);
        true
    }

    /// fdatasync of one file, or syncfs of a tree; false: taken away meanwhile.
    fn end_sync_of(&mut self, file: u32, fd: RawFd) -> bool {
        let begin = self.clock.now();
        self.cell.enter_call();
        let result = match self.target {
            // Names and their files are in many places.
            Target::Folder(_) => crate::names::sync_file_system(fd),
            _ => crate::blocking::sync(fd, true),
        };
        if !self.cell.leave_call() {
            return false;
        }
        let now = self.clock.now();
        if result == 0 {
            self.core.recorder.set_outstanding(begin, 1);
            self.core.record_sync(file, now, now - begin);
            self.core.recorder.set_outstanding(now, 0);
        } else {
            self.core.recorder.error(OpKind::Fsync, -result, 0);
            self.core.failure = Some(Failure {
                errno: -result,
                kind: OpKind::Fsync,
                file,
                offset: 0,
                len: 0,
            });
            self.take_failure(true);
        }
        true
    }
}

/// Errors after which no request can succeed.
fn is_gone(errno: Errno) -> bool {
    matches!(
        errno,
        libc::ENXIO | libc::ENODEV | libc::EBADF | libc::ESHUTDOWN | libc::ENOMEDIUM
    )
}
