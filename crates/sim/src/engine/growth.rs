//! A file that the load makes on a `[filesystem]`, and that grows as it is written.
//!
//! Blocks are allocated when pages are written back (delayed allocation: `ext4_da_writepages`, `xfs_map_blocks`), and the next
//! fsync logs what that changed. Left out: blocks of extents, and metadata that are written back themselves.

use crate::cache::PAGE;
use crate::machine::{Extent, Logged, NewFile};

/// The file, and what the log does not have of it yet.
#[derive(Debug)]
pub(crate) struct Growth {
    file: NewFile,
    /// Where it goes.
    extents: Vec<Extent>,
    /// Bytes written to, and those of them that have a place.
    end: u64,
    placed: u64,
    /// The end of what has been sent, and writes under way of each part that is converted as one.
    sent: u64,
    under_way: Vec<u32>,
    /// First byte that was written to since pages were last sent.
    dirty_from: u64,
    /// Not logged: its creation, its size, and the first and last byte on the array or drive of new extents.
    is_created: bool,
    is_longer: bool,
    allocated: Option<(u64, u64)>,
}

impl Growth {
    pub(crate) fn new(file: NewFile) -> Growth {
        Growth {
            extents: file.at_once.clone(),
            file,
            end: 0,
            placed: 0,
            sent: 0,
            under_way: Vec::new(),
            dirty_from: u64::MAX,
            is_created: true,
            is_longer: false,
            allocated: None,
        }
    }

    /// Pages that are allocated, and sent, at a time.
    pub(crate) fn piece(&self) -> Option<u64> {
        self.file.piece.map(|bytes| bytes / PAGE)
    }

    /// A page was never written to: there is nothing to read.
    pub(crate) fn is_beyond(&self, page: u64) -> bool {
        page * PAGE >= self.end
    }

    /// The load has written bytes.
    pub(crate) fn write(&mut self, offset: u64, len: u64) {
        self.is_longer |= offset + len > self.end;
        self.end = self.end.max(offset + len);
        self.dirty_from = self.dirty_from.min(offset);
    }

    /// Dirty pages are sent: first byte, bytes. Whole blocks go, those before the first byte that was written to do not. What
    /// has no place gets one.
    pub(crate) fn send(&mut self, first: u64, pages: u64) -> (u64, u64) {
        let block = self.file.block;
        let begin =
            (first * PAGE).max((self.dirty_from / block * block).min(first * PAGE + PAGE - block));
        let end = ((first + pages) * PAGE)
            .min(self.end.next_multiple_of(block))
            .max(begin + block);
        if self.dirty_from < end {
            self.dirty_from = if end >= self.end { u64::MAX } else { end };
        }
        if end > self.placed {
            self.allocate(end);
        }
        self.sent = self.sent.max(end);
        let part = self.part_of(first);
        if self.under_way.len() <= part {
            self.under_way.resize(part + 1, 0);
        }
        self.under_way[part] += 1;
        (begin, end - begin)
    }

    /// Pages that were sent are on the drives, the first of them this one: true if a thread is to convert what they are part of.
    pub(crate) fn is_converted(&mut self, first: u64) -> bool {
        let part = self.part_of(first);
        self.under_way[part] -= 1;
        let end = (part as u64 + 1) * self.file.converted;
        self.under_way[part] == 0 && self.sent >= end.min(self.end)
    }

    fn part_of(&self, page: u64) -> usize {
        (page * PAGE / self.file.converted) as usize
    }

    fn allocate(&mut self, end: u64) {
        let (first, last) = (self.place(self.placed), self.place(end - 1));
        let (low, high) = self.allocated.unwrap_or((first, last));
        self.allocated = Some((low.min(first).min(last), high.max(first).max(last)));
        self.placed = match self.file.doubles_from {
            Some(least) if end > least => end.next_power_of_two(),
            _ => end,
        };
    }

    /// Place of a byte on the array or drive.
    pub(crate) fn place(&self, offset: u64) -> u64 {
        let behind = self
            .extents
            .partition_point(|extent| extent.offset <= offset);
        let of = self.extents[behind.max(1) - 1];
        of.first + (offset - of.offset)
    }

    /// Pages up to the end of the extent that a page is in. The first time, what was written decides where the file goes.
    pub(crate) fn pages_of_extent(&mut self, page: u64) -> u64 {
        if self.placed == 0 && self.end < self.file.small {
            self.extents.clone_from(&self.file.little);
        }
        let next = self
            .extents
            .iter()
            .find(|extent| extent.offset > page * PAGE);
        next.map_or(u64::MAX, |extent| extent.offset.div_ceil(PAGE) - page)
    }

    /// The next fsync or fdatasync writes the log for it.
    pub(crate) fn has_change(&self) -> bool {
        self.is_created || self.is_longer || self.allocated.is_some()
    }

    /// Bytes of the record that takes the change; `plain`: with the inode alone.
    pub(crate) fn log(&mut self, plain: u64) -> u64 {
        let is_created = std::mem::take(&mut self.is_created);
        let allocated = self.allocated.take();
        self.is_longer = false;
        match self.file.logged {
            Logged::Blocks {
                creation,
                origin,
                group,
                groups_of_descriptors,
            } => {
                let of_creation = if is_created { creation } else { 0 };
                let of_extents = allocated.map_or(0, |(low, high)| {
                    let (low, high) = ((low - origin) / group, (high - origin) / group);
                    let descriptors =
                        high / groups_of_descriptors - low / groups_of_descriptors + 1;
                    high - low + 1 + descriptors
                });
                plain + (of_creation + of_extents) * self.file.block
            }
            Logged::Bytes { creation, extent } => {
                let of_creation = if is_created { creation } else { 0 };
                let of_extent = if allocated.is_some() { extent } else { 0 };
                plain.max(of_creation).max(of_extent)
            }
        }
    }
}
