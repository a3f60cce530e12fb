//! Controllers: their cache, their arrays, their limits.

use spindle_measure::OpFigures;
use spindle_sim::{Machine, SimFigures, SimOptions, simulate};
use spindle_workload::Workload;

const MIB: u64 = 1 << 20;

/// Drives that take 1 ms for each command behind a controller without an array, or with one.
fn machine(controller: &str, array: &str, drives: u32) -> Machine {
    let text = format!(
        "[host]\nkernel = '6.1'\n[queue]\nscheduler = 'none'\n[controller]\nmodel = '9650SE-16ML'\n{controller}\n{array}\n\
         [[drive]]\nservice = '1ms'\ncapacity = '1GiB'\nqueue_depth = 32\nflush = '1ms'\ncount = {drives}\n"
    );
    Machine::parse(&text, "m.toml").unwrap()
}

fn array(level: &str) -> String {
    format!("[array]\ntype = 'controller'\nlevel = '{level}'\nchunk = '64KiB'")
}

fn run(machine: &Machine, load: &str) -> SimFigures {
    let text = format!("seconds = 'none'\npattern = 'uniform'\ndirect = true\n{load}");
    let load = Workload::parse(&text, "load", "load", &[]).unwrap();
    simulate(machine, &load, SimOptions::default()).unwrap()
}

fn write(figures: &SimFigures) -> &OpFigures {
    figures.run.streams[0].write.as_ref().unwrap()
}

fn read(figures: &SimFigures) -> &OpFigures {
    figures.run.streams[0].read.as_ref().unwrap()
}

#[test]
fn writes_are_answered_by_the_cache_until_it_is_full() {
    let machine = machine("cache = '4MiB'", "", 1);
    let few = run(
        &machine,
        "size = '64KiB'\nwrite_fraction = 1\nrequests = 60",
    );
    // 50 us of the processor, and 64 KiB at 1500 MB/s.
    assert!(write(&few).latency.max_ns < 200_000);
    let many = run(
        &machine,
        "size = '64KiB'\nwrite_fraction = 1\nrequests = 2000",
    );
    let rate = write(&many).iops;
    // Then at the pace of the drive.
    assert!((950.0..1100.0).contains(&rate), "{rate}");
}

#[test]
fn without_its_cache_a_write_takes_the_time_of_the_drive() {
    let machine = machine("write_cache = false", "", 1);
    let figures = run(
        &machine,
        "size = '4KiB'\nwrite_fraction = 1\nrequests = 100",
    );
    assert!(write(&figures).latency.min_ns >= 1_050_000);
}

#[test]
fn a_small_line_of_the_cache_is_as_full_as_a_large_one() {
    // Lines of 64 KiB: the cache takes as many writes of 512 bytes as of 64 KiB.
    let machine = machine("cache = '4MiB'", "", 1);
    for size in ["512", "'64KiB'"] {
        let load = format!("size = {size}\nwrite_fraction = 1\nrequests = 2000");
        let rate = write(&run(&machine, &load)).iops;
        assert!((950.0..1150.0).contains(&rate), "{size}: {rate}");
    }
}

#[test]
fn by_age_the_arm_goes_to_and_fro_between_two_streams_and_by_address_it_stays() {
    // Two streams, far from each other, on one disk behind a cache of 16 MiB.
    let stream = |name: &str, region: &str| {
        format!(
            "[[stream]]\nname = '{name}'\npattern = 'sequential'\ndirect = true\nsize = '64KiB'\ndepth = 8\nregion = '{region}'\n\
             write_fraction = 1\n"
        )
    };
    let load = format!(
        "bytes = '256MiB'\nseconds = 'none'\n{}{}",
        stream("near", "0-10GB"),
        stream("far", "250GB-260GB")
    );
    let load = Workload::parse(&load, "load", "load", &[]).unwrap();
    let seconds = |order: &str| {
        let text = format!(
            "[host]\nkernel = '6.1'\n[queue]\nscheduler = 'none'\n[controller]\nmodel = '9650SE-16ML'\ncache = '16MiB'\n\
             destage_order = '{order}'\n[[drive]]\nmodel = 'HDS725050KLA360'\nwrite_cache = false\n"
        );
        let machine = Machine::parse(&text, "m.toml").unwrap();
        let figures = simulate(&machine, &load, SimOptions::default()).unwrap();
        figures.run.elapsed_ns as f64 / 1e9
    };
    let (address, age) = (seconds("address"), seconds("age"));
    assert!(age > 1.5 * address, "{address} and {age} s");
}

