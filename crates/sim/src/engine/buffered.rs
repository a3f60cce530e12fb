//! Requests of the load that go through the page cache.
//!
//! Linux 6.1 `mm/filemap.c` (`filemap_read`, `filemap_get_pages`), `mm/page-writeback.c` (`write_cache_pages`,
//! `balance_dirty_pages`), `fs/fs-writeback.c` (`wb_writeback`), `fs/mpage.c`.

use spindle_workload::{Op, Request};

use super::bio::Issuer;
use super::fair::Fair;
use super::load::{Alarm, Slot, Stage};
use super::{Engine, Outcome, Target};
use crate::cache::{PAGE, PageCache, PageIo, PageState, PageSync, ReadAheadRule, Window, pages_of};

/// Pages whose block numbers are in one block (4 KiB of 32-bit numbers, `EXT2_ADDR_PER_BLOCK`).
const MAPPED: u64 = 1024;
/// Pages that a writer of a device looks up at a time (`PAGEVEC_SIZE`).
const PAGES_OF_BATCH: u64 = 15;

impl Engine {
    /// Begins a request through the page cache.
    pub(super) fn issue_buffered(&mut self, slot: u32) -> Outcome {
        if self.waits_for_file(slot) || self.waits_for_iolock(slot) {
            return Ok(());
        }
        self.begin_buffered(slot)
    }

    /// Begins it; it has the lock of its file. Who reads needs the inode's too, but who has that alone has both.
    pub(super) fn begin_buffered(&mut self, slot: u32) -> Outcome {
        let reads = matches!(
            self.load.slots[slot as usize].request.op,
            Op::Read | Op::Rewrite
        );
        if !reads && self.journal.is_some() && !self.note_access(slot) {
            return Ok(());
        }
        self.begin_pages(slot)
    }

    /// Begins it; it has all locks.
    pub(super) fn begin_pages(&mut self, slot: u32) -> Outcome {
        let request = self.load.slots[slot as usize].request;
        let (first, _) = pages_of(request.offset, u64::from(request.len));
        if let Some(cache) = &mut self.cache {
            cache.progress[slot as usize] = first;
            cache.asked[slot as usize] = 0;
        }
        self.go_on_buffered(slot)
    }

    /// Takes a request as far as it gets without waiting.
    pub(super) fn go_on_buffered(&mut self, slot: u32) -> Outcome {
        let of = self.load.slots[slot as usize];
        match of.stage {
            Stage::Data if matches!(of.request.op, Op::Read | Op::Rewrite) => self.read_on(slot),
            Stage::Data => self.write_on(slot),
            Stage::Durable | Stage::Sync | Stage::EndSync => self.sync_on(slot),
            Stage::Pages | Stage::Log => Ok(()),
        }
    }

    /// Requests whose pages have arrived, and the flusher, go on.
    pub(super) fn go_on_with_pages(&mut self) -> Outcome {
        while let Some(slot) = self
            .cache
            .as_mut()
            .and_then(|cache| cache.ready.pop_front())
        {
            self.go_on_buffered(slot)?;
        }
        if self.takes_flusher_awake() {
            self.run_flusher()?;
        }
        Ok(())
    }

    /// True once if the flusher sleeps no more.
    pub(super) fn takes_flusher_awake(&mut self) -> bool {
        let awake = |cache: &mut Box<PageCache>| std::mem::take(&mut cache.flusher_awake);
        self.cache.as_mut().is_some_and(awake)
    }

    /// True if the requests of a worker go through the page cache.
    pub(super) fn is_buffered(&self, worker: u32) -> bool {
        self.load.streams[self.load.workers[worker as usize].stream].buffered
    }

    /// Threads that slept go on with their requests.
    pub(super) fn go_on_stalled(&mut self, worker: usize) -> Outcome {
        let Some(cache) = &mut self.cache else {
            return Ok(());
        };
        let slots = &self.load.slots;
        let own = |slot: &u32| slots[*slot as usize].worker as usize == worker;
        let stalled: Vec<u32> = cache.stalled.extract_if(.., |slot| own(slot)).collect();
        for slot in stalled {
            self.go_on_buffered(slot)?;
        }
        Ok(())
    }

