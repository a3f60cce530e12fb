//! Every elevator under every kernel, with shallow and deep queues, before disks and flash: no request is ever forgotten.

mod common;

use common::{machine, run, workload};
use proptest::prelude::*;
use proptest::sample::select;
use spindle_sim::{Scheduler, SimOptions, simulate};

const LOAD: &str = "
requests = 600
[[stream]]
name = 'random'
pattern = 'uniform'
size = '4KiB-256KiB'
write_fraction = 0.4
fsync_fraction = 0.3
workers = 6
depth = 3
[[stream]]
name = 'sequential'
pattern = 'sequential'
size = '64KiB'
depth = 8
priority = 'idle'
[[stream]]
name = 'urgent'
pattern = 'runs'
run_length = 5
size = '16KiB'
priority = 'realtime'
think = '3ms'
[[stream]]
name = 'arrivals'
pattern = 'zipf'
size = '4KiB'
write_fraction = 0.5
dsync = true
rate = '30 IOPS'
spacing = 'poisson'
depth = 32
";

#[test]
fn every_request_comes_back() {
    let mut runs = 0;
    for scheduler in Scheduler::NAMES {
        for kernel in ["2.6.20", "2.6.32", "3.10", "6.18"] {
            for (depth, requests) in [(1, 1), (1, 128), (4, 8), (32, 4), (32, 256)] {
                for (model, array) in [
                    ("HDS725050KLA360", "level = 'raid10'\nlayout = 'f2'"),
                    ("HDS725050KLA360", "level = 'raid5'\nmissing = 1"),
                    ("860-EVO-1TB", "level = 'raid6'\nrebuild = 2"),
                ] {
                    let machine = machine(&format!(
                        "[host]\nkernel = '{kernel}'\n[queue]\nscheduler = '{scheduler}'\nnr_requests = {requests}\n\
                         [array]\nchunk = '64KiB'\n{array}\n[[drive]]\nmodel = '{model}'\ncount = 4\n\
                         queue_depth = {depth}\nregion = '0-20GB'\n"
                    ));
                    let figures = run(&machine, LOAD);
                    let done: u64 = figures
                        .run
                        .streams
                        .iter()
                        .flat_map(common::ops)
                        .map(|op| op.requests)
                        .sum();
                    assert!(
                        done >= 600,
                        "{scheduler} {kernel} {depth} {requests} {model}"
                    );
                    runs += 1;
                }
            }
        }
    }
    assert_eq!(runs, 13 * 4 * 5 * 3);
}

