//! A number of requests or bytes that several workers use up together, exactly.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use spindle_measure::EndedBy;

use crate::shared::{Shared, StreamShared};

/// The rest of a budget that all workers share.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicI64,
    /// Workers that draw from it: the chunk shrinks with the rest, so that all end together.
    workers: i64,
    largest_chunk: i64,
}

/// A worker's passes over its part of the region.
#[derive(Debug)]
pub(crate) struct PassBudget {
    pub(crate) budget: Budget,
    /// The reason that is recorded at their end: requests, where all have the same size, or bytes.
    pub(crate) ended_by: EndedBy,
}

/// One worker's part: taken in chunks, so that workers rarely meet at the shared counter.
#[derive(Debug, Default)]
pub(crate) struct Share {
    held: i64,
    chunk: i64,
    /// Time of the last chunk.
    taken_ns: u64,
}

/// A chunk is what a worker used up in this time: one that is slow keeps nothing that the others wait for at the end. Who
/// issues nothing for longer gives back what it holds.
pub(crate) const CHUNK_NS: u64 = 1_000_000;

impl Budget {
    pub(crate) fn new(total: u64, workers: u32, largest_chunk: u64) -> Budget {
        Budget {
            left: AtomicI64::new(i64::try_from(total).unwrap_or(i64::MAX)),
            workers: i64::from(workers.max(1)),
            largest_chunk: largest_chunk as i64,
        }
    }

    /// True if the shared rest is used up (workers may still have parts of their own).
    pub(crate) fn is_empty(&self) -> bool {
        self.left.load(Relaxed) <= 0
    }
}

impl Share {
    /// Takes `cost`; false if nothing at all is left. The last taker may get more than was left: the last
    /// request of a byte count is issued whole.
    #[inline]
    pub(crate) fn take(&mut self, budget: &Budget, cost: i64, now: u64) -> bool {
        if self.held < cost {
            let wanted = self.wanted(budget, cost, now);
            let before = budget.left.fetch_sub(wanted, Relaxed);
            let granted = before.clamp(0, wanted);
            if granted < wanted {
                // Other workers must not see a negative rest: a later one would pay for it.
                budget.left.fetch_add(wanted - granted, Relaxed);
            }
            self.held += granted;
            if self.held <= 0 {
                return false;
            }
        }
        self.held -= cost;
        true
    }

    /// The next chunk.
    fn wanted(&mut self, budget: &Budget, cost: i64, now: u64) -> i64 {
        let since = now.saturating_sub(self.taken_ns).max(1);
        self.taken_ns = now;
        let used = u128::from(self.chunk.unsigned_abs()) * u128::from(CHUNK_NS) / u128::from(since);
        let grown = i64::try_from(used).map_or(i64::MAX, |used| used.min(2 * self.chunk));
        self.chunk = (budget.left.load(Relaxed) / (budget.workers * 8))
            .min(budget.largest_chunk)
            .min(grown)
            .max(cost);
        // For whole requests, if all cost the same: each thread with a part of one would issue one too many.
        (self.chunk - self.chunk % cost.max(1)).max(cost - self.held)
    }

    /// Takes back what was paid for a request that does not count.
    pub(crate) fn refund(&mut self, cost: i64) {
        self.held += cost;
    }

    /// Leaves the part to the others.
    pub(crate) fn give_back(&mut self, budget: &Budget) {
        if self.held > 0 {
            budget.left.fetch_add(self.held, Relaxed);
            self.held = 0;
        }
    }

    /// True if this worker can take nothing any more.
    pub(crate) fn is_spent(&self, budget: &Budget) -> bool {
        self.held <= 0 && budget.is_empty()
    }
}

/// The budgets that bound one thread, with its share of each.
#[derive(Debug)]
pub(crate) struct Purse<'a> {
    /// With the reason that their exhaustion gives, and true if it is the whole run's.
    budgets: Vec<(&'a Budget, Share, bool, EndedBy)>,
}

