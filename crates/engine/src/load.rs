//! One load from its plan to its figures: worker threads, their start together, their supervision.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use spindle_measure::{EndedBy, OpKind, Plan as Recording, RunFigures, StreamRecorder};
use spindle_workload::{
    Arrival, Arrivals, Content, ContentFiller, NameStream, Passes, Pattern, RequestStream, Stream,
    StreamError, Thinker, Workload,
};

use crate::backend::Backend;
use crate::blocking::PreadBackend;
use crate::budget::{Budget, PassBudget};
use crate::buffers::{BufferNeed, Buffers};
use crate::clock::Clock;
use crate::feed::{Feed, NameFeed, Source};
use crate::figures;
use crate::helpers::Helpers;
use crate::log;
use crate::mapped::{Advice, MappedNeed, MmapBackend};
use crate::names::Names;
use crate::null::Null;
use crate::one_call::OneCall;
use crate::options::Timestamps;
use crate::progress::{Phase, Progress, StreamProgress};
use crate::ring::{Ring, RingNeed};
use crate::shared::{BYTE_CHUNK, REQUEST_CHUNK, Shared, Status, WorkerCell, clock_from, lock};
use crate::slots::Core;
use crate::steady::Watch;
use crate::target::Target;
use crate::thread;
use crate::verify::{CheckingBackend, Memory, Verify};
use crate::worker::{Orders, Worker};
use crate::{EngineError, Options};

/// The back end that makes the calls of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendKind {
    Ring,
    Blocking,
    Mapped,
    Names,
    Null,
}

impl BackendKind {
    /// True if it makes one call at a time, so that each outstanding request needs a thread.
    fn blocks(self) -> bool {
        matches!(
            self,
            BackendKind::Blocking | BackendKind::Mapped | BackendKind::Names
        )
    }

    /// Name in figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BackendKind::Ring => "io_uring",
            BackendKind::Blocking => "pread",
            BackendKind::Mapped => "mmap",
            BackendKind::Names => "names",
            BackendKind::Null => "null",
        }
    }
}

/// The plan of a load.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) workload: Workload,
    /// One for each stream.
    pub(crate) targets: Vec<Target>,
    /// One for each stream.
    pub(crate) backends: Vec<BackendKind>,
    pub(crate) options: Options,
    /// The verification of written blocks.
    pub(crate) verify: Option<Arc<Verify>>,
}

/// A load that is on.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) plan: Plan,
    pub(crate) shared: Shared,
    pub(crate) seats: Vec<ThreadPlace>,
    /// The completion log, until it is being written.
    log: Mutex<Option<log::Writer>>,
    /// Reads 0 at the start of the run; set at the start.
    pub(crate) clock: OnceLock<Clock>,
    /// The workers are done, and their records are being taken.
    pub(crate) taken: Mutex<bool>,
    over: Mutex<bool>,
    panic: Mutex<Option<String>>,
    worker_done: Condvar,
}

/// The place of one thread.
#[derive(Debug)]
pub(crate) struct ThreadPlace {
    pub(crate) stream: usize,
    pub(crate) worker: u32,
    depth: u32,
    pub(crate) orders: Orders,
    pub(crate) cell: WorkerCell,
    /// The worker's passes over its part of the region, which its threads use up together.
    passes: Option<Arc<PassBudget>>,
}

/// How long the coordinator sleeps when nothing wakes it.
const LOOK: Duration = Duration::from_millis(50);
const SECOND_NS: u64 = 1_000_000_000;
/// Time between all workers being ready and the first request, ns.
const TAKE_OFF_NS: u64 = 200_000;
/// How long a worker has to give up by itself before its figures are taken from it, ns.
const GIVE_UP_NS: u64 = 300_000_000;

