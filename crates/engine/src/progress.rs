//! The progress of a run.

use serde::Serialize;

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The back ends are compared.
    Calibrate,
    /// Load is on, not counted yet.
    Ramp,
    /// Load is on and counted.
    Measure,
    /// Outstanding requests and the end fsync.
    Sync,
    /// Over.
    Done,
}

/// A snapshot. Counts run from the start, ramp included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// Time since the first request, ns.
    pub elapsed_ns: u64,
    /// Time since the end of the ramp, ns.
    pub measured_ns: u64,
    /// In the order of the workload.
    pub streams: Vec<StreamProgress>,
}

/// Counts of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct StreamProgress {
    /// Its name.
    pub name: String,
    /// Reads completed.
    pub reads: u64,
    /// Writes, trims and zeroings completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written, trimmed or zeroed.
    pub write_bytes: u64,
    /// Requests failed.
    pub errors: u64,
}
