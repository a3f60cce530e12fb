//! A worker's slots and the handling of completions. Times are ns since the start of the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use spindle_measure::{EndedBy, OpKind, StreamRecorder};
use spindle_workload::{Hold, Op, Request, Rest, Thinker};

use crate::backend::{Call, Errno};
use crate::free::FreeSlots;
use crate::log::{Completion, Log};
use crate::target::Target;
use crate::thread::Usage;

/// Result that no call gives: the completion of an fsync is not that of a request.
const NEVER: i32 = i32::MIN;

/// One outstanding request, or room for one: half a cache line, as there may be thousands.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Slot {
    issued: u64,
    offset: u64,
    len: u32,
    /// Number of the file in the stream.
    file: u32,
    /// Result of a call that moves all the rest.
    expect: i32,
    kind: OpKind,
    /// The completion only needs to be recorded: see `Core::place`.
    plain: bool,
    after: FollowUp,
    /// Paid for from a budget in the ramp: refunded if it is not counted.
    refundable: bool,
}

/// The call that follows a completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum FollowUp {
    Nothing,
    Fsync,
    /// The block that was read is written back.
    Write,
    WriteAndFsync,
}

/// The call that an operation begins with.
#[derive(Debug, Clone, Copy)]
struct FirstCall {
    kind: OpKind,
    /// All ones if it moves the request's bytes.
    moved: u32,
}

/// First call of each operation: a table, as comparisons would cost every request more.
static BEGINS: [FirstCall; Op::Rewrite as usize + 1] = {
    // In place of 4, which no operation is.
    let mut begins = [FirstCall {
        kind: OpKind::Fsync,
        moved: 0,
    }; Op::Rewrite as usize + 1];
    let mut index = 0;
    while index < Op::ALL.len() {
        let op = Op::ALL[index];
        let kind = OpKind::first_of(op);
        let moved = match kind {
            OpKind::Read | OpKind::Write => u32::MAX,
            _ => 0,
        };
        begins[op as usize] = FirstCall { kind, moved };
        index += 1;
    }
    begins
};

impl Slot {
    const IDLE: Slot = Slot {
        issued: 0,
        offset: 0,
        len: 0,
        file: 0,
        expect: 0,
        kind: OpKind::Read,
        plain: false,
        after: FollowUp::Nothing,
        refundable: false,
    };

    /// The call that the slot needs next.
    pub(crate) fn call(&self) -> Call {
        let done = match self.kind {
            OpKind::Read | OpKind::Write => self.len - self.expect as u32,
            _ => 0,
        };
        Call {
            kind: self.kind,
            file: self.file,
            offset: self.offset,
            len: self.len,
            done,
        }
    }
}

/// A call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) errno: Errno,
    pub(crate) kind: OpKind,
    pub(crate) file: u32,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

impl Failure {
    /// The reason that the failure gives for the end of the run.
    pub(crate) fn ends(&self, target: Option<&Target>) -> EndedBy {
        EndedBy::Error {
            errno: self.errno,
            op: self.kind.name().to_owned(),
            file: target.and_then(|target| target.name_of(self.file)),
            offset: self.offset,
            len: u64::from(self.len),
        }
    }
}

/// Slots and counts of one worker.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) slots: Vec<Slot>,
    /// Open loop: intended start of each slot's request, ns.
    intended: Vec<u64>,
    pub(crate) recorder: StreamRecorder,
    /// End of the ramp, ns.
    ramp_ns: u64,
    /// Open loop: latency counts from the intended start.
    open: bool,
    /// Completions are only recorded: a closed loop without pauses and without a log.
    simple: bool,
    /// Every completion goes there, too.
    pub(crate) log: Option<Log>,
    /// Work besides filling free slots is due: `again`, `follow`, `failure` or `refund` are not empty.
    pub(crate) attention: bool,
    /// Slots without a request.
    pub(crate) free: FreeSlots,
    /// Slots whose following call the back end has taken and that are not yet stamped.
    pub(crate) pushed: Vec<u32>,
    /// Slots that need another call for the same request: the rest of a short one, a repeat.
    pub(crate) again: Vec<u32>,
    /// Slots that need the call that follows their request now: the write of a rewrite, an fsync.
    pub(crate) follow: Vec<u32>,
    /// Slots that pause, by the time they wake.
    pub(crate) thinking: BinaryHeap<Reverse<(u64, u32)>>,
    thinker: Option<Thinker>,
    /// Pauses of the worker as a whole.
    rest: Option<Rest>,
    /// First failed call since it was last taken.
    pub(crate) failure: Option<Failure>,
    /// Requests and bytes that were paid for and are not counted.
    pub(crate) refund: (i64, i64),
    /// CPU use from the start to the end of the counted time.
    pub(crate) usage: Usage,
    /// Options the back end has in force.
    pub(crate) features: Vec<String>,
    /// When its stream ended for it, ns.
    pub(crate) ended_at: u64,
    /// Lag of the oldest arrival that was due but never issued, ns.
    pub(crate) unissued_lag: u64,
}

