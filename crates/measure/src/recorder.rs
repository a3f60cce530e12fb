//! The recorder of one worker: the engine calls it on every completion.
//!
//! The hot path is a histogram, a coarse one of the interval, and one compare. Work that is due once per interval - the
//! series, the ramp - is done on differences of the running totals when a completion crosses the next boundary.

use crate::coarse::{Counts, LATENCY_BUCKETS, add_quarters};
use crate::errors::ErrorLog;
use crate::figures::LateFigures;
use crate::histogram::{Histogram, QUARTERS};
use crate::kind::OpKind;
use crate::record::{KindRecord, StreamRecord};
use crate::series::{Series, Sums};
use crate::settle;

/// Later times (146 years) are cut to this, so that sums of a few of them stay in range, ns.
const LATEST_NS: u64 = 1 << 62;

/// The settings of a recorder. Times in ns on the run's clock, whose zero is the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan<'a> {
    /// Kinds of operation that will be recorded; others are accepted, but the first of each allocates.
    pub kinds: &'a [OpKind],
    /// True if service times are recorded beside latencies (open loop).
    pub service: bool,
    /// End of the ramp.
    pub ramp_ns: u64,
    /// When the stream starts; if later than the ramp's end, its measured time starts here.
    pub start_ns: u64,
    /// Length of an interval of the series; at least 1.
    pub interval_ns: u64,
    /// Requested measured time, if known: the series is allocated for it.
    pub expected_ns: Option<u64>,
    /// End of counting, if the run ends by time. Later completions are drained, not counted: a window that
    /// stretched to the last straggler would include a time with few requests outstanding and give too low a rate.
    pub end_ns: Option<u64>,
    /// Number of intervals beyond which neighbours are merged and `interval_ns` doubles.
    pub max_intervals: usize,
}

impl Plan<'_> {
    /// 4.5 hours at one second, 1.7 MB.
    pub const DEFAULT_MAX_INTERVALS: usize = 16_384;
}

/// Counters of the whole time, ramp included, for progress: cheap to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Completed requests by `OpKind as usize`.
    pub requests: [u64; OpKind::ALL.len()],
    /// Bytes moved by `OpKind as usize`.
    pub bytes: [u64; OpKind::ALL.len()],
    /// Sum of the latencies by `OpKind as usize`, ns; wraps.
    pub latency_ns: [u64; OpKind::ALL.len()],
    /// Errors.
    pub errors: u64,
}

type Tallies = [Option<Box<Tally>>; OpKind::ALL.len()];

/// Records one stream's requests in one worker. Neither shared nor locked: each worker has its own, and the records from
/// [`finish`](Self::finish) are merged.
///
/// Completions must come in the order of their times (as a worker sees them); a request is counted if it completes at or after
/// the end of the ramp and not after the end of counting. A clone can be finished while the original goes on: it gives the
/// record so far.
#[derive(Debug, Clone)]
pub struct StreamRecorder {
    next_boundary_ns: u64,
    last_completed_ns: u64,
    max_lag_ns: u64,
    outstanding: Outstanding,
    tallies: Tallies,
    /// The counted totals, once counting has ended. From then on `tallies` has the later completions.
    counted: Option<Tallies>,
    in_ramp: bool,
    ramp_ns: u64,
    start_ns: u64,
    end_ns: u64,
    service: bool,
    series: Series,
    errors: ErrorLog,
}

impl Totals {
    /// Totals of operations that only read: reads, and names looked up.
    #[must_use]
    pub fn reads(&self) -> (u64, u64) {
        self.sum(&OpKind::LOOKING)
    }

    /// Totals of operations that change something: writes, discards, and names changed.
    #[must_use]
    pub fn writes(&self) -> (u64, u64) {
        self.sum(&OpKind::CHANGING)
    }

