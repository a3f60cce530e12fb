//! Whole runs: ends, paces, streams, fsync, traces, the same figures every time.

mod common;

use std::io::Write;
use std::sync::{Arc, Mutex, atomic::AtomicBool};

use common::{machine, ops, read, run, workload, write};
use spindle_measure::EndedBy;
use spindle_sim::{SimError, SimOptions, simulate, simulate_many};

const DISK: &str = "[[drive]]\nmodel = 'HDS725050KLA360'";
const MIRROR: &str = "
[array]
level = 'raid10'
chunk = '64KiB'
[[drive]]
model = 'HDS725050KLA360'
count = 4
";
const PARITY: &str = "
[queue]
scheduler = 'cfq'
[array]
level = 'raid5'
chunk = '64KiB'
[[drive]]
model = 'HDS725050KLA360'
count = 4
";
const MIXED: &str = "
seconds = 20
[[stream]]
name = 'random'
pattern = 'uniform'
size = '16KiB'
write_fraction = 0.3
fsync_fraction = 0.2
workers = 8
[[stream]]
name = 'stream'
pattern = 'sequential'
size = '256KiB'
depth = 4
rate_limit = '20 MB/s'
priority = 'idle'
[[stream]]
name = 'arrivals'
pattern = 'zipf'
size = '4KiB-64KiB'
rate = '20 IOPS'
spacing = 'poisson'
depth = 64
";

fn json(machine: &str, load: &str) -> String {
    serde_json::to_string(&run(&common::machine(machine), load)).unwrap()
}

#[test]
fn the_same_run_gives_the_same_bytes_twice_and_on_any_number_of_threads() {
    for text in [DISK, MIRROR, PARITY] {
        let first = json(text, MIXED);
        assert_eq!(first, json(text, MIXED));
        let (machine, load) = (machine(text), workload(MIXED));
        let runs = vec![(&machine, &load); 4];
        for threads in [1, 2, 4] {
            for figures in simulate_many(&runs, 0, Some(threads), None) {
                assert_eq!(first, serde_json::to_string(&figures.unwrap()).unwrap());
            }
        }
    }
}

#[test]
fn runs_end_as_asked() {
    let disk = machine(DISK);
    let base = "[[stream]]\nname = 's'\nsize = '4KiB'\nworkers = 4\n";
    let figures = run(&disk, &format!("requests = 1234\n{base}"));
    assert_eq!(figures.run.ended_by, EndedBy::Requests);
    assert_eq!(read(&figures).requests, 1234);
    let figures = run(&disk, &format!("bytes = '4MiB'\n{base}"));
    assert_eq!(figures.run.ended_by, EndedBy::Bytes);
    assert_eq!(read(&figures).bytes, 4 << 20);
    let figures = run(&disk, &format!("seconds = 10\nramp = '5s'\n{base}"));
    assert_eq!(figures.run.ended_by, EndedBy::Time);
    assert_eq!(figures.run.measured_ns, 10_000_000_000);
    assert!(figures.run.streams[0].total_bytes > read(&figures).bytes * 14 / 10);
    let figures = run(&disk, &format!("until_steady = true\n{base}"));
    assert_eq!(figures.run.ended_by, EndedBy::Steady);
    let window = figures.run.steady.expect("the window that was steady");
    assert!(
        window.at_ns <= figures.run.measured_ns && window.at_ns - window.from_ns >= 60_000_000_000
    );
}

#[test]
fn passes_and_rewrites_are_as_on_real_targets() {
    let load = "region = '0MiB-8MiB'\npattern = 'sequential'\nsize = '64KiB'\nworkers = 3\ndepth = 2\nstop_passes = 2\n\
                rewrite_fraction = 1";
    let figures = run(&machine(DISK), load);
    let stream = &figures.run.streams[0];
    let counts = [&stream.read, &stream.write].map(|op| op.as_ref().unwrap().requests);
    assert_eq!(counts, [256, 256]);
    let whole = run(
        &machine(DISK),
        "region = '0MiB-8MiB'\nsize = '64KiB'\nworkers = 3\nstop_passes = 1",
    );
    assert_eq!(whole.run.streams[0].read.as_ref().unwrap().requests, 128);
    // Writing back where the head is costs about a turn of the disk; it never overtakes its read.
    let one = "pattern = 'sequential'\nsize = '64KiB'\nseconds = 10\n";
    let rate = |more: &str| {
        let figures = run(
            &machine(&format!("{DISK}\nwrite_cache = false")),
            &format!("{one}{more}"),
        );
        figures.run.streams[0].read.as_ref().unwrap().iops
    };
    assert!(rate("rewrite_fraction = 1") < rate("write_fraction = 0.5"));
}

