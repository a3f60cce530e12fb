//! The textbook's elevators, for teaching and comparison: FCFS, SSTF, LOOK, C-LOOK (Denning, "Effects of Scheduling on
//! File Memory Operations", AFIPS 1967; Teorey and Pinkerton, CACM 15 (1972) 177-184).
//!
//! SCAN and LOOK are one: they differ in the way of the arm to the edge of the disk, where an elevator in the
//! host has no request to send it.

use super::Elevator;
use super::fifo::{Fifo, Links};
use super::sorted::{Nodes, Sorted};
use crate::request::{BlockRequest, Id};

pub(super) struct Classic {
    rule: Rule,
    nodes: Nodes,
    tree: Sorted,
    links: Links,
    fifo: Fifo,
    waiting: u32,
    /// End of the last request dispatched.
    head: u64,
    /// Moving towards higher addresses.
    up: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Fcfs,
    Sstf,
    Look,
    CLook,
}

impl Classic {
    pub(super) fn fcfs() -> Classic {
        Classic::new(Rule::Fcfs)
    }

    pub(super) fn sstf() -> Classic {
        Classic::new(Rule::Sstf)
    }

    pub(super) fn look() -> Classic {
        Classic::new(Rule::Look)
    }

    pub(super) fn c_look() -> Classic {
        Classic::new(Rule::CLook)
    }

    fn new(rule: Rule) -> Classic {
        Classic {
            rule,
            nodes: Nodes::default(),
            tree: Sorted::default(),
            links: Links::default(),
            fifo: Fifo::default(),
            waiting: 0,
            head: 0,
            up: true,
        }
    }

    fn choose(&mut self, requests: &[BlockRequest]) -> Option<Id> {
        if self.rule == Rule::Fcfs {
            return self.fifo.first();
        }
        let above = self.nodes.at_or_after(&self.tree, self.head);
        let below = match above {
            Some(above) => self.nodes.previous(above),
            None => self.tree.last(),
        };
        match self.rule {
            Rule::Fcfs => None,
            Rule::Sstf => match (above, below) {
                (Some(above), Some(below)) => {
                    let up = requests[above as usize].lbn - self.head;
                    let down = self.head - requests[below as usize].lbn;
                    Some(if down < up { below } else { above })
                }
                (above, below) => above.or(below),
            },
            Rule::Look => {
                if (if self.up { above } else { below }).is_none() {
                    self.up = !self.up;
                }
                if self.up { above } else { below }
            }
            Rule::CLook => above.or(self.tree.first()),
        }
    }

    fn take_out(&mut self, id: Id) {
        self.nodes.remove(&mut self.tree, id);
        self.links.remove(&mut self.fifo, id);
        self.waiting -= 1;
    }
}

impl Elevator for Classic {
    fn insert(&mut self, _: u64, id: Id, requests: &[BlockRequest]) {
        self.nodes
            .insert(&mut self.tree, id, requests[id as usize].lbn);
        self.links.push_back(&mut self.fifo, id, 0);
        self.waiting += 1;
    }

    fn dispatch(&mut self, _: u64, requests: &[BlockRequest]) -> Option<Id> {
        let id = self.choose(requests)?;
        self.take_out(id);
        self.head = requests[id as usize].end();
        Some(id)
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn merges(&self) -> bool {
        false
    }

    fn joined(&mut self, _: u64, _: Id, gone: Id, _: &[BlockRequest]) {
        self.take_out(gone);
    }
}
