//! The types in which maps answer.

use serde::Serialize;

/// A byte of a member's data area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Member's slot, from 0.
    pub member: u32,
    /// Offset from the start of the member's data area, bytes.
    pub offset: u64,
}

/// A stretch of the array that is contiguous on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// First byte in the array.
    pub logical: u64,
    /// Length, bytes.
    pub len: u64,
    /// Member's slot, from 0.
    pub member: u32,
    /// First byte on the member, from the start of its data area.
    pub offset: u64,
}

impl Piece {
    /// Where the piece begins.
    pub const fn place(&self) -> Place {
        Place {
            member: self.member,
            offset: self.offset,
        }
    }
}

/// The use of a byte of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Copy `copy` (in md's order, 0 is the one md tries first) of byte `logical` of the array.
    Data {
        /// Byte of the array.
        logical: u64,
        /// Number of the copy.
        copy: u32,
    },
    /// XOR of the stripe's data. `stripe` counts within the member's group.
    P {
        /// Stripe number.
        stripe: u64,
    },
    /// Reed-Solomon syndrome of the stripe's data.
    Q {
        /// Stripe number.
        stripe: u64,
    },
    /// Not used by the array.
    Unused,
}

/// The place of the parity of a byte of the array, and the weight of the byte in Q.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ParityPlaces {
    /// XOR of the stripe.
    pub p: Place,
    /// Syndrome, with RAID6.
    pub q: Option<Place>,
    /// Power of the generator 2 with which this data block is in Q; 0 without Q.
    pub q_exponent: u32,
}
