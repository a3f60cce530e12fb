//! The check after the crash: every acknowledged write must be there, and their order must be kept.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;

use spindle_verify::SECTOR;

use super::content::{Sector, crc32c, look};
use super::entry::Entry;
use super::findings::{
    BlockContent, Blocks, Findings, Loss, Reordering, Replacement, Verdict, WorkerFindings,
};
use super::journal::{JournalError, JournalSummary, read_through};
use super::open::{Aligned, duplicate};
use super::plan::Plan;
use super::replay::{FoundBlock, due};
use crate::StreamFile;

/// Read in one piece, bytes.
const PIECE: usize = 1 << 20;
/// Lost writes that are listed.
const LISTED: usize = 16;

/// Reads the target, which is only read, and compares it with the journal. Raises an error if the journal cannot be
/// used; an unreadable place of the target is a finding.
pub fn check(journal: RawFd, target: StreamFile) -> Result<Findings, JournalError> {
    let mut before = Vec::new();
    let summary = read_through(journal, |entry| {
        if let Entry::Before { first, sums } = entry
            && *first == before.len() as u64
        {
            before.extend(sums);
        }
    })?;
    let mut reading = TargetReader {
        file: File::from(duplicate(target.fd)?),
        memory: Aligned::new(
            PIECE.next_multiple_of(summary.header.plan.block_bytes as usize),
            target.memory_align as usize,
        ),
    };
    let mut judge = Judge::new(&summary);
    let plan = &summary.header.plan;
    for worker in 0..plan.workers {
        let seen = reading.region(plan, judge.run, worker, &before);
        judge.add(worker, &seen);
    }
    let times = judge.acknowledgements(journal)?;
    Ok(judge.findings(&summary, &times))
}

/// The target.
struct TargetReader {
    file: File,
    memory: Aligned,
}

impl TargetReader {
    /// The content of the blocks of a worker's region.
    fn region(&mut self, plan: &Plan, run: u64, worker: u32, before: &[u32]) -> Vec<FoundBlock> {
        let block_bytes = plan.block_bytes as usize;
        let per_piece = (PIECE / block_bytes).max(1) as u64;
        let mut seen = Vec::with_capacity(plan.region_blocks as usize);
        let mut first = 0;
        while first < plan.region_blocks {
            let count = per_piece.min(plan.region_blocks - first);
            let offset = plan.offset(worker, first);
            let length = count as usize * block_bytes;
            let whole = self.read(offset, length);
            for block in 0..count {
                let number = first + block;
                let at = block as usize * block_bytes;
                let offset = plan.offset(worker, number);
                let content = match &whole {
                    Ok(read) => Ok((at, read.saturating_sub(at).min(block_bytes))),
                    // One bad place must not hide its neighbours.
                    Err(_) => self.read(offset, block_bytes).map(|read| (0, read)),
                };
                let old = before
                    .get((u64::from(worker) * plan.region_blocks + number) as usize)
                    .copied();
                seen.push(match content {
                    Err(_) => none(BlockContent::Unreadable),
                    Ok((_, read)) if read < block_bytes => none(BlockContent::Missing),
                    Ok((at, _)) => {
                        let bytes = &self.memory.bytes()[at..at + block_bytes];
                        let seen = seen_in(bytes, run, worker, offset, old);
                        as_planned(seen, plan, worker, number)
                    }
                });
            }
            first += count;
        }
        seen
    }

