//! Traces that drive models are validated with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_drive::validate::parse_trace;

fuzz_target!(|text: &str| {
    let _ = parse_trace(text, "fuzz.txt");
});
