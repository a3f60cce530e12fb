//! Where the next request lies.

use std::ops::Range;

use crate::rng::{Chance, Rng};
use crate::scatter::Scatter;
use crate::sizer::Sizer;
use crate::spec::{Pattern, Stream};
use crate::stream::StreamError;
use crate::zipf::Zipf;

/// Default alignment of streams whose sizes vary, bytes: at least a sector.
const SECTOR: u64 = 512;

/// Offsets of one worker.
#[derive(Debug, Clone)]
pub(crate) enum Walk {
    Sequential(Front),
    Strided {
        front: Front,
        stride: u64,
    },
    Uniform {
        places: Places,
        rng: Rng,
    },
    Zipf {
        places: Places,
        zipf: Zipf,
        scatter: Scatter,
        rng: Rng,
    },
    HotSet {
        places: Places,
        hot: u64,
        access: Chance,
        scatter: Scatter,
        rng: Rng,
    },
    Runs {
        front: Front,
        places: Places,
        jump: Chance,
        rng: Rng,
    },
}

impl Walk {
    pub(crate) fn new(
        stream: &Stream,
        worker: u32,
        sizer: &Sizer,
        region: Range<u64>,
        block: u32,
        rng: Rng,
        scatter_seed: impl Fn() -> u64,
    ) -> Result<Walk, StreamError> {
        let align = alignment(stream, sizer, block)?;
        let places = Places::new(region.clone(), align, sizer.max())?;
        let front = |part: Range<u64>| Front::new(part, align, sizer);
        Ok(match stream.pattern {
            Pattern::Sequential => Walk::Sequential(front(part(
                region,
                worker,
                stream.workers,
                align,
                sizer.max(),
            )?)),
            Pattern::Strided { stride_bytes } => {
                if stride_bytes == 0 || !stride_bytes.is_multiple_of(align) {
                    return Err(StreamError::Stride {
                        stride: stride_bytes,
                        align,
                    });
                }
                let front = front(part(region, worker, stream.workers, align, sizer.max())?);
                Walk::Strided {
                    front,
                    stride: stride_bytes,
                }
            }
            Pattern::Uniform => Walk::Uniform { places, rng },
            Pattern::Zipf { theta } => {
                if !(theta > 0.0 && theta.is_finite()) {
                    return Err(StreamError::OutOfRange {
                        what: "the exponent of the zipf pattern",
                    });
                }
                let scatter = Scatter::new(places.count, scatter_seed());
                Walk::Zipf {
                    zipf: Zipf::new(places.count, theta),
                    places,
                    scatter,
                    rng,
                }
            }
            Pattern::HotSet { space, access } => {
                if !(0.0..=1.0).contains(&space) || !(0.0..=1.0).contains(&access) {
                    return Err(StreamError::OutOfRange {
                        what: "the share of the hot set",
                    });
                }
                let scatter = Scatter::new(places.count, scatter_seed());
                let hot = ((places.count as f64 * space).round() as u64).clamp(1, places.count);
                // Without any cold place, all requests go to hot ones.
                let access = if hot == places.count { 1.0 } else { access };
                Walk::HotSet {
                    places,
                    hot,
                    access: Chance::new(access),
                    scatter,
                    rng,
                }
            }
            Pattern::Runs { mean_requests } => {
                if !(mean_requests >= 1.0 && mean_requests.is_finite()) {
                    return Err(StreamError::OutOfRange {
                        what: "the mean length of runs",
                    });
                }
                let mut front = front(region.clone());
                // Behind the end: the first request jumps.
                front.next = u64::MAX;
                Walk::Runs {
                    front,
                    places,
                    jump: Chance::new(1.0 / mean_requests),
                    rng,
                }
            }
        })
    }

    /// Offset of the next request, of `len` bytes.
    #[inline(always)]
    pub(crate) fn next_offset(&mut self, len: u32) -> u64 {
        match self {
            Walk::Uniform { places, rng } => places.offset(rng.below(places.count)),
            _ => self.next_ordered(len),
        }
    }

