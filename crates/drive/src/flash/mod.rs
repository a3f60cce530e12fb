//! A flash drive: channels, dies, pages, an interface, and the translation of addresses.
//!
//! A read is split into pages. A page that was written as a whole is on die p mod (channels x dies per channel), as if the drive had
//! been written sequentially; of one that was written in parts, each unit is on a die of its own. Units that are written are gathered into
//! pages, which go to the dies in turn. Each die does one operation at a time (its planes together count as one), each
//! channel moves one page at a time, the interface one command and one transfer at a time. Writes are acknowledged
//! from the drive's cache as long as it has room, and programmed later.
//!
//! [`mapping`] decides how much collection has to move for each unit that is written; the die that programs a page does
//! that part of the work before it programs the next one, or when it has nothing else to do. Erasing is done where the
//! pages of a block have been used up.
//!
//! Not modelled: wear levelling, suspended programs and erases, errors, and the look-up of the map in flash.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use crate::command::{Command, Completion, Op, Phases, ServedFrom};
use crate::device::Device;
use crate::error::{DriveError, SubmitError};
use crate::random::mix;
use crate::reciprocal::Reciprocal;

pub mod amplification;
pub(crate) mod defaults;
mod mapping;
mod params;
mod scatter;
mod translation;

pub use self::params::{Collection, FlashParams, FlashState, SlcCache};
use self::translation::Translation;

/// A drive moves the SLC cache's data on when it has had nothing to do for as long (assumed).
const IDLE_NS: u64 = 100_000_000;
/// Bits of a cell: an SLC cache of an empty drive takes this many times its size (assumed: TLC).
const BITS_PER_CELL: u64 = 3;

/// An event in the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A command has been processed and goes to the dies, or takes its data over the interface.
    Start(u32),
    /// The data of a write are in the drive.
    Arrived(u32),
    /// A die has sensed the page it was to read.
    Sensed(u32),
    /// A page has left its die.
    Moved(u32),
    /// A die has programmed its page.
    Programmed(u32),
    /// A page of a read has reached the host.
    Delivered(u32),
    /// A die has sensed the pages that collection moves, or a page of the SLC cache.
    Gathered(u32),
    /// A die has done work of the drive's own.
    Settled(u32),
    /// The drive may have been idle for long enough.
    Idle,
}

/// A command in the drive.
#[derive(Debug, Clone, Copy)]
struct Slot {
    command: Command,
    submit_ns: u64,
    /// Pages that are not done.
    pages: u32,
}

/// One operation of a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Page {
    /// Slot of the read; [`PROGRAM`] and the program's number; or one of the drive's own works.
    of: u32,
    blocks: u32,
}

const PROGRAM: u32 = 1 << 31;
/// Bits of a program's number: far more than can be under way.
const NUMBER: u32 = (1 << 30) - 1;
/// Moves a page's worth of valid units.
const COLLECT: Page = Page {
    of: u32::MAX,
    blocks: 0,
};
/// Moves a page from the SLC cache.
const FOLD: Page = Page {
    of: u32::MAX,
    blocks: 1,
};
/// Erases a block.
const ERASE: Page = Page {
    of: u32::MAX,
    blocks: 2,
};

impl Page {
    #[inline]
    fn is_read(self) -> bool {
        self.of < PROGRAM
    }
}

/// A page that is to be programmed, or is.
#[derive(Debug, Clone, Copy)]
struct Program {
    /// The command that waits for it; `None` if it was acknowledged.
    slot: Option<u32>,
    slc: bool,
    done: bool,
    /// Units that collection has to move for it, times 2^16.
    owed_q16: u64,
}

#[derive(Debug, Clone, Default)]
struct Die {
    waiting: VecDeque<Page>,
    busy: Option<Page>,
    /// The die may have work of its own to do; false: it has none.
    may_owe: bool,
    /// Pages programmed since the last erase.
    programmed: u32,
    /// Units that collection has to move here, times 2^16.
    owed_q16: u64,
    /// Pages in the SLC cache, and what moving them will cost collection.
    folds: u32,
    fold_owed_q16: u64,
}

