//! Turns a request of the array into requests of its members.

use std::collections::VecDeque;

use spindle_array::balance::{self, BalanceRule, Candidate, Raid1State};
use spindle_array::{
    Array, ArrayError, Layout, Level, MemberRequest, MemberSet, Merger, Place, Rows, STRIPE_BLOCK,
    WriteRule,
};

use super::rebuild::Rebuild;
use super::slab::Slab;

/// An array and md's state about it.
pub(crate) struct Fabric {
    pub(crate) array: Array,
    kind: Kind,
    /// First byte of each member's data, blocks of the drive.
    pub(crate) starts: Vec<u64>,
    flash: Vec<bool>,
    missing: MemberSet,
    balance: BalanceRule,
    write_rule: WriteRule,
    raid1: Raid1State,
    /// End of the last request completed on each member, bytes (`head_position`).
    heads: Vec<u64>,
    /// Requests at each member (`nr_pending`).
    pending: Vec<u32>,
    merger: Merger,
    candidates: Vec<Candidate>,
    pub(crate) rebuild: Option<Rebuild>,
    pub(crate) rows: Slab<RowsWrite>,
    waiting: VecDeque<u32>,
    /// Stripe heads in use, and their total number.
    active: u32,
    stripe_cache: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Raid1,
    Raid10 { near: u32, far: u32 },
    Parity,
}

/// Rows of a stripe that are being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsWrite {
    /// The request they belong to.
    pub(crate) slot: u32,
    /// Reads, then writes, that are not done.
    pub(crate) left: u32,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) reads: MemberSet,
    pub(crate) writes: MemberSet,
    pub(crate) writing: bool,
}

impl RowsWrite {
    /// Stripe heads they need.
    fn heads(&self) -> u32 {
        (self.len / STRIPE_BLOCK) as u32
    }
}

/// How an array is set up, beyond its map.
pub(crate) struct Setup {
    pub(crate) starts: Vec<u64>,
    pub(crate) flash: Vec<bool>,
    pub(crate) missing: MemberSet,
    pub(crate) balance: BalanceRule,
    pub(crate) write_rule: WriteRule,
    pub(crate) stripe_cache: u32,
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
        Fabric {
            kind,
            starts: setup.starts,
            flash: setup.flash,
            missing: setup.missing,
            balance: setup.balance,
            write_rule: setup.write_rule,
            raid1: Raid1State::new(members),
            heads: vec![0; members as usize],
            pending: vec![0; members as usize],
            merger: Merger::new(members),
            candidates: Vec::with_capacity(members as usize),
            rebuild: setup.rebuild,
            rows: Slab::with_capacity(256),
            waiting: VecDeque::with_capacity(64),
            active: 0,
            stripe_cache: setup.stripe_cache,
            array,
        }
    }

    pub(crate) fn has_parity(&self) -> bool {
        self.kind == Kind::Parity
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
            Kind::Plain => self
                .array
                .requests(offset, len, &mut self.merger, |request| out.push(request)),
            Kind::Parity => {
                let lacking = if self.missing.is_empty() {
                    MemberSet::EMPTY
                } else {
                    let last = self.array.locate(offset + len - 1)?;
                    let chunk = self.array.chunk().unwrap_or(STRIPE_BLOCK);
                    self.lacking((last.offset / chunk + 1) * chunk)
                };
                self.array
                    .plan_read(offset, len, &lacking, &mut self.merger, |request| {
                        out.push(request);
                    })
            }
            Kind::Raid1 | Kind::Raid10 { .. } => self.read_mirror(offset, len, out),
        }
    }

    /// md splits at chunks, and chooses a copy for each piece by itself.
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
            self.merger
                .push(place.member, place.offset, until - at, &mut |request| {
                    out.push(request);
                });
            at = until;
        }
        self.merger.flush(&mut |request| out.push(request));
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
        self.array
            .write_requests(offset, len, &mut self.merger, |request| out.push(request))?;
        if !self.missing.is_empty() {
            let (missing, rebuilding) = (self.missing, self.rebuilding());
            out.retain(|request| {
                !missing.contains(request.member) || rebuilding == Some(request.member)
            });
        }
        Ok(())
    }

    /// Rows that a write to a parity array covers, planned; each waits to be started.
    pub(crate) fn write_rows(
        &mut self,
        slot: u32,
        offset: u64,
        len: u64,
        out: &mut Vec<u32>,
    ) -> Result<(), ArrayError> {
        // No more heads at once than half of the cache: the rest can still be worked on.
        let most = u64::from((self.stripe_cache / 2).max(1)) * STRIPE_BLOCK;
        let mut failed = None;
        let (missing, rule) = (self.missing, self.write_rule);
        let recovered = self
            .rebuild
            .as_ref()
            .map(|rebuild| (rebuild.member, rebuild.recovered()));
        let (array, slab) = (&self.array, &mut self.rows);
        array.rows(offset, len, |rows: &Rows| {
            let mut lacking = missing;
            if let Some((member, recovered)) = recovered
                && rows.offset + rows.len <= recovered
            {
                lacking.remove(member);
            }
            match rows.plan(&MemberSet::EMPTY, &lacking, rule) {
                Ok(plan) => {
                    let (mut at, end) = (rows.offset, rows.offset + rows.len);
                    while at < end {
                        let len = most.min(end - at);
                        out.push(slab.add(RowsWrite {
                            slot,
                            left: 0,
                            offset: at,
                            len,
                            reads: plan.reads,
                            writes: plan.writes,
                            writing: false,
                        }));
                        at += len;
                    }
                }
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// True if the stripe cache has room for these rows now; if not, they wait.
    pub(crate) fn may_start(&mut self, rows: u32) -> bool {
        let heads = self.rows.get(rows).heads();
        let room = self.waiting.is_empty()
            && (self.active == 0 || self.active + heads <= self.stripe_cache);
        if room {
            self.active += heads;
        } else {
            self.waiting.push_back(rows);
        }
        room
    }

    /// Rows are written; those that may be started now (`release_inactive_stripe_list`: once fewer than three quarters
    /// of the heads are in use).
    pub(crate) fn end_rows(&mut self, rows: u32, out: &mut Vec<u32>) {
        self.active -= self.rows.get(rows).heads();
        self.rows.remove(rows);
        if self.active >= self.stripe_cache * 3 / 4 {
            return;
        }
        while let Some(&next) = self.waiting.front() {
            let heads = self.rows.get(next).heads();
            if self.active > 0 && self.active + heads > self.stripe_cache {
                break;
            }
            self.waiting.pop_front();
            self.active += heads;
            out.push(next);
        }
    }

    /// Reads that restore a stretch of the member being rebuilt.
    pub(crate) fn rebuild_reads(
        &mut self,
        offset: u64,
        len: u64,
        out: &mut Vec<MemberRequest>,
    ) -> Result<(), ArrayError> {
        let Some(member) = self.rebuilding() else {
            return Ok(());
        };
        self.array.plan_rebuild(
            member,
            offset,
            len,
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
        self.heads[member] = (end - self.starts[member]) * 512;
    }
}
