//! RAID levels under md's names.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::error::ArrayError;

/// A RAID level that the maps know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Members one after the other.
    Linear,
    /// Chunks in turn over all members.
    Raid0,
    /// Every member a full copy.
    Raid1,
    /// Parity on the last member.
    Raid4,
    /// Rotating parity.
    Raid5,
    /// Two rotating parities, P and Q.
    Raid6,
    /// md's own RAID10: near, far and offset copies.
    Raid10,
    /// RAID0 over RAID5 groups.
    Raid50,
    /// RAID0 over RAID6 groups.
    Raid60,
}

impl Level {
    /// All levels, in the order help texts list them.
    pub const ALL: [Level; 9] = [
        Level::Linear,
        Level::Raid0,
        Level::Raid1,
        Level::Raid4,
        Level::Raid5,
        Level::Raid6,
        Level::Raid10,
        Level::Raid50,
        Level::Raid60,
    ];

    /// md's name of the level.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Linear => "linear",
            Level::Raid0 => "raid0",
            Level::Raid1 => "raid1",
            Level::Raid4 => "raid4",
            Level::Raid5 => "raid5",
            Level::Raid6 => "raid6",
            Level::Raid10 => "raid10",
            Level::Raid50 => "raid50",
            Level::Raid60 => "raid60",
        }
    }

    /// Parity members of a stripe (of one group for RAID50 and RAID60): 0, 1 or 2.
    pub const fn parities(self) -> u32 {
        match self {
            Level::Raid4 | Level::Raid5 | Level::Raid50 => 1,
            Level::Raid6 | Level::Raid60 => 2,
            _ => 0,
        }
    }

    /// The level of each group, for levels that are nested.
    pub const fn of_groups(self) -> Option<Level> {
        match self {
            Level::Raid50 => Some(Level::Raid5),
            Level::Raid60 => Some(Level::Raid6),
            _ => None,
        }
    }

    /// Fewest members md runs the level with.
    pub const fn fewest_members(self) -> usize {
        match self {
            Level::Linear | Level::Raid0 | Level::Raid1 => 1,
            Level::Raid4 | Level::Raid5 | Level::Raid10 => 2,
            Level::Raid6 | Level::Raid50 => 4,
            Level::Raid60 => 8,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = ArrayError;

    /// Reads `raid5`, `RAID-5` or `5`.
    fn from_str(text: &str) -> Result<Level, ArrayError> {
        let plain = text.trim().to_ascii_lowercase().replace('-', "");
        Level::ALL
            .into_iter()
            .find(|level| {
                plain == level.name() || Some(plain.as_str()) == level.name().strip_prefix("raid")
            })
            .ok_or_else(|| ArrayError::UnknownLevel(text.to_owned()))
    }
}