    /// Apart, so that the commonest pattern is compiled into the engine's loop without the others.
    #[inline(never)]
    fn next_ordered(&mut self, len: u32) -> u64 {
        match self {
            Walk::Sequential(front) => {
                let offset = front.fit(len);
                front.next = front.behind(offset, len);
                offset
            }
            Walk::Strided { front, stride } => {
                let offset = front.fit(len);
                front.next = offset.saturating_add(*stride);
                offset
            }
            Walk::Uniform { places, rng } => places.offset(rng.below(places.count)),
            Walk::Zipf {
                places,
                zipf,
                scatter,
                rng,
            } => places.offset(scatter.place(zipf.draw(rng))),
            Walk::HotSet {
                places,
                hot,
                access,
                scatter,
                rng,
            } => {
                let (first, count) = if rng.happens(*access) {
                    (0, *hot)
                } else {
                    (*hot, places.count - *hot)
                };
                places.offset(scatter.place(first + rng.below(count)))
            }
            Walk::Runs {
                front,
                places,
                jump,
                rng,
            } => {
                let ends = rng.happens(*jump) || !front.holds(front.next, len);
                let offset = if ends {
                    places.offset(rng.below(places.count))
                } else {
                    front.next
                };
                front.next = front.behind(offset, len);
                offset
            }
        }
    }
}

/// Alignment of offsets, bytes: as asked, or the size (fixed sizes), or the target's block.
fn alignment(stream: &Stream, sizer: &Sizer, block: u32) -> Result<u64, StreamError> {
    let block_bytes = u64::from(block);
    match stream.align_bytes {
        0 if sizer.is_fixed() => Ok(u64::from(sizer.max())),
        0 => Ok(block_bytes.max(SECTOR).next_multiple_of(block_bytes)),
        align if !align.is_multiple_of(block_bytes) => {
            Err(StreamError::AlignNotBlocks { align, block })
        }
        align => Ok(align),
    }
}

/// A worker's part of the region: equal parts at aligned places, the last one up to the end.
fn part(
    region: Range<u64>,
    worker: u32,
    workers: u32,
    align: u64,
    largest: u32,
) -> Result<Range<u64>, StreamError> {
    let whole = Places::new(region.clone(), align, largest)?;
    let slots = (region.end - whole.start) / align;
    let each = slots / u64::from(workers.max(1)) * align;
    let start = whole.start + each * u64::from(worker);
    let end = if worker + 1 == workers {
        region.end
    } else {
        start + each
    };
    if end - start < u64::from(largest) {
        return Err(StreamError::RegionSmall {
            bytes: end - start,
            needed: largest,
            align,
        });
    }
    Ok(start..end)
}

/// Aligned offsets at which the largest request ends inside the region.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    start: u64,
    align: u64,
    count: u64,
}

impl Places {
    fn new(region: Range<u64>, align: u64, largest: u32) -> Result<Places, StreamError> {
        let small = || StreamError::RegionSmall {
            bytes: region.end - region.start,
            needed: largest,
            align,
        };
        let start = region
            .start
            .checked_next_multiple_of(align)
            .ok_or_else(small)?;
        let room = region.end.checked_sub(start).ok_or_else(small)?;
        let spare = room.checked_sub(u64::from(largest)).ok_or_else(small)?;
        Ok(Places {
            start,
            align,
            count: spare / align + 1,
        })
    }

    #[inline]
    fn offset(&self, place: u64) -> u64 {
        self.start + place * self.align
    }
}

/// Where a sequential worker stands within its part.
#[derive(Debug, Clone)]
pub(crate) struct Front {
    next: u64,
    start: u64,
    end: u64,
    align: u64,
    /// Every size is a multiple of the alignment: no rounding needed.
    even: bool,
}

impl Front {
    fn new(part: Range<u64>, align: u64, sizer: &Sizer) -> Front {
        let start = part.start.next_multiple_of(align);
        let even = u64::from(sizer.granule()).is_multiple_of(align);
        Front {
            next: start,
            start,
            end: part.end,
            align,
            even,
        }
    }

    #[inline]
    fn holds(&self, offset: u64, len: u32) -> bool {
        offset <= self.end && self.end - offset >= u64::from(len)
    }

    /// The next place, or the start if the request does not fit there.
    #[inline]
    fn fit(&self, len: u32) -> u64 {
        if self.holds(self.next, len) {
            self.next
        } else {
            self.start
        }
    }

    /// First aligned place behind a request.
    #[inline]
    fn behind(&self, offset: u64, len: u32) -> u64 {
        let end = offset + u64::from(len);
        if self.even {
            end
        } else {
            end.checked_next_multiple_of(self.align).unwrap_or(u64::MAX)
        }
    }
}
