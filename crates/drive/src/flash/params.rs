//! The parameters of a flash drive.

use crate::error::DriveError;

/// The parameters of a flash drive. Times are nanoseconds, blocks have 512 bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct FlashParams {
    /// Name, for messages.
    pub name: String,
    /// Blocks of the host.
    pub capacity_blocks: u64,
    /// Channels between controller and dies.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Blocks in a page, which a die reads or programs at once.
    pub page_blocks: u32,
    /// Sensing a page.
    pub read_page_ns: u64,
    /// Programming a page.
    pub program_page_ns: u64,
    /// Nanoseconds per block on a channel, times 2^16.
    pub channel_block_q16: u64,
    /// Nanoseconds per block on the interface, times 2^16.
    pub bus_block_q16: u64,
    /// From a command's arrival to its first page operation, and from its last transfer to its completion, together.
    pub command_ns: u64,
    /// Least time between two commands: the limit on commands per second.
    pub command_gap_ns: u64,
    /// Commands that may be outstanding.
    pub queue_depth: u32,
    /// Blocks of written data that wait for programming after they have been acknowledged; 0 for none.
    pub write_cache_blocks: u32,
    /// Blocks of a unit, the smallest part that has a place of its own; a page has whole units.
    pub unit_blocks: u32,
    /// Space that the host does not see, as a share of the capacity.
    pub spare: f64,
    /// Pages that a die erases at once.
    pub pages_per_block: u32,
    /// Erasing a block.
    pub erase_block_ns: u64,
    /// Choice of the blocks to be collected.
    pub collection: Collection,
    /// Part of the flash that is programmed faster, with one bit in each cell.
    pub slc: Option<SlcCache>,
    /// State at the beginning.
    pub state: FlashState,
}

/// The choice of the blocks that are collected to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collection {
    /// The one with the fewest valid units.
    Greedy,
    /// The best of as many random ones.
    Choices(u32),
    /// The one that was filled first.
    Oldest,
}

/// The state of a flash drive before its first command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlashState {
    /// Everything is erased.
    #[default]
    Fresh,
    /// Each unit was written once, in order; the spare space is erased.
    Filled,
    /// Each unit has been written in random order for so long that the work of collection changes no more.
    Used,
}

impl FlashState {
    /// The states by name.
    pub const NAMES: [(&'static str, FlashState); 3] = [
        ("fresh", FlashState::Fresh),
        ("filled", FlashState::Filled),
        ("used", FlashState::Used),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FlashState::Fresh => "fresh",
            FlashState::Filled => "filled",
            FlashState::Used => "used",
        }
    }
}

/// Part of the flash that is programmed faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlcCache {
    /// Blocks that are always there.
    pub blocks: u64,
    /// Blocks that an empty drive has in addition.
    pub extra_blocks: u64,
    /// Programming a page there.
    pub program_page_ns: u64,
}

impl FlashParams {
    /// Dies of the drive.
    #[must_use]
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    pub(super) fn check(&self) -> Result<(), DriveError> {
        let wrong = |problem: String| Err(DriveError::parameter(self.name.clone(), problem));
        let ranges = [
            ("the number of channels", u64::from(self.channels), 1024),
            (
                "the number of dies per channel",
                u64::from(self.dies_per_channel),
                1024,
            ),
            (
                "the page size in blocks",
                u64::from(self.page_blocks),
                1 << 16,
            ),
            ("the queue depth", u64::from(self.queue_depth), 1 << 16),
            ("the capacity in blocks", self.capacity_blocks, 1 << 41),
            (
                "the unit size in blocks",
                u64::from(self.unit_blocks),
                1 << 16,
            ),
            (
                "the number of pages per block",
                u64::from(self.pages_per_block),
                1 << 16,
            ),
        ];
        for (what, value, most) in ranges {
            if !(1..=most).contains(&value) {
                return wrong(format!("{what} is {value}; allowed are 1 to {most}"));
            }
        }
        if !self.page_blocks.is_multiple_of(self.unit_blocks) {
            return wrong(format!(
                "a page of {} blocks does not consist of whole units of {}",
                self.page_blocks, self.unit_blocks
            ));
        }
        if !(0.005..=10.0).contains(&self.spare) {
            return wrong(format!(
                "the spare space is {} of the capacity; allowed are 0.005 to 10",
                self.spare
            ));
        }
        if let Collection::Choices(choices) = self.collection
            && !(1..=1000).contains(&choices)
        {
            return wrong(format!("choices are {choices}; allowed are 1 to 1000"));
        }
        Ok(())
    }
}
