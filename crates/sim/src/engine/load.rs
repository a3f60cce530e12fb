//! The load: workers with their request streams, slots, ends.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use spindle_measure::settle::{Counts, Sampling};
use spindle_measure::{EndedBy, OpKind, Plan, SteadyFigures, StreamRecorder};
use spindle_workload::{
    Arrival, Arrivals, Op, Passes, Pattern, Priority, Request, RequestStream, Rest, Stream,
    Thinker, Workload,
};

use super::bio::Issuer;
use super::files::{self, FileLayout};
use super::pace::Pace;
use crate::error::SimError;
use crate::request::DEFAULT_LEVEL;

/// Threads that get a longer slice than the seventh, beside the program's first: with that one they are fewer than
/// `sched_nr_latency`.
const FEW_THREADS: usize = 6;

/// The events of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// A worker has a request that becomes due.
    Worker(u32),
    /// A slot has paused long enough.
    Slot(u32),
    /// The host's work for a request is done.
    Seen(u32),
    /// A stream's time is over.
    End(u32),
    /// A sample of the rates is due.
    Sample,
    /// The kernel looks for old dirty pages.
    Flusher,
    /// A thread that writes dirty pages has handed one over: that of a slot, or the flusher.
    Page(Option<u32>),
    /// The plug of md's stripe cache has been in long enough.
    Plug,
    /// md's thread has copied and computed what the rows it had in hand needed.
    Rows,
    /// md's thread looks for bits of its write-intent bitmap that may be cleared.
    Bitmap,
    /// md's thread looks whether the array is to become clean.
    SafeMode,
}

impl Alarm {
    /// True if it rings again and again, whatever happens.
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Alarm::Sample | Alarm::Flusher)
    }
}

/// A request under way, or room for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) worker: u32,
    pub(crate) request: Request,
    pub(crate) issued_ns: u64,
    pub(crate) intended_ns: u64,
    /// Parts of it that are not done; below 0 (wrapping) while it is being sent and parts are done already.
    pub(crate) left: u32,
    /// A bio of it found no free request when it was sent.
    pub(crate) waits: bool,
    /// Bytes that its thread has not sent yet, from an offset on: it sleeps until its last bio has a place in its queue.
    pub(crate) rest: Option<(u64, u64)>,
    pub(crate) stage: Stage,
    /// Issued before counting began, so not paid for from the budgets.
    pub(crate) unpaid: bool,
    /// Its bio has been made; its thread slept then.
    pub(crate) is_begun: bool,
    /// Its thread has looked at the clock for it, and gave way then.
    pub(crate) has_looked: bool,
}

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Data are moving.
    Data,
    /// O_DSYNC: the data are there, the write cache is being emptied.
    Durable,
    /// An fsync of its own.
    Sync,
    /// The last fdatasync of a stream.
    EndSync,
    /// Pages of the page cache are moving: no request of the load.
    Pages,
    /// The log of the file system is being written: no request of the load.
    Log,
}

/// One thread of the load.
pub(crate) struct Worker {
    pub(crate) stream: usize,
    pub(crate) requests: RequestStream,
    arrivals: Option<Arrivals>,
    pub(crate) thinker: Option<Thinker>,
    /// Pauses of the worker as a whole.
    pub(crate) rest: Option<Rest>,
    /// Its slots.
    pub(crate) depth: usize,
    /// A request that is drawn but not due, with its time.
    pub(crate) pending: Option<(u64, Request)>,
    /// Slots without a request.
    pub(crate) free: Vec<u32>,
    /// Time of its alarm.
    pub(crate) wakes_ns: Option<u64>,
    /// Its passes over its part of the region.
    pub(crate) passes: Budget,
    /// Its thread is gone.
    pub(crate) has_ended: bool,
    /// It is in the list of those that hand over requests next.
    pub(crate) is_ready: bool,
    /// Its bios that wait for a free request: it sleeps in `io_submit` until they have one.
    pub(crate) blocked: u32,
    /// Another thread has the processor, though this one does not sleep.
    pub(crate) gave_way: bool,
    /// Requests that its last call found done and that it has not looked at.
    pub(crate) reaped: usize,
    /// Slots that it has to send in the same call when it is awake.
    pub(crate) held: VecDeque<u32>,
    /// Slots that were done while it slept.
    pub(crate) unseen: VecDeque<u32>,
    /// It is looking at them, and issues nothing before it has seen all.
    pub(crate) reaping: bool,
    /// Time until which the host's CPU works for it.
    pub(crate) cpu_ns: u64,
    /// The worker's own record, if its stream's workers have figures of their own.
    pub(crate) own: Option<Box<StreamRecorder>>,
}