#[test]
fn a_stream_that_is_done_ends_those_it_names() {
    let load = "seconds = 100\n[[stream]]\nname = 'a'\nstop_requests = 100\nends = 'b'\n[[stream]]\nname = 'b'\n\
                [[stream]]\nname = 'c'\nstop_requests = 3000";
    let figures = run(&machine(DISK), load);
    let streams = &figures.run.streams;
    let counts: Vec<u64> = streams
        .iter()
        .map(|of| of.read.as_ref().unwrap().requests)
        .collect();
    assert_eq!((counts[0], counts[2]), (100, 3000));
    assert!(counts[1] < 300, "{counts:?}");
    assert_eq!(figures.run.ended_by, EndedBy::Requests);
}

#[test]
fn a_run_can_be_stopped() {
    let stop = Arc::new(AtomicBool::new(true));
    let options = SimOptions {
        stop: Some(stop),
        ..SimOptions::default()
    };
    let load = workload("requests = 100000000\n[[stream]]\nname = 's'\nsize = '4KiB'");
    let figures = simulate(&machine(DISK), &load, options).unwrap();
    assert_eq!(figures.run.ended_by, EndedBy::Stopped);
    assert!(read(&figures).requests < 10_000);
}

#[test]
fn rates_and_pauses_are_kept() {
    let disk = machine(DISK);
    let figures = run(
        &disk,
        "seconds = 60\n[[stream]]\nname = 's'\nsize = '4KiB'\nworkers = 4\nrate_limit = '40 IOPS'",
    );
    assert!((read(&figures).iops - 40.0).abs() < 0.5);
    let figures = run(
        &disk,
        "seconds = 600\n[[stream]]\nname = 's'\nsize = '4KiB'\nthink = '100ms'",
    );
    let expected = 1e9 / (1e8 + read(&figures).latency.mean_ns);
    assert!((read(&figures).iops / expected - 1.0).abs() < 0.01);
    let figures = run(
        &disk,
        "seconds = 60\n[[stream]]\nname = 's'\nsize = '4KiB'\nrate = '30 IOPS'\nspacing = 'constant'\ndepth = 16",
    );
    assert!((read(&figures).iops - 30.0).abs() < 0.5);
    assert!(read(&figures).service.is_some());
}

#[test]
fn fsync_waits_for_the_write_cache() {
    let load = "seconds = 30\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\nwrite_fraction = 1.0\nfsync_every = 1";
    let flushing = run(&machine(DISK), load);
    let fsync = flushing.run.streams[0].fsync.as_ref().unwrap();
    // Acknowledged by the cache at once, on the medium a seek and half a turn later.
    assert!(write(&flushing).latency.mean_ns < 2e6);
    assert!(
        (8e6..25e6).contains(&fsync.latency.mean_ns),
        "{}",
        fsync.latency.mean_ns
    );
    // Before 2.6.33 fsync of a block device asked nothing of the drive.
    let old = run(
        &machine(&format!("[host]\nkernel = '2.6.25'\n{DISK}")),
        load,
    );
    assert_eq!(old.run.streams[0].fsync.as_ref().unwrap().latency.max_ns, 0);
    assert_eq!(old.drives[0].flushes, 0);
    // O_DSYNC: the write itself waits.
    let load = "seconds = 30\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\nwrite_fraction = 1.0\ndsync = true";
    assert!(write(&run(&machine(DISK), load)).latency.mean_ns > 8e6);
}

