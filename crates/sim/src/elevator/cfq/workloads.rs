//! `cfq` since 2.6.33: the queues of a class are in three trees. Threads that seek share one, and are not waited for one by
//! one: only once the tree is empty.
//!
//! Linux 3.10 `block/cfq-iosched.c`: `choose_wl_class_and_type`, `cfq_select_queue`, `cfq_should_idle`, `cfq_may_dispatch`,
//! `cfq_update_idle_window`, `cfq_should_preempt`, `cfq_scaled_cfqq_slice`. What 3.10 has and 2.6.32 has not is taken to have
//! come in 2.6.33. Left out: what [`tree`](super::tree) leaves out, and groups: all threads are in one.

use super::tree::{ASYNC, Cfq, SYNC};
use super::{MIN_THINK, Thread, is_valid, jiffies};
use crate::request::{BlockRequest, Id};

/// `cfq_target_latency`.
const TARGET_LATENCY: i64 = 300;
/// `CFQQ_SEEK_THR`, blocks.
const FAR: u64 = 800;
/// `CFQQ_CLOSE_THR`, blocks.
const NEAR: u64 = 8 * 1024;
/// `CFQQ_SECT_THR_NONROT`, blocks: on flash, shorter requests count as far.
const SHORT: u32 = 64;
/// Far ones of the last 32 requests from which a queue counts as seeky (`CFQQ_SEEKY`).
const MANY_FAR: u32 = 4;
/// Requests that wait from which a queue counts as deep.
const DEEP: u32 = 4;

/// The tree of a queue within its class (`enum wl_type_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    Async,
    /// Synchronous, and not waited for.
    #[default]
    NoIdle,
    Sync,
}

/// The tree that is served, and until when.
#[derive(Default)]
pub(super) struct Workload {
    kind: Kind,
    class: u8,
    ends: i64,
    /// How long the threads of the two kinds of synchronous trees think, of all classes.
    thinking: [Option<Thread>; 2],
}

impl Cfq {
    fn class(&self, queue: usize) -> u8 {
        let set = self.sets.of(queue);
        match (set.is_realtime(), set.is_idle()) {
            (true, _) => 0,
            (_, false) => 1,
            (_, true) => 2,
        }
    }

    /// `cfqq_type`.
    fn kind(&self, queue: usize) -> Kind {
        match (self.sets.of(queue).sync, self.queues[queue].idle_window) {
            (false, _) => Kind::Async,
            (true, false) => Kind::NoIdle,
            (true, true) => Kind::Sync,
        }
    }

    /// Queues of a class, of one kind or of all, with the active one, which leaves only when its slice ends.
    fn count(&self, class: u8, kind: Option<Kind>) -> i64 {
        let counts = |&queue: &usize| {
            self.class(queue) == class && kind.is_none_or(|kind| kind == self.kind(queue))
        };
        let empty = self.active.filter(|&active| !self.queues[active].on_rr);
        let waiting = self.service.iter().filter(|&queue| counts(queue)).count();
        waiting as i64 + i64::from(empty.is_some_and(|queue| counts(&queue)))
    }

    /// The first queue of a tree, that of `queue`.
    pub(super) fn first_of_tree(&self, queue: usize) -> Option<usize> {
        self.first_of(self.class(queue), self.kind(queue))
    }

    fn first_of(&self, class: u8, kind: Kind) -> Option<usize> {
        let mut queues = self.service.iter().copied();
        queues.find(|&of| self.class(of) == class && self.kind(of) == kind)
    }

    fn is_seeky(&self, queue: usize) -> bool {
        self.queues[queue].seek_history.count_ones() > MANY_FAR
    }

    /// The queue is waited for: by itself, or as the last of its tree.
    pub(super) fn should_idle(&self, queue: usize) -> bool {
        let set = self.sets.of(queue);
        if self.slices.idle == 0 || set.is_idle() {
            return false;
        }
        if self.queues[queue].idle_window && !(self.flash && self.tags) {
            return true;
        }
        let kind = self.kind(queue);
        let thinking = self.workload.thinking[usize::from(kind == Kind::Sync)];
        let thinks_long =
            thinking.is_some_and(|of| is_valid(of.samples as u64) && of.mean > self.slices.idle);
        set.sync && self.count(self.class(queue), Some(kind)) == 1 && !thinks_long
    }

    /// `cfq_scaled_cfqq_slice`; `cfq_prio_slice` before 2.6.33.
    pub(super) fn slice_of(&self, queue: usize) -> i64 {
        let set = self.sets.of(queue);
        let slice = self.slices.at(set.sync, set.level);
        if !self.settings.has_workloads() || !self.settings.low_latency {
            return slice;
        }
        // The kernel takes an average of the number of queues.
        let sync = self.slices.synchronous;
        let expected = sync * self.count(self.class(queue), None);
        if expected <= TARGET_LATENCY {
            return slice;
        }
        let low = slice.min(2 * self.slices.idle * slice / sync.max(1));
        low.max(slice * TARGET_LATENCY / expected)
    }

    /// `cfq_select_queue`.
    pub(super) fn select_of_workload(&mut self, now: i64) -> Option<usize> {
        if let Some(active) = self.active {
            let of = &self.queues[active];
            if !of.slice_used(now) || of.must_dispatch {
                if !self.sets.of(active).is_empty() {
                    return Some(active);
                }
                if self.timer.is_some() {
                    return None;
                }
                let is_fast = of.slice_new || of.slice_end - now > now - of.slice_start;
                if is_fast && of.idle_window && self.is_seeky(active) {
                    let of = &mut self.queues[active];
                    (of.deep, of.idle_window) = (false, false);
                }
                if self.queues[active].dispatched > 0 && self.should_idle(active) {
                    return None;
                }
            }
            self.expire(now, false);
        }
        self.activate_first(now)
    }

