//! Workload files: what is read is written so that it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spindle_workload::Workload;

fuzz_target!(|text: &str| {
    if let Ok(workload) = Workload::parse(text, "fuzz.toml", "fuzz", &[]) {
        let written = workload.to_toml();
        let again = Workload::parse(&written, "fuzz.toml", "fuzz", &[]).expect(&written);
        assert_eq!(again, workload, "{written}");
    }
});
