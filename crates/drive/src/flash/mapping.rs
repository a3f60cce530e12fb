//! Page mapping and collection: where the units of a drive are, and what is moved to make room.
//!
//! Units of the logical space are written one after the other into the open superblock. When it is full and only the
//! reserve is erased, the policy chooses a superblock; its valid units are copied to the reserve, where the host's next
//! writes follow them.

use std::collections::VecDeque;

use super::{Collection, FlashState, amplification};
use crate::random::SplitMix;

/// No unit, no slot, no superblock.
const NONE: u32 = u32::MAX;
const SEED: u64 = 1;

/// The size of a mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// Logical units.
    pub(super) units: u32,
    /// Units in a superblock.
    pub(super) per_block: u32,
    /// Superblocks in use: those of the logical units and the spare ones. One more is the reserve.
    pub(super) blocks: u32,
}

impl Shape {
    /// The share of the logical units that there is on top.
    pub(super) fn spare(&self) -> f64 {
        f64::from(self.blocks) * f64::from(self.per_block) / f64::from(self.units) - 1.0
    }
}

/// Counts of units since the mapping was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// Written by the host.
    pub(super) written: u64,
    /// Copied by collection.
    pub(super) moved: u64,
    /// Slots that were left empty.
    pub(super) padded: u64,
}

/// The mapping of a drive.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    shape: Shape,
    policy: Collection,
    /// Slot of each unit.
    slot_of: Vec<u32>,
    /// Unit last written to each slot.
    unit_at: Vec<u32>,
    /// Valid units of each superblock.
    valid: Vec<u32>,
    /// Superblocks that are full.
    closed: Vec<bool>,
    by_valid: Buckets,
    by_age: VecDeque<u32>,
    erased: Vec<u32>,
    open: u32,
    filled: u32,
    mapped: u32,
    random: SplitMix,
    counts: Counts,
    cost: Cost,
}

/// The work that writing brings at present.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cost {
    /// Units moved for each unit written, times 2^16.
    pub(super) moves_q16: u64,
    /// Share of valid units in the superblock that was collected last.
    pub(super) valid_share: f64,
    /// Superblocks are erased again.
    pub(super) collects: bool,
}

impl Cost {
    /// Pages that are read to fill a page with valid units, if these are anywhere in their pages.
    pub(super) fn reads_per_program(&self, units_per_page: u32) -> f64 {
        let empty_page = (1.0 - self.valid_share).powi(units_per_page as i32);
        if self.valid_share > 0.0 {
            (1.0 - empty_page) / self.valid_share
        } else {
            0.0
        }
    }
}

impl Mapping {
    pub(super) fn new(shape: Shape, policy: Collection, state: FlashState) -> Self {
        let blocks = shape.blocks as usize + 1;
        let slots = blocks * shape.per_block as usize;
        let mut mapping = Self {
            policy,
            slot_of: vec![NONE; shape.units as usize],
            unit_at: vec![NONE; slots],
            valid: vec![0; blocks],
            closed: vec![false; blocks],
            by_valid: Buckets::new(blocks, shape.per_block),
            by_age: VecDeque::with_capacity(blocks),
            // The first is taken first.
            erased: (0..blocks as u32).rev().collect(),
            open: NONE,
            filled: shape.per_block,
            mapped: 0,
            random: SplitMix::new(SEED),
            counts: Counts::default(),
            cost: Cost::default(),
            shape,
        };
        match state {
            FlashState::Fresh => {}
            FlashState::Filled => {
                for unit in 0..shape.units {
                    mapping.write(unit);
                }
            }
            FlashState::Used => mapping.draw_used(),
        }
        mapping.counts = Counts::default();
        mapping
    }

    /// Draws the state that writes to random units lead to: the mean-field shares of valid units, and random units in each
    /// superblock.
    fn draw_used(&mut self) {
        let (blocks, per_block) = (self.shape.blocks as usize, self.shape.per_block);
        let shares = amplification::valid_shares(self.policy, self.shape.spare(), blocks);
        let mut counts: Vec<u32> = shares
            .iter()
            .map(|share| (share * f64::from(per_block)).round() as u32)
            .collect();
        let mut sum: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        let units = u64::from(self.shape.units);
        // The rest that rounding leaves: one unit for each superblock in turn.
        let mut block = 0;
        while sum != units {
            let count = &mut counts[block % blocks];
            if sum < units && *count < per_block {
                *count += 1;
                sum += 1;
            } else if sum > units && *count > 0 {
                *count -= 1;
                sum -= 1;
            }
            block += 1;
        }
        let mut order: Vec<u32> = (0..self.shape.units).collect();
        for index in (1..order.len()).rev() {
            let other = self.random.below(index as u64 + 1) as usize;
            order.swap(index, other);
        }
        let mut next = order.into_iter();
        // The emptiest are the oldest.
        for (block, count) in counts.into_iter().enumerate().rev() {
            let first = block * per_block as usize;
            for (slot, unit) in (first..).zip(next.by_ref().take(count as usize)) {
                self.unit_at[slot] = unit;
                self.slot_of[unit as usize] = slot as u32;
            }
            self.valid[block] = count;
            self.close(block as u32);
        }
        self.erased.truncate(1);
        self.mapped = self.shape.units;
        self.cost.collects = true;
    }

    /// Writes a unit to the next free slot.
    #[inline]
    pub(super) fn write(&mut self, unit: u32) {
        let old = self.slot_of[unit as usize];
        if old == NONE {
            self.mapped += 1;
        } else {
            self.invalidate(old);
            // Collection must not copy it.
            self.slot_of[unit as usize] = NONE;
        }
        let slot = self.next_slot();
        self.unit_at[slot as usize] = unit;
        self.slot_of[unit as usize] = slot;
        self.valid[self.open as usize] += 1;
        self.counts.written += 1;
    }

