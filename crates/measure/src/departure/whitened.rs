//! A series with the correlation of its neighbours taken out.

use super::numbers::{dot, sums};

/// Least noise that is assumed, as a share of the mean: counts are whole numbers, clocks have ticks.
pub(super) const LEAST_NOISE: f64 = 0.001;

/// The series without its mean, with the correlation of neighbours taken out: independent values of equal variance.
pub(super) struct WhitenedSeries {
    pub(super) rho: f64,
    /// 1 - rho: what is left of a constant.
    pub(super) rest: f64,
    /// sqrt(1 - rho^2): weight of the first value.
    pub(super) first: f64,
    pub(super) values: Vec<f64>,
    /// Sums of the values before each place.
    pub(super) sums: Vec<f64>,
    /// Sum of squares of the values.
    pub(super) squares: f64,
    /// Square of the constant's length.
    pub(super) constant: f64,
    /// The mean that was taken out, by generalised least squares.
    pub(super) level: f64,
}

impl WhitenedSeries {
    pub(super) fn of(series: &[f64], rho: f64) -> Self {
        let n = series.len();
        let (first, rest) = ((1.0 - rho * rho).sqrt(), 1.0 - rho);
        let mut values: Vec<f64> = std::iter::once(first * series[0])
            .chain(series.windows(2).map(|pair| pair[1] - rho * pair[0]))
            .collect();
        let constant = first * first + rest * rest * (n - 1) as f64;
        let level = (first * values[0] + rest * values[1..].iter().sum::<f64>()) / constant;
        values[0] -= level * first;
        values[1..]
            .iter_mut()
            .for_each(|value| *value -= level * rest);
        WhitenedSeries {
            rho,
            rest,
            first,
            sums: sums(&values),
            squares: dot(&values, &values),
            values,
            constant,
            level,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Logarithm of the likelihood at the best variance, up to a constant.
    pub(super) fn likelihood(&self, squares: f64) -> f64 {
        let n = self.len() as f64;
        let squares = squares.max(0.0) + n * LEAST_NOISE * LEAST_NOISE;
        self.first.ln() - 0.5 * n * squares.ln()
    }

    /// The amount by which a regressor lowers the squares: its product with the values, its square, its product with the constant.
    pub(super) fn gain(&self, product: f64, square: f64, with_constant: f64) -> f64 {
        let left = square - with_constant * with_constant / self.constant;
        if left > 1e-9 * square {
            product * product / left
        } else {
            0.0
        }
    }

    /// A straight line through 0 in the middle, whitened.
    pub(super) fn line(&self) -> Vec<f64> {
        let middle = (self.len() - 1) as f64 / 2.0;
        (0..self.len())
            .map(|at| {
                let x = at as f64 - middle;
                if at == 0 {
                    self.first * x
                } else {
                    x - self.rho * (x - 1.0)
                }
            })
            .collect()
    }
}
