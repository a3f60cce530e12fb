//! A unit of a controller in simulated time.
//!
//! A command of the host takes the processor, then the link. A write is answered once it is in the cache, or on the
//! drives if there is no cache; a read goes to the drive with the shorter queue that has a copy, a stream to the disk that
//! it is on. Each drive gets its commands in the order of their arrival, and sorts those that it has. Cached writes leave
//! stripe by stripe, the oldest first or in the order of their addresses (one direction, C-SCAN): one at a time to a drive
//! that has nothing else to do, or in turn with its reads while a command of the host waits for them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use spindle_array::{Array, MemberRequest, MemberSet, WritePlanner, WriteRule, WriteStep};
use spindle_drive::{
    Command, Completion, Device, Drive, Op, Phases, ServedFrom, SubmitError, check,
};

use super::board::Board;
use super::dirty::Dirty;
use super::sheet::ControllerSheet;

const BLOCK: u64 = 512;
/// Bytes of a line of the cache of a unit without chunks.
const DEFAULT_LINE: u64 = 64 << 10;

/// The order in which cached writes leave a controller's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestageOrder {
    /// The oldest first, with the rest of its stripe.
    Age,
    /// In the order of their addresses, in one direction (C-SCAN). A stream may keep the arm for as long as it comes, and
    /// other writes in the cache.
    Address,
}

/// Parts and settings of a unit.
pub(crate) struct ControllerUnit {
    pub(crate) board: Arc<Board>,
    pub(crate) sheet: ControllerSheet,
    /// Writes are answered from the cache.
    pub(crate) write_back: bool,
    /// The cache keeps its content without power, so flushes need nothing.
    pub(crate) battery: bool,
    /// The order in which cached writes leave.
    pub(crate) order: DestageOrder,
    /// The array that the controller makes of its drives; `None` for a drive by itself.
    pub(crate) array: Option<Array>,
    /// The drives, and the first block and blocks used of each.
    pub(crate) drives: Vec<(Drive, u64, u64)>,
}

/// A command of the host.
#[derive(Debug, Clone, Copy)]
struct Host {
    command: Command,
    submit_ns: u64,
    /// Commands of drives that it waits for.
    left: u32,
}

/// A stretch of the cache on its way to the drives.
#[derive(Debug, Clone, Copy, Default)]
struct Destage {
    first: u64,
    end: u64,
    /// Lines of the cache that are free once it is written.
    lines: u64,
    left: u32,
    /// Old data and parity are being read.
    reads: bool,
    /// The command of the host that waits for it, without a cache.
    host: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Host(u32),
    Destage(u32),
}

/// A command of a drive.
#[derive(Debug, Clone, Copy)]
struct Part {
    owner: Owner,
    op: Op,
    lbn: u64,
    blocks: u32,
}

impl Part {
    /// The block after its last.
    fn end(&self) -> u64 {
        self.lbn + u64::from(self.blocks)
    }
}

#[derive(Debug)]
struct Port {
    drive: Drive,
    start: u64,
    depth: u32,
    /// Commands that go first.
    waiting: VecDeque<Part>,
    /// Cached writes.
    destages: VecDeque<Part>,
    /// Shares of cached writes that have added up while other commands waited beside them; at 1 a cached write goes.
    turn: f64,
    /// Commands at the drive.
    running: Vec<Option<Part>>,
    busy: u32,
    /// Block after the last that was sent to it.
    head: u64,
}

impl Port {
    /// True if the drive is a disk, and these blocks continue what it has been sent last or what waits for it.
    fn is_continued_at(&self, lbn: u64) -> bool {
        let continues = |part: &Part| part.op == Op::Read && part.end() == lbn;
        matches!(self.drive, Drive::Mechanical(_))
            && (self.head == lbn || self.waiting.iter().any(continues))
    }

