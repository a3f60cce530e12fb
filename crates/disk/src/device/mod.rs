//! Models of virtio devices. A device does no I/O of its own: it takes requests from rings and returns them.

mod block;
mod console;
mod fault;
mod journal;

use std::fmt::Debug;

use crate::virtio::{Chain, Memory, Ring, RingError};

pub use block::BlockDevice;
pub use console::Console;
pub use fault::{Fault, FaultKind};

/// `VIRTIO_F_VERSION_1`.
const VERSION_1: u64 = 1 << 32;
/// `VIRTIO_F_INDIRECT_DESC`: requests of any number of segments take one entry of the ring.
const INDIRECT: u64 = 1 << 28;

/// A model of a virtio device in virtual time.
pub trait Device: Debug {
    /// Number of its kind (`include/uapi/linux/virtio_ids.h`).
    fn kind(&self) -> u32;

    /// Number of its rings.
    fn rings(&self) -> usize;

    /// Its feature bits.
    fn features(&self) -> u64;

    /// Its configuration space.
    fn config(&self) -> &[u8];

    /// The driver has put requests into `ring`.
    fn kick(&mut self, ring: usize, now_ns: u64, rings: &mut Rings<'_>) -> Result<(), RingError>;

    /// When the device next has something to do; `None` if it waits for a request.
    fn next_event_ns(&self) -> Option<u64>;

    /// Deals with all events up to `now_ns`.
    fn advance(&mut self, now_ns: u64, rings: &mut Rings<'_>) -> Result<(), RingError>;
}

/// The rings of a device, and the memory that they are in.
#[derive(Debug)]
pub struct Rings<'a> {
    memory: &'a Memory,
    rings: &'a mut [Ring],
    interrupts: u64,
}

impl<'a> Rings<'a> {
    /// Rings of one device; at most 64.
    #[must_use]
    pub fn new(memory: &'a Memory, rings: &'a mut [Ring]) -> Self {
        Self {
            memory,
            rings,
            interrupts: 0,
        }
    }

    /// The memory of the buffers.
    #[must_use]
    pub fn memory(&self) -> &'a Memory {
        self.memory
    }

    /// Takes the next request of a ring.
    pub fn pop(&mut self, ring: usize) -> Result<Option<Chain>, RingError> {
        self.rings[ring].pop(self.memory)
    }

    /// Returns a request of which `written` bytes were written.
    pub fn push(&mut self, ring: usize, head: u16, written: u32) -> Result<(), RingError> {
        if self.rings[ring].push(self.memory, head, written)? {
            self.interrupts |= 1 << ring;
        }
        Ok(())
    }

    /// Interrupts the driver for a ring.
    pub fn interrupt(&mut self, ring: usize) {
        self.interrupts |= 1 << ring;
    }

    /// The rings whose driver wants an interrupt for what was returned.
    #[must_use]
    pub fn interrupts(&self) -> Vec<u32> {
        (0..u64::BITS)
            .filter(|ring| self.interrupts & 1 << ring != 0)
            .collect()
    }
}
