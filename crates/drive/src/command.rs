//! Commands of a host to a drive, and the drive's answers.
//!
//! Times are integer nanoseconds of the simulation's clock, addresses and lengths are blocks of 512 bytes.

/// The operation of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Read blocks.
    Read = 0,
    /// Write blocks.
    Write = 1,
    /// Bring everything acknowledged so far to the medium (`FLUSH CACHE`, `SYNCHRONIZE CACHE`); address and length are
    /// ignored.
    Flush = 2,
    /// The host needs the blocks no more (`TRIM`, `UNMAP`, `DEALLOCATE`). Flash drives only.
    Discard = 3,
}

/// One command of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Command {
    /// Chosen by the host and handed back with the completion; need not be unique.
    pub id: u64,
    /// First block.
    pub lbn: u64,
    /// Number of blocks; not 0 except for a flush.
    pub blocks: u32,
    /// The operation.
    pub op: Op,
    /// The write must be on the medium before it completes (FUA); ignored for other operations.
    pub force_unit_access: bool,
}

impl Command {
    /// A read of `blocks` blocks from `lbn` on.
    #[must_use]
    pub const fn read(id: u64, lbn: u64, blocks: u32) -> Self {
        Self {
            id,
            lbn,
            blocks,
            op: Op::Read,
            force_unit_access: false,
        }
    }

    /// A write of `blocks` blocks from `lbn` on.
    #[must_use]
    pub const fn write(id: u64, lbn: u64, blocks: u32) -> Self {
        Self {
            id,
            lbn,
            blocks,
            op: Op::Write,
            force_unit_access: false,
        }
    }

    /// A discard of `blocks` blocks from `lbn` on.
    #[must_use]
    pub const fn discard(id: u64, lbn: u64, blocks: u32) -> Self {
        Self {
            id,
            lbn,
            blocks,
            op: Op::Discard,
            force_unit_access: false,
        }
    }

    /// A flush of the drive's write cache.
    #[must_use]
    pub const fn flush(id: u64) -> Self {
        Self {
            id,
            lbn: 0,
            blocks: 0,
            op: Op::Flush,
            force_unit_access: false,
        }
    }
}

/// The parts of a command's response time, in nanoseconds. The five parts add up to it exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Phases {
    /// Waiting for other commands: the mechanism (or the channels and dies of a flash drive) and the bus.
    pub queue_ns: u64,
    /// Processing by the drive's electronics, before, between and after the other phases.
    pub overhead_ns: u64,
    /// Arm movement, head switch and write settling before the first block.
    pub seek_ns: u64,
    /// Waiting for the first block to come round.
    pub rotation_ns: u64,
    /// From the first block under the head to the last block on the bus, with the track switches between; for a flash
    /// drive the page reads or programs and the transfer.
    pub transfer_ns: u64,
}

impl Phases {
    /// The sum of the parts: the response time.
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        self.queue_ns + self.overhead_ns + self.seek_ns + self.rotation_ns + self.transfer_ns
    }
}

/// The part of the drive that served a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ServedFrom {
    /// From or to the medium.
    Medium = 0,
    /// A read found wholly in the drive's buffer.
    Buffer = 1,
    /// A read found partly in the buffer, or running into the drive's read-ahead.
    PartlyBuffer = 2,
    /// A write acknowledged before it reached the medium.
    WriteCache = 3,
}

/// A command that the drive has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Completion {
    /// The command's id.
    pub id: u64,
    /// The operation.
    pub op: Op,
    /// The part of the drive that served it.
    pub served_from: ServedFrom,
    /// When it was submitted.
    pub submit_ns: u64,
    /// When it completed.
    pub finish_ns: u64,
    /// Parts of its response time.
    pub phases: Phases,
}
