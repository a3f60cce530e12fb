//! The histogram against the sorted latencies themselves.

use proptest::prelude::*;
use spindle_measure::{Histogram, PERCENTILES};

fn histogram_of(latencies: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for &latency in latencies {
        histogram.record(latency);
    }
    histogram
}

/// The value of rank ceil(p/100 n), with the percentile as an exact fraction of 10000.
fn quantile(sorted: &[u64], percentile: f64) -> u64 {
    let parts = (percentile * 100.0).round() as usize;
    let rank = (parts * sorted.len()).div_ceil(10_000).max(1);
    sorted[rank - 1]
}

/// Latencies of every magnitude, with repetitions.
fn latencies() -> impl Strategy<Value = Vec<u64>> {
    let latency = (0u32..42, any::<u64>()).prop_map(|(bits, value)| value >> (63 - bits));
    prop::collection::vec(
        prop_oneof![4 => latency, 1 => Just(80_000), 1 => 0u64..600],
        1..400,
    )
}

/// Exact mean and standard deviation with integers of a quarter of a nanosecond squared.
fn moments(latencies: &[u64]) -> (f64, f64) {
    let n = latencies.len() as u128;
    let sum: u128 = latencies.iter().map(|&ns| u128::from(ns)).sum();
    // n^2 variance = n sum(x^2) - sum(x)^2; both below 2^101 here.
    let squares: u128 = latencies.iter().map(|&ns| u128::from(ns).pow(2)).sum();
    let scaled = n * squares - sum * sum;
    (sum as f64 / n as f64, (scaled as f64).sqrt() / n as f64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn percentiles_are_within_the_promised_error_of_the_exact_quantiles(mut latencies in latencies()) {
        let histogram = histogram_of(&latencies);
        latencies.sort_unstable();
        let mut asked = vec![0.0];
        asked.extend(PERCENTILES);
        asked.push(100.0);
        for (percentile, value) in histogram.percentiles(&asked) {
            let exact = quantile(&latencies, percentile) as f64;
            let error = (value as f64 - exact).abs();
            prop_assert!(
                error <= exact * Histogram::RELATIVE_ERROR,
                "p{percentile}: {value} instead of {exact}"
            );
            prop_assert_eq!(histogram.value_at_percentile(percentile), Some(value));
        }
    }

    #[test]
    fn count_extremes_mean_and_deviation_are_exact(latencies in latencies()) {
        let histogram = histogram_of(&latencies);
        let (mean, sdev) = moments(&latencies);
        prop_assert_eq!(histogram.count(), latencies.len() as u64);
        prop_assert_eq!(histogram.min_ns(), *latencies.iter().min().unwrap());
        prop_assert_eq!(histogram.max_ns(), *latencies.iter().max().unwrap());
        prop_assert!((histogram.mean_ns() - mean).abs() <= mean * 1e-15);
        prop_assert!((histogram.sdev_ns() - sdev).abs() <= sdev * 1e-12 + 1e-6, "{} {sdev}", histogram.sdev_ns());
    }

    #[test]
    fn merging_parts_gives_the_histogram_of_the_whole(first in latencies(), second in latencies()) {
        let mut merged = histogram_of(&first);
        merged.merge(&histogram_of(&second));
        let whole: Vec<u64> = first.into_iter().chain(second).collect();
        prop_assert_eq!(merged, histogram_of(&whole));
    }

    #[test]
    fn recording_many_at_once_is_recording_each(ns in 0u64..=Histogram::HIGHEST_NS, times in 0u64..50) {
        let mut at_once = Histogram::new();
        at_once.record_n(ns, times);
        prop_assert_eq!(at_once, histogram_of(&vec![ns; times as usize]));
    }
}

#[test]
fn the_promised_error_is_below_four_per_mille() {
    const { assert!(Histogram::RELATIVE_ERROR <= 0.004) };
}

#[test]
fn the_range_covers_more_than_an_hour() {
    const { assert!(Histogram::HIGHEST_NS > 3_600_000_000_000) };
}

#[test]
fn every_slot_edge_is_reported_within_the_promised_error() {
    for bits in 0..42 {
        for step in 0..1024u64 {
            let value = ((1 << bits) + (step << bits) / 1024).min(Histogram::HIGHEST_NS);
            for value in [value, value.saturating_sub(1)] {
                // Two more values keep the report from being clamped to the only one there is.
                let histogram = histogram_of(&[0, value, Histogram::HIGHEST_NS]);
                let middle = histogram.value_at_percentile(50.0).unwrap() as f64;
                let error = (middle - value as f64).abs();
                assert!(
                    error <= value as f64 * Histogram::RELATIVE_ERROR,
                    "{value} is reported as {middle}"
                );
            }
        }
    }
}

#[test]
fn latencies_up_to_half_a_microsecond_are_distinguished_to_the_nanosecond() {
    for value in 0..512 {
        let histogram = histogram_of(&[0, value, 1_000_000]);
        assert_eq!(histogram.value_at_percentile(50.0), Some(value));
    }
}

#[test]
fn too_long_latencies_are_counted_and_keep_their_part_in_the_exact_figures() {
    let day = 86_400_000_000_000;
    let histogram = histogram_of(&[10, day, u64::MAX / 4]);
    assert_eq!(histogram.count(), 3);
    assert_eq!(histogram.overflow(), 2);
    assert_eq!(histogram.max_ns(), u64::MAX / 4);
    assert_eq!(histogram.sum_ns(), u128::from(10 + day + u64::MAX / 4));
    let highest = histogram.value_at_percentile(100.0).unwrap();
    assert!(highest > Histogram::HIGHEST_NS - Histogram::HIGHEST_NS / 256);
}

#[test]
fn extreme_latencies_saturate_instead_of_wrapping() {
    let mut histogram = Histogram::new();
    histogram.record_n(u64::MAX, u64::MAX);
    histogram.record(u64::MAX);
    assert_eq!(histogram.count(), u64::MAX);
    assert!(histogram.mean_ns().is_finite());
    assert!(histogram.sdev_ns().is_finite());
}

#[test]
fn an_empty_histogram_has_no_percentiles() {
    let histogram = Histogram::new();
    assert_eq!(histogram.value_at_percentile(50.0), None);
    assert!(histogram.percentiles(&PERCENTILES).is_empty());
    assert_eq!(
        (histogram.min_ns(), histogram.max_ns(), histogram.count()),
        (0, 0, 0)
    );
    assert_eq!((histogram.mean_ns(), histogram.sdev_ns()), (0.0, 0.0));
}

#[test]
fn decimal_percentiles_hit_their_rank_despite_binary_fractions() {
    // 99.9 % of 1000 is the 999th, though 99.9 / 100 * 1000 is a little more than 999 in binary.
    let histogram = histogram_of(&(1..=1000).map(|n| n / 1000 * 400 + 1).collect::<Vec<_>>());
    assert_eq!(histogram.value_at_percentile(99.9), Some(1));
    assert_eq!(histogram.value_at_percentile(99.91), Some(401));
}

#[test]
fn percentiles_that_are_no_percentiles_are_taken_as_the_nearest() {
    let histogram = histogram_of(&[1, 2, 3]);
    assert_eq!(histogram.value_at_percentile(-5.0), Some(1));
    assert_eq!(histogram.value_at_percentile(500.0), Some(3));
    assert_eq!(histogram.value_at_percentile(f64::NAN), Some(1));
}

#[test]
fn the_deviation_of_nearly_equal_long_latencies_keeps_its_digits() {
    // One in two is 1 ns longer than an hour: sum of squares 1.3e25 a request, variance 0.25.
    let hour = 3_600_000_000_000;
    let mut histogram = Histogram::new();
    histogram.record_n(hour, 1_000_000);
    histogram.record_n(hour + 1, 1_000_000);
    assert_eq!(histogram.sdev_ns(), 0.5);
    assert_eq!(histogram.mean_ns(), hour as f64 + 0.5);
}

#[test]
fn a_cleared_histogram_is_a_new_one() {
    let mut histogram = histogram_of(&[5, 5_000, u64::MAX]);
    histogram.clear();
    assert_eq!(histogram, Histogram::new());
}

#[test]
fn the_slots_tell_what_was_counted() {
    let histogram = histogram_of(&[7, 7, 300]);
    assert_eq!(histogram.iter().collect::<Vec<_>>(), [(7, 2), (300, 1)]);
}