impl Core {
    pub(crate) fn new(
        depth: usize,
        recorder: StreamRecorder,
        ramp_ns: u64,
        open: bool,
        thinker: Option<Thinker>,
        log: Option<Log>,
    ) -> Core {
        let rest = thinker.as_ref().and_then(Rest::new);
        let thinker = thinker.filter(|_| rest.is_none());
        Core {
            slots: vec![Slot::IDLE; depth],
            intended: vec![0; if open { depth } else { 0 }],
            recorder,
            ramp_ns,
            open,
            simple: !open && thinker.is_none() && rest.is_none() && log.is_none(),
            log,
            attention: false,
            free: FreeSlots::all(depth),
            pushed: Vec::with_capacity(depth),
            again: Vec::with_capacity(depth),
            follow: Vec::with_capacity(depth),
            thinking: BinaryHeap::with_capacity(depth),
            thinker,
            rest,
            failure: None,
            refund: (0, 0),
            usage: Usage::default(),
            features: Vec::new(),
            ended_at: 0,
            unissued_lag: 0,
        }
    }

    /// True if slots pause after a completion, or the worker as a whole.
    pub(crate) fn thinks(&self) -> bool {
        self.thinker.is_some() || self.rest.is_some()
    }

    /// The reason why the worker as a whole may not issue. `idle`: nothing is outstanding.
    #[inline]
    pub(crate) fn rests(&mut self, now: u64, idle: bool) -> Option<Hold> {
        self.rest.as_mut().and_then(|rest| rest.hold(now, idle))
    }

    /// Records that a request is issued; true if the worker rests after it.
    #[inline]
    pub(crate) fn rests_after_issue(&mut self, now: u64) -> bool {
        self.rest.as_mut().is_some_and(|rest| rest.issued(now))
    }

    /// Puts a request into a slot.
    #[inline(always)]
    pub(crate) fn place(&mut self, index: u32, request: Request, refundable: bool) -> Call {
        let FirstCall { kind, moved } = BEGINS[request.op as usize];
        let after = match (request.op == Op::Rewrite, request.fsync_after) {
            (false, false) => FollowUp::Nothing,
            (false, true) => FollowUp::Fsync,
            (true, false) => FollowUp::Write,
            (true, true) => FollowUp::WriteAndFsync,
        };
        let slot = &mut self.slots[index as usize];
        slot.offset = request.offset;
        slot.len = request.len;
        slot.file = request.file;
        slot.expect = (request.len & moved) as i32;
        slot.kind = kind;
        slot.plain = self.simple && after == FollowUp::Nothing && !refundable;
        slot.after = after;
        slot.refundable = refundable;
        Call {
            kind,
            file: request.file,
            offset: request.offset,
            len: request.len,
            done: 0,
        }
    }

    /// The same in an open loop, with the intended start.
    pub(crate) fn place_due(
        &mut self,
        index: u32,
        request: Request,
        refundable: bool,
        due: u64,
    ) -> Call {
        self.intended[index as usize] = due;
        self.place(index, request, refundable)
    }

    /// Stamps all calls that are handed over now.
    #[inline(always)]
    pub(crate) fn stamp(&mut self, now: u64) {
        for &index in self.free.taken() {
            self.slots[index as usize].issued = now;
        }
        self.free.issued();
        if !self.pushed.is_empty() {
            for index in self.pushed.drain(..) {
                self.slots[index as usize].issued = now;
            }
        }
    }

    /// Calls that the back end has taken and that are not yet stamped.
    #[inline(always)]
    pub(crate) fn unstamped(&self) -> usize {
        self.free.taken().len() + self.pushed.len()
    }

    /// Takes a completion.
    #[inline(always)]
    pub(crate) fn complete(&mut self, index: u32, result: i32, now: u64) {
        let slot = &self.slots[index as usize];
        if result == slot.expect && slot.plain {
            let latency = now.saturating_sub(slot.issued);
            self.recorder
                .record(slot.kind, now, latency, u64::from(slot.len));
            self.free.give(index);
        } else {
            self.complete_special(index, result, now);
        }
    }

