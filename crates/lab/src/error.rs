//! Errors of the lab.

use std::io;

use spindle_array::ArrayError;
use spindle_disk::vhost::VhostError;
use spindle_drive::DriveError;
use thiserror::Error;

/// The lab cannot begin or go on; one line each.
#[derive(Debug, Error)]
pub enum LabError {
    /// A socket could not be made or used.
    #[error("{what}: {source}")]
    Socket {
        /// The socket's role.
        what: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A drive of the machine cannot be built.
    #[error("drive{slot}: {source}")]
    Drive {
        /// Slot of the drive, from 0.
        slot: usize,
        /// The reason.
        source: DriveError,
    },
    /// A device's connection failed.
    #[error("the lab's kernel: {0}")]
    Device(#[from] VhostError),
    /// The array of the machine cannot be made.
    #[error("array: {0}")]
    Array(#[from] ArrayError),
    /// The machine has something that only the simulator models.
    #[error("{part}: the lab has none; leave it out, or run without `kernel=`")]
    OnlySimulated {
        /// The table of the machine file, or its key.
        part: &'static str,
    },
    /// mdadm has no name for the layout.
    #[error("[array] `layout` {layout}: mdadm cannot make it; set another one")]
    Layout {
        /// The layout.
        layout: String,
    },
    /// The elevator is of another kernel.
    #[error("[queue] `scheduler` {name}: the lab's kernel has {known}; set one of them")]
    Elevator {
        /// Its name.
        name: &'static str,
        /// Those there are.
        known: String,
    },
    /// The kernel sent something that its protocol does not allow.
    #[error("the lab's kernel broke the protocol of {what}: {problem}")]
    Protocol {
        /// The connection.
        what: String,
        /// The problem.
        problem: String,
    },
    /// A fault that cannot be read, or of a drive that is not there.
    #[error("fault `{text}`: {form}")]
    Fault {
        /// The text.
        text: String,
        /// The forms to choose from.
        form: &'static str,
    },
    /// The time limit was reached.
    #[error("the command still ran at {seconds} s of virtual time, the limit")]
    TimeLimit {
        /// The limit.
        seconds: f64,
    },
    /// The kernel and all drives wait for ever.
    #[error(
        "nothing is left to happen at {seconds:.6} s of virtual time: the command waits for something that never comes \
         (its standard input is empty)"
    )]
    Standstill {
        /// The virtual time.
        seconds: f64,
    },
}

impl LabError {
    pub(crate) fn socket(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Socket {
            what: what.into(),
            source: source.into(),
        }
    }

    pub(crate) fn protocol(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Protocol {
            what: what.into(),
            problem: problem.into(),
        }
    }
}
