//! `cfq` before 2.6.22: the queues are in lists, by level and by when they were last served.
//!
//! Linux 2.6.18 `block/cfq-iosched.c`: `cfq_select_queue`, `cfq_resort_rr_list`, `cfq_get_next_prio_level`,
//! `__cfq_dispatch_requests`, `cfq_arm_slice_timer`, `cfq_crq_enqueued`, `cfq_completed_request`; read in Red Hat's version, without
//! what that has from 2.6.30 (threads that work close together, small requests that go on waiting). Unlike later ones it has no
//! bound for the requests of a queue at the drive, and no rule that asynchronous requests wait for synchronous ones; the active
//! queue is kept while it has requests there. Left out: metadata requests and priority boosts. Times are jiffies.

use spindle_workload::PriorityClass;

use super::Elevator;
use super::cfq::{
    IDLE_GRACE, LEVELS, Seeks, Settings, Thread, async_slot, earlier, is_valid, jiffies,
};
use super::choose::OneWay;
use super::fifo::{Fifo, Links};
use super::sorted::{Nodes, Sorted};
use crate::request::{BlockRequest, Id};

/// `CFQ_SLICE_SCALE`.
const SLICE_SCALE: i64 = 5;
/// Wait for a thread that seeks.
const SEEKY_IDLE: i64 = 2;
/// Requests at the drive from which it has tags.
const TAGS_MIN: u32 = 5;

pub(super) struct CfqLists {
    settings: Settings,
    /// Slices by kind, jiffies.
    slice: [i64; 2],
    slice_idle: i64,
    one_way: OneWay,
    nodes: Nodes,
    links: Links,
    queues: Vec<Queue>,
    /// Queue of each thread's synchronous requests, and of each priority's asynchronous ones.
    of_thread: Vec<Option<usize>>,
    of_level: [Option<usize>; 2 * LEVELS + 1],
    threads: Vec<Thread>,
    lists: Lists,
    active: Option<usize>,
    active_thread: Option<u32>,
    /// Requests since the slice began.
    dispatch_slice: u32,
    in_driver: u32,
    tags: bool,
    waiting: u32,
    last_position: u64,
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

/// `struct cfq_queue`.
struct Queue {
    sync: bool,
    class: PriorityClass,
    level: u8,
    sort_list: Sorted,
    fifo: Fifo,
    next_rq: Option<Id>,
    on_rr: bool,
    slice_end: i64,
    slice_left: i64,
    /// 0: it was not served yet.
    service_last: i64,
    dispatched: u32,
    wait_request: bool,
    must_dispatch: bool,
    fifo_expire: bool,
    idle_window: bool,
    seeks: Seeks,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.class == PriorityClass::Idle
    }
}

impl CfqLists {
    /// `depth`: requests that the device takes at a time.
    pub(super) fn new(settings: Settings, depth: u32) -> CfqLists {
        CfqLists {
            slice: [
                jiffies(settings.slice_async_ns),
                jiffies(settings.slice_sync_ns),
            ],
            slice_idle: jiffies(settings.slice_idle_ns),
            one_way: settings.one_way(),
            nodes: Nodes::default(),
            links: Links::default(),
            queues: Vec::new(),
            of_thread: Vec::new(),
            of_level: [None; 2 * LEVELS + 1],
            threads: Vec::new(),
            lists: Lists::default(),
            active: None,
            active_thread: None,
            dispatch_slice: 0,
            in_driver: 0,
            // Writers before the load are taken to have sent it so many.
            tags: depth >= TAGS_MIN,
            waiting: 0,
            last_position: 0,
            last_end: -IDLE_GRACE,
            idle_timer: None,
            class_timer: None,
            starts: false,
            group: None,
            settings,
        }
    }

    /// `cfq_get_queue`: the queue of a request, made if there is none.
    fn queue_of(&mut self, request: &BlockRequest) -> usize {
        if let Some(queue) = self.find_queue(request) {
            return queue;
        }
        let queue = self.queues.len();
        let idle = request.class == PriorityClass::Idle;
        self.queues.push(Queue {
            sync: request.sync,
            class: request.class,
            level: if idle { 7 } else { request.level.min(7) },
            sort_list: Sorted::default(),
            fifo: Fifo::default(),
            next_rq: None,
            on_rr: false,
            slice_end: 0,
            slice_left: 2 * self.slice_idle,
            service_last: 0,
            dispatched: 0,
            wait_request: false,
            must_dispatch: false,
            fifo_expire: false,
            idle_window: !idle,
            seeks: Seeks::default(),
        });
        if request.sync {
            let thread = request.context as usize;
            if self.of_thread.len() <= thread {
                self.of_thread.resize(thread + 1, None);
            }
            self.of_thread[thread] = Some(queue);
        } else {
            self.of_level[async_slot(request)] = Some(queue);
        }
        // Room for all at once: nothing is allocated later.
        let count = self.queues.len();
        self.lists.all().for_each(|list| list.reserve(count));
        queue
    }

