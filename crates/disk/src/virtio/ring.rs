//! Split virtqueues (virtio 1.2, section 2.7), with indirect descriptors.

use super::memory::{Memory, MemoryError};

const DESCRIPTOR: u64 = 16;
const NEXT: u16 = 1;
const WRITABLE: u16 = 2;
const INDIRECT: u16 = 4;
/// `VRING_AVAIL_F_NO_INTERRUPT`: the driver asks for no interrupt.
const NO_INTERRUPT: u16 = 1;
/// Largest ring that virtio allows.
const LARGEST: u32 = 32_768;
/// More buffers than any request of a driver has: a chain that is longer is a loop.
const LONGEST_CHAIN: usize = 4096;

/// A ring that the driver filled in wrongly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// An address outside of the driver's memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A size that virtio does not allow.
    #[error("a ring of {0} entries is not a power of two up to 32768")]
    Size(u32),
    /// The driver uses a ring that it has not set up.
    #[error("a ring is used before it has a size")]
    NoSize,
    /// A descriptor that is not in its table.
    #[error("descriptor {index} is outside of a table of {len}")]
    Descriptor {
        /// Its number.
        index: u16,
        /// Entries of the table.
        len: u32,
    },
    /// A chain that leads back to itself.
    #[error("a chain has more than {LONGEST_CHAIN} buffers")]
    Loop,
    /// A request that is not as its device wants it.
    #[error("request {0} lacks a header to read or a status to write")]
    Request(u16),
    /// A table inside a table.
    #[error("an indirect table contains another one")]
    Nested,
}

/// A piece of the driver's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub len: u32,
    /// True if the device writes it, false if the device reads it.
    pub is_writable: bool,
}

/// The buffers of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Number of its first descriptor: its name when it is returned.
    pub head: u16,
    /// Its buffers, in order.
    pub buffers: Vec<Buffer>,
}

/// A ring as the device sees it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ring {
    size: u16,
    descriptors: u64,
    available: u64,
    used: u64,
    next_available: u16,
    next_used: u16,
    /// Index of the available ring that is not to be taken yet.
    limit: Option<u16>,
}

impl Ring {
    /// Sets the number of entries.
    pub fn set_size(&mut self, size: u32) -> Result<(), RingError> {
        if !size.is_power_of_two() || size > LARGEST {
            return Err(RingError::Size(size));
        }
        self.size = size as u16;
        Ok(())
    }

    /// Sets the addresses of the three parts.
    pub fn set_addresses(&mut self, descriptors: u64, available: u64, used: u64) {
        (self.descriptors, self.available, self.used) = (descriptors, available, used);
    }

    /// Begins, or goes on, at an index of the available ring.
    pub fn set_base(&mut self, base: u16) {
        (self.next_available, self.next_used) = (base, base);
    }

    /// The index of the available ring that comes next.
    #[must_use]
    pub fn base(&self) -> u16 {
        self.next_available
    }

    /// Takes no requests from this index of the available ring on; all if `None`.
    pub fn set_limit(&mut self, limit: Option<u16>) {
        self.limit = limit;
    }

    /// Takes the next request of the driver, if there is one.
    pub fn pop(&mut self, memory: &Memory) -> Result<Option<Chain>, RingError> {
        if self.size == 0 {
            return Err(RingError::NoSize);
        }
        let filled = memory.load_u16(self.available + 2)?;
        if self.limit.unwrap_or(filled) == self.next_available {
            return Ok(None);
        }
        let slot = u64::from(self.next_available % self.size);
        let head = memory.load_u16(self.available + 4 + 2 * slot)?;
        self.next_available = self.next_available.wrapping_add(1);
        let buffers = self.walk(memory, head)?;
        Ok(Some(Chain { head, buffers }))
    }

    fn walk(&self, memory: &Memory, head: u16) -> Result<Vec<Buffer>, RingError> {
        let mut buffers = Vec::new();
        let mut table = self.descriptors;
        let mut entries = u32::from(self.size);
        let mut index = head;
        let mut is_inside = false;
        loop {
            if u32::from(index) >= entries {
                return Err(RingError::Descriptor {
                    index,
                    len: entries,
                });
            }
            let at = table.wrapping_add(DESCRIPTOR * u64::from(index));
            let found = Descriptor::read(memory, at)?;
            if found.flags & INDIRECT != 0 {
                if is_inside {
                    return Err(RingError::Nested);
                }
                (table, entries, index) = (found.address, found.len / DESCRIPTOR as u32, 0);
                is_inside = true;
                continue;
            }
            if buffers.len() == LONGEST_CHAIN {
                return Err(RingError::Loop);
            }
            buffers.push(Buffer {
                address: found.address,
                len: found.len,
                is_writable: found.flags & WRITABLE != 0,
            });
            if found.flags & NEXT == 0 {
                return Ok(buffers);
            }
            index = found.next;
        }
    }

