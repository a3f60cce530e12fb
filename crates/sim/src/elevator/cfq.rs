//! `cfq`: a queue for each thread, served in slices of time; synchronous queues are waited for.
//!
//! Linux 2.6.24, 2.6.29 and 2.6.32 `block/cfq-iosched.c`: `cfq_select_queue`, `cfq_may_dispatch`,
//! `cfq_dispatch_requests`, `cfq_service_tree_add`, `cfq_arm_slice_timer`, `cfq_should_preempt`,
//! `cfq_update_idle_window`, `cfq_completed_request`. What 2.6.32 has and 2.6.29 has not is taken to have come in 2.6.30;
//! 2.6.22 and 2.6.23 have the rules of 2.6.24, and earlier ones those of [`super::cfq_lists`]. Left out: merging the queues of threads that work close together (`cfq_close_cooperator`),
//! metadata requests and priority boosts. Times are jiffies, as there.

use serde::Serialize;

use spindle_workload::PriorityClass;

use super::choose::OneWay;
use super::fifo::{Fifo, Links};
use super::parameter::Parameter;
use super::sorted::{Nodes, Sorted};
use super::{Elevator, JIFFY_NS};
use crate::cache::PAGE;
use crate::kernel::Kernel;
use crate::request::{BlockRequest, Id};

/// Parameters of `cfq-iosched.c` in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Requests of one queue in the device.
    pub quantum: u32,
    /// Age at which a synchronous request goes first within its queue.
    pub fifo_expire_sync_ns: u64,
    /// Age at which an asynchronous one does.
    pub fifo_expire_async_ns: u64,
    /// Longest seek backwards, blocks.
    pub back_seek_max: u64,
    /// How much farther a block behind counts than one ahead.
    pub back_seek_penalty: u64,
    /// Slice of a synchronous queue at level 4.
    pub slice_sync_ns: u64,
    /// Slice of an asynchronous queue at level 4.
    pub slice_async_ns: u64,
    /// Requests in a slice of an asynchronous queue, before the level counts.
    pub slice_async_rq: u32,
    /// Wait for the next request of a queue.
    pub slice_idle_ns: u64,
    /// Asynchronous requests are held back after synchronous ones, and seeky queues idle too (since 2.6.32).
    pub low_latency: bool,
    /// Whose rules these are.
    pub kernel: Kernel,
}

impl Settings {
    /// The kernel's defaults.
    #[must_use]
    pub fn of(kernel: Kernel) -> Settings {
        Settings {
            quantum: 4,
            // Indexed by rq_is_sync: { HZ / 4, HZ / 8 }.
            fifo_expire_sync_ns: 125 * JIFFY_NS,
            fifo_expire_async_ns: 250 * JIFFY_NS,
            back_seek_max: 16 * 1024 * 2,
            back_seek_penalty: 2,
            slice_sync_ns: 100 * JIFFY_NS,
            slice_async_ns: 40 * JIFFY_NS,
            slice_async_rq: 2,
            slice_idle_ns: 8 * JIFFY_NS,
            low_latency: kernel >= Kernel::new(2, 6, 32),
            kernel,
        }
    }

