//! RAID0, also over unequal members, and linear (`drivers/md/raid0.c`, `drivers/md/linear.c`).

use crate::divide::{Divider, round_down};
use crate::layout::ZoneLayout;
use crate::place::{Piece, Role};

/// A stretch of the array that is spread over the same members.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Zone {
    /// First byte of the array in this zone.
    start: u64,
    /// First byte of the array after it.
    end: u64,
    /// First byte of the zone on each of its members.
    member_start: u64,
    /// First byte after it on each of its members.
    member_end: u64,
    members: Vec<u32>,
    /// The chunk of the zone's start counts from this place in `members`.
    turn: u64,
}

/// RAID0: zones, the first over all members, each further one over those that are larger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zones {
    chunk: Divider,
    zones: Vec<Zone>,
    capacity: u64,
}

impl Zones {
    /// `raid0.c`, `create_strip_zones` and `raid0_size`. Sizes and chunk in bytes, chunk not 0.
    pub(crate) fn new(sizes: &[u64], chunk: u64, layout: ZoneLayout) -> Zones {
        let sizes: Vec<u64> = sizes.iter().map(|size| round_down(*size, chunk)).collect();
        let mut edges = sizes.clone();
        edges.sort_unstable();
        edges.dedup();
        let (mut zones, mut start, mut member_start) = (Vec::new(), 0, 0);
        for member_end in edges.into_iter().filter(|edge| *edge > 0) {
            let members: Vec<u32> = (0..)
                .zip(&sizes)
                .filter(|(_, size)| **size >= member_end)
                .map(|(m, _)| m)
                .collect();
            let width = members.len() as u64;
            let end = start + (member_end - member_start) * width;
            let turn = match layout {
                ZoneLayout::Original => start / chunk % width,
                ZoneLayout::Alternate => 0,
            };
            zones.push(Zone {
                start,
                end,
                member_start,
                member_end,
                members,
                turn,
            });
            (start, member_start) = (end, member_end);
        }
        // md masks each size with ~(chunk - 1), in sectors: with a chunk that is no power of two this
        // is more than rounding, and the array ends before its last zone does.
        let capacity = sizes
            .iter()
            .map(|size| ((size >> 9) & !((chunk >> 9) - 1)) << 9)
            .sum();
        Zones {
            chunk: Divider::new(chunk),
            zones,
            capacity,
        }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn chunk(&self) -> u64 {
        self.chunk.by()
    }

    /// Offsets on the members at which a zone begins.
    pub(crate) fn member_starts(&self) -> impl Iterator<Item = u64> {
        self.zones.iter().map(|zone| zone.member_start)
    }

    #[inline(always)]
    pub(crate) fn locate(&self, logical: u64) -> Piece {
        let zone = match self.zones.as_slice() {
            [only] => only,
            zones => &zones[zones.partition_point(|zone| zone.end <= logical)],
        };
        let (chunk, inside) = self.chunk.split(logical - zone.start);
        let width = zone.members.len() as u64;
        let (row, mut place) = (chunk / width, chunk % width + zone.turn);
        if place >= width {
            place -= width;
        }
        let end = (logical - inside).saturating_add(self.chunk.by());
        Piece {
            logical,
            len: end.min(self.capacity) - logical,
            member: zone.members[place as usize],
            offset: zone.member_start + row * self.chunk.by() + inside,
        }
    }

    pub(crate) fn role_at(&self, member: u32, offset: u64) -> Role {
        let index = self.zones.partition_point(|zone| zone.member_end <= offset);
        let Some(zone) = self.zones.get(index) else {
            return Role::Unused;
        };
        let Ok(place) = zone.members.binary_search(&member) else {
            return Role::Unused;
        };
        let (row, inside) = self.chunk.split(offset - zone.member_start);
        let width = zone.members.len() as u64;
        let column = (place as u64 + width - zone.turn) % width;
        let logical = zone.start + (row * width + column) * self.chunk.by() + inside;
        if logical < self.capacity {
            Role::Data { logical, copy: 0 }
        } else {
            Role::Unused
        }
    }
}

/// Linear: members one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linear {
    /// First byte of the array after each member.
    ends: Vec<u64>,
}

impl Linear {
    /// `linear.c`, `linear_conf`: each member rounded down to `rounding` bytes, if not 0.
    pub(crate) fn new(sizes: &[u64], rounding: u64) -> Linear {
        let ends = sizes.iter().scan(0, |end, size| {
            *end += round_down(*size, if rounding == 0 { 512 } else { rounding });
            Some(*end)
        });
        Linear {
            ends: ends.collect(),
        }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn start(&self, member: usize) -> u64 {
        member.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    #[inline(always)]
    pub(crate) fn locate(&self, logical: u64) -> Piece {
        let member = self.ends.partition_point(|end| *end <= logical);
        Piece {
            logical,
            len: self.ends[member] - logical,
            member: member as u32,
            offset: logical - self.start(member),
        }
    }

    pub(crate) fn role_at(&self, member: u32, offset: u64) -> Role {
        let (start, end) = (self.start(member as usize), self.ends[member as usize]);
        if offset < end - start {
            Role::Data {
                logical: start + offset,
                copy: 0,
            }
        } else {
            Role::Unused
        }
    }
}
