//! The write cache: taking writes over, writing them out, and flushes.

use super::{Destage, Dirty, Mechanical, Waiting, blocks_ns};
use crate::command::{Command, Completion, Op, Phases, ServedFrom};
use crate::params::WriteBack;

impl Mechanical {
    /// A write that is on the medium by `now_ns` leaves the cache.
    pub(super) fn settle(&mut self, now_ns: u64) {
        let Some(destage) = self.destage else { return };
        if now_ns < destage.end_ns {
            return;
        }
        self.destage = None;
        if let Some(segment) = destage.segment {
            self.segments.settle(segment);
        }
        self.dirty_blocks -= u64::from(destage.cached_blocks);
        self.admit(destage.end_ns);
        self.end_flushes(destage.end_ns);
    }

    /// Takes over writes that have waited for room.
    pub(super) fn admit(&mut self, now_ns: u64) {
        let mut admitted = 0;
        while let Some(wait) = self.blocked.get(admitted).copied() {
            if !self.has_room(wait.command.blocks) {
                break;
            }
            self.cache_write(
                &wait,
                now_ns.max(wait.off_bus_ns) + self.overheads.reselect_ns,
            );
            admitted += 1;
        }
        self.blocked.drain(..admitted);
    }

    pub(super) fn has_room(&self, blocks: u32) -> bool {
        let WriteBack::Cache {
            commands,
            blocks: limit,
        } = self.buffer.write_back
        else {
            return false;
        };
        let held = self.dirty.len()
            + usize::from(self.destage.is_some_and(|write| write.cached_blocks > 0));
        held < commands as usize && self.dirty_blocks + u64::from(blocks) <= u64::from(limit)
    }

    /// Puts a write into the cache, its data on the bus from `start_ns` on.
    pub(super) fn cache_write(&mut self, wait: &Waiting, start_ns: u64) {
        let command = wait.command;
        let start_ns = start_ns.max(self.bus_free_ns);
        let transfer_ns = blocks_ns(command.blocks, self.bus.write_block_q16);
        let there_ns = start_ns + transfer_ns;
        self.bus_free_ns = there_ns;
        let finish_ns = there_ns + self.overheads.write_complete_ns;
        let overhead_ns = wait.ready_ns - wait.submit_ns + self.overheads.write_complete_ns;
        let phases = Phases {
            queue_ns: finish_ns - wait.submit_ns - overhead_ns - transfer_ns,
            overhead_ns,
            transfer_ns,
            ..Phases::default()
        };
        self.segments
            .overwrite(command.lbn, u64::from(command.blocks), [None, None]);
        self.dirty_blocks += u64::from(command.blocks);
        self.dirty_order += 1;
        let joined = self.buffer.combine_writes.then(|| {
            self.dirty.iter_mut().find(|write| {
                write.lbn + u64::from(write.blocks) == command.lbn
                    && write.blocks + command.blocks <= self.buffer.segment_blocks
            })
        });
        if let Some(Some(write)) = joined {
            write.blocks += command.blocks;
            write.ready_ns = write.ready_ns.max(there_ns);
        } else {
            self.dirty.push(Dirty {
                lbn: command.lbn,
                blocks: command.blocks,
                place: wait.place,
                ready_ns: there_ns,
                order: self.dirty_order,
            });
        }
        self.finish(Completion {
            id: command.id,
            op: command.op,
            served_from: ServedFrom::WriteCache,
            submit_ns: wait.submit_ns,
            finish_ns,
            phases,
        });
    }

    /// Ends the flushes that wait for nothing any more.
    pub(super) fn end_flushes(&mut self, now_ns: u64) {
        let mut index = 0;
        while let Some(flush) = self.flushes.get(index).copied() {
            let cached = self.dirty.iter().any(|write| write.order <= flush.before);
            let under_way = self
                .destage
                .is_some_and(|write| write.order <= flush.before);
            if cached || under_way {
                index += 1;
                continue;
            }
            self.flushes.remove(index);
            let finish_ns = now_ns.max(flush.ready_ns);
            let overhead_ns = flush.ready_ns - flush.submit_ns;
            self.finish(Completion {
                id: flush.id,
                op: Op::Flush,
                served_from: ServedFrom::Medium,
                submit_ns: flush.submit_ns,
                finish_ns,
                phases: Phases {
                    queue_ns: finish_ns - flush.submit_ns - overhead_ns,
                    overhead_ns,
                    ..Phases::default()
                },
            });
        }
    }

    /// The cached write that continues the last one, if no command waits for the arm: with its data there
    /// in time the medium takes both as one, without the turn that a new command would miss.
    pub(super) fn next_in_line(&self, now_ns: u64) -> Option<usize> {
        let (end, end_ns) = self.wrote;
        if end_ns != now_ns || !self.waiting.is_empty() {
            return None;
        }
        self.dirty
            .iter()
            .position(|write| write.lbn == end && write.ready_ns <= now_ns)
    }

    /// Writes a cached write out.
    pub(super) fn write_out(&mut self, now_ns: u64, write: Dirty) {
        self.catch_up(now_ns);
        let leave_ns = self.stop_stream(now_ns);
        let (.., end_ns) =
            self.write_medium(leave_ns, write.lbn, write.blocks, &write.place, 0, None);
        self.free_ns = end_ns;
        self.wrote = (write.lbn + u64::from(write.blocks), end_ns);
        self.destage = Some(Destage {
            segment: None,
            end: write.lbn + u64::from(write.blocks),
            end_ns,
            order: write.order,
            cached_blocks: write.blocks,
        });
    }

    /// True if the write goes to the write cache.
    pub(super) fn caches(&self, command: &Command) -> bool {
        match self.buffer.write_back {
            WriteBack::Cache { blocks, commands } => {
                commands > 0 && !command.force_unit_access && command.blocks <= blocks
            }
            _ => false,
        }
    }
}
