//! The memory that requests read into and write from: one mapping a worker, aligned, resident before the
//! first request, on huge pages when large.
//!
//! Every slot has a place to read into, and a place to write from that is several requests long and filled
//! with random (or zero, or compressible) data once, before the run. A write takes the next part of it, and
//! a fresh random word is put at the start of each 4 KiB: no two blocks written are equal, so a target that
//! finds duplicates finds none, and a compressor sees repetitions only after the slot's whole place (1 MiB, less
//! only where more than 64 slots share the 64 MiB a worker may take). So a write costs one store for 4 KiB, not
//! the filling of 4 KiB.
//!
//! If reads are verified, a slot has a second place to read into: its next request need not wait for the check.
#![allow(unsafe_code)]

use std::io;

use spindle_verify::{SECTOR, Stamp};
use spindle_workload::ContentFiller;

/// Unit of content, bytes; the same as in `workload::content`.
const UNIT: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;
/// From this size on buffers ask for huge pages: a request of as many scattered pages has more segments than most
/// queues take (BLK_MAX_SEGMENTS, 128), so that the kernel would split it.
const LARGE: usize = 512 << 10;
/// Wanted length of a slot's place to write from, bytes.
const WRITE_PLACE: usize = 1 << 20;
/// Bound of all of them together unless the requests themselves need more, bytes.
const WRITE_POOL: usize = 64 << 20;
/// Bound of all second places to read into, bytes; there are none where more would be needed.
const SPARE_POOL: usize = 64 << 20;
/// The kernel takes at most 1 GiB a registered buffer (io_uring/rsrc.c, io_buffer_validate).
const REGISTER_MAX: usize = 1 << 30;

/// Requirements for the memory.
#[derive(Debug, Clone)]
pub(crate) struct BufferNeed {
    /// Slots.
    pub(crate) depth: usize,
    /// Largest request, bytes.
    pub(crate) max_len: usize,
    /// Alignment, bytes.
    pub(crate) align: usize,
    /// True if anything is read.
    pub(crate) reads: bool,
    /// True if reads are verified.
    pub(crate) looks: bool,
    /// True if anything is written.
    pub(crate) writes: bool,
    /// True if only zero bytes are written: then they need no stamps.
    pub(crate) zeroes: bool,
    /// Settings of writes that repeat earlier content.
    pub(crate) repeats: Option<spindle_workload::Repeats>,
    /// Seed of the stamps; different for every worker.
    pub(crate) stamp_seed: u64,
}

/// The memory of one worker.
#[derive(Debug)]
pub(crate) struct Buffers {
    map: Mapping,
    read: Row,
    /// Places to read into: one for each slot, or two.
    read_places: usize,
    write: Row,
    cursors: Vec<Cursor>,
    stamps: Option<Stamps>,
    repeater: Option<Repeater>,
    /// Verified content: the input of `seal` for each sector of the places to write from.
    prepared: Option<Box<[u32]>>,
    /// Areas as (start, length) for registration.
    areas: Vec<(usize, usize)>,
}

/// Equally long places, one for each slot.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// First byte.
    start: usize,
    /// Length of a place, bytes.
    place: usize,
    /// Number of the first registered buffer.
    area: u16,
    /// Places in a registered buffer, if they are not all in one.
    per_area: Option<usize>,
}

/// How far a slot has come in its place to write from.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    current: usize,
    next: usize,
}

impl Cursor {
    /// To the next part of `len` bytes of a place.
    #[inline(always)]
    fn advance(&mut self, len: usize, place: usize) {
        let fits = self.next + len <= place;
        self.current = if fits { self.next } else { 0 };
        self.next = self.current + len.next_multiple_of(UNIT);
    }
}

/// An address and the number of the registered buffer that contains it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) address: *mut u8,
    pub(crate) area: u16,
}

