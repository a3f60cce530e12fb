//! Every drive of the catalogue that can be bought does what its own sheet states.

use spindle_drive::closed_loop::{Load, run};
use spindle_drive::datasheet::Kind;
use spindle_drive::{
    Command, DataSheet, Device, Drive, FlashState, Settings, drive_names, sheet, show,
};

/// Sheets with a maker's figure.
fn sheets() -> impl Iterator<Item = DataSheet> {
    drive_names().into_iter().map(|name| sheet(name).unwrap())
}

fn fresh(sheet: &DataSheet) -> Drive {
    let settings = Settings {
        state: Some(FlashState::Fresh),
        ..Settings::default()
    };
    sheet.build(settings).unwrap()
}

/// Reads or writes from the start on in requests of 128 KiB, 32 outstanding, as makers measure; bytes per second of the
/// last three quarters.
fn stream(mut drive: Drive, request: fn(u64, u64, u32) -> Command) -> f64 {
    const BLOCKS: u64 = 256;
    const REQUESTS: u64 = 8_000;
    let depth = drive.queue_depth().min(32);
    let (mut submitted, mut done, mut now_ns, mut from_ns) = (0, 0, 0, 0);
    while done < REQUESTS {
        while submitted < REQUESTS && drive.outstanding() < depth {
            let command = request(submitted, submitted * BLOCKS, BLOCKS as u32);
            drive.submit(now_ns, command).unwrap();
            submitted += 1;
        }
        now_ns = drive.next_event_ns().expect("requests are outstanding");
        drive.advance(now_ns, &mut |_| {
            done += 1;
            if done == REQUESTS / 4 {
                from_ns = now_ns;
            }
        });
    }
    ((REQUESTS - REQUESTS / 4) * BLOCKS * 512) as f64 * 1e9 / (now_ns - from_ns) as f64
}

#[test]
fn every_flash_drive_reads_as_fast_as_its_sheet_states() {
    for sheet in sheets().filter(DataSheet::is_flash) {
        let line = show::line(&sheet).unwrap().bytes_per_second;
        let share = line / show::facts(&sheet).bytes_per_second;
        assert!(
            (0.93..1.03).contains(&share),
            "{}: {share:.3} of its sheet's sequential reads",
            sheet.name
        );
    }
}

#[test]
fn every_drive_serves_as_many_random_reads_as_its_sheet_states() {
    for sheet in sheets() {
        let (Some(stated), Some(depth)) =
            (sheet.offer.stated_read_iops, sheet.offer.stated_read_depth)
        else {
            continue;
        };
        let load = Load {
            depth,
            blocks: 8,
            span_blocks: u64::MAX,
            writes: 0.0,
            requests: if sheet.is_flash() { 40_000 } else { 5_000 },
            seed: 1,
        };
        let share = run(&mut fresh(&sheet), &load).iops / stated;
        let within = if sheet.is_flash() { 0.1 } else { 0.15 };
        assert!(
            (share - 1.0).abs() < within,
            "{}: {share:.3} of its sheet's random reads",
            sheet.name
        );
    }
}

#[test]
fn every_flash_drive_writes_as_fast_as_its_sheet_states() {
    for sheet in sheets() {
        let Some(stated) = sheet.offer.stated_write_rate else {
            continue;
        };
        let share = stream(fresh(&sheet), Command::write) / stated;
        assert!(
            (0.9..1.1).contains(&share),
            "{}: {share:.3} of its sheet's sequential writes",
            sheet.name
        );
    }
}

#[test]
fn the_numbers_of_a_sheet_that_is_on_sale_are_plausible() {
    let on_sale: Vec<DataSheet> = sheets().filter(|sheet| sheet.offer.afr.is_some()).collect();
    assert!(on_sale.len() >= 40, "{} drives", on_sale.len());
    for sheet in on_sale {
        let (name, offer) = (&sheet.name, &sheet.offer);
        let afr = offer.afr.unwrap();
        assert!(
            (0.001..0.01).contains(&afr.value) && afr.most < 0.03,
            "{name}: {afr:?}"
        );
        let errors = offer.unreadable_rate.unwrap();
        assert!(
            (1e-17..=1e-15).contains(&errors.value),
            "{name}: {errors:?}"
        );
        assert!(errors.least < errors.value, "{name}: sheets give bounds");
        let (idle, active) = (offer.idle_watts.unwrap(), offer.active_watts.unwrap());
        assert!(
            idle.value < active.value && active.most < 30.0,
            "{name}: watts"
        );
        assert!(
            offer.bay.is_some() && offer.interface.is_some(),
            "{name}: place"
        );
        assert_eq!(
            offer.endurance.is_some(),
            sheet.is_flash(),
            "{name}: endurance"
        );
        if let Kind::Disk(disk) = &sheet.kind {
            let (low, high) = if disk.rpm > 9000.0 {
                (0.4, 0.8)
            } else {
                (0.4, 0.55)
            };
            assert!(
                (low..high).contains(&(disk.inner_rate / disk.outer_rate)),
                "{name}: rates"
            );
        }
    }
}

#[test]
fn a_range_of_a_failure_rate_is_kept_apart_from_those_of_the_model() {
    let exos = sheet("ST20000NM007D").unwrap();
    let afr = exos.offer.afr.unwrap();
    assert!(afr.least <= afr.value && afr.value < afr.most, "{afr:?}");
    assert!(exos.ranges().iter().all(|range| range.key != "afr"));
    assert!(exos.ranges().iter().any(|range| range.key == "inner_rate"));
}

#[test]
fn a_wrong_number_for_the_buyer_is_reported_with_its_line() {
    let text = include_str!("../../../catalogue/drives/ST20000NM007D.toml");
    for (from, to, word) in [
        ("afr = \"0.35%\"", "afr = \"often\"", "afr"),
        ("bay = \"3.5 inch\"", "bay = \"4 inch\"", "3.5 inch"),
        ("idle_watts = 5.4", "idle_watts = 500", "idle_watts"),
        (
            "unreadable_rate = 1e-15",
            "unreadable_rate = 2",
            "unreadable_rate",
        ),
        (
            "warranty_years = 5\n",
            "warranty_year = 5\n",
            "warranty_year",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let error = DataSheet::parse(&text.replacen(from, to, 1), "x.toml")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("x.toml:") && error.contains(word),
            "{error}"
        );
    }
}
