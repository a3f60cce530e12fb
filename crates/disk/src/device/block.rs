//! virtio-blk around a disk.

use std::collections::VecDeque;
use std::ops::Range;

use spindle_drive::DriveError;
use spindle_sim::DriveSetup;

use super::fault::{Fault, Faults};
use super::journal::Journal;
use super::{Device, INDIRECT, Rings, VERSION_1};
use crate::contents::Contents;
use crate::disk::{Counts, Disk, Done, Geometry, Operation, Request, SECTOR, Served};
use crate::virtio::{Buffer, Chain, Memory, MemoryError, RingError};

/// Number of virtio-blk.
const KIND: u32 = 2;

const SEGMENTS: u64 = 1 << 2;
const FLUSH: u64 = 1 << 9;
const DISCARD: u64 = 1 << 13;
const WRITE_ZEROES: u64 = 1 << 14;

/// Most segments of a request (`seg_max`): more than the block layer puts into one, so that they never shape it.
const MOST_SEGMENTS: u32 = 512;
/// Most sectors of one discard or write of zeros: 2 GiB.
const MOST_CLEARED: u32 = 1 << 22;
/// Bytes of a serial number.
const SERIAL: u32 = 20;
/// Bytes of a segment of a discard or write of zeros: sector, sectors, flags.
const RANGE: usize = 16;

/// Rings; a front end uses one for each of its CPUs at most.
const RINGS: u16 = 1;

/// Codes of requests (virtio 1.2, section 5.2.6).
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH_CODE: u32 = 4;
const IDENTIFY: u32 = 8;
const DISCARD_CODE: u32 = 11;
const WRITE_ZEROES_CODE: u32 = 13;

const STATUS_FINE: u8 = 0;
const STATUS_ERROR: u8 = 1;
const STATUS_UNSUPPORTED: u8 = 2;

/// Where an answer belongs.
#[derive(Debug)]
struct Place {
    session: u64,
    ring: usize,
    head: u16,
    data: Vec<Buffer>,
    status_address: u64,
    /// The changes that a flush makes durable (`Journal::point`).
    durable: u64,
}

/// The answer to a request that needs no drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Serial,
    Status(u8),
}

/// A block device.
#[derive(Debug)]
pub struct BlockDevice {
    disk: Disk<Place>,
    serial: String,
    config: Vec<u8>,
    /// Requests that need no drive: when each is done, its place and its answer.
    immediate: VecDeque<(u64, Place, Answer)>,
    session: u64,
    faults: Faults,
    /// For a power cut: the writes that it may undo.
    journal: Option<Journal>,
    is_dead: bool,
}

impl BlockDevice {
    /// A device for the drive of a machine. With `is_traced`, each request is recorded.
    pub fn new(
        setup: &DriveSetup,
        contents: Contents,
        serial: String,
        is_traced: bool,
    ) -> Result<Self, DriveError> {
        Disk::of(setup, contents, is_traced).map(|disk| Self::around(disk, serial))
    }

    fn around(disk: Disk<Place>, serial: String) -> Self {
        Self {
            config: config_space(disk.geometry()),
            disk,
            serial,
            immediate: VecDeque::new(),
            session: 0,
            faults: Faults::default(),
            journal: None,
            is_dead: false,
        }
    }

    /// No request is done sooner than so long after it came, nanoseconds.
    #[must_use]
    pub fn least_latency_ns(&self) -> u64 {
        self.disk.least_latency_ns()
    }

    /// Sets the faults. With `may_lose_power`, [`cut_power`](BlockDevice::cut_power) may end the device.
    pub fn set_faults(&mut self, faults: Vec<Fault>, may_lose_power: bool) {
        self.faults = Faults::new(faults);
        self.journal = may_lose_power.then(Journal::default);
    }

    /// The contents of the drive.
    pub fn contents_mut(&mut self) -> &mut Contents {
        &mut self.disk.contents
    }

    /// The power is cut: of the writes that were not flushed, and of those under way, each is there, gone, or torn after
    /// one of its sectors, by the seed.
    pub fn cut_power(&mut self, memory: &Memory, seed: u64) -> Result<(), RingError> {
        for request in self.disk.abandon(0) {
            if request.request.operation == Operation::Write {
                self.transfer(&request, memory)?;
            }
        }
        if let Some(journal) = &mut self.journal {
            journal.cut(&mut self.disk.contents, seed);
        }
        Ok(())
    }

