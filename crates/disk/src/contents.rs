//! The contents of a drive, in memory or in a sparse file: blocks that were never written take no room and read as zeros.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

const PAGE: u64 = 64 * 1024;

/// Sparse contents.
#[derive(Debug)]
pub enum Contents {
    /// In memory.
    Memory(Pages),
    /// In a file as long as the disk.
    File(File),
}

impl Default for Contents {
    fn default() -> Self {
        Self::Memory(Pages::default())
    }
}

impl Contents {
    /// Reads bytes from `offset` on.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Memory(pages) => pages.read(offset, bytes),
            Self::File(file) => return file.read_exact_at(bytes, offset),
        }
        Ok(())
    }

    /// Writes bytes from `offset` on.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(pages) => pages.write(offset, bytes),
            Self::File(file) => return file.write_all_at(bytes, offset),
        }
        Ok(())
    }

    /// Makes bytes read as zeros, and gives back their room.
    pub fn discard(&mut self, offset: u64, len: u64) -> io::Result<()> {
        match self {
            Self::Memory(pages) => pages.discard(offset, len),
            Self::File(file) => return punch(file, offset, len),
        }
        Ok(())
    }

    /// Bytes of a page in memory: what was never written takes none.
    pub const PAGE: u64 = PAGE;

    /// Offsets of the pages in memory, in order.
    #[must_use]
    pub fn pages(&self) -> Vec<u64> {
        let Self::Memory(pages) = self else {
            return Vec::new();
        };
        let mut found: Vec<u64> = pages.pages.keys().map(|page| page * PAGE).collect();
        found.sort_unstable();
        found
    }

    /// Bytes of memory in use.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Memory(pages) => pages.pages.len() as u64 * PAGE,
            Self::File(_) => 0,
        }
    }
}

/// Makes a hole; writes zeros on a file system without holes.
fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(file, flags, offset, len) {
        Err(Errno::OPNOTSUPP) => {
            let zeros = vec![0; PAGE.min(len) as usize];
            for (page, at, range) in pieces(offset, len as usize) {
                file.write_all_at(&zeros[..range.len()], page * PAGE + at as u64)?;
            }
            Ok(())
        }
        done => Ok(done?),
    }
}

/// Contents in memory.
#[derive(Debug, Default)]
pub struct Pages {
    pages: HashMap<u64, Box<[u8]>>,
}

impl Pages {
    fn read(&self, offset: u64, bytes: &mut [u8]) {
        for (page, at, range) in pieces(offset, bytes.len()) {
            let part = &mut bytes[range];
            match self.pages.get(&page) {
                Some(found) => part.copy_from_slice(&found[at..at + part.len()]),
                None => part.fill(0),
            }
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (page, at, range) in pieces(offset, bytes.len()) {
            let part = &bytes[range];
            let found = self
                .pages
                .entry(page)
                .or_insert_with(|| vec![0; PAGE as usize].into());
            found[at..at + part.len()].copy_from_slice(part);
        }
    }

    /// Gives whole pages back.
    fn discard(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let (first, last) = (offset.div_ceil(PAGE), end / PAGE);
        if first > last {
            self.clear(offset, len);
            return;
        }
        self.pages.retain(|page, _| !(first..last).contains(page));
        self.clear(offset, first * PAGE - offset);
        self.clear(last * PAGE, end - last * PAGE);
    }

    /// Clears a range within one page.
    fn clear(&mut self, offset: u64, len: u64) {
        let at = (offset % PAGE) as usize;
        if let Some(page) = self.pages.get_mut(&(offset / PAGE)) {
            page[at..at + len as usize].fill(0);
        }
    }
}

/// The pieces of a range: (page, offset in it, range of the buffer).
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let place = offset + done as u64;
        let at = (place % PAGE) as usize;
        let count = (PAGE as usize - at).min(len - done);
        let range = done..done + count;
        done += count;
        Some((place / PAGE, at, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtio::tests::temporary;
    use proptest::prelude::*;

    const SIZE: usize = 5 * PAGE as usize;

    fn are_those_of_a_plain_array(
        mut contents: Contents,
        steps: Vec<(u8, usize, usize, u8)>,
    ) -> bool {
        let mut plain = vec![0_u8; SIZE];
        for (kind, offset, len, value) in steps {
            let end = (offset + len).min(SIZE);
            if kind == 0 {
                contents
                    .write(offset as u64, &vec![value; end - offset])
                    .unwrap();
                plain[offset..end].fill(value);
            } else if end > offset {
                contents
                    .discard(offset as u64, (end - offset) as u64)
                    .unwrap();
                plain[offset..end].fill(0);
            }
        }
        let mut found = vec![1; SIZE];
        contents.read(0, &mut found).unwrap();
        found == plain
    }

    proptest! {
        #[test]
        fn contents_are_those_of_a_plain_array(
            steps in proptest::collection::vec((0_u8..2, 0..SIZE, 0..2 * PAGE as usize, any::<u8>()), 1..30)
        ) {
            prop_assert!(are_those_of_a_plain_array(Contents::default(), steps.clone()));
            let file = temporary(SIZE as u64);
            prop_assert!(are_those_of_a_plain_array(Contents::File(file), steps));
        }
    }

    #[test]
    fn discarded_pages_take_no_memory() {
        let mut contents = Contents::default();
        contents.write(0, &vec![1; SIZE]).unwrap();
        assert_eq!(contents.memory_bytes(), SIZE as u64);
        contents.discard(1, SIZE as u64 - 1).unwrap();
        assert_eq!(contents.memory_bytes(), PAGE);
        contents.discard(u64::from(u32::MAX), 1 << 60).unwrap();
    }
}
