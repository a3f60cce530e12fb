//! How long the arm takes: seek curves and the table made of one.

use crate::error::DriveError;

/// A seek curve: milliseconds as a function of the distance in cylinders. Distance 0 takes no time except under
/// [`SeekCurve::Constant`].
#[derive(Debug, Clone, PartialEq)]
pub enum SeekCurve {
    /// Every seek takes the same time, whatever its distance.
    Constant(f64),
    /// Measured points (cylinders, ms), with straight lines between them and on beyond the last.
    Table(Vec<(u32, f64)>),
    /// Two ranges (Ruemmler & Wilkes, IEEE Computer, March 1994): below `bound` cylinders `a + b * sqrt(d)`, from there
    /// on `c + e * d`. `one`, if known, is the time to the next cylinder.
    TwoRange {
        /// First distance of the linear range, cylinders.
        bound: u32,
        /// Constant of the square-root range, ms.
        a: f64,
        /// Factor of the square-root range, ms.
        b: f64,
        /// Constant of the linear range, ms.
        c: f64,
        /// Factor of the linear range, ms per cylinder.
        e: f64,
        /// Time to the next cylinder, ms.
        one: Option<f64>,
        /// Times of the first distances, ms; they take precedence (Worthington, Ganger & Patt, CSE-TR-194-94).
        first: Vec<f64>,
    },
    /// Three numbers joined by `a * sqrt(d - 1) + b * (d - 1) + c` (Lee & Katz, SIGMETRICS 1993), which meets the time
    /// to the next cylinder, the full stroke, and the mean over all pairs of cylinders.
    Lee {
        /// Time to the next cylinder, ms.
        single: f64,
        /// Mean over uniformly random pairs, ms.
        average: f64,
        /// Full stroke, ms.
        full: f64,
    },
    /// Three numbers joined by straight lines: the average is taken to be that of a third of the stroke.
    Linear {
        /// Time to the next cylinder, ms.
        single: f64,
        /// A third of the stroke, ms.
        average: f64,
        /// Full stroke, ms.
        full: f64,
    },
}

impl SeekCurve {
    /// A two-range curve through the three numbers of a data sheet: the time to the next cylinder, the mean over
    /// uniformly random pairs of `cylinders` cylinders, and the full stroke.
    ///
    /// The ranges meet with equal value and slope, which leaves one freedom, the bound between them; it is the one that
    /// gives the mean. Where even a square root over the whole stroke has too low a mean, the time to the next cylinder
    /// is kept and the square root goes through mean and full stroke.
    #[must_use]
    pub fn through(single: f64, average: f64, full: f64, cylinders: u32) -> Self {
        let n = f64::from(cylinders.max(4) - 1);
        if mean_of(&joined(single, full, n, n), n) < average {
            // The mean of a + b sqrt(d) over random pairs is a + b sqrt(n) * 8 / 15.
            let root = (full - average) * 15.0 / 7.0;
            let b = root / n.sqrt();
            return SeekCurve::TwoRange {
                bound: u32::MAX,
                a: full - root,
                b,
                c: full,
                e: 0.0,
                one: Some(single),
                first: Vec::new(),
            };
        }
        let (mut low, mut high) = (4.0_f64.min(n), n);
        // The farther the square-root range reaches, the higher the mean.
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if mean_of(&joined(single, full, n, middle), n) < average {
                low = middle;
            } else {
                high = middle;
            }
        }
        joined(single, full, n, (low * high).sqrt())
    }

    /// Milliseconds for a seek over `distance` of `cylinders` cylinders.
    #[must_use]
    pub fn time_ms(&self, distance: u32, cylinders: u32) -> f64 {
        let d = f64::from(distance);
        if distance == 0 {
            return if let SeekCurve::Constant(ms) = self {
                *ms
            } else {
                0.0
            };
        }
        let ms = match self {
            SeekCurve::Constant(ms) => *ms,
            SeekCurve::Table(points) => interpolate(points, d),
            SeekCurve::TwoRange {
                bound,
                a,
                b,
                c,
                e,
                one,
                first,
            } => match (first.get(distance as usize - 1), one) {
                (Some(ms), _) => *ms,
                (None, Some(ms)) if distance == 1 => *ms,
                _ if distance < *bound => a + b * d.sqrt(),
                _ => c + e * d,
            },
            SeekCurve::Lee {
                single,
                average,
                full,
            } => {
                let (a, b) = lee_factors(*single, *average, *full, cylinders);
                a * (d - 1.0).sqrt() + b * (d - 1.0) + single
            }
            SeekCurve::Linear {
                single,
                average,
                full,
            } => {
                let third = f64::from(cylinders) / 3.0;
                let stroke = f64::from(cylinders.saturating_sub(1));
                if d <= third {
                    single + (average - single) * (d - 1.0) / (third - 1.0).max(1.0)
                } else {
                    average + (full - average) * (d - third) / (stroke - third).max(1.0)
                }
            }
        };
        ms.max(0.0)
    }
}

