//! The caller's input besides the workload: open files and engine options.

use std::os::fd::RawFd;
use std::str::FromStr;
use std::sync::Arc;

use crate::Appointment;

/// The target of one stream, or one of its files. The engine never opens anything: the write guard does, and chooses the
/// flags (O_DIRECT, O_DSYNC, access mode), which are used as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamFile {
    /// Open descriptor; it stays the caller's and must stay open until the run is over. O_NOATIME is set on it where the
    /// kernel allows it: a run leaves the access time alone.
    pub fd: RawFd,
    /// Size of the target, bytes.
    pub size_bytes: u64,
    /// Offsets and lengths are multiples of this, bytes (`statx` DIOALIGN, or the logical block).
    pub block_bytes: u32,
    /// Buffers are aligned to this, bytes; a power of two.
    pub memory_align: u32,
}

/// The target that completes everything by itself, without a system call: for the generator's own cost
/// and for tests of its timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NullTarget {
    /// Size, bytes.
    pub size_bytes: u64,
    /// Each request of a worker takes this long, one after another, ns. 0: done at once.
    pub service_ns: u64,
}

/// The back end that makes the system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// The one that a short calibration finds faster.
    #[default]
    Auto,
    /// io_uring, or an error.
    IoUring,
    /// pread/pwrite, one thread for each outstanding request.
    Pread,
}

impl FromStr for EngineChoice {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "auto" => Ok(Self::Auto),
            "io_uring" => Ok(Self::IoUring),
            "pread" => Ok(Self::Pread),
            _ => Err(UnknownName::new("engine", name, "auto, io_uring, pread")),
        }
    }
}

/// How completions are stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timestamps {
    /// Each completion reads the clock.
    #[default]
    Request,
    /// One reading for all completions found together.
    Batch,
}

impl FromStr for Timestamps {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "request" => Ok(Self::Request),
            "batch" => Ok(Self::Batch),
            _ => Err(UnknownName::new("timestamps", name, "request, batch")),
        }
    }
}

/// An option has no such value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option}: unknown value `{given}`; allowed: {allowed}")]
pub struct UnknownName {
    option: &'static str,
    given: String,
    allowed: &'static str,
}

impl UnknownName {
    fn new(option: &'static str, given: &str, allowed: &'static str) -> Self {
        Self {
            option,
            given: given.to_owned(),
            allowed,
        }
    }
}

/// Options of the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Back end.
    pub engine: EngineChoice,
    /// A kernel thread takes the submissions (io_uring only).
    pub sqpoll: bool,
    /// Completions are polled for, not interrupted (io_uring and direct I/O only).
    pub iopoll: bool,
    /// Time stamps.
    pub timestamps: Timestamps,
    /// Count I/O errors and go on. A target that is gone ends the run all the same.
    pub tolerate_errors: bool,
    /// CPUs the workers are pinned to, one after another; empty: not pinned.
    pub cpus: Vec<usize>,
    /// Each worker may run on all of `cpus` instead.
    pub cpus_shared: bool,
    /// Each completion keeps its worker busy this long more, ns: where CPU time costs nothing, as in virtual time.
    pub cpu_per_request_ns: u64,
    /// Length of an interval of the series, ns.
    pub interval_ns: u64,
    /// Time that the run waits after its end for outstanding requests before it reports them as stuck, ns.
    pub grace_ns: u64,
    /// The same after [`crate::Run::stop`], ns.
    pub stop_grace_ns: u64,
    /// Every completion is written to this descriptor as a line of CSV (docs/reference/log.md). It stays the caller's.
    pub log: Option<RawFd>,
    /// The load waits for this start when it is ready; `None`: it starts at once.
    pub appointment: Option<Arc<Appointment>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: EngineChoice::Auto,
            sqpoll: false,
            iopoll: false,
            timestamps: Timestamps::Request,
            tolerate_errors: false,
            cpus: Vec::new(),
            cpus_shared: false,
            cpu_per_request_ns: 0,
            interval_ns: 1_000_000_000,
            // The kernel's own measure of a hung task (kernel/hung_task.c, 120 s).
            grace_ns: 120_000_000_000,
            stop_grace_ns: 5_000_000_000,
            log: None,
            appointment: None,
        }
    }
}

impl Options {
    /// CPUs of the thread with this number; none: any.
    pub(crate) fn cpus_of(&self, index: usize) -> Option<&[usize]> {
        match (self.cpus.is_empty(), self.cpus_shared) {
            (true, _) => None,
            (false, true) => Some(&self.cpus),
            (false, false) => self
                .cpus
                .get(index % self.cpus.len()..)
                .map(|from| &from[..1]),
        }
    }
}
