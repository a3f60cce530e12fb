//! Sizes of the files of a set: a pure function of the seed, so that a file has the same size in every phase and
//! with any number of files.

use crate::alias::AliasTable;
use crate::log_normal;
use crate::rng::{Purpose, Rng, sub_seed};
use crate::spec::{FileSet, FileSize};
use crate::stream::StreamError;

/// Sizes that depend on the caches are cut to multiples of this, bytes.
const AUTO_STEP: u64 = 4096;

impl FileSet {
    /// Size of each file, bytes. `index` is the set's in its workload; `auto_bytes` is the sum of all files of a set of
    /// `auto` size.
    pub fn sizes(&self, index: usize, seed: u64, auto_bytes: u64) -> Result<Vec<u64>, StreamError> {
        let sizer = FileSizer::new(&self.filesize)?;
        let each = auto_bytes / u64::from(self.files.max(1)) / AUTO_STEP * AUTO_STEP;
        let sizes = (0..self.files).map(|file| match &sizer {
            None => each,
            Some(sizer) => sizer.draw(&mut Rng::new(sub_seed(
                seed,
                index,
                file,
                Purpose::FileSize,
            ))),
        });
        Ok(sizes.collect())
    }
}

/// Returns an error if the sizes cannot be drawn.
pub(crate) fn check(sizes: &FileSize) -> Result<(), StreamError> {
    FileSizer::new(sizes).map(drop)
}

/// Draws the size of a file.
enum FileSizer {
    Fixed(u64),
    Range {
        min: u64,
        step: u64,
        count: u64,
    },
    List {
        table: AliasTable,
        sizes: Vec<u64>,
    },
    /// Sizes `(min + index) * step`; indices are grouped.
    Grouped {
        table: AliasTable,
        groups: Box<[(u32, u32)]>,
        min: u64,
        step: u64,
    },
}

impl FileSizer {
    /// `None`: as the caches ask for.
    fn new(size: &FileSize) -> Result<Option<FileSizer>, StreamError> {
        Ok(Some(match *size {
            FileSize::Auto => return Ok(None),
            FileSize::Fixed { bytes } => FileSizer::Fixed(bytes),
            FileSize::Range { min, max, step } => {
                let (min, max) = inwards(min, max, step)?;
                FileSizer::Range {
                    min,
                    step,
                    count: (max - min) / step + 1,
                }
            }
            FileSize::Weighted { ref choices } => {
                let weights: Vec<f64> = choices.iter().map(|choice| choice.1).collect();
                let sum: f64 = weights.iter().sum();
                if weights.iter().any(|weight| *weight < 0.0) || !sum.is_finite() || sum <= 0.0 {
                    return Err(StreamError::FileWeights);
                }
                FileSizer::List {
                    table: AliasTable::new(&weights),
                    sizes: choices.iter().map(|choice| choice.0).collect(),
                }
            }
            FileSize::LogNormal {
                mean,
                sigma,
                min,
                max,
                step,
            } => {
                // In units of the step, which grows until the largest size is a number of them that fits.
                let mut unit = step.max(1);
                while max / unit > u64::from(u32::MAX) {
                    unit = unit.saturating_mul(2);
                }
                let (min, max) = inwards(min.max(unit), max, unit)?;
                let shape = log_normal::Shape {
                    mean: mean / unit as f64,
                    sigma,
                    min: (min / unit) as u32,
                    max: (max / unit) as u32,
                    step: 1,
                };
                let (groups, weights) =
                    shape
                        .groups()
                        .ok_or(StreamError::FileMean { mean, min, max })?;
                FileSizer::Grouped {
                    table: AliasTable::new(&weights),
                    groups,
                    min: min / unit,
                    step: unit,
                }
            }
        }))
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            FileSizer::Fixed(bytes) => *bytes,
            FileSizer::Range { min, step, count } => min + rng.below(*count) * step,
            FileSizer::List { table, sizes } => sizes[table.draw(rng)],
            FileSizer::Grouped {
                table,
                groups,
                min,
                step,
            } => {
                let (first, count) = groups[table.draw(rng)];
                (min + u64::from(first) + rng.below(u64::from(count))) * step
            }
        }
    }
}

/// Bounds rounded inwards to multiples of the step.
fn inwards(min: u64, max: u64, step: u64) -> Result<(u64, u64), StreamError> {
    let step = step.max(1);
    let low = min.checked_next_multiple_of(step);
    let high = max / step * step;
    low.filter(|low| *low <= high)
        .map(|low| (low, high))
        .ok_or(StreamError::NoFileSize { min, max, step })
}