impl Worker {
    /// The next request and the time it is due.
    #[inline]
    pub(crate) fn draw(&mut self, now_ns: u64, stream: &mut StreamState) -> (u64, Request) {
        let mut request = self.requests.next_request();
        if let Some((start, _)) = stream.files.get(request.file as usize) {
            request.offset += start;
        }
        if let Some(offset) = stream.places.next() {
            request.offset = offset;
        }
        let due_ns = match &mut self.arrivals {
            Some(arrivals) => stream.first_ns.saturating_add(arrivals.next_ns()),
            None => match &mut stream.pace {
                Some(pace) => pace.claim(request.len, now_ns),
                None => now_ns,
            },
        };
        (due_ns, request)
    }
}

/// The rest of an end by count.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Budget {
    requests: Option<i64>,
    bytes: Option<i64>,
}

impl Budget {
    fn new(requests: Option<u64>, bytes: Option<u64>) -> Budget {
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Budget {
            requests: requests.map(signed),
            bytes: bytes.map(signed),
        }
    }

    /// The limit that was reached.
    pub(crate) fn spent(&self) -> Option<EndedBy> {
        if self.requests.is_some_and(|left| left <= 0) {
            Some(EndedBy::Requests)
        } else if self.bytes.is_some_and(|left| left <= 0) {
            Some(EndedBy::Bytes)
        } else {
            None
        }
    }

    pub(crate) fn pay(&mut self, len: u32) {
        if let Some(requests) = &mut self.requests {
            *requests -= 1;
        }
        if let Some(bytes) = &mut self.bytes {
            *bytes -= i64::from(len);
        }
    }

    fn is_limited(&self) -> bool {
        self.requests.is_some() || self.bytes.is_some()
    }
}

/// A stream of the workload at work.
pub(crate) struct StreamState {
    pub(crate) name: String,
    /// The streams that end when it does.
    pub(crate) ends: Vec<String>,
    pub(crate) recorder: StreamRecorder,
    pub(crate) issuer_priority: Priority,
    pub(crate) open: bool,
    pub(crate) dsync: bool,
    /// Each write syncs the inode, too.
    pub(crate) osync: bool,
    /// Its own syncs are fdatasyncs.
    pub(crate) fdatasyncs: bool,
    pub(crate) end_sync: bool,
    /// No fsync follows the last request.
    pub(crate) syncs_between: bool,
    pub(crate) pace: Option<Pace>,
    pub(crate) budget: Budget,
    pub(crate) limited: bool,
    /// Time from which its first request may be issued.
    pub(crate) first_ns: u64,
    /// It issues requests.
    pub(crate) issuing: bool,
    pub(crate) in_flight: u64,
    pub(crate) ended_by: Option<EndedBy>,
    /// End of its measured time, as far as known.
    pub(crate) ended_ns: u64,
    /// A slot for its last sync.
    pub(crate) sync_slot: u32,
    pub(crate) over: bool,
    /// First byte and size of each file of its set on the machine; empty: it uses the machine itself.
    pub(crate) files: Vec<(u64, u64)>,
    /// Its requests go through the page cache.
    pub(crate) buffered: bool,
    /// Its requests do not follow one another: each seeks first.
    pub(crate) seeks: bool,
    /// Offsets of its next requests, instead of those of its pattern.
    places: std::vec::IntoIter<u64>,
}

