//! The segments of the buffer: which blocks are there, and which segment a command gets.
//!
//! The order of preference is that of DiskSim's buffer (manual, section on disk caches); among equals the segment that was
//! used longest ago.

/// The content of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing.
    Empty,
    /// Blocks that are on the medium too.
    Clean,
    /// Blocks that are being read.
    Reading,
    /// Blocks on their way to the medium.
    Writing,
}

/// One segment: the blocks from `start` up to but not including `end`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    start: u64,
    end: u64,
    content: Content,
    /// Its last command was a write.
    written: bool,
    /// The segments used just before it and just after it; `NONE` at the ends.
    older: u16,
    newer: u16,
}

/// No segment.
const NONE: u16 = u16::MAX;

/// Most segments of a buffer.
pub(crate) const MOST: u32 = 1024;

impl Segment {
    /// Its value for a read whose first block it does not have.
    fn value_without(&self) -> u64 {
        match self.content {
            Content::Empty => 3,
            Content::Clean => 2,
            Content::Reading => 1,
            Content::Writing => 0,
        }
    }
}

/// Where segments lie, so coarsely that a processor compares several of them at once: the number of blocks is divided by a power
/// of two.
#[derive(Debug, Clone)]
struct Spans {
    shift: u32,
    firsts: Vec<u32>,
    /// 0 for a segment without a block.
    lengths: Vec<u32>,
}

impl Spans {
    fn new(segments: usize, blocks: u64) -> Spans {
        Spans {
            shift: (u64::BITS - blocks.leading_zeros()).saturating_sub(u32::BITS - 1),
            firsts: vec![0; segments],
            lengths: vec![0; segments],
        }
    }

    #[inline]
    fn set(&mut self, index: usize, start: u64, end: u64) {
        let first = (start >> self.shift) as u32;
        self.firsts[index] = first;
        self.lengths[index] = match start < end {
            true => ((end - 1) >> self.shift) as u32 - first + 1,
            false => 0,
        };
    }

    /// False if no segment has a block.
    #[inline]
    fn may_have(&self, lbn: u64) -> bool {
        let at = (lbn >> self.shift) as u32;
        let mut found = 0;
        for (first, length) in self.firsts.iter().zip(&self.lengths) {
            found |= u32::from(at.wrapping_sub(*first) < *length);
        }
        found != 0
    }
}

/// True if a block is no farther behind the end of a segment than read-ahead may be from it.
fn is_ahead(segment: &Segment, lbn: u64, gap: u64) -> bool {
    lbn >= segment.end && lbn - segment.end <= gap
}

/// How much of a read is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hit {
    /// All of it.
    Whole,
    /// Its first block at least, or read-ahead is about to come to it.
    Partial,
    /// Its first block is not there.
    None,
}

/// The buffer.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    segments: Vec<Segment>,
    spans: Spans,
    /// The one that was used longest ago, and the last one used.
    oldest: u16,
    newest: u16,
    /// So many are empty.
    empty: u32,
    size: u64,
    caching: bool,
    hits_on_written: bool,
    hits_within: u64,
    /// How far ahead of read-ahead a read may begin to count as found; `None` for not at all.
    ahead: Option<u64>,
}

impl Segments {
    /// For a drive of so many blocks.
    pub(crate) fn new(buffer: &crate::params::Buffer, blocks: u64) -> Self {
        let count = buffer.segments.clamp(1, MOST) as u16;
        let ahead = buffer.almost_hits.then_some(u64::from(buffer.forward_gap));
        let segments = (0..count).map(|index| Segment {
            start: 0,
            end: 0,
            content: Content::Empty,
            written: false,
            older: index.checked_sub(1).unwrap_or(NONE),
            newer: if index + 1 < count { index + 1 } else { NONE },
        });
        Self {
            segments: segments.collect(),
            spans: Spans::new(usize::from(count), blocks),
            oldest: 0,
            newest: count - 1,
            empty: u32::from(count),
            size: u64::from(buffer.segment_blocks.max(1)),
            caching: buffer.caching,
            hits_on_written: buffer.hits_on_written,
            hits_within: buffer.hits_within,
            ahead,
        }
    }

    /// First block of a segment.
    #[inline]
    pub(crate) fn start(&self, index: usize) -> u64 {
        self.segments[index].start
    }

    /// The block after the last of a segment.
    #[inline]
    pub(crate) fn end(&self, index: usize) -> u64 {
        self.segments[index].end
    }

