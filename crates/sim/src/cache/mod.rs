//! The page cache: pages in memory, read-ahead, dirty pages and their limits.
//!
//! `engine/buffered.rs` moves the pages between it and the drives.

mod pages;
mod readahead;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::pages::FilePages;
pub(crate) use self::pages::{PageState, Pages};
use self::readahead::{ReadAhead, TwoWindows};
pub(crate) use self::readahead::{ReadAheadLimits, ReadAheadRule, Window};
use crate::figures::PageCacheFigures;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// The memory and the rules of a host, pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheSetup {
    /// Pages that the cache may have.
    pub(crate) most: u64,
    /// Dirty pages from which the flusher writes (`dirty_background_ratio`).
    pub(crate) background: u64,
    /// Dirty pages that are never exceeded (`dirty_ratio`).
    pub(crate) limit: u64,
    /// Age from which dirty pages are written (`dirty_expire_centisecs`), ns.
    pub(crate) expire_ns: u64,
    /// Interval in which the flusher looks for old pages (`dirty_writeback_centisecs`), ns.
    pub(crate) interval_ns: u64,
    pub(crate) read_ahead: ReadAheadLimits,
    pub(crate) read_ahead_rule: ReadAheadRule,
    /// Bytes that a processor copies in a second.
    pub(crate) copy_rate: u64,
    /// A reader asks for each page by itself, and copies each as soon as it has arrived.
    pub(crate) asks_page_by_page: bool,
    /// Time of the reader for each page that it asks for.
    pub(crate) ask_page_ns: u64,
    /// Time for each dirty page that is handed to the drives.
    pub(crate) send_page_ns: u64,
    /// Pages that are read with one bio.
    pub(crate) longest_read: u64,
    /// Dirty pages that go in one bio: a block device's are sent one by one (`__block_write_full_page`), and merged in the
    /// plug; those of a file together (`ext4_bio_write_page`, `iomap_add_to_ioend`).
    pub(crate) longest_write: u64,
    /// No bio has pages of two pieces of so many.
    pub(crate) piece: u64,
}

/// `MIN_WRITEBACK_PAGES`.
const LEAST_ROUND: u64 = 1024;
/// Half of the pages that a device is taken to write in a second before that is measured (`INIT_BW`: 100 MiB).
const HALF_A_SECOND: u64 = (100 << 20) / PAGE / 2;
/// `DIRTY_SCOPE`.
const ROUNDS_IN_LIMIT: u64 = 8;

impl CacheSetup {
    /// Pages of one file that the flusher issues before it looks again (`writeback_chunk_size`). The rate of the device is the
    /// one it has at first: the limit is the lower bound for most memories.
    pub(crate) fn round(&self) -> u64 {
        let most = HALF_A_SECOND.min(self.limit / ROUNDS_IN_LIMIT);
        (most + LEAST_ROUND) / LEAST_ROUND * LEAST_ROUND
    }
}

/// A request of the cache at the drives.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageIo {
    /// Number of the write, in the order of issue.
    pub(crate) number: u64,
    /// The kernel's flusher issued it, no thread of the load.
    pub(crate) by_flusher: bool,
    /// It is read-ahead, which may fail.
    pub(crate) is_ahead: bool,
    /// It has failed.
    pub(crate) has_failed: bool,
    /// The page of block numbers that it reads.
    pub(crate) map: Option<u64>,
}

/// A request that waits until pages are on the drives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageSync {
    pub(crate) slot: u32,
    /// The pages of its file, and the next one to look at.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) next: u64,
    /// Pages that have been sent, and so many of them when it last looked whether other threads are to run.
    pub(crate) sent: u64,
    pub(crate) looked: u64,
    /// Pages were written again while their last write was under way: it goes through the file once more.
    pub(crate) repeats: bool,
    /// All pages are issued: the writes it waits for, those before this one.
    pub(crate) until: Option<u64>,
    /// They are done.
    pub(crate) is_done: bool,
}

impl PageSync {
    pub(crate) fn new(slot: u32, from: u64, to: u64) -> PageSync {
        PageSync {
            slot,
            from,
            to,
            next: from,
            sent: 0,
            looked: 0,
            repeats: false,
            until: None,
            is_done: false,
        }
    }
}

