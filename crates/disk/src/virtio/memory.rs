//! The kernel's memory, mapped from the descriptor that it hands over.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};

const PAGE: u64 = 4096;

/// One region of a `VHOST_USER_SET_MEM_TABLE` message.
#[derive(Debug)]
pub struct Region {
    /// First guest address.
    pub address: u64,
    /// First address in the front end's own process, in which it gives the places of rings.
    pub user_address: u64,
    /// Bytes.
    pub len: u64,
    /// Offset of the first byte in the file.
    pub file_offset: u64,
    /// The file.
    pub file: OwnedFd,
}

/// An address that is not in the kernel's memory, or memory that cannot be mapped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MemoryError(String);

/// The kernel's memory.
#[derive(Debug, Clone)]
pub struct Memory {
    guest: GuestMemoryMmap<()>,
    /// First address in the front end's process, bytes, first guest address.
    places: Vec<(u64, u64, u64)>,
}

impl Memory {
    /// Maps regions. A region may begin inside a page.
    pub fn map(regions: Vec<Region>) -> Result<Self, MemoryError> {
        let mut ranges = Vec::with_capacity(regions.len());
        let places = regions
            .iter()
            .map(|region| (region.user_address, region.len, region.address))
            .collect();
        for region in regions {
            let before = region.file_offset % PAGE;
            let start = region.address.checked_sub(before);
            let len = region
                .len
                .checked_add(before)
                .and_then(|len| usize::try_from(len).ok());
            let (Some(start), Some(len)) = (start, len) else {
                return Err(MemoryError(format!(
                    "the region at {:#x} has no valid place",
                    region.address
                )));
            };
            let file = FileOffset::new(region.file.into(), region.file_offset - before);
            ranges.push((GuestAddress(start), len, Some(file)));
        }
        GuestMemoryMmap::from_ranges_with_files(ranges)
            .map(|guest| Self { guest, places })
            .map_err(|error| MemoryError(format!("the kernel's memory cannot be mapped: {error}")))
    }

    /// The guest address of an address in the front end's process.
    pub fn guest_address(&self, user_address: u64) -> Result<u64, MemoryError> {
        let inside = self.places.iter().find_map(|(first, len, guest)| {
            let offset = user_address.checked_sub(*first)?;
            (offset < *len).then(|| guest + offset)
        });
        inside.ok_or_else(|| outside(user_address, 1))
    }

    /// Reads bytes.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.guest
            .read_slice(bytes, GuestAddress(address))
            .map_err(|_| outside(address, bytes.len()))
    }

    /// Writes bytes.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.guest
            .write_slice(bytes, GuestAddress(address))
            .map_err(|_| outside(address, bytes.len()))
    }

    /// Reads a 16-bit number that the kernel writes, and everything the kernel wrote before it.
    pub fn load_u16(&self, address: u64) -> Result<u16, MemoryError> {
        self.guest
            .load(GuestAddress(address), Ordering::Acquire)
            .map_err(|_| outside(address, 2))
    }

    /// Writes a 16-bit number after everything that was written before.
    pub fn store_u16(&self, address: u64, value: u16) -> Result<(), MemoryError> {
        self.guest
            .store(value, GuestAddress(address), Ordering::Release)
            .map_err(|_| outside(address, 2))
    }
}

fn outside(address: u64, len: usize) -> MemoryError {
    MemoryError(format!(
        "{len} bytes at {address:#x} are not in the kernel's memory"
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    /// Memory of `len` bytes from `address` on, and its file.
    pub(crate) fn memory(address: u64, len: u64) -> (Memory, File) {
        let file = temporary(len);
        let region = Region {
            address,
            user_address: address,
            len,
            file_offset: 0,
            file: file.as_fd().try_clone_to_owned().unwrap(),
        };
        (Memory::map(vec![region]).unwrap(), file)
    }

    /// A file without a name.
    pub(crate) fn temporary(len: u64) -> File {
        use std::sync::atomic::AtomicU32;
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "spindle-lab-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(path).unwrap();
        file.set_len(len).unwrap();
        file
    }

    #[test]
    fn memory_is_shared_with_whoever_has_the_file() {
        use std::os::unix::fs::FileExt;
        let (memory, file) = memory(0x10_0000, 8192);
        memory.write(0x10_0ffe, &[1, 2, 3, 4]).unwrap();
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 0xffe).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4]);
        file.write_all_at(&[9, 0], 16).unwrap();
        assert_eq!(memory.load_u16(0x10_0010), Ok(9));
    }

    #[test]
    fn a_region_may_begin_inside_a_page() {
        use std::os::unix::fs::FileExt;
        let file = temporary(16384);
        file.write_all_at(b"here", 5000).unwrap();
        let region = Region {
            address: 0x6000_0000 + 904,
            user_address: 0x7000_0000,
            len: 8000,
            file_offset: 5000,
            file: file.into(),
        };
        let memory = Memory::map(vec![region]).unwrap();
        let mut bytes = [0; 4];
        memory.read(0x6000_0000 + 904, &mut bytes).unwrap();
        assert_eq!(&bytes, b"here");
        assert_eq!(memory.guest_address(0x7000_0001), Ok(0x6000_0000 + 905));
        assert!(memory.guest_address(0x7000_0000 + 8000).is_err());
    }

    #[test]
    fn an_address_outside_is_an_error() {
        let (memory, _file) = memory(0x1000, 4096);
        assert!(memory.read(0x1ffe, &mut [0; 4]).is_err());
        assert!(memory.load_u16(0).is_err());
    }
}
