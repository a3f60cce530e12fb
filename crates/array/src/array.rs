//! An array: checked configuration, capacity, and the map in both directions.

use crate::config::{ArrayConfig, MAX_MEMBERS};
use crate::divide::round_down;
use crate::error::ArrayError;
use crate::layout::Layout;
use crate::level::Level;
use crate::mirror::Mirror;
use crate::nested::Nested;
use crate::parity::Parity;
use crate::place::{ParityPlaces, Piece, Place, Role};
use crate::zones::{Linear, Zones};

/// mdadm rounds RAID1 members down to this, so that the array may become a RAID5 (`Create.c`).
const RAID1_ROUNDING: u64 = 64 * 1024;
/// Smallest chunk of RAID4, 5, 6 and 10: a page. mdadm wants as much for RAID0.
const SMALLEST_CHUNK: u64 = 4096;

/// An array whose configuration md would accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    config: ArrayConfig,
    pub(crate) map: Map,
}

/// The map itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Map {
    Linear(Linear),
    Zones(Zones),
    Mirror(Mirror),
    Parity(Parity),
    Nested(Nested),
}

impl Array {
    /// Checks the configuration as mdadm and the kernel do, and makes the map.
    pub fn new(config: ArrayConfig) -> Result<Array, ArrayError> {
        check_layout(&config)?;
        check_members(&config)?;
        check_chunk(&config)?;
        let map = match (config.level, config.layout) {
            (Level::Linear, _) => Map::Linear(Linear::new(&config.members, config.chunk)),
            (Level::Raid0, Layout::Zones(layout)) => {
                Map::Zones(Zones::new(&config.members, config.chunk, layout))
            }
            (Level::Raid1, _) => {
                Map::Mirror(Mirror::plain(config.members.len(), component(&config)?))
            }
            (Level::Raid10, Layout::Copies(layout)) => Map::Mirror(Mirror::new(
                config.members.len(),
                component(&config)?,
                config.chunk,
                layout,
            )?),
            (Level::Raid4 | Level::Raid5 | Level::Raid6, Layout::Parity(layout)) => {
                Map::Parity(Parity::new(
                    config.level,
                    layout,
                    config.members.len() as u32,
                    component(&config)?,
                    config.chunk,
                ))
            }
            (Level::Raid50 | Level::Raid60, Layout::Parity(_)) => {
                Map::Nested(Nested::new(&config)?)
            }
            (level, layout) => return Err(layout.not_of(level)),
        };
        Ok(Array { config, map })
    }

    /// The configuration that the array was made from.
    pub fn config(&self) -> &ArrayConfig {
        &self.config
    }

    /// RAID level.
    pub fn level(&self) -> Level {
        self.config.level
    }

    /// Number of members.
    pub fn members(&self) -> u32 {
        self.config.members.len() as u32
    }

    /// Usable bytes of the array, exactly as md counts them.
    pub fn capacity(&self) -> u64 {
        match &self.map {
            Map::Linear(map) => map.capacity(),
            Map::Zones(map) => map.capacity(),
            Map::Mirror(map) => map.capacity(),
            Map::Parity(map) => map.capacity(),
            Map::Nested(map) => map.capacity(),
        }
    }

    /// Bytes used on each member (md's `component_size`); 0 for linear and RAID0, which use each
    /// member as far as it goes. For RAID50 and RAID60, of the first group.
    pub fn component(&self) -> u64 {
        match &self.map {
            Map::Linear(_) | Map::Zones(_) => 0,
            Map::Mirror(map) => map.component(),
            Map::Parity(map) => map.component(),
            Map::Nested(map) => map.first_group().component(),
        }
    }

    /// Chunk on one member, bytes; `None` where data is not cut into chunks.
    pub fn chunk(&self) -> Option<u64> {
        match &self.map {
            Map::Linear(_) => None,
            Map::Mirror(_) if self.level() == Level::Raid1 => None,
            Map::Zones(map) => Some(map.chunk()),
            Map::Mirror(map) => Some(map.chunk()),
            Map::Parity(map) => Some(map.chunk()),
            Map::Nested(map) => Some(map.first_group().chunk()),
        }
    }

    /// Copies of each byte; 1 where there is parity instead.
    pub fn copies(&self) -> u32 {
        match &self.map {
            Map::Mirror(map) => map.copies(),
            _ => 1,
        }
    }

    /// The first copy of the byte `logical`, and how far the stretch on that member goes.
    #[inline]
    pub fn locate(&self, logical: u64) -> Result<Piece, ArrayError> {
        self.check_range(logical, 1)?;
        Ok(self.locate_inside(logical))
    }

    /// Same as `locate`, for a byte known to be inside.
    #[inline(always)]
    pub(crate) fn locate_inside(&self, logical: u64) -> Piece {
        match &self.map {
            Map::Linear(map) => map.locate(logical),
            Map::Zones(map) => map.locate(logical),
            Map::Mirror(map) => map.locate(logical),
            Map::Parity(map) => map.locate(logical),
            Map::Nested(map) => map.locate(logical),
        }
    }