pub(crate) struct PageCache {
    pub(crate) setup: CacheSetup,
    /// Bytes moved so far.
    pub(crate) figures: PageCacheFigures,
    pub(crate) pages: Pages,
    /// Read-ahead of each thread in each file.
    readers: BTreeMap<(u32, u32), ReadAhead>,
    /// The same with the rules of old kernels.
    old_readers: BTreeMap<(u32, u32), TwoWindows>,
    /// The next page of each slot.
    pub(crate) progress: Vec<u64>,
    /// The page of each slot for which read-ahead was asked last, and one.
    pub(crate) asked: Vec<u64>,
    /// The page that each slot waits, or waited, for until its thread goes on.
    held: Vec<Option<u64>>,
    /// Windows of a slot that are to be read once the block numbers are there, the next one last.
    pub(crate) windows: BTreeMap<u32, Vec<Window>>,
    /// Slots that wait for the content of a page.
    waiting: Vec<(u64, u32)>,
    /// Slots that can go on.
    pub(crate) ready: VecDeque<u32>,
    /// Slots whose thread sleeps because no request is free.
    pub(crate) stalled: Vec<u32>,
    /// Writers over the limit.
    pub(crate) throttled: VecDeque<u32>,
    pub(crate) syncs: Vec<PageSync>,
    /// The first slot of the cache's own requests, those that are free, and their facts.
    pub(crate) first_slot: u32,
    pub(crate) free_slots: Vec<u32>,
    pub(crate) ios: Vec<PageIo>,
    pub(crate) under_way: u32,
    /// Writes under way.
    writes: BTreeSet<u64>,
    pub(crate) issued_writes: u64,
    /// The page at which the flusher goes on.
    pub(crate) cursor: u64,
    /// Pages of the flusher's round so far.
    pub(crate) round: u64,
    /// So many of them when it last looked whether other threads are to run.
    pub(crate) looked: u64,
    /// The flusher copies a page.
    pub(crate) flusher_copies: bool,
    /// Requests of the flusher that wait for a free one.
    pub(crate) flusher_blocked: u32,
    /// Dirty pages are older than that.
    pub(crate) dirty_since_ns: Option<u64>,
    /// Old pages are being written: all that are dirty.
    pub(crate) writes_all: bool,
    /// The flusher looks for old pages now and then.
    pub(crate) has_timer: bool,
    /// The flusher slept, and a request is free.
    pub(crate) flusher_awake: bool,
}

impl PageCache {
    pub(crate) fn new(setup: CacheSetup, first_slot: u32) -> PageCache {
        PageCache {
            setup,
            figures: PageCacheFigures::default(),
            pages: Pages::default(),
            readers: BTreeMap::new(),
            old_readers: BTreeMap::new(),
            progress: vec![0; first_slot as usize],
            asked: vec![0; first_slot as usize],
            held: vec![None; first_slot as usize],
            windows: BTreeMap::new(),
            waiting: Vec::new(),
            ready: VecDeque::new(),
            stalled: Vec::new(),
            throttled: VecDeque::new(),
            syncs: Vec::new(),
            first_slot,
            free_slots: Vec::new(),
            ios: Vec::new(),
            under_way: 0,
            writes: BTreeSet::new(),
            issued_writes: 0,
            cursor: 0,
            round: 0,
            looked: 0,
            flusher_copies: false,
            flusher_blocked: 0,
            dirty_since_ns: None,
            writes_all: false,
            has_timer: false,
            flusher_awake: false,
        }
    }

    /// A thread wants `wanted` pages of a file from `page` on, which is absent. `begins` is true at the first page of a
    /// request.
    pub(crate) fn at_missing(
        &mut self,
        reader: (u32, u32),
        file_first: u64,
        page: u64,
        wanted: u64,
        begins: bool,
    ) -> Window {
        let state = self.readers.entry(reader).or_default();
        if !begins {
            state.previous = Some(page - file_first);
        }
        let cached = FilePages {
            pages: &self.pages,
            first: file_first,
        };
        let window = state.at_missing(page - file_first, wanted, self.setup.read_ahead, &cached);
        Window {
            start: file_first + window.start,
            ..window
        }
    }

    /// A thread wants `wanted` pages of a file from `page` on: what a kernel with two windows reads for it.
    pub(crate) fn at_page(
        &mut self,
        reader: (u32, u32),
        file_first: u64,
        (page, wanted): (u64, u64),
        begins: bool,
    ) -> [Option<Window>; 2] {
        let state = self.old_readers.entry(reader).or_default();
        let (most, rule) = (self.setup.read_ahead.most, self.setup.read_ahead_rule);
        let windows = state.at_page(page - file_first, wanted, begins, most, rule);
        windows.map(|window| {
            window.map(|window| Window {
                start: file_first + window.start,
                ..window
            })
        })
    }

    /// A thread has reached a page with a mark.
    pub(crate) fn at_mark(
        &mut self,
        reader: (u32, u32),
        file_first: u64,
        page: u64,
        wanted: u64,
    ) -> Option<Window> {
        self.pages.clear_mark(page);
        let state = self.readers.entry(reader).or_default();
        let cached = FilePages {
            pages: &self.pages,
            first: file_first,
        };
        let window = state.at_mark(page - file_first, wanted, self.setup.read_ahead, &cached)?;
        Some(Window {
            start: file_first + window.start,
            ..window
        })
    }

