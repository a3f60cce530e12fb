//! Reads: the state of the buffer, the work of the arm, the end of the last block, and read-ahead after it.

use super::{Mechanical, Waiting, blocks_ns};
use crate::command::{Command, Op, ServedFrom};
use crate::geometry::Place;
use crate::mechanics::{Mechanics, Run};
use crate::params::ReadAhead;
use crate::segments::{Content, Hit};
use crate::stream::Stream;
use crate::transfer::HostTransfer;

impl Mechanical {
    pub(super) fn serve_read(&mut self, now_ns: u64, wait: &Waiting, at_once: bool) {
        let Command { lbn, blocks, .. } = wait.command;
        let blocks = u64::from(blocks);
        let end = lbn + blocks;
        let reading = self
            .stream
            .as_ref()
            .map(|stream| (stream.segment, stream.limit));
        // Every segment may be taken by a write under way only if there is but one; reads then go past the buffer.
        let (segment, hit) = self
            .segments
            .for_read(lbn, blocks, reading)
            .unwrap_or((0, Hit::None));
        let there = self.segments.end(segment).clamp(lbn, end) - lbn;
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
        let mut leave_ns = now_ns.max(wait.ready_ns);
        if !follows {
            leave_ns += self.stop_stream(now_ns) - now_ns;
        }
        if hit == Hit::None {
            self.segments.set(segment, lbn, lbn);
        }
        self.segments.set_written(segment, false);
        self.segments.touch(segment);
        let segment_start = self.segments.start(segment);
        let limit = self.read_ahead_limit(segment_start, lbn, end);
        let from = if hit == Hit::None {
            lbn
        } else {
            self.segments.end(segment)
        };
        if follows {
            if let Some(stream) = &mut self.stream {
                stream.extend(end, limit);
                if from < end {
                    collect(stream, &self.mechanics, lbn.max(from), end, &mut self.runs);
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
            if from < end && self.buffer.keep_passing && hit == Hit::None {
                self.keep_passing(segment, lbn, &place, approach.wait_ns);
            }
            self.segments.set_content(segment, Content::Reading);
            // The stream is made where it stays: a copy of it would wait for each of its parts to be stored.
            let stream = self.stream.insert(Stream::begin(
                &self.mechanics,
                segment,
                from,
                end,
                limit.max(end),
                &self.buffer,
                &place,
                leave_ns,
                &mut approach,
            ));
            stream.least = (end + u64::from(self.buffer.least_read_ahead)).min(stream.limit);
            if from < end {
                seek_ns = approach.seek_ns;
                wait_ns = approach.wait_ns;
                collect(stream, &self.mechanics, from, end, &mut self.runs);
            }
        }
        let sending = HostTransfer {
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
            let start = end.max(self.segments.start(segment));
            self.segments
                .set(segment, start, self.segments.end(segment));
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

    /// Keeps the blocks on the track before the first requested one that pass under the head while it waits.
    pub(super) fn keep_passing(&mut self, segment: usize, lbn: u64, place: &Place, wait_ns: u64) {
        let passed = (wait_ns << 16) / self.mechanics.block_q16(place).max(1);
        let first = self.mechanics.geometry.track_start(lbn, place);
        let start = first.max(lbn.saturating_sub(passed)).min(lbn);
        self.segments
            .set(segment, start, self.segments.end(segment));
    }

    /// The block after the last that will be read ahead after a read of `lbn..end`.
    pub(super) fn read_ahead_limit(&self, segment_start: u64, lbn: u64, end: u64) -> u64 {
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
                // The requested blocks stay if they may not be replaced: read-ahead gets the rest of the segment.
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
    pub(super) fn watermark(&self, blocks: u64) -> u64 {
        if self.buffer.read_watermark == 0.0 {
            return blocks.min(1);
        }
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

    /// Serves a read found wholly in the buffer while the mechanism works on another command; true if it did.
    pub(super) fn serve_beside(&mut self, wait: &Waiting, now_ns: u64) -> bool {
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
            let segment = self
                .segments
                .with_all(command.lbn, u64::from(command.blocks));
            if let Some(segment) = segment {
                self.segments.touch(segment);
            }
            segment.is_some()
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
}

/// Collects the runs that bring blocks `from..end`, and brings the stream to the last of them.
#[inline]
fn collect(stream: &mut Stream, mechanics: &Mechanics, from: u64, end: u64, runs: &mut Vec<Run>) {
    loop {
        let run = stream.run();
        let run_end = run.end();
        if run_end > from && run.first < end {
            let skip = from.saturating_sub(run.first).min(u64::from(run.blocks));
            runs.push(Run {
                first: run.first + skip,
                blocks: (run_end.min(end) - run.first - skip) as u32,
                start_ns: run.passed_ns(skip),
                ..*run
            });
        }
        if run_end >= end || !stream.step(mechanics) {
            return;
        }
    }
}
