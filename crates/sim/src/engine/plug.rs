//! A plug: requests of one thread, gathered and merged before they reach the queues (`blk_start_plug`).
//!
//! Linux 6.1 `block/blk-mq.c` (`blk_add_rq_to_plug`, `blk_mq_dispatch_plug_list`), `block/blk-merge.c`
//! (`blk_attempt_plug_merge`).

use super::bio::{Bio, Chain};
use super::slab::Slab;
use crate::request::BlockRequest;

/// `BLK_PLUG_FLUSH_SIZE`, blocks.
const FLUSH_BLOCKS: u32 = 128 * 1024 / 512;
/// `BLK_MAX_REQUEST_COUNT`; twice as many if they go to several queues.
const MOST: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Plug {
    /// Queue and request, the oldest first.
    entries: Vec<(u32, Chain)>,
    /// Left by a thread that sleeps.
    left: Vec<(u32, Chain)>,
    several: bool,
}

impl Plug {
    /// True if the bio became part of the newest request of its queue.
    pub(crate) fn merge(
        &mut self,
        queue: u32,
        bio: Chain,
        most: u32,
        bios: &mut Slab<Bio>,
    ) -> bool {
        if !self.has_place(queue, &bio, most) {
            return false;
        }
        let mut newest_first = self.entries.iter_mut().rev();
        let Some((_, kept)) = newest_first.find(|(of, _)| *of == queue) else {
            return false;
        };
        if kept.request.end() == bio.request.lbn {
            bios.get_mut(kept.last).next = bio.first;
            kept.last = bio.last;
        } else {
            bios.get_mut(bio.last).next = kept.first;
            kept.first = bio.first;
            kept.request.lbn = bio.request.lbn;
        }
        kept.request.blocks += bio.request.blocks;
        true
    }

    /// True if the bio may become part of the newest request of its queue, at its end or its begin.
    pub(crate) fn has_place(&self, queue: u32, bio: &Chain, most: u32) -> bool {
        self.newest(queue, bio).is_some_and(|kept| {
            let is_before = !bio.is_batch && bio.request.end() == kept.lbn;
            kept.blocks + bio.request.blocks <= most && (kept.end() == bio.request.lbn || is_before)
        })
    }

    /// Blocks for which the newest request of the queue has room at its end, if they follow it.
    pub(crate) fn room_behind(&self, queue: u32, bio: &Chain, most: u32) -> Option<u32> {
        let kept = self.newest(queue, bio)?;
        (kept.end() == bio.request.lbn).then(|| most.saturating_sub(kept.blocks))
    }

    /// The newest request of the queue, if it is of the bio's kind.
    fn newest(&self, queue: u32, bio: &Chain) -> Option<&BlockRequest> {
        let mut newest_first = self.entries.iter().rev();
        let (_, Chain { request: kept, .. }) = newest_first.find(|(of, _)| *of == queue)?;
        let is_alike = kept.write == bio.request.write
            && kept.sync == bio.request.sync
            && !kept.stays_alone()
            && !bio.request.stays_alone();
        is_alike.then_some(kept)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.left.is_empty()
    }

    /// The thread sleeps: the block layer's thread will hand over what it leaves, after that of the threads that run before
    /// (`blk_flush_plug` with `from_schedule`).
    pub(crate) fn leave(&mut self) {
        self.left.append(&mut self.entries);
    }

    /// Requests that threads that sleep have left are the next to be taken; false if there are none.
    pub(crate) fn turn_to_left(&mut self) -> bool {
        if self.entries.is_empty() {
            std::mem::swap(&mut self.entries, &mut self.left);
        }
        !self.entries.is_empty()
    }

    /// True if it is to be emptied before it takes another request.
    pub(crate) fn is_full(&self) -> bool {
        let most = if self.several { 2 * MOST } else { MOST };
        let newest = self.entries.last();
        self.entries.len() >= most
            || newest.is_some_and(|(_, newest)| newest.request.blocks >= FLUSH_BLOCKS)
    }

    /// Requests for a queue.
    pub(crate) fn count(&self, queue: u32) -> u32 {
        let all = self.entries.iter().chain(&self.left);
        all.filter(|(of, _)| *of == queue).count() as u32
    }

    pub(crate) fn add(&mut self, queue: u32, bio: Chain) {
        self.several |= self.entries.last().is_some_and(|(of, _)| *of != queue);
        self.entries.push((queue, bio));
    }

    /// The next request on the way out: all of the queue that got the newest one, oldest first, then the next queue.
    /// `reverses`: a queue that gets its requests the newest first if all are for it (`queue_rqs`).
    pub(crate) fn take(&mut self, reverses: impl Fn(u32) -> bool) -> Option<(u32, Chain)> {
        let queue = self.entries.last()?.0;
        if !self.several && reverses(queue) {
            return self.entries.pop();
        }
        let at = self.entries.iter().position(|(of, _)| *of == queue)?;
        Some(self.entries.remove(at))
    }

    /// The thread has finished (`blk_finish_plug`); the next plug is a new one.
    pub(crate) fn finish(&mut self) {
        self.several = false;
    }
}
