//! Turns a request of the array into requests of its members.

use std::collections::VecDeque;

use spindle_array::balance::{self, BalanceRule, Candidate, Raid1State};
use spindle_array::{
    Array, ArrayError, Layout, Level, MemberRequest, MemberSet, Merger, Place, Rows, STRIPE_BLOCK,
};

use super::bio::Metadata;
use super::bitmap::Bitmap;
use super::rebuild::{BARRIER_UNIT, Rebuild};
pub(crate) use super::stripes::StripeRules;
use super::stripes::{Requests, RowManner, Stripes};

/// An array and md's state about it.
pub(crate) struct Fabric {
    pub(crate) array: Array,
    kind: Kind,
    /// First byte of each member's data, blocks of the drive.
    pub(crate) starts: Vec<u64>,
    flash: Vec<bool>,
    pub(crate) missing: MemberSet,
    balance: BalanceRule,
    raid1: Raid1State,
    /// End of the last request completed on each member, bytes (`head_position`).
    heads: Vec<u64>,
    /// Requests at each member (`nr_pending`).
    pending: Vec<u32>,
    merger: Merger,
    candidates: Vec<Candidate>,
    pub(crate) rebuild: Option<Rebuild>,
    pub(crate) stripes: Option<Box<Stripes>>,
    pub(crate) superblock: Superblock,
    pub(crate) bitmap: Option<Box<Bitmap>>,
    /// Blocks of md's own that are on a member, with the flush after them under way; before blk-mq only.
    pub(crate) written: Vec<(usize, Metadata)>,
    pub(crate) flushes: Flushes,
    data_offset: u64,
    /// All reads go through the stripe cache.
    reads_stripes: bool,
    /// Longest request that md takes in one piece, bytes.
    pub(crate) longest: u64,
    /// Bios for members are sent before the rests that are still to be split.
    lower_first: bool,
    /// Bios that wait to be split, the next one last.
    splits: Vec<(u64, u64)>,
    /// Rows of a request.
    rows: Vec<Rows>,
    /// Not RAID50 or RAID60.
    is_single_group: bool,
}

/// A part of a request that md handles by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// The block layer cut a rest off.
    pub(crate) is_cut_above: bool,
    /// md cut a rest off.
    pub(crate) is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Raid1,
    Raid10 { near: u32, far: u32 },
    Parity,
}

/// md marks its superblock before the first write: a write between two flushes on each member (`md_write_start`,
/// `md_update_sb`), and the writers sleep until then.
#[derive(Debug, Default)]
pub(crate) struct Superblock {
    pub(crate) active: bool,
    /// Members that have not finished.
    pub(crate) left: u32,
    /// Slots of the writers.
    pub(crate) writers: Vec<u32>,
    /// A rebuild has noted how far it is.
    pub(crate) is_noted: bool,
    /// Units of a rebuild that are to be written when md's thread has written the superblocks.
    pub(crate) units: Vec<u32>,
    /// False if it is not modelled.
    pub(crate) is_kept: bool,
    /// Slots whose write to the array is under way, their number (`writes_pending`), and the end of the last one, ns.
    is_writing: Vec<bool>,
    pub(crate) writes: u32,
    pub(crate) last_end_ns: u64,
    /// An alarm is set that looks whether the array is to become clean.
    pub(crate) has_alarm: bool,
    /// The superblocks that are being written say that the array is clean.
    pub(crate) is_cleaning: bool,
}

impl Superblock {
    /// Blocks from the start of a member (metadata 1.2).
    const PLACE: u64 = 8;

    /// The write of a slot begins.
    pub(crate) fn begin_write(&mut self, slot: u32) {
        let slot = slot as usize;
        if self.is_writing.len() <= slot {
            self.is_writing.resize(slot + 1, false);
        }
        self.writes += u32::from(!std::mem::replace(&mut self.is_writing[slot], true));
    }

    /// The slot is done. True if that was a write.
    pub(crate) fn end_write(&mut self, now_ns: u64, slot: u32) -> bool {
        let Some(is_writing) = self.is_writing.get_mut(slot as usize) else {
            return false;
        };
        let was_writing = std::mem::take(is_writing);
        if was_writing {
            self.writes -= 1;
            self.last_end_ns = now_ns;
        }
        was_writing
    }
}