    /// As many bytes as there are.
    fn read(&mut self, offset: u64, length: usize) -> io::Result<usize> {
        let memory = &mut self.memory.bytes()[..length];
        let mut read = 0;
        while read < length {
            match self.file.read_at(&mut memory[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => {
                    read += more;
                    if !read.is_multiple_of(SECTOR) {
                        break; // the end of a file; direct I/O could not go on from there
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }
}

fn none(found: BlockContent) -> FoundBlock {
    FoundBlock {
        found,
        oldest: 0,
        newest: 0,
    }
}

/// The content of a block.
fn seen_in(bytes: &[u8], run: u64, worker: u32, offset: u64, before: Option<u32>) -> FoundBlock {
    let (sectors, _) = bytes.as_chunks::<SECTOR>();
    let (mut oldest, mut newest) = (u64::MAX, 0);
    let (mut here, mut elsewhere, mut damaged, mut zero) = (0, 0, 0, 0);
    for (index, sector) in sectors.iter().enumerate() {
        match look(sector, run, worker, offset + (index * SECTOR) as u64) {
            Sector::Here(number) => {
                here += 1;
                oldest = oldest.min(number);
                newest = newest.max(number);
            }
            Sector::Elsewhere => elsewhere += 1,
            Sector::Damaged => damaged += 1,
            Sector::Zero => zero += 1,
            Sector::Other => {}
        }
    }
    let whole = here == sectors.len();
    let found = if here == 0 && before == Some(crc32c(bytes)) {
        BlockContent::Before // whatever it is, an earlier run's damaged block even
    } else if damaged > 0 {
        BlockContent::Corrupt
    } else if elsewhere > 0 {
        BlockContent::Misplaced
    } else if whole && oldest == newest {
        BlockContent::Write
    } else if here > 0 {
        BlockContent::Torn
    } else if zero == sectors.len() {
        BlockContent::Zeroes
    } else {
        BlockContent::Other
    };
    FoundBlock {
        found,
        oldest: if whole { oldest as u32 } else { 0 },
        newest: newest as u32,
    }
}

/// A block whose stamp names a write that the plan has elsewhere is corrupt.
fn as_planned(seen: FoundBlock, plan: &Plan, worker: u32, block: u64) -> FoundBlock {
    let fits = |number: u32| number == 0 || plan.block(worker, u64::from(number)) == block;
    if fits(seen.oldest) && fits(seen.newest) {
        seen
    } else {
        none(BlockContent::Corrupt)
    }
}

/// Collects the findings of each worker.
struct Judge<'a> {
    summary: &'a JournalSummary,
    run: u64,
    blocks: Blocks,
    instead: BTreeMap<BlockContent, u64>,
    workers: Vec<WorkerFindings>,
    reorderings: Vec<Reordering>,
    /// Losses of each worker, in ascending order of the writes' numbers.
    losses: Vec<Vec<Loss>>,
}

impl<'a> Judge<'a> {
    fn new(summary: &'a JournalSummary) -> Judge<'a> {
        Judge {
            summary,
            run: summary.header.run_number().unwrap_or_default(),
            blocks: Blocks::default(),
            instead: BTreeMap::new(),
            workers: Vec::new(),
            reorderings: Vec::new(),
            losses: Vec::new(),
        }
    }

    /// Adds the content of the blocks of the next worker's region.
    fn add(&mut self, worker: u32, seen: &[FoundBlock]) {
        let plan = &self.summary.header.plan;
        let acknowledged = self.summary.acknowledged[worker as usize];
        let newest = seen.iter().map(|block| block.newest).max().unwrap_or(0);
        let due = due(plan, worker, acknowledged, u64::from(newest));
        let mut losses = Vec::new();
        let mut reordered = 0;
        let mut first_reordered: Option<(u32, u64)> = None;
        for (number, (seen, due)) in (0_u64..).zip(seen.iter().zip(&due)) {
            self.blocks.checked += 1;
            self.blocks.of_this_run += u64::from(seen.newest > 0);
            if seen.oldest < due.ordered {
                reordered += 1;
                if first_reordered.is_none_or(|(write, _)| due.ordered < write) {
                    first_reordered = Some((due.ordered, number));
                }
            }
            if seen.oldest < due.acknowledged {
                self.blocks.lost += 1;
                *self.instead.entry(seen.found).or_default() += 1;
                losses.push(Loss {
                    worker,
                    write: u64::from(due.acknowledged),
                    offset: plan.offset(worker, number),
                    acknowledged_ns: None,
                    found: seen.found,
                    found_write: (seen.found == BlockContent::Write)
                        .then_some(u64::from(seen.oldest)),
                });
            } else {
                *self.place(*seen, acknowledged) += 1;
            }
        }
        losses.sort_by_key(|loss| loss.write);
        if let Some((write, block)) = first_reordered {
            let there = plan.block(worker, u64::from(newest));
            self.reorderings.push(Reordering {
                worker,
                missing_write: u64::from(write),
                missing_offset: plan.offset(worker, block),
                present_write: u64::from(newest),
                present_offset: plan.offset(worker, there),
            });
        }
        self.workers.push(WorkerFindings {
            acknowledged,
            newest: u64::from(newest),
            lost: losses.len() as u64,
            reordered,
        });
        self.losses.push(losses);
    }

    /// The count for a block that lacks nothing acknowledged.
    fn place(&mut self, seen: FoundBlock, acknowledged: u64) -> &mut u64 {
        match seen.found {
            BlockContent::Write if u64::from(seen.newest) > acknowledged => &mut self.blocks.newer,
            BlockContent::Write => &mut self.blocks.kept,
            BlockContent::Torn => &mut self.blocks.torn_unacknowledged,
            BlockContent::Before | BlockContent::Zeroes | BlockContent::Other => {
                &mut self.blocks.untouched
            }
            BlockContent::Misplaced
            | BlockContent::Corrupt
            | BlockContent::Unreadable
            | BlockContent::Missing => &mut self.blocks.damaged,
        }
    }

    /// The times at which the losses of each worker were acknowledged, in their order.
    fn acknowledgements(&self, journal: RawFd) -> Result<Vec<Vec<u64>>, JournalError> {
        let mut times: Vec<Vec<u64>> = vec![Vec::new(); self.losses.len()];
        if self.blocks.lost == 0 {
            return Ok(times);
        }
        read_through(journal, |entry| {
            if let Entry::Acked {
                worker,
                count,
                at_ns,
            } = entry
                && let (Some(times), Some(losses)) = (
                    times.get_mut(*worker as usize),
                    self.losses.get(*worker as usize),
                )
            {
                while losses
                    .get(times.len())
                    .is_some_and(|loss| loss.write <= *count)
                {
                    times.push(*at_ns);
                }
            }
        })?;
        Ok(times)
    }

    fn findings(self, summary: &JournalSummary, times: &[Vec<u64>]) -> Findings {
        let reordered = self.workers.iter().map(|worker| worker.reordered).sum();
        let promises = summary.header.plan.sync.promises();
        let order_kept = (promises && self.blocks.of_this_run > 0).then_some(reordered == 0);
        let verdict = self.verdict(reordered);
        let mut losses = Vec::new();
        for (losses_of, times) in self.losses.into_iter().zip(times) {
            for (mut loss, at_ns) in losses_of.into_iter().zip(times) {
                loss.acknowledged_ns = Some(*at_ns);
                losses.push(loss);
            }
        }
        losses.sort_by_key(|loss| (loss.acknowledged_ns, loss.worker, loss.write));
        let first_lost_ns = losses.first().and_then(|loss| loss.acknowledged_ns);
        let last_lost_ns = losses.last().and_then(|loss| loss.acknowledged_ns);
        losses.truncate(LISTED);
        Findings {
            verdict,
            journal: summary.clone(),
            blocks: self.blocks,
            instead: self
                .instead
                .into_iter()
                .map(|(found, blocks)| Replacement { found, blocks })
                .collect(),
            order_kept,
            reordered,
            reorderings: self.reorderings,
            first_lost_ns,
            last_lost_ns,
            losses,
            workers: self.workers,
        }
    }

    fn verdict(&self, reordered: u64) -> Verdict {
        let others = self.instead.get(&BlockContent::Other).copied().unwrap_or(0);
        if self.blocks.lost > 0 {
            if self.blocks.of_this_run == 0 {
                Verdict::Absent
            } else if others == self.blocks.lost {
                Verdict::Overwritten
            } else {
                Verdict::Lost
            }
        } else if reordered > 0 {
            Verdict::Reordered
        } else if self.blocks.damaged > 0 {
            Verdict::Damaged
        } else if self.summary.acknowledged.iter().all(|&count| count == 0) {
            Verdict::Nothing
        } else {
            Verdict::Kept
        }
    }
}