    /// True if the thread of the slot sleeps; it goes on with the slot afterwards.
    fn stalls(&mut self, slot: u32) -> bool {
        let worker = self.load.slots[slot as usize].worker as usize;
        let sleeps = self.load.workers[worker].blocked > 0;
        if sleeps && let Some(cache) = &mut self.cache {
            cache.stalled.push(slot);
        }
        sleeps
    }

    fn read_on(&mut self, slot: u32) -> Outcome {
        let Slot {
            request, worker, ..
        } = self.load.slots[slot as usize];
        let reader = (worker, request.file);
        let (first, end) = pages_of(request.offset, u64::from(request.len));
        let (file_first, file_end) = self.file_pages(worker, request.file);
        if self.stalls(slot) || self.read_windows(slot, Vec::new(), file_end, true)? {
            return Ok(());
        }
        loop {
            if self.stalls(slot) {
                return Ok(());
            }
            let Some(cache) = &mut self.cache else {
                return Ok(());
            };
            cache.goes_on(slot);
            let page = cache.progress[slot as usize];
            if page == end {
                cache.has_read(
                    reader,
                    request.offset + u64::from(request.len) - file_first * PAGE,
                );
                return self.copied(slot);
            }
            if cache.setup.read_ahead_rule != ReadAheadRule::OnDemand
                && cache.asked[slot as usize] != page + 1
            {
                cache.asked[slot as usize] = page + 1;
                let wanted = (page, end - page);
                let windows = cache.at_page(reader, file_first, wanted, page == first);
                let next = windows.into_iter().flatten().rev().collect();
                if self.read_windows(slot, next, file_end, true)? {
                    return Ok(());
                }
                continue;
            }
            let state = cache.pages.state(page);
            if !state.has(PageState::PRESENT)
                && cache.setup.read_ahead_rule != ReadAheadRule::OnDemand
            {
                let window = Window::alone(page, 1);
                if self.read_windows(slot, vec![window], file_end, false)? {
                    return Ok(());
                }
                continue;
            }
            if !state.has(PageState::PRESENT) {
                let window = cache.at_missing(reader, file_first, page, end - page, page == first);
                if self.read_windows(slot, vec![window], file_end, true)? {
                    return Ok(());
                }
                if !self.has_page(page) {
                    self.read_pages(worker, Window::alone(page, 1), file_end, false)?;
                }
                continue;
            }
            if state.has(PageState::MARK) {
                let window = cache.at_mark(reader, file_first, page, end - page);
                if self.read_windows(slot, window.into_iter().collect(), file_end, true)? {
                    return Ok(());
                }
                continue;
            }
            if state.has(PageState::FAILED) {
                cache.pages.retry_read(page);
                self.read_run(worker, page, page + 1, false)?;
                self.unplug()?;
                continue;
            }
            if !state.has(PageState::UPTODATE) {
                return self.wait_for_page(slot, page);
            }
            cache.progress[slot as usize] += 1;
            if cache.setup.asks_page_by_page && cache.setup.copy_rate != u64::MAX {
                self.copy_pages(slot, worker, page, end);
                return Ok(());
            }
        }
    }

    /// A reader copies a page as soon as it has arrived, and those behind it that have: it goes on with an alarm.
    fn copy_pages(&mut self, slot: u32, worker: u32, page: u64, end: u64) {
        let Some(cache) = &mut self.cache else {
            return;
        };
        // With two windows each page may be where the next one is asked for.
        let looks_at_marks = cache.setup.read_ahead_rule == ReadAheadRule::OnDemand;
        let mut next = page + 1;
        while looks_at_marks
            && next < end
            && let state = cache.pages.state(next)
            && state.has(PageState::UPTODATE)
            && !state.has(PageState::MARK)
            && !state.has(PageState::FAILED)
        {
            next += 1;
        }
        cache.progress[slot as usize] = next;
        let takes_ns = cache.copy_ns((next - page) * PAGE);
        self.work(worker, takes_ns, Alarm::Page(Some(slot)));
    }

    /// The thread of a worker is busy for a while, and goes on with an alarm.
    fn work(&mut self, worker: u32, takes_ns: u64, alarm: Alarm) {
        let of = &mut self.load.workers[worker as usize];
        of.cpu_ns = of.cpu_ns.max(self.now_ns) + takes_ns;
        let at_ns = of.cpu_ns;
        self.load.alarm(at_ns, alarm);
    }

