//! virtio-blk around a model of a drive: the model decides when a request is done, the contents are kept here.
//!
//! A request that the drive has no room for waits in order of arrival, as in a host adapter.

use std::collections::VecDeque;

use spindle_drive::{Command, Completion, Device as _, Drive};

use super::contents::Contents;
use super::{Device, INDIRECT, Rings, VERSION_1};
use crate::virtio::{Buffer, Chain, Memory, MemoryError, RingError};

/// Bytes of a sector.
const SECTOR: u64 = 512;
/// Number of virtio-blk.
const KIND: u32 = 2;

const SEGMENTS: u64 = 1 << 2;
const FLUSH: u64 = 1 << 9;
const SEVERAL_RINGS: u64 = 1 << 12;
const DISCARD: u64 = 1 << 13;
const WRITE_ZEROES: u64 = 1 << 14;

/// Most segments of a request (`seg_max`): more than the block layer puts into one, so that they never shape it.
const MOST_SEGMENTS: u32 = 512;
/// Most sectors of one discard or write of zeros: 2 GiB.
const MOST_CLEARED: u32 = 1 << 22;
/// Bytes of a segment of a discard or write of zeros: sector, sectors, flags.
const RANGE: usize = 16;

const STATUS_FINE: u8 = 0;
const STATUS_ERROR: u8 = 1;
const STATUS_UNSUPPORTED: u8 = 2;

/// A drive as the kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// First block of the drive in use, and number of blocks in use; 512 bytes each.
    pub start_block: u64,
    /// See above.
    pub blocks: u64,
    /// True if the drive may acknowledge writes early, so that the kernel sends flushes.
    pub has_write_cache: bool,
    /// True if the drive takes discards and writes of zeros.
    pub can_discard: bool,
    /// Rings; the kernel uses one for each of its CPUs at most.
    pub rings: u16,
}

/// One request at the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// When it came.
    pub arrive_ns: u64,
    /// When it was done; `None` if it never was.
    pub finish_ns: Option<u64>,
    /// R, W, F (flush), D (discard) or Z (write of zeros).
    pub operation: char,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    Flush,
    Discard,
    WriteZeroes,
    Identify,
}

impl Operation {
    fn parse(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Read,
            1 => Self::Write,
            4 => Self::Flush,
            8 => Self::Identify,
            11 => Self::Discard,
            13 => Self::WriteZeroes,
            _ => return None,
        })
    }

    fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::Write => 'W',
            Self::Flush => 'F',
            Self::Discard => 'D',
            Self::WriteZeroes => 'Z',
            Self::Identify => 'I',
        }
    }
}

#[derive(Debug)]
struct Pending {
    ring: usize,
    head: u16,
    operation: Operation,
    sector: u64,
    sectors: u64,
    data: Vec<Buffer>,
    status_address: u64,
    served: Option<usize>,
}

/// A block device.
#[derive(Debug)]
pub struct BlockDevice {
    drive: Drive,
    geometry: Geometry,
    serial: String,
    config: Vec<u8>,
    contents: Contents,
    pending: Vec<Option<Pending>>,
    free: Vec<usize>,
    /// Requests that the drive has no room for.
    backlog: VecDeque<usize>,
    /// Requests that need no drive: when each is done, its slot, its status.
    immediate: VecDeque<(u64, usize, u8)>,
    trace: Option<Vec<Served>>,
    finished: u64,
}

impl BlockDevice {
    /// A device with empty contents. With `is_traced`, each request is recorded.
    #[must_use]
    pub fn new(drive: Drive, geometry: Geometry, serial: String, is_traced: bool) -> Self {
        Self {
            config: config_space(&geometry),
            drive,
            geometry,
            serial,
            contents: Contents::default(),
            pending: Vec::new(),
            free: Vec::new(),
            backlog: VecDeque::new(),
            immediate: VecDeque::new(),
            trace: is_traced.then(Vec::new),
            finished: 0,
        }
    }

