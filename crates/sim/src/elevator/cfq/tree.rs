//! `cfq` since 2.6.22: the queues are in a tree, by the time of their service.
//!
//! Linux 2.6.24, 2.6.29 and 2.6.32 `block/cfq-iosched.c`: `cfq_select_queue`, `cfq_may_dispatch`,
//! `cfq_dispatch_requests`, `cfq_service_tree_add`, `cfq_arm_slice_timer`, `cfq_should_preempt`,
//! `cfq_update_idle_window`, `cfq_completed_request`. What 2.6.32 has and 2.6.29 has not is taken to have come in 2.6.30;
//! 2.6.22 and 2.6.23 have the rules of 2.6.24. [`workloads`](super::workloads) has those of later kernels. Left out: merging
//! the queues of threads that work close together (`cfq_close_cooperator`), metadata requests and priority boosts.

use super::super::Elevator;
use super::sets::Sets;
use super::workloads::Workload;
use super::{
    IDLE_GRACE, MIN_THINK, PAGE_BLOCKS, SEEK_THRESHOLD, Seeks, Settings, Slices, TAGS_MIN, Thread,
    earlier, is_valid, jiffies,
};
use crate::request::{BlockRequest, Id};

pub(super) const ASYNC: usize = 0;
pub(super) const SYNC: usize = 1;
/// `CFQ_IDLE_DELAY`.
const IDLE_DELAY: i64 = 200;
const HZ: i64 = 1000;

pub(super) struct Cfq {
    pub(super) settings: Settings,
    pub(super) slices: Slices,
    pub(super) flash: bool,
    pub(super) sets: Sets,
    /// By number of the set.
    pub(super) queues: Vec<Queue>,
    threads: Vec<Thread>,
    /// Queues with requests, in the order of service.
    pub(super) service: Vec<usize>,
    pub(super) active: Option<usize>,
    pub(super) active_thread: Option<u32>,
    pub(super) workload: Workload,
    pub(super) in_driver: [u32; 2],
    sync_flight: u32,
    pub(super) tags: bool,
    tags_samples: u32,
    in_driver_peak: u32,
    /// End of the last synchronous request; with workloads, of the last that came late.
    pub(super) last_sync_end: i64,
    /// End of the last request of a queue that is not idle.
    last_end: i64,
    pub(super) timer: Option<i64>,
    class_timer: Option<i64>,
    starts: bool,
    /// A queue from which so many more requests go without another look.
    group: Option<(usize, u32)>,
}

/// `struct cfq_queue`, but for its requests.
pub(super) struct Queue {
    pub(super) on_rr: bool,
    key: i64,
    /// Begin of the slice, and its end.
    pub(super) slice_start: i64,
    pub(super) slice_end: i64,
    slice_resid: i64,
    slice_dispatch: u32,
    pub(super) dispatched: u32,
    pub(super) slice_new: bool,
    pub(super) wait_request: bool,
    pub(super) must_dispatch: bool,
    fifo_expire: bool,
    pub(super) idle_window: bool,
    pub(super) seeks: Seeks,
    /// A bit for each of its last requests: it was far from the one before.
    pub(super) seek_history: u32,
    /// It has had several requests at a time.
    pub(super) deep: bool,
}

impl Queue {
    pub(super) fn slice_used(&self, now: i64) -> bool {
        !self.slice_new && now >= self.slice_end
    }
}

impl Cfq {
    /// As of [`super::build`].
    pub(super) fn new(settings: Settings, flash: bool, depth: u32) -> Cfq {
        Cfq {
            slices: settings.slices(),
            flash,
            sets: Sets::new(&settings),
            queues: Vec::new(),
            threads: Vec::new(),
            service: Vec::new(),
            active: None,
            active_thread: None,
            workload: Workload::default(),
            in_driver: [0; 2],
            sync_flight: 0,
            tags: !settings.finds_tags_once() || depth >= TAGS_MIN,
            tags_samples: 0,
            in_driver_peak: 0,
            last_sync_end: if settings.has_workloads() { -HZ } else { 0 },
            last_end: -IDLE_GRACE,
            timer: None,
            class_timer: None,
            starts: false,
            group: None,
            settings,
        }
    }

