//! The figures of a run, real or modelled: the one shape that engine and simulator both fill.

use serde::Serialize;

use crate::VerificationFigures;
use crate::kind::OpKind;
use crate::settle::SteadyFigures;

/// Everything that the load itself records of a run. Times in ns unless the name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunFigures {
    /// Time that counts: from the end of the ramp to the end of the requested time, or to the last completion if the run
    /// ended otherwise, ns.
    pub measured_ns: u64,
    /// Time from the first request to the end of the last, ramp and end sync included, ns.
    pub elapsed_ns: u64,
    /// The reason why the run ended.
    pub ended_by: EndedBy,
    /// The streams, in the order of the workload.
    pub streams: Vec<StreamFigures>,
    /// One entry an interval, in order of time; the last may be shorter.
    pub series: Vec<Interval>,
    /// Length of an interval, ns.
    pub interval_ns: u64,
    /// CPU time and context switches of the workers (0 for a modelled run).
    pub cpu: CpuFigures,
    /// How the load was made.
    pub generator: GeneratorFigures,
    /// The completion log, if one was asked for.
    #[serde(default)]
    pub log: Option<LogFigures>,
    /// The window that had settled, if the run was asked to end with one.
    #[serde(default)]
    pub steady: Option<SteadyFigures>,
    /// The result of the verification of blocks; `None`: nothing was verified.
    #[serde(default)]
    pub verification: Option<VerificationFigures>,
}

/// The reason why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum EndedBy {
    /// The requested time was over.
    Time,
    /// The requested bytes were moved.
    Bytes,
    /// The requested number of requests was completed.
    Requests,
    /// The figures were steady.
    Steady,
    /// The user stopped it: figures are partial.
    Stopped,
    /// An I/O error: figures are partial.
    Error {
        /// errno.
        errno: i32,
        /// Kind of operation (`read`, `write`, `fsync` ...).
        op: String,
        /// Name of the file, if the stream has several.
        #[serde(default)]
        file: Option<String>,
        /// Byte offset on the target or in the file; number of the name for operations on names.
        offset: u64,
        /// Length, bytes.
        len: u64,
    },
}

/// Figures of one stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamFigures {
    /// Its name in the workload.
    pub name: String,
    /// Measured time of this stream, ns.
    pub measured_ns: u64,
    /// Bytes moved including the ramp and `late` (to be compared with the device's own counters).
    pub total_bytes: u64,
    /// Bytes read including the ramp.
    pub total_read_bytes: u64,
    /// Bytes written including the ramp and the content of new files.
    pub total_write_bytes: u64,
    /// Reads, if any were issued.
    pub read: Option<OpFigures>,
    /// Writes, if any were issued.
    pub write: Option<OpFigures>,
    /// Discards, if any were issued.
    pub trim: Option<OpFigures>,
    /// Write-zeroes, if any were issued.
    pub zero: Option<OpFigures>,
    /// fsync/fdatasync calls, if any were issued; `bytes` is 0.
    pub fsync: Option<OpFigures>,
    /// Files made, filled and closed, if any were; `bytes` is their content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<OpFigures>,
    /// Files opened and closed, if any were; `bytes` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<OpFigures>,
    /// Attributes of files looked up, if any were; `bytes` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stat: Option<OpFigures>,
    /// Files renamed, if any were; `bytes` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rename: Option<OpFigures>,
    /// Files removed, if any were; `bytes` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlink: Option<OpFigures>,
    /// Directories made, if any were; `bytes` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mkdir: Option<OpFigures>,
    /// Directories removed, if any were; `bytes` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmdir: Option<OpFigures>,
    /// Directories listed, if any were; `bytes` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readdir: Option<OpFigures>,
    /// Mean number of outstanding requests over the measured time (time-weighted, independent of
    /// the latency figures, so that Little's law can be checked).
    pub mean_outstanding: f64,
    /// Open loop: largest lag of an issue behind its intended start, ns.
    pub max_lag_ns: u64,
    /// Requests under way when the time was over: drained, not counted.
    #[serde(default)]
    pub late: LateFigures,
    /// Errors by kind.
    pub errors: Vec<ErrorFigures>,
    /// Each worker by itself, if the workload asks for that, in order of their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerFigures>,
}

/// Figures of one worker of a stream in its measured time, without fsyncs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WorkerFigures {
    /// Number of the worker.
    pub worker: u32,
    /// Completed requests.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Exact mean latency, ns; 0 without requests, as are the others.
    pub mean_ns: f64,
    /// Median latency, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Largest latency, ns.
    pub max_ns: u64,
}

