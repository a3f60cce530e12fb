//! Layouts of each level under mdadm's names, and as the number md keeps in its superblock.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::error::ArrayError;
use crate::level::Level;

/// Where RAID4, RAID5 and RAID6 put parity and data (`drivers/md/raid5.h`, `ALGORITHM_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ParityLayout {
    /// Parity moves to the left, data from the first member on.
    LeftAsymmetric = 0,
    /// Parity moves to the right, data from the first member on.
    RightAsymmetric = 1,
    /// Parity moves to the left, data follows it. md's default.
    LeftSymmetric = 2,
    /// Parity moves to the right, data follows it.
    RightSymmetric = 3,
    /// Parity always on the first member (RAID6: first two).
    ParityFirst = 4,
    /// Parity always on the last member (RAID6: last two).
    ParityLast = 5,
    /// DDF's "rotating zero restart"; RAID6 only.
    DdfZeroRestart = 8,
    /// DDF's "rotating N restart"; RAID6 only.
    DdfNRestart = 9,
    /// DDF's "rotating N continue"; RAID6 only.
    DdfNContinue = 10,
    /// RAID5 left-asymmetric with Q on one more member, the last.
    LeftAsymmetric6 = 16,
    /// RAID5 right-asymmetric with Q on the last member.
    RightAsymmetric6 = 17,
    /// RAID5 left-symmetric with Q on the last member.
    LeftSymmetric6 = 18,
    /// RAID5 right-symmetric with Q on the last member.
    RightSymmetric6 = 19,
    /// P always on the first, Q on the last member.
    ParityFirst6 = 20,
}

impl ParityLayout {
    /// All of them, in the order of md's numbers.
    pub const ALL: [ParityLayout; 14] = [
        ParityLayout::LeftAsymmetric,
        ParityLayout::RightAsymmetric,
        ParityLayout::LeftSymmetric,
        ParityLayout::RightSymmetric,
        ParityLayout::ParityFirst,
        ParityLayout::ParityLast,
        ParityLayout::DdfZeroRestart,
        ParityLayout::DdfNRestart,
        ParityLayout::DdfNContinue,
        ParityLayout::LeftAsymmetric6,
        ParityLayout::RightAsymmetric6,
        ParityLayout::LeftSymmetric6,
        ParityLayout::RightSymmetric6,
        ParityLayout::ParityFirst6,
    ];

    /// mdadm's name.
    pub const fn name(self) -> &'static str {
        match self {
            ParityLayout::LeftAsymmetric => "left-asymmetric",
            ParityLayout::RightAsymmetric => "right-asymmetric",
            ParityLayout::LeftSymmetric => "left-symmetric",
            ParityLayout::RightSymmetric => "right-symmetric",
            ParityLayout::ParityFirst => "parity-first",
            ParityLayout::ParityLast => "parity-last",
            ParityLayout::DdfZeroRestart => "ddf-zero-restart",
            ParityLayout::DdfNRestart => "ddf-N-restart",
            ParityLayout::DdfNContinue => "ddf-N-continue",
            ParityLayout::LeftAsymmetric6 => "left-asymmetric-6",
            ParityLayout::RightAsymmetric6 => "right-asymmetric-6",
            ParityLayout::LeftSymmetric6 => "left-symmetric-6",
            ParityLayout::RightSymmetric6 => "right-symmetric-6",
            ParityLayout::ParityFirst6 => "parity-first-6",
        }
    }

    /// True if Q's powers of the generator count members rather than data blocks (`ddf_layout`).
    pub const fn is_ddf(self) -> bool {
        matches!(
            self,
            ParityLayout::DdfZeroRestart | ParityLayout::DdfNRestart | ParityLayout::DdfNContinue
        )
    }

    /// True for layouts of RAID6 alone.
    pub const fn needs_q(self) -> bool {
        self as u8 >= 8
    }

    fn parse(text: &str) -> Option<ParityLayout> {
        let text = match text {
            "default" | "ls" => "left-symmetric",
            "la" => "left-asymmetric",
            "rs" => "right-symmetric",
            "ra" => "right-asymmetric",
            other => other,
        };
        ParityLayout::ALL
            .into_iter()
            .find(|layout| layout.name().eq_ignore_ascii_case(text))
    }
}

