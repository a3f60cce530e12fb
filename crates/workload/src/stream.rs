//! The seeded request stream: a pure function of specification and seed, with no allocation per request.

use std::ops::Range;

use crate::request::{Op, Request};
use crate::rng::{Chance, Purpose, Rng, SHARED, mix, sub_seed};
use crate::service::FileWalks;
use crate::sizer::Sizer;
use crate::spec::{Each, FileSet, Mix, Pattern, Place, Region, Size, Stream, Workload};
use crate::walk::{self, Walk, WalkSettings, Windowed};

/// The reason why a stream cannot run on a target. One line each; the caller adds the stream's name.
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
        /// Required multiple, bytes.
        block: u32,
    },
    /// No size is left between the bounds.
    #[error(
        "no multiple of {block} bytes is between the smallest size {min} and the largest {max}; set `size`"
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
    /// The mean size is impossible between the bounds.
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
        /// Required multiple, bytes.
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
    /// The region has no room for the requests.
    #[error(
        "{bytes} bytes of the target hold no request of {needed} bytes at a multiple of {align}; \
         use a larger target, or set `region`, `size` or `workers`"
    )]
    RegionSmall {
        /// Part of each worker, bytes.
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
    /// Windows that break the alignment.
    #[error(
        "windows at {bytes} bytes are not at multiples of the alignment of {align} bytes; set `window`, `window_skip`, \
         `region` or `align`"
    )]
    Window {
        /// Length, distance or start of the windows, bytes.
        bytes: u64,
        /// Alignment, bytes.
        align: u64,
    },
    /// Zones that reach beyond the region.
    #[error("the zones come to {bytes} bytes, the region has {length}; set `zones` or `region`")]
    ZonesBeyond {
        /// Sum of the zones, bytes.
        bytes: u64,
        /// Length of the region, bytes.
        length: u64,
    },
    /// A zone with requests and no place.
    #[error("zone {zone} has no place for its requests; set `zones`, `size` or `align`")]
    ZoneEmpty {
        /// Counted from 1.
        zone: usize,
    },
    /// The stream does not fit into a file of a set.
    #[error("file {file} of `{set}`, {bytes} bytes: {why}")]
    File {
        /// Number of the file, from 1.
        file: u64,
        /// Name of the set.
        set: String,
        /// Size of the file, bytes.
        bytes: u64,
        /// The reason.
        why: Box<StreamError>,
    },
    /// Fewer files than workers need.
    #[error("the stream needs {needed} files of `{set}`, but there are {given}")]
    Files {
        /// Name of the set.
        set: String,
        /// Files that the workers use.
        needed: u64,
        /// Files of the set.
        given: u64,
    },
    /// No size of files is left between the bounds.
    #[error(
        "no multiple of {step} bytes is between the smallest file of {min} bytes and the largest of {max}"
    )]
    NoFileSize {
        /// Smallest, bytes.
        min: u64,
        /// Largest, bytes.
        max: u64,
        /// Granularity, bytes.
        step: u64,
    },
    /// Weights of sizes of files are negative or all 0.
    #[error("the weights of the sizes must not be negative, and one must be positive")]
    FileWeights,
    /// The mean size of files is impossible between the bounds.
    #[error(
        "no log-normal distribution of this sigma has a mean of {mean} bytes between {min} and {max}"
    )]
    FileMean {
        /// Asked mean, bytes.
        mean: f64,
        /// Smallest, bytes.
        min: u64,
        /// Largest, bytes.
        max: u64,
    },
    /// A number that parsing would have refused.
    #[error("{what} is out of range")]
    OutOfRange {
        /// Name of the number.
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
    writes: Option<WritePlaces>,
    region: Range<u64>,
    passes: Option<Passes>,
}

/// A sequence of places and sizes.
#[derive(Debug, Clone)]
struct Lane {
    walk: Walk,
    sizer: Sizer,
    size_rng: Rng,
}

/// Length of a worker's passes over its part of the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// If all requests have the same size.
    Requests(u64),
    /// If sizes vary; a rewritten block counts once.
    Bytes(u64),
}