impl StreamFigures {
    /// Figures of one kind of operation, if any were issued.
    #[must_use]
    pub fn of(&self, kind: OpKind) -> Option<&OpFigures> {
        match kind {
            OpKind::Read => &self.read,
            OpKind::Write => &self.write,
            OpKind::Trim => &self.trim,
            OpKind::Zero => &self.zero,
            OpKind::Fsync => &self.fsync,
            OpKind::Create => &self.create,
            OpKind::Open => &self.open,
            OpKind::Stat => &self.stat,
            OpKind::Rename => &self.rename,
            OpKind::Unlink => &self.unlink,
            OpKind::Mkdir => &self.mkdir,
            OpKind::Rmdir => &self.rmdir,
            OpKind::Readdir => &self.readdir,
        }
        .as_ref()
    }
}

/// Requests that completed after the end of the measured time. No other figure but the total bytes includes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LateFigures {
    /// Number of such requests.
    pub requests: u64,
    /// Largest latency among them, ns: a request that hung shows here.
    pub max_latency_ns: u64,
}

/// Figures of one operation of one stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpFigures {
    /// Completed requests in the measured time.
    pub requests: u64,
    /// Bytes moved in the measured time.
    pub bytes: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Latency: issue (closed loop) or intended start (open loop) to completion.
    pub latency: LatencyFigures,
    /// Open loop: issue to completion.
    #[serde(default)]
    pub service: Option<LatencyFigures>,
}

/// A latency distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyFigures {
    /// Smallest, ns.
    pub min_ns: u64,
    /// Exact mean, ns.
    pub mean_ns: f64,
    /// Largest, ns.
    pub max_ns: u64,
    /// Exact standard deviation, ns.
    pub sdev_ns: f64,
    /// (percentile, ns) for 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99.
    pub percentiles: Vec<(f64, u64)>,
    /// The whole histogram: HdrHistogram V2, deflated, base64 (`HISTF...`).
    pub histogram: String,
}

/// Errors of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorFigures {
    /// errno.
    pub errno: i32,
    /// Kind of operation.
    pub op: String,
    /// Number of these errors.
    pub count: u64,
    /// Byte offset of the first; number of the name for operations on names.
    pub first_offset: u64,
}

/// One interval of the time series, with each stream apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// Start, ns after the end of the ramp.
    pub start_ns: u64,
    /// Length, ns.
    pub length_ns: u64,
    /// In the order of the workload's streams.
    pub streams: Vec<IntervalFigures>,
}

/// One interval of one stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct IntervalFigures {
    /// Reads completed (with open, stat and readdir).
    pub reads: u64,
    /// Writes completed (with trim, zero, and operations that change names).
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sum of read latencies, ns.
    pub read_latency_ns: u64,
    /// Sum of write latencies, ns.
    pub write_latency_ns: u64,
    /// Largest latency, ns.
    pub max_latency_ns: u64,
    /// Latencies of reads and writes: (bucket, count) of each used [bucket](crate::latency_bucket_ns).
    #[serde(default)]
    pub latency_counts: Vec<(u8, u64)>,
}

/// The state of the completion log at the end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LogFigures {
    /// Completions in the log.
    pub completions: u64,
    /// Completions missing from the log: the file took them more slowly than the load made them, or not at all.
    pub lost: u64,
    /// The reason why writing it ended early.
    #[serde(default)]
    pub error: Option<String>,
}

/// CPU use of the load's own threads over the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct CpuFigures {
    /// User time, ns.
    pub user_ns: u64,
    /// System time, ns.
    pub system_ns: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

/// How the load was made, and what the generator could have made.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct GeneratorFigures {
    /// `io_uring`, `pread`, `names`, `null` or `simulator`.
    pub engine: String,
    /// The reason for the choice, for people.
    pub reason: String,
    /// Options in force (`defer_taskrun`, `registered_buffers`, `sqpoll`, `iopoll`, ...).
    pub features: Vec<String>,
    /// `request` (exact) or `batch`.
    pub timestamps: String,
    /// Highest request rate that the calibration saw this generator reach on this target, IOPS.
    pub ceiling_iops: Option<f64>,
    /// Rate of each back end in the calibration, IOPS.
    pub calibration: Vec<(String, f64)>,
    /// Largest share of the measured time that any worker's thread spent on a CPU, 0..=1.
    pub busiest_worker: f64,
}
