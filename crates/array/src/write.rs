//! Member requests of a write: md's choice between full stripe, read-modify-write and
//! reconstruct-write (`drivers/md/raid5.c`, `handle_stripe_fill` and `handle_stripe_dirtying`).
//!
//! md decides for each row of 4 KiB blocks by itself; rows of one stripe that a request covers alike
//! are planned together here.

use serde::Serialize;

use crate::array::{Array, Map};
use crate::error::ArrayError;
use crate::members::MemberSet;
use crate::parity::Parity;
use crate::split::{MemberRequest, Merger};

/// md's stripe cache works in blocks of this many bytes on each member (`STRIPE_SIZE`).
pub const STRIPE_BLOCK: u64 = 4096;

/// md's `rmw_level` (since 4.1): whether read-modify-write is allowed, and whether it wins ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RmwLevel {
    /// 0: always reconstruct.
    Never,
    /// 1: read-modify-write if strictly cheaper. The default.
    Cheaper,
    /// 2: read-modify-write also if it costs the same.
    Preferred,
}

/// The decision rule of a kernel version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct WriteRule {
    /// RAID6 may read-modify-write (since 4.1); before, it always reconstructs.
    pub raid6_rmw: bool,
    /// md's `rmw_level`.
    pub rmw_level: RmwLevel,
    /// A degraded RAID6 reads every block before any write (`fetch_block6`, up to 3.x); later kernels
    /// read only the blocks that the write needs (`need_this_block`).
    pub degraded_raid6_reads_all: bool,
}

impl WriteRule {
    /// Linux 2.6.32: `handle_stripe_dirtying5`, `handle_stripe_dirtying6`.
    pub const LINUX_2_6_32: WriteRule = WriteRule {
        raid6_rmw: false,
        rmw_level: RmwLevel::Cheaper,
        degraded_raid6_reads_all: true,
    };

    /// Linux 6.1 with its default `rmw_level`.
    pub const LINUX_6_1: WriteRule = WriteRule {
        raid6_rmw: true,
        rmw_level: RmwLevel::Cheaper,
        degraded_raid6_reads_all: false,
    };
}

impl Default for WriteRule {
    fn default() -> WriteRule {
        WriteRule::LINUX_6_1
    }
}

/// The way in which the parity of a row is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteMethod {
    /// All data is new: nothing is read.
    FullStripe,
    /// Old data and old parity are read.
    ReadModifyWrite,
    /// The data that stays is read.
    ReconstructWrite,
}

/// Rows of one stripe that a request covers alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Stripe, counted within its group.
    pub stripe: u64,
    /// First byte of the rows on each member.
    pub offset: u64,
    /// Bytes on each member: a multiple of [`STRIPE_BLOCK`].
    pub len: u64,
    /// Members of the stripe.
    pub members: MemberSet,
    /// Member with P.
    pub p: u32,
    /// Member with Q.
    pub q: Option<u32>,
    /// Members whose block is written as a whole.
    pub full: MemberSet,
    /// Members whose block is written in part.
    pub partial: MemberSet,
}

/// The plan for a write of [`Rows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlan {
    /// The method.
    pub method: WriteMethod,
    /// Members to read first.
    pub reads: MemberSet,
    /// Members to write then, parity included.
    pub writes: MemberSet,
}

impl Rows {
    /// md's decision for these rows, with blocks of `cached` members in the stripe cache and
    /// `missing` members gone.
    pub fn plan(
        &self,
        cached: &MemberSet,
        missing: &MemberSet,
        rule: WriteRule,
    ) -> Result<RowPlan, ArrayError> {
        let missing = self.members.common(missing);
        let parities = 1 + u32::from(self.q.is_some());
        if missing.len() > parities {
            return Err(ArrayError::StripeLost {
                missing: missing.len(),
                parities,
            });
        }
        let mut row = Row {
            rows: self,
            rule,
            missing,
            up_to_date: self.members.common(cached),
        };
        let mut reads = MemberSet::EMPTY;
        loop {
            let before = row.up_to_date;
            let mut wanted = row.fill();
            let choice = row.dirty(&mut wanted);
            if wanted.is_empty() {
                if let Some(method) = choice {
                    return Ok(self.finish(method, reads, &missing));
                }
                if row.up_to_date == before {
                    return Err(ArrayError::StripeLost {
                        missing: missing.len(),
                        parities,
                    });
                }
            }
            reads = reads.with(&wanted);
            row.up_to_date = row.up_to_date.with(&wanted);
        }
    }

