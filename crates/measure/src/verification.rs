//! What was found when written blocks were looked at again.

use serde::Serialize;

/// Blocks that were checked, and what was wrong with them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerificationFigures {
    /// Length of a block, bytes: what every request is a multiple of.
    pub block_bytes: u64,
    /// The run's number in each block, as 16 hexadecimal digits.
    pub run: String,
    /// Writes that had to wait until another one to the same block was done.
    pub waited: u64,
    /// What the reads of the load found.
    pub during: CheckFigures,
    /// What was found when everything was read back after the load; `None`: that was not done.
    #[serde(default)]
    pub read_back: Option<ReadBackFigures>,
}

/// Everything that was written, read back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadBackFigures {
    /// Blocks whose content is known.
    pub expected: u64,
    /// Whether all of them were looked at; if not, someone stopped it.
    pub complete: bool,
    /// Read past the page cache; otherwise what it held was dropped before.
    pub direct: bool,
    /// Time it took, ns.
    pub elapsed_ns: u64,
    /// What was found.
    pub found: CheckFigures,
}

/// What was found in some blocks.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CheckFigures {
    /// Blocks that were judged, right or wrong.
    pub blocks: u64,
    /// Blocks that were read and not judged, as nobody knows what they should hold: not written in this run, trimmed, or
    /// a write to them failed.
    pub unknown: u64,
    /// Blocks that were read while they were being written and not judged, as they were neither the old nor the new.
    pub raced: u64,
    /// Blocks that were wrong, by kind.
    pub faults: Vec<FaultFigures>,
}

/// Faults of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultFigures {
    /// `never-written`, `zeroed`, `stale`, `torn`, `misplaced`, `corrupt`, or `unreadable`: the read failed.
    pub kind: String,
    /// How many blocks.
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
    /// What it is, for people: `torn: 3 sectors from sector 5 on, generation 2`.
    pub what: String,
}
