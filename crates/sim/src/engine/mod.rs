//! The machine at work: events in the order of their times, from the load through the array to the drives and back.
//!
//! The way of a request: `threads` (the load's calls and who has the processor), `issue` (its bios, and `rows` of the stripe
//! cache), `send` (plugs, queues, sleep), `dispatch` (elevators and drives), `complete` and back to the threads.
//!
//! One thread, integer nanoseconds, no allocation once everything has been as busy as it gets. Several events at one
//! time are dealt with in a fixed order: drives, timers of elevators, alarms of the load, the rebuild.

mod backlog;
mod batches;
mod bio;
mod bitmap;
mod buffered;
mod complete;
mod dispatch;
mod events;
mod fabric;
mod fair;
mod files;
mod flush;
mod growth;
mod iowq;
mod issue;
mod journal;
mod load;
mod locks;
mod metadata;
mod pace;
mod plug;
mod queue;
mod rebuild;
mod retry;
mod rows;
mod send;
mod slab;
mod stripes;
mod tags;
mod threads;
mod throttle;
mod trace;

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spindle_array::MemberRequest;
use spindle_drive::Completion;
use spindle_measure::{
    CpuFigures, EndedBy, GeneratorFigures, OpKind, RunFacts, RunFigures, WorkerFigures,
};
use spindle_workload::Workload;

use self::backlog::Backlog;
use self::bio::{Bio, Chain};
pub(crate) use self::bitmap::Bitmap;
use self::events::{Events, NEVER, Silence};
use self::fabric::Piece;
pub(crate) use self::fabric::{Fabric, Setup, StripeRules};
use self::fair::{Fair, Turns};
pub(crate) use self::files::lay_out;
use self::growth::Growth;
use self::iowq::IoThreads;
use self::journal::Journal;
use self::load::Load;
use self::plug::Plug;
pub(crate) use self::queue::{Limits, Queue};
pub(crate) use self::rebuild::{Method, Rebuild};
use self::send::Behind;
use self::slab::Slab;
pub(crate) use self::tags::word_width;
use self::threads::{Postponed, Ready};
pub(crate) use self::throttle::ThrottleSetup;
use self::trace::Trace;
use crate::cache::{CacheSetup, PageCache};
use crate::error::SimError;
use crate::figures::SimFigures;
use crate::kernel::Kernel;
use crate::machine::{Files, LeftInStripes, Log, NewFile};
use crate::progress::Progress;
use crate::request::Id;
use crate::ticks::Ticks;

/// Number of events between two checks for a stop.
const LOOK: u64 = 4096;
/// Blocks of this many bytes.
const BLOCK: u64 = 512;

/// The outcome of a step of the engine. The error is kept elsewhere, so that success, with which nearly all steps end, is
/// handed back in a register.
type Outcome<T = ()> = Result<T, Box<SimError>>;

/// Options of a run.
#[derive(Default)]
pub struct SimOptions {
    /// Destination of the trace: every command of every drive as a line of CSV.
    pub trace: Option<Box<dyn Write + Send>>,
    /// Interval of the time series, ns; 0 for one second.
    pub interval_ns: u64,
    /// Set from elsewhere to end the run early; figures up to then are kept.
    pub stop: Option<Arc<AtomicBool>>,
    /// Destination of the run's progress.
    pub progress: Option<Arc<Progress>>,
    /// Offsets in bytes for the requests of each stream, in the order of issue, instead of those that its pattern
    /// draws; once they are used up, the pattern's.
    pub places: Vec<Vec<u64>>,
    /// Each request has a system call of its own, which sleeps until the request has a place in the queue
    /// (`io_submit` of one). Otherwise a worker hands over all that it has in one call, as Spindle's own do with
    /// io_uring: under a plug if there are more than two.
    pub one_call_each: bool,
    /// Time of the first timer tick whose number is a multiple of 8: long timers end with such ones only.
    pub first_tick_ns: u64,
    /// Time for which a thread of the load has the processor before its first request, but for the first that has it.
    pub thread_start_ns: u64,
    /// The load opens the test file of a `[filesystem]` itself; otherwise it is open.
    pub opens_file: bool,
}