/// Loads that once went wrong: the machine, the load, and whether each request has a call of its own.
const ONCE_WRONG: [(&str, &str, bool); 14] = [
    // A bio got its request, and was at the drive, while nobody looked at the queue.
    (
        "[queue]\nscheduler = 'none'\n[array]\nlevel = 'raid1'\ndata_offset = '1MiB'\n\
         [[drive]]\nservice = '1ms'\ncapacity = '8GiB'\ncount = 2",
        "requests = 3000\nseed = 5991\n[[stream]]\nname = 's'\nsize = '4KiB'\nworkers = 2\nwrite_fraction = 0.3",
        true,
    ),
    // A row that was written with the one before it was ended twice, when another write to it had come (2.6.39 to 4.0).
    (
        "[host]\nkernel = '3.10'\n[queue]\nscheduler = 'noop'\n[array]\nlevel = 'raid4'\nchunk = '64KiB'\n\
         [[drive]]\nservice = '1ms'\ncapacity = '64MiB'\ncount = 4",
        "requests = 8\nseed = 1\n[[stream]]\nname = '0'\nsize = '256KiB'\npattern = 'sequential'\nwrite_fraction = 0.3\n\
         [[stream]]\nname = '1'\nsize = '256KiB'\npattern = 'sequential'\nwrite_fraction = 0.3",
        false,
    ),
    // A drive had finished a part before the request was sent in whole.
    (
        "[host]\nclock_reading = '1ns'\n[queue]\nscheduler = 'none'\n\
         [array]\nlevel = 'raid10'\nlayout = 'o2'\nchunk = '16KiB'\nmissing = [1]\n\
         [[drive]]\nservice = '200us'\nspread = 'exponential'\ncapacity = '8GiB'\nservers = 4\ncount = 5",
        "requests = 200\nseed = 2195\n[[stream]]\nname = 's'\nsize = '256KiB'\npattern = 'sequential'",
        true,
    ),
    // The rest of a request waited for the bio of another one.
    (
        "[queue]\nscheduler = 'bfq'\nnr_requests = 8\n[array]\nlevel = 'raid0'\nchunk = '512KiB'\n\
         [[drive]]\nmodel = 'WD740GD-00FLA0'\ncount = 4",
        "requests = 200\nseed = 2432\n[[stream]]\nname = 's'\nsize = '1MiB'\nworkers = 4\ndepth = 4\nwrite_fraction = 1",
        false,
    ),
    // The flusher's write that found the superblock clean was taken for one of the first worker.
    (
        "[host]\nkernel = '2.6.32'\nmemory = '128MiB'\n[queue]\nscheduler = 'anticipatory'\n\
         [array]\nlevel = 'raid10'\nlayout = 'n2'\nchunk = '512KiB'\ndata_offset = '1MiB'\n\
         [[drive]]\nservice = '1ms'\ncapacity = '2GiB'\ncount = 6",
        "requests = 200\nseed = 1913\n[[stream]]\nname = 'd'\nsize = '4KiB'\ndepth = 2\nwrite_fraction = 1\n\
         [[stream]]\nname = 'b'\nsize = '1MiB'\nworkers = 4\nwrite_fraction = 1\ndirect = false",
        false,
    ),
    // Pages that wait in a member's queue have no thread of io_uring's.
    (
        "[host]\nkernel = '5.4'\nclock_reading = '1ns'\n[queue]\nscheduler = 'bfq'\nnr_requests = 16\n\
         [array]\nlevel = 'raid1'\nmissing = [1]\n[controller]\nmodel = '9500S-12'\n\
         [[drive]]\nmodel = 'HD160JJ'\nregion = '0-512MiB'\ncount = 2\nqueue_depth = 1",
        "requests = 800\nseed = 3847\n\
         [[stream]]\nname = 'b'\nsize = '1MiB'\nworkers = 4\npattern = 'sequential'\nwrite_fraction = 0.3\ndirect = false\ndsync = true\n\
         [[stream]]\nname = 'd'\nsize = '512'\nworkers = 16\npattern = 'sequential'\nwrite_fraction = 0.3",
        false,
    ),
    // The elevator heard of the end of a barrier that it never had.
    (
        "[host]\nkernel = '2.6.20'\nmemory = '128MiB'\n[queue]\nscheduler = 'cfq'\n[files]\ntype = 'xfs'\n\
         [[drive]]\nmodel = 'HDS725050KLA360'\nregion = '0-512MiB'",
        "requests = 800\nseconds = 20\nseed = 3801\n[[stream]]\nname = 'r'\nsize = '4KiB'\ndepth = 4\nthink = '1ms'\n\
         [[stream]]\nname = 'd'\nsize = '1MiB'\nworkers = 16\ndepth = 4\npattern = 'sequential'\nwrite_fraction = 0.3\nfsync_fraction = 0.2\n\
         [[stream]]\nname = 'b'\nsize = '1MiB'\nworkers = 2\ndepth = 32\nwrite_fraction = 1\ndirect = false",
        true,
    ),
    // A thread that slept for a row, because the rebuild had taken the last heads, kept its rows in its plug.
    (
        "[host]\nkernel = '6.12'\n[queue]\nscheduler = 'none'\n[array]\nlevel = 'raid6'\nchunk = '64KiB'\nrebuild = 1\n\
         [[drive]]\nservice = '1ms'\ncapacity = '64MiB'\ncount = 4",
        "requests = 32\n[[stream]]\nname = 's'\nsize = '64KiB'\ndepth = 32\npattern = 'sequential'",
        false,
    ),
    // md's thread waited for a request that began, by a merge, with a write of the rebuild.
    (
        "[host]\nkernel = '6.1'\nmemory = '128MiB'\nclock_reading = '1ns'\n[queue]\nscheduler = 'none'\n\
         [array]\nlevel = 'raid6'\nchunk = '512KiB'\nrebuild = 1\n\
         [[drive]]\nservice = '2ms'\nflush = '3ms'\ncapacity = '64MiB'\ncount = 4",
        "requests = 43\nseed = 1138310752\n[[stream]]\nname = 's'\nsize = '256KiB'\nworkers = 3\ndepth = 4\nwrite_fraction = 1",
        true,
    ),
    // A write that waited for one of the same block counted as one that reads, so that one never might.
    (
        "[host]\nkernel = '2.6.32'\nmemory = '128MiB'\ncpu_per_request = '20us'\n[queue]\n\
         scheduler = 'cfq'\nnr_requests = 20\n[array]\nlevel = 'raid6'\nchunk = '512KiB'\n\
         [[drive]]\nservice = '1ms'\ncapacity = '64MiB'\ncount = 4",
        "requests = 122\nseed = 3869255645\n\
         [[stream]]\nname = '0'\nsize = '1024KiB'\nworkers = 3\ndepth = 4\npattern = 'sequential'\n\
         write_fraction = 1\ndirect = false\n\
         [[stream]]\nname = '1'\nsize = '64KiB'\nworkers = 5\ndepth = 1\npattern = 'uniform'\n\
         write_fraction = 1",
        true,
    ),
    // md's thread went on within an interrupt, and ran the queues anew.
    (
        "[host]\nkernel = '5.4'\nclock_reading = '1ns'\n[queue]\nscheduler = 'none'\n[array]\n\
         level = 'raid10'\nlayout = 'o2'\nchunk = '16KiB'\ndata_offset = '1MiB'\n\
         [[drive]]\nservice = '1ms'\ncapacity = '64MiB'\nqueue_depth = 4\ncount = 4",
        "requests = 107\nseed = 692510152\n\
         [[stream]]\nname = '0'\nsize = '1024KiB'\nworkers = 3\ndepth = 1\npattern = 'uniform'\n\
         write_fraction = 1\ndsync = true\n\
         [[stream]]\nname = '1'\nsize = '4KiB'\nworkers = 1\ndepth = 1\npattern = 'uniform'\n\
         write_fraction = 0.3",
        true,
    ),
    // A thread issued the batch of another one.
    (
        "[host]\nkernel = '5.4'\nclock_reading = '1ns'\n[queue]\nscheduler = 'none'\n[array]\n\
         level = 'raid1'\n[files]\ntype = 'ext3'\nnew = true\n\
         [[drive]]\nservice = '2ms'\ncapacity = '64MiB'\nflush = '3ms'\ncount = 4",
        "requests = 93\nseed = 553956\n\
         [[stream]]\nname = '0'\nsize = '4KiB'\nworkers = 2\ndepth = 1\npattern = 'sequential'\n\
         write_fraction = 0.3\ndirect = false\ndsync = true",
        true,
    ),
    // The next log was written within an interrupt.
    (
        "[host]\nkernel = '2.6.20'\nclock_reading = '1ns'\n[queue]\nscheduler = 'cfq'\nnr_requests = 4\n\
         [controller]\nmodel = '9500S-12'\n[array]\nlevel = 'raid10'\nlayout = 'n2'\nchunk = '16KiB'\n\
         [files]\ntype = 'ext3'\nnew = true\n\
         [[drive]]\nservice = '1ms'\ncapacity = '64MiB'\ncount = 4",
        "requests = 101\nseed = 0\n\
         [[stream]]\nname = '0'\nsize = '64KiB'\nworkers = 2\ndepth = 32\npattern = 'sequential'\n\
         write_fraction = 1\ndirect = false\ndsync = true",
        false,
    ),
    // Pages were given up before the thread that had waited for them saw them, again and again.
    (
        "[host]\nkernel = '6.1'\nmemory = '128MiB'\n[queue]\nscheduler = 'none'\nnr_requests = 4\n\
         [array]\nlevel = 'raid5'\nchunk = '16KiB'\n[files]\ntype = 'ext3'\nnew = true\n\
         [[drive]]\nservice = '1ms'\ncapacity = '64MiB'\nqueue_depth = 4\ncount = 4",
        "requests = 191\nseed = 965610134\n\
         [[stream]]\nname = '0'\nsize = '1024KiB'\nworkers = 5\ndepth = 32\npattern = 'sequential'\n\
         write_fraction = 0.3\ndirect = false\ndsync = true",
        false,
    ),
];