/// Totals of the work of a drive, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlashCounts {
    /// Written by the host, in whole units.
    pub written: u64,
    /// Moved by collection.
    pub moved: u64,
    /// Left empty in pages that were programmed before they were full.
    pub padded: u64,
    /// Written to the SLC cache.
    pub to_slc: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl FlashCounts {
    /// Bytes programmed for each byte written; moving data out of the SLC cache does not count.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let programmed = self.written + self.moved + self.padded;
        (self.written > 0).then(|| programmed as f64 / self.written as f64)
    }
}

/// A flash drive.
#[derive(Debug, Clone)]
pub struct Flash {
    params: FlashParams,
    dies: Vec<Die>,
    channels_free_ns: Vec<u64>,
    bus_free_ns: u64,
    command_free_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    outstanding: u32,
    translation: Translation,
    by_page: Reciprocal,
    by_unit: Reciprocal,
    by_dies: Reciprocal,
    units_per_page: u32,
    /// The die that programs the next page.
    next_die: u32,
    /// Units in the write cache, and of these, in the page that is not full yet.
    cached_units: u32,
    open_units: u32,
    open_owed_q16: u64,
    /// Writes whose data wait for room in the cache.
    blocked: VecDeque<u32>,
    programs: Programs,
    /// Flushes, and the program that each waits for at last.
    flushes: VecDeque<(u32, u32)>,
    slc_pages: u64,
    /// The drive has been idle for long, and empties the SLC cache.
    folding: bool,
    watches_idle: bool,
    active_ns: u64,
    owed_units_q16: u128,
    counts: FlashCounts,
}

/// Programs in the order in which they were issued, from the oldest that is not done.
#[derive(Debug, Clone, Default)]
struct Programs {
    queue: VecDeque<Program>,
    /// Number of the first.
    first: u32,
}

impl Programs {
    /// Adds a program; its number.
    fn issue(&mut self, program: Program) -> u32 {
        let number = self.end();
        self.queue.push_back(program);
        number
    }

    /// The number of the next program.
    fn end(&self) -> u32 {
        self.first.wrapping_add(self.queue.len() as u32)
    }

    fn get(&self, page: Page) -> Program {
        self.queue[(page.of.wrapping_sub(self.first) & NUMBER) as usize]
    }

    fn finish(&mut self, page: Page) -> Program {
        let at = (page.of.wrapping_sub(self.first) & NUMBER) as usize;
        self.queue[at].done = true;
        let program = self.queue[at];
        while self.queue.front().is_some_and(|first| first.done) {
            self.queue.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        program
    }

    /// True if all programs before this one are done.
    fn all_before(&self, number: u32) -> bool {
        self.first.wrapping_sub(number) < 1 << 31
    }
}

impl Flash {
    /// Builds an idle drive.
    pub fn new(params: &FlashParams) -> Result<Self, DriveError> {
        params.check()?;
        let dies = params.dies();
        let depth = params.queue_depth as usize;
        // Dies do not all reach the end of a block at the same time.
        let programmed = |die: u32| {
            (u64::from(die) * u64::from(params.pages_per_block) / u64::from(dies)) as u32
        };
        Ok(Self {
            dies: (0..dies)
                .map(|die| Die {
                    programmed: programmed(die),
                    ..Die::default()
                })
                .collect(),
            channels_free_ns: vec![0; params.channels as usize],
            bus_free_ns: 0,
            command_free_ns: 0,
            events: BinaryHeap::with_capacity(2 * depth + dies as usize),
            sequence: 0,
            slots: Vec::with_capacity(depth),
            free_slots: Vec::with_capacity(depth),
            outstanding: 0,
            translation: Translation::new(params),
            by_page: Reciprocal::new(u64::from(params.page_blocks)),
            by_unit: Reciprocal::new(u64::from(params.unit_blocks)),
            by_dies: Reciprocal::new(u64::from(dies)),
            units_per_page: params.page_blocks / params.unit_blocks,
            next_die: 0,
            cached_units: 0,
            open_units: 0,
            open_owed_q16: 0,
            blocked: VecDeque::with_capacity(depth),
            programs: Programs::default(),
            flushes: VecDeque::new(),
            slc_pages: 0,
            folding: false,
            watches_idle: false,
            active_ns: 0,
            owed_units_q16: 0,
            counts: FlashCounts::default(),
            params: params.clone(),
        })
    }