    /// The queues are in lists ([`super::cfq_lists`]); since 2.6.22 they are in a tree ("cfq-iosched: use a rbtree for the service
    /// list").
    pub(super) fn has_lists(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 22)
    }

    pub(super) fn one_way(&self) -> OneWay {
        OneWay {
            back_max: self.back_seek_max,
            back_penalty: self.back_seek_penalty,
        }
    }

    /// Age at which a request goes first within its queue, ns.
    pub(super) fn fifo_expire_ns(&self, sync: bool) -> u64 {
        if sync {
            self.fifo_expire_sync_ns
        } else {
            self.fifo_expire_async_ns
        }
    }

    /// The queue is waited for although it has requests at the drive (2.6.24; in 2.6.29 not: "still requests with the
    /// driver, don't idle").
    fn idles_beside_requests(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 28)
    }

    /// A drive that has once had more than four requests has tags (2.6.24 `cfq_activate_request`); what wrote the data
    /// before is taken to have sent it so many. Later kernels watch on ("cfq-iosched: fix queue depth detection").
    fn finds_tags_once(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 28)
    }

    /// A request that was waited for goes to the drive at once, however small it is (until 2.6.29; "cfq-iosched: don't let
    /// idling interfere with plugging").
    fn starts_at_once(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 30)
    }

    /// As many requests of a queue as `quantum` go to the drive together (`__cfq_dispatch_requests` in 2.6.24 and 2.6.29).
    fn sends_together(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 30)
    }

    /// The rest of a slice puts a queue farther back, not nearer to the front, and who preempts has no key of his own
    /// (`cfq_service_tree_add` in 2.6.24 and 2.6.29).
    fn adds_what_was_left(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 30)
    }

    /// Seeks and think times count when queues are chosen, and asynchronous requests go before a queue that is waited for
    /// (2.6.32; not in 2.6.29).
    fn weighs_think_times(&self) -> bool {
        self.kernel >= Kernel::new(2, 6, 30)
    }

    /// Idle queues are served a while after the last request of the others only (until 2.6.24; "cfq-iosched: relax
    /// IOPRIO_CLASS_IDLE restrictions").
    fn has_idle_grace(&self) -> bool {
        self.kernel < Kernel::new(2, 6, 25)
    }

    /// A thread's first request is no seek, whatever its place (2.6.31: "cfq-iosched: make seek_mean converge more quickly").
    fn first_is_no_seek(&self) -> bool {
        self.kernel >= Kernel::new(2, 6, 31)
    }

    /// Under the names that sysfs has.
    pub(super) fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Parameter::count("quantum", 1, &mut self.quantum),
            Parameter::time("fifo_expire_sync", &mut self.fifo_expire_sync_ns),
            Parameter::time("fifo_expire_async", &mut self.fifo_expire_async_ns),
            Parameter::blocks("back_seek_max", &mut self.back_seek_max),
            Parameter::factor("back_seek_penalty", &mut self.back_seek_penalty),
            Parameter::time("slice_sync", &mut self.slice_sync_ns),
            Parameter::time("slice_async", &mut self.slice_async_ns),
            Parameter::count("slice_async_rq", 1, &mut self.slice_async_rq),
            Parameter::time("slice_idle", &mut self.slice_idle_ns),
            Parameter::flag("low_latency", &mut self.low_latency),
        ]
    }
}

const ASYNC: usize = 0;
const SYNC: usize = 1;
/// `CFQ_IDLE_DELAY`.
const IDLE_DELAY: i64 = 200;
/// `CFQ_IDLE_GRACE`.
pub(super) const IDLE_GRACE: i64 = 100;
/// `CFQ_MIN_TT`: think time of a thread that seeks which is still waited for.
const MIN_THINK: i64 = 2;
/// `CFQQ_SEEK_THR`, blocks.
const SEEK_THRESHOLD: u64 = 8 * 1024;
/// `CFQ_SLICE_SCALE`.
const SLICE_SCALE: i64 = 5;
/// `CFQ_HW_QUEUE_MIN`.
const TAGS_MIN: u32 = 5;
const HZ: i64 = 1000;
pub(super) const LEVELS: usize = 8;
/// Blocks of a page.
const PAGE_BLOCKS: u32 = (PAGE / 512) as u32;

pub(super) struct Cfq {
    settings: Settings,
    /// Slices by kind, jiffies.
    slice: [i64; 2],
    slice_idle: i64,
    flash: bool,
    one_way: OneWay,
    nodes: Nodes,
    links: Links,
    queues: Vec<Queue>,
    /// Queue of each thread's synchronous requests...
    of_thread: Vec<Option<usize>>,
    /// ...and of each priority's asynchronous ones.
    of_level: [Option<usize>; 2 * LEVELS + 1],
    threads: Vec<Thread>,
    /// Queues with requests, in the order of service.
    service: Vec<usize>,
    active: Option<usize>,
    active_thread: Option<u32>,
    in_driver: [u32; 2],
    sync_flight: u32,
    waiting: u32,
    tags: bool,
    tags_samples: u32,
    in_driver_peak: u32,
    last_position: u64,
    last_sync_end: i64,
    /// End of the last request of a queue that is not idle.
    last_end: i64,
    timer: Option<i64>,
    class_timer: Option<i64>,
    starts: bool,
    /// A queue from which so many more requests go without another look.
    group: Option<(usize, u32)>,
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
    key: i64,
    slice_end: i64,
    slice_resid: i64,
    slice_dispatch: u32,
    dispatched: u32,
    slice_new: bool,
    wait_request: bool,
    must_dispatch: bool,
    fifo_expire: bool,
    idle_window: bool,
    seeks: Seeks,
}

/// `struct cfq_io_context`: how long a thread thinks between two requests.
#[derive(Clone, Copy)]
pub(super) struct Thread {
    pub(super) last_end: i64,
    pub(super) samples: i64,
    total: i64,
    pub(super) mean: i64,
}