    /// Bytes that the kernel can address.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.geometry.blocks * SECTOR
    }

    /// Requests that the drive takes at a time.
    #[must_use]
    pub fn queue_depth(&self) -> u32 {
        self.drive.queue_depth()
    }

    /// Requests done.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.finished
    }

    /// Memory that the contents take, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.contents.memory_bytes()
    }

    /// The requests in the order of their arrival; empty if they are not traced.
    #[must_use]
    pub fn trace(&self) -> &[Served] {
        self.trace.as_deref().unwrap_or_default()
    }

    fn take(
        &mut self,
        now_ns: u64,
        ring: usize,
        chain: &Chain,
        memory: &Memory,
    ) -> Result<(), RingError> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        match self.parse(ring, chain, memory)? {
            Parsed::Fine(mut request) => {
                request.served = self.record(now_ns, &request);
                let needs_drive = request.operation != Operation::Identify;
                self.pending[slot] = Some(request);
                if needs_drive {
                    self.backlog.push_back(slot);
                } else {
                    self.immediate.push_back((now_ns, slot, STATUS_FINE));
                }
            }
            Parsed::Wrong(request, status) => {
                self.pending[slot] = Some(request);
                self.immediate.push_back((now_ns, slot, status));
            }
        }
        Ok(())
    }

    fn record(&mut self, now_ns: u64, request: &Pending) -> Option<usize> {
        if request.operation == Operation::Identify {
            return None;
        }
        let trace = self.trace.as_mut()?;
        trace.push(Served {
            arrive_ns: now_ns,
            finish_ns: None,
            operation: request.operation.letter(),
            sector: request.sector,
            sectors: request.sectors,
        });
        Some(trace.len() - 1)
    }

    /// Reads a request: a header of 16 bytes, data, a byte for the status.
    fn parse(&self, ring: usize, chain: &Chain, memory: &Memory) -> Result<Parsed, RingError> {
        let [header, data @ .., status] = &chain.buffers[..] else {
            return Err(RingError::Request(chain.head));
        };
        if header.is_writable || header.len < 16 || !status.is_writable || status.len < 1 {
            return Err(RingError::Request(chain.head));
        }
        let mut bytes = [0; 16];
        memory.read(header.address, &mut bytes)?;
        let code = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let operation = Operation::parse(code);
        let len: u64 = data.iter().map(|buffer| u64::from(buffer.len)).sum();
        let mut request = Pending {
            ring,
            head: chain.head,
            operation: operation.unwrap_or(Operation::Identify),
            sector: u64_at(&bytes, 8),
            sectors: len / SECTOR,
            data: data.to_vec(),
            status_address: status.address,
            served: None,
        };
        let Some(operation) = operation else {
            return Ok(Parsed::Wrong(request, STATUS_UNSUPPORTED));
        };
        if matches!(operation, Operation::Discard | Operation::WriteZeroes) {
            if !self.geometry.can_discard {
                return Ok(Parsed::Wrong(request, STATUS_UNSUPPORTED));
            }
            let Some((sector, sectors)) = read_range(memory, data)? else {
                return Ok(Parsed::Wrong(request, STATUS_ERROR));
            };
            (request.sector, request.sectors) = (sector, sectors);
        }
        Ok(if self.is_valid(&request, len) {
            Parsed::Fine(request)
        } else {
            Parsed::Wrong(request, STATUS_ERROR)
        })
    }

    fn is_valid(&self, request: &Pending, len: u64) -> bool {
        let is_inside = || {
            let end = request.sector.checked_add(request.sectors);
            request.sectors > 0 && end.is_some_and(|end| end <= self.geometry.blocks)
        };
        let is_direction = |writable: bool| {
            request
                .data
                .iter()
                .all(|buffer| buffer.is_writable == writable)
        };
        let is_whole = len.is_multiple_of(SECTOR) && request.sectors <= u64::from(u32::MAX);
        match request.operation {
            Operation::Flush => true,
            Operation::Identify => is_direction(true),
            Operation::Read => is_inside() && is_whole && is_direction(true),
            Operation::Write => is_inside() && is_whole && is_direction(false),
            Operation::Discard | Operation::WriteZeroes => {
                is_inside() && request.sectors <= u64::from(MOST_CLEARED)
            }
        }
    }

    /// Hands requests to the drive while it has room.
    fn submit(&mut self, now_ns: u64) {
        while let Some(&slot) = self.backlog.front()
            && self.drive.outstanding() < self.drive.queue_depth()
        {
            self.backlog.pop_front();
            let Some(request) = &self.pending[slot] else {
                continue;
            };
            let command = self.command(slot as u64, request);
            if self.drive.submit(now_ns, command).is_err() {
                self.immediate.push_back((now_ns, slot, STATUS_ERROR));
            }
        }
    }

    /// A discard costs a write of one block: the drive notes it. A write of zeros costs the write.
    fn command(&self, id: u64, request: &Pending) -> Command {
        let block = self.geometry.start_block + request.sector;
        let blocks = request.sectors as u32;
        match request.operation {
            Operation::Read => Command::read(id, block, blocks),
            Operation::Write | Operation::WriteZeroes => Command::write(id, block, blocks),
            Operation::Discard => Command::write(id, block, 1),
            Operation::Flush | Operation::Identify => Command::flush(id),
        }
    }

    fn finish(
        &mut self,
        finish_ns: u64,
        slot: usize,
        status: u8,
        rings: &mut Rings<'_>,
    ) -> Result<(), RingError> {
        let Some(request) = self.pending.get_mut(slot).and_then(Option::take) else {
            return Ok(());
        };
        self.free.push(slot);
        let memory = rings.memory();
        let written = match status {
            STATUS_FINE => self.transfer(&request, memory)?,
            _ => 0,
        };
        memory.write(request.status_address, &[status])?;
        if let (Some(trace), Some(place)) = (&mut self.trace, request.served) {
            trace[place].finish_ns = Some(finish_ns);
        }
        self.finished += 1;
        rings.push(request.ring, request.head, written + 1)
    }

    /// Moves the data; the bytes written to the kernel's memory.
    fn transfer(&mut self, request: &Pending, memory: &Memory) -> Result<u32, MemoryError> {
        let mut offset = request.sector * SECTOR;
        let mut written = 0;
        match request.operation {
            Operation::Flush => {}
            Operation::Discard | Operation::WriteZeroes => {
                self.contents.discard(offset, request.sectors * SECTOR);
            }
            Operation::Read | Operation::Write => {
                for buffer in &request.data {
                    let mut bytes = vec![0; buffer.len as usize];
                    if request.operation == Operation::Read {
                        self.contents.read(offset, &mut bytes);
                        memory.write(buffer.address, &bytes)?;
                        written += buffer.len;
                    } else {
                        memory.read(buffer.address, &mut bytes)?;
                        self.contents.write(offset, &bytes);
                    }
                    offset += u64::from(buffer.len);
                }
            }
            Operation::Identify => {
                let mut serial = self.serial.bytes().chain(std::iter::repeat(0));
                for buffer in &request.data {
                    let bytes: Vec<u8> = serial.by_ref().take(buffer.len as usize).collect();
                    memory.write(buffer.address, &bytes)?;
                    written += buffer.len;
                }
            }
        }
        Ok(written)
    }
}