    /// The command that the drive gets next. While the host waits for cached writes to leave, they have this share.
    fn next(&mut self, is_waited_for: bool, destage_share: f64) -> Option<Part> {
        if self.destages.is_empty() {
            return self.waiting.pop_front();
        }
        if self.waiting.is_empty() {
            let may_go = is_waited_for || self.busy == 0;
            return if may_go {
                self.destages.pop_front()
            } else {
                None
            };
        }
        if is_waited_for {
            self.turn += destage_share;
            if self.turn >= 1.0 {
                self.turn -= 1.0;
                return self.destages.pop_front();
            }
        }
        self.waiting.pop_front()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The processor has handled a command.
    Begun(u32),
    /// The data of a write are in the cache.
    Stored(u32),
    /// The data of a read are with the host.
    Sent(u32),
    /// The parity of a destage is computed, or its data have passed the link again.
    Computed(u32),
}

#[derive(Debug)]
pub(crate) struct Controller {
    depth: u32,
    capacity_blocks: u64,
    command_ns: u64,
    link_ns_per_block: f64,
    /// Cached data pass the link once more on their way to the drives.
    passes_again: bool,
    xor_ns_per_block: f64,
    cache_lines: u64,
    /// Blocks of a line: a chunk of the array.
    line_blocks: u64,
    battery: bool,
    most_destages: u32,
    destage_share: f64,
    array: Option<Array>,
    stripe_blocks: u64,
    has_parity: bool,
    ports: Vec<Port>,
    hosts: Vec<Host>,
    free_hosts: Vec<u32>,
    outstanding: u32,
    destages: Vec<Destage>,
    free_destages: Vec<u32>,
    running_destages: u32,
    dirty: Dirty,
    order: DestageOrder,
    /// Lines in the order in which they became dirty; some are no more.
    aged: VecDeque<u64>,
    /// Lines in use, with those on their way into the cache and out of it.
    used_lines: u64,
    cursor: u64,
    /// Writes that wait for room.
    blocked: VecDeque<u32>,
    flushes: Vec<u32>,
    board: Arc<Board>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    planner: WritePlanner,
    reads: Vec<MemberRequest>,
    writes: Vec<MemberRequest>,
    finished: Vec<(u32, Completion)>,
    done: VecDeque<Completion>,
}

impl Controller {
    pub(crate) fn new(unit: ControllerUnit) -> Controller {
        let sheet = &unit.sheet;
        let members = unit.drives.len() as u32;
        let line_blocks = unit
            .array
            .as_ref()
            .and_then(Array::chunk)
            .unwrap_or(DEFAULT_LINE)
            / BLOCK;
        let stripe_blocks = match &unit.array {
            Some(array) => {
                let chunk = array.chunk().unwrap_or(1 << 20) / BLOCK;
                chunk * array.stripe_chunks().unwrap_or(1)
            }
            None => sheet.max_request / BLOCK,
        };
        let capacity_blocks = match &unit.array {
            Some(array) => array.capacity() / BLOCK,
            None => unit.drives.first().map_or(0, |(_, _, blocks)| *blocks),
        };
        let ports = unit
            .drives
            .into_iter()
            .map(|(drive, start, _)| {
                let depth = drive.queue_depth().min(sheet.commands_per_drive);
                Port {
                    start,
                    depth,
                    waiting: VecDeque::with_capacity(64),
                    destages: VecDeque::with_capacity(64),
                    turn: 0.0,
                    running: vec![None; depth as usize],
                    busy: 0,
                    head: 0,
                    drive,
                }
            })
            .collect();
        let ns_per_block = |rate: f64| BLOCK as f64 * 1e9 / rate;
        Controller {
            depth: sheet.commands_per_unit,
            capacity_blocks,
            command_ns: sheet.command_ns,
            link_ns_per_block: ns_per_block(sheet.link_rate),
            passes_again: sheet.write_passes > 1,
            xor_ns_per_block: ns_per_block(sheet.xor_rate),
            cache_lines: if unit.write_back {
                sheet.cache / BLOCK / line_blocks
            } else {
                0
            },
            line_blocks,
            battery: unit.battery,
            most_destages: sheet.commands_per_drive * members,
            destage_share: sheet.destage_share,
            has_parity: unit
                .array
                .as_ref()
                .is_some_and(|array| array.level().parities() > 0),
            array: unit.array,
            stripe_blocks,
            ports,
            hosts: Vec::with_capacity(sheet.commands_per_unit as usize),
            free_hosts: Vec::new(),
            outstanding: 0,
            destages: Vec::new(),
            free_destages: Vec::new(),
            running_destages: 0,
            dirty: Dirty::default(),
            order: unit.order,
            aged: VecDeque::new(),
            used_lines: 0,
            cursor: 0,
            blocked: VecDeque::new(),
            flushes: Vec::new(),
            board: unit.board,
            events: BinaryHeap::new(),
            sequence: 0,
            planner: WritePlanner::new(members),
            reads: Vec::new(),
            writes: Vec::new(),
            finished: Vec::new(),
            done: VecDeque::new(),
        }
    }