impl Load {
    /// Prepares everything that can be refused.
    pub(crate) fn new(plan: Plan) -> Result<(Arc<Load>, Vec<Source>), EngineError> {
        let mut seats = Vec::new();
        let mut sources = Vec::new();
        let mut threads = Vec::new();
        let all_threads: u64 = plan
            .workload
            .streams
            .iter()
            .zip(&plan.backends)
            .map(|(stream, &backend)| u64::from(threads_of(stream, backend)))
            .sum();
        let mut log = match plan.options.log {
            Some(fd) => Some(log::Writer::new(duplicate(fd)?, all_threads as usize)),
            None => None,
        };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        for (index, stream) in plan.workload.streams.iter().enumerate() {
            let backend = plan.backends[index];
            threads.push(threads_of(stream, backend));
            for worker in 0..stream.workers {
                let orders = orders(&plan, index, all_threads <= cpus);
                let depth = stream.depth.max(1);
                let threads = if backend.blocks() { depth } else { 1 };
                let mut own = sources_of(&plan, index, worker, threads)?;
                let passes = passes(&own, depth);
                let mut seat = |depth| {
                    seats.push(ThreadPlace {
                        stream: index,
                        worker,
                        depth,
                        orders,
                        cell: WorkerCell::new(core(
                            &plan,
                            index,
                            worker,
                            depth,
                            log.as_mut().map(|log| log.log(&stream.name, worker)),
                        )),
                        passes: passes.clone(),
                    });
                };
                for _ in 0..threads {
                    seat(depth / threads);
                }
                sources.append(&mut own);
            }
        }
        let files: Vec<usize> = (0..plan.targets.len())
            .map(|index| files_to_tell_apart(&plan, index))
            .collect();
        let shared = Shared::new(&plan.workload, &threads, &files);
        let load = Load {
            plan,
            shared,
            seats,
            log: Mutex::new(log),
            clock: OnceLock::new(),
            taken: Mutex::new(false),
            over: Mutex::new(false),
            panic: Mutex::new(None),
            worker_done: Condvar::new(),
        };
        Ok((Arc::new(load), sources))
    }

    /// Runs it to its end.
    pub(crate) fn execute(
        self: &Arc<Self>,
        sources: Vec<Source>,
    ) -> Result<RunFigures, EngineError> {
        let answer = self.run_workers(sources);
        *lock(&self.over) = true;
        answer
    }

