//! RAID4, RAID5 and RAID6 (`drivers/md/raid5.c`, `raid5_compute_sector`, `raid5_compute_blocknr`).
//!
//! The roles of the members repeat every `period` stripes, so the map is a small table made once.

use crate::divide::Divider;
use crate::layout::ParityLayout;
use crate::level::Level;
use crate::place::{ParityPlaces, Piece, Place, Role};

/// `index_at` of the member that holds P.
const IS_P: u16 = u16::MAX;
/// `index_at` of the member that holds Q.
const IS_Q: u16 = u16::MAX - 1;

/// Map of an array with one or two parities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parity {
    members: u32,
    data: u64,
    chunk: Divider,
    component: u64,
    period: u64,
    /// Member with P, per stripe of the period.
    p: Vec<u16>,
    /// Member with Q; empty without Q.
    q: Vec<u16>,
    /// Member with data block i, per stripe of the period.
    data_at: Vec<u16>,
    /// Data block on each member, or `IS_P`, `IS_Q`.
    index_at: Vec<u16>,
    /// Power of the generator for each member's data, per stripe of the period.
    exponents: Vec<u16>,
}

impl Parity {
    /// `level` is RAID4, RAID5 or RAID6; sizes in bytes.
    pub(crate) fn new(
        level: Level,
        layout: ParityLayout,
        members: u32,
        component: u64,
        chunk: u64,
    ) -> Parity {
        let data = members - level.parities();
        let period = turns(layout, members);
        let mut map = Parity {
            members,
            data: u64::from(data),
            chunk: Divider::new(chunk),
            component,
            period: u64::from(period),
            p: Vec::new(),
            q: Vec::new(),
            data_at: Vec::new(),
            index_at: Vec::new(),
            exponents: Vec::new(),
        };
        for stripe in 0..period {
            map.push_stripe(Stripe::new(level, layout, members, stripe), layout.is_ddf());
        }
        map
    }

    fn push_stripe(&mut self, stripe: Stripe, ddf: bool) {
        let mut index_at = vec![0; self.members as usize];
        for (index, member) in (0..).zip(&stripe.data) {
            index_at[*member as usize] = index;
        }
        index_at[stripe.p as usize] = IS_P;
        self.p.push(stripe.p as u16);
        if let Some(q) = stripe.q {
            index_at[q as usize] = IS_Q;
            self.q.push(q as u16);
        }
        // raid6_d0 and raid6_idx_to_slot: DDF counts all members from the first, md the data blocks
        // from the one after Q.
        let after_q = stripe.q.map_or(0, |q| (q + 1) % self.members);
        let mut power = 0;
        let mut exponents = vec![0; self.members as usize];
        for turn in 0..self.members {
            let member = (after_q + turn) % self.members;
            if index_at[member as usize] < IS_Q {
                exponents[member as usize] = if ddf { member as u16 } else { power };
                power += 1;
            }
        }
        self.data_at
            .extend(stripe.data.iter().map(|member| *member as u16));
        self.index_at.extend(index_at);
        self.exponents.extend(exponents);
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.component * self.data
    }

    pub(crate) fn component(&self) -> u64 {
        self.component
    }

    pub(crate) fn chunk(&self) -> u64 {
        self.chunk.by()
    }

    pub(crate) fn members(&self) -> u32 {
        self.members
    }

    /// Data blocks of a stripe.
    pub(crate) fn data(&self) -> u64 {
        self.data
    }

    /// Stripes after which the places repeat.
    pub(crate) fn period(&self) -> u64 {
        self.period
    }

    #[inline(always)]
    pub(crate) fn locate(&self, logical: u64) -> Piece {
        let (chunk, inside) = self.chunk.split(logical);
        let (stripe, index) = (chunk / self.data, chunk % self.data);
        let phase = stripe % self.period;
        Piece {
            logical,
            len: self.chunk.by() - inside,
            member: u32::from(self.data_at[(phase * self.data + index) as usize]),
            offset: stripe * self.chunk.by() + inside,
        }
    }

    /// Calls `visit` for each chunk of the request; divides once, then counts.
    #[inline(always)]
    pub(crate) fn pieces(&self, offset: u64, len: u64, mut visit: impl FnMut(Piece)) {
        let (chunk, mut inside) = self.chunk.split(offset);
        let (stripe, mut index) = (chunk / self.data, chunk % self.data);
        let mut phase = stripe % self.period;
        let mut row = stripe * self.chunk.by();
        let (mut logical, end) = (offset, offset + len);
        while logical < end {
            let piece = (self.chunk.by() - inside).min(end - logical);
            visit(Piece {
                logical,
                len: piece,
                member: u32::from(self.data_at[(phase * self.data + index) as usize]),
                offset: row + inside,
            });
            logical += piece;
            inside = 0;
            index += 1;
            if index == self.data {
                index = 0;
                row += self.chunk.by();
                phase = if phase + 1 == self.period {
                    0
                } else {
                    phase + 1
                };
            }
        }
    }

