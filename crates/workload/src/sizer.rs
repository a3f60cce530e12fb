//! Size of the next request.

use crate::alias::AliasTable;
use crate::log_normal;
use crate::rng::Rng;
use crate::spec::Size;
use crate::stream::StreamError;

/// Smallest granularity of a distribution of sizes whose step is not given, bytes.
const SECTOR: u32 = 512;

/// Draws request sizes.
#[derive(Debug, Clone)]
pub(crate) struct Sizer {
    kind: Kind,
    max: u32,
    granule: u32,
}

#[derive(Debug, Clone)]
enum Kind {
    Fixed(u32),
    Range {
        min: u32,
        step: u32,
        count: u64,
    },
    List {
        table: AliasTable,
        sizes: Box<[u32]>,
    },
    /// Sizes `min + step * index`; indices are grouped where there are very many.
    Grouped {
        table: AliasTable,
        groups: Box<[(u32, u32)]>,
        min: u32,
        step: u32,
    },
}

impl Sizer {
    /// `block` is what the target's request lengths must be a multiple of, bytes.
    pub(crate) fn new(size: &Size, block: u32) -> Result<Sizer, StreamError> {
        let multiple = |bytes: u32, granule: u32| {
            if bytes == 0 || !bytes.is_multiple_of(granule) {
                Err(StreamError::SizeNotBlocks {
                    bytes,
                    block: granule,
                })
            } else {
                Ok(())
            }
        };
        match *size {
            Size::Fixed { bytes } => {
                multiple(bytes, block)?;
                Ok(Sizer {
                    kind: Kind::Fixed(bytes),
                    max: bytes,
                    granule: bytes,
                })
            }
            Size::Range {
                min,
                max,
                step: asked,
            } => {
                let step = step_in_force(asked, block)?;
                // A range with a step of its own starts where it says.
                let (min, max) = if asked == 0 {
                    inwards(min, max, step)?
                } else {
                    (min, max)
                };
                if min > max {
                    return Err(StreamError::NoSize { min, max, block });
                }
                multiple(min, block)?;
                let count = u64::from((max - min) / step) + 1;
                let max = min + (count - 1) as u32 * step;
                let granule = gcd(min, step);
                Ok(Sizer {
                    kind: Kind::Range { min, step, count },
                    max,
                    granule,
                })
            }
            Size::Weighted { ref choices } => {
                let weights: Vec<f64> = choices.iter().map(|choice| choice.1).collect();
                let sum: f64 = weights.iter().sum();
                if weights.iter().any(|weight| *weight < 0.0) || !sum.is_finite() || sum <= 0.0 {
                    return Err(StreamError::Weights);
                }
                for &(bytes, _) in choices {
                    multiple(bytes, block)?;
                }
                let sizes: Box<[u32]> = choices.iter().map(|choice| choice.0).collect();
                let max = sizes.iter().copied().max().unwrap_or(0);
                let granule = sizes.iter().copied().fold(0, gcd);
                Ok(Sizer {
                    kind: Kind::List {
                        table: AliasTable::new(&weights),
                        sizes,
                    },
                    max,
                    granule,
                })
            }
            Size::LogNormal {
                mean,
                sigma,
                min,
                max,
                step,
            } => {
                let step = step_in_force(step, block)?;
                let (min, max) = inwards(min, max, step)?;
                let shape = log_normal::Shape {
                    mean,
                    sigma,
                    min,
                    max,
                    step,
                };
                let (groups, weights) =
                    shape.groups().ok_or(StreamError::Mean { mean, min, max })?;
                let table = AliasTable::new(&weights);
                Ok(Sizer {
                    kind: Kind::Grouped {
                        table,
                        groups,
                        min,
                        step,
                    },
                    max,
                    granule: step,
                })
            }
        }
    }

    /// Largest size that is ever drawn, bytes.
    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// A number that divides each size, bytes.
    pub(crate) fn granule(&self) -> u32 {
        self.granule
    }

    /// True if all sizes are the same.
    pub(crate) fn is_fixed(&self) -> bool {
        matches!(self.kind, Kind::Fixed(_))
    }

    /// The next size, bytes.
    #[inline(always)]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u32 {
        match &self.kind {
            Kind::Fixed(bytes) => *bytes,
            _ => self.draw_varied(rng),
        }
    }

    /// Apart, so that the commonest kind is compiled into the engine's loop without the others.
    #[inline(never)]
    fn draw_varied(&self, rng: &mut Rng) -> u32 {
        match &self.kind {
            Kind::Fixed(bytes) => *bytes,
            Kind::Range { min, step, count } => min + rng.below(*count) as u32 * step,
            Kind::List { table, sizes } => sizes[table.draw(rng)],
            Kind::Grouped {
                table,
                groups,
                min,
                step,
            } => {
                let (first, count) = groups[table.draw(rng)];
                let index = if count == 1 {
                    first
                } else {
                    first + rng.below(u64::from(count)) as u32
                };
                min + index * step
            }
        }
    }
}

/// The step: as requested, or the target's block, at least a sector.
fn step_in_force(step: u32, block: u32) -> Result<u32, StreamError> {
    match step {
        0 => Ok(block.max(SECTOR).next_multiple_of(block)),
        step if step.is_multiple_of(block) => Ok(step),
        step => Err(StreamError::SizeNotBlocks { bytes: step, block }),
    }
}

/// Bounds rounded inwards to multiples of the step; the smallest is at least one step.
fn inwards(min: u32, max: u32, step: u32) -> Result<(u32, u32), StreamError> {
    let low = min.max(1).div_ceil(step).checked_mul(step);
    let high = max / step * step;
    let none = StreamError::NoSize {
        min,
        max,
        block: step,
    };
    low.filter(|low| *low <= high)
        .map(|low| (low, high))
        .ok_or(none)
}

pub(crate) fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