    /// True if the controller takes another command, for whichever unit.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.board.has_room()
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at_ns, self.sequence, event)));
    }

    /// Moves a command's data over the link from `now_ns` on; when that is done.
    fn link_ns(&mut self, now_ns: u64, blocks: u32) -> u64 {
        let takes_ns = (f64::from(blocks) * self.link_ns_per_block) as u64;
        self.board.transfer(now_ns, takes_ns)
    }

    fn begin(&mut self, now_ns: u64, slot: u32) {
        let command = self.hosts[slot as usize].command;
        match command.op {
            Op::Read => self.read(now_ns, slot),
            Op::Write if self.cache_lines > 0 => {
                self.blocked.push_back(slot);
                self.admit(now_ns);
            }
            Op::Write => {
                let there_ns = self.link_ns(now_ns, command.blocks);
                self.at(there_ns, Event::Stored(slot));
            }
            // The host sends none (`Machine::takes_discards`): a controller takes it and does nothing.
            Op::Discard => self.complete(now_ns, slot, ServedFrom::WriteCache),
            Op::Flush => {
                self.flushes.push(slot);
                self.flush(now_ns);
            }
        }
    }

    /// Lets writes into the cache that it has room for, in their order.
    fn admit(&mut self, now_ns: u64) {
        while let Some(&slot) = self.blocked.front() {
            let Command { lbn, blocks, .. } = self.hosts[slot as usize].command;
            let lines = self.lines(lbn, lbn + u64::from(blocks));
            let is_full = self.used_lines + lines > self.cache_lines;
            if is_full && self.used_lines > 0 {
                return;
            }
            self.blocked.pop_front();
            self.used_lines += lines;
            let there_ns = self.link_ns(now_ns, blocks);
            self.at(there_ns, Event::Stored(slot));
        }
    }

    fn stored(&mut self, now_ns: u64, slot: u32) {
        let Command { lbn, blocks, .. } = self.hosts[slot as usize].command;
        let end = lbn + u64::from(blocks);
        if self.cache_lines == 0 {
            self.write_out(now_ns, lbn, end, 0, Some(slot));
            return;
        }
        // Lines with written blocks are in use already.
        self.used_lines -= self.lines(lbn, end) - self.fresh_lines(lbn, end);
        if self.order == DestageOrder::Age {
            self.note_age(lbn, end);
        }
        self.dirty.add(lbn, end);
        self.complete(now_ns, slot, ServedFrom::WriteCache);
        self.pump(now_ns);
        self.admit(now_ns);
    }

    /// Notes the lines of `first..end` that become dirty now.
    fn note_age(&mut self, first: u64, end: u64) {
        let size = self.line_blocks;
        for line in first / size..end.div_ceil(size) {
            if !self.dirty.touches(line * size, (line + 1) * size) {
                self.aged.push_back(line);
            }
        }
    }

    /// Lines that `first..end` touches.
    fn lines(&self, first: u64, end: u64) -> u64 {
        end.div_ceil(self.line_blocks) - first / self.line_blocks
    }

    /// Those of them without written blocks.
    fn fresh_lines(&self, first: u64, end: u64) -> u64 {
        let size = self.line_blocks;
        let lines = first / size..end.div_ceil(size);
        lines
            .filter(|line| !self.dirty.touches(line * size, (line + 1) * size))
            .count() as u64
    }

    /// Sends cached writes to the drives, as many as may be under way. A stripe with parity that is not whole waits
    /// while the drives have other work, as long as half of the cache is free.
    fn pump(&mut self, now_ns: u64) {
        while self.running_destages < self.most_destages
            && let Some((first, end)) = self.next_stretch()
        {
            self.cursor = end;
            self.dirty.take(first, end);
            let lines = self.fresh_lines(first, end);
            self.write_out(now_ns, first, end, lines, None);
        }
    }

    fn next_stretch(&mut self) -> Option<(u64, u64)> {
        let stripe = self.stripe_blocks;
        if self.order == DestageOrder::Age {
            self.cursor = self.oldest_line()? / stripe * stripe;
        }
        let (first, end) = self.dirty.next(self.cursor)?;
        let part = (first, end.min((first / stripe + 1) * stripe));
        if !self.has_parity {
            return Some(part);
        }
        let whole = first.div_ceil(stripe) * stripe;
        if whole + stripe <= end {
            return Some((whole, whole + stripe));
        }
        let is_urgent = self.running_destages == 0
            || !self.flushes.is_empty()
            || self.used_lines * 2 > self.cache_lines;
        is_urgent.then_some(part)
    }

    /// First block of the line that has been dirty for longest.
    fn oldest_line(&mut self) -> Option<u64> {
        let size = self.line_blocks;
        while let Some(&line) = self.aged.front() {
            if self.dirty.touches(line * size, (line + 1) * size) {
                return Some(line * size);
            }
            self.aged.pop_front();
        }
        None
    }

    /// Writes a stretch of the unit to the drives, after what parity needs has been read.
    fn write_out(&mut self, now_ns: u64, first: u64, end: u64, lines: u64, host: Option<u32>) {
        self.plan(first, end);
        let destage = Destage {
            first,
            end,
            lines,
            left: 0,
            reads: !self.reads.is_empty(),
            host,
        };
        let id = match self.free_destages.pop() {
            Some(id) => {
                self.destages[id as usize] = destage;
                id
            }
            None => {
                self.destages.push(destage);
                self.destages.len() as u32 - 1
            }
        };
        self.running_destages += 1;
        if self.reads.is_empty() {
            self.compute(now_ns, id);
        } else {
            let reads = std::mem::take(&mut self.reads);
            self.send_all(now_ns, Owner::Destage(id), Op::Read, &reads);
            self.reads = reads;
        }
    }

    fn plan(&mut self, first: u64, end: u64) {
        self.reads.clear();
        self.writes.clear();
        let (offset, len) = (first * BLOCK, (end - first) * BLOCK);
        let Some(array) = &self.array else {
            self.writes.push(MemberRequest {
                member: 0,
                offset,
                len,
                pieces: 1,
            });
            return;
        };
        let (reads, writes) = (&mut self.reads, &mut self.writes);
        // The addresses were checked when the command came, and no member is missing.
        let planned = array.plan_write(
            offset,
            len,
            WriteRule::LINUX_2_6_32,
            &MemberSet::EMPTY,
            &mut self.planner,
            |step| match step {
                WriteStep::Read(request) => reads.push(request),
                WriteStep::Write(request) => writes.push(request),
            },
        );
        debug_assert!(planned.is_ok());
    }

    /// Computes the parity of a destage; without parity its writes go at once.
    fn compute(&mut self, now_ns: u64, id: u32) {
        let Destage { first, end, .. } = self.destages[id as usize];
        if !self.has_parity && self.passes_again {
            let moved_ns = self.link_ns(now_ns, (end - first) as u32);
            self.at(moved_ns, Event::Computed(id));
            return;
        }
        if !self.has_parity {
            self.write_members(now_ns, id);
            return;
        }
        let takes_ns = ((end - first) as f64 * self.xor_ns_per_block) as u64;
        let computed_ns = self.board.process(now_ns, takes_ns);
        self.at(computed_ns, Event::Computed(id));
    }

    fn write_members(&mut self, now_ns: u64, id: u32) {
        let Destage { first, end, .. } = self.destages[id as usize];
        self.plan(first, end);
        self.destages[id as usize].reads = false;
        let writes = std::mem::take(&mut self.writes);
        self.send_all(now_ns, Owner::Destage(id), Op::Write, &writes);
        self.writes = writes;
    }

    fn send_all(&mut self, now_ns: u64, owner: Owner, op: Op, requests: &[MemberRequest]) {
        let left = requests.len() as u32;
        let is_destage = matches!(owner, Owner::Destage(_));
        let is_cached_write = is_destage && op == Op::Write && self.cache_lines > 0;
        // Writes wait for room in the cache: the reads of those that make room go first.
        let is_urgent = is_destage && !self.blocked.is_empty();
        match owner {
            Owner::Host(slot) => self.hosts[slot as usize].left = left,
            Owner::Destage(id) => self.destages[id as usize].left = left,
        }
        for request in requests {
            let port = &mut self.ports[request.member as usize];
            let lbn = port.start + request.offset / BLOCK;
            let blocks = (request.len / BLOCK) as u32;
            let part = Part {
                owner,
                op,
                lbn,
                blocks,
            };
            if is_cached_write {
                port.destages.push_back(part);
            } else if is_urgent {
                port.waiting.push_front(part);
            } else {
                port.waiting.push_back(part);
            }
            self.feed(now_ns, request.member as usize);
        }
    }

    /// Hands a drive the commands that it may have.
    fn feed(&mut self, now_ns: u64, port: usize) {
        let is_waited_for = !self.blocked.is_empty() || !self.flushes.is_empty();
        loop {
            let of = &mut self.ports[port];
            if of.busy >= of.depth {
                return;
            }
            let Some(part) = of.next(is_waited_for, self.destage_share) else {
                return;
            };
            of.head = part.end();
            let Some(id) = of.running.iter().position(Option::is_none) else {
                return;
            };
            of.running[id] = Some(part);
            of.busy += 1;
            self.catch_up(now_ns, port);
            let of = &mut self.ports[port];
            let command = Command {
                id: id as u64,
                lbn: part.lbn,
                blocks: part.blocks,
                op: part.op,
                force_unit_access: false,
            };
            // The addresses are within the drive, and there is room in its queue.
            let taken = of.drive.submit(now_ns, command);
            debug_assert!(taken.is_ok());
        }
    }

    /// A drive takes commands only when it has handled all that is due.
    fn catch_up(&mut self, now_ns: u64, port: usize) {
        while self.ports[port]
            .drive
            .next_event_ns()
            .is_some_and(|due_ns| due_ns <= now_ns)
        {
            self.advance_port(now_ns, port);
        }
    }

    fn advance_port(&mut self, now_ns: u64, port: usize) {
        let finished = &mut self.finished;
        self.ports[port].drive.advance(now_ns, &mut |completion| {
            finished.push((port as u32, completion));
        });
    }

    fn read(&mut self, now_ns: u64, slot: u32) {
        let Command { lbn, blocks, .. } = self.hosts[slot as usize].command;
        let end = lbn + u64::from(blocks);
        if self.dirty.holds(lbn, end) {
            let sent_ns = self.link_ns(now_ns, blocks);
            self.at(sent_ns, Event::Sent(slot));
            return;
        }
        let mut requests = std::mem::take(&mut self.reads);
        requests.clear();
        self.locate(lbn * BLOCK, u64::from(blocks) * BLOCK, &mut requests);
        self.send_all(now_ns, Owner::Host(slot), Op::Read, &requests);
        self.reads = requests;
    }

    /// The pieces of a read, each on the copy whose drive has least to do; among equals, whose head is nearest. A stream
    /// stays on the disk that it is on (assumed: the other one would have to seek).
    fn locate(&self, offset: u64, len: u64, out: &mut Vec<MemberRequest>) {
        let Some(array) = &self.array else {
            out.push(MemberRequest {
                member: 0,
                offset,
                len,
                pieces: 1,
            });
            return;
        };
        let located = array.pieces(offset, len, |piece| {
            let chosen = array.places(piece.logical).min_by_key(|place| {
                let port = &self.ports[place.member as usize];
                let lbn = port.start + place.offset / BLOCK;
                let distance = port.head.abs_diff(lbn);
                let goes_on = port.is_continued_at(lbn);
                (!goes_on, port.waiting.len() + port.busy as usize, distance)
            });
            let (member, offset) = chosen.map_or((piece.member, piece.offset), |place| {
                (place.member, place.offset)
            });
            out.push(MemberRequest {
                member,
                offset,
                len: piece.len,
                pieces: 1,
            });
        });
        debug_assert!(located.is_ok());
    }

    /// Handles what drives have finished, and what they finish as they get more.
    fn take_finished(&mut self) {
        let mut at = 0;
        while let Some((port, completion)) = self.finished.get(at).copied() {
            at += 1;
            self.part_done(completion.finish_ns, port as usize, &completion);
        }
        self.finished.clear();
    }

    /// A drive has finished a command.
    fn part_done(&mut self, now_ns: u64, port: usize, completion: &Completion) {
        let Some(part) = self.ports[port].running[completion.id as usize].take() else {
            return;
        };
        self.ports[port].busy -= 1;
        match part.owner {
            Owner::Host(slot) => {
                let of = &mut self.hosts[slot as usize];
                of.left -= 1;
                if of.left == 0 && part.op == Op::Flush {
                    self.complete(now_ns, slot, ServedFrom::Medium);
                } else if of.left == 0 {
                    let blocks = of.command.blocks;
                    let sent_ns = self.link_ns(now_ns, blocks);
                    self.at(sent_ns, Event::Sent(slot));
                }
            }
            Owner::Destage(id) => {
                let of = &mut self.destages[id as usize];
                of.left -= 1;
                if of.left == 0 && of.reads {
                    self.compute(now_ns, id);
                } else if of.left == 0 {
                    self.end_destage(now_ns, id);
                }
            }
        }
        self.feed(now_ns, port);
    }

    fn end_destage(&mut self, now_ns: u64, id: u32) {
        let Destage { lines, host, .. } = self.destages[id as usize];
        self.free_destages.push(id);
        self.running_destages -= 1;
        match host {
            Some(slot) => self.complete(now_ns, slot, ServedFrom::Medium),
            None => {
                self.used_lines -= lines;
                self.admit(now_ns);
                self.pump(now_ns);
            }
        }
        self.flush(now_ns);
    }

    /// Once nothing is in the cache, flushes go on to the caches of the drives; a cache with a battery needs none.
    fn flush(&mut self, now_ns: u64) {
        if self.battery {
            while let Some(slot) = self.flushes.pop() {
                self.complete(now_ns, slot, ServedFrom::WriteCache);
            }
        } else if self.dirty.blocks() == 0 && self.running_destages == 0 {
            while let Some(slot) = self.flushes.pop() {
                self.hosts[slot as usize].left = self.ports.len() as u32;
                for port in 0..self.ports.len() {
                    let of = &mut self.ports[port];
                    of.waiting.push_back(Part {
                        owner: Owner::Host(slot),
                        op: Op::Flush,
                        lbn: 0,
                        blocks: 0,
                    });
                    self.feed(now_ns, port);
                }
            }
        } else {
            self.pump(now_ns);
        }
    }

    fn complete(&mut self, now_ns: u64, slot: u32, served_from: ServedFrom) {
        let Host {
            command, submit_ns, ..
        } = self.hosts[slot as usize];
        self.free_hosts.push(slot);
        let overhead_ns = self.command_ns.min(now_ns - submit_ns);
        self.done.push_back(Completion {
            id: command.id,
            op: command.op,
            served_from,
            submit_ns,
            finish_ns: now_ns,
            phases: Phases {
                queue_ns: now_ns - submit_ns - overhead_ns,
                overhead_ns,
                ..Phases::default()
            },
        });
    }
}

