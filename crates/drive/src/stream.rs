//! Reading along: the blocks that the head reads one after the other from a first one on, for a command and, after
//! its last block, ahead of the next command.
//!
//! Nothing happens while time passes. The stream knows the run of blocks it is in, and goes on to the next only
//! when someone asks how far it has come.

use crate::geometry::Place;
use crate::mechanics::{Approach, Arm, Mechanics, Run};
use crate::params::{Buffer, ReadAhead};

/// A stream of blocks into a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) segment: usize,
    run: Run,
    /// The block after the last it will read.
    pub(crate) limit: u64,
    /// It may not be interrupted before this block.
    pub(crate) least: u64,
    /// End of the blocks for a command, and start of read-ahead.
    pub(crate) asked_end: u64,
    policy: ReadAhead,
    /// Reading on arrival: the part of the run that was read before it.
    rest: Option<Run>,
    on_arrival: bool,
    /// The last moment at which someone asked how far it had come, and the answer: at one moment several do.
    seen: (u64, u64),
}

/// `Stream::seen` of a stream of which nobody has asked, or that has changed since.
const UNSEEN: (u64, u64) = (u64::MAX, 0);

/// The state at which a stream was cut off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// Position of the heads.
    pub(crate) arm: Arm,
    /// The block after the last that was read.
    pub(crate) end: u64,
    /// Time at which the heads can leave.
    pub(crate) stop_ns: u64,
}

impl Stream {
    /// A stream that begins with the block at `place`.
    #[allow(clippy::too_many_arguments)] // one place, called once; a struct would only move the names
    #[inline(always)]
    pub(crate) fn begin(
        mechanics: &Mechanics,
        segment: usize,
        lbn: u64,
        asked_end: u64,
        limit: u64,
        buffer: &Buffer,
        place: &Place,
        now_ns: u64,
        approach: &mut Approach,
    ) -> Self {
        let run = mechanics.run(lbn, limit.max(lbn + 1), place, now_ns, *approach);
        let mut stream = Self {
            segment,
            run,
            limit,
            least: lbn,
            asked_end,
            policy: buffer.read_ahead,
            rest: None,
            on_arrival: buffer.read_on_arrival,
            seen: UNSEEN,
        };
        stream.arrive(mechanics, approach);
        stream
    }

    /// The heads are on the track of the present run; reading on arrival may begin in its middle.
    fn arrive(&mut self, mechanics: &Mechanics, approach: &mut Approach) {
        if !self.on_arrival || self.run.first >= self.asked_end {
            return;
        }
        let mut asked = self.run;
        asked.blocks = u64::from(asked.blocks).min(self.asked_end - asked.first) as u32;
        if let Some((front, rest, begun_ns)) = mechanics.on_arrival(&asked, approach.wait_ns) {
            approach.wait_ns = begun_ns.saturating_sub(asked.on_track_ns);
            self.run = front;
            self.rest = Some(rest);
        }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// Reads on up to `limit` if that is farther than before; `asked_end` is the end of what a command asks for.
    pub(crate) fn extend(&mut self, asked_end: u64, limit: u64) {
        self.seen = UNSEEN;
        self.asked_end = self.asked_end.max(asked_end);
        self.limit = self.limit.max(limit);
    }

    /// Goes on to the next run; `false` if the stream ends with this one.
    #[inline]
    pub(crate) fn step(&mut self, mechanics: &Mechanics) -> bool {
        self.seen = UNSEEN;
        if let Some(rest) = self.rest.take() {
            self.run = rest;
            return true;
        }
        let next = self.run.end();
        if next >= self.limit {
            return false;
        }
        let place = mechanics.geometry.locate(next);
        let arm = self.run.arm;
        if next >= self.asked_end {
            let same_cylinder = place.cylinder == arm.cylinder;
            let stays = match self.policy {
                ReadAhead::TrackEnd => same_cylinder && place.surface == arm.surface,
                ReadAhead::CylinderEnd => same_cylinder,
                _ => true,
            };
            if !stays {
                self.limit = next;
                return false;
            }
        }
        let now_ns = self.run.end_ns();
        let mut approach = mechanics.approach(arm, now_ns, &place, false, 0);
        self.run = mechanics.run(next, self.limit, &place, now_ns, approach);
        self.arrive(mechanics, &mut approach);
        true
    }

    /// Moves on to `now_ns`; returns the block after the last that has been read.
    #[inline]
    pub(crate) fn progress(&mut self, mechanics: &Mechanics, now_ns: u64) -> u64 {
        if self.seen.0 != now_ns {
            self.seen = (now_ns, self.go_on(mechanics, now_ns));
        }
        self.seen.1
    }

    #[inline]
    fn go_on(&mut self, mechanics: &Mechanics, now_ns: u64) -> u64 {
        while now_ns >= self.run.end_ns() {
            if !self.step(mechanics) {
                return self.run.end();
            }
        }
        self.run.first + self.run.passed_by(now_ns)
    }

    /// True if all has been read at `now_ns`, to which the stream has come.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        self.rest.is_none() && self.run.end() >= self.limit && now_ns >= self.run.end_ns()
    }

    /// Time at which the block before `lbn` has been read. `lbn` must not be after the present run.
    pub(crate) fn reached_ns(&self, mechanics: &Mechanics, lbn: u64) -> u64 {
        let mut ahead = *self;
        while lbn > ahead.run.end() {
            if !ahead.step(mechanics) {
                break;
            }
        }
        ahead
            .run
            .passed_ns(lbn.min(ahead.run.end()).saturating_sub(ahead.run.first))
    }

    /// Stops at `now_ns`: at once in the middle of a block if `in_block`, else behind it; a switch of tracks is
    /// brought to its end.
    pub(crate) fn cut(&mut self, mechanics: &Mechanics, now_ns: u64, in_block: bool) -> Cut {
        let end = self.progress(mechanics, now_ns);
        let run = &self.run;
        let stop_ns = if now_ns >= run.end_ns() {
            now_ns
        } else if now_ns < run.on_track_ns {
            run.on_track_ns
        } else if in_block {
            now_ns
        } else if now_ns < run.start_ns {
            run.start_ns
        } else {
            let passed = end - run.first;
            if run.passed_ns(passed) == now_ns {
                now_ns
            } else {
                run.passed_ns(passed + 1)
            }
        };
        Cut {
            arm: run.arm,
            end,
            stop_ns,
        }
    }
}
