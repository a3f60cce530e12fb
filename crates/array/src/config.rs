//! The description of an array, before [`Array`](crate::Array) checks it and makes the map.

use serde::Serialize;

use crate::layout::Layout;
use crate::level::Level;

/// mdadm's default chunk since 3.1, bytes.
pub const DEFAULT_CHUNK: u64 = 512 * 1024;

/// Most members of an array with version-1 metadata (md(4)).
pub const MAX_MEMBERS: usize = 384;

/// Description of an array. Sizes are bytes of each member's data area: md's superblock and the
/// gap before the data are not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArrayConfig {
    /// RAID level.
    pub level: Level,
    /// Layout, of the groups for RAID50 and RAID60.
    pub layout: Layout,
    /// Chunk, bytes. RAID1 has none; for linear it is the rounding of each member, 0 for none.
    pub chunk: u64,
    /// Size of each member's data area, bytes, in slot order.
    pub members: Vec<u64>,
    /// RAID50 and RAID60: number of groups; 1 otherwise.
    pub groups: u32,
    /// RAID50 and RAID60: chunk of the RAID0 over the groups, bytes; `None` for one full stripe of
    /// a group, as controllers do.
    pub outer_chunk: Option<u64>,
}

impl ArrayConfig {
    /// An array as mdadm 4.2 makes it when only the level and the drives are given.
    pub fn new(level: Level, members: Vec<u64>) -> ArrayConfig {
        ArrayConfig {
            level,
            layout: Layout::default_of(level),
            chunk: match level {
                Level::Linear | Level::Raid1 => 0,
                _ => DEFAULT_CHUNK,
            },
            members,
            groups: if level.of_groups().is_some() { 2 } else { 1 },
            outer_chunk: None,
        }
    }

    /// The same with another layout.
    pub fn layout(mut self, layout: Layout) -> ArrayConfig {
        self.layout = layout;
        self
    }

    /// The same with another chunk, bytes.
    pub fn chunk(mut self, chunk: u64) -> ArrayConfig {
        self.chunk = chunk;
        self
    }

    /// The same with another number of groups (RAID50, RAID60).
    pub fn groups(mut self, groups: u32) -> ArrayConfig {
        self.groups = groups;
        self
    }

    /// The same with another chunk of the RAID0 over the groups, bytes (RAID50, RAID60).
    pub fn outer_chunk(mut self, chunk: u64) -> ArrayConfig {
        self.outer_chunk = Some(chunk);
        self
    }
}