    #[inline(never)]
    fn complete_special(&mut self, index: u32, result: i32, now: u64) {
        let slot = &mut self.slots[index as usize];
        if result != slot.expect {
            self.unusual(index, result, now);
            return;
        }
        let service = now.saturating_sub(slot.issued);
        let (kind, len) = (slot.kind, u64::from(slot.len));
        let mut latency = service;
        if self.open {
            latency = now.saturating_sub(self.intended[index as usize]);
            self.recorder.record_open(kind, now, latency, service, len);
        } else {
            self.recorder.record(kind, now, service, len);
        }
        if let Some(log) = &mut self.log {
            log.push(Completion {
                at: now,
                latency,
                service,
                offset: slot.offset,
                len: slot.len,
                file: slot.file,
                kind,
            });
        }
        if slot.refundable {
            self.settle(index, now);
        }
        let slot = &mut self.slots[index as usize];
        (slot.kind, slot.expect, slot.after) = match slot.after {
            FollowUp::Nothing => return self.release(index, now),
            FollowUp::Fsync => (OpKind::Fsync, NEVER, FollowUp::Nothing),
            FollowUp::Write => (OpKind::Write, slot.len as i32, FollowUp::Nothing),
            FollowUp::WriteAndFsync => (OpKind::Write, slot.len as i32, FollowUp::Fsync),
        };
        self.follow.push(index);
        self.attention = true;
    }

    /// A request paid for in the ramp counts if it ends after the ramp; otherwise its cost is given back.
    #[cold]
    fn settle(&mut self, index: u32, now: u64) {
        let slot = &mut self.slots[index as usize];
        slot.refundable = false;
        if now < self.ramp_ns {
            self.attention = true;
            self.refund.0 += 1;
            self.refund.1 += i64::from(slot.len);
        }
    }

    /// Leaves the slot without a request.
    fn release(&mut self, index: u32, now: u64) {
        match &mut self.thinker {
            None => self.free.give(index),
            Some(thinker) => self
                .thinking
                .push(Reverse((now + thinker.pause_ns(), index))),
        }
    }

    /// The call that would follow the slot's request is not made.
    pub(crate) fn leave_out(&mut self, index: u32, now: u64) {
        self.release(index, now);
    }

    /// A completion with another result than the full length.
    #[cold]
    fn unusual(&mut self, index: u32, result: i32, now: u64) {
        self.attention = true;
        let slot = &mut self.slots[index as usize];
        match (slot.kind, result) {
            (_, result) if result == -libc::EINTR || result == -libc::EAGAIN => {
                self.again.push(index)
            }
            (_, result) if result < 0 => self.fail(index, -result, now),
            (OpKind::Fsync, _) => {
                let latency = now.saturating_sub(slot.issued);
                let file = slot.file;
                self.record_sync(file, now, latency);
                self.release(index, now);
            }
            // Nothing more to read: the target ends before it should, as when a file is cut short.
            (OpKind::Read, 0) => self.fail(index, libc::ENODATA, now),
            (_, 0) => self.fail(index, libc::EIO, now),
            (_, moved) => {
                slot.expect -= moved;
                self.again.push(index);
            }
        }
    }

    /// Takes the end of an fsync.
    pub(crate) fn record_sync(&mut self, file: u32, now: u64, latency: u64) {
        self.recorder.record(OpKind::Fsync, now, latency, 0);
        if let Some(log) = &mut self.log {
            log.push(Completion {
                at: now,
                latency,
                service: latency,
                file,
                kind: OpKind::Fsync,
                ..Completion::default()
            });
        }
    }

    /// Counts the failure and frees the slot.
    fn fail(&mut self, index: u32, errno: Errno, now: u64) {
        let Call {
            kind,
            file,
            offset,
            len,
            ..
        } = self.slots[index as usize].call();
        self.recorder.error(kind, errno, offset);
        self.failure.get_or_insert(Failure {
            errno,
            kind,
            file,
            offset,
            len: if kind == OpKind::Fsync { 0 } else { len },
        });
        if self.slots[index as usize].refundable {
            self.settle(index, now);
        }
        self.release(index, now);
    }

    /// Reports what is still outstanding as failed with ETIMEDOUT.
    pub(crate) fn report_stuck(&mut self) {
        let mut outstanding = vec![true; self.slots.len()];
        let thinking = self.thinking.iter().map(|Reverse((_, index))| index);
        for &index in self.free.iter().chain(thinking) {
            outstanding[index as usize] = false;
        }
        for (slot, _) in self.slots.iter().zip(outstanding).filter(|pair| pair.1) {
            let Call {
                kind,
                file,
                offset,
                len,
                ..
            } = slot.call();
            self.recorder.error(kind, libc::ETIMEDOUT, offset);
            self.failure.get_or_insert(Failure {
                errno: libc::ETIMEDOUT,
                kind,
                file,
                offset,
                len,
            });
        }
    }
}