/// How RAID0 chooses the member beyond the first zone of unequal members (`drivers/md/raid0.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ZoneLayout {
    /// By the chunk's number in the whole array: kernels before 3.14, `original` since 5.4.
    Original,
    /// By the chunk's number in its zone: kernels 3.14 to 5.3, `alternate` since 5.4.
    Alternate,
}

/// How far copies turn around the members (bits 17 and 18 of RAID10's layout word).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FarSets {
    /// All members are one ring. What mdadm makes.
    Whole,
    /// Bit 17: rings of members / far copies each, the first attempt at smaller rings.
    Old,
    /// Bit 18: rings of near x far copies each.
    New,
}

/// RAID10's layout: every chunk has `near` x `far` copies (`drivers/md/raid10.c`, `setup_geo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CopyLayout {
    /// Copies side by side.
    pub near: u8,
    /// Copies further down, each shifted to other members.
    pub far: u8,
    /// Far copies are in the next stripe instead of the next section of the members.
    pub offset: bool,
    /// Rings in which far copies turn.
    pub sets: FarSets,
}

impl CopyLayout {
    /// `n` copies side by side, `f` further down.
    pub const fn new(near: u8, far: u8, offset: bool) -> CopyLayout {
        CopyLayout {
            near,
            far,
            offset,
            sets: FarSets::Whole,
        }
    }

    /// Copies of each chunk.
    pub const fn copies(self) -> u32 {
        self.near as u32 * self.far as u32
    }

    /// The number md keeps.
    pub const fn word(self) -> u32 {
        let sets = match self.sets {
            FarSets::Whole => 0,
            FarSets::Old => 1 << 17,
            FarSets::New => 1 << 18,
        };
        self.near as u32 | (self.far as u32) << 8 | (self.offset as u32) << 16 | sets
    }

    /// From the number md keeps; `None` for what `setup_geo` refuses.
    pub fn from_word(word: u32) -> Option<CopyLayout> {
        let sets = match word >> 17 {
            0 => FarSets::Whole,
            1 => FarSets::Old,
            2 => FarSets::New,
            _ => return None,
        };
        let (near, far) = ((word & 255) as u8, (word >> 8 & 255) as u8);
        (near > 0 && far > 0).then_some(CopyLayout {
            near,
            far,
            offset: word >> 16 & 1 == 1,
            sets,
        })
    }

    /// True if `mdadm --create` can make it; others need sysfs.
    pub const fn mdadm_makes(self) -> bool {
        matches!(self.sets, FarSets::Whole) && (self.near == 1 || self.far == 1)
    }

    /// Reads `n2`, `f2`, `o3`, both as in `n2f2`, rings as in `f2s17` or `f2s18`, or md's number.
    fn parse(text: &str) -> Option<CopyLayout> {
        if text.eq_ignore_ascii_case("default") {
            return Some(CopyLayout::new(2, 1, false));
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let word = match text.strip_prefix("0x") {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => text.parse().ok()?,
            };
            return CopyLayout::from_word(word);
        }
        let mut layout = CopyLayout::new(1, 1, false);
        let mut rest = text;
        if rest.is_empty() {
            return None;
        }
        let (mut near_seen, mut far_seen, mut sets_seen) = (false, false, false);
        while !rest.is_empty() {
            let letter = rest.chars().next()?;
            let tail = rest.get(letter.len_utf8()..)?;
            let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
            let number: u8 = tail.get(..digits)?.parse().ok()?;
            rest = tail.get(digits..)?;
            match letter.to_ascii_lowercase() {
                'n' if !near_seen => (layout.near, near_seen) = (number, true),
                'f' if !far_seen => (layout.far, far_seen) = (number, true),
                'o' if !far_seen => {
                    (layout.far, layout.offset, far_seen) = (number, true, true);
                }
                's' if far_seen && !sets_seen => {
                    sets_seen = true;
                    layout.sets = match number {
                        17 => FarSets::Old,
                        18 => FarSets::New,
                        _ => return None,
                    };
                }
                _ => return None,
            }
        }
        (layout.near > 0 && layout.far > 0).then_some(layout)
    }
}