    /// The request waits until a page has its content.
    fn wait_for_page(&mut self, slot: u32, page: u64) -> Outcome {
        if let Some(cache) = &mut self.cache {
            cache.wait_for(page, slot);
        }
        if !self.has_plugged_queues {
            return Ok(());
        }
        self.pull_plug()?;
        self.unplug()
    }

    /// Reads windows, the last one first, after those that the slot was at: up to one whose block numbers are not in
    /// memory. Then the thread reads these first, and true is returned. `ahead`: as of `read_pages`.
    fn read_windows(
        &mut self,
        slot: u32,
        mut windows: Vec<Window>,
        file_end: u64,
        ahead: bool,
    ) -> Outcome<bool> {
        let worker = self.load.slots[slot as usize].worker;
        let asks_ns = self.time_to_ask();
        if asks_ns == 0 && !self.has_block_maps() {
            while let Some(window) = windows.pop() {
                self.read_pages(worker, window, file_end, ahead)?;
            }
            return Ok(false);
        }
        if let Some(cache) = &mut self.cache {
            windows.extend(cache.windows.remove(&slot).unwrap_or_default());
        }
        if asks_ns > 0 {
            return self.ask_page_by_page(slot, windows, file_end, asks_ns);
        }
        while let Some(mut window) = windows.pop() {
            if window.start >= file_end {
                continue;
            }
            window.pages = window.pages.min(file_end - window.start);
            window.lookahead = window.lookahead.min(window.pages);
            if self.waits_for_map(slot, window.start)? {
                windows.push(window);
                if let Some(cache) = &mut self.cache {
                    cache.windows.insert(slot, windows);
                }
                return Ok(true);
            }
            let border = (window.start / MAPPED + 1) * MAPPED;
            if border < window.start + window.pages {
                let (now, later) = window.split_at(border);
                windows.push(later);
                window = now;
            }
            self.read_pages(worker, window, file_end, ahead)?;
        }
        Ok(false)
    }

    /// Time for each page of a window; 0: all are asked for at once.
    fn time_to_ask(&self) -> u64 {
        let setup = self.cache.as_ref().map(|cache| &cache.setup);
        setup
            .filter(|setup| setup.asks_page_by_page)
            .map_or(0, |setup| setup.ask_page_ns)
    }

    /// Asks for the next page of the windows, the last of which comes first; true if the thread is busy with that.
    fn ask_page_by_page(
        &mut self,
        slot: u32,
        mut windows: Vec<Window>,
        file_end: u64,
        asks_ns: u64,
    ) -> Outcome<bool> {
        let worker = self.load.slots[slot as usize].worker;
        let Some(mut window) = windows.pop() else {
            return Ok(false);
        };
        window.pages = window.pages.min(file_end.saturating_sub(window.start));
        window.lookahead = window.lookahead.min(window.pages);
        if window.pages > 1 {
            let (page, rest) = window.split_at(window.start + 1);
            windows.push(rest);
            window = page;
        }
        self.read_pages(worker, window, file_end, true)?;
        if let Some(cache) = &mut self.cache
            && !windows.is_empty()
        {
            cache.windows.insert(slot, windows);
        }
        self.work(worker, asks_ns, Alarm::Page(Some(slot)));
        Ok(true)
    }

    /// True if block numbers are in blocks of their own that have to be read.
    fn has_block_maps(&self) -> bool {
        let of = self.rules.files;
        of.is_some_and(|files| files.has_block_maps() && !files.new)
    }

    /// Reads the block with the block number of a page, unless it is in memory; true if the slot waits for it. It is
    /// on the drive just before the first page of those whose numbers it has (`ext2_find_goal`).
    fn waits_for_map(&mut self, slot: u32, page: u64) -> Outcome<bool> {
        if !self.has_block_maps() {
            return Ok(false);
        }
        let worker = self.load.slots[slot as usize].worker;
        let first = page / MAPPED * MAPPED;
        let map = pages_of(0, self.capacity).1 + page / MAPPED;
        let Some(cache) = &mut self.cache else {
            return Ok(false);
        };
        let state = cache.pages.state(map);
        if state.has(PageState::UPTODATE) {
            return Ok(false);
        }
        if !state.has(PageState::PRESENT) {
            cache.pages.begin_read(map);
            let io = PageIo {
                map: Some(map),
                ..PageIo::default()
            };
            self.start_io(worker, Op::Read, first, 1, io)?;
            self.unplug()?;
        }
        self.wait_for_page(slot, map)?;
        Ok(true)
    }

