//! A flash drive: channels, dies, pages and an interface.
//!
//! A request is split into pages. Logical page p lives on die p mod (channels x dies per channel), as if the drive had
//! been written sequentially; each die does one page operation at a time (its planes together count as one), each
//! channel moves one page at a time, the interface one command and one transfer at a time. Writes are acknowledged
//! from the drive's cache as long as it has room, and programmed later.
//!
//! Not modelled: garbage collection, wear levelling, SLC caches that fill up, and the drop of write speed that comes
//! with them. The model is a drive that always finds erased pages.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::command::{Command, Completion, Op, Phases, ServedFrom};
use crate::device::Device;
use crate::error::{DriveError, SubmitError};

/// The parameters of a flash drive. Times are nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct FlashParams {
    /// Name, for messages.
    pub name: String,
    /// Blocks of 512 bytes.
    pub capacity_blocks: u64,
    /// Channels between controller and dies.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Blocks of 512 bytes in a page, which a die reads or programs at once.
    pub page_blocks: u32,
    /// Sensing a page.
    pub read_page_ns: u64,
    /// Programming a page.
    pub program_page_ns: u64,
    /// Nanoseconds per block on a channel, times 2^16.
    pub channel_block_q16: u64,
    /// Nanoseconds per block on the interface, times 2^16.
    pub bus_block_q16: u64,
    /// From a command's arrival to its first page operation, and from its last transfer to its completion, together.
    pub command_ns: u64,
    /// Least time between two commands: the limit on commands per second.
    pub command_gap_ns: u64,
    /// Commands that may be outstanding.
    pub queue_depth: u32,
    /// Blocks of written data that wait for programming after they have been acknowledged; 0 for none.
    pub write_cache_blocks: u32,
}

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
}

/// A command in the drive.
#[derive(Debug, Clone, Copy)]
struct Slot {
    command: Command,
    submit_ns: u64,
    /// Pages that are not done.
    pages: u32,
    /// Place among the writes.
    order: u64,
    /// Acknowledged; only its programming goes on.
    acknowledged: bool,
    through: bool,
}

/// One page operation that waits for its die.
#[derive(Debug, Clone, Copy)]
struct Page {
    slot: u32,
    blocks: u32,
}

#[derive(Debug, Clone, Default)]
struct Die {
    waiting: VecDeque<Page>,
    busy: Option<Page>,
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
    cached_blocks: u64,
    /// Writes whose data wait for room in the cache.
    blocked: VecDeque<u32>,
    /// Flushes, and the number of writes that came before each.
    flushes: VecDeque<(u32, u64)>,
    /// Writes that are not on the medium, by their place among the writes.
    unwritten: VecDeque<u64>,
    writes: u64,
    outstanding: u32,
}

