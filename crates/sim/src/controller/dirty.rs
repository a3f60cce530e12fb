//! The written blocks in a controller's cache that are not on the drives.

use std::collections::BTreeMap;

/// Stretches of blocks that touch or overlap nowhere, by their first block.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    stretches: BTreeMap<u64, u64>,
    blocks: u64,
}

impl Dirty {
    /// Blocks in it.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Adds `first..end`; blocks that are there already count once.
    pub(super) fn add(&mut self, mut first: u64, mut end: u64) {
        while let Some((&other, &other_end)) = self.stretches.range(..=end).next_back()
            && other_end >= first
        {
            self.stretches.remove(&other);
            self.blocks -= other_end - other;
            first = first.min(other);
            end = end.max(other_end);
        }
        self.stretches.insert(first, end);
        self.blocks += end - first;
    }

    /// True if all of `first..end` is there.
    pub(super) fn holds(&self, first: u64, end: u64) -> bool {
        let before = self.stretches.range(..=first).next_back();
        before.is_some_and(|(_, &other_end)| other_end >= end)
    }

    /// True if some of `first..end` is there.
    pub(super) fn touches(&self, first: u64, end: u64) -> bool {
        let before = self.stretches.range(..end).next_back();
        before.is_some_and(|(_, &other_end)| other_end > first)
    }

    /// The first stretch from `cursor` on, or the first of all.
    pub(super) fn next(&self, cursor: u64) -> Option<(u64, u64)> {
        if let Some((_, &end)) = self.stretches.range(..cursor).next_back()
            && end > cursor
        {
            return Some((cursor, end));
        }
        let found = self
            .stretches
            .range(cursor..)
            .next()
            .or_else(|| self.stretches.iter().next());
        found.map(|(&first, &end)| (first, end))
    }

    /// Takes `first..end` out, all of which is there.
    pub(super) fn take(&mut self, first: u64, end: u64) {
        let Some((&begin, &stop)) = self.stretches.range(..=first).next_back() else {
            return;
        };
        self.stretches.remove(&begin);
        if begin < first {
            self.stretches.insert(begin, first);
        }
        if end < stop {
            self.stretches.insert(end, stop);
        }
        self.blocks -= end - first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_that_touch_are_one() {
        let mut dirty = Dirty::default();
        dirty.add(10, 20);
        dirty.add(30, 40);
        dirty.add(20, 30);
        assert_eq!(dirty.next(0), Some((10, 40)));
        dirty.add(5, 50);
        assert_eq!((dirty.next(0), dirty.blocks()), (Some((5, 50)), 45));
        assert!(dirty.holds(5, 50) && !dirty.holds(4, 6) && !dirty.holds(49, 51));
    }

    #[test]
    fn what_is_taken_leaves_the_rest() {
        let mut dirty = Dirty::default();
        dirty.add(0, 100);
        dirty.take(40, 60);
        assert_eq!(dirty.blocks(), 80);
        assert_eq!(dirty.next(10), Some((10, 40)));
        assert_eq!(dirty.next(45), Some((60, 100)));
        assert_eq!(dirty.next(100), Some((0, 40)));
        dirty.take(0, 40);
        dirty.take(60, 100);
        assert_eq!((dirty.next(0), dirty.blocks()), (None, 0));
    }
}
