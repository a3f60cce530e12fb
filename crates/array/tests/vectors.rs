//! The maps against block lists of real arrays, and the comparison against lists that were tampered with.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use spindle_array::{Array, ArrayConfig, Layout, Level, ValidateError, validate_maps};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/md-maps")
}

/// A directory of its own with one tampered list.
fn with_list(name: &str, text: &str) -> Option<String> {
    let directory =
        std::env::temp_dir().join(format!("spindle-maps-{}-{name}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("list.csv"), text).unwrap();
    let report = validate_maps(&directory).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(
        report.mismatches,
        u64::from(report.first_mismatch.is_some())
    );
    report.first_mismatch
}

fn list(file: &str) -> String {
    fs::read_to_string(data().join(file)).unwrap()
}

#[test]
fn every_list_of_a_real_array_is_reproduced() {
    let report = validate_maps(&data()).unwrap();
    assert_eq!(report.first_mismatch, None);
    assert_eq!(report.arrays, 48);
    assert!(report.blocks > 100_000, "{} blocks", report.blocks);
}

#[test]
fn an_untouched_list_agrees() {
    assert_eq!(
        with_list("same", &list("raid6_n4_left-symmetric.csv")),
        None
    );
}

#[test]
fn each_tampering_is_found_and_named() {
    let raid6 = list("raid6_n4_left-symmetric.csv");
    let far = list("raid10_f2_n4.csv");
    let data_row = "D,0,0,16,1,0,0";
    assert!(raid6.contains(data_row));
    let cases = [
        (
            "size",
            far.replace("array_bytes=4194304", "array_bytes=4194305"),
            "array_bytes",
        ),
        (
            "component",
            far.replace("component_size=2048", "component_size=2112"),
            "component_size",
        ),
        (
            "member",
            far.replace("D,1,0,16,1,256", "D,1,0,16,2,256"),
            "list.csv: line",
        ),
        (
            "missing",
            far.replace("D,1,0,16,1,256\n", ""),
            "not in the list",
        ),
        (
            "twice",
            far.replace("D,1,0,16,1,256", "D,1,0,16,0,0"),
            "again",
        ),
        (
            "shifted",
            far.replace("D,1,0,16,1,256", "D,1,16,16,1,256"),
            "listed as array block 16",
        ),
        (
            "copy",
            far.replace("D,1,0,16,1,256", "D,2,0,16,1,256"),
            "listed as",
        ),
        (
            "power",
            raid6.replace(data_row, "D,0,0,16,1,0,1"),
            "2^1 in Q",
        ),
        (
            "swapped",
            raid6.replace("md: level=raid6 layout=2", "md: level=raid6 layout=3"),
            "the map says",
        ),
        (
            "layout",
            raid6.replace("layout=2 ", "layout=11 "),
            "no layout",
        ),
        (
            "level",
            raid6.replace("level=raid6 layout", "level=raid7 layout"),
            "unknown RAID level",
        ),
        (
            "row",
            raid6.replace(data_row, "D,0,0,sixteen,1,0,0"),
            "not a row",
        ),
        (
            "header",
            raid6.replace("member_data_kib", "member_kib"),
            "the header lacks member_data_kib",
        ),
        (
            "beyond",
            far.replace("D,1,0,16,1,256", "D,1,0,16,1,999999999999"),
            "has no block",
        ),
        (
            "stranger",
            far.replace("D,1,0,16,1,256", "D,1,0,16,9,256"),
            "no member 9",
        ),
        (
            "endless",
            far.replace("D,1,0,16,1,256", "D,1,0,18446744073709551615,1,256"),
            "line",
        ),
    ];
    for (name, text, expected) in cases {
        let found = with_list(name, &text).unwrap_or_else(|| panic!("{name} was not found"));
        assert!(found.contains(expected), "{name}: {found}");
        assert!(
            found.starts_with("list.csv: ") && !found.contains('\n'),
            "{name}: {found}"
        );
    }
}

#[test]
fn a_directory_without_lists_is_an_error_and_not_a_success() {
    let directory = std::env::temp_dir().join(format!("spindle-maps-{}-none", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    assert!(matches!(
        validate_maps(&directory),
        Err(ValidateError::Empty(_))
    ));
    fs::remove_dir_all(&directory).unwrap();
    assert!(matches!(
        validate_maps(&directory),
        Err(ValidateError::Unreadable { .. })
    ));
}

/// The lists also record the queue attributes that the kernel chose.
#[test]
fn queue_limits_are_those_that_the_kernel_chose() {
    let mut compared = 0;
    for entry in fs::read_dir(data()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let number = |line: &str, key: &str| -> i64 {
            let line = text.lines().find(|text| text.starts_with(line)).unwrap();
            let word = line
                .split_whitespace()
                .find_map(|word| word.strip_prefix(key))
                .unwrap();
            word.parse().unwrap()
        };
        let line = text.lines().find(|line| line.starts_with("# md:")).unwrap();
        let level: Level = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("level="))
            .unwrap()
            .parse()
            .unwrap();
        let layout = Layout::from_md(level, number("# md:", "layout=")).unwrap();
        let sizes = text
            .lines()
            .find_map(|line| line.strip_prefix("# member_data_kib="))
            .unwrap();
        let sizes = sizes
            .split(',')
            .map(|kib| kib.parse::<u64>().unwrap() * 1024)
            .collect();
        let chunk = number("# md:", "chunk_size=") as u64;
        let array = Array::new(ArrayConfig::new(level, sizes).layout(layout).chunk(chunk)).unwrap();
        let limits = array.queue_limits();
        let attribute = |key| number("# queue:", key) as u64;
        let name = path.display();
        assert_eq!(
            limits.read_ahead,
            attribute("read_ahead_kb=") * 1024,
            "{name}"
        );
        assert_eq!(limits.optimal_io, attribute("optimal_io_size="), "{name}");
        assert_eq!(limits.minimum_io, attribute("minimum_io_size="), "{name}");
        assert_eq!(
            limits.max_request,
            attribute("max_sectors_kb=") * 1024,
            "{name}"
        );
        compared += 1;
    }
    assert_eq!(compared, 48);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any file content gives an error of one line and not a panic.
    #[test]
    fn damaged_lists_are_reported_in_a_line(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        digits in any::<bool>(),
    ) {
        let mut bytes = list("raid10_f2_n4_c4.csv").into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = if digits { b'0' + byte % 10 } else { byte % 128 };
        }
        let name = format!("damaged-{:?}", std::thread::current().id()).replace(['(', ')'], "");
        if let Some(found) = with_list(&name, &String::from_utf8(bytes).unwrap()) {
            prop_assert!(!found.is_empty());
        }
    }
}