    /// Returns a request after `written` bytes were written to it; true if the driver wants an interrupt.
    pub fn push(&mut self, memory: &Memory, head: u16, written: u32) -> Result<bool, RingError> {
        let slot = u64::from(self.next_used % self.size.max(1));
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        entry[4..].copy_from_slice(&written.to_le_bytes());
        memory.write(self.used + 4 + 8 * slot, &entry)?;
        self.next_used = self.next_used.wrapping_add(1);
        memory.store_u16(self.used + 2, self.next_used)?;
        Ok(memory.load_u16(self.available)? & NO_INTERRUPT == 0)
    }
}

struct Descriptor {
    address: u64,
    len: u32,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn read(memory: &Memory, at: u64) -> Result<Self, MemoryError> {
        let mut bytes = [0; DESCRIPTOR as usize];
        memory.read(at, &mut bytes)?;
        let mut address = [0; 8];
        address.copy_from_slice(&bytes[..8]);
        Ok(Self {
            address: u64::from_le_bytes(address),
            len: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            flags: u16::from_le_bytes([bytes[12], bytes[13]]),
            next: u16::from_le_bytes([bytes[14], bytes[15]]),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::memory::tests::memory;
    use super::*;

    /// The driver's side of a ring: descriptors at the start of a page, available and used rings on the next two.
    pub(crate) struct Driver {
        pub(crate) memory: Memory,
        pub(crate) base: u64,
        pub(crate) size: u16,
        made: u16,
        next: u16,
        taken: u16,
    }

    impl Driver {
        pub(crate) fn new(memory: Memory, base: u64, size: u16) -> Self {
            Self {
                memory,
                base,
                size,
                made: 0,
                next: 0,
                taken: 0,
            }
        }

        pub(crate) fn ring(&self) -> Ring {
            let mut ring = Ring::default();
            ring.set_size(u32::from(self.size)).unwrap();
            ring.set_addresses(self.base, self.base + 0x1000, self.base + 0x2000);
            ring
        }

        fn describe(
            &self,
            table: u64,
            index: u16,
            (address, len, flags, next): (u64, u32, u16, u16),
        ) {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&address.to_le_bytes());
            bytes[8..12].copy_from_slice(&len.to_le_bytes());
            bytes[12..14].copy_from_slice(&flags.to_le_bytes());
            bytes[14..].copy_from_slice(&next.to_le_bytes());
            self.memory
                .write(table + 16 * u64::from(index), &bytes)
                .unwrap();
        }

        fn write_chain(&self, table: u64, from: u16, buffers: &[Buffer]) {
            for (place, buffer) in buffers.iter().enumerate() {
                let index = from + place as u16;
                let more = if place + 1 < buffers.len() { NEXT } else { 0 };
                let writable = if buffer.is_writable { WRITABLE } else { 0 };
                self.describe(
                    table,
                    index,
                    (buffer.address, buffer.len, more | writable, index + 1),
                );
            }
        }

        fn offer(&mut self, head: u16) {
            let slot = u64::from(self.made % self.size);
            self.memory
                .store_u16(self.base + 0x1004 + 2 * slot, head)
                .unwrap();
            self.made = self.made.wrapping_add(1);
            self.memory
                .store_u16(self.base + 0x1002, self.made)
                .unwrap();
        }

        /// Offers a request; its head.
        pub(crate) fn add(&mut self, buffers: &[Buffer]) -> u16 {
            let head = self.next % self.size;
            assert!(usize::from(head) + buffers.len() <= usize::from(self.size));
            self.write_chain(self.base, head, buffers);
            self.next += buffers.len() as u16;
            self.offer(head);
            head
        }

        fn add_indirect(&mut self, table: u64, buffers: &[Buffer]) {
            self.write_chain(table, 0, buffers);
            self.describe(
                self.base,
                0,
                (table, 16 * buffers.len() as u32, INDIRECT, 0),
            );
            self.offer(0);
        }

        /// Requests returned since the last call: (head, bytes written).
        pub(crate) fn returned(&mut self) -> Vec<(u32, u32)> {
            let mut found = Vec::new();
            while self.memory.load_u16(self.base + 0x2002).unwrap() != self.taken {
                let mut entry = [0; 8];
                let slot = u64::from(self.taken % self.size);
                self.memory
                    .read(self.base + 0x2004 + 8 * slot, &mut entry)
                    .unwrap();
                found.push((
                    u32::from_le_bytes(entry[..4].try_into().unwrap()),
                    u32::from_le_bytes(entry[4..].try_into().unwrap()),
                ));
                self.taken = self.taken.wrapping_add(1);
            }
            found
        }
    }

    pub(crate) fn readable(address: u64, len: u32) -> Buffer {
        Buffer {
            address,
            len,
            is_writable: false,
        }
    }

    pub(crate) fn writable(address: u64, len: u32) -> Buffer {
        Buffer {
            address,
            len,
            is_writable: true,
        }
    }

    fn driver(size: u16) -> Driver {
        let (memory, _) = memory(0x4000, 0x10000);
        Driver::new(memory, 0x4000, size)
    }

    #[test]
    fn requests_come_in_the_order_in_which_they_were_offered_and_go_round_the_ring() {
        let mut driver = driver(4);
        let mut ring = driver.ring();
        let memory = driver.memory.clone();
        for round in 0..10_u32 {
            let head = driver.add(&[readable(0x8000 + u64::from(round), 16)]);
            let chain = ring.pop(&memory).unwrap().unwrap();
            assert_eq!(chain.head, head);
            assert_eq!(chain.buffers, [readable(0x8000 + u64::from(round), 16)]);
            assert_eq!(ring.pop(&memory), Ok(None));
            assert_eq!(ring.push(&memory, chain.head, round), Ok(true));
            assert_eq!(driver.returned(), [(u32::from(head), round)]);
        }
    }

    #[test]
    fn requests_after_the_limit_wait_for_the_next_kick() {
        let mut driver = driver(4);
        let mut ring = driver.ring();
        let memory = driver.memory.clone();
        driver.add(&[readable(0x8000, 16)]);
        driver.add(&[readable(0x8000, 16)]);
        for limit in [Some(1), Some(2)] {
            ring.set_limit(limit);
            assert!(ring.pop(&memory).unwrap().is_some());
            assert_eq!(ring.pop(&memory), Ok(None));
        }
        driver.add(&[readable(0x8000, 16)]);
        ring.set_limit(None);
        assert!(ring.pop(&memory).unwrap().is_some());
    }

    #[test]
    fn an_indirect_table_is_followed() {
        let mut driver = driver(2);
        let buffers: Vec<Buffer> = (0..40).map(|place| writable(0x9000 + place, 1)).collect();
        driver.add_indirect(0x7000, &buffers);
        let chain = driver.ring().pop(&driver.memory).unwrap().unwrap();
        assert_eq!(chain.buffers, buffers);
    }

    #[test]
    fn a_driver_that_wants_no_interrupt_gets_none() {
        let mut driver = driver(2);
        driver
            .memory
            .store_u16(driver.base + 0x1000, NO_INTERRUPT)
            .unwrap();
        driver.add(&[readable(0x8000, 1)]);
        let mut ring = driver.ring();
        let chain = ring.pop(&driver.memory).unwrap().unwrap();
        assert_eq!(ring.push(&driver.memory, chain.head, 0), Ok(false));
    }

    #[test]
    fn a_chain_that_leads_back_to_itself_is_an_error() {
        let mut driver = driver(2);
        driver.describe(driver.base, 0, (0x8000, 1, NEXT, 1));
        driver.describe(driver.base, 1, (0x8000, 1, NEXT, 0));
        driver.offer(0);
        assert_eq!(driver.ring().pop(&driver.memory), Err(RingError::Loop));
    }

    #[test]
    fn a_table_in_a_table_and_a_descriptor_outside_are_errors() {
        let mut driver = driver(2);
        driver.describe(0x7000, 0, (0x7000, 16, INDIRECT, 0));
        driver.describe(driver.base, 0, (0x7000, 16, INDIRECT, 0));
        driver.offer(0);
        let mut ring = driver.ring();
        assert_eq!(ring.pop(&driver.memory), Err(RingError::Nested));
        driver.describe(driver.base, 0, (0x8000, 1, NEXT, 9));
        driver.offer(0);
        let outside = RingError::Descriptor { index: 9, len: 2 };
        assert_eq!(ring.pop(&driver.memory), Err(outside));
    }

    #[test]
    fn a_ring_without_a_valid_size_is_an_error() {
        let (memory, _) = memory(0x4000, 0x1000);
        let mut ring = Ring::default();
        assert_eq!(ring.pop(&memory), Err(RingError::NoSize));
        assert_eq!(ring.set_size(3), Err(RingError::Size(3)));
        assert_eq!(ring.set_size(0), Err(RingError::Size(0)));
        assert!(ring.set_size(256).is_ok());
    }
}
