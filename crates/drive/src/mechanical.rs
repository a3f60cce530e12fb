//! A disk drive: queue, buffer, bus and mechanism.
//!
//! What a command costs is worked out when the drive takes it up, in closed form over the runs of blocks it touches; nothing
//! is stepped block by block. The rules (which overheads apply, what read-ahead may be interrupted, when the bus is taken)
//! are those of DiskSim 4.0 (CMU-PDL-08-101); `docs/drives.md` lists them.

use std::sync::Arc;

use crate::command::{Command, Completion, Op, Phases, ServedFrom};
use crate::device::{Device, check};
use crate::error::{DriveError, SubmitError};
use crate::geometry::{Geometry, Place};
use crate::mechanics::{Arm, Mechanics, Run};
use crate::params::{Buffer, Bus, DriveParams, Overheads, Queue, ReadAhead, Scheduling, WriteBack};
use crate::segments::{Content, Hit, Segments};
use crate::stream::Stream;
use crate::transfer::Sending;

/// A command that waits for the mechanism.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    command: Command,
    submit_ns: u64,
    /// Place in the order of arrival.
    arrival: u64,
    /// When the electronics have dealt with the command and the arm may leave.
    ready_ns: u64,
    /// When the command has left the bus.
    off_bus_ns: u64,
    place: Place,
}

/// A write in the cache that is not on the medium.
#[derive(Debug, Clone, Copy)]
struct Dirty {
    lbn: u64,
    blocks: u32,
    place: Place,
    /// When its last block was in the cache.
    ready_ns: u64,
    order: u64,
}

/// A write on its way to the medium.
#[derive(Debug, Clone, Copy)]
struct Destage {
    segment: Option<usize>,
    /// The block behind its last.
    end: u64,
    end_ns: u64,
    /// Place in the order of cached writes, and blocks that leave the cache with it.
    order: u64,
    cached_blocks: u32,
}

/// A flush, and the cached writes it waits for.
#[derive(Debug, Clone, Copy)]
struct Flush {
    id: u64,
    submit_ns: u64,
    ready_ns: u64,
    before: u64,
}

/// A disk drive.
#[derive(Debug, Clone)]
pub struct Mechanical {
    mechanics: Arc<Mechanics>,
    overheads: Overheads,
    bus: Bus,
    buffer: Buffer,
    queue: Queue,
    arm: Arm,
    /// When the mechanism is done with the command it serves; read-ahead may follow.
    free_ns: u64,
    bus_free_ns: u64,
    last_was_read: bool,
    outstanding: u32,
    arrivals: u64,
    segments: Segments,
    stream: Option<Stream>,
    destage: Option<Destage>,
    waiting: Vec<Waiting>,
    /// Cached writes, those that wait for room, and flushes.
    dirty: Vec<Dirty>,
    dirty_blocks: u64,
    dirty_order: u64,
    blocked: Vec<Waiting>,
    flushes: Vec<Flush>,
    finished: Vec<Completion>,
    runs: Vec<Run>,
}

impl Mechanical {
    /// Builds a drive that has just spun up: heads over the first track, nothing in the buffer.
    pub fn new(params: &DriveParams) -> Result<Self, DriveError> {
        let mechanics = Mechanics::new(params)
            .map_err(|error| DriveError::parameter(params.name.clone(), error.to_string()))?;
        let depth = params.queue.depth;
        if !(1..=4096).contains(&depth) {
            let problem = format!("a queue depth of {depth}; allowed are 1 to 4096");
            return Err(DriveError::parameter(params.name.clone(), problem));
        }
        let cached = match params.buffer.write_back {
            WriteBack::Cache { commands, .. } => commands as usize,
            _ => 0,
        };
        Ok(Self {
            mechanics: Arc::new(mechanics),
            overheads: params.overheads,
            bus: params.bus,
            buffer: params.buffer,
            queue: params.queue,
            arm: Arm::default(),
            free_ns: 0,
            bus_free_ns: 0,
            last_was_read: true,
            outstanding: 0,
            arrivals: 0,
            segments: Segments::new(&params.buffer),
            stream: None,
            destage: None,
            waiting: Vec::with_capacity(depth as usize),
            dirty: Vec::with_capacity(cached),
            dirty_blocks: 0,
            dirty_order: 0,
            blocked: Vec::with_capacity(depth as usize),
            flushes: Vec::with_capacity(depth as usize),
            finished: Vec::with_capacity(depth as usize),
            runs: Vec::with_capacity(64),
        })
    }

