//! The writers: they write, sync, and note it in the journal before they write anything else.

use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use spindle_measure::Histogram;

use super::content::{NUMBER_MAX, crc32c, fill, stamp};
use super::entry::{BEFORE_MAX, End, Entry, Header, MAGIC};
use super::open::{Aligned, duplicate, write_durably};
use super::plan::{Plan, SyncKind};
use super::sink::{Sink, SinkKind, SinkSyncer};
use crate::StreamFile;
use crate::clock::monotonic_ns;
use crate::error::EngineError;

/// Interval at which the journal is flushed and the writer notes that it is alive.
const BEAT: Duration = Duration::from_millis(100);
/// Interval at which the writers check for the end.
const TICK: Duration = Duration::from_millis(10);
/// Time that a receiver may take to store the beginning and the end of a journal.
const PATIENCE: Duration = Duration::from_secs(15);
const PIECE: usize = 1 << 20;

/// The phase of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DurablePhase {
    /// Reading the target before the first write.
    Look,
    /// Writing.
    Write,
    /// Over.
    Done,
}

/// Counts since writing began.
#[derive(Debug, Clone, Serialize)]
pub struct DurableProgress {
    /// The phase.
    pub phase: DurablePhase,
    /// Time since writing began, ns.
    pub elapsed_ns: u64,
    /// Writes that were acknowledged as durable.
    pub acknowledged: u64,
    /// Syncs (or durable writes) that returned.
    pub syncs: u64,
}

/// The error that ended a test early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// `read`, `write`, `sync` or `journal`.
    pub what: &'static str,
    /// Offset on the target, bytes.
    pub offset: Option<u64>,
    /// The system's number of the error, if it has one.
    pub errno: Option<i32>,
    /// The message.
    pub why: String,
}

/// Latencies, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SyncLatency {
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// The figures of a test.
#[derive(Debug, Clone, Serialize)]
pub struct DurableFigures {
    /// The reason why it ended.
    pub end: End,
    /// The error, if something failed.
    pub failure: Option<Failure>,
    /// Time of writing, ns.
    pub elapsed_ns: u64,
    /// Writes of each worker that were acknowledged as durable.
    pub acknowledged: Vec<u64>,
    /// Syncs (or durable writes) that returned.
    pub syncs: u64,
    /// Time from the call to its return.
    pub sync_latency: SyncLatency,
    /// Share of the workers' time in writes and syncs.
    pub target_fraction: f64,
    /// Share of the workers' time in which the journal was written.
    pub journal_fraction: f64,
    /// Length of the journal, bytes.
    pub journal_bytes: u64,
}

/// A test in progress, on its own threads. It starts when it is made, and ends when it is dropped.
#[derive(Debug)]
pub struct Durability {
    shared: Arc<Shared>,
    supervisor: Mutex<Option<JoinHandle<DurableFigures>>>,
    figures: Mutex<Option<DurableFigures>>,
}

/// State that all threads share.
#[derive(Debug)]
struct Shared {
    phase: AtomicU8,
    began_ns: AtomicU64,
    ended_ns: AtomicU64,
    stop: AtomicBool,
    syncs: AtomicU64,
    acknowledged: Vec<AtomicU64>,
    failure: Mutex<Option<Failure>>,
    sink: Mutex<Sink>,
    over: Mutex<bool>,
    changed: Condvar,
}