    fn fails(&mut self, done: &Done<Place>) -> bool {
        let (now_ns, request) = (done.finish_ns, &done.request);
        let sectors: Range<u64> =
            request.offset / SECTOR..(request.offset + request.len).div_ceil(SECTOR);
        match request.operation {
            Operation::Read => self.faults.fails_read(now_ns, &sectors),
            Operation::Write | Operation::WriteZeroes | Operation::Discard => {
                let fails = self.faults.fails_write(now_ns, &sectors);
                if !fails {
                    self.faults.heal(now_ns, &sectors);
                }
                fails
            }
            Operation::Flush => {
                if let Some(journal) = &mut self.journal
                    && !self.faults.ignores_flushes(now_ns)
                {
                    journal.flush(done.tag.durable);
                }
                false
            }
        }
    }

    /// Bytes that the driver can address.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.disk.capacity_bytes()
    }

    /// Requests that the drive takes at a time.
    #[must_use]
    pub fn queue_depth(&self) -> u32 {
        self.disk.queue_depth()
    }

    /// Requests that the drive has done.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.disk.counts()
    }

    /// Memory that the contents take, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.disk.contents.memory_bytes()
    }

    /// The requests in the order of their arrival; empty if they are not traced.
    #[must_use]
    pub fn trace(&self) -> &[Served] {
        self.disk.trace()
    }

    /// True if no request is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.immediate.is_empty() && self.disk.is_idle()
    }

    /// The driver is gone: its requests are not returned, and its writes that are not done are lost.
    pub fn forget_driver(&mut self) {
        self.session += 1;
        self.immediate.clear();
    }

    /// Deals with all events up to `now_ns` without a driver.
    pub fn advance_alone(&mut self, now_ns: u64) {
        self.disk.advance(now_ns, &mut Vec::new());
    }

    fn take(
        &mut self,
        now_ns: u64,
        ring: usize,
        chain: &Chain,
        memory: &Memory,
    ) -> Result<(), RingError> {
        let (place, parsed) = self.parse(ring, chain, memory)?;
        match parsed {
            Ok(_) if self.is_dead => {
                let at_ns = now_ns + self.least_latency_ns();
                let failed = Answer::Status(STATUS_ERROR);
                self.immediate.push_back((at_ns, place, failed));
            }
            Ok(request) => self.disk.take(now_ns, request, place),
            Err(answer) => self.immediate.push_back((now_ns, place, answer)),
        }
        Ok(())
    }

    /// Reads a request: a header of 16 bytes, data, a byte for the status.
    fn parse(
        &self,
        ring: usize,
        chain: &Chain,
        memory: &Memory,
    ) -> Result<(Place, Result<Request, Answer>), RingError> {
        let [header, data @ .., status] = &chain.buffers[..] else {
            return Err(RingError::Request(chain.head));
        };
        if header.is_writable || header.len < 16 || !status.is_writable || status.len < 1 {
            return Err(RingError::Request(chain.head));
        }
        let mut bytes = [0; 16];
        memory.read(header.address, &mut bytes)?;
        let code = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let place = Place {
            session: self.session,
            ring,
            head: chain.head,
            data: data.to_vec(),
            status_address: status.address,
            durable: self.journal.as_ref().map_or(0, Journal::point),
        };
        let request = self.request(code, u64_at(&bytes, 8), &place.data, memory)?;
        Ok((place, request))
    }

    fn request(
        &self,
        code: u32,
        sector: u64,
        data: &[Buffer],
        memory: &Memory,
    ) -> Result<Result<Request, Answer>, MemoryError> {
        let is_direction =
            |writable: bool| data.iter().all(|buffer| buffer.is_writable == writable);
        let len: u64 = data.iter().map(|buffer| u64::from(buffer.len)).sum();
        let (operation, range, is_well_formed) = match code {
            READ => (Operation::Read, (sector, len), is_direction(true)),
            WRITE => (Operation::Write, (sector, len), is_direction(false)),
            FLUSH_CODE => (Operation::Flush, (0, 0), true),
            IDENTIFY => {
                let answer = if is_direction(true) {
                    Answer::Serial
                } else {
                    Answer::Status(STATUS_ERROR)
                };
                return Ok(Err(answer));
            }
            DISCARD_CODE | WRITE_ZEROES_CODE if self.disk.geometry().can_discard => {
                let Some((sector, sectors)) = read_range(memory, data)? else {
                    return Ok(Err(Answer::Status(STATUS_ERROR)));
                };
                let operation = match code {
                    DISCARD_CODE => Operation::Discard,
                    _ => Operation::WriteZeroes,
                };
                let is_short = sectors <= MOST_CLEARED;
                (operation, (sector, u64::from(sectors) * SECTOR), is_short)
            }
            _ => return Ok(Err(Answer::Status(STATUS_UNSUPPORTED))),
        };
        let (sector, len) = range;
        // A sector beyond all addresses is outside of every disk.
        let request = Request {
            operation,
            offset: sector.saturating_mul(SECTOR),
            len,
            force_unit_access: false,
        };
        let is_valid =
            is_well_formed && len.is_multiple_of(SECTOR) && self.disk.is_inside(&request);
        Ok(if is_valid {
            Ok(request)
        } else {
            Err(Answer::Status(STATUS_ERROR))
        })
    }

    fn finish(&mut self, done: Done<Place>, rings: &mut Rings<'_>) -> Result<(), RingError> {
        if done.tag.session != self.session {
            return Ok(());
        }
        let memory = rings.memory();
        let moved = match done.is_fine && !self.fails(&done) {
            true => self.transfer(&done, memory)?,
            false => None,
        };
        if let Some(journal) = &mut self.journal
            && !self.disk.geometry().has_write_cache
        {
            journal.flush(journal.point());
        }
        let status = match moved {
            Some(_) => STATUS_FINE,
            None => STATUS_ERROR,
        };
        self.answer(&done.tag, status, moved.unwrap_or(0), rings)
    }

    fn answer(
        &mut self,
        place: &Place,
        status: u8,
        written: u32,
        rings: &mut Rings<'_>,
    ) -> Result<(), RingError> {
        rings.memory().write(place.status_address, &[status])?;
        rings.push(place.ring, place.head, written + 1)
    }

    /// Moves the data; the bytes written to the driver's memory, or `None` if the contents failed.
    fn transfer(
        &mut self,
        done: &Done<Place>,
        memory: &Memory,
    ) -> Result<Option<u32>, MemoryError> {
        let contents = &mut self.disk.contents;
        let mut offset = done.request.offset;
        let mut written = 0;
        let moved = match done.request.operation {
            Operation::Flush => Ok(()),
            Operation::Discard | Operation::WriteZeroes => {
                contents.discard(offset, done.request.len)
            }
            Operation::Read | Operation::Write => {
                let mut moved = Ok(());
                for buffer in &done.tag.data {
                    let mut bytes = vec![0; buffer.len as usize];
                    if done.request.operation == Operation::Read {
                        moved = moved.and(contents.read(offset, &mut bytes));
                        memory.write(buffer.address, &bytes)?;
                        written += buffer.len;
                    } else {
                        memory.read(buffer.address, &mut bytes)?;
                        if let Some(journal) = &mut self.journal {
                            journal.note(contents, offset, bytes.clone());
                        }
                        moved = moved.and(contents.write(offset, &bytes));
                    }
                    offset += u64::from(buffer.len);
                }
                moved
            }
        };
        Ok(moved.ok().map(|()| written))
    }

    /// Writes the serial number to the buffers of a request; the bytes written.
    fn identify(&self, place: &Place, memory: &Memory) -> Result<u32, MemoryError> {
        let mut serial = self.serial.bytes().chain(std::iter::repeat(0));
        let mut written = 0;
        for buffer in &place.data {
            let len = buffer.len.min(SERIAL);
            let bytes: Vec<u8> = serial.by_ref().take(len as usize).collect();
            memory.write(buffer.address, &bytes)?;
            written += len;
        }
        Ok(written)
    }
}

