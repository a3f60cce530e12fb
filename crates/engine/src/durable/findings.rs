//! What the check of a target tells.

use serde::Serialize;

use super::journal::JournalSummary;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// One write of the run, whole.
    Write,
    /// Sectors of different writes, or of one write and of what was there before.
    Torn,
    /// What was there before the run.
    Before,
    /// Zeroes, which were not there before.
    Zeroes,
    /// Content of another place of the run.
    Misplaced,
    /// Content of the run with a wrong check sum, or of a write that belongs elsewhere.
    Corrupt,
    /// Neither of the run nor what was there before: somebody else's.
    Other,
    /// It cannot be read.
    Unreadable,
    /// The target ends before it.
    Missing,
}

/// The whole in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All that was acknowledged is there, and order was kept.
    Kept,
    /// Acknowledged writes are not there.
    Lost,
    /// All that the journal knows as acknowledged is there, but a write is missing that a later sync covered.
    Reordered,
    /// No acknowledged write is missing, but blocks that nobody was writing hold something else.
    Damaged,
    /// All that is missing was replaced by content that is not of the run: written by somebody else since.
    Overwritten,
    /// Not one block of the run is there: another target, or all of it was overwritten or lost.
    Absent,
    /// Nothing was acknowledged: nothing can be told.
    Nothing,
}

/// An acknowledged write that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Who wrote it.
    pub worker: u32,
    /// Its number, counted from 1 for each worker.
    pub write: u64,
    /// Where it belongs, bytes.
    pub offset: u64,
    /// When its sync returned, ns since writing began. None: the journal's tail is gone, a later write tells of it.
    pub acknowledged_ns: Option<u64>,
    /// What is there instead.
    pub found: Found,
    /// If that is an earlier write, its number.
    pub found_write: Option<u64>,
}

/// How blocks are; every block of the regions is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// All of them.
    pub checked: u64,
    /// They hold the write that was acknowledged last.
    pub kept: u64,
    /// They hold a later write, which was not acknowledged yet: allowed.
    pub newer: u64,
    /// They were being written and are torn between sectors: allowed.
    pub torn_unacknowledged: u64,
    /// Nothing acknowledged belongs there and nothing of the run is there.
    pub untouched: u64,
    /// An acknowledged write is not there.
    pub lost: u64,
    /// Nothing acknowledged belongs there, yet they are corrupt, misplaced, unreadable or missing.
    pub damaged: u64,
    /// They hold at least one sector of the run.
    pub of_this_run: u64,
}

/// How often a lost block holds this instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Instead {
    /// What is there.
    pub found: Found,
    /// Blocks.
    pub blocks: u64,
}

/// A write that is there although one that had to be durable before it was issued is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reordering {
    /// Who wrote both.
    pub worker: u32,
    /// The one that is not there.
    pub missing_write: u64,
    /// Where it belongs, bytes.
    pub missing_offset: u64,
    /// The later one that is.
    pub present_write: u64,
    /// Where that is, bytes.
    pub present_offset: u64,
}

/// One writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerFindings {
    /// Number of its last write that the journal knows as durable.
    pub acknowledged: u64,
    /// Number of the newest write of which something is there.
    pub newest: u64,
    /// Acknowledged writes that are not there.
    pub lost: u64,
    /// Writes that are not there although a write of a later batch is.
    pub reordered: u64,
}

/// What the check found.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    /// The whole in one word.
    pub verdict: Verdict,
    /// What the journal says.
    pub journal: JournalSummary,
    /// How blocks are.
    pub blocks: Blocks,
    /// What is there instead of what was lost.
    pub instead: Vec<Instead>,
    /// Whether order was kept across syncs. None: the sync kind promises none, or nothing of the run is there.
    pub order_kept: Option<bool>,
    /// Writes that are not there although a write of a later batch is.
    pub reordered: u64,
    /// One of them for each worker.
    pub reorderings: Vec<Reordering>,
    /// When the sync of the first lost write returned, ns since writing began.
    pub first_lost_ns: Option<u64>,
    /// The same of the last lost write.
    pub last_lost_ns: Option<u64>,
    /// The lost writes that were acknowledged first.
    pub losses: Vec<Loss>,
    /// Writers.
    pub workers: Vec<WorkerFindings>,
}