impl Passes {
    /// Sum of two lengths.
    pub(crate) fn and(self, other: Passes) -> Passes {
        match (self, other) {
            (Passes::Requests(one), Passes::Requests(other)) => Passes::Requests(one + other),
            (Passes::Requests(0), other) => other,
            (Passes::Requests(one) | Passes::Bytes(one), Passes::Bytes(other))
            | (Passes::Bytes(one), Passes::Requests(other)) => Passes::Bytes(one + other),
        }
    }

    /// This length, as many times; a part of a pass is rounded up.
    fn times(self, passes: f64) -> Passes {
        let of = |one: u64| {
            let whole = (passes.trunc() as u64).saturating_mul(one);
            whole.saturating_add((passes.fract() * one as f64).ceil() as u64)
        };
        match self {
            Passes::Requests(one) => Passes::Requests(of(one)),
            Passes::Bytes(one) => Passes::Bytes(of(one)),
        }
    }
}

/// Places of the writes, if they do not go through the region with all other requests.
#[derive(Debug, Clone)]
enum WritePlaces {
    /// Places of their own.
    Apart(Box<Lane>),
    /// To the place of the trim before.
    Behind { trimmed: Option<PlacedRequest> },
}

/// A place with its length.
#[derive(Debug, Clone, Copy)]
struct PlacedRequest {
    file: u32,
    offset: u64,
    len: u32,
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
        let maker = RequestMaker::new(stream, stream_index, worker, seed, block_bytes)?;
        let region = stream.region.resolve(target_bytes)?;
        maker.make(&RequestTarget::Whole(region))
    }

    /// The same on the files of a set, whose sizes are `files`, bytes, in the order of the set.
    ///
    /// Workers that share the files of a sequential or strided stream deal them out, or, if there are fewer files than
    /// workers, share each file.
    pub fn over(
        stream: &Stream,
        set: &FileSet,
        stream_index: usize,
        worker: u32,
        seed: u64,
        files: &[u64],
        block_bytes: u32,
    ) -> Result<RequestStream, StreamError> {
        let maker = RequestMaker::new(stream, stream_index, worker, seed, block_bytes)?;
        let ground = maker.files(set, files)?;
        maker.make(&ground)
    }

    /// The common divisor of every offset and length, bytes, on a target whose requests must begin and end at
    /// multiples of `block_bytes`.
    pub fn granule(stream: &Stream, block_bytes: u32) -> Result<u64, StreamError> {
        let block = block_bytes.max(1);
        let of = |size: &Size, align_bytes: u64| {
            walk::granule(align_bytes, &Sizer::new(size, block)?, block)
        };
        let common = of(&stream.size, stream.align_bytes)?;
        Ok(match &stream.separate_writes {
            None => common,
            Some(own) => walk::gcd(common, of(&own.size, own.align_bytes)?),
        })
    }

    /// The next request.
    #[inline(always)]
    pub fn next_request(&mut self) -> Request {
        if self.writes.is_some() {
            return Request::unpacked(self.next_of_two());
        }
        let op = self.mixer.draw();
        let PlacedRequest { file, offset, len } = self.lane.next(op);
        let fsync_after = self.syncer.follows(op);
        Request {
            offset,
            len,
            file,
            op,
            fsync_after,
        }
    }

    /// Apart, so that the commonest streams are compiled into the engine's loop without it.
    #[inline(never)]
    fn next_of_two(&mut self) -> (u64, u64) {
        let (op, spot) = match &mut self.writes {
            Some(WritePlaces::Behind { trimmed }) => match trimmed.take() {
                Some(spot) => (Op::Write, spot),
                None => {
                    let spot = self.lane.next(Op::Trim);
                    *trimmed = Some(spot);
                    (Op::Trim, spot)
                }
            },
            Some(WritePlaces::Apart(lane)) => match self.mixer.draw() {
                Op::Write => (Op::Write, lane.next(Op::Write)),
                op => (op, self.lane.next(op)),
            },
            None => {
                let op = self.mixer.draw();
                (op, self.lane.next(op))
            }
        };
        Request {
            offset: spot.offset,
            len: spot.len,
            file: spot.file,
            op,
            fsync_after: self.syncer.follows(op),
        }
        .packed()
    }

    /// Largest length of a stream's requests, bytes: the size that a buffer needs.
    pub fn max_len(stream: &Stream, block_bytes: u32) -> Result<u32, StreamError> {
        let longest = |size: &Size| Ok(Sizer::new(size, block_bytes.max(1))?.max());
        match &stream.separate_writes {
            Some(own) if stream.mix.write >= 1.0 => longest(&own.size),
            Some(own) => Ok(longest(&stream.size)?.max(longest(&own.size)?)),
            None => longest(&stream.size),
        }
    }

    /// Length of the requested passes of this worker over its part of the region: each place once per pass if the
    /// pattern goes from place to place, as many requests as there are places if it jumps.
    #[must_use]
    pub fn passes(&self) -> Option<Passes> {
        self.passes
    }

    /// Files for which a request was drawn that changes them; only for streams over a set of files.
    pub fn changed_files(&self) -> impl Iterator<Item = u32> {
        let apart = match &self.writes {
            Some(WritePlaces::Apart(lane)) => Some(&**lane),
            _ => None,
        };
        let lanes = std::iter::once(&self.lane).chain(apart);
        let files = lanes.filter_map(|lane| match &lane.walk {
            Walk::Files(files) => Some(files),
            _ => None,
        });
        files.flat_map(|files| files.changed())
    }

    /// The part of the target that requests stay inside, bytes; of the largest file, if there are several.
    #[must_use]
    pub fn region(&self) -> Range<u64> {
        self.region.clone()
    }
}

