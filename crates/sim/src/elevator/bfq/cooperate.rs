//! Queues of threads that work at near addresses are merged, and taken apart again when they seek.

use super::super::levels::async_slot;
use super::clock::jiffies;
use super::queue::{Queue, Saved};
use super::raise::{BURST, LEAST_IDLE};
use super::{Bfq, class_of};
use crate::request::BlockRequest;

/// `BFQQ_CLOSE_THR`, blocks.
const CLOSE: u64 = 8 * 1024;
/// `bfq_merge_time_limit`.
const TIME_LIMIT: i64 = jiffies(100);
/// `bfq_activation_stable_merging`, `bfq_late_stable_merging`.
const STABLE: i64 = jiffies(600);

impl Bfq {
    /// `bfq_too_late_for_merging`.
    fn is_too_late(&self, queue: usize) -> bool {
        let of = &self.queues[queue];
        of.service_from_backlogged > 0 && of.first_io + TIME_LIMIT < self.clock.jiffies
    }

    /// `bfq_pos_tree_add_move`.
    pub(super) fn note_position(&mut self, queue: usize, requests: &[BlockRequest]) {
        if self.is_flash_with_queue {
            return;
        }
        self.forget_position(queue);
        if self.is_too_late(queue) || self.queues[queue].class == 2 {
            return;
        }
        let Some(next) = self.queues[queue].next_rq else {
            return;
        };
        let lbn = requests[next as usize].lbn;
        if let Err(at) = self.positions.binary_search_by_key(&lbn, |&(lbn, _)| lbn) {
            self.positions.insert(at, (lbn, queue));
            self.queues[queue].position = Some(lbn);
        }
    }

    pub(super) fn forget_position(&mut self, queue: usize) {
        if let Some(lbn) = self.queues[queue].position.take()
            && let Ok(at) = self.positions.binary_search_by_key(&lbn, |&(lbn, _)| lbn)
        {
            self.positions.remove(at);
        }
    }

    /// `bfqq_find_close`: exactly there, or the nearest on either side.
    fn find_close(&self, lbn: u64) -> Option<usize> {
        let at = match self.positions.binary_search_by_key(&lbn, |&(lbn, _)| lbn) {
            Ok(at) => return Some(self.positions[at].1),
            Err(at) => at,
        };
        let before = at.checked_sub(1).and_then(|at| self.positions.get(at));
        let near = |of: &&(u64, usize)| of.0.abs_diff(lbn) <= CLOSE;
        let after = self.positions.get(at).filter(near);
        before.filter(near).or(after).map(|&(_, queue)| queue)
    }

    /// `bfq_may_be_close_cooperator`.
    fn may_cooperate(&self, queue: usize, other: usize) -> bool {
        let (one, two) = (&self.queues[queue], &self.queues[other]);
        !self.is_too_late(other)
            && one.class != 2
            && one.class == two.class
            && !one.is_seeky()
            && !two.is_seeky()
            && one.sync
            && two.sync
    }

    /// `bfq_setup_merge`.
    fn plan_merge(&mut self, queue: usize, other: usize) -> Option<usize> {
        if self.queues[other].users == 0 {
            return None;
        }
        let mut heir = other;
        while let Some(next) = self.queues[heir].heir {
            if next == queue {
                return None;
            }
            heir = next;
        }
        let users = self.queues[queue].users;
        if users == 0 || self.queues[heir].users == 0 || heir == queue {
            return None;
        }
        self.queues[queue].heir = Some(heir);
        self.queues[heir].users += users;
        Some(heir)
    }