impl<'a> Purse<'a> {
    pub(crate) fn new(
        run: &'a Shared,
        stream: &'a StreamShared,
        passes: Option<&'a PassBudget>,
    ) -> Purse<'a> {
        let passes = passes.map(|passes| (&passes.budget, false, passes.ended_by.clone()));
        let bounds = [
            (stream.requests.as_ref(), false, EndedBy::Requests),
            (stream.bytes.as_ref(), false, EndedBy::Bytes),
            (run.requests.as_ref(), true, EndedBy::Requests),
            (run.bytes.as_ref(), true, EndedBy::Bytes),
        ];
        let bounds = bounds.map(|(budget, of_run, reason)| Some((budget?, of_run, reason)));
        let given = std::iter::once(passes).chain(bounds).flatten();
        let budgets =
            given.map(|(budget, of_run, reason)| (budget, Share::default(), of_run, reason));
        Purse {
            budgets: budgets.collect(),
        }
    }

    pub(crate) fn is_limited(&self) -> bool {
        !self.budgets.is_empty()
    }

    /// Takes what a request of `len` bytes costs from every budget; false: one is used up, and nothing is taken.
    #[inline]
    pub(crate) fn pay(&mut self, len: u32, now: u64) -> bool {
        for index in 0..self.budgets.len() {
            let (budget, share, _, reason) = &mut self.budgets[index];
            if !share.take(budget, cost(reason, 1, i64::from(len)), now) {
                for (_, share, _, reason) in &mut self.budgets[..index] {
                    share.refund(cost(reason, 1, i64::from(len)));
                }
                return false;
            }
        }
        true
    }

    /// Takes back the cost of requests that ended in the ramp.
    pub(crate) fn refund(&mut self, requests: i64, bytes: i64) {
        for (_, share, _, reason) in &mut self.budgets {
            share.refund(cost(reason, requests, bytes));
        }
    }

    /// Leaves to the others what this thread holds.
    pub(crate) fn give_back(&mut self) {
        for (budget, share, ..) in &mut self.budgets {
            share.give_back(budget);
        }
    }

    /// The first budget that is used up for this thread: true if it is the whole run's, and the reason.
    pub(crate) fn spent(&self) -> Option<(bool, EndedBy)> {
        let mut spent = self
            .budgets
            .iter()
            .filter(|(budget, share, ..)| share.is_spent(budget));
        spent
            .next()
            .map(|(_, _, of_run, reason)| (*of_run, reason.clone()))
    }
}

/// Cost of a request in a budget of requests or of bytes.
fn cost(reason: &EndedBy, requests: i64, bytes: i64) -> i64 {
    if *reason == EndedBy::Requests {
        requests
    } else {
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_workers_take_exactly_what_there_is() {
        let budget = Budget::new(100_003, 8, 64);
        let taken: u64 = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let mut share = Share::default();
                        let mut taken = 0;
                        while share.take(&budget, 1, taken) {
                            taken += 1;
                        }
                        taken
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("worker"))
                .sum()
        });
        assert_eq!(taken, 100_003);
    }

    /// One takes a request each microsecond, the other each 10 ms: the fast one ends when the slow one does.
    #[test]
    fn a_slow_worker_keeps_nothing_from_a_fast_one() {
        let budget = Budget::new(100_000, 2, 256);
        let (mut fast, mut slow) = (Share::default(), Share::default());
        let mut now = 0;
        while !budget.is_empty() {
            if now % 10_000_000 == 0 {
                assert!(slow.take(&budget, 1, now));
                assert_eq!(slow.held, 0);
            }
            fast.take(&budget, 1, now);
            now += 1_000;
        }
    }

    #[test]
    fn a_fast_worker_rarely_goes_to_the_shared_rest() {
        let budget = Budget::new(1_000_000, 1, 256);
        let mut share = Share::default();
        let mut chunks = 0;
        for now in 0..100_000 {
            chunks += u32::from(share.held == 0);
            assert!(share.take(&budget, 1, 1_000 * now));
        }
        assert!(chunks < 500, "{chunks}");
    }

    #[test]
    fn the_last_request_of_a_byte_count_is_whole() {
        let budget = Budget::new(10_000, 1, 0);
        let mut share = Share::default();
        let mut requests = 0;
        while share.take(&budget, 4096, 0) {
            requests += 1;
        }
        assert_eq!(requests, 3);
        assert!(share.is_spent(&budget));
    }
}
