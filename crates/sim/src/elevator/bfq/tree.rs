//! B-WF2Q+ (`bfq-wf2q.c`): of the queues that are not ahead of their share, the one that would be done first.

use super::Bfq;
use super::clock::jiffies;

/// `WFQ_SERVICE_SHIFT`.
const SERVICE_SHIFT: u32 = 22;
/// `BFQ_CL_IDLE_TIMEOUT`.
const IDLE_CLASS: i64 = jiffies(200);

/// A queue's place in the order of service (`struct bfq_entity`).
#[derive(Debug, Clone)]
pub(super) struct Entity {
    pub(super) weight: u64,
    pub(super) own_weight: u64,
    pub(super) new_weight: u64,
    pub(super) prio_changed: bool,
    pub(super) budget: i64,
    pub(super) service: i64,
    start: u64,
    finish: u64,
    place: Place,
    /// It is in a tree or in service (`on_st_or_in_serv`).
    pub(super) counts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Nowhere,
    Active,
    Idle,
}

impl Entity {
    pub(super) fn new(weight: u64) -> Entity {
        Entity {
            weight,
            own_weight: weight,
            new_weight: weight,
            prio_changed: true,
            budget: 0,
            service: 0,
            start: 0,
            finish: 0,
            place: Place::Nowhere,
            counts: false,
        }
    }
}

/// The queues of a class (`struct bfq_service_tree`).
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// By finish time; of equals, the first to come.
    active: Vec<usize>,
    /// Queues without requests whose finish time is not reached yet, in the same order.
    idle: Vec<usize>,
    vtime: u64,
    weights: u64,
}

fn delta(service: i64, weight: u64) -> u64 {
    let service = u128::from(service.max(0) as u64);
    ((service << SERVICE_SHIFT) / u128::from(weight.max(1))) as u64
}

impl Bfq {
    fn place(&mut self, queue: usize, place: Place) {
        let (class, finish) = (self.queues[queue].class, self.queues[queue].entity.finish);
        let queues = &self.queues;
        let tree = &mut self.trees[class];
        let list = match place {
            Place::Active => &mut tree.active,
            _ => &mut tree.idle,
        };
        let at = list.partition_point(|&other| queues[other].entity.finish <= finish);
        list.insert(at, queue);
        self.queues[queue].entity.place = place;
        if place == Place::Active {
            self.active.push(queue);
        }
    }

    fn displace(&mut self, queue: usize) {
        let class = self.queues[queue].class;
        let tree = &mut self.trees[class];
        match self.queues[queue].entity.place {
            Place::Nowhere => return,
            Place::Active => {
                tree.active.retain(|&other| other != queue);
                self.active.retain(|&other| other != queue);
            }
            Place::Idle => tree.idle.retain(|&other| other != queue),
        }
        self.queues[queue].entity.place = Place::Nowhere;
    }

    /// `bfq_forget_entity`.
    fn forget(&mut self, queue: usize) {
        let of = &mut self.queues[queue];
        of.entity.counts = false;
        let (class, weight) = (of.class, of.entity.weight);
        self.trees[class].weights -= weight;
        self.release_if_unused(queue);
    }

    /// `bfq_forget_idle`.
    fn forget_idle(&mut self, class: usize) {
        let tree = &mut self.trees[class];
        let finish = |queue: usize| self.queues[queue].entity.finish;
        if tree.active.is_empty()
            && let Some(&last) = tree.idle.last()
            && finish(last) <= tree.vtime
        {
            tree.vtime = finish(last);
        }
        if let Some(&first) = tree.idle.first()
            && finish(first) <= tree.vtime
        {
            self.displace(first);
            self.forget(first);
        }
    }

