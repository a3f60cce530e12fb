//! Writes to the medium, with the data on the bus meanwhile.

use super::line::Spot;
use super::{Destage, Mechanical, Taken, Waiting, blocks_ns};
use crate::command::{Command, Op, ServedFrom};
use crate::geometry::Place;
use crate::mechanics::Run;
use crate::params::{ExtraDisconnect, WriteBack};
use crate::segments::Content;

impl Mechanical {
    pub(super) fn serve_write(&mut self, now_ns: u64, wait: &Waiting, taken: Taken) {
        let Command {
            lbn,
            blocks,
            force_unit_access,
            ..
        } = wait.command;
        let through =
            force_unit_access || !matches!(self.buffer.write_back, WriteBack::Single { .. });
        let segment = self.segments.for_write(lbn, u64::from(blocks));
        let extra = segment.and_then(|segment| self.extra_disconnect(segment, lbn, taken));
        let overheads = self.overheads;
        // Read-ahead under way takes the new data over; what other segments hold of these blocks is stale.
        let reading = self.stream.map(|stream| stream.segment);
        let stopped_ns = self.stop_stream(now_ns);
        let mut ready_ns = wait.ready_ns;
        let mut start_ns = ready_ns + overheads.data_preparation_ns;
        let mut disconnect_ns = overheads.write_disconnect_ns;
        let mut reselect_ns = overheads.reselect_ns;
        if let Some(extra) = extra {
            ready_ns = now_ns + extra.command_ns + extra.seek_delta_ns;
            start_ns = now_ns
                + extra.command_ns
                + extra.disconnect_ns
                + extra.between_ns
                + overheads.reselect_ns
                + overheads.data_preparation_ns;
            disconnect_ns = extra.second_disconnect_ns;
            reselect_ns = overheads.reselect_again_ns;
        } else if taken == Taken::Waiting {
            start_ns =
                now_ns.max(wait.off_bus_ns) + overheads.reselect_ns + overheads.data_preparation_ns;
        } else if taken == Taken::InLine {
            start_ns = self.taken_over_ns(wait.off_bus_ns);
        }
        let start_ns = start_ns.max(self.bus_free_ns);
        let leave_ns = now_ns.max(ready_ns) + (stopped_ns - now_ns);
        if let Some(segment) = segment {
            self.segments
                .overwrite(lbn, u64::from(blocks), [Some(segment), reading]);
            self.segments.set(segment, lbn, lbn);
            self.segments.set_written(segment, true);
            self.segments.set_content(segment, Content::Writing);
            self.segments.fill(segment, lbn + u64::from(blocks));
            self.segments.touch(segment);
        } else {
            self.segments
                .overwrite(lbn, u64::from(blocks), [None, reading]);
        }
        let supply = Supply {
            start_ns,
            block_q16: self.bus.write_block_q16,
            first: lbn,
            least: if overheads.extra_disconnect.is_some() {
                if blocks < 45 {
                    u64::from(blocks.min(10))
                } else {
                    15
                }
            } else {
                0
            },
        };
        let (seek_ns, wait_ns, written_ns) = self.write_medium(
            leave_ns,
            lbn,
            blocks,
            &wait.place,
            overheads.minimum_write_seek_ns,
            Some(supply),
        );
        let there_ns = start_ns + blocks_ns(blocks, self.bus.write_block_q16);
        self.bus_free_ns = there_ns;
        let finish_ns;
        if through {
            finish_ns = written_ns.max(there_ns + disconnect_ns)
                + reselect_ns
                + overheads.write_complete_ns;
            self.free_ns = if self.buffer.leave_early {
                written_ns
            } else {
                finish_ns
            };
        } else {
            finish_ns = there_ns + overheads.write_complete_ns;
            self.free_ns = written_ns.max(finish_ns);
        }
        self.wrote = (lbn + u64::from(blocks), written_ns);
        self.destage = Some(Destage {
            segment,
            end: lbn + u64::from(blocks),
            end_ns: written_ns,
            order: 0,
            cached_blocks: 0,
        });
        if through {
            let before_ns = leave_ns - now_ns;
            let tail_ns = overheads.write_complete_ns + reselect_ns;
            self.report(
                wait,
                now_ns,
                finish_ns,
                ServedFrom::Medium,
                before_ns,
                seek_ns,
                wait_ns,
                tail_ns,
            );
        } else {
            let before_ns = start_ns - now_ns;
            let tail_ns = overheads.write_complete_ns;
            self.report(
                wait,
                now_ns,
                finish_ns,
                ServedFrom::WriteCache,
                before_ns,
                0,
                0,
                tail_ns,
            );
        }
    }