    /// The thread has read up to this byte of the file.
    pub(crate) fn has_read(&mut self, reader: (u32, u32), end: u64) {
        self.readers.entry(reader).or_default().previous = Some(end / PAGE);
    }

    pub(crate) fn wait_for(&mut self, page: u64, slot: u32) {
        self.waiting.push((page, slot));
        self.goes_on(slot);
        self.pages.hold(page);
        self.held[slot as usize] = Some(page);
    }

    /// The thread of the slot is at work.
    #[inline]
    pub(crate) fn goes_on(&mut self, slot: u32) {
        if let Some(page) = self.held[slot as usize].take() {
            self.pages.let_go(page);
        }
    }

    /// The facts of the cache's own request in this slot.
    pub(crate) fn io_mut(&mut self, slot: u32) -> &mut PageIo {
        &mut self.ios[(slot - self.first_slot) as usize]
    }

    /// The read in this slot fails.
    pub(crate) fn fail(&mut self, slot: u32) {
        self.io_mut(slot).has_failed = true;
    }

    /// Pages have their content, unless the read failed; slots that waited for them can go on.
    pub(crate) fn end_read(&mut self, first: u64, pages: u64, has_failed: bool) {
        for page in first..first + pages {
            self.pages.end_read(page, has_failed);
        }
        let ready = &mut self.ready;
        self.waiting.retain(|&(page, slot)| {
            let arrived = (first..first + pages).contains(&page);
            if arrived {
                ready.push_back(slot);
            }
            !arrived
        });
    }

    pub(crate) fn begin_write(&mut self) -> u64 {
        let number = self.issued_writes;
        self.issued_writes += 1;
        self.writes.insert(number);
        number
    }

    /// A write is done; slots that waited for it, or were over the limit, can go on.
    pub(crate) fn end_write(&mut self, number: u64, first: u64, pages: u64) {
        for page in first..first + pages {
            self.pages.end_write(page);
        }
        self.writes.remove(&number);
        let oldest = self.oldest_write();
        for sync in &mut self.syncs {
            if !sync.is_done && sync.until.is_some_and(|until| oldest >= until) {
                sync.is_done = true;
                self.ready.push_back(sync.slot);
            }
        }
        if !self.is_over_limit() {
            self.ready.extend(self.throttled.drain(..));
        }
        // Pages that were written again meanwhile had to wait for this.
        self.flusher_awake |= self.flusher_blocked == 0 && self.wants_flush();
    }

    /// Number of the oldest write under way; that of the next one if there is none.
    pub(crate) fn oldest_write(&self) -> u64 {
        self.writes.first().copied().unwrap_or(self.issued_writes)
    }

    /// Writers sleep (`balance_dirty_pages`): the kernel lets them go on at the pace of the drives, at the level for which its
    /// throttle aims (`wb_position_ratio`: `setpoint`), between the limit and the middle of both limits.
    pub(crate) fn is_over_limit(&self) -> bool {
        let free = u64::midpoint(self.setup.background, self.setup.limit);
        let level = u64::midpoint(free, self.setup.limit);
        self.pages.dirty + self.pages.writeback > level
    }

    /// The kernel's flusher issued the request of this slot.
    #[inline]
    pub(crate) fn is_of_flusher(&self, slot: u32) -> bool {
        slot.checked_sub(self.first_slot)
            .is_some_and(|io| self.ios[io as usize].by_flusher)
    }

    /// Takes the next dirty pages within `from..to` for a bio, `most` at most.
    pub(crate) fn take_dirty(&mut self, from: u64, to: u64, most: u64) -> Option<(u64, u64)> {
        let first = self.pages.first_dirty(from, to)?;
        let piece = self.setup.piece;
        let most = most
            .min(self.setup.longest_write)
            .min(piece - first % piece);
        let found = self.pages.take_dirty(first, to, most);
        if self.pages.dirty == 0 {
            self.writes_all = false;
            self.dirty_since_ns = None;
        }
        Some((first, found))
    }

    /// The flusher has something to do.
    pub(crate) fn wants_flush(&self) -> bool {
        self.pages.dirty > 0 && (self.writes_all || self.pages.dirty > self.setup.background)
    }

    /// CPU time to copy that many bytes, ns.
    pub(crate) fn copy_ns(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * 1_000_000_000 / u128::from(self.setup.copy_rate)) as u64
    }
}

/// The pages that bytes touch.
pub(crate) fn pages_of(offset: u64, len: u64) -> (u64, u64) {
    (offset / PAGE, (offset + len).div_ceil(PAGE))
}
