//! Flushes of drives: for requests of the load, for md, and around blocks of md's own.

use super::bio::Metadata;
use super::fabric::Flushes;
use super::{Engine, Outcome, Target};

impl Engine {
    /// Empties the write caches of all drives for a slot; the number of its parts. md flushes its members once at a time,
    /// and all who come meanwhile share the next time (`md_flush_request`). The worker that
    /// begins it runs after the threads that ask for it in the same moment, and after what they send (`submit_flushes`).
    pub(super) fn flush(&mut self, slot: u32) -> u32 {
        let Target::Array(fabric) = &mut self.target else {
            return self.flush_drives(slot);
        };
        fabric.flushes.waiting.push(slot);
        self.has_md_flush |= fabric.flushes.left == 0;
        1
    }

    /// md begins a flush that it was asked for.
    #[cold]
    pub(super) fn begin_md_flush(&mut self) {
        self.has_md_flush = false;
        let left = self.flush_drives(Flushes::SLOT);
        if let Target::Array(fabric) = &mut self.target {
            let flushes = &mut fabric.flushes;
            flushes.left = left;
            std::mem::swap(&mut flushes.running, &mut flushes.waiting);
        }
    }

    /// A member has been flushed for md.
    fn member_flushed(&mut self, queue: usize) -> Outcome {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        fabric.end_flush(queue);
        fabric.flushes.left -= 1;
        if fabric.flushes.left > 0 {
            return Ok(());
        }
        let mut slots = std::mem::take(&mut fabric.flushes.done);
        std::mem::swap(&mut slots, &mut fabric.flushes.running);
        self.has_md_flush = !fabric.flushes.waiting.is_empty();
        for slot in slots.drain(..) {
            self.part_done(slot)?;
        }
        if let Target::Array(fabric) = &mut self.target {
            fabric.flushes.done = slots;
        }
        Ok(())
    }

    /// Flushes every drive that is there; their number.
    pub(super) fn flush_drives(&mut self, slot: u32) -> u32 {
        let mut drives = 0;
        for queue in 0..self.queues.len() {
            let present = match &mut self.target {
                Target::Drive { .. } => true,
                Target::Array(fabric) => fabric.begin_flush(queue),
            };
            if present {
                self.queues[queue].flush(slot);
                self.touch(queue);
                drives += 1;
            }
        }
        drives
    }

    /// A member is flushed: for md, or a request of the load.
    pub(super) fn flush_handled(&mut self, queue: usize, slot: u32) -> Outcome {
        match Metadata::of_slot(slot) {
            Some(of) => self.metadata_step(of, queue, false),
            None if slot == Flushes::SLOT => self.member_flushed(queue),
            None => self.part_done(slot),
        }
    }
}
