//! Place of the next request.

use std::ops::Range;

use crate::alias::AliasTable;
use crate::order::Order;
use crate::ranks::{Normal, Pareto, Ranks, Spots};
use crate::request::Op;
use crate::rng::{Chance, Rng};
use crate::scatter::Scatter;
use crate::service::FileWalks;
use crate::sizer::Sizer;
use crate::spec::{Pattern, Peak, Place, Window, Zone};
use crate::stream::{Passes, StreamError};
use crate::zipf::Zipf;

/// Default alignment of streams whose sizes vary, bytes: at least a sector.
const SECTOR: u64 = 512;

/// Offsets of one worker.
#[derive(Debug, Clone)]
pub(crate) enum Walk {
    Sequential(SequentialPosition),
    /// `next` of the front is where the next request ends.
    Backward(SequentialPosition),
    Strided {
        front: SequentialPosition,
        stride: u64,
    },
    Uniform {
        places: Places,
        rng: Rng,
    },
    Shuffled {
        places: Places,
        order: Box<Order>,
        next: u64,
        rng: Rng,
    },
    Ranked {
        places: Places,
        ranks: Box<Ranks>,
        spots: Spots,
        rng: Rng,
    },
    Zoned {
        places: Places,
        zones: Zones,
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
        front: SequentialPosition,
        places: Places,
        length: RunLength,
        /// The run's requests go to the same place: the last one.
        repeat: bool,
        last: u64,
        rng: Rng,
    },
    /// One of the others in a window that moves.
    Windowed(Box<Windowed>),
    /// A walk of its own in each of several files.
    Files(Box<FileWalks>),
}

/// When a run ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RunLength {
    /// Before each request with this chance.
    Geometric(Chance),
    /// After this many requests.
    Fixed { requests: u64, left: u64 },
}

/// The settings of a walk.
pub(crate) struct WalkSettings<'a> {
    pub(crate) pattern: &'a Pattern,
    /// As the specification has it, bytes; 0: by the sizes.
    pub(crate) align_bytes: u64,
    pub(crate) worker: u32,
    pub(crate) workers: u32,
    pub(crate) region: Range<u64>,
    /// Block of the target, bytes.
    pub(crate) block: u32,
}

impl Walk {
    pub(crate) fn new(
        course: &WalkSettings<'_>,
        sizer: &Sizer,
        mut rng: Rng,
        scatter_seed: impl Fn() -> u64,
    ) -> Result<Walk, StreamError> {
        let align = alignment(course.align_bytes, sizer, course.block)?;
        let places = Places::new(course.region.clone(), align, sizer.max())?;
        let front = |part: Range<u64>| SequentialPosition::new(part, align, sizer);
        let ranked = |ranks: Ranks, spots: Spots, places: Places, rng: Rng| Walk::Ranked {
            places,
            ranks: Box::new(ranks),
            spots,
            rng,
        };
        Ok(match *course.pattern {
            Pattern::Sequential => Walk::Sequential(front(part(course, align, sizer.max())?)),
            Pattern::Backward => {
                let mut front = front(part(course, align, sizer.max())?);
                front.next = front.end;
                Walk::Backward(front)
            }
            Pattern::Strided { stride_bytes } => {
                if stride_bytes == 0 || !stride_bytes.is_multiple_of(align) {
                    return Err(StreamError::Stride {
                        stride: stride_bytes,
                        align,
                    });
                }
                Walk::Strided {
                    front: front(part(course, align, sizer.max())?),
                    stride: stride_bytes,
                }
            }
            Pattern::Uniform => Walk::Uniform { places, rng },
            Pattern::Shuffled => Walk::Shuffled {
                order: Box::new(Order::new(places.count, rng.word())),
                places,
                next: 0,
                rng,
            },
            Pattern::Zipf { theta, peak } => {
                if !(theta > 0.0 && theta.is_finite()) {
                    return Err(StreamError::OutOfRange {
                        what: "the exponent of the zipf pattern",
                    });
                }
                let peak = checked(peak)?;
                let zipf = Ranks::Zipf(Zipf::new(places.count, theta));
                let spots = Spots::of_popular(places.count, peak, scatter_seed);
                ranked(zipf, spots, places, rng)
            }
            Pattern::Pareto { share, peak } => {
                if !(share > 0.0 && share < 1.0) {
                    return Err(StreamError::OutOfRange {
                        what: "the share of the pareto pattern",
                    });
                }
                let peak = checked(peak)?;
                let pareto = Ranks::Pareto(Pareto::new(places.count, share));
                let spots = Spots::of_popular(places.count, peak, scatter_seed);
                ranked(pareto, spots, places, rng)
            }
            Pattern::Normal { deviation, peak } => {
                if !(deviation > 0.0 && deviation <= 1.0) {
                    return Err(StreamError::OutOfRange {
                        what: "the deviation of the normal pattern",
                    });
                }
                let Peak { center, scattered } = checked(peak)?;
                let center = center.unwrap_or(0.5);
                let normal = Ranks::Normal(Normal::new(places.count, center, deviation));
                let spots = Spots::of_places(places.count, scattered, scatter_seed);
                ranked(normal, spots, places, rng)
            }
            Pattern::Zoned { ref zones } => Walk::Zoned {
                zones: Zones::new(zones, &course.region, &places)?,
                places,
                rng,
            },
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
            Pattern::Runs {
                mean_requests,
                fixed,
                repeat,
            } => {
                if !(mean_requests >= 1.0 && mean_requests.is_finite()) {
                    return Err(StreamError::OutOfRange {
                        what: "the mean length of runs",
                    });
                }
                let mut front = front(course.region.clone());
                // Behind the end: the first request jumps.
                front.next = u64::MAX;
                let length = if fixed {
                    RunLength::Fixed {
                        requests: mean_requests as u64,
                        left: 0,
                    }
                } else {
                    RunLength::Geometric(Chance::new(1.0 / mean_requests))
                };
                Walk::Runs {
                    front,
                    places,
                    length,
                    repeat,
                    last: u64::MAX,
                    rng,
                }
            }
        })
    }