    fn parity(&self) -> MemberSet {
        [Some(self.p), self.q].into_iter().flatten().collect()
    }

    fn finish(&self, method: WriteMethod, reads: MemberSet, missing: &MemberSet) -> RowPlan {
        let data = self.members.without(&self.parity());
        let method = if reads.is_empty() && data.without(&self.full).is_empty() {
            WriteMethod::FullStripe
        } else {
            method
        };
        let writes = self
            .full
            .with(&self.partial)
            .with(&self.parity())
            .without(missing);
        RowPlan {
            method,
            reads,
            writes,
        }
    }
}

/// A row while md works on it: one pass of `handle_stripe` after another.
struct Row<'a> {
    rows: &'a Rows,
    rule: WriteRule,
    missing: MemberSet,
    /// Blocks read, computed or cached (`R5_UPTODATE`).
    up_to_date: MemberSet,
}

impl Row<'_> {
    /// `handle_stripe_fill`: blocks to read because a part of them, or of a lost one, is written.
    /// Computes lost blocks as soon as all others are there.
    fn fill(&mut self) -> MemberSet {
        let count = self.rows.members.len();
        let mut wanted = MemberSet::EMPTY;
        for member in self.rows.members.iter() {
            if self.up_to_date.contains(member) || !self.is_needed(member) {
                continue;
            }
            let lost = self.missing.contains(member);
            let only_p = self.rule.raid6_rmw && self.rows.q.is_some() && member == self.rows.p;
            if self.up_to_date.len() == count - 1 && (lost || only_p) {
                self.up_to_date.insert(member);
                break;
            }
            if self.up_to_date.len() == count - 2 && self.missing.len() >= 2 {
                self.up_to_date = self.rows.members;
                break;
            }
            if !lost {
                wanted.insert(member);
            }
        }
        wanted
    }

    /// `need_this_block`, and `fetch_block5`, `fetch_block6` before it.
    fn is_needed(&self, member: u32) -> bool {
        let rows = self.rows;
        if rows.partial.contains(member) {
            return true;
        }
        if self.missing.is_empty() {
            return false;
        }
        if self.rule.degraded_raid6_reads_all && rows.q.is_some() {
            return true;
        }
        let lost = self.missing.without(&self.up_to_date);
        if !lost.common(&rows.partial).is_empty() {
            return true;
        }
        if self.rule.degraded_raid6_reads_all {
            return false;
        }
        let touched = rows.full.with(&rows.partial).with(&rows.parity());
        let must_reconstruct = self.rule.rmw_level == RmwLevel::Never
            || (self.missing.len() >= 2 && !lost.common(&touched).is_empty());
        must_reconstruct && !lost.without(&rows.parity()).without(&rows.full).is_empty()
    }

    /// `handle_stripe_dirtying`: adds the blocks to read for the cheaper way; once nothing is to be
    /// read any more, returns the method. `wanted` are blocks already on their way (`R5_LOCKED`).
    fn dirty(&self, wanted: &mut MemberSet) -> Option<WriteMethod> {
        let rows = self.rows;
        let known = self.up_to_date.with(wanted);
        let old = rows
            .full
            .with(&rows.partial)
            .with(&rows.parity())
            .without(&known);
        let rest = rows
            .members
            .without(&rows.parity())
            .without(&rows.full)
            .without(&known);
        // A block that cannot be read makes its way prohibitively expensive.
        let cost = |blocks: &MemberSet| {
            let lost = blocks.common(&self.missing).len();
            blocks.len() - lost + lost * 2 * rows.members.len()
        };
        let (rmw, rcw) = (cost(&old), cost(&rest));
        let never =
            self.rule.rmw_level == RmwLevel::Never || (rows.q.is_some() && !self.rule.raid6_rmw);
        let preferred = self.rule.rmw_level == RmwLevel::Preferred;
        let modify = !never && (rmw < rcw || (rmw == rcw && preferred));
        let (left, method) = if rcw == 0 {
            (MemberSet::EMPTY, WriteMethod::ReconstructWrite)
        } else if modify {
            (old, WriteMethod::ReadModifyWrite)
        } else {
            (rest, WriteMethod::ReconstructWrite)
        };
        let idle = wanted.is_empty();
        *wanted = wanted.with(&left.without(&self.missing));
        (idle && left.is_empty()).then_some(method)
    }
}

