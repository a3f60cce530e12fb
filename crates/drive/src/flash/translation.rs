//! The mapping of a drive of any size in little memory.
//!
//! A drive of a terabyte has 240 million units of 4 KiB. The model follows one unit in 2^k, at a random place in each group
//! of 2^k neighbours, in superblocks that are smaller by the same factor. Their number is the drive's own, and so is the
//! share of its space that a write invalidates. Write amplification depends on these shares alone
//! (see [`super::amplification`]), not on the number of units in a superblock, as long as these are many: every time that the
//! drive writes 2^k units, the model writes one, and both are in the same state. What collection moves is charged to each
//! unit that the host writes, followed or not.

use std::ops::Range;

use super::mapping::{Cost, Mapping, Shape};
use super::params::{FlashParams, FlashState};
use super::scatter::Scatter;
use crate::random::mix;

/// Most units that the model follows: 17 MB.
const MOST_UNITS: u64 = 1 << 21;
/// Fewest units of a superblock: with fewer, their number begins to count.
const LEAST_PER_BLOCK: u64 = 256;
/// A drive that is small against its blocks has smaller ones, so that there are at least this many superblocks.
const LEAST_BLOCKS: u64 = 16;

/// Addresses to units, and units to the mapping.
#[derive(Debug, Clone)]
pub(super) struct Translation {
    shape: Shape,
    params: (super::Collection, FlashState),
    /// k: one unit of 2^k is followed.
    shift: u32,
    /// Made at the first write: a drive that is only read needs none.
    mapping: Option<Box<Mapping>>,
    /// Padding that is less than one followed unit.
    padding: u64,
    pub(super) scatter: Scatter,
}

impl Translation {
    pub(super) fn new(params: &FlashParams) -> Self {
        let units = params
            .capacity_blocks
            .div_ceil(u64::from(params.unit_blocks));
        let mut shift = 0;
        while units.div_ceil(1 << shift) > MOST_UNITS {
            shift += 1;
        }
        let units = units.div_ceil(1 << shift);
        let per_page = u64::from(params.page_blocks / params.unit_blocks);
        let whole = u64::from(params.dies()) * u64::from(params.pages_per_block) * per_page;
        let per_block = (whole >> shift)
            .max(LEAST_PER_BLOCK)
            .min(units / LEAST_BLOCKS)
            .max(1);
        let wanted = (units as f64 * (1.0 + params.spare) / per_block as f64).round() as u64;
        // Two more than are full of valid units: one to be collected is never full.
        let blocks = wanted.max(units.div_ceil(per_block) + 2);
        let scattered = params.state == FlashState::Used && per_page > 1;
        Self {
            shape: Shape {
                units: units as u32,
                per_block: per_block as u32,
                blocks: blocks as u32,
            },
            params: (params.collection, params.state),
            shift,
            mapping: None,
            padding: 0,
            scatter: Scatter::new(params.capacity_blocks, params.page_blocks, scattered),
        }
    }

    #[inline]
    fn mapping(&mut self) -> &mut Mapping {
        let (shape, (policy, state)) = (self.shape, self.params);
        self.mapping
            .get_or_insert_with(|| Box::new(Mapping::new(shape, policy, state)))
    }

    /// Calls `act` with each followed unit in a range.
    #[inline]
    fn followed(&mut self, units: Range<u64>, act: impl Fn(&mut Mapping, u32)) {
        let shift = self.shift;
        let mapping = self.mapping();
        if shift == 0 {
            for unit in units {
                act(mapping, unit as u32);
            }
            return;
        }
        if units.is_empty() {
            return;
        }
        for group in units.start >> shift..=(units.end - 1) >> shift {
            let followed = (group << shift) + (mix(group) & ((1 << shift) - 1));
            if units.contains(&followed) {
                act(mapping, group as u32);
            }
        }
    }

    #[inline]
    pub(super) fn write(&mut self, units: Range<u64>) {
        self.followed(units, Mapping::write);
    }

    pub(super) fn trim(&mut self, units: Range<u64>) {
        self.followed(units, Mapping::trim);
    }

    /// Slots that a program leaves empty.
    pub(super) fn pad(&mut self, slots: u64) {
        self.padding += slots;
        while self.padding >= 1 << self.shift {
            self.padding -= 1 << self.shift;
            self.mapping().pad();
        }
    }

    #[inline]
    pub(super) fn cost(&self) -> Cost {
        self.mapping
            .as_ref()
            .map_or_else(Cost::default, |mapping| mapping.cost())
    }

    /// Share of the drive's units that have no data.
    pub(super) fn empty_share(&self) -> f64 {
        let mapped = match (&self.mapping, self.params.1) {
            (Some(mapping), _) => mapping.mapped(),
            (None, FlashState::Fresh) => 0,
            (None, _) => self.shape.units,
        };
        1.0 - f64::from(mapped) / f64::from(self.shape.units)
    }

    /// The spare space that the mapping has, after rounding to whole superblocks.
    #[cfg(test)]
    pub(super) fn spare(&self) -> f64 {
        self.shape.spare()
    }

    #[cfg(test)]
    pub(super) fn shift(&self) -> u32 {
        self.shift
    }
}
