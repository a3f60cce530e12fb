//! Drives described in detail, against traces measured on them. The data are read in place: `SPINDLE_SHARED`, or the folder
//! `shared` beside the repository.

use std::path::PathBuf;

use spindle_drive::closed_loop::{Load, run};
use spindle_drive::disksim::read_drives;
use spindle_drive::validate::validate_drives;
use spindle_drive::{Mechanical, Scheduling};

fn data() -> Option<PathBuf> {
    let shared = std::env::var_os("SPINDLE_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = shared.join("data/drives");
    if folder.join("drives.json").is_file() {
        return Some(folder);
    }
    eprintln!(
        "skipped: no drives.json in {}; set SPINDLE_SHARED",
        folder.display()
    );
    None
}

#[test]
fn no_figure_is_worse_than_the_references() {
    let Some(folder) = data() else { return };
    let report = validate_drives(&folder).unwrap();
    for drive in &report.drives {
        assert!(drive.worse.is_empty(), "{}: {:?}", drive.drive, drive.worse);
    }
    assert!(
        report
            .drives
            .iter()
            .filter(|drive| drive.reference.is_some())
            .count()
            >= 4
    );
}

#[test]
fn a_queue_gains_what_the_reference_simulator_gains() {
    let Some(folder) = data() else { return };
    let text = std::fs::read_to_string(folder.join("drives.json")).unwrap();
    let described = read_drives(&text, "drives.json").unwrap();
    let cheetah = described
        .iter()
        .find(|drive| drive.key == "cheetah9LP")
        .unwrap();
    // DiskSim 4.0, 4 KiB random reads, shortest positioning time first.
    for (depth, reference) in [(1, 104.0), (4, 135.0), (8, 157.0), (16, 177.0), (32, 197.0)] {
        let mut params = cheetah.params.clone();
        params.queue.depth = depth;
        params.queue.scheduling = Scheduling::ShortestPositioning;
        let mut disk = Mechanical::new(&params).unwrap();
        let load = Load {
            depth,
            blocks: 8,
            span_blocks: u64::MAX,
            writes: 0.0,
            requests: 20_000,
            seed: 1,
        };
        let iops = run(&mut disk, &load).iops;
        println!("depth {depth}: {iops:.1} IOPS, reference {reference}");
        assert!(
            (iops / reference - 1.0).abs() < 0.15,
            "{iops} IOPS at depth {depth} instead of {reference}"
        );
    }
}

#[test]
fn missing_and_strange_parameters_are_errors() {
    let minimal = r#"{"one": {"geometry": {"Number of data surfaces": 2, "Number of cylinders": 10},
        "layout": {"Zones": [{"First cylinder number": 0, "Last cylinder number": 9, "Blocks per track": 50}]},
        "mech": {"Seek type": "constant", "Constant seek time": 5.0, "Rotation speed (in rpms)": 7200}}}"#;
    let drives = read_drives(minimal, "d.json").unwrap();
    assert!(Mechanical::new(&drives[0].params).is_ok());
    for (from, to, message) in [
        (
            "\"Blocks per track\": 50",
            "\"Blocks per track\": -1",
            "Blocks per track",
        ),
        (
            "\"Blocks per track\": 50",
            "\"Blocks\": 50",
            "'Blocks per track' is missing",
        ),
        ("\"constant\"", "\"guess\"", "Seek type"),
        ("7200", "\"fast\"", "Rotation speed"),
        (
            "{\"Zones\"",
            "{\"Sparing scheme used\": 11, \"Zones\"",
            "Sparing scheme",
        ),
    ] {
        let error = read_drives(&minimal.replace(from, to), "d.json")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("d.json: one:") && error.contains(message),
            "{error}"
        );
    }
    assert!(
        read_drives("{", "d.json")
            .unwrap_err()
            .to_string()
            .starts_with("d.json")
    );
}
