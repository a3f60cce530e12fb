//! Splitting a request into pieces on members, and merging pieces that touch.
//!
//! This is the simulator's hottest path: nothing here allocates after [`Merger::new`].

use serde::Serialize;

use crate::array::{Array, Map};
use crate::error::ArrayError;
use crate::place::Piece;

impl Array {
    /// Cuts `len` bytes from `offset` at chunk borders and calls `visit` for each piece, in the order
    /// of the array, with the place of its first copy.
    #[inline]
    pub fn pieces(
        &self,
        offset: u64,
        len: u64,
        mut visit: impl FnMut(Piece),
    ) -> Result<(), ArrayError> {
        self.check_range(offset, len)?;
        match &self.map {
            Map::Parity(map) => map.pieces(offset, len, visit),
            Map::Mirror(map) => cut(offset, len, |at| map.locate(at), visit),
            Map::Zones(map) => cut(offset, len, |at| map.locate(at), visit),
            Map::Linear(map) => cut(offset, len, |at| map.locate(at), visit),
            Map::Nested(map) => cut(offset, len, |at| map.locate(at), &mut visit),
        }
        Ok(())
    }

    /// The same for every copy of each piece: the requests of a write to a mirror.
    #[inline]
    pub fn copies_of_pieces(
        &self,
        offset: u64,
        len: u64,
        mut visit: impl FnMut(Piece),
    ) -> Result<(), ArrayError> {
        let Map::Mirror(map) = &self.map else {
            return self.pieces(offset, len, visit);
        };
        self.check_range(offset, len)?;
        cut(
            offset,
            len,
            |at| map.locate(at),
            |piece| {
                for copy in 0..map.copies() {
                    let place = map.copy(piece.logical, copy);
                    visit(Piece {
                        member: place.member,
                        offset: place.offset,
                        ..piece
                    });
                }
            },
        );
        Ok(())
    }
}

#[inline(always)]
fn cut(offset: u64, len: u64, locate: impl Fn(u64) -> Piece, mut visit: impl FnMut(Piece)) {
    let (mut at, end) = (offset, offset + len);
    while at < end {
        let mut piece = locate(at);
        piece.len = piece.len.min(end - at);
        at += piece.len;
        visit(piece);
    }
}

/// A request to one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemberRequest {
    /// Member's slot, from 0.
    pub member: u32,
    /// First byte on the member, from the start of its data area.
    pub offset: u64,
    /// Length, bytes.
    pub len: u64,
    /// Pieces merged into it.
    pub pieces: u32,
}

impl MemberRequest {
    /// First byte after the request.
    pub const fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// Merges pieces that touch on their member, front or back, as the block layer's plug does.
///
/// One open request per member is kept; a piece that does not touch it sends it off. Reusable: after
/// [`flush`](Merger::flush) it is empty again.
#[derive(Debug, Clone)]
pub struct Merger {
    open: Vec<MemberRequest>,
    /// Members with an open request, in the order of their first piece.
    touched: Vec<u32>,
}

impl Merger {
    /// For arrays of up to `members` members.
    pub fn new(members: u32) -> Merger {
        let none = MemberRequest {
            member: 0,
            offset: 0,
            len: 0,
            pieces: 0,
        };
        Merger {
            open: vec![none; members as usize],
            touched: Vec::with_capacity(members as usize),
        }
    }

    /// Adds a stretch of a member; calls `visit` with the request that it does not touch, if any.
    ///
    /// A member beyond those the merger was made for is passed on unmerged.
    #[inline]
    pub fn push(
        &mut self,
        member: u32,
        offset: u64,
        len: u64,
        visit: &mut impl FnMut(MemberRequest),
    ) {
        let request = MemberRequest {
            member,
            offset,
            len,
            pieces: 1,
        };
        let Some(open) = self.open.get_mut(member as usize) else {
            return visit(request);
        };
        if open.pieces == 0 {
            self.touched.push(member);
        } else if open.end() == offset {
            open.len += len;
            open.pieces += 1;
            return;
        } else if offset + len == open.offset {
            open.offset = offset;
            open.len += len;
            open.pieces += 1;
            return;
        } else {
            visit(*open);
        }
        *open = request;
    }

    /// Calls `visit` for all open requests, in the order in which their members were first touched.
    #[inline]
    pub fn flush(&mut self, visit: &mut impl FnMut(MemberRequest)) {
        for member in self.touched.drain(..) {
            let open = &mut self.open[member as usize];
            visit(*open);
            open.pieces = 0;
        }
    }
}

impl Array {
    /// Splits a request and merges the pieces that touch on their members: reads from the first copy.
    #[inline]
    pub fn requests(
        &self,
        offset: u64,
        len: u64,
        merger: &mut Merger,
        mut visit: impl FnMut(MemberRequest),
    ) -> Result<(), ArrayError> {
        self.pieces(offset, len, |piece| {
            merger.push(piece.member, piece.offset, piece.len, &mut visit)
        })?;
        merger.flush(&mut visit);
        Ok(())
    }

    /// The same for every copy: writes to linear, RAID0, RAID1 and RAID10.
    #[inline]
    pub fn write_requests(
        &self,
        offset: u64,
        len: u64,
        merger: &mut Merger,
        mut visit: impl FnMut(MemberRequest),
    ) -> Result<(), ArrayError> {
        self.copies_of_pieces(offset, len, |piece| {
            merger.push(piece.member, piece.offset, piece.len, &mut visit)
        })?;
        merger.flush(&mut visit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(pieces: &[(u32, u64, u64)]) -> Vec<(u32, u64, u64, u32)> {
        let (mut merger, mut out) = (Merger::new(2), Vec::new());
        let mut visit = |r: MemberRequest| out.push((r.member, r.offset, r.len, r.pieces));
        for (member, offset, len) in pieces {
            merger.push(*member, *offset, *len, &mut visit);
        }
        merger.flush(&mut visit);
        out
    }

    #[test]
    fn pieces_merge_at_the_back_and_at_the_front() {
        assert_eq!(
            merged(&[(0, 8, 4), (1, 8, 4), (0, 12, 4), (1, 4, 4)]),
            [(0, 8, 8, 2), (1, 4, 8, 2)]
        );
    }

    #[test]
    fn a_piece_that_does_not_touch_sends_the_open_request_off() {
        assert_eq!(
            merged(&[(0, 0, 4), (1, 0, 4), (0, 5, 4)]),
            [(0, 0, 4, 1), (0, 5, 4, 1), (1, 0, 4, 1)]
        );
        assert_eq!(
            merged(&[(0, 4, 4), (0, 0, 3)]),
            [(0, 4, 4, 1), (0, 0, 3, 1)]
        );
    }

    #[test]
    fn a_member_beyond_those_foreseen_is_passed_on() {
        assert_eq!(
            merged(&[(7, 0, 4), (7, 4, 4)]),
            [(7, 0, 4, 1), (7, 4, 4, 1)]
        );
    }
}
