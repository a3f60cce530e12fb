//! The block layer's queue of one drive: merging, requests and their limit, the elevator, the drive.

use std::collections::VecDeque;

use spindle_drive::{Command, Completion, Device, Drive, SubmitError};

use super::batches::Batches;
use super::bio::{Bio, Chain};
use super::slab::Slab;
use super::tags::Tags;
use super::throttle::{Throttle, ThrottleSetup};
use crate::controller::Unit;
use crate::elevator::Elevator;
use crate::elevator::sorted::{Nodes, Sorted};
use crate::figures::{DriveFigures, FlashFigures};
use crate::request::{BlockRequest, Id, NONE, Origin};
use crate::ticks::Ticks;

/// Id of a flush at the drive; requests have those of their slots.
const FLUSH: u64 = u64::MAX;
/// `BLK_MQ_BUDGET_DELAY` of 3 ms in ticks.
const AGAIN_TICKS: u64 = 1;
/// Waiting requests with which a queue is plugged no more (`q->unplug_thresh`).
const UNPLUG_REQUESTS: u32 = 4;
/// Time after which it, or md's array, is plugged no more (`q->unplug_delay`).
pub(crate) const UNPLUG_NS: u64 = 3_000_000;

/// The settings of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Limit of requests: in all, or of each kind (synchronous or not) before blk-mq.
    pub(crate) requests: u32,
    /// blk-mq: one pool, threads that wait are woken in batches.
    pub(crate) multi_queue: bool,
    /// Requests that come to an empty elevator wait for more.
    pub(crate) plugs: bool,
    /// The two pools are those of reads and writes.
    pub(crate) by_direction: bool,
    /// A barrier empties the drive's write cache before and after.
    pub(crate) flushes_for_barriers: bool,
    /// Requests that must be free again before threads are woken (`sbq_calc_wake_batch`).
    pub(crate) wake_batch: u32,
    /// The elevator leaves some kinds of requests a part of each word of the map only.
    pub(crate) has_shares: bool,
    /// Commands at the drive.
    pub(crate) depth: u32,
    /// Blocks of a request.
    pub(crate) max_blocks: u32,
    /// A flush waits until nothing else is at the drive, and nothing else until it is done (ATA: FLUSH CACHE is no
    /// queued command).
    pub(crate) flush_alone: bool,
    /// The elevator is asked for one request more than the drive takes (`__blk_mq_do_dispatch_sched`: the request
    /// that finds no tag stays in the hardware queue). An ATA drive's adapter counts before it asks.
    pub(crate) takes_one_ahead: bool,
    /// A reading of the clock takes time.
    pub(crate) starts_take_time: bool,
    /// Write-back is throttled.
    pub(crate) throttle: Option<ThrottleSetup>,
}

/// The state of a block request besides what elevators see.
#[derive(Debug, Clone, Copy)]
struct RequestState {
    first: u32,
    last: u32,
    arrived_ns: u64,
    dispatched_ns: u64,
    /// Its bit in the map of free requests; `NONE`: it goes past the elevator and the map.
    tag: u32,
}

/// Threads that sleep until a request is free (`sbitmap_queue`): each in one of eight lists in turn.
#[derive(Default)]
struct Waiters {
    lists: [VecDeque<Waiter>; 8],
    count: u32,
    /// The list of the next thread that sleeps, and the one that is looked at next.
    sleeps_in: usize,
    wakes: usize,
    /// The one that came last sleeps behind others of its thread.
    is_behind: bool,
}

/// A bio that waits, and its kind's share of the map when it came (`limit_depth` is asked once).
struct Waiter {
    chain: Chain,
    share: Option<u32>,
}

impl Waiters {
    fn push(&mut self, chain: Chain, share: Option<u32>) {
        let len = self.lists.len();
        let last = &self.lists[(self.sleeps_in + len - 1) % len];
        let sleeps = last
            .back()
            .is_some_and(|waits| waits.chain.request.context == chain.request.context);
        self.is_behind = sleeps;
        let list = if sleeps {
            (self.sleeps_in + len - 1) % len
        } else {
            let list = self.sleeps_in;
            self.sleeps_in = (list + 1) % len;
            list
        };
        self.lists[list].push_back(Waiter { chain, share });
        self.count += 1;
    }

    /// The one that came last sleeps in a thread of its own.
    fn part(&mut self) {
        let len = self.lists.len();
        if std::mem::take(&mut self.is_behind)
            && let Some(waiter) = self.lists[(self.sleeps_in + len - 1) % len].pop_back()
        {
            self.lists[self.sleeps_in].push_back(waiter);
            self.sleeps_in = (self.sleeps_in + 1) % len;
        }
    }

    /// Undoes the last `push`.
    fn pop_last(&mut self) -> Option<Waiter> {
        let len = self.lists.len();
        let list = (self.sleeps_in + len - 1) % len;
        let waiter = self.lists[list].pop_back()?;
        if !std::mem::take(&mut self.is_behind) {
            self.sleeps_in = list;
        }
        self.count -= 1;
        Some(waiter)
    }

    /// The next list with threads.
    fn next_list(&mut self) -> usize {
        loop {
            let list = self.wakes;
            self.wakes = (list + 1) % self.lists.len();
            if !self.lists[list].is_empty() || self.count == 0 {
                return list;
            }
        }
    }

    fn take(&mut self, list: usize) -> Option<Waiter> {
        let waiter = self.lists[list].pop_front()?;
        self.count -= 1;
        Some(waiter)
    }
}

