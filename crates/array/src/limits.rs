//! The queue limits that md sets for an array (read off Linux 6.1; `raid0_run`, `raid10_set_io_opt`,
//! `raid5_run`, `blk_stack_limits`).

use serde::Serialize;

use crate::array::{Array, Map};
use crate::layout::Layout;
use crate::level::Level;

/// Read-ahead that every queue has at least, bytes (`VM_READAHEAD_PAGES`).
pub const DEFAULT_READ_AHEAD: u64 = 128 * 1024;

/// Longest request of a queue without a limit of its own, KiB (`BLK_DEF_MAX_SECTORS`).
const LONGEST_KIB: u64 = 1280;

/// Queue attributes of an md array under Linux 6.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QueueLimits {
    /// `minimum_io_size`, bytes: the chunk.
    pub minimum_io: u64,
    /// `optimal_io_size`, bytes: a full stripe of data; 0 where there is none.
    pub optimal_io: u64,
    /// `read_ahead_kb`, in bytes: twice the optimal size, at least 128 KiB.
    pub read_ahead: u64,
    /// `max_sectors_kb`, in bytes: largest request md takes in one piece.
    pub max_request: u64,
}

impl Array {
    /// The attributes of the array's own queue; for RAID50 and RAID60 of the RAID0 over the groups.
    pub fn queue_limits(&self) -> QueueLimits {
        let stripe = self.stripe_chunks();
        let optimal_io = stripe.map_or(0, |chunks| chunks * self.chunk().unwrap_or(512));
        let chunk = match &self.map {
            Map::Nested(map) => map.outer_chunk(),
            _ => self.chunk().unwrap_or(512),
        };
        QueueLimits {
            minimum_io: chunk,
            optimal_io,
            read_ahead: DEFAULT_READ_AHEAD.max(optimal_io.saturating_mul(2)),
            max_request: 1024
                * match self.level() {
                    Level::Raid0 | Level::Raid50 | Level::Raid60 => LONGEST_KIB.min(chunk / 1024),
                    Level::Raid4 | Level::Raid5 | Level::Raid6 => 1024,
                    Level::Linear | Level::Raid1 | Level::Raid10 => LONGEST_KIB,
                },
        }
    }

    /// Chunks of data in a full stripe, as md counts them; `None` where nothing is striped.
    pub fn stripe_chunks(&self) -> Option<u64> {
        let members = u64::from(self.members());
        match self.config().layout {
            Layout::Plain => None,
            Layout::Zones(_) => Some(members),
            // raid10_nr_stripes: a stripe that near copies do not divide counts all members.
            Layout::Copies(layout) => match u64::from(layout.near) {
                near if members.is_multiple_of(near) => Some(members / near),
                _ => Some(members),
            },
            Layout::Parity(_) => {
                let groups = u64::from(self.config().groups);
                Some(members - groups * u64::from(self.level().parities()))
            }
        }
    }
}