/// The target of the load's requests.
pub(crate) enum Target {
    /// One drive, from this block on.
    Drive {
        start: u64,
    },
    Array(Box<Fabric>),
}

/// The settings of the host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) kernel: Kernel,
    /// CPU time of a request.
    pub(crate) cpu_ns: u64,
    /// Time that a thread's reading of the clock takes; those of interrupts take none. With it there is one processor.
    pub(crate) reading_ns: u64,
    /// Time of md's thread for a page of the stripe cache that it copies or computes parity from.
    pub(crate) stripe_page_ns: u64,
    /// Every drive takes discards, and the array passes them on.
    pub(crate) takes_discards: bool,
    /// First byte of the load's target on the array or drive.
    pub(crate) partition_start: u64,
    /// The file system of the load's files.
    pub(crate) files: Option<Files>,
    /// The log of a `[filesystem]`, and whether its writes are between flushes.
    pub(crate) log: Option<(Log, bool)>,
    /// First byte and bytes of what is read when its test file is opened.
    pub(crate) inode: Option<(u64, u64)>,
    /// The load's file is in XFS, of a `[filesystem]`.
    pub(crate) is_xfs: bool,
    /// The flusher's writes are marked as such (`REQ_BACKGROUND`).
    pub(crate) marks_write_back: bool,
}

pub(crate) struct Engine {
    now_ns: u64,
    rules: Rules,
    target: Target,
    queues: Vec<Queue>,
    events: Events,
    bios: Slab<Bio>,
    /// The plug of the thread that works: a worker, or md's own.
    plug: Plug,
    load: Load,
    /// Absent if no stream uses it.
    cache: Option<Box<PageCache>>,
    /// The file that the load makes.
    growth: Option<Box<Growth>>,
    /// Absent without `[files]`.
    journal: Option<Box<Journal>>,
    capacity: u64,
    finished: Backlog<(usize, Completion)>,
    /// Queues that received bios and have not been run since.
    touched: Vec<u32>,
    /// Queues in which requests have become parts of others while threads wait for one.
    merged: Vec<u32>,
    is_touched: Vec<bool>,
    /// Bios that the throttle of write-back lets in, with their queues; their threads are ready.
    let_in: Vec<(u32, Chain)>,
    /// The thread that touched the queue runs it itself. Others are left to the block layer's thread (kblockd).
    is_run: Vec<bool>,
    /// Requests that the drive is to get at once.
    started: Vec<Id>,
    requests: Vec<MemberRequest>,
    /// Pieces of a read of a mirror.
    pieces: Vec<Piece>,
    /// Slots with a row that the stripe cache has finished.
    returned: VecDeque<u32>,
    /// Slots whose flush is done.
    flushed: Vec<u32>,
    /// Workers whose last row got a head.
    awake: Vec<u32>,
    /// md's thread is at work.
    md_runs: bool,
    /// Which thread has the processor, if reading the clock takes time and md has a thread for rows.
    fair: Option<Fair>,
    /// md's thread has lost the processor, with requests under its plug.
    md_has_plug: bool,
    /// md's thread copies and computes until then.
    md_free_ns: u64,
    /// The same between the load's threads.
    turns: Option<Turns>,
    /// Absent if there are always enough of them.
    io_threads: Option<IoThreads>,
    /// Bios that threads which sleep have to send yet, in order: the thread, the queue, the bio. What has left a plug does
    /// not wait here: it has its place in the throttle, and others wait for it.
    behind: VecDeque<Behind>,
    /// Their threads, each as often as it has bios that wait for a request.
    asleep: Vec<u32>,
    /// Workers with free slots that have seen all completions of the moment next.
    ready: Backlog<Ready>,
    /// An interrupt is being dealt with.
    in_interrupt: bool,
    /// `SimOptions::thread_start_ns`, and whether the first thread has begun.
    thread_start_ns: u64,
    has_begun: bool,
    /// Work that interrupts leave to threads.
    postponed: VecDeque<Postponed>,
    /// md is to begin a flush of its members at the end of this moment.
    has_md_flush: bool,
    /// Slots whose request a worker sees as done without having spent time on it.
    seen_now: VecDeque<u32>,
    /// Slots whose requests go in one call.
    batch: Vec<u32>,
    one_call_each: bool,
    /// Not threads but queues hold requests up (until 2.6.38).
    has_plugged_queues: bool,
    /// Writes to copies that md's thread will send.
    pending: VecDeque<(u32, Chain)>,
    /// Queues whose adapter takes no more commands, in line.
    starving: VecDeque<u32>,
    /// A bio of the present request waits for a place in its queue.
    sleeps: bool,
    /// The target is an array of copies.
    has_mirrors: bool,
    /// The target is an array with a stripe cache.
    has_parity: bool,
    /// The array has a write-intent bitmap.
    has_bitmap: bool,
    /// A member was being rebuilt when the run began.
    is_rebuilding: bool,
    /// No page cache, stripe cache or rebuild, and reading the clock takes no time: only the load's threads run.
    is_plain: bool,
    /// A request of the load that held up the rebuild is done, or a row of its own.
    rebuild_awake: bool,
    /// Units of it are done.
    unit_ended: bool,
    trace: Option<Trace>,
    stop: Option<Arc<AtomicBool>>,
    progress: Option<Arc<Progress>>,
    counted: u64,
    silence: Silence,
}