    /// File and offset of the next request, of `len` bytes.
    #[inline(always)]
    pub(crate) fn next_place(&mut self, len: u32, op: Op) -> (u32, u64) {
        match self {
            Walk::Uniform { places, rng } => (0, places.offset(rng.below(places.count))),
            Walk::Files(files) => files.next_place(len, op),
            _ => (0, self.next_ordered(len)),
        }
    }

    /// Offset of the next request in this one file.
    #[inline]
    pub(crate) fn next_offset(&mut self, len: u32) -> u64 {
        self.next_place(len, Op::Read).1
    }

    /// True if a request of `len` bytes would have to begin again at the start.
    pub(crate) fn is_through(&self, len: u32) -> bool {
        match self {
            Walk::Sequential(front) | Walk::Strided { front, .. } => !front.holds(front.next, len),
            Walk::Backward(front) => front.before(front.next, len).is_none(),
            Walk::Shuffled { places, next, .. } => *next == places.count,
            _ => false,
        }
    }

    /// True if the pattern comes to an end of its file.
    pub(crate) fn has_end(&self) -> bool {
        matches!(
            self,
            Walk::Sequential(_) | Walk::Backward(_) | Walk::Strided { .. } | Walk::Shuffled { .. }
        )
    }

    /// Back to the start.
    pub(crate) fn rewind(&mut self) {
        match self {
            Walk::Sequential(front) | Walk::Strided { front, .. } => front.next = front.start,
            Walk::Backward(front) => front.next = front.end,
            Walk::Shuffled {
                places,
                order,
                next,
                rng,
            } => {
                **order = Order::new(places.count, rng.word());
                *next = 0;
            }
            _ => {}
        }
    }

    /// Length of one pass; `fixed`: the size, if it is always the same; `region`: its length, bytes.
    pub(crate) fn pass(
        &self,
        fixed: Option<u32>,
        region: u64,
        workers: u32,
        worker: u32,
    ) -> Passes {
        match self {
            Walk::Files(files) => files.pass(fixed, workers, worker),
            Walk::Windowed(windowed) => match fixed {
                Some(len) => Passes::Requests(windowed.places.share(len, workers, worker)),
                None => Passes::Bytes(region / u64::from(workers.max(1))),
            },
            Walk::Sequential(front) | Walk::Backward(front) => match fixed {
                Some(len) => Passes::Requests(front.steps(len, u64::from(len))),
                None => Passes::Bytes(front.end - front.start),
            },
            Walk::Strided { front, stride } => {
                Passes::Requests(front.steps(fixed.unwrap_or(1), *stride))
            }
            Walk::Uniform { places, .. }
            | Walk::Shuffled { places, .. }
            | Walk::Ranked { places, .. }
            | Walk::Zoned { places, .. }
            | Walk::HotSet { places, .. }
            | Walk::Runs { places, .. } => match fixed {
                Some(len) => Passes::Requests(places.share(len, workers, worker)),
                None => Passes::Bytes(region / u64::from(workers.max(1))),
            },
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
            Walk::Backward(front) => {
                let offset = front
                    .before(front.next, len)
                    .or_else(|| front.before(front.end, len))
                    .unwrap_or(front.start);
                front.next = offset;
                offset
            }
            Walk::Strided { front, stride } => {
                let offset = front.fit(len);
                front.next = offset.saturating_add(*stride);
                offset
            }
            Walk::Uniform { places, rng } => places.offset(rng.below(places.count)),
            Walk::Shuffled {
                places,
                order,
                next,
                rng,
            } => {
                if *next == places.count {
                    **order = Order::new(places.count, rng.word());
                    *next = 0;
                }
                *next += 1;
                places.offset(order.at(*next - 1))
            }
            Walk::Ranked {
                places,
                ranks,
                spots,
                rng,
            } => places.offset(spots.place(ranks.draw(rng))),
            Walk::Zoned { places, zones, rng } => places.offset(zones.draw(rng)),
            Walk::Files(files) => files.next_place(len, Op::Read).1,
            Walk::Windowed(windowed) => windowed.next_offset(len),
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
                length,
                repeat,
                last,
                rng,
            } => {
                let next = if *repeat { *last } else { front.next };
                let ends = length.ends(rng) || !front.holds(next, len);
                let offset = if ends {
                    places.offset(rng.below(places.count))
                } else {
                    next
                };
                *last = offset;
                front.next = front.behind(offset, len);
                offset
            }
        }
    }
}

