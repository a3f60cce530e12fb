//! Sizes, durations, rates, shares, places and ranges.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_config::units;

fuzz_target!(|text: &str| {
    let _ = units::parse_size(text);
    let _ = units::parse_duration(text);
    let _ = units::parse_seconds(text);
    let _ = units::parse_rate(text);
    let _ = units::parse_fraction(text);
    let _ = units::parse_place(text);
    let _ = units::parse_range(text);
});