    /// Totals since the drive was built.
    #[must_use]
    pub fn counts(&self) -> FlashCounts {
        FlashCounts {
            moved: (self.owed_units_q16 >> 16) as u64 * self.unit_bytes(),
            ..self.counts
        }
    }

    /// State in which the drive was at the beginning.
    #[must_use]
    pub fn state(&self) -> FlashState {
        self.params.state
    }

    fn unit_bytes(&self) -> u64 {
        u64::from(self.params.unit_blocks) * 512
    }

    fn at(&mut self, ns: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((ns, self.sequence, event)));
    }

    /// Takes the interface for `blocks` blocks from `now_ns` on; returns the time at which it is free again.
    fn bus(&mut self, now_ns: u64, blocks: u32) -> u64 {
        self.bus_free_ns =
            now_ns.max(self.bus_free_ns) + blocks_ns(blocks, self.params.bus_block_q16);
        self.bus_free_ns
    }

    /// Takes the channel of a die for `blocks` blocks; returns the time at which it is free again.
    fn channel(&mut self, now_ns: u64, die: u32, blocks: u32) -> u64 {
        let channel = (die % self.params.channels) as usize;
        let free_ns = now_ns.max(self.channels_free_ns[channel])
            + blocks_ns(blocks, self.params.channel_block_q16);
        self.channels_free_ns[channel] = free_ns;
        free_ns
    }

    /// Hands a read's pages to their dies.
    fn read(&mut self, now_ns: u64, slot: u32) {
        let command = self.slots[slot as usize].command;
        let end = command.lbn + u64::from(command.blocks);
        let (first, last) = (
            self.by_page.div_rem(command.lbn).0,
            self.by_page.div_rem(end - 1).0,
        );
        self.slots[slot as usize].pages = (last - first) as u32 + 1;
        let scatters = self.translation.scatter.any();
        let mut from = command.lbn;
        for page in first..=last {
            let to = ((page + 1) * self.by_page.divisor()).min(end);
            if scatters && self.translation.scatter.is_scattered(page) {
                self.read_units(now_ns, slot, from, to);
            } else {
                let die = self.by_dies.div_rem(page).1;
                self.read_from(die as u32, now_ns, slot, (to - from) as u32);
            }
            from = to;
        }
    }

    /// Reads part of a page whose units are on dies of their own.
    #[inline(never)]
    fn read_units(&mut self, now_ns: u64, slot: u32, from: u64, to: u64) {
        let size = self.by_unit.divisor();
        let units = self.units(from, to);
        self.slots[slot as usize].pages += (units.end - units.start) as u32 - 1;
        for unit in units {
            let blocks = ((unit + 1) * size).min(to) - (unit * size).max(from);
            let die = ((mix(unit) >> 32) * self.dies.len() as u64) >> 32;
            self.read_from(die as u32, now_ns, slot, blocks as u32);
        }
    }

    #[inline]
    fn read_from(&mut self, die: u32, now_ns: u64, slot: u32, blocks: u32) {
        let page = Page { of: slot, blocks };
        let entry = &mut self.dies[die as usize];
        if entry.busy.is_some() {
            entry.waiting.push_back(page);
        } else {
            // A die that does nothing has nothing waiting.
            entry.busy = Some(page);
            self.at(now_ns + self.params.read_page_ns, Event::Sensed(die));
        }
    }

    /// Units that a stretch of blocks touches.
    #[inline]
    fn units(&self, from: u64, to: u64) -> Range<u64> {
        self.by_unit.div_rem(from).0..self.by_unit.div_rem(to - 1).0 + 1
    }

    #[inline]
    fn units_of(&self, command: &Command) -> Range<u64> {
        self.units(command.lbn, command.lbn + u64::from(command.blocks))
    }

