//! The stored form against the official decoder, and against damage.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use proptest::prelude::*;
use spindle_measure::{DecodeError, Histogram, PERCENTILES};

fn official(text: &str) -> hdrhistogram::Histogram<u64> {
    let bytes = STANDARD.decode(text).expect("base64");
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .expect("the official decoder reads it")
}

fn latencies() -> impl Strategy<Value = Vec<u64>> {
    let latency = (0u32..42, any::<u64>()).prop_map(|(bits, value)| value >> (63 - bits));
    prop::collection::vec(latency, 1..300)
}

fn histogram_of(latencies: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for &latency in latencies {
        histogram.record(latency);
    }
    histogram
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_official_decoder_reads_the_same_percentiles(mut latencies in latencies()) {
        let ours = histogram_of(&latencies);
        let theirs = official(&ours.encode());
        prop_assert_eq!(theirs.len(), ours.count());
        latencies.sort_unstable();
        for percentile in PERCENTILES {
            let rank = ((percentile * 100.0).round() as usize * latencies.len()).div_ceil(10_000).max(1);
            let exact = latencies[rank - 1] as f64;
            let read = theirs.value_at_percentile(percentile) as f64;
            prop_assert!((read - exact).abs() <= 0.004 * exact, "p{percentile}: {read} instead of {exact}");
        }
    }

    #[test]
    fn reading_back_gives_every_slot_its_count(latencies in latencies()) {
        let written = histogram_of(&latencies);
        let read = Histogram::decode(&written.encode()).unwrap();
        prop_assert_eq!(read.count(), written.count());
        prop_assert!(read.iter().eq(written.iter()));
        for percentile in PERCENTILES {
            let (a, b) = (read.value_at_percentile(percentile).unwrap() as f64, written.value_at_percentile(percentile).unwrap() as f64);
            // Only the exact extremes, to which percentiles are clamped, are not in the format.
            prop_assert!((a - b).abs() <= b * Histogram::RELATIVE_ERROR);
        }
    }

    #[test]
    fn histograms_of_others_are_read_in_any_precision(latencies in latencies(), digits in 2u8..=5, lowest in 1u64..5000) {
        let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(lowest, Histogram::HIGHEST_NS, digits).unwrap();
        latencies.iter().for_each(|&ns| theirs.record(ns).unwrap());
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&theirs, &mut bytes).unwrap();
        let ours = Histogram::decode(&STANDARD.encode(bytes)).unwrap();
        prop_assert_eq!(ours.count(), theirs.len());
        for percentile in PERCENTILES {
            let value = theirs.value_at_percentile(percentile);
            let (low, high) = (theirs.lowest_equivalent(value) as f64, theirs.highest_equivalent(value) as f64);
            let read = ours.value_at_percentile(percentile).unwrap() as f64;
            prop_assert!(read >= low * (1.0 - Histogram::RELATIVE_ERROR) && read <= high * (1.0 + Histogram::RELATIVE_ERROR),
                "p{percentile}: {read} not in {low}..{high}");
        }
    }

    #[test]
    fn damaged_text_is_an_error_and_never_a_panic(latencies in latencies(), place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut bytes = STANDARD.decode(histogram_of(&latencies).encode()).unwrap();
        let index = place.index(bytes.len());
        bytes[index] ^= byte;
        let _ = Histogram::decode(&STANDARD.encode(&bytes));
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(Histogram::decode(&STANDARD.encode(&bytes)).is_err());
    }

    #[test]
    fn damaged_contents_are_an_error_and_never_a_panic(
        lowest in prop_oneof![Just(1), any::<u64>()],
        digits in 0u32..8,
        counts in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let _ = Histogram::decode(&text_of(digits, lowest, &counts));
    }
}

