//! The machine at work: events in the order of their times, from the load through the array to the drives and back.
//!
//! One thread, integer nanoseconds, no allocation once everything has been as busy as it gets. Several events at one
//! time are dealt with in a fixed order: drives, timers of elevators, alarms of the load, the rebuild.

mod bio;
mod bitmap;
mod buffered;
mod events;
mod fabric;
mod fair;
mod files;
mod growth;
mod iolock;
mod iowq;
mod journal;
mod load;
mod metadata;
mod pace;
mod plug;
mod queue;
mod rebuild;
mod slab;
mod stripes;
mod tags;
mod throttle;
mod ticks;
mod trace;

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spindle_array::{MemberRequest, STRIPE_BLOCK};
use spindle_drive::{Completion, Device, SubmitError};
use spindle_measure::{
    CpuFigures, EndedBy, GeneratorFigures, OpKind, RunFacts, RunFigures, WorkerFigures,
};
use spindle_workload::{Hold, Op, Workload};

use self::bio::{Bio, Chain, Issuer, Manner, Metadata, Owner};
pub(crate) use self::bitmap::Bitmap;
use self::events::{Events, NEVER, Silence};
pub(crate) use self::fabric::{Fabric, Setup, StripeRules};
use self::fabric::{Flushes, Piece};
use self::fair::{Fair, Turns, Who};
pub(crate) use self::files::lay_out;
use self::growth::Growth;
use self::iowq::IoThreads;
use self::journal::Journal;
use self::load::{Alarm, Load, Stage};
use self::plug::Plug;
use self::queue::Finished;
pub(crate) use self::queue::{Limits, Queue};
use self::rebuild::Step;
pub(crate) use self::rebuild::{Method, Rebuild};
use self::slab::Slab;
use self::stripes::{Placed, Requests, RowManner, Stripes};
pub(crate) use self::tags::word_width;
pub(crate) use self::throttle::ThrottleSetup;
use self::ticks::Ticks;
use self::trace::Trace;
use crate::cache::{CacheSetup, PageCache};
use crate::error::SimError;
use crate::figures::SimFigures;
use crate::kernel::Kernel;
use crate::machine::{Files, LeftInStripes, Log, NewFile};
use crate::progress::Progress;
use crate::request::{BlockRequest, Id, NONE, Origin};

/// Number of events between two checks for a stop.
const LOOK: u64 = 4096;
/// Blocks of this many bytes.
const BLOCK: u64 = 512;
/// Blocks of a row of the stripe cache on one member.
const ROW_BLOCKS: u32 = (STRIPE_BLOCK / BLOCK) as u32;
/// Time after which a plug is pulled (`unplug_delay`, 2.6).
const PLUG_NS: u64 = 3_000_000;

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

/// Requests of a call that io_uring plugs are more than these (`IO_PLUG_THRESHOLD`).
const UNPLUGGED: usize = 2;

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

/// Readings of the clock by a thread (Linux 6.1); those in interrupts take no time.
struct Readings;

impl Readings {
    /// Spindle's, before a request.
    const LOAD: u64 = 1;
    /// Spindle's, after it has got what is done.
    const REAPED: u64 = 1;
    /// `bio_issue_init`: bios for md, what md splits off, and bios for members.
    const BIO: u64 = 1;
    /// `__bio_split_to_limits`: the first part, and the rest, which is submitted anew.
    const CUT: u64 = 2 * Self::BIO;
    /// `blk_mq_rq_ctx_init`: `start_time_ns`.
    const REQUEST: u64 = 1;
    /// `blk_mq_start_request`: `io_start_time_ns`, which the throttling of write-back asks for.
    const START: u64 = 1;
}

/// A thread that wants the processor.
#[derive(Debug, Clone, Copy)]
enum Ready {
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
    fn worker(self) -> Option<u32> {
        match self {
            Ready::Worker(worker) => Some(worker),
            Ready::Sleeper { worker, .. } | Ready::LetIn { worker, .. } => worker,
        }
    }
}

/// A bio of a write whose sender sleeps.
struct Behind {
    sender: u32,
    queue: u32,
    chain: Chain,
    /// It goes under the plug.
    plugged: bool,
}

/// Work that an interrupt leaves to threads.
enum Postponed {
    Bio(usize, Bio),
    Flushed(usize, u32),
    LetIn(usize, Chain),
    /// The thread that slept until this bio had a request sends what comes behind.
    Behind(Chain),
    /// The log of a file system is written.
    Log,
}