    /// `__bfq_entity_update_weight_prio`.
    pub(super) fn update_weight(&mut self, queue: usize) {
        if !std::mem::take(&mut self.queues[queue].entity.prio_changed) {
            return;
        }
        let of = &mut self.queues[queue];
        of.entity.own_weight = of.entity.new_weight;
        let (class, before) = (of.class, of.entity.weight);
        let after = of.entity.own_weight * of.raising.factor;
        let is_raised = of.is_raised();
        if before != after {
            self.count_weight(queue, false);
        }
        self.queues[queue].entity.weight = after;
        if before != after && !is_raised {
            self.count_weight(queue, true);
        }
        let weights = &mut self.trees[class].weights;
        *weights = *weights - before + after;
    }

    /// `bfq_weights_tree_add`, `__bfq_weights_tree_remove`.
    pub(super) fn count_weight(&mut self, queue: usize, counts: bool) {
        let of = &mut self.queues[queue];
        if of.counted.is_some() == counts {
            return;
        }
        let weight = of.counted.unwrap_or(of.entity.weight);
        of.counted = counts.then_some(weight);
        let at = self
            .weights
            .binary_search_by_key(&weight, |&(weight, _)| weight);
        match (at, counts) {
            (Ok(at), true) => self.weights[at].1 += 1,
            (Err(at), true) => self.weights.insert(at, (weight, 1)),
            (Ok(at), false) => {
                self.weights[at].1 -= 1;
                if self.weights[at].1 == 0 {
                    self.weights.remove(at);
                }
                self.release_if_unused(queue);
            }
            (Err(_), false) => {}
        }
    }

    /// `bfq_bfqq_served`.
    pub(super) fn serve(&mut self, queue: usize, service: i64) {
        let jiffies = self.clock.jiffies;
        let of = &mut self.queues[queue];
        if of.service_from_backlogged == 0 {
            of.first_io = jiffies;
        }
        if of.is_raised() {
            of.raising.service += service as u64;
        }
        of.service_from_backlogged += service as u64;
        of.entity.service += service;
        let class = of.class;
        let tree = &mut self.trees[class];
        tree.vtime += delta(service, tree.weights);
        self.forget_idle(class);
    }

    /// `bfq_update_fin_time_enqueue`.
    fn enqueue(&mut self, queue: usize, is_shifted: bool) {
        self.update_weight(queue);
        let vtime = self.trees[self.queues[queue].class].vtime;
        let of = &mut self.queues[queue];
        let entity = &mut of.entity;
        entity.finish = entity.start + delta(entity.budget, entity.weight);
        if is_shifted && vtime > entity.finish {
            let shift = (vtime - entity.finish) / of.raising.factor;
            entity.start += shift;
            entity.finish += shift;
        }
        self.place(queue, Place::Active);
    }

    /// `__bfq_activate_entity`. `goes_on`: see the queue.
    fn activate_entity(&mut self, queue: usize, goes_on: bool) {
        let of = &mut self.queues[queue];
        let entity = &mut of.entity;
        let tree = &mut self.trees[of.class];
        let is_shifted = goes_on && tree.vtime > entity.finish;
        let least = if is_shifted {
            entity.finish
        } else {
            tree.vtime
        };
        if entity.place == Place::Idle {
            entity.start = least.max(entity.finish);
            self.displace(queue);
        } else {
            entity.start = least;
            tree.weights += entity.weight;
            entity.counts = true;
        }
        self.enqueue(queue, is_shifted);
    }

    /// `__bfq_requeue_entity`.
    fn requeue_entity(&mut self, queue: usize) {
        if self.served_entity == Some(queue) {
            let entity = &mut self.queues[queue].entity;
            entity.finish = entity.start + delta(entity.service, entity.weight);
            entity.start = entity.finish;
        }
        self.displace(queue);
        self.enqueue(queue, false);
    }

    /// `bfq_activate_requeue_entity`.
    fn activate_or_requeue(&mut self, queue: usize, goes_on: bool, expires: bool) {
        if self.served_entity == Some(queue) || self.queues[queue].entity.place == Place::Active {
            self.requeue_entity(queue);
        } else {
            self.activate_entity(queue, goes_on);
        }
        self.update_next(Some(queue), expires);
    }