    /// Totals of both, for the rule of `settle`.
    #[must_use]
    pub fn counts(&self) -> settle::Counts {
        let ((reads, read_bytes), (writes, write_bytes)) = (self.reads(), self.writes());
        let kinds = OpKind::LOOKING.iter().chain(&OpKind::CHANGING);
        settle::Counts {
            requests: reads + writes,
            bytes: read_bytes + write_bytes,
            latency_ns: kinds.fold(0, |sum, &kind| {
                sum.wrapping_add(self.latency_ns[kind as usize])
            }),
        }
    }

    /// Requests and bytes.
    fn sum(&self, kinds: &[OpKind]) -> (u64, u64) {
        let add = |of: &[u64]| kinds.iter().map(|&kind| of[kind as usize]).sum();
        (add(&self.requests), add(&self.bytes))
    }
}

impl StreamRecorder {
    /// Allocates all memory that recording needs.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let ramp_ns = plan.ramp_ns.min(LATEST_NS);
        let start_ns = plan.start_ns.clamp(ramp_ns, LATEST_NS);
        let series = Series::new(
            ramp_ns,
            plan.interval_ns.clamp(1, LATEST_NS),
            plan.expected_ns,
            plan.max_intervals,
        );
        let end_ns = plan
            .end_ns
            .map_or(LATEST_NS, |end_ns| end_ns.clamp(start_ns, LATEST_NS));
        let mut recorder = StreamRecorder {
            next_boundary_ns: if ramp_ns > 0 {
                ramp_ns
            } else {
                series.next_boundary_ns().min(end_ns + 1)
            },
            last_completed_ns: 0,
            max_lag_ns: 0,
            outstanding: Outstanding::counted_from(start_ns),
            tallies: [const { None }; OpKind::ALL.len()],
            counted: None,
            in_ramp: ramp_ns > 0,
            ramp_ns,
            start_ns,
            end_ns,
            service: plan.service,
            series,
            errors: ErrorLog::default(),
        };
        for &kind in plan.kinds {
            recorder.tallies[kind as usize] = Some(Tally::new(plan.service));
        }
        recorder
    }

    /// Records a completed request (closed loop): its latency is the time from issue to completion.
    #[inline(always)]
    pub fn record(&mut self, kind: OpKind, completed_ns: u64, latency_ns: u64, bytes: u64) {
        self.reach(completed_ns);
        self.tally(kind).record(latency_ns, bytes);
    }

    /// Records a completed request of an open loop: its latency counts from the intended start, `service_ns` from the issue.
    #[inline]
    pub fn record_open(
        &mut self,
        kind: OpKind,
        completed_ns: u64,
        latency_ns: u64,
        service_ns: u64,
        bytes: u64,
    ) {
        self.reach(completed_ns);
        self.max_lag_ns = self.max_lag_ns.max(latency_ns.saturating_sub(service_ns));
        let tally = self.tally(kind);
        tally.record(latency_ns, bytes);
        if let Some(service) = &mut tally.service {
            service.record(service_ns);
        }
    }

    /// Sets the number of outstanding requests from `now_ns` on. To be called whenever it changes (once a batch is enough),
    /// with the worker's own count: it is the independent side of Little's law.
    #[inline]
    pub fn set_outstanding(&mut self, now_ns: u64, count: u64) {
        self.outstanding.set(now_ns.min(self.end_ns), count);
    }

    /// Records a failed request; counted also during the ramp. `offset` is that of the request, bytes.
    #[cold]
    pub fn error(&mut self, kind: OpKind, errno: i32, offset: u64) {
        self.errors.add(kind, errno, offset, 1);
    }

    /// Totals since the start, ramp included.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals {
            errors: self.errors.count(),
            ..Totals::default()
        };
        for tallies in [Some(&self.tallies), self.counted.as_ref()]
            .into_iter()
            .flatten()
        {
            for (index, tally) in tallies.iter().enumerate() {
                let Some(tally) = tally else { continue };
                totals.requests[index] += tally.ramp_requests + tally.latency.count();
                totals.bytes[index] += tally.ramp_bytes + tally.bytes;
                totals.latency_ns[index] = totals.latency_ns[index]
                    .wrapping_add(tally.ramp_latency_ns)
                    .wrapping_add(tally.latency.sum_ns() as u64);
            }
        }
        totals
    }

    /// Ends the recording. `end_ns` is the end of the worker's measured time: that of its last completion, of its end
    /// sync, or of its requested time; later completions are included and move it, but not past the plan's end.
    #[must_use]
    pub fn finish(mut self, end_ns: u64) -> StreamRecord {
        let last_ns = end_ns.max(self.last_completed_ns).min(LATEST_NS);
        if self.in_ramp {
            self.end_ramp();
        }
        self.end_ns = self.end_ns.min(last_ns);
        if self.counted.is_none() {
            self.end_counting();
        }
        let mut late = LateFigures::default();
        let counted = self.counted.take().unwrap_or_default();
        let mut kinds = counted.map(|tally| {
            tally.map(|tally| KindRecord {
                latency: tally.latency,
                service: tally.service,
                bytes: tally.bytes,
                uncounted_bytes: tally.ramp_bytes,
            })
        });
        for (kind, tally) in kinds.iter_mut().zip(self.tallies) {
            let Some(tally) = tally else { continue };
            late.requests += tally.latency.count();
            late.max_latency_ns = late.max_latency_ns.max(tally.latency.max_ns());
            kind.get_or_insert_default().uncounted_bytes += tally.bytes;
        }
        StreamRecord {
            ramp_ns: self.ramp_ns,
            start_ns: self.start_ns,
            end_ns: self.end_ns.max(self.start_ns),
            last_ns,
            kinds,
            series: self.series,
            outstanding_area: self.outstanding.area,
            max_lag_ns: self.max_lag_ns,
            late,
            errors: self.errors,
        }
    }

    /// The only check of the time on every request: it is true if a boundary was crossed.
    #[inline]
    fn reach(&mut self, now_ns: u64) {
        if now_ns >= self.next_boundary_ns {
            self.cross(now_ns);
        }
        self.last_completed_ns = now_ns;
    }

    #[inline]
    fn tally(&mut self, kind: OpKind) -> &mut Tally {
        let service = self.service;
        self.tallies[kind as usize].get_or_insert_with(
            #[cold]
            || Tally::new(service),
        )
    }

    #[cold]
    #[inline(never)]
    fn cross(&mut self, now_ns: u64) {
        if self.in_ramp {
            self.end_ramp();
        }
        let now_ns = now_ns.min(LATEST_NS);
        if now_ns > self.end_ns {
            self.end_counting();
            self.next_boundary_ns = u64::MAX;
            return;
        }
        while now_ns >= self.series.next_boundary_ns() {
            self.close_interval();
        }
        self.next_boundary_ns = self.series.next_boundary_ns().min(self.end_ns + 1);
    }

    /// Closes the series; later completions do not count.
    fn end_counting(&mut self) {
        self.outstanding.close(self.end_ns);
        while self.end_ns > self.series.next_boundary_ns() {
            self.close_interval();
        }
        let (last, latencies) = self.take_interval();
        self.series.push_last(last, &latencies, self.end_ns);
        self.counted = Some(std::mem::take(&mut self.tallies));
    }

    /// Moves the totals so far to the ramp and starts again from zero.
    fn end_ramp(&mut self) {
        self.in_ramp = false;
        self.max_lag_ns = 0;
        for tally in self.tallies.iter_mut().flatten() {
            tally.end_ramp();
        }
    }

    fn close_interval(&mut self) {
        let (interval, latencies) = self.take_interval();
        self.series.push(interval, &latencies);
    }

    /// Totals since the last call (or the end of the ramp).
    fn take_interval(&mut self) -> (Sums, Counts) {
        let mut interval = Sums::default();
        let mut counts = [0; LATENCY_BUCKETS];
        for (kind, tally) in OpKind::ALL.into_iter().zip(&mut self.tallies) {
            let Some(tally) = tally else { continue };
            let part = tally.take_interval();
            if OpKind::LOOKING.contains(&kind) {
                interval.reads += part.requests;
                interval.read_bytes += part.bytes;
                interval.read_latency_ns = interval.read_latency_ns.saturating_add(part.latency_ns);
            } else if OpKind::CHANGING.contains(&kind) {
                interval.writes += part.requests;
                interval.write_bytes += part.bytes;
                interval.write_latency_ns =
                    interval.write_latency_ns.saturating_add(part.latency_ns);
            } else {
                continue;
            }
            interval.max_latency_ns = interval.max_latency_ns.max(part.max_ns);
            add_quarters(&mut counts, &tally.quarters);
            tally.quarters.fill(0);
        }
        (interval, counts)
    }
}

