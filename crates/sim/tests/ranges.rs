//! Uncertain numbers of machines: which there are, and machines at the ends of their ranges.

mod common;

use common::{machine, read, run};
use spindle_config::Change;
use spindle_sim::{ControllerSheet, Machine, PartRange, machine_names, machine_text};

fn change(of: &PartRange, value: &str) -> Change {
    Change {
        part: of.part.clone(),
        key: of.range.key.to_owned(),
        value: value.to_owned(),
    }
}

fn keys(machine: &Machine) -> Vec<(String, &'static str)> {
    let ranges = machine.ranges().into_iter();
    ranges.map(|of| (of.part, of.range.key)).collect()
}

#[test]
fn every_machine_and_controller_of_the_catalogue_can_be_built_at_both_ends_of_its_ranges() {
    let controlled = ControllerSheet::names().map(|name| {
        let drive = "[[drive]]\nmodel = 'HDS725050KLA360'\n";
        (name, format!("[controller]\nmodel = '{name}'\n{drive}"))
    });
    let examples = machine_names().map(|name| (name, machine_text(name).unwrap().to_owned()));
    for (name, text) in controlled.chain(examples) {
        let ranges = machine(&text).ranges();
        for of in &ranges {
            for end in [&of.range.least, &of.range.most] {
                let changed = Machine::parse_changed(&text, name, &[change(of, end)]);
                assert!(changed.is_ok(), "{name} {}: {changed:?}", of.range.key);
            }
        }
        let disks = !text.contains("970-PRO") && !text.contains("860-EVO");
        assert_eq!(!ranges.is_empty(), disks, "{name}");
    }
}

#[test]
fn a_disk_s_ranges_are_those_that_its_sheet_states_and_those_it_leaves_out() {
    let disk = "HDS725050KLA360".to_owned();
    let own = |key| (disk.clone(), key);
    let found = keys(&machine("[[drive]]\nmodel = 'HDS725050KLA360'\n"));
    assert_eq!(
        found,
        [
            own("seek_average"),
            own("read_hit_overhead"),
            own("write_hit_overhead"),
            own("settle_margin"),
            own("ahead_of_cached")
        ]
    );
    let found = keys(&machine(
        "[[drive]]\nmodel = 'HDS725050KLA360'\nwrite_cache = false\n",
    ));
    assert_eq!(
        found,
        [
            own("seek_average"),
            own("read_hit_overhead"),
            own("settle_margin")
        ]
    );
}

#[test]
fn a_flash_drive_of_a_silent_sheet_has_ranges_once_it_was_written_in_full() {
    let sheet = include_str!("../../../catalogue/drives/970-PRO-1TB.toml");
    let silent = |line: &&str| {
        let keys = ["spare", "pages_per_block", "erase_block"];
        !keys.iter().any(|key| line.starts_with(key))
    };
    let sheet: Vec<&str> = sheet.lines().filter(silent).collect();
    let sheet = sheet.join("\n").replace("[source]", "[sheet.source]");
    let sheet = sheet.replace("[range]", "[sheet.range]");
    let of = |state: &str| {
        let drive = format!("[[drive]]\nmodel = '970-PRO-1TB'\nstate = '{state}'\n");
        let found = keys(&machine(&format!("[[sheet]]\n{sheet}\n{drive}")));
        found.into_iter().map(|(_, key)| key).collect::<Vec<_>>()
    };
    assert!(of("fresh").is_empty());
    assert_eq!(of("used"), ["spare", "pages_per_block", "erase_block"]);
}

#[test]
fn assumed_numbers_without_a_range_are_named() {
    let found = machine("[controller]\nmodel = '9550SX'\n[[drive]]\nmodel = 'HDS725050KLA360'\n");
    let assumed = found.assumed();
    assert!(assumed.contains(&("HDS725050KLA360", "write_settle")));
    assert!(!assumed.contains(&("HDS725050KLA360", "rpm")));
    assert!(
        !assumed.contains(&("9550SX", "command_overhead")),
        "has a range"
    );
}

#[test]
fn a_machine_at_the_ends_of_a_range_is_slower_at_one_than_at_the_other() {
    let text =
        "[[drive]]\nservice = '1ms'\ncapacity = '1GiB'\nrange = { service = ['500us', '2ms'] }\n";
    let of = &machine(text).ranges()[0];
    let iops = |value: &str| {
        let changed = Machine::parse_changed(text, "m.toml", &[change(of, value)]).unwrap();
        read(&run(&changed, "seconds = 2\n")).iops
    };
    let found = [&of.range.least, &of.range.value, &of.range.most].map(|value| iops(value));
    assert_eq!(found.map(f64::round), [2000.0, 1000.0, 500.0]);
}

#[test]
fn a_change_of_another_part_changes_nothing() {
    let text = "[[drive]]\nservice = '1ms'\ncapacity = '1GiB'\n";
    let other = Change {
        part: "HDS725050KLA360".to_owned(),
        key: "service".to_owned(),
        value: "2ms".to_owned(),
    };
    assert_eq!(
        Machine::parse_changed(text, "m.toml", &[other]).unwrap(),
        Machine::parse(text, "m.toml").unwrap()
    );
}