#[test]
fn priorities_separate_streams_under_cfq_and_mq_deadline() {
    let load = |first: &str, second: &str| {
        format!(
            "seconds = 60\n[[stream]]\nname = 'a'\npattern = 'uniform'\nsize = '4KiB'\nworkers = 4\npriority = '{first}'\n\
             [[stream]]\nname = 'b'\npattern = 'uniform'\nsize = '4KiB'\nworkers = 4\npriority = '{second}'\n"
        )
    };
    for (kernel, scheduler) in [("2.6.32", "cfq"), ("6.1", "mq-deadline")] {
        let machine = machine(&format!(
            "[host]\nkernel = '{kernel}'\n[queue]\nscheduler = '{scheduler}'\n[[drive]]\nmodel = 'HDS725050KLA360'\nqueue_depth = 1"
        ));
        let figures = run(&machine, &load("best-effort", "idle"));
        let iops = |index: usize| {
            ops(&figures.run.streams[index])
                .map(|op| op.iops)
                .sum::<f64>()
        };
        assert!(
            iops(0) > 5.0 * iops(1),
            "{scheduler}: {} {}",
            iops(0),
            iops(1)
        );
    }
}

#[test]
fn cfq_since_2_6_33_serves_threads_that_seek_together() {
    let iops = |kernel: &str, scheduler: &str| {
        let machine = machine(&format!(
            "[host]\nkernel = '{kernel}'\n[queue]\nscheduler = '{scheduler}'\n[[drive]]\nmodel = 'WD3200AAKS'"
        ));
        let load =
            "seconds = 30\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\nworkers = 8";
        read(&run(&machine, load)).iops
    };
    let sorted = iops("3.10", "deadline");
    for kernel in ["2.6.33", "3.10", "4.4"] {
        let together = iops(kernel, "cfq");
        assert!(together > 0.9 * sorted, "{kernel}: {together} of {sorted}");
    }
    // 2.6.32 waits for each of them, so the drive has one request at a time.
    let alone = iops("2.6.32", "cfq");
    assert!(alone < 0.7 * sorted, "{alone} of {sorted}");
}

#[test]
fn cfq_since_2_6_33_starves_no_tree() {
    let load = "seconds = 30\nramp = '3s'\n[[stream]]\nname = 'random'\npattern = 'uniform'\nsize = '4KiB'\nworkers = 4\n\
                [[stream]]\nname = 'stream'\npattern = 'sequential'\nsize = '128KiB'\nregion = '0-20GB'\n\
                [[stream]]\nname = 'pages'\npattern = 'sequential'\nsize = '1MiB'\nwrite_fraction = 1\ndirect = false\nregion = '100GB-120GB'\n";
    for kernel in ["2.6.33", "3.10"] {
        let machine = machine(&format!(
            "[host]\nkernel = '{kernel}'\nmemory = '256MiB'\n[queue]\nscheduler = 'cfq'\n[[drive]]\nmodel = 'WD3200AAKS'"
        ));
        let figures = run(&machine, load);
        for stream in &figures.run.streams {
            let requests: u64 = ops(stream).map(|op| op.requests).sum();
            // In 30 s: random reads and parts of the stream by the dozen a second, and some pages each second.
            assert!(requests > 15, "{kernel} {}: {requests}", stream.name);
        }
        let reads = ops(&figures.run.streams[1]).map(|op| op.latency.max_ns);
        assert!(reads.max().unwrap() < 2_500_000_000);
    }
}

#[test]
fn nr_requests_makes_submitters_wait_and_deep_queues_sort_better() {
    let iops = |requests: u32| {
        let machine = machine(&format!(
            "[host]\nkernel = '2.6.32'\n[queue]\nscheduler = 'deadline'\nnr_requests = {requests}\n[[drive]]\nmodel = 'HDS725050KLA360'\nqueue_depth = 1"
        ));
        let figures = run(
            &machine,
            "seconds = 120\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\nworkers = 128",
        );
        (read(&figures).iops, figures.drives[0].request_waits)
    };
    let (shallow, deep) = (iops(4), iops(128));
    assert!(shallow.1 > 1000 && deep.1 == 0, "{shallow:?} {deep:?}");
    assert!(deep.0 > 1.2 * shallow.0, "{shallow:?} {deep:?}");
}

