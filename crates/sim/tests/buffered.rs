//! Loads through the page cache: what reaches the drive.

mod common;

use common::{machine, read, run, write};
use spindle_sim::SimFigures;

const MIB: u64 = 1 << 20;

/// One drive of 100 us and 200 MB/s, 4 GiB.
fn one(host: &str, queue: &str) -> spindle_sim::Machine {
    machine(&format!(
        "[host]\n{host}\n[queue]\nmax_request = '1280KiB'\n{queue}\n[[drive]]\nservice = '100us'\n\
         transfer_rate = '200 MB/s'\nflush = '100us'\ncapacity = '4GiB'\nqueue_depth = 256\n"
    ))
}

fn load(size: &str, requests: u64, more: &str) -> String {
    format!(
        "seconds = 'none'\nrequests = {requests}\n[[stream]]\nname = 's'\nsize = '{size}'\ndirect = false\n\
         pattern = 'sequential'\n{more}\n"
    )
}

fn at_drive(figures: &SimFigures) -> (u64, u64, u64, u64) {
    let drive = &figures.drives[0];
    (
        drive.reads,
        drive.read_bytes,
        drive.writes,
        drive.write_bytes,
    )
}

#[test]
fn a_sequential_reader_gets_windows_of_the_read_ahead() {
    for (read_ahead, requests_of) in [("0", 4), ("16KiB", 16), ("128KiB", 128), ("4MiB", 1024)] {
        let of = one("", &format!("read_ahead = '{read_ahead}'"));
        let (reads, bytes, ..) = at_drive(&run(&of, &load("4KiB", 64 * MIB / 4096, "")));
        let expected = 64 * MIB / (requests_of * 1024);
        assert!(
            reads.abs_diff(expected) <= expected / 20 + 8,
            "{read_ahead}: {reads} reads, {expected} expected"
        );
        assert!((64 * MIB..=72 * MIB).contains(&bytes), "{bytes}");
    }
}

#[test]
fn random_reads_take_their_own_pages_alone() {
    let text = load("16KiB", 500, "").replace("sequential", "shuffled");
    let figures = run(&one("", ""), &text);
    let (reads, bytes, ..) = at_drive(&figures);
    assert_eq!((reads, bytes), (500, 500 * 16 * 1024));
    // 100 us, 16 KiB at 200 MB/s, and the copy at 5 GB/s.
    assert!((read(&figures).latency.mean_ns - 185_200.0).abs() < 500.0);
}

#[test]
fn pages_in_memory_are_not_read_again_unless_memory_is_too_small() {
    let twice = |region: &str| {
        let requests = if region == "64MiB" { 128 } else { 1024 };
        let text = load("1MiB", requests, &format!("region = '0-{region}'"));
        at_drive(&run(&one("memory = '256MiB'", ""), &text)).1 / MIB
    };
    // The last window goes beyond the region.
    assert!((64..=65).contains(&twice("64MiB")));
    assert!(twice("512MiB") >= 1000);
}

#[test]
fn written_pages_reach_the_drive_once_in_long_requests() {
    let more = "write_fraction = 1.0\nend_fsync = true\nregion = '0-32MiB'";
    let figures = run(&one("", ""), &load("4KiB", 2 * 32 * MIB / 4096, more));
    let (reads, _, writes, bytes) = at_drive(&figures);
    assert_eq!((reads, bytes), (0, 32 * MIB));
    assert_eq!(writes, (32 * MIB).div_ceil(1280 * 1024));
    // The writes were in memory; only the sync at the end took time.
    assert!(write(&figures).latency.max_ns < 100_000);
}

#[test]
fn a_write_of_a_part_of_a_page_reads_it_first() {
    let text = load("512B", 100, "write_fraction = 1.0\nend_fsync = true")
        .replace("sequential", "shuffled");
    let (reads, bytes, writes, written) = at_drive(&run(&one("", ""), &text));
    assert_eq!((reads, bytes), (100, 100 * 4096));
    assert_eq!((writes, written), (100, 100 * 4096));
}

