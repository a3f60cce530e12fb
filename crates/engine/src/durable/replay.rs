//! The required content: the plan's writes replayed, and compared with the content of the target's blocks.

use super::content::NUMBER_MAX;
use super::findings::BlockContent;
use super::plan::Plan;

/// The content of one block of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundBlock {
    pub(crate) found: BlockContent,
    /// The oldest write among its sectors; 0 if any sector has other content.
    pub(crate) oldest: u32,
    /// The newest one; 0 if there is none.
    pub(crate) newest: u32,
}

/// The required content of one block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequiredBlock {
    /// The last write to it that the journal knows as durable; 0: none.
    pub(crate) acknowledged: u32,
    /// The last write to it of an earlier batch than the newest write on the target; 0: none.
    pub(crate) ordered: u32,
}

/// The required content of each block of a worker's region, when its first `acknowledged` writes are durable and the write
/// `newest` is on the target.
pub(crate) fn due(plan: &Plan, worker: u32, acknowledged: u64, newest: u64) -> Vec<RequiredBlock> {
    let ordered = if plan.sync.promises() {
        barrier_before(plan, worker, newest)
    } else {
        0
    };
    let mut due = vec![RequiredBlock::default(); plan.region_blocks as usize];
    let acknowledged = acknowledged.min(NUMBER_MAX);
    for number in 1..=acknowledged.max(ordered) {
        let block = &mut due[plan.block(worker, number) as usize];
        if number <= acknowledged {
            block.acknowledged = number as u32;
        }
        if number <= ordered {
            block.ordered = number as u32;
        }
    }
    due
}

/// The last write of the batch before the one that `number` is in: it had to be durable before `number` was issued.
fn barrier_before(plan: &Plan, worker: u32, number: u64) -> u64 {
    let mut before = 0;
    for end in plan.batches(worker) {
        if end >= number {
            break;
        }
        before = end;
    }
    before
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Pattern, SyncKind, tests::plan};
    use super::*;

    #[test]
    fn each_block_is_due_its_last_acknowledged_write() {
        let plan = plan(Pattern::Append, SyncKind::Fsync);
        let due = due(&plan, 0, 18, 0);
        let acknowledged: Vec<u32> = due.iter().map(|block| block.acknowledged).collect();
        assert_eq!(acknowledged[..3], [17, 18, 3]);
        assert_eq!(acknowledged[15], 16);
        assert!(due.iter().all(|block| block.ordered == 0));
    }

    #[test]
    fn a_write_that_is_there_vouches_for_the_batches_before_its_own() {
        let plan = plan(Pattern::Append, SyncKind::Fsync);
        let ends: Vec<u64> = plan.batches(0).take(3).collect();
        assert_eq!(barrier_before(&plan, 0, ends[0]), 0);
        assert_eq!(barrier_before(&plan, 0, ends[0] + 1), ends[0]);
        assert_eq!(barrier_before(&plan, 0, ends[2]), ends[1]);
        let due = due(&plan, 0, 0, ends[0] + 1);
        assert_eq!(u64::from(due[0].ordered), 1);
        assert_eq!(due[ends[0] as usize].ordered, 0);
    }

    #[test]
    fn without_a_sync_no_order_is_due() {
        let plan = plan(Pattern::Append, SyncKind::None);
        assert!(due(&plan, 0, 0, 10).iter().all(|block| block.ordered == 0));
    }
}