/// Flushes of the array: who waits for the one that is under way, and for the next.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    /// Members that have not finished.
    pub(crate) left: u32,
    pub(crate) running: Vec<u32>,
    pub(crate) waiting: Vec<u32>,
    /// Empty; its memory is used again.
    pub(crate) done: Vec<u32>,
}

impl Flushes {
    /// Stands for a slot in flushes of the members.
    pub(crate) const SLOT: u32 = u32::MAX - 1;
}

/// How an array is set up, beyond its map.
pub(crate) struct Setup {
    pub(crate) starts: Vec<u64>,
    /// Blocks before the data.
    pub(crate) data_offset: u64,
    /// Longest request that md takes in one piece, bytes.
    pub(crate) longest: u64,
    /// Where the heads of all members are before the array is opened, bytes.
    pub(crate) head: u64,
    pub(crate) flash: Vec<bool>,
    pub(crate) missing: MemberSet,
    pub(crate) balance: BalanceRule,
    pub(crate) stripe_rules: StripeRules,
    pub(crate) stripe_cache: u32,
    /// Reads of a whole array go through the stripe cache.
    pub(crate) reads_stripes: bool,
    /// [`Kernel::sorts_lower_bios_first`](crate::kernel::Kernel::sorts_lower_bios_first).
    pub(crate) lower_first: bool,
    pub(crate) rebuild: Option<Rebuild>,
    pub(crate) bitmap: Option<Bitmap>,
}

impl Fabric {
    pub(crate) fn new(array: Array, setup: Setup) -> Fabric {
        let members = array.members();
        let kind = match (array.level(), array.config().layout) {
            (Level::Raid1, _) => Kind::Raid1,
            (Level::Raid10, Layout::Copies(copies)) => Kind::Raid10 {
                near: u32::from(copies.near),
                far: u32::from(copies.far),
            },
            (level, _) if level.parities() > 0 => Kind::Parity,
            _ => Kind::Plain,
        };
        let chunk = array.chunk().unwrap_or(STRIPE_BLOCK);
        let has_bitmap = setup.bitmap.is_some();
        let stripes = (kind == Kind::Parity).then(|| {
            let (heads, rules) = (setup.stripe_cache, setup.stripe_rules);
            Box::new(Stripes::new(heads, chunk, rules, has_bitmap))
        });
        let mut fabric = Fabric {
            kind,
            starts: setup.starts,
            flash: setup.flash,
            missing: setup.missing,
            balance: setup.balance,
            raid1: Raid1State::new(members),
            heads: vec![setup.head; members as usize],
            pending: vec![0; members as usize],
            merger: Merger::new(members),
            candidates: Vec::with_capacity(members as usize),
            rebuild: setup.rebuild,
            stripes,
            flushes: Flushes::default(),
            superblock: Superblock {
                is_kept: setup.data_offset > 0 && kind != Kind::Plain,
                // RAID0 and linear arrays do not mark that they are written to (`md_write_start` is not called).
                active: setup.data_offset == 0 || kind == Kind::Plain,
                ..Superblock::default()
            },
            bitmap: setup.bitmap.map(Box::new),
            written: Vec::new(),
            data_offset: setup.data_offset,
            reads_stripes: setup.reads_stripes,
            longest: setup.longest,
            lower_first: setup.lower_first,
            splits: Vec::with_capacity(16),
            rows: Vec::with_capacity(16),
            is_single_group: !matches!(array.level(), Level::Raid50 | Level::Raid60),
            array,
        };
        fabric.probe();
        fabric
    }

    /// The kernel looked for partitions when the array was first opened: it read the first page.
    fn probe(&mut self) {
        if self.has_mirrors()
            && let Ok(place) = self.choose(0, STRIPE_BLOCK)
        {
            self.heads[place.member as usize] = place.offset + STRIPE_BLOCK;
        }
    }

    /// The rebuild notes how far it is; md's thread writes that down, if the machine leaves room for superblocks.
    pub(crate) fn note_rebuild(&mut self) {
        self.superblock.is_noted = self.data_offset > 0;
    }