#[test]
fn writers_over_the_limit_go_at_the_pace_of_the_drive() {
    let host = "memory = '256MiB'\ndirty_background_ratio = 5\ndirty_ratio = 10";
    let figures = run(
        &one(host, ""),
        &load("64KiB", 2 * 1024 * MIB / 65536, "write_fraction = 1.0"),
    );
    let rate = 2.0 * 1024.0 * MIB as f64 / figures.run.elapsed_ns as f64 * 1e3;
    // 1.25 MiB take 100 us and 6.55 ms: 197 MB/s.
    assert!((185.0..205.0).contains(&rate), "{rate} MB/s");
}

#[test]
fn old_pages_are_written_without_being_asked() {
    let host = "dirty_expire = '2s'\ndirty_writeback = '1s'";
    let text = "seconds = 10\n[[stream]]\nname = 's'\nsize = '4KiB'\ndirect = false\npattern = 'sequential'\nwrite_fraction = 1.0\nrate = 100";
    let (_, _, writes, bytes) = at_drive(&run(&one(host, ""), text));
    assert!(writes > 0);
    assert!((400..1000).contains(&(bytes / 4096)), "{bytes} bytes");
}

#[test]
fn each_fsync_writes_its_page_and_empties_the_drive_s_cache() {
    let text = load("4KiB", 200, "write_fraction = 1.0\nfsync_every = 1")
        .replace("sequential", "shuffled");
    let figures = run(&one("", ""), &text);
    assert_eq!(at_drive(&figures).2, 200);
    assert_eq!(figures.drives[0].flushes, 200);
    let syncs = figures.run.streams[0].fsync.as_ref().unwrap();
    assert!(
        (syncs.latency.mean_ns - 220_500.0).abs() < 3_000.0,
        "{}",
        syncs.latency.mean_ns
    );
}

#[test]
fn limits_in_the_wrong_order_do_not_stop_writers() {
    let host = "memory = '256MiB'\ndirty_background_ratio = 20\ndirty_ratio = 5";
    let text = load("64KiB", 512 * MIB / 65536, "write_fraction = 1.0");
    assert_eq!(write(&run(&one(host, ""), &text)).requests, 8192);
}

#[test]
fn pages_that_are_written_again_and_again_do_not_wait_for_the_timer() {
    let host = "memory = '256MiB'\ndirty_background_bytes = '1MiB'\ndirty_bytes = '3MiB'\ndirty_writeback = '100s'";
    let text = load(
        "64KiB",
        256 * MIB / 65536,
        "write_fraction = 1.0\nregion = '0-4MiB'\nworkers = 4",
    );
    let figures = run(&one(host, ""), &text);
    assert!(write(&figures).latency.max_ns < 1_000_000_000);
}

#[test]
fn an_fsync_writes_what_was_written_again_during_the_last_write() {
    // The flusher has the page under way at each fsync, so each must write it once more.
    let host = "dirty_background_bytes = 0\ncopy_rate = '900000 GB/s'";
    let text = load(
        "4KiB",
        50,
        "write_fraction = 1.0\nfsync_every = 2\nregion = '0-4KiB'",
    );
    let figures = run(&one(host, ""), &text);
    assert_eq!(at_drive(&figures).2, 50);
}

/// Four drives of 100 us and 200 MB/s as RAID5.
fn parity(kernel: &str, copy_rate: &str, chunk: &str) -> spindle_sim::Machine {
    machine(&format!(
        "[host]\nkernel = '{kernel}'\ncopy_rate = '{copy_rate}'\n[array]\nlevel = 'raid5'\nchunk = '{chunk}'\n\
         [[drive]]\nservice = '100us'\ntransfer_rate = '200 MB/s'\nflush = '100us'\ncapacity = '4GiB'\n\
         queue_depth = 32\ncount = 4\n"
    ))
}

/// MiB read from and written to the members for 96 MiB of a stream.
fn moved(machine: &spindle_sim::Machine) -> (u64, u64) {
    let more = "write_fraction = 1.0\nend_fsync = true\nregion = '0-96MiB'";
    let figures = run(machine, &load("1MiB", 96, more));
    let read: u64 = figures.drives.iter().map(|drive| drive.read_bytes).sum();
    let written: u64 = figures.drives.iter().map(|drive| drive.write_bytes).sum();
    (read / MIB, written / MIB)
}

