//! `[files]`: logs, barriers, locks of files, block numbers, allocation groups; and read-ahead before 2.6.23.

mod common;

use common::{machine, read, run, write};
use spindle_sim::{Machine, SimFigures};

const MIB: u64 = 1 << 20;

/// One drive of 1 ms, 8 commands at a time, with `[host]` and `[files]`.
fn one(kernel: &str, files: &str) -> Machine {
    machine(&format!(
        "[host]\nkernel = '{kernel}'\ncopy_rate = '5 GB/s'\n[queue]\nscheduler = 'noop'\n{files}\n[[drive]]\nservice = '1ms'\n\
         servers = 8\nflush = '1ms'\ncapacity = '4GiB'\nqueue_depth = 8\n"
    ))
}

fn random(more: &str) -> String {
    format!(
        "seconds = 'none'\npattern = 'uniform'\ndirect = true\nsize = '4KiB'\nworkers = 8\nrequests = 8000\n{more}\n"
    )
}

const SYNCS: &str = "write_fraction = 0.2\nfsync_fraction = 0.1";

fn syncs(figures: &SimFigures) -> (u64, f64) {
    let fsync = figures.run.streams[0].fsync.as_ref().unwrap();
    (fsync.requests, fsync.latency.mean_ns)
}

/// Reads and writes per second.
fn rate_of(figures: &SimFigures) -> f64 {
    let stream = &figures.run.streams[0];
    [&stream.read, &stream.write]
        .into_iter()
        .flatten()
        .map(|op| op.iops)
        .sum()
}

#[test]
fn an_fsync_writes_the_log_once() {
    let of = one("2.6.24", "[files]\ntype = 'xfs'\nbarriers = false");
    let load =
        random("write_fraction = 1\nfsync_fraction = 1").replace("workers = 8", "workers = 1");
    let figures = run(&of, &load);
    let (count, mean_ns) = syncs(&figures);
    assert_eq!(figures.drives[0].writes, 8000 + count);
    assert!((mean_ns - 1e6).abs() < 1e4, "{mean_ns}");
    // A raw device has no log, and this kernel sends no flush.
    let raw = run(&one("2.6.24", ""), &load);
    assert_eq!((raw.drives[0].writes, syncs(&raw).1), (8000, 0.0));
    // Without a journal there is none either.
    let plain = run(&one("2.6.24", "[files]\ntype = 'ext2'"), &load);
    assert_eq!(plain.drives[0].writes, 8000);
}

#[test]
fn a_barrier_empties_the_drive_first_and_everything_else_waits() {
    let without = run(
        &one("2.6.24", "[files]\ntype = 'xfs'\nbarriers = false"),
        &random(SYNCS),
    );
    let with = run(&one("2.6.24", "[files]\ntype = 'xfs'"), &random(SYNCS));
    // It is the default of XFS; each waits for up to 1 ms of requests, a flush, the write and a flush.
    assert!(syncs(&with).1 > 3e6, "{}", syncs(&with).1);
    assert!(syncs(&without).1 < 2e6);
    assert!(write(&with).latency.mean_ns > 1.1 * write(&without).latency.mean_ns);
    assert!(rate_of(&with) < 0.9 * rate_of(&without));
    let flushes = with.drives[0].flushes;
    assert_eq!(flushes % 2, 0);
    assert!(flushes > 0 && without.drives[0].flushes == 0);
    // Nothing was under way beside it: each request took its own millisecond, and no two flushes were at the drive.
    assert!(with.drives[0].busy_ns > flushes * 1_000_000);
}

#[test]
fn barriers_are_the_default_of_xfs_since_2_6_17_of_ext4_since_2_6_26_and_of_ext3_since_3_1() {
    let flushes = |kernel: &str, kind: &str| {
        let of = one(kernel, &format!("[files]\ntype = '{kind}'"));
        run(&of, &random(SYNCS)).drives[0].flushes > 0
    };
    for (kind, before, since) in [
        ("xfs", "2.6.16", "2.6.17"),
        ("ext4", "2.6.25", "2.6.26"),
        ("ext3", "3.0", "3.1"),
    ] {
        assert!(!flushes(before, kind) && flushes(since, kind), "{kind}");
    }
}

