//! The figures of verification: written blocks are read again and compared.

use serde::Serialize;

/// Blocks that were checked, and the faults found in them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerificationFigures {
    /// Length of a block, bytes; every request is a multiple of it.
    pub block_bytes: u64,
    /// The run's number in each block, as 16 hexadecimal digits.
    pub run: String,
    /// Writes that were delayed until another write to the same block was done.
    pub delayed_writes: u64,
    /// Blocks checked by the reads of the load.
    pub during_load: CheckFigures,
    /// Blocks checked by the read-back of everything after the load; `None`: there was no read-back.
    #[serde(default)]
    pub read_back: Option<ReadBackFigures>,
}

/// Everything that was written, read back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadBackFigures {
    /// Blocks whose content is known.
    pub expected: u64,
    /// True if all of them were checked; otherwise someone stopped it.
    pub complete: bool,
    /// True if read past the page cache; otherwise the cached blocks were dropped before.
    pub direct: bool,
    /// Time it took, ns.
    pub elapsed_ns: u64,
    /// The checked blocks and their faults.
    pub found: CheckFigures,
}

/// Checked blocks and their faults.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CheckFigures {
    /// Blocks that were compared, right or wrong.
    pub blocks: u64,
    /// Blocks that were read and not compared because their content is not known: not written in this run, trimmed, or
    /// a write to them failed.
    pub unknown: u64,
    /// Blocks that were read during a write and not compared, as they had neither the old nor the new content.
    pub raced: u64,
    /// Blocks that were wrong, by kind.
    pub faults: Vec<FaultFigures>,
}

/// Faults of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultFigures {
    /// `never-written`, `zeroed`, `stale`, `torn`, `misplaced`, `corrupt`, or `unreadable`: the read failed.
    pub kind: String,
    /// Number of blocks.
    pub blocks: u64,
    /// The first of them, by file and offset.
    pub first: Vec<FaultPlace>,
}

/// One block that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FaultPlace {
    /// Number of the file.
    pub file: u32,
    /// First byte of the block in it.
    pub offset: u64,
    /// Description for people: `torn: 3 sectors from sector 5 on, generation 2`.
    pub description: String,
}