    /// Leaves the next slot empty: a page was written before it was full.
    pub(super) fn pad(&mut self) {
        let slot = self.next_slot();
        self.unit_at[slot as usize] = NONE;
        self.counts.padded += 1;
    }

    /// The host needs a unit no more.
    #[inline]
    pub(super) fn trim(&mut self, unit: u32) {
        let slot = std::mem::replace(&mut self.slot_of[unit as usize], NONE);
        if slot != NONE {
            self.invalidate(slot);
            self.mapped -= 1;
        }
    }

    /// Units with data.
    pub(super) fn mapped(&self) -> u32 {
        self.mapped
    }

    pub(super) fn cost(&self) -> Cost {
        self.cost
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    #[inline]
    fn invalidate(&mut self, slot: u32) {
        let block = slot / self.shape.per_block;
        let valid = &mut self.valid[block as usize];
        *valid -= 1;
        if self.policy == Collection::Greedy && self.closed[block as usize] {
            self.by_valid.fall(block, *valid);
        }
    }

    #[inline]
    fn next_slot(&mut self) -> u32 {
        if self.filled == self.shape.per_block {
            self.open_next();
        }
        let slot = self.open * self.shape.per_block + self.filled;
        self.filled += 1;
        slot
    }

    fn open_next(&mut self) {
        if self.open != NONE {
            self.close(self.open);
        }
        let mut moved = 0;
        loop {
            self.filled = 0;
            if self.erased.len() > 1 {
                self.open = self.erased.pop().unwrap_or(NONE);
            } else {
                moved += self.collect();
            }
            if self.filled < self.shape.per_block {
                break;
            }
            self.close(self.open);
        }
        let room = self.shape.per_block - self.filled;
        self.cost.moves_q16 = (u64::from(moved) << 16) / u64::from(room);
    }

    fn close(&mut self, block: u32) {
        self.closed[block as usize] = true;
        match self.policy {
            Collection::Greedy => self.by_valid.add(block, self.valid[block as usize]),
            Collection::Oldest => self.by_age.push_back(block),
            Collection::Choices(_) => {}
        }
    }

    /// Copies the valid units of a superblock to the reserve; it is the reserve then. Returns the units copied.
    fn collect(&mut self) -> u32 {
        let per_block = self.shape.per_block;
        let victim = self.victim();
        self.closed[victim as usize] = false;
        let reserve = self.erased.pop().unwrap_or(victim);
        let (from, to) = (victim * per_block, reserve * per_block);
        let mut copied = 0;
        if self.valid[victim as usize] > 0 {
            for slot in from..from + per_block {
                let unit = self.unit_at[slot as usize];
                if unit != NONE && self.slot_of[unit as usize] == slot {
                    self.slot_of[unit as usize] = to + copied;
                    self.unit_at[(to + copied) as usize] = unit;
                    copied += 1;
                }
            }
        }
        self.valid[victim as usize] = 0;
        self.valid[reserve as usize] = copied;
        self.erased.push(victim);
        self.open = reserve;
        self.filled = copied;
        self.counts.moved += u64::from(copied);
        self.cost.valid_share = f64::from(copied) / f64::from(per_block);
        self.cost.collects = true;
        copied
    }

    fn victim(&mut self) -> u32 {
        match self.policy {
            Collection::Greedy => self.by_valid.take_least(),
            Collection::Oldest => self.by_age.pop_front().unwrap_or(self.open),
            Collection::Choices(choices) => {
                let blocks = self.closed.len() as u64;
                let mut best = NONE;
                for _ in 0..choices {
                    let block = loop {
                        let block = self.random.below(blocks) as u32;
                        if self.closed[block as usize] {
                            break block;
                        }
                    };
                    if best == NONE || self.valid[block as usize] < self.valid[best as usize] {
                        best = block;
                    }
                }
                best
            }
        }
    }
}

/// Superblocks by their number of valid units: a list for each number.
#[derive(Debug, Clone)]
struct Buckets {
    first: Vec<u32>,
    /// Next and previous of each superblock.
    links: Vec<(u32, u32)>,
    /// No list below this has a superblock.
    least: u32,
}

impl Buckets {
    fn new(blocks: usize, per_block: u32) -> Self {
        Self {
            first: vec![NONE; per_block as usize + 1],
            links: vec![(NONE, NONE); blocks],
            least: per_block,
        }
    }

    #[inline]
    fn add(&mut self, block: u32, valid: u32) {
        let next = std::mem::replace(&mut self.first[valid as usize], block);
        self.links[block as usize] = (next, NONE);
        if next != NONE {
            self.links[next as usize].1 = block;
        }
        self.least = self.least.min(valid);
    }

    #[inline]
    fn remove(&mut self, block: u32, valid: u32) {
        let (next, previous) = self.links[block as usize];
        if next != NONE {
            self.links[next as usize].1 = previous;
        }
        if previous == NONE {
            self.first[valid as usize] = next;
        } else {
            self.links[previous as usize].0 = next;
        }
    }

    /// A superblock has one valid unit less than before.
    #[inline]
    fn fall(&mut self, block: u32, valid: u32) {
        self.remove(block, valid + 1);
        self.add(block, valid);
    }

    fn take_least(&mut self) -> u32 {
        while self.first[self.least as usize] == NONE {
            self.least += 1;
        }
        let block = self.first[self.least as usize];
        self.remove(block, self.least);
        block
    }
}

#[cfg(test)]
mod tests;
