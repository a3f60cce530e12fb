//! A modelled drive with contents: the model decides when a request is done, and then its data move.
//!
//! A request that the drive has no room for waits in order of arrival, as in a host adapter.

use std::collections::VecDeque;

use serde::Serialize;
use spindle_drive::{Command, Device as _, Drive, DriveError};
use spindle_sim::DriveSetup;

use crate::contents::Contents;

/// Bytes of a sector.
pub const SECTOR: u64 = 512;

/// Most sectors of a request, 4 GiB; of a discard there may be more.
const MOST_SECTORS: u64 = 1 << 23;

/// A drive as its host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// First block of the drive in use, and number of blocks in use; 512 bytes each.
    pub start_block: u64,
    /// See above.
    pub blocks: u64,
    /// True if the drive may acknowledge writes early, so that the host sends flushes.
    pub has_write_cache: bool,
    /// True if the drive takes discards and writes of zeros.
    pub can_discard: bool,
    /// True on ATA, where a flush is not queued: it waits until the drive is idle, and everything else until it is done
    /// (`ata_std_qc_defer`).
    pub flushes_alone: bool,
}

impl Geometry {
    /// The geometry of a drive of a machine, which takes `queue_depth` requests at a time.
    #[must_use]
    pub fn new(setup: &DriveSetup, queue_depth: u32) -> Self {
        Self {
            start_block: setup.start / SECTOR,
            blocks: setup.len / SECTOR,
            has_write_cache: setup.has_write_cache(),
            can_discard: setup.is_flash(),
            flushes_alone: setup.is_ata(queue_depth),
        }
    }

    /// The drive's command for a request of `sectors` sectors from `first` on. A discard at a drive that has none costs a
    /// write of one block. A write of zeros costs the write.
    #[must_use]
    pub fn command(&self, id: u64, operation: Operation, first: u64, sectors: u64) -> Command {
        let block = self.start_block + first;
        let blocks = sectors.min(u64::from(u32::MAX)) as u32;
        match operation {
            Operation::Read => Command::read(id, block, blocks),
            Operation::Write | Operation::WriteZeroes => Command::write(id, block, blocks),
            Operation::Discard if self.can_discard => Command::discard(id, block, blocks),
            Operation::Discard => Command::write(id, block, 1),
            Operation::Flush => Command::flush(id),
        }
    }
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Bring what was written to the medium.
    Flush,
    /// Bytes are no longer needed, and read as zeros.
    Discard,
    /// Make bytes zero.
    WriteZeroes,
}

impl Operation {
    const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Discard,
        Self::WriteZeroes,
    ];

    /// The operation of a trace's letter.
    #[must_use]
    pub fn of_letter(letter: char) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.letter() == letter)
    }

    /// R, W, F (flush), D (discard) or Z (write of zeros).
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::Write => 'W',
            Self::Flush => 'F',
            Self::Discard => 'D',
            Self::WriteZeroes => 'Z',
        }
    }
}

/// A request of the host. A range that begins or ends inside a sector costs as much as the sectors that it touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Its operation.
    pub operation: Operation,
    /// First byte; 0 for a flush.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub len: u64,
    /// The write must be on the medium before it is done.
    pub force_unit_access: bool,
}

impl Request {
    fn first_sector(&self) -> u64 {
        self.offset / SECTOR
    }

    /// Sectors that it touches.
    fn sectors(&self) -> u64 {
        (self.offset + self.len).div_ceil(SECTOR) - self.first_sector()
    }
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

/// A request that the drive has done. Its data are the caller's to move.
#[derive(Debug)]
pub struct Done<T> {
    /// The caller's tag.
    pub tag: T,
    /// The request.
    pub request: Request,
    /// When it was done.
    pub finish_ns: u64,
    /// False if the drive refused it.
    pub is_fine: bool,
}

#[derive(Debug)]
struct Pending<T> {
    tag: T,
    request: Request,
    served: Option<usize>,
}

/// A drive, its contents, and the requests under way, each with a tag of the caller.
#[derive(Debug)]
pub struct Disk<T> {
    drive: Drive,
    geometry: Geometry,
    /// The contents.
    pub contents: Contents,
    pending: Vec<Option<Pending<T>>>,
    free: Vec<usize>,
    /// Requests that the drive has no room for.
    backlog: VecDeque<usize>,
    /// The last request that the drive took is a flush.
    has_flushed: bool,
    /// Requests that the drive refused, and when.
    refused: VecDeque<(u64, usize)>,
    trace: Option<Vec<Served>>,
    counts: Counts,
}

/// Requests that a disk has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Reads done.
    pub reads: u64,
    /// Writes done.
    pub writes: u64,
    /// Flushes done.
    pub flushes: u64,
    /// Discards done.
    pub discards: u64,
    /// Writes of zeros done.
    pub write_zeroes: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes, without those of zeros.
    pub written_bytes: u64,
}

impl Counts {
    /// Requests done.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes + self.discards + self.write_zeroes
    }

    fn add(&mut self, request: &Request) {
        match request.operation {
            Operation::Read => {
                self.reads += 1;
                self.read_bytes += request.len;
            }
            Operation::Write => {
                self.writes += 1;
                self.written_bytes += request.len;
            }
            Operation::Flush => self.flushes += 1,
            Operation::Discard => self.discards += 1,
            Operation::WriteZeroes => self.write_zeroes += 1,
        }
    }
}