    /// The queue of a request, made if there is none.
    fn queue_of(&mut self, request: &BlockRequest) -> usize {
        let queue = self.sets.find_or_add(request);
        if queue == self.queues.len() {
            self.queues.push(Queue {
                on_rr: false,
                key: 0,
                slice_start: 0,
                slice_end: 0,
                slice_resid: 0,
                slice_dispatch: 0,
                dispatched: 0,
                slice_new: false,
                wait_request: false,
                must_dispatch: false,
                fifo_expire: false,
                idle_window: request.sync && !self.sets.of(queue).is_idle(),
                seeks: Seeks::default(),
                seek_history: 0,
                deep: false,
            });
            // Room for all at once: nothing is allocated later.
            self.service.reserve(self.queues.len());
        }
        queue
    }

    fn in_driver(&self) -> u32 {
        self.in_driver[SYNC] + self.in_driver[ASYNC]
    }

    /// `cfq_service_tree_add`.
    fn add_to_service(&mut self, now: i64, queue: usize, front: bool) {
        let busy = self.service.len() as i64;
        self.service.retain(|&other| other != queue);
        let (of, set) = (&self.queues[queue], self.sets.of(queue));
        let key = if set.is_idle() {
            IDLE_DELAY
                + self
                    .service
                    .last()
                    .map_or(now, |&last| self.queues[last].key)
        } else if front && self.settings.adds_what_was_left() {
            0
        } else if front {
            let first = match self.settings.has_workloads() {
                true => self.first_of_tree(queue),
                false => self.service.first().copied(),
            };
            first.map_or(now, |first| self.queues[first].key) - HZ
        } else {
            // busy_queues counts this one, which is on the list already when it is sorted anew.
            let busy = busy.max(self.service.len() as i64 + 1);
            let offset =
                (busy - 1) * (self.slices.at(true, 0) - self.slices.at(set.sync, set.level));
            let resid = match self.settings.adds_what_was_left() {
                true => of.slice_resid,
                false => -of.slice_resid,
            };
            now + offset + resid
        };
        let of = &mut self.queues[queue];
        if !front && !self.sets.of(queue).is_idle() {
            of.slice_resid = 0;
        }
        of.key = key;
        let rank = |queue: usize| {
            let set = self.sets.of(queue);
            (!set.is_realtime(), set.is_idle(), self.queues[queue].key)
        };
        let mine = rank(queue);
        let at = self.service.partition_point(|&other| rank(other) <= mine);
        self.service.insert(at, queue);
    }

    /// `__cfq_slice_expired`.
    pub(super) fn expire(&mut self, now: i64, timed_out: bool) {
        let Some(active) = self.active.take() else {
            return;
        };
        let of = &mut self.queues[active];
        if of.wait_request {
            self.timer = None;
        }
        of.wait_request = false;
        if timed_out && !of.slice_new {
            of.slice_resid = of.slice_end - now;
        } else if timed_out && self.settings.has_workloads() {
            self.queues[active].slice_resid = self.slice_of(active);
        }
        let of = &self.queues[active];
        if of.on_rr {
            self.add_to_service(now, active, false);
        }
        self.active_thread = None;
    }

    /// `cfq_set_active_queue`.
    pub(super) fn activate_first(&mut self, now: i64) -> Option<usize> {
        self.active = match self.settings.has_workloads() {
            true => self.first_of_workload(now),
            false => self.service.first().copied(),
        };
        let is_idle = self
            .active
            .is_some_and(|first| self.sets.of(first).is_idle());
        let grace_ends = self.last_end + IDLE_GRACE;
        self.class_timer = None;
        if is_idle && self.settings.has_idle_grace() && now < grace_ends {
            self.class_timer = Some(grace_ends);
            self.active = None;
        }
        if let Some(active) = self.active {
            let of = &mut self.queues[active];
            of.slice_end = 0;
            of.slice_dispatch = 0;
            of.wait_request = false;
            of.must_dispatch = false;
            of.fifo_expire = false;
            of.slice_new = true;
            self.timer = None;
        }
        self.active
    }