/// Running totals of one kind of operation.
#[derive(Debug, Clone)]
struct Tally {
    bytes: u64,
    interval_max_ns: u64,
    /// Counts of the interval by quarters of powers of two.
    quarters: [u64; QUARTERS],
    latency: Histogram,
    service: Option<Histogram>,
    /// Totals at the start of the interval.
    base: Base,
    ramp_requests: u64,
    ramp_bytes: u64,
    ramp_latency_ns: u64,
}

#[derive(Debug, Clone, Default)]
struct Base {
    requests: u64,
    bytes: u64,
    latency_ns: u128,
}

/// One kind's share of an interval.
struct Part {
    requests: u64,
    bytes: u64,
    latency_ns: u64,
    max_ns: u64,
}

impl Tally {
    fn new(service: bool) -> Box<Self> {
        Box::new(Tally {
            bytes: 0,
            interval_max_ns: 0,
            quarters: [0; QUARTERS],
            latency: Histogram::touched(),
            service: service.then(Histogram::touched),
            base: Base::default(),
            ramp_requests: 0,
            ramp_bytes: 0,
            ramp_latency_ns: 0,
        })
    }

    #[inline(always)]
    fn record(&mut self, latency_ns: u64, bytes: u64) {
        self.bytes = self.bytes.wrapping_add(bytes);
        if latency_ns > self.interval_max_ns {
            self.raise(latency_ns);
        }
        self.quarters[self.latency.record_in_quarter(latency_ns)] += 1;
    }

