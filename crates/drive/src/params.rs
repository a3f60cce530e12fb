//! The parameters of a mechanical drive. Times are nanoseconds, lengths blocks of 512 bytes.

use crate::geometry::GeometrySpec;
use crate::seek::SeekCurve;

/// A time that depends on whether the command before was a read or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AfterOp {
    /// After a read, nanoseconds.
    pub read_ns: u64,
    /// After a write, nanoseconds.
    pub write_ns: u64,
}

impl AfterOp {
    /// The same after either.
    #[must_use]
    pub const fn both(ns: u64) -> Self {
        Self {
            read_ns: ns,
            write_ns: ns,
        }
    }

    pub(crate) const fn after(&self, read: bool) -> u64 {
        if read { self.read_ns } else { self.write_ns }
    }
}

/// A disconnection before a write's data are taken over, observed on some SCSI drives after a non-sequential write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtraDisconnect {
    /// Command processing, in place of the write overhead.
    pub command_ns: u64,
    /// The first disconnection, beside mechanical work.
    pub disconnect_ns: u64,
    /// From there to the reconnection.
    pub between_ns: u64,
    /// The second disconnection, when the data are in the buffer.
    pub second_disconnect_ns: u64,
    /// From the end of command processing to the start of the seek.
    pub seek_delta_ns: u64,
}

/// Overheads of the electronics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overheads {
    /// Every command, before anything else.
    pub command_ns: u64,
    /// From the end of a command to the choice of the next, when the arm leaves. One that finds the drive idle has its
    /// overhead instead, and one that read-ahead serves is taken up at once.
    pub dispatch_ns: u64,
    /// A read served from the buffer.
    pub read_hit: AfterOp,
    /// A read that needs the medium.
    pub read_miss: AfterOp,
    /// A write acknowledged from the buffer.
    pub write_hit: AfterOp,
    /// A write acknowledged from the medium.
    pub write_miss: AfterOp,
    /// At the end of a read.
    pub read_complete_ns: u64,
    /// At the end of a write.
    pub write_complete_ns: u64,
    /// Before data move on the bus.
    pub data_preparation_ns: u64,
    /// The first reconnection to the bus.
    pub reselect_ns: u64,
    /// Reconnections after that, for writes with an extra disconnection.
    pub reselect_again_ns: u64,
    /// A read leaving the bus.
    pub read_disconnect: AfterOp,
    /// A write leaving the bus.
    pub write_disconnect_ns: u64,
    /// The extra disconnection, if the drive does it.
    pub extra_disconnect: Option<ExtraDisconnect>,
    /// A write that does not continue the one before reaches the medium no sooner after command processing.
    pub minimum_write_seek_ns: u64,
}

/// The host interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bus {
    /// Nanoseconds per block to the host, times 2^16.
    pub read_block_q16: u64,
    /// Nanoseconds per block from the host, times 2^16.
    pub write_block_q16: u64,
    /// A read keeps the bus from its first block to its last.
    pub hold_for_read: bool,
}

/// The extent of read-ahead after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadAhead {
    /// Not at all (level 0).
    #[default]
    None,
    /// To the end of the track (1).
    TrackEnd,
    /// To the end of the cylinder (2).
    CylinderEnd,
    /// Until the segment is full (3).
    SegmentFull,
    /// To the end of the track, and one track ahead of a sequential stream (4).
    TrackAhead,
}

/// When writes are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WriteBack {
    /// When they are on the medium (fast write level 0).
    #[default]
    Through,
    /// When they are in the buffer, one at a time; the next is taken when the medium has the one before, or at once if
    /// it continues it (fast write levels 1 and 2, which differ only in a queue).
    Single {
        /// A continuing write is taken at once even while other commands wait (level 2).
        interleaved: bool,
    },
    /// When they are in the cache, as long as there is room (drives with a write cache that is turned on).
    Cache {
        /// Writes that fit.
        commands: u32,
        /// Blocks that fit.
        blocks: u32,
    },
}

