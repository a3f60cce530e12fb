//! md's write-intent bitmap: a bit for each chunk, set on the members before the first write there, cleared some time
//! after the last.
//!
//! Linux 6.1 `drivers/md/md-bitmap.c`: `md_bitmap_startwrite`, `md_bitmap_endwrite`, `md_bitmap_unplug`,
//! `md_bitmap_daemon_work`.

use std::collections::VecDeque;

use super::BLOCK;
use super::bio::{Issuer, Manner};
use crate::cache::PAGE;

/// `bitmap_super_t`, in front of the bits.
const HEADER_BYTES: u64 = 256;
/// Blocks from md's superblock to the bitmap (mdadm 4.2 `add_internal_bitmap1`, metadata 1.2).
const OFFSET: u64 = 8;
/// `daemon_sleep` (mdadm 4.2 `Create.c`: `delay = 5`).
pub(crate) const INTERVAL_NS: u64 = 5_000_000_000;
/// Room for writes that wait, at first.
const HELD: usize = 64;

/// Writes under way to a chunk, and how long ago the last one was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Chunk {
    writes: u32,
    age: Age,
}

/// A chunk's counter without its writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Age {
    /// 0: the bit is not set.
    #[default]
    Clean,
    /// 1: the next look clears the bit.
    Old,
    /// 2.
    Fresh,
}

/// A page of the bitmap: whether it is to be written, and for whom.
#[derive(Debug, Clone, Copy, Default)]
struct PageState {
    /// `BITMAP_PAGE_DIRTY`: bits were set, and the writes wait.
    dirty: bool,
    /// `BITMAP_PAGE_PENDING`: bits were cleared; the next look has it written.
    pending: bool,
    /// `BITMAP_PAGE_NEEDWRITE`.
    needed: bool,
}

/// A write to copies that waits for its bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldWrite {
    pub(crate) slot: u32,
    pub(crate) issuer: Issuer,
    /// Member, offset, length.
    pub(crate) part: (u32, u64, u64),
    pub(crate) manner: Manner,
    /// Bios that it becomes.
    pub(crate) bios: u32,
}

/// Who has pages of the bitmap written and sleeps until they are.
#[derive(Debug)]
pub(crate) enum Sleeper {
    /// The thread that sends these writes to copies: it works for this slot, or is md's.
    Writes(Option<u32>, Vec<HeldWrite>),
    /// md's thread, with rows of the stripe cache.
    Rows,
    /// md's thread, before it writes the superblocks.
    Superblocks,
}

/// A sleeper, and its pages that are still to be written.
#[derive(Debug)]
struct Sleep {
    who: Sleeper,
    /// Empty: they are being written.
    pages: Pages,
    /// They are written.
    is_awake: bool,
}

/// Numbers of pages: a machine file allows 64 at most, mdadm leaves room for 32 (`choose_bm_space`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pages(u64);

impl Pages {
    pub(crate) const FIRST: Pages = Pages(1);
    pub(crate) const MOST: u32 = u64::BITS;

    fn insert(&mut self, page: usize) {
        self.0 |= 1 << page;
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Iterator for Pages {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let first = (self.0 != 0).then(|| self.0.trailing_zeros())?;
        self.0 &= self.0 - 1;
        Some(first)
    }
}

/// The bitmap.
#[derive(Debug)]
pub(crate) struct Bitmap {
    chunk: u64,
    chunks: Vec<Chunk>,
    pages: Vec<PageState>,
    last_blocks: u32,
    /// A write has ended since the array became active (`need_sync`): its first page is to say so.
    needs_note: bool,
    is_noted: bool,
    /// `allclean`.
    all_clean: bool,
    /// Range of the write of each slot, bytes; none: (0, 0).
    begun: Vec<(u64, u64)>,
    /// Writes to copies of the thread that works, in order, and those that are left to md's.
    held: Vec<HeldWrite>,
    left_to_md: Vec<HeldWrite>,
    /// Empty; its memory is used again.
    spare: Vec<HeldWrite>,
    /// Writes of pages under way to members (`pending_writes`).
    left: u32,
    sleeps: VecDeque<Sleep>,
    /// An alarm for the next look is set.
    pub(crate) has_alarm: bool,
    /// md's thread looks when the pages that are under way are written.
    is_due: bool,
}

impl Bitmap {
    /// A bitmap without bits set. `bytes`: of the array, or of a member of one with parity.
    pub(crate) fn new(chunk: u64, bytes: u64) -> Bitmap {
        let chunks = bytes.div_ceil(chunk);
        let stored = HEADER_BYTES + chunks.div_ceil(8);
        let last = match stored % PAGE {
            0 => PAGE,
            rest => rest,
        };
        Bitmap {
            chunk,
            chunks: vec![Chunk::default(); chunks as usize],
            pages: vec![PageState::default(); stored.div_ceil(PAGE) as usize],
            last_blocks: last.div_ceil(BLOCK) as u32,
            needs_note: false,
            is_noted: false,
            all_clean: true,
            begun: Vec::new(),
            held: Vec::with_capacity(HELD),
            left_to_md: Vec::with_capacity(HELD),
            spare: Vec::with_capacity(HELD),
            left: 0,
            sleeps: VecDeque::with_capacity(8),
            has_alarm: false,
            is_due: false,
        }
    }