/// The measurements of one worker.
struct WorkerTimes {
    syncs: Histogram,
    target_ns: u64,
    journal_ns: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Durability {
    /// Starts: `targets` is the target, opened once for each worker, for reading and writing (with O_DSYNC where the plan
    /// says so), `journal` is open for writing; all stay the caller's and must stay open until the test is over.
    /// `seconds`: time of writing; None: until it is stopped.
    ///
    /// Opened once for each: the kernel reports a page that it could not write once per open file, so a worker
    /// that shared one could see another's success although its own data is lost (Documentation/filesystems/vfs.rst,
    /// "Handling errors during writeback").
    pub fn start(
        header: Header,
        targets: &[StreamFile],
        journal: RawFd,
        kind: SinkKind,
        seconds: Option<f64>,
    ) -> Result<Durability, EngineError> {
        let misfit = |why: String| EngineError::Workload {
            stream: "durability".to_owned(),
            why,
        };
        let plan = &header.plan;
        plan.check().map_err(|error| misfit(error.to_string()))?;
        let (workers, files) = (plan.workers as usize, targets.len());
        let Some(target) = targets.first().filter(|_| files == workers) else {
            return Err(misfit(format!(
                "{workers} workers, but {files} descriptors of the target"
            )));
        };
        plan.check_room(target.size_bytes)
            .map_err(|error| misfit(error.to_string()))?;
        if !plan.block_bytes.is_multiple_of(target.block_bytes.max(1)) {
            let unit = target.block_bytes;
            return Err(misfit(format!(
                "block {} B: must be a multiple of {unit} B on this target",
                plan.block_bytes
            )));
        }
        let Some(run) = header.run_number() else {
            return Err(misfit(
                "the run's number is not 16 hexadecimal digits".to_owned(),
            ));
        };
        let system = |what: &str, error: &io::Error| EngineError::system(what, error);
        let files = targets
            .iter()
            .map(|target| duplicate(target.fd).map(File::from))
            .collect::<io::Result<Vec<File>>>()
            .map_err(|error| system("target", &error))?;
        let (sink, keeper) = Sink::new(journal, kind).map_err(|error| system("journal", &error))?;
        let shared = Arc::new(Shared {
            phase: AtomicU8::new(0),
            began_ns: AtomicU64::new(0),
            ended_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
            acknowledged: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            failure: Mutex::new(None),
            sink: Mutex::new(sink),
            over: Mutex::new(false),
            changed: Condvar::new(),
        });
        let supervisor = Supervisor {
            shared: Arc::clone(&shared),
            header,
            run,
            files,
            align: target.memory_align as usize,
            keeper,
            time: seconds.map(Duration::from_secs_f64),
        };
        let thread = std::thread::Builder::new()
            .name("durability".to_owned())
            .spawn(move || supervisor.carry_out())
            .map_err(|error| system("thread", &error))?;
        Ok(Durability {
            shared,
            supervisor: Mutex::new(Some(thread)),
            figures: Mutex::new(None),
        })
    }

    /// The current phase and counts.
    pub fn progress(&self) -> DurableProgress {
        self.shared.progress()
    }

    /// Ends it after the current sync of each worker.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// True if it is over; waits up to `timeout` for the end.
    pub fn wait(&self, timeout: Duration) -> bool {
        let over = lock(&self.shared.over);
        let waited = self
            .shared
            .changed
            .wait_timeout_while(over, timeout, |over| !*over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The figures of the test; waits for the end.
    pub fn finish(&self) -> Result<DurableFigures, EngineError> {
        let mut figures = lock(&self.figures);
        if let Some(thread) = lock(&self.supervisor).take() {
            let done = thread.join().map_err(|panic| EngineError::WorkerPanicked {
                stream: "durability".to_owned(),
                worker: 0,
                why: panic_text(&*panic),
            })?;
            *figures = Some(done);
        }
        figures.clone().ok_or_else(|| EngineError::System {
            what: "durability".to_owned(),
            why: "its figures are lost".to_owned(),
        })
    }
}

impl Drop for Durability {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = lock(&self.supervisor).take() {
            let _ = thread.join();
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "unknown".to_owned())
}

impl Shared {
    fn progress(&self) -> DurableProgress {
        let phase = match self.phase.load(Ordering::Acquire) {
            0 => DurablePhase::Look,
            1 => DurablePhase::Write,
            _ => DurablePhase::Done,
        };
        let end = match phase {
            DurablePhase::Done => self.ended_ns.load(Ordering::Acquire),
            _ => monotonic_ns(),
        };
        let began = self.began_ns.load(Ordering::Acquire);
        DurableProgress {
            phase,
            elapsed_ns: if began == 0 {
                0
            } else {
                end.saturating_sub(began)
            },
            acknowledged: self
                .acknowledged
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .sum(),
            syncs: self.syncs.load(Ordering::Relaxed),
        }
    }

    /// The first failure is the one that counts; all workers end.
    fn fail(&self, what: &'static str, offset: Option<u64>, error: &io::Error) {
        let failure = Failure {
            what,
            offset,
            errno: error.raw_os_error(),
            why: error.to_string(),
        };
        lock(&self.failure).get_or_insert(failure);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends an entry; false if the journal is lost.
    fn note(&self, entry: &Entry, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        entry.encode(bytes);
        let sent = lock(&self.sink).write(bytes);
        if let Err(error) = &sent {
            self.fail("journal", None, error);
        }
        sent.is_ok()
    }
}

/// The thread that surrounds the workers.
struct Supervisor {
    shared: Arc<Shared>,
    header: Header,
    run: u64,
    /// One for each worker.
    files: Vec<File>,
    align: usize,
    keeper: SinkSyncer,
    time: Option<Duration>,
}

impl Supervisor {
    fn carry_out(mut self) -> DurableFigures {
        let mut worked = Vec::new();
        let mut by_time = false;
        if self.open_journal() {
            self.shared
                .began_ns
                .store(monotonic_ns(), Ordering::Release);
            self.shared.phase.store(1, Ordering::Release);
            (worked, by_time) = self.write();
        }
        let now = monotonic_ns();
        let began = self.shared.began_ns.load(Ordering::Acquire);
        self.shared.ended_ns.store(now, Ordering::Release);
        let elapsed_ns = if began == 0 { 0 } else { now - began };
        let end = if lock(&self.shared.failure).is_some() {
            End::Error
        } else if by_time {
            End::Time
        } else {
            End::Stopped
        };
        self.close_journal(end, elapsed_ns);
        let figures = self.figures(end, elapsed_ns, &worked);
        self.shared.phase.store(2, Ordering::Release);
        *lock(&self.shared.over) = true;
        self.shared.changed.notify_all();
        figures
    }

    /// Notes the plan and the content from before; false if that failed or it was stopped.
    fn open_journal(&mut self) -> bool {
        let mut bytes = MAGIC.to_vec();
        Entry::Header(Box::new(self.header.clone())).encode(&mut bytes);
        if let Err(error) = lock(&self.shared.sink).write(&bytes) {
            self.shared.fail("journal", None, &error);
            return false;
        }
        if !self.note_before() || !self.shared.note(&Entry::Begin, &mut bytes) {
            return false;
        }
        let written = lock(&self.shared.sink).written();
        if let Err(error) = self.keeper.settle(written, PATIENCE) {
            self.shared.fail("journal", None, &error);
            return false;
        }
        !self.shared.stopped()
    }

    /// Notes check sums of the target before the first write.
    fn note_before(&mut self) -> bool {
        let plan = &self.header.plan;
        let block_bytes = plan.block_bytes as usize;
        let per_piece = (PIECE / block_bytes).clamp(1, BEFORE_MAX);
        let mut memory = Aligned::new(per_piece * block_bytes, self.align);
        let mut bytes = Vec::new();
        let mut first = 0;
        while first < plan.blocks() {
            if self.shared.stopped() {
                return false;
            }
            let count = (per_piece as u64).min(plan.blocks() - first) as usize;
            let piece = &mut memory.bytes()[..count * block_bytes];
            let offset = first * u64::from(plan.block_bytes);
            if let Err(error) = self.files[0].read_exact_at(piece, offset) {
                self.shared.fail("read", Some(offset), &error);
                return false;
            }
            let sums = piece.chunks(block_bytes).map(crc32c).collect();
            if !self.shared.note(&Entry::Before { first, sums }, &mut bytes) {
                return false;
            }
            first += count as u64;
        }
        true
    }

    /// Runs the workers; returns their measurements, and true if their time was over.
    fn write(&mut self) -> (Vec<WorkerTimes>, bool) {
        let began = Instant::now();
        let mut by_time = false;
        let worked = std::thread::scope(|scope| {
            let (shared, plan) = (&self.shared, &self.header.plan);
            let (run, align) = (self.run, self.align);
            let mut threads = Vec::new();
            for (number, file) in (0..).zip(&self.files) {
                let worker = Worker {
                    shared,
                    plan,
                    file,
                    run,
                    number,
                };
                let named = std::thread::Builder::new().name(format!("writer-{number}"));
                match named.spawn_scoped(scope, move || worker.work(align)) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => shared.fail("thread", None, &error),
                }
            }
            let mut bytes = Vec::new();
            let mut beat = Instant::now();
            while threads.iter().any(|thread| !thread.is_finished()) {
                if self.time.is_some_and(|time| began.elapsed() >= time) {
                    by_time = !shared.stopped() || by_time;
                    shared.stop.store(true, Ordering::Relaxed);
                }
                if beat.elapsed() < BEAT || shared.stopped() {
                    std::thread::sleep(TICK);
                    continue;
                }
                beat = Instant::now();
                let at_ns = monotonic_ns() - shared.began_ns.load(Ordering::Relaxed);
                shared.note(&Entry::Alive { at_ns }, &mut bytes);
                if let Err(error) = self.keeper.keep(TICK) {
                    shared.fail("journal", None, &error);
                }
            }
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect()
        });
        (worked, by_time)
    }

    fn close_journal(&mut self, end: End, at_ns: u64) {
        let mut bytes = Vec::new();
        let lost =
            |failure: &Option<Failure>| failure.as_ref().is_some_and(|it| it.what == "journal");
        if lost(&lock(&self.shared.failure))
            || !self.shared.note(&Entry::End { at_ns, end }, &mut bytes)
        {
            return;
        }
        let written = lock(&self.shared.sink).written();
        if let Err(error) = self.keeper.settle(written, PATIENCE) {
            self.shared.fail("journal", None, &error);
        }
    }

    fn figures(&self, end: End, elapsed_ns: u64, worked: &[WorkerTimes]) -> DurableFigures {
        let mut syncs = Histogram::new();
        for worker in worked {
            syncs.merge(&worker.syncs);
        }
        let percentile = |percent| syncs.value_at_percentile(percent).unwrap_or(0);
        let time = (elapsed_ns as f64 * worked.len() as f64).max(1.0);
        let share = |of: fn(&WorkerTimes) -> u64| worked.iter().map(of).sum::<u64>() as f64 / time;
        DurableFigures {
            end,
            failure: lock(&self.shared.failure).clone(),
            elapsed_ns,
            acknowledged: self
                .shared
                .acknowledged
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .collect(),
            syncs: syncs.count(),
            sync_latency: SyncLatency {
                mean_ns: if syncs.count() == 0 {
                    0.0
                } else {
                    syncs.mean_ns()
                },
                p50_ns: percentile(50.0),
                p99_ns: percentile(99.0),
                max_ns: if syncs.count() == 0 {
                    0
                } else {
                    syncs.max_ns()
                },
            },
            target_fraction: share(|worker| worker.target_ns),
            journal_fraction: share(|worker| worker.journal_ns),
            journal_bytes: lock(&self.shared.sink).written(),
        }
    }
}

/// One writer.
struct Worker<'a> {
    shared: &'a Shared,
    plan: &'a Plan,
    file: &'a File,
    run: u64,
    number: u32,
}

impl Worker<'_> {
    fn work(&self, align: usize) -> WorkerTimes {
        let mut memory = Aligned::new(self.plan.block_bytes as usize, align);
        fill(memory.bytes(), self.run ^ u64::from(self.number) << 32);
        let mut worked = WorkerTimes {
            syncs: Histogram::new(),
            target_ns: 0,
            journal_ns: 0,
        };
        let began_ns = self.shared.began_ns.load(Ordering::Relaxed);
        let mut entry = Vec::new();
        let mut next = 1;
        for end in self.plan.batches(self.number) {
            if self.shared.stopped() || end > NUMBER_MAX {
                break;
            }
            let start = monotonic_ns();
            while next < end {
                if !self.write(&mut memory, next) {
                    return worked;
                }
                next += 1;
            }
            // The last write and the sync: either of them makes the batch durable.
            let synced = monotonic_ns();
            if !self.write(&mut memory, next) {
                return worked;
            }
            next += 1;
            let before_sync = if self.plan.sync.is_per_write() {
                synced
            } else {
                monotonic_ns()
            };
            if let Err(error) = self.sync() {
                self.shared.fail("sync", None, &error);
                return worked;
            }
            let now = monotonic_ns();
            worked.syncs.record(now - before_sync);
            worked.target_ns += now - start;
            let acked = Entry::Acked {
                worker: self.number,
                count: end,
                at_ns: now - began_ns,
            };
            if !self.shared.note(&acked, &mut entry) {
                return worked;
            }
            worked.journal_ns += monotonic_ns() - now;
            self.shared.acknowledged[self.number as usize].store(end, Ordering::Relaxed);
            self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        }
        worked
    }

    /// Carries out a write; false if it failed.
    fn write(&self, memory: &mut Aligned, number: u64) -> bool {
        let offset = self
            .plan
            .offset(self.number, self.plan.block(self.number, number));
        let block = memory.bytes();
        stamp(block, self.run, self.number, offset, number);
        let written = if self.plan.sync == SyncKind::Fua {
            write_all_durably(self.file, block, offset)
        } else {
            self.file.write_all_at(block, offset)
        };
        if let Err(error) = &written {
            self.shared.fail("write", Some(offset), error);
        }
        written.is_ok()
    }

    fn sync(&self) -> io::Result<()> {
        match self.plan.sync {
            SyncKind::Fsync => self.file.sync_all(),
            SyncKind::Fdatasync => self.file.sync_data(),
            SyncKind::Dsync | SyncKind::Fua | SyncKind::None => Ok(()),
        }
    }
}

fn write_all_durably(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match write_durably(file, bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
