//! Figures of one boot.

use serde::Serialize;

/// A boot from the kernel's start to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Virtual time at the end, nanoseconds.
    pub virtual_ns: u64,
    /// Messages of the kernel, each with its answer.
    pub time_messages: u64,
    /// True if a power cut ended it.
    pub lost_power: bool,
    /// The drives, in slot order.
    pub drives: Vec<DriveReport>,
}

/// One drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriveReport {
    /// Model.
    pub model: String,
    /// Bytes that the kernel can address.
    pub bytes: u64,
    /// Requests done.
    pub requests: u64,
    /// Memory that its contents take, bytes.
    pub memory_bytes: u64,
}
