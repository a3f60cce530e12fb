//! DiskSim's descriptions of drives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_drive::disksim::read_drives;

fuzz_target!(|text: &str| {
    let _ = read_drives(text, "fuzz.json");
});