    /// Bits for which there is room in so many bytes.
    pub(crate) fn bits_in(bytes: u64) -> u64 {
        (bytes - HEADER_BYTES) * 8
    }

    /// Bytes of the largest bitmap.
    pub(crate) const MOST_BYTES: u64 = Pages::MOST as u64 * PAGE;

    /// First block of a page, from md's superblock on, and its blocks.
    pub(crate) fn place(&self, page: u32) -> (u64, u32) {
        let is_last = page as usize + 1 == self.pages.len();
        let blocks = match is_last {
            true => self.last_blocks,
            false => (PAGE / BLOCK) as u32,
        };
        (OFFSET + u64::from(page) * PAGE / BLOCK, blocks)
    }

    fn page_of(&self, chunk: u64) -> usize {
        ((HEADER_BYTES + chunk / 8) / PAGE) as usize
    }

    fn chunks_of(&self, offset: u64, len: u64) -> std::ops::Range<u64> {
        let end = (offset + len).div_ceil(self.chunk);
        offset / self.chunk..end.min(self.chunks.len() as u64)
    }

    /// A write begins (`md_bitmap_startwrite`).
    pub(crate) fn begin(&mut self, offset: u64, len: u64) {
        for at in self.chunks_of(offset, len) {
            let of = &mut self.chunks[at as usize];
            of.writes += 1;
            if std::mem::replace(&mut of.age, Age::Fresh) == Age::Clean {
                let page = self.page_of(at);
                self.pages[page].dirty = true;
            }
        }
    }

    /// A write is done (`md_bitmap_endwrite`). `is_degraded`: the bit stays, for a member that comes back.
    pub(crate) fn end(&mut self, offset: u64, len: u64, is_degraded: bool) {
        for at in self.chunks_of(offset, len) {
            self.chunks[at as usize].writes -= 1;
        }
        if !is_degraded {
            self.needs_note |= !std::mem::replace(&mut self.is_noted, true);
            self.all_clean = false;
        }
    }

    /// The write of a slot begins.
    pub(crate) fn begin_of(&mut self, slot: u32, offset: u64, len: u64) {
        let slot = slot as usize;
        if self.begun.len() <= slot {
            self.begun.resize(slot + 1, (0, 0));
        }
        self.begun[slot] = (offset, len);
        self.begin(offset, len);
    }

    /// The slot's write, if it has begun one, is done.
    pub(crate) fn end_of(&mut self, slot: u32, is_degraded: bool) {
        let Some(range) = self.begun.get_mut(slot as usize) else {
            return;
        };
        if let (offset, len @ 1..) = std::mem::take(range) {
            self.end(offset, len, is_degraded);
        }
    }

    /// A write to a copy waits until its thread lets its plug go, or until md's thread sends it.
    pub(crate) fn hold(&mut self, write: HeldWrite, by_md: bool) {
        match by_md {
            true => self.left_to_md.push(write),
            false => self.held.push(write),
        }
    }