impl Lane {
    /// Length of one pass of a worker; `region`: its length, bytes.
    fn pass(&self, region: u64, workers: u32, worker: u32) -> Passes {
        let fixed = self.sizer.is_fixed().then(|| self.sizer.max());
        self.walk.pass(fixed, region, workers, worker)
    }

    /// Place and length of the next request, which is of this kind.
    #[inline(always)]
    fn next(&mut self, op: Op) -> PlacedRequest {
        let len = self.sizer.draw(&mut self.size_rng);
        let (file, offset) = self.walk.next_place(len, op);
        PlacedRequest { file, offset, len }
    }
}

/// The target of a worker's requests.
enum RequestTarget {
    /// The target itself, or this part of it.
    Whole(Range<u64>),
    /// Files of a set.
    Files {
        set: String,
        parts: Vec<Part>,
        /// The files are this worker's alone.
        alone: bool,
    },
}

/// The part of a file that is used.
struct Part {
    file: u32,
    /// Length of the whole file, bytes.
    bytes: u64,
    region: Range<u64>,
}

/// Makes the requests of one worker.
struct RequestMaker<'a> {
    stream: &'a Stream,
    stream_index: usize,
    worker: u32,
    seed: u64,
    block: u32,
}

impl RequestMaker<'_> {
    fn new(
        stream: &Stream,
        stream_index: usize,
        worker: u32,
        seed: u64,
        block_bytes: u32,
    ) -> Result<RequestMaker<'_>, StreamError> {
        if worker >= stream.workers {
            return Err(StreamError::OutOfRange { what: "worker" });
        }
        Ok(RequestMaker {
            stream,
            stream_index,
            worker,
            seed,
            block: block_bytes.max(1),
        })
    }

    fn rng(&self, purpose: Purpose) -> Rng {
        Rng::new(sub_seed(self.seed, self.stream_index, self.worker, purpose))
    }

    /// The worker's files among all of its set.
    fn files(&self, set: &FileSet, files: &[u64]) -> Result<RequestTarget, StreamError> {
        let count = files.len() as u64;
        let (worker, workers) = (u64::from(self.worker), u64::from(self.stream.workers));
        let each = u64::from(set.nrfiles);
        let needed = match set.each {
            Each::Worker => each * workers,
            Each::Stream => 1,
        };
        if count < needed || count > Request::MAX_FILES {
            return Err(StreamError::Files {
                set: set.name.clone(),
                needed,
                given: count,
            });
        }
        let ordered = matches!(
            self.stream.pattern,
            Pattern::Sequential | Pattern::Backward | Pattern::Strided { .. }
        );
        let (first, behind, step, alone) = match set.each {
            Each::Worker => (each * worker, each * (worker + 1), 1, true),
            Each::Stream if ordered && count >= workers => (worker, count, workers, true),
            Each::Stream => (0, count, 1, false),
        };
        let parts = (first..behind).step_by(step as usize).map(|file| {
            let bytes = files[file as usize];
            let region = self.stream.region.resolve(bytes);
            Ok(Part {
                file: file as u32,
                bytes,
                region: region.map_err(|why| in_file(&set.name, file, bytes, why))?,
            })
        });
        Ok(RequestTarget::Files {
            set: set.name.clone(),
            parts: parts.collect::<Result<_, StreamError>>()?,
            alone,
        })
    }

    fn make(&self, ground: &RequestTarget) -> Result<RequestStream, StreamError> {
        let stream = self.stream;
        let main = || {
            self.lane(
                ground,
                &stream.pattern,
                &stream.size,
                stream.align_bytes,
                false,
            )
        };
        let mixer = Mixer::new(stream.mix, self.rng(Purpose::Operation))?;
        let (lane, writes) = match &stream.separate_writes {
            _ if stream.trim_first => (main()?, Some(WritePlaces::Behind { trimmed: None })),
            None => (main()?, None),
            Some(own) => {
                let of_writes =
                    self.lane(ground, &own.pattern, &own.size, own.align_bytes, true)?;
                if matches!(mixer, Mixer::Always(Op::Write)) {
                    (of_writes, None)
                } else {
                    (main()?, Some(WritePlaces::Apart(Box::new(of_writes))))
                }
            }
        };
        let (region, length, alone) = match ground {
            RequestTarget::Whole(region) => (region.clone(), region.end - region.start, false),
            RequestTarget::Files { parts, alone, .. } => {
                let regions = || parts.iter().map(|part| &part.region);
                let end = regions().map(|region| region.end).max().unwrap_or(0);
                let length = regions().map(|region| region.end - region.start).sum();
                (0..end, length, *alone)
            }
        };
        let (workers, worker) = if alone {
            (1, 0)
        } else {
            (stream.workers, self.worker)
        };
        let pass = match &writes {
            None => lane.pass(length, workers, worker),
            // Each place gets two requests.
            Some(WritePlaces::Behind { .. }) => lane.pass(length, workers, worker).times(2.0),
            Some(WritePlaces::Apart(_)) => Passes::Bytes(length / u64::from(workers.max(1))),
        };
        Ok(RequestStream {
            passes: stream.passes.map(|passes| pass.times(passes)),
            lane,
            mixer,
            syncer: Syncer::new(stream, self.rng(Purpose::Fsync)),
            writes,
            region,
        })
    }

    fn lane(
        &self,
        ground: &RequestTarget,
        pattern: &Pattern,
        size: &Size,
        align_bytes: u64,
        of_writes: bool,
    ) -> Result<Lane, StreamError> {
        let sizer = Sizer::new(size, self.block)?;
        let purposes = if of_writes {
            LanePurposes::OF_WRITES
        } else {
            LanePurposes::OF_ALL
        };
        // `file`: 0 for the target itself, files of a set are counted from 1; each has its own places.
        let walk = |region: &Range<u64>, file: u64, alone: bool| {
            let course = WalkSettings {
                pattern,
                align_bytes,
                worker: if alone { 0 } else { self.worker },
                workers: if alone { 1 } else { self.stream.workers },
                region: region.clone(),
                block: self.block,
            };
            let of_file = |seed: u64| match file {
                0 => seed,
                file => mix(seed ^ mix(file)),
            };
            let seed =
                |worker, purpose| of_file(sub_seed(self.seed, self.stream_index, worker, purpose));
            let rng = Rng::new(seed(self.worker, purposes.offset));
            if let Some(window) = self.stream.window {
                let windowed = Windowed::new(&course, &sizer, window, rng)?;
                return Ok(Walk::Windowed(Box::new(windowed)));
            }
            Walk::new(&course, &sizer, rng, || seed(SHARED, purposes.scatter))
        };
        let walk = match ground {
            RequestTarget::Whole(region) => walk(region, 0, false)?,
            RequestTarget::Files { set, parts, alone } => {
                let walks = parts.iter().map(|part| {
                    let file = u64::from(part.file);
                    let walk = walk(&part.region, file + 1, *alone);
                    let held = part.region.end - part.region.start;
                    let walk = walk.map_err(|why| in_file(set, file, part.bytes, why))?;
                    Ok((part.file, walk, held))
                });
                let walks = walks.collect::<Result<Vec<_>, StreamError>>()?;
                let rng = self.rng(purposes.file);
                let files = FileWalks::new(walks, self.stream.files.as_ref(), rng);
                Walk::Files(Box::new(files))
            }
        };
        Ok(Lane {
            walk,
            sizer,
            size_rng: self.rng(purposes.size),
        })
    }
}