#[test]
fn rows_longer_than_the_stripe_cache_are_written_in_parts() {
    // 256 rows of 4 KiB are four rows of chunks of 64 KiB, and half of one of 2 MiB: its data come one after another.
    for kernel in ["2.6.25", "2.6.32", "6.1"] {
        let (read, all) = moved(&parity(kernel, "900000 GB/s", "64KiB"));
        assert!(read < 4, "{kernel}: {read} MiB read");
        assert!((128..136).contains(&all), "{kernel}: {all} MiB written");
        let (read, all) = moved(&parity(kernel, "900000 GB/s", "2MiB"));
        assert!(read > 60, "{kernel}: {read} MiB read");
        assert!(all > 150, "{kernel}: {all} MiB written");
    }
}

#[test]
fn a_slow_processor_leaves_rows_half_full_when_the_plug_is_pulled() {
    // Up to 2.6.31 the thread that writes copies each page into md's stripe cache, and every 3 ms rows that lack pages are
    // read for. Since 2.6.39 the writer keeps them in a plug of its own.
    let reads = |kernel, rate| moved(&parity(kernel, rate, "64KiB")).0;
    assert!(reads("2.6.25", "1 GB/s") > reads("2.6.25", "900000 GB/s") + 1);
    assert_eq!(reads("6.1", "1 GB/s"), reads("6.1", "900000 GB/s"));
}

/// Four drives of 100 us and 200 MB/s as an array with chunks of this size.
fn four(kernel: &str, array: &str) -> spindle_sim::Machine {
    machine(&format!(
        "[host]\nkernel = '{kernel}'\ncopy_rate = '900000 GB/s'\n[queue]\nmax_request = '1280KiB'\n{array}\n\
         [[drive]]\ncount = 4\nservice = '100us'\ntransfer_rate = '200 MB/s'\nflush = '100us'\ncapacity = '512MiB'\n\
         queue_depth = 256\n"
    ))
}

fn reads_of(figures: &SimFigures) -> Vec<u64> {
    figures.drives.iter().map(|drive| drive.reads).collect()
}

#[test]
fn long_read_ahead_is_cut_at_the_longest_request_and_at_chunks() {
    let text = load("1MiB", 64, "");
    let array = "read_ahead = '4MiB'\n[array]\nlevel = 'raid10'\nlayout = 'f2'\nchunk = '1MiB'";
    // As Linux 6.1.192 read them (`dd bs=1M count=64`).
    let figures = run(&four("6.1", array), &text);
    assert_eq!(reads_of(&figures), [35, 18, 17, 34]);
    // Bios of 1 MiB are chunks.
    let figures = run(&four("4.19", array), &text);
    assert_eq!(reads_of(&figures), [18, 18, 17, 17]);
}

#[test]
fn read_ahead_gives_up_where_a_degraded_array_has_no_row_free() {
    let text = load("1MiB", 64, "");
    let array = "[array]\nlevel = 'raid5'\nchunk = '512KiB'\nmissing = [2]";
    let reads = |kernel: &str| reads_of(&run(&four(kernel, array), &text));
    // Linux 6.1.192: 1810, 1801, 0 and 1810, most of them of 4 KiB.
    for (found, measured) in reads("6.1").into_iter().zip([1810, 1801, 0, 1810]) {
        assert!(
            found.abs_diff(measured) <= measured / 20,
            "{found} reads, {measured} measured"
        );
    }
    assert!(reads("4.18").into_iter().all(|reads| reads < 300));
}

#[test]
fn a_thread_that_the_throttle_let_in_goes_on_with_the_same_request() {
    let more = "write_fraction = 1.0\nend_fsync = true\nregion = '0-80MiB'";
    for elevator in ["none", "mq-deadline", "kyber"] {
        let queue = format!("scheduler = '{elevator}'");
        let figures = run(&one("", &queue), &load("1MiB", 80, more));
        assert!(figures.drives[0].request_waits > 0, "{elevator}");
        assert_eq!(at_drive(&figures).2, 64, "{elevator}");
    }
}