impl Engine {
    pub(crate) fn new(
        mut target: Target,
        mut queues: Vec<Queue>,
        capacity: u64,
        rules: Rules,
        cache: CacheSetup,
        workload: &Workload,
        options: SimOptions,
    ) -> Result<Engine, SimError> {
        let interval_ns = match options.interval_ns {
            0 => 1_000_000_000,
            interval_ns => interval_ns,
        };
        let mut load = Load::new(
            workload,
            capacity,
            BLOCK as u32,
            interval_ns,
            rules.takes_discards,
            rules.reading_ns > 0 && rules.kernel.runs_first_threads_last(),
        )?;
        load.set_places(options.places);
        let ticks = Ticks::new(options.first_tick_ns);
        let log_slot = load.slots.len() as u32;
        let journal = match (rules.files, rules.log) {
            (Some(files), _) => Some(Journal::new(files, capacity, log_slot)),
            (None, Some((log, flushes))) => {
                Some(Journal::of_file_system(log, flushes, ticks, log_slot))
            }
            (None, None) => None,
        };
        if journal.is_some() {
            load.slots.extend(Journal::slots());
        }
        let mut journal = journal.map(Box::new);
        if let Some(journal) = &mut journal {
            let inode = rules.inode.filter(|_| options.opens_file);
            journal.opening.extend(inode.map(|place| vec![place]));
        }
        let buffered = load.streams.iter().any(|stream| stream.buffered);
        let has_mirrors = matches!(&target, Target::Array(fabric) if fabric.has_mirrors());
        let has_parity = matches!(&target, Target::Array(fabric) if fabric.stripes.is_some());
        let has_bitmap = matches!(&target, Target::Array(fabric) if fabric.bitmap.is_some());
        let passes_on = (has_mirrors || has_parity)
            && workload.streams.iter().any(|stream| stream.mix.writes());
        if !buffered && !passes_on {
            // There is nothing to throttle.
            queues.iter_mut().for_each(Queue::drop_throttle);
        }
        queues.iter_mut().for_each(|queue| queue.follow(ticks));
        if let Target::Array(fabric) = &mut target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            rebuild.follow(ticks);
        }
        let slots = load.slots.len() as u32;
        let cache = buffered.then(|| Box::new(PageCache::new(cache, slots)));
        let is_rebuilding = matches!(&target, Target::Array(fabric) if fabric.rebuild.is_some());
        Ok(Engine {
            now_ns: 0,
            rules,
            events: Events::new(
                2 * queues.len() + 2,
                // A kernel in which nothing takes time has no order that could be followed.
                if rules.reading_ns > 0 {
                    queues.len()
                } else {
                    0
                },
            ),
            bios: Slab::with_capacity(256),
            plug: Plug::default(),
            finished: Backlog::with_capacity(64),
            touched: Vec::with_capacity(queues.len()),
            merged: Vec::new(),
            is_touched: vec![false; queues.len()],
            let_in: Vec::new(),
            is_run: vec![false; queues.len()],
            started: Vec::with_capacity(64),
            requests: Vec::with_capacity(64),
            pieces: Vec::with_capacity(64),
            returned: VecDeque::with_capacity(64),
            flushed: Vec::new(),
            awake: Vec::new(),
            md_runs: false,
            turns: (!has_parity && rules.reading_ns > 0 && rules.kernel.runs_first_threads_last())
                .then(|| Turns::new(load.workers.len(), ticks.first_ns())),
            md_has_plug: false,
            md_free_ns: 0,
            fair: (has_parity && rules.reading_ns > 0).then(|| Fair::new(ticks.first_ns())),
            io_threads: (rules.kernel.multi_queue()
                && rules.reading_ns > 0
                && !options.one_call_each)
                .then(|| IoThreads::new(load.workers.len(), load.slots.len())),
            behind: VecDeque::new(),
            asleep: Vec::new(),
            ready: Backlog::with_capacity(64),
            in_interrupt: false,
            thread_start_ns: options.thread_start_ns,
            has_begun: false,
            postponed: VecDeque::new(),
            has_md_flush: false,
            seen_now: VecDeque::new(),
            batch: Vec::new(),
            one_call_each: options.one_call_each,
            pending: VecDeque::new(),
            starving: VecDeque::new(),
            has_plugged_queues: rules.kernel.plugs_queues(),
            sleeps: false,
            has_mirrors,
            has_parity,
            has_bitmap,
            is_rebuilding,
            is_plain: cache.is_none() && !has_parity && !is_rebuilding && rules.reading_ns == 0,
            rebuild_awake: false,
            unit_ended: false,
            trace: options.trace.map(Trace::new),
            stop: options.stop,
            progress: options.progress,
            counted: 0,
            silence: Silence::default(),
            capacity,
            cache,
            growth: None,
            journal,
            load,
            target,
            queues,
        })
    }

    /// Runs the load to its end.
    pub(crate) fn run(mut self, workload: &Workload) -> Result<SimFigures, SimError> {
        self.carry_out().map_err(|error| *error)?;
        self.figures(workload)
    }

    /// Runs the load to its end: rows that the stripe cache has grown to, if there is one.
    pub(crate) fn grown_stripe_cache(mut self) -> Result<Option<u32>, SimError> {
        self.carry_out().map_err(|error| *error)?;
        Ok(match &self.target {
            Target::Array(fabric) => fabric.stripes.as_ref().map(|of| of.size()),
            Target::Drive { .. } => None,
        })
    }

    fn carry_out(&mut self) -> Outcome {
        let alarms = 2 * self.queues.len();
        self.begin_rebuild()?;
        self.settle()?;
        while self.load.active > 0 || self.is_draining() {
            let (now_ns, source) = self.events.first();
            if now_ns == NEVER {
                return Err(self.stands_still());
            }
            self.now_ns = now_ns.max(self.now_ns);
            self.counted += 1;
            if self.counted.is_multiple_of(LOOK) {
                self.publish();
                if self.is_stopped() {
                    self.stop_now();
                    break;
                }
            }
            if source < self.queues.len() {
                self.advance(source);
                if self.finished.is_empty() && self.is_the_drives_own(source) {
                    self.note_events(source);
                    continue;
                }
                self.touch(source);
            } else if source < alarms {
                let queue = source - self.queues.len();
                if self.queues[queue].timer(self.now_ns) {
                    while let Some(chain) = self.queues[queue].let_in(self.now_ns, true) {
                        self.note_let_in(queue, chain);
                    }
                }
                self.touch(queue);
            } else if source == alarms {
                // While a thread works, only drives have events.
                self.events.set(alarms, NEVER);
                let mut repeats = true;
                while let Some(alarm) = self.load.ring(self.now_ns) {
                    repeats &= alarm.repeats();
                    self.alarm(alarm)?;
                }
                if repeats && self.silence.lasts(self.now_ns, self.counted) {
                    self.expect_alarm()?;
                }
            } else {
                self.events.set(source, NEVER);
                self.work_on_rebuild()?;
            }
            self.settle()?;
        }
        self.publish();
        Ok(())
    }

    #[cold]
    fn stands_still(&self) -> Box<SimError> {
        Box::new(SimError::Standstill {
            now_ns: self.now_ns,
        })
    }

    /// Nothing has happened for long: an error if nothing will.
    fn expect_alarm(&self) -> Outcome {
        match self.load.has_alarm() {
            true => Ok(()),
            false => Err(self.stands_still()),
        }
    }

    /// True if an event of a drive that finished nothing changes nothing else: its queue has nothing to hand over, and
    /// nobody but drives and the load has work.
    #[inline]
    fn is_the_drives_own(&self, queue: usize) -> bool {
        self.queues[queue].is_quiet()
            && self.rules.reading_ns == 0
            && !self.has_parity
            && !self.is_rebuilding
            && self.cache.is_none()
    }

    /// The load is over, and pages that were read ahead are still under way.
    fn is_draining(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.under_way > 0)
    }

    /// Publishes the progress.
    fn publish(&self) {
        if let Some(progress) = &self.progress {
            progress.reach(self.now_ns);
            for (index, stream) in self.load.streams.iter().enumerate() {
                progress.set(index, &stream.recorder.totals());
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop
            .as_ref()
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Someone asked it to stop: requests under way are given up.
    fn stop_now(&mut self) {
        self.load.end_all(self.now_ns, EndedBy::Stopped);
        for stream in &mut self.load.streams {
            stream.recorder.set_outstanding(self.now_ns, 0);
        }
    }

    /// Handles all finished commands, runs the queues that were touched, and notes their next event.
    #[inline]
    fn settle(&mut self) -> Outcome {
        loop {
            self.finish_commands()?;
            if self.rules.reading_ns > 0 {
                self.dispatch()?;
            }
            while let Some(postponed) = self.postponed.pop_front() {
                self.catch_up_on(postponed)?;
            }
            if !self.is_plain {
                self.end_units_and_pages()?;
            }
            if !self.merged.is_empty() {
                self.free_merged()?;
            }
            self.fill_ready()?;
            if self.is_plain {
                self.finish_plug()?;
            } else {
                self.run_other_threads()?;
            }
            if self.is_settled() {
                if !self.has_md_flush {
                    break;
                }
                self.begin_md_flush();
            }
        }
        let alarms = 2 * self.queues.len();
        self.events
            .set(alarms, self.load.next_alarm_ns().unwrap_or(NEVER));
        if let Target::Array(fabric) = &self.target {
            let wakes_ns = fabric.rebuild.as_ref().and_then(Rebuild::wakes_ns);
            self.events.set(alarms + 1, wakes_ns.unwrap_or(NEVER));
        }
        Ok(())
    }

    /// Handles finished commands. The thread that an interrupt wakes runs before the next one comes (`do_idle`).
    #[inline]
    fn finish_commands(&mut self) -> Outcome {
        while let Some(&(queue, _)) = self.finished.first() {
            self.finish_first()?;
            let is_other = |next: &(usize, Completion)| next.0 != queue;
            if self.rules.reading_ns > 0
                && !self.ready.is_empty()
                && self.finished.first().is_some_and(is_other)
            {
                break;
            }
        }
        Ok(())
    }

    /// Units of a rebuild are done, and requests of the page cache.
    #[inline(never)]
    fn end_units_and_pages(&mut self) -> Outcome {
        if std::mem::take(&mut self.unit_ended) {
            self.units_ended()?;
        }
        if self.cache.is_some() {
            while let Some(slot) = self.seen_now.pop_front() {
                self.seen(slot)?;
            }
        }
        Ok(())
    }

    /// The threads besides the load's that only some machines have.
    #[inline(never)]
    fn run_other_threads(&mut self) -> Outcome {
        if self.io_threads.is_some() {
            self.run_ready_threads()?;
        }
        if self.is_rebuilding {
            self.take_turns()?;
        }
        self.run_md(true)?;
        if self.has_parity {
            self.return_rows()?;
        }
        if self.cache.is_some() {
            self.go_on_with_pages()?;
        }
        if self.is_rebuilding {
            self.run_md(true)?;
            if self.has_plugged_queues {
                self.pull_plug()?; // `md_do_sync`, `unplug_slaves`
            }
        }
        Ok(())
    }

    /// Nothing more happens at this moment.
    #[inline]
    fn is_settled(&self) -> bool {
        self.finished.is_empty()
            && self.touched.is_empty()
            && self.merged.is_empty()
            && self.ready.is_empty()
            && self.postponed.is_empty()
            && (self.is_plain || self.is_all_settled())
    }

    fn is_all_settled(&self) -> bool {
        self.seen_now.is_empty()
            && self.io_threads.as_ref().is_none_or(IoThreads::is_quiet)
            && !self.rebuild_awake
            && !self.unit_ended
            && !(self.has_parity && (!self.returned.is_empty() || self.has_rows_to_do()))
            && !self.md_has_plug
    }

    /// The load makes its file, and `opens` it itself. `left`: by mkfs and mount, in the stripe cache if there is one.
    pub(crate) fn make_file(
        &mut self,
        file: NewFile,
        opens: bool,
        left: Option<&LeftInStripes>,
    ) -> Result<(), SimError> {
        if let Some(journal) = &mut self.journal {
            journal.begin_empty();
            if opens {
                journal.opens_with(&file.reads);
            }
        }
        self.queues.iter_mut().for_each(Queue::rest);
        let growth = Growth::new(file);
        if let (Some(cache), Some(pages)) = (&mut self.cache, growth.piece()) {
            cache.setup.piece = pages;
        }
        self.growth = Some(Box::new(growth));
        let written = self
            .journal
            .as_deref_mut()
            .and_then(Journal::written_by_mount);
        let (Some(left), Target::Array(fabric)) = (left, &mut self.target) else {
            return Ok(());
        };
        if let Some(stripes) = &mut fabric.stripes {
            stripes.add_heads(left.grown);
        }
        for (first, bytes) in left.kept.iter().copied().chain(written) {
            fabric.keep_rows(first, bytes)?;
        }
        Ok(())
    }

    /// A stream that issues nothing more and has nothing under way is over, after its last sync.
    fn close(&mut self, index: usize) -> Outcome {
        let now_ns = self.now_ns;
        let stream = &mut self.load.streams[index];
        if stream.issuing || stream.over || stream.in_flight > 0 {
            return Ok(());
        }
        stream.recorder.set_outstanding(now_ns, 0);
        if std::mem::take(&mut stream.end_sync) {
            if stream.buffered {
                stream.in_flight = 1;
                let slot = stream.sync_slot;
                self.load.slots[slot as usize].issued_ns = now_ns;
                return self.begin_sync(slot);
            }
            if self.rules.kernel.flushes() {
                stream.in_flight = 1;
                let slot = stream.sync_slot;
                self.load.slots[slot as usize].issued_ns = now_ns;
                self.load.slots[slot as usize].left = self.flush(slot);
                return Ok(());
            }
            stream.recorder.record(OpKind::Fsync, now_ns, 0, 0);
        }
        stream.over = true;
        self.load.active -= 1;
        self.end_threads(index);
        self.end_others(index)
    }

    /// The threads of a stream that is over end.
    fn end_threads(&mut self, index: usize) {
        for worker in 0..self.load.workers.len() {
            if self.load.workers[worker].stream == index {
                self.end_thread(worker);
            }
        }
    }

    /// A thread that has nothing more to send ends when it has seen its last request: no elevator waits for it. One of them is
    /// to sync at the end of some streams.
    fn end_idle_thread(&mut self, worker: usize) {
        let of = &self.load.workers[worker];
        if of.free.len() == of.depth && !self.load.streams[of.stream].end_sync {
            self.end_thread(worker);
        }
    }

    fn end_thread(&mut self, worker: usize) {
        if std::mem::replace(&mut self.load.workers[worker].has_ended, true) {
            return;
        }
        for queue in 0..self.queues.len() {
            self.queues[queue].exits(self.now_ns, worker as u32);
            self.touch(queue);
        }
    }

    /// Streams that end when another one does.
    fn end_others(&mut self, index: usize) -> Outcome {
        for other in self.load.ended_with(index) {
            let now_ns = self.now_ns;
            let why = self.load.streams[index].ended_by.clone();
            self.load
                .end_stream(other, now_ns, why.unwrap_or(EndedBy::Time));
            self.close(other)?;
        }
        Ok(())
    }

    fn figures(mut self, workload: &Workload) -> Result<SimFigures, SimError> {
        if let Some(trace) = self.trace.take() {
            trace.close()?;
        }
        let mut reasons = Vec::new();
        let mut streams = Vec::with_capacity(self.load.streams.len());
        let mut elapsed_ns = 0;
        let mut workers: Vec<Vec<WorkerFigures>> = vec![Vec::new(); self.load.streams.len()];
        for worker in self.load.workers {
            if let Some(own) = worker.own {
                let record = own.finish(self.load.streams[worker.stream].ended_ns);
                let of_stream = &mut workers[worker.stream];
                of_stream.push(record.worker_figures(of_stream.len() as u32));
            }
        }
        for stream in self.load.streams {
            let record = stream.recorder.finish(stream.ended_ns);
            elapsed_ns = elapsed_ns.max(record.last_ns());
            reasons.extend(stream.ended_by);
            streams.push((stream.name, record));
        }
        let facts = RunFacts {
            elapsed_ns,
            ended_by: self
                .load
                .ended_by
                .or(reasons.pop())
                .unwrap_or(EndedBy::Time),
            cpu: CpuFigures::default(),
            generator: GeneratorFigures {
                engine: "simulator".to_owned(),
                reason: "a modelled machine".to_owned(),
                timestamps: "request".to_owned(),
                ..GeneratorFigures::default()
            },
            steady: self.load.steady,
        };
        debug_assert_eq!(streams.len(), workload.streams.len());
        let mut run = RunFigures::new(streams, facts)?;
        for (stream, workers) in run.streams.iter_mut().zip(workers) {
            stream.workers = workers;
        }
        let rebuild = match &self.target {
            Target::Array(fabric) => fabric.rebuild.as_ref().map(Rebuild::figures),
            Target::Drive { .. } => None,
        };
        Ok(SimFigures {
            run,
            drives: self.queues.into_iter().map(Queue::into_figures).collect(),
            rebuild,
            page_cache: self.cache.as_ref().map(|cache| cache.figures),
            capacity: self.capacity,
            events: self.counted,
        })
    }
}