impl Parity {
    /// Calls `visit` for each group of alike rows of the request; `base` is the group's first member.
    fn rows(&self, base: u32, offset: u64, len: u64, visit: &mut impl FnMut(&Rows)) {
        let width = self.data() * self.chunk();
        let members: MemberSet = (base..base + self.members()).collect();
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let stripe = at / width;
            let until = end.min((stripe + 1) * width);
            let (p, q) = self.parity_members(stripe);
            let rows = Rows {
                stripe,
                offset: stripe * self.chunk(),
                len: 0,
                members,
                p: base + p,
                q: q.map(|q| base + q),
                full: MemberSet::EMPTY,
                partial: MemberSet::EMPTY,
            };
            self.rows_of_stripe(
                rows,
                base,
                at - stripe * width,
                until - stripe * width,
                visit,
            );
            at = until;
        }
    }

    /// Rows of `len` bytes on each member, of which nothing is written.
    fn row_at(&self, base: u32, offset: u64, len: u64) -> Rows {
        let stripe = offset / self.chunk();
        let (p, q) = self.parity_members(stripe);
        Rows {
            stripe,
            offset,
            len,
            members: (base..base + self.members()).collect(),
            p: base + p,
            q: q.map(|q| base + q),
            full: MemberSet::EMPTY,
            partial: MemberSet::EMPTY,
        }
    }

    /// `from` and `to` are bytes of the stripe's data.
    fn rows_of_stripe(
        &self,
        stripe: Rows,
        base: u32,
        from: u64,
        to: u64,
        visit: &mut impl FnMut(&Rows),
    ) {
        let chunk = self.chunk();
        let (first, last) = (from / chunk, (to - 1) / chunk);
        let (head, tail) = (from - first * chunk, to - last * chunk);
        // Coverage can only change at the block borders around the two ends.
        let below = |byte: u64| byte / STRIPE_BLOCK * STRIPE_BLOCK;
        let above = |byte: u64| byte.div_ceil(STRIPE_BLOCK) * STRIPE_BLOCK;
        let mut edges = [0, below(head), above(head), below(tail), above(tail), chunk];
        edges.sort_unstable();
        for pair in edges.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            if start == end {
                continue;
            }
            let mut rows = Rows {
                offset: stripe.offset + start,
                len: end - start,
                ..stripe
            };
            for index in first..=last {
                let covered_from = if index == first { head } else { 0 };
                let covered_to = if index == last { tail } else { chunk };
                if covered_to <= start || end <= covered_from {
                    continue;
                }
                let member = base + self.data_member(stripe.stripe, index);
                if covered_from <= start && end <= covered_to {
                    rows.full.insert(member);
                } else {
                    rows.partial.insert(member);
                }
            }
            if !rows.full.is_empty() || !rows.partial.is_empty() {
                visit(&rows);
            }
        }
    }
}

/// A read or write of a planned write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum WriteStep {
    /// To be read before the stripe can be written.
    Read(MemberRequest),
    /// To be written.
    Write(MemberRequest),
}

/// Scratch space of [`Array::plan_write`]; reusable.
#[derive(Debug, Clone)]
pub struct WritePlanner {
    reads: Merger,
    writes: Merger,
}

