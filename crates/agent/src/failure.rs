//! Why there is no result: one line, and the exit status that `spindle` has for it.

use std::fmt;
use std::io;

/// A run without a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The run failed.
    Failed(String),
    /// Wrong input.
    Usage(String),
    /// Refused for safety.
    Refused(String),
    /// A signal of this number came before there were figures.
    Stopped(i32),
}

impl Failure {
    pub(crate) fn failed(line: impl Into<String>) -> Failure {
        Failure::Failed(line.into())
    }

    pub(crate) fn usage(line: impl Into<String>) -> Failure {
        Failure::Usage(line.into())
    }

    pub(crate) fn refused(line: impl Into<String>) -> Failure {
        Failure::Refused(line.into())
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Refused(_) => 3,
            Failure::Stopped(signal) => status_of_signal(*signal),
        }
    }
}

/// By convention 128 + its number.
pub(crate) fn status_of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(1)
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(line) | Failure::Usage(line) | Failure::Refused(line) => {
                // A name may contain anything; a line stays one line, and a terminal is not spoken to.
                let plain = |char: char| if char.is_control() { '?' } else { char };
                out.write_str(&line.chars().map(plain).collect::<String>())
            }
            Failure::Stopped(_) => out.write_str("stopped before anything was measured"),
        }
    }
}

/// The kernel's reason, without the number that the standard library adds.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
