//! What can be wrong with a drive's parameters or with a command.

use thiserror::Error;

/// Why a command was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The host may have only so many commands outstanding.
    #[error("the drive's queue is full: {depth} commands are outstanding, wait for a completion")]
    QueueFull {
        /// The queue depth.
        depth: u32,
    },
    /// The command reaches past the last block.
    #[error("blocks {lbn}+{blocks} reach past the end of the drive, which has {capacity} blocks")]
    BeyondEnd {
        /// First block asked for.
        lbn: u64,
        /// Blocks asked for.
        blocks: u32,
        /// Blocks there are.
        capacity: u64,
    },
    /// A read or write of no blocks.
    #[error("a read or write needs at least one block")]
    Empty,
}

/// Why a drive could not be built or a description of one not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DriveError {
    /// A file could not be read.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// What the operating system said.
        reason: String,
    },
    /// A parameter is missing or out of range.
    #[error("{place}: {problem}")]
    Parameter {
        /// Drive and parameter, or file and line.
        place: String,
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// No drive of that name.
    #[error("no drive named '{name}'{hint}; `spindle drives` lists them")]
    Unknown {
        /// The name asked for.
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