    fn has_page(&mut self, page: u64) -> bool {
        self.cache
            .as_mut()
            .is_some_and(|cache| cache.pages.state(page).has(PageState::PRESENT))
    }

    /// First page of a file, and its end.
    fn file_pages(&self, worker: u32, file: u32) -> (u64, u64) {
        let stream = &self.load.streams[self.load.workers[worker as usize].stream];
        match stream.files.get(file as usize) {
            Some(&(start, size)) => pages_of(start, size),
            None => pages_of(0, self.capacity),
        }
    }

    /// Reads the pages of a window that are absent (`page_cache_ra_unbounded`): runs of them become bios, under one plug.
    /// `ahead`: the kernel reads them as read-ahead (`REQ_RAHEAD`).
    fn read_pages(&mut self, worker: u32, window: Window, file_end: u64, ahead: bool) -> Outcome {
        if window.start >= file_end {
            return Ok(());
        }
        let pages = window.pages.min(file_end - window.start);
        let end = window.start + pages;
        let mark = pages
            .checked_sub(window.lookahead)
            .map(|at| window.start + at);
        let mut run = window.start;
        for page in window.start..end {
            let Some(cache) = &mut self.cache else {
                return Ok(());
            };
            if cache.pages.state(page).has(PageState::PRESENT) {
                self.read_run(worker, run, page, ahead)?;
                run = page + 1;
                continue;
            }
            cache.pages.begin_read(page);
            if mark == Some(page) {
                cache.pages.mark(page);
            }
        }
        self.read_run(worker, run, end, ahead)?;
        if let Some(cache) = &mut self.cache {
            let most = cache.setup.most;
            cache.pages.shrink(most);
        }
        self.finish_reads()
    }

    /// The plug of reads is finished. md's thread has rows, and gets the processor when the reader sleeps.
    fn finish_reads(&mut self) -> Outcome {
        if self.fair.is_none() || self.md_runs {
            return self.unplug();
        }
        self.place_rows()?;
        self.release_rows();
        self.wake_md();
        match self.md_has_plug {
            true => Ok(()),
            false => self.finish_plug(),
        }
    }

    fn read_run(&mut self, worker: u32, first: u64, end: u64, is_ahead: bool) -> Outcome {
        let longest = (self.cache.as_ref()).map_or(1, |cache| cache.setup.longest_read);
        let io = PageIo {
            is_ahead,
            ..PageIo::default()
        };
        let mut from = first;
        while from < end {
            let until = end.min(from.saturating_add(longest));
            self.start_io(worker, Op::Read, from, until - from, io)?;
            from = until;
        }
        Ok(())
    }

    /// True if a request gives up where it would have to wait for a row of the stripe cache.
    pub(super) fn gives_up(&mut self, slot: u32) -> bool {
        let is_pages = self.load.slots[slot as usize].stage == Stage::Pages;
        is_pages
            && self.rules.kernel.read_ahead_gives_up()
            && self
                .cache
                .as_mut()
                .is_some_and(|cache| cache.io_mut(slot).is_ahead)
    }

    /// Sends pages to or from the drives, into the plug.
    fn start_io(&mut self, worker: u32, op: Op, first: u64, pages: u64, mut io: PageIo) -> Outcome {
        if op == Op::Write
            && let Some(growth) = &mut self.growth
            && let here = growth.pages_of_extent(first)
            && here < pages
        {
            self.start_io(worker, op, first, here, io)?;
            return self.start_io(worker, op, first + here, pages - here, io);
        }
        let Some(cache) = &mut self.cache else {
            return Ok(());
        };
        let mut bytes = (first * PAGE, pages * PAGE);
        if op == Op::Write {
            io.number = cache.begin_write();
            if let Some(growth) = &mut self.growth {
                bytes = growth.send(first, pages);
            }
        }
        let (offset, len) = bytes;
        let request = Request {
            offset,
            len: len.min(self.capacity - offset) as u32,
            file: 0,
            op,
            fsync_after: false,
        };
        let of = Slot {
            worker,
            request,
            issued_ns: self.now_ns,
            intended_ns: self.now_ns,
            left: 0,
            rest: None,
            waits: false,
            stage: Stage::Pages,
            unpaid: false,
            is_begun: false,
            has_looked: false,
        };
        let slot = match cache.free_slots.pop() {
            Some(slot) => slot,
            None => {
                self.load.slots.push(of);
                cache.ios.push(PageIo::default());
                self.load.slots.len() as u32 - 1
            }
        };
        self.load.slots[slot as usize] = of;
        *cache.io_mut(slot) = io;
        cache.under_way += 1;
        let has_no_plug = self.has_no_plug(slot);
        self.issue(slot, !has_no_plug)?;
        self.place_rows()?;
        if self.is_handled_at_once() && !std::mem::replace(&mut self.md_runs, true) {
            self.handle_rows(false)?;
            self.md_runs = false;
        }
        Ok(())
    }

