//! State that workers, coordinator and caller share while a load is on.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spindle_measure::EndedBy;
use spindle_workload::{End, Workload};

use crate::budget::Budget;
use crate::clock::Clock;
use crate::pace::Pace;
use crate::slots::Core;
use crate::snapshot::Snapshot;
use crate::thread::barrier_everywhere;

/// Locks; a thread that panicked while holding the lock left nothing half done (single assignments only).
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Largest part of a request count that a worker takes at once.
pub(crate) const REQUEST_CHUNK: u64 = 256;
/// The same for bytes.
pub(crate) const BYTE_CHUNK: u64 = 16 << 20;

/// One load.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Workers stop issuing.
    pub(crate) halt: AtomicBool,
    /// The caller asked to stop.
    pub(crate) stopped: AtomicBool,
    /// Number of the last requested snapshot; 0: none.
    pub(crate) asked: AtomicU64,
    /// The reason why the run as a whole ended; the first reason stays.
    ended: Mutex<Option<EndedBy>>,
    pub(crate) requests: Option<Budget>,
    pub(crate) bytes: Option<Budget>,
    pub(crate) streams: Vec<StreamShared>,
    gate: Mutex<Gate>,
    gate_moved: Condvar,
}

/// One stream of it.
#[derive(Debug)]
pub(crate) struct StreamShared {
    /// Its workers issue no more.
    pub(crate) halt: AtomicBool,
    ended: Mutex<Option<EndedBy>>,
    pub(crate) requests: Option<Budget>,
    pub(crate) bytes: Option<Budget>,
    pub(crate) pace: Option<Pace>,
    /// Streams that end when this one does.
    pub(crate) ends: Vec<usize>,
    /// Workers not done yet: the last makes the end fsync.
    pub(crate) active: AtomicU32,
    /// The end fsync is on.
    pub(crate) syncing: AtomicBool,
    /// The files of a set that need the end fsync.
    pub(crate) changed: Box<[AtomicBool]>,
}

/// Holds the workers until all are ready.
#[derive(Debug, Clone, Copy)]
enum Gate {
    Shut,
    /// With the time of the start on the process's clock, ns.
    Open(u64),
    Never,
}

impl Shared {
    /// For each stream the number of threads that issue, and the number of files that an end fsync distinguishes.
    pub(crate) fn new(workload: &Workload, threads: &[u32], files: &[usize]) -> Shared {
        let all = threads.iter().sum();
        Shared {
            halt: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            ended: Mutex::new(None),
            requests: request_budget(&workload.end, all),
            bytes: byte_budget(&workload.end, all),
            streams: workload
                .streams
                .iter()
                .zip(threads.iter().zip(files))
                .map(|(stream, (&threads, &files))| StreamShared {
                    halt: AtomicBool::new(false),
                    ended: Mutex::new(None),
                    requests: request_budget(&stream.end, threads),
                    bytes: byte_budget(&stream.end, threads),
                    pace: stream
                        .rate_limit
                        .map(|limit| Pace::new(limit, stream.start_delay_ns)),
                    ends: indices(workload, &stream.ends),
                    active: AtomicU32::new(threads),
                    syncing: AtomicBool::new(false),
                    changed: (0..files).map(|_| AtomicBool::new(false)).collect(),
                })
                .collect(),
            gate: Mutex::new(Gate::Shut),
            gate_moved: Condvar::new(),
        }
    }

    /// Ends the run for this reason, unless it has ended for another.
    pub(crate) fn end(&self, reason: EndedBy) {
        lock(&self.ended).get_or_insert(reason);
        self.halt.store(true, Ordering::Release);
    }

    /// Notes the reason for the end, while its workers use up their shares.
    pub(crate) fn note(&self, reason: EndedBy) {
        lock(&self.ended).get_or_insert(reason);
    }

    pub(crate) fn ended(&self) -> Option<EndedBy> {
        lock(&self.ended).clone()
    }

