//! `none` and `noop`: requests leave as they came (Linux 2.6.32 `block/noop-iosched.c`; `none` of blk-mq).

use super::Elevator;
use super::fifo::{Fifo, Links};
use crate::request::{BlockRequest, Id};

pub(super) struct Noop {
    links: Links,
    fifo: Fifo,
    waiting: u32,
    merges: bool,
}

impl Noop {
    /// `merges`: true if requests grow while they wait.
    pub(super) fn new(merges: bool) -> Noop {
        Noop {
            links: Links::default(),
            fifo: Fifo::default(),
            waiting: 0,
            merges,
        }
    }
}

impl Elevator for Noop {
    fn insert(&mut self, _: u64, id: Id, _: &[BlockRequest]) {
        self.links.push_back(&mut self.fifo, id, 0);
        self.waiting += 1;
    }

    fn dispatch(&mut self, _: u64, _: &[BlockRequest]) -> Option<Id> {
        let id = self.links.pop_front(&mut self.fifo)?;
        self.waiting -= 1;
        Some(id)
    }

    fn waiting(&self) -> u32 {
        self.waiting
    }

    fn merges(&self) -> bool {
        self.merges
    }

    fn joined(&mut self, _: u64, _: Id, gone: Id, _: &[BlockRequest]) {
        self.links.remove(&mut self.fifo, gone);
        self.waiting -= 1;
    }
}