#[test]
fn loads_that_once_went_wrong_end() {
    for (machine_text, load, one_call_each) in ONCE_WRONG {
        let options = SimOptions {
            one_call_each,
            ..SimOptions::default()
        };
        let figures = simulate(&machine(machine_text), &workload(load), options);
        assert!(figures.is_ok(), "{machine_text}\n{load}");
    }
}

/// Few requests in the queue, quick drives, short loads: threads sleep and wake all the time.
fn machines() -> impl Strategy<Value = String> {
    (hosts(), arrays(), drives(), files()).prop_map(|(host, (members, array), drive, files)| {
        format!("{host}\n{array}\n{files}\n[[drive]]\n{drive}\ncount = {members}\n")
    })
}

/// The host, and its queues.
fn hosts() -> impl Strategy<Value = String> {
    let kernel = prop_oneof![
        (
            select(vec!["5.4", "6.1", "6.12"]),
            select(vec!["none", "none", "mq-deadline", "kyber", "bfq"]),
        ),
        (
            select(vec!["2.6.20", "2.6.24", "2.6.32"]),
            select(vec!["noop", "deadline", "cfq", "anticipatory"]),
        ),
        (
            select(vec!["2.6.36", "3.10", "4.4"]),
            select(vec!["noop", "deadline", "cfq"]),
        ),
    ];
    let times = select(vec![
        "",
        "",
        "clock_reading = '1ns'",
        "cpu_per_request = '20us'",
    ]);
    let memory = select(vec!["", "memory = '128MiB'"]);
    let requests = select(vec!["", "nr_requests = 4", "nr_requests = 20"]);
    (kernel, times, memory, requests).prop_map(|((kernel, scheduler), times, memory, requests)| {
        format!(
            "[host]\nkernel = '{kernel}'\n{times}\n{memory}\n[queue]\nscheduler = '{scheduler}'\n{requests}"
        )
    })
}