fn in_file(set: &str, file: u64, bytes: u64, why: StreamError) -> StreamError {
    StreamError::File {
        file: file + 1,
        set: set.to_owned(),
        bytes,
        why: Box::new(why),
    }
}

/// Generators of a lane.
#[derive(Clone, Copy)]
struct LanePurposes {
    offset: Purpose,
    size: Purpose,
    scatter: Purpose,
    file: Purpose,
}

impl LanePurposes {
    const OF_ALL: LanePurposes = LanePurposes {
        offset: Purpose::Offset,
        size: Purpose::Size,
        scatter: Purpose::Scatter,
        file: Purpose::File,
    };
    const OF_WRITES: LanePurposes = LanePurposes {
        offset: Purpose::WriteOffset,
        size: Purpose::WriteSize,
        scatter: Purpose::WriteScatter,
        file: Purpose::WriteFile,
    };
}

impl Workload {
    /// The set of files that a stream uses, with its index; `None`: it uses the target itself.
    #[must_use]
    pub fn fileset(&self, stream: &Stream) -> Option<(usize, &FileSet)> {
        let files = stream.files.as_ref()?;
        let mut sets = self.filesets.iter().enumerate();
        sets.find(|(_, set)| set.name == files.set)
    }

    /// Requests of a worker of the stream with index `stream`. `sizes`: of the target, or of each file of the set that
    /// the stream uses, bytes.
    pub fn requests(
        &self,
        stream: usize,
        worker: u32,
        sizes: &[u64],
        block_bytes: u32,
    ) -> Result<RequestStream, StreamError> {
        let spec = &self.streams[stream];
        match self.fileset(spec) {
            Some((_, set)) => {
                RequestStream::over(spec, set, stream, worker, self.seed, sizes, block_bytes)
            }
            None => {
                let target = sizes.first().copied().unwrap_or(0);
                RequestStream::new(spec, stream, worker, self.seed, target, block_bytes)
            }
        }
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
    Mixed {
        below: [Chance; 3],
        rng: Rng,
    },
    /// Apart, so that the others need not compare with one more.
    Rewriting {
        below: [Chance; 4],
        rng: Rng,
    },
}

impl Mixer {
    fn new(mix: Mix, rng: Rng) -> Result<Mixer, StreamError> {
        let Mix {
            write,
            trim,
            zero,
            rewrite,
        } = mix;
        let valid = [write, trim, zero, rewrite]
            .iter()
            .all(|share| (0.0..=1.0).contains(share));
        if !valid || mix.changes() > 1.0 + 1e-9 {
            return Err(StreamError::OutOfRange {
                what: "the share of writes, trims, zeroes or rewrites",
            });
        }
        Ok(if write >= 1.0 {
            Mixer::Always(Op::Write)
        } else if trim >= 1.0 {
            Mixer::Always(Op::Trim)
        } else if zero >= 1.0 {
            Mixer::Always(Op::Zero)
        } else if rewrite >= 1.0 {
            Mixer::Always(Op::Rewrite)
        } else if mix.changes() <= 0.0 {
            Mixer::Always(Op::Read)
        } else if rewrite > 0.0 {
            let below = [
                write,
                write + trim,
                write + trim + zero,
                write + trim + zero + rewrite,
            ]
            .map(Chance::new);
            Mixer::Rewriting { below, rng }
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
            Mixer::Rewriting { below, rng } => {
                const BY_RANK: [Op; 5] = [Op::Write, Op::Trim, Op::Zero, Op::Rewrite, Op::Read];
                let bits = rng.bits53();
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
        // At most one of the two is set.
        let every = stream.sync.fsync_every.max(stream.sync.fdatasync_every);
        Syncer {
            every,
            writes_left: every,
            chance: Chance::new(stream.sync.fsync_fraction),
            rng,
        }
    }

    #[inline]
    fn follows(&mut self, op: Op) -> bool {
        matches!(op, Op::Write | Op::Rewrite) && self.is_due()
    }

    /// True if an fsync follows the next change.
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