#[test]
fn reads_of_what_is_in_the_cache_need_no_drive() {
    let machine = machine("", "", 1);
    let load =
        "size = '4KiB'\nwrite_fraction = 0.5\nrequests = 2000\nregion = '0-64KiB'\nworkers = 4";
    let figures = run(&machine, load);
    assert!(read(&figures).latency.min_ns < 100_000);
}

#[test]
fn cached_writes_wait_for_a_drive_that_has_nothing_to_read_while_there_is_room() {
    // The drive serves 1000 commands a second: all of them reads, so all writes stay in the cache.
    let load = "size = '4KiB'\nwrite_fraction = 0.2\nworkers = 8\nrequests = 5000";
    let figures = run(&machine("", "", 1), load);
    let rate = read(&figures).iops;
    assert!((980.0..1010.0).contains(&rate), "{rate}");
    // Without reads they have left when a flush comes: 50 would take it 50 ms.
    let load = "size = '4KiB'\nwrite_fraction = 1\nfsync_every = 50\nrequests = 200\nrate = 400";
    let figures = run(&machine("", "", 1), load);
    let sync = figures.run.streams[0].fsync.as_ref().unwrap();
    assert!(sync.latency.max_ns < 5_000_000, "{}", sync.latency.max_ns);
}

/// Rates of reads and writes of a drive on which streams of both want all of it, with `keys` for those that write.
fn reads_beside_writes(machine: &Machine, keys: &str) -> (f64, f64, SimFigures) {
    let stream = |name: &str, keys: &str| {
        format!(
            "[[stream]]\nname = '{name}'\npattern = 'uniform'\ndirect = true\nsize = '4KiB'\n{keys}\n"
        )
    };
    let load = format!(
        "seconds = 20\nramp = '5s'\n{}{}",
        stream("reads", "workers = 16"),
        stream("writes", &format!("write_fraction = 1\n{keys}"))
    );
    let load = Workload::parse(&load, "load", "load", &[]).unwrap();
    let figures = simulate(machine, &load, SimOptions::default()).unwrap();
    let [reads, writes] = &figures.run.streams[..] else {
        panic!("two streams")
    };
    let of = |op: &Option<OpFigures>| op.as_ref().unwrap().iops;
    (of(&reads.read), of(&writes.write), figures)
}

#[test]
fn two_cached_writes_go_for_three_reads_while_a_writer_waits_for_room() {
    let (reads, writes, _) = reads_beside_writes(&machine("cache = '4MiB'", "", 1), "workers = 16");
    assert!((590.0..610.0).contains(&reads), "{reads}");
    assert!((390.0..410.0).contains(&writes), "{writes}");
}

#[test]
fn a_flush_does_not_wait_until_nobody_reads() {
    let keys = "workers = 1\nrate = 50\nfsync_every = 5";
    let (_, writes, figures) = reads_beside_writes(&machine("", "", 1), keys);
    assert!((45.0..55.0).contains(&writes), "{writes}");
    let sync = figures.run.streams[1].fsync.as_ref().unwrap();
    assert!(sync.latency.mean_ns < 1e8, "{}", sync.latency.mean_ns);
}

#[test]
fn without_a_cache_of_the_controller_writes_take_turns_with_reads() {
    let (reads, writes, _) =
        reads_beside_writes(&machine("write_cache = false", "", 1), "workers = 16");
    assert!((490.0..510.0).contains(&reads), "{reads}");
    assert!((490.0..510.0).contains(&writes), "{writes}");
}