#[test]
fn md_takes_no_barriers_before_2_6_33() {
    let pair = |kernel: &str| {
        let text = format!(
            "[host]\nkernel = '{kernel}'\n[queue]\nscheduler = 'noop'\n[array]\nlevel = 'raid1'\n[files]\ntype = 'xfs'\n[[drive]]\n\
             service = '1ms'\nservers = 8\nflush = '1ms'\ncapacity = '4GiB'\nqueue_depth = 8\ncount = 2\n"
        );
        let figures = run(&machine(&text), &random(SYNCS));
        figures.drives[0].flushes
    };
    assert_eq!(pair("2.6.24"), 0);
    assert!(pair("2.6.37") > 0);
}

#[test]
fn a_read_waits_for_the_fsync_of_its_file_until_3_1() {
    let slow = |kernel: &str| {
        let text = random("write_fraction = 0.5\nfsync_fraction = 1");
        let figures = run(
            &one(kernel, "[files]\ntype = 'xfs'\nbarriers = false"),
            &text,
        );
        read(&figures).latency.mean_ns
    };
    assert!(slow("2.6.24") > 2e6);
    assert!(slow("3.2") < 1.6e6, "{}", slow("3.2"));
}

/// Buffered random reads of four threads, a tenth of them written back, in files of this size.
fn rewrites(kind: &str, file_size: &str) -> SimFigures {
    // Reads take different times: those that begin and end together keep no one waiting.
    let of = machine(&format!(
        "[host]\nkernel = '2.6.32'\n[queue]\nscheduler = 'noop'\n[files]\ntype = '{kind}'\nnew = true\nfile_size = '{file_size}'\n\
         [[drive]]\nservice = '1ms'\nspread = 'uniform'\nservers = 8\nflush = '1ms'\ncapacity = '4GiB'\nqueue_depth = 8\n"
    ));
    let load = random("rewrite_fraction = '10%'")
        .replace("direct = true", "direct = false")
        .replace("workers = 8", "workers = 4");
    run(&of, &load)
}

#[test]
fn a_buffered_write_waits_for_the_readers_of_its_file_and_they_for_it_on_xfs() {
    let (one_file, many_files) = (rewrites("xfs", "4GiB"), rewrites("xfs", "1MiB"));
    let lost = 1.0 - rate_of(&one_file) / rate_of(&many_files);
    assert!((0.05..0.5).contains(&lost), "{lost}");
    // Its readers have no such lock elsewhere.
    for kind in ["ext2", "ext4"] {
        let without = rate_of(&rewrites(kind, "4GiB"));
        assert!(
            (without / rate_of(&many_files) - 1.0).abs() < 0.01,
            "{kind}: {without}"
        );
    }
    // The wait is part of the latency of the write, and nothing is lost.
    let writes = |figures: &SimFigures| figures.run.streams[0].write.clone().unwrap();
    let (waits, goes) = (writes(&one_file), writes(&many_files));
    assert!(waits.latency.mean_ns > 2.0 * goes.latency.mean_ns.max(1.0));
    assert!(waits.requests.abs_diff(goes.requests) <= 4); // the threads under way at the end
}

/// Reads a second beside a thread that writes and syncs each block, both through the page cache; `pattern` is the reader's.
fn reads_beside_fsyncs(kernel: &str, files: &str, pattern: &str) -> f64 {
    let load = format!(
        "seconds = 4\n[[stream]]\nname = 'writer'\ndirect = false\nsize = '8KiB'\npattern = 'uniform'\nregion = '0-1GiB'\n\
         write_fraction = 1\nfsync_fraction = 1\n\
         [[stream]]\nname = 'reader'\ndirect = false\nsize = '8KiB'\npattern = '{pattern}'\nregion = '1GiB-2GiB'\n"
    );
    let files = format!("[files]\nbarriers = false\n{files}");
    let figures = run(&one(kernel, &files), &load);
    let mut streams = figures.run.streams.iter();
    let reader = streams.find(|of| of.name == "reader").unwrap();
    reader.read.as_ref().unwrap().iops
}

#[test]
fn a_buffered_read_waits_for_the_fsync_of_its_file_until_3_1() {
    let of = |kernel: &str, kind: &str, pattern: &str| {
        let beside = |size: &str| {
            let files = format!("type = '{kind}'\nfile_size = '{size}'");
            reads_beside_fsyncs(kernel, &files, pattern)
        };
        beside("2GiB") / beside("1GiB")
    };
    for kind in ["xfs", "ext4"] {
        // Half of the writer's time is its log's.
        let (until, since) = (of("2.6.32", kind, "uniform"), of("3.1", kind, "uniform"));
        assert!(until < 0.75, "{kind} until 3.1: {until}");
        assert!(since > 0.9, "{kind} since 3.1: {since}");
    }
    // Who reads on does not seek; on XFS it needs the numbers of its blocks.
    let (xfs, ext4) = (
        of("2.6.32", "xfs", "sequential"),
        of("2.6.32", "ext4", "sequential"),
    );
    assert!(xfs < 0.9, "{xfs}");
    assert!((0.97..1.03).contains(&ext4), "{ext4}");
}

