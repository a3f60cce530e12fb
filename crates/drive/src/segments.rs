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
    pub(crate) start: u64,
    pub(crate) end: u64,
    content: Content,
    /// Its last command was a write.
    pub(crate) written: bool,
    /// Rises with use.
    stamp: u64,
    /// Its rank for a read whose first block no segment has: by this alone most reads choose.
    rank: u64,
}

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

    /// False if it does not have a block. A range that ends before it begins counts as having it: the longer way decides.
    #[inline]
    fn may_have(&self, lbn: u64) -> bool {
        lbn.wrapping_sub(self.start) < self.end.wrapping_sub(self.start)
    }

    fn set_rank(&mut self, index: usize) {
        self.rank = ranked(self.value_without(), self.stamp, index);
    }
}

/// One number, so that the choice among many segments is a maximum: the value, then the age, then which it is.
fn ranked(value: u64, stamp: u64, index: usize) -> u64 {
    value << VALUE_SHIFT | (STAMP_MASK - stamp) << INDEX_BITS | index as u64
}

/// The segment of the highest rank; `None` if its value is 0.
fn taken(rank: u64) -> Option<usize> {
    (rank >> VALUE_SHIFT > 0).then_some((rank & u64::from(MOST - 1)) as usize)
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

/// Bits of an index, and of a stamp: more than the commands of any run.
const INDEX_BITS: u32 = 10;
const STAMP_BITS: u32 = 50;
const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;
const VALUE_SHIFT: u32 = INDEX_BITS + STAMP_BITS;

/// Most segments of a buffer.
pub(crate) const MOST: u32 = 1 << INDEX_BITS;

/// The buffer.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    segments: Vec<Segment>,
    size: u64,
    stamp: u64,
    caching: bool,
    hits_on_written: bool,
    /// How far ahead of read-ahead a read may begin to count as found; `None` for not at all.
    ahead: Option<u64>,
}

impl Segments {
    pub(crate) fn new(buffer: &crate::params::Buffer) -> Self {
        let empty = Segment {
            start: 0,
            end: 0,
            content: Content::Empty,
            written: false,
            stamp: 0,
            rank: 0,
        };
        let count = buffer.segments.max(1);
        let ahead = buffer.almost_hits.then_some(u64::from(buffer.forward_gap));
        let segments: Vec<_> = (0..count)
            .map(|index| {
                let mut segment = Segment {
                    stamp: u64::from(index),
                    ..empty
                };
                segment.set_rank(index as usize);
                segment
            })
            .collect();
        Self {
            segments,
            size: u64::from(buffer.segment_blocks.max(1)),
            stamp: u64::from(count),
            caching: buffer.caching,
            hits_on_written: buffer.hits_on_written,
            ahead,
        }
    }

    pub(crate) fn get(&mut self, index: usize) -> &mut Segment {
        &mut self.segments[index]
    }

    /// First block of a segment.
    pub(crate) fn start(&self, index: usize) -> u64 {
        self.segments[index].start
    }

    /// Brings the segment's end to `end` and lets the oldest blocks go if it overflows.
    pub(crate) fn fill(&mut self, index: usize, end: u64) {
        let size = self.size;
        let segment = &mut self.segments[index];
        segment.end = end;
        segment.start = segment.start.max(end.saturating_sub(size));
    }

    /// True if the segment was the last one used.
    pub(crate) fn is_newest(&self, index: usize) -> bool {
        self.segments[index].stamp + 1 == self.stamp
    }

    pub(crate) fn touch(&mut self, index: usize) {
        self.segments[index].stamp = self.stamp;
        self.stamp += 1;
        self.segments[index].set_rank(index);
    }

    pub(crate) fn set_content(&mut self, index: usize, content: Content) {
        self.segments[index].content = content;
        self.segments[index].set_rank(index);
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
        let (mut found, mut best) = (false, 0);
        for segment in &self.segments {
            found |= segment.may_have(lbn);
            best = best.max(segment.rank);
        }
        if found || self.is_near(lbn, reading) {
            let upcoming = reading.map_or(0, |(_, upcoming)| upcoming);
            return self.for_read_there(lbn, blocks, upcoming);
        }
        taken(best).map(|index| (index, Hit::None))
    }

    /// The segment that has all blocks of a read, if that is the one for it.
    #[inline]
    pub(crate) fn with_all(&self, lbn: u64, blocks: u64) -> Option<usize> {
        if !self.segments.iter().any(|one| one.may_have(lbn)) {
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
        let mut best = (0, Hit::None);
        for (index, segment) in self.segments.iter().enumerate() {
            let (value, hit) = self.value_of(segment, lbn, blocks, upcoming);
            let rank = ranked(value, segment.stamp, index);
            if rank > best.0 {
                best = (rank, hit);
            }
        }
        taken(best.0).map(|index| (index, best.1))
    }

    /// The value of a segment for a read; 0: it must not be taken.
    fn value_of(&self, segment: &Segment, lbn: u64, blocks: u64, upcoming: u64) -> (u64, Hit) {
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
        let mut best: Option<(i32, u64, usize)> = None;
        for (index, segment) in self.segments.iter().enumerate() {
            let value = match segment.content {
                Content::Clean if lbn < segment.end && segment.start < lbn + blocks => 4,
                Content::Empty => 3,
                Content::Clean => 2,
                Content::Reading => 1,
                Content::Writing => continue,
            };
            if best.is_none_or(|(most, oldest, _)| {
                value > most || (value == most && segment.stamp < oldest)
            }) {
                best = Some((value, segment.stamp, index));
            }
        }
        best.map(|(_, _, index)| index)
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
                segment.set_rank(index);
            }
        }
    }

    /// Updates a segment whose command or read-ahead is over.
    pub(crate) fn settle(&mut self, index: usize) {
        let keep = self.caching && (self.hits_on_written || !self.segments[index].written);
        self.set_content(index, if keep { Content::Clean } else { Content::Empty });
    }
}
