//! Errors of a machine or of a run on it. One line each.

use spindle_array::ArrayError;
use spindle_drive::{DriveError, SubmitError};
use spindle_measure::MergeError;
use spindle_workload::StreamError;

/// The reason why a workload cannot run on a machine, or a run could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// Phases are loads of their own.
    #[error("a workload of phases is run phase by phase")]
    Phases,
    /// A mapping.
    #[error("stream \"{stream}\": a mapping is not modelled; leave out `mapped`")]
    Mapped {
        /// Stream's name.
        stream: String,
    },
    /// Discards.
    #[error(
        "stream \"{stream}\": discards need flash drives, in an array without parity; leave out `trim_fraction`"
    )]
    Trim {
        /// Stream's name.
        stream: String,
    },
    /// Discards of buffered streams.
    #[error("stream \"{stream}\": discards of cached pages are not modelled; set `direct`")]
    BufferedTrim {
        /// Stream's name.
        stream: String,
    },
    /// Operations on names.
    #[error(
        "stream \"{stream}\": names are kept by a file system, which is not modelled; `operation` needs a real folder"
    )]
    Names {
        /// Stream's name.
        stream: String,
    },
    /// The machine has something that the simulator lacks.
    #[error("{key} of the machine is not modelled; `kernel=` runs it on the real kernel")]
    NeedsKernel {
        /// The table or key.
        key: &'static str,
    },
    /// The run would never end.
    #[error("the run has no end; set `seconds`, `bytes`, `requests` or `until_steady`")]
    Endless,
    /// The stream does not fit the machine.
    #[error("stream \"{stream}\": {error}")]
    Stream {
        /// Stream's name.
        stream: String,
        /// The reason.
        error: StreamError,
    },
    /// Files of a set cannot be sized.
    #[error("files \"{set}\": {error}")]
    Files {
        /// Set's name.
        set: String,
        /// The reason.
        error: StreamError,
    },
    /// More files than the machine has room for.
    #[error(
        "the files come to {bytes} bytes, the machine has {capacity}; set `filesize` or `nrfiles`"
    )]
    FilesTooLarge {
        /// All files, bytes.
        bytes: u64,
        /// Capacity of the machine, bytes.
        capacity: u64,
    },
    /// A drive cannot be built.
    #[error("drive {name}: {error}")]
    Drive {
        /// Drive's name in the machine.
        name: String,
        /// The reason.
        error: DriveError,
    },
    /// A drive refused a command: a mistake in the simulator.
    #[error("drive {name} refused a command: {error}")]
    Refused {
        /// Drive's name in the machine.
        name: String,
        /// The reason.
        error: SubmitError,
    },
    /// The array cannot carry out the request.
    #[error("array: {0}")]
    Array(#[from] ArrayError),
    /// Requests are under way and no event is due: a mistake in the simulator.
    #[error(
        "the simulation came to a standstill after {now_ns} ns; report this machine and workload"
    )]
    Standstill {
        /// Time of the simulation, ns.
        now_ns: u64,
    },
    /// Records of one run that do not fit: a mistake in the simulator.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The trace could not be written.
    #[error("trace: {0}")]
    Trace(#[from] std::io::Error),
}

impl From<ArrayError> for Box<SimError> {
    fn from(error: ArrayError) -> Box<SimError> {
        Box::new(SimError::Array(error))
    }
}