    /// The segment has these blocks.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, start: u64, end: u64) {
        (self.segments[index].start, self.segments[index].end) = (start, end);
        self.spans.set(index, start, end);
    }

    /// Brings the segment's end to `end` and lets the oldest blocks go if it overflows.
    #[inline]
    pub(crate) fn fill(&mut self, index: usize, end: u64) {
        let Segment {
            start, end: before, ..
        } = self.segments[index];
        let first = start.max(end.saturating_sub(self.size));
        if (first, end) != (start, before) {
            self.set(index, first, end);
        }
    }

    /// True if the last command of the segment was a write.
    pub(crate) fn is_written(&self, index: usize) -> bool {
        self.segments[index].written
    }

    /// The last command of the segment is a write, or not.
    #[inline]
    pub(crate) fn set_written(&mut self, index: usize, written: bool) {
        self.segments[index].written = written;
    }

    /// True if the segment was the last one used.
    pub(crate) fn is_newest(&self, index: usize) -> bool {
        index == usize::from(self.newest)
    }

    /// The segment is the last one used.
    #[inline]
    pub(crate) fn touch(&mut self, index: usize) {
        if self.is_newest(index) {
            return;
        }
        let Segment { older, newer, .. } = self.segments[index];
        match older {
            NONE => self.oldest = newer,
            older => self.segments[usize::from(older)].newer = newer,
        }
        self.segments[usize::from(newer)].older = older;
        self.segments[usize::from(self.newest)].newer = index as u16;
        (self.segments[index].older, self.segments[index].newer) = (self.newest, NONE);
        self.newest = index as u16;
    }

    /// All segments, the one that was used longest ago first.
    fn by_age(&self) -> impl Iterator<Item = (usize, &Segment)> {
        let mut at = self.oldest;
        std::iter::from_fn(move || {
            let index = usize::from(at);
            let segment = self.segments.get(index)?;
            at = segment.newer;
            Some((index, segment))
        })
    }

    pub(crate) fn set_content(&mut self, index: usize, content: Content) {
        let before = std::mem::replace(&mut self.segments[index].content, content);
        self.empty += u32::from(content == Content::Empty);
        self.empty -= u32::from(before == Content::Empty);
    }

    /// The segment for a read of `blocks` blocks from `lbn` on. `reading`: the segment into which read-ahead goes, the only one
    /// whose content is `Reading`, and the block behind the last that it will read.
    #[inline]
    pub(crate) fn for_read(
        &self,
        lbn: u64,
        blocks: u64,
        reading: Option<(usize, u64)>,
    ) -> Option<(usize, Hit)> {
        if self.spans.may_have(lbn) || self.is_near(lbn, reading) {
            let upcoming = reading.map_or(0, |(_, upcoming)| upcoming);
            return self.for_read_there(lbn, blocks, upcoming);
        }
        self.for_others().map(|index| (index, Hit::None))
    }

    /// The segment for a read whose first block none has: as `value_without` has it, the one that was used longest ago.
    #[inline]
    fn for_others(&self) -> Option<usize> {
        let oldest = |content| {
            let mut all = self.by_age();
            all.find(|(_, segment)| segment.content == content)
        };
        let found = match self.empty {
            0 => oldest(Content::Clean).or_else(|| oldest(Content::Reading)),
            _ => oldest(Content::Empty),
        };
        found.map(|(index, _)| index)
    }

    /// The segment that has all blocks of a read, if that is the one for it.
    #[inline]
    pub(crate) fn with_all(&self, lbn: u64, blocks: u64) -> Option<usize> {
        if !self.spans.may_have(lbn) {
            return None;
        }
        match self.for_read_there(lbn, blocks, 0) {
            Some((index, Hit::Whole)) => Some(index),
            _ => None,
        }
    }

    /// True if read-ahead is about to come to a block.
    #[inline]
    fn is_near(&self, lbn: u64, reading: Option<(usize, u64)>) -> bool {
        let (Some(gap), Some((index, upcoming))) = (self.ahead, reading) else {
            return false;
        };
        debug_assert!(
            self.segments
                .iter()
                .enumerate()
                .all(|(at, one)| at == index || one.content != Content::Reading)
        );
        let segment = &self.segments[index];
        let is_reading = segment.content == Content::Reading;
        is_reading && lbn < upcoming && is_ahead(segment, lbn, gap)
    }

    /// The same where a segment may have the first block, or come to it.
    fn for_read_there(&self, lbn: u64, blocks: u64, upcoming: u64) -> Option<(usize, Hit)> {
        let (mut most, mut best) = (0, None);
        for (index, segment) in self.by_age() {
            let (value, hit) = self.value_of(segment, lbn, blocks, upcoming);
            if value > most {
                (most, best) = (value, Some((index, hit)));
            }
        }
        best
    }

    /// The value of a segment for a read; 0: it must not be taken.
    fn value_of(&self, segment: &Segment, lbn: u64, blocks: u64, upcoming: u64) -> (u64, Hit) {
        let skips = lbn.wrapping_sub(segment.start);
        if skips > self.hits_within && !segment.written {
            return (segment.value_without(), Hit::None);
        }
        if segment.content != Content::Empty && (segment.start..segment.end).contains(&lbn) {
            let value = match segment.content {
                _ if !self.caching || (segment.written && !self.hits_on_written) => {
                    return (0, Hit::None);
                }
                Content::Writing => 10,
                Content::Reading => 9,
                _ => 8,
            };
            return if lbn + blocks <= segment.end {
                (value, Hit::Whole)
            } else {
                (value - 4, Hit::Partial)
            };
        }
        let near = self.ahead.is_some_and(|gap| is_ahead(segment, lbn, gap));
        if segment.content == Content::Reading && lbn < upcoming && near {
            return (5, Hit::Partial);
        }
        (segment.value_without(), Hit::None)
    }

    /// The segment for a write.
    pub(crate) fn for_write(&self, lbn: u64, blocks: u64) -> Option<usize> {
        let (mut most, mut best) = (0, None);
        for (index, segment) in self.by_age() {
            let value = match segment.content {
                Content::Clean if lbn < segment.end && segment.start < lbn + blocks => 4,
                _ => segment.value_without(),
            };
            if value > most {
                (most, best) = (value, Some(index));
            }
        }
        best
    }

    /// A write makes what segments hold of its blocks stale, except for those that take its data over.
    pub(crate) fn overwrite(&mut self, lbn: u64, blocks: u64, except: [Option<usize>; 2]) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if !except.contains(&Some(index))
                && segment.content == Content::Clean
                && lbn < segment.end
                && segment.start < lbn + blocks
            {
                segment.content = Content::Empty;
                self.empty += 1;
            }
        }
    }

    /// Updates a segment whose command or read-ahead is over.
    pub(crate) fn settle(&mut self, index: usize) {
        let keep = self.caching && (self.hits_on_written || !self.segments[index].written);
        self.set_content(index, if keep { Content::Clean } else { Content::Empty });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Buffer;

    const SEGMENTS: usize = 6;
    const SIZE: u32 = 64;

    /// The segment of the highest value, among equals the one that was used longest ago, looked for one by one.
    fn chosen(of: &Segments, used: &[u64], value: impl Fn(&Segment) -> u64) -> Option<usize> {
        let worth = |index: &usize| (value(&of.segments[*index]), u64::MAX - used[*index]);
        let best = (0..SEGMENTS).max_by_key(worth)?;
        (value(&of.segments[best]) > 0).then_some(best)
    }

    #[test]
    fn the_short_way_chooses_as_the_long_one() {
        // On a drive so large that spans are coarse, and on a small one.
        for base in [0, (1 << 36) - 5000] {
            let buffer = Buffer {
                segments: SEGMENTS as u32,
                segment_blocks: SIZE,
                caching: true,
                ..Buffer::default()
            };
            let mut of = Segments::new(&buffer, base + 5000);
            let mut used: Vec<u64> = (0..SEGMENTS as u64).collect();
            let mut state = 7_u64;
            let (mut hits, mut misses) = (0, 0);
            for step in 0..50_000_u64 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let (draw, lbn) = ((state >> 33) as usize, base + (state >> 40) % 4900);
                let (index, blocks) = (draw % SEGMENTS, 1 + (draw / 64 % 40) as u64);
                match draw / 8 % 8 {
                    0 => of.set(index, lbn, lbn + blocks),
                    1 => of.fill(index, of.end(index).max(lbn).min(of.end(index) + 9)),
                    2 => {
                        of.touch(index);
                        used[index] = SEGMENTS as u64 + step;
                    }
                    3 => of.set_content(index, Content::Clean),
                    4 => of.set_content(index, Content::Writing),
                    5 => of.set_content(index, Content::Empty),
                    6 => of.overwrite(lbn, blocks, [Some(index), None]),
                    _ => of.settle(index),
                }
                let value = |segment: &Segment| of.value_of(segment, lbn, blocks, 0).0;
                let read = of.for_read(lbn, blocks, None);
                assert_eq!(read.map(|(index, _)| index), chosen(&of, &used, value));
                match read {
                    Some((_, Hit::None)) | None => misses += 1,
                    _ => hits += 1,
                }
                let value = |segment: &Segment| match segment.content {
                    Content::Clean if lbn < segment.end && segment.start < lbn + blocks => 4,
                    _ => segment.value_without(),
                };
                assert_eq!(of.for_write(lbn, blocks), chosen(&of, &used, value));
            }
            assert!(hits > 100 && misses > 100, "{hits} and {misses}");
        }
    }
}
