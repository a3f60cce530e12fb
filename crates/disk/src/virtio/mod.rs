//! Shared state of virtio devices and the kernel: its memory, and rings of descriptors in it.

mod memory;
mod ring;

pub use memory::{Memory, MemoryError, Region};
pub use ring::{Buffer, Chain, Ring, RingError};

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use super::memory::tests::{memory, temporary};
    pub(crate) use super::ring::tests::{Driver, readable, writable};
}
