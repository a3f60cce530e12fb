//! The seeded request stream: a pure function of specification and seed, with no allocation per request.

use std::ops::Range;

use crate::request::{Op, Request};
use crate::rng::{Chance, Purpose, Rng, sub_seed};
use crate::sizer::Sizer;
use crate::spec::{Mix, Pattern, Place, Region, Size, Stream};
use crate::walk::{self, Course, Walk};

/// Why a stream cannot run on a target. One line each; the caller adds the stream's name.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// A request length that the target does not take.
    #[error(
        "a request size of {bytes} bytes is not a multiple of {block} bytes, as the target needs; set `size`"
    )]
    SizeNotBlocks {
        /// The length, bytes.
        bytes: u32,
        /// What it must be a multiple of, bytes.
        block: u32,
    },
    /// No size is left between the bounds.
    #[error(
        "no multiple of {block} bytes lies between the smallest size {min} and the largest {max}; set `size`"
    )]
    NoSize {
        /// Smallest, bytes.
        min: u32,
        /// Largest, bytes.
        max: u32,
        /// Granularity, bytes.
        block: u32,
    },
    /// Weights of sizes are negative or all 0.
    #[error("the weights of the sizes must not be negative, and one must be positive; set `size`")]
    Weights,
    /// The mean size cannot be had between the bounds.
    #[error(
        "no log-normal distribution of this sigma has a mean of {mean} bytes between {min} and {max}; set `size`"
    )]
    Mean {
        /// Asked mean, bytes.
        mean: f64,
        /// Smallest, bytes.
        min: u32,
        /// Largest, bytes.
        max: u32,
    },
    /// Offsets the target does not take.
    #[error(
        "an alignment of {align} bytes is not a multiple of {block} bytes, as the target needs; set `align`"
    )]
    AlignNotBlocks {
        /// Alignment, bytes.
        align: u64,
        /// What it must be a multiple of, bytes.
        block: u32,
    },
    /// The region ends behind the target.
    #[error("the region ends at byte {end}, the target at byte {size}; set `region`")]
    RegionBeyond {
        /// End of the region, bytes.
        end: u64,
        /// Size of the target, bytes.
        size: u64,
    },
    /// The region cannot hold the requests.
    #[error(
        "{bytes} bytes of the target hold no request of {needed} bytes at a multiple of {align}; \
         use a larger target, or set `region`, `size` or `workers`"
    )]
    RegionSmall {
        /// What each worker has, bytes.
        bytes: u64,
        /// Largest request, bytes.
        needed: u32,
        /// Alignment, bytes.
        align: u64,
    },
    /// A stride that breaks the alignment.
    #[error(
        "a stride of {stride} bytes is not a multiple of the alignment of {align} bytes; set `stride` or `align`"
    )]
    Stride {
        /// Stride, bytes.
        stride: u64,
        /// Alignment, bytes.
        align: u64,
    },
    /// Zones that reach behind the region.
    #[error("the zones come to {bytes} bytes, the region has {length}; set `zones` or `region`")]
    ZonesBeyond {
        /// Sum of the zones, bytes.
        bytes: u64,
        /// Of the region, bytes.
        length: u64,
    },
    /// A zone with requests and no place.
    #[error("zone {zone} holds no place for its requests; set `zones`, `size` or `align`")]
    ZoneEmpty {
        /// Counted from 1.
        zone: usize,
    },
    /// A number that parsing would have refused.
    #[error("{what} is out of range")]
    OutOfRange {
        /// Which one.
        what: &'static str,
    },
}

/// The requests of one worker of one stream, without end.
///
/// The same stream, index, worker, seed, target size and block give the same requests, on any machine.
/// Offsets, sizes, operations and fsyncs are drawn from generators of their own: changing the share of
/// writes leaves the offsets as they were.
#[derive(Debug, Clone)]
pub struct RequestStream {
    lane: Lane,
    mixer: Mixer,
    syncer: Syncer,
    /// Writes do not simply take their places from `lane`.
    writes: Option<Writes>,
    region: Range<u64>,
}

/// A sequence of places and sizes.
#[derive(Debug, Clone)]
struct Lane {
    walk: Walk,
    sizer: Sizer,
    size_rng: Rng,
}

/// Where writes go, if not through the region with all other requests.
#[derive(Debug, Clone)]
enum Writes {
    /// On their own.
    Apart(Box<Lane>),
    /// To the place of the trim before.
    Behind { trimmed: Option<(u64, u32)> },
}

