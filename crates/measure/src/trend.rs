//! Trend test that sees the slow drift the steady-state rule accepts: Mann-Kendall with Sen's slope.

use serde::Serialize;

/// Trend of a series of equally long windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// Number of windows in the series.
    pub windows: usize,
    /// Kendall's tau between value and time, -1..=1.
    pub tau: f64,
    /// Two-sided probability of such a tau if there is no trend.
    pub p_value: f64,
    /// Factor by which autocorrelation inflates the variance of the statistic, at least 1.
    pub inflation: f64,
    /// Sen's slope: median of the slopes of all pairs, in units of the series per window.
    pub slope: f64,
    /// Ends of the slope's 95 % confidence interval.
    pub slope_range: (f64, f64),
    /// Sen's slope as a share of the series' median, per window; 0 if that is not positive.
    pub relative_slope: f64,
}

impl Trend {
    /// Drift in percent of the median per minute, for windows of `window_s` seconds.
    #[must_use]
    pub fn percent_per_minute(&self, window_s: f64) -> f64 {
        self.relative_slope * 100.0 * 60.0 / window_s
    }
}

/// Fewest windows that can show a trend.
pub const MIN_WINDOWS: usize = 5;
/// Longer series are first averaged in groups to at most this many, as the test looks at all pairs.
const MAX_WINDOWS: usize = 1024;
/// Fewer windows than this cannot show autocorrelation beyond chance; it is taken as none.
const MIN_CORRELATED: usize = 10;
/// Up to this, and without ties and autocorrelation, the distribution of the statistic is counted, not approximated.
const MAX_EXACT: usize = 20;
/// Two-sided 95 % point of the normal distribution.
const NORMAL_95: f64 = 1.959_963_984_540_054;
/// One-sided 95 % point of the normal distribution.
const NORMAL_90: f64 = 1.644_853_626_951_472_7;

/// Mann-Kendall test (Mann 1945, Kendall 1975) with the variance corrected for ties and for autocorrelation (Hamed and Rao,
/// J. Hydrology 204 (1998) 182-196), and Sen's slope (J. Am. Stat. Assoc. 63 (1968) 1379-1389).
///
/// The correction takes the autocorrelations of the detrended ranks up to the first that is not significantly positive; it
/// never makes the test more ready to see a trend. `None` for fewer than [`MIN_WINDOWS`] or values that are not finite.
#[must_use]
pub fn mann_kendall(series: &[f64]) -> Option<Trend> {
    if series.len() < MIN_WINDOWS || series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let group = series.len().div_ceil(MAX_WINDOWS);
    let values: Vec<f64> = averaged(series, group);
    let n = values.len();
    let (mut slopes, statistic) = pairs(&values);
    let slope = median(&mut slopes);
    let inflation = inflation(&values, slope);
    let (variance, tied) = variance(&values);
    let p_value = if n <= MAX_EXACT && !tied && inflation == 1.0 {
        exact_p(statistic, n)
    } else {
        normal_p(statistic, variance * inflation)
    };
    let slope_range = interval(&mut slopes, (variance * inflation).sqrt());
    let middle = median(&mut values.clone());
    let per_window = 1.0 / group as f64;
    Some(Trend {
        windows: series.len(),
        tau: statistic as f64 / slopes.len() as f64,
        p_value,
        inflation,
        slope: slope * per_window,
        slope_range: (slope_range.0 * per_window, slope_range.1 * per_window),
        relative_slope: if middle > 0.0 {
            slope * per_window / middle
        } else {
            0.0
        },
    })
}

/// Means of groups of equal size; the remainder is dropped at the start.
fn averaged(series: &[f64], group: usize) -> Vec<f64> {
    series[series.len() % group..]
        .chunks_exact(group)
        .map(|chunk| chunk.iter().sum::<f64>() / group as f64)
        .collect()
}

/// Slope of each pair of values, and how many more rise than fall.
fn pairs(values: &[f64]) -> (Vec<f64>, i64) {
    let mut slopes = Vec::with_capacity(values.len() * (values.len() - 1) / 2);
    let mut statistic = 0;
    for (later, right) in values.iter().enumerate() {
        for (earlier, left) in values[..later].iter().enumerate() {
            slopes.push((right - left) / (later - earlier) as f64);
            statistic += i64::from(right > left) - i64::from(right < left);
        }
    }
    (slopes, statistic)
}