    /// Maps units of a write; the work of collection that they bring, units times 2^16.
    fn map(&mut self, units: Range<u64>) -> u64 {
        let count = units.end - units.start;
        self.translation.write(units);
        self.counts.written += count * self.unit_bytes();
        count * self.translation.cost().moves_q16
    }

    /// Hands a write past the cache to the dies. Its last page is programmed even if it is not full.
    fn write_through(&mut self, now_ns: u64, slot: u32) {
        let command = self.slots[slot as usize].command;
        let per_page = u64::from(self.units_per_page);
        let units = self.units_of(&command);
        self.translation
            .scatter
            .write(command.lbn..command.lbn + u64::from(command.blocks));
        self.slots[slot as usize].pages = (units.end - units.start).div_ceil(per_page) as u32;
        let mut first = units.start;
        while first < units.end {
            let last = units.end.min(first + per_page);
            let owed = self.map(first..last);
            self.program(now_ns, Some(slot), (last - first) as u32, owed);
            first = last;
        }
    }

    /// Takes a write into the cache, and programs the pages that it fills.
    fn write_cached(&mut self, now_ns: u64, command: &Command) {
        let units = self.units_of(command);
        self.translation
            .scatter
            .write(command.lbn..command.lbn + u64::from(command.blocks));
        self.cached_units += (units.end - units.start) as u32;
        let mut first = units.start;
        while first < units.end {
            let room = u64::from(self.units_per_page - self.open_units);
            let last = units.end.min(first + room);
            self.open_owed_q16 += self.map(first..last);
            self.open_units += (last - first) as u32;
            if self.open_units == self.units_per_page {
                self.program_open(now_ns);
            }
            first = last;
        }
    }

    /// Programs the page that the cache gathers, full or not.
    fn program_open(&mut self, now_ns: u64) {
        let units = std::mem::take(&mut self.open_units);
        let owed = std::mem::take(&mut self.open_owed_q16);
        if units > 0 {
            self.program(now_ns, None, units, owed);
        }
    }

    /// Hands a page to the next die.
    fn program(&mut self, now_ns: u64, slot: Option<u32>, units: u32, owed_q16: u64) {
        let empty = u64::from(self.units_per_page - units);
        if empty > 0 {
            self.translation.pad(empty);
            self.counts.padded += empty * self.unit_bytes();
        }
        let die = self.next_die;
        self.next_die = (die + 1) % self.dies.len() as u32;
        let slc = self.has_slc_room();
        self.owed_units_q16 += u128::from(owed_q16);
        if slc {
            self.slc_pages += 1;
            self.counts.to_slc += u64::from(units) * self.unit_bytes();
        }
        let number = self.programs.issue(Program {
            slot,
            slc,
            done: false,
            owed_q16,
        });
        let page = Page {
            of: PROGRAM | (number & NUMBER),
            blocks: units * self.params.unit_blocks,
        };
        self.dies[die as usize].waiting.push_back(page);
        self.start_die(now_ns, die);
    }

    /// The SLC cache of an empty drive is larger: it takes space that has no data yet.
    fn has_slc_room(&self) -> bool {
        let Some(slc) = self.params.slc else {
            return false;
        };
        let empty = self.translation.empty_share() * self.params.capacity_blocks as f64;
        let extra = slc.extra_blocks.min(empty as u64 / BITS_PER_CELL);
        self.slc_pages < (slc.blocks + extra) / u64::from(self.params.page_blocks)
    }

    /// Gives a die that is free its next operation.
    fn start_die(&mut self, now_ns: u64, die: u32) {
        let entry = &mut self.dies[die as usize];
        if entry.busy.is_some() {
            return;
        }
        if entry.may_owe {
            // Reads do not wait for the drive's own work unless it has begun.
            let front = entry.waiting.front();
            let is_read = front.is_some_and(|page| page.is_read());
            if !is_read && self.start_own(now_ns, die) {
                return;
            }
        }
        let entry = &mut self.dies[die as usize];
        let Some(page) = entry.waiting.pop_front() else {
            return;
        };
        entry.busy = Some(page);
        if page.is_read() {
            self.at(now_ns + self.params.read_page_ns, Event::Sensed(die));
        } else {
            self.start_program(now_ns, die, page);
        }
    }

