//! The parts of a controller that its units share.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The processor of a controller, its link to the host, and the commands that its driver sends at a time.
///
/// One thread simulates all units of a machine, so their accesses need no order.
#[derive(Debug)]
pub(crate) struct Board {
    commands: u32,
    outstanding: AtomicU32,
    processor_free_ns: AtomicU64,
    link_free_ns: AtomicU64,
}

impl Board {
    /// One that takes so many commands at a time for all units.
    pub(super) fn new(commands: u32) -> Board {
        Board {
            commands,
            outstanding: AtomicU32::new(0),
            processor_free_ns: AtomicU64::new(0),
            link_free_ns: AtomicU64::new(0),
        }
    }

    /// True if it takes another command (`scsi_host_queue_ready`).
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.outstanding.load(Ordering::Relaxed) < self.commands
    }

    /// A unit got a command.
    pub(super) fn begin(&self) {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
    }

    /// A unit has finished one.
    pub(super) fn end(&self) {
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes the processor for a while, from `now_ns` on or when it is free; the end of that.
    pub(super) fn process(&self, now_ns: u64, takes_ns: u64) -> u64 {
        take(&self.processor_free_ns, now_ns, takes_ns)
    }

    /// The same of the link.
    pub(super) fn transfer(&self, now_ns: u64, takes_ns: u64) -> u64 {
        take(&self.link_free_ns, now_ns, takes_ns)
    }
}

fn take(free_ns: &AtomicU64, now_ns: u64, takes_ns: u64) -> u64 {
    let end_ns = free_ns.load(Ordering::Relaxed).max(now_ns) + takes_ns;
    free_ns.store(end_ns, Ordering::Relaxed);
    end_ns
}