enum Parsed {
    Fine(Pending),
    /// Not carried out, with this status.
    Wrong(Pending, u8),
}

/// The one range of a discard or write of zeros.
fn read_range(memory: &Memory, data: &[Buffer]) -> Result<Option<(u64, u64)>, MemoryError> {
    let [buffer] = data else {
        return Ok(None);
    };
    if buffer.len as usize != RANGE || buffer.is_writable {
        return Ok(None);
    }
    let mut bytes = [0; RANGE];
    memory.read(buffer.address, &mut bytes)?;
    let sectors = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    Ok(Some((u64_at(&bytes, 0), u64::from(sectors))))
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
    put(34, &geometry.rings.to_le_bytes());
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
        usize::from(self.geometry.rings)
    }

    fn features(&self) -> u64 {
        let geometry = &self.geometry;
        let offered = |is_offered: bool, bit: u64| if is_offered { bit } else { 0 };
        VERSION_1
            | INDIRECT
            | SEGMENTS
            | offered(geometry.has_write_cache, FLUSH)
            | offered(geometry.rings > 1, SEVERAL_RINGS)
            | offered(geometry.can_discard, DISCARD | WRITE_ZEROES)
    }

    fn config(&self) -> &[u8] {
        &self.config
    }

    fn kick(&mut self, ring: usize, now_ns: u64, rings: &mut Rings<'_>) -> Result<(), RingError> {
        while let Some(chain) = rings.pop(ring)? {
            self.take(now_ns, ring, &chain, rings.memory())?;
        }
        self.submit(now_ns);
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        let immediate = self.immediate.front().map(|(at, ..)| *at);
        immediate
            .into_iter()
            .chain(self.drive.next_event_ns())
            .min()
    }

    fn advance(&mut self, now_ns: u64, rings: &mut Rings<'_>) -> Result<(), RingError> {
        while let Some((at, slot, status)) = self.immediate.front().copied()
            && at <= now_ns
        {
            self.immediate.pop_front();
            self.finish(at, slot, status, rings)?;
        }
        let mut done: Vec<Completion> = Vec::new();
        self.drive
            .advance(now_ns, &mut |completion| done.push(completion));
        for completion in done {
            self.finish(
                completion.finish_ns,
                completion.id as usize,
                STATUS_FINE,
                rings,
            )?;
        }
        self.submit(now_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use spindle_drive::{Server, ServerParams, ServiceTime, Settings, drive};

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
            rings: 1,
        }
    }

    fn server(depth: u32) -> Drive {
        let params = ServerParams {
            capacity_blocks: 1 << 20,
            queue_depth: depth,
            service: ServiceTime::Constant(100_000),
            bytes_per_s: Some(200_000_000),
            flush_ns: Some(100_000),
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
            let (memory, _) = memory(BASE, 0x40_0000);
            let driver = Driver::new(memory, BASE, 64);
            Self {
                ring: [driver.ring()],
                driver,
                device: BlockDevice::new(drive, geometry(), "serial".to_owned(), true),
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
