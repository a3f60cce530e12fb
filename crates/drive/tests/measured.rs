//! Drives described in detail, against traces measured on them. The data are read in place: `SPINDLE_SHARED`, or the folder
//! `shared` beside the repository.

use std::path::PathBuf;

use spindle_drive::closed_loop::{Load, run};
use spindle_drive::disksim::{DriveDescription, read_drives};
use spindle_drive::validate::validate_drives;
use spindle_drive::{Command, Device, Mechanical, Scheduling};

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
        .into_iter()
        .map(Result::unwrap)
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

/// A drive of two surfaces and ten cylinders.
const MINIMAL: &str = r#"{"one": {"geometry": {"Number of data surfaces": 2, "Number of cylinders": 10},
    "layout": {"Zones": [{"First cylinder number": 0, "Last cylinder number": 9, "Blocks per track": 50}]},
    "mech": {"Seek type": "constant", "Constant seek time": 5.0, "Rotation speed (in rpms)": 7200}}}"#;

fn described(text: &str) -> DriveDescription {
    read_drives(text, "d.json").unwrap().remove(0).unwrap()
}

#[test]
fn a_drive_may_have_its_own_host_bus_a_negative_settling_and_a_cylinder_more() {
    let bus = |text: &str| described(text).params.bus;
    let with_bus = MINIMAL.replace(
        "{\"one\": {",
        "{\"one\": {\"host_bus\": {\"read_ms_per_block\": 0.2, \"write_ms_per_block\": 0.3},
          \"controller_cache\": {\"Bulk sector transfer time\": 0.25},",
    );
    // The longer of the host's time and the drive's own.
    let q16 = |ms: f64| (ms * 1e6 * 65536.0).round() as u64;
    assert_eq!(bus(&with_bus).read_block_q16, q16(0.25));
    assert_eq!(bus(&with_bus).write_block_q16, q16(0.3));
    assert_eq!(bus(MINIMAL).read_block_q16, 0);

    let cylinder_more = described(&MINIMAL.replace(": 9,", ": 10,"));
    let disk = Mechanical::new(&cylinder_more.params).unwrap();
    assert_eq!(disk.geometry().blocks(), 2 * 11 * 50);
    assert_eq!(disk.geometry().locate(2 * 11 * 50 - 1).cylinder, 10);
    let two_more = described(&MINIMAL.replace(": 9,", ": 11,"));
    assert!(Mechanical::new(&two_more.params).is_err());

    let write_ns = |settle: &str| {
        let text = MINIMAL.replace("7200}", &format!("7200, {settle}}}"));
        let mut disk = Mechanical::new(&described(&text).params).unwrap();
        disk.submit(0, Command::write(0, 500, 1)).unwrap();
        let mut phases = None;
        while let Some(event) = disk.next_event_ns() {
            disk.advance(event, &mut |done| phases = Some(done.phases));
        }
        phases.unwrap().seek_ns
    };
    let settle = "\"Add. write settling delay\": -1.5";
    assert_eq!(write_ns("\"Head switch time\": 0"), 5_000_000);
    assert_eq!(write_ns(settle), 3_500_000);
}

#[test]
fn every_scheduler_of_the_format_has_the_nearest_of_the_models() {
    let scheduling = |policy: u32| {
        let with = format!(
            "{{\"one\": {{\"controller_cache\": {{\"Scheduler\": {{\"Scheduling policy\": {policy}}}}},"
        );
        let drive = described(&MINIMAL.replace("{\"one\": {", &with));
        (drive.params.queue.scheduling, drive.notes.is_empty())
    };
    assert_eq!(scheduling(1), (Scheduling::Fifo, true));
    assert_eq!(scheduling(7), (Scheduling::ShortestSeek, true));
    assert_eq!(scheduling(8), (Scheduling::ShortestPositioning, true));
    for policy in [2, 3, 4, 5, 6, 17, 18, 19] {
        assert_eq!(scheduling(policy), (Scheduling::ShortestSeek, false));
    }
    for policy in 9..=16 {
        assert_eq!(scheduling(policy), (Scheduling::ShortestPositioning, false));
    }
}

#[test]
fn missing_and_strange_parameters_are_errors() {
    let minimal = MINIMAL;
    let one = |text: &str| read_drives(text, "d.json").unwrap().remove(0);
    assert!(Mechanical::new(&one(minimal).unwrap().params).is_ok());
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
        (
            "{\"one\": {",
            "{\"one\": {\"host_bus\": {\"read_ms_per_block\": -1},",
            "host_bus",
        ),
        (
            "{\"one\": {",
            "{\"one\": {\"controller_cache\": {\"Scheduler\": {\"Scheduling policy\": 29}},",
            "known are 1 to 28",
        ),
    ] {
        let (key, error) = one(&minimal.replace(from, to)).unwrap_err();
        assert_eq!(key, "one");
        let error = error.to_string();
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