impl WritePlanner {
    /// For arrays of up to `members` members.
    pub fn new(members: u32) -> WritePlanner {
        WritePlanner {
            reads: Merger::new(members),
            writes: Merger::new(members),
        }
    }
}

impl Array {
    /// Calls `visit` for each group of rows that a write covers alike, stripe by stripe.
    ///
    /// For callers that keep a stripe cache; [`plan_write`](Array::plan_write) does without.
    pub fn rows(
        &self,
        offset: u64,
        len: u64,
        mut visit: impl FnMut(&Rows),
    ) -> Result<(), ArrayError> {
        self.check_range(offset, len)?;
        match &self.map {
            Map::Parity(map) => map.rows(0, offset, len, &mut visit),
            Map::Nested(map) => {
                let (mut at, end) = (offset, offset + len);
                while at < end {
                    let piece = map.in_group(at);
                    let len = piece.len.min(end - at);
                    let group = &map.groups()[piece.member as usize];
                    group.rows(piece.member * map.width(), piece.offset, len, &mut visit);
                    at += len;
                }
            }
            _ => return Err(ArrayError::NoParity(self.level().name())),
        }
        Ok(())
    }

    /// The row at `offset` of a member, of which nothing is written; for the rebuild.
    pub fn row_of(&self, member: u32, offset: u64, len: u64) -> Result<Rows, ArrayError> {
        match &self.map {
            Map::Parity(map) => Ok(map.row_at(0, offset, len)),
            Map::Nested(map) => {
                let group = member / map.width();
                Ok(map.groups()[group as usize].row_at(group * map.width(), offset, len))
            }
            _ => Err(ArrayError::NoParity(self.level().name())),
        }
    }

    /// Member requests of a write with an empty stripe cache and `missing` members gone, merged where
    /// they touch. Returns the number of reads and writes.
    pub fn plan_write(
        &self,
        offset: u64,
        len: u64,
        rule: WriteRule,
        missing: &MemberSet,
        planner: &mut WritePlanner,
        mut visit: impl FnMut(WriteStep),
    ) -> Result<(u32, u32), ArrayError> {
        let (mut reads, mut writes) = (0, 0);
        let mut step = |step: WriteStep| {
            match step {
                WriteStep::Read(_) => reads += 1,
                WriteStep::Write(_) => writes += 1,
            }
            visit(step);
        };
        let WritePlanner {
            reads: read_merger,
            writes: write_merger,
        } = planner;
        let mut failed = None;
        if matches!(self.map, Map::Parity(_) | Map::Nested(_)) {
            self.rows(offset, len, |rows| {
                if failed.is_some() {
                    return;
                }
                match rows.plan(&MemberSet::EMPTY, missing, rule) {
                    Ok(plan) => {
                        for member in plan.reads.iter() {
                            read_merger.push(member, rows.offset, rows.len, &mut |r| {
                                step(WriteStep::Read(r))
                            });
                        }
                        for member in plan.writes.iter() {
                            write_merger.push(member, rows.offset, rows.len, &mut |r| {
                                step(WriteStep::Write(r))
                            });
                        }
                    }
                    Err(error) => failed = Some(error),
                }
            })?;
        } else {
            self.pieces(offset, len, |piece| {
                let mut alive = 0;
                for place in self
                    .places(piece.logical)
                    .filter(|place| !missing.contains(place.member))
                {
                    alive += 1;
                    write_merger.push(place.member, place.offset, piece.len, &mut |r| {
                        step(WriteStep::Write(r))
                    });
                }
                if alive == 0 {
                    failed = Some(ArrayError::Lost {
                        logical: piece.logical,
                        missing: missing.len(),
                    });
                }
            })?;
        }
        read_merger.flush(&mut |r| step(WriteStep::Read(r)));
        write_merger.flush(&mut |r| step(WriteStep::Write(r)));
        failed.map_or(Ok((reads, writes)), Err)
    }
}
