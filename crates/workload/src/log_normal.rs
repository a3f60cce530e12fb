//! Log-normal request sizes with the requested mean.

/// A log-normal distribution cut to `min..=max` and rounded to `min + k * step`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Mean of the sizes after cutting and rounding, bytes.
    pub(crate) mean: f64,
    /// Standard deviation of ln(size) before cutting.
    pub(crate) sigma: f64,
    /// Smallest, bytes.
    pub(crate) min: u32,
    /// Largest, bytes.
    pub(crate) max: u32,
    /// Granularity, bytes.
    pub(crate) step: u32,
}

/// Groups of sizes as (index of the first, number of sizes).
type Groups = Box<[(u32, u32)]>;

/// Up to this many sizes each is a group of its own; beyond, groups of sizes grow with the size.
const SINGLE: u32 = 2048;
/// Part of its first index that a group spans beyond [`SINGLE`].
const GROWTH: u32 = 512;

impl Shape {
    /// Groups of sizes that are equally likely within a group, with the weight of each group. `None` if
    /// no log-normal distribution with this sigma has the mean within these bounds.
    pub(crate) fn groups(&self) -> Option<(Groups, Vec<f64>)> {
        let groups = self.grouping();
        if groups.len() == 1 {
            let only =
                f64::from(self.min) + f64::from(groups[0].1 - 1) / 2.0 * f64::from(self.step);
            return ((only - self.mean).abs() <= only * 0.001).then(|| (groups, vec![1.0]));
        }
        // The mean grows with mu; find mu by bisection. Thirty sigma outside the bounds is as far as the
        // double precision resolves the tail.
        let mut low = libm::log(f64::from(self.min)) - 30.0 * self.sigma;
        let mut high = libm::log(f64::from(self.max)) + 30.0 * self.sigma;
        for _ in 0..64 {
            let middle = (low + high) / 2.0;
            if self.mean_of(&groups, &self.weights(&groups, middle)) < self.mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        let weights = self.weights(&groups, (low + high) / 2.0);
        let reached = self.mean_of(&groups, &weights);
        ((reached - self.mean).abs() <= 0.001 * self.mean).then_some((groups, weights))
    }

    fn grouping(&self) -> Groups {
        let sizes = (self.max - self.min) / self.step + 1;
        let mut groups = Vec::new();
        let mut first = 0;
        while first < sizes {
            let wanted = if first < SINGLE { 1 } else { first / GROWTH };
            let count = wanted.min(sizes - first);
            groups.push((first, count));
            first += count;
        }
        groups.into_boxed_slice()
    }

    /// Probability of each group: the distribution between half a step below its first size and half a step
    /// above its last, and never beyond the bounds.
    fn weights(&self, groups: &Groups, mu: f64) -> Vec<f64> {
        let (min, max) = (f64::from(self.min), f64::from(self.max));
        let standard = |size: f64| (libm::log(size.clamp(min, max)) - mu) / self.sigma;
        let edge = |index: u32| min + (f64::from(index) - 0.5) * f64::from(self.step);
        groups
            .iter()
            .map(|&(first, count)| {
                normal_between(standard(edge(first)), standard(edge(first + count)))
            })
            .collect()
    }

    fn mean_of(&self, groups: &Groups, weights: &[f64]) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (&(first, count), weight) in groups.iter().zip(weights) {
            let middle = f64::from(first) + f64::from(count - 1) / 2.0;
            sum += weight * (f64::from(self.min) + middle * f64::from(self.step));
            total += weight;
        }
        if total > 0.0 { sum / total } else { f64::NAN }
    }
}

/// Probability that a standard normal variable is in `a..b`, accurate in both tails.
fn normal_between(a: f64, b: f64) -> f64 {
    let upper = |x: f64| 0.5 * erfc(x / std::f64::consts::SQRT_2);
    let chance = if a > 0.0 {
        upper(a) - upper(b)
    } else {
        upper(-b) - upper(-a)
    };
    chance.max(0.0)
}

/// Complementary error function, relative error below 1.2e-7 everywhere (Chebyshev fit of Press et al.,
/// "Numerical Recipes in C", 2nd ed., section 6.2).
fn erfc(x: f64) -> f64 {
    let z = x.abs();
    let t = 1.0 / (1.0 + 0.5 * z);
    let fit = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let polynomial = fit
        .iter()
        .fold(0.0, |sum, coefficient| sum * t + coefficient);
    let tail = t * libm::exp(-z * z + polynomial);
    if x >= 0.0 { tail } else { 2.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erfc_matches_known_values() {
        // Abramowitz and Stegun, table 7.1.
        for (x, value) in [
            (0.0, 1.0),
            (0.5, 0.479_500_122),
            (1.0, 0.157_299_207),
            (2.0, 0.004_677_735),
        ] {
            assert!((erfc(x) - value).abs() < 2e-7, "erfc({x}) = {}", erfc(x));
            assert!((erfc(-x) - (2.0 - value)).abs() < 2e-7);
        }
    }

    #[test]
    fn mean_is_solved_for_ordinary_and_extreme_shapes() {
        for (mean, sigma, min, max, step) in [
            (26.0 * 1024.0, 1.0, 1024, 512 * 1024, 512),
            (26.0 * 1024.0, 1.0, 4096, 512 * 1024, 4096),
            (26.0 * 1024.0, 0.2, 1024, 512 * 1024, 1024),
            (26.0 * 1024.0, 3.0, 1024, 512 * 1024, 1024),
            (450.0 * 1024.0, 1.0, 1024, 512 * 1024, 512),
            (8192.0, 1.5, 512, 1 << 30, 512),
            (6.0e8, 0.5, 512, 1 << 30, 512),
        ] {
            let shape = Shape {
                mean,
                sigma,
                min,
                max,
                step,
            };
            let (groups, weights) = shape.groups().unwrap_or_else(|| panic!("{shape:?}"));
            let reached = shape.mean_of(&groups, &weights);
            assert!((reached / mean - 1.0).abs() < 1e-4, "{shape:?}: {reached}");
            assert!(groups.len() < 10_000);
        }
    }

    #[test]
    fn a_mean_outside_the_bounds_is_refused() {
        for mean in [1023.0, 600_000.0] {
            let shape = Shape {
                mean,
                sigma: 1.0,
                min: 1024,
                max: 524_288,
                step: 512,
            };
            assert!(shape.groups().is_none(), "{mean}");
        }
    }
}