    /// A stream is done: others may end with it.
    pub(crate) fn end_others(&self, stream: usize) {
        let done = &self.streams[stream];
        for &other in &done.ends {
            let other = &self.streams[other];
            other.note(done.ended().unwrap_or(EndedBy::Time));
            other.halt.store(true, Ordering::Release);
        }
    }

    /// Lets the workers go at `start`, ns of the process's clock.
    pub(crate) fn open(&self, start: u64) {
        *lock(&self.gate) = Gate::Open(start);
        self.gate_moved.notify_all();
    }

    /// Ends the workers before they begin.
    pub(crate) fn call_off(&self) {
        *lock(&self.gate) = Gate::Never;
        self.gate_moved.notify_all();
    }

    /// Waits for the start; a clock that reads 0 there. `None`: called off.
    pub(crate) fn wait_for_start(&self) -> Option<Clock> {
        let mut gate = lock(&self.gate);
        loop {
            match *gate {
                Gate::Open(start) => {
                    drop(gate);
                    return Some(clock_from(start));
                }
                Gate::Never => return None,
                Gate::Shut => {
                    gate = self
                        .gate_moved
                        .wait(gate)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// Waits for `start` and makes the clock that reads 0 there.
pub(crate) fn clock_from(start: u64) -> Clock {
    /// Counters of two CPUs may differ by some ns: no worker reads the clock earlier than this after the start.
    const APART_NS: u64 = 1_000;
    let clock = Clock::get();
    loop {
        let now = clock.now();
        if now > start + APART_NS {
            return clock.zeroed_at(start);
        }
        crate::clock::sleep_ns((start + APART_NS - now) / 2);
    }
}

impl StreamShared {
    /// Notes the reason for the end, while its workers use up their shares.
    pub(crate) fn note(&self, reason: EndedBy) {
        lock(&self.ended).get_or_insert(reason);
    }

    pub(crate) fn ended(&self) -> Option<EndedBy> {
        lock(&self.ended).clone()
    }
}

fn indices(workload: &Workload, names: &[String]) -> Vec<usize> {
    let streams = workload.streams.iter().enumerate();
    streams
        .filter(|(_, stream)| names.contains(&stream.name))
        .map(|(index, _)| index)
        .collect()
}

fn request_budget(end: &End, threads: u32) -> Option<Budget> {
    end.requests
        .map(|requests| Budget::new(requests, threads, REQUEST_CHUNK))
}

fn byte_budget(end: &End, threads: u32) -> Option<Budget> {
    end.bytes
        .map(|bytes| Budget::new(bytes, threads, BYTE_CHUNK))
}

/// Running counts that one worker publishes, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) write_bytes: AtomicU64,
    /// Sum of the latencies of all of them, ns; wraps.
    pub(crate) latency_ns: AtomicU64,
    pub(crate) errors: AtomicU64,
}

/// The state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    Running = 0,
    Done = 1,
    Panicked = 2,
    /// It hangs in the kernel; the coordinator took its figures.
    Abandoned = 3,
}

const UNCLAIMED: u8 = 0;
const CLAIMED: u8 = 1;
const TAKEN: u8 = 2;

/// A worker, as it and the coordinator see it.
///
/// The worker alone touches `core` until it stores `Done` or `Panicked`, or until the coordinator takes it away
/// while the worker hangs in a system call (`take_away`).
#[derive(Debug)]
pub(crate) struct WorkerCell {
    pub(crate) counters: Counters,
    status: AtomicU8,
    /// To the worker: give up outstanding requests.
    abandon: AtomicBool,
    /// State of the coordinator's claim to the core.
    claim: AtomicU8,
    /// The worker is inside a system call.
    in_call: AtomicBool,
    /// Time at which it stopped issuing, ns since the start of the run; 0: not yet.
    pub(crate) drain_since: AtomicU64,
    /// Thread number.
    pub(crate) thread: AtomicU32,
    /// The worker's record when it was last requested.
    snapshot: Mutex<Option<Arc<Snapshot>>>,
    core: UnsafeCell<Core>,
}

// SAFETY: `core` is the only part that is not synchronised by itself, and it has one user at a time: see
// `worker_core` and `take_away`.
unsafe impl Sync for WorkerCell {}

impl WorkerCell {
    pub(crate) fn new(core: Core) -> WorkerCell {
        WorkerCell {
            counters: Counters::default(),
            status: AtomicU8::new(Status::Running as u8),
            abandon: AtomicBool::new(false),
            claim: AtomicU8::new(UNCLAIMED),
            in_call: AtomicBool::new(false),
            drain_since: AtomicU64::new(0),
            thread: AtomicU32::new(0),
            snapshot: Mutex::new(None),
            core: UnsafeCell::new(core),
        }
    }

    pub(crate) fn status(&self) -> Status {
        match self.status.load(Ordering::Acquire) {
            0 => Status::Running,
            1 => Status::Done,
            2 => Status::Panicked,
            _ => Status::Abandoned,
        }
    }

    /// Sets the worker's final status.
    pub(crate) fn finish(&self, status: Status) {
        // The first status stays.
        let _ = self.status.compare_exchange(
            Status::Running as u8,
            status as u8,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }

    /// The core, for the worker.
    ///
    /// # Safety
    /// Only the worker's own thread may call this, once, and it must leave the core alone as soon as
    /// `leave_call` says so or after `finish`.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn worker_core(&self) -> &mut Core {
        // SAFETY: by the contract above there is one user.
        unsafe { &mut *self.core.get() }
    }

    /// Marks the begin of a system call that may hang.
    #[inline(always)]
    pub(crate) fn enter_call(&self) {
        self.in_call.store(true, Ordering::Relaxed);
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Marks its end; false: the coordinator has taken the core away meanwhile.
    #[inline(always)]
    #[must_use]
    pub(crate) fn leave_call(&self) -> bool {
        // A plain store and a plain load: their order is kept by the barrier that `take_away` makes on every
        // running thread, so that the common way costs nothing.
        self.in_call.store(false, Ordering::Relaxed);
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.claim.load(Ordering::Relaxed) == UNCLAIMED || self.await_decision()
    }

    #[cold]
    fn await_decision(&self) -> bool {
        loop {
            match self.claim.load(Ordering::Acquire) {
                CLAIMED => std::thread::sleep(Duration::from_micros(50)),
                claim => return claim == UNCLAIMED,
            }
        }
    }

    /// Stores a copy of the record so far.
    pub(crate) fn leave(&self, snapshot: Snapshot) {
        let before = lock(&self.snapshot).replace(Arc::new(snapshot));
        drop(before); // not under the lock
    }

    /// The copy that was stored last.
    pub(crate) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        lock(&self.snapshot).clone()
    }

    /// True if the worker shall give up its outstanding requests.
    pub(crate) fn shall_give_up(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }

    /// Asks the worker to give up its outstanding requests.
    pub(crate) fn give_up(&self) {
        self.abandon.store(true, Ordering::Relaxed);
    }

    /// Takes the core away from a worker that hangs in a system call; false: it does not hang.
    pub(crate) fn take_away(&self) -> bool {
        self.claim.store(CLAIMED, Ordering::SeqCst);
        if !barrier_everywhere() {
            // Store buffers drain by themselves within microseconds.
            std::thread::sleep(Duration::from_millis(20));
        }
        // Past the barrier, a worker that has not yet stored `false` here will, when it has, see the claim
        // and wait for the decision below.
        let hangs = self.in_call.load(Ordering::SeqCst);
        if hangs {
            self.finish(Status::Abandoned);
        }
        let taken = hangs && self.status() == Status::Abandoned;
        self.claim
            .store(if taken { TAKEN } else { UNCLAIMED }, Ordering::Release);
        taken
    }

    /// The core, after the end.
    ///
    /// # Safety
    /// Only after `status` was seen as other than `Running`.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn final_core(&self) -> &mut Core {
        // SAFETY: the worker has set its final status, or will not touch the core any more.
        unsafe { &mut *self.core.get() }
    }
}