    #[inline(never)]
    fn start_program(&mut self, now_ns: u64, die: u32, page: Page) {
        let moved_ns = self.channel(now_ns, die, page.blocks);
        let program = self.programs.get(page);
        let entry = &mut self.dies[die as usize];
        let program_ns = match self.params.slc {
            Some(slc) if program.slc => {
                entry.fold_owed_q16 += program.owed_q16;
                slc.program_page_ns
            }
            _ => {
                // Paid before the next program.
                entry.owed_q16 += program.owed_q16;
                entry.may_owe = true;
                self.count_program(die);
                self.params.program_page_ns
            }
        };
        self.at(moved_ns + program_ns, Event::Programmed(die));
    }

    /// Begins what a die has to do before its next program; false if there is nothing.
    #[inline(never)]
    fn start_own(&mut self, now_ns: u64, die: u32) -> bool {
        let page_q16 = u64::from(self.units_per_page) << 16;
        let folds = self.folding;
        let entry = &mut self.dies[die as usize];
        let (work, ns) = if entry.programmed >= self.params.pages_per_block {
            entry.programmed -= self.params.pages_per_block;
            self.counts.erases += 1;
            (ERASE, self.params.erase_block_ns)
        } else if entry.owed_q16 >= page_q16 {
            entry.owed_q16 -= page_q16;
            let pages = self
                .translation
                .cost()
                .reads_per_program(self.units_per_page);
            let sense_ns = pages * self.params.read_page_ns as f64;
            (COLLECT, sense_ns as u64)
        } else if folds && entry.folds > 0 && entry.waiting.is_empty() {
            (FOLD, self.params.read_page_ns)
        } else {
            entry.may_owe = false;
            return false;
        };
        entry.busy = Some(work);
        let event = if work == ERASE {
            Event::Settled(die)
        } else {
            Event::Gathered(die)
        };
        self.at(now_ns + ns, event);
        true
    }

    /// A page of a die is used up. As long as there are erased blocks that were never collected, it need not erase.
    fn count_program(&mut self, die: u32) {
        if self.translation.cost().collects {
            let entry = &mut self.dies[die as usize];
            entry.programmed += 1;
            entry.may_owe = true;
        }
    }

    /// The pages to be moved have been sensed: they go to the controller, which corrects errors, and back.
    fn gathered(&mut self, now_ns: u64, die: u32) {
        let blocks = 2 * self.params.page_blocks;
        let moved_ns = self.channel(now_ns, die, blocks);
        self.count_program(die);
        self.at(moved_ns + self.params.program_page_ns, Event::Settled(die));
    }

    /// Work of the drive's own is done.
    fn settled(&mut self, now_ns: u64, die: u32) {
        let entry = &mut self.dies[die as usize];
        if entry.busy.take() == Some(FOLD) {
            let owed = entry.fold_owed_q16 / u64::from(entry.folds);
            entry.fold_owed_q16 -= owed;
            entry.owed_q16 += owed;
            entry.may_owe = true;
            entry.folds -= 1;
            self.slc_pages -= 1;
        }
        self.start_die(now_ns, die);
    }