    /// The writes that the thread that works has held, and the slot that it works for.
    pub(crate) fn take_held(&mut self) -> Option<(u32, Vec<HeldWrite>)> {
        let slot = self.held.first()?.slot;
        let spare = std::mem::take(&mut self.spare);
        Some((slot, std::mem::replace(&mut self.held, spare)))
    }

    /// The writes that are left to md's thread, unless it sleeps.
    pub(crate) fn take_left_to_md(&mut self) -> Option<Vec<HeldWrite>> {
        let sleeps = |of: &Sleep| matches!(of.who, Sleeper::Writes(None, _) | Sleeper::Superblocks);
        if self.left_to_md.is_empty() || self.sleeps.iter().any(sleeps) {
            return None;
        }
        let spare = std::mem::take(&mut self.spare);
        Some(std::mem::replace(&mut self.left_to_md, spare))
    }

    /// The memory of writes that have been sent.
    pub(crate) fn give_back(&mut self, mut sent: Vec<HeldWrite>) {
        sent.clear();
        if sent.capacity() > self.spare.capacity() {
            self.spare = sent;
        }
    }

    /// True if pages are to be written before writes go on.
    pub(crate) fn is_dirty(&self) -> bool {
        self.pages.iter().any(|page| page.dirty || page.needed)
    }

    /// Takes the pages that are to be written before writes go on (`md_bitmap_unplug`).
    pub(crate) fn take_dirty(&mut self) -> Pages {
        let mut found = Pages::default();
        for (number, page) in self.pages.iter_mut().enumerate() {
            if std::mem::take(&mut page.dirty) | std::mem::take(&mut page.needed) {
                page.pending = false;
                found.insert(number);
            }
        }
        found
    }

    /// Someone sleeps until pages are written: first those that are being written now, then these.
    pub(crate) fn sleep(&mut self, who: Sleeper, pages: Pages) {
        self.sleeps.push_back(Sleep {
            who,
            pages,
            is_awake: false,
        });
    }

    /// The pages of the sleeper that came last, if none is being written: they are written now. The others see that and
    /// sleep on (`md_super_wait`; `prepare_to_wait` puts who comes in front of the queue).
    pub(crate) fn take_pages(&mut self) -> Pages {
        if self.left > 0 {
            return Pages::default();
        }
        let waits = |of: &&mut Sleep| !of.pages.is_empty();
        let last = self.sleeps.iter_mut().rev().find(waits);
        last.map(|of| std::mem::take(&mut of.pages))
            .unwrap_or_default()
    }

    /// A page is on its way to a member.
    pub(crate) fn page_sent(&mut self) {
        self.left += 1;
    }

    /// A page is on a member: who sleeps for the last one is awake.
    pub(crate) fn page_done(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            for of in &mut self.sleeps {
                of.is_awake |= of.pages.is_empty();
            }
        }
    }

    /// The next sleeper that is awake.
    pub(crate) fn next_awake(&mut self) -> Option<Sleeper> {
        let at = self.sleeps.iter().position(|of| of.is_awake)?;
        self.sleeps.remove(at).map(|of| of.who)
    }

    /// True if there are bits to be cleared, now or later.
    pub(crate) fn has_to_look(&self) -> bool {
        !self.all_clean
    }

    /// True if md's thread has to wait with its look until the pages that are under way are written.
    pub(crate) fn puts_look_off(&mut self) -> bool {
        self.is_due = self.left > 0;
        self.is_due
    }

    /// True once if a look was put off and no page is under way any more.
    pub(crate) fn takes_look(&mut self) -> bool {
        self.left == 0 && std::mem::take(&mut self.is_due)
    }

    /// md's thread looks for bits that may be cleared; the pages that it has written (`md_bitmap_daemon_work`).
    pub(crate) fn look(&mut self) -> Pages {
        self.all_clean = true;
        for page in &mut self.pages {
            page.needed |= std::mem::take(&mut page.pending);
        }
        if std::mem::take(&mut self.needs_note)
            && let Some(first) = self.pages.first_mut()
        {
            first.needed = true;
        }
        for at in 0..self.chunks.len() {
            let of = &mut self.chunks[at];
            match of.age {
                Age::Clean => {}
                _ if of.writes > 0 => {}
                Age::Old => {
                    of.age = Age::Clean;
                    let page = self.page_of(at as u64);
                    if !self.pages[page].needed {
                        self.pages[page].pending = true;
                        self.all_clean = false;
                    }
                }
                Age::Fresh => {
                    of.age = Age::Old;
                    self.all_clean = false;
                }
            }
        }
        let mut found = Pages::default();
        for (number, page) in self.pages.iter_mut().enumerate() {
            // Who waits for this page has it written, and those behind it.
            if page.dirty {
                break;
            }
            if std::mem::take(&mut page.needed) {
                found.insert(number);
            }
        }
        found
    }

