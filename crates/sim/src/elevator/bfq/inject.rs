//! Requests of other queues while the one in service has none: of queues that it wakes or that wake it, and others as
//! far as they do not slow it down.

use super::clock::jiffies;
use super::{Bfq, FLASH_BLOCKS};
use crate::elevator::JIFFY_NS;
use crate::request::{BlockRequest, Id};

/// A request this soon after the end of another queue's may have waited for that.
const WOKEN_NS: u64 = 4 * JIFFY_NS;
/// Times this happens before it is believed, within so many `slice_idle`.
const WAKER_SEEN: u32 = 3;
const WAKER_SLICES: u64 = 128;

impl Bfq {
    /// `bfq_reset_inject_limit`.
    pub(super) fn reset_injection(&mut self, queue: usize) {
        self.waited_rq = None;
        let of = &mut self.queues[queue];
        of.inject.alone_ns = 0;
        of.inject.limit = u32::from(!of.short_think);
        of.inject.lowered = self.clock.jiffies;
    }

    /// The part of `bfq_add_request` for the only request of a thread.
    pub(super) fn note_lone_request(&mut self, queue: usize) {
        self.look_for_waker(queue);
        let now = self.clock.jiffies;
        if self.queues[queue].inject.lowered + jiffies(1000) <= now {
            self.reset_injection(queue);
        }
        let inject = &self.queues[queue].inject;
        if self.in_service == Some(queue)
            && (self.in_driver == 0 || inject.alone_ns > 0 && self.injected && self.in_driver > 0)
            && inject.lowered + jiffies(10) <= now
        {
            self.occupied_ns = self.clock.ns;
            self.wait_dispatch = true;
            if self.in_driver == 0 {
                self.injected = false;
            }
        }
    }

    /// `bfq_check_waker`.
    fn look_for_waker(&mut self, queue: usize) {
        let now_ns = self.clock.ns;
        let Some(last) = self.last_completed.filter(|&last| last != queue) else {
            return;
        };
        let of = &mut self.queues[queue];
        if of.short_think || now_ns - self.last_completion_ns >= WOKEN_NS {
            return;
        }
        let until_ns = of.waker_since_ns + WAKER_SLICES * self.settings.slice_idle_ns;
        if of.maybe_waker != Some(last) || now_ns > until_ns {
            of.maybe_waker = Some(last);
            of.waker_seen = 1;
            of.waker_since_ns = now_ns;
        } else {
            of.waker_seen += 1;
        }
        if of.waker_seen == WAKER_SEEN {
            of.maybe_waker = None;
            self.set_waker(queue, Some(last));
        }
    }

    pub(super) fn set_waker(&mut self, queue: usize, waker: Option<usize>) {
        let of = &mut self.queues[queue];
        let (next, previous) = (of.next_woken.take(), of.previous_woken.take());
        if let Some(old) = std::mem::replace(&mut of.waker, waker) {
            match previous {
                Some(previous) => self.queues[previous].next_woken = next,
                None => self.queues[old].first_woken = next,
            }
            if let Some(next) = next {
                self.queues[next].previous_woken = previous;
            }
        }
        if let Some(waker) = waker {
            let next = self.queues[waker].first_woken.replace(queue);
            self.queues[queue].next_woken = next;
            if let Some(next) = next {
                self.queues[next].previous_woken = Some(queue);
            }
        }
    }

    /// True if a queue could be served now: it is busy, and its budget holds its next request.
    fn can_serve(&self, queue: usize, requests: &[BlockRequest]) -> bool {
        let of = &self.queues[queue];
        of.busy && self.fits(queue, requests)
    }

    fn fits(&self, queue: usize, requests: &[BlockRequest]) -> bool {
        let left = self.queues[queue].budget_left();
        let next = self.queues[queue].next_rq;
        next.is_some_and(|next| self.charge(next, queue, requests) <= left)
    }

    /// The queue that is served in place of the one in service, which has no request and is waited for.
    pub(super) fn choose_instead(
        &mut self,
        queue: usize,
        requests: &[BlockRequest],
    ) -> Option<usize> {
        let of = &self.queues[queue];
        if let Some(context) = of.context
            && let Some(own) = self.contexts[context].async_queue
            && self.can_serve(own, requests)
            && self.queues[own]
                .next_rq
                .is_some_and(|next| self.of_request[next as usize].context == context)
        {
            return Some(own);
        }
        let (waker, woken) = (of.waker, of.first_woken);
        if let Some(waker) = waker.filter(|&waker| self.can_serve(waker, requests)) {
            return Some(waker);
        }
        if let Some(woken) = woken.filter(|&woken| self.can_serve(woken, requests)) {
            return Some(woken);
        }
        let others_are_fine = !of.is_raised() || self.raised_busy > 1 || !of.short_think;
        if !self.idling_boosts(queue) && others_are_fine {
            return self.choose_injected(queue, requests);
        }
        None
    }

    /// `bfq_choose_bfqq_for_injection`. Its chance after a pause of `slice_idle` jiffies never comes: that is
    /// nanoseconds.
    fn choose_injected(&mut self, serving: usize, requests: &[BlockRequest]) -> Option<usize> {
        let of = &self.queues[serving];
        let limit = of.inject.limit;
        if self.in_driver >= limit {
            return None;
        }
        let always = !of.is_raised() || !of.short_think;
        let found = self.active.iter().rev().copied().find(|&queue| {
            let of = &self.queues[queue];
            let Some(next) = of.next_rq else {
                return false;
            };
            let is_long = self.flash && requests[next as usize].blocks >= FLASH_BLOCKS;
            let limit = if is_long { limit.min(1) } else { limit };
            (always || of.is_raised()) && self.fits(queue, requests) && self.in_driver < limit
        });
        self.injected |= found.is_some();
        found
    }

    /// `bfq_update_inject_limit`.
    pub(super) fn learn_injection(&mut self, queue: usize) {
        let took_ns = self.clock.ns - self.occupied_ns;
        let inject = &mut self.queues[queue].inject;
        let before = inject.limit;
        if inject.alone_ns > 0 && self.injected {
            let most_ns = (inject.alone_ns * 3) >> 1;
            if took_ns >= most_ns && before > 0 {
                inject.limit -= 1;
                inject.lowered = self.clock.jiffies;
            } else if took_ns < most_ns && before <= self.most_in_driver {
                inject.limit += 1;
            }
        }
        if inject.alone_ns == 0 && self.in_driver == 1 || took_ns < inject.alone_ns {
            if inject.alone_ns == 0 {
                inject.limit = before.max(1);
            }
            inject.alone_ns = took_ns;
        } else if !self.injected && self.in_driver == 1 {
            inject.alone_ns = took_ns;
        }
        self.waited_rq = None;
        self.injected = false;
    }

    pub(super) fn is_waited_for(&self, id: Id) -> bool {
        self.waited_rq == Some(id)
    }
}
