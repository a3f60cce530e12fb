//! The kinds of operation whose figures are kept apart.

use serde::Serialize;

/// Kind of operation; each has figures of its own. All but the fsync have the order of the workload's own operations.
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
    /// A file made, filled and closed.
    Create = 5,
    /// A file opened and closed.
    Open = 6,
    /// The attributes of a file.
    Stat = 7,
    /// Rename of a file.
    Rename = 8,
    /// A file removed.
    Unlink = 9,
    /// A directory made.
    Mkdir = 10,
    /// A directory removed.
    Rmdir = 11,
    /// All entries of a directory.
    Readdir = 12,
}

impl OpKind {
    /// Every kind, in the order of its discriminant.
    pub const ALL: [OpKind; 13] = [
        OpKind::Read,
        OpKind::Write,
        OpKind::Trim,
        OpKind::Zero,
        OpKind::Fsync,
        OpKind::Create,
        OpKind::Open,
        OpKind::Stat,
        OpKind::Rename,
        OpKind::Unlink,
        OpKind::Mkdir,
        OpKind::Rmdir,
        OpKind::Readdir,
    ];

    /// The kinds that read without changing anything: they count with the reads.
    pub const LOOKING: [OpKind; 4] = [OpKind::Read, OpKind::Open, OpKind::Stat, OpKind::Readdir];

    /// The kinds that change stored data: they count with the writes.
    pub const CHANGING: [OpKind; 8] = [
        OpKind::Write,
        OpKind::Trim,
        OpKind::Zero,
        OpKind::Create,
        OpKind::Rename,
        OpKind::Unlink,
        OpKind::Mkdir,
        OpKind::Rmdir,
    ];

    /// The name in figures and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Trim => "trim",
            OpKind::Zero => "zero",
            OpKind::Fsync => "fsync",
            OpKind::Create => "create",
            OpKind::Open => "open",
            OpKind::Stat => "stat",
            OpKind::Rename => "rename",
            OpKind::Unlink => "unlink",
            OpKind::Mkdir => "mkdir",
            OpKind::Rmdir => "rmdir",
            OpKind::Readdir => "readdir",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_but_the_fsync_either_looks_or_changes() {
        for (index, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            let looks = OpKind::LOOKING.contains(&kind);
            let changes = OpKind::CHANGING.contains(&kind);
            assert_eq!(looks != changes, kind != OpKind::Fsync, "{kind:?}");
        }
    }
}