#[test]
fn direct_writes_that_md_passes_on_are_throttled() {
    let waits = |level: &str, host: &str| {
        let of = machine(&format!(
            "[host]\n{host}\n[array]\nlevel = '{level}'\n[queue]\nscheduler = 'none'\n[[drive]]\ncount = 2\n\
             service = '100us'\nflush = '100us'\ncapacity = '1GiB'\nqueue_depth = 64\n"
        ));
        let text = "seconds = 'none'\nrequests = 400\n[[stream]]\nname = 's'\nsize = '4KiB'\ndepth = 48\n\
                    write_fraction = 1.0\npattern = 'uniform'\n";
        let figures = run(&of, text);
        figures
            .drives
            .iter()
            .map(|drive| drive.request_waits)
            .sum::<u64>()
    };
    assert!(waits("raid1", "") > 0);
    assert_eq!(waits("raid0", ""), 0);
    assert_eq!(waits("raid1", "kernel = '4.9'"), 0);
}

/// A row that md's thread delays may be let read by a writer in that round: nobody else would wake it.
#[test]
fn random_buffered_writes_to_raid6_come_to_an_end() {
    let machine = machine(
        r#"[host]
memory = '512MiB'
copy_rate = '900000 GB/s'
dirty_ratio = 40
[queue]
read_ahead = '8192KiB'
[array]
level = 'raid6'
data_offset = '1MiB'
chunk = '1024KiB'
[[drive]]
count = 4
service = '100us'
transfer_rate = '200 MB/s'
flush = '100us'
queue_depth = 32
capacity = '4GiB'
"#,
    );
    let figures = run(
        &machine,
        r#"direct = false
seconds = 'none'
requests = 160
pattern = 'uniform'
write_fraction = 1
end_fsync = true
size = '1024KiB'
workers = 1
region = '0-268435456'
"#,
    );
    assert!(figures.run.measured_ns > 0);
}

/// Mean time that a request waits in the queue of a drive, us, and requests.
fn waits(kernel: &str, scheduler: &str, host: &str, load: &str) -> (f64, u64) {
    let host = format!("kernel = '{kernel}'\n{host}");
    let of = one(&host, &format!("scheduler = '{scheduler}'"));
    let drive = &run(&of, load).drives[0];
    let requests = drive.reads + drive.writes;
    (drive.host_queue_ns as f64 / requests as f64 / 1e3, requests)
}

#[test]
fn until_2_6_38_a_queue_holds_up_what_comes_while_it_is_empty() {
    // Pages are written one by one, 10 ms apart, and nobody waits for them: 3 ms are over each time.
    let host = "memory = '256MiB'\ndirty_background_bytes = '4KiB'";
    let alone = "size = '4KiB'\ndirect = false\npattern = 'shuffled'\nwrite_fraction = 1\nrate = '100 IOPS'\nrequests = 200\nseconds = 'none'";
    for scheduler in ["noop", "deadline", "cfq"] {
        let (held_us, _) = waits("2.6.38", scheduler, host, alone);
        let (free_us, _) = waits("2.6.39", scheduler, host, alone);
        assert!(
            (2500.0..=3100.0).contains(&held_us),
            "{scheduler}: {held_us}"
        );
        assert!(free_us < 100.0, "{scheduler}: {free_us}");
    }
    // Direct requests, and a reader that waits for its page, are not held up.
    for direct in [
        "size = '4KiB'\ndirect = true",
        "size = '64KiB'\ndirect = false",
    ] {
        for fraction in ["0", "1"] {
            let load = format!(
                "{direct}\npattern = 'shuffled'\nwrite_fraction = {fraction}\nfsync_every = 1\nrequests = 200\nseconds = 'none'"
            );
            let (held_us, _) = waits("2.6.38", "noop", "", &load);
            assert!(held_us < 400.0, "{load}: {held_us}");
        }
    }
}

#[test]
fn a_queue_that_holds_requests_up_merges_them() {
    // Pages that follow each other, two each millisecond: the first waits 3 ms for the others.
    let host = "memory = '256MiB'\ndirty_background_bytes = '4KiB'";
    let load = "size = '4KiB'\ndirect = false\npattern = 'sequential'\nwrite_fraction = 1\nrate = '2000 IOPS'\nrequests = 2000\nseconds = 'none'";
    let (_, held) = waits("2.6.38", "noop", host, load);
    let (_, free) = waits("2.6.39", "noop", host, load);
    assert!(2 * held <= free, "{held} and {free} requests");
}

#[test]
fn cfq_before_2_6_30_sends_the_first_page_of_a_window_alone() {
    // It waits for the reader, and hands over what comes at once; later, one page is not worth it.
    let load = load("64KiB", 512, "");
    let host = "copy_rate = '50 MB/s'";
    let requests = |kernel: &str| waits(kernel, "cfq", host, &load).1;
    assert!(
        requests("2.6.29") > requests("2.6.30") + 100,
        "{} and {}",
        requests("2.6.29"),
        requests("2.6.30")
    );
}

