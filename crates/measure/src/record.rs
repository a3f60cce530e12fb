//! The results of recorders: mergeable, and the source of the figures.

use thiserror::Error;

use crate::errors::ErrorLog;
use crate::figures::{
    CpuFigures, EndedBy, GeneratorFigures, Interval, IntervalFigures, LateFigures, LatencyFigures,
    OpFigures, RunFigures, StreamFigures, WorkerFigures,
};
use crate::histogram::Histogram;
use crate::kind::OpKind;
use crate::series::Series;
use crate::settle::SteadyFigures;

/// The percentiles in figures.
pub const PERCENTILES: [f64; 13] = [
    1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99,
];

/// Records that do not belong to the same run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MergeError {
    /// Their measured times do not start together.
    #[error(
        "records of one stream start at {a_ns} ns and at {b_ns} ns; give their recorders the same plan"
    )]
    Start {
        /// Start of one record, ns.
        a_ns: u64,
        /// Start of the other, ns.
        b_ns: u64,
    },
    /// Their intervals have no common boundaries.
    #[error(
        "series with intervals of {a_ns} ns and {b_ns} ns have no common boundaries; give their recorders the same plan"
    )]
    Interval {
        /// Interval of one record, ns.
        a_ns: u64,
        /// Interval of the other, ns.
        b_ns: u64,
    },
}

/// The record of one stream by one worker, or by all workers together.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamRecord {
    pub(crate) ramp_ns: u64,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) kinds: [Option<KindRecord>; OpKind::ALL.len()],
    pub(crate) series: Series,
    pub(crate) outstanding_area: u128,
    pub(crate) max_lag_ns: u64,
    pub(crate) late: LateFigures,
    pub(crate) errors: ErrorLog,
}

/// The record of one kind of operation.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct KindRecord {
    pub(crate) latency: Histogram,
    pub(crate) service: Option<Histogram>,
    pub(crate) bytes: u64,
    pub(crate) uncounted_bytes: u64,
}

/// Facts about the run that only the generator of the load knows.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// Time from the first request to the end of the last, ramp and end sync included, ns.
    pub elapsed_ns: u64,
    /// The reason why the run ended.
    pub ended_by: EndedBy,
    /// CPU time of the workers.
    pub cpu: CpuFigures,
    /// How the load was made.
    pub generator: GeneratorFigures,
    /// The window that had settled, if the run was asked to end with one.
    pub steady: Option<SteadyFigures>,
}

impl StreamRecord {
    /// Adds the record of another worker of the same stream.
    ///
    /// # Errors
    /// If the recorders had different ramps, starts or intervals.
    pub fn merge(&mut self, other: StreamRecord) -> Result<(), MergeError> {
        if (self.ramp_ns, self.start_ns) != (other.ramp_ns, other.start_ns) {
            return Err(MergeError::Start {
                a_ns: self.start_ns,
                b_ns: other.start_ns,
            });
        }
        check_fit(&self.series, &other.series)?;
        self.series.merge(other.series);
        for (mine, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => mine.merge(theirs),
                (mine @ None, theirs) => *mine = theirs,
                (Some(_), None) => {}
            }
        }
        self.end_ns = self.end_ns.max(other.end_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.late.requests += other.late.requests;
        self.late.max_latency_ns = self.late.max_latency_ns.max(other.late.max_latency_ns);
        self.outstanding_area += other.outstanding_area;
        self.max_lag_ns = self.max_lag_ns.max(other.max_lag_ns);
        self.errors.merge(&other.errors);
        Ok(())
    }

    /// Measured time: from the end of the ramp, or the stream's later start, to its end, ns.
    #[must_use]
    pub fn measured_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Last completion, or the end if that is later, ns of the run's clock.
    #[must_use]
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Latencies of one kind of operation, if any were recorded.
    #[must_use]
    pub fn latency(&self, kind: OpKind) -> Option<&Histogram> {
        self.kinds[kind as usize]
            .as_ref()
            .map(|record| &record.latency)
            .filter(|latency| latency.count() > 0)
    }

    /// The figures of the stream.
    #[must_use]
    pub fn figures(&self, name: &str) -> StreamFigures {
        let measured_ns = self.measured_ns();
        let op = |kind: OpKind| {
            self.kinds[kind as usize]
                .as_ref()
                .and_then(|record| record.figures(measured_ns))
        };
        StreamFigures {
            name: name.to_owned(),
            measured_ns,
            total_bytes: OpKind::ALL.iter().map(|&kind| self.total_bytes(kind)).sum(),
            total_read_bytes: self.total_bytes(OpKind::Read),
            total_write_bytes: self.total_bytes(OpKind::Write) + self.total_bytes(OpKind::Create),
            read: op(OpKind::Read),
            write: op(OpKind::Write),
            trim: op(OpKind::Trim),
            zero: op(OpKind::Zero),
            fsync: op(OpKind::Fsync),
            create: op(OpKind::Create),
            open: op(OpKind::Open),
            stat: op(OpKind::Stat),
            rename: op(OpKind::Rename),
            unlink: op(OpKind::Unlink),
            mkdir: op(OpKind::Mkdir),
            rmdir: op(OpKind::Rmdir),
            readdir: op(OpKind::Readdir),
            mean_outstanding: ratio(self.outstanding_area as f64, measured_ns as f64),
            max_lag_ns: self.max_lag_ns,
            late: self.late,
            errors: self.errors.figures(),
            workers: Vec::new(),
        }
    }