/// A queue and its drive.
pub(crate) struct Queue {
    pub(crate) drive: Unit,
    pub(crate) figures: DriveFigures,
    elevator: Box<dyn Elevator>,
    /// Requests have been put into the elevator since it was empty.
    has_inserted: bool,
    /// It is plugged, for so long: nothing goes to the drive (`blk_plug_device`).
    plug_ns: Option<u64>,
    limits: Limits,
    merges: bool,
    /// The adapter of the drive has others.
    shares: bool,
    /// Requests pass the elevator by while none waits there: it would hand them out in order anyway.
    passes: bool,
    requests: Slab<BlockRequest>,
    beside: Vec<RequestState>,
    /// Waiting requests by their end, for back merges.
    ends: Nodes,
    by_end: Sorted,
    /// Pools of requests that have become parts of others while threads wait for one.
    merged: Vec<usize>,
    /// The waiting request that was extended last, or the first one (`q->last_merge`).
    last_merge: Option<Id>,
    allocated: [u32; 2],
    throttle: Option<Box<Throttle>>,
    /// Which requests are free, where the elevator leaves some kinds a part of them only.
    tags: Option<Tags>,
    batches: Batches,
    /// Bios that wait for a request.
    waiting: [VecDeque<Chain>; 2],
    waiters: Waiters,
    /// Those that were woken and have not run since.
    woken: VecDeque<Waiter>,
    /// Bios that waited and have a request since.
    admitted: Vec<Chain>,
    freed: u32,
    at_drive: u32,
    busy_since_ns: u64,
    flushes_waiting: Vec<u32>,
    flushes_running: Vec<u32>,
    /// The drive has not got the flush of those yet.
    has_flush: bool,
    /// Requests that came before it and go before it, where a flush is alone at the drive.
    before_flush: u32,
    /// Writes between two flushes of md's, each with one request for all three (`blk_insert_flush`).
    sequences: Vec<Sequence>,
    /// Taken from the elevator, and without room at the drive (`hctx->dispatch`).
    ahead: Option<Id>,
    /// Requests that go past the elevator, on the same list.
    direct: VecDeque<Id>,
    /// The elevator is to be asked for requests (`blk_mq_run_hw_queue`).
    is_due: bool,
    /// The next completion asks it (`BLK_MQ_S_SCHED_RESTART`).
    restarts: bool,
    /// It is asked again then, as it had requests and gave none (`BLK_MQ_BUDGET_DELAY`).
    again_ns: Option<u64>,
    ticks: Ticks,
    /// Barriers, each after the requests that came before it.
    barriers: VecDeque<Barrier>,
    /// The first of them is being carried out.
    ordered: Option<Ordered>,
    /// The request that was finished last.
    pub(crate) done: Done,
}

/// A write between two flushes (REQ_PREFLUSH, REQ_FUA).
#[derive(Debug, Clone, Copy)]
struct Sequence {
    id: Id,
    pool: usize,
    /// The bit of its request in the map.
    tag: u32,
    /// Slot of those who wait for its end.
    slot: u32,
    is_written: bool,
}

/// A write before which everything that came earlier is done, and after which everything else begins.
struct Barrier {
    id: Id,
    /// Requests that the elevator gave up for it (`elv_drain_elevator`).
    before: VecDeque<Id>,
}

/// The step of a barrier (`blk_do_ordered`).
enum Ordered {
    FlushBefore,
    Write,
    FlushAfter(Finished),
}

/// A block request that the drive has finished.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// The first of its bios, and its pool.
    pub(crate) first: u32,
    pub(crate) pool: u32,
    /// It has its place until the flush after it is done.
    pub(crate) keeps: bool,
    pub(crate) request: BlockRequest,
    pub(crate) arrived_ns: u64,
    pub(crate) dispatched_ns: u64,
}

/// A command that the drive has finished.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Finished {
    /// The block request `Queue::done`.
    Request,
    /// A flush; `Queue::flushed` has those who wait for it.
    Flush,
}

impl Queue {
    pub(crate) fn new(
        drive: Unit,
        name: String,
        model: String,
        mut elevator: Box<dyn Elevator>,
        passes: bool,
        limits: Limits,
    ) -> Queue {
        let capacity = 2 * limits.requests as usize;
        if limits.starts_take_time {
            elevator.time_stands_still();
        }
        Queue {
            figures: DriveFigures {
                name,
                model,
                ..DriveFigures::default()
            },
            merges: elevator.merges(),
            shares: matches!(drive, Unit::Controller(_)),
            passes: passes && !limits.plugs,
            elevator,
            has_inserted: false,
            plug_ns: None,
            requests: Slab::with_capacity(capacity.min(4096)),
            beside: Vec::with_capacity(capacity.min(4096)),
            ends: Nodes::default(),
            by_end: Sorted::default(),
            merged: Vec::new(),
            last_merge: None,
            allocated: [0; 2],
            throttle: limits.throttle.map(|setup| Box::new(Throttle::new(setup))),
            tags: (limits.multi_queue && limits.has_shares).then(|| Tags::new(limits.requests)),
            batches: Batches::default(),
            waiting: Default::default(),
            waiters: Waiters::default(),
            woken: VecDeque::new(),
            admitted: Vec::new(),
            freed: 0,
            at_drive: 0,
            busy_since_ns: 0,
            flushes_waiting: Vec::new(),
            flushes_running: Vec::new(),
            has_flush: false,
            before_flush: 0,
            sequences: Vec::new(),
            ahead: None,
            direct: VecDeque::new(),
            is_due: false,
            restarts: false,
            again_ns: None,
            ticks: Ticks::default(),
            barriers: VecDeque::new(),
            ordered: None,
            done: Done {
                first: Queue::END,
                pool: 0,
                keeps: false,
                request: BlockRequest::read(0, 0, 0),
                arrived_ns: 0,
                dispatched_ns: 0,
            },
            limits,
            drive,
        }
    }

    /// Its timers end with ticks.
    pub(crate) fn follow(&mut self, ticks: Ticks) {
        self.ticks = ticks;
        self.elevator.follow(ticks);
        if let Some(throttle) = &mut self.throttle {
            throttle.follow(ticks);
        }
    }

    /// Longest request, blocks.
    pub(crate) fn max_blocks(&self) -> u32 {
        self.limits.max_blocks
    }

    /// False with `none`: its requests go to the drive as they come.
    pub(crate) fn has_elevator(&self) -> bool {
        self.merges
    }

    /// Time at which the elevator wants to be called.
    #[inline]
    pub(crate) fn timer_ns(&self) -> Option<u64> {
        let window = self.throttle.as_ref().and_then(|of| of.wakes_ns());
        if self.passes {
            return window;
        }
        // Only blk-mq has the one, only what came before it the other.
        let (of_elevator, own) = (self.elevator.timer_ns(), self.again_ns.or(self.plug_ns));
        of_elevator.into_iter().chain(own).chain(window).min()
    }