/// md's thread, as the sender of bios; others have the number of the slot that they work for.
const MD: u32 = u32::MAX;

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
    finished: VecDeque<(u32, Completion)>,
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
    ready: VecDeque<Ready>,
    /// An interrupt is being dealt with.
    in_interrupt: bool,
    /// `SimOptions::thread_start_ns`, and whether the first thread has begun.
    thread_start_ns: u64,
    has_begun: bool,
    /// Work that interrupts leave to threads.
    postponed: VecDeque<Postponed>,
    /// Slots whose request a worker sees as done without having spent time on it.
    seen_now: VecDeque<u32>,
    /// Slots whose requests go in one call.
    batch: Vec<u32>,
    one_call_each: bool,
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
            finished: VecDeque::with_capacity(64),
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
            fair: (has_parity && rules.reading_ns > 0).then(|| Fair::new(ticks.first_ns())),
            io_threads: (rules.kernel.multi_queue()
                && rules.reading_ns > 0
                && !options.one_call_each)
                .then(|| IoThreads::new(load.workers.len(), load.slots.len())),
            behind: VecDeque::new(),
            asleep: Vec::new(),
            ready: VecDeque::new(),
            in_interrupt: false,
            thread_start_ns: options.thread_start_ns,
            has_begun: false,
            postponed: VecDeque::new(),
            seen_now: VecDeque::new(),
            batch: Vec::new(),
            one_call_each: options.one_call_each,
            sleeps: false,
            has_mirrors,
            has_parity,
            has_bitmap,
            is_rebuilding: matches!(&target, Target::Array(fabric) if fabric.rebuild.is_some()),
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
        self.carry_out()?;
        self.figures(workload)
    }

    /// Runs the load to its end: rows that the stripe cache has grown to, if there is one.
    pub(crate) fn grown_stripe_cache(mut self) -> Result<Option<u32>, SimError> {
        self.carry_out()?;
        Ok(match &self.target {
            Target::Array(fabric) => fabric.stripes.as_ref().map(|of| of.size()),
            Target::Drive { .. } => None,
        })
    }

    fn carry_out(&mut self) -> Result<(), SimError> {
        let alarms = 2 * self.queues.len();
        self.begin_rebuild()?;
        self.settle()?;
        while self.load.active > 0 || self.is_draining() {
            let (now_ns, source) = self.events.first();
            if now_ns == NEVER {
                return Err(SimError::Standstill {
                    now_ns: self.now_ns,
                });
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

    /// Nothing has happened for long: an error if nothing will.
    fn expect_alarm(&self) -> Result<(), SimError> {
        match self.load.has_alarm() {
            true => Ok(()),
            false => Err(SimError::Standstill {
                now_ns: self.now_ns,
            }),
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
    fn settle(&mut self) -> Result<(), SimError> {
        loop {
            while let Some((queue, completion)) = self.finished.pop_front() {
                self.finish(queue as usize, &completion)?;
                // The thread that an interrupt wakes runs before the next one comes (`do_idle`).
                let is_other = |next: &(u32, Completion)| next.0 != queue;
                if self.rules.reading_ns > 0
                    && !self.ready.is_empty()
                    && self.finished.front().is_some_and(is_other)
                {
                    break;
                }
            }
            if self.rules.reading_ns > 0 {
                self.dispatch()?;
            }
            while let Some(postponed) = self.postponed.pop_front() {
                self.catch_up_on(postponed)?;
            }
            if std::mem::take(&mut self.unit_ended) {
                self.units_ended()?;
            }
            if self.cache.is_some() {
                while let Some(slot) = self.seen_now.pop_front() {
                    self.seen(slot)?;
                }
            }
            if !self.merged.is_empty() {
                self.free_merged()?;
            }
            self.fill_ready()?;
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
            }
            if self.is_settled() {
                break;
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

    /// Nothing more happens at this moment.
    #[inline]
    fn is_settled(&self) -> bool {
        self.finished.is_empty()
            && self.touched.is_empty()
            && self.merged.is_empty()
            && self.ready.is_empty()
            && self.postponed.is_empty()
            && self.seen_now.is_empty()
            && self.io_threads.as_ref().is_none_or(IoThreads::is_quiet)
            && !self.rebuild_awake
            && !self.unit_ended
            && !(self.has_parity && (!self.returned.is_empty() || self.has_rows_to_do()))
            && !self.md_has_plug
    }

    /// The load sees the rows that the stripe cache has finished; threads whose last row has got a head go on.
    fn return_rows(&mut self) -> Result<(), SimError> {
        while let Some(slot) = self.returned.pop_front() {
            self.row_done(slot)?;
        }
        if self.has_bitmap {
            self.note_rows();
        }
        self.place_rows()?;
        while let Some(worker) = self.awake.pop() {
            if self.one_call_each && self.cache.is_none() {
                // Its call returns.
                self.unplug()?;
            }
            self.go_on(worker as usize)?;
            self.unplug()?;
        }
        Ok(())
    }

    /// Runs the queues that were touched, and notes their next event.
    #[inline]
    fn dispatch(&mut self) -> Result<(), SimError> {
        match self.touched.is_empty() {
            true => Ok(()),
            false => self.run_queues(),
        }
    }

    /// The part of it that only touched queues need.
    fn run_queues(&mut self) -> Result<(), SimError> {
        debug_assert!(self.started.is_empty(), "an interrupt does not run queues");
        while let Some(queue) = self.next_touched() {
            let queue = queue as usize;
            self.is_touched[queue] = false;
            self.is_run[queue] = false;
            if self.queues[queue].has_merged() {
                self.merged.push(queue as u32);
            }
            self.catch_up(queue);
            if self.rules.reading_ns > 0 && self.queues[queue].begins_flush() {
                self.read_clock(Readings::START)?;
            }
            while !self.queues[queue].is_quiet()
                && let Some(request) = self.queues[queue]
                    .next(self.now_ns)
                    .map_err(|error| self.refused(queue, error))?
            {
                if self.rules.reading_ns == 0 {
                    self.hand_over(queue, request)?;
                } else {
                    self.read_clock(Readings::START)?;
                    self.started.push(request);
                }
            }
            // The drive hears of them when the last one is ready (`bd->last`), after all that happened before.
            if !self.started.is_empty() {
                self.pass_events();
                self.catch_up(queue);
            }
            for at in 0..self.started.len() {
                self.hand_over(queue, self.started[at])?;
            }
            self.started.clear();
            self.note_events(queue);
        }
        Ok(())
    }

    /// Drives do what is due; the interrupts come when the processor looks at the clock.
    fn pass_events(&mut self) {
        while let (at_ns, source) = self.events.first()
            && at_ns <= self.now_ns
            && source < self.queues.len()
        {
            self.advance(source);
            self.touch(source);
            self.note_events(source);
        }
    }

    /// False if this queue alone was touched, and has nothing for its drive: then its events can be noted later too.
    #[inline]
    fn has_to_dispatch(&self, queue: usize) -> bool {
        self.touched.len() > 1 || !self.queues[queue].is_quiet()
    }

    /// The order counts only where their requests take time.
    #[inline]
    fn next_touched(&mut self) -> Option<u32> {
        if self.rules.reading_ns == 0 || self.touched.len() < 2 {
            return self.touched.pop();
        }
        Some(self.touched.remove(0))
    }

    #[inline(always)]
    fn hand_over(&mut self, queue: usize, request: Id) -> Result<(), SimError> {
        let now_ns = self.now_ns;
        self.queues[queue]
            .hand_over(now_ns, request)
            .map_err(|error| self.refused(queue, error))
    }

    /// Notes the next events of a queue.
    #[inline(always)]
    fn note_events(&mut self, queue: usize) {
        let of = &self.queues[queue];
        let (event_ns, timer_ns) = (of.drive.next_event_ns(), of.timer_ns());
        self.events.set(queue, event_ns.unwrap_or(NEVER));
        self.events
            .set(self.queues.len() + queue, timer_ns.unwrap_or(NEVER));
    }

    fn refused(&self, queue: usize, error: SubmitError) -> SimError {
        SimError::Refused {
            name: self.queues[queue].figures.name.clone(),
            error,
        }
    }

    #[inline]
    fn touch(&mut self, queue: usize) {
        if !self.is_touched[queue] {
            self.is_touched[queue] = true;
            self.touched.push(queue as u32);
        }
    }

    #[inline]
    fn advance(&mut self, queue: usize) {
        let finished = &mut self.finished;
        self.queues[queue]
            .drive
            .advance(self.now_ns, &mut |completion| {
                finished.push_back((queue as u32, completion));
            });
    }

    /// A drive takes commands only when it has handled all due events.
    #[inline]
    fn catch_up(&mut self, queue: usize) {
        while self.queues[queue]
            .drive
            .next_event_ns()
            .is_some_and(|due_ns| due_ns <= self.now_ns)
        {
            self.advance(queue);
        }
    }

    /// Sends a stretch of a drive, cut where the queue wants it, directly or into the plug; the number of bios.
    #[inline]
    fn send(
        &mut self,
        owner: Owner,
        issuer: Issuer,
        queue: usize,
        (lbn, blocks): (u64, u64),
        manner: Manner,
        plugged: bool,
    ) -> Result<u32, SimError> {
        let most = self.longest(queue, manner.discard, manner.fua);
        let (mut at, end, mut bios) = (lbn, lbn + blocks, 0);
        while at < end {
            let blocks = u64::from(most).min(end - at) as u32;
            let mut bio = Bio::new(owner, issuer, at, blocks, manner);
            let is_of_rows = matches!(owner, Owner::Rows(_));
            if is_of_rows && plugged && blocks > ROW_BLOCKS {
                bio.request.blocks = self.part_of_batch(queue, &bio.request, most);
            }
            let blocks = bio.request.blocks;
            let id = self.bios.add(bio);
            let chain = Chain {
                is_batch: is_of_rows && blocks > ROW_BLOCKS,
                ..Chain::of(id, bio.request)
            };
            if let Target::Array(fabric) = &mut self.target
                && !matches!(owner, Owner::Metadata(_))
            {
                fabric.sent(queue);
            }
            at += u64::from(blocks);
            if self.rules.reading_ns > 0 {
                // Rows of a batch have a bio each.
                let (begun, cut) = match is_of_rows {
                    true => (u64::from(blocks.div_ceil(ROW_BLOCKS)), 0),
                    false => (u64::from(bios == 0), u64::from(at < end) * Readings::CUT),
                };
                let first = match plugged && begun > 1 {
                    true => self.send_first_of_batch(queue, &chain)?,
                    false => 0,
                };
                self.read_clock((begun * Readings::BIO + cut).saturating_sub(first))?;
            }
            bios += 1;
            if let Some(sender) = self.asleep_sender(&chain) {
                let (queue, plugged) = (queue as u32, plugged);
                self.behind.push_back(Behind {
                    sender,
                    queue,
                    chain,
                    plugged,
                });
            } else if plugged {
                self.send_plugged(queue, chain)?;
            } else {
                self.enqueue(queue, chain, false)?;
            }
        }
        Ok(bios)
    }

    /// Blocks of a batch of rows that go on together: the newest request under the plug may have room for some of them.
    fn part_of_batch(&self, queue: usize, batch: &BlockRequest, most: u32) -> u32 {
        let chain = Chain::of(NONE, *batch);
        let room = self.plug.room_behind(queue as u32, &chain, most);
        let whole_rows = room.map(|blocks| blocks - blocks % ROW_BLOCKS);
        let some = whole_rows.filter(|blocks| (1..batch.blocks).contains(blocks));
        some.unwrap_or(batch.blocks)
    }

    /// The first bio of a batch of rows finds no room under the plug, which is emptied before the others follow: the readings of
    /// the clock for that.
    fn send_first_of_batch(&mut self, queue: usize, chain: &Chain) -> Result<u64, SimError> {
        let most = self.longest(queue, chain.request.discard, chain.request.fua);
        if !self.plug.is_full() || self.plug.has_place(queue as u32, chain, most) {
            return Ok(0);
        }
        let readings = Readings::BIO + Readings::REQUEST;
        self.read_clock(readings)?;
        self.empty_plug()?;
        Ok(readings)
    }

    /// Blocks of a request. The longest discard is far longer than any other; what the stripe cache writes with REQ_FUA goes
    /// block by block.
    #[inline]
    fn longest(&self, queue: usize, discard: bool, fua: bool) -> u32 {
        match (discard, fua) {
            (true, _) => u32::MAX,
            (false, true) => ROW_BLOCKS,
            (false, false) => self.queues[queue].max_blocks(),
        }
    }

    /// The thread that sends this bio of a write to members, if its order with others counts: that of a request, by
    /// slot, or md's.
    fn sender(&self, chain: &Chain) -> Option<u32> {
        let has_order = self.has_mirrors || self.has_parity;
        if !has_order || !chain.request.write || chain.request.origin == Origin::Direct {
            return None;
        }
        Some(self.issuing_slot(chain.first).unwrap_or(MD))
    }

    /// The sender of a bio if it sleeps: the bio follows when it is awake.
    #[inline]
    fn asleep_sender(&self, chain: &Chain) -> Option<u32> {
        if self.asleep.is_empty() {
            return None;
        }
        self.sender(chain)
            .filter(|sender| self.asleep.contains(sender))
    }

    /// The thread that sends a bio sleeps until the bio may have a request.
    fn fall_asleep(&mut self, queue: usize, chain: &Chain) {
        if let Some(sender) = self.sender(chain) {
            self.asleep.push(sender);
        }
        if let Some(slot) = self.issuing_slot(chain.first) {
            if self.sleeps_for_requests(slot) {
                self.sleep(slot);
            } else {
                self.load.slots[slot as usize].waits = true;
                self.hand_over_bio(slot, queue, *chain);
            }
        }
    }

    /// Takes a bio under the plug: it becomes part of a request there, or of one that waits, or gets one of its own
    /// (`blk_mq_get_new_requests`). For that its thread may have to sleep.
    #[inline]
    fn send_plugged(&mut self, queue: usize, chain: Chain) -> Result<(), SimError> {
        let most = self.longest(queue, chain.request.discard, chain.request.fua);
        if self.plug.merge(queue as u32, chain, most, &mut self.bios)
            || self.queues[queue].merges_bio(self.now_ns, chain, &mut self.bios)
        {
            return Ok(());
        }
        if self.holds_up(&chain) && !self.queues[queue].has_free(self.plug.count(queue as u32)) {
            // It sleeps for a request, and a thread that sleeps leaves nothing in its plug.
            self.empty_plug()?;
            return self.enqueue(queue, chain, false);
        }
        if self.queues[queue].throttle_takes(self.now_ns, chain) {
            return self.add_to_plug(queue, chain);
        }
        // A thread that sleeps leaves nothing in its plug (`io_schedule`).
        self.empty_plug()?;
        self.fall_asleep(queue, &chain);
        Ok(())
    }

    /// True if the thread that sends the bio sends nothing else while it waits for a request: one of io_uring's, one with a
    /// call for each, and for reads of copies the one that submits.
    fn holds_up(&self, chain: &Chain) -> bool {
        let of_copies = self.has_mirrors && self.one_call_each == chain.request.write;
        of_copies && self.cache.is_none() || self.is_in_thread()
    }

    /// A request of its own for a bio under the plug.
    #[inline]
    fn add_to_plug(&mut self, queue: usize, chain: Chain) -> Result<(), SimError> {
        self.read_clock(Readings::REQUEST)?;
        if self.plug.is_full() {
            self.empty_plug()?;
        }
        self.plug.add(queue as u32, chain);
        Ok(())
    }

    /// The throttle of write-back lets in a bio: its thread is to run.
    #[cold]
    fn note_let_in(&mut self, queue: usize, chain: Chain) {
        let slot = self.issuing_slot(chain.first);
        let worker = slot.map(|slot| self.load.slots[slot as usize].worker);
        match (&mut self.turns, worker) {
            (Some(turns), Some(of)) if self.one_call_each && self.cache.is_none() => {
                turns.wake(of as usize);
                self.let_in.push((queue as u32, chain));
                let bio = chain.first;
                self.ready.push_back(Ready::LetIn { bio, worker });
            }
            _ => self.postponed.push_back(Postponed::LetIn(queue, chain)),
        }
    }

    /// The thread of a bio that may have a request now goes on in its call: the request waits under the plug, for those of
    /// other copies, and further bios become part of it.
    fn let_in(&mut self, queue: usize, chain: Chain) -> Result<(), SimError> {
        let slot = self.issuing_slot(chain.first);
        match slot.is_some_and(|slot| self.has_no_plug(slot)) {
            true => self.enqueue(queue, chain, true)?,
            false => self.add_to_plug(queue, chain)?,
        }
        self.send_behind(&chain)?;
        if let Some(slot) = slot {
            if let Some(worker) = self.wake(slot) {
                if self.one_call_each && self.cache.is_none() {
                    // Its call returns.
                    self.unplug()?;
                }
                self.go_on(worker)?;
            } else if self.takes_flusher_awake() {
                self.run_flusher()?;
            }
        }
        self.unplug()
    }

    #[inline(always)]
    fn enqueue(&mut self, queue: usize, chain: Chain, plugged: bool) -> Result<(), SimError> {
        if !plugged && self.queues[queue].merges_bio(self.now_ns, chain, &mut self.bios) {
            if self.queues[queue].has_merged() {
                self.touch(queue);
            }
            return Ok(());
        }
        if !plugged && self.queues[queue].has_free(0) {
            self.read_clock(self.readings_of_request(queue))?;
        }
        if self.rules.reading_ns > 0 {
            self.pass_events();
        }
        self.catch_up(queue);
        let waits = self.queues[queue]
            .add(self.now_ns, chain, plugged, &mut self.bios)
            .map_err(|error| self.refused(queue, error))?;
        self.sleeps |= waits;
        if waits {
            self.fall_asleep(queue, &chain);
        }
        if self.rules.reading_ns > 0 && self.is_touched[queue] {
            // The queues run in the order in which the plug is emptied.
            self.touched.retain(|other| *other as usize != queue);
            self.is_touched[queue] = false;
        }
        self.is_run[queue] |= plugged || waits;
        self.touch(queue);
        Ok(())
    }

    /// Readings of the clock for a request that goes to the queue at once.
    fn readings_of_request(&self, queue: usize) -> u64 {
        let is_started = !self.queues[queue].has_elevator();
        Readings::REQUEST + u64::from(is_started) * Readings::START
    }

    /// A bio has a request: what its sender has to send besides follows, unless it sleeps for another one.
    fn send_behind(&mut self, of: &Chain) -> Result<(), SimError> {
        let Some(sender) = self.sender(of) else {
            return Ok(());
        };
        if let Some(at) = self.asleep.iter().position(|other| *other == sender) {
            self.asleep.swap_remove(at);
        }
        while !self.asleep.contains(&sender)
            && let Some(at) = self.behind.iter().position(|of| of.sender == sender)
            && let Some(of) = self.behind.remove(at)
        {
            match of.plugged {
                true => self.send_plugged(of.queue as usize, of.chain)?,
                false => self.enqueue(of.queue as usize, of.chain, false)?,
            }
        }
        Ok(())
    }

    /// The request whose thread sleeps if this bio waits: md's thread writes parity for it, and mirrors before 3.6; what
    /// the flusher writes to mirrors too. With a bitmap it is taken to send all that a thread has held.
    fn issuing_slot(&self, bio: u32) -> Option<u32> {
        let bio = self.bios.get(bio);
        let by_itself = match bio.request.origin {
            Origin::Direct | Origin::Passed => self.rules.kernel.writes_mirrors_itself(),
            Origin::Cache | Origin::Flusher => self.rules.kernel.writes_pages_to_mirrors_itself(),
        };
        let copies = self.has_mirrors && (!by_itself || self.has_bitmap);
        let by_md = bio.request.write && (self.has_parity || copies);
        match bio.owner {
            Owner::Load(slot) if !by_md => Some(slot),
            _ => None,
        }
    }

    /// True if the thread that issued the request sleeps until each of its bios has a request. io_uring leaves it to
    /// others, but md does not pass on to copies that it may not wait (`REQ_NOWAIT`; `raid1_read_request`).
    fn sleeps_for_requests(&self, slot: u32) -> bool {
        self.one_call_each
            || self.load.slots[slot as usize].stage == Stage::Pages
            || self.has_mirrors
    }

    /// The thread that issued the request sleeps until `wake` is called as often.
    #[inline]
    fn sleep(&mut self, slot: u32) {
        if let Some(cache) = &mut self.cache
            && cache.is_of_flusher(slot)
        {
            cache.flusher_blocked += 1;
            return;
        }
        let worker = self.load.slots[slot as usize].worker as usize;
        self.load.workers[worker].blocked += 1;
    }

    /// A reason to sleep is gone; the worker that sleeps no more.
    #[inline]
    fn wake(&mut self, slot: u32) -> Option<usize> {
        if let Some(cache) = &mut self.cache
            && cache.is_of_flusher(slot)
        {
            cache.flusher_blocked -= 1;
            cache.flusher_awake |= cache.flusher_blocked == 0;
            return None;
        }
        let worker = self.load.slots[slot as usize].worker as usize;
        let blocked = &mut self.load.workers[worker].blocked;
        *blocked -= 1;
        (*blocked == 0).then_some(worker)
    }

    /// Hands the plug's requests to their queues.
    #[inline]
    fn empty_plug(&mut self) -> Result<(), SimError> {
        if !self.plug.is_empty() {
            self.hand_plug_over()?;
        }
        self.dispatch_in_call()
    }

    /// Runs the queues that a thread has touched, at the end of its call: the block layer's thread may have to wait for the
    /// processor.
    #[inline]
    fn dispatch_in_call(&mut self) -> Result<(), SimError> {
        match self.turns.is_none() {
            true => self.dispatch(),
            false => self.dispatch_by_turns(),
        }
    }

    #[inline(never)]
    fn dispatch_by_turns(&mut self) -> Result<(), SimError> {
        let is_left = |queue: &u32| {
            let queue = *queue as usize;
            !self.is_run[queue] && self.queues[queue].has_to_run()
        };
        let waits = self.touched.iter().any(is_left)
            && self.turns.as_mut().is_some_and(|turns| !turns.serves());
        if !waits {
            return self.dispatch();
        }
        let mut left = std::mem::take(&mut self.touched);
        let is_run = &self.is_run;
        self.touched
            .extend(left.extract_if(.., |queue| is_run[*queue as usize]));
        self.dispatch()?;
        left.append(&mut self.touched);
        self.touched = left;
        Ok(())
    }

    /// The part of it that only a plug with requests needs.
    fn hand_plug_over(&mut self) -> Result<(), SimError> {
        let reverses = self.rules.kernel.reverses_plugs();
        while let Some((queue, chain)) = self
            .plug
            .take(|queue| reverses && !self.queues[queue as usize].has_elevator())
        {
            self.enqueue(queue as usize, chain, true)?;
        }
        Ok(())
    }

    /// The thread that works has nothing more to send, and md's thread and the elevators go on: so they do between two
    /// requests of a thread, when it returns from the system call.
    #[inline]
    fn unplug(&mut self) -> Result<(), SimError> {
        if !self.has_parity {
            return self.finish_plug();
        }
        self.place_rows()?;
        self.release_rows();
        if self.md_waits_for_processor() {
            return match self.md_has_plug {
                true => Ok(()),
                false => self.finish_plug(),
            };
        }
        self.run_md(false)
    }

    /// Empties the plug; the next one is new.
    #[inline]
    fn finish_plug(&mut self) -> Result<(), SimError> {
        if self.has_bitmap && self.has_mirrors {
            self.release_held()?;
        }
        self.empty_plug()?;
        self.plug.finish();
        Ok(())
    }

    /// True if md's thread gets the processor only when the load's sleeps.
    #[inline]
    fn md_waits_for_processor(&mut self) -> bool {
        if self.fair.is_none() || self.md_runs {
            return false;
        }
        self.wake_md();
        self.fair.as_mut().is_some_and(|fair| !fair.gives_way())
    }

    /// md's thread wakes if there are rows for it.
    fn wake_md(&mut self) {
        if self.has_rows()
            && let Some(fair) = &mut self.fair
        {
            fair.wake(Who::Md);
        }
    }

    /// The thread that works sleeps or has finished: md's thread gets the rows of its plug.
    #[inline]
    fn release_rows(&mut self) {
        if let Target::Array(fabric) = &mut self.target
            && let Some(stripes) = &mut fabric.stripes
        {
            stripes.release();
        }
    }

    /// md's thread and the elevators go on. `yields`: to threads that wait for a head, after a few rows.
    #[inline]
    fn run_md(&mut self, yields: bool) -> Result<(), SimError> {
        if !self.has_parity {
            return self.finish_plug();
        }
        if self.md_runs {
            return Ok(());
        }
        self.place_rows()?;
        self.md_runs = true;
        if let Some(fair) = &mut self.fair {
            if yields {
                fair.sleep(Who::Load);
            }
            fair.switch(Who::Md);
        }
        let is_done = self.handle_rows(yields)?;
        self.md_runs = false;
        self.md_has_plug = !is_done;
        if is_done {
            self.finish_plug()?;
        }
        if let Some(fair) = &mut self.fair {
            if is_done {
                fair.sleep(Who::Md);
            }
            fair.switch(Who::Load);
        }
        Ok(())
    }

    fn send_member(
        &mut self,
        owner: Owner,
        issuer: Issuer,
        (member, offset, len): (u32, u64, u64),
        manner: Manner,
        plugged: bool,
    ) -> Result<u32, SimError> {
        let start = match &self.target {
            Target::Drive { start } => *start,
            Target::Array(fabric) => fabric.starts[member as usize],
        };
        // A RAID computes in whole blocks of its own; the ends of a request may be within one of the drive's.
        let first = offset / BLOCK;
        let blocks = (offset + len).div_ceil(BLOCK) - first;
        self.send(
            owner,
            issuer,
            member as usize,
            (start + first, blocks),
            manner,
            plugged,
        )
    }

    /// Handles an alarm.
    fn alarm(&mut self, alarm: Alarm) -> Result<(), SimError> {
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
            Alarm::Plug => {
                self.pull_plug();
                Ok(())
            }
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
    fn fill(&mut self, worker: usize) -> Result<(), SimError> {
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
        }
        let now_ns = self.now_ns;
        let index = self.load.workers[worker].stream;
        let stream = &mut self.load.streams[index];
        stream.recorder.set_outstanding(now_ns, stream.in_flight);
        if !stream.issuing {
            self.close(index)?;
        }
        Ok(())
    }

    /// One call with the requests of the batch.
    #[inline]
    fn submit(&mut self) -> Result<(), SimError> {
        // A request that is done at once brings a call of another thread.
        let mut batch = std::mem::take(&mut self.batch);
        let plugged = batch.len() > UNPLUGGED;
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
            if self.sleeps && self.hold_batch(slot, &batch[at + 1..]) {
                break;
            }
            if !plugged {
                self.unplug()?;
            }
        }
        batch.clear();
        if self.batch.is_empty() {
            self.batch = batch;
        }
        self.pull_plug();
        self.unplug()
    }

    /// The thread of a slot looks at the clock before its request. True if it has to give way after that call, and sends the
    /// request later.
    #[inline(never)]
    fn looks_at_clock(&mut self, slot: u32) -> Result<bool, SimError> {
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
    fn call_returns(&mut self, worker: usize) -> Result<bool, SimError> {
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
        let sleeps = self.has_mirrors && !self.one_call_each && of.blocked > 0;
        if sleeps {
            of.held.extend(yet);
        }
        sleeps
    }

    /// A thread waits for the array: before 2.6.39 it pulls the plug of md's stripe cache.
    fn pull_plug(&mut self) {
        if let Target::Array(fabric) = &mut self.target
            && let Some(stripes) = &mut fabric.stripes
        {
            stripes.unplug();
        }
    }

    /// Workers that have seen all completions of this moment hand over their next requests.
    #[inline]
    fn fill_ready(&mut self) -> Result<(), SimError> {
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
            return self.ready.pop_front();
        };
        let had_ns = |ready: &Ready| {
            let worker = ready.worker();
            worker.map_or(i64::MIN, |worker| turns.had_ns(worker as usize))
        };
        let at = (0..self.ready.len()).min_by_key(|at| had_ns(&self.ready[*at]))?;
        let ready = self.ready.remove(at)?;
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
                self.ready.push_back(Ready::Worker(worker as u32));
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
    fn read_clock(&mut self, readings: u64) -> Result<(), SimError> {
        if self.rules.reading_ns == 0 || self.in_interrupt {
            return Ok(());
        }
        self.spend(readings * self.rules.reading_ns)
    }

    fn spend(&mut self, ns: u64) -> Result<(), SimError> {
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
        while let Some((queue, completion)) = self.finished.pop_front() {
            self.finish(queue as usize, &completion)?;
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
            while let Some((queue, completion)) = self.finished.pop_front() {
                self.finish(queue as usize, &completion)?;
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
    fn make_ready(&mut self, worker: usize) {
        if !std::mem::replace(&mut self.load.workers[worker].is_ready, true) {
            self.ready.push_back(Ready::Worker(worker as u32));
            if let Some(turns) = &mut self.turns {
                turns.wake(worker);
            }
        }
    }

    /// Does what an interrupt has left to threads.
    fn catch_up_on(&mut self, postponed: Postponed) -> Result<(), SimError> {
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
    fn gather(&mut self, worker: usize, most: usize) -> Result<(), SimError> {
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

    /// Sends a request of the load to the drives.
    #[inline(always)]
    fn issue(&mut self, slot: u32, plugged: bool) -> Result<(), SimError> {
        let of = self.load.slots[slot as usize];
        let is_own = !matches!(of.stage, Stage::Pages | Stage::Log);
        if self.journal.is_some() && !self.note_write(slot) {
            return Ok(());
        }
        if is_own && self.cache.is_some() && self.is_buffered(of.worker) {
            return self.issue_buffered(slot);
        }
        if self.journal.is_some() && self.waits_for_file(slot) {
            return Ok(());
        }
        let request = of.request;
        let (issuer, manner) = self.manner_of(slot);
        let write = manner.write;
        let (offset, len) = (self.place_of(slot), u64::from(request.len));
        let Target::Array(fabric) = &mut self.target else {
            let part = (0, offset, len);
            let bios = self.send_member(Owner::Load(slot), issuer, part, manner, plugged)?;
            return self.all_sent(slot, bios);
        };
        if write && !fabric.superblock.active {
            return self.mark_superblock(slot);
        }
        if write {
            fabric.superblock.begin_write(slot);
        }
        let at_once = self.one_call_each || !is_own;
        if let Some(rebuild) = &mut fabric.rebuild
            && !rebuild.enter(slot, write, offset, at_once)
        {
            return Ok(());
        }
        self.issue_admitted(slot, plugged)
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

    /// First byte of a request on the array or drive.
    #[inline]
    fn place_of(&self, slot: u32) -> u64 {
        let of = &self.load.slots[slot as usize];
        if of.stage == Stage::Log && self.rules.log.is_some() {
            return of.request.offset;
        }
        if let Some(growth) = &self.growth {
            return growth.place(of.request.offset);
        }
        let offset = match &self.rules.files {
            Some(files) if of.stage != Stage::Log => files.place(of.request.offset, self.capacity),
            _ => of.request.offset,
        };
        self.rules.partition_start + offset
    }

    /// Sends a request of the load to the array's members, past the barrier of a rebuild.
    fn issue_admitted(&mut self, slot: u32, plugged: bool) -> Result<(), SimError> {
        let (issuer, manner) = self.manner_of(slot);
        let request = self.load.slots[slot as usize].request;
        let (offset, len) = (self.place_of(slot), u64::from(request.len));
        let write = manner.write;
        let is_bare = self.has_no_plug(slot);
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        if fabric.uses_stripes(write) {
            let manner = RowManner {
                write,
                sync: manner.sync,
                gives_up: self.gives_up(slot),
                // `blkdev_write_iter` has a plug.
                plugged: (plugged || write) && !is_bare || !self.one_call_each,
            };
            return self.issue_rows(slot, manner, offset, len);
        }
        let plugged = !is_bare && (plugged || (write && fabric.has_mirrors()));
        let bios = self.issue_pieces((slot, issuer), manner, (offset, len), plugged)?;
        if bios == 0 {
            // Every copy is on members that are gone.
            return Err(SimError::Array(spindle_array::ArrayError::Lost {
                logical: offset,
                missing: 0,
            }));
        }
        self.all_sent(slot, bios)?;
        if is_bare {
            // kblockd runs the queues when the thread looks whether others are to run (`write_cache_pages`).
            self.dispatch()?;
        }
        Ok(())
    }

    /// Pages of XFS that a thread of the load writes: it has no plug (6.1 `iomap_writepages`, `raid1_add_bio_to_plug`).
    #[inline]
    fn has_no_plug(&self, slot: u32) -> bool {
        self.rules.is_xfs
            && self.load.slots[slot as usize].stage == Stage::Pages
            && self.load.slots[slot as usize].request.op == Op::Write
            && self.page_issuer(slot).1
    }

    /// True if md's thread, or someone who waits for a row, can go on.
    fn has_rows_to_do(&self) -> bool {
        match &self.target {
            Target::Array(fabric) if fabric.superblock.left == 0 => {
                let goes_on = |of: &Stripes| of.has_work() || of.wakes_waiters();
                fabric.stripes.as_deref().is_some_and(goes_on)
            }
            _ => false,
        }
    }

    /// True if the stripe cache has rows for md's thread.
    fn has_rows(&self) -> bool {
        match &self.target {
            Target::Array(fabric) => fabric.stripes.as_ref().is_some_and(|of| of.has_work()),
            Target::Drive { .. } => false,
        }
    }

    /// Who sends a request of the load, and how.
    #[inline(always)]
    fn manner_of(&self, slot: u32) -> (Issuer, Manner) {
        let of = &self.load.slots[slot as usize];
        let write = !matches!(of.request.op, Op::Read | Op::Rewrite);
        let (issuer, sync) = if of.stage == Stage::Pages {
            self.page_issuer(slot)
        } else if of.stage == Stage::Log {
            (Issuer::kernel(self.md_thread()), self.log_is_sync())
        } else {
            (
                self.load.issuer(slot),
                self.rules.kernel.direct_writes_are_sync(),
            )
        };
        let discard = of.request.op == Op::Trim;
        let manner = Manner {
            write,
            discard,
            fua: false,
            sync: !write || (sync && !discard),
            origin: self.origin_of(slot, write),
        };
        (issuer, manner)
    }

    /// Where a write comes from. md's levels with copies or parity drop the flags of what they write to members, so that
    /// the flusher's writes are like others; ext4 does not set its flag (`ext4_io_submit`).
    fn origin_of(&self, slot: u32, write: bool) -> Origin {
        let keeps = !self.has_mirrors && !self.has_parity;
        if !write {
            return Origin::Direct;
        }
        if self.load.slots[slot as usize].stage != Stage::Pages {
            return match keeps || !self.rules.kernel.throttles_write_back() {
                true => Origin::Direct,
                false => Origin::Passed,
            };
        }
        let by_flusher = !self.page_issuer(slot).1;
        match by_flusher && keeps && self.rules.marks_write_back {
            true => Origin::Flusher,
            false => Origin::Cache,
        }
    }

    /// Sends a stretch of the array to its members; the number of bios, and one for a rest that is sent later.
    fn issue_pieces(
        &mut self,
        (slot, issuer): (u32, Issuer),
        manner: Manner,
        (offset, len): (u64, u64),
        plugged: bool,
    ) -> Result<u32, SimError> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(0);
        };
        let is_cut = fabric.is_cut_by_the_block_layer();
        let copies = fabric.copies();
        if !manner.write && fabric.has_mirrors() {
            return self.read_mirror((slot, issuer), (offset, len), plugged);
        }
        let mut requests = std::mem::take(&mut self.requests);
        if manner.write {
            fabric.write(offset, len, &mut requests)?;
        } else {
            fabric.read(offset, len, &mut requests)?;
        }
        let of_pages = self.load.slots[slot as usize].stage == Stage::Pages;
        let by_worker = is_cut && requests.len() > 1 && !self.one_call_each && !of_pages;
        if by_worker && self.hand_over_request(slot) {
            requests.clear();
            self.requests = requests;
            self.load.slots[slot as usize].rest = Some((offset, len));
            return Ok(1);
        }
        let (mut bios, mut sent) = (0, 0);
        let is_bare = self.has_no_plug(slot);
        self.load.slots[slot as usize].waits = false;
        let copies = match manner.write {
            true => copies,
            false => 1,
        };
        let holds = manner.write && self.has_bitmap;
        if holds && let Some(bitmap) = self.bitmap() {
            bitmap.begin_of(slot, offset, len);
        }
        for (at, request) in requests.iter().enumerate() {
            if at == 0 {
                self.begin_bio(slot)?;
            } else if at.is_multiple_of(copies) {
                self.read_clock(if is_cut { Readings::CUT } else { Readings::BIO })?;
            }
            let part = (request.member, request.offset, request.len);
            // Writes of a device go under a plug, each call's by themselves (`blkdev_write_iter`).
            let plugged = manner.write && !is_bare || (plugged && !by_worker);
            bios += match holds {
                true => self.hold_write(slot, issuer, part, manner),
                false => self.send_member(Owner::Load(slot), issuer, part, manner, plugged)?,
            };
            sent += request.len;
            if by_worker && self.load.slots[slot as usize].waits && sent < len {
                self.load.slots[slot as usize].rest = Some((offset + sent, len - sent));
                bios += 1;
                break;
            }
        }
        requests.clear();
        self.requests = requests;
        Ok(bios)
    }

    /// A copy is chosen for each piece when the bio of the one before it is sent: its member is busy then.
    fn read_mirror(
        &mut self,
        (slot, issuer): (u32, Issuer),
        (offset, len): (u64, u64),
        plugged: bool,
    ) -> Result<u32, SimError> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(0);
        };
        let mut pieces = std::mem::take(&mut self.pieces);
        fabric.cut(offset, len, &mut pieces);
        self.read_clock(Readings::BIO)?;
        let (mut bios, mut sent) = (0, 0);
        for piece in &pieces {
            self.sleeps = false;
            if piece.is_cut_above {
                self.read_clock(Readings::CUT)?;
            }
            let Target::Array(fabric) = &mut self.target else {
                return Ok(0);
            };
            let place = fabric.choose(piece.offset, piece.len)?;
            let part = (place.member, place.offset, piece.len);
            if piece.is_cut && self.rules.reading_ns > 0 {
                fabric.sent(place.member as usize);
                self.read_clock(Readings::BIO)?;
                if let Target::Array(fabric) = &mut self.target {
                    fabric.sends_now(place.member as usize);
                }
            }
            bios += self.send_member(Owner::Load(slot), issuer, part, Manner::READ, plugged)?;
            sent += piece.len;
            if self.sleeps && sent < len && !self.one_call_each && self.cache.is_none() {
                let of = &mut self.load.slots[slot as usize];
                of.rest = Some((offset + sent, len - sent));
                let worker = of.worker as usize;
                self.load.workers[worker].held.push_front(slot);
                bios += 1;
                break;
            }
        }
        pieces.clear();
        self.pieces = pieces;
        Ok(bios)
    }

    /// Sends what a request's thread has not sent yet.
    fn send_rest(&mut self, slot: u32, plugged: bool) -> Result<(), SimError> {
        let Some(rest) = self.load.slots[slot as usize].rest.take() else {
            return Ok(());
        };
        let (issuer, manner) = self.manner_of(slot);
        let bios = self.issue_pieces((slot, issuer), manner, rest, plugged)?;
        // The rest itself was a part.
        self.all_sent(slot, bios - 1)
    }

    /// Hands a request to the stripe cache; its thread sleeps until each row has a head.
    fn issue_rows(
        &mut self,
        slot: u32,
        manner: RowManner,
        offset: u64,
        len: u64,
    ) -> Result<(), SimError> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let rows = fabric.add_rows(slot, manner, offset, len)?;
        self.load.slots[slot as usize].left = rows;
        self.sleep(slot);
        self.begin_bio(slot)
    }

    /// The bio of a request is made, unless it was made before its thread slept.
    fn begin_bio(&mut self, slot: u32) -> Result<(), SimError> {
        match std::mem::take(&mut self.load.slots[slot as usize].is_begun) {
            true => Ok(()),
            false => self.read_clock(Readings::BIO),
        }
    }

    /// Gives rows their heads; threads whose last row has one go on.
    #[inline]
    fn place_rows(&mut self) -> Result<(), SimError> {
        if self.has_parity {
            self.place_rows_of_stripes()?;
        }
        Ok(())
    }

    fn place_rows_of_stripes(&mut self) -> Result<(), SimError> {
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
    fn give_up(&mut self, slot: u32, rows: u32) -> Result<(), SimError> {
        if let Some(cache) = &mut self.cache {
            cache.fail(slot);
        }
        self.load.slots[slot as usize].left -= rows - 1;
        self.part_done(slot)
    }

    /// md's thread: what the rows in its list need. False if it has lost the processor before its end, to the load's thread from
    /// which it had taken it: at a tick.
    #[inline]
    fn handle_rows(&mut self, yields: bool) -> Result<bool, SimError> {
        match self.has_parity || !self.awake.is_empty() {
            true => self.handle_rows_of_stripes(yields),
            false => Ok(true),
        }
    }

    fn handle_rows_of_stripes(&mut self, yields: bool) -> Result<bool, SimError> {
        loop {
            if self.is_rebuilding && self.has_rows() && self.md_thread_is_noting()? {
                return Ok(true);
            }
            if self.has_bitmap && self.sets_bits_of_rows()? || !self.begin_round() {
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
            if !yields && self.fair.as_mut().is_some_and(Fair::gives_way) {
                return Ok(false);
            }
        }
        if let Target::Array(fabric) = &mut self.target
            && let Some(stripes) = &mut fabric.stripes
            && stripes.takes_timer()
        {
            self.load.alarm(self.now_ns + PLUG_NS, Alarm::Plug);
        }
        Ok(true)
    }

    fn stripes(&mut self) -> Option<&mut Stripes> {
        match &mut self.target {
            Target::Array(fabric) => fabric.stripes.as_deref_mut(),
            Target::Drive { .. } => None,
        }
    }

    fn begin_round(&mut self) -> bool {
        self.stripes().is_some_and(Stripes::begin_round)
    }

    fn end_round(&mut self) {
        if let Some(stripes) = self.stripes() {
            stripes.end_round();
        }
    }

    /// True if md's thread gives way to one that it has woken (`cond_resched`).
    fn gives_way(&mut self) -> Result<bool, SimError> {
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
    fn let_others_go_on(&mut self) -> Result<(), SimError> {
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

    fn next_rows(&mut self) -> Result<Option<Requests>, SimError> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(None);
        };
        Ok(fabric.next_rows(&mut self.returned)?)
    }

    fn send_rows(&mut self, requests: &Requests) -> Result<(), SimError> {
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
    fn row_done(&mut self, slot: u32) -> Result<(), SimError> {
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

    /// md's own thread comes after those of the load.
    fn md_thread(&self) -> u32 {
        self.load.workers.len() as u32
    }

    /// A command is done.
    #[inline]
    fn finish(&mut self, queue: usize, completion: &Completion) -> Result<(), SimError> {
        let was_in_interrupt = std::mem::replace(&mut self.in_interrupt, true);
        let outcome = self.finish_command(queue, completion);
        self.in_interrupt = was_in_interrupt;
        outcome
    }

    #[inline]
    fn finish_command(&mut self, queue: usize, completion: &Completion) -> Result<(), SimError> {
        self.touch(queue);
        let finished = self.queues[queue]
            .finish(self.now_ns, completion)
            .map_err(|error| self.refused(queue, error))?;
        let Some(finished) = finished else {
            return Ok(());
        };
        match finished {
            Finished::Flush => {
                if let Some(trace) = &mut self.trace {
                    trace.flush(queue, completion);
                }
                // The next flush may begin while these go on.
                let mut slots = std::mem::take(&mut self.flushed);
                slots.append(self.queues[queue].flushed());
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
            Finished::Request {
                first,
                request,
                arrived_ns,
                dispatched_ns,
                keeps,
            } => {
                if let Some(trace) = &mut self.trace {
                    trace.request(queue, &request, arrived_ns, dispatched_ns, completion);
                }
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
                    false => self.free(queue, &request),
                }
            }
        }
    }

    /// A request is free: threads that sleep for one may go on.
    #[inline(always)]
    fn free(&mut self, queue: usize, request: &BlockRequest) -> Result<(), SimError> {
        match &mut self.io_threads {
            Some(threads) => threads.freed.push_back(queue as u32),
            None if self.rules.reading_ns > 0 && self.rules.kernel.multi_queue() => {
                self.wake_sleepers(queue);
            }
            None => {
                self.queues[queue]
                    .freed(self.now_ns, request, &mut self.bios)
                    .map_err(|error| self.refused(queue, error))?;
                return self.go_on_admitted(queue);
            }
        }
        Ok(())
    }

    /// Requests that have become parts of others are free.
    fn free_merged(&mut self) -> Result<(), SimError> {
        while let Some(queue) = self.merged.pop() {
            while let Some(request) = self.queues[queue as usize].next_merged() {
                self.touch(queue as usize);
                self.free(queue as usize, &request)?;
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
            self.ready.push_back(Ready::Sleeper {
                queue: queue as u32,
                bio,
                worker,
            });
        }
    }

    /// A thread that was woken takes a free request, or sleeps again.
    fn look_for_request(&mut self, queue: usize, bio: u32) -> Result<(), SimError> {
        self.touch(queue);
        if self.one_call_each
            && self.has_mirrors
            && self.bios.get(bio).request.write
            && self.issuing_slot(bio).is_some()
            && let Some(chain) = self.queues[queue].woken_takes(bio, self.plug.count(queue as u32))
        {
            return self.let_in(queue, chain);
        }
        if self.queues[queue].has_free(0) {
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
    fn go_on_admitted(&mut self, queue: usize) -> Result<(), SimError> {
        match self.queues[queue].has_admitted() {
            true => self.go_on_with_requests(queue),
            false => Ok(()),
        }
    }

    fn go_on_with_requests(&mut self, queue: usize) -> Result<(), SimError> {
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
    fn bio_done(&mut self, queue: usize, bio: &Bio) -> Result<(), SimError> {
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

    /// A member is flushed: for md, or a request of the load.
    fn flush_handled(&mut self, queue: usize, slot: u32) -> Result<(), SimError> {
        match Metadata::of_slot(slot) {
            Some(of) => self.metadata_step(of, queue, false),
            None if slot == Flushes::SLOT => self.member_flushed(queue),
            None => self.part_done(slot),
        }
    }

    /// A bio of md's own is done.
    fn bio_handled(&mut self, queue: usize, bio: &Bio) -> Result<(), SimError> {
        match bio.owner {
            Owner::Load(_) | Owner::Rows(_) => Ok(()),
            Owner::Metadata(of) => self.metadata_step(of, queue, true),
            Owner::Rebuild(unit) => self.unit_part_done(unit),
        }
    }

    fn rows_part_done(&mut self, id: u32) -> Result<(), SimError> {
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
    #[inline]
    fn all_sent(&mut self, slot: u32, parts: u32) -> Result<(), SimError> {
        let at = &mut self.load.slots[slot as usize];
        at.left = at.left.wrapping_add(parts);
        if at.left > 0 {
            return Ok(());
        }
        self.parts_done(slot)
    }

    /// A part of a request of the load is done.
    #[inline]
    fn part_done(&mut self, slot: u32) -> Result<(), SimError> {
        let at = &mut self.load.slots[slot as usize];
        at.left = at.left.wrapping_sub(1);
        if at.left > 0 {
            return Ok(());
        }
        self.parts_done(slot)
    }

    /// All parts of a request of the load are done.
    #[inline(always)]
    fn parts_done(&mut self, slot: u32) -> Result<(), SimError> {
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
    fn seen(&mut self, slot: u32) -> Result<(), SimError> {
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
    fn go_on(&mut self, worker: usize) -> Result<(), SimError> {
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
    fn release(&mut self, slot: u32) -> Result<(), SimError> {
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
            self.ready.push_back(Ready::Worker(worker as u32));
        }
        Ok(())
    }

    /// Empties the write caches of all drives for a slot; the number of its parts. md flushes its members once at a time,
    /// and all who come meanwhile share the next time (`md_flush_request`).
    fn flush(&mut self, slot: u32) -> u32 {
        let Target::Array(fabric) = &mut self.target else {
            return self.flush_drives(slot);
        };
        fabric.flushes.waiting.push(slot);
        if fabric.flushes.left == 0 {
            self.begin_flush();
        }
        1
    }

    fn begin_flush(&mut self) {
        let left = self.flush_drives(Flushes::SLOT);
        if let Target::Array(fabric) = &mut self.target {
            let flushes = &mut fabric.flushes;
            flushes.left = left;
            std::mem::swap(&mut flushes.running, &mut flushes.waiting);
        }
    }

    /// A member has been flushed for md.
    fn member_flushed(&mut self, queue: usize) -> Result<(), SimError> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        fabric.end_flush(queue);
        fabric.flushes.left -= 1;
        if fabric.flushes.left > 0 {
            return Ok(());
        }
        let mut slots = std::mem::take(&mut fabric.flushes.done);
        std::mem::swap(&mut slots, &mut fabric.flushes.running);
        if !fabric.flushes.waiting.is_empty() {
            self.begin_flush();
        }
        for slot in slots.drain(..) {
            self.part_done(slot)?;
        }
        if let Target::Array(fabric) = &mut self.target {
            fabric.flushes.done = slots;
        }
        Ok(())
    }

    /// Flushes every drive that is there; their number.
    fn flush_drives(&mut self, slot: u32) -> u32 {
        let mut drives = 0;
        for queue in 0..self.queues.len() {
            let present = match &mut self.target {
                Target::Drive { .. } => true,
                Target::Array(fabric) => fabric.begin_flush(queue),
            };
            if present {
                self.queues[queue].flush(slot);
                self.touch(queue);
                drives += 1;
            }
        }
        drives
    }

    /// A stream that issues nothing more and has nothing under way is over, after its last sync.
    fn close(&mut self, index: usize) -> Result<(), SimError> {
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
                for queue in 0..self.queues.len() {
                    self.queues[queue].exits(self.now_ns, worker as u32);
                    self.touch(queue);
                }
            }
        }
    }

    /// Streams that end when another one does.
    fn end_others(&mut self, index: usize) -> Result<(), SimError> {
        for other in self.load.ended_with(index) {
            let now_ns = self.now_ns;
            let why = self.load.streams[index].ended_by.clone();
            self.load
                .end_stream(other, now_ns, why.unwrap_or(EndedBy::Time));
            self.close(other)?;
        }
        Ok(())
    }

    /// md writes down that a rebuild begins, as there is another member, and starts the thread for it.
    fn begin_rebuild(&mut self) -> Result<(), SimError> {
        if let Target::Array(fabric) = &mut self.target
            && fabric.is_rebuilding()
        {
            fabric.note_rebuild();
            self.md_thread_is_noting()?;
            self.dispatch()?;
        }
        self.work_on_rebuild()
    }

    /// md's thread for the rebuild goes as far as it can.
    fn work_on_rebuild(&mut self) -> Result<(), SimError> {
        loop {
            let queues = &self.queues;
            let Target::Array(fabric) = &mut self.target else {
                return Ok(());
            };
            let Some(rebuild) = &mut fabric.rebuild else {
                return Ok(());
            };
            match rebuild.step(self.now_ns, |member| queues[member].figures.blocks()) {
                Step::Wait => return Ok(()),
                Step::Unit(unit) => self.read_unit(unit)?,
                Step::Row { offset, waited } => {
                    if !fabric.add_rebuilt_row(self.now_ns, offset, waited)? && waited {
                        return Ok(());
                    }
                }
                Step::HandOver => fabric.hand_over_row(),
                Step::Note => fabric.note_rebuild(),
                Step::GiveWay => self.run_md(true)?,
            }
        }
    }

    /// md's thread first writes the superblocks, if the rebuild has noted how far it is (`md_check_recovery`). True while it
    /// does that, and nothing else.
    fn md_thread_is_noting(&mut self) -> Result<bool, SimError> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(false);
        };
        if fabric.superblock.left == 0 && std::mem::take(&mut fabric.superblock.is_noted) {
            self.write_superblocks()?;
        }
        Ok(matches!(&self.target, Target::Array(fabric) if fabric.superblock.left > 0))
    }

    fn read_unit(&mut self, unit: u32) -> Result<(), SimError> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let mut requests = std::mem::take(&mut self.requests);
        fabric.rebuild_reads(unit, &mut requests)?;
        let issuer = Issuer::kernel(self.md_thread() + 1);
        let mut bios = 0;
        for request in &requests {
            let part = (request.member, request.offset, request.len);
            self.count_rebuild(request.member, request.len);
            bios += self.send_member(Owner::Rebuild(unit), issuer, part, Manner::READ, true)?;
        }
        requests.clear();
        self.requests = requests;
        self.set_unit(unit, bios, false);
        if bios == 0 {
            self.write_unit(unit)?;
        }
        Ok(())
    }

    fn count_rebuild(&mut self, member: u32, bytes: u64) {
        if let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            rebuild.count_own(member as usize, bytes);
        }
    }

    fn set_unit(&mut self, unit: u32, left: u32, writing: bool) {
        if let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            let of = rebuild.units.get_mut(unit);
            of.left = left;
            of.writing = writing;
        }
    }

    /// md's thread writes what was read, or compares it; while it writes superblocks, units wait for it.
    fn write_unit(&mut self, unit: u32) -> Result<(), SimError> {
        let is_noting = self.md_thread_is_noting()?;
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        if is_noting {
            fabric.superblock.units.push(unit);
            return Ok(());
        }
        let Some(rebuild) = &fabric.rebuild else {
            return Ok(());
        };
        let of = *rebuild.units.get(unit);
        let Some(member) = rebuild.member else {
            return self.end_unit(unit);
        };
        let part = (member, of.offset, of.len);
        self.count_rebuild(part.0, part.2);
        let issuer = Issuer::kernel(self.md_thread());
        let bios =
            self.send_member(Owner::Rebuild(unit), issuer, part, Manner::WRITE_BACK, true)?;
        self.set_unit(unit, bios, true);
        Ok(())
    }

    fn unit_part_done(&mut self, unit: u32) -> Result<(), SimError> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let Some(rebuild) = &mut fabric.rebuild else {
            return Ok(());
        };
        let of = rebuild.units.get_mut(unit);
        of.left -= 1;
        if of.left > 0 {
            return Ok(());
        }
        if !of.writing {
            return self.write_unit(unit);
        }
        self.end_unit(unit)
    }

    fn end_unit(&mut self, unit: u32) -> Result<(), SimError> {
        if let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            rebuild.end_unit(self.now_ns, unit);
        }
        if self.rules.reading_ns > 0 {
            // An interrupt ends all units of a request.
            self.unit_ended = true;
            return Ok(());
        }
        self.units_ended()
    }

    /// The end of a unit wakes md's thread for the rebuild and those who wait at the barrier, and the older thread runs first:
    /// it still finds that others wait.
    fn units_ended(&mut self) -> Result<(), SimError> {
        self.work_on_rebuild()?;
        self.rebuild_went_on()
    }

    /// The rebuild goes on if a row of it or a request that held it up is done, before the next ones wait at the barrier.
    fn take_turns(&mut self) -> Result<(), SimError> {
        if std::mem::take(&mut self.rebuild_awake) {
            self.rebuild_went_on()?;
        }
        if let Target::Array(fabric) = &mut self.target
            && fabric.rebuild.as_mut().is_some_and(Rebuild::seat)
        {
            self.rebuild_went_on()?;
        }
        Ok(())
    }

    /// A part of the rebuild, or a request that held it up, is done: who waited at the barrier goes first.
    fn rebuild_went_on(&mut self) -> Result<(), SimError> {
        while let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
            && let Some(slot) = rebuild.admitted()
        {
            self.issue_admitted(slot, false)?;
        }
        if let Target::Array(fabric) = &mut self.target
            && fabric.rebuild.as_ref().is_some_and(Rebuild::is_finished)
        {
            fabric.end_rebuild();
        }
        self.work_on_rebuild()
    }

    /// A request of the load that had passed the barrier is done. It wakes the load's thread first, then the rebuild's
    /// (`bio_endio` before `allow_barrier`), which so finds the next request there already.
    fn leave_barrier(&mut self, slot: u32) {
        let offset = self.place_of(slot);
        if let Target::Array(fabric) = &mut self.target
            && let Some(rebuild) = &mut fabric.rebuild
        {
            rebuild.leave(offset);
            self.rebuild_awake = true;
        }
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