impl Thread {
    /// Adds the threads up to this one.
    pub(super) fn make_room(threads: &mut Vec<Thread>, context: u32, now: i64) {
        let fresh = Thread {
            last_end: now,
            samples: 0,
            total: 0,
            mean: 0,
        };
        if threads.len() <= context as usize {
            threads.resize(context as usize + 1, fresh);
        }
    }

    /// `cfq_update_io_thinktime`.
    pub(super) fn thought(&mut self, now: i64, slice_idle: i64) {
        let think = (now - self.last_end).min(2 * slice_idle);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * think) / 8;
        self.mean = (self.total + 128) / self.samples;
    }
}

/// How far apart the requests of a queue are, blocks.
#[derive(Default)]
pub(super) struct Seeks {
    pub(super) samples: u64,
    total: u64,
    mean: u64,
    last_end: u64,
}

impl Seeks {
    /// `cfq_update_io_seektime`. `first_counts`: so does the first request's place.
    pub(super) fn moved(&mut self, request: &BlockRequest, first_counts: bool) {
        let distance = match self.last_end {
            0 if !first_counts => 0,
            last => last.abs_diff(request.lbn),
        };
        let slack = if self.samples <= 60 {
            2 * 1024 * 1024
        } else {
            2 * 1024 * 64
        };
        let distance = distance.min(self.mean * 4 + slack);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * distance) / 8;
        self.mean = (self.total + self.samples / 2) / self.samples;
        self.last_end = request.end();
    }

    pub(super) fn is_seeky(&self) -> bool {
        self.mean > SEEK_THRESHOLD
    }
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.class == PriorityClass::Idle
    }

    fn is_realtime(&self) -> bool {
        self.class == PriorityClass::Realtime
    }

    fn slice_used(&self, now: i64) -> bool {
        !self.slice_new && now >= self.slice_end
    }
}

pub(super) fn is_valid(samples: u64) -> bool {
    samples > 80
}

pub(super) fn jiffies(now_ns: u64) -> i64 {
    (now_ns / JIFFY_NS) as i64
}

impl Cfq {
    /// `flash`: the device has no moving head. `depth`: requests that it takes at a time.
    pub(super) fn new(settings: Settings, flash: bool, depth: u32) -> Cfq {
        Cfq {
            slice: [
                jiffies(settings.slice_async_ns),
                jiffies(settings.slice_sync_ns),
            ],
            slice_idle: jiffies(settings.slice_idle_ns),
            flash,
            one_way: settings.one_way(),
            nodes: Nodes::default(),
            links: Links::default(),
            queues: Vec::new(),
            of_thread: Vec::new(),
            of_level: [None; 2 * LEVELS + 1],
            threads: Vec::new(),
            service: Vec::new(),
            active: None,
            active_thread: None,
            in_driver: [0; 2],
            sync_flight: 0,
            waiting: 0,
            tags: !settings.finds_tags_once() || depth >= TAGS_MIN,
            tags_samples: 0,
            in_driver_peak: 0,
            last_position: 0,
            last_sync_end: 0,
            last_end: -IDLE_GRACE,
            timer: None,
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
            key: 0,
            slice_end: 0,
            slice_resid: 0,
            slice_dispatch: 0,
            dispatched: 0,
            slice_new: false,
            wait_request: false,
            must_dispatch: false,
            fifo_expire: false,
            idle_window: request.sync && !idle,
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
        self.service.reserve(self.queues.len());
        queue
    }

    fn find_queue(&self, request: &BlockRequest) -> Option<usize> {
        if request.sync {
            *self.of_thread.get(request.context as usize)?
        } else {
            self.of_level[async_slot(request)]
        }
    }

    fn prio_slice(&self, sync: bool, level: u8) -> i64 {
        let base = self.slice[usize::from(sync)];
        base + base / SLICE_SCALE * (4 - i64::from(level))
    }

    fn in_driver(&self) -> u32 {
        self.in_driver[SYNC] + self.in_driver[ASYNC]
    }

    /// `cfq_service_tree_add`.
    fn add_to_service(&mut self, now: i64, queue: usize, front: bool) {
        let busy = self.service.len() as i64;
        self.service.retain(|&other| other != queue);
        let of = &self.queues[queue];
        let key = if of.is_idle() {
            IDLE_DELAY
                + self
                    .service
                    .last()
                    .map_or(now, |&last| self.queues[last].key)
        } else if front && self.settings.adds_what_was_left() {
            0
        } else if front {
            self.service
                .first()
                .map_or(now, |&first| self.queues[first].key)
                - HZ
        } else {
            // busy_queues counts this one, which is on the list already when it is sorted anew.
            let busy = busy.max(self.service.len() as i64 + 1);
            let offset =
                (busy - 1) * (self.prio_slice(true, 0) - self.prio_slice(of.sync, of.level));
            let resid = match self.settings.adds_what_was_left() {
                true => of.slice_resid,
                false => -of.slice_resid,
            };
            now + offset + resid
        };
        let of = &mut self.queues[queue];
        if !front && !of.is_idle() {
            of.slice_resid = 0;
        }
        of.key = key;
        let rank = |of: &Queue| (!of.is_realtime(), of.is_idle(), of.key);
        let mine = rank(of);
        let at = self
            .service
            .partition_point(|&other| rank(&self.queues[other]) <= mine);
        self.service.insert(at, queue);
    }

    /// `__cfq_slice_expired`.
    fn expire(&mut self, now: i64, timed_out: bool) {
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
        }
        if of.on_rr {
            self.add_to_service(now, active, false);
        }
        self.active_thread = None;
    }