impl Buffers {
    /// Maps and fills the memory.
    pub(crate) fn new(need: &BufferNeed, filler: &mut ContentFiller) -> io::Result<Buffers> {
        let align = need.align.max(UNIT);
        let stride = need.max_len.max(1).next_multiple_of(align);
        let read_place = if need.reads { stride } else { 0 };
        let write_place = if need.writes {
            let fair = WRITE_PLACE.min(WRITE_POOL / need.depth.max(1));
            stride.max(fair / stride * stride)
        } else {
            0
        };
        let spare = need.looks && need.depth.saturating_mul(read_place) <= SPARE_POOL;
        let read_places = if spare { 2 * need.depth } else { need.depth };
        let overflow = || io::Error::from_raw_os_error(libc::ENOMEM);
        let total = read_places
            .checked_mul(read_place)
            .zip(need.depth.checked_mul(write_place))
            .and_then(|(reads, writes)| reads.checked_add(writes))
            .ok_or_else(overflow)?;
        let writes_from = read_places * read_place;
        let mut map = Mapping::new(total, align)?;
        let mut areas = Vec::new();
        let read = Row::lay(&mut areas, 0, read_place, read_places);
        let write = Row::lay(&mut areas, writes_from, write_place, need.depth);
        let (to_read, to_write) = map.bytes().split_at_mut(writes_from);
        // Touched now, so that no page fault falls into the measurement.
        to_read.fill(0);
        filler.fill(to_write);
        let stamps = (need.writes && !need.zeroes).then_some(Stamps {
            counter: need.stamp_seed,
        });
        Ok(Buffers {
            map,
            read,
            read_places,
            write,
            cursors: vec![Cursor::default(); if need.writes { need.depth } else { 0 }],
            stamps,
            repeater: need
                .repeats
                .filter(|_| need.writes)
                .map(|repeats| Repeater::new(repeats, filler, need.stamp_seed)),
            prepared: None,
            areas,
        })
    }

    /// How many places to read into there are: those from the number of slots on are spare.
    pub(crate) fn read_places(&self) -> usize {
        self.read_places
    }

    /// The place into which slot `slot`, or a spare one, reads.
    #[inline(always)]
    pub(crate) fn read_place(&self, slot: usize) -> Place {
        let (offset, area) = self.read.at(slot);
        Place {
            address: self.map.at(offset),
            area,
        }
    }

    /// The place from which slot `slot` writes `len` bytes; `fresh` takes the next part and stamps it, otherwise it is
    /// the same as last time (the rest of a short write).
    #[inline]
    pub(crate) fn write_place(&mut self, slot: usize, len: usize, fresh: bool) -> Place {
        let (start, area) = self.write.at(slot);
        // Verified content is in place before: see `seal`.
        let fresh = fresh && self.prepared.is_none();
        let cursor = &mut self.cursors[slot];
        if fresh && let Some(repeater) = &mut self.repeater {
            repeater.next(&mut self.map, cursor, (start, self.write.place, len));
            if let (Some(stamps), Next::Stamped) = (&mut self.stamps, repeater.last) {
                self.map.stamp(start + cursor.current, len, stamps);
            }
        } else if fresh {
            cursor.advance(len, self.write.place);
            if let Some(stamps) = &mut self.stamps {
                self.map.stamp(start + cursor.current, len, stamps);
            }
        }
        Place {
            address: self.map.at(start + cursor.current),
            area,
        }
    }

    /// From now on writes are verified: `seal` is called before each write.
    pub(crate) fn prepare_seals(&mut self) {
        let length = self.write.place * self.cursors.len();
        let mut prepared = vec![0; length / SECTOR].into_boxed_slice();
        spindle_verify::prepare(self.map.part(self.write.start, length), &mut prepared);
        self.prepared = Some(prepared);
    }

    /// Takes the next part of the slot's place to write from and stamps each block of `unit` bytes of it;
    /// `stamp` gives the stamp of the block with a number.
    #[inline]
    pub(crate) fn seal(
        &mut self,
        slot: usize,
        len: usize,
        unit: usize,
        stamp: impl Fn(usize) -> Stamp,
    ) {
        let Some(prepared) = &self.prepared else {
            return;
        };
        let (start, _) = self.write.at(slot);
        let cursor = &mut self.cursors[slot];
        cursor.advance(len, self.write.place);
        let from = start + cursor.current;
        let prepared = &prepared[(from - self.write.start) / SECTOR..];
        let blocks = self.map.part(from, len).chunks_exact_mut(unit);
        for (index, (block, prepared)) in blocks.zip(prepared.chunks(unit / SECTOR)).enumerate() {
            spindle_verify::seal_prepared(block, prepared, &stamp(index));
        }
    }

    /// The bytes read into the place of a slot, or a spare one; it must have nothing outstanding.
    #[inline]
    pub(crate) fn was_read(&mut self, slot: usize, len: usize) -> &[u8] {
        let (start, _) = self.read.at(slot);
        self.map.part(start, len)
    }

    /// Bytes for a test to put into a place.
    #[cfg(test)]
    pub(crate) fn read_into(&mut self, slot: usize, content: &[u8]) {
        let (start, _) = self.read.at(slot);
        self.map.part(start, content.len()).copy_from_slice(content);
    }

    /// The buffers to register with a ring, in order of the area numbers.
    pub(crate) fn areas(&self) -> Vec<libc::iovec> {
        let vector = |&(start, length): &(usize, usize)| libc::iovec {
            iov_base: self.map.at(start).cast(),
            iov_len: length,
        };
        self.areas.iter().map(vector).collect()
    }
}

