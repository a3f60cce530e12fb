//! An entry for every block of the files under test, in memory that is taken only for written blocks.
#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::entry::Entry;

/// Entries that several workers use at once.
#[derive(Debug)]
pub(crate) struct Table {
    base: *mut AtomicU32,
    count: usize,
}

// SAFETY: the mapping belongs to this value alone and is only used as atomic words.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// `count` untouched entries.
    pub(crate) fn new(count: usize) -> io::Result<Table> {
        let bytes = Self::bytes(count).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing that exists. Without a
        // reservation its pages cost memory only once they are written.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // A huge page would take 2 MiB for one write.
        // SAFETY: advice on our own mapping; a refusal changes nothing.
        unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Table {
            base: base.cast(),
            count,
        })
    }

    fn bytes(count: usize) -> Option<usize> {
        count.max(1).checked_mul(size_of::<AtomicU32>())
    }

    #[inline(always)]
    fn entries(&self) -> &[AtomicU32] {
        // SAFETY: the mapping holds `count` words, zero at first, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.base, self.count) }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    #[inline(always)]
    pub(crate) fn get(&self, block: usize) -> Entry {
        Entry(self.entries()[block].load(Acquire))
    }

    /// Sets an entry, for a caller that has the table alone.
    pub(crate) fn set(&self, block: usize, entry: Entry) {
        self.entries()[block].store(entry.0, Release);
    }

    /// Marks all of them as being written; false: another write is under way in one of them, and none is marked.
    #[inline]
    pub(crate) fn claim(&self, blocks: Range<usize>) -> bool {
        for block in blocks.clone() {
            let entry = &self.entries()[block];
            let now = Entry(entry.load(Relaxed));
            let taken = !now.is_busy()
                && entry
                    .compare_exchange(now.0, now.busy().0, AcqRel, Relaxed)
                    .is_ok();
            if !taken {
                self.release(blocks.start..block, Entry::idle);
                return false;
            }
        }
        true
    }

    /// Ends the writing of claimed entries; `after` gives their new value.
    #[inline(always)]
    pub(crate) fn release(&self, blocks: Range<usize>, after: impl Fn(Entry) -> Entry) {
        for entry in &self.entries()[blocks] {
            let now = Entry(entry.load(Relaxed)).idle();
            entry.store(after(now).0, Release);
        }
    }

    /// The same for every entry of the whole table that is still marked, when no writer is left.
    pub(crate) fn release_all(&self) {
        for block in 0..self.count {
            if self.get(block).is_busy() {
                self.release(block..block + 1, Entry::unknown);
            }
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Some(bytes) = Self::bytes(self.count) {
            // SAFETY: our own mapping, used by no one else.
            unsafe { libc::munmap(self.base.cast(), bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_written_cannot_be_claimed_twice() {
        let table = Table::new(100).expect("memory");
        assert!(table.claim(10..20));
        assert!(!table.claim(5..11), "the last one is taken");
        assert!(
            !table.get(5).is_busy(),
            "and what was marked for nothing is free again"
        );
        assert!(table.claim(20..21));
        table.release(10..20, Entry::written);
        assert_eq!(table.get(12), Entry::default().written());
        assert!(table.claim(5..11));
        table.release_all();
        assert_eq!(table.get(10), Entry::default().written().unknown());
    }

    #[test]
    fn a_large_table_takes_memory_only_where_it_is_used() {
        // Entries for 64 TiB in blocks of 4 KiB: 64 GiB of addresses.
        let Ok(table) = Table::new(1 << 34) else {
            return; // a limit on addresses (ulimit -v) forbids it
        };
        assert!(table.claim((1 << 33)..(1 << 33) + 1));
        assert_eq!(table.get((1 << 34) - 1), Entry::default());
    }
}
