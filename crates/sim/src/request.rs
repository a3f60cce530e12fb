//! A request of the block layer, as elevators see it.

use spindle_workload::{Priority, PriorityClass};

/// Names a request of one queue; ids are reused.
pub type Id = u32;

/// No request.
pub(crate) const NONE: Id = u32::MAX;

/// Where a write comes from, as far as the throttling of write-back asks (`engine/throttle.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Past the page cache (`REQ_IDLE`), or md's own: never throttled. Reads have this too.
    Direct,
    /// Past the page cache, passed on by md, which drops `REQ_IDLE`.
    Passed,
    /// The page cache, or md on its behalf, which drops the flags.
    Cache,
    /// The kernel's flusher (`REQ_BACKGROUND`).
    Flusher,
}

/// One request of a device's queue. Addresses and lengths are blocks of 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRequest {
    /// First block.
    pub lbn: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Data go to the device.
    pub write: bool,
    /// A write without data: the host needs the blocks no more. It is never merged.
    pub discard: bool,
    /// A write that is to be on the medium (`REQ_FUA`), for a drive that does not know that: a flush follows it, and it is never
    /// merged (`blk_insert_flush`).
    pub fua: bool,
    /// It is never merged (`REQ_NOMERGE`).
    pub no_merge: bool,
    /// Someone waits for it: reads, and writes past the page cache (`rq_is_sync`).
    pub sync: bool,
    /// Where a write comes from.
    pub origin: Origin,
    /// I/O priority class.
    pub class: PriorityClass,
    /// Level within the class, 0 (highest) to 7.
    pub level: u8,
    /// The thread it comes from (`io_context`); threads count from 0.
    pub context: u32,
}

impl BlockRequest {
    /// A read of the default priority (best effort, 4), as threads without `ioprio_set` issue it.
    #[must_use]
    pub const fn read(lbn: u64, blocks: u32, context: u32) -> BlockRequest {
        BlockRequest {
            lbn,
            blocks,
            write: false,
            discard: false,
            fua: false,
            no_merge: false,
            sync: true,
            origin: Origin::Direct,
            class: PriorityClass::BestEffort,
            level: DEFAULT_LEVEL,
            context,
        }
    }

    /// A write that someone waits for, of the default priority.
    #[must_use]
    pub const fn write(lbn: u64, blocks: u32, context: u32) -> BlockRequest {
        BlockRequest {
            write: true,
            ..BlockRequest::read(lbn, blocks, context)
        }
    }

    /// The same with another priority.
    #[must_use]
    pub const fn with_priority(self, priority: Priority) -> BlockRequest {
        BlockRequest {
            class: priority.class,
            level: priority.level,
            ..self
        }
    }

    /// The same, written back by the kernel: no one waits for it.
    #[must_use]
    pub const fn asynchronous(self) -> BlockRequest {
        BlockRequest {
            sync: false,
            ..self
        }
    }

    /// It is never merged.
    #[must_use]
    pub const fn stays_alone(&self) -> bool {
        self.discard || self.fua || self.no_merge
    }

    /// First block after it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.lbn + self.blocks as u64
    }
}

/// Level of threads that set none (`IOPRIO_NORM`).
pub(crate) const DEFAULT_LEVEL: u8 = 4;
