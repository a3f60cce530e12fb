//! What was asked of the target, as far as figures are kept apart.

use serde::Serialize;

/// Kind of operation; figures of each are kept apart. The first four have the order of the workload's own operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum OpKind {
    /// Read.
    Read = 0,
    /// Write.
    Write = 1,
    /// Discard.
    Trim = 2,
    /// Write-zeroes.
    Zero = 3,
    /// fsync or fdatasync: moves no bytes, is not part of the series.
    Fsync = 4,
}

impl OpKind {
    /// Every kind, in the order of its discriminant.
    pub const ALL: [OpKind; 5] = [
        OpKind::Read,
        OpKind::Write,
        OpKind::Trim,
        OpKind::Zero,
        OpKind::Fsync,
    ];

    /// The word in figures and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Trim => "trim",
            OpKind::Zero => "zero",
            OpKind::Fsync => "fsync",
        }
    }
}