    /// First block and blocks of what md writes for itself on a member's drive.
    pub(crate) fn place_of_metadata(&self, of: Metadata, member: usize) -> (u64, u32) {
        let superblock = self.starts[member] - self.data_offset + Superblock::PLACE;
        match (of, &self.bitmap) {
            (Metadata::Bitmap(page), Some(bitmap)) => {
                let (behind, blocks) = bitmap.place(page);
                (superblock + behind, blocks)
            }
            _ => (superblock, 1),
        }
    }

    /// Writes to mirrors are sent by md's own thread, under a plug (`flush_pending_writes`).
    pub(crate) fn has_mirrors(&self) -> bool {
        matches!(self.kind, Kind::Raid1 | Kind::Raid10 { .. })
    }

    /// RAID0's longest request is a chunk, so the block layer cuts longer ones, which io_uring then leaves to a thread of
    /// its own (`__bio_split_to_limits`: REQ_NOWAIT). The other levels cut by themselves.
    pub(crate) fn is_cut_by_the_block_layer(&self) -> bool {
        self.kind == Kind::Plain
    }

    /// True if a member takes commands: it is there, or being rebuilt.
    pub(crate) fn is_present(&self, member: u32) -> bool {
        !self.missing.contains(member) || self.rebuilding() == Some(member)
    }

    /// True if a member is rebuilt, not only checked.
    pub(crate) fn is_rebuilding(&self) -> bool {
        self.rebuilding().is_some()
    }

    fn rebuilding(&self) -> Option<u32> {
        self.rebuild.as_ref().and_then(|rebuild| rebuild.member)
    }

    /// Members whose data is not complete up to `end` on the member.
    fn lacking(&self, end: u64) -> MemberSet {
        let mut lacking = self.missing;
        if let Some(rebuild) = &self.rebuild
            && end <= rebuild.recovered()
            && let Some(member) = rebuild.member
        {
            lacking.remove(member);
        }
        lacking
    }

    /// Member requests of a read, but not of a mirror.
    pub(crate) fn read(
        &mut self,
        offset: u64,
        len: u64,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        match self.kind {
            Kind::Parity => self.read_parity(offset, len, out),
            Kind::Plain | Kind::Raid1 | Kind::Raid10 { .. } => self.pieces(offset, len, out),
        }
    }