/// The two-range curve from `single` at 1 to `full` at `n` with its bound at `bound`, smooth there.
fn joined(single: f64, full: f64, n: f64, bound: f64) -> SeekCurve {
    let root = bound.sqrt();
    let b = (full - single) / (root / 2.0 + n / (2.0 * root) - 1.0);
    let a = single - b;
    SeekCurve::TwoRange {
        bound: bound.round() as u32,
        a,
        b,
        c: a + b * root / 2.0,
        e: b / (2.0 * root),
        one: None,
        first: Vec::new(),
    }
}

/// Mean of a curve over uniformly random pairs of `n + 1` cylinders, by the midpoint rule.
fn mean_of(curve: &SeekCurve, n: f64) -> f64 {
    const STEPS: u32 = 2000;
    let cylinders = n as u32 + 1;
    (0..STEPS)
        .map(|step| {
            let share = (f64::from(step) + 0.5) / f64::from(STEPS);
            let distance = ((share * n).round() as u32).max(1);
            curve.time_ms(distance, cylinders) * 2.0 * (1.0 - share) / f64::from(STEPS)
        })
        .sum()
}

/// The factors a and b of Lee's formula.
fn lee_factors(single: f64, average: f64, full: f64, cylinders: u32) -> (f64, f64) {
    let n = f64::from(cylinders.max(1));
    let a = (-10.0 * single + 15.0 * average - 5.0 * full) / (3.0 * n.sqrt());
    let b = (7.0 * single - 15.0 * average + 8.0 * full) / (3.0 * n);
    (a, b)
}

fn interpolate(points: &[(u32, f64)], d: f64) -> f64 {
    let Some(last) = points.len().checked_sub(1) else {
        return 0.0;
    };
    let above = points
        .partition_point(|(distance, _)| f64::from(*distance) < d)
        .min(last);
    let (right, right_ms) = points[above];
    if above == 0 || f64::from(right) == d {
        return right_ms;
    }
    let (left, left_ms) = points[above - 1];
    let share = (d - f64::from(left)) / f64::from(right - left);
    left_ms + (right_ms - left_ms) * share
}

/// Drives of at most this many cylinders have an entry for each distance: such a table stays in the processor's cache.
const FULL: u32 = 1 << 13;
/// The same for measured curves, which may bend anywhere.
const FULL_MEASURED: u32 = 1 << 22;
/// Beyond, entries for each doubling of the distance (as a power of 2), with straight lines between: the error is below
/// 2^-17 of the time on a square root.
const STEP_BITS: u32 = 6;

/// A seek curve worked out in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct SeekTable {
    /// A table by distance; else by doublings.
    full: bool,
    entries: Vec<u32>,
}

impl SeekTable {
    /// Works out `curve` for a drive of `cylinders` cylinders.
    pub(crate) fn new(curve: &SeekCurve, cylinders: u32) -> Result<Self, DriveError> {
        check(curve)?;
        let ns = |distance: u32| (curve.time_ms(distance, cylinders) * 1e6).round().min(4e9) as u32;
        let most = if matches!(curve, SeekCurve::Table(_)) {
            FULL_MEASURED
        } else {
            FULL
        };
        let full = cylinders <= most;
        let entries = if full {
            (0..cylinders).map(ns).collect()
        } else {
            let (last, ..) = Self::entry_of(cylinders);
            (0..=last + 1)
                .map(|index| ns(Self::distance_of(index)))
                .collect()
        };
        Ok(Self { full, entries })
    }

    /// The entry at or before `distance`, how far behind it the distance is, and the power of 2 to the next entry.
    #[inline]
    const fn entry_of(distance: u32) -> (usize, u32, u32) {
        let power = (distance >> STEP_BITS | 1).ilog2();
        let entry = (power << STEP_BITS) + (distance >> power);
        (entry as usize, distance & ((1 << power) - 1), power)
    }

    /// The distance of an entry.
    fn distance_of(entry: usize) -> u32 {
        let power = (entry >> STEP_BITS).saturating_sub(1) as u32;
        let above = entry as u64 - (u64::from(power) << STEP_BITS);
        (above << power).min(u64::from(u32::MAX)) as u32
    }

    /// Nanoseconds for a seek over `distance` cylinders.
    #[inline]
    pub(crate) fn time_ns(&self, distance: u32) -> u64 {
        if self.full {
            return self
                .entries
                .get(distance as usize)
                .map_or(0, |ns| u64::from(*ns));
        }
        let (entry, rest, power) = Self::entry_of(distance);
        let Some([left, right]) = self.entries.get(entry..entry + 2) else {
            return 0;
        };
        let (left, right) = (i64::from(*left), i64::from(*right));
        (left + (((right - left) * i64::from(rest)) >> power)) as u64
    }
}