    /// Until 2.6.31 the thread that writes a page handles its row.
    fn is_handled_at_once(&self) -> bool {
        match &self.target {
            Target::Array(fabric) => fabric
                .stripes
                .as_ref()
                .is_some_and(|stripes| stripes.rules.by_writer),
            Target::Drive { .. } => false,
        }
    }

    /// The drives are done with pages.
    pub(super) fn pages_done(&mut self, slot: u32) {
        let Request {
            offset, len, op, ..
        } = self.load.slots[slot as usize].request;
        let (first, end) = pages_of(offset, u64::from(len));
        let Some(cache) = &mut self.cache else {
            return;
        };
        cache.under_way -= 1;
        cache.free_slots.push(slot);
        if op == Op::Write {
            cache.figures.write_bytes += u64::from(len);
            let number = cache.io_mut(slot).number;
            cache.end_write(number, first, end - first);
            if let Some(growth) = &mut self.growth
                && growth.is_converted(first)
                && let Some(fair) = &mut self.fair
            {
                fair.interrupt();
            }
        } else {
            cache.figures.read_bytes += u64::from(len);
            let PageIo {
                has_failed, map, ..
            } = *cache.io_mut(slot);
            match map {
                Some(map) => cache.end_read(map, 1, has_failed),
                None => cache.end_read(first, end - first, has_failed),
            }
        }
    }

    fn write_on(&mut self, slot: u32) -> Outcome {
        let Slot {
            request, worker, ..
        } = self.load.slots[slot as usize];
        let (_, end) = pages_of(request.offset, u64::from(request.len));
        let (_, file_end) = self.file_pages(worker, request.file);
        let begin = self
            .cache
            .as_ref()
            .map_or(0, |cache| cache.progress[slot as usize]);
        if begin < end && self.waits_for_map(slot, begin)? {
            return Ok(());
        }
        let whole = |page: u64| {
            page * PAGE >= request.offset
                && (page + 1) * PAGE <= request.offset + u64::from(request.len)
        };
        loop {
            if self.stalls(slot) {
                return Ok(());
            }
            let now_ns = self.now_ns;
            let Some(cache) = &mut self.cache else {
                return Ok(());
            };
            cache.goes_on(slot);
            let page = cache.progress[slot as usize];
            if page == end {
                break;
            }
            let state = cache.pages.state(page);
            let is_new = self.growth.as_ref().is_some_and(|of| of.is_beyond(page));
            if !whole(page) && !state.has(PageState::UPTODATE) && !is_new {
                if !state.has(PageState::PRESENT) {
                    self.read_pages(worker, Window::alone(page, 1), file_end, false)?;
                    continue;
                }
                if state.has(PageState::FAILED) {
                    cache.pages.retry_read(page);
                    self.read_run(worker, page, page + 1, false)?;
                    self.unplug()?;
                    continue;
                }
                return self.wait_for_page(slot, page);
            }
            cache.pages.make_dirty(page);
            cache.dirty_since_ns.get_or_insert(now_ns);
            cache.progress[slot as usize] += 1;
        }
        if let Some(growth) = &mut self.growth {
            growth.write(request.offset, u64::from(request.len));
        }
        let (mut needs_timer, mut waits) = (false, false);
        if let Some(cache) = &mut self.cache {
            let most = cache.setup.most;
            cache.pages.shrink(most);
            needs_timer = !std::mem::replace(&mut cache.has_timer, true);
            waits = cache.is_over_limit();
            if waits {
                cache.throttled.push_back(slot);
            }
        }
        // Only a drive's own queue sees that its writers wait, not those of an array's members.
        if waits && matches!(self.target, Target::Drive { .. }) {
            self.queues[0].writer_waits(self.now_ns);
        }
        if needs_timer {
            self.set_flush_timer();
        }
        self.run_flusher()?;
        if waits { Ok(()) } else { self.copied(slot) }
    }