/// Drives of an array, and the array, behind a controller or not.
fn arrays() -> impl Strategy<Value = (u32, String)> {
    let level = select(vec![
        "",
        "raid0",
        "raid1",
        "raid10'\nlayout = 'n2",
        "raid10'\nlayout = 'f2",
        "raid10'\nlayout = 'o2",
        "raid4",
        "raid5",
        "raid6",
    ]);
    let state = select(vec![
        "",
        "missing = [1]",
        "rebuild = 1",
        "data_offset = '1MiB'",
    ]);
    let bitmap = select(vec![
        "",
        "",
        "\nbitmap = 'internal'\nbitmap_chunk = '16KiB'",
        "\nbitmap = 'internal'",
    ]);
    let chunk = select(vec![16, 64, 512]);
    let controller = select(vec![
        "",
        "",
        "",
        "model = '9500S-12'",
        "model = '9650SE-16ML'",
    ]);
    (level, (state, bitmap), chunk, controller, any::<bool>()).prop_map(
        |(level, (state, bitmap), chunk, controller, owns_array)| {
            let controller = match controller {
                "" => String::new(),
                model => format!("[controller]\n{model}\n"),
            };
            if level.is_empty() {
                return (1, controller);
            }
            let chunk = match level {
                "raid1" => String::new(),
                _ => format!("chunk = '{chunk}KiB'\n"),
            };
            let is_plain = ["raid0", "raid1", "raid5", "raid6"].contains(&level);
            let rest = match (owns_array && is_plain && !controller.is_empty(), level) {
                (true, _) => "type = 'controller'".to_owned(),
                (false, "raid0") => String::new(),
                (false, _) => format!("{state}{bitmap}"),
            };
            (
                4,
                format!("{controller}[array]\nlevel = '{level}'\n{chunk}{rest}"),
            )
        },
    )
}