    /// `bfq_setup_cooperator`: the queue that a request or bio at this address should go to instead.
    pub(super) fn cooperator(&mut self, queue: usize, lbn: u64, context: usize) -> Option<usize> {
        if let Some(mut heir) = self.queues[queue].heir {
            while let Some(next) = self.queues[heir].heir {
                heir = next;
            }
            return Some(heir);
        }
        if self.is_flash_with_queue {
            return None;
        }
        let (now, of) = (self.clock.jiffies, &self.queues[queue]);
        if of.sync
            && !of.is_new
            && of.split_time + STABLE < now
            && of.creation + STABLE < now
            && let Some(stable) = self.contexts[context].stable_merge.take()
        {
            let has_users = of.users > 0 && self.queues[stable].users > 0;
            self.queues[stable].stable_users -= 1;
            let heir = if !self.idling_boosts(queue) && has_users {
                self.plan_merge(queue, stable)
            } else {
                None
            };
            self.release_if_unused(stable);
            if let Some(heir) = heir {
                self.contexts[context].stably_merged = true;
                if let Some(other) = self.queues[heir].context {
                    self.contexts[other].stably_merged = true;
                }
            }
            return heir;
        }
        if self.is_too_late(queue) || self.busy_queues() == 1 {
            return None;
        }
        if let Some(serving) = self.in_service
            && serving != queue
            && self.in_service_position.abs_diff(lbn) <= CLOSE
            && self.may_cooperate(queue, serving)
            && let Some(heir) = self.plan_merge(queue, serving)
        {
            return Some(heir);
        }
        let other = self.find_close(lbn).filter(|&other| other != queue)?;
        if self.may_cooperate(queue, other) {
            self.plan_merge(queue, other)
        } else {
            None
        }
    }

    /// `bfq_bfqq_save_state`.
    fn save(&mut self, queue: usize) {
        let of = &self.queues[queue];
        let Some(context) = of.context else {
            return;
        };
        let is_fresh = of.is_new && !of.in_large_burst && self.settings.low_latency;
        let saved = Saved {
            inject: of.inject,
            weight: of.entity.own_weight,
            think: of.think,
            short_think: of.short_think,
            io_bound: of.io_bound,
            io_start_ns: of.io_start_ns,
            idle_ns: of.idle_ns,
            raising: if is_fresh {
                self.fresh_raising()
            } else {
                of.raising
            },
        };
        let of_thread = &mut self.contexts[context];
        of_thread.saved = Some(saved);
        of_thread.was_in_burst = self.burst.queues.contains(&queue);
        of_thread.was_in_large_burst = of.in_large_burst;
    }

    /// `bfq_merge_bfqqs`, up to the queue that takes over.
    pub(super) fn merge_into(&mut self, context: usize, queue: usize, heir: usize) {
        let mut at = queue;
        while at != heir
            && let Some(next) = self.queues[at].heir
        {
            self.merge_one(context, at, next);
            at = next;
        }
    }

    fn merge_one(&mut self, context: usize, queue: usize, heir: usize) {
        self.save(queue);
        self.save(heir);
        if std::mem::take(&mut self.queues[queue].io_bound) {
            self.queues[heir].io_bound = true;
        }
        let waker = self.queues[queue].waker;
        if waker.is_some() && self.queues[heir].waker.is_none() && waker != Some(heir) {
            self.set_waker(heir, waker);
            self.queues[heir].maybe_waker = None;
        }
        if self.queues[queue].is_raised() {
            let raising = self.queues[queue].raising;
            let to = &mut self.queues[heir];
            if !to.is_raised() {
                to.raising = crate::elevator::bfq::queue::Raising {
                    service: to.raising.service,
                    ..raising
                };
                to.entity.prio_changed = true;
                self.raised_busy += u32::from(to.busy);
            }
            let from = &mut self.queues[queue];
            from.raising.factor = 1;
            from.entity.prio_changed = true;
            self.raised_busy -= u32::from(from.busy);
        }
        self.set_queue(context, Some(heir));
        self.queues[heir].coop = true;
        self.queues[heir].context = None;
        self.queues[queue].context = None;
        if self.last_made == Some(queue) {
            self.last_made = Some(heir);
        }
        self.leave(queue);
    }

    /// `bic_set_bfqq`, for the synchronous queue.
    fn set_queue(&mut self, context: usize, queue: Option<usize>) {
        let of = &mut self.contexts[context];
        let old = std::mem::replace(&mut of.sync_queue, queue);
        if queue.is_some() && of.stable_merge == queue {
            of.stable_merge = None;
            if let Some(queue) = queue {
                self.queues[queue].stable_users -= 1;
            }
        }
        if let Some(old) = old
            && self.queues[old].context == Some(context)
        {
            self.queues[old].context = None;
        }
    }

    /// `bfq_release_process_ref`: a thread uses the queue no more.
    fn leave(&mut self, queue: usize) {
        let of = &self.queues[queue];
        if of.busy && of.sort_list.is_empty() && self.in_service != Some(queue) {
            self.remove_busy(queue, false);
        }
        if self.last_made == Some(queue) {
            self.last_made = None;
        }
        self.queues[queue].users -= 1;
        self.release_if_unused(queue);
    }