    fn find_queue(&self, request: &BlockRequest) -> Option<usize> {
        if request.sync {
            *self.of_thread.get(request.context as usize)?
        } else {
            self.of_level[async_slot(request)]
        }
    }

    /// `busy_queues`: those that have requests here.
    fn busy_queues(&self) -> usize {
        self.queues.iter().filter(|of| of.on_rr).count()
    }

    /// `cfq_prio_to_slice`.
    fn prio_slice(&self, queue: usize) -> i64 {
        let of = &self.queues[queue];
        let base = self.slice[usize::from(of.sync)];
        base + base / SLICE_SCALE * (4 - i64::from(of.level))
    }

    /// `cfq_prio_to_maxrq`.
    fn most_of_slice(&self, queue: usize) -> u32 {
        let base = self.settings.slice_async_rq;
        2 * (base + base * (LEVELS as u32 - 1 - u32::from(self.queues[queue].level)))
    }

    /// `cfq_resort_rr_list`.
    fn sort_in(&mut self, queue: usize, preempted: bool) {
        self.lists.remove(queue);
        let of = &self.queues[queue];
        let (last, is_busy) = (of.service_last, of.dispatched > 0);
        let list = match of.class {
            PriorityClass::Realtime => &mut self.lists.current,
            PriorityClass::Idle => &mut self.lists.idle,
            PriorityClass::BestEffort if is_busy => &mut self.lists.busy,
            PriorityClass::BestEffort => &mut self.lists.robin[usize::from(of.level)],
        };
        let at = if preempted {
            // Before the last one, whatever the comment there says.
            list.len().saturating_sub(1)
        } else if of.class == PriorityClass::BestEffort && is_busy {
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
        of.slice_left = 0;
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
        of.slice_left = (of.slice_end - now).max(0);
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
                if !of.sort_list.is_empty() {
                    return Some(active);
                }
                if of.dispatched > 0 || (of.sync && self.idle(now, active)) {
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
        if self.slice_idle == 0 || !of.idle_window || self.active_thread.is_none() {
            return false;
        }
        of.must_dispatch = true;
        of.wait_request = true;
        let mut idle = self.slice_idle;
        if is_valid(of.seeks.samples) && of.seeks.is_seeky() {
            idle = idle.min(SEEKY_IDLE);
        }
        self.idle_timer = Some(now + idle);
        true
    }

    /// `cfq_find_next_crq`.
    fn next_after(&self, id: Id, queue: usize, requests: &[BlockRequest]) -> Option<Id> {
        let first = self.queues[queue].sort_list.first();
        let next = self.nodes.next(id).or(first.filter(|&first| first != id));
        let previous = self.nodes.previous(id);
        self.one_way
            .choose(self.last_position, next, previous, requests)
    }

    fn take_out(&mut self, id: Id, queue: usize, requests: &[BlockRequest]) {
        if self.queues[queue].next_rq == Some(id) {
            self.queues[queue].next_rq = self.next_after(id, queue, requests);
        }
        let of = &mut self.queues[queue];
        self.links.remove(&mut of.fifo, id);
        self.nodes.remove(&mut of.sort_list, id);
        self.waiting -= 1;
        if of.sort_list.is_empty() && of.on_rr {
            of.on_rr = false;
            self.lists.remove(queue);
        }
    }

    /// `cfq_update_io_thinktime`, `cfq_update_io_seektime`, `cfq_update_idle_window`.
    fn learn(&mut self, now: i64, queue: usize, request: &BlockRequest) {
        let thread = &mut self.threads[request.context as usize];
        thread.thought(now, self.slice_idle);
        let of = &mut self.queues[queue];
        of.seeks.moved(request, false);
        if of.is_idle() {
            return;
        }
        if self.slice_idle == 0 || (self.tags && of.seeks.is_seeky()) {
            of.idle_window = false;
        } else if is_valid(thread.samples as u64) {
            of.idle_window = thread.mean <= self.slice_idle;
        }
    }

    /// `cfq_should_preempt`. A queue that is not active is never one that is waited for, so the rules behind that do not count.
    fn should_preempt(&self, queue: usize) -> bool {
        let active = self.active.map(|active| &self.queues[active]);
        active.is_some_and(Queue::is_idle) && !self.queues[queue].is_idle()
    }

    /// `cfq_preempt_queue`.
    fn preempt(&mut self, now: i64, queue: usize) {
        let mut at = 0;
        while let Some(&served) = self.lists.current.get(at) {
            // Realtime ones are sorted into the same list again.
            match self.queues[served].class {
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
        let of = &mut self.queues[queue];
        if of.fifo_expire {
            return None;
        }
        let id = of.fifo.first()?;
        of.fifo_expire = now_ns > self.links.expires_ns(id);
        of.fifo_expire.then_some(id)
    }

    /// The queue of the next request, and how many more may follow it without another look.
    fn look(&mut self, now: i64) -> Option<(usize, u32)> {
        if let Some((queue, left)) = self.group.take()
            && !self.queues[queue].sort_list.is_empty()
        {
            return Some((queue, left - 1));
        }
        let queue = self.select(now)?;
        let slice_end = now + self.prio_slice(queue);
        let of = &mut self.queues[queue];
        of.must_dispatch = false;
        of.wait_request = false;
        self.idle_timer = None;
        if of.slice_end == 0 {
            of.slice_end = slice_end;
        }
        let more = match of.is_idle() {
            true => 0,
            false => self.settings.quantum - 1,
        };
        Some((queue, more))
    }

    /// The end of `__cfq_dispatch_requests`.
    fn end_group(&mut self, now: i64, queue: usize) {
        let of = &self.queues[queue];
        let used_up = !of.sync && self.dispatch_slice >= self.most_of_slice(queue);
        if self.active == Some(queue) && (used_up || of.is_idle() || !of.idle_window) {
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
        let of = &mut self.queues[queue];
        self.nodes.insert(&mut of.sort_list, id, request.lbn);
        self.links.push_back(&mut of.fifo, id, now_ns + expire_ns);
        self.waiting += 1;
        if !of.on_rr {
            of.on_rr = true;
            self.sort_in(queue, false);
        }
        let next = self.queues[queue].next_rq;
        self.queues[queue].next_rq =
            self.one_way
                .choose(self.last_position, next, Some(id), requests);

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
        if self.waiting == 0 {
            return None;
        }
        let now = jiffies(now_ns);
        let (queue, more) = self.look(now)?;
        let id = self.overdue(now_ns, queue).or(self.queues[queue].next_rq)?;
        self.queues[queue].next_rq = self.next_after(id, queue, requests);
        self.take_out(id, queue, requests);
        let request = &requests[id as usize];
        self.active_thread.get_or_insert(request.context);
        self.last_position = request.end();
        self.in_driver += 1;
        self.tags |= self.in_driver >= TAGS_MIN;
        self.dispatch_slice += 1;
        self.queues[queue].dispatched += 1;
        if more > 0 && !self.queues[queue].sort_list.is_empty() {
            self.group = Some((queue, more));
        } else {
            self.end_group(now, queue);
        }
        Some(id)
    }

    fn completed(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let now = jiffies(now_ns);
        let request = &requests[id as usize];
        let Some(queue) = self.find_queue(request) else {
            return;
        };
        self.in_driver -= 1;
        let of = &mut self.queues[queue];
        of.dispatched -= 1;
        if !of.is_idle() {
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
            } else if request.sync && of.sort_list.is_empty() {
                self.idle(now, queue);
            }
        }
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn front_merge(&self, bio: &BlockRequest, requests: &[BlockRequest]) -> Option<Id> {
        let tree = &self.queues[self.find_queue(bio)?].sort_list;
        self.nodes
            .exactly_at(tree, bio.end())
            .filter(|&id| requests[id as usize].write == bio.write)
    }

    fn moved(&mut self, _: u64, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        if let Some(queue) = self.find_queue(request) {
            let of = &mut self.queues[queue];
            self.nodes.remove(&mut of.sort_list, id);
            self.nodes.insert(&mut of.sort_list, id, request.lbn);
            let next = of.next_rq;
            self.queues[queue].next_rq =
                self.one_way
                    .choose(self.last_position, next, Some(id), requests);
        }
    }

    fn neighbour(&self, id: Id, after: bool) -> Option<Id> {
        if after {
            self.nodes.next(id)
        } else {
            self.nodes.previous(id)
        }
    }

    fn joined(&mut self, _: u64, kept: Id, gone: Id, requests: &[BlockRequest]) {
        let (keeper, goner) = (&requests[kept as usize], &requests[gone as usize]);
        if let Some(queue) = self.find_queue(goner) {
            if self.find_queue(keeper) == Some(queue) {
                self.links.inherit(&mut self.queues[queue].fifo, kept, gone);
            }
            self.take_out(gone, queue, requests);
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
        let busy = self.busy_queues();
        let of = &mut self.queues[active];
        if now > of.slice_end {
            self.expire(now, false);
        } else if busy == 0 {
            // It goes on to wait.
        } else if !of.sort_list.is_empty() {
            of.must_dispatch = true;
        } else {
            self.expire(now, false);
        }
    }
}
