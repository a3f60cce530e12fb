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
    pub(crate) content: Content,
    /// Its last command was a write.
    pub(crate) written: bool,
    /// Rises with use.
    stamp: u64,
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

/// Bits of a stamp: more than the commands of any run.
const STAMP_BITS: u32 = 56;
const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;

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
        };
        let count = buffer.segments.max(1);
        let ahead = buffer.almost_hits.then_some(u64::from(buffer.forward_gap));
        Self {
            segments: (0..count)
                .map(|index| Segment {
                    stamp: u64::from(index),
                    ..empty
                })
                .collect(),
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
    }

    /// The segment for a read of `blocks` blocks from `lbn` on. `upcoming` is the block behind the last that is being
    /// read ahead.
    #[inline]
    pub(crate) fn for_read(&self, lbn: u64, blocks: u64, upcoming: u64) -> Option<(usize, Hit)> {
        let mut best = (0, 0, Hit::None);
        for (index, segment) in self.segments.iter().enumerate() {
            let found = (segment.start <= lbn) & (lbn < segment.end);
            let (value, hit) = if found | (segment.content == Content::Reading) {
                self.value_of(segment, lbn, blocks, upcoming)
            } else {
                let value = match segment.content {
                    Content::Empty => 3,
                    Content::Clean => 2,
                    Content::Reading | Content::Writing => 0,
                };
                (value, Hit::None)
            };
            // One number, so that the choice among many segments is no branch: the value, then the age.
            let rank = value << STAMP_BITS | (STAMP_MASK - segment.stamp);
            if rank > best.0 {
                best = (rank, index, hit);
            }
        }
        (best.0 > STAMP_MASK).then_some((best.1, best.2))
    }

    /// The value of a segment that has the first block of a read, or is being read; 0: it must not be taken, and is not.
    fn value_of(&self, segment: &Segment, lbn: u64, blocks: u64, upcoming: u64) -> (u64, Hit) {
        if segment.content == Content::Empty {
            return (3, Hit::None);
        }
        if (segment.start..segment.end).contains(&lbn) {
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
        let is_near = self
            .ahead
            .is_some_and(|gap| lbn >= segment.end && lbn - segment.end <= gap && lbn < upcoming);
        if is_near {
            (5, Hit::Partial)
        } else {
            (1, Hit::None)
        }
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
            }
        }
    }

    /// Updates a segment whose command or read-ahead is over.
    pub(crate) fn settle(&mut self, index: usize) {
        let keep = self.caching && (self.hits_on_written || !self.segments[index].written);
        self.segments[index].content = if keep { Content::Clean } else { Content::Empty };
    }
}
