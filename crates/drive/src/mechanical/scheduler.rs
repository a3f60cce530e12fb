//! Chooses the command or cached write to which the arm goes next.

use super::Mechanical;
use super::line::Spot;
use crate::command::Op;
use crate::geometry::Place;
use crate::mechanics::Arm;
use crate::params::Scheduling;
use crate::rotation::Angle;

impl Mechanical {
    /// The waiting command that is next, and the cost of getting there.
    #[inline]
    pub(super) fn next_waiting(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        if self.waiting.is_empty() {
            return None;
        }
        if self.queue.scheduling == Scheduling::Fifo {
            return self.oldest().map(|index| (index, 0));
        }
        let arm = self.arm_at(now_ns);
        let mut best = (0, u64::MAX);
        let mut first_ns = u64::MAX;
        for (index, spot) in self.waiting.spots().iter().enumerate() {
            first_ns = first_ns.min(spot.submit_ns);
            let cost = self.cost(arm, now_ns, spot);
            if cost < best.1 {
                best = (index, cost);
            }
        }
        if self.is_overdue(first_ns, now_ns) {
            return self.oldest().map(|index| (index, 0));
        }
        if self.stream.is_some()
            && let Some(index) = self.first_on_the_way(now_ns)
        {
            return Some((index, 0));
        }
        if self.queue.keeps_runs {
            best.0 = self.first_of_run(best.0);
        }
        Some(best)
    }

    /// The first of the waiting commands that one continues.
    #[inline]
    fn first_of_run(&self, index: usize) -> usize {
        let spots = self.waiting.spots();
        let mut first = index;
        let before = |of: &Spot| {
            let goes_on = |spot: &Spot| spot.lbn + u64::from(spot.blocks) == of.lbn;
            let mut all = spots.iter();
            all.position(|spot| goes_on(spot) && spot.op == of.op)
        };
        while let Some(index) = before(&spots[first]) {
            first = index;
        }
        first
    }

    /// The waiting read that read-ahead serves, so that the mechanism goes on without a choice.
    pub(super) fn next_on_the_way(&mut self, now_ns: u64) -> Option<usize> {
        if self.stream.is_none() || self.is_cached_turn() {
            return None;
        }
        let found = self.first_on_the_way(now_ns)?;
        (!self.passes_overdue(found, now_ns)).then_some(found)
    }

    /// An older command has to be served before this one: the drive serves in order, or the oldest has waited too long.
    pub(super) fn passes_overdue(&self, index: usize, now_ns: u64) -> bool {
        let spots = self.waiting.spots().iter();
        let first_ns = spots.map(|spot| spot.submit_ns).min();
        let in_order = self.queue.scheduling == Scheduling::Fifo
            || self.is_overdue(first_ns.unwrap_or(u64::MAX), now_ns);
        in_order && self.oldest() != Some(index)
    }

    fn first_on_the_way(&mut self, now_ns: u64) -> Option<usize> {
        let reading = self.reading(now_ns);
        let mut found = None;
        // One comparison: either bound alone would be a branch that no processor foresees.
        let len = reading.end.saturating_sub(reading.start);
        for (index, &Spot { lbn, op, .. }) in self.waiting.spots().iter().enumerate() {
            if lbn.wrapping_sub(reading.start) < len
                && op == Op::Read
                && found.is_none_or(|(_, least)| lbn < least)
            {
                found = Some((index, lbn));
            }
        }
        found.map(|(index, _)| index)
    }

    fn oldest(&self) -> Option<usize> {
        let waiting = self.waiting.iter().enumerate();
        waiting
            .min_by_key(|(_, wait)| wait.arrival)
            .map(|(index, _)| index)
    }

    /// The command that came first has waited longer than the bound on age.
    fn is_overdue(&self, first_ns: u64, now_ns: u64) -> bool {
        let bound_ns = self.queue.age_bound_ns;
        bound_ns > 0 && first_ns.saturating_add(bound_ns) <= now_ns
    }

    /// Where a read may begin that read-ahead has come to, or is about to: it costs the arm nothing.
    pub(super) fn reading(&mut self, now_ns: u64) -> std::ops::Range<u64> {
        let Some(stream) = &mut self.stream else {
            return 0..0;
        };
        let end = stream.progress(&self.mechanics, now_ns);
        let start = self.segments.start(stream.segment);
        let end = match self.buffer.almost_hits {
            true => end + u64::from(self.buffer.forward_gap) + 1,
            false => end,
        };
        let found = start.saturating_add(self.buffer.hits_within);
        start..end.min(found.saturating_add(1)).min(stream.limit)
    }

    /// The cost of a command in the scheduler's estimate. It is worked out for all of them: to compare it with the best so far
    /// on the way would be a branch that no processor foresees.
    #[inline(always)]
    fn cost(&self, arm: Arm, now_ns: u64, spot: &Spot) -> u64 {
        let start_ns = now_ns.max(spot.ready_ns);
        let Spot {
            cylinder,
            surface,
            angle,
            op,
            ..
        } = *spot;
        let write = op == Op::Write;
        self.position_cost(arm, start_ns, (cylinder, surface, angle), write) + (start_ns - now_ns)
    }

    #[inline(always)]
    fn position_cost(
        &self,
        arm: Arm,
        now_ns: u64,
        (cylinder, surface, angle): (u32, u32, Angle),
        write: bool,
    ) -> u64 {
        if self.queue.scheduling == Scheduling::ShortestSeek {
            return u64::from(arm.cylinder.abs_diff(cylinder));
        }
        let mut seek_ns = self.mechanics.seek_ns(arm, cylinder, surface, write);
        // Only a head that moves may come late.
        if seek_ns > 0 {
            seek_ns += self.queue.settle_margin_ns;
        }
        let rotation = &self.mechanics.rotation;
        seek_ns + rotation.wait_ns(now_ns + seek_ns, angle)
    }

    /// The cached write that is next, and the cost of getting there; with a flush waiting, one of those that it waits for.
    pub(super) fn next_dirty(&self, now_ns: u64) -> Option<(usize, u64)> {
        let flushed = self
            .flushes
            .first()
            .and_then(|flush| self.best_dirty(now_ns, flush.before));
        flushed.or_else(|| self.best_dirty(now_ns, u64::MAX))
    }

    fn best_dirty(&self, now_ns: u64, last_order: u64) -> Option<(usize, u64)> {
        let arm = self.arm_at(now_ns);
        let mut best: Option<(usize, u64)> = None;
        for (index, write) in self.dirty.iter().enumerate() {
            if write.ready_ns > now_ns || write.order > last_order {
                continue;
            }
            let cost = match self.queue.scheduling {
                Scheduling::Fifo => write.order,
                _ => {
                    let Place {
                        cylinder,
                        surface,
                        angle,
                        ..
                    } = write.place;
                    self.position_cost(arm, now_ns, (cylinder, surface, angle), true)
                }
            };
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((index, cost));
            }
        }
        best
    }
}