#[test]
fn direct_writes_of_ext3_and_ext4_go_one_after_another_and_those_of_xfs_do_not() {
    let rate = |kind: &str| {
        let of = one("2.6.24", &format!("[files]\ntype = '{kind}'"));
        rate_of(&run(&of, &random("write_fraction = 1")))
    };
    for kind in ["ext3", "ext4"] {
        assert!((rate(kind) - 1000.0).abs() < 50.0, "{kind}: {}", rate(kind));
    }
    assert!(rate("xfs") > 7000.0);
}

#[test]
fn reads_and_writes_have_requests_of_their_own_before_2_6_30() {
    // 8 of each, and the drive takes one at a time: readers fill theirs, writers have the others.
    let waits = |kernel: &str| {
        let text = format!(
            "[host]\nkernel = '{kernel}'\n[queue]\nscheduler = 'noop'\nnr_requests = 8\n[[drive]]\nservice = '1ms'\n\
             capacity = '4GiB'\nqueue_depth = 1\n"
        );
        let load = random("write_fraction = 0.1")
            .replace("workers = 8", "workers = 64")
            .replace("requests = 8000", "requests = 40000");
        let figures = run(&machine(&text), &load);
        write(&figures).latency.mean_ns / read(&figures).latency.mean_ns
    };
    assert!(waits("2.6.24") < 0.5, "{}", waits("2.6.24"));
    assert!((waits("2.6.32") - 1.0).abs() < 0.1, "{}", waits("2.6.32"));
}

fn buffered(size: &str, more: &str) -> String {
    format!("seconds = 'none'\ndirect = false\nsize = '{size}'\n{more}\n")
}

#[test]
fn block_numbers_are_read_once_for_4_mib() {
    let reads = |files: &str| {
        let of = one("2.6.24", files);
        let load = buffered("64KiB", "pattern = 'sequential'\nrequests = 1024");
        run(&of, &load).drives[0].read_bytes
    };
    let plain = reads("[files]\ntype = 'xfs'");
    let maps = reads("[files]\ntype = 'ext2'") - plain;
    // 64 MiB, and one more of read-ahead.
    assert!((16 * 4096..=17 * 4096).contains(&maps), "{maps}");
    assert_eq!(reads("[files]\ntype = 'ext2'\nnew = true"), plain);
    assert_eq!(reads("[files]\ntype = 'ext4'"), plain);
}

#[test]
fn a_random_read_needs_its_block_number_first() {
    let time = |files: &str| {
        let load = buffered("4KiB", "pattern = 'uniform'\nrequests = 300");
        read(&run(&one("2.6.24", files), &load)).latency.mean_ns
    };
    let (plain, maps) = (
        time("[files]\ntype = 'xfs'"),
        time("[files]\ntype = 'ext3'"),
    );
    // 1024 blocks of numbers, few of which are met twice.
    assert!((1.7..2.0).contains(&(maps / plain)), "{maps} {plain}");
}

#[test]
fn a_page_costs_the_processor_what_the_machine_says() {
    let time = |files: &str| {
        let load = buffered(
            "64KiB",
            "pattern = 'sequential'\nwrite_fraction = 1\nrequests = 100",
        );
        write(&run(&one("6.1", files), &load)).latency.mean_ns
    };
    let extra = time("[files]\ntype = 'xfs'\nwrite_page = '10us'") - time("[files]\ntype = 'xfs'");
    assert!((extra - 160_000.0).abs() < 2000.0, "{extra}");
    // Only pages of new files get blocks.
    let pages = |files: &str| {
        time(&format!(
            "[files]\ntype = 'xfs'\nwrite_page = '10us'\n{files}"
        ))
    };
    assert_eq!(pages("allocate_page = '5us'"), pages(""));
    let extra = pages("allocate_page = '5us'\nnew = true") - pages("new = true");
    assert!((extra - 80_000.0).abs() < 2000.0, "{extra}");
}

