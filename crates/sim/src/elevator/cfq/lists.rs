//! `cfq` before 2.6.22: the queues are in lists, by level and by when they were last served.
//!
//! Linux 2.6.18 `block/cfq-iosched.c`: `cfq_select_queue`, `cfq_resort_rr_list`, `cfq_get_next_prio_level`,
//! `__cfq_dispatch_requests`, `cfq_arm_slice_timer`, `cfq_crq_enqueued`, `cfq_completed_request`; read in Red Hat's version, without
//! what that has from 2.6.30 (threads that work close together, small requests that go on waiting). Unlike later ones it has no
//! bound for the requests of a queue at the drive, and no rule that asynchronous requests wait for synchronous ones; the active
//! queue is kept while it has requests there. Left out: metadata requests and priority boosts.

use spindle_workload::PriorityClass;

use super::super::Elevator;
use super::super::levels::LEVELS;
use super::sets::Sets;
use super::{
    IDLE_GRACE, MIN_THINK, Seeks, Settings, Slices, TAGS_MIN, Thread, earlier, is_valid, jiffies,
};
use crate::request::{BlockRequest, Id};

pub(super) struct CfqLists {
    settings: Settings,
    slices: Slices,
    sets: Sets,
    /// By number of the set.
    queues: Vec<Queue>,
    threads: Vec<Thread>,
    lists: Lists,
    active: Option<usize>,
    active_thread: Option<u32>,
    /// Requests since the slice began.
    dispatch_slice: u32,
    in_driver: u32,
    tags: bool,
    last_end: i64,
    idle_timer: Option<i64>,
    class_timer: Option<i64>,
    starts: bool,
    /// A queue from which so many more requests go without another look.
    group: Option<(usize, u32)>,
}

/// Lists of queues with requests.
#[derive(Default)]
struct Lists {
    /// Those served now.
    current: Vec<usize>,
    /// Those that come after, by level.
    robin: [Vec<usize>; LEVELS],
    /// Those with requests at the drive.
    busy: Vec<usize>,
    idle: Vec<usize>,
    /// `cur_prio` and `cur_end_prio`.
    level: usize,
    end_level: usize,
}

impl Lists {
    fn all(&mut self) -> impl Iterator<Item = &mut Vec<usize>> {
        let others = [&mut self.current, &mut self.busy, &mut self.idle];
        self.robin.iter_mut().chain(others)
    }

    fn remove(&mut self, queue: usize) {
        self.all()
            .for_each(|list| list.retain(|&other| other != queue));
    }

    /// `cfq_get_next_prio_level`: the next level's queues are served now. Levels take turns 0, 0 1, 0 1 2 and so on.
    fn take_next_level(&mut self) {
        let level = 'found: {
            for _ in 0..=LEVELS {
                let levels = self.level..=self.end_level;
                if let Some(level) = levels.into_iter().find(|&at| !self.robin[at].is_empty()) {
                    break 'found level;
                }
                self.level = 0;
                self.end_level = (self.end_level + 1) % LEVELS;
            }
            return;
        };
        self.current.append(&mut self.robin[level]);
        self.level = level + 1;
        if self.level > self.end_level {
            self.end_level = self.level;
            self.level = 0;
        }
        if self.end_level == LEVELS {
            self.level = 0;
            self.end_level = 0;
        }
    }
}

/// `struct cfq_queue`, but for its requests.
struct Queue {
    on_rr: bool,
    slice_end: i64,
    /// 0: it was not served yet.
    service_last: i64,
    dispatched: u32,
    wait_request: bool,
    must_dispatch: bool,
    fifo_expire: bool,
    idle_window: bool,
    seeks: Seeks,
}