/// Text with these parameters and raw counts.
fn text_of(digits: u32, lowest: u64, counts: &[u8]) -> String {
    let mut plain = 0x1c84_9313u32.to_be_bytes().to_vec();
    plain.extend((counts.len() as u32).to_be_bytes());
    plain.extend(0u32.to_be_bytes());
    plain.extend(digits.to_be_bytes());
    plain.extend(lowest.to_be_bytes());
    plain.extend(Histogram::HIGHEST_NS.to_be_bytes());
    plain.extend(1f64.to_be_bytes());
    plain.extend(counts);
    let deflated = miniz_oxide::deflate::compress_to_vec_zlib(&plain, 1);
    let mut bytes = 0x1c84_9314u32.to_be_bytes().to_vec();
    bytes.extend((deflated.len() as u32).to_be_bytes());
    bytes.extend(deflated);
    STANDARD.encode(bytes)
}

#[test]
fn counts_beyond_all_values_are_refused() {
    // ZigZag LEB128 of a run of 2^43 - 1 empty slots (and of the longest run there is), then one count.
    let run = [0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x02];
    let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
    for counts in [
        &run[..],
        &longest[..],
        &[&longest[..9], &longest[..]].concat(),
    ] {
        for lowest in [1, 1 << 41] {
            assert_eq!(
                Histogram::decode(&text_of(3, lowest, counts)),
                Err(DecodeError::Counts)
            );
        }
    }
}

#[test]
fn unusual_parameters_are_refused_by_name() {
    for (text, name) in [
        (text_of(6, 1, &[2]), "significant digits"),
        (text_of(3, 0, &[2]), "lowest value"),
    ] {
        let error = Histogram::decode(&text).unwrap_err();
        assert!(
            matches!(error, DecodeError::Parameter { name: found, .. } if found == name),
            "{error}"
        );
    }
    assert_eq!(
        Histogram::decode(&text_of(3, 1, &[2]))
            .unwrap()
            .iter()
            .next(),
        Some((0, 1))
    );
}

#[test]
fn a_lone_latency_at_the_edge_of_its_slot_is_read_within_half_a_slot() {
    // 2136 is the first of the eight of its slot; the official slots inside it begin again at its middle, 2140.
    let read = Histogram::decode(&histogram_of(&[2136]).encode()).unwrap();
    assert_eq!(
        (read.min_ns(), read.max_ns(), read.sum_ns()),
        (2140, 2140, 2140)
    );
    assert_eq!(Histogram::decode(&read.encode()), Ok(read));
}

#[test]
fn the_text_begins_as_tools_expect() {
    assert!(histogram_of(&[1]).encode().starts_with("HISTFAAA"));
}

#[test]
fn an_empty_histogram_survives_the_round_trip() {
    let text = Histogram::new().encode();
    assert_eq!(Histogram::decode(&text), Ok(Histogram::new()));
    assert!(official(&text).is_empty());
}

#[test]
fn counts_up_to_the_limit_of_the_format_survive() {
    let mut histogram = Histogram::new();
    histogram.record_n(100, i64::MAX as u64 / 2);
    histogram.record_n(90_000, 1 << 40);
    let read = Histogram::decode(&histogram.encode()).unwrap();
    assert!(read.iter().eq(histogram.iter()));
    assert_eq!(official(&histogram.encode()).len(), histogram.count());
}

#[test]
fn what_is_wrong_is_said() {
    let decode = |text: &str| Histogram::decode(text).unwrap_err();
    assert!(matches!(decode("*"), DecodeError::Base64(_)));
    assert_eq!(decode(""), DecodeError::Truncated);
    assert_eq!(
        decode("HISTEgAA"),
        DecodeError::Cookie { found: 0x1c84_9312 }
    );
    assert_eq!(decode("HISTFAAAAP8="), DecodeError::Truncated);
    assert!(matches!(
        decode("HISTFAAAAAQAAAAA"),
        DecodeError::Inflate(_)
    ));
}

#[test]
fn a_typical_histogram_is_a_few_kilobytes() {
    let mut state = 1u64;
    let mut histogram = Histogram::new();
    for _ in 0..100_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        histogram.record(60_000 + (state >> 48) * (1 + (state & 7)));
    }
    let length = histogram.encode().len();
    assert!((500..8_000).contains(&length), "{length}");
}