    fn complete(
        &mut self,
        now_ns: u64,
        slot: u32,
        served_from: ServedFrom,
        done: &mut impl FnMut(Completion),
    ) {
        let Slot {
            command, submit_ns, ..
        } = self.slots[slot as usize];
        self.outstanding -= 1;
        self.active_ns = now_ns;
        self.free_slots.push(slot);
        let overhead_ns = self.params.command_ns;
        let page = command.blocks.min(self.params.page_blocks);
        let bus_ns = blocks_ns(command.blocks, self.params.bus_block_q16);
        let channel_ns = blocks_ns(page, self.params.channel_block_q16);
        // The time with nothing in the way; the rest is waiting for others.
        let alone_ns = match (command.op, served_from) {
            (Op::Flush | Op::Discard, _) => 0,
            (Op::Read, _) => self.params.read_page_ns + channel_ns + bus_ns,
            (Op::Write, ServedFrom::WriteCache) => bus_ns,
            (Op::Write, _) => bus_ns + channel_ns + self.params.program_page_ns,
        };
        let rest_ns = now_ns - submit_ns - overhead_ns;
        let transfer_ns = alone_ns.min(rest_ns);
        done(Completion {
            id: command.id,
            op: command.op,
            served_from,
            submit_ns,
            finish_ns: now_ns,
            phases: Phases {
                queue_ns: rest_ns - transfer_ns,
                overhead_ns,
                transfer_ns,
                ..Phases::default()
            },
        });
        if self.outstanding == 0 && self.slc_pages > 0 {
            self.watch_idle(now_ns);
        }
    }

    #[inline]
    fn happen(&mut self, now_ns: u64, event: Event, done: &mut impl FnMut(Completion)) {
        match event {
            Event::Start(slot) if self.slots[slot as usize].command.op == Op::Read => {
                self.read(now_ns, slot);
            }
            Event::Sensed(die) => {
                if let Some(page) = self.dies[die as usize].busy {
                    let moved_ns = self.channel(now_ns, die, page.blocks);
                    self.at(moved_ns, Event::Moved(die));
                }
            }
            Event::Moved(die) => {
                if let Some(page) = self.dies[die as usize].busy.take() {
                    let delivered_ns = self.bus(now_ns, page.blocks);
                    self.at(delivered_ns, Event::Delivered(page.of));
                }
                self.start_die(now_ns, die);
            }
            Event::Delivered(slot) => self.part_done(now_ns, slot, done),
            _ => self.happen_else(now_ns, event, done),
        }
    }

    /// All that does not happen to reads: kept apart for their speed.
    #[inline(never)]
    fn happen_else(&mut self, now_ns: u64, event: Event, done: &mut impl FnMut(Completion)) {
        match event {
            Event::Start(slot) => self.start(now_ns, slot, done),
            Event::Arrived(slot) => {
                let command = self.slots[slot as usize].command;
                let units = self.units_of(&command);
                let fits = units.end - units.start <= u64::from(self.cache_units());
                if command.force_unit_access || !fits {
                    self.write_through(now_ns, slot);
                } else {
                    self.blocked.push_back(slot);
                    self.admit(now_ns, done);
                }
            }
            Event::Programmed(die) => {
                if let Some(page) = self.dies[die as usize].busy.take() {
                    self.programmed(now_ns, die, page, done);
                }
                self.start_die(now_ns, die);
            }
            Event::Gathered(die) => self.gathered(now_ns, die),
            Event::Settled(die) => self.settled(now_ns, die),
            Event::Idle => {
                self.watches_idle = false;
                self.watch_idle(now_ns);
            }
            Event::Sensed(_) | Event::Moved(_) | Event::Delivered(_) => {}
        }
    }

    fn start(&mut self, now_ns: u64, slot: u32, done: &mut impl FnMut(Completion)) {
        let command = self.slots[slot as usize].command;
        match command.op {
            Op::Read => self.read(now_ns, slot),
            Op::Write => {
                let arrived_ns = self.bus(now_ns, command.blocks);
                self.at(arrived_ns, Event::Arrived(slot));
            }
            Op::Flush => {
                self.program_open(now_ns);
                self.flushes.push_back((slot, self.programs.end()));
                self.end_flushes(now_ns, done);
            }
            Op::Discard => {
                self.discard(&command);
                self.complete(now_ns, slot, ServedFrom::Medium, done);
            }
        }
    }

    /// Forgets the units that a command covers as a whole.
    fn discard(&mut self, command: &Command) {
        let size = u64::from(self.params.unit_blocks);
        let end = command.lbn + u64::from(command.blocks);
        let last = if end == self.params.capacity_blocks {
            end.div_ceil(size)
        } else {
            end / size
        };
        let first = command.lbn.div_ceil(size);
        if first < last {
            self.translation.trim(first..last);
        }
    }