#[test]
fn a_file_is_read_in_long_bios_on_kernels_that_read_a_device_page_by_page() {
    let mirror = |kernel: &str, files: &str| {
        machine(&format!(
            "[host]\nkernel = '{kernel}'\n[queue]\nscheduler = 'noop'\n[array]\nlevel = 'raid10'\nlayout = 'n2'\nchunk = '64KiB'\n{files}\n\
             [[drive]]\nservice = '1ms'\ncapacity = '4GiB'\ncount = 2\nqueue_depth = 8\n"
        ))
    };
    let load = "seconds = 'none'\npattern = 'uniform'\ndirect = false\nsize = '16KiB'\nregion = '0-2GiB'\nrequests = 200\n";
    let pieces = |kernel: &str, files: &str| {
        let figures = run(&mirror(kernel, files), load);
        let drives = &figures.drives;
        let pieces: u64 = (drives.iter())
            .map(|drive| drive.reads + drive.back_merges)
            .sum();
        pieces / 200
    };
    // Since 2.6.39 the pages of a device meet again in the plug.
    for (kernel, of_device) in [("2.6.18", 4), ("2.6.32", 4), ("6.1", 1)] {
        for files in ["type = 'ext2'\nnew = true", "type = 'xfs'"] {
            let of_file = pieces(kernel, &format!("[files]\n{files}"));
            assert_eq!(of_file, 1, "{files} on {kernel}");
        }
        assert_eq!(pieces(kernel, ""), of_device, "a device on {kernel}");
    }
}

#[test]
fn pages_are_written_one_by_one_or_in_long_bios_as_the_file_system_does() {
    // 1 MiB, and requests of 512 KiB at most.
    let load = buffered("1MiB", "write_fraction = 1\nrequests = 1\nend_fsync = true");
    let pieces = |kernel: &str, kind: &str| {
        let figures = run(
            &one(kernel, &format!("[files]\ntype = '{kind}'\nnew = true")),
            &load,
        );
        let drive = &figures.drives[0];
        drive.writes + drive.back_merges
    };
    for (kind, before, since) in [("xfs", "2.6.15", "2.6.16"), ("ext4", "2.6.36", "2.6.37")] {
        let log = pieces(since, kind) - 2;
        assert!(log <= 3, "{kind}: {log} writes of the log");
        assert_eq!(pieces(before, kind) - log, 256, "{kind}");
    }
    for kernel in ["2.6.5", "2.6.32"] {
        assert_eq!(pieces(kernel, "ext2"), 2);
        assert!(pieces(kernel, "ext3") >= 256);
    }
}

#[test]
fn files_go_to_the_groups_in_turn() {
    let files = spindle_sim::Machine::parse(
        "[files]\ntype = 'xfs'\ngroups = 4\nfile_size = '256MiB'\n[[drive]]\nservice = '1ms'\ncapacity = '4GiB'\n",
        "m.toml",
    )
    .unwrap()
    .files
    .unwrap();
    let place = |offset: u64| files.place(offset, 4096 * MIB) / MIB;
    assert_eq!(
        [0, 256, 512, 768, 1024].map(|at| place(at * MIB)),
        [0, 1024, 2048, 3072, 256]
    );
    assert_eq!(place(256 * MIB + 5 * MIB), 1029);
}

#[test]
fn one_reader_has_one_window_under_way_on_2_6_5_and_two_since() {
    let rate = |kernel: &str| {
        let of = one(kernel, "");
        let load = buffered("8KiB", "pattern = 'sequential'\nrequests = 8192");
        rate_of(&run(&of, &load)) * 8192.0 / MIB as f64
    };
    // 128 KiB in 1 ms, and 26 us for its copy.
    let (old, new, marks) = (rate("2.6.5"), rate("2.6.18"), rate("6.1"));
    assert!((110.0..126.0).contains(&old), "{old}");
    assert!(new > 1.5 * old, "{new}");
    assert!(marks > 1.5 * old, "{marks}");
}

#[test]
fn wrong_files_are_one_clear_line() {
    let error = |text: &str| {
        let text = format!("[files]\n{text}\n[[drive]]\nservice = '1ms'\ncapacity = '4GiB'\n");
        Machine::parse(&text, "m.toml").unwrap_err().to_string()
    };
    assert!(error("barriers = true").contains("type"));
    assert!(error("type = 'zfs'").contains("xfs"));
    assert!(error("type = 'xfs'\nfile_size = '1000'").contains("multiple of 1 MiB"));
    assert!(error("type = 'xfs'\ngroups = 0").contains("groups"));
    assert!(error("type = 'xfs'\ngroups = 4").contains("file_size"));
}
