//! The plan of all writes: a pure function of a few numbers, computed again when the target is checked.

use serde::{Deserialize, Serialize};

/// Unit of tearing, bytes: a drive writes a sector of 512 bytes whole or not at all.
pub(crate) const SECTOR: u32 = 512;
const BLOCK_MAX: u32 = 1 << 20;
/// Each has descriptors of its own, and a process 1024 as a rule.
const WORKERS_MAX: u32 = 256;
const BATCH_MAX: u32 = 65_536;
/// The check keeps a few bytes for each block.
const BLOCKS_MAX: u64 = 1 << 26;

/// The writers, their writes, and the way in which these are made durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// All choices follow from it.
    pub seed: u64,
    /// Writers, each with a region of its own, one behind the other from the target's first byte on.
    pub workers: u32,
    /// Order in which a writer visits its region.
    pub pattern: Pattern,
    /// Length of every write, bytes; a multiple of 512.
    pub block_bytes: u32,
    /// Most writes before a sync; the number is drawn for each batch.
    pub batch: u32,
    /// The way in which they are made durable.
    pub sync: SyncKind,
    /// Blocks of each writer's region.
    pub region_blocks: u64,
}

/// Order in which blocks are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// One behind the other, and again from the start: a log.
    Append,
    /// Drawn at random, over and over: the pages of a database.
    Random,
    /// Every second worker appends, the others draw.
    Mixed,
}

/// The durability mechanism on which a writer relies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncKind {
    /// fsync(2) after the writes.
    Fsync,
    /// fdatasync(2) after the writes.
    Fdatasync,
    /// Every write on a descriptor with O_DSYNC.
    Dsync,
    /// Every write with RWF_DSYNC: on a device that has it, a write with "force unit access".
    Fua,
    /// None: writes noted as durable are not. This mode shows that a test finds loss.
    None,
}

/// A plan that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Length of a block.
    #[error("block {0} B: must be a multiple of 512 B, at most 1 MiB")]
    Block(u32),
    /// Number of writers.
    #[error("workers {0}: must be 1 to {WORKERS_MAX}")]
    Workers(u32),
    /// Writes before a sync.
    #[error("writes before a sync {0}: must be 1 to {BATCH_MAX}")]
    Batch(u32),
    /// Blocks of all regions.
    #[error(
        "{0} blocks are too many: at most {BLOCKS_MAX}; take larger blocks or less of the target"
    )]
    Blocks(u64),
    /// The target is too small.
    #[error(
        "{workers} workers with {region_blocks} blocks of {block_bytes} B each need more than the target's {size_bytes} B"
    )]
    Room {
        /// Writers.
        workers: u32,
        /// Blocks of each writer.
        region_blocks: u64,
        /// Length of a block, bytes.
        block_bytes: u32,
        /// Size of the target, bytes.
        size_bytes: u64,
    },
}

impl SyncKind {
    /// True if each write is durable when it returns.
    pub(crate) fn is_per_write(self) -> bool {
        matches!(self, SyncKind::Dsync | SyncKind::Fua)
    }

    /// True if it promises durability.
    pub(crate) fn promises(self) -> bool {
        self != SyncKind::None
    }
}

impl Plan {
    /// Returns an error if the numbers are out of range.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.block_bytes == 0
            || self.block_bytes > BLOCK_MAX
            || !self.block_bytes.is_multiple_of(SECTOR)
        {
            return Err(PlanError::Block(self.block_bytes));
        }
        if !(1..=WORKERS_MAX).contains(&self.workers) {
            return Err(PlanError::Workers(self.workers));
        }
        if !(1..=BATCH_MAX).contains(&self.batch) {
            return Err(PlanError::Batch(self.batch));
        }
        let blocks = u64::from(self.workers).saturating_mul(self.region_blocks);
        if blocks > BLOCKS_MAX {
            return Err(PlanError::Blocks(blocks));
        }
        self.check_room(u64::MAX)
    }

    /// Returns an error if the plan does not fit on a target.
    pub fn check_room(&self, size_bytes: u64) -> Result<(), PlanError> {
        let needed = u64::from(self.workers)
            .checked_mul(self.region_blocks)
            .and_then(|blocks| blocks.checked_mul(u64::from(self.block_bytes)));
        if needed.is_some_and(|bytes| 0 < bytes && bytes <= size_bytes) {
            return Ok(());
        }
        Err(PlanError::Room {
            workers: self.workers,
            region_blocks: self.region_blocks,
            block_bytes: self.block_bytes,
            size_bytes,
        })
    }

    /// Blocks of all regions.
    pub(crate) fn blocks(&self) -> u64 {
        u64::from(self.workers) * self.region_blocks
    }

    /// Offset of block `block` of a worker's region, bytes.
    pub(crate) fn offset(&self, worker: u32, block: u64) -> u64 {
        (u64::from(worker) * self.region_blocks + block) * u64::from(self.block_bytes)
    }

    /// The block of its region that a worker's write `number` goes to; writes are counted from 1.
    pub(crate) fn block(&self, worker: u32, number: u64) -> u64 {
        let appends = match self.pattern {
            Pattern::Append => true,
            Pattern::Random => false,
            Pattern::Mixed => worker.is_multiple_of(2),
        };
        if appends {
            (number - 1) % self.region_blocks
        } else {
            let drawn = drawn(self.seed, worker, number, Purpose::Block);
            ((u128::from(drawn) * u128::from(self.region_blocks)) >> 64) as u64
        }
    }

    /// The worker's batches, one after another.
    pub(crate) fn batches(&self, worker: u32) -> Batches<'_> {
        Batches {
            plan: self,
            worker,
            index: 0,
            end: 0,
        }
    }
}