/// A walk within a window of its region, and the window's position.
#[derive(Debug, Clone)]
pub(crate) struct Windowed {
    pattern: Pattern,
    align_bytes: u64,
    block: u32,
    sizer: Sizer,
    region: Range<u64>,
    /// Places of the whole region.
    places: Places,
    window: Window,
    /// Start of the current window.
    start: u64,
    /// Bytes moved in it.
    moved: u64,
    walk: Walk,
    seeds: Rng,
}

impl Windowed {
    pub(crate) fn new(
        course: &WalkSettings<'_>,
        sizer: &Sizer,
        window: Window,
        mut seeds: Rng,
    ) -> Result<Windowed, StreamError> {
        let align = alignment(course.align_bytes, sizer, course.block)?;
        let places = Places::new(course.region.clone(), align, sizer.max())?;
        let start = course.region.start;
        let step = window.length_bytes.saturating_add(window.skip_bytes);
        for bytes in [start, window.length_bytes, step] {
            if !bytes.is_multiple_of(align) {
                return Err(StreamError::Window { bytes, align });
            }
        }
        let first = WalkSettings {
            workers: 1,
            worker: 0,
            region: start..window.end(start, course.region.end),
            ..*course
        };
        let walk = Walk::new(&first, sizer, Rng::new(seeds.word()), || 0)?;
        Ok(Windowed {
            pattern: course.pattern.clone(),
            align_bytes: course.align_bytes,
            block: course.block,
            sizer: sizer.clone(),
            region: course.region.clone(),
            places,
            window,
            start,
            moved: 0,
            walk,
            seeds,
        })
    }

    fn next_offset(&mut self, len: u32) -> u64 {
        if self.moved >= self.window.moved_bytes {
            self.move_on();
        }
        self.moved += u64::from(len);
        self.walk.next_offset(len)
    }

    #[cold]
    fn move_on(&mut self) {
        self.moved = 0;
        let step = self
            .window
            .length_bytes
            .saturating_add(self.window.skip_bytes);
        self.start = self.start.saturating_add(step);
        if !self.enter() {
            self.start = self.region.start;
            self.enter(); // as the first time
        }
    }

    /// True if the window at `start` has room for a request; then the walk goes on in it.
    fn enter(&mut self) -> bool {
        let course = WalkSettings {
            pattern: &self.pattern,
            align_bytes: self.align_bytes,
            worker: 0,
            workers: 1,
            region: self.start..self.window.end(self.start, self.region.end),
            block: self.block,
        };
        let rng = Rng::new(self.seeds.word());
        match Walk::new(&course, &self.sizer, rng, || 0) {
            Ok(walk) => {
                self.walk = walk;
                true
            }
            Err(_) => false,
        }
    }
}

impl Window {
    fn end(&self, start: u64, region_end: u64) -> u64 {
        start
            .saturating_add(self.length_bytes)
            .min(region_end)
            .max(start)
    }
}

impl RunLength {
    /// True if the next request begins a run.
    #[inline]
    fn ends(&mut self, rng: &mut Rng) -> bool {
        match self {
            RunLength::Geometric(chance) => rng.happens(*chance),
            RunLength::Fixed { requests, left } => {
                let ends = *left == 0;
                if ends {
                    *left = *requests;
                }
                *left -= 1;
                ends
            }
        }
    }
}

/// Parts of the places with the chances of each.
#[derive(Debug, Clone)]
pub(crate) struct Zones {
    table: AliasTable,
    /// (first place, places).
    parts: Box<[(u64, u64)]>,
}

