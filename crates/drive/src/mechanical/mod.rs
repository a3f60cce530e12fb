//! A disk drive: queue, buffer, bus and mechanism.
//!
//! The cost of a command is computed when the drive takes it up, in closed form over the runs of blocks it touches; nothing
//! is stepped block by block. The rules (which overheads apply, which read-ahead may be interrupted, when the bus is taken)
//! are those of DiskSim 4.0 (CMU-PDL-08-101); `docs/explanation/drives.md` lists them.

mod line;
mod read;
mod scheduler;
mod write;
mod write_cache;

use std::sync::Arc;

use self::line::Line;
use crate::command::{Command, Completion, Op, Phases, ServedFrom};
use crate::device::{Device, check};
use crate::error::{DriveError, SubmitError};
use crate::geometry::{Geometry, Place};
use crate::mechanics::{Arm, Mechanics, Run};
use crate::params::{Buffer, Bus, DriveParams, Overheads, Queue, WriteBack};
use crate::segments::Segments;
use crate::stream::Stream;

/// A command that waits for the mechanism.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    command: Command,
    submit_ns: u64,
    /// Place in the order of arrival.
    arrival: u64,
    /// Time at which the electronics have handled the command and the arm may leave.
    ready_ns: u64,
    /// Time at which the command has left the bus.
    off_bus_ns: u64,
    place: Place,
}

/// A write in the cache that is not on the medium.
#[derive(Debug, Clone, Copy)]
struct Dirty {
    lbn: u64,
    blocks: u32,
    place: Place,
    /// Time at which its last block was in the cache.
    ready_ns: u64,
    order: u64,
}