impl RequestStream {
    /// Requests of worker `worker` (from 0) of the stream with index `stream_index` in its workload, on a
    /// target of `target_bytes` whose requests must begin and end at multiples of `block_bytes` (1 for
    /// buffered I/O).
    pub fn new(
        stream: &Stream,
        stream_index: usize,
        worker: u32,
        seed: u64,
        target_bytes: u64,
        block_bytes: u32,
    ) -> Result<RequestStream, StreamError> {
        if worker >= stream.workers {
            return Err(StreamError::OutOfRange { what: "worker" });
        }
        let block = block_bytes.max(1);
        let rng = |purpose| Rng::new(sub_seed(seed, stream_index, worker, purpose));
        let region = stream.region.resolve(target_bytes)?;
        let lane = |pattern: &Pattern, size: &Size, align_bytes: u64, of_writes: bool| {
            let sizer = Sizer::new(size, block)?;
            let course = Course {
                pattern,
                align_bytes,
                worker,
                workers: stream.workers,
                region: region.clone(),
                block,
            };
            let [offsets, sizes] = if of_writes {
                [Purpose::WriteOffset, Purpose::WriteSize]
            } else {
                [Purpose::Offset, Purpose::Size]
            };
            let scatter_seed = || {
                let purpose = if of_writes {
                    Purpose::WriteScatter
                } else {
                    Purpose::Scatter
                };
                sub_seed(seed, stream_index, crate::rng::SHARED, purpose)
            };
            let walk = Walk::new(&course, &sizer, rng(offsets), scatter_seed)?;
            Ok(Lane {
                walk,
                sizer,
                size_rng: rng(sizes),
            })
        };
        let mixer = Mixer::new(stream.mix, rng(Purpose::Operation))?;
        let (main, writes) = match &stream.writes_apart {
            _ if stream.trim_first => (
                lane(&stream.pattern, &stream.size, stream.align_bytes, false)?,
                Some(Writes::Behind { trimmed: None }),
            ),
            None => (
                lane(&stream.pattern, &stream.size, stream.align_bytes, false)?,
                None,
            ),
            Some(own) => {
                let of_writes = lane(&own.pattern, &own.size, own.align_bytes, true)?;
                if matches!(mixer, Mixer::Always(Op::Write)) {
                    (of_writes, None)
                } else {
                    let main = lane(&stream.pattern, &stream.size, stream.align_bytes, false)?;
                    (main, Some(Writes::Apart(Box::new(of_writes))))
                }
            }
        };
        Ok(RequestStream {
            lane: main,
            mixer,
            syncer: Syncer::new(stream, rng(Purpose::Fsync)),
            writes,
            region,
        })
    }

    /// What every offset and every length is a multiple of, bytes, on a target whose requests must begin and end at
    /// multiples of `block_bytes`.
    pub fn granule(stream: &Stream, block_bytes: u32) -> Result<u64, StreamError> {
        let block = block_bytes.max(1);
        let of = |size: &Size, align_bytes: u64| {
            walk::granule(align_bytes, &Sizer::new(size, block)?, block)
        };
        let common = of(&stream.size, stream.align_bytes)?;
        Ok(match &stream.writes_apart {
            None => common,
            Some(own) => walk::gcd(common, of(&own.size, own.align_bytes)?),
        })
    }

    /// The next request.
    #[inline(always)]
    pub fn next_request(&mut self) -> Request {
        if self.writes.is_some() {
            return self.next_of_two();
        }
        let (offset, len) = self.lane.next();
        let op = self.mixer.draw();
        let fsync_after = self.syncer.follows(op);
        Request {
            offset,
            len,
            op,
            fsync_after,
        }
    }

    /// Apart, so that the commonest streams are compiled into the engine's loop without it.
    #[inline(never)]
    fn next_of_two(&mut self) -> Request {
        let (op, (offset, len)) = match &mut self.writes {
            Some(Writes::Behind { trimmed }) => match trimmed.take() {
                Some(place) => (Op::Write, place),
                None => {
                    let place = self.lane.next();
                    *trimmed = Some(place);
                    (Op::Trim, place)
                }
            },
            Some(Writes::Apart(lane)) => match self.mixer.draw() {
                Op::Write => (Op::Write, lane.next()),
                op => (op, self.lane.next()),
            },
            None => (self.mixer.draw(), self.lane.next()),
        };
        Request {
            offset,
            len,
            op,
            fsync_after: self.syncer.follows(op),
        }
    }

    /// Largest length that is ever asked, bytes: what a buffer must hold.
    #[must_use]
    pub fn max_len(&self) -> u32 {
        match &self.writes {
            Some(Writes::Apart(lane)) => self.lane.sizer.max().max(lane.sizer.max()),
            _ => self.lane.sizer.max(),
        }
    }

    /// The part of the target that requests stay inside, bytes.
    #[must_use]
    pub fn region(&self) -> Range<u64> {
        self.region.clone()
    }
}

