//! Sums, means and lines.

pub(super) fn better(best: (f64, usize), one: (f64, usize)) -> (f64, usize) {
    if one.0 > best.0 { one } else { best }
}

pub(super) fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// Sums of the values before each place, and of all.
pub(super) fn sums(values: &[f64]) -> Vec<f64> {
    let mut total = 0.0;
    let mut found = Vec::with_capacity(values.len() + 1);
    found.push(0.0);
    for value in values {
        total += value;
        found.push(total);
    }
    found
}

pub(super) fn unit(mut values: Vec<f64>) -> Vec<f64> {
    let length = dot(&values, &values).sqrt();
    values.iter_mut().for_each(|value| *value /= length);
    values
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// First and last value of the least squares line.
pub(super) fn line(values: &[f64]) -> [f64; 2] {
    let (middle, level) = ((values.len() - 1) as f64 / 2.0, mean(values));
    let (mut moment, mut spread) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let x = at as f64 - middle;
        moment += x * (value - level);
        spread += x * x;
    }
    let rise = moment / spread * middle;
    [level - rise, level + rise]
}

/// Highest and lowest value of the least squares sine and cosine of this period.
pub(super) fn swing(values: &[f64], period: f64) -> [f64; 2] {
    let (level, n) = (mean(values), values.len() as f64);
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let (s, c) = (std::f64::consts::TAU * at as f64 / period).sin_cos();
        sine += s * (value - level);
        cosine += c * (value - level);
    }
    // The fastest wave has a cosine alone.
    let scale = if period > 2.0 { 2.0 / n } else { 1.0 / n };
    let half = scale * sine.hypot(cosine);
    [level + half, level - half]
}

/// Means of the parts between the places.
pub(super) fn means(values: &[f64], places: &[usize]) -> Vec<f64> {
    parts(values, places).map(mean).collect()
}

/// Highest and lowest value of the least squares lines through the parts between the places.
pub(super) fn extremes(values: &[f64], places: &[usize]) -> [f64; 2] {
    let ends: Vec<f64> = parts(values, places)
        .flat_map(|part| {
            if part.len() > 1 {
                line(part)
            } else {
                [part[0]; 2]
            }
        })
        .collect();
    let highest = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [highest, ends.iter().copied().fold(f64::INFINITY, f64::min)]
}

fn parts<'a>(values: &'a [f64], places: &'a [usize]) -> impl Iterator<Item = &'a [f64]> {
    let begins = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain([values.len()]);
    begins.zip(ends).map(|(begin, end)| &values[begin..end])
}