    /// All copies of a byte, in md's order. Empty for a byte beyond the end.
    #[inline]
    pub fn places(&self, logical: u64) -> impl Iterator<Item = Place> + '_ {
        let copies = if logical < self.capacity() {
            self.copies()
        } else {
            0
        };
        (0..copies).map(move |copy| match &self.map {
            Map::Mirror(map) => map.copy(logical, copy),
            _ => self.locate_inside(logical).place(),
        })
    }

    /// Where P and Q of the byte's stripe are; `None` for levels without parity.
    pub fn parity(&self, logical: u64) -> Result<Option<ParityPlaces>, ArrayError> {
        self.check_range(logical, 1)?;
        Ok(match &self.map {
            Map::Parity(map) => Some(map.parity(logical)),
            Map::Nested(map) => Some(map.parity(logical)),
            _ => None,
        })
    }

    /// The use of a byte of a member's data area. Bytes and members beyond the end are unused.
    pub fn role_at(&self, place: Place) -> Role {
        if place.member >= self.members() {
            return Role::Unused;
        }
        match &self.map {
            Map::Linear(map) => map.role_at(place.member, place.offset),
            Map::Zones(map) => map.role_at(place.member, place.offset),
            Map::Mirror(map) => map.role_at(place.member, place.offset),
            Map::Parity(map) => map.role_at(place.member, place.offset),
            Map::Nested(map) => map.role_at(place.member, place.offset),
        }
    }

    /// Returns an error unless the whole request is inside the array.
    #[inline]
    pub(crate) fn check_range(&self, offset: u64, len: u64) -> Result<(), ArrayError> {
        let end = self.capacity();
        if offset.checked_add(len).is_some_and(|last| last <= end) {
            Ok(())
        } else {
            Err(ArrayError::BeyondEnd { offset, len, end })
        }
    }
}

/// Bytes used on each member: the smallest, rounded down to whole chunks.
fn component(config: &ArrayConfig) -> Result<u64, ArrayError> {
    let rounding = if config.level == Level::Raid1 {
        RAID1_ROUNDING
    } else {
        config.chunk
    };
    let smallest = config.members.iter().copied().min().unwrap_or(0);
    // A far layout needs a chunk in each section.
    let needed = match config.layout {
        Layout::Copies(copies) => rounding.saturating_mul(u64::from(copies.far)),
        _ => rounding,
    };
    if smallest < needed {
        return Err(ArrayError::MemberTooSmall {
            given: smallest,
            needed,
        });
    }
    Ok(round_down(smallest, rounding))
}

/// A layout that exists, but not for this level, is refused by its name.
fn check_layout(config: &ArrayConfig) -> Result<(), ArrayError> {
    let known = match config.layout.md_word() {
        None => matches!(config.level, Level::Linear | Level::Raid1),
        Some(word) => Layout::from_md(config.level, i64::from(word)) == Ok(config.layout),
    };
    known
        .then_some(())
        .ok_or_else(|| config.layout.not_of(config.level))
}

fn check_members(config: &ArrayConfig) -> Result<(), ArrayError> {
    let (level, given) = (config.level, config.members.len());
    let least = level.fewest_members();
    if !(least..=MAX_MEMBERS).contains(&given) {
        let allowed = if given < least {
            format!("at least {least}")
        } else {
            format!("at most {MAX_MEMBERS}")
        };
        return Err(ArrayError::MemberCount {
            level: level.name(),
            allowed,
            given,
        });
    }
    // Beyond this the powers of the generator repeat (GF(2^8) has 255), and Q no longer
    // distinguishes two members.
    let ddf = matches!(config.layout, Layout::Parity(layout) if layout.is_ddf());
    let most = if ddf { 255 } else { 257 };
    if level == Level::Raid6 && given > most {
        return Err(ArrayError::MemberCount {
            level: level.name(),
            allowed: format!("at most {most}"),
            given,
        });
    }
    if level.of_groups().is_none() && config.groups != 1 {
        return Err(ArrayError::Groups(format!("{level} has no groups")));
    }
    let smallest = config.members.iter().copied().min().unwrap_or(0);
    if matches!(level, Level::Linear | Level::Raid0) && smallest < config.chunk.max(512) {
        return Err(ArrayError::MemberTooSmall {
            given: smallest,
            needed: config.chunk.max(512),
        });
    }
    let total = config
        .members
        .iter()
        .try_fold(0u64, |sum, size| sum.checked_add(*size));
    total.map(|_| ()).ok_or(ArrayError::TooLarge)
}

fn check_chunk(config: &ArrayConfig) -> Result<(), ArrayError> {
    let chunk = config.chunk;
    let allowed = match config.level {
        Level::Raid1 => (chunk == 0).then_some(()).ok_or("none"),
        Level::Linear => (chunk.is_multiple_of(1024))
            .then_some(())
            .ok_or("a rounding in whole KiB, or none"),
        Level::Raid0 => (chunk >= SMALLEST_CHUNK && chunk.is_multiple_of(1024))
            .then_some(())
            .ok_or("at least 4 KiB, in whole KiB"),
        _ => (chunk >= SMALLEST_CHUNK && chunk.is_power_of_two())
            .then_some(())
            .ok_or("a power of two of at least 4 KiB"),
    };
    allowed.map_err(|allowed| ArrayError::Chunk {
        level: config.level.name(),
        allowed,
        given: chunk,
    })
}