/// The whole load.
pub(crate) struct Load {
    pub(crate) streams: Vec<StreamState>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) alarms: BinaryHeap<Reverse<(u64, u64, Alarm)>>,
    alarms_set: u64,
    pub(crate) ramp_ns: u64,
    pub(crate) budget: Budget,
    pub(crate) ended_by: Option<EndedBy>,
    sampling: Option<Sampling>,
    /// The window that had settled.
    pub(crate) steady: Option<SteadyFigures>,
    /// Streams that still issue or have something under way.
    pub(crate) active: usize,
}

impl Load {
    pub(crate) fn new(
        workload: &Workload,
        capacity: u64,
        block_bytes: u32,
        interval_ns: u64,
        takes_discards: bool,
        last_first: bool,
    ) -> Result<Load, SimError> {
        let mut load = Load {
            streams: Vec::with_capacity(workload.streams.len()),
            workers: Vec::new(),
            slots: Vec::new(),
            alarms: BinaryHeap::new(),
            alarms_set: 0,
            ramp_ns: workload.ramp_ns,
            budget: Budget::new(workload.end.requests, workload.end.bytes),
            ended_by: None,
            sampling: workload
                .end
                .steady
                .then(|| Sampling::new(workload.end.steady_rule.unwrap_or_default())),
            steady: None,
            active: workload.streams.len(),
        };
        let files = files::lay_out(workload, capacity)?;
        for (index, stream) in workload.streams.iter().enumerate() {
            check(stream, workload, takes_discards)?;
            let laid = workload.fileset(stream).map(|(set, _)| &files[set]);
            load.add_stream(workload, index, capacity, laid, block_bytes, interval_ns)?;
        }
        if load.sampling.is_some() {
            load.alarm(load.ramp_ns, Alarm::Sample);
        }
        load.begin(workload, last_first);
        Ok(load)
    }

    /// Each worker begins with its stream. `last_first`: of those that begin together, the first ones last
    /// (`Kernel::runs_first_threads_last`).
    fn begin(&mut self, workload: &Workload, last_first: bool) {
        let few = if last_first {
            self.workers.len().min(FEW_THREADS)
        } else {
            0
        };
        let order = (few..self.workers.len()).chain((0..few).rev());
        for worker in order {
            let stream = &workload.streams[self.workers[worker].stream];
            self.alarm(stream.start_delay_ns, Alarm::Worker(worker as u32));
        }
    }