    /// `bfq_put_cooperator`.
    fn leave_heirs(&mut self, queue: usize) {
        let mut next = self.queues[queue].heir;
        while let Some(heir) = next {
            next = self.queues[heir].heir;
            self.queues[heir].users -= 1;
            self.release_if_unused(heir);
        }
    }

    /// `bfq_exit_icq`: a thread has ended.
    pub(super) fn exit(&mut self, context: usize) {
        if let Some(stable) = self.contexts[context].stable_merge.take() {
            self.queues[stable].stable_users -= 1;
            self.release_if_unused(stable);
        }
        if let Some(queue) = self.contexts[context].sync_queue {
            self.set_queue(context, None);
            self.exit_queue(queue);
        }
        if let Some(queue) = self.contexts[context].async_queue.take() {
            self.exit_queue(queue);
        }
    }

    /// `bfq_exit_bfqq`.
    fn exit_queue(&mut self, queue: usize) {
        if self.in_service == Some(queue) {
            self.leave_service(queue, super::Reason::BudgetTimeout);
        }
        self.leave_heirs(queue);
        self.leave(queue);
    }

    /// `bfq_get_queue`: the queue of a thread that has none.
    fn make_queue(&mut self, request: &BlockRequest, is_split: bool) -> usize {
        let context = request.context as usize;
        if !request.sync
            && let Some(queue) = self.of_level[async_slot(request)]
        {
            self.queues[queue].users += 1;
            return queue;
        }
        let class = class_of(request);
        // bfq_set_next_ioprio_data: the idle class has the lowest level; bfq_ioprio_to_weight.
        let level = if class == 2 { 7 } else { request.level.min(7) };
        let weight = 10 * (8 - u64::from(level));
        let mut new = Queue::new(
            request.sync,
            class,
            weight,
            self.largest_budget(),
            self.clock,
        );
        // The kernel puts it a nanosecond into the future ("minus infinity"), to which it comes at its next look at the
        // clock. Without it the time since then is immense (`bfq_init_bfqq`, `bfq_update_io_thinktime`).
        new.think.last_end_ns += u64::from(self.stands_still);
        let queue = match self.unused.pop() {
            Some(queue) => {
                self.queues[queue] = new;
                queue
            }
            None => {
                self.queues.push(new);
                self.queues.len() - 1
            }
        };
        self.queues[queue].users = 1;
        if !request.sync {
            // One more for the elevator itself.
            self.queues[queue].users = 2;
            self.of_level[async_slot(request)] = Some(queue);
            return queue;
        }
        if is_split {
            return queue;
        }
        self.plan_stable_merge(queue, context)
    }

    /// `bfq_do_or_sched_stable_merge`.
    fn plan_stable_merge(&mut self, queue: usize, context: usize) -> usize {
        let made = self.queues[queue].creation;
        let alike = self.last_made.filter(|&last| {
            let (last, of) = (&self.queues[last], &self.queues[queue]);
            last.creation + STABLE >= made
                && last.entity.own_weight == of.entity.own_weight
                && last.class == of.class
        });
        let Some(last) = alike else {
            self.last_made = Some(queue);
            return queue;
        };
        if self.queues[last].creation + BURST < made {
            return queue;
        }
        if !self.is_flash_with_queue {
            self.queues[last].stable_users += 1;
            self.contexts[context].stable_merge = Some(last);
            return queue;
        }
        // bfq_do_early_stable_merge.
        let Some(heir) = self.plan_merge(queue, last) else {
            return queue;
        };
        if let Some(other) = self.queues[heir].context {
            self.contexts[other].stably_merged = true;
        }
        self.contexts[context].stably_merged = true;
        self.queues[queue].context = Some(context);
        self.merge_one(context, queue, heir);
        heir
    }

    /// `bfq_get_bfqq_handle_split`.
    fn find_or_make(&mut self, request: &BlockRequest, is_split: bool) -> (usize, bool) {
        let context = request.context as usize;
        if let Some(queue) = self.find_queue(request) {
            return (queue, false);
        }
        let queue = self.make_queue(request, is_split);
        if !request.sync {
            self.contexts[context].async_queue = Some(queue);
            return (queue, true);
        }
        self.set_queue(context, Some(queue));
        if is_split {
            let of = &self.contexts[context];
            if of.was_in_burst && self.burst.is_large || of.was_in_large_burst {
                self.queues[queue].in_large_burst = true;
            } else if of.was_in_burst {
                self.burst.queues.push(queue);
            }
            self.queues[queue].split_time = self.clock.jiffies;
        }
        (queue, true)
    }