    /// `cfq_set_active_queue`.
    fn activate_first(&mut self, now: i64) -> Option<usize> {
        self.active = self.service.first().copied();
        let is_idle = self
            .active
            .is_some_and(|first| self.queues[first].is_idle());
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
        if let Some(active) = self.active {
            let of = &self.queues[active];
            let must = of.must_dispatch && self.settings.weighs_think_times();
            if !of.slice_used(now) || must {
                if !of.sort_list.is_empty() {
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
            && !self.queues[queue].sort_list.is_empty()
        {
            return Some((queue, left - 1));
        }
        let queue = self.select(now)?;
        if !self.may_dispatch(now, queue) {
            return None;
        }
        if !self.settings.sends_together() {
            return Some((queue, 0));
        }
        let of = &mut self.queues[queue];
        of.must_dispatch = false;
        of.wait_request = false;
        self.timer = None;
        let more = match of.is_idle() {
            true => 0,
            false => self.settings.quantum - 1,
        };
        Some((queue, more))
    }

    /// `cfq_may_dispatch`.
    fn may_dispatch(&self, now: i64, queue: usize) -> bool {
        let of = &self.queues[queue];
        if of.idle_window && self.in_driver[ASYNC] > 0 && self.settings.weighs_think_times() {
            return false;
        }
        if self.sync_flight > 0 && !of.sync {
            return false;
        }
        let mut most = if of.is_idle() {
            1
        } else {
            self.settings.quantum
        };
        if of.dispatched >= most {
            if of.is_idle() || self.service.len() > 1 {
                return false;
            }
            most *= 4;
        }
        if !of.sync && self.settings.low_latency {
            let mut depth = ((now - self.last_sync_end) / self.slice[SYNC].max(1)) as u32;
            if depth == 0 && of.dispatched == 0 {
                depth = 1;
            }
            most = most.min(depth);
        }
        of.dispatched < most
    }

    /// `cfq_find_next_rq`.
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
            self.service.retain(|&other| other != queue);
        }
    }

    /// `cfq_update_io_thinktime`, `cfq_update_io_seektime`, `cfq_update_idle_window`.
    fn learn(&mut self, now: i64, queue: usize, request: &BlockRequest) {
        let thread = &mut self.threads[request.context as usize];
        thread.thought(now, self.slice_idle);
        let (think_samples, think_mean) = (thread.samples as u64, thread.mean);

        let of = &mut self.queues[queue];
        of.seeks.moved(request, !self.settings.first_is_no_seek());

        if of.sync && !of.is_idle() {
            if self.slice_idle == 0
                || (!self.settings.low_latency && self.tags && of.seeks.is_seeky())
            {
                of.idle_window = false;
            } else if is_valid(think_samples) {
                let seeks = is_valid(of.seeks.samples) && of.seeks.is_seeky();
                let idle = if seeks && self.settings.weighs_think_times() {
                    MIN_THINK
                } else {
                    self.slice_idle
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
        let (of, new) = (&self.queues[active], &self.queues[queue]);
        if of.slice_used(now) {
            return true;
        }
        if new.is_idle() {
            return false;
        }
        if of.is_idle() || (request.sync && !of.sync) || (new.is_realtime() && !of.is_realtime()) {
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
        request.lbn.abs_diff(self.last_position) <= near
    }

    /// `cfq_arm_slice_timer`.
    fn idle(&mut self, now: i64, queue: usize) {
        if self.flash && self.tags {
            return;
        }
        let waits = self.in_driver() == 0 || self.settings.idles_beside_requests();
        let of = &mut self.queues[queue];
        if self.slice_idle == 0 || !of.idle_window || !waits {
            return;
        }
        let Some(thread) = self.active_thread else {
            return;
        };
        let thread = &self.threads[thread as usize];
        let thinks_long = is_valid(thread.samples as u64) && of.slice_end - now < thread.mean;
        if thinks_long && self.settings.weighs_think_times() {
            return;
        }
        of.wait_request = true;
        let mut idle = self.slice_idle;
        if is_valid(of.seeks.samples) && of.seeks.is_seeky() {
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
        if self.waiting <= TAGS_MIN && self.in_driver() <= TAGS_MIN {
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

/// The timer that comes first, ns.
pub(super) fn earlier(a: Option<i64>, b: Option<i64>) -> Option<u64> {
    let first = [a, b].into_iter().flatten().min()?;
    Some(first as u64 * JIFFY_NS)
}

/// Slot of an asynchronous queue (`cfq_async_queue_prio`).
pub(super) fn async_slot(request: &BlockRequest) -> usize {
    let level = usize::from(request.level.min(7));
    match request.class {
        PriorityClass::Realtime => level,
        PriorityClass::BestEffort => LEVELS + level,
        PriorityClass::Idle => 2 * LEVELS,
    }
}

impl Elevator for Cfq {
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
            self.add_to_service(now, queue, false);
        }
        let next = self.queues[queue].next_rq;
        self.queues[queue].next_rq =
            self.one_way
                .choose(self.last_position, next, Some(id), requests);

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
        let of = &mut self.queues[queue];
        let oldest = if of.fifo_expire {
            None
        } else {
            of.fifo.first()
        };
        of.fifo_expire = true;
        let id = oldest
            .filter(|&id| now_ns >= self.links.expires_ns(id))
            .or(of.next_rq)?;
        self.queues[queue].next_rq = self.next_after(id, queue, requests);
        self.take_out(id, queue, requests);
        if more > 0 && !self.queues[queue].sort_list.is_empty() {
            self.group = Some((queue, more));
        }
        let request = &requests[id as usize];
        self.active_thread.get_or_insert(request.context);
        self.in_driver[usize::from(request.sync)] += 1;
        self.last_position = request.end();
        let async_limit = {
            let of = &mut self.queues[queue];
            of.dispatched += 1;
            of.slice_dispatch += 1;
            of.must_dispatch = false;
            self.sync_flight += u32::from(of.sync);
            // cfq_prio_to_maxrq.
            let base = self.settings.slice_async_rq;
            2 * (base + base * (LEVELS as u32 - 1 - u32::from(of.level)))
        };
        let of = &mut self.queues[queue];
        // 2.6.24 and 2.6.29 count those of one look at the queue, which are fewer.
        let used_up =
            !of.sync && of.slice_dispatch >= async_limit && !self.settings.sends_together();
        if self.service.len() > 1 && (used_up || of.is_idle()) {
            of.slice_end = now + 1;
            self.expire(now, false);
        }
        Some(id)
    }

    fn completed(&mut self, now_ns: u64, id: Id, requests: &[BlockRequest]) {
        let now = jiffies(now_ns);
        let request = &requests[id as usize];
        let Some(queue) = self.find_queue(request) else {
            return;
        };
        self.learn_tags();
        self.in_driver[usize::from(request.sync)] -= 1;
        let of = &mut self.queues[queue];
        of.dispatched -= 1;
        self.sync_flight -= u32::from(of.sync);
        if !of.is_idle() {
            self.last_end = now;
        }
        if request.sync {
            self.threads[request.context as usize].last_end = now;
            self.last_sync_end = now;
        }
        if self.active == Some(queue) {
            if of.slice_new {
                of.slice_new = false;
                let (sync, level) = (of.sync, of.level);
                self.queues[queue].slice_end = now + self.prio_slice(sync, level);
            }
            let of = &self.queues[queue];
            if of.slice_used(now) || of.is_idle() {
                self.expire(now, true);
            } else if of.sort_list.is_empty() && request.sync {
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

    fn may_merge(&mut self, _: u64, id: Id, bio: &BlockRequest, requests: &[BlockRequest]) -> bool {
        // cfq_allow_merge: only within the queue that the bio would go to.
        self.find_queue(bio) == self.find_queue(&requests[id as usize])
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
        if let Some(queue) = self.find_queue(&requests[gone as usize]) {
            self.links.inherit(&mut self.queues[queue].fifo, kept, gone);
            self.take_out(gone, queue, requests);
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
        if of.slice_used(now) || (!self.service.is_empty() && of.sort_list.is_empty()) {
            self.expire(now, false);
        }
    }
}