    /// md splits at its longest request, then at chunks; the queues of the members merge pieces that touch. RAID0 sends what
    /// is beyond the end of the chunk first (Linux 6.1.53 `raid0_make_request`).
    fn pieces(
        &self,
        offset: u64,
        len: u64,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        let (Level::Raid0, Some(chunk)) = (self.array.level(), self.array.chunk()) else {
            return self.pieces_in_order(offset, len, out);
        };
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let until = end.min(at + self.longest);
            let boundary = until.min((at / chunk + 1) * chunk);
            self.pieces_in_order(boundary, until - boundary, out)?;
            self.pieces_in_order(at, boundary - at, out)?;
            at = until;
        }
        Ok(())
    }

    fn pieces_in_order(
        &self,
        offset: u64,
        len: u64,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        if len == 0 {
            return Ok(());
        }
        self.array.pieces(offset, len, |piece| {
            out.push(MemberRequest {
                member: piece.member,
                offset: piece.offset,
                len: piece.len,
                pieces: 1,
            });
        })
    }

    /// The pieces of a request in the order in which md sends them on. The block layer cuts it at md's longest request, then
    /// md cuts at a chunk's end; each time the rest is submitted anew. Of what one call submits, bios for members go first,
    /// then the rests, the longer one before that within the cut, and then the older rests (`__submit_bio_noacct`).
    fn in_order(
        &mut self,
        chunk: u64,
        offset: u64,
        len: u64,
        mut take: impl FnMut(&mut Self, Piece),
    ) {
        let mut splits = std::mem::take(&mut self.splits);
        splits.push((offset, offset + len));
        while let Some((at, end)) = splits.pop() {
            let cut = if self.lower_first {
                end.min(at + self.longest)
            } else {
                end
            };
            let until = cut.min((at / chunk + 1).saturating_mul(chunk));
            let rests = match self.lower_first {
                true => [(until, cut), (cut, end)],
                false => [(cut, end), (until, cut)],
            };
            splits.extend(rests.iter().filter(|(from, to)| from < to));
            let piece = Piece {
                offset: at,
                len: until - at,
                is_cut_above: cut < end,
                is_cut: until < cut,
            };
            take(self, piece);
        }
        self.splits = splits;
    }

    /// Boundary at which md cuts the requests of mirrors; on RAID1 since the barrier has buckets (4.11,
    /// `align_to_barrier_unit_end`).
    fn mirror_chunk(&self) -> u64 {
        match self.kind {
            Kind::Raid1 if self.lower_first => BARRIER_UNIT,
            // Every member has all data.
            Kind::Raid10 { near, .. } if near == self.array.members() => u64::MAX,
            _ => self.array.chunk().unwrap_or(u64::MAX),
        }
    }

    /// The pieces of a read of a mirror, a bio each.
    pub(crate) fn cut(&mut self, offset: u64, len: u64, out: &mut Vec<Piece>) {
        self.in_order(self.mirror_chunk(), offset, len, |_, piece| {
            out.push(piece);
        });
    }

    /// Members that are there of those that a write goes to, at most.
    pub(crate) fn copies(&self) -> usize {
        match self.kind {
            Kind::Plain | Kind::Parity => 1,
            Kind::Raid1 => (self.array.members() - self.missing.len()) as usize,
            Kind::Raid10 { near, far } => (near * far) as usize,
        }
    }

    /// Reads of a whole parity array go past the stripe cache, chunk by chunk (`chunk_aligned_read`).
    fn read_parity(
        &mut self,
        offset: u64,
        len: u64,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        let mut outcome = Ok(());
        let chunk = self.array.chunk().unwrap_or(u64::MAX);
        self.in_order(chunk, offset, len, |of, piece| {
            let Piece {
                offset: at, len, ..
            } = piece;
            if outcome.is_ok() {
                outcome = of.pieces_in_order(at, len, out);
            }
        });
        outcome
    }

    /// The copy that is read.
    pub(crate) fn choose(&mut self, logical: u64, len: u64) -> Result<Place, ArrayError> {
        self.candidates.clear();
        for place in self.array.places(logical) {
            if self.missing.contains(place.member)
                && self.lacking(place.offset + len).contains(place.member)
            {
                continue;
            }
            let member = place.member as usize;
            self.candidates.push(Candidate {
                member: place.member,
                offset: place.offset,
                pending: self.pending[member],
                head: self.heads[member],
                flash: self.flash[member],
            });
        }
        let chosen = match self.kind {
            Kind::Raid10 { near, far } => {
                balance::raid10(self.balance, near, far, self.candidates.iter().copied())
            }
            _ => self.raid1.choose(self.balance, len, &self.candidates),
        };
        let candidate =
            chosen
                .and_then(|index| self.candidates.get(index))
                .ok_or(ArrayError::Lost {
                    logical,
                    missing: self.missing.len(),
                })?;
        Ok(Place {
            member: candidate.member,
            offset: candidate.offset,
        })
    }

    /// Member requests of a write to an array without parity.
    pub(crate) fn write(
        &mut self,
        offset: u64,
        len: u64,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        if self.kind == Kind::Plain {
            self.pieces(offset, len, out)?;
        } else {
            self.in_order(self.mirror_chunk(), offset, len, |of, piece| {
                let Piece {
                    offset: at, len, ..
                } = piece;
                out.extend(of.array.places(at).map(|place| MemberRequest {
                    member: place.member,
                    offset: place.offset,
                    len,
                    pieces: 1,
                }));
            });
        }
        if !self.missing.is_empty() {
            let (missing, rebuilding) = (self.missing, self.rebuilding());
            out.retain(|request| {
                !missing.contains(request.member) || rebuilding == Some(request.member)
            });
        }
        Ok(())
    }

    /// True if a request goes through the stripe cache; reads of a whole array go past it, but not before 2.6.20.
    pub(crate) fn uses_stripes(&self, write: bool) -> bool {
        self.stripes.is_some() && (write || self.reads_stripes || !self.missing.is_empty())
    }

    /// Hands the rows of a request to the stripe cache; their number.
    pub(crate) fn add_rows(
        &mut self,
        slot: u32,
        manner: RowManner,
        offset: u64,
        len: u64,
    ) -> Result<u32, ArrayError> {
        let mut count = 0;
        let Some(stripes) = &mut self.stripes else {
            return Ok(0);
        };
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let until = if stripes.rules.by_rows {
                end.min(at + self.longest)
            } else {
                end.min((at / STRIPE_BLOCK + 1) * STRIPE_BLOCK)
            };
            self.rows.clear();
            let rows = &mut self.rows;
            self.array
                .rows(at, until - at, |of: &Rows| rows.push(*of))?;
            if stripes.rules.by_rows && self.is_single_group {
                order_rows(&self.array, rows, at)?;
            }
            for (number, rows) in rows.iter().enumerate() {
                count += Stripes::rows_of(rows);
                let is_cut_off = number == 0 && until < end && stripes.rules.by_rows;
                stripes.add(slot, manner, *rows, is_cut_off);
            }
            stripes.end_piece();
            at = until;
        }
        Ok(count)
    }

    /// Bytes were written before the load began: the stripe cache has their rows, the last ones.
    pub(crate) fn keep_rows(&mut self, offset: u64, len: u64) -> Result<(), ArrayError> {
        let Some(stripes) = &mut self.stripes else {
            return Ok(());
        };
        let (array, rows) = (&self.array, &mut self.rows);
        let mut at = offset / STRIPE_BLOCK * STRIPE_BLOCK;
        while at < offset + len {
            rows.clear();
            array.rows(at, STRIPE_BLOCK, |of: &Rows| rows.push(*of))?;
            rows.iter().for_each(|rows| stripes.keep(rows));
            at += STRIPE_BLOCK;
        }
        Ok(())
    }

    /// The next requests of md's thread for rows in the stripe cache ([`Stripes::next`]).
    pub(crate) fn next_rows(
        &mut self,
        done: &mut VecDeque<u32>,
    ) -> Result<Option<Requests>, ArrayError> {
        let (missing, rebuild) = (self.missing, self.rebuild.as_ref());
        let rebuilt = rebuild.and_then(|of| of.member.map(|member| (member, of.recovered())));
        let Some(stripes) = &mut self.stripes else {
            return Ok(None);
        };
        let rebuilding = rebuilt.map(|(member, _)| member);
        stripes.next(done, rebuilding, |end| {
            let mut lacking = missing;
            if let Some((member, recovered)) = rebuilt
                && end <= recovered
            {
                lacking.remove(member);
            }
            lacking
        })
    }

    /// The next row of a read that found no free request ([`Stripes::retry_row`]); `None`: there is none, or it waits.
    pub(crate) fn retry_row(
        &mut self,
        done: &mut VecDeque<u32>,
    ) -> Result<Option<Requests>, ArrayError> {
        while let Some(stripes) = &mut self.stripes
            && let Some(retry) = stripes.next_retry()
        {
            let mut rows = self.array.row_of(retry.member, retry.at, STRIPE_BLOCK)?;
            rows.full.insert(retry.member);
            let requests = stripes.retry_row(rows, done)?;
            if requests.is_some() {
                return Ok(requests);
            }
        }
        Ok(None)
    }

    /// The rebuild wants the row at this offset of the member, `waited`: not for the first time; true if it got it.
    pub(crate) fn add_rebuilt_row(
        &mut self,
        now_ns: u64,
        offset: u64,
        waited: bool,
    ) -> Result<bool, ArrayError> {
        if let Some(rebuild) = &mut self.rebuild
            && let Some(stripes) = &mut self.stripes
        {
            let member = rebuild.member.unwrap_or(0);
            let rows = self.array.row_of(member, offset, STRIPE_BLOCK)?;
            let placed = stripes.place_rebuilt(rows, waited);
            rebuild.row_placed(now_ns, placed, rows.len);
            return Ok(placed);
        }
        Ok(false)
    }

    /// The rebuild wakes, and hands over the row that it got.
    pub(crate) fn hand_over_row(&mut self) {
        if let Some(stripes) = &mut self.stripes {
            stripes.hand_over();
        }
    }

    /// Reads that restore a unit of the member being rebuilt, or all copies of a unit that is checked.
    pub(crate) fn rebuild_reads(
        &mut self,
        unit: u32,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        let Some(rebuild) = &self.rebuild else {
            return Ok(());
        };
        let of = *rebuild.units.get(unit);
        let Some(member) = rebuild.member else {
            return self.write(of.offset, of.len, out);
        };
        self.array.plan_rebuild(
            member,
            of.offset,
            of.len,
            &self.missing,
            &mut self.merger,
            |request| out.push(request),
        )
    }

    /// Marks the rebuilt member as complete.
    pub(crate) fn end_rebuild(&mut self) {
        if let Some(member) = self.rebuilding() {
            self.missing.remove(member);
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self, member: usize) {
        self.pending[member] += 1;
    }

    /// A member is flushed, if it is there: it counts as busy until `end_flush`, with the write of the superblock between
    /// two flushes (`submit_flushes`, `md_super_write`).
    pub(crate) fn begin_flush(&mut self, member: usize) -> bool {
        let is_present = self.is_present(member as u32);
        self.pending[member] += u32::from(is_present);
        is_present
    }

    pub(crate) fn end_flush(&mut self, member: usize) {
        self.pending[member] -= 1;
    }

    /// A member that was chosen counts as busy (`sent`) until its bio is sent.
    pub(crate) fn sends_now(&mut self, member: usize) {
        self.pending[member] -= 1;
    }

    /// A bio of the member is done; `end` is its last block's end on the drive.
    #[inline]
    pub(crate) fn done(&mut self, member: usize, end: u64) {
        self.pending[member] -= 1;
        self.heads[member] = end.saturating_sub(self.starts[member]) * 512;
    }
}