impl CfqLists {
    /// As of [`super::build`].
    pub(super) fn new(settings: Settings, depth: u32) -> CfqLists {
        CfqLists {
            slices: settings.slices(),
            sets: Sets::new(&settings),
            queues: Vec::new(),
            threads: Vec::new(),
            lists: Lists::default(),
            active: None,
            active_thread: None,
            dispatch_slice: 0,
            in_driver: 0,
            // Writers before the load are taken to have sent it so many.
            tags: depth >= TAGS_MIN,
            last_end: -IDLE_GRACE,
            idle_timer: None,
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
                slice_end: 0,
                service_last: 0,
                dispatched: 0,
                wait_request: false,
                must_dispatch: false,
                fifo_expire: false,
                idle_window: !self.sets.of(queue).is_idle(),
                seeks: Seeks::default(),
            });
            // Room for all at once: nothing is allocated later.
            let count = self.queues.len();
            self.lists.all().for_each(|list| list.reserve(count));
        }
        queue
    }

    /// `cfq_resort_rr_list`.
    fn sort_in(&mut self, queue: usize, preempted: bool) {
        self.lists.remove(queue);
        let (of, set) = (&self.queues[queue], self.sets.of(queue));
        let (last, is_busy) = (of.service_last, of.dispatched > 0);
        let list = match set.class {
            PriorityClass::Realtime => &mut self.lists.current,
            PriorityClass::Idle => &mut self.lists.idle,
            PriorityClass::BestEffort if is_busy => &mut self.lists.busy,
            PriorityClass::BestEffort => &mut self.lists.robin[usize::from(set.level)],
        };
        let at = if preempted {
            // Before the last one, whatever the comment there says.
            list.len().saturating_sub(1)
        } else if set.class == PriorityClass::BestEffort && is_busy {
            list.len()
        } else {
            let queues = &self.queues;
            let earlier = |&other: &usize| {
                let other = queues[other].service_last;
                other == 0 || other < last
            };
            list.iter().rposition(earlier).map_or(0, |at| at + 1)
        };
        list.insert(at, queue);
    }

    /// `__cfq_set_active_queue`.
    fn activate(&mut self, queue: usize) {
        self.class_timer = None;
        let of = &mut self.queues[queue];
        of.slice_end = 0;
        of.must_dispatch = false;
        of.fifo_expire = false;
        self.active = Some(queue);
    }

    /// `cfq_set_active_queue`.
    fn activate_first(&mut self, now: i64) -> Option<usize> {
        if self.lists.current.is_empty() {
            self.lists.take_next_level();
        }
        let first = self.lists.current.first().or(self.lists.busy.first());
        let queue = first.copied().or_else(|| {
            let idle = *self.lists.idle.first()?;
            let end = self.last_end + IDLE_GRACE;
            if now < end {
                self.class_timer = Some(end);
                return None;
            }
            Some(idle)
        });
        if let Some(queue) = queue {
            self.activate(queue);
        }
        queue
    }

    /// `__cfq_slice_expired`.
    fn expire(&mut self, now: i64, preempted: bool) {
        let Some(active) = self.active.take() else {
            return;
        };
        let of = &mut self.queues[active];
        if of.wait_request {
            self.idle_timer = None;
        }
        if !preempted && of.dispatched == 0 {
            of.service_last = now.max(1);
        }
        of.must_dispatch = false;
        of.wait_request = false;
        if of.on_rr {
            self.sort_in(active, preempted);
        }
        self.active_thread = None;
        self.dispatch_slice = 0;
    }

    /// `cfq_select_queue`.
    fn select(&mut self, now: i64) -> Option<usize> {
        if let Some(active) = self.active {
            let of = &self.queues[active];
            if of.must_dispatch || now <= of.slice_end {
                let set = self.sets.of(active);
                if !set.is_empty() {
                    return Some(active);
                }
                if of.dispatched > 0 || (set.sync && self.idle(now, active)) {
                    return None;
                }
            }
            self.expire(now, false);
        }
        self.activate_first(now)
    }

    /// `cfq_arm_slice_timer`: true if the queue is waited for.
    fn idle(&mut self, now: i64, queue: usize) -> bool {
        let of = &mut self.queues[queue];
        if self.slices.idle == 0 || !of.idle_window || self.active_thread.is_none() {
            return false;
        }
        of.must_dispatch = true;
        of.wait_request = true;
        let mut idle = self.slices.idle;
        if is_valid(of.seeks.samples) && of.seeks.is_seeky() {
            idle = idle.min(MIN_THINK);
        }
        self.idle_timer = Some(now + idle);
        true
    }

    /// A request has left the queue.
    fn leave(&mut self, queue: usize) {
        if self.sets.of(queue).is_empty() && self.queues[queue].on_rr {
            self.queues[queue].on_rr = false;
            self.lists.remove(queue);
        }
    }

    /// `cfq_update_io_thinktime`, `cfq_update_io_seektime`, `cfq_update_idle_window`.
    fn learn(&mut self, now: i64, queue: usize, request: &BlockRequest) {
        let thread = &mut self.threads[request.context as usize];
        thread.thought(now, self.slices.idle);
        let of = &mut self.queues[queue];
        of.seeks.moved(request, false);
        if self.sets.of(queue).is_idle() {
            return;
        }
        if self.slices.idle == 0 || (self.tags && of.seeks.is_seeky()) {
            of.idle_window = false;
        } else if is_valid(thread.samples as u64) {
            of.idle_window = thread.mean <= self.slices.idle;
        }
    }

    /// `cfq_should_preempt`. A queue that is not active is never one that is waited for, so the rules behind that do not count.
    fn should_preempt(&self, queue: usize) -> bool {
        let is_idle = |queue| self.sets.of(queue).is_idle();
        self.active.is_some_and(is_idle) && !is_idle(queue)
    }

    /// `cfq_preempt_queue`.
    fn preempt(&mut self, now: i64, queue: usize) {
        let mut at = 0;
        while let Some(&served) = self.lists.current.get(at) {
            // Realtime ones are sorted into the same list again.
            match self.sets.of(served).class {
                PriorityClass::Realtime => at += 1,
                _ => self.sort_in(served, true),
            }
        }
        self.expire(now, true);
        self.activate(queue);
        self.queues[queue].must_dispatch = true;
    }

    /// `cfq_check_fifo`.
    fn overdue(&mut self, now_ns: u64, queue: usize) -> Option<Id> {
        if self.queues[queue].fifo_expire {
            return None;
        }
        let id = self.sets.oldest(queue, |expires_ns| now_ns > expires_ns)?;
        self.queues[queue].fifo_expire = true;
        Some(id)
    }

    /// The queue of the next request, and how many more may follow it without another look.
    fn look(&mut self, now: i64) -> Option<(usize, u32)> {
        if let Some((queue, left)) = self.group.take()
            && !self.sets.of(queue).is_empty()
        {
            return Some((queue, left - 1));
        }
        let queue = self.select(now)?;
        let set = self.sets.of(queue);
        let slice_end = now + self.slices.at(set.sync, set.level);
        let of = &mut self.queues[queue];
        of.must_dispatch = false;
        of.wait_request = false;
        self.idle_timer = None;
        if of.slice_end == 0 {
            of.slice_end = slice_end;
        }
        let more = match set.is_idle() {
            true => 0,
            false => self.settings.quantum - 1,
        };
        Some((queue, more))
    }

    /// The end of `__cfq_dispatch_requests`.
    fn end_group(&mut self, now: i64, queue: usize) {
        let set = self.sets.of(queue);
        let used_up = !set.sync && self.dispatch_slice >= self.settings.most_of_slice(set.level);
        let ends = used_up || set.is_idle() || !self.queues[queue].idle_window;
        if self.active == Some(queue) && ends {
            self.expire(now, false);
        }
    }
}