/// Variance of the statistic without trend and correlation, and whether there are ties.
fn variance(values: &[f64]) -> (f64, bool) {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|tie| term(tie.len() as f64))
        .sum();
    ((term(values.len() as f64) - ties) / 18.0, ties > 0.0)
}

/// Hamed and Rao's n / n*: factor by which positive autocorrelation of the ranks around the trend inflates the variance.
fn inflation(values: &[f64], slope: f64) -> f64 {
    let n = values.len();
    if n < MIN_CORRELATED {
        return 1.0;
    }
    let around: Vec<f64> = values
        .iter()
        .enumerate()
        .map(|(index, value)| value - slope * index as f64)
        .collect();
    let middle = (n as f64 + 1.0) / 2.0;
    let ranks: Vec<f64> = ranks(&around).iter().map(|rank| rank - middle).collect();
    let square: f64 = ranks.iter().map(|rank| rank * rank).sum();
    if square == 0.0 {
        return 1.0;
    }
    let count = n as f64;
    let mut sum = 0.0;
    for lag in 1..n / 2 {
        let product: f64 = ranks.iter().zip(&ranks[lag..]).map(|(a, b)| a * b).sum();
        let correlation = product / square;
        if correlation <= NORMAL_90 / count.sqrt() {
            break;
        }
        let left = (n - lag) as f64;
        sum += left * (left - 1.0) * (left - 2.0) * correlation;
    }
    1.0 + 2.0 / (count * (count - 1.0) * (count - 2.0)) * sum
}

/// Ranks from 1; ties share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for tie in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let shared = before as f64 + (tie.len() as f64 + 1.0) / 2.0;
        for &index in tie {
            ranks[index] = shared;
        }
        before += tie.len();
    }
    ranks
}

/// Share of all orders of n values whose statistic is at least as far from zero.
fn exact_p(statistic: i64, n: usize) -> f64 {
    // orders[k]: share of the orders with k falling pairs; the statistic is (all pairs) - 2 k.
    let mut orders = vec![1.0];
    for size in 2..=n {
        let mut next = vec![0.0; orders.len() + size - 1];
        for (falling, share) in orders.iter().enumerate() {
            for extra in 0..size {
                next[falling + extra] += share / size as f64;
            }
        }
        orders = next;
    }
    let all = orders.len() as i64 - 1;
    orders
        .iter()
        .enumerate()
        .filter(|&(falling, _)| (all - 2 * falling as i64).abs() >= statistic.abs())
        .map(|(_, share)| share)
        .sum::<f64>()
        .min(1.0)
}

/// Normal approximation with continuity correction.
fn normal_p(statistic: i64, variance: f64) -> f64 {
    let distance = (statistic.abs() - 1).max(0) as f64;
    if variance <= 0.0 || distance == 0.0 {
        return 1.0;
    }
    libm::erfc(distance / variance.sqrt() / std::f64::consts::SQRT_2)
}

/// Sen's 95 % confidence interval: the slopes whose ranks are that far from the middle.
fn interval(slopes: &mut [f64], deviation: f64) -> (f64, f64) {
    let count = slopes.len() as f64;
    let reach = NORMAL_95 * deviation;
    // Ranks (N - C) / 2 and (N + C) / 2 + 1, counted from 1.
    let low = ((count - reach) / 2.0).round() - 1.0;
    let high = ((count + reach) / 2.0).round();
    let last = slopes.len() - 1;
    (
        nth(slopes, (low.max(0.0) as usize).min(last)),
        nth(slopes, (high as usize).min(last)),
    )
}

fn nth(values: &mut [f64], index: usize) -> f64 {
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

/// Median of at least one value.
fn median(values: &mut [f64]) -> f64 {
    let half = values.len() / 2;
    let upper = nth(values, half);
    if values.len() % 2 == 1 {
        return upper;
    }
    // The rest of the lower half is not larger than the upper middle.
    let lower = values[..half]
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(lower, upper)
}
