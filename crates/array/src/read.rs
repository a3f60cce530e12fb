//! Member requests of a read when members are missing, and of a rebuild.

use crate::array::{Array, Map};
use crate::error::ArrayError;
use crate::members::MemberSet;
use crate::parity::Parity;
use crate::place::{Piece, Role};
use crate::split::{MemberRequest, Merger};
use crate::write::STRIPE_BLOCK;

impl Array {
    /// Member requests of a read with `missing` members gone, merged where they touch.
    ///
    /// A mirror is read from the first copy left, in md's order; which of several copies md prefers is
    /// in [`balance`](crate::balance). Of a stripe with parity, a piece on a missing member is computed
    /// from the same rows, in whole 4 KiB blocks, of *all* other members (`need_this_block`: "we need
    /// to actually read every other device"), with RAID6 also P and Q.
    pub fn plan_read(
        &self,
        offset: u64,
        len: u64,
        missing: &MemberSet,
        merger: &mut Merger,
        mut visit: impl FnMut(MemberRequest),
    ) -> Result<(), ArrayError> {
        let mut failed = None;
        let mut lost = |piece: &Piece, missing: u32| {
            failed.get_or_insert(ArrayError::Lost {
                logical: piece.logical,
                missing,
            });
        };
        self.pieces(offset, len, |piece| match &self.map {
            _ if !missing.contains(piece.member) => {
                merger.push(piece.member, piece.offset, piece.len, &mut visit)
            }
            Map::Parity(map) => match map.others(0, &piece, missing) {
                Ok(others) => read_rows(&others, &piece, merger, &mut visit),
                Err(gone) => lost(&piece, gone),
            },
            Map::Nested(map) => {
                let group = piece.member / map.width();
                match map.groups()[group as usize].others(group * map.width(), &piece, missing) {
                    Ok(others) => read_rows(&others, &piece, merger, &mut visit),
                    Err(gone) => lost(&piece, gone),
                }
            }
            _ => match self
                .places(piece.logical)
                .find(|place| !missing.contains(place.member))
            {
                Some(place) => merger.push(place.member, place.offset, piece.len, &mut visit),
                None => lost(&piece, missing.len()),
            },
        })?;
        merger.flush(&mut visit);
        failed.map_or(Ok(()), Err)
    }

    /// Member requests that restore `len` bytes from `offset` of member `member`: md reads the first
    /// other copy left (`raid10_sync_request`), or all other members of the stripe. Stretches of the
    /// member that the array does not use need nothing.
    pub fn plan_rebuild(
        &self,
        member: u32,
        offset: u64,
        len: u64,
        missing: &MemberSet,
        merger: &mut Merger,
        mut visit: impl FnMut(MemberRequest),
    ) -> Result<(), ArrayError> {
        let size = self
            .config()
            .members
            .get(member as usize)
            .copied()
            .unwrap_or(0);
        let end = offset.checked_add(len).filter(|end| *end <= size);
        let end = end.ok_or(ArrayError::BeyondEnd {
            offset,
            len,
            end: size,
        })?;
        let mut gone = *missing;
        gone.insert(member);
        let unit = self.chunk().unwrap_or(STRIPE_BLOCK);
        let (mut at, mut failed) = (offset, None);
        while at < end {
            let until = end.min((at / unit + 1).saturating_mul(unit));
            let piece = Piece {
                logical: at,
                len: until - at,
                member,
                offset: at,
            };
            match (&self.map, self.role_at(piece.place())) {
                (_, Role::Unused) => {}
                (Map::Parity(map), _) => match map.others(0, &piece, &gone) {
                    Ok(others) => read_rows(&others, &piece, merger, &mut visit),
                    Err(lost) => {
                        failed = Some(ArrayError::Lost {
                            logical: at,
                            missing: lost,
                        })
                    }
                },
                (Map::Nested(map), _) => {
                    let group = member / map.width();
                    match map.groups()[group as usize].others(group * map.width(), &piece, &gone) {
                        Ok(others) => read_rows(&others, &piece, merger, &mut visit),
                        Err(lost) => {
                            failed = Some(ArrayError::Lost {
                                logical: at,
                                missing: lost,
                            })
                        }
                    }
                }
                (_, Role::Data { logical, .. }) => {
                    match self
                        .places(logical)
                        .find(|place| !gone.contains(place.member))
                    {
                        Some(place) => {
                            merger.push(place.member, place.offset, piece.len, &mut visit)
                        }
                        None => {
                            failed = Some(ArrayError::Lost {
                                logical,
                                missing: gone.len(),
                            })
                        }
                    }
                }
                _ => {}
            }
            at = until;
        }
        merger.flush(&mut visit);
        failed.map_or(Ok(()), Err)
    }
}

impl Parity {
    /// All members left of the group that starts at `base`; the number of missing members if they are too many.
    fn others(&self, base: u32, piece: &Piece, missing: &MemberSet) -> Result<MemberSet, u32> {
        let all: MemberSet = (base..base + self.members()).collect();
        let mut gone = all.common(missing);
        gone.insert(piece.member);
        if u64::from(gone.len()) > u64::from(self.members()) - self.data() {
            return Err(gone.len());
        }
        Ok(all.without(&gone))
    }
}

fn read_rows(
    members: &MemberSet,
    piece: &Piece,
    merger: &mut Merger,
    visit: &mut impl FnMut(MemberRequest),
) {
    let start = piece.offset / STRIPE_BLOCK * STRIPE_BLOCK;
    let end = (piece.offset + piece.len).div_ceil(STRIPE_BLOCK) * STRIPE_BLOCK;
    for member in members.iter() {
        merger.push(member, start, end - start, visit);
    }
}
