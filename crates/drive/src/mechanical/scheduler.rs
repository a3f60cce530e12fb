//! Chooses the command or cached write to which the arm goes next.

use super::{Mechanical, Waiting};
use crate::command::{Command, Op};
use crate::geometry::Place;
use crate::mechanics::Arm;
use crate::params::Scheduling;

impl Mechanical {
    /// The waiting command that is next, and the time of its positioning.
    #[inline]
    pub(super) fn next_waiting(&self, now_ns: u64) -> Option<(usize, u64)> {
        let arm = self.arm_at(now_ns);
        if self.waiting.len() <= 1 {
            return self
                .waiting
                .first()
                .map(|wait| (0, self.cost(arm, now_ns, wait, u64::MAX).unwrap_or(0)));
        }
        let oldest = |waiting: &[Waiting]| {
            waiting
                .iter()
                .enumerate()
                .min_by_key(|(_, wait)| wait.arrival)
                .map(|(index, _)| index)
        };
        if self.queue.scheduling == Scheduling::Fifo {
            return oldest(&self.waiting).map(|index| (index, 0));
        }
        let mut best = (0, u64::MAX);
        let mut first = u64::MAX;
        let mut found = None;
        let reading = self.reading(now_ns);
        for (index, wait) in self.waiting.iter().enumerate() {
            first = first.min(wait.submit_ns);
            let Command { lbn, op, .. } = wait.command;
            if reading.contains(&lbn)
                && op == Op::Read
                && found.is_none_or(|(_, least)| lbn < least)
            {
                found = Some((index, lbn));
            }
            if let Some(cost) = self.cost(arm, now_ns, wait, best.1) {
                best = (index, cost);
            }
        }
        if self.queue.age_bound_ns > 0 && first.saturating_add(self.queue.age_bound_ns) <= now_ns {
            return oldest(&self.waiting).map(|index| (index, 0));
        }
        Some(found.map_or(best, |(index, _)| (index, 0)))
    }

    /// Where a read may begin that read-ahead has come to, or is about to: it costs the arm nothing.
    pub(super) fn reading(&self, now_ns: u64) -> std::ops::Range<u64> {
        let Some(mut stream) = self.stream else {
            return 0..0;
        };
        let end = stream.progress(&self.mechanics, now_ns);
        let gap = if self.buffer.almost_hits {
            u64::from(self.buffer.forward_gap) + 1
        } else {
            0
        };
        self.segments.start(stream.segment)..(end + gap).min(stream.limit)
    }

    /// The cost of a command in the scheduler's estimate; `None` if not less than `best`.
    #[inline]
    pub(super) fn cost(&self, arm: Arm, now_ns: u64, wait: &Waiting, best: u64) -> Option<u64> {
        let write = wait.command.op == Op::Write;
        let start_ns = self.leave_ns(now_ns, wait.ready_ns, false);
        self.position_cost(
            arm,
            start_ns,
            &wait.place,
            write,
            best.saturating_sub(start_ns - now_ns),
        )
        .map(|cost| cost + (start_ns - now_ns))
    }

    #[inline]
    pub(super) fn position_cost(
        &self,
        arm: Arm,
        now_ns: u64,
        place: &Place,
        write: bool,
        best: u64,
    ) -> Option<u64> {
        if self.queue.scheduling == Scheduling::ShortestSeek {
            let distance = u64::from(arm.cylinder.abs_diff(place.cylinder));
            return (distance < best).then_some(distance);
        }
        let seek_ns = self
            .mechanics
            .seek_ns(arm, place.cylinder, place.surface, write)
            + self.queue.settle_margin_ns;
        if seek_ns >= best {
            return None;
        }
        let cost = seek_ns
            + self
                .mechanics
                .rotation
                .wait_ns(now_ns + seek_ns, place.angle);
        (cost < best).then_some(cost)
    }

    pub(super) fn next_dirty(&self, now_ns: u64) -> Option<(usize, u64)> {
        let arm = self.arm_at(now_ns);
        let start_ns = now_ns + self.overheads.dispatch_ns;
        let mut best: Option<(usize, u64)> = None;
        for (index, write) in self.dirty.iter().enumerate() {
            if write.ready_ns > now_ns {
                continue;
            }
            let limit = best.map_or(u64::MAX, |(_, cost)| cost);
            let cost = match self.queue.scheduling {
                Scheduling::Fifo => (write.order < limit).then_some(write.order),
                _ => self.position_cost(arm, start_ns, &write.place, true, limit),
            };
            if let Some(cost) = cost {
                best = Some((index, cost));
            }
        }
        best
    }
}
