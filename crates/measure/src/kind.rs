//! The kinds of operation whose figures are kept apart.

use serde::Serialize;
use spindle_workload::{Mix, Op, Stream};

/// Kind of call; each has figures of its own. All but the fsync are operations of a workload, with their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum OpKind {
    /// Read.
    Read = Op::Read as u8,
    /// Write.
    Write = Op::Write as u8,
    /// Discard.
    Trim = Op::Trim as u8,
    /// Write-zeroes.
    Zero = Op::Zero as u8,
    /// fsync or fdatasync: moves no bytes, is not part of the series.
    Fsync = 4,
    /// A file made, filled and closed.
    Create = Op::Create as u8,
    /// A file opened and closed.
    Open = Op::Open as u8,
    /// The attributes of a file.
    Stat = Op::Stat as u8,
    /// Rename of a file.
    Rename = Op::Rename as u8,
    /// A file removed.
    Unlink = Op::Unlink as u8,
    /// A directory made.
    Mkdir = Op::Mkdir as u8,
    /// A directory removed.
    Rmdir = Op::Rmdir as u8,
    /// All entries of a directory.
    Readdir = Op::Readdir as u8,
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

    /// The call that an operation begins with; a block that is rewritten is read first.
    #[must_use]
    pub const fn first_of(op: Op) -> OpKind {
        match op {
            Op::Read | Op::Rewrite => OpKind::Read,
            Op::Write => OpKind::Write,
            Op::Trim => OpKind::Trim,
            Op::Zero => OpKind::Zero,
            Op::Create => OpKind::Create,
            Op::Open => OpKind::Open,
            Op::Stat => OpKind::Stat,
            Op::Rename => OpKind::Rename,
            Op::Unlink => OpKind::Unlink,
            Op::Mkdir => OpKind::Mkdir,
            Op::Rmdir => OpKind::Rmdir,
            Op::Readdir => OpKind::Readdir,
        }
    }

    /// The kinds of calls that a stream makes, in the order of `ALL`.
    #[must_use]
    pub fn made_by(stream: &Stream) -> Vec<OpKind> {
        let Stream { mix, sync, .. } = stream;
        let syncs = sync.fsync_every > 0
            || sync.fdatasync_every > 0
            || sync.fsync_fraction > 0.0
            || sync.end_fsync;
        let (mut kinds, changes) = match &stream.names {
            Some(names) => (
                vec![OpKind::first_of(names.operation)],
                names.operation.changes_data(),
            ),
            None => (data_kinds(mix), mix.changes() > 0.0),
        };
        if changes && syncs {
            kinds.push(OpKind::Fsync);
        }
        kinds.sort_unstable_by_key(|&kind| kind as u8);
        kinds
    }

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

fn data_kinds(mix: &Mix) -> Vec<OpKind> {
    [
        (OpKind::Read, mix.reads()),
        (OpKind::Write, mix.writes()),
        (OpKind::Trim, mix.trim > 0.0),
        (OpKind::Zero, mix.zero > 0.0),
    ]
    .into_iter()
    .filter_map(|(kind, occurs)| occurs.then_some(kind))
    .collect()
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