    /// Takes writes into the cache as long as there is room, in the order in which they came.
    fn admit(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        while let Some(slot) = self.blocked.front().copied() {
            let command = self.slots[slot as usize].command;
            let units = self.units_of(&command);
            let count = (units.end - units.start) as u32;
            if self.cached_units + count > self.cache_units() {
                // Nothing under way will make room: the cache holds less than a page.
                if self.cached_units == self.open_units && self.open_units > 0 {
                    self.program_open(now_ns);
                }
                return;
            }
            self.blocked.pop_front();
            self.complete(now_ns, slot, ServedFrom::WriteCache, done);
            self.write_cached(now_ns, &command);
        }
    }

    fn cache_units(&self) -> u32 {
        self.params.write_cache_blocks / self.params.unit_blocks
    }

    /// A page is on the medium.
    fn programmed(&mut self, now_ns: u64, die: u32, page: Page, done: &mut impl FnMut(Completion)) {
        let program = self.programs.finish(page);
        if program.slc {
            self.dies[die as usize].folds += 1;
        }
        if let Some(slot) = program.slot {
            self.part_done(now_ns, slot, done);
        } else {
            self.cached_units -= page.blocks / self.params.unit_blocks;
            self.admit(now_ns, done);
        }
        self.end_flushes(now_ns, done);
    }

    /// A page of a command is done.
    fn part_done(&mut self, now_ns: u64, slot: u32, done: &mut impl FnMut(Completion)) {
        let entry = &mut self.slots[slot as usize];
        entry.pages -= 1;
        if entry.pages == 0 {
            self.complete(now_ns, slot, ServedFrom::Medium, done);
        }
    }

    fn end_flushes(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        while let Some((slot, end)) = self.flushes.front().copied() {
            if !self.programs.all_before(end) {
                return;
            }
            self.flushes.pop_front();
            self.complete(now_ns, slot, ServedFrom::Medium, done);
        }
    }

    /// Empties the SLC cache once the drive has been idle for long enough.
    #[inline(never)]
    fn watch_idle(&mut self, now_ns: u64) {
        if self.watches_idle || self.outstanding > 0 || self.slc_pages == 0 {
            return;
        }
        let due_ns = self.active_ns + IDLE_NS;
        if now_ns < due_ns {
            self.watches_idle = true;
            self.at(due_ns, Event::Idle);
            return;
        }
        self.folding = true;
        for die in 0..self.dies.len() as u32 {
            self.dies[die as usize].may_owe = true;
            self.start_die(now_ns, die);
        }
    }

    pub(crate) fn least_latency_ns(&self) -> u64 {
        self.params.command_ns
    }
}

impl Device for Flash {
    fn capacity_blocks(&self) -> u64 {
        self.params.capacity_blocks
    }

    fn queue_depth(&self) -> u32 {
        self.params.queue_depth
    }

    fn outstanding(&self) -> u32 {
        self.outstanding
    }

    fn submit(&mut self, now_ns: u64, command: Command) -> Result<(), SubmitError> {
        crate::device::check(self, &command)?;
        self.outstanding += 1;
        self.folding = false;
        let entry = Slot {
            command,
            submit_ns: now_ns,
            pages: 0,
        };
        let slot = match self.free_slots.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                self.slots.len() as u32 - 1
            }
        };
        let taken_ns = now_ns.max(self.command_free_ns);
        self.command_free_ns = taken_ns + self.params.command_gap_ns;
        self.at(taken_ns + self.params.command_ns, Event::Start(slot));
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((ns, ..))| *ns)
    }

    fn advance(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        while let Some(Reverse((ns, _, event))) = self.events.peek().copied()
            && ns <= now_ns
        {
            self.events.pop();
            self.happen(ns, event, done);
        }
    }
}

fn blocks_ns(blocks: u32, block_q16: u64) -> u64 {
    (u64::from(blocks) * block_q16 + 0xFFFF) >> 16
}

#[cfg(test)]
mod tests;