fn drives() -> impl Strategy<Value = &'static str> {
    select(vec![
        "service = '1ms'\ncapacity = '64MiB'",
        "service = '20us'\ncapacity = '64MiB'\nspread = 'exponential'\nservers = 4",
        "service = '2ms'\ncapacity = '64MiB'\nflush = '3ms'",
        "service = '1ms'\ncapacity = '64MiB'\nqueue_depth = 4",
        "model = 'HDS725050KLA360'\nregion = '0-64MiB'",
        "model = 'PM893-960GB'\nregion = '0-64MiB'",
    ])
}

fn files() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "",
        "[files]\ntype = 'xfs'",
        "[files]\ntype = 'ext3'\nnew = true",
        "[filesystem]\ntype = 'ext4'\nsize = '16MiB'",
        "[filesystem]\ntype = 'xfs'\nsize = '16MiB'",
    ])
}

fn loads() -> impl Strategy<Value = String> {
    let stream = (
        select(vec![4, 64, 256, 1024]),
        1..6_u32,
        select(vec![1, 4, 32]),
        select(vec!["uniform", "sequential"]),
        select(vec![0.0, 0.3, 1.0]),
        select(vec![
            "",
            "",
            "fsync_fraction = 0.1",
            "fsync_every = 1",
            "fdatasync_every = 3",
            "direct = false\nfsync_every = 1",
            "osync = true",
            "direct = false",
            "direct = false\ndsync = true",
            "dsync = true",
            "think = '1ms'",
        ]),
    );
    (
        proptest::collection::vec(stream, 1..4),
        1..200_u32,
        any::<u32>(),
    )
        .prop_map(|(streams, requests, seed)| {
            let mut text = format!("requests = {requests}\nseed = {seed}\n");
            for (at, (size, workers, depth, pattern, writes, other)) in
                streams.into_iter().enumerate()
            {
                text += &format!(
                    "[[stream]]\nname = '{at}'\nsize = '{size}KiB'\nworkers = {workers}\ndepth = {depth}\n\
                     pattern = '{pattern}'\nwrite_fraction = {writes}\n{other}\n"
                );
            }
            text
        })
}

/// The same through the page cache, on a file that they make.
fn growing_loads() -> impl Strategy<Value = String> {
    loads().prop_map(|text| {
        let mut parts = text.split("[[stream]]\n");
        let head = parts.next().unwrap_or_default().to_owned();
        parts.fold(
            head + "[[files]]\nfilesize = '8MiB'\nfill = false\n",
            |text, stream| {
                let buffered = if stream.contains("direct = false") {
                    ""
                } else {
                    "direct = false\n"
                };
                text + "[[stream]]\n" + stream + buffered
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_machine_comes_to_a_standstill(machine_text in machines(), load in loads(), one_call_each in any::<bool>()) {
        let options = SimOptions { one_call_each, ..SimOptions::default() };
        let figures = simulate(&machine(&machine_text), &workload(&load), options);
        prop_assert!(figures.is_ok(), "{}\n{machine_text}\n{load}", figures.unwrap_err());
    }

    #[test]
    fn no_file_that_grows_comes_to_a_standstill(machine_text in machines(), load in growing_loads(), opens_file in any::<bool>()) {
        let options = SimOptions { opens_file, ..SimOptions::default() };
        let figures = simulate(&machine(&machine_text), &workload(&load), options);
        prop_assert!(figures.is_ok(), "{}\n{machine_text}\n{load}", figures.unwrap_err());
    }
}