    /// The array becomes active: the first page says since when.
    pub(crate) fn becomes_active(&mut self) {
        self.is_noted = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn written(bitmap: &mut Bitmap) -> Vec<u32> {
        bitmap.take_dirty().collect()
    }

    #[test]
    fn only_the_first_write_of_a_chunk_has_its_page_written() {
        let mut bitmap = Bitmap::new(MIB, 64 * MIB);
        bitmap.begin(0, 4096);
        assert_eq!(written(&mut bitmap), [0]);
        bitmap.begin(4096, 4096);
        assert!(written(&mut bitmap).is_empty());
        // The end of a write reaches into the next chunk.
        bitmap.begin(MIB - 4096, 8192);
        assert_eq!(written(&mut bitmap), [0]);
    }

    #[test]
    fn a_bit_is_cleared_at_the_second_look_and_its_page_written_at_the_third() {
        let mut bitmap = Bitmap::new(MIB, 64 * MIB);
        bitmap.begin(0, 4096);
        written(&mut bitmap);
        assert!(!bitmap.has_to_look());
        bitmap.end(0, 4096, false);
        let mut looks = Vec::new();
        while bitmap.has_to_look() {
            looks.push(bitmap.look().count());
        }
        // The first notes that the array is active (`need_sync`).
        assert_eq!(looks, [1, 0, 1]);
        bitmap.begin(0, 4096);
        assert_eq!(written(&mut bitmap), [0]);
    }

    #[test]
    fn a_chunk_that_is_written_again_and_again_keeps_its_bit() {
        let mut bitmap = Bitmap::new(MIB, 64 * MIB);
        for round in 0..20 {
            bitmap.begin(0, 4096);
            assert_eq!(written(&mut bitmap).len(), usize::from(round == 0));
            bitmap.end(0, 4096, false);
            let _ = bitmap.look();
        }
    }

    #[test]
    fn a_degraded_array_keeps_its_bits() {
        let mut bitmap = Bitmap::new(MIB, 64 * MIB);
        bitmap.begin(0, 4096);
        bitmap.end(0, 4096, true);
        assert!(!bitmap.has_to_look());
    }

    #[test]
    fn a_large_bitmap_has_several_pages_and_the_last_is_shorter() {
        // 40000 bits behind 256 bytes: 4096 and 1160 bytes.
        let mut bitmap = Bitmap::new(MIB, 40_000 * MIB);
        bitmap.begin(0, 4096);
        bitmap.begin(39_999 * MIB, 4096);
        assert_eq!(written(&mut bitmap), [0, 1]);
        assert_eq!(bitmap.place(0), (8, 8));
        assert_eq!(bitmap.place(1), (16, 3));
    }

    #[test]
    fn who_comes_last_has_its_pages_written_next() {
        let mut bitmap = Bitmap::new(MIB, 64 * MIB);
        bitmap.sleep(Sleeper::Superblocks, Pages::FIRST);
        for _ in bitmap.take_pages() {
            bitmap.page_sent();
        }
        bitmap.sleep(Sleeper::Writes(Some(1), Vec::new()), Pages::FIRST);
        bitmap.sleep(Sleeper::Writes(Some(2), Vec::new()), Pages::FIRST);
        assert!(bitmap.take_pages().is_empty(), "others are being written");
        bitmap.page_done();
        assert!(matches!(bitmap.next_awake(), Some(Sleeper::Superblocks)));
        assert!(bitmap.next_awake().is_none());
        assert_eq!(bitmap.take_pages(), Pages::FIRST);
        bitmap.page_sent();
        bitmap.page_done();
        let awake = bitmap.next_awake();
        assert!(matches!(awake, Some(Sleeper::Writes(Some(2), _))));
    }
}
