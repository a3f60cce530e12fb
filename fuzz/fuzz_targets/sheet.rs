//! Data sheets: what is read can be built.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_drive::{DataSheet, Settings};

fuzz_target!(|text: &str| {
    if let Ok(sheet) = DataSheet::parse(text, "fuzz.toml") {
        let _ = sheet.build(Settings::default());
    }
});