/// The one range of a discard or write of zeros.
fn read_range(memory: &Memory, data: &[Buffer]) -> Result<Option<(u64, u32)>, MemoryError> {
    let [buffer] = data else {
        return Ok(None);
    };
    if buffer.len as usize != RANGE || buffer.is_writable {
        return Ok(None);
    }
    let mut bytes = [0; RANGE];
    memory.read(buffer.address, &mut bytes)?;
    let sectors = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    Ok(Some((u64_at(&bytes, 0), sectors)))
}

fn u64_at(bytes: &[u8; 16], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// `struct virtio_blk_config`.
fn config_space(geometry: &Geometry) -> Vec<u8> {
    let mut config = vec![0; 60];
    let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &geometry.blocks.to_le_bytes());
    put(12, &MOST_SEGMENTS.to_le_bytes());
    put(20, &(SECTOR as u32).to_le_bytes());
    put(34, &RINGS.to_le_bytes());
    if geometry.can_discard {
        // Most sectors and segments of a discard, its alignment; most sectors and segments of a write of zeros.
        for (at, value) in [
            (36, MOST_CLEARED),
            (40, 1),
            (44, 8),
            (48, MOST_CLEARED),
            (52, 1),
        ] {
            put(at, &value.to_le_bytes());
        }
    }
    config
}

