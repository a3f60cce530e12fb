//! Write amplification in closed form, for blocks of many pages and drives of many blocks.
//!
//! Writes to random pages make the pages of a block invalid one after the other: its share of valid pages x falls by
//! dx/dt = -x / r, where t counts writes of the host in units of the drive's physical pages and r = 1 / (1 + spare) is the
//! share of physical pages that are valid. A block has x = 1 when it has been filled. Let F(x) be the share of blocks with at least
//! x. Blocks pass x as often as collection takes blocks below x. With the best of d random blocks (Van Houdt, "A mean
//! field model for a class of garbage collection algorithms", SIGMETRICS 2013) this is
//!
//! ```text
//! (x / r) (-dF/dx) = A (1 - F^d)    so    ln(1/x) = H(F) / (A r),    H(F) = integral of du / (1 - u^d) from 0 to F
//! ```
//!
//! and the write amplification A follows from the mean of x over all blocks, which is r. Two cases need no integral: d = 1 gives
//! A = 1 / (1 - r); greedy collection (d without bound, H(F) = F) gives A = 1 / (1 - x) with x = exp(-(1 - x) / r), that is
//! A = a / (a + W(-a exp(-a))) with a = 1 / r and Lambert's function W (Desnoyers, "Analytic modeling of SSD write
//! performance", SYSTOR 2012; Xiang & Kurkoski, arXiv 1110.4245). Blocks in the order of their age have the same
//! limit: all blocks lose pages equally fast, so the oldest has the fewest.

use super::Collection;

/// Cells of the integral over F. Twice as many change no result by a hundred thousandth.
const CELLS: usize = 8192;

/// Write amplification of writes to random pages of a drive with `spare`, the share of its capacity that it has on top.
#[must_use]
pub fn uniform(policy: Collection, spare: f64) -> f64 {
    let inverse = 1.0 + spare;
    match policy {
        Collection::Greedy | Collection::Oldest => {
            inverse / (inverse + lambert_w(-inverse * (-inverse).exp()))
        }
        Collection::Choices(1) => inverse / spare,
        Collection::Choices(choices) => {
            let integral = integral(choices);
            let mean = |amplification: f64| {
                let sum: f64 = integral
                    .iter()
                    .map(|h| (-h * inverse / amplification).exp())
                    .sum();
                sum / CELLS as f64
            };
            // The mean rises with the amplification.
            let (mut low, mut high) = (1.0, inverse / spare);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if mean(middle) * inverse < 1.0 {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            0.5 * (low + high)
        }
    }
}

/// Shares of valid pages of `blocks` blocks of such a drive, the fullest first.
pub(crate) fn valid_shares(policy: Collection, spare: f64, blocks: usize) -> Vec<f64> {
    let scale = (1.0 + spare) / uniform(policy, spare);
    let place = |index: usize| (index as f64 + 0.5) / blocks as f64;
    match policy {
        Collection::Greedy | Collection::Oldest => (0..blocks)
            .map(|index| (-place(index) * scale).exp())
            .collect(),
        Collection::Choices(choices) => {
            let integral = integral(choices);
            (0..blocks)
                .map(|index| {
                    let at = place(index) * CELLS as f64 - 0.5;
                    let cell = (at.max(0.0) as usize).min(CELLS - 2);
                    let (left, right) = (integral[cell], integral[cell + 1]);
                    (-(left + (right - left) * (at - cell as f64)) * scale).exp()
                })
                .collect()
        }
    }
}

/// H at the middle of each cell.
fn integral(choices: u32) -> Vec<f64> {
    let power = choices.min(1 << 20) as i32;
    let density = |share: f64| 1.0 / (1.0 - share.powi(power));
    let width = 1.0 / CELLS as f64;
    // Gauss-Legendre, two points in each half of a cell.
    let half = |from: f64| {
        let (middle, reach) = (from + 0.25 * width, 0.25 * width / 3_f64.sqrt());
        0.25 * width * (density(middle - reach) + density(middle + reach))
    };
    let mut sum = 0.0;
    (0..CELLS)
        .map(|cell| {
            let from = cell as f64 * width;
            let middle = sum + half(from);
            sum = middle + half(from + 0.5 * width);
            middle
        })
        .collect()
}

/// The principal branch of Lambert's function, w exp(w) = x, for -1/e < x <= 0, by Halley's method.
fn lambert_w(x: f64) -> f64 {
    // From the series at the branch point.
    let p = (2.0 * (1.0 + std::f64::consts::E * x)).max(0.0).sqrt();
    let mut w = -1.0 + p - p * p / 3.0;
    for _ in 0..50 {
        let e = w.exp();
        let f = w * e - x;
        let step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
        if !step.is_finite() || step.abs() < 1e-15 {
            break;
        }
        w -= step;
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_collection_has_the_published_value() {
        // Xiang & Kurkoski give 2.36 for a spare of 0.3.
        let value = uniform(Collection::Greedy, 0.3);
        assert!((value - 2.36).abs() < 0.005, "{value}");
    }

    #[test]
    fn the_lambert_form_solves_the_equation_of_the_survivors() {
        for spare in [0.01, 0.07, 0.1, 0.28, 0.5, 1.0, 3.0] {
            let x = 1.0 - 1.0 / uniform(Collection::Greedy, spare);
            let survivors = (-(1.0 - x) * (1.0 + spare)).exp();
            assert!((x - survivors).abs() < 1e-9, "{spare}: {x} {survivors}");
        }
    }

    #[test]
    fn one_choice_is_random_and_many_are_greedy() {
        for spare in [0.07, 0.28, 0.5] {
            let random = (1.0 + spare) / spare;
            let of = |choices| uniform(Collection::Choices(choices), spare);
            assert_eq!(of(1), random);
            // For two choices, H is the inverse hyperbolic tangent: the integral has another road to the same value.
            let scale = of(2) / (1.0 + spare);
            let steps = 200_000;
            let mean: f64 = (0..steps)
                .map(|step| {
                    let share = (f64::from(step) + 0.5) / f64::from(steps);
                    (-share.atanh() / scale).exp()
                })
                .sum::<f64>()
                / f64::from(steps);
            assert!((mean * (1.0 + spare) - 1.0).abs() < 1e-4, "{mean}");
            assert!(of(2) < random && of(3) < of(2));
            let greedy = uniform(Collection::Greedy, spare);
            assert!((of(1000) / greedy - 1.0).abs() < 0.005 && of(1000) >= greedy);
        }
    }

    #[test]
    fn the_shares_of_the_blocks_have_the_right_mean() {
        for policy in [
            Collection::Greedy,
            Collection::Choices(1),
            Collection::Choices(8),
        ] {
            for spare in [0.07, 0.5] {
                let shares = valid_shares(policy, spare, 4000);
                let mean = shares.iter().sum::<f64>() / 4000.0;
                assert!(
                    (mean * (1.0 + spare) - 1.0).abs() < 1e-3,
                    "{policy:?} {mean}"
                );
            }
        }
    }
}
