//! Streams over sets of files.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use spindle_workload::{Each, FileSize, Op, Request, Workload};

fn workload(text: &str) -> Workload {
    Workload::parse(text, "f.toml", "test", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(text: &str) -> String {
    let error = Workload::parse(text, "f.toml", "test", &[]).unwrap_err();
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

fn draw(workload: &Workload, worker: u32, sizes: &[u64], count: usize) -> Vec<Request> {
    let mut requests = workload.requests(0, worker, sizes, 512).expect("a stream");
    (0..count).map(|_| requests.next_request()).collect()
}

fn files(requests: &[Request]) -> Vec<u32> {
    requests.iter().map(|request| request.file).collect()
}

const KIB: u64 = 1024;

#[test]
fn files_take_turns() {
    let workload = workload("[[files]]\nnrfiles = 3\nfilesize = '1MiB'");
    assert_eq!(
        files(&draw(&workload, 0, &[1 << 20; 3], 7)),
        [0, 1, 2, 0, 1, 2, 0]
    );
}

#[test]
fn a_turn_is_as_long_as_asked() {
    let workload = workload("file_requests = 2\n[[files]]\nnrfiles = 3\nfilesize = '1MiB'");
    assert_eq!(
        files(&draw(&workload, 0, &[1 << 20; 3], 7)),
        [0, 0, 1, 1, 2, 2, 0]
    );
}

#[test]
fn every_byte_is_asked_for_once_before_any_is_asked_for_again() {
    for service in ["roundrobin", "random", "sequential"] {
        for requests in [1, 3] {
            let workload = workload(&format!(
                "pattern = 'sequential'\nsize = '4KiB'\nfile_service_type = '{service}'\nfile_requests = {requests}\n\
                 [[files]]\nnrfiles = 3\nfilesize = '1MiB'"
            ));
            let sizes = [8 * KIB, 40 * KIB, 16 * KIB];
            let mut requests = workload.requests(0, 0, &sizes, 512).expect("a stream");
            for pass in 0..3 {
                let mut seen = HashSet::new();
                for _ in 0..16 {
                    let request = requests.next_request();
                    assert!(
                        seen.insert((request.file, request.offset)),
                        "{service}, pass {pass}: {request:?} again"
                    );
                }
            }
        }
    }
}

#[test]
fn a_file_is_finished_before_the_next_when_served_sequentially() {
    let text = "size = '4KiB'\nfile_service_type = 'sequential'\n[[files]]\nnrfiles = 3\nfilesize = '16KiB'";
    for pattern in ["sequential", "uniform", "zipf"] {
        let workload = workload(&format!("pattern = '{pattern}'\n{text}"));
        assert_eq!(
            files(&draw(&workload, 0, &[16 * KIB; 3], 13)),
            [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0],
            "{pattern}"
        );
    }
}

#[test]
fn random_service_reaches_every_file_about_equally() {
    let workload =
        workload("file_service_type = 'random'\n[[files]]\nnrfiles = 8\nfilesize = '1MiB'");
    let mut counts = BTreeMap::new();
    for file in files(&draw(&workload, 0, &[1 << 20; 8], 16_000)) {
        *counts.entry(file).or_insert(0_u32) += 1;
    }
    // 2000 each; 7 degrees of freedom: 1 in 10^6 exceeds 40.
    let chi2: f64 = counts
        .values()
        .map(|&n| (f64::from(n) - 2000.0).powi(2) / 2000.0)
        .sum();
    assert!(counts.len() == 8 && chi2 < 40.0, "{counts:?}");
}

#[test]
fn workers_deal_the_files_of_a_sequential_stream_among_themselves() {
    let workload =
        workload("pattern = 'sequential'\nworkers = 2\n[[files]]\nnrfiles = 5\nfilesize = '64KiB'");
    let of =
        |worker| HashSet::<u32>::from_iter(files(&draw(&workload, worker, &[64 * KIB; 5], 100)));
    assert_eq!(of(0), HashSet::from([0, 2, 4]));
    assert_eq!(of(1), HashSet::from([1, 3]));
}

#[test]
fn workers_share_each_file_where_there_are_fewer() {
    let workload =
        workload("pattern = 'sequential'\nworkers = 4\n[[files]]\nnrfiles = 2\nfilesize = '64KiB'");
    let mut seen = HashSet::new();
    for worker in 0..4 {
        for request in draw(&workload, worker, &[64 * KIB; 2], 8) {
            assert!(seen.insert((request.file, request.offset)), "{request:?}");
        }
    }
    assert_eq!(seen.len(), 32);
}

#[test]
fn each_worker_keeps_to_its_own_files() {
    let workload =
        workload("workers = 3\n[[files]]\nnrfiles = 2\neach = 'worker'\nfilesize = '1MiB'");
    assert_eq!(
        (workload.filesets[0].each, workload.filesets[0].files),
        (Each::Worker, 6)
    );
    for worker in 0..3 {
        let of = HashSet::<u32>::from_iter(files(&draw(&workload, worker, &[1 << 20; 6], 100)));
        assert_eq!(of, HashSet::from([2 * worker, 2 * worker + 1]));
    }
}

#[test]
fn as_many_files_as_the_widest_stream_of_a_set_needs() {
    let workload = workload(
        "[[files]]\neach = 'worker'\nfilesize = '1MiB'\n[[stream]]\nname = 'a'\nworkers = 2\n[[stream]]\nname = 'b'\nworkers = 5",
    );
    assert_eq!(workload.filesets[0].files, 5);
}

#[test]
fn files_have_places_of_their_own() {
    let workload = workload("[[files]]\nnrfiles = 2\nfilesize = '1GiB'");
    let drawn = draw(&workload, 0, &[1 << 30; 2], 2000);
    let of = |file| -> Vec<u64> {
        let of_file = drawn.iter().filter(|request| request.file == file);
        of_file.map(|request| request.offset).collect()
    };
    let same = of(0).iter().zip(of(1)).filter(|(a, b)| **a == *b).count();
    assert!(same < 5, "{same} of 1000 alike");
}

#[test]
fn what_changes_files_is_remembered_and_what_reads_is_not() {
    let workload = workload(
        "write_fraction = 1\nfile_requests = 10\n[[files]]\nnrfiles = 3\nfilesize = '1MiB'",
    );
    let mut requests = workload.requests(0, 0, &[1 << 20; 3], 512).unwrap();
    for _ in 0..15 {
        assert_eq!(requests.next_request().op, Op::Write);
    }
    assert_eq!(requests.changed_files().collect::<Vec<_>>(), [0, 1]);
    let mut reads = Workload::parse("[[files]]\nnrfiles = 3\nfilesize = '1MiB'", "f", "f", &[])
        .unwrap()
        .requests(0, 0, &[1 << 20; 3], 512)
        .unwrap();
    reads.next_request();
    assert_eq!(reads.changed_files().count(), 0);
}

#[test]
fn sizes_are_as_distributed_and_the_same_for_each_number_of_files() {
    for (text, low, high, mean) in [
        ("4KiB-64KiB", 4 * KIB, 64 * KIB, 34.0 * 1024.0),
        (
            "4KiB:50,8GiB:50",
            4 * KIB,
            8 << 30,
            (4.0 * 1024.0 + (8_u64 << 30) as f64) / 2.0,
        ),
        (
            "log-normal:mean=4GiB,min=1MiB,max=64GiB",
            1 << 20,
            64 << 30,
            (4_u64 << 30) as f64,
        ),
        ("3000", 3000, 3000, 3000.0),
    ] {
        let of = |nrfiles: u32| {
            let workload = workload(&format!(
                "[[files]]\nnrfiles = {nrfiles}\nfilesize = '{text}'"
            ));
            workload.filesets[0].sizes(0, workload.seed, 0).unwrap()
        };
        let sizes = of(20_000);
        assert!(
            sizes.iter().all(|&size| (low..=high).contains(&size)),
            "{text}"
        );
        let seen = sizes.iter().map(|&size| size as f64).sum::<f64>() / 20_000.0;
        assert!(
            (seen / mean - 1.0).abs() < 0.05,
            "{text}: {seen} for {mean}"
        );
        assert_eq!(of(10), sizes[..10], "{text}");
    }
}

#[test]
fn what_the_caches_ask_for_is_parted_equally() {
    let workload = workload("[[files]]\nnrfiles = 3");
    assert_eq!(workload.filesets[0].filesize, FileSize::Auto);
    let third = (1 << 30) / 3 / 4096 * 4096;
    assert_eq!(
        workload.filesets[0].sizes(0, 1, 1 << 30).unwrap(),
        [third; 3]
    );
}

#[test]
fn options_make_a_set_where_there_is_none_and_change_one_of_several() {
    let options = |pairs: &[(&str, &str)], text: &str| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        Workload::parse(text, "f.toml", "test", &pairs).map_err(|error| error.to_string())
    };
    let made = options(&[("nrfiles", "4"), ("filesize", "1MiB")], "").unwrap();
    assert_eq!(
        (made.filesets.len(), made.filesets[0].files),
        (1, 4),
        "{made:?}"
    );
    assert_eq!(made.streams[0].files.as_ref().unwrap().set, "files");
    let two = "[[files]]\nname = 'a'\n[[files]]\nname = 'b'";
    let changed = options(&[("b.nrfiles", "7")], two).unwrap();
    let counts: Vec<u32> = changed.filesets.iter().map(|set| set.files).collect();
    assert_eq!(counts, [1, 7]);
    let error = options(&[("c.nrfiles", "7")], two).unwrap_err();
    assert!(error.contains("set of files `c`"), "{error}");
    let error = options(&[("each", "worker")], two).unwrap_err();
    assert!(error.contains("can only be set in a file"), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    for (text, says) in [
        ("files = 'a'", "files"),
        ("file_requests = 2", "[[files]]"),
        ("nrfiles = 2", "[[files]]"),
        ("[[stream]]\nnrfiles = 2", "[[files]]"),
        ("[[files]]\nsize = '4KiB'", "size"),
        ("[[files]]\nnrfiles = 0", "nrfiles"),
        ("[[files]]\nnrfiles = 2000000", "nrfiles"),
        ("[[files]]\nname = 'a b'", "letters"),
        ("[[files]]\n[[files]]\nname = 'a'", "name"),
        ("[[files]]\nname = 'a'\n[[files]]\nname = 'a'", "two sets"),
        (
            "[[files]]\nname = 'logs'\n[[stream]]\nfiles = 'log'",
            "logs",
        ),
        ("[[files]]\neach = 'thread'", "each"),
        ("[[files]]\nfilesize = '1-100'", "512"),
        ("[[files]]\nfilesize = '4KiB:0'", "weight"),
        ("fsync_every = 2\nfdatasync_every = 2", "exclude"),
        ("fsync_fraction = 0.5\nfdatasync_every = 2", "exclude"),
    ] {
        let message = refused(text);
        assert!(message.contains(says), "{text}: {message}");
    }
}

#[test]
fn a_file_too_small_for_a_request_is_named() {
    let workload =
        workload("size = '64KiB'\n[[files]]\nname = 'few'\nnrfiles = 2\nfilesize = '1MiB'");
    let error = workload
        .requests(0, 0, &[1 << 20, 4096], 512)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("file 2 of `few`, 4096 bytes") && error.contains("65536"),
        "{error}"
    );
    let error = workload.requests(0, 0, &[], 512).unwrap_err().to_string();
    assert!(error.contains("few"), "{error}");
}

#[test]
fn nothing_is_allocated_a_request() {
    for service in ["roundrobin", "random", "sequential"] {
        let workload = workload(&format!(
            "pattern = 'sequential'\nfile_service_type = '{service}'\n[[files]]\nnrfiles = 100\nfilesize = '16KiB'"
        ));
        let mut requests = workload.requests(0, 0, &[16 * KIB; 100], 512).unwrap();
        let counted = allocation_counter::measure(|| {
            for _ in 0..10_000 {
                requests.next_request();
            }
        });
        assert_eq!(counted.count_total, 0, "{service}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_stay_inside_their_file(
        pattern in prop_oneof![Just("sequential"), Just("uniform"), Just("zipf"), Just("hot-set"), Just("strided"), Just("runs")],
        service in prop_oneof![Just("roundrobin"), Just("random"), Just("sequential")],
        size in prop_oneof![Just("4KiB"), Just("512-16KiB"), Just("log-normal:mean=4KiB,max=16KiB")],
        each in prop_oneof![Just("stream"), Just("worker")],
        region in prop_oneof![Just("0%-100%"), Just("25%-90%")],
        sizes in prop::collection::vec((64 * KIB)..(4 << 20), 6),
        workers in 1..4_u32,
        requests in 1..4_u32,
        seed: u64,
    ) {
        let text = format!(
            "pattern = '{pattern}'\nstride = '16KiB'\nsize = '{size}'\nfile_service_type = '{service}'\nregion = '{region}'\n\
             file_requests = {requests}\nworkers = {workers}\nseed = {seed}\n[[files]]\nnrfiles = 2\neach = '{each}'"
        );
        // A stride beside another pattern is an error.
        let text = if pattern == "strided" { text } else { text.replace("stride = '16KiB'\n", "") };
        let workload = workload(&text);
        for worker in 0..workers {
            let Ok(mut drawn) = workload.requests(0, worker, &sizes, 512) else { continue };
            let mut again = workload.requests(0, worker, &sizes, 512).unwrap();
            for _ in 0..500 {
                let request = drawn.next_request();
                prop_assert_eq!(request, again.next_request());
                let held = workload.streams[0].region.resolve(sizes[request.file as usize]).unwrap();
                prop_assert!(request.offset >= held.start && request.offset + u64::from(request.len) <= held.end);
                prop_assert_eq!(request.offset % 512, 0);
            }
        }
    }
}