#[test]
fn neighbours_are_merged_while_they_wait() {
    let merges = |scheduler: &str| {
        let machine = machine(&format!(
            "[host]\nkernel = '2.6.32'\n[queue]\nscheduler = '{scheduler}'\n[[drive]]\nmodel = 'HDS725050KLA360'\nqueue_depth = 1"
        ));
        let load = workload(
            "requests = 20000\n[[stream]]\nname = 's'\npattern = 'sequential'\nsize = '4KiB'\ndepth = 64",
        );
        // Otherwise the plug of a call merges them.
        let options = SimOptions {
            one_call_each: true,
            ..SimOptions::default()
        };
        let figures = simulate(&machine, &load, options).unwrap();
        let of = &figures.drives[0];
        assert_eq!(of.read_bytes, 20_000 * 4096);
        assert_eq!(
            of.reads + of.back_merges + of.front_merges + of.request_merges,
            20_000
        );
        of.back_merges
    };
    for scheduler in ["noop", "deadline", "cfq", "anticipatory"] {
        assert!(merges(scheduler) > 10_000, "{scheduler}");
    }
    assert_eq!(merges("fcfs"), 0);
}

#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_trace_holds_every_command_and_its_times_add_up() {
    let kept = SharedBuffer::default();
    let options = SimOptions {
        trace: Some(Box::new(kept.clone())),
        ..SimOptions::default()
    };
    let figures = simulate(&machine(PARITY), &workload(MIXED), options).unwrap();
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let parts = [
        "queue_ns",
        "overhead_ns",
        "seek_ns",
        "rotation_ns",
        "transfer_ns",
    ]
    .map(column);
    let (total, drive, finish) = (column("total_ns"), column("drive"), column("finish_ns"));
    let (mut count, mut latest) = (0_u64, 0);
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), head.len());
        let sum: u64 = parts
            .iter()
            .map(|&part| cells[part].parse::<u64>().unwrap())
            .sum();
        assert_eq!(sum, cells[total].parse::<u64>().unwrap(), "{line}");
        assert!(cells[drive].starts_with("drive"));
        let finish: u64 = cells[finish].parse().unwrap();
        assert!(finish >= latest);
        latest = finish;
        count += 1;
    }
    let served: u64 = figures
        .drives
        .iter()
        .map(|of| of.reads + of.writes + of.flushes)
        .sum();
    assert_eq!(count, served);
}

#[test]
fn what_is_not_modelled_is_refused_in_one_line() {
    let refused = |load: &str| {
        let error = simulate(&machine(DISK), &workload(load), SimOptions::default()).unwrap_err();
        let text = error.to_string();
        assert!(!text.contains('\n'));
        (error, text)
    };
    let (error, text) = refused("seconds = 1\n[[stream]]\nname = 'log'\nmapped = true");
    assert!(matches!(error, SimError::Mapped { .. }));
    assert!(text.contains("log") && text.contains("mapped"), "{text}");
    let (error, _) =
        refused("seconds = 1\n[[stream]]\nname = 's'\nsize = '4KiB'\ntrim_fraction = 0.5");
    assert!(matches!(error, SimError::Trim { .. }));
    let (error, _) =
        refused("seconds = 1\n[[stream]]\nname = 's'\nsize = '4KiB'\nregion = '0-900GB'");
    assert!(matches!(error, SimError::Stream { .. }));
}

#[test]
fn cpu_time_of_the_host_bounds_a_fast_drive() {
    let fast = |cpu: &str| {
        let machine = machine(&format!(
            "[host]\ncpu_per_request = '{cpu}'\n[[drive]]\nmodel = '970-PRO-1TB'"
        ));
        let load = "requests = 50000\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\ndepth = 32";
        read(&run(&machine, load)).iops
    };
    assert!((fast("10us") / 100_000.0 - 1.0).abs() < 0.01);
    assert!(fast("0us") > 150_000.0);
}

#[test]
fn a_class_that_waits_for_a_higher_one_is_looked_at_when_requests_come_or_a_jiffy_later() {
    let drive = "[queue]\nscheduler = 'mq-deadline'\n[[drive]]\nservice = '100us'\nqueue_depth = 8\ncapacity = '1GiB'\n";
    let stream = |name: &str, priority: &str, requests: u32| {
        format!(
            "[[stream]]\nname = '{name}'\npattern = 'uniform'\nsize = '4KiB'\npriority = '{priority}'\nstop_requests = {requests}\n"
        )
    };
    let load = format!(
        "seconds = 'none'\nrequests = 11\n{}{}",
        stream("first", "realtime", 10),
        stream("last", "idle", 1)
    );
    let figures = run(&machine(drive), &load);
    // The end of the tenth request of the higher class, at 1 ms, asks no one. The elevator gave nothing at the begin of
    // the run, so it is asked again 3 ms later, rounded to the end of the second jiffy (HZ 250).
    let last = figures.run.streams[1].read.as_ref().unwrap();
    assert_eq!(last.latency.max_ns, 8_100_000);
}