#[test]
fn caches_of_drives_are_as_the_maker_sets_them_unless_the_file_says_otherwise() {
    for (controller, drive, write_cache) in [
        ("model = '9650SE-16ML'", "", Some(false)),
        ("model = '9650SE-16ML'", "write_cache = true", Some(true)),
        ("model = '9550SX'", "", Some(false)),
        ("model = '9500S-12'", "", None),
        ("model = '9500S-12'\nwrite_cache = false", "", Some(false)),
        ("model = '9211-8i'", "", None),
        ("model = '9211-8i'", "write_cache = false", Some(false)),
    ] {
        let text = format!("[controller]\n{controller}\n[[drive]]\nmodel = 'WD10EACS'\n{drive}\n");
        let machine = Machine::parse(&text, "m.toml").unwrap();
        assert_eq!(
            machine.drives[0].settings.write_cache, write_cache,
            "{text}"
        );
    }
}

#[test]
fn a_stripe_of_drives_serves_as_many_reads_at_once() {
    let machine = machine("", &array("raid0"), 4);
    let figures = run(&machine, "size = '4KiB'\nworkers = 64\nrequests = 20000");
    let rate = read(&figures).iops;
    assert!((3500.0..4010.0).contains(&rate), "{rate}");
}

#[test]
fn reads_of_mirrors_go_to_the_drive_with_less_to_do() {
    let machine = machine("", "[array]\ntype = 'controller'\nlevel = 'raid1'", 2);
    let rate = read(&run(
        &machine,
        "size = '4KiB'\nworkers = 8\nrequests = 5000",
    ))
    .iops;
    assert!((1900.0..2010.0).contains(&rate), "{rate}");
}

#[test]
fn a_stream_stays_on_the_disk_of_a_mirror_that_it_is_on() {
    let of = |kernel: &str, array: &str, count: u32| {
        let text = format!(
            "[host]\nkernel = '{kernel}'\n[controller]\nmodel = '9650SE-16ML'\n{array}\n\
             [[drive]]\nmodel = 'HDS725050KLA360'\ncount = {count}\n"
        );
        let machine = Machine::parse(&text, "m.toml").unwrap();
        let load = "seconds = 'none'\npattern = 'sequential'\nsize = '1MiB'\ndirect = false\nbytes = '256MiB'\n";
        let load = Workload::parse(load, "load", "load", &[]).unwrap();
        let figures = simulate(&machine, &load, SimOptions::default()).unwrap();
        read(&figures).iops
    };
    // The kernels send a window in different pieces.
    for kernel in ["2.6.18", "2.6.24"] {
        let one = of(kernel, "", 1);
        let six = of(kernel, &array("raid10"), 6);
        // Three pairs, each at the rate of one disk: a disk that is given a part of another's stream loses a turn.
        assert!((2.9..3.05).contains(&(six / one)), "{six} and {one} MiB/s");
    }
}

#[test]
fn a_stream_takes_both_copies_where_nothing_seeks() {
    let machine = machine("", "[array]\ntype = 'controller'\nlevel = 'raid1'", 2);
    let load = "seconds = 'none'\npattern = 'sequential'\nsize = '128KiB'\ndepth = 2\ndirect = true\nrequests = 5000";
    let load = Workload::parse(load, "load", "load", &[]).unwrap();
    let figures = simulate(&machine, &load, SimOptions::default()).unwrap();
    let rate = read(&figures).iops;
    // Two at a time, each 1 ms of a drive, 50 us of the processor and 87 us of the link.
    assert!((1700.0..1800.0).contains(&rate), "{rate}");
}