    fn run_workers(self: &Arc<Self>, sources: Vec<Source>) -> Result<RunFigures, EngineError> {
        let (ready, readiness) = channel();
        let mut handles = Vec::with_capacity(self.seats.len());
        for (index, source) in sources.into_iter().enumerate() {
            match self.spawn(index, source, ready.clone()) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    self.shared.call_off();
                    handles.into_iter().for_each(|handle| drop(handle.join()));
                    let what = format!(
                        "cannot start thread {} of {} (use fewer workers or less depth, or `engine=\"io_uring\"`)",
                        index + 1,
                        self.seats.len()
                    );
                    return Err(EngineError::system(what, &error));
                }
            }
        }
        drop(ready);
        for _ in 0..self.seats.len() {
            // A worker that panicked before it was ready has dropped its end of the channel.
            match readiness.recv() {
                Ok(Ok(())) => {}
                Ok(Err(why)) => {
                    self.shared.call_off();
                    handles.into_iter().for_each(|handle| drop(handle.join()));
                    return Err(why);
                }
                Err(_) => break,
            }
        }
        let log = match lock(&self.log).take().map(log::Writer::start).transpose() {
            Ok(log) => log,
            Err(error) => {
                self.shared.call_off();
                handles.into_iter().for_each(|handle| drop(handle.join()));
                return Err(EngineError::system("cannot start a thread", &error));
            }
        };
        let earliest = || Clock::get().now() + TAKE_OFF_NS;
        let start = match &self.plan.options.appointment {
            Some(appointment) => appointment.keep(earliest, || self.shared.stopped.load(Relaxed)),
            None => earliest(),
        };
        self.shared.open(start);
        let clock = clock_from(start);
        // Only set here.
        let _ = self.clock.set(clock);
        let mut watch = Watch::new(&self.plan.workload);
        let helpers = self.supervise(clock, &mut watch);
        self.join(handles);
        let log = log.map(log::RunningWriter::finish);
        if let Some(error) = self.breakdown() {
            return Err(error);
        }
        *lock(&self.taken) = true;
        figures::collect(self, helpers.used_ns(), log, watch.found())
            .map_err(|error| EngineError::sums(&error))
    }

    fn spawn(
        self: &Arc<Self>,
        index: usize,
        source: Source,
        ready: Sender<Result<(), EngineError>>,
    ) -> io::Result<JoinHandle<()>> {
        let load = Arc::clone(self);
        Builder::new()
            .name(format!("spindle-io-{index}"))
            .stack_size(256 << 10)
            .spawn(move || {
                let seat = &load.seats[index];
                let word = catch_unwind(AssertUnwindSafe(|| load.man(index, source, &ready)));
                match word {
                    Ok(true) => seat.cell.finish(Status::Done),
                    // Taken away: the worker has already ended.
                    Ok(false) => {}
                    Err(panic) => {
                        lock(&load.panic).get_or_insert(text_of(panic.as_ref()));
                        load.shared.end(EndedBy::Stopped);
                        seat.cell.finish(Status::Panicked);
                    }
                }
                load.worker_done.notify_all();
            })
    }

    /// Runs one worker thread; false: its figures were taken away.
    fn man(&self, index: usize, source: Source, ready: &Sender<Result<(), EngineError>>) -> bool {
        let seat = &self.seats[index];
        // SAFETY: see `worker_core`: this is the seat's own thread, and this the only call.
        #[allow(unsafe_code)]
        let core = unsafe { seat.cell.worker_core() };
        let stream = &self.plan.workload.streams[seat.stream];
        seat.cell.thread.store(thread::id() as u32, Relaxed);
        if let Err(why) = self.settle(index, stream) {
            let _ = ready.send(Err(why));
            return true;
        }
        let target = &self.plan.targets[seat.stream];
        let clock = Clock::get();
        match (self.plan.backends[seat.stream], target) {
            (BackendKind::Ring, Target::Files(open)) => {
                let options = &self.plan.options;
                let need = RingNeed {
                    fds: target.fds(),
                    is_device: open.first().is_device,
                    data_only: stream.sync.fdatasync_every > 0,
                    depth: seat.depth,
                    sqpoll: options.sqpoll,
                    iopoll: options.iopoll,
                    priority: stream.priority.map_or(0, thread::priority_value),
                    announce: self.verify_of(seat).is_some(),
                };
                let ring = self
                    .buffers(index)
                    .and_then(|buffers| Ring::new(need, buffers, clock));
                match ring {
                    Ok(ring) => {
                        core.features = ring.features().to_vec();
                        self.start_checked(seat, core, ring, source, ready)
                    }
                    Err(error) => self.refuse(seat, "set up io_uring", &error, ready),
                }
            }
            (BackendKind::Blocking, Target::Files(open)) => match self.buffers(index) {
                Ok(buffers) => {
                    let is_device = open.first().is_device;
                    let data_only = stream.sync.fdatasync_every > 0;
                    let backend = PreadBackend::new(target.fds(), is_device, data_only, buffers);
                    core.features = backend.features();
                    self.start_checked(seat, core, OneCall::of(backend), source, ready)
                }
                Err(error) => self.refuse(seat, "get memory", &error, ready),
            },
            (BackendKind::Mapped, Target::Files(open)) => {
                let in_order = matches!(
                    stream.pattern,
                    Pattern::Sequential | Pattern::Backward | Pattern::Strided { .. }
                );
                let need = MappedNeed {
                    files: open
                        .iter()
                        .map(|each| (each.file.fd, each.file.size_bytes))
                        .collect(),
                    is_device: open.first().is_device,
                    writes: open.first().can_write,
                    sync_each: stream.sync.dsync || stream.sync.osync,
                    advice: if in_order {
                        Advice::Sequential
                    } else {
                        Advice::Random
                    },
                };
                let mapped = self
                    .buffers(index)
                    .and_then(|buffers| MmapBackend::new(&need, buffers));
                match mapped {
                    Ok(mapped) => {
                        self.start_checked(seat, core, OneCall::of(mapped), source, ready)
                    }
                    Err(error) => self.refuse(seat, "map the target", &error, ready),
                }
            }
            (BackendKind::Names, Target::Folder(root)) => match self.names(index, stream, *root) {
                Ok(backend) => {
                    core.features = backend.features();
                    self.start(seat, core, OneCall::of(backend), source, ready)
                }
                Err(error) => self.refuse(seat, "open the directories of the tree", &error, ready),
            },
            (_, target) => {
                let service_ns = match target {
                    Target::Null { service_ns, .. } => *service_ns,
                    Target::Files(_) | Target::Folder(_) => 0,
                };
                let backend = Null::new(clock, service_ns, seat.depth as usize);
                self.start(seat, core, backend, source, ready)
            }
        }
    }

    fn refuse(
        &self,
        seat: &ThreadPlace,
        attempt: &str,
        error: &io::Error,
        ready: &Sender<Result<(), EngineError>>,
    ) -> bool {
        let stream = &self.plan.workload.streams[seat.stream].name;
        let what = format!(
            "stream {stream:?}, worker {}: cannot {attempt}",
            seat.worker
        );
        let _ = ready.send(Err(EngineError::system(what, error)));
        true
    }

    /// Settings that the thread makes for itself.
    fn settle(&self, index: usize, stream: &Stream) -> Result<(), EngineError> {
        // The CPU time of a request is a sleep.
        let slack_ns = match self.plan.options.cpu_per_request_ns {
            0 => 1_000,
            _ => 1,
        };
        thread::prompt_timers(slack_ns);
        if let Some(cpus) = self.plan.options.cpus_of(index) {
            thread::pin(cpus).map_err(|error| EngineError::Cpu {
                cpu: cpus[0],
                why: error.to_string(),
            })?;
        }
        if let Some(priority) = stream.priority {
            thread::set_priority(priority).map_err(|error| EngineError::Priority {
                stream: stream.name.clone(),
                class: thread::class_name(priority.class),
                level: priority.level,
                why: error.to_string(),
            })?;
        }
        Ok(())
    }

    fn names(&self, index: usize, stream: &Stream, root: RawFd) -> io::Result<Names> {
        let spec = stream.names.as_ref();
        let spec = spec.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOTDIR))?;
        let seat = &self.seats[index];
        let filled = max_len(&self.plan, seat.stream) > 0;
        let content = filled.then(|| self.buffers(index)).transpose()?;
        let part = spec.part(stream.workers, seat.worker);
        Names::new(root, spec, stream.workers, part, content)
    }

    fn buffers(&self, index: usize) -> io::Result<Buffers> {
        let seat = &self.seats[index];
        let workload = &self.plan.workload;
        let stream = &workload.streams[seat.stream];
        let target = &self.plan.targets[seat.stream];
        let kinds = OpKind::made_by(stream);
        let mut filler =
            ContentFiller::new(stream.content, seat.stream, seat.worker, workload.seed);
        let need = BufferNeed {
            depth: seat.depth as usize,
            max_len: max_len(&self.plan, seat.stream) as usize,
            align: target.memory_align(),
            reads: kinds.contains(&OpKind::Read),
            looks: self.plan.backends[seat.stream] == BackendKind::Ring
                && self.verify_of(seat).is_some(),
            writes: kinds.contains(&OpKind::Write) || kinds.contains(&OpKind::Create),
            zeroes: stream.content == Content::Zero,
            repeats: stream.repeats.filter(|_| stream.content != Content::Zero),
            stamp_seed: stamp_seed(workload.seed, index),
        };
        Buffers::new(&need, &mut filler)
    }

    /// The same with verified content, if the stream is verified.
    fn start_checked<B: Backend + Memory>(
        &self,
        seat: &ThreadPlace,
        core: &mut Core,
        backend: B,
        source: Source,
        ready: &Sender<Result<(), EngineError>>,
    ) -> bool {
        match self.verify_of(seat) {
            None => self.start(seat, core, backend, source, ready),
            Some(verify) => {
                let longest = max_len(&self.plan, seat.stream) as usize;
                let depth = seat.depth as usize;
                let backend = CheckingBackend::new(
                    backend,
                    verify,
                    &self.shared,
                    seat.stream,
                    depth,
                    longest,
                );
                self.start(seat, core, backend, source, ready)
            }
        }
    }

    /// The verification, if the seat's stream takes part.
    fn verify_of(&self, seat: &ThreadPlace) -> Option<&Arc<Verify>> {
        let takes_part = |verify: &&Arc<Verify>| !verify.streams[seat.stream].is_empty();
        self.plan.verify.as_ref().filter(takes_part)
    }

    /// Waits for the others and runs the loop.
    fn start<B: Backend>(
        &self,
        seat: &ThreadPlace,
        core: &mut Core,
        backend: B,
        source: Source,
        ready: &Sender<Result<(), EngineError>>,
    ) -> bool {
        let _ = ready.send(Ok(()));
        let Some(clock) = self.shared.wait_for_start() else {
            return true;
        };
        let cell = &seat.cell;
        Worker::new(
            backend,
            core,
            cell,
            &self.shared,
            seat.orders,
            &self.plan.targets[seat.stream],
            source,
            clock,
            seat.passes.as_deref(),
        )
        .run()
    }

    /// Watches until every worker has ended.
    fn supervise(&self, clock: Clock, watch: &mut Watch) -> Helpers {
        let ramp_end = self.plan.workload.ramp_ns;
        let rings = self.plan.backends.contains(&BackendKind::Ring);
        let mut helpers = Helpers::default();
        let mut helpers_at = ramp_end;
        let mut given_up_at = None;
        loop {
            let guard = lock(&self.over);
            if self
                .seats
                .iter()
                .all(|seat| seat.cell.status() != Status::Running)
            {
                break;
            }
            let pause = LOOK.min(Duration::from_nanos(
                watch.next_look().saturating_sub(clock.now()).max(1_000_000),
            ));
            drop(
                self.worker_done
                    .wait_timeout(guard, pause)
                    .unwrap_or_else(PoisonError::into_inner),
            );
            let now = clock.now();
            if rings && now >= helpers_at {
                let workers = self.threads();
                if helpers_at == ramp_end {
                    helpers.begin(&workers);
                } else {
                    helpers.look(&workers);
                }
                helpers_at += SECOND_NS;
            }
            watch.look(self, now);
            self.give_up_late(now, &mut given_up_at);
        }
        if rings {
            helpers.look(&self.threads());
        }
        helpers
    }

    fn threads(&self) -> Vec<i32> {
        let threads = self.seats.iter();
        threads
            .map(|seat| seat.cell.thread.load(Relaxed) as i32)
            .collect()
    }

    /// Gives up workers whose requests have been outstanding too long after their end.
    fn give_up_late(&self, now: u64, given_up_at: &mut Option<u64>) {
        let options = &self.plan.options;
        let halted = self.shared.halt.load(Acquire);
        let stopped = self.shared.stopped.load(Acquire);
        for seat in &self.seats {
            let cell = &seat.cell;
            if cell.status() != Status::Running {
                continue;
            }
            let since = cell.drain_since.load(Relaxed);
            if since == 0 && halted {
                // It hangs in a call and has not seen the halt: the time counts from now.
                let _ = cell.drain_since.compare_exchange(0, now, Relaxed, Relaxed);
                continue;
            }
            if since == 0 {
                if now > seat.orders.end.saturating_add(options.grace_ns) {
                    self.give_up(cell, now, given_up_at);
                }
                continue;
            }
            let syncing = self.shared.streams[seat.stream].syncing.load(Relaxed);
            let grace = if stopped || halted {
                options.stop_grace_ns
            } else if syncing {
                // Flushing a full cache may take any time; the user may stop it.
                continue;
            } else {
                options.grace_ns
            };
            if now > since.saturating_add(grace) {
                self.give_up(cell, now, given_up_at);
            }
        }
    }

    fn give_up(&self, cell: &WorkerCell, now: u64, given_up_at: &mut Option<u64>) {
        cell.give_up();
        // A request that never returns ends the whole run.
        self.shared
            .halt
            .store(true, std::sync::atomic::Ordering::Release);
        let asked_at = *given_up_at.get_or_insert(now);
        if now > asked_at + GIVE_UP_NS && cell.take_away() {
            // SAFETY: the status is `Abandoned` now, seen by this very thread.
            #[allow(unsafe_code)]
            let core = unsafe { cell.final_core() };
            core.report_stuck();
            if core.ended_at == 0 {
                core.ended_at = now;
            }
            if let Some(failure) = core.failure.take() {
                let target = self
                    .seats
                    .iter()
                    .find(|seat| std::ptr::eq(&seat.cell, cell));
                let target = target.map(|seat| &self.plan.targets[seat.stream]);
                self.shared.end(failure.ends(target));
            }
        }
    }

    /// Waits for threads that are done. One that hangs in the kernel is left behind, and so is one that gave up
    /// requests: the end of a thread waits for what its ring has outstanding (io_uring/io_uring.c,
    /// io_uring_cancel_generic).
    fn join(&self, handles: Vec<JoinHandle<()>>) {
        for (seat, handle) in self.seats.iter().zip(handles) {
            if seat.cell.status() != Status::Abandoned && !seat.cell.shall_give_up() {
                drop(handle.join());
            }
        }
    }

    fn breakdown(&self) -> Option<EngineError> {
        let seat = self
            .seats
            .iter()
            .find(|seat| seat.cell.status() == Status::Panicked)?;
        Some(EngineError::WorkerPanicked {
            stream: self.plan.workload.streams[seat.stream].name.clone(),
            worker: seat.worker,
            why: lock(&self.panic).clone().unwrap_or_default(),
        })
    }

    /// True if requests were left behind in the kernel.
    pub(crate) fn gave_up(&self) -> bool {
        let cells = self.seats.iter().map(|seat| &seat.cell);
        cells
            .into_iter()
            .any(|cell| cell.status() == Status::Abandoned || cell.shall_give_up())
    }

    /// Asks it to end.
    pub(crate) fn stop(&self) {
        self.shared.stopped.store(true, Relaxed);
        self.shared.end(EndedBy::Stopped);
    }

    /// A snapshot.
    pub(crate) fn progress(&self) -> Progress {
        let now = self.clock.get().map_or(0, Clock::now);
        Progress {
            phase: self.phase(),
            elapsed_ns: now,
            measured_ns: now.saturating_sub(self.plan.workload.ramp_ns),
            streams: self.counts(),
        }
    }

    /// Running counts of each stream.
    pub(crate) fn counts(&self) -> Vec<StreamProgress> {
        let mut streams: Vec<StreamProgress> = self
            .plan
            .workload
            .streams
            .iter()
            .map(|stream| StreamProgress {
                name: stream.name.clone(),
                ..StreamProgress::default()
            })
            .collect();
        for seat in &self.seats {
            let counters = &seat.cell.counters;
            let stream = &mut streams[seat.stream];
            stream.reads += counters.reads.load(Relaxed);
            stream.writes += counters.writes.load(Relaxed);
            stream.read_bytes += counters.read_bytes.load(Relaxed);
            stream.write_bytes += counters.write_bytes.load(Relaxed);
            stream.errors += counters.errors.load(Relaxed);
        }
        streams
    }

    /// The current phase.
    pub(crate) fn phase(&self) -> Phase {
        let Some(clock) = self.clock.get() else {
            // Threads and memory are being set up.
            return Phase::Ramp;
        };
        let now = clock.now();
        if *lock(&self.over) {
            return Phase::Done;
        }
        let draining = |seat: &ThreadPlace| {
            seat.cell.status() != Status::Running || seat.cell.drain_since.load(Relaxed) > 0
        };
        if self.seats.iter().all(draining) {
            Phase::Sync
        } else if now < self.plan.workload.ramp_ns {
            Phase::Ramp
        } else {
            Phase::Measure
        }
    }

    /// Options in force with any back end.
    pub(crate) fn features(&self) -> Vec<String> {
        let mut features = vec![Clock::get().name().to_owned()];
        if !self.plan.options.cpus.is_empty() {
            features.push("pinned".to_owned());
        }
        features
    }

    /// Names of the back ends, each once.
    pub(crate) fn engine(&self) -> String {
        let mut names: Vec<_> = self
            .plan
            .backends
            .iter()
            .map(|backend| backend.name())
            .collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        names.join("+")
    }
}

