//! The requests that wait: a set for each thread's synchronous ones, and one for each priority's asynchronous ones.

use spindle_workload::PriorityClass;

use super::super::choose::OneWay;
use super::super::fifo::{Fifo, Links};
use super::super::levels::{ASYNC_SLOTS, async_slot};
use super::super::sorted::{Nodes, Sorted};
use super::Settings;
use crate::request::{BlockRequest, Id};

/// Requests of `struct cfq_queue`.
pub(super) struct Set {
    pub(super) sync: bool,
    pub(super) class: PriorityClass,
    pub(super) level: u8,
    /// Requests in it.
    pub(super) len: u32,
    sorted: Sorted,
    fifo: Fifo,
    next: Option<Id>,
}

impl Set {
    fn of(request: &BlockRequest) -> Set {
        let is_idle = request.class == PriorityClass::Idle;
        Set {
            sync: request.sync,
            class: request.class,
            level: if is_idle { 7 } else { request.level.min(7) },
            len: 0,
            sorted: Sorted::default(),
            fifo: Fifo::default(),
            next: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.class == PriorityClass::Idle
    }

    pub(super) fn is_realtime(&self) -> bool {
        self.class == PriorityClass::Realtime
    }
}

/// All sets, by number.
pub(super) struct Sets {
    one_way: OneWay,
    nodes: Nodes,
    links: Links,
    sets: Vec<Set>,
    of_thread: Vec<Option<usize>>,
    of_level: [Option<usize>; ASYNC_SLOTS],
    waiting: u32,
    last_position: u64,
}

impl Sets {
    pub(super) fn new(settings: &Settings) -> Sets {
        Sets {
            one_way: OneWay {
                back_max: settings.back_seek_max,
                back_penalty: settings.back_seek_penalty,
            },
            nodes: Nodes::default(),
            links: Links::default(),
            sets: Vec::new(),
            of_thread: Vec::new(),
            of_level: [None; ASYNC_SLOTS],
            waiting: 0,
            last_position: 0,
        }
    }

    pub(super) fn of(&self, set: usize) -> &Set {
        &self.sets[set]
    }

    /// Requests in all sets.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Where the last request that was sent ends.
    pub(super) fn last_position(&self) -> u64 {
        self.last_position
    }

    pub(super) fn find(&self, request: &BlockRequest) -> Option<usize> {
        if request.sync {
            *self.of_thread.get(request.context as usize)?
        } else {
            self.of_level[async_slot(request)]
        }
    }

    /// `cfq_get_queue`: the set of a request, made if there is none.
    pub(super) fn find_or_add(&mut self, request: &BlockRequest) -> usize {
        if let Some(set) = self.find(request) {
            return set;
        }
        let set = self.sets.len();
        self.sets.push(Set::of(request));
        if request.sync {
            let thread = request.context as usize;
            if self.of_thread.len() <= thread {
                self.of_thread.resize(thread + 1, None);
            }
            self.of_thread[thread] = Some(set);
        } else {
            self.of_level[async_slot(request)] = Some(set);
        }
        set
    }

    /// `cfq_add_rq_rb`.
    pub(super) fn insert(
        &mut self,
        set: usize,
        id: Id,
        expires_ns: u64,
        requests: &[BlockRequest],
    ) {
        let of = &mut self.sets[set];
        self.nodes
            .insert(&mut of.sorted, id, requests[id as usize].lbn);
        self.links.push_back(&mut of.fifo, id, expires_ns);
        of.len += 1;
        self.waiting += 1;
        of.next = self
            .one_way
            .choose(self.last_position, of.next, Some(id), requests);
    }

    /// The request that came first, if it is overdue.
    pub(super) fn oldest(&self, set: usize, is_overdue: impl Fn(u64) -> bool) -> Option<Id> {
        let first = self.sets[set].fifo.first();
        first.filter(|&id| is_overdue(self.links.expires_ns(id)))
    }

    /// Time by which a request should have gone to the device, also once it has.
    pub(super) fn expires_ns(&self, id: Id) -> u64 {
        self.links.expires_ns(id)
    }

    /// The one that is near.
    pub(super) fn next(&self, set: usize) -> Option<Id> {
        self.sets[set].next
    }

    /// Takes a request that goes to the device.
    pub(super) fn send(&mut self, set: usize, id: Id, requests: &[BlockRequest]) {
        self.sets[set].next = self.next_after(id, set, requests);
        self.remove(set, id, requests);
        self.last_position = requests[id as usize].end();
    }

    /// `cfq_remove_request`.
    fn remove(&mut self, set: usize, id: Id, requests: &[BlockRequest]) {
        if self.sets[set].next == Some(id) {
            self.sets[set].next = self.next_after(id, set, requests);
        }
        let of = &mut self.sets[set];
        self.links.remove(&mut of.fifo, id);
        self.nodes.remove(&mut of.sorted, id);
        of.len -= 1;
        self.waiting -= 1;
    }

    /// `cfq_find_next_rq`.
    fn next_after(&self, id: Id, set: usize, requests: &[BlockRequest]) -> Option<Id> {
        let first = self.sets[set].sorted.first();
        let next = self.nodes.next(id).or(first.filter(|&first| first != id));
        let previous = self.nodes.previous(id);
        self.one_way
            .choose(self.last_position, next, previous, requests)
    }

    /// `cfq_find_rq_fmerge`.
    pub(super) fn front_merge(&self, bio: &BlockRequest, requests: &[BlockRequest]) -> Option<Id> {
        let tree = &self.sets[self.find(bio)?].sorted;
        self.nodes
            .exactly_at(tree, bio.end())
            .filter(|&id| requests[id as usize].write == bio.write)
    }

    /// `cfq_reposition_rq_rb`.
    pub(super) fn moved(&mut self, id: Id, requests: &[BlockRequest]) {
        let request = &requests[id as usize];
        let Some(set) = self.find(request) else {
            return;
        };
        let of = &mut self.sets[set];
        self.nodes.remove(&mut of.sorted, id);
        self.nodes.insert(&mut of.sorted, id, request.lbn);
        of.next = self
            .one_way
            .choose(self.last_position, of.next, Some(id), requests);
    }

    pub(super) fn neighbour(&self, id: Id, after: bool) -> Option<Id> {
        if after {
            self.nodes.next(id)
        } else {
            self.nodes.previous(id)
        }
    }

    /// `cfq_merged_requests`: the set that `gone` was in.
    pub(super) fn joined(
        &mut self,
        kept: Id,
        gone: Id,
        requests: &[BlockRequest],
    ) -> Option<usize> {
        let (keeper, goner) = (&requests[kept as usize], &requests[gone as usize]);
        let set = self.find(goner)?;
        if self.find(keeper) == Some(set) {
            self.links.inherit(&mut self.sets[set].fifo, kept, gone);
        }
        self.remove(set, gone, requests);
        Some(set)
    }
}