impl fmt::Display for CopyLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.near > 1 || self.far == 1 {
            write!(f, "n{}", self.near)?;
        }
        if self.far > 1 || self.offset {
            write!(f, "{}{}", if self.offset { 'o' } else { 'f' }, self.far)?;
        }
        match self.sets {
            FarSets::Whole => Ok(()),
            FarSets::Old => f.write_str("s17"),
            FarSets::New => f.write_str("s18"),
        }
    }
}

/// The layout of any level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Linear and RAID1 have only one.
    Plain,
    /// RAID0.
    Zones(ZoneLayout),
    /// RAID10.
    Copies(CopyLayout),
    /// RAID4, RAID5, RAID6, and the groups of RAID50 and RAID60.
    Parity(ParityLayout),
}

impl Layout {
    /// The layout that mdadm 4.2 takes when none is given.
    pub const fn default_of(level: Level) -> Layout {
        match level {
            Level::Linear | Level::Raid1 => Layout::Plain,
            Level::Raid0 => Layout::Zones(ZoneLayout::Original),
            Level::Raid10 => Layout::Copies(CopyLayout::new(2, 1, false)),
            Level::Raid4 => Layout::Parity(ParityLayout::ParityLast),
            Level::Raid5 | Level::Raid6 | Level::Raid50 | Level::Raid60 => {
                Layout::Parity(ParityLayout::LeftSymmetric)
            }
        }
    }

    /// Reads mdadm's name of a layout of `level`, short forms included.
    pub fn parse(level: Level, text: &str) -> Result<Layout, ArrayError> {
        let text = text.trim();
        let found = match level {
            Level::Linear | Level::Raid1 => text
                .eq_ignore_ascii_case("default")
                .then_some(Layout::Plain),
            Level::Raid0 => match text {
                "original" | "default" | "1" => Some(Layout::Zones(ZoneLayout::Original)),
                "alternate" | "2" => Some(Layout::Zones(ZoneLayout::Alternate)),
                _ => None,
            },
            Level::Raid10 => CopyLayout::parse(text).map(Layout::Copies),
            Level::Raid4 => matches!(text, "default" | "parity-last")
                .then_some(Layout::Parity(ParityLayout::ParityLast)),
            Level::Raid5 | Level::Raid50 => ParityLayout::parse(text)
                .filter(|layout| !layout.needs_q())
                .map(Layout::Parity),
            Level::Raid6 | Level::Raid60 => ParityLayout::parse(text).map(Layout::Parity),
        };
        found.ok_or_else(|| ArrayError::UnknownLayout {
            level: level.name(),
            given: text.to_owned(),
            allowed: allowed(level),
        })
    }

    /// From the number md keeps (`/sys/block/md0/md/layout`).
    ///
    /// RAID0 leaves it 0 or -1 when all members are of one size; then either layout is the same.
    pub fn from_md(level: Level, word: i64) -> Result<Layout, ArrayError> {
        let found = match level {
            Level::Linear | Level::Raid1 => Some(Layout::Plain),
            Level::Raid0 => match word {
                -1..=1 => Some(Layout::Zones(ZoneLayout::Original)),
                2 => Some(Layout::Zones(ZoneLayout::Alternate)),
                _ => None,
            },
            Level::Raid10 => u32::try_from(word)
                .ok()
                .and_then(CopyLayout::from_word)
                .map(Layout::Copies),
            // md ignores the number for level 4: parity is always on the last member.
            Level::Raid4 => Some(Layout::Parity(ParityLayout::ParityLast)),
            Level::Raid5 | Level::Raid50 | Level::Raid6 | Level::Raid60 => ParityLayout::ALL
                .into_iter()
                .find(|layout| i64::from(*layout as u8) == word)
                .filter(|layout| level.parities() == 2 || !layout.needs_q())
                .map(Layout::Parity),
        };
        found.ok_or_else(|| ArrayError::UnknownLayout {
            level: level.name(),
            given: word.to_string(),
            allowed: allowed(level),
        })
    }