#[test]
fn a_writer_that_slept_for_a_request_takes_several() {
    // Two threads write the same pages back, the flusher and the one that syncs them. Each that gets one request at a time
    // leaves the other the next page, and nothing merges.
    let host = "kernel = '2.6.24'\nmemory = '256MiB'";
    let of = one(host, "nr_requests = 4\nscheduler = 'cfq'");
    let figures = run(
        &of,
        &load("64KiB", 2048, "write_fraction = 1\nend_fsync = true"),
    );
    let drive = &figures.drives[0];
    let pages = drive.write_bytes / 4096 / drive.writes;
    assert!(pages >= 24, "{pages} pages a request");
}

#[test]
fn a_reader_that_waits_for_a_free_request_asks_for_no_more_pages() {
    // Windows of 8 MiB are more pages than the queue has requests, and the kernel asks for each by itself.
    for kernel in ["2.6.5", "2.6.24", "2.6.32"] {
        let of = machine(&format!(
            "[host]\nkernel = '{kernel}'\nmemory = '512MiB'\nask_page = '3us'\n[queue]\nread_ahead = '8MiB'\nmax_request = '128KiB'\n\
             [controller]\nmodel = '9500S-12'\n[[drive]]\nmodel = 'WD740GD-00FLA0'\n"
        ));
        let figures = run(&of, &load("1MiB", 128, ""));
        let (reads, bytes, ..) = at_drive(&figures);
        assert!(
            bytes / reads > 64 << 10,
            "{kernel}: {bytes} bytes in {reads} reads"
        );
        let rate = bytes as f64 * 1e3 / figures.run.elapsed_ns as f64;
        assert!(rate > 60.0, "{kernel}: {rate} MB/s");
    }
}

#[test]
fn a_page_costs_its_reader_and_its_writer_time() {
    // A device is read page by page until 3.17: 20 us to ask for each, and 41 us to copy it at 100 MB/s.
    let rate = |kernel: &str, write: u8, keys: &str| {
        let host = format!("kernel = '{kernel}'\nmemory = '64MiB'\ncopy_rate = '100 MB/s'\n{keys}");
        let of = one(&host, "scheduler = 'noop'");
        let figures = run(
            &of,
            &load(
                "1MiB",
                128,
                &format!("write_fraction = {write}\nend_fsync = true"),
            ),
        );
        (128 * MIB) as f64 / figures.run.elapsed_ns as f64 * 1e3
    };
    let plain = rate("2.6.24", 0, "");
    assert!((95.0..100.0).contains(&plain), "{plain} MB/s");
    let asks = rate("2.6.24", 0, "ask_page = '20us'");
    assert!((64.0..68.0).contains(&asks), "{asks} MB/s");
    let later = rate("3.18", 0, "ask_page = '20us'");
    assert!(
        (later / rate("3.18", 0, "") - 1.0).abs() < 1e-9,
        "{later} MB/s"
    );
    // 80 us for each dirty page that is handed over: 51 MB/s.
    let sends = rate("2.6.24", 1, "send_page = '80us'");
    assert!((48.0..52.0).contains(&sends), "{sends} MB/s");
}

#[test]
fn pages_that_an_fsync_writes_are_asynchronous_before_2_6_30() {
    // cfq has one queue for them and the flusher's, so all merge.
    let requests = |kernel: &str| {
        let of = machine(&format!(
            "[host]\nkernel = '{kernel}'\nmemory = '1GiB'\nsend_page = '5us'\ncopy_rate = '1 GB/s'\n[queue]\nscheduler = 'cfq'\n\
             [array]\nlevel = 'raid10'\nlayout = 'n2'\nchunk = '64KiB'\n[[drive]]\nmodel = 'HD321KJ'\ncount = 4\n"
        ));
        let figures = run(
            &of,
            &load("1MiB", 3072, "write_fraction = 1\nend_fsync = true"),
        );
        figures.drives[0].writes
    };
    let (before, since) = (requests("2.6.29"), requests("2.6.30"));
    assert!(2 * before < since, "{before} and {since} requests");
}