/// Threads that issue requests of a stream.
fn threads_of(stream: &Stream, backend: BackendKind) -> u32 {
    if backend.blocks() {
        stream.workers.saturating_mul(stream.depth.max(1))
    } else {
        stream.workers
    }
}

/// Sources of requests for each of the `threads` that share one worker.
fn sources_of(
    plan: &Plan,
    index: usize,
    worker: u32,
    threads: u32,
) -> Result<Vec<Source>, EngineError> {
    let stream = &plan.workload.streams[index];
    let seed = plan.workload.seed;
    let arrivals = Arrivals::new(stream, index, worker, seed);
    let origin = stream.start_delay_ns;
    if let Some(names) = names(plan, index, worker)? {
        let feed = Arc::new(Mutex::new(NameFeed::new(names, arrivals, origin)));
        return Ok((0..threads)
            .map(|_| Source::Names(Arc::clone(&feed)))
            .collect());
    }
    let feed = Feed::new(requests(plan, index, worker)?, arrivals, origin);
    if threads == 1 {
        return Ok(vec![Source::Own(Box::new(feed))]);
    }
    let feed = Arc::new(Mutex::new(feed));
    Ok((0..threads)
        .map(|_| Source::Shared(Arc::clone(&feed)))
        .collect())
}

/// Operations of one worker, if the stream works on names.
fn names(plan: &Plan, index: usize, worker: u32) -> Result<Option<NameStream>, EngineError> {
    let stream = &plan.workload.streams[index];
    let Some(names) = &stream.names else {
        return Ok(None);
    };
    NameStream::new(stream, names, index, worker, plan.workload.seed)
        .map(Some)
        .map_err(|error| unfit(stream, &error))
}

