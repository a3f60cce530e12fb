//! Names of RAID layouts, for every level.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_array::{Layout, Level};

fuzz_target!(|text: &str| {
    for level in Level::ALL {
        let _ = Layout::parse(level, text);
    }
});
