//! RAID1 and RAID10 (`drivers/md/raid10.c`, `__raid10_find_phys`, `raid10_find_virt`).
//!
//! Chunks go in turn over the members, each `near` times; every further far copy is the same again,
//! turned to other members, one section (far) or one stripe (offset) further down.

use crate::divide::Divider;
use crate::error::ArrayError;
use crate::layout::{CopyLayout, FarSets};
use crate::place::{Piece, Place, Role};

/// RAID10, and RAID1 as its special case with all members near copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    members: u64,
    near: u64,
    far: u64,
    chunk: Divider,
    /// A stripe of data is this many rows of chunks apart from the next: `far` for offset layouts.
    row_step: u64,
    /// A far copy is this many rows further down than the one before.
    copy_step: u64,
    /// `turned[f * members + m]`: the member that holds far copy `f` of what `m` holds first.
    turned: Vec<u32>,
    /// The inverse: the member whose chunk member `m` has as far copy `f`.
    unturned: Vec<u32>,
    capacity: u64,
    component: u64,
}

impl Mirror {
    /// RAID1 of `component` bytes.
    pub(crate) fn plain(members: usize, component: u64) -> Mirror {
        let all: Vec<u32> = (0..members as u32).collect();
        Mirror {
            members: members as u64,
            near: members as u64,
            far: 1,
            chunk: Divider::new(component),
            row_step: 1,
            copy_step: 0,
            turned: all.clone(),
            unturned: all,
            capacity: component,
            component,
        }
    }

    /// RAID10 over members of at least `size` bytes each, chunk in bytes.
    pub(crate) fn new(
        members: usize,
        size: u64,
        chunk: u64,
        layout: CopyLayout,
    ) -> Result<Mirror, ArrayError> {
        let copies = layout.copies();
        if copies < 2 || copies as usize > members {
            return Err(ArrayError::TooManyCopies {
                layout: layout.to_string(),
                copies: copies.max(2),
                members,
            });
        }
        let (n, near, far) = (
            members as u64,
            u64::from(layout.near),
            u64::from(layout.far),
        );
        // raid10_size and calc_sectors
        let rows = size / chunk / far;
        let data = rows * n / near;
        let used = (data * u64::from(copies)).div_ceil(n);
        let overlap = |multiple| ArrayError::Overlap {
            layout: layout.to_string(),
            members,
            multiple,
        };
        // The near copy that wraps around goes one row down, where with offset the far copies are.
        if layout.offset && far > 1 && n % near != 0 {
            return Err(overlap(u32::from(layout.near)));
        }
        let turned = turn(members as u32, layout);
        let mut unturned = vec![u32::MAX; turned.len()];
        for (at, to) in turned.iter().enumerate() {
            let place = at / members * members + *to as usize;
            if unturned[place] != u32::MAX {
                return Err(overlap(copies));
            }
            unturned[place] = (at % members) as u32;
        }
        Ok(Mirror {
            members: n,
            near,
            far,
            chunk: Divider::new(chunk),
            row_step: if layout.offset { far } else { 1 },
            copy_step: if layout.offset { 1 } else { used / far },
            turned,
            unturned,
            capacity: data * chunk,
            component: used * chunk,
        })
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn component(&self) -> u64 {
        self.component
    }

    pub(crate) fn chunk(&self) -> u64 {
        self.chunk.by()
    }

    pub(crate) fn copies(&self) -> u32 {
        (self.near * self.far) as u32
    }

    /// Offsets on the members at which the sections of a far layout begin.
    pub(crate) fn sections(&self) -> impl Iterator<Item = u64> {
        let sections = if self.row_step == 1 { self.far } else { 1 };
        (0..sections).map(|f| f * self.copy_step * self.chunk.by())
    }

    #[inline(always)]
    pub(crate) fn locate(&self, logical: u64) -> Piece {
        if self.near == self.members {
            // Whole members are copies: md does not cut requests at chunks (raid10_read_request).
            return Piece {
                logical,
                len: self.capacity - logical,
                member: 0,
                offset: logical,
            };
        }
        let (chunk, inside) = self.chunk.split(logical);
        let first = chunk * self.near;
        let (row, member) = (first / self.members, first % self.members);
        Piece {
            logical,
            len: self.chunk.by() - inside,
            member: member as u32,
            offset: row * self.row_step * self.chunk.by() + inside,
        }
    }

    /// Copy `copy` in md's order: all far copies of the first near copy, then of the next.
    #[inline(always)]
    pub(crate) fn copy(&self, logical: u64, copy: u32) -> Place {
        let (chunk, inside) = self.chunk.split(logical);
        let (near, far) = if self.far == 1 {
            (u64::from(copy), 0)
        } else {
            (u64::from(copy) / self.far, u64::from(copy) % self.far)
        };
        let first = chunk * self.near;
        let (mut row, mut member) = (first / self.members, first % self.members + near);
        if member >= self.members {
            member -= self.members;
            row += 1;
        }
        Place {
            member: self.turned[(far * self.members + member) as usize],
            offset: (row * self.row_step + far * self.copy_step) * self.chunk.by() + inside,
        }
    }

    pub(crate) fn role_at(&self, member: u32, offset: u64) -> Role {
        let (row, inside) = self.chunk.split(offset);
        let (row, far) = if self.far == 1 {
            (row, 0)
        } else if self.row_step > 1 {
            (row / self.far, row % self.far)
        } else {
            (row % self.copy_step, row / self.copy_step)
        };
        if far >= self.far {
            return Role::Unused;
        }
        let first =
            u64::from(self.unturned[far as usize * self.members as usize + member as usize]);
        let place = row * self.members + first;
        let logical = place / self.near * self.chunk.by() + inside;
        if logical >= self.capacity {
            return Role::Unused;
        }
        Role::Data {
            logical,
            copy: (place % self.near * self.far + far) as u32,
        }
    }
}

/// Where each far copy of each member goes (`setup_geo` for the rings, `__raid10_find_phys` for the
/// turning, its treatment of a last ring that is larger included).
fn turn(members: u32, layout: CopyLayout) -> Vec<u32> {
    let (near, far) = (u32::from(layout.near), u32::from(layout.far));
    let ring = match layout.sets {
        FarSets::Whole => members,
        FarSets::Old => members / far,
        FarSets::New => near * far,
    };
    let last_start = (members / ring - 1) * ring;
    let last_ring = members - last_start;
    let uneven = !members.is_multiple_of(ring);
    let step = |from: u32| {
        let to = from + near;
        if uneven && to > last_start {
            last_start + (to - last_start) % last_ring
        } else {
            from / ring * ring + to % ring
        }
    };
    let mut turned: Vec<u32> = (0..members).collect();
    for copy in 1..far {
        let before = (copy - 1) * members;
        for member in 0..members {
            turned.push(step(turned[(before + member) as usize]));
        }
    }
    turned
}