    fn add_stream(
        &mut self,
        workload: &Workload,
        index: usize,
        capacity: u64,
        files: Option<&FileLayout>,
        block_bytes: u32,
        interval_ns: u64,
    ) -> Result<(), SimError> {
        let stream = &workload.streams[index];
        let named = |error| SimError::Stream {
            stream: stream.name.clone(),
            error,
        };
        let sizes = files.map_or(std::slice::from_ref(&capacity), |laid| &laid.sizes);
        let first_worker = self.workers.len();
        let open = matches!(stream.arrival, Arrival::Open { .. });
        for worker in 0..stream.workers {
            let requests = workload
                .requests(index, worker, sizes, block_bytes)
                .map_err(named)?;
            let first_slot = self.slots.len() as u32;
            let slot = Slot {
                worker: self.workers.len() as u32,
                request: NOTHING,
                issued_ns: 0,
                intended_ns: 0,
                left: 0,
                rest: None,
                waits: false,
                stage: Stage::Data,
                unpaid: false,
                is_begun: false,
                has_looked: false,
            };
            let depth = stream.depth.max(1);
            let thinker = Thinker::new(stream, index, worker, workload.seed).filter(|_| !open);
            let rest = thinker.as_ref().and_then(Rest::new).map(Rest::without_spin);
            self.slots.resize(self.slots.len() + depth as usize, slot);
            let passes = match requests.passes() {
                None => Budget::default(),
                Some(Passes::Requests(of)) => Budget::new(Some(of), None),
                Some(Passes::Bytes(of)) => Budget::new(None, Some(of)),
            };
            self.workers.push(Worker {
                stream: index,
                passes,
                requests,
                arrivals: Arrivals::new(stream, index, worker, workload.seed),
                thinker: thinker.filter(|_| rest.is_none()),
                rest,
                depth: depth as usize,
                pending: None,
                free: (first_slot..first_slot + depth).rev().collect(),
                wakes_ns: None,
                is_ready: false,
                blocked: 0,
                gave_way: false,
                reaped: 0,
                has_ended: false,
                held: VecDeque::new(),
                unseen: VecDeque::with_capacity(depth as usize),
                reaping: false,
                cpu_ns: 0,
                own: None,
            });
        }
        let counted_from = workload.ramp_ns.max(stream.start_delay_ns);
        let end_ns = ends_at(workload.ramp_ns, workload.end.time_ns)
            .into_iter()
            .chain(ends_at(counted_from, stream.end.time_ns))
            .min();
        if let Some(end_ns) = end_ns {
            self.alarm(end_ns, Alarm::End(index as u32));
        }
        // The last sync of a stream has a slot of its own.
        let sync_slot = self.slots.len() as u32;
        self.slots.push(Slot {
            worker: first_worker as u32,
            request: NOTHING,
            issued_ns: 0,
            intended_ns: 0,
            left: 0,
            rest: None,
            waits: false,
            stage: Stage::EndSync,
            unpaid: false,
            is_begun: false,
            has_looked: false,
        });
        let changes = stream.mix.changes() > 0.0;
        let kinds = OpKind::made_by(stream);
        let budget = Budget::new(stream.end.requests, stream.end.bytes);
        let plan = Plan {
            kinds: &kinds,
            service: open,
            ramp_ns: workload.ramp_ns,
            start_ns: stream.start_delay_ns,
            interval_ns,
            expected_ns: end_ns.map(|end_ns| end_ns.saturating_sub(workload.ramp_ns)),
            end_ns,
            max_intervals: Plan::DEFAULT_MAX_INTERVALS,
        };
        if stream.per_worker {
            for worker in &mut self.workers[first_worker..] {
                worker.own = Some(Box::new(StreamRecorder::new(&plan)));
            }
        }
        self.streams.push(StreamState {
            name: stream.name.clone(),
            ends: stream.ends.clone(),
            recorder: StreamRecorder::new(&plan),
            issuer_priority: stream.priority.unwrap_or(Priority {
                class: spindle_workload::PriorityClass::BestEffort,
                level: DEFAULT_LEVEL,
            }),
            open,
            dsync: stream.sync.dsync || stream.sync.osync,
            osync: stream.sync.osync,
            fdatasyncs: stream.sync.fdatasync_every > 0,
            files: files.map_or_else(Vec::new, |laid| {
                let starts = laid.starts.iter().copied();
                starts.zip(laid.sizes.iter().copied()).collect()
            }),
            buffered: !stream.direct,
            seeks: stream.pattern != Pattern::Sequential,
            end_sync: stream.sync.end_fsync && changes,
            syncs_between: stream.sync.fsync_between,
            pace: stream
                .rate_limit
                .filter(|_| !open)
                .map(|limit| Pace::new(limit, stream.start_delay_ns)),
            limited: budget.is_limited() || self.budget.is_limited() || stream.passes.is_some(),
            budget,
            first_ns: stream.start_delay_ns,
            issuing: true,
            in_flight: 0,
            ended_by: None,
            ended_ns: 0,
            sync_slot,
            over: false,
            places: Vec::new().into_iter(),
        });
        Ok(())
    }

    /// The offsets of each stream's requests, in its order of issue.
    pub(crate) fn set_places(&mut self, places: Vec<Vec<u64>>) {
        for (stream, places) in self.streams.iter_mut().zip(places) {
            stream.places = places.into_iter();
        }
    }

    /// Sets an alarm. Ties go to the one set first.
    pub(crate) fn alarm(&mut self, at_ns: u64, alarm: Alarm) {
        self.alarms_set += 1;
        self.alarms.push(Reverse((at_ns, self.alarms_set, alarm)));
    }