impl Device for BlockDevice {
    fn kind(&self) -> u32 {
        KIND
    }

    fn rings(&self) -> usize {
        usize::from(RINGS)
    }

    fn features(&self) -> u64 {
        let geometry = self.disk.geometry();
        let offered = |is_offered: bool, bit: u64| if is_offered { bit } else { 0 };
        VERSION_1
            | INDIRECT
            | SEGMENTS
            | offered(geometry.has_write_cache, FLUSH)
            | offered(geometry.can_discard, DISCARD | WRITE_ZEROES)
    }

    fn config(&self) -> &[u8] {
        &self.config
    }

    fn kick(&mut self, ring: usize, now_ns: u64, rings: &mut Rings<'_>) -> Result<(), RingError> {
        while let Some(chain) = rings.pop(ring)? {
            self.take(now_ns, ring, &chain, rings.memory())?;
        }
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        let immediate = self.immediate.front().map(|(at, ..)| *at);
        let disk = self.disk.next_event_ns();
        let death = self.faults.death_ns().filter(|_| !self.is_dead);
        let drive = disk.into_iter().map(|at| self.faults.thawed_ns(at));
        immediate.into_iter().chain(drive).chain(death).min()
    }

    fn advance(&mut self, now_ns: u64, rings: &mut Rings<'_>) -> Result<(), RingError> {
        while self.immediate.front().is_some_and(|(at, ..)| *at <= now_ns)
            && let Some((_, place, answer)) = self.immediate.pop_front()
        {
            let (status, written) = match answer {
                Answer::Serial => (STATUS_FINE, self.identify(&place, rings.memory())?),
                Answer::Status(status) => (status, 0),
            };
            self.answer(&place, status, written, rings)?;
        }
        let mut done = Vec::new();
        if !self.is_dead && self.faults.death_ns().is_some_and(|at| at <= now_ns) {
            self.is_dead = true;
            done = self.disk.abandon(now_ns);
        } else if !self.is_dead && self.faults.thawed_ns(now_ns) == now_ns {
            self.disk.advance(now_ns, &mut done);
        }
        for mut done in done {
            done.finish_ns = self.faults.thawed_ns(done.finish_ns);
            self.finish(done, rings)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use spindle_drive::{
        Command, Device as _, Drive, Server, ServerParams, ServiceTime, Settings, drive,
    };

    use super::*;
    use crate::virtio::tests::{Driver, memory, readable, writable};

    const BASE: u64 = 0x4000;
    const HEADER: u64 = 0x8000;
    const STATUS: u64 = 0x9000;
    const DATA: u64 = 0x1_0000;

    fn geometry() -> Geometry {
        Geometry {
            start_block: 0,
            blocks: 2048,
            has_write_cache: true,
            can_discard: true,
            flushes_alone: false,
        }
    }

    fn server(depth: u32) -> Drive {
        let params = ServerParams {
            capacity_blocks: 1 << 20,
            queue_depth: depth,
            service: ServiceTime::Constant(100_000),
            bytes_per_s: Some(200_000_000),
            flush_ns: Some(100_000),
            servers: 1,
            rotational: true,
            seed: 1,
        };
        Drive::Server(Box::new(Server::new(params).unwrap()))
    }

    /// A driver with one ring of 64 entries and its device.
    struct Bench {
        driver: Driver,
        ring: [Ring; 1],
        device: BlockDevice,
        place: u64,
    }

    use crate::virtio::Ring;

    impl Bench {
        fn new(drive: Drive) -> Self {
            Self::with(drive, geometry())
        }

        fn with(drive: Drive, geometry: Geometry) -> Self {
            let (memory, _) = memory(BASE, 0x40_0000);
            let driver = Driver::new(memory, BASE, 64);
            Self {
                ring: [driver.ring()],
                driver,
                device: BlockDevice::around(
                    Disk::new(drive, geometry, Contents::default(), true),
                    "serial".to_owned(),
                ),
                place: 0,
            }
        }

        /// Offers a request; where its status will be.
        fn offer(&mut self, code: u32, sector: u64, data: &[Buffer]) -> u64 {
            let (header, status) = (HEADER + 16 * self.place, STATUS + self.place);
            self.place += 1;
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&code.to_le_bytes());
            bytes[8..].copy_from_slice(&sector.to_le_bytes());
            self.driver.memory.write(header, &bytes).unwrap();
            self.driver.memory.write(status, &[0xff]).unwrap();
            let buffers = [&[readable(header, 16)], data, &[writable(status, 1)]].concat();
            self.driver.add(&buffers);
            status
        }

        fn kick(&mut self, now_ns: u64) {
            let mut rings = Rings::new(&self.driver.memory, &mut self.ring);
            self.device.kick(0, now_ns, &mut rings).unwrap();
        }

        /// Deals with the next event: its time and the requests returned.
        fn step(&mut self) -> Option<(u64, usize)> {
            let at = self.device.next_event_ns()?;
            let mut rings = Rings::new(&self.driver.memory, &mut self.ring);
            self.device.advance(at, &mut rings).unwrap();
            let wanted = rings.interrupts();
            let returned = self.driver.returned().len();
            assert_eq!(wanted.is_empty(), returned == 0);
            Some((at, returned))
        }

        fn byte(&self, address: u64) -> u8 {
            let mut byte = [0];
            self.driver.memory.read(address, &mut byte).unwrap();
            byte[0]
        }
    }

    #[test]
    fn what_was_written_is_read_again_after_the_service_times() {
        let mut bench = Bench::new(server(8));
        bench.driver.memory.write(DATA, &[7; 4096]).unwrap();
        let write = bench.offer(1, 8, &[readable(DATA, 1024), readable(DATA + 1024, 3072)]);
        let read = bench.offer(0, 8, &[writable(DATA + 0x8000, 4096)]);
        bench.kick(1000);
        let service = 100_000 + 5 * 4096;
        assert_eq!(bench.byte(write), 0xff);
        assert_eq!(bench.step(), Some((1000 + service, 1)));
        assert_eq!((bench.byte(write), bench.byte(read)), (STATUS_FINE, 0xff));
        assert_eq!(bench.step(), Some((1000 + 2 * service, 1)));
        assert_eq!(bench.byte(read), STATUS_FINE);
        assert_eq!(bench.byte(DATA + 0x8000 + 4095), 7);
        assert_eq!(bench.step(), None);
        let trace = bench.device.trace();
        assert_eq!(trace[0].finish_ns, Some(1000 + service));
        assert_eq!(
            (trace[1].operation, trace[1].sector, trace[1].sectors),
            ('R', 8, 8)
        );
    }

    #[test]
    fn each_request_takes_exactly_what_the_drives_own_model_says() {
        for name in ["HDS725050KLA360", "970-PRO-1TB"] {
            let settings = Settings {
                queue_depth: Some(4),
                ..Settings::default()
            };
            let mut alone = drive(name, settings).unwrap();
            let mut bench = Bench::new(drive(name, settings).unwrap());
            let places = [5, 900, 64, 1200, 3, 700, 10, 2000, 44, 90, 600, 1];
            for (id, sector) in places.into_iter().enumerate() {
                let code = u32::from(id % 3 == 0);
                let buffer = if code == 1 {
                    readable(DATA, 4096)
                } else {
                    writable(DATA, 4096)
                };
                bench.offer(code, sector, &[buffer]);
            }
            bench.kick(0);
            while bench.step().is_some() {}

            let mut expected = vec![0; places.len()];
            let mut waiting: VecDeque<usize> = (0..places.len()).collect();
            let mut now = 0;
            loop {
                while let Some(&id) = waiting.front()
                    && alone.outstanding() < alone.queue_depth()
                {
                    waiting.pop_front();
                    let command = if id % 3 == 0 {
                        Command::write
                    } else {
                        Command::read
                    };
                    alone
                        .submit(now, command(id as u64, places[id], 8))
                        .unwrap();
                }
                let Some(at) = alone.next_event_ns() else {
                    break;
                };
                now = at;
                alone.advance(at, &mut |completion| {
                    expected[completion.id as usize] = completion.finish_ns
                });
            }
            let found: Vec<u64> = bench
                .device
                .trace()
                .iter()
                .filter_map(|served| served.finish_ns)
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn requests_beyond_the_queue_depth_wait_in_order() {
        let mut bench = Bench::new(server(2));
        for _ in 0..5 {
            bench.offer(4, 0, &[]);
        }
        bench.kick(0);
        let times: Vec<_> = std::iter::from_fn(|| bench.step()).collect();
        assert_eq!(
            times,
            (1..=5)
                .map(|count| (100_000 * count, 1))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_flush_on_ata_waits_for_all_before_it_and_all_behind_it_wait() {
        let times = |flushes_alone| {
            let mut bench = Bench::with(
                drive("HDS725050KLA360", Settings::default()).unwrap(),
                Geometry {
                    flushes_alone,
                    ..geometry()
                },
            );
            for (code, sector) in [(0, 0), (0, 900), (4, 0), (0, 1800), (0, 40)] {
                let data = [writable(DATA, 4096)];
                bench.offer(code, sector, if code == 0 { &data } else { &[] });
            }
            bench.kick(0);
            while bench.step().is_some() {}
            let trace = bench.device.trace();
            trace
                .iter()
                .filter_map(|served| served.finish_ns)
                .collect::<Vec<_>>()
        };
        let ata = times(true);
        assert_eq!(ata.len(), 5);
        assert!(ata[0].max(ata[1]) < ata[2], "{ata:?}");
        assert!(ata[2] < ata[3].min(ata[4]), "{ata:?}");
        let queued = times(false);
        assert!(queued[2] < queued[3].max(queued[0]), "{queued:?}");
    }

    #[test]
    fn discarded_and_zeroed_ranges_read_as_zeros() {
        for code in [11, 13] {
            let mut bench = Bench::new(server(8));
            bench.driver.memory.write(DATA, &[7; 4096]).unwrap();
            bench.offer(1, 0, &[readable(DATA, 4096)]);
            let mut range = [0; RANGE];
            range[0] = 2;
            range[8] = 3;
            bench.driver.memory.write(DATA + 0x2000, &range).unwrap();
            let status = bench.offer(code, 0, &[readable(DATA + 0x2000, RANGE as u32)]);
            bench.offer(0, 0, &[writable(DATA + 0x8000, 4096)]);
            bench.kick(0);
            while bench.step().is_some() {}
            assert_eq!(bench.byte(status), STATUS_FINE);
            let found = [1023, 1024, 2559, 2560].map(|at| bench.byte(DATA + 0x8000 + at));
            assert_eq!(found, [7, 0, 0, 7]);
        }
    }

    #[test]
    fn wrong_requests_fail_at_once_and_are_not_seen_by_the_drive() {
        let mut bench = Bench::new(server(8));
        let beyond = bench.offer(0, 2048, &[writable(DATA, 512)]);
        let wrapped = bench.offer(0, u64::MAX, &[writable(DATA, 512)]);
        let empty = bench.offer(1, 0, &[]);
        let crooked = bench.offer(0, 0, &[writable(DATA, 100)]);
        let unknown = bench.offer(77, 0, &[]);
        bench.kick(500);
        assert_eq!(bench.step(), Some((500, 5)));
        for status in [beyond, wrapped, empty, crooked] {
            assert_eq!(bench.byte(status), STATUS_ERROR);
        }
        assert_eq!(bench.byte(unknown), STATUS_UNSUPPORTED);
        assert!(bench.device.trace().is_empty());
        assert_eq!(bench.step(), None);
    }

    #[test]
    fn the_serial_number_takes_no_time() {
        let mut bench = Bench::new(server(8));
        bench.offer(8, 0, &[writable(DATA, 20)]);
        bench.kick(9);
        assert_eq!(bench.step(), Some((9, 1)));
        assert_eq!((bench.byte(DATA), bench.byte(DATA + 6)), (b's', 0));
    }

    #[test]
    fn a_request_without_a_status_is_a_broken_driver() {
        let mut bench = Bench::new(server(8));
        bench.driver.add(&[readable(HEADER, 16)]);
        let mut rings = Rings::new(&bench.driver.memory, &mut bench.ring);
        assert!(bench.device.kick(0, 0, &mut rings).is_err());
    }
}
