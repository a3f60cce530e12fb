//! Turns a request of the array into requests of its members.

use std::collections::VecDeque;

use spindle_array::balance::{self, BalanceRule, Candidate, Raid1State};
use spindle_array::{
    Array, ArrayError, Layout, Level, MemberRequest, MemberSet, Merger, Place, Rows, STRIPE_BLOCK,
};

use super::rebuild::Rebuild;
pub(crate) use super::stripes::StripeRules;
use super::stripes::{Requests, Stripes};

/// An array and md's state about it.
pub(crate) struct Fabric {
    pub(crate) array: Array,
    kind: Kind,
    /// First byte of each member's data, blocks of the drive.
    pub(crate) starts: Vec<u64>,
    flash: Vec<bool>,
    missing: MemberSet,
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
    pub(crate) flushes: Flushes,
    data_offset: u64,
    /// All reads go through the stripe cache.
    reads_stripes: bool,
    /// Longest request that md takes in one piece, bytes.
    longest: u64,
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
    /// The first flush of a member is done.
    pub(crate) flushed: Vec<bool>,
    /// Slots of the writers.
    pub(crate) writers: Vec<u32>,
    /// A rebuild has noted how far it is.
    pub(crate) is_noted: bool,
    /// Units of a rebuild that are to be written when md's thread has written the superblocks.
    pub(crate) units: Vec<u32>,
}

impl Superblock {
    /// Stands for a slot in flushes.
    pub(crate) const SLOT: u32 = u32::MAX;
    /// Blocks from the start of a member (metadata 1.2).
    const PLACE: u64 = 8;
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
    pub(crate) flash: Vec<bool>,
    pub(crate) missing: MemberSet,
    pub(crate) balance: BalanceRule,
    pub(crate) stripe_rules: StripeRules,
    pub(crate) stripe_cache: u32,
    /// Reads of a whole array go through the stripe cache.
    pub(crate) reads_stripes: bool,
    pub(crate) rebuild: Option<Rebuild>,
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
        let stripes = (kind == Kind::Parity)
            .then(|| Box::new(Stripes::new(setup.stripe_cache, chunk, setup.stripe_rules)));
        let mut fabric = Fabric {
            kind,
            starts: setup.starts,
            flash: setup.flash,
            missing: setup.missing,
            balance: setup.balance,
            raid1: Raid1State::new(members),
            heads: vec![0; members as usize],
            pending: vec![0; members as usize],
            merger: Merger::new(members),
            candidates: Vec::with_capacity(members as usize),
            rebuild: setup.rebuild,
            stripes,
            flushes: Flushes::default(),
            superblock: Superblock {
                active: setup.data_offset == 0,
                flushed: vec![false; members as usize],
                ..Superblock::default()
            },
            data_offset: setup.data_offset,
            reads_stripes: setup.reads_stripes,
            longest: array.queue_limits().max_request,
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

    /// Block of a member's drive with its superblock.
    pub(crate) fn superblock_lbn(&self, member: usize) -> u64 {
        self.starts[member] - self.data_offset + Superblock::PLACE
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

    fn rebuilding(&self) -> Option<u32> {
        self.rebuild.as_ref().map(|rebuild| rebuild.member)
    }

    /// Members whose data is not complete up to `end` on the member.
    fn lacking(&self, end: u64) -> MemberSet {
        let mut lacking = self.missing;
        if let Some(rebuild) = &self.rebuild
            && end <= rebuild.recovered()
        {
            lacking.remove(rebuild.member);
        }
        lacking
    }

    /// Member requests of a read.
    pub(crate) fn read(
        &mut self,
        offset: u64,
        len: u64,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        match self.kind {
            Kind::Plain | Kind::Parity => self.pieces(offset, len, out),
            Kind::Raid1 | Kind::Raid10 { .. } => self.read_mirror(offset, len, out),
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

    /// md splits at chunks, and chooses a copy for each piece by itself: one that was just chosen is busy.
    fn read_mirror(
        &mut self,
        offset: u64,
        len: u64,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        let chunk = self.array.chunk().unwrap_or(u64::MAX);
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let until = end.min((at / chunk + 1).saturating_mul(chunk));
            let place = self.choose(at, until - at)?;
            self.pending[place.member as usize] += 1;
            out.push(MemberRequest {
                member: place.member,
                offset: place.offset,
                len: until - at,
                pieces: 1,
            });
            at = until;
        }
        // They count from when they are sent.
        for piece in out {
            self.pending[piece.member as usize] -= 1;
        }
        Ok(())
    }

    fn choose(&mut self, logical: u64, len: u64) -> Result<Place, ArrayError> {
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
            let chunk = self.array.chunk().unwrap_or(u64::MAX);
            let (mut at, end) = (offset, offset + len);
            while at < end {
                let until = end.min((at / chunk + 1).saturating_mul(chunk));
                out.extend(self.array.places(at).map(|place| MemberRequest {
                    member: place.member,
                    offset: place.offset,
                    len: until - at,
                    pieces: 1,
                }));
                at = until;
            }
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

    /// Hands the rows of a request to the stripe cache; their number. `manner`: a write, and one that someone waits for.
    pub(crate) fn add_rows(
        &mut self,
        slot: u32,
        manner: (bool, bool),
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
                end
            } else {
                end.min((at / STRIPE_BLOCK + 1) * STRIPE_BLOCK)
            };
            self.array.rows(at, until - at, |rows: &Rows| {
                count += Stripes::rows_of(rows);
                stripes.add(slot, manner, *rows);
            })?;
            at = until;
        }
        Ok(count)
    }

    /// The next requests of md's thread for rows in the stripe cache ([`Stripes::next`]).
    pub(crate) fn next_rows(
        &mut self,
        rows: &mut u32,
        done: &mut VecDeque<u32>,
    ) -> Result<Option<Requests>, ArrayError> {
        let (missing, rebuild) = (self.missing, self.rebuild.as_ref());
        let rebuilt = rebuild.map(|rebuild| (rebuild.member, rebuild.recovered()));
        let Some(stripes) = &mut self.stripes else {
            return Ok(None);
        };
        let rebuilding = rebuilt.map(|(member, _)| member);
        stripes.next(rows, done, rebuilding, |end| {
            let mut lacking = missing;
            if let Some((member, recovered)) = rebuilt
                && end <= recovered
            {
                lacking.remove(member);
            }
            lacking
        })
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
            let rows = self.array.row_of(rebuild.member, offset, STRIPE_BLOCK)?;
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

    /// Reads that restore a unit of the member being rebuilt.
    pub(crate) fn rebuild_reads(
        &mut self,
        unit: u32,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        let Some(rebuild) = &self.rebuild else {
            return Ok(());
        };
        let of = rebuild.units.get(unit);
        self.array.plan_rebuild(
            rebuild.member,
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

    /// A bio of the member is done; `end` is its last block's end on the drive.
    #[inline]
    pub(crate) fn done(&mut self, member: usize, end: u64) {
        self.pending[member] -= 1;
        self.heads[member] = end.saturating_sub(self.starts[member]) * 512;
    }
}