    /// `cfq_select_queue`.
    fn select(&mut self, now: i64) -> Option<usize> {
        if self.settings.has_workloads() {
            return self.select_of_workload(now);
        }
        if let Some(active) = self.active {
            let of = &self.queues[active];
            let must = of.must_dispatch && self.settings.weighs_think_times();
            if !of.slice_used(now) || must {
                if !self.sets.of(active).is_empty() {
                    return Some(active);
                }
                if self.timer.is_some() || (of.dispatched > 0 && of.idle_window) {
                    return None;
                }
            }
            self.expire(now, false);
        }
        self.activate_first(now)
    }

    /// The queue of the next request, and how many more may follow it without another look.
    fn look(&mut self, now: i64) -> Option<(usize, u32)> {
        if let Some((queue, left)) = self.group.take()
            && !self.sets.of(queue).is_empty()
        {
            return Some((queue, left - 1));
        }
        let queue = self.select(now)?;
        let may_dispatch = match self.settings.has_workloads() {
            true => self.workload_dispatches(now, queue),
            false => self.may_dispatch(now, queue),
        };
        if !may_dispatch {
            return None;
        }
        if !self.settings.sends_together() {
            return Some((queue, 0));
        }
        let of = &mut self.queues[queue];
        of.must_dispatch = false;
        of.wait_request = false;
        self.timer = None;
        let more = match self.sets.of(queue).is_idle() {
            true => 0,
            false => self.settings.quantum - 1,
        };
        Some((queue, more))
    }

    /// `cfq_may_dispatch`.
    fn may_dispatch(&self, now: i64, queue: usize) -> bool {
        let (of, set) = (&self.queues[queue], self.sets.of(queue));
        if of.idle_window && self.in_driver[ASYNC] > 0 && self.settings.weighs_think_times() {
            return false;
        }
        if self.sync_flight > 0 && !set.sync {
            return false;
        }
        let mut most = if set.is_idle() {
            1
        } else {
            self.settings.quantum
        };
        if of.dispatched >= most {
            if set.is_idle() || self.service.len() > 1 {
                return false;
            }
            most *= 4;
        }
        of.dispatched < most.min(self.most_after_sync(now, queue))
    }

    /// Requests that an asynchronous queue may have at the drive so long after a synchronous one.
    pub(super) fn most_after_sync(&self, now: i64, queue: usize) -> u32 {
        if self.sets.of(queue).sync || !self.settings.low_latency {
            return u32::MAX;
        }
        let depth = ((now - self.last_sync_end) / self.slices.synchronous.max(1)) as u32;
        match self.queues[queue].dispatched {
            0 => depth.max(1),
            _ => depth,
        }
    }

    /// A request has left the queue.
    fn leave(&mut self, queue: usize) {
        if self.sets.of(queue).is_empty() && self.queues[queue].on_rr {
            self.queues[queue].on_rr = false;
            self.service.retain(|&other| other != queue);
        }
    }

    /// `cfq_update_io_thinktime`, `cfq_update_io_seektime`, `cfq_update_idle_window`.
    fn learn(&mut self, now: i64, queue: usize, request: &BlockRequest) {
        let thread = &mut self.threads[request.context as usize];
        thread.thought(now, self.slices.idle);
        let (think_samples, think_mean) = (thread.samples as u64, thread.mean);
        if self.settings.has_workloads() {
            return self.learn_workload(now, queue, request, (think_samples, think_mean));
        }

        let of = &mut self.queues[queue];
        of.seeks.moved(request, !self.settings.first_is_no_seek());

        let set = self.sets.of(queue);
        if set.sync && !set.is_idle() {
            if self.slices.idle == 0
                || (!self.settings.low_latency && self.tags && of.seeks.is_seeky())
            {
                of.idle_window = false;
            } else if is_valid(think_samples) {
                let seeks = is_valid(of.seeks.samples) && of.seeks.is_seeky();
                let idle = if seeks && self.settings.weighs_think_times() {
                    MIN_THINK
                } else {
                    self.slices.idle
                };
                of.idle_window = think_mean <= idle;
            }
        }
    }

