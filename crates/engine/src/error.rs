//! Reasons why a load could not be started or its figures are lost. Each is one line: problem, place, remedy.

use std::io;

use spindle_measure::MergeError;

/// An error outside the load's own requests (errors of those are counted, not raised).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The workload has no streams, or files and streams do not match in number.
    #[error("the workload has {streams} streams but {files} files were handed over")]
    FileCount {
        /// Streams of the workload.
        streams: usize,
        /// Files given.
        files: usize,
    },
    /// Phases are loads of their own.
    #[error("a workload of phases is run phase by phase")]
    Phases,
    /// A stream got another number of files than the set it uses has.
    #[error("stream {stream:?} uses {wanted} files but {given} were handed over")]
    StreamFiles {
        /// Name of the stream.
        stream: String,
        /// Files of the set it uses; 1 without a set.
        wanted: usize,
        /// Files given.
        given: usize,
    },
    /// The workload cannot run on this target.
    #[error("stream {stream:?}: {why}")]
    Workload {
        /// Name of the stream.
        stream: String,
        /// The problem, and the remedy.
        why: String,
    },
    /// io_uring was requested by name but the kernel does not offer it.
    #[error("io_uring cannot be used here ({why}); use `engine=\"pread\"` or `engine=\"auto\"`")]
    NoIoUring {
        /// The kernel's answer.
        why: String,
    },
    /// The stream's I/O priority was refused.
    #[error(
        "stream {stream:?}: the kernel refuses I/O priority {class}/{level} ({why}); \
         the realtime class needs root or CAP_SYS_NICE"
    )]
    Priority {
        /// Name of the stream.
        stream: String,
        /// Class.
        class: &'static str,
        /// Level.
        level: u8,
        /// The kernel's answer.
        why: String,
    },
    /// The requested CPU cannot be used.
    #[error("cannot run on CPU {cpu} ({why}); see `taskset -p $$` for the CPUs allowed")]
    Cpu {
        /// Number of the CPU.
        cpu: usize,
        /// The kernel's answer.
        why: String,
    },
    /// The machine refused memory or threads.
    #[error("{what}: {why}")]
    System {
        /// The attempted action.
        what: String,
        /// The kernel's answer.
        why: String,
    },
    /// A worker thread broke down: a defect of the engine; its figures are lost.
    #[error(
        "worker {worker} of stream {stream:?} broke down: {why}; this is a defect of spindle, please report it"
    )]
    WorkerPanicked {
        /// Name of the stream.
        stream: String,
        /// Number of the worker within the stream.
        worker: u32,
        /// Text of the panic.
        why: String,
    },
}

impl EngineError {
    /// True if the load does not fit the target or this machine: it would be refused again each time.
    #[must_use]
    pub fn is_misfit(&self) -> bool {
        !matches!(self, Self::System { .. } | Self::WorkerPanicked { .. })
    }

    pub(crate) fn system(what: impl Into<String>, error: &io::Error) -> Self {
        Self::System {
            what: what.into(),
            why: error.to_string(),
        }
    }

    /// The records of the workers do not fit together.
    pub(crate) fn sums(error: &MergeError) -> Self {
        Self::System {
            what: "cannot add up what the workers counted".to_owned(),
            why: error.to_string(),
        }
    }
}
