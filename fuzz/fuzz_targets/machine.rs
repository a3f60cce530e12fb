//! Machine files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_sim::Machine;

fuzz_target!(|text: &str| {
    let _ = Machine::parse(text, "fuzz.toml");
});