impl Zones {
    /// Bounds are rounded down to places, so that zones are next to each other whatever their lengths.
    fn new(zones: &[Zone], region: &Range<u64>, places: &Places) -> Result<Zones, StreamError> {
        let length = region.end - region.start;
        let (mut parts, mut weights) = (Vec::new(), Vec::new());
        let (mut bytes, mut share) = (0_u64, 0.0_f64);
        let mut first = 0;
        for (index, zone) in zones.iter().enumerate() {
            match zone.length {
                Place::Bytes { bytes: more } => bytes = bytes.saturating_add(more),
                Place::Fraction { fraction } => share += fraction,
            }
            if bytes > length {
                return Err(StreamError::ZonesBeyond { bytes, length });
            }
            // Shares such as 0.7 + 0.2 + 0.1 may come out a rounding error below 1.
            let of_share = if share > 1.0 - 1e-9 {
                places.count
            } else {
                (share * places.count as f64) as u64
            };
            let end = (of_share + bytes / places.align).min(places.count);
            if zone.weight > 0.0 {
                if end == first {
                    return Err(StreamError::ZoneEmpty { zone: index + 1 });
                }
                parts.push((first, end - first));
                weights.push(zone.weight);
            }
            first = end;
        }
        if !weights.iter().all(|weight| weight.is_finite()) || weights.is_empty() {
            return Err(StreamError::OutOfRange {
                what: "the weight of a zone",
            });
        }
        Ok(Zones {
            table: AliasTable::new(&weights),
            parts: parts.into_boxed_slice(),
        })
    }

    #[inline]
    fn draw(&self, rng: &mut Rng) -> u64 {
        let (first, count) = self.parts[self.table.draw(rng)];
        first + rng.below(count)
    }
}

fn checked(peak: Peak) -> Result<Peak, StreamError> {
    match peak.center {
        Some(center) if !(0.0..=1.0).contains(&center) => Err(StreamError::OutOfRange {
            what: "the centre of the pattern",
        }),
        _ => Ok(peak),
    }
}

/// Alignment of offsets, bytes: as requested, or the size (fixed sizes), or the target's block.
fn alignment(align_bytes: u64, sizer: &Sizer, block: u32) -> Result<u64, StreamError> {
    let block_bytes = u64::from(block);
    match align_bytes {
        0 if sizer.is_fixed() => Ok(u64::from(sizer.max())),
        0 => Ok(block_bytes.max(SECTOR).next_multiple_of(block_bytes)),
        align if !align.is_multiple_of(block_bytes) => {
            Err(StreamError::AlignNotBlocks { align, block })
        }
        align => Ok(align),
    }
}

/// The common divisor of every offset and length of a walk, bytes.
pub(crate) fn granule(align_bytes: u64, sizer: &Sizer, block: u32) -> Result<u64, StreamError> {
    let align = alignment(align_bytes, sizer, block)?;
    Ok(gcd(align, u64::from(sizer.granule())))
}

/// Greatest common divisor.
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A worker's part of the region: equal parts at aligned places, the last one up to the end.
fn part(course: &WalkSettings<'_>, align: u64, largest: u32) -> Result<Range<u64>, StreamError> {
    let (region, worker, workers) = (&course.region, course.worker, course.workers);
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

    /// One worker's share of the requests that fit without overlap.
    fn share(&self, len: u32, workers: u32, worker: u32) -> u64 {
        let (workers, worker) = (u64::from(workers.max(1)), u64::from(worker));
        let step = u64::from(len).next_multiple_of(self.align);
        let all = (self.count - 1) * self.align / step + 1;
        all / workers + u64::from(worker < all % workers)
    }

    #[inline]
    fn offset(&self, place: u64) -> u64 {
        self.start + place * self.align
    }
}

/// Position of a sequential worker within its part.
#[derive(Debug, Clone)]
pub(crate) struct SequentialPosition {
    next: u64,
    start: u64,
    end: u64,
    align: u64,
    /// Every size is a multiple of the alignment: no rounding needed.
    even: bool,
}

impl SequentialPosition {
    fn new(part: Range<u64>, align: u64, sizer: &Sizer) -> SequentialPosition {
        let start = part.start.next_multiple_of(align);
        let even = u64::from(sizer.granule()).is_multiple_of(align);
        SequentialPosition {
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

    /// Requests of one lap, each starting `step` after the one before, at aligned places.
    fn steps(&self, len: u32, step: u64) -> u64 {
        let step = step.next_multiple_of(self.align).max(1);
        let room = self.end - self.start;
        room.saturating_sub(u64::from(len)) / step + 1
    }

    /// Last aligned place from which a request ends at `end` or before it.
    #[inline]
    fn before(&self, end: u64, len: u32) -> Option<u64> {
        let offset = end.checked_sub(u64::from(len))?;
        let offset = offset - (offset - self.start.min(offset)) % self.align;
        (offset >= self.start && offset + u64::from(len) <= self.end).then_some(offset)
    }

    /// First aligned place after a request.
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
