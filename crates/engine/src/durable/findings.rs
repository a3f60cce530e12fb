//! The result of the check of a target.

use serde::Serialize;

use super::journal::JournalSummary;

/// The content of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockContent {
    /// One write of the run, whole.
    Write,
    /// Sectors of different writes, or of one write and of what was there before.
    Torn,
    /// The content from before the run.
    Before,
    /// Zeroes, which were not there before.
    Zeroes,
    /// Content of another place of the run.
    Misplaced,
    /// Content of the run with a wrong check sum, or of a write that belongs elsewhere.
    Corrupt,
    /// Content neither of the run nor from before it: somebody else's.
    Other,
    /// The block cannot be read.
    Unreadable,
    /// The target ends before it.
    Missing,
}

/// The verdict in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All acknowledged writes are there, and order was kept.
    Kept,
    /// Acknowledged writes are not there.
    Lost,
    /// All writes that the journal knows as acknowledged are there, but a write is missing that a later sync covered.
    Reordered,
    /// No acknowledged write is missing, but blocks that nobody was writing have wrong content.
    Damaged,
    /// All missing writes were replaced by content that is not of the run: somebody else has written since.
    Overwritten,
    /// Not one block of the run is there: another target, or all of it was overwritten or lost.
    Absent,
    /// Nothing was acknowledged, so the check has no result.
    Nothing,
}

/// An acknowledged write that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Number of the worker that wrote it.
    pub worker: u32,
    /// Its number, counted from 1 for each worker.
    pub write: u64,
    /// Its offset on the target, bytes.
    pub offset: u64,
    /// Time at which its sync returned, ns since writing began. None: the journal's tail is gone, but a later write was found.
    pub acknowledged_ns: Option<u64>,
    /// The content that is there instead.
    pub found: BlockContent,
    /// If that is an earlier write, its number.
    pub found_write: Option<u64>,
}

/// Counts of blocks; every block of the regions is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// All of them.
    pub checked: u64,
    /// Blocks with the write that was acknowledged last.
    pub kept: u64,
    /// Blocks with a later write, which was not acknowledged yet: allowed.
    pub newer: u64,
    /// Blocks that were being written and are torn between sectors: allowed.
    pub torn_unacknowledged: u64,
    /// Blocks without an acknowledged write and without content of the run.
    pub untouched: u64,
    /// Blocks whose acknowledged write is missing.
    pub lost: u64,
    /// Blocks without an acknowledged write that are corrupt, misplaced, unreadable or missing.
    pub damaged: u64,
    /// Blocks with at least one sector of the run.
    pub of_this_run: u64,
}

/// Number of lost blocks that have this content instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Replacement {
    /// The content.
    pub found: BlockContent,
    /// Number of blocks.
    pub blocks: u64,
}

/// A write that is there although an earlier one, which had to be durable first, is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reordering {
    /// Number of the worker that wrote both.
    pub worker: u32,
    /// Number of the missing write.
    pub missing_write: u64,
    /// Its offset, bytes.
    pub missing_offset: u64,
    /// Number of the later write that is there.
    pub present_write: u64,
    /// Its offset, bytes.
    pub present_offset: u64,
}

/// Findings of one writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerFindings {
    /// Number of its last write that the journal knows as durable.
    pub acknowledged: u64,
    /// Number of the newest write of which any part is there.
    pub newest: u64,
    /// Number of acknowledged writes that are missing.
    pub lost: u64,
    /// Number of missing writes of which a write of a later batch is there.
    pub reordered: u64,
}

/// The result of the check.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    /// The verdict in one word.
    pub verdict: Verdict,
    /// Summary of the journal.
    pub journal: JournalSummary,
    /// Counts of blocks.
    pub blocks: Blocks,
    /// Content of the lost blocks.
    pub instead: Vec<Replacement>,
    /// True if order was kept across syncs. None: the sync kind does not promise it, or nothing of the run is there.
    pub order_kept: Option<bool>,
    /// Number of missing writes of which a write of a later batch is there.
    pub reordered: u64,
    /// The first of them, for each worker.
    pub reorderings: Vec<Reordering>,
    /// Time at which the sync of the first lost write returned, ns since writing began.
    pub first_lost_ns: Option<u64>,
    /// The same of the last lost write.
    pub last_lost_ns: Option<u64>,
    /// The lost writes that were acknowledged first.
    pub losses: Vec<Loss>,
    /// Writers.
    pub workers: Vec<WorkerFindings>,
}