/// The budget that a worker's threads share, if it ends by passes.
fn passes(sources: &[Source], depth: u32) -> Option<Arc<PassBudget>> {
    let (total, chunk, ended_by) = match sources.first()?.passes()? {
        Passes::Requests(total) => (total, REQUEST_CHUNK, EndedBy::Requests),
        Passes::Bytes(total) => (total, BYTE_CHUNK, EndedBy::Bytes),
    };
    let budget = Budget::new(total, depth, chunk);
    Some(Arc::new(PassBudget { budget, ended_by }))
}

fn requests(plan: &Plan, index: usize, worker: u32) -> Result<RequestStream, EngineError> {
    let workload = &plan.workload;
    let stream = &workload.streams[index];
    let target = &plan.targets[index];
    let sizes = target.sizes(workload, stream);
    sizes
        .and_then(|sizes| workload.requests(index, worker, &sizes, target.block_bytes()))
        .map_err(|error| unfit(stream, &error))
}

/// Number of files of a set among which an end fsync needs the changed ones; 0: there is only one.
fn files_to_tell_apart(plan: &Plan, index: usize) -> usize {
    match &plan.targets[index] {
        Target::Files(open) if open.len() > 1 => open.len(),
        _ => 0,
    }
}

fn unfit(stream: &Stream, error: &StreamError) -> EngineError {
    EngineError::Workload {
        stream: stream.name.clone(),
        why: error.to_string(),
    }
}