    /// Where blocks lie.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.mechanics.geometry
    }

    /// Nanoseconds to move the heads over `distance` cylinders for a read.
    #[must_use]
    pub fn seek_ns(&self, distance: u32) -> u64 {
        self.mechanics.seek_ns(Arm::default(), distance, 0, false)
    }

    /// Nanoseconds of one turn.
    #[must_use]
    pub fn turn_ns(&self) -> u64 {
        self.mechanics.rotation.turn_ns()
    }

    fn finish(&mut self, completion: Completion) {
        let at = self
            .finished
            .partition_point(|other| other.finish_ns <= completion.finish_ns);
        self.finished.insert(at, completion);
    }

    fn is_idle(&self, now_ns: u64) -> bool {
        now_ns >= self.free_ns
            && self.waiting.is_empty()
            && self.flushes.is_empty()
            && self.blocked.is_empty()
    }

    /// When the mechanism next takes up a command.
    fn dispatch_ns(&self) -> Option<u64> {
        let at = if !self.waiting.is_empty() {
            Some(self.free_ns)
        } else {
            self.dirty
                .iter()
                .map(|write| write.ready_ns)
                .min()
                .map(|ready| ready.max(self.free_ns))
        };
        match (at, self.destage) {
            (Some(at), _) => Some(at),
            // Someone waits for what is being written.
            (None, Some(destage)) if !self.flushes.is_empty() || !self.blocked.is_empty() => {
                Some(destage.end_ns)
            }
            _ => None,
        }
    }

    /// A write that is on the medium by `now_ns` leaves the cache.
    fn settle(&mut self, now_ns: u64) {
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
    fn admit(&mut self, now_ns: u64) {
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

    fn has_room(&self, blocks: u32) -> bool {
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
    fn cache_write(&mut self, wait: &Waiting, start_ns: u64) {
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
    fn end_flushes(&mut self, now_ns: u64) {
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

    /// Takes up the next command at `now_ns`.
    fn dispatch(&mut self, now_ns: u64) {
        self.settle(now_ns);
        let pressed = !self.blocked.is_empty() || !self.flushes.is_empty();
        let waiting = self.next_waiting(now_ns);
        let dirty = if waiting.is_none() || pressed {
            self.next_dirty(now_ns)
        } else {
            None
        };
        match (waiting, dirty) {
            (Some((index, ns)), dirty) if dirty.is_none_or(|(_, other)| ns <= other) => {
                let wait = self.waiting.swap_remove(index);
                self.serve(now_ns, wait, false);
            }
            (_, Some((index, _))) => {
                let write = self.dirty.swap_remove(index);
                self.write_out(now_ns, write);
            }
            _ => {}
        }
    }

    /// The waiting command that is next, and what positioning for it takes.
    #[inline]
    fn next_waiting(&self, now_ns: u64) -> Option<(usize, u64)> {
        let arm = self.arm_at(now_ns);
        if self.waiting.len() <= 1 {
            return self
                .waiting
                .first()
                .map(|wait| (0, self.cost(arm, now_ns, wait, u64::MAX).unwrap_or(0)));
        }
        let oldest = |waiting: &[Waiting]| {
            waiting
                .iter()
                .enumerate()
                .min_by_key(|(_, wait)| wait.arrival)
                .map(|(index, _)| index)
        };
        if self.queue.scheduling == Scheduling::Fifo {
            return oldest(&self.waiting).map(|index| (index, 0));
        }
        let mut best = (0, u64::MAX);
        let mut first = u64::MAX;
        let mut found = None;
        let reading = self.reading(now_ns);
        for (index, wait) in self.waiting.iter().enumerate() {
            first = first.min(wait.submit_ns);
            let Command { lbn, op, .. } = wait.command;
            if reading.contains(&lbn)
                && op == Op::Read
                && found.is_none_or(|(_, least)| lbn < least)
            {
                found = Some((index, lbn));
            }
            if let Some(cost) = self.cost(arm, now_ns, wait, best.1) {
                best = (index, cost);
            }
        }
        if self.queue.age_bound_ns > 0 && first.saturating_add(self.queue.age_bound_ns) <= now_ns {
            return oldest(&self.waiting).map(|index| (index, 0));
        }
        Some(found.map_or(best, |(index, _)| (index, 0)))
    }

    /// Where a read may begin that read-ahead has come to, or is about to: it costs the arm nothing.
    fn reading(&self, now_ns: u64) -> std::ops::Range<u64> {
        let Some(mut stream) = self.stream else {
            return 0..0;
        };
        let end = stream.progress(&self.mechanics, now_ns);
        let gap = if self.buffer.almost_hits {
            u64::from(self.buffer.forward_gap) + 1
        } else {
            0
        };
        self.segments.start(stream.segment)..(end + gap).min(stream.limit)
    }

    /// What the scheduler takes a command to cost; `None` if not less than `best`.
    #[inline]
    fn cost(&self, arm: Arm, now_ns: u64, wait: &Waiting, best: u64) -> Option<u64> {
        let write = wait.command.op == Op::Write;
        let start_ns = self.leave_ns(now_ns, wait.ready_ns, false);
        self.position_cost(
            arm,
            start_ns,
            &wait.place,
            write,
            best.saturating_sub(start_ns - now_ns),
        )
        .map(|cost| cost + (start_ns - now_ns))
    }

    #[inline]
    fn position_cost(
        &self,
        arm: Arm,
        now_ns: u64,
        place: &Place,
        write: bool,
        best: u64,
    ) -> Option<u64> {
        if self.queue.scheduling == Scheduling::ShortestSeek {
            let distance = u64::from(arm.cylinder.abs_diff(place.cylinder));
            return (distance < best).then_some(distance);
        }
        let seek_ns = self
            .mechanics
            .seek_ns(arm, place.cylinder, place.surface, write)
            + self.queue.settle_margin_ns;
        if seek_ns >= best {
            return None;
        }
        let cost = seek_ns
            + self
                .mechanics
                .rotation
                .wait_ns(now_ns + seek_ns, place.angle);
        (cost < best).then_some(cost)
    }

    /// When the electronics let the arm leave for a command taken up at `now_ns`.
    #[inline]
    fn leave_ns(&self, now_ns: u64, ready_ns: u64, at_once: bool) -> u64 {
        let dispatched_ns = if at_once {
            now_ns
        } else {
            now_ns + self.overheads.dispatch_ns
        };
        dispatched_ns.max(ready_ns)
    }

    fn next_dirty(&self, now_ns: u64) -> Option<(usize, u64)> {
        let arm = self.arm_at(now_ns);
        let start_ns = now_ns + self.overheads.dispatch_ns;
        let mut best: Option<(usize, u64)> = None;
        for (index, write) in self.dirty.iter().enumerate() {
            if write.ready_ns > now_ns {
                continue;
            }
            let limit = best.map_or(u64::MAX, |(_, cost)| cost);
            let cost = match self.queue.scheduling {
                Scheduling::Fifo => (write.order < limit).then_some(write.order),
                _ => self.position_cost(arm, start_ns, &write.place, true, limit),
            };
            if let Some(cost) = cost {
                best = Some((index, cost));
            }
        }
        best
    }

    /// Where the heads stand, read-ahead included.
    fn arm_at(&self, now_ns: u64) -> Arm {
        match self.stream {
            Some(mut stream) => {
                stream.progress(&self.mechanics, now_ns);
                stream.run().arm
            }
            None => self.arm,
        }
    }

    /// Ends read-ahead at `now_ns`; when the heads can leave.
    fn stop_stream(&mut self, now_ns: u64) -> u64 {
        let Some(stream) = self.stream.take() else {
            return now_ns;
        };
        let cut = stream.cut(&self.mechanics, now_ns, self.buffer.stop_in_block);
        self.arm = cut.arm;
        self.segments.fill(stream.segment, cut.end);
        self.segments.settle(stream.segment);
        cut.stop_ns
    }

    /// Notes how far read-ahead has come.
    fn catch_up(&mut self, now_ns: u64) {
        if let Some(mut stream) = self.stream {
            let end = stream.progress(&self.mechanics, now_ns);
            self.segments.fill(stream.segment, end);
            if stream.is_over(now_ns) {
                self.arm = stream.run().arm;
                self.segments.settle(stream.segment);
                self.stream = None;
            } else {
                self.stream = Some(stream);
            }
        }
    }

    fn serve(&mut self, now_ns: u64, wait: Waiting, at_once: bool) {
        self.catch_up(now_ns);
        match wait.command.op {
            Op::Read => self.serve_read(now_ns, &wait, at_once),
            Op::Write | Op::Flush => self.serve_write(now_ns, &wait, at_once),
        }
    }

    fn serve_read(&mut self, now_ns: u64, wait: &Waiting, at_once: bool) {
        let Command { lbn, blocks, .. } = wait.command;
        let blocks = u64::from(blocks);
        let end = lbn + blocks;
        let upcoming = self.stream.map_or(0, |stream| stream.limit);
        // Every segment may be taken by a write under way only if there is but one; reads then go past the buffer.
        let (segment, hit) = self
            .segments
            .for_read(lbn, blocks, upcoming)
            .unwrap_or((0, Hit::None));
        let there = self.segments.get(segment).end.clamp(lbn, end) - lbn;
        let watermark = self.watermark(blocks);
        let sent_at_once = match hit {
            Hit::Whole => true,
            Hit::Partial => self.buffer.send_partial_at_once || there >= watermark.min(blocks),
            Hit::None => false,
        };
        let after = self.last_was_read;
        let preparation = self.overheads.data_preparation_ns;
        let bus_ns = if !sent_at_once {
            None
        } else if at_once {
            Some(now_ns + self.overheads.read_hit.after(after) + preparation)
        } else {
            Some(now_ns.max(wait.off_bus_ns) + self.overheads.reselect_ns + preparation)
        };
        let mut seek_ns = 0;
        let mut wait_ns = 0;
        self.runs.clear();
        let follows =
            hit != Hit::None && self.stream.is_some_and(|stream| stream.segment == segment);
        // The arm leaves when the electronics are ready, and read-ahead stopped meanwhile has let it go.
        let mut leave_ns = self.leave_ns(now_ns, wait.ready_ns, at_once);
        if !follows {
            leave_ns += self.stop_stream(now_ns) - now_ns;
        }
        if hit == Hit::None {
            let entry = self.segments.get(segment);
            (entry.start, entry.end) = (lbn, lbn);
        }
        self.segments.get(segment).written = false;
        self.segments.touch(segment);
        let segment_start = self.segments.get(segment).start;
        let limit = self.read_ahead_limit(segment_start, lbn, end);
        let from = if hit == Hit::None {
            lbn
        } else {
            self.segments.get(segment).end
        };
        if follows {
            let mechanics = Arc::clone(&self.mechanics);
            if let Some(stream) = &mut self.stream {
                stream.extend(end, limit);
                if from < end {
                    collect(stream, &mechanics, lbn.max(from), end, &mut self.runs);
                }
            }
        } else if from < end || (self.buffer.read_ahead_on_hit && from < limit) {
            let place = if from == lbn {
                wait.place
            } else {
                self.mechanics.geometry.locate(from)
            };
            let mut approach = self
                .mechanics
                .approach(self.arm, leave_ns, &place, false, 0);
            let turned_ns = approach.wait_ns;
            let mut stream = Stream::begin(
                &self.mechanics,
                segment,
                from,
                end,
                limit.max(end),
                &self.buffer,
                &place,
                leave_ns,
                &mut approach,
            );
            if from < end {
                seek_ns = approach.seek_ns;
                wait_ns = approach.wait_ns;
                if self.buffer.keep_passing && hit == Hit::None {
                    self.keep_passing(segment, lbn, &place, turned_ns);
                }
                let mechanics = Arc::clone(&self.mechanics);
                collect(&mut stream, &mechanics, from, end, &mut self.runs);
            }
            stream.least = (end + u64::from(self.buffer.least_read_ahead)).min(stream.limit);
            self.segments.get(segment).content = Content::Reading;
            self.stream = Some(stream);
        }
        let sending = Sending {
            blocks,
            first: lbn,
            block_q16: self.bus.read_block_q16,
            watermark,
            hold: self.bus.hold_for_read,
            disconnect_ns: self.overheads.read_disconnect.after(after),
            reconnect_ns: self.overheads.reselect_ns + preparation,
        };
        let start_ns = bus_ns.unwrap_or_else(|| {
            sending.there_ns(watermark, &self.runs).max(wait.off_bus_ns)
                + self.overheads.reselect_ns
                + preparation
        });
        let sent_ns = sending.finish_ns(start_ns.max(self.bus_free_ns), &self.runs);
        self.bus_free_ns = sent_ns;
        let finish_ns = sent_ns + self.overheads.read_complete_ns;
        let read_ns = self.runs.last().map_or(now_ns, Run::end_ns);
        self.free_ns = if self.buffer.leave_early {
            read_ns.max(now_ns)
        } else {
            finish_ns
        };
        if self.buffer.drop_requested {
            self.segments.get(segment).start = end.max(self.segments.get(segment).start);
        }
        let served_from = match hit {
            Hit::Whole => ServedFrom::Buffer,
            Hit::Partial => ServedFrom::PartlyBuffer,
            Hit::None => ServedFrom::Medium,
        };
        let before_ns = match hit {
            Hit::None => leave_ns - now_ns,
            _ => start_ns - now_ns,
        };
        self.report(
            wait,
            now_ns,
            finish_ns,
            served_from,
            before_ns,
            seek_ns,
            wait_ns,
            self.overheads.read_complete_ns,
        );
    }

    /// Blocks on the track before the first one asked for that pass under the head while it waits.
    fn keep_passing(&mut self, segment: usize, lbn: u64, place: &Place, wait_ns: u64) {
        let passed = (wait_ns << 16) / self.mechanics.block_q16(place).max(1);
        let (first, _) = self.mechanics.geometry.track_bounds(lbn);
        self.segments.get(segment).start = first.max(lbn.saturating_sub(passed)).min(lbn);
    }

    /// The block behind the last that will be read ahead after a read of `lbn..end`.
    fn read_ahead_limit(&self, segment_start: u64, lbn: u64, end: u64) -> u64 {
        let capacity = self.mechanics.geometry.blocks();
        let limit = match self.buffer.read_ahead {
            ReadAhead::None => end,
            ReadAhead::TrackAhead if end < capacity => {
                let (first, last) = self.mechanics.geometry.track_bounds(end);
                let place = self.mechanics.geometry.locate(lbn);
                let ahead = u64::from(self.mechanics.geometry.blocks_per_track(place.zone));
                last + 1 + if segment_start < first { ahead } else { 0 }
            }
            _ if self.buffer.most_read_ahead > 0 => end + u64::from(self.buffer.most_read_ahead),
            _ => {
                let size = u64::from(self.buffer.segment_blocks);
                // What was asked for stays if it may not be replaced: read-ahead gets the rest of the segment.
                let room = if self.buffer.keep_requested {
                    size.saturating_sub(end - lbn)
                } else {
                    size
                };
                end + room.max(u64::from(self.buffer.least_read_ahead))
            }
        };
        limit.clamp(end, capacity)
    }

    /// Blocks that must be in the buffer before a read of `blocks` blocks takes the bus.
    fn watermark(&self, blocks: u64) -> u64 {
        let size = u64::from(self.buffer.segment_blocks);
        let of = if self.buffer.watermark_of_request {
            blocks.min(size)
        } else {
            size
        };
        let share = of as f64 * self.buffer.read_watermark;
        let mark = if self.buffer.watermark_of_request {
            share as u64
        } else {
            share.ceil() as u64
        };
        mark.max(1).min(blocks)
    }

    fn serve_write(&mut self, now_ns: u64, wait: &Waiting, at_once: bool) {
        let Command {
            lbn,
            blocks,
            force_unit_access,
            ..
        } = wait.command;
        let through =
            force_unit_access || !matches!(self.buffer.write_back, WriteBack::Single { .. });
        let segment = self.segments.for_write(lbn, u64::from(blocks));
        let extra = segment.and_then(|segment| self.extra_disconnect(segment, lbn, at_once));
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
        } else if !at_once {
            start_ns =
                now_ns.max(wait.off_bus_ns) + overheads.reselect_ns + overheads.data_preparation_ns;
        }
        let start_ns = start_ns.max(self.bus_free_ns);
        let leave_ns = self.leave_ns(now_ns, ready_ns, at_once) + (stopped_ns - now_ns);
        if let Some(segment) = segment {
            self.segments
                .overwrite(lbn, u64::from(blocks), [Some(segment), reading]);
            let entry = self.segments.get(segment);
            entry.start = lbn;
            entry.content = Content::Writing;
            entry.written = true;
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

    /// The extra disconnection, if the drive does it for this write.
    fn extra_disconnect(
        &mut self,
        segment: usize,
        lbn: u64,
        at_once: bool,
    ) -> Option<crate::params::ExtraDisconnect> {
        let newest = self.segments.is_newest(segment);
        let entry = self.segments.get(segment);
        self.overheads
            .extra_disconnect
            .filter(|_| at_once && newest && entry.written && entry.end != lbn)
    }

    /// Writes a cached write out.
    fn write_out(&mut self, now_ns: u64, write: Dirty) {
        self.catch_up(now_ns);
        let leave_ns = self.stop_stream(now_ns) + self.overheads.dispatch_ns;
        let (.., end_ns) =
            self.write_medium(leave_ns, write.lbn, write.blocks, &write.place, 0, None);
        self.free_ns = end_ns;
        self.destage = Some(Destage {
            segment: None,
            end: write.lbn + u64::from(write.blocks),
            end_ns,
            order: write.order,
            cached_blocks: write.blocks,
        });
    }

    /// Brings blocks to the medium from `leave_ns` on: the first seek and wait, and when the last block is written. A block
    /// whose data are not in the buffer when it passes the head is waited for, turn after turn.
    fn write_medium(
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

    /// Reports a command that was taken up at `now_ns`.
    #[allow(clippy::too_many_arguments)] // the parts of a response time, each once
    fn report(
        &mut self,
        wait: &Waiting,
        now_ns: u64,
        finish_ns: u64,
        served_from: ServedFrom,
        before_ns: u64,
        seek_ns: u64,
        wait_ns: u64,
        tail_ns: u64,
    ) {
        let queue_ns = now_ns - wait.submit_ns;
        let overhead_ns = before_ns + tail_ns;
        let transfer_ns = (finish_ns - now_ns).saturating_sub(overhead_ns + seek_ns + wait_ns);
        let overhead_ns = finish_ns - now_ns - seek_ns - wait_ns - transfer_ns;
        self.finish(Completion {
            id: wait.command.id,
            op: wait.command.op,
            served_from,
            submit_ns: wait.submit_ns,
            finish_ns,
            phases: Phases {
                queue_ns,
                overhead_ns,
                seek_ns,
                rotation_ns: wait_ns,
                transfer_ns,
            },
        });
    }

    /// A write that continues the one on its way to the medium joins it; whether it did.
    fn join(&mut self, wait: &Waiting, now_ns: u64) -> bool {
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

    /// A read found wholly in the buffer while the mechanism is at work for another command; whether it was.
    fn serve_beside(&mut self, wait: &Waiting, now_ns: u64) -> bool {
        let command = wait.command;
        if !self.buffer.hits_beside || command.op != Op::Read {
            return false;
        }
        let end = command.lbn + u64::from(command.blocks);
        let written = self
            .dirty
            .iter()
            .any(|write| write.lbn <= command.lbn && end <= write.lbn + u64::from(write.blocks));
        let found = written || {
            let upcoming = 0;
            match self
                .segments
                .for_read(command.lbn, u64::from(command.blocks), upcoming)
            {
                Some((segment, Hit::Whole)) => {
                    self.segments.touch(segment);
                    true
                }
                _ => false,
            }
        };
        if !found {
            return false;
        }
        let ready_ns = now_ns
            + self.overheads.read_hit.after(self.last_was_read)
            + self.overheads.data_preparation_ns;
        let start_ns = ready_ns.max(self.bus_free_ns);
        let sent_ns = start_ns + blocks_ns(command.blocks, self.bus.read_block_q16);
        self.bus_free_ns = sent_ns;
        let finish_ns = sent_ns + self.overheads.read_complete_ns;
        let tail_ns = self.overheads.read_complete_ns;
        self.report(
            wait,
            now_ns,
            finish_ns,
            ServedFrom::Buffer,
            start_ns - now_ns,
            0,
            0,
            tail_ns,
        );
        true
    }

    /// Deals with a command that has just come.
    fn arrive(&mut self, wait: Waiting, now_ns: u64) {
        let command = wait.command;
        match command.op {
            Op::Flush => {
                self.flushes.push(Flush {
                    id: command.id,
                    submit_ns: wait.submit_ns,
                    ready_ns: wait.ready_ns,
                    before: self.dirty_order,
                });
                self.end_flushes(now_ns);
            }
            Op::Write if self.caches(&command) => {
                if self.blocked.is_empty() && self.has_room(command.blocks) {
                    let start_ns = wait.ready_ns + self.overheads.data_preparation_ns;
                    self.cache_write(&wait, start_ns);
                } else {
                    self.blocked.push(wait);
                }
            }
            _ if self.is_idle(now_ns) && !self.must_read_on(&command, now_ns) => {
                self.serve(now_ns, wait, true)
            }
            _ => {
                if !self.join(&wait, now_ns) && !self.serve_beside(&wait, now_ns) {
                    self.waiting.push(wait);
                }
            }
        }
    }

    /// Whether the write goes to the write cache.
    fn caches(&self, command: &Command) -> bool {
        match self.buffer.write_back {
            WriteBack::Cache { blocks, .. } => {
                !command.force_unit_access && command.blocks <= blocks
            }
            _ => false,
        }
    }

    /// Whether read-ahead has to go on for a while before this command can be taken up; the mechanism then counts as busy.
    fn must_read_on(&mut self, command: &Command, now_ns: u64) -> bool {
        let Some(mut stream) = self.stream else {
            return false;
        };
        let end = stream.progress(&self.mechanics, now_ns);
        if end >= stream.least || stream.is_over(now_ns) {
            return false;
        }
        let segment = *self.segments.get(stream.segment);
        if command.op == Op::Read && (segment.start..=end).contains(&command.lbn) {
            return false;
        }
        self.free_ns = stream.reached_ns(&self.mechanics, stream.least);
        stream.limit = stream.least;
        self.stream = Some(stream);
        true
    }
}

impl Device for Mechanical {
    fn capacity_blocks(&self) -> u64 {
        self.mechanics.geometry.blocks()
    }

    fn queue_depth(&self) -> u32 {
        self.queue.depth
    }

    fn outstanding(&self) -> u32 {
        self.outstanding
    }

    fn submit(&mut self, now_ns: u64, command: Command) -> Result<(), SubmitError> {
        check(self, &command)?;
        self.outstanding += 1;
        self.arrivals += 1;
        let at_ns = now_ns + self.overheads.command_ns;
        self.settle(at_ns);
        let after = self.last_was_read;
        let (ready, off_bus) = match command.op {
            Op::Read => (
                self.overheads.read_miss.after(after),
                self.overheads.read_disconnect.after(after),
            ),
            Op::Flush => (self.overheads.write_miss.after(after), 0),
            Op::Write => {
                let cached =
                    self.buffer.write_back != WriteBack::Through && !command.force_unit_access;
                let overhead = if cached {
                    self.overheads.write_hit
                } else {
                    self.overheads.write_miss
                };
                (overhead.after(after), self.overheads.write_disconnect_ns)
            }
        };
        let lbn = if command.op == Op::Flush {
            0
        } else {
            command.lbn
        };
        let wait = Waiting {
            command,
            submit_ns: now_ns,
            arrival: self.arrivals,
            ready_ns: at_ns + ready,
            off_bus_ns: at_ns + ready + off_bus,
            place: self.mechanics.geometry.locate(lbn),
        };
        self.arrive(wait, at_ns);
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        let finish = self.finished.first().map(|completion| completion.finish_ns);
        match (finish, self.dispatch_ns()) {
            (Some(finish), Some(dispatch)) => Some(finish.min(dispatch)),
            (finish, dispatch) => finish.or(dispatch),
        }
    }

    fn advance(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        loop {
            let finish = self
                .finished
                .first()
                .map_or(u64::MAX, |completion| completion.finish_ns);
            let dispatch = self.dispatch_ns().unwrap_or(u64::MAX);
            if finish.min(dispatch) > now_ns {
                return;
            }
            if finish <= dispatch {
                let completion = self.finished.remove(0);
                self.outstanding -= 1;
                self.last_was_read = completion.op == Op::Read;
                done(completion);
            } else {
                self.dispatch(dispatch);
            }
        }
    }
}

/// How the data of a write come into the buffer.
#[derive(Debug, Clone, Copy)]
struct Supply {
    start_ns: u64,
    block_q16: u64,
    first: u64,
    /// Blocks that must be there before the medium takes the first.
    least: u64,
}

impl Supply {
    /// When the data of block `lbn` are in the buffer.
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

fn blocks_ns(blocks: u32, block_q16: u64) -> u64 {
    (u64::from(blocks) * block_q16 + 0xFFFF) >> 16
}

/// Collects the runs that bring blocks `from..end`, and brings the stream to the last of them.
fn collect(stream: &mut Stream, mechanics: &Mechanics, from: u64, end: u64, runs: &mut Vec<Run>) {
    loop {
        let run = *stream.run();
        if run.end() > from && run.first < end {
            let skip = from.saturating_sub(run.first).min(u64::from(run.blocks));
            runs.push(Run {
                first: run.first + skip,
                blocks: (run.end().min(end) - run.first - skip) as u32,
                start_ns: run.passed_ns(skip),
                ..run
            });
        }
        if run.end() >= end || !stream.step(mechanics) {
            return;
        }
    }
}