    pub(crate) fn role_at(&self, member: u32, offset: u64) -> Role {
        if offset >= self.component {
            return Role::Unused;
        }
        let (stripe, inside) = self.chunk.split(offset);
        let phase = stripe % self.period;
        match self.index_at[phase as usize * self.members as usize + member as usize] {
            IS_P => Role::P { stripe },
            IS_Q => Role::Q { stripe },
            index => Role::Data {
                logical: (stripe * self.data + u64::from(index)) * self.chunk.by() + inside,
                copy: 0,
            },
        }
    }

    /// Parity places of the stripe that holds `logical`.
    pub(crate) fn parity(&self, logical: u64) -> ParityPlaces {
        let piece = self.locate(logical);
        let (stripe, _) = self.chunk.split(piece.offset);
        let (p, q) = self.parity_members(stripe);
        let phase = (stripe % self.period) as usize;
        ParityPlaces {
            p: Place {
                member: p,
                offset: piece.offset,
            },
            q: q.map(|member| Place {
                member,
                offset: piece.offset,
            }),
            q_exponent: u32::from(
                self.exponents[phase * self.members as usize + piece.member as usize],
            ),
        }
    }

    /// Members with P and Q in a stripe.
    #[inline]
    pub(crate) fn parity_members(&self, stripe: u64) -> (u32, Option<u32>) {
        let phase = (stripe % self.period) as usize;
        (
            u32::from(self.p[phase]),
            self.q.get(phase).map(|q| u32::from(*q)),
        )
    }

    /// Member that holds data block `index` of a stripe.
    #[inline]
    pub(crate) fn data_member(&self, stripe: u64, index: u64) -> u32 {
        u32::from(self.data_at[(stripe % self.period * self.data + index) as usize])
    }

    /// Power of the generator with which each member's block is in Q; meaningless for P and Q themselves.
    pub(crate) fn exponents(&self, stripe: u64) -> &[u16] {
        let members = self.members as usize;
        let start = (stripe % self.period) as usize * members;
        &self.exponents[start..start + members]
    }
}

/// One stripe: the members with P, Q and data.
struct Stripe {
    p: u32,
    q: Option<u32>,
    data: Vec<u32>,
}

/// Stripes until places repeat.
fn turns(layout: ParityLayout, members: u32) -> u32 {
    use ParityLayout as L;
    match layout {
        L::ParityFirst | L::ParityLast | L::ParityFirst6 => 1,
        L::LeftAsymmetric6 | L::RightAsymmetric6 | L::LeftSymmetric6 | L::RightSymmetric6 => {
            members - 1
        }
        _ => members,
    }
}

impl Stripe {
    fn new(level: Level, layout: ParityLayout, members: u32, stripe: u32) -> Stripe {
        use ParityLayout as L;
        let n = members;
        // The -6 layouts are RAID5 over all but the last member, which holds Q.
        let ring = match layout {
            L::LeftAsymmetric6
            | L::RightAsymmetric6
            | L::LeftSymmetric6
            | L::RightSymmetric6
            | L::ParityFirst6 => n - 1,
            _ => n,
        };
        let p = match layout {
            L::LeftAsymmetric
            | L::LeftSymmetric
            | L::LeftAsymmetric6
            | L::LeftSymmetric6
            | L::DdfNContinue => ring - 1 - stripe % ring,
            // As left-asymmetric, one stripe on: the first is D D D P Q.
            L::DdfNRestart => ring - 1 - (stripe + 1) % ring,
            L::RightAsymmetric
            | L::RightSymmetric
            | L::RightAsymmetric6
            | L::RightSymmetric6
            | L::DdfZeroRestart => stripe % ring,
            L::ParityFirst | L::ParityFirst6 => 0,
            L::ParityLast => n - level.parities(),
        };
        let q = match (level.parities(), layout) {
            (2, L::DdfNContinue) => Some((p + n - 1) % n),
            (2, _) if ring < n => Some(n - 1),
            (2, _) => Some((p + 1) % n),
            _ => None,
        };
        // Symmetric layouts go on after the parity, the others begin with the first member.
        let first = match layout {
            L::LeftSymmetric | L::RightSymmetric => q.unwrap_or(p) + 1,
            L::LeftSymmetric6 | L::RightSymmetric6 | L::DdfNContinue => p + 1,
            _ => 0,
        };
        let data = (0..ring)
            .map(|turn| (first + turn) % ring)
            .filter(|member| *member != p && Some(*member) != q);
        Stripe {
            p,
            q,
            data: data.collect(),
        }
    }
}