/// Largest request of a stream, bytes.
pub(crate) fn max_len(plan: &Plan, index: usize) -> u32 {
    if let Ok(Some(names)) = names(plan, index, 0) {
        return names.max_len();
    }
    let block = plan.targets[index].block_bytes();
    RequestStream::max_len(&plan.workload.streams[index], block).unwrap_or(0)
}

/// True if the stream changes anything.
fn changes(stream: &Stream) -> bool {
    match &stream.names {
        Some(names) => names.operation.changes_data(),
        None => stream.mix.changes() > 0.0,
    }
}

fn orders(plan: &Plan, index: usize, may_spin: bool) -> Orders {
    let workload = &plan.workload;
    let stream = &workload.streams[index];
    let counted_from = workload.ramp_ns.max(stream.start_delay_ns);
    let after =
        |from: u64, time: Option<u64>| time.map_or(u64::MAX, |time| from.saturating_add(time));
    Orders {
        stream: index,
        open: matches!(stream.arrival, Arrival::Open { .. }),
        ramp_end: workload.ramp_ns,
        first: stream.start_delay_ns,
        end: after(workload.ramp_ns, workload.end.time_ns)
            .min(after(counted_from, stream.end.time_ns)),
        end_sync: changes(stream)
            && stream.sync.end_fsync
            && !matches!(plan.targets[index], Target::Null { .. }),
        syncs_between: stream.sync.fsync_between,
        exact: plan.options.timestamps == Timestamps::Request,
        cpu_ns: plan.options.cpu_per_request_ns,
        tolerate_errors: plan.options.tolerate_errors,
        may_spin,
    }
}