impl<T> Disk<T> {
    /// An idle disk. With `is_traced`, each request is recorded.
    #[must_use]
    pub fn new(drive: Drive, geometry: Geometry, contents: Contents, is_traced: bool) -> Self {
        Self {
            drive,
            geometry,
            contents,
            pending: Vec::new(),
            free: Vec::new(),
            backlog: VecDeque::new(),
            has_flushed: false,
            refused: VecDeque::new(),
            trace: is_traced.then(Vec::new),
            counts: Counts::default(),
        }
    }

    /// The disk of a machine's drive.
    pub fn of(setup: &DriveSetup, contents: Contents, is_traced: bool) -> Result<Self, DriveError> {
        let drive = setup.build()?;
        let geometry = Geometry::new(setup, drive.queue_depth());
        Ok(Self::new(drive, geometry, contents, is_traced))
    }

    /// The geometry.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Bytes that the host can address.
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
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The requests in the order of their arrival; empty if they are not traced.
    #[must_use]
    pub fn trace(&self) -> &[Served] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// True if the range of a request is on the disk, and not too long.
    #[must_use]
    pub fn is_inside(&self, request: &Request) -> bool {
        let end = request.offset.checked_add(request.len);
        request.operation == Operation::Flush
            || request.len > 0
                && end.is_some_and(|end| end <= self.capacity_bytes())
                && (request.operation == Operation::Discard || request.sectors() <= MOST_SECTORS)
    }

    /// Takes a request at `now_ns`; its range must be [inside](Disk::is_inside).
    pub fn take(&mut self, now_ns: u64, request: Request, tag: T) {
        let served = self.trace.as_mut().map(|trace| {
            trace.push(Served {
                arrive_ns: now_ns,
                finish_ns: None,
                operation: request.operation.letter(),
                sector: request.first_sector(),
                sectors: request.sectors(),
            });
            trace.len() - 1
        });
        let slot = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        self.pending[slot] = Some(Pending {
            tag,
            request,
            served,
        });
        self.backlog.push_back(slot);
        self.submit(now_ns);
    }

    /// Hands requests to the drive while it has room.
    fn submit(&mut self, now_ns: u64) {
        while let Some(&slot) = self.backlog.front() {
            let Some(pending) = &self.pending[slot] else {
                self.backlog.pop_front();
                continue;
            };
            let is_flush = pending.request.operation == Operation::Flush;
            if !self.has_room(is_flush) {
                return;
            }
            self.backlog.pop_front();
            self.has_flushed = is_flush;
            let command = self.command(slot as u64, &pending.request);
            if self.drive.submit(now_ns, command).is_err() {
                self.refused.push_back((now_ns, slot));
            }
        }
    }

    fn has_room(&self, is_flush: bool) -> bool {
        if self.geometry.flushes_alone && (is_flush || self.has_flushed) {
            return self.drive.outstanding() == 0;
        }
        self.drive.outstanding() < self.drive.queue_depth()
    }

    fn command(&self, id: u64, request: &Request) -> Command {
        let (first, sectors) = (request.first_sector(), request.sectors());
        let command = self.geometry.command(id, request.operation, first, sectors);
        Command {
            force_unit_access: request.force_unit_access,
            ..command
        }
    }

    /// When the drive next has something to do; `None` if it waits for a request.
    #[must_use]
    pub fn next_event_ns(&self) -> Option<u64> {
        let refused = self.refused.front().map(|(at, _)| *at);
        refused.into_iter().chain(self.drive.next_event_ns()).min()
    }

    /// True if no request is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.pending.len()
    }

    /// Deals with the events up to `now_ns`; adds the requests that are done, in order.
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Done<T>>) {
        while let Some((at, slot)) = self.refused.front().copied()
            && at <= now_ns
        {
            self.refused.pop_front();
            done.extend(self.finish(at, slot, false));
        }
        let mut completed = Vec::new();
        self.drive
            .advance(now_ns, &mut |completion| completed.push(completion));
        for completion in completed {
            done.extend(self.finish(completion.finish_ns, completion.id as usize, true));
        }
        self.submit(now_ns);
    }

    /// No request is done sooner than so long after it came, nanoseconds.
    #[must_use]
    pub fn least_latency_ns(&self) -> u64 {
        self.drive.least_latency_ns()
    }

    /// Gives up all requests: they have failed at `now_ns`, and the drive does nothing more.
    pub fn abandon(&mut self, now_ns: u64) -> Vec<Done<T>> {
        self.backlog.clear();
        self.refused.clear();
        (0..self.pending.len())
            .filter_map(|slot| self.finish(now_ns, slot, false))
            .collect()
    }

    fn finish(&mut self, finish_ns: u64, slot: usize, is_fine: bool) -> Option<Done<T>> {
        let Pending {
            tag,
            request,
            served,
        } = self.pending.get_mut(slot)?.take()?;
        self.free.push(slot);
        if let (Some(trace), Some(place)) = (&mut self.trace, served) {
            trace[place].finish_ns = Some(finish_ns);
        }
        self.counts.add(&request);
        Some(Done {
            tag,
            request,
            finish_ns,
            is_fine,
        })
    }
}