/// A write on its way to the medium.
#[derive(Debug, Clone, Copy)]
struct Destage {
    segment: Option<usize>,
    /// The block after its last.
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

/// How the mechanism comes to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// As it arrives.
    AtOnce,
    /// It waited, and was chosen.
    Waiting,
    /// A write that continues the one before: the data are in the buffer.
    InLine,
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
    /// Time at which the mechanism is done with its command; read-ahead may follow.
    free_ns: u64,
    /// Time at which the electronics are ready to choose; `None` while they have nothing to choose from.
    choice_ns: Option<u64>,
    /// Time of the electronics for the command being taken up that passed before it was.
    chosen_in_ns: u64,
    /// Commands taken up since the last cached write while host's writes or flushes waited for the cache.
    ahead_of_cached: u32,
    bus_free_ns: u64,
    last_was_read: bool,
    outstanding: u32,
    arrivals: u64,
    segments: Segments,
    stream: Option<Stream>,
    destage: Option<Destage>,
    /// Block after the last write that went to the medium, and the time at which it was there.
    wrote: (u64, u64),
    waiting: Line,
    /// Cached writes, those that wait for room, and flushes.
    dirty: Vec<Dirty>,
    dirty_blocks: u64,
    dirty_order: u64,
    blocked: Vec<Waiting>,
    flushes: Vec<Flush>,
    /// The next to be reported is the last.
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
            overheads: params.overheads,
            bus: params.bus,
            buffer: params.buffer,
            queue: params.queue,
            arm: Arm::default(),
            free_ns: 0,
            choice_ns: None,
            chosen_in_ns: 0,
            ahead_of_cached: 0,
            bus_free_ns: 0,
            last_was_read: true,
            outstanding: 0,
            arrivals: 0,
            segments: Segments::new(&params.buffer, mechanics.geometry.blocks()),
            mechanics: Arc::new(mechanics),
            stream: None,
            destage: None,
            wrote: (0, 0),
            waiting: Line::with_capacity(depth as usize),
            dirty: Vec::with_capacity(cached),
            dirty_blocks: 0,
            dirty_order: 0,
            blocked: Vec::with_capacity(depth as usize),
            flushes: Vec::with_capacity(depth as usize),
            finished: Vec::with_capacity(depth as usize),
            runs: Vec::with_capacity(64),
        })
    }

    /// The layout of blocks.
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
        let is_later = |other: &Completion| other.finish_ns > completion.finish_ns;
        if self.finished.last().is_none_or(is_later) {
            self.finished.push(completion);
        } else {
            let at = self.finished.partition_point(is_later);
            self.finished.insert(at, completion);
        }
    }

    fn is_idle(&self, now_ns: u64) -> bool {
        now_ns >= self.free_ns
            && self.choice_ns.is_none()
            && self.waiting.is_empty()
            && self.flushes.is_empty()
            && self.blocked.is_empty()
    }

    /// Time at which the mechanism next takes up a command, or the electronics begin to choose one.
    fn dispatch_ns(&self) -> Option<u64> {
        if self.choice_ns.is_some() {
            return self.choice_ns;
        }
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
            // A command waits for the data being written.
            (None, Some(destage)) if self.pressed() => Some(destage.end_ns),
            _ => None,
        }
    }

    /// Commands of the host wait for cached writes to reach the medium.
    fn pressed(&self) -> bool {
        !self.blocked.is_empty() || !self.flushes.is_empty()
    }

    /// Goes on at `now_ns`: with what needs no choice, then, when the electronics are ready, with the best of all that
    /// has come until then. A host has replaced the command that ended before by that time.
    fn dispatch(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.chosen_in_ns = 0;
        if self.choice_ns.take().is_some() {
            self.chosen_in_ns = self.overheads.dispatch_ns;
        } else {
            if let Some(index) = self.next_in_line(now_ns) {
                let write = self.dirty.swap_remove(index);
                self.write_out(now_ns, write);
                return;
            }
            if self.overheads.dispatch_ns > 0 {
                if let Some(index) = self.next_on_the_way(now_ns) {
                    self.take_up(now_ns, index, Taken::Waiting);
                } else if let Some(index) = self.next_write_in_line(now_ns) {
                    self.take_up(now_ns, index, Taken::InLine);
                } else {
                    self.begin_choice(now_ns);
                }
                return;
            }
        }
        let pressed = self.pressed();
        let waiting = if self.is_cached_turn() {
            None
        } else {
            self.next_waiting(now_ns)
        };
        let dirty = if waiting.is_none() || pressed {
            self.next_dirty(now_ns)
        } else {
            None
        };
        match (waiting, dirty) {
            (Some((index, ns)), dirty) if dirty.is_none_or(|(_, other)| ns <= other) => {
                self.take_up(now_ns, index, Taken::Waiting);
            }
            (_, Some((index, _))) => {
                self.ahead_of_cached = 0;
                let write = self.dirty.swap_remove(index);
                self.write_out(now_ns, write);
            }
            // The turn of cached writes, but all are still on the bus.
            _ => {
                if let Some((index, _)) = self.next_waiting(now_ns) {
                    self.take_up(now_ns, index, Taken::Waiting);
                }
            }
        }
    }

    /// The electronics begin to choose. Read-ahead ends if commands wait: it must not carry the heads to another track.
    fn begin_choice(&mut self, now_ns: u64) {
        let mut stopped_ns = now_ns;
        if !self.waiting.is_empty() {
            stopped_ns = self.stop_stream(now_ns);
        } else if !self.dirty.iter().any(|write| write.ready_ns <= now_ns) {
            return;
        }
        self.choice_ns = Some(stopped_ns.max(now_ns + self.overheads.dispatch_ns));
    }

    /// While commands wait for the cache, a cached write goes after so many commands of the queue, however far away it is:
    /// by nearness alone, writes far from where reads keep the heads would stay in the cache and fill it.
    fn is_cached_turn(&self) -> bool {
        self.pressed()
            && self.ahead_of_cached >= self.queue.ahead_of_cached
            && !self.dirty.is_empty()
    }

    /// Takes a waiting command up.
    fn take_up(&mut self, now_ns: u64, index: usize, taken: Taken) {
        self.ahead_of_cached = if self.pressed() {
            self.ahead_of_cached.saturating_add(1)
        } else {
            0
        };
        let wait = self.waiting.swap_remove(index);
        self.serve(now_ns, wait, taken);
    }

    /// Position of the heads, read-ahead included.
    fn arm_at(&self, now_ns: u64) -> Arm {
        match self.stream {
            Some(mut stream) => {
                stream.progress(&self.mechanics, now_ns);
                stream.run().arm
            }
            None => self.arm,
        }
    }

    /// Ends read-ahead at `now_ns`; returns the time at which the heads can leave.
    fn stop_stream(&mut self, now_ns: u64) -> u64 {
        let Some(stream) = &mut self.stream else {
            return now_ns;
        };
        let cut = stream.cut(&self.mechanics, now_ns, self.buffer.stop_in_block);
        let segment = stream.segment;
        self.stream = None;
        self.arm = cut.arm;
        self.segments.fill(segment, cut.end);
        self.segments.settle(segment);
        cut.stop_ns
    }

    /// Updates the position of read-ahead.
    fn catch_up(&mut self, now_ns: u64) {
        if let Some(stream) = &mut self.stream {
            let end = stream.progress(&self.mechanics, now_ns);
            self.segments.fill(stream.segment, end);
            if stream.is_over(now_ns) {
                self.arm = stream.run().arm;
                self.segments.settle(stream.segment);
                self.stream = None;
            }
        }
    }

    fn serve(&mut self, now_ns: u64, wait: Waiting, taken: Taken) {
        self.catch_up(now_ns);
        match wait.command.op {
            Op::Read => self.serve_read(now_ns, &wait, taken == Taken::AtOnce),
            Op::Write | Op::Flush | Op::Discard => self.serve_write(now_ns, &wait, taken),
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
        let waited_ns = now_ns - wait.submit_ns;
        let chosen_in_ns = self.chosen_in_ns.min(waited_ns);
        let queue_ns = waited_ns - chosen_in_ns;
        let overhead_ns = before_ns + tail_ns;
        let transfer_ns = (finish_ns - now_ns).saturating_sub(overhead_ns + seek_ns + wait_ns);
        let overhead_ns = finish_ns - now_ns - seek_ns - wait_ns - transfer_ns + chosen_in_ns;
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

    /// Handles a command that has just come.
    fn arrive(&mut self, wait: Waiting, now_ns: u64) {
        self.chosen_in_ns = 0;
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
                self.serve(now_ns, wait, Taken::AtOnce)
            }
            _ => {
                if !self.join(&wait, now_ns) && !self.serve_beside(&wait, now_ns) {
                    // The heads may have been free for a while: a cached write is still on the bus.
                    self.free_ns = self.free_ns.max(now_ns);
                    self.waiting.push(wait);
                }
            }
        }
    }

    /// True if read-ahead has to go on for a while before this command can be taken up; the mechanism then counts as busy.
    fn must_read_on(&mut self, command: &Command, now_ns: u64) -> bool {
        let Some(stream) = &mut self.stream else {
            return false;
        };
        let end = stream.progress(&self.mechanics, now_ns);
        if end >= stream.least || stream.is_over(now_ns) {
            return false;
        }
        let start = self.segments.start(stream.segment);
        if command.op == Op::Read && (start..=end).contains(&command.lbn) {
            return false;
        }
        self.free_ns = stream.reached_ns(&self.mechanics, stream.least);
        stream.limit = stream.least;
        true
    }

    pub(crate) fn least_latency_ns(&self) -> u64 {
        let Overheads {
            read_hit,
            read_miss,
            write_hit,
            write_miss,
            ..
        } = self.overheads;
        [read_hit, read_miss, write_hit, write_miss]
            .into_iter()
            .flat_map(|after| [after.read_ns, after.write_ns])
            .fold(u64::MAX, u64::min)
            + self.overheads.command_ns
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
        if command.op == Op::Discard {
            return Err(SubmitError::Discard);
        }
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
            Op::Flush | Op::Discard => (self.overheads.write_miss.after(after), 0),
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
        let finish = self.finished.last().map(|completion| completion.finish_ns);
        match (finish, self.dispatch_ns()) {
            (Some(finish), Some(dispatch)) => Some(finish.min(dispatch)),
            (finish, dispatch) => finish.or(dispatch),
        }
    }

    fn advance(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        let mut dispatch = self.dispatch_ns().unwrap_or(u64::MAX);
        loop {
            let finish = self
                .finished
                .last()
                .map_or(u64::MAX, |completion| completion.finish_ns);
            if finish.min(dispatch) > now_ns {
                return;
            }
            if finish <= dispatch {
                let Some(completion) = self.finished.last() else {
                    return;
                };
                self.outstanding -= 1;
                self.last_was_read = completion.op == Op::Read;
                done(*completion);
                self.finished.pop();
            } else {
                self.dispatch(dispatch);
                dispatch = self.dispatch_ns().unwrap_or(u64::MAX);
            }
        }
    }
}

fn blocks_ns(blocks: u32, block_q16: u64) -> u64 {
    (u64::from(blocks) * block_q16 + 0xFFFF) >> 16
}
