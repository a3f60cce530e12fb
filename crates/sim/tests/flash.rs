//! Flash drives of a machine: their state, what they do for writes, and discards.

mod common;

use common::{machine, run, workload, write};
use spindle_sim::{FlashFigures, Machine, SimError, SimFigures, SimOptions, simulate};

/// A small drive of four dies: 2 GiB with 12 % spare.
const SHEET: &str = "
[[sheet]]
name = 'small'
title = 'small'
kind = 'flash'
capacity = '2 GiB'
channels = 4
dies_per_channel = 1
page = '16 KiB'
read_page = '50us'
program_page = '500us'
channel_rate = '800 MB/s'
interface_rate = '3 GB/s'
command_overhead = '10us'
command_rate = '500000 IOPS'
queue_depth = 64
write_cache = '1 MiB'
spare = '12%'
pages_per_block = 64
[sheet.source]
";
const KEYS: [&str; 14] = [
    "capacity",
    "channels",
    "dies_per_channel",
    "page",
    "read_page",
    "program_page",
    "channel_rate",
    "interface_rate",
    "command_overhead",
    "command_rate",
    "queue_depth",
    "write_cache",
    "spare",
    "pages_per_block",
];

fn small(rest: &str) -> Machine {
    let sources: String = KEYS
        .iter()
        .map(|key| format!("{key} = 'assumed'\n"))
        .collect();
    machine(&format!("{SHEET}{sources}{rest}"))
}

fn drive(state: &str) -> Machine {
    small(&format!("[[drive]]\nmodel = 'small'\nstate = '{state}'\n"))
}

fn load(requests: u32, more: &str) -> String {
    format!(
        "requests = {requests}\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\ndepth = 32\n{more}"
    )
}

fn flash(figures: &SimFigures) -> FlashFigures {
    figures.drives[0].flash.unwrap()
}

fn amplification(figures: &SimFigures) -> f64 {
    let flash = flash(figures);
    1.0 + (flash.moved_bytes + flash.padded_bytes) as f64 / flash.written_bytes as f64
}

#[test]
fn the_state_of_a_drive_decides_how_fast_it_writes() {
    let writes = load(200_000, "write_fraction = 1.0");
    let of = |state: &str| run(&drive(state), &writes);
    let (fresh, used) = (of("fresh"), of("used"));
    assert_eq!((flash(&fresh).state, flash(&used).state), ("fresh", "used"));
    assert_eq!(flash(&fresh).moved_bytes, 0);
    assert_eq!(flash(&used).written_bytes, 200_000 * 4096);
    let expected = spindle_drive::amplification::uniform(spindle_drive::Collection::Greedy, 0.12);
    let found = amplification(&used);
    assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    assert!(write(&used).iops < 0.3 * write(&fresh).iops);
    // Its own spare space is all that a filled drive can write to before it collects: 12 % of 2 GiB.
    let filled = of("filled");
    assert!(flash(&filled).moved_bytes > 0 && amplification(&filled) < found);
}

#[test]
fn a_drive_is_fresh_unless_the_machine_file_says_otherwise() {
    let silent = small("[[drive]]\nmodel = 'small'\n");
    let writes = load(5000, "write_fraction = 1.0");
    assert_eq!(run(&silent, &writes), run(&drive("fresh"), &writes));
}

#[test]
fn a_wrong_state_is_reported_with_its_line() {
    let error = |text: &str| Machine::parse(text, "m.toml").unwrap_err().to_string();
    let text = error("[[drive]]\nmodel = '970-PRO-1TB'\nstate = 'usde'");
    assert!(
        text.starts_with("m.toml:3:") && text.contains("`used`"),
        "{text}"
    );
    let text = error("[[drive]]\nmodel = 'HDS725050KLA360'\nstate = 'used'");
    assert!(
        text.starts_with("m.toml:3:") && text.contains("disk"),
        "{text}"
    );
}

#[test]
fn discards_reach_the_drive_and_leave_collection_less_to_move() {
    let with = |share: f64| {
        let more = format!("write_fraction = {}\ntrim_fraction = {share}", 1.0 - share);
        run(&drive("used"), &load(1_000_000, &more))
    };
    let (without, some) = (with(0.0), with(0.3));
    assert_eq!(without.drives[0].discards, 0);
    let drive = &some.drives[0];
    let share = drive.discards as f64 / 1_000_000.0;
    assert!((share - 0.3).abs() < 0.01, "{share}");
    assert_eq!(drive.discard_bytes, drive.discards * 4096);
    assert_eq!(
        some.run.streams[0].trim.as_ref().unwrap().requests,
        drive.discards
    );
    assert!(amplification(&some) < 0.6 * amplification(&without));
}

#[test]
fn discards_pass_an_array_without_parity_and_an_elevator() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let mirror = small(&format!(
            "[queue]\nscheduler = '{scheduler}'\n[array]\nlevel = 'raid1'\n[[drive]]\nmodel = 'small'\ncount = 2\n"
        ));
        let figures = run(
            &mirror,
            &load(20_000, "write_fraction = 0.4\ntrim_fraction = 0.3"),
        );
        let trims = figures.run.streams[0].trim.as_ref().unwrap().requests;
        assert!(trims > 5000);
        for drive in &figures.drives {
            assert_eq!(drive.discards, trims, "{scheduler}");
        }
    }
}

#[test]
fn discards_that_nothing_takes_are_refused() {
    let refused = |machine: &Machine, more: &str| {
        let load = workload(&load(10, &format!("trim_fraction = 0.5\n{more}")));
        simulate(machine, &load, SimOptions::default()).unwrap_err()
    };
    let parity = small("[array]\nlevel = 'raid5'\n[[drive]]\nmodel = 'small'\ncount = 3\n");
    let error = refused(&parity, "");
    assert!(matches!(error, SimError::Trim { .. }), "{error}");
    let error = refused(&drive("fresh"), "direct = false");
    assert!(matches!(error, SimError::BufferedTrim { .. }), "{error}");
}

#[test]
fn a_run_of_a_used_drive_that_is_ten_times_as_long_allocates_no_more() {
    let of = |requests: u32| {
        let (machine, load) = (
            drive("used"),
            workload(&load(requests, "write_fraction = 0.7\ntrim_fraction = 0.1")),
        );
        let options = SimOptions {
            interval_ns: 1 << 60,
            ..SimOptions::default()
        };
        let seen = allocation_counter::measure(|| {
            simulate(&machine, &load, options).unwrap();
        });
        (seen.count_total, seen.bytes_max)
    };
    let (short, long) = (of(30_000), of(300_000));
    assert!(long.0 < short.0 + 40, "{} and {}", short.0, long.0);
    assert!(
        long.1 < short.1 * 11 / 10 + (64 << 10),
        "{} and {}",
        short.1,
        long.1
    );
}