    /// The figures of the worker that recorded it.
    #[must_use]
    pub fn worker_figures(&self, worker: u32) -> WorkerFigures {
        let mut latency = Histogram::new();
        let mut bytes = 0;
        for (kind, record) in OpKind::ALL.into_iter().zip(&self.kinds) {
            if let (true, Some(record)) = (kind != OpKind::Fsync, record) {
                latency.merge(&record.latency);
                bytes += record.bytes;
            }
        }
        let seconds = self.measured_ns() as f64 / 1e9;
        WorkerFigures {
            worker,
            requests: latency.count(),
            bytes,
            iops: ratio(latency.count() as f64, seconds),
            bytes_per_s: ratio(bytes as f64, seconds),
            mean_ns: latency.mean_ns(),
            p50_ns: latency.value_at_percentile(50.0).unwrap_or(0),
            p99_ns: latency.value_at_percentile(99.0).unwrap_or(0),
            max_ns: latency.max_ns(),
        }
    }

    /// Bytes including those of the ramp and of the time after the end.
    fn total_bytes(&self, kind: OpKind) -> u64 {
        self.kinds[kind as usize].as_ref().map_or(0, |record| {
            record.uncounted_bytes.saturating_add(record.bytes)
        })
    }
}

impl KindRecord {
    fn merge(&mut self, other: KindRecord) {
        self.latency.merge(&other.latency);
        match (&mut self.service, other.service) {
            (Some(mine), Some(theirs)) => mine.merge(&theirs),
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.uncounted_bytes = self.uncounted_bytes.saturating_add(other.uncounted_bytes);
    }

    fn figures(&self, measured_ns: u64) -> Option<OpFigures> {
        let latency = LatencyFigures::of(&self.latency)?;
        let seconds = measured_ns as f64 / 1e9;
        Some(OpFigures {
            requests: self.latency.count(),
            bytes: self.bytes,
            iops: ratio(self.latency.count() as f64, seconds),
            bytes_per_s: ratio(self.bytes as f64, seconds),
            latency,
            service: self.service.as_ref().and_then(LatencyFigures::of),
        })
    }
}

impl LatencyFigures {
    /// Figures of a histogram; `None` if it is empty.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Option<Self> {
        (histogram.count() > 0).then(|| LatencyFigures {
            min_ns: histogram.min_ns(),
            mean_ns: histogram.mean_ns(),
            max_ns: histogram.max_ns(),
            sdev_ns: histogram.sdev_ns(),
            percentiles: histogram.percentiles(&PERCENTILES),
            histogram: histogram.encode(),
        })
    }
}

impl RunFigures {
    /// Figures of a run from the (merged) records of its streams, in the order of the workload.
    ///
    /// # Errors
    /// If the recorders had different ramps or intervals.
    pub fn new(streams: Vec<(String, StreamRecord)>, facts: RunFacts) -> Result<Self, MergeError> {
        let figures = streams
            .iter()
            .map(|(name, record)| record.figures(name))
            .collect();
        let measured_ns = streams
            .iter()
            .map(|(_, record)| record.end_ns - record.ramp_ns)
            .max()
            .unwrap_or(0);
        let all_series = streams.into_iter().map(|(_, record)| record.series);
        let (interval_ns, series) = join(all_series.collect(), measured_ns)?;
        Ok(RunFigures {
            measured_ns,
            elapsed_ns: facts.elapsed_ns,
            ended_by: facts.ended_by,
            streams: figures,
            series,
            interval_ns,
            cpu: facts.cpu,
            generator: facts.generator,
            log: None,
            steady: facts.steady,
            verification: None,
        })
    }
}

/// Series of all streams side by side, in the longest interval any of them has.
fn join(mut streams: Vec<Series>, measured_ns: u64) -> Result<(u64, Vec<Interval>), MergeError> {
    let Some(longest) = streams
        .iter()
        .max_by_key(|series| series.interval_ns())
        .cloned()
    else {
        return Ok((0, Vec::new()));
    };
    let interval_ns = longest.interval_ns();
    let mut length = 0;
    for series in &mut streams {
        check_fit(series, &longest)?;
        series.coarsen_to(interval_ns);
        length = length.max(series.len());
    }
    let mut streams: Vec<_> = streams.iter().map(Series::intervals).collect();
    let intervals = (0..length)
        .map(|index| {
            let start_ns = interval_ns.saturating_mul(index as u64);
            Interval {
                start_ns,
                length_ns: interval_ns.min(measured_ns.saturating_sub(start_ns)),
                streams: streams
                    .iter_mut()
                    .map(|series| series.next().unwrap_or_default())
                    .collect::<Vec<IntervalFigures>>(),
            }
        })
        .collect();
    Ok((interval_ns, intervals))
}

fn check_fit(a: &Series, b: &Series) -> Result<(), MergeError> {
    if a.fits(b) {
        Ok(())
    } else {
        Err(MergeError::Interval {
            a_ns: a.interval_ns(),
            b_ns: b.interval_ns(),
        })
    }
}

/// 0 if the divisor is 0: a figure must be a number.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
