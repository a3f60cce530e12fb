//! Histograms: what is read is written so that it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_measure::Histogram;

fuzz_target!(|text: &str| {
    if let Ok(histogram) = Histogram::decode(text) {
        let written = histogram.encode();
        assert_eq!(Histogram::decode(&written).expect("own text").encode(), written);
    }
});