impl Lane {
    /// Offset and length of the next request.
    #[inline(always)]
    fn next(&mut self) -> (u64, u32) {
        let len = self.sizer.draw(&mut self.size_rng);
        (self.walk.next_offset(len), len)
    }
}

impl Stream {
    /// Bytes after which it ends by `end.bytes` and `passes`, on a target of `target_bytes`. Of a pass of requests of
    /// one size, what is left at the region's end does not count.
    pub fn byte_limit(&self, target_bytes: u64) -> Result<Option<u64>, StreamError> {
        let Some(passes) = self.passes else {
            return Ok(self.end.bytes);
        };
        let region = self.region.resolve(target_bytes)?;
        let mut pass = region.end - region.start;
        if let (Size::Fixed { bytes }, None) = (&self.size, &self.writes_apart) {
            pass -= pass % u64::from((*bytes).max(1));
        }
        // Whole passes are exact; a part of one is rounded up to a byte.
        let whole = (passes.trunc() as u64).saturating_mul(pass);
        let part = (passes.fract() * pass as f64).ceil() as u64;
        let limit = whole.saturating_add(part);
        Ok(Some(self.end.bytes.map_or(limit, |bytes| bytes.min(limit))))
    }
}

impl Region {
    /// The region's bytes on a target of `target_bytes`.
    pub fn resolve(&self, target_bytes: u64) -> Result<Range<u64>, StreamError> {
        let start = self.offset.resolve(target_bytes);
        let end = self.end.resolve(target_bytes);
        if end > target_bytes {
            return Err(StreamError::RegionBeyond {
                end,
                size: target_bytes,
            });
        }
        Ok(start.min(end)..end)
    }
}

impl Place {
    /// Byte on a target of `target_bytes`; a fraction is rounded down.
    #[must_use]
    pub fn resolve(&self, target_bytes: u64) -> u64 {
        match *self {
            Place::Bytes { bytes } => bytes,
            Place::Fraction { fraction } if fraction >= 1.0 => target_bytes,
            // Exact enough: 53 bits of a size in bytes reach 9 PB.
            Place::Fraction { fraction } => (target_bytes as f64 * fraction) as u64,
        }
    }
}

/// Draws the operation.
#[derive(Debug, Clone)]
enum Mixer {
    Always(Op),
    Mixed { below: [Chance; 3], rng: Rng },
}

impl Mixer {
    fn new(mix: Mix, rng: Rng) -> Result<Mixer, StreamError> {
        let Mix { write, trim, zero } = mix;
        let valid = [write, trim, zero]
            .iter()
            .all(|share| (0.0..=1.0).contains(share));
        if !valid || write + trim + zero > 1.0 + 1e-9 {
            return Err(StreamError::OutOfRange {
                what: "the share of writes, trims or zeroes",
            });
        }
        Ok(if write >= 1.0 {
            Mixer::Always(Op::Write)
        } else if trim >= 1.0 {
            Mixer::Always(Op::Trim)
        } else if zero >= 1.0 {
            Mixer::Always(Op::Zero)
        } else if write + trim + zero <= 0.0 {
            Mixer::Always(Op::Read)
        } else {
            let below = [write, write + trim, write + trim + zero].map(Chance::new);
            Mixer::Mixed { below, rng }
        })
    }

    #[inline]
    fn draw(&mut self) -> Op {
        match self {
            Mixer::Always(op) => *op,
            Mixer::Mixed { below, rng } => {
                const BY_RANK: [Op; 4] = [Op::Write, Op::Trim, Op::Zero, Op::Read];
                let bits = rng.bits53();
                // A sum of comparisons instead of branches that no predictor could guess.
                let rank: usize = below
                    .iter()
                    .map(|chance| usize::from(bits >= chance.bits()))
                    .sum();
                BY_RANK[rank]
            }
        }
    }
}

/// Decides which writes, or changes of names, an fsync follows.
#[derive(Debug, Clone)]
pub(crate) struct Syncer {
    every: u32,
    writes_left: u32,
    chance: Chance,
    rng: Rng,
}

impl Syncer {
    pub(crate) fn new(stream: &Stream, rng: Rng) -> Syncer {
        let every = stream.sync.fsync_every;
        Syncer {
            every,
            writes_left: every,
            chance: Chance::new(stream.sync.fsync_fraction),
            rng,
        }
    }

    #[inline]
    fn follows(&mut self, op: Op) -> bool {
        op == Op::Write && self.is_due()
    }

    /// Whether an fsync follows the next change.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        if self.every == 0 && self.chance == Chance::new(0.0) {
            return false;
        }
        let mut due = self.rng.happens(self.chance);
        if self.every != 0 {
            self.writes_left -= 1;
            if self.writes_left == 0 {
                self.writes_left = self.every;
                due = true;
            }
        }
        due
    }
}