/// Numbers of the last write of each batch of a worker. Endless.
#[derive(Debug, Clone)]
pub(crate) struct Batches<'a> {
    plan: &'a Plan,
    worker: u32,
    index: u64,
    end: u64,
}

impl Iterator for Batches<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let most = if self.plan.sync.is_per_write() {
            1
        } else {
            u64::from(self.plan.batch)
        };
        let drawn = drawn(self.plan.seed, self.worker, self.index, Purpose::Batch);
        self.index += 1;
        self.end += 1 + ((u128::from(drawn) * u128::from(most)) >> 64) as u64;
        Some(self.end)
    }
}

#[derive(Debug, Clone, Copy)]
enum Purpose {
    Block = 1,
    Batch = 2,
}

/// A random word that depends on nothing but its arguments: splitmix64's finaliser, once for each.
fn drawn(seed: u64, worker: u32, number: u64, purpose: Purpose) -> u64 {
    let who = u64::from(worker) << 8 | purpose as u64;
    mixed(mixed(mixed(seed).wrapping_add(who)).wrapping_add(number))
}

fn mixed(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan(pattern: Pattern, sync: SyncKind) -> Plan {
        Plan {
            seed: 7,
            workers: 2,
            pattern,
            block_bytes: 2048,
            batch: 4,
            sync,
            region_blocks: 16,
        }
    }

    #[test]
    fn a_log_goes_through_its_region_and_begins_again() {
        let plan = plan(Pattern::Append, SyncKind::Fsync);
        let blocks: Vec<u64> = (1..=18).map(|number| plan.block(1, number)).collect();
        assert_eq!(blocks[..3], [0, 1, 2]);
        assert_eq!(blocks[15..], [15, 0, 1]);
        assert_eq!(plan.offset(1, 3), (16 + 3) * 2048);
    }

    #[test]
    fn random_writes_reach_every_block_and_are_the_same_every_time() {
        let plan = plan(Pattern::Random, SyncKind::Fsync);
        let mut hit = [0; 16];
        for number in 1..=1600 {
            let block = plan.block(0, number);
            assert_eq!(block, plan.block(0, number));
            hit[block as usize] += 1;
        }
        assert!(hit.iter().all(|&times| times > 50), "{hit:?}");
        assert!((1..100).any(|number| plan.block(0, number) != plan.block(1, number)));
    }

    #[test]
    fn batches_have_one_to_so_many_writes() {
        let grouped = plan(Pattern::Append, SyncKind::Fsync);
        let ends: Vec<u64> = std::iter::once(0)
            .chain(grouped.batches(0).take(400))
            .collect();
        let lengths: std::collections::BTreeSet<u64> =
            ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(lengths, (1..=4).collect());
        let single = plan(Pattern::Append, SyncKind::Fua);
        assert_eq!(
            single.batches(0).take(5).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5]
        );
    }

    #[test]
    fn a_plan_that_makes_no_sense_is_refused() {
        let good = plan(Pattern::Append, SyncKind::Fsync);
        assert_eq!(good.check(), Ok(()));
        let with = |change: fn(&mut Plan)| {
            let mut plan = good.clone();
            change(&mut plan);
            plan.check()
        };
        assert!(with(|plan| plan.block_bytes = 1000).is_err());
        assert!(with(|plan| plan.block_bytes = 0).is_err());
        assert!(with(|plan| plan.workers = 0).is_err());
        assert!(with(|plan| plan.batch = 0).is_err());
        assert!(with(|plan| plan.region_blocks = 0).is_err());
        assert!(with(|plan| plan.region_blocks = u64::MAX / 2).is_err());
        assert!(good.check_room(2 * 16 * 2048).is_ok());
        assert!(good.check_room(2 * 16 * 2048 - 1).is_err());
    }
}
