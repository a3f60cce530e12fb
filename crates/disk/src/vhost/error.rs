//! Errors of a connection.

use std::io;

use thiserror::Error;

/// A connection cannot go on; one line each.
#[derive(Debug, Error)]
pub enum VhostError {
    /// The socket could not be used.
    #[error("{what}: {source}")]
    Socket {
        /// The connection.
        what: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The front end sent something that the protocol does not allow.
    #[error("the front end broke the protocol of {what}: {problem}")]
    Protocol {
        /// The connection.
        what: String,
        /// The problem.
        problem: String,
    },
}

impl VhostError {
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