    /// `bfq_init_rq`: the queue of a request that arrives.
    pub(super) fn queue_for(&mut self, request: &BlockRequest) -> usize {
        let context = request.context as usize;
        let (mut queue, is_new) = self.find_or_make(request, false);
        let mut splits = false;
        let mut existed = false;
        let of = &self.queues[queue];
        if !is_new && of.coop && of.splits && !self.contexts[context].stably_merged {
            let waker = self.waker_after_split(queue);
            if of.in_large_burst {
                self.contexts[context].was_in_large_burst = true;
            }
            splits = true;
            existed = self.split(context, queue);
            if !existed {
                queue = self.find_or_make(request, true).0;
                self.set_waker(queue, waker);
                self.queues[queue].maybe_waker = None;
            }
        }
        self.queues[queue].allocated += 1;
        self.contexts[context].requests += 1;
        if self.queues[queue].heir.is_none() && self.queues[queue].users == 1 {
            self.queues[queue].context = Some(context);
            if splits {
                self.resume(context, queue, existed);
            }
        }
        if self.queues[queue].is_new && (self.burst.size > 0 || self.busy_queues() == 0) {
            self.handle_burst(queue);
        }
        queue
    }

    /// `bfq_waker_bfqq`.
    fn waker_after_split(&self, queue: usize) -> Option<usize> {
        let waker = self.queues[queue].waker?;
        let mut heir = self.queues[queue].heir;
        while let Some(next) = heir {
            if next == waker {
                return (self.queues[waker].users != 1).then_some(waker);
            }
            heir = self.queues[next].heir;
        }
        (self.queues[waker].users > 0).then_some(waker)
    }

    /// `bfq_split_bfqq`; true if the thread keeps the queue, as the last one.
    fn split(&mut self, context: usize, queue: usize) -> bool {
        let of = &mut self.queues[queue];
        if of.users == 1 && of.heir.is_none() {
            of.coop = false;
            of.splits = false;
            return true;
        }
        self.set_queue(context, None);
        self.leave_heirs(queue);
        self.leave(queue);
        false
    }

    /// `bfq_bfqq_resume_state`.
    fn resume(&mut self, context: usize, queue: usize, existed: bool) {
        let Some(saved) = self.contexts[context].saved else {
            return;
        };
        let of = &mut self.queues[queue];
        let was_raised = of.is_raised();
        let busy = existed && of.busy;
        let factor = of.raising.factor;
        of.short_think = saved.short_think;
        of.io_bound = saved.io_bound;
        of.inject = saved.inject;
        of.entity.new_weight = saved.weight;
        of.think = saved.think;
        of.io_start_ns = saved.io_start_ns;
        of.idle_ns = saved.idle_ns;
        of.raising = saved.raising;
        if !self.settings.low_latency {
            of.raising.factor = factor;
        }
        self.resume_raising(queue);
        let of = &mut self.queues[queue];
        of.entity.prio_changed = true;
        if busy {
            self.raised_busy += u32::from(of.is_raised());
            self.raised_busy -= u32::from(was_raised);
        }
    }

    /// A queue that was split off lately keeps what it knew of its thread's pauses.
    pub(super) fn was_split_lately(&self, queue: usize) -> bool {
        self.queues[queue].split_time + LEAST_IDLE >= self.clock.jiffies
    }

    /// `bfq_put_queue`: a queue that no one uses may become another one's.
    pub(super) fn release_if_unused(&mut self, queue: usize) {
        let of = &self.queues[queue];
        if of.users > 0
            || of.allocated > 0
            || of.stable_users > 0
            || of.entity.counts
            || of.counted.is_some()
            || self.in_service == Some(queue)
            || of.is_released
        {
            return;
        }
        self.queues[queue].is_released = true;
        if let Some(at) = self.burst.queues.iter().position(|&of| of == queue) {
            self.burst.queues.remove(at);
            if self.queues[queue].context.is_some() && self.burst.size > 0 {
                self.burst.size -= 1;
            }
        }
        self.set_waker(queue, None);
        while let Some(woken) = self.queues[queue].first_woken {
            self.set_waker(woken, None);
        }
        if self.last_completed == Some(queue) {
            self.last_completed = None;
        }
        self.unused.push(queue);
    }
}