    /// The error for a layout that is not one of `level`'s.
    pub(crate) fn not_of(self, level: Level) -> ArrayError {
        ArrayError::UnknownLayout {
            level: level.name(),
            given: self.to_string(),
            allowed: allowed(level),
        }
    }

    /// The number md keeps; `None` where it keeps none.
    pub const fn md_word(self) -> Option<u32> {
        match self {
            Layout::Plain => None,
            Layout::Zones(ZoneLayout::Original) => Some(1),
            Layout::Zones(ZoneLayout::Alternate) => Some(2),
            Layout::Copies(copies) => Some(copies.word()),
            Layout::Parity(parity) => Some(parity as u32),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Plain => f.write_str("default"),
            Layout::Zones(ZoneLayout::Original) => f.write_str("original"),
            Layout::Zones(ZoneLayout::Alternate) => f.write_str("alternate"),
            Layout::Copies(copies) => copies.fmt(f),
            Layout::Parity(parity) => f.write_str(parity.name()),
        }
    }
}

impl Serialize for Layout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

const fn allowed(level: Level) -> &'static str {
    match level {
        Level::Linear | Level::Raid1 => "leave it out",
        Level::Raid0 => "one of original, alternate",
        Level::Raid10 => {
            "write n2 (near), f2 (far), o2 (offset), any copies, or n2f2, n2o2, f2s17, f2s18, or md's number"
        }
        Level::Raid4 => "leave it out (parity-last)",
        Level::Raid5 | Level::Raid50 => {
            "one of left-symmetric, left-asymmetric, right-symmetric, right-asymmetric, parity-first, parity-last"
        }
        Level::Raid6 | Level::Raid60 => {
            "one of left-symmetric, left-asymmetric, right-symmetric, right-asymmetric, parity-first, parity-last, \
             ddf-zero-restart, ddf-N-restart, ddf-N-continue, or the first five with -6"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_reads_back_its_own_name_and_number() {
        for level in Level::ALL {
            for word in 0..=21 {
                let Ok(layout) = Layout::from_md(level, word) else {
                    continue;
                };
                assert_eq!(Layout::parse(level, &layout.to_string()), Ok(layout));
            }
        }
        for word in [
            0x102, 0x201, 0x10201, 0x202, 0x10202, 0x20201, 0x40201, 0x50301,
        ] {
            let layout = Layout::from_md(Level::Raid10, word).unwrap();
            assert_eq!(layout.md_word().map(i64::from), Some(word));
            assert_eq!(
                Layout::parse(Level::Raid10, &layout.to_string()),
                Ok(layout)
            );
        }
    }

    #[test]
    fn raid5_refuses_layouts_that_need_q() {
        assert!(Layout::parse(Level::Raid5, "left-symmetric-6").is_err());
        assert!(Layout::parse(Level::Raid5, "ddf-N-restart").is_err());
        assert!(Layout::parse(Level::Raid6, "ddf-n-restart").is_ok());
    }

    #[test]
    fn raid10_layouts_are_read_as_mdadm_writes_them() {
        assert_eq!(CopyLayout::parse("o2"), Some(CopyLayout::new(1, 2, true)));
        assert_eq!(
            CopyLayout::parse("n2f2"),
            Some(CopyLayout::new(2, 2, false))
        );
        for wrong in [
            "",
            "x2",
            "n",
            "n0",
            "f2f2",
            "s17",
            "f2s16",
            "n2n2",
            "999999999",
            "0x180201",
            "ü2",
        ] {
            assert!(Layout::parse(Level::Raid10, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_mdadm_cannot_make_is_known() {
        assert!(CopyLayout::new(3, 1, false).mdadm_makes());
        assert!(!CopyLayout::new(2, 2, false).mdadm_makes());
    }
}
