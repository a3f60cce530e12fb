//! A piece of work for one drive, and its owner.

use spindle_workload::{Priority, PriorityClass};

use super::bitmap::Pages;
use crate::request::{BlockRequest, DEFAULT_LEVEL, NONE, Origin};

/// The owner of a bio, which is notified when the bio is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A request of the load, by slot.
    Load(u32),
    /// Rows of a parity array that are being written.
    Rows(u32),
    /// A stretch of a member that is being rebuilt.
    Rebuild(u32),
    /// md itself.
    Metadata(Metadata),
}

/// A block of md's own, which it writes between two flushes on each member (`md_super_write`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metadata {
    Superblock,
    /// A page of the write-intent bitmap.
    Bitmap(u32),
}

impl Metadata {
    const SUPERBLOCK: u32 = u32::MAX;
    /// The slot of the first page; those of the others are below it. `u32::MAX - 1` is that of flushes.
    const FIRST_PAGE: u32 = u32::MAX - 2;

    /// Stands for a slot in flushes.
    pub(crate) fn slot(self) -> u32 {
        match self {
            Metadata::Superblock => Self::SUPERBLOCK,
            Metadata::Bitmap(page) => Self::FIRST_PAGE - page,
        }
    }

    /// The block that the slot of a flush stands for; none: a request of the load.
    pub(crate) fn of_slot(slot: u32) -> Option<Metadata> {
        match Self::FIRST_PAGE.checked_sub(slot) {
            None if slot == Self::SUPERBLOCK => Some(Metadata::Superblock),
            Some(page) if page < Pages::MOST => Some(Metadata::Bitmap(page)),
            _ => None,
        }
    }
}

/// The issuer of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Issuer {
    pub(crate) thread: u32,
    pub(crate) priority: Priority,
}

impl Issuer {
    /// A thread of the kernel's.
    pub(crate) fn kernel(thread: u32) -> Issuer {
        Issuer {
            thread,
            priority: Priority {
                class: PriorityClass::BestEffort,
                level: DEFAULT_LEVEL,
            },
        }
    }
}

/// Direction of a bio, and true if someone waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) write: bool,
    /// A write that is a discard.
    pub(crate) discard: bool,
    /// Blocks of the stripe cache that are to be on the medium (`REQ_FUA`).
    pub(crate) fua: bool,
    /// It is never merged.
    pub(crate) no_merge: bool,
    pub(crate) sync: bool,
    pub(crate) origin: Origin,
}

impl Manner {
    pub(crate) const READ: Manner = Manner {
        write: false,
        discard: false,
        fua: false,
        no_merge: false,
        sync: true,
        origin: Origin::Direct,
    };
    /// A write that no one waits for.
    pub(crate) const WRITE_BACK: Manner = Manner {
        write: true,
        discard: false,
        fua: false,
        no_merge: false,
        sync: false,
        origin: Origin::Direct,
    };
}

/// A stretch of a drive to be read or written. Addresses are those of the drive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bio {
    pub(crate) owner: Owner,
    pub(crate) request: BlockRequest,
    /// The next bio of the same block request.
    pub(crate) next: u32,
}

impl Bio {
    pub(crate) fn new(owner: Owner, issuer: Issuer, lbn: u64, blocks: u32, manner: Manner) -> Bio {
        Bio {
            owner,
            request: BlockRequest {
                lbn,
                blocks,
                write: manner.write,
                discard: manner.discard,
                fua: manner.fua,
                no_merge: manner.no_merge,
                sync: manner.sync,
                origin: manner.origin,
                class: issuer.priority.class,
                level: issuer.priority.level,
                context: issuer.thread,
            },
            next: NONE,
        }
    }
}

/// Bios that touch, in the order of their addresses: they become one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// All of them as one request.
    pub(crate) request: BlockRequest,
    /// A bio for each row of blocks, the first one first: they come before no other request, as only the last would touch it.
    pub(crate) is_batch: bool,
}

impl Chain {
    /// A single bio.
    pub(crate) fn of(id: u32, request: BlockRequest) -> Chain {
        Chain {
            first: id,
            last: id,
            request,
            is_batch: false,
        }
    }
}