    fn set_flush_timer(&mut self) {
        if let Some(cache) = &self.cache {
            self.load
                .alarm(self.now_ns + cache.setup.interval_ns, Alarm::Flusher);
        }
    }

    /// The flusher looks for old pages.
    pub(super) fn look_for_old_pages(&mut self) -> Outcome {
        let now_ns = self.now_ns;
        if let Some(cache) = &mut self.cache {
            let expire_ns = cache.setup.expire_ns;
            cache.writes_all |= cache
                .dirty_since_ns
                .is_some_and(|since_ns| now_ns - since_ns >= expire_ns);
        }
        self.set_flush_timer();
        self.run_flusher()
    }

    /// The kernel's flusher writes as long as there are too many dirty pages, a round at a time, and requests are free.
    pub(super) fn run_flusher(&mut self) -> Outcome {
        let end = pages_of(0, self.capacity).1;
        loop {
            let Some(cache) = &mut self.cache else {
                return Ok(());
            };
            if cache.flusher_copies {
                return Ok(());
            }
            if cache.round == 0 && !cache.wants_flush()
                || cache.flusher_blocked > 0
                || self.load.active == 0
            {
                break;
            }
            if is_batch_over(cache.looked, cache.round) {
                cache.looked = cache.round;
                self.let_md_take_over()?;
                continue;
            }
            let cursor = cache.cursor;
            let most = cache.setup.round();
            let left = most - cache.round;
            let found = cache.take_dirty(cursor, end, left);
            let Some((first, pages)) = found.or_else(|| cache.take_dirty(0, cursor, left)) else {
                (cache.round, cache.looked) = (0, 0);
                break;
            };
            cache.cursor = first + pages;
            cache.round += pages;
            let is_over = cache.round >= most;
            if is_over {
                (cache.round, cache.looked) = (0, 0);
            }
            let io = PageIo {
                by_flusher: true,
                ..PageIo::default()
            };
            self.start_io(0, Op::Write, first, pages, io)?;
            if is_over {
                self.unplug()?;
            }
            if self.copies(None, pages) {
                return Ok(());
            }
        }
        self.unplug()
    }

    /// True if the thread that hands pages over is busy with them; until 2.6.31 it copies them into md's stripe cache, too. It
    /// goes on with an alarm.
    fn copies(&mut self, slot: Option<u32>, pages: u64) -> bool {
        let Some(cache) = &mut self.cache else {
            return false;
        };
        let copy_ns = cache.copy_ns(pages * PAGE);
        let send_ns = pages * cache.setup.send_page_ns;
        let takes_ns = match self.is_handled_at_once() {
            true => copy_ns + send_ns,
            false => send_ns,
        };
        if takes_ns == 0 {
            return false;
        }
        if slot.is_none()
            && let Some(cache) = &mut self.cache
        {
            cache.flusher_copies = true;
        }
        self.load.alarm(self.now_ns + takes_ns, Alarm::Page(slot));
        true
    }

    /// Writes the dirty pages of a file for a request that waits until they are on the drives, then empties the drives'
    /// write caches.
    pub(super) fn begin_sync(&mut self, slot: u32) -> Outcome {
        let Slot {
            request,
            worker,
            stage,
            ..
        } = self.load.slots[slot as usize];
        let (from, to) = match stage {
            Stage::EndSync => pages_of(0, self.capacity),
            _ => self.file_pages(worker, request.file),
        };
        if let Some(cache) = &mut self.cache {
            cache.syncs.push(PageSync::new(slot, from, to));
        }
        self.sync_on(slot)
    }