#[test]
fn bfq_lets_a_writer_have_three_quarters_of_the_requests_at_most() {
    let drive = "[queue]\nscheduler = 'bfq'\n[[drive]]\nservice = '1ms'\nqueue_depth = 32\ncapacity = '1GiB'\n";
    let load = "requests = 1000\n[[stream]]\nname = 'w'\npattern = 'uniform'\nsize = '1MiB'\nwrite_fraction = 1\ndepth = 64\n";
    let figures = run(&machine(drive), load);
    // There are 64 requests in words of 16 bits: 6 bits of each while the queue is raised (60 MB), then 12. With all of them, no
    // request would wait for one.
    let drive = &figures.drives[0];
    assert!(drive.request_waits > 900, "{}", drive.request_waits);
}

/// One request at a time on a drive: the load reads the clock before a request and after it is done, the kernel for the
/// bio, for its request, and when that starts (Linux 6.1). Interrupts read it for nothing.
#[test]
fn readings_of_the_clock_take_time_in_threads() {
    let elapsed_ns = |reading: &str, scheduler: &str| {
        let text = format!(
            "[host]\nclock_reading = '{reading}'\n[queue]\nscheduler = '{scheduler}'\n[[drive]]\nservice = '1ms'\n\
             capacity = '1GiB'\n"
        );
        let load = "requests = 1000\nseconds = 'none'\n[[stream]]\nname = 's'\nsize = '4KiB'\n";
        run(&machine(&text), load).run.measured_ns
    };
    for scheduler in ["none", "mq-deadline"] {
        let extra_ns = elapsed_ns("1us", scheduler) - elapsed_ns("0s", scheduler);
        let readings = extra_ns as f64 / 1e6;
        assert!((4.99..=5.01).contains(&readings), "{scheduler}: {readings}");
    }
}

#[test]
fn threads_that_begin_together_run_as_the_kernel_places_them() {
    let order = |host: &str| {
        let text = format!(
            "[host]\n{host}\n[queue]\nscheduler = 'none'\n[[drive]]\nservice = '1ms'\ncapacity = '1GiB'\n"
        );
        let mut load = "requests = 9\nseconds = 'none'\n".to_owned();
        for at in 0..9 {
            load += &format!(
                "[[stream]]\nname = 's{at}'\nsize = '4KiB'\npattern = 'sequential'\nstop_requests = 1\n"
            );
        }
        let figures = run(&machine(&text), &load).run;
        let waited = |at: &usize| {
            figures.streams[*at]
                .read
                .as_ref()
                .map(|op| op.latency.max_ns)
        };
        let mut streams: Vec<usize> = (0..9).collect();
        streams.sort_by_key(waited);
        streams
    };
    let as_started: Vec<usize> = (0..9).collect();
    assert_eq!(order("kernel = '6.1'"), as_started, "a processor each");
    let one = "clock_reading = '1ns'";
    assert_eq!(
        order(&format!("kernel = '6.1'\n{one}")),
        [6, 7, 8, 5, 4, 3, 2, 1, 0]
    );
    assert_eq!(order(&format!("kernel = '6.6'\n{one}")), as_started);
}

#[test]
fn a_load_ends_with_its_last_request_whatever_comes_after_it() {
    let drive = machine("[[drive]]\nservice = '1ms'\ncapacity = '1GiB'\n");
    for (lines, elapsed_ms) in [
        ("think = '700ms'", 10 + 9 * 700),
        ("think = '700ms'\nworkers = 2", 4 * 701 + 2),
        ("rate = '2 IOPS'", 9 * 500 + 1),
    ] {
        let load = format!(
            "requests = 10\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\n{lines}"
        );
        assert_eq!(
            run(&drive, &load).run.elapsed_ns,
            elapsed_ms * 1_000_000,
            "{lines}"
        );
    }
}