/// Puts the rows of a request that begins at `at` in the order in which the kernel takes them: it begins with the second
/// chunk if that is on a higher slot than the first, as if it were in the same stripe then, and comes to what is before it
/// at the end (Linux 6.1 `raid5_bio_lowest_chunk_sector`, `raid5_make_request`).
fn order_rows(array: &Array, rows: &mut [Rows], at: u64) -> Result<(), ArrayError> {
    let Some(first) = rows.iter().map(|rows| rows.stripe).min() else {
        return Ok(());
    };
    let of_first = rows.partition_point(|rows| rows.stripe == first);
    let mut place = None;
    array.pieces(at, 1, |piece| {
        place.get_or_insert(piece);
    })?;
    let (Some(place), Some(chunk), Some(any)) = (place, array.chunk(), rows.first()) else {
        return Ok(());
    };
    let row = place.offset - place.offset % STRIPE_BLOCK;
    let parity = |slot: u32| slot == any.p || Some(slot) == any.q;
    let next = (place.member + 1..array.members()).find(|slot| !parity(*slot));
    let data = u64::from(array.members() - array.level().parities());
    let is_last = (at / chunk) % data == data - 1;
    match next {
        Some(_) if is_last => rows.rotate_left(of_first),
        Some(_) => {}
        None => {
            let before = rows[..of_first].partition_point(|rows| rows.offset < row);
            rows[..of_first].rotate_left(before);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use spindle_array::ArrayConfig;

    use super::*;

    const CHUNK: u64 = 64 * 1024;

    /// Stripe of each group of rows, in the order in which a write of 1 MiB from this chunk on takes them.
    fn stripes_from(chunk: u64) -> Vec<u64> {
        let config = ArrayConfig::new(Level::Raid5, vec![1 << 30; 4]).chunk(CHUNK);
        let array = Array::new(config).unwrap();
        let mut rows = Vec::new();
        let push = |of: &Rows| rows.push(*of);
        array.rows(chunk * CHUNK, 16 * CHUNK, push).unwrap();
        order_rows(&array, &mut rows, chunk * CHUNK).unwrap();
        rows.iter().map(|rows| rows.stripe).collect()
    }

    #[test]
    fn a_write_that_begins_with_the_last_chunk_of_a_stripe_takes_it_last_if_the_next_slot_is_higher()
     {
        // Slots of stripe 10: 2, 3, 0, with parity on 1. Chunk 32 is on slot 0, chunk 33 in the next stripe.
        assert_eq!(stripes_from(32), [11, 12, 13, 14, 15, 10]);
        // Slots of stripe 5: 3, 0, 1.
        assert_eq!(stripes_from(16), [5, 6, 7, 8, 9, 10]);
        // Chunk 11 is on slot 3, the highest.
        assert_eq!(stripes_from(11), [3, 4, 5, 6, 7, 8]);
        // Chunk 2 is on slot 2 below the parity on 3.
        assert_eq!(stripes_from(2), [0, 1, 2, 3, 4, 5]);
    }
}
