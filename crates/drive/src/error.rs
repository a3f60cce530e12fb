//! Errors in a drive's parameters or in a command.

use thiserror::Error;

/// The reason why a command was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// More commands than the drive's queue depth.
    #[error("the drive's queue is full: {depth} commands are outstanding, wait for a completion")]
    QueueFull {
        /// The queue depth.
        depth: u32,
    },
    /// The command reaches past the last block.
    #[error("blocks {lbn}+{blocks} reach past the end of the drive, which has {capacity} blocks")]
    BeyondEnd {
        /// First block of the command.
        lbn: u64,
        /// Blocks of the command.
        blocks: u32,
        /// Blocks of the drive.
        capacity: u64,
    },
    /// A discard at a drive that has none.
    #[error("the drive takes no discards: it is a disk")]
    Discard,
    /// A read or write of no blocks.
    #[error("a read or write needs at least one block")]
    Empty,
}

/// The reason why a drive could not be built, or its description not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DriveError {
    /// A file could not be read.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// The operating system's message.
        reason: String,
    },
    /// A parameter is missing or out of range.
    #[error("{place}: {problem}")]
    Parameter {
        /// Drive and parameter, or file and line.
        place: String,
        /// The problem and the allowed values.
        problem: String,
    },
    /// No drive of that name.
    #[error("no drive named '{name}'{hint}; `spindle drives` lists them")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest name, ready to be printed.
        hint: String,
    },
}

impl DriveError {
    pub(crate) fn parameter(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Parameter {
            place: place.into(),
            problem: problem.into(),
        }
    }
}
