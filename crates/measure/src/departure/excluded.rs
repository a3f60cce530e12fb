//! Steps that a series rules out. A series in which no step was found may still contain one that the noise hides.
//!
//! For each place, a step that changes the level by a ratio is a linear constraint on the levels before and after it:
//! `after - ratio * before = 0`. With a given correlation of the noise, the certainty that the levels are on the near side
//! of that constraint is a Student's t. The correlation is not known, so the probabilities are averaged over it, weighted by
//! the likelihood of the series (restricted, so that the two levels do not make the noise look smaller than it is).
//! A step is ruled out if that probability is below [`LIMIT`]. Of series with just that step at most 5 % are below it,
//! whatever their length and correlation (`tests/departure.rs` prints the figures). Steps at all places between a tenth
//! and nine tenths of the series must be ruled out. So the share of series whose step is wrongly ruled out is at most 5 %
//! wherever the step is, and no correction for the number of places is needed.

use super::RHOS;
use super::numbers::{dot, sums};
use super::whitened::LEAST_NOISE;

/// Part of the series at either end in which no step is looked for.
const EDGE: f64 = 0.1;

/// Probability of a step below which it is ruled out.
pub(super) const LIMIT: f64 = 0.02;
/// Resolution of the sizes of steps, as a share of the level before.
const GRAIN: f64 = 0.01;

/// The smallest step up or down, in whole percent, that is ruled out with all larger ones at every place; `None` if not
/// even a step of 100 % is.
pub(super) fn smallest(series: &[f64]) -> Option<f64> {
    let most = (1.0 / GRAIN).round() as u32;
    let mut found = 1;
    for place in Place::each(series) {
        let excludes = |percent: u32| {
            let change = GRAIN * f64::from(percent);
            place.chance(change) < LIMIT && place.chance(-change) < LIMIT
        };
        if excludes(found) {
            continue;
        }
        if !excludes(most) {
            return None;
        }
        let mut above = most;
        while above - found > 1 {
            let middle = u32::midpoint(found, above);
            if excludes(middle) {
                above = middle;
            } else {
                found = middle;
            }
        }
        found = above;
    }
    Some(GRAIN * f64::from(found))
}

/// Probability of each side of a constraint: both levels at one place, for each correlation.
pub(super) struct Place {
    fits: Vec<Levels>,
    freedom: f64,
}

/// Both levels at one place and one correlation.
struct Levels {
    before: f64,
    after: f64,
    /// Variance of `before`, covariance of both, variance of `after`.
    variances: [f64; 3],
    /// Share of the likelihood of all correlations.
    weight: f64,
}

impl Place {
    /// The levels at each place between the edges.
    pub(super) fn each(series: &[f64]) -> Vec<Place> {
        let n = series.len();
        let edge = ((EDGE * n as f64) as usize).max(1);
        let whitened: Vec<ConstantLevel> = RHOS
            .iter()
            .map(|&rho| ConstantLevel::of(series, rho))
            .collect();
        (edge..=n - edge)
            .map(|at| Place::of(&whitened, at))
            .collect()
    }

    fn of(whitened: &[ConstantLevel], at: usize) -> Place {
        let fits: Vec<(f64, Levels)> = whitened.iter().map(|plain| plain.levels(at)).collect();
        let most = fits
            .iter()
            .map(|fit| fit.0)
            .fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = fits.iter().map(|fit| (fit.0 - most).exp()).sum();
        let weighted = |(likelihood, fit): (f64, Levels)| Levels {
            weight: (likelihood - most).exp() / total,
            ..fit
        };
        Place {
            fits: fits.into_iter().map(weighted).collect(),
            freedom: (whitened[0].values.len() - 2) as f64,
        }
    }

    /// Probability of a step here that changes the level by this share or more, up if it is positive.
    pub(super) fn chance(&self, change: f64) -> f64 {
        let ratio = 1.0 + change;
        let each = self.fits.iter().map(|fit| {
            let [before, both, after] = fit.variances;
            let variance = after - 2.0 * ratio * both + ratio * ratio * before;
            let short_of_it = change.signum() * (ratio * fit.before - fit.after);
            fit.weight * beyond(short_of_it / variance.sqrt(), self.freedom)
        });
        each.sum()
    }
}

/// A whitened series that keeps its level.
struct ConstantLevel {
    rho: f64,
    rest: f64,
    first: f64,
    values: Vec<f64>,
    sums: Vec<f64>,
    squares: f64,
}

impl ConstantLevel {
    fn of(series: &[f64], rho: f64) -> Self {
        let first = (1.0 - rho * rho).sqrt();
        let values: Vec<f64> = std::iter::once(first * series[0])
            .chain(series.windows(2).map(|pair| pair[1] - rho * pair[0]))
            .collect();
        ConstantLevel {
            rho,
            rest: 1.0 - rho,
            first,
            sums: sums(&values),
            squares: dot(&values, &values),
            values,
        }
    }

    /// The levels before and from a place on, by least squares, and the logarithm of their restricted likelihood.
    fn levels(&self, at: usize) -> (f64, Levels) {
        let (n, rho, rest, first) = (self.values.len(), self.rho, self.rest, self.first);
        let before = first * first + rest * rest * (at - 1) as f64 + rho * rho;
        let after = 1.0 + rest * rest * (n - at - 1) as f64;
        let sum = |from: usize, to: usize| self.sums[to] - self.sums[from];
        let with_before = first * self.values[0] + rest * sum(1, at) - rho * self.values[at];
        let with_after = self.values[at] + rest * sum(at + 1, n);
        let determinant = before * after - rho * rho;
        let low = (after * with_before + rho * with_after) / determinant;
        let high = (before * with_after + rho * with_before) / determinant;
        let left = (self.squares - low * with_before - high * with_after).max(0.0)
            + n as f64 * LEAST_NOISE * LEAST_NOISE;
        let freedom = (n - 2) as f64;
        let noise = left / freedom;
        let likelihood = first.ln() - 0.5 * freedom * left.ln() - 0.5 * determinant.ln();
        let scale = noise / determinant;
        let levels = Levels {
            before: low,
            after: high,
            variances: [scale * after, scale * rho, scale * before],
            weight: 0.0,
        };
        (likelihood, levels)
    }
}

/// One-sided tail of Student's t, by Wallace's transformation to a normal number (Ann. Math. Stat. 30 (1959) 1121-1130).
fn beyond(t: f64, freedom: f64) -> f64 {
    let normal = (freedom * (t * t / freedom).ln_1p()).sqrt() * (8.0 * freedom + 1.0)
        / (8.0 * freedom + 3.0);
    0.5 * libm::erfc(normal.copysign(t) / std::f64::consts::SQRT_2)
}