#[test]
fn a_small_write_of_raid5_takes_four_commands_and_a_full_stripe_none_too_many() {
    let machine = machine("cache = '1MiB'", &array("raid5"), 4);
    let small = run(
        &machine,
        "size = '4KiB'\nwrite_fraction = 1\nworkers = 32\nrequests = 4000",
    );
    let rate = write(&small).iops;
    // Four drives with 1000 commands a second, four commands a write.
    assert!((850.0..1150.0).contains(&rate), "{rate}");
    let load = "size = '192KiB'\nwrite_fraction = 1\nbytes = '256MiB'";
    let text = format!("seconds = 'none'\npattern = 'sequential'\ndirect = true\n{load}");
    let load = Workload::parse(&text, "load", "load", &[]).unwrap();
    let large = self::machine("cache = '8MiB'", &array("raid5"), 4);
    let whole = simulate(&large, &load, SimOptions::default()).unwrap();
    // 1000 stripes of 192 KiB a second.
    let rate = write(&whole).iops;
    assert!((900.0..1100.0).contains(&rate), "{rate}");
}

#[test]
fn a_flush_waits_for_the_cache_unless_there_is_a_battery() {
    let load = "size = '4KiB'\nwrite_fraction = 1\nfsync_every = 8\nrequests = 64";
    let sync = |figures: &SimFigures| {
        figures.run.streams[0]
            .fsync
            .as_ref()
            .unwrap()
            .latency
            .min_ns
    };
    assert!(sync(&run(&machine("", "", 1), load)) > 1_000_000);
    assert!(sync(&run(&machine("battery = true", "", 1), load)) < 200_000);
}

#[test]
fn a_partition_that_begins_inside_a_chunk_makes_two_commands_of_one() {
    let count = |partition: &str| {
        let machine = machine("", &format!("{partition}\n{}", array("raid0")), 4);
        let figures = run(&machine, "size = '64KiB'\nworkers = 64\nrequests = 10000");
        read(&figures).iops
    };
    let (aligned, crossing) = (count(""), count("[partition]\nstart = '32256'"));
    assert!(crossing < 0.6 * aligned, "{aligned} and {crossing}");
}

#[test]
fn a_command_is_never_longer_than_the_driver_sends_it() {
    let machine = machine("write_cache = false", "", 1);
    let figures = run(&machine, "size = '1MiB'\nrequests = 10");
    assert_eq!(figures.drives[0].reads, 10 * MIB / (128 << 10));
}

#[test]
fn mistakes_are_one_line_with_their_place() {
    let drive = "[[drive]]\nmodel = 'WD10EACS'\ncount = 2\n";
    for (text, place, words) in [
        (
            "[controller]\nmodel = '9650SE'\n",
            "m.toml:2:",
            "9650SE-16ML",
        ),
        (
            "[controller]\nmodel = '9211-8i'\nwrite_cache = true\n",
            "m.toml:3:",
            "no cache",
        ),
        (
            "[controller]\nmodel = '9211-8i'\ndestage_order = 'age'\n",
            "m.toml:3:",
            "no cache",
        ),
        (
            "[controller]\nmodel = '9650SE-16ML'\ndestage_order = 'ages'\n",
            "m.toml:3:",
            "did you mean `age`?",
        ),
        (
            "[controller]\nmodel = '9211-8i'\n[array]\ntype = 'controller'\nlevel = 'raid1'\nmissing = 0\n",
            "m.toml:6:",
            "only md",
        ),
        (
            "[array]\nlevel = 'raid1'\n[partition]\nstart = 100\n",
            "m.toml:4:",
            "multiple of 512",
        ),
        (
            "[array]\ntype = 'hba'\nlevel = 'raid1'\n",
            "m.toml:2:",
            "\"md\" or \"controller\"",
        ),
    ] {
        let error = Machine::parse(&format!("{text}{drive}"), "m.toml")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(place) && error.contains(words), "{error}");
    }
}