impl Device for Controller {
    fn capacity_blocks(&self) -> u64 {
        self.capacity_blocks
    }

    fn queue_depth(&self) -> u32 {
        self.depth
    }

    fn outstanding(&self) -> u32 {
        self.outstanding
    }

    fn submit(&mut self, now_ns: u64, command: Command) -> Result<(), SubmitError> {
        check(self, &command)?;
        self.outstanding += 1;
        self.board.begin();
        let host = Host {
            command,
            submit_ns: now_ns,
            left: 0,
        };
        let slot = match self.free_hosts.pop() {
            Some(slot) => {
                self.hosts[slot as usize] = host;
                slot
            }
            None => {
                self.hosts.push(host);
                self.hosts.len() as u32 - 1
            }
        };
        let begun_ns = self.board.process(now_ns, self.command_ns);
        self.at(begun_ns, Event::Begun(slot));
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        let own_ns = self.events.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let drives = self
            .ports
            .iter()
            .filter_map(|port| port.drive.next_event_ns());
        own_ns.into_iter().chain(drives).min()
    }

    fn advance(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        while let Some(at_ns) = self.next_event_ns().filter(|at_ns| *at_ns <= now_ns) {
            if let Some(&Reverse((own_ns, _, event))) = self.events.peek()
                && own_ns <= at_ns
            {
                self.events.pop();
                match event {
                    Event::Begun(slot) => self.begin(own_ns, slot),
                    Event::Stored(slot) => self.stored(own_ns, slot),
                    Event::Sent(slot) => self.complete(own_ns, slot, ServedFrom::Medium),
                    Event::Computed(id) => self.write_members(own_ns, id),
                }
            } else {
                for port in 0..self.ports.len() {
                    if self.ports[port].drive.next_event_ns() == Some(at_ns) {
                        self.advance_port(at_ns, port);
                    }
                }
            }
            self.take_finished();
            while let Some(completion) = self.done.pop_front() {
                self.outstanding -= 1;
                self.board.end();
                done(completion);
            }
        }
    }
}