    /// `cfq_should_preempt`.
    fn should_preempt(&self, now: i64, queue: usize, request: &BlockRequest) -> bool {
        let Some(active) = self.active else {
            return false;
        };
        if self.settings.has_workloads() {
            return self.workload_preempts(now, active, queue, request);
        }
        let of = &self.queues[active];
        let (served, new) = (self.sets.of(active), self.sets.of(queue));
        if of.slice_used(now) {
            return true;
        }
        if new.is_idle() {
            return false;
        }
        if served.is_idle()
            || (request.sync && !served.sync)
            || (new.is_realtime() && !served.is_realtime())
        {
            return true;
        }
        if self.active_thread.is_none() || !of.wait_request {
            return false;
        }
        // As good as what is being waited for.
        let near = if is_valid(of.seeks.samples) {
            of.seeks.mean
        } else if self.settings.weighs_think_times() {
            SEEK_THRESHOLD
        } else {
            return false;
        };
        request.lbn.abs_diff(self.sets.last_position()) <= near
    }

    /// `cfq_arm_slice_timer`.
    fn idle(&mut self, now: i64, queue: usize) {
        if self.flash && self.tags {
            return;
        }
        let waits = match self.settings.has_workloads() {
            true => self.queues[queue].dispatched == 0 && self.should_idle(queue),
            false => {
                let beside = self.settings.idles_beside_requests();
                self.queues[queue].idle_window && (self.in_driver() == 0 || beside)
            }
        };
        if self.slices.idle == 0 || !waits {
            return;
        }
        let of = &mut self.queues[queue];
        let Some(thread) = self.active_thread else {
            return;
        };
        let thread = &self.threads[thread as usize];
        let thinks_long = is_valid(thread.samples as u64) && of.slice_end - now < thread.mean;
        if thinks_long && self.settings.weighs_think_times() {
            return;
        }
        of.wait_request = true;
        let mut idle = self.slices.idle;
        let is_seeky = is_valid(of.seeks.samples) && of.seeks.is_seeky();
        if is_seeky && !self.settings.has_workloads() {
            idle = idle.min(MIN_THINK);
        }
        self.timer = Some(now + idle);
    }

    /// `cfq_update_hw_tag`.
    fn learn_tags(&mut self) {
        if self.settings.finds_tags_once() {
            return;
        }
        self.in_driver_peak = self.in_driver_peak.max(self.in_driver());
        if self.sets.waiting() <= TAGS_MIN && self.in_driver() <= TAGS_MIN {
            return;
        }
        self.tags_samples += 1;
        if self.tags_samples <= 50 {
            return;
        }
        self.tags = self.in_driver_peak >= TAGS_MIN;
        self.tags_samples = 0;
        self.in_driver_peak = 0;
    }
}

impl Elevator for Cfq {
    fn insert(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let now = jiffies(now_ns);
        let request = &requests[id as usize];
        Thread::make_room(&mut self.threads, request.context, now);
        let queue = self.queue_of(request);
        let expire_ns = self.settings.fifo_expire_ns(request.sync);
        self.sets.insert(queue, id, now_ns + expire_ns, requests);
        if !std::mem::replace(&mut self.queues[queue].on_rr, true) {
            self.add_to_service(now, queue, false);
        }
        self.learn(now, queue, request);
        self.starts = false;
        if self.active == Some(queue) {
            let of = &mut self.queues[queue];
            if of.wait_request {
                of.must_dispatch = true;
                self.starts = self.settings.starts_at_once()
                    || request.blocks > PAGE_BLOCKS
                    || self.service.len() > 1;
                if self.starts {
                    self.timer = None;
                }
            }
        } else if self.should_preempt(now, queue, request) {
            self.starts = true;
            self.expire(now, true);
            self.add_to_service(now, queue, true);
            self.queues[queue].slice_end = 0;
            self.queues[queue].slice_new = true;
        }
    }

    fn starts(&self) -> bool {
        self.starts
    }

