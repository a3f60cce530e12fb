//! The figures of a simulated run, besides those of the load itself.

use serde::Serialize;
use spindle_drive::{Completion, Flash, ServedFrom};
use spindle_measure::RunFigures;

use crate::request::BlockRequest;

/// Everything about a simulated run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimFigures {
    /// Figures of the load: the same as of a real run.
    pub run: RunFigures,
    /// Counters of each drive over the whole run, ramp included, in slot order.
    pub drives: Vec<DriveFigures>,
    /// The rebuild, if the array has one.
    pub rebuild: Option<RebuildFigures>,
    /// Bytes that the page cache moved, if a stream is buffered.
    pub page_cache: Option<PageCacheFigures>,
    /// Bytes that the load could address.
    pub capacity: u64,
    /// Events of the simulation.
    pub events: u64,
}

/// Counters of a drive and its queue. Sums of times in ns.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DriveFigures {
    /// Name in the machine: `drive0`, `drive1` ...
    pub name: String,
    /// Its model.
    pub model: String,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Discards completed.
    pub discards: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Bios merged to the end of a waiting request.
    pub back_merges: u64,
    /// Bios merged to the front of a waiting request.
    pub front_merges: u64,
    /// Waiting requests that became one.
    pub request_merges: u64,
    /// Bios that had to wait for a request (`nr_requests`).
    pub request_waits: u64,
    /// Time that requests waited in the host.
    pub host_queue_ns: u64,
    /// Time that commands waited in the drive.
    pub drive_queue_ns: u64,
    /// Processing in the drive's electronics.
    pub overhead_ns: u64,
    /// Arm movement and settling.
    pub seek_ns: u64,
    /// Waiting for the block to come round.
    pub rotation_ns: u64,
    /// Data moving.
    pub transfer_ns: u64,
    /// Time with at least one command at the drive.
    pub busy_ns: u64,
    /// Work of a flash drive for what was written.
    pub flash: Option<FlashFigures>,
    /// Commands served from the medium.
    pub from_medium: u64,
    /// Reads found wholly in the drive's buffer.
    pub from_buffer: u64,
    /// Reads found in part.
    pub partly_buffer: u64,
    /// Writes acknowledged from the write cache.
    pub to_write_cache: u64,
}

impl DriveFigures {
    #[inline]
    pub(crate) fn phases(&mut self, completion: &Completion) {
        let phases = &completion.phases;
        self.drive_queue_ns += phases.queue_ns;
        self.overhead_ns += phases.overhead_ns;
        self.seek_ns += phases.seek_ns;
        self.rotation_ns += phases.rotation_ns;
        self.transfer_ns += phases.transfer_ns;
        match completion.served_from {
            ServedFrom::Medium => self.from_medium += 1,
            ServedFrom::Buffer => self.from_buffer += 1,
            ServedFrom::PartlyBuffer => self.partly_buffer += 1,
            ServedFrom::WriteCache => self.to_write_cache += 1,
        }
    }

    #[inline]
    pub(crate) fn served(&mut self, request: &BlockRequest, queue_ns: u64) {
        let bytes = u64::from(request.blocks) * 512;
        self.host_queue_ns += queue_ns;
        if request.discard {
            self.discards += 1;
            self.discard_bytes += bytes;
        } else if request.write {
            self.writes += 1;
            self.write_bytes += bytes;
        } else {
            self.reads += 1;
            self.read_bytes += bytes;
        }
    }

    /// Blocks moved.
    pub(crate) fn blocks(&self) -> u64 {
        (self.read_bytes + self.write_bytes) / 512
    }
}

/// Work of a flash drive over the whole run, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlashFigures {
    /// State at the beginning: `fresh`, `filled` or `used`.
    pub state: &'static str,
    /// Written by the host, in whole units of the mapping.
    pub written_bytes: u64,
    /// Moved by collection.
    pub moved_bytes: u64,
    /// Left empty in pages that were programmed before they were full.
    pub padded_bytes: u64,
    /// Written to the SLC cache.
    pub slc_bytes: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl FlashFigures {
    pub(crate) fn new(drive: &Flash) -> Self {
        let counts = drive.counts();
        Self {
            state: drive.state().name(),
            written_bytes: counts.written,
            moved_bytes: counts.moved,
            padded_bytes: counts.padded,
            slc_bytes: counts.to_slc,
            erases: counts.erases,
        }
    }
}

/// Bytes that the page cache read and wrote over the whole run, ramp included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PageCacheFigures {
    /// Bytes read into it.
    pub read_bytes: u64,
    /// Bytes written out of it.
    pub write_bytes: u64,
}

/// A rebuild or a check beside the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RebuildFigures {
    /// Slot of the member that is made; `None`: a check.
    pub member: Option<u32>,
    /// Bytes of the member to be made, or to be checked: of each member, of RAID10 of the array.
    pub bytes: u64,
    /// Bytes done so far.
    pub done_bytes: u64,
    /// Time at which it was done, ns after the start of the run.
    pub finished_ns: Option<u64>,
}