impl Flash {
    /// Builds an idle drive.
    pub fn new(params: &FlashParams) -> Result<Self, DriveError> {
        let within = |what: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                let problem = format!("{what} is {value}; allowed are {least} to {most}");
                Err(DriveError::parameter(params.name.clone(), problem))
            }
        };
        within(
            "the number of channels",
            u64::from(params.channels),
            1,
            1024,
        )?;
        within(
            "the number of dies per channel",
            u64::from(params.dies_per_channel),
            1,
            1024,
        )?;
        within(
            "the page size in blocks",
            u64::from(params.page_blocks),
            1,
            1 << 16,
        )?;
        within("the queue depth", u64::from(params.queue_depth), 1, 1 << 16)?;
        within("the capacity in blocks", params.capacity_blocks, 1, 1 << 50)?;
        let dies = (params.channels * params.dies_per_channel) as usize;
        let depth = params.queue_depth as usize;
        Ok(Self {
            dies: vec![Die::default(); dies],
            channels_free_ns: vec![0; params.channels as usize],
            bus_free_ns: 0,
            command_free_ns: 0,
            events: BinaryHeap::with_capacity(2 * depth + dies),
            sequence: 0,
            slots: Vec::with_capacity(depth),
            free_slots: Vec::with_capacity(depth),
            cached_blocks: 0,
            blocked: VecDeque::with_capacity(depth),
            flushes: VecDeque::new(),
            unwritten: VecDeque::new(),
            writes: 0,
            outstanding: 0,
            params: params.clone(),
        })
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

    /// Hands a command's pages to their dies.
    fn spread(&mut self, now_ns: u64, slot: u32) {
        let command = self.slots[slot as usize].command;
        let size = u64::from(self.params.page_blocks);
        let dies = self.dies.len() as u64;
        let end = command.lbn + u64::from(command.blocks);
        let pages = command.lbn / size..end.div_ceil(size);
        self.slots[slot as usize].pages = (pages.end - pages.start) as u32;
        for page in pages {
            let blocks = ((page + 1) * size).min(end) - (page * size).max(command.lbn);
            let die = (page % dies) as u32;
            self.dies[die as usize].waiting.push_back(Page {
                slot,
                blocks: blocks as u32,
            });
            self.start_die(now_ns, die);
        }
    }

    /// Gives a die that is free its next page.
    fn start_die(&mut self, now_ns: u64, die: u32) {
        let entry = &mut self.dies[die as usize];
        if entry.busy.is_some() {
            return;
        }
        let Some(page) = entry.waiting.pop_front() else {
            return;
        };
        entry.busy = Some(page);
        if self.slots[page.slot as usize].command.op == Op::Read {
            self.at(now_ns + self.params.read_page_ns, Event::Sensed(die));
        } else {
            let moved_ns = self.channel(now_ns, die, page.blocks);
            self.at(
                moved_ns + self.params.program_page_ns,
                Event::Programmed(die),
            );
        }
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
        let overhead_ns = self.params.command_ns;
        let page = command.blocks.min(self.params.page_blocks);
        let bus_ns = blocks_ns(command.blocks, self.params.bus_block_q16);
        let channel_ns = blocks_ns(page, self.params.channel_block_q16);
        // The time with nothing in the way; the rest is waiting for others.
        let alone_ns = match (command.op, served_from) {
            (Op::Flush, _) => 0,
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
    }

    fn happen(&mut self, now_ns: u64, event: Event, done: &mut impl FnMut(Completion)) {
        match event {
            Event::Start(slot) => self.start(now_ns, slot, done),
            Event::Arrived(slot) => {
                if self.slots[slot as usize].through {
                    self.spread(now_ns, slot);
                } else {
                    self.blocked.push_back(slot);
                    self.admit(now_ns, done);
                }
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
                    self.at(delivered_ns, Event::Delivered(page.slot));
                }
                self.start_die(now_ns, die);
            }
            Event::Delivered(slot) => {
                self.slots[slot as usize].pages -= 1;
                if self.slots[slot as usize].pages == 0 {
                    self.complete(now_ns, slot, ServedFrom::Medium, done);
                    self.free_slots.push(slot);
                }
            }
            Event::Programmed(die) => {
                if let Some(page) = self.dies[die as usize].busy.take() {
                    self.programmed(now_ns, page.slot, done);
                }
                self.start_die(now_ns, die);
            }
        }
    }

    fn start(&mut self, now_ns: u64, slot: u32, done: &mut impl FnMut(Completion)) {
        let command = self.slots[slot as usize].command;
        match command.op {
            Op::Read => self.spread(now_ns, slot),
            Op::Write => {
                let arrived_ns = self.bus(now_ns, command.blocks);
                self.at(arrived_ns, Event::Arrived(slot));
            }
            Op::Flush => {
                self.flushes
                    .push_back((slot, self.slots[slot as usize].order));
                self.end_flushes(now_ns, done);
            }
        }
    }

    /// Takes writes into the cache as long as there is room, in the order in which they came.
    fn admit(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        while let Some(slot) = self.blocked.front().copied() {
            let blocks = self.slots[slot as usize].command.blocks;
            if self.cached_blocks + u64::from(blocks) > u64::from(self.params.write_cache_blocks) {
                return;
            }
            self.blocked.pop_front();
            self.cached_blocks += u64::from(blocks);
            self.complete(now_ns, slot, ServedFrom::WriteCache, done);
            self.slots[slot as usize].acknowledged = true;
            self.spread(now_ns, slot);
        }
    }

    /// A page of a write is on the medium.
    fn programmed(&mut self, now_ns: u64, slot: u32, done: &mut impl FnMut(Completion)) {
        let entry = &mut self.slots[slot as usize];
        entry.pages -= 1;
        if entry.pages > 0 {
            return;
        }
        let entry = *entry;
        self.unwritten.retain(|order| *order != entry.order);
        if entry.acknowledged {
            self.cached_blocks -= u64::from(entry.command.blocks);
        } else {
            self.complete(now_ns, slot, ServedFrom::Medium, done);
        }
        self.free_slots.push(slot);
        self.admit(now_ns, done);
        self.end_flushes(now_ns, done);
    }

    fn end_flushes(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        while let Some((slot, before)) = self.flushes.front().copied() {
            if self.unwritten.front().is_some_and(|order| *order <= before) {
                return;
            }
            self.flushes.pop_front();
            self.complete(now_ns, slot, ServedFrom::Medium, done);
            self.free_slots.push(slot);
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
        if command.op == Op::Write {
            self.writes += 1;
            self.unwritten.push_back(self.writes);
        }
        let entry = Slot {
            command,
            submit_ns: now_ns,
            pages: 0,
            order: self.writes,
            acknowledged: false,
            through: command.force_unit_access || command.blocks > self.params.write_cache_blocks,
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
mod tests {
    use super::*;
    use crate::validate::complete;

    fn drive() -> Flash {
        Flash::new(&FlashParams {
            name: "test".into(),
            capacity_blocks: 1 << 30,
            channels: 4,
            dies_per_channel: 2,
            page_blocks: 8,
            read_page_ns: 50_000,
            program_page_ns: 500_000,
            channel_block_q16: 1000 << 16,
            bus_block_q16: 500 << 16,
            command_ns: 10_000,
            command_gap_ns: 2_000,
            queue_depth: 64,
            write_cache_blocks: 64,
        })
        .unwrap()
    }

    #[test]
    fn one_page_costs_sensing_and_two_transfers() {
        let mut drive = drive();
        drive.submit(0, Command::read(1, 80, 8)).unwrap();
        assert_eq!(
            complete(&mut drive).finish_ns,
            10_000 + 50_000 + 8_000 + 4_000
        );
    }

    #[test]
    fn pages_on_different_dies_are_read_side_by_side() {
        let mut drive = drive();
        drive.submit(0, Command::read(1, 0, 64)).unwrap();
        // Two dies share each channel, and all share the interface.
        assert_eq!(
            complete(&mut drive).finish_ns,
            10_000 + 50_000 + 8_000 + 8 * 4_000
        );
    }

    #[test]
    fn a_full_write_cache_makes_writes_wait_for_programming() {
        let mut drive = drive();
        let mut times = Vec::new();
        for id in 0..64 {
            drive.submit(0, Command::write(id, id * 8, 8)).unwrap();
        }
        while let Some(event) = drive.next_event_ns() {
            drive.advance(event, &mut |completion| times.push(completion.finish_ns));
        }
        times.sort_unstable();
        assert!(times[7] < 120_000 && times[8] >= 500_000, "{times:?}");
    }

    #[test]
    fn a_flush_waits_until_all_is_programmed() {
        let mut drive = drive();
        drive.submit(0, Command::write(1, 0, 8)).unwrap();
        let written = complete(&mut drive).finish_ns;
        drive.submit(written, Command::flush(2)).unwrap();
        assert!(complete(&mut drive).finish_ns >= written + 500_000);
    }

    #[test]
    fn phases_add_up() {
        let mut drive = drive();
        for id in 0..40 {
            let command = if id % 3 == 0 {
                Command::write(id, id * 24, 40)
            } else {
                Command::read(id, id * 24, 40)
            };
            drive.submit(id * 1000, command).unwrap();
        }
        let mut seen = 0;
        while let Some(event) = drive.next_event_ns() {
            drive.advance(event, &mut |completion| {
                seen += 1;
                assert_eq!(
                    completion.phases.total_ns(),
                    completion.finish_ns - completion.submit_ns
                );
            });
        }
        assert_eq!(seen, 40);
    }
}