fn check(curve: &SeekCurve) -> Result<(), DriveError> {
    let bad = |problem: &str| Err(DriveError::parameter("seek curve", problem));
    match curve {
        SeekCurve::Table(points) if points.is_empty() => bad("the table has no point"),
        SeekCurve::Table(points) if points.windows(2).any(|pair| pair[0].0 >= pair[1].0) => {
            bad("the distances of the table must rise")
        }
        SeekCurve::Table(points) if points.iter().any(|(_, ms)| !(0.0..=10_000.0).contains(ms)) => {
            bad("times must be between 0 and 10000 ms")
        }
        SeekCurve::Lee {
            single,
            average,
            full,
        }
        | SeekCurve::Linear {
            single,
            average,
            full,
        } if !(*single >= 0.0 && single <= average && average <= full && *full <= 10_000.0) => {
            bad("needs 0 <= single cylinder <= average <= full stroke <= 10000 ms")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lees_curve_meets_its_three_numbers() {
        let cylinders = 50_000;
        let curve = SeekCurve::Lee {
            single: 0.8,
            average: 8.5,
            full: 17.0,
        };
        assert!((curve.time_ms(1, cylinders) - 0.8).abs() < 1e-9);
        assert!((curve.time_ms(cylinders - 1, cylinders) - 17.0).abs() < 0.05);
        // The mean over uniformly random pairs: distance d has density 2 (N - d) / N^2.
        let n = f64::from(cylinders);
        let mean: f64 = (1..cylinders)
            .map(|d| curve.time_ms(d, cylinders) * 2.0 * (n - f64::from(d)) / (n * n))
            .sum();
        assert!((mean - 8.5).abs() < 0.05, "{mean}");
    }

    #[test]
    fn a_curve_from_a_data_sheet_meets_its_three_numbers() {
        for (single, average, full, cylinders) in [
            (1.5, 8.5, 14.7, 70_000),
            (0.2, 3.4, 6.6, 60_000),
            (1.0, 12.0, 20.0, 100_000),
        ] {
            let curve = SeekCurve::through(single, average, full, cylinders);
            assert!((curve.time_ms(1, cylinders) - single).abs() < 1e-6);
            assert!((curve.time_ms(cylinders - 1, cylinders) - full).abs() < 0.01);
            let mean = mean_of(&curve, f64::from(cylinders - 1));
            assert!((mean - average).abs() < 0.1, "{mean} instead of {average}");
        }
    }

    #[test]
    fn a_table_is_joined_by_straight_lines_and_goes_on_beyond_its_end() {
        let curve = SeekCurve::Table(vec![(1, 1.0), (10, 2.8), (20, 2.6)]);
        for (distance, ms) in [
            (1, 1.0),
            (2, 1.2),
            (10, 2.8),
            (15, 2.7),
            (20, 2.6),
            (30, 2.4),
        ] {
            assert!(
                (curve.time_ms(distance, 100) - ms).abs() < 1e-9,
                "{distance}"
            );
        }
    }

    #[test]
    fn the_two_ranges_change_at_their_bound() {
        let curve = SeekCurve::TwoRange {
            bound: 300,
            a: 3.81,
            b: 0.33,
            c: 7.75,
            e: 0.0059,
            one: None,
            first: vec![2.89],
        };
        assert!((curve.time_ms(1, 2000) - 2.89).abs() < 1e-9);
        assert!((curve.time_ms(299, 2000) - (3.81 + 0.33 * 299_f64.sqrt())).abs() < 1e-9);
        assert!((curve.time_ms(300, 2000) - (7.75 + 0.0059 * 300.0)).abs() < 1e-9);
    }

    #[test]
    fn the_table_agrees_with_the_curve_on_large_drives_too() {
        let curve = SeekCurve::Lee {
            single: 0.5,
            average: 8.0,
            full: 16.0,
        };
        let cylinders = 400_000;
        let table = SeekTable::new(&curve, cylinders).unwrap();
        for distance in (0..2_000)
            .chain((2_000..cylinders).step_by(37))
            .chain([399_999])
        {
            let exact = curve.time_ms(distance, cylinders) * 1e6;
            assert!(
                (table.time_ns(distance) as f64 - exact).abs() < 200.0,
                "{distance}"
            );
        }
    }

    #[test]
    fn modelled_curves_never_fall_with_distance() {
        for curve in [
            SeekCurve::Lee {
                single: 0.8,
                average: 8.5,
                full: 17.0,
            },
            SeekCurve::Linear {
                single: 0.8,
                average: 8.5,
                full: 17.0,
            },
            SeekCurve::Constant(5.0),
        ] {
            let table = SeekTable::new(&curve, 100_000).unwrap();
            assert!(
                (1..99_999).all(|d| table.time_ns(d) <= table.time_ns(d + 1)),
                "{curve:?}"
            );
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for curve in [
            SeekCurve::Table(vec![]),
            SeekCurve::Table(vec![(2, 1.0), (2, 1.0)]),
            SeekCurve::Table(vec![(2, f64::NAN)]),
            SeekCurve::Lee {
                single: 9.0,
                average: 8.0,
                full: 10.0,
            },
        ] {
            assert!(SeekTable::new(&curve, 100).is_err(), "{curve:?}");
        }
    }
}