impl Elevator for CfqLists {
    fn insert(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let now = jiffies(now_ns);
        let request = &requests[id as usize];
        Thread::make_room(&mut self.threads, request.context, now);
        let queue = self.queue_of(request);
        let expire_ns = self.settings.fifo_expire_ns(request.sync);
        self.sets.insert(queue, id, now_ns + expire_ns, requests);
        if !std::mem::replace(&mut self.queues[queue].on_rr, true) {
            self.sort_in(queue, false);
        }

        // cfq_crq_enqueued.
        self.starts = false;
        if !request.sync {
            // The thread that is waited for writes.
            if self.active_thread == Some(request.context) && self.idle_timer.is_some() {
                self.expire(now, false);
                self.starts = true;
            }
            return;
        }
        self.learn(now, queue, request);
        if self.active == Some(queue) {
            if self.queues[queue].wait_request {
                self.starts = true;
                self.idle_timer = None;
                self.queues[queue].must_dispatch = true;
            }
        } else if self.should_preempt(queue) {
            self.preempt(now, queue);
            self.starts = true;
        }
    }

    fn starts(&self) -> bool {
        self.starts
    }

    fn dispatch(&mut self, now_ns: u64, requests: &[BlockRequest]) -> Option<Id> {
        if self.sets.waiting() == 0 {
            return None;
        }
        let now = jiffies(now_ns);
        let (queue, more) = self.look(now)?;
        let id = self.overdue(now_ns, queue).or(self.sets.next(queue))?;
        self.sets.send(queue, id, requests);
        self.leave(queue);
        let request = &requests[id as usize];
        self.active_thread.get_or_insert(request.context);
        self.in_driver += 1;
        self.tags |= self.in_driver >= TAGS_MIN;
        self.dispatch_slice += 1;
        self.queues[queue].dispatched += 1;
        if more > 0 && !self.sets.of(queue).is_empty() {
            self.group = Some((queue, more));
        } else {
            self.end_group(now, queue);
        }
        Some(id)
    }

    fn completed(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let now = jiffies(now_ns);
        let request = &requests[id as usize];
        let Some(queue) = self.sets.find(request) else {
            return;
        };
        self.in_driver -= 1;
        let of = &mut self.queues[queue];
        of.dispatched -= 1;
        if !self.sets.of(queue).is_idle() {
            self.last_end = now;
        }
        if of.dispatched == 0 && of.on_rr {
            of.service_last = now.max(1);
            self.sort_in(queue, false);
        }
        if request.sync {
            self.threads[request.context as usize].last_end = now;
        }
        if self.active == Some(queue) {
            let of = &self.queues[queue];
            if now > of.slice_end {
                self.expire(now, false);
            } else if request.sync && self.sets.of(queue).is_empty() {
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
        earlier(self.idle_timer, self.class_timer)
    }

    /// `cfq_idle_slice_timer`, `cfq_idle_class_timer`.
    fn timer(&mut self, now_ns: u64, _: &[BlockRequest]) {
        let now = jiffies(now_ns);
        self.class_timer = self.class_timer.filter(|&at| now < at);
        if self.idle_timer.is_none_or(|at| now < at) {
            return;
        }
        self.idle_timer = None;
        let Some(active) = self.active else {
            return;
        };
        if now > self.queues[active].slice_end {
            self.expire(now, false);
        } else if !self.sets.of(active).is_empty() {
            self.queues[active].must_dispatch = true;
        } else if self.queues.iter().any(|of| of.on_rr) {
            // Others wait (`busy_queues`).
            self.expire(now, false);
        }
    }
}