fn core(plan: &Plan, index: usize, worker: u32, depth: u32, log: Option<log::Log>) -> Core {
    let workload = &plan.workload;
    let stream = &workload.streams[index];
    let open = matches!(stream.arrival, Arrival::Open { .. });
    let thinker = Thinker::new(stream, index, worker, workload.seed).filter(|_| !open);
    Core::new(
        depth as usize,
        recorder(plan, index),
        workload.ramp_ns,
        open,
        thinker,
        log,
    )
}

/// The recorder of a stream's requests in one worker.
pub(crate) fn recorder(plan: &Plan, index: usize) -> StreamRecorder {
    let workload = &plan.workload;
    let stream = &workload.streams[index];
    let kinds = OpKind::made_by(stream);
    let Orders {
        open,
        end,
        end_sync,
        ..
    } = orders(plan, index, false);
    let has_end = end != u64::MAX;
    StreamRecorder::new(&Recording {
        kinds: &kinds,
        service: open,
        ramp_ns: workload.ramp_ns,
        start_ns: stream.start_delay_ns,
        interval_ns: plan.options.interval_ns,
        expected_ns: has_end.then(|| end.saturating_sub(workload.ramp_ns)),
        // With an fsync at the end, all earlier writes count, and so does the time of the fsync.
        end_ns: (has_end && !end_sync).then_some(end),
        max_intervals: Recording::DEFAULT_MAX_INTERVALS,
    })
}

/// A descriptor of the engine's own for the caller's file.
#[allow(unsafe_code)]
fn duplicate(fd: RawFd) -> Result<File, EngineError> {
    // SAFETY: it is borrowed for this call only, in which the caller's descriptor is open: `Options::log`.
    let own = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    own.map(File::from)
        .map_err(|error| EngineError::system("cannot write the completion log", &error))
}

/// Start of a thread's stamps: 2^44 stamps away from its neighbour's.
fn stamp_seed(seed: u64, seat: usize) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    seed.wrapping_add(STEP.wrapping_mul((seat as u64) << 44))
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown reason".to_owned())
}
