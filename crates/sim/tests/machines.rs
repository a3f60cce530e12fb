//! Machine files: mistakes give one line with their place, and the examples of the catalogue are right.

use spindle_sim::{Machine, machine_names, machine_text};

fn error(text: &str) -> String {
    let error = Machine::parse(text, "m.toml").unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn mistakes_are_reported_with_file_line_and_allowed_values() {
    let drives = |count: u32| format!("[[drive]]\nmodel = 'WD10EACS'\ncount = {count}\n");
    for (text, place, words) in [
        (
            format!("[queue]\nshceduler = 'cfq'\n{}", drives(1)),
            "m.toml:2:",
            "did you mean `scheduler`",
        ),
        (
            format!("[queue]\nscheduler = 'cfk'\n{}", drives(1)),
            "m.toml:2:",
            "did you mean \"cfq\"",
        ),
        (
            format!(
                "[queue]\nscheduler = 'cfq'\n[queue.iosched]\nread_expire = '1s'\n{}",
                drives(1)
            ),
            "m.toml:4:",
            "read_expire",
        ),
        (
            format!("[host]\nkernel = 'new'\n{}", drives(1)),
            "m.toml:2:",
            "kernel version",
        ),
        (
            format!("[host]\ndirty_ratio = 101\n{}", drives(1)),
            "m.toml:2:",
            "dirty_ratio",
        ),
        (
            format!("[array]\nlevel = 'raid5'\nchunk = '48KiB'\n{}", drives(4)),
            "m.toml:3:",
            "power of two",
        ),
        (
            format!("[array]\nlevel = 'raid6'\n{}", drives(3)),
            "m.toml:2:",
            "4",
        ),
        (
            format!("[array]\nlevel = 'raid7'\n{}", drives(4)),
            "m.toml:2:",
            "raid6",
        ),
        (
            format!("[array]\nlevel = 'raid10'\nlayout = 'x2'\n{}", drives(4)),
            "m.toml:3:",
            "x2",
        ),
        (
            format!("[array]\nlevel = 'raid5'\nmissing = [0, 1]\n{}", drives(4)),
            "m.toml:3:",
            "survive",
        ),
        (
            format!("[array]\nlevel = 'raid10'\nmissing = [0, 1]\n{}", drives(4)),
            "m.toml:3:",
            "survive",
        ),
        (
            format!("[array]\nlevel = 'raid5'\nmissing = 7\n{}", drives(4)),
            "m.toml:3:",
            "from 0 to 3",
        ),
        (
            format!(
                "[array]\nlevel = 'raid5'\nsync_speed_max = '1 MB/s'\n{}",
                drives(4)
            ),
            "m.toml:3:",
            "rebuild",
        ),
        (
            format!(
                "[array]\nlevel = 'raid0'\nbitmap = 'internal'\n{}",
                drives(2)
            ),
            "m.toml:3:",
            "no copies",
        ),
        (
            format!(
                "[array]\nlevel = 'raid1'\nbitmap = 'internal'\nbitmap_chunk = '64KiB'\n{}",
                drives(2)
            ),
            "m.toml:4:",
            "at least 1024 KiB",
        ),
        (
            format!("[array]\nlevel = 'raid1'\nchunk = '64KiB'\n{}", drives(2)),
            "m.toml:3:",
            "no chunks",
        ),
        (
            format!(
                "[array]\ntype = 'controller'\nlevel = 'raid1'\n{}",
                drives(2)
            ),
            "m.toml:2:",
            "needs `[controller]`",
        ),
        (
            "[[drive]]\nmodel = 'WD10EAC'\n".to_owned(),
            "m.toml:2:",
            "did you mean \"WD10EACS\"",
        ),
        (
            "[[drive]]\nmodel = 'WD10EACS'\nregion = '0-2TB'\n".to_owned(),
            "m.toml:3:",
            "the drive at byte",
        ),
        (
            "[[drive]]\nservice = '0s'\ncapacity = '1GB'\n".to_owned(),
            "m.toml:2:",
            "more than nothing",
        ),
        (
            "[[drive]]\ncount = 2\n".to_owned(),
            "m.toml:1:",
            "missing key `model`",
        ),
        (drives(2), "m.toml:1:", "`[array]`"),
        (
            "about = 'nothing'\n".to_owned(),
            "m.toml:1:",
            "missing key `drive`",
        ),
        ("[[drive]\n".to_owned(), "m.toml:1:", "TOML"),
    ] {
        let error = error(&text);
        assert!(
            error.starts_with(place) && error.contains(words),
            "{text}\n{error}"
        );
    }
}

#[test]
fn any_two_other_members_of_a_mirror_may_be_gone() {
    let text =
        "[array]\nlevel = 'raid10'\nmissing = [0, 3]\n[[drive]]\nmodel = 'WD10EACS'\ncount = 4\n";
    let machine = Machine::parse(text, "m.toml").unwrap();
    assert_eq!(machine.array.unwrap().missing, [0, 3]);
}

#[test]
fn a_machine_may_bring_its_own_drives() {
    let sheet = include_str!("../../../catalogue/drives/WD10EACS.toml")
        .replace("[source]", "[sheet.source]")
        .replace("[range]", "[sheet.range]")
        .replace("name = \"WD10EACS\"", "name = \"mine\"");
    let text = format!(
        "[[sheet]]\n{sheet}\n[[drive]]\nmodel = 'mine'\nregion = '10%-20%'\nqueue_depth = 4\n"
    );
    let machine = Machine::parse(&text, "m.toml").unwrap();
    assert!((machine.drives[0].len as f64 / 1e11 - 1.0).abs() < 0.01);
}

#[test]
fn the_examples_of_the_catalogue_are_right_and_all_there() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogue/machines");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|file| file.strip_suffix(".toml").unwrap().to_owned())
        .collect();
    files.sort();
    let names: Vec<&str> = machine_names().collect();
    assert_eq!(files, names);
    for name in machine_names() {
        let machine = Machine::parse(machine_text(name).unwrap(), name).unwrap();
        assert!(!machine.about.is_empty(), "{name}");
        assert!(machine.capacity().unwrap() > 0);
    }
    let error = machine_text("six-sata-f3").unwrap_err().to_string();
    assert!(error.contains("did you mean \"six-sata-f2\""), "{error}");
}