    #[cold]
    #[inline(never)]
    fn raise(&mut self, latency_ns: u64) {
        self.interval_max_ns = latency_ns;
    }

    fn end_ramp(&mut self) {
        self.ramp_requests = self.latency.count();
        self.ramp_bytes = self.bytes;
        self.ramp_latency_ns = self.latency.sum_ns() as u64;
        self.bytes = 0;
        self.interval_max_ns = 0;
        self.quarters.fill(0);
        self.base = Base::default();
        self.latency.clear();
        if let Some(service) = &mut self.service {
            service.clear();
        }
    }

    fn take_interval(&mut self) -> Part {
        let now = Base {
            requests: self.latency.count(),
            bytes: self.bytes,
            latency_ns: self.latency.sum_ns(),
        };
        let part = Part {
            requests: now.requests - self.base.requests,
            bytes: now.bytes.wrapping_sub(self.base.bytes),
            latency_ns: u64::try_from(now.latency_ns.saturating_sub(self.base.latency_ns))
                .unwrap_or(u64::MAX),
            max_ns: std::mem::take(&mut self.interval_max_ns),
        };
        self.base = now;
        part
    }
}

/// Integral of the number of outstanding requests over time.
#[derive(Debug, Clone)]
struct Outstanding {
    count: u64,
    /// Time of the last change; never before the measured time, so that earlier times add nothing.
    since_ns: u64,
    /// Request-nanoseconds.
    area: u128,
}

impl Outstanding {
    fn counted_from(start_ns: u64) -> Self {
        Outstanding {
            count: 0,
            since_ns: start_ns,
            area: 0,
        }
    }

    #[inline]
    fn set(&mut self, now_ns: u64, count: u64) {
        let now_ns = now_ns.max(self.since_ns);
        if self.count > 0 {
            self.area += u128::from(self.count) * u128::from(now_ns - self.since_ns);
        }
        self.since_ns = now_ns;
        self.count = count;
    }

    /// Ends the integral at `end_ns`.
    fn close(&mut self, end_ns: u64) {
        self.set(end_ns, 0);
    }
}