/// The buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Buffer {
    /// Segments.
    pub segments: u32,
    /// Blocks of a segment.
    pub segment_blocks: u32,
    /// Data stay usable after their command.
    pub caching: bool,
    /// Read-ahead.
    pub read_ahead: ReadAhead,
    /// Blocks read after a read before another command may interrupt.
    pub least_read_ahead: u32,
    /// Most blocks read after a read; 0 for the size of a segment.
    pub most_read_ahead: u32,
    /// Read-ahead leaves the requested data in the segment and stops when the rest is full.
    pub keep_requested: bool,
    /// Requested data are dropped once sent.
    pub drop_requested: bool,
    /// A read finds what it asks for in a segment if it begins within so many blocks of the segment's first; `u64::MAX`:
    /// anywhere.
    pub hits_within: u64,
    /// A read served wholly from the buffer starts read-ahead anew.
    pub read_ahead_on_hit: bool,
    /// Blocks that pass under the head while it waits for the first block asked for are kept.
    pub keep_passing: bool,
    /// A read may begin in the middle of its range, wherever the head lands.
    pub read_on_arrival: bool,
    /// A write may begin in the middle of its range, wherever the head lands.
    pub write_on_arrival: bool,
    /// When writes are acknowledged.
    pub write_back: WriteBack,
    /// A write that continues the one on its way to the medium joins it.
    pub combine_writes: bool,
    /// Reads find written data.
    pub hits_on_written: bool,
    /// A read that begins with the very block being read ahead counts as found.
    pub almost_hits: bool,
    /// With [`Buffer::almost_hits`], a read that begins at most this many blocks behind that block waits for read-ahead to
    /// come to it.
    pub forward_gap: u32,
    /// Reads found wholly in the buffer are served while another command uses the medium.
    pub hits_beside: bool,
    /// Data found are sent at once even if not all are there.
    pub send_partial_at_once: bool,
    /// Read-ahead may stop in the middle of a block.
    pub stop_in_block: bool,
    /// A write into blocks being read ahead ends the read-ahead for good.
    pub write_stops_read_ahead: bool,
    /// Share of a read (or segment) that must be there before it reconnects to the bus.
    pub read_watermark: f64,
    /// The share is of the request, not of the segment.
    pub watermark_of_request: bool,
    /// The arm leaves for the next command: `false` when this one has completed, `true` when its last block has been read
    /// or written.
    pub leave_early: bool,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            segments: 1,
            segment_blocks: 64,
            caching: true,
            read_ahead: ReadAhead::None,
            least_read_ahead: 0,
            most_read_ahead: 0,
            keep_requested: false,
            drop_requested: false,
            hits_within: u64::MAX,
            read_ahead_on_hit: false,
            keep_passing: false,
            read_on_arrival: false,
            write_on_arrival: false,
            write_back: WriteBack::Through,
            combine_writes: false,
            hits_on_written: false,
            almost_hits: false,
            forward_gap: 0,
            hits_beside: false,
            send_partial_at_once: true,
            stop_in_block: false,
            write_stops_read_ahead: true,
            read_watermark: 0.0,
            watermark_of_request: true,
            leave_early: false,
        }
    }
}

/// Which waiting command is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// The first that came.
    #[default]
    Fifo,
    /// The nearest cylinder.
    ShortestSeek,
    /// The one whose first block can be reached soonest: seek, head switch, settling and rotation.
    ShortestPositioning,
}

/// The command queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Commands that may be outstanding.
    pub depth: u32,
    /// Which is next.
    pub scheduling: Scheduling,
    /// A command that has waited longer goes first; 0 for no bound.
    pub age_bound_ns: u64,
    /// Time that the drive adds to its estimate of a seek before it decides if a block can be reached in this turn.
    pub settle_margin_ns: u64,
    /// The first of several commands that continue each other goes first, however soon another one's block comes by: they
    /// are served in one go.
    pub keeps_runs: bool,
    /// Commands of the queue that are taken up between two cached writes while writes of the host wait for room in the
    /// cache, or flushes for its writes.
    pub ahead_of_cached: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            depth: 1,
            scheduling: Scheduling::Fifo,
            age_bound_ns: 0,
            settle_margin_ns: 0,
            keeps_runs: false,
            ahead_of_cached: 1,
        }
    }
}

/// How the time to a block is made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessTime {
    /// Seek and the true wait for the block.
    #[default]
    TrueRotation,
    /// Seek and half a turn, always.
    MeanRotation,
    /// Always the same, nanoseconds.
    Constant(u64),
}

/// A mechanical drive.
#[derive(Debug, Clone, PartialEq)]
pub struct DriveParams {
    /// Name, for messages.
    pub name: String,
    /// The layout of blocks.
    pub geometry: GeometrySpec,
    /// Revolutions per minute.
    pub rpm: f64,
    /// The arm.
    pub seek: SeekCurve,
    /// Switching to another head, nanoseconds.
    pub head_switch_ns: u64,
    /// Switching to another head leaves a write the time to settle.
    pub head_switch_settles: bool,
    /// Added before a write whenever the arm or head has moved, nanoseconds; negative for a drive that is ready to write
    /// sooner than its seek curve says.
    pub write_settle_ns: i64,
    /// How access times are made up.
    pub access_time: AccessTime,
    /// The electronics.
    pub overheads: Overheads,
    /// The host interface.
    pub bus: Bus,
    /// The buffer.
    pub buffer: Buffer,
    /// The command queue.
    pub queue: Queue,
}