    /// `choose_wl_class_and_type`, `cfq_get_next_queue`.
    pub(super) fn first_of_workload(&mut self, now: i64) -> Option<usize> {
        let first = *self.service.first()?;
        let class = self.class(first);
        let Workload {
            kind,
            class: served,
            ends,
            ..
        } = self.workload;
        if served == class
            && now <= ends
            && let Some(next) = self.first_of(class, kind)
        {
            return Some(next);
        }
        // Within a class the first of all has the lowest key.
        let kind = self.kind(first);
        let (of_all, of_this) = (self.count(class, None), self.count(class, Some(kind)));
        let mut slice = TARGET_LATENCY * of_this / of_all.max(1);
        if kind == Kind::Async {
            slice = slice * self.slices.asynchronous / self.slices.synchronous.max(1);
        } else {
            slice = slice.max(2 * self.slices.idle);
        }
        let workload = &mut self.workload;
        (workload.kind, workload.class) = (kind, class);
        workload.ends = now + slice.max(MIN_THINK);
        Some(first)
    }

    /// `cfq_may_dispatch`.
    pub(super) fn workload_dispatches(&self, now: i64, queue: usize) -> bool {
        let (of, set) = (&self.queues[queue], self.sets.of(queue));
        if self.in_driver[ASYNC] > 0 && self.should_idle(queue) {
            return false;
        }
        if self.in_driver[SYNC] > 0 && !set.sync {
            return false;
        }
        let quantum = self.settings.quantum;
        let mut most = if set.is_idle() {
            1
        } else {
            (quantum / 2).max(1)
        };
        if of.dispatched >= most {
            if set.is_idle() {
                return false;
            }
            let busy_sync = (self.service.iter()).filter(|&&queue| self.sets.of(queue).sync);
            let is_only_sync = set.sync && busy_sync.count() == 1;
            let is_alone = self.service.len() == 1;
            let used_soon =
                of.slice_new || now + self.slices.idle * i64::from(of.dispatched) > of.slice_end;
            if !is_alone && used_soon && !is_only_sync {
                return false;
            }
            most = if is_alone || is_only_sync {
                u32::MAX
            } else {
                quantum
            };
        }
        of.dispatched < most.min(self.most_after_sync(now, queue))
    }

    /// `cfq_update_io_seektime`, `cfq_update_idle_window`. `think`: samples, and their mean.
    pub(super) fn learn_workload(
        &mut self,
        now: i64,
        queue: usize,
        request: &BlockRequest,
        (think_samples, think_mean): (u64, i64),
    ) {
        let set = self.sets.of(queue);
        let (is_sync, is_idle, is_deep) = (set.sync, set.is_idle(), set.len >= DEEP);
        if is_sync {
            let tree = usize::from(self.kind(queue) == Kind::Sync);
            if let Some(of) = &mut self.workload.thinking[tree] {
                of.thought(now, self.slices.idle);
            }
        }
        let flash = self.flash;
        let of = &mut self.queues[queue];
        let distance = match of.seeks.last_end {
            0 => 0,
            last => last.abs_diff(request.lbn),
        };
        of.seeks.last_end = request.end();
        let is_far = match flash {
            true => request.blocks < SHORT,
            false => distance > FAR,
        };
        of.seek_history = of.seek_history << 1 | u32::from(is_far);
        if !is_sync || is_idle {
            return;
        }
        of.deep |= is_deep;
        let seeks = !of.deep && of.seek_history.count_ones() > MANY_FAR;
        if self.slices.idle == 0 || seeks {
            of.idle_window = false;
        } else if is_valid(think_samples) {
            of.idle_window = think_mean <= self.slices.idle;
        }
    }

    /// `cfq_should_preempt`.
    pub(super) fn workload_preempts(
        &self,
        now: i64,
        active: usize,
        queue: usize,
        request: &BlockRequest,
    ) -> bool {
        let (class, new_class) = (self.class(active), self.class(queue));
        let served = self.sets.of(active);
        if new_class == 2 || class == 2 {
            return new_class != 2;
        }
        if class < new_class {
            return false;
        }
        if request.sync && !served.sync || self.queues[active].slice_used(now) {
            return true;
        }
        let seeks = self.workload.kind == Kind::NoIdle && self.kind(queue) == Kind::NoIdle;
        if seeks && served.is_empty() && self.count(new_class, Some(Kind::NoIdle)) == 2 {
            return true;
        }
        if new_class < class || served.is_empty() && !self.should_idle(active) {
            return true;
        }
        self.active_thread.is_some()
            && self.queues[active].wait_request
            && request.lbn.abs_diff(self.sets.last_position()) <= NEAR
    }

    /// A synchronous request is done.
    pub(super) fn workload_completed(&mut self, now_ns: u64, queue: usize, id: Id) {
        let now = jiffies(now_ns);
        let tree = usize::from(self.kind(queue) == Kind::Sync);
        let thinking = &mut self.workload.thinking[tree];
        thinking.get_or_insert(Thread::new(now)).last_end = now;
        if now_ns >= self.sets.expires_ns(id) {
            self.last_sync_end = now;
        }
    }
}