    pub(crate) fn next_alarm_ns(&self) -> Option<u64> {
        self.alarms.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// True if there is an alarm that does not ring in any case.
    pub(crate) fn has_alarm(&self) -> bool {
        self.alarms
            .iter()
            .any(|Reverse((.., alarm))| !alarm.repeats())
    }

    /// The alarm that is due now, if any.
    pub(crate) fn ring(&mut self, now_ns: u64) -> Option<Alarm> {
        let &Reverse((at_ns, _, alarm)) = self.alarms.peek()?;
        if at_ns > now_ns {
            return None;
        }
        self.alarms.pop();
        Some(alarm)
    }

    #[inline]
    pub(crate) fn issuer(&self, slot: u32) -> Issuer {
        let thread = self.slots[slot as usize].worker;
        let stream = self.workers[thread as usize].stream;
        Issuer {
            thread,
            priority: self.streams[stream].issuer_priority,
        }
    }

    /// True if every worker of a stream has gone over its part as often as requested.
    pub(crate) fn passes_over(&self, stream: usize) -> bool {
        let mut workers = self.workers.iter().filter(|of| of.stream == stream);
        workers.all(|of| of.passes.spent().is_some())
    }

    /// Ends a stream: it issues nothing more.
    pub(crate) fn end_stream(&mut self, stream: usize, now_ns: u64, why: EndedBy) {
        let state = &mut self.streams[stream];
        if state.issuing {
            state.issuing = false;
            state.ended_ns = now_ns;
            state.ended_by.get_or_insert(why);
        }
    }

    /// Streams that end when this one does.
    pub(crate) fn ended_with(&self, stream: usize) -> Vec<usize> {
        let ends = &self.streams[stream].ends;
        let named = |other: &&StreamState| ends.contains(&other.name);
        let all = self.streams.iter().enumerate();
        all.filter(|(_, other)| named(other))
            .map(|(index, _)| index)
            .collect()
    }

    /// Ends the whole run.
    pub(crate) fn end_all(&mut self, now_ns: u64, why: EndedBy) {
        self.ended_by.get_or_insert(why.clone());
        for stream in 0..self.streams.len() {
            self.end_stream(stream, now_ns, why.clone());
        }
    }

    /// Takes a sample; ends the run if it has settled.
    pub(crate) fn look(&mut self, now_ns: u64) {
        let counts = self.counts();
        let Some(sampling) = &mut self.sampling else {
            return;
        };
        self.steady = sampling.look(now_ns - self.ramp_ns, counts);
        let next_ns = now_ns + sampling.sample_ns();
        if self.steady.is_some() {
            self.end_all(now_ns, EndedBy::Steady);
        } else if self.streams.iter().any(|stream| stream.issuing) {
            self.alarm(next_ns, Alarm::Sample);
        }
    }

    /// Counts of all streams, without fsyncs.
    fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for stream in &self.streams {
            let counts = stream.recorder.totals().counts();
            sum.requests += counts.requests;
            sum.bytes += counts.bytes;
            sum.latency_ns = sum.latency_ns.wrapping_add(counts.latency_ns);
        }
        sum
    }
}

const NOTHING: Request = Request {
    offset: 0,
    len: 0,
    file: 0,
    op: Op::Read,
    fsync_after: false,
};

fn ends_at(from_ns: u64, time_ns: Option<u64>) -> Option<u64> {
    Some(from_ns.saturating_add(time_ns?))
}

fn check(stream: &Stream, workload: &Workload, takes_discards: bool) -> Result<(), SimError> {
    let stream_name = || stream.name.clone();
    if stream.names.is_some() {
        return Err(SimError::Names {
            stream: stream_name(),
        });
    }
    if stream.mapped {
        return Err(SimError::Mapped {
            stream: stream_name(),
        });
    }
    if stream.mix.trim > 0.0 && !takes_discards {
        return Err(SimError::Trim {
            stream: stream_name(),
        });
    }
    if stream.mix.trim > 0.0 && !stream.direct {
        return Err(SimError::BufferedTrim {
            stream: stream_name(),
        });
    }
    let ends = |end: &spindle_workload::End| {
        end.steady || end.time_ns.is_some() || end.bytes.is_some() || end.requests.is_some()
    };
    if !ends(&workload.end) && !ends(&stream.end) && stream.passes.is_none() {
        return Err(SimError::Endless);
    }
    Ok(())
}