    /// True if the throttle of write-back lets in more now.
    pub(crate) fn timer(&mut self, now_ns: u64) -> bool {
        let window = self.throttle.as_ref().and_then(|of| of.wakes_ns());
        if self.passes || window.is_some_and(|at_ns| at_ns <= now_ns) {
            return self.throttle.as_mut().is_some_and(|of| of.timer(now_ns));
        }
        if self.again_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.again_ns = None;
        }
        if self.plug_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.plug_ns = None;
        }
        if self
            .elevator
            .timer_ns()
            .is_some_and(|at_ns| at_ns <= now_ns)
        {
            self.elevator.timer(now_ns, self.requests.as_slice());
            self.again_ns = None;
        }
        self.is_due = true;
        false
    }

    /// Lets go what was held up (`blk_remove_plug`); true if anything was.
    pub(crate) fn unplug(&mut self) -> bool {
        self.plug_ns.take().is_some()
    }

    #[inline]
    fn pool(&self, request: &BlockRequest) -> usize {
        let own = if self.limits.by_direction {
            !request.write
        } else {
            request.sync
        };
        usize::from(own && !self.limits.multi_queue)
    }

    /// True if a bio that is to go under a plug has become part of a waiting request (`blk_mq_sched_bio_merge`).
    #[inline]
    pub(crate) fn merges_bio(&mut self, now_ns: u64, chain: &Chain, bios: &mut Slab<Bio>) -> bool {
        self.limits.multi_queue
            && self.merges
            && self.elevator_waits()
            && !chain.request.stays_alone()
            && self.merge(now_ns, chain, bios)
    }

    /// True if a request has become part of one that waits, when it is inserted: only at its end
    /// (`elv_attempt_insert_merge`). Before blk-mq plugs are not modelled: it is a bio.
    #[inline(always)]
    fn merges_request(&mut self, now_ns: u64, chain: &Chain, bios: &mut Slab<Bio>) -> bool {
        self.merges
            && self.elevator_waits()
            && !chain.request.stays_alone()
            && self.merges_there(now_ns, chain, bios)
    }

    fn merges_there(&mut self, now_ns: u64, chain: &Chain, bios: &mut Slab<Bio>) -> bool {
        match self.limits.multi_queue {
            true => self.elevator.merges_inserted() && self.append_request(now_ns, chain, bios),
            false => self.merge(now_ns, chain, bios),
        }
    }

    /// True if a bio may have a request, as far as the throttle of write-back goes (`rq_qos_throttle`). Otherwise it
    /// waits, and its thread sleeps.
    #[inline]
    pub(crate) fn throttle_takes(&mut self, now_ns: u64, chain: &Chain) -> bool {
        let Some(throttle) = &mut self.throttle else {
            return true;
        };
        if !chain.request.write {
            throttle.read_comes(now_ns);
        } else if chain.request.origin != Origin::Direct && !throttle.takes(now_ns, *chain) {
            self.figures.request_waits += 1;
            return false;
        }
        true
    }

    /// Takes bios: they become part of a waiting request, or one of their own, or wait for a free request. True if they
    /// wait. `plugged`: they are a request from a plug.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        now_ns: u64,
        chain: &Chain,
        plugged: bool,
        bios: &mut Slab<Bio>,
    ) -> Result<bool, SubmitError> {
        if plugged {
            self.is_due = true;
            if self.merges_request(now_ns, chain, bios) {
                self.throttled_merged(&chain.request);
                return Ok(false);
            }
        } else {
            // With blk-mq it was tried before (`merges_bio`).
            let is_merged = !self.limits.multi_queue
                && self.merges
                && self.elevator_waits()
                && !chain.request.stays_alone()
                && self.merge(now_ns, chain, bios);
            if is_merged {
                self.unplug_for(&chain.request);
                return Ok(false);
            }
            if !self.throttle_takes(now_ns, chain) {
                return Ok(true);
            }
        }
        let pool = self.pool(&chain.request);
        // A thread that has to sleep for a request asks the elevator first, too (`blk_mq_get_tag`, `get_request_wait`).
        self.is_due = true;
        let share = self.share(&chain.request);
        let tag = match self.limits.multi_queue {
            true => self.take_tag(pool, share),
            false => self.takes(now_ns, pool, &chain.request).then_some(0),
        };
        let Some(tag) = tag else {
            self.figures.request_waits += 1;
            self.unplug();
            if self.limits.multi_queue {
                self.waiters.push(*chain, share);
            } else {
                self.waiting[pool].push_back(*chain);
            }
            return Ok(true);
        };
        if !plugged {
            self.again_ns = None;
        }
        // A bio of another thread than the waiting request's may not become a part of it, nor one for which the last request
        // that was merged has no room; a request may.
        if !plugged && self.limits.multi_queue && self.merges_request(now_ns, chain, bios) {
            self.return_tag(tag);
            self.free_again(&chain.request);
            self.throttled_merged(&chain.request);
            return Ok(false);
        }
        // Requests of a plug are started together.
        let together = plugged && self.limits.starts_take_time;
        self.admit(now_ns, chain, pool, tag, together)?;
        self.unplug_for(&chain.request);
        Ok(false)
    }

    /// A write that someone waits for is not held up (`bio_sync`): reads are not flagged so.
    #[inline]
    fn unplug_for(&mut self, request: &BlockRequest) {
        if self.limits.plugs && request.write && request.sync {
            self.unplug();
        }
    }

    /// Before blk-mq: true if a thread may have a request of this kind.
    fn takes(&mut self, now_ns: u64, pool: usize, of: &BlockRequest) -> bool {
        let taken = (self.allocated[pool], self.limits.requests);
        self.batches.takes(now_ns, pool, of.context, taken)
    }

    #[inline]
    fn share(&self, request: &BlockRequest) -> Option<u32> {
        self.tags.as_ref()?;
        self.elevator.depth_share(request)
    }

    /// A free request for a kind that may use this share of each word; `None`: there is none.
    #[inline]
    fn take_tag(&mut self, pool: usize, share: Option<u32>) -> Option<u32> {
        if self.allocated[pool] >= self.limits.requests {
            return None;
        }
        match &mut self.tags {
            Some(tags) => tags.take(share),
            None => Some(0),
        }
    }

    /// A request of a pool is free again.
    #[inline]
    fn give_back(&mut self, pool: usize) {
        self.allocated[pool] -= 1;
        if !self.limits.multi_queue && self.allocated[pool] < self.limits.requests {
            self.batches.has_room(pool);
        }
    }

    #[inline]
    fn return_tag(&mut self, tag: u32) {
        if let Some(tags) = &mut self.tags
            && tag != NONE
        {
            tags.give_back(tag);
        }
    }

    /// True if a thread finds a free request for this one, beside so many that are under its plug.
    pub(crate) fn has_free(&self, of: &BlockRequest, taken: u32) -> bool {
        self.allocated[0] + taken < self.limits.requests
            && match &self.tags {
                Some(tags) => tags.free(self.share(of)) > taken,
                None => true,
            }
    }

    /// The bio that waits since last has a thread of its own (io_uring's).
    pub(crate) fn waits_alone(&mut self) {
        self.waiters.part();
    }

    /// The bio that waits since last goes away: io_uring has no thread for it yet. False before blk-mq.
    pub(crate) fn takes_back(&mut self) -> bool {
        self.limits.multi_queue && self.waiters.pop_last().is_some()
    }

    /// True if there is a bio that waited and has a request since.
    #[inline]
    pub(crate) fn has_admitted(&self) -> bool {
        !self.admitted.is_empty()
    }

    /// Bios that waited and have a request since; their issuer goes on.
    pub(crate) fn admitted(&mut self) -> Option<Chain> {
        self.admitted.pop()
    }

    /// Takes one of the queue's requests for a chain of bios.
    #[inline]
    fn allocate(&mut self, now_ns: u64, chain: &Chain, pool: usize, tag: u32) -> u32 {
        self.allocated[pool] += 1;
        let id = self.requests.add(chain.request);
        let beside = RequestState {
            first: chain.first,
            last: chain.last,
            arrived_ns: now_ns,
            dispatched_ns: now_ns,
            tag,
        };
        match self.beside.get_mut(id as usize) {
            Some(slot) => *slot = beside,
            None => self.beside.push(beside),
        }
        id
    }

    #[inline(always)]
    fn admit(
        &mut self,
        now_ns: u64,
        chain: &Chain,
        pool: usize,
        tag: u32,
        together: bool,
    ) -> Result<(), SubmitError> {
        let request = chain.request;
        let id = self.allocate(now_ns, chain, pool, tag);
        if self.passes && !together && !self.elevator_waits() && self.may_submit() {
            return self.submit(now_ns, id);
        }
        let was_empty = !self.elevator_waits();
        self.has_inserted = true;
        self.elevator.insert(now_ns, id, self.requests.as_slice());
        if self.merges {
            self.ends.insert(&mut self.by_end, id, request.end());
            self.last_merge.get_or_insert(id);
        }
        if self.limits.plugs {
            self.plug(now_ns, was_empty);
        }
        Ok(())
    }

    /// A request was inserted (`__make_request`, `elv_insert`).
    fn plug(&mut self, now_ns: u64, was_empty: bool) {
        if was_empty {
            self.plug_ns = Some(now_ns + UNPLUG_NS);
        }
        let waiting = self.allocated[0] + self.allocated[1] - self.at_drive;
        if waiting >= UNPLUG_REQUESTS || self.elevator.starts() {
            self.plug_ns = None;
        }
    }

    /// `elv_merge`: at the end of a waiting request, or before the begin of one; the one that was extended last is the first to
    /// be tried. One that has no room is the end of the search.
    fn merge(&mut self, now_ns: u64, chain: &Chain, bios: &mut Slab<Bio>) -> bool {
        let bio = &chain.request;
        if let Some(id) = self.last_merge
            && self.allows(now_ns, id, bio, false)
        {
            let (first, end) = {
                let of = self.requests.get(id);
                (of.lbn, of.end())
            };
            if end == bio.lbn {
                return self.extend_back(now_ns, id, chain, bios);
            }
            if bio.end() == first && !chain.is_batch {
                return self.extend_front(now_ns, id, chain, bios);
            }
        }
        if let Some(id) = self.ends.latest_at(&self.by_end, bio.lbn)
            && self.allows(now_ns, id, bio, false)
        {
            return self.extend_back(now_ns, id, chain, bios);
        }
        if chain.is_batch {
            return false;
        }
        let front = self.elevator.front_merge(bio, self.requests.as_slice());
        match front.filter(|id| self.allows(now_ns, *id, bio, false)) {
            Some(id) => self.extend_front(now_ns, id, chain, bios),
            None => false,
        }
    }

    /// A bio goes to the end of a waiting request, if there is room; the request may become one with the next.
    fn extend_back(&mut self, now_ns: u64, id: Id, chain: &Chain, bios: &mut Slab<Bio>) -> bool {
        if !self.append(id, chain, bios) {
            return false;
        }
        if let Some(next) = self.elevator.neighbour(id, true) {
            self.join(now_ns, id, next, bios);
        }
        true
    }

    /// A bio goes before the begin of a waiting request, if there is room; the request may become one with that before it.
    fn extend_front(&mut self, now_ns: u64, id: Id, chain: &Chain, bios: &mut Slab<Bio>) -> bool {
        let bio = &chain.request;
        if !self.has_room(id, bio) {
            return false;
        }
        let request = self.requests.get_mut(id);
        request.lbn = bio.lbn;
        request.blocks += bio.blocks;
        let first = std::mem::replace(&mut self.beside[id as usize].first, chain.first);
        bios.get_mut(chain.last).next = first;
        self.figures.front_merges += 1;
        self.last_merge = Some(id);
        self.elevator.moved(now_ns, id, self.requests.as_slice());
        if let Some(before) = self.elevator.neighbour(id, false) {
            self.join(now_ns, before, id, bios);
        }
        true
    }

    /// A request that is inserted becomes a part of the one before it (`elv_attempt_insert_merge`), and they of the one before
    /// them.
    fn append_request(&mut self, now_ns: u64, chain: &Chain, bios: &mut Slab<Bio>) -> bool {
        let bio = &chain.request;
        let last = self.last_merge;
        let last = last.filter(|id| self.requests.get(*id).end() == bio.lbn);
        if let Some(id) = last
            && self.allows(now_ns, id, bio, true)
            && self.append(id, chain, bios)
        {
            return true;
        }
        let back = self.ends.latest_at(&self.by_end, bio.lbn);
        let Some(mut kept) = back.filter(|id| self.allows(now_ns, *id, bio, true)) else {
            return false;
        };
        if !self.append(kept, chain, bios) {
            return false;
        }
        while let Some(before) = self
            .ends
            .latest_at(&self.by_end, self.requests.get(kept).lbn)
            && self.join(now_ns, before, kept, bios)
        {
            kept = before;
        }
        true
    }

    /// Puts a bio or its request to the end of a waiting request; false: there is no room.
    fn append(&mut self, id: Id, chain: &Chain, bios: &mut Slab<Bio>) -> bool {
        let bio = &chain.request;
        if !self.has_room(id, bio) {
            return false;
        }
        self.ends.remove(&mut self.by_end, id);
        self.requests.get_mut(id).blocks += bio.blocks;
        let last = std::mem::replace(&mut self.beside[id as usize].last, chain.last);
        bios.get_mut(last).next = chain.first;
        self.figures.back_merges += 1;
        self.ends.insert(&mut self.by_end, id, bio.end());
        self.last_merge = Some(id);
        true
    }

    /// True if a bio, or its request, may become part of a waiting request, but for its length. Since blk-mq only with those of
    /// its I/O priority (`blk_rq_merge_ok`).
    fn allows(&mut self, now_ns: u64, id: Id, bio: &BlockRequest, is_request: bool) -> bool {
        let all = self.requests.as_slice();
        let request = &all[id as usize];
        let has_priority =
            !self.limits.multi_queue || (request.class, request.level) == (bio.class, bio.level);
        let elevator = &mut self.elevator;
        request.write == bio.write
            && !request.stays_alone()
            && (request.sync || !bio.sync)
            && has_priority
            && if is_request {
                elevator.may_join(now_ns, id, bio, all)
            } else {
                elevator.may_merge(now_ns, id, bio, all)
            }
    }

    fn has_room(&self, id: Id, bio: &BlockRequest) -> bool {
        self.requests.get(id).blocks + bio.blocks <= self.limits.max_blocks
    }

    /// `attempt_merge`: two waiting requests that touch become one.
    fn join(&mut self, now_ns: u64, kept: Id, gone: Id, bios: &mut Slab<Bio>) -> bool {
        let (front, back) = (*self.requests.get(kept), *self.requests.get(gone));
        if front.end() != back.lbn
            || front.write != back.write
            || front.sync != back.sync
            || (self.limits.multi_queue && (front.class, front.level) != (back.class, back.level))
            || front.stays_alone()
            || back.stays_alone()
            || front.blocks + back.blocks > self.limits.max_blocks
            || !self
                .elevator
                .may_join(now_ns, kept, &back, self.requests.as_slice())
        {
            return false;
        }
        self.elevator
            .joined(now_ns, kept, gone, self.requests.as_slice());
        self.ends.remove(&mut self.by_end, kept);
        self.ends.remove(&mut self.by_end, gone);
        self.last_merge = Some(kept);
        self.requests.get_mut(kept).blocks += back.blocks;
        self.ends.insert(&mut self.by_end, kept, back.end());
        let (first, last) = (
            self.beside[gone as usize].first,
            self.beside[gone as usize].last,
        );
        let end = std::mem::replace(&mut self.beside[kept as usize].last, last);
        bios.get_mut(end).next = first;
        let arrived_ns = self.beside[gone as usize].arrived_ns;
        let kept = &mut self.beside[kept as usize];
        kept.arrived_ns = kept.arrived_ns.min(arrived_ns);
        self.figures.request_merges += 1;
        self.give_back(self.pool(&back));
        self.throttled_merged(&back);
        self.return_tag(self.beside[gone as usize].tag);
        self.free_again(&back);
        self.requests.remove(gone);
        true
    }

    /// A request that has become a part of another one is free for those who wait.
    fn free_again(&mut self, request: &BlockRequest) {
        let pool = self.pool(request);
        let is_waited_for = match self.limits.multi_queue {
            true => self.waiters.count > 0,
            false => !self.waiting[pool].is_empty(),
        };
        if is_waited_for {
            self.merged.push(pool);
        }
    }

    /// The pool of such a request, if threads wait.
    pub(crate) fn next_merged(&mut self) -> Option<usize> {
        self.merged.pop()
    }

    pub(crate) fn has_merged(&self) -> bool {
        !self.merged.is_empty()
    }

    /// Nothing can become part of a request any more.
    fn leaves_elevator(&mut self, id: Id) {
        self.ends.remove(&mut self.by_end, id);
        self.last_merge = self.last_merge.filter(|last| *last != id);
    }

    /// True if it has something for its drive, which would have room if the adapter had.
    pub(crate) fn starves(&self) -> bool {
        self.shares && !self.drive.has_room() && self.plug_ns.is_none() && self.has_something()
    }

    /// True if the adapter of the drive takes another command: the elevator is to be asked again.
    pub(crate) fn may_go_on(&mut self) -> bool {
        let has_room = self.drive.has_room();
        self.is_due |= has_room;
        has_room
    }

    #[inline]
    fn may_submit(&self) -> bool {
        self.at_drive < self.limits.depth
            && (!self.shares || self.drive.has_room())
            && self.barriers.is_empty()
            && (!self.limits.flush_alone
                || self.flushes_running.is_empty()
                || self.before_flush > 0)
    }

    #[inline(always)]
    fn submit(&mut self, now_ns: u64, id: Id) -> Result<(), SubmitError> {
        self.reserve(now_ns);
        self.hand_over(now_ns, id)
    }

    /// Hands the drive a request that [`Queue::next`] has chosen.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, now_ns: u64, id: Id) -> Result<(), SubmitError> {
        let request = self.requests.get(id);
        let command = if request.discard {
            Command::discard(u64::from(id), request.lbn, request.blocks)
        } else if request.write {
            Command::write(u64::from(id), request.lbn, request.blocks)
        } else {
            Command::read(u64::from(id), request.lbn, request.blocks)
        };
        if let Some(throttle) = &mut self.throttle
            && !request.write
        {
            throttle.read_begins(now_ns, id);
        }
        self.beside[id as usize].dispatched_ns = now_ns;
        self.drive.submit(now_ns, command)
    }

    /// A request will be at the drive.
    #[inline]
    fn reserve(&mut self, now_ns: u64) {
        if self.at_drive == 0 {
            self.busy_since_ns = now_ns;
        }
        self.at_drive += 1;
    }

    /// Takes a write between two flushes and begins the first, for a slot. Elevators never have it, but it takes one of their
    /// requests from here on.
    pub(crate) fn begin_sequence(&mut self, now_ns: u64, chain: Chain, slot: u32) {
        let request = chain.request;
        let pool = self.pool(&request);
        let tag = self.take_tag(pool, None).unwrap_or(NONE);
        let id = self.allocate(now_ns, &chain, pool, NONE);
        self.sequences.push(Sequence {
            id,
            pool,
            tag,
            slot,
            is_written: false,
        });
        self.flush(slot);
    }

    /// A flush is done. The writes of sequences of which it was the first go to the drive, past the elevator and before
    /// all that waits (`blk_mq_sched_bypass_insert`).
    fn go_on_with_sequences(&mut self) {
        for of in self.sequences.iter().filter(|of| !of.is_written) {
            if let Some(at) = (self.flushes_running.iter()).position(|slot| *slot == of.slot) {
                self.flushes_running.swap_remove(at);
                self.direct.push_front(of.id);
            }
        }
    }

    /// The second flush of a slot's sequence is done; what is free again.
    pub(crate) fn end_sequence(&mut self, slot: u32) -> Option<usize> {
        let at = self.sequences.iter().position(|of| of.slot == slot)?;
        let Sequence { pool, tag, .. } = self.sequences.swap_remove(at);
        self.give_back(pool);
        self.return_tag(tag);
        Some(pool)
    }

    /// Takes a write that is a barrier. It has a request at once: the log of a file system is short of none.
    pub(crate) fn add_barrier(&mut self, now_ns: u64, chain: Chain) {
        let request = chain.request;
        self.unplug();
        // The elevator never has it, so it hears nothing of its end either (`blk_sorted_rq`).
        let id = self.allocate(now_ns, &chain, self.pool(&request), NONE);
        let mut before = VecDeque::new();
        while let Some(id) = self.elevator.dispatch(now_ns, self.requests.as_slice()) {
            if self.merges {
                self.leaves_elevator(id);
            }
            before.push_back(id);
        }
        self.barriers.push_back(Barrier { id, before });
    }

    /// Carries out the first barrier: what came before it, then nothing else until it is on the medium.
    fn run_barrier(&mut self, now_ns: u64) -> Result<(), SubmitError> {
        if self.ordered.is_some() {
            return Ok(());
        }
        while self.at_drive < self.limits.depth
            && let Some(barrier) = self.barriers.front_mut()
            && let Some(id) = barrier.before.pop_front()
        {
            self.submit(now_ns, id)?;
        }
        if self.at_drive > 0 {
            return Ok(());
        }
        if self.limits.flushes_for_barriers {
            self.ordered = Some(Ordered::FlushBefore);
            return self.submit_flush(now_ns);
        }
        self.write_barrier(now_ns)
    }

    fn write_barrier(&mut self, now_ns: u64) -> Result<(), SubmitError> {
        self.ordered = Some(Ordered::Write);
        match self.barriers.front().map(|barrier| barrier.id) {
            Some(id) => self.submit(now_ns, id),
            None => Ok(()),
        }
    }

    fn submit_flush(&mut self, now_ns: u64) -> Result<(), SubmitError> {
        self.reserve(now_ns);
        self.drive.submit(now_ns, Command::flush(FLUSH))
    }

    /// True if what it has finished is a step of a barrier.
    #[inline]
    pub(crate) fn carries_barrier_out(&self) -> bool {
        self.ordered.is_some()
    }

    /// A step of the barrier is done; `None`: another follows.
    pub(crate) fn next_of_barrier(
        &mut self,
        now_ns: u64,
        finished: Finished,
    ) -> Result<Option<Finished>, SubmitError> {
        let Some(step) = self.ordered.take() else {
            return Ok(Some(finished));
        };
        match step {
            Ordered::FlushBefore => {
                self.write_barrier(now_ns)?;
                Ok(None)
            }
            Ordered::Write if self.limits.flushes_for_barriers => {
                self.ordered = Some(Ordered::FlushAfter(finished));
                self.submit_flush(now_ns)?;
                Ok(None)
            }
            Ordered::Write => {
                self.barriers.pop_front();
                Ok(Some(finished))
            }
            Ordered::FlushAfter(barrier) => {
                self.barriers.pop_front();
                Ok(Some(barrier))
            }
        }
    }

    /// The next request that the drive may have; barriers and flushes go there at once.
    #[inline]
    pub(crate) fn next(&mut self, now_ns: u64) -> Result<Option<Id>, SubmitError> {
        if !self.barriers.is_empty() {
            return self.run_barrier(now_ns).map(|()| None);
        }
        if self.begins_flush() {
            self.has_flush = false;
            self.submit_flush(now_ns)?;
        }
        if self.plug_ns.is_some() {
            return Ok(None);
        }
        if !std::mem::take(&mut self.is_due) && self.limits.multi_queue && !self.passes {
            return Ok(None);
        }
        if self.ahead.is_some() || !self.direct.is_empty() {
            self.restarts = true;
        }
        if self.may_submit()
            && let Some(id) = self.direct.pop_front().or_else(|| self.ahead.take())
        {
            self.before_flush = self.before_flush.saturating_sub(1);
            self.reserve(now_ns);
            self.is_due = true; // there may be more
            return Ok(Some(id));
        }
        self.has_inserted = self.elevator_waits();
        while self.elevator_waits() && self.ahead.is_none() && self.direct.is_empty() {
            let has_room = self.may_submit();
            if !has_room && !self.limits.takes_one_ahead {
                self.restarts = true;
                break;
            }
            let Some(id) = self.elevator.dispatch(now_ns, self.requests.as_slice()) else {
                self.before_flush = 0;
                if self.limits.multi_queue && self.again_ns.is_none() {
                    self.again_ns = Some(self.ticks.timer_ns(now_ns, AGAIN_TICKS));
                }
                break;
            };
            if self.merges {
                self.leaves_elevator(id);
            }
            if has_room {
                self.before_flush = self.before_flush.saturating_sub(1);
                self.reserve(now_ns);
                self.is_due = true; // there may be more
                return Ok(Some(id));
            }
            self.ahead = Some(id);
            self.restarts = true;
        }
        Ok(None)
    }

    /// True if it is to be asked for requests.
    #[inline]
    pub(crate) fn has_to_run(&self) -> bool {
        (self.is_due || self.passes) && self.has_something()
    }

    /// True if something waits in the elevator. Below `none` nothing is put there while the drive has room: so it is rarely asked.
    #[inline]
    fn elevator_waits(&self) -> bool {
        self.has_inserted && self.elevator.waiting() > 0
    }

    /// True if something waits for its drive.
    #[inline]
    fn has_something(&self) -> bool {
        self.elevator_waits()
            || self.ahead.is_some()
            || !self.direct.is_empty()
            || self.has_flush
            || !self.barriers.is_empty()
    }

    /// True if it has nothing to hand over, and no elevator to ask.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.passes && !self.has_something()
    }

    /// True if it begins a flush when it runs.
    #[inline]
    pub(crate) fn begins_flush(&self) -> bool {
        let room = if self.limits.flush_alone {
            self.at_drive == 0 && self.before_flush == 0
        } else {
            self.at_drive < self.limits.depth
        };
        self.has_flush && room
    }

    /// A slot of the load wants the write cache emptied.
    pub(crate) fn flush(&mut self, slot: u32) {
        self.flushes_waiting.push(slot);
        self.kick_flush();
    }

    /// One flush at a time, also while the drive does not take it yet: those who come meanwhile share the next
    /// (`blk_kick_flush`).
    fn kick_flush(&mut self) {
        if self.flushes_running.is_empty() && !self.flushes_waiting.is_empty() {
            std::mem::swap(&mut self.flushes_waiting, &mut self.flushes_running);
            (self.has_flush, self.is_due) = (true, true);
            if self.limits.flush_alone {
                let waiting = self.elevator.waiting() + self.direct.len() as u32;
                self.before_flush = waiting + u32::from(self.ahead.is_some());
            }
        }
    }

    /// Appends the slots whose flush is done; the next one may begin.
    pub(crate) fn take_flushed(&mut self, slots: &mut Vec<u32>) {
        slots.append(&mut self.flushes_running);
        self.kick_flush();
    }

    /// Records the finished command; its place is free again. It may be a step of a barrier.
    #[inline]
    pub(crate) fn finish(&mut self, now_ns: u64, completion: &Completion) -> Finished {
        self.at_drive -= 1;
        if self.limits.plugs {
            self.unplug(); // the driver asks for more (`blk_run_queue`)
        }
        if self.at_drive == 0 {
            self.figures.busy_ns += now_ns - self.busy_since_ns;
        }
        self.figures.phases(completion);
        if completion.id == FLUSH {
            self.figures.flushes += 1;
            self.is_due = true;
            self.go_on_with_sequences();
            return Finished::Flush;
        }
        let id = completion.id as Id;
        let request = *self.requests.get(id);
        let beside = self.beside[id as usize];
        if !self.passes {
            if beside.tag != NONE {
                self.elevator
                    .completed(now_ns, id, self.requests.as_slice());
            }
            if self.elevator.runs_after_completion() || std::mem::take(&mut self.restarts) {
                self.restarts = false;
                self.again_ns = None;
                self.is_due = true;
            }
        }
        self.figures
            .served(&request, beside.dispatched_ns - beside.arrived_ns);
        if let Some(throttle) = &mut self.throttle {
            let is_throttled = request.write && request.origin != Origin::Direct;
            let took_ns = now_ns - beside.dispatched_ns;
            throttle.ends(now_ns, id, !request.write, is_throttled, took_ns);
        }
        self.requests.remove(id);
        // Its number may be another request's afterwards.
        let is_it = |of: &&mut Sequence| of.id == id && !of.is_written;
        let pool = self.pool(&request);
        let sequence = self.sequences.iter_mut().find(is_it);
        let keeps = sequence.is_some();
        if let Some(of) = sequence {
            of.is_written = true;
            let slot = of.slot;
            self.flush(slot);
        } else {
            self.give_back(pool);
            self.return_tag(beside.tag);
        }
        self.done = Done {
            first: beside.first,
            pool: pool as u32,
            keeps,
            request,
            arrived_ns: beside.arrived_ns,
            dispatched_ns: beside.dispatched_ns,
        };
        Finished::Request
    }

    /// True if bios wait for a request.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiters.count > 0 || self.waiting.iter().any(|of| !of.is_empty())
    }

    /// A request of a pool is free again: bios that wait for one may get it.
    pub(crate) fn freed(
        &mut self,
        now_ns: u64,
        pool: usize,
        bios: &mut Slab<Bio>,
    ) -> Result<(), SubmitError> {
        if self.limits.multi_queue {
            return self.wake_batch(now_ns, bios);
        }
        if self.allocated[pool] < self.limits.requests {
            self.wake_one(now_ns, pool, bios)?;
        }
        Ok(())
    }

    /// `__freed_request`: the thread that has slept longest for a request of a pool gets one, with all that it had to send
    /// behind it as far as its batch reaches.
    fn wake_one(
        &mut self,
        now_ns: u64,
        pool: usize,
        bios: &mut Slab<Bio>,
    ) -> Result<(), SubmitError> {
        let Some(thread) = self.waiting[pool].front().map(|of| of.request.context) else {
            return Ok(());
        };
        self.batches.begin(now_ns, thread);
        while let Some(chain) = self.waiting[pool].front().copied()
            && chain.request.context == thread
            && self.takes(now_ns, pool, &chain.request)
        {
            self.waiting[pool].pop_front();
            self.give(now_ns, chain, pool, 0, bios)?;
        }
        Ok(())
    }

    /// The next bio that the throttle held back and lets in now; its thread goes on. `goes_on`: it is not the first of
    /// this moment.
    #[inline]
    pub(crate) fn let_in(&mut self, now_ns: u64, goes_on: bool) -> Option<Chain> {
        self.throttle.as_mut()?.next(now_ns, goes_on)
    }

    /// A request that the throttle let in has become part of another.
    #[inline]
    fn throttled_merged(&mut self, request: &BlockRequest) {
        if request.write
            && request.origin != Origin::Direct
            && let Some(throttle) = &mut self.throttle
        {
            throttle.merged();
        }
    }

    /// Nothing was written for a long time.
    pub(crate) fn rest(&mut self) {
        if let Some(throttle) = &mut self.throttle {
            throttle.rest();
        }
    }

    /// Nothing comes from the page cache.
    pub(crate) fn drop_throttle(&mut self) {
        self.throttle = None;
    }

    /// A writer sleeps because too many pages are dirty.
    pub(crate) fn writer_waits(&mut self, now_ns: u64) {
        if let Some(throttle) = &mut self.throttle {
            throttle.writer_waits(now_ns);
        }
    }

    /// `sbitmap_queue_wake_up`: after a batch of requests some of the threads of one waiting list are woken.
    fn wake_batch(&mut self, now_ns: u64, bios: &mut Slab<Bio>) -> Result<(), SubmitError> {
        let Some(list) = self.next_woken_list() else {
            return Ok(());
        };
        let batch = self.limits.wake_batch;
        let (mut woken, mut thread) = (0, None);
        let mut waiting = self.waiters.lists[list].len();
        while waiting > 0
            && let Some(front) = self.waiters.lists[list].front()
        {
            waiting -= 1;
            // Further bios of a thread follow as soon as it runs.
            let context = front.chain.request.context;
            if thread.replace(context) != Some(context) {
                woken += 1;
            }
            if woken > batch {
                break;
            }
            let share = front.share;
            let Some(tag) = self.take_tag(0, share) else {
                if self.tags.is_none() {
                    break;
                }
                // The thread sleeps again, in another list.
                if let Some(waiter) = self.waiters.take(list) {
                    self.waiters.push(waiter.chain, waiter.share);
                }
                continue;
            };
            if let Some(waiter) = self.waiters.take(list) {
                self.give(now_ns, waiter.chain, 0, tag, bios)?;
            }
        }
        Ok(())
    }

    /// As `freed`, where the threads that are woken run one after another (`next_woken`): each takes what it finds. Their
    /// number.
    pub(crate) fn wakes(&mut self) -> u32 {
        let Some(list) = self.next_woken_list() else {
            return 0;
        };
        let mut woken = 0;
        while woken < self.limits.wake_batch
            && let Some(waiter) = self.waiters.take(list)
        {
            self.woken.push_back(waiter);
            woken += 1;
        }
        woken
    }

    /// The bio whose thread was woken as the last but so many.
    pub(crate) fn woken(&self, before_last: u32) -> Option<u32> {
        let at = self.woken.len().checked_sub(before_last as usize + 1)?;
        Some(self.woken[at].chain.first)
    }

    /// A request is free: the list of which threads are woken, if it makes a batch full.
    fn next_woken_list(&mut self) -> Option<usize> {
        if self.waiters.count == 0 {
            return None;
        }
        self.freed += 1;
        if self.freed < self.limits.wake_batch && self.allocated[0] > 0 {
            return None;
        }
        self.freed = 0;
        self.is_due = true;
        Some(self.waiters.next_list())
    }

    /// The next bio whose thread was woken and found a free request. Threads that find none sleep again, in another list.
    pub(crate) fn next_woken(
        &mut self,
        now_ns: u64,
        bios: &mut Slab<Bio>,
    ) -> Result<bool, SubmitError> {
        while let Some(waiter) = self.woken.pop_front() {
            if self.takes_request(now_ns, waiter, bios)? {
                return Ok(true);
            }
            self.waiters.part();
        }
        Ok(false)
    }

    /// The thread of this bio, which was woken, takes a free request, or sleeps again.
    pub(crate) fn woken_looks(
        &mut self,
        now_ns: u64,
        bio: u32,
        bios: &mut Slab<Bio>,
    ) -> Result<(), SubmitError> {
        let is_its = |waiter: &Waiter| waiter.chain.first == bio;
        if let Some(waiter) =
            (self.woken.iter().position(is_its)).and_then(|at| self.woken.remove(at))
        {
            self.takes_request(now_ns, waiter, bios)?;
        }
        Ok(())
    }

    /// As `woken_looks`, where the thread keeps its request under its plug, which has so many of this queue: the bio, if
    /// there is a request for it.
    pub(crate) fn woken_takes(&mut self, bio: u32, plugged: u32) -> Option<Chain> {
        let at = self.woken.iter().position(|of| of.chain.first == bio)?;
        let of = &self.woken[at];
        if of.share.is_some() || !self.has_free(&of.chain.request, plugged) {
            return None;
        }
        self.is_due = true;
        self.woken.remove(at).map(|of| of.chain)
    }

    fn takes_request(
        &mut self,
        now_ns: u64,
        waiter: Waiter,
        bios: &mut Slab<Bio>,
    ) -> Result<bool, SubmitError> {
        let Some(tag) = self.take_tag(0, waiter.share) else {
            self.waiters.push(waiter.chain, waiter.share);
            return Ok(false);
        };
        self.is_due = true;
        self.give(now_ns, waiter.chain, 0, tag, bios)?;
        Ok(true)
    }

    /// A bio that waited gets a request.
    fn give(
        &mut self,
        now_ns: u64,
        chain: Chain,
        pool: usize,
        tag: u32,
        bios: &mut Slab<Bio>,
    ) -> Result<(), SubmitError> {
        self.admitted.push(chain);
        // Before blk-mq, whoever has slept does not look again.
        if self.limits.multi_queue && self.merges_request(now_ns, &chain, bios) {
            self.return_tag(tag);
            self.free_again(&chain.request);
            self.throttled_merged(&chain.request);
            return Ok(());
        }
        self.admit(now_ns, &chain, pool, tag, false)
    }

    /// A thread of the load has ended.
    pub(crate) fn exits(&mut self, now_ns: u64, thread: u32) {
        self.is_due |= self.elevator.exits(now_ns, thread);
    }

    /// Its figures at the end of a run.
    pub(crate) fn into_figures(self) -> DriveFigures {
        let flash = match &self.drive {
            Unit::Drive(Drive::Flash(flash)) => Some(FlashFigures::new(flash)),
            _ => None,
        };
        DriveFigures {
            flash,
            ..self.figures
        }
    }

    /// End of the list of a request's bios.
    pub(crate) const END: u32 = NONE;
}