#[test]
fn data_that_pass_the_link_twice_are_written_at_half_its_rate() {
    // RAID0 of many drives, so that the link is the limit: 400 MB/s of the 9500S, of whose numbers `write_passes` is one.
    let rate = |passes: &str| {
        let text = "[controller]\nmodel = '9500S-12'\n[array]\ntype = 'controller'\nlevel = 'raid0'\nchunk = '64KiB'\n\
                    [[drive]]\nservice = '100us'\ncapacity = '1GiB'\nqueue_depth = 1\ncount = 12\n";
        let change = spindle_config::Change {
            part: "9500S-12".to_owned(),
            key: "write_passes".to_owned(),
            value: passes.to_owned(),
        };
        let machine = Machine::parse_changed(text, "m.toml", &[change]).unwrap();
        let load = "size = '1MiB'\nwrite_fraction = 1\nbytes = '1GiB'\nworkers = 4";
        let figures = run(&machine, load);
        write(&figures).bytes_per_s / 1e6
    };
    let (once, twice) = (rate("1"), rate("2"));
    assert!((360.0..=480.0).contains(&once), "{once}");
    assert!((180.0..=250.0).contains(&twice), "{twice}");
}

/// md's RAID0 over the units of a controller, each a drive that takes 1 ms.
fn striped(controller: &str, units: u32) -> Machine {
    let text = format!(
        "[host]\nkernel = '2.6.24'\n[queue]\nscheduler = 'noop'\n[controller]\nmodel = '9650SE-16ML'\n{controller}\n\
         [array]\nlevel = 'raid0'\nchunk = '64KiB'\n\
         [[drive]]\nservice = '1ms'\ncapacity = '1GiB'\nqueue_depth = 32\nflush = '1ms'\ncount = {units}\n"
    );
    Machine::parse(&text, "m.toml").unwrap()
}

#[test]
fn units_share_the_processor_of_their_controller() {
    // The cache takes all writes, and each command has the processor for 50 us: 20 000 a second, however many units there
    // are, and twice as many with two controllers.
    let load =
        "size = '4KiB'\nworkers = 64\nregion = '0-512KiB'\nwrite_fraction = 1\nrequests = 50000";
    let rate = |controller: &str, units: u32| {
        let figures = run(&striped(controller, units), load);
        write(&figures).iops
    };
    for units in [2, 4] {
        let rate = rate("", units);
        assert!(
            (18_500.0..20_100.0).contains(&rate),
            "{units} units: {rate}"
        );
    }
    let two = rate("count = 2", 4);
    assert!((36_000.0..40_100.0).contains(&two), "{two}");
}

#[test]
fn a_driver_sends_254_commands_for_all_units_and_the_others_wait_in_line() {
    let load = "size = '64KiB'\nworkers = 512\nrequests = 40000";
    let of = |controller: &str, units: u32| {
        let figures = run(&striped(controller, units), load);
        let waits_ms = |at: usize| {
            let drive = &figures.drives[at];
            drive.host_queue_ns as f64 / drive.reads as f64 / 1e6
        };
        (0..units as usize).map(waits_ms).collect::<Vec<_>>()
    };
    // 512 requests on 8 units, of which 254 are with the controller: the others wait, as long on each unit.
    let one_card = of("", 8);
    let mean = one_card.iter().sum::<f64>() / 8.0;
    assert!((28.0..36.0).contains(&mean), "{one_card:?}");
    // Each gets its turn.
    for waits in &one_card {
        assert!(*waits > 0.2 * mean && *waits < 3.0 * mean, "{one_card:?}");
    }
    // Three cards take them all.
    let cards = of("count = 3", 8);
    assert!(cards.iter().sum::<f64>() / 8.0 < 2.0, "{cards:?}");
}

#[test]
fn an_array_of_several_controllers_is_refused() {
    let text = "[controller]\nmodel = '9650SE-16ML'\ncount = 2\n[array]\ntype = 'controller'\nlevel = 'raid0'\n\
                [[drive]]\nservice = '1ms'\ncapacity = '1GiB'\ncount = 4\n";
    let error = Machine::parse(text, "m.toml").unwrap_err().to_string();
    assert!(
        error.starts_with("m.toml:5") && error.contains("count"),
        "{error}"
    );
}
