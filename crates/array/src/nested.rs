//! RAID50 and RAID60: RAID0 over groups that are arrays themselves.

use crate::array::{Array, Map};
use crate::config::ArrayConfig;
use crate::error::ArrayError;
use crate::layout::ZoneLayout;
use crate::level::Level;
use crate::parity::Parity;
use crate::place::{ParityPlaces, Piece, Place, Role};
use crate::zones::Zones;

/// RAID0 whose members are arrays of `width` drives each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nested {
    outer: Zones,
    groups: Vec<Parity>,
    width: u32,
}

impl Nested {
    /// Groups take the members in order: the first group the first drives.
    pub(crate) fn new(config: &ArrayConfig) -> Result<Nested, ArrayError> {
        let level = config.level.of_groups().unwrap_or(Level::Raid5);
        let (members, groups) = (config.members.len(), config.groups as usize);
        if groups < 2 || !members.is_multiple_of(groups) {
            return Err(ArrayError::Groups(format!(
                "{members} drives do not make {groups} equal groups of {}; give at least two groups that divide them",
                config.level
            )));
        }
        let width = members / groups;
        let groups = config.members.chunks(width).map(|members| {
            let group = ArrayConfig::new(level, members.to_vec())
                .layout(config.layout)
                .chunk(config.chunk);
            match Array::new(group)?.map {
                Map::Parity(map) => Ok(map),
                _ => Err(ArrayError::NoParity(level.name())),
            }
        });
        let groups = groups.collect::<Result<Vec<Parity>, ArrayError>>()?;
        let data = width as u64 - u64::from(level.parities());
        let outer_chunk = config.outer_chunk.unwrap_or(config.chunk * data);
        if outer_chunk < config.chunk || !outer_chunk.is_multiple_of(config.chunk) {
            return Err(ArrayError::Chunk {
                level: config.level.name(),
                allowed: "a chunk over the groups that is a multiple of the chunk inside them",
                given: outer_chunk,
            });
        }
        let sizes: Vec<u64> = groups.iter().map(Parity::capacity).collect();
        let smallest = sizes.iter().copied().min().unwrap_or(0);
        if smallest < outer_chunk {
            return Err(ArrayError::MemberTooSmall {
                given: smallest,
                needed: outer_chunk,
            });
        }
        let outer = Zones::new(&sizes, outer_chunk, ZoneLayout::Original);
        Ok(Nested {
            outer,
            groups,
            width: width as u32,
        })
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.outer.capacity()
    }

    /// Chunk of the RAID0 over the groups, bytes.
    pub(crate) fn outer_chunk(&self) -> u64 {
        self.outer.chunk()
    }

    pub(crate) fn first_group(&self) -> &Parity {
        &self.groups[0]
    }

    pub(crate) fn groups(&self) -> &[Parity] {
        &self.groups
    }

    /// Members of each group.
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// The stretch of one group that holds `logical`.
    #[inline]
    pub(crate) fn in_group(&self, logical: u64) -> Piece {
        self.outer.locate(logical)
    }

    #[inline]
    pub(crate) fn locate(&self, logical: u64) -> Piece {
        let outer = self.in_group(logical);
        let inner = self.groups[outer.member as usize].locate(outer.offset);
        Piece {
            logical,
            len: inner.len.min(outer.len),
            member: outer.member * self.width + inner.member,
            offset: inner.offset,
        }
    }

    pub(crate) fn parity(&self, logical: u64) -> ParityPlaces {
        let outer = self.in_group(logical);
        let base = outer.member * self.width;
        let shift = |place: Place| Place {
            member: base + place.member,
            ..place
        };
        let mut places = self.groups[outer.member as usize].parity(outer.offset);
        places.p = shift(places.p);
        places.q = places.q.map(shift);
        places
    }

    pub(crate) fn role_at(&self, member: u32, offset: u64) -> Role {
        let group = member / self.width;
        match self.groups[group as usize].role_at(member % self.width, offset) {
            Role::Data { logical, copy } => match self.outer.role_at(group, logical) {
                Role::Data { logical, .. } => Role::Data { logical, copy },
                _ => Role::Unused,
            },
            other => other,
        }
    }
}