    /// `bfq_requeue_bfqq`.
    pub(super) fn requeue(&mut self, queue: usize, expires: bool) {
        self.activate_or_requeue(queue, false, expires);
    }

    /// `bfq_deactivate_entity`.
    fn deactivate(&mut self, queue: usize, expires: bool) {
        if !self.queues[queue].entity.counts {
            return;
        }
        let is_served = self.served_entity == Some(queue);
        let entity = &mut self.queues[queue].entity;
        entity.finish = entity.start + delta(entity.service, entity.weight);
        let finish = entity.finish;
        if is_served {
            self.served_entity = None;
        } else {
            entity.service = 0;
        }
        self.displace(queue);
        if finish > self.trees[self.queues[queue].class].vtime {
            self.place(queue, Place::Idle);
        } else {
            self.forget(queue);
        }
        if self.next == Some(queue) {
            self.update_next(None, expires);
        }
    }

    /// `bfq_add_bfqq_busy`.
    pub(super) fn add_busy(&mut self, queue: usize) {
        let goes_on = std::mem::take(&mut self.queues[queue].goes_on);
        self.activate_or_requeue(queue, goes_on, false);
        let of = &mut self.queues[queue];
        of.busy = true;
        self.busy[of.class] += 1;
        if of.is_raised() {
            self.raised_busy += 1;
        } else if of.dispatched == 0 {
            self.count_weight(queue, true);
        }
        // The one that was woken last is looked at first.
        let waker = self.queues[queue].waker;
        if waker.is_some() {
            self.set_waker(queue, waker);
        }
    }

    /// `bfq_del_bfqq_busy`.
    pub(super) fn remove_busy(&mut self, queue: usize, expires: bool) {
        let of = &mut self.queues[queue];
        of.busy = false;
        self.busy[of.class] -= 1;
        if of.is_raised() {
            self.raised_busy -= 1;
        }
        let is_idle = of.dispatched == 0;
        self.deactivate(queue, expires);
        if is_idle {
            self.count_weight(queue, false);
        }
    }

    /// `bfq_update_next_in_service`.
    fn update_next(&mut self, new: Option<usize>, expires: bool) {
        if let Some(new) = new
            && self.next != Some(new)
        {
            let goes_first = self.next.is_none_or(|next| {
                let (new, next) = (&self.queues[new], &self.queues[next]);
                new.class == next.class
                    && new.entity.start <= self.trees[new.class].vtime
                    && next.entity.finish > new.entity.finish
            });
            if goes_first {
                self.next = Some(new);
                return;
            }
        }
        self.next = self.look_up_next(expires);
    }

    /// `bfq_lookup_next_entity`.
    fn look_up_next(&mut self, expires: bool) -> Option<usize> {
        let mut class = 0;
        if self.idle_class_served + IDLE_CLASS < self.clock.jiffies {
            if !self.trees[2].active.is_empty() {
                class = 2;
            }
            self.idle_class_served = self.clock.jiffies;
        }
        let serves = self.served_entity.is_some() && !expires;
        (class..3).find_map(|class| self.first_of(class, serves))
    }

    /// `__bfq_lookup_next_entity`.
    fn first_of(&mut self, class: usize, serves: bool) -> Option<usize> {
        let queues = &self.queues;
        let start = |&queue: &usize| queues[queue].entity.start;
        let tree = &mut self.trees[class];
        let first = tree.active.iter().map(start).min()?;
        let vtime = tree.vtime.max(first);
        if !serves && vtime > tree.vtime {
            tree.vtime = vtime;
            self.forget_idle(class);
        }
        let queues = &self.queues;
        let eligible = |queue: &&usize| queues[**queue].entity.start <= vtime;
        self.trees[class].active.iter().find(eligible).copied()
    }

    /// `bfq_get_next_queue`.
    pub(super) fn take_next(&mut self) -> Option<usize> {
        if self.busy_queues() == 0 {
            return None;
        }
        let queue = self.next?;
        self.served_entity = Some(queue);
        self.displace(queue);
        self.update_next(None, false);
        Some(queue)
    }
}