    fn sync_on(&mut self, slot: u32) -> Outcome {
        let worker = self.load.slots[slot as usize].worker;
        loop {
            if self.stalls(slot) {
                self.pull_plug()?;
                return self.unplug();
            }
            let Some(cache) = &mut self.cache else {
                return Ok(());
            };
            let Some(at) = cache.syncs.iter().position(|sync| sync.slot == slot) else {
                return Ok(());
            };
            let sync = cache.syncs[at];
            if let Some(until) = sync.until {
                if cache.oldest_write() < until {
                    self.pull_plug()?;
                    return self.unplug();
                }
                if !sync.repeats {
                    cache.syncs.remove(at);
                    return self.flush_after(slot);
                }
                cache.syncs[at] = PageSync::new(slot, sync.from, sync.to);
                continue;
            }
            if is_batch_over(sync.looked, sync.sent) {
                cache.syncs[at].looked = sync.sent;
                self.let_md_take_over()?;
                continue;
            }
            match cache.take_dirty(sync.next, sync.to, u64::MAX) {
                Some((first, pages)) => {
                    let of = &mut cache.syncs[at];
                    (of.next, of.sent) = (first + pages, of.sent + pages);
                    self.start_io(worker, Op::Write, first, pages, PageIo::default())?;
                    if self.copies(Some(slot), pages) {
                        return Ok(());
                    }
                }
                None => {
                    let left = cache.pages.has_dirty(sync.from, sync.to);
                    cache.syncs[at].repeats = left;
                    cache.syncs[at].until = Some(cache.issued_writes);
                    self.unplug()?;
                }
            }
        }
    }

    /// md's thread takes the processor if it is to have it.
    fn let_md_take_over(&mut self) -> Outcome {
        if !self.has_parity || self.md_runs {
            return Ok(());
        }
        self.wake_md();
        if self.fair.as_mut().is_some_and(Fair::gives_way) {
            self.run_md(false)?;
        }
        Ok(())
    }

    fn flush_after(&mut self, slot: u32) -> Outcome {
        if self.syncs_write_a_log() {
            return self.sync_log(slot);
        }
        if !self.rules.kernel.flushes() {
            return self.seen(slot);
        }
        self.load.slots[slot as usize].left = self.flush(slot);
        Ok(())
    }

    /// The content is in memory: the thread sees the end of its request once it is copied.
    fn copied(&mut self, slot: u32) -> Outcome {
        let Slot {
            request, worker, ..
        } = self.load.slots[slot as usize];
        let stream = &self.load.streams[self.load.workers[worker as usize].stream];
        if stream.dsync && request.op == Op::Write {
            self.release_iolock(slot)?;
            self.unlock_file(slot)?;
            self.load.slots[slot as usize].stage = Stage::Durable;
            return self.begin_sync(slot);
        }
        let is_copied = request.op != Op::Write
            && (self.cache.as_ref()).is_some_and(|cache| cache.setup.asks_page_by_page);
        let copy_ns = (self.cache.as_ref().filter(|_| !is_copied))
            .map_or(0, |cache| cache.copy_ns(u64::from(request.len)));
        let (first, end) = pages_of(request.offset, u64::from(request.len));
        let page_ns = self.rules.files.map_or(0, |files| match request.op {
            Op::Write => files.written_page_ns(),
            _ => files.read_page_ns,
        });
        let copy_ns = copy_ns + (end - first) * page_ns;
        let of = &mut self.load.workers[worker as usize];
        of.cpu_ns = of.cpu_ns.max(self.now_ns) + self.rules.cpu_ns + copy_ns;
        let at_ns = of.cpu_ns;
        if at_ns > self.now_ns {
            self.load.alarm(at_ns, Alarm::Seen(slot));
        } else {
            self.seen_now.push_back(slot);
        }
        Ok(())
    }

    /// Issuer of a request of the cache, and true if someone waits for it.
    pub(super) fn page_issuer(&self, slot: u32) -> (Issuer, bool) {
        let by_flusher = self
            .cache
            .as_ref()
            .is_some_and(|cache| cache.is_of_flusher(slot));
        if by_flusher {
            (Issuer::kernel(self.md_thread() + 2), false)
        } else {
            (self.load.issuer(slot), true)
        }
    }
}

/// A thread that writes pages looks after each batch of them whether others are to run (6.1 `write_cache_pages`): true if it has
/// come to the next batch since.
fn is_batch_over(looked: u64, sent: u64) -> bool {
    looked / PAGES_OF_BATCH < sent / PAGES_OF_BATCH
}