impl Row {
    /// Lays `count` places of `place` bytes from `start` on, so that none crosses a registered buffer's end.
    fn lay(areas: &mut Vec<(usize, usize)>, start: usize, place: usize, count: usize) -> Row {
        let area = areas.len() as u16;
        let per_area = (REGISTER_MAX / place.max(1)).max(1);
        if place > 0 {
            for first in (0..count).step_by(per_area) {
                let places = per_area.min(count - first);
                areas.push((start + first * place, places * place));
            }
        }
        Row {
            start,
            place,
            area,
            per_area: (count > per_area).then_some(per_area),
        }
    }

    /// Offset and registered buffer of a slot's place.
    #[inline(always)]
    fn at(&self, slot: usize) -> (usize, u16) {
        let area = match self.per_area {
            None => self.area,
            Some(per_area) => self.area + (slot / per_area) as u16,
        };
        (self.start + slot * self.place, area)
    }
}

/// Draws the writes that repeat earlier content.
#[derive(Debug)]
struct Repeater {
    /// Share of such writes, in units of 2^-64.
    chance: u64,
    words: Stamps,
    /// Number of contents for such writes, with the filler that makes them; none: each repeats the slot's last write.
    set: Option<(u64, ContentFiller)>,
    last: Next,
}

/// The content of a drawn write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The next part of the slot's place, to be stamped.
    Stamped,
    /// The bytes already in the place.
    Ready,
}

impl Repeater {
    fn new(repeats: spindle_workload::Repeats, filler: &ContentFiller, seed: u64) -> Repeater {
        Repeater {
            // 2^64 itself becomes the largest number: of 2^64 draws one is not a repeat.
            chance: (repeats.fraction * 2f64.powi(64)) as u64,
            words: Stamps { counter: !seed },
            set: repeats.set.map(|count| (u64::from(count), filler.clone())),
            last: Next::Ready,
        }
    }

    #[inline(never)]
    fn next(&mut self, map: &mut Mapping, cursor: &mut Cursor, place: (usize, usize, usize)) {
        let (start, place, len) = place;
        let again = self.words.next() < self.chance;
        if let Some((count, filler)) = &mut self.set {
            cursor.advance(len, place);
            let part = map.part(start + cursor.current, len);
            if again {
                let number = (u128::from(self.words.next()) * u128::from(*count)) >> 64;
                filler.numbered(number as u64).fill(part);
            } else {
                filler.fill(part);
            }
            self.last = Next::Ready;
        } else if again && cursor.next > 0 && cursor.current + len <= place {
            self.last = Next::Ready;
        } else {
            cursor.advance(len, place);
            self.last = Next::Stamped;
        }
    }
}

/// Random words, one for each 4 KiB written: splitmix64 over a counter, so none repeats within 2^64.
#[derive(Debug)]
struct Stamps {
    counter: u64,
}