    /// Time from which the data of a write that continues the one under way come to the buffer: as soon as the bus is free,
    /// while that one is being written.
    fn taken_over_ns(&self, off_bus_ns: u64) -> u64 {
        let start_ns = off_bus_ns + self.overheads.reselect_ns + self.overheads.data_preparation_ns;
        start_ns.max(self.bus_free_ns)
    }

    /// The waiting write that continues the last one, if its first block is in the buffer: the medium takes both as one, without
    /// the turn that a new command would miss. So a drive without a write cache writes at the rate of its medium if commands
    /// are in its queue (write coalescing with tagged queueing: Conner CFP2105 reference manual, "Write Caching").
    pub(super) fn next_write_in_line(&self, now_ns: u64) -> Option<usize> {
        let (end, end_ns) = self.wrote;
        if end_ns != now_ns || !self.buffer.combine_writes {
            return None;
        }
        let is_next = |spot: &Spot| spot.lbn == end && spot.op == Op::Write;
        let index = self.waiting.spots().iter().position(is_next)?;
        let first_ns = blocks_ns(1, self.bus.write_block_q16);
        let is_there = self.taken_over_ns(self.waiting[index].off_bus_ns) + first_ns <= now_ns;
        (is_there && !self.passes_overdue(index, now_ns)).then_some(index)
    }

    /// The extra disconnection, if the drive does it for this write.
    pub(super) fn extra_disconnect(
        &self,
        segment: usize,
        lbn: u64,
        taken: Taken,
    ) -> Option<ExtraDisconnect> {
        let newest = self.segments.is_newest(segment);
        let (written, end) = (
            self.segments.is_written(segment),
            self.segments.end(segment),
        );
        self.overheads
            .extra_disconnect
            .filter(|_| taken == Taken::AtOnce && newest && written && end != lbn)
    }

    /// Brings blocks to the medium from `leave_ns` on: the first seek and wait, and the time at which the last block is written. A block
    /// whose data are not in the buffer when it passes the head is waited for, turn after turn.
    pub(super) fn write_medium(
        &mut self,
        leave_ns: u64,
        lbn: u64,
        blocks: u32,
        place: &Place,
        least_ns: u64,
        supply: Option<Supply>,
    ) -> (u64, u64, u64) {
        let end = lbn + u64::from(blocks);
        let mut place = *place;
        let mut at = lbn;
        let mut now_ns = leave_ns;
        let mut first = None;
        let turn_ns = self.mechanics.rotation.turn_ns();
        loop {
            let least_ns = if first.is_none() { least_ns } else { 0 };
            let approach = self
                .mechanics
                .approach(self.arm, now_ns, &place, true, least_ns);
            let mut run = self.mechanics.run(at, end, &place, now_ns, approach);
            self.arm = run.arm;
            first.get_or_insert((approach.seek_ns, approach.wait_ns));
            let middle = if self.buffer.write_on_arrival {
                self.mechanics.on_arrival(&run, approach.wait_ns)
            } else {
                None
            };
            match (middle, supply) {
                // In the middle only with all of its data there; the rest is written when the front is.
                (Some((front, rest, begun_ns)), supply)
                    if supply.is_none_or(|supply| supply.there_ns(rest.end() - 1) <= begun_ns) =>
                {
                    now_ns = front.end_ns();
                }
                (_, Some(supply)) => {
                    supply.delay(&mut run, turn_ns);
                    now_ns = run.end_ns();
                }
                _ => now_ns = run.end_ns(),
            }
            at = run.end();
            if at >= end {
                let (seek_ns, wait_ns) = first.unwrap_or_default();
                return (seek_ns, wait_ns, now_ns);
            }
            place = self.mechanics.geometry.locate(at);
        }
    }