    fn dispatch(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<Id> {
        if self.service.is_empty() {
            return None;
        }
        let now = jiffies(now_ns);
        let (queue, more) = self.look(now)?;
        // The oldest request is looked at once a slice.
        let looked = std::mem::replace(&mut self.queues[queue].fifo_expire, true);
        let is_overdue = |expires_ns| !looked && now_ns >= expires_ns;
        let id = self
            .sets
            .oldest(queue, is_overdue)
            .or(self.sets.next(queue))?;
        self.sets.send(queue, id, requests);
        self.leave(queue);
        let set = self.sets.of(queue);
        if more > 0 && !set.is_empty() {
            self.group = Some((queue, more));
        }
        let request = &requests[id as usize];
        self.active_thread.get_or_insert(request.context);
        self.in_driver[usize::from(request.sync)] += 1;
        let of = &mut self.queues[queue];
        of.dispatched += 1;
        of.slice_dispatch += 1;
        of.must_dispatch = false;
        self.sync_flight += u32::from(set.sync);
        // 2.6.24 and 2.6.29 count those of one look at the queue, which are fewer.
        let used_up = !set.sync
            && of.slice_dispatch >= self.settings.most_of_slice(set.level)
            && !self.settings.sends_together();
        if self.service.len() > 1 && (used_up || set.is_idle()) {
            of.slice_end = now + 1;
            self.expire(now, false);
        }
        Some(id)
    }

    fn completed(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let now = jiffies(now_ns);
        let request = &requests[id as usize];
        let Some(queue) = self.sets.find(request) else {
            return;
        };
        self.learn_tags();
        self.in_driver[usize::from(request.sync)] -= 1;
        let set = self.sets.of(queue);
        self.queues[queue].dispatched -= 1;
        self.sync_flight -= u32::from(set.sync);
        if !set.is_idle() {
            self.last_end = now;
        }
        if request.sync {
            self.threads[request.context as usize].last_end = now;
            if !self.settings.has_workloads() {
                self.last_sync_end = now;
            } else {
                self.workload_completed(now_ns, queue, id);
            }
        }
        if self.active == Some(queue) {
            let of = &mut self.queues[queue];
            if std::mem::take(&mut of.slice_new) {
                let slice = self.slice_of(queue);
                let of = &mut self.queues[queue];
                (of.slice_start, of.slice_end) = (now, now + slice);
            }
            let (of, set) = (&self.queues[queue], self.sets.of(queue));
            if of.slice_used(now) || set.is_idle() {
                self.expire(now, true);
            } else if set.is_empty() && request.sync {
                self.idle(now, queue);
            }
        }
    }

    fn waiting(&self) -> u32 {
        self.sets.waiting()
    }

    fn front_merge(&self, bio: &BlockRequest, requests: &[BlockRequest]) -> Option<Id> {
        self.sets.front_merge(bio, requests)
    }

    fn may_merge(&mut self, _: u64, id: Id, bio: &BlockRequest, requests: &[BlockRequest]) -> bool {
        // cfq_allow_merge: only within the queue that the bio would go to.
        self.sets.find(bio) == self.sets.find(&requests[id as usize])
    }

    fn moved(&mut self, _: u64, id: Id, requests: &[BlockRequest]) {
        self.sets.moved(id, requests);
    }

    fn neighbour(&self, id: Id, after: bool) -> Option<Id> {
        self.sets.neighbour(id, after)
    }

    fn joined(&mut self, _: u64, kept: Id, gone: Id, requests: &[BlockRequest]) {
        if let Some(queue) = self.sets.joined(kept, gone, requests) {
            self.leave(queue);
        }
    }

    fn timer_ns(&self) -> Option<u64> {
        earlier(self.timer, self.class_timer)
    }

    /// `cfq_idle_slice_timer`, `cfq_idle_class_timer`.
    fn timer(&mut self, now_ns: u64, _: &[BlockRequest]) {
        let now = jiffies(now_ns);
        self.class_timer = self.class_timer.filter(|&at| now < at);
        if self.timer.is_none_or(|at| now < at) {
            return;
        }
        self.timer = None;
        let Some(active) = self.active else {
            return;
        };
        let of = &self.queues[active];
        if of.must_dispatch && self.settings.weighs_think_times() {
            return;
        }
        // Others wait, and this one has nothing.
        if of.slice_used(now) || (!self.service.is_empty() && self.sets.of(active).is_empty()) {
            self.expire(now, false);
        }
    }
}