impl Stamps {
    #[inline]
    fn next(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.counter ^ (self.counter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// An anonymous mapping.
#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    mapped: usize,
    /// First aligned byte, as an offset from `base`.
    skip: usize,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone; moving the value to another thread moves the right to
// use it.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(length: usize, align: usize) -> io::Result<Mapping> {
        // A huge page is given only where a whole one fits.
        let huge = length >= LARGE;
        let (align, room) = if huge {
            (
                align.max(HUGE_PAGE),
                length.checked_next_multiple_of(HUGE_PAGE),
            )
        } else {
            (align, Some(length.max(1)))
        };
        let mapped = room
            .and_then(|room| room.checked_add(align))
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if huge {
            // SAFETY: advice on our own mapping; a refusal changes nothing.
            unsafe { libc::madvise(base, mapped, libc::MADV_HUGEPAGE) };
        }
        let base = base.cast::<u8>();
        let skip = base.addr().next_multiple_of(align) - base.addr();
        Ok(Mapping {
            base,
            mapped,
            skip,
            length,
        })
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.part(0, self.length)
    }

    /// Bytes that no outstanding request uses: none was issued yet, or they are of a slot that has none.
    #[inline(always)]
    fn part(&mut self, offset: usize, len: usize) -> &mut [u8] {
        assert!(offset <= self.length && len <= self.length - offset);
        // SAFETY: `skip + length` is within the mapping, which is readable and writable; no outstanding request uses these
        // bytes, as every caller makes sure.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(self.skip + offset), len) }
    }

    #[inline(always)]
    fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset <= self.length);
        // SAFETY: places are laid out within the mapping (`lay`), so the sum stays inside it.
        unsafe { self.base.add(self.skip + offset) }
    }

    /// Puts a word at the start of each unit of `offset..offset + len`.
    #[inline]
    fn stamp(&mut self, offset: usize, len: usize, stamps: &mut Stamps) {
        let mut at = offset;
        while at + 8 <= offset + len {
            let word = stamps.next();
            // SAFETY: `at + 8` is within the slot's place; the kernel does not use it, as the slot's
            // last request is done.
            unsafe { self.at(at).cast::<u64>().write_unaligned(word) };
            at += UNIT;
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, used by no one else: a worker that leaves requests behind in the kernel
        // forgets its buffers instead of dropping them.
        unsafe { libc::munmap(self.base.cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_workload::Content;
    use std::collections::HashSet;

    fn buffers(depth: usize, max_len: usize, content: Content) -> Buffers {
        let need = BufferNeed {
            depth,
            max_len,
            align: 512,
            reads: true,
            looks: true,
            writes: true,
            zeroes: content == Content::Zero,
            repeats: None,
            stamp_seed: 7,
        };
        Buffers::new(&need, &mut ContentFiller::new(content, 0, 0, 1)).expect("memory")
    }

    fn written(buffers: &mut Buffers, slot: usize, len: usize) -> Vec<u8> {
        let place = buffers.write_place(slot, len, true);
        // SAFETY: the place is `len` bytes long and nobody writes to it now.
        unsafe { std::slice::from_raw_parts(place.address, len) }.to_vec()
    }

    #[test]
    fn no_block_is_written_twice() {
        let mut buffers = buffers(2, 8192, Content::Random);
        let mut seen = HashSet::new();
        for round in 0..2000 {
            for block in written(&mut buffers, round % 2, 8192).chunks(4096) {
                assert!(seen.insert(block.to_vec()));
            }
        }
    }

    #[test]
    fn neighbouring_writes_share_no_long_part() {
        let mut buffers = buffers(1, 4096, Content::Random);
        let mut seen = HashSet::new();
        for _ in 0..256 {
            for word in written(&mut buffers, 0, 4096).chunks(64) {
                assert!(seen.insert(word.to_vec()), "repeats within 1 MiB");
            }
        }
    }

    #[test]
    fn zero_content_stays_zero() {
        let mut buffers = buffers(1, 4096, Content::Zero);
        for _ in 0..1000 {
            assert!(written(&mut buffers, 0, 4096).iter().all(|&byte| byte == 0));
        }
    }

    fn repeating(fraction: f64, set: Option<u32>) -> (usize, usize) {
        let need = BufferNeed {
            depth: 1,
            max_len: 4096,
            align: 512,
            reads: false,
            looks: false,
            writes: true,
            zeroes: false,
            repeats: Some(spindle_workload::Repeats { fraction, set }),
            stamp_seed: 7,
        };
        let mut filler = ContentFiller::new(Content::Random, 0, 0, 1);
        let mut buffers = Buffers::new(&need, &mut filler).expect("memory");
        let mut seen = HashSet::new();
        let again = (0..4000).filter(|_| !seen.insert(written(&mut buffers, 0, 4096)));
        (again.count(), seen.len())
    }

    #[test]
    fn as_many_writes_as_asked_repeat_what_was_written_before() {
        let (again, _) = repeating(0.3, None);
        assert!((1050..1350).contains(&again), "{again} of 4000");
        let (again, different) = repeating(1.0, None);
        assert_eq!((again, different), (3999, 1));
        // 1200 draws out of 10: all of them but the first of each are repeats.
        let (again, _) = repeating(0.3, Some(10));
        assert!((1040..1340).contains(&again), "{again} of 4000");
        let (again, different) = repeating(1.0, Some(10));
        assert_eq!((again, different), (3990, 10));
    }

    #[test]
    fn places_of_slots_do_not_overlap_and_are_aligned() {
        let mut buffers = buffers(64, 5000, Content::Random);
        let mut starts = Vec::new();
        for slot in 0..64 {
            starts.push(buffers.read_place(slot).address.addr());
            starts.push(buffers.read_place(64 + slot).address.addr());
            starts.push(buffers.write_place(slot, 5000, true).address.addr());
        }
        starts.sort_unstable();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 5000));
        assert!(starts.iter().all(|start| start % 4096 == 0));
    }

    #[test]
    fn the_rest_of_a_short_write_comes_from_the_same_place() {
        let mut buffers = buffers(1, 4096, Content::Random);
        let first = buffers.write_place(0, 4096, true);
        let again = buffers.write_place(0, 4096, false);
        assert_eq!(first.address, again.address);
    }
}