    /// Joins a write to the one on its way to the medium if it continues it; true if it did.
    pub(super) fn join(&mut self, wait: &Waiting, now_ns: u64) -> bool {
        let WriteBack::Single { interleaved } = self.buffer.write_back else {
            return false;
        };
        let Some(destage) = self.destage else {
            return false;
        };
        let command = wait.command;
        let alone = interleaved || self.waiting.is_empty();
        let continues =
            command.op == Op::Write && !command.force_unit_access && command.lbn == destage.end;
        if !self.buffer.combine_writes
            || !alone
            || !continues
            || now_ns >= destage.end_ns
            || self.bus_free_ns > now_ns
        {
            return false;
        }
        let start_ns = wait.ready_ns + self.overheads.data_preparation_ns;
        let there_ns = start_ns + blocks_ns(command.blocks, self.bus.write_block_q16);
        self.bus_free_ns = there_ns;
        let supply = Supply {
            start_ns,
            block_q16: self.bus.write_block_q16,
            first: command.lbn,
            least: 0,
        };
        let (.., end_ns) = self.write_medium(
            destage.end_ns,
            command.lbn,
            command.blocks,
            &wait.place,
            0,
            Some(supply),
        );
        let finish_ns = there_ns + self.overheads.write_complete_ns;
        self.free_ns = end_ns.max(finish_ns);
        let end = command.lbn + u64::from(command.blocks);
        if let Some(segment) = destage.segment {
            self.segments.fill(segment, end);
            self.segments.touch(segment);
        }
        self.segments.overwrite(
            command.lbn,
            u64::from(command.blocks),
            [destage.segment, None],
        );
        self.destage = Some(Destage {
            end,
            end_ns,
            ..destage
        });
        let tail_ns = self.overheads.write_complete_ns;
        self.report(
            wait,
            now_ns,
            finish_ns,
            ServedFrom::WriteCache,
            start_ns - now_ns,
            0,
            0,
            tail_ns,
        );
        true
    }
}

/// The arrival of a write's data in the buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Supply {
    start_ns: u64,
    block_q16: u64,
    first: u64,
    /// Blocks that must be there before the medium takes the first.
    least: u64,
}

impl Supply {
    /// Time at which the data of block `lbn` are in the buffer.
    fn there_ns(&self, lbn: u64) -> u64 {
        let blocks = (lbn - self.first + 1).max(self.least);
        self.start_ns + ((blocks * self.block_q16 + 0xFFFF) >> 16)
    }

    /// Puts `run` off by whole turns until its first block is there, and cuts it off before the first block that would
    /// not be.
    fn delay(&self, run: &mut Run, turn_ns: u64) {
        let there_ns = self.there_ns(run.first);
        if there_ns > run.start_ns {
            let turns = (there_ns - run.start_ns).div_ceil(turn_ns);
            run.start_ns += turns * turn_ns;
        }
        // Both sides are straight lines: if the last block is there in time, all are, and if the bus is slower than the
        // medium the first that is not follows from their slopes.
        let last = u64::from(run.blocks) - 1;
        if self.there_ns(run.first + last) <= run.passed_ns(last) {
            return;
        }
        let mut good = 1;
        let mut bad = last;
        while good < bad {
            let middle = (good + bad) / 2;
            if self.there_ns(run.first + middle) <= run.passed_ns(middle) {
                good = middle + 1;
            } else {
                bad = middle;
            }
        }
        run.blocks = good as u32;
    }
}
