//! The request stream's promises, for specifications drawn at random.

use std::collections::HashSet;

use proptest::prelude::*;
use spindle_workload::{
    Arrival, Arrivals, Content, ContentFiller, Op, Passes, Request, RequestStream, Spacing, Stream,
    StreamError, Thinker, Workload,
};

fn stream(options: &str) -> Stream {
    let workload = Workload::parse(options, "test.toml", "test", &[]);
    workload
        .unwrap_or_else(|error| panic!("{error}"))
        .streams
        .remove(0)
}

fn open(stream: &Stream, worker: u32, seed: u64, bytes: u64, block: u32) -> RequestStream {
    RequestStream::new(stream, 0, worker, seed, bytes, block)
        .unwrap_or_else(|error| panic!("{error}: {stream:?}"))
}

fn draw(stream: &Stream, count: usize, bytes: u64) -> Vec<Request> {
    let mut requests = open(stream, 0, 7, bytes, 512);
    (0..count).map(|_| requests.next_request()).collect()
}

const PATTERNS: [&str; 17] = [
    "pattern = 'backward'",
    "pattern = 'sequential'",
    "pattern = 'uniform'",
    "pattern = 'zipf'",
    "pattern = 'zipf'\nzipf_theta = 1.5",
    "pattern = 'hot-set'",
    "pattern = 'strided'\nstride = '1MiB'",
    "pattern = 'runs'\nrun_length = 5",
    "pattern = 'runs'\nrun_length = 1",
    "pattern = 'runs'\nrun_length = 8\nrun_fixed = true",
    "pattern = 'runs'\nrun_length = 3\nrun_fixed = true\nrun_repeat = true",
    "pattern = 'shuffled'",
    "pattern = 'pareto'",
    "pattern = 'pareto'\ncenter = '30%'\nscattered = false",
    "pattern = 'normal'",
    "pattern = 'normal'\ncenter = '100%'\nscattered = false",
    "pattern = 'zoned'\nzones = '10%:60,20%:30,30%:8,40%:2'",
];

const SIZES: [&str; 10] = [
    "size = '4KiB'",
    "size = '64KiB'\nalign = '4KiB'",
    "size = '4KiB'\nalign = '64KiB'",
    "size = '4KiB-64KiB'",
    "size = '8KiB-64KiB:step=8KiB'\nalign = '8KiB'",
    "size = '4KiB:70,64KiB:30'",
    "own_writes = true",
    "size = '8KiB'\nwrite_size = '4KiB-32KiB:step=4KiB'\nwrite_align = '4KiB'",
    "size = 'log-normal:mean=26KiB,min=1KiB,max=512KiB'",
    "size = 'log-normal:mean=26KiB,sigma=0.5,min=4KiB,max=256KiB,step=4KiB'\nalign = '16KiB'",
];

/// A valid stream, with the alignment it was given in bytes if any.
fn any_stream() -> impl Strategy<Value = (Stream, Option<u64>)> {
    (0..PATTERNS.len(), 0..SIZES.len(), 0..3_u32, 1..9_u32, 0.0..0.5_f64).prop_map(
        |(pattern, size, region, workers, share)| {
            let region = ["0%-100%", "13%-87.5%", "100MiB-700MiB"][region as usize];
            let text = format!(
                "{}\n{}\nregion = '{region}'\nworkers = {workers}\nwrite_fraction = {share}\ntrim_fraction = {share}\n\
                 fsync_fraction = {share}",
                PATTERNS[pattern], SIZES[size]
            );
            let stream = stream(&text);
            let align = (stream.align_bytes > 0 && stream.separate_writes.is_none())
                .then_some(stream.align_bytes);
            (stream, align)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_are_aligned_and_inside_the_region(
        (stream, align) in any_stream(),
        seed: u64,
        worker in 0..9_u32,
        bytes in (1_u64 << 30)..(1 << 42),
        block in prop_oneof![Just(1_u32), Just(512), Just(4096)],
    ) {
        let worker = worker % stream.workers;
        let region = stream.region.resolve(bytes).unwrap();
        let mut requests = open(&stream, worker, seed, bytes, block);
        let align = align.unwrap_or(u64::from(block));
        let longest = RequestStream::max_len(&stream, block).unwrap();
        for _ in 0..2000 {
            let request = requests.next_request();
            prop_assert!(request.len > 0 && request.len <= longest);
            prop_assert_eq!(request.len % block, 0);
            prop_assert_eq!(request.offset % align, 0);
            prop_assert_eq!(request.offset % u64::from(block), 0);
            prop_assert!(request.offset >= region.start, "{:?} {:?}", request, region);
            prop_assert!(request.offset + u64::from(request.len) <= region.end, "{:?} {:?}", request, region);
            prop_assert!(!request.fsync_after || request.op == Op::Write);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_requests((stream, _) in any_stream(), seed: u64, bytes in (1_u64 << 30)..(1 << 42)) {
        let mut one = open(&stream, 0, seed, bytes, 512);
        let mut other = open(&stream, 0, seed, bytes, 512);
        for _ in 0..500 {
            prop_assert_eq!(one.next_request(), other.next_request());
        }
    }

    /// Targets too small for the requests are refused, never overrun.
    #[test]
    fn small_targets_are_refused_or_respected((stream, _) in any_stream(), seed: u64, bytes in 0_u64..2_000_000) {
        let mut whole = stream;
        whole.region = stream_region();
        for worker in 0..whole.workers {
            if let Ok(mut requests) = RequestStream::new(&whole, 0, worker, seed, bytes, 512) {
                for _ in 0..200 {
                    let request = requests.next_request();
                    prop_assert!(request.offset + u64::from(request.len) <= bytes);
                }
            }
        }
    }
}

fn stream_region() -> spindle_workload::Region {
    stream("").region
}

#[test]
fn workers_and_streams_and_seeds_draw_different_requests() {
    let stream = stream("workers = 4");
    let first = |index, worker, seed| {
        let mut requests = RequestStream::new(&stream, index, worker, seed, 1 << 40, 512).unwrap();
        (0..8)
            .map(|_| requests.next_request().offset)
            .collect::<Vec<_>>()
    };
    let all = [
        first(0, 0, 1),
        first(0, 1, 1),
        first(1, 0, 1),
        first(0, 0, 2),
    ];
    let distinct: HashSet<_> = all.iter().flatten().collect();
    assert_eq!(distinct.len(), 32, "no offset in common: {all:?}");
}

#[test]
fn the_share_of_writes_does_not_move_the_offsets() {
    let reads = draw(&stream(""), 1000, 1 << 40);
    let mixed = draw(
        &stream("write_fraction = 0.5\nfsync_fraction = 0.5"),
        1000,
        1 << 40,
    );
    assert!(reads.iter().zip(&mixed).all(|(a, b)| a.offset == b.offset));
    assert!(mixed.iter().any(|request| request.op == Op::Write));
}

#[test]
fn sequential_workers_cover_the_region_once_before_they_wrap() {
    let stream = stream("pattern = 'sequential'\nworkers = 3\nregion = '1MiB-17MiB'");
    let mut seen = HashSet::new();
    for worker in 0..3 {
        let mut requests = open(&stream, worker, 1, 1 << 30, 512);
        let first = requests.next_request().offset;
        assert!(seen.insert(first));
        let mut last = first;
        loop {
            let offset = requests.next_request().offset;
            if offset == first {
                break;
            }
            assert_eq!(offset, last + 4096);
            assert!(seen.insert(offset));
            last = offset;
        }
    }
    assert_eq!(seen.len(), 16 << 20 >> 12);
}

#[test]
fn strides_are_as_asked_and_wrap() {
    let offsets: Vec<u64> = draw(&stream("pattern = 'strided'\nstride = '1MiB'"), 9, 4 << 20)
        .iter()
        .map(|request| request.offset >> 20)
        .collect();
    assert_eq!(offsets, [0, 1, 2, 3, 0, 1, 2, 3, 0]);
}

#[test]
fn runs_have_the_mean_length_asked_for() {
    let requests = draw(
        &stream("pattern = 'runs'\nrun_length = 20"),
        400_000,
        1 << 42,
    );
    let jumps = requests
        .windows(2)
        .filter(|pair| pair[1].offset != pair[0].offset + 4096)
        .count();
    let mean = requests.len() as f64 / jumps as f64;
    // About 20 000 runs whose lengths have a standard deviation of 20: 0.7 % error at one sigma.
    assert!((mean / 20.0 - 1.0).abs() < 0.03, "mean {mean}");
}

#[test]
fn the_mix_and_the_fsyncs_are_as_asked() {
    let options =
        "write_fraction = 0.3\ntrim_fraction = 0.1\nzero_fraction = 0.05\nfsync_fraction = 0.1";
    let requests = draw(&stream(options), 1_000_000, 1 << 40);
    let count = |op| requests.iter().filter(|request| request.op == op).count() as f64;
    for (op, share) in [
        (Op::Read, 0.55),
        (Op::Write, 0.3),
        (Op::Trim, 0.1),
        (Op::Zero, 0.05),
    ] {
        assert!(
            (count(op) / 1e6 - share).abs() < 0.003,
            "{op:?}: {}",
            count(op)
        );
    }
    let fsyncs = requests
        .iter()
        .filter(|request| request.fsync_after)
        .count() as f64;
    assert!((fsyncs / count(Op::Write) - 0.1).abs() < 0.003, "{fsyncs}");
}

#[test]
fn rewrites_are_as_many_as_asked_and_fsyncs_follow_them_as_writes() {
    let options = "write_fraction = 0.2\nrewrite_fraction = 0.1\nfsync_fraction = 0.5";
    let requests = draw(&stream(options), 1_000_000, 1 << 40);
    let count = |op| requests.iter().filter(|request| request.op == op).count() as f64;
    for (op, share) in [(Op::Read, 0.7), (Op::Write, 0.2), (Op::Rewrite, 0.1)] {
        assert!((count(op) / 1e6 - share).abs() < 0.003, "{op:?}");
    }
    let synced = |op| {
        let of = requests.iter().filter(|request| request.op == op);
        of.filter(|request| request.fsync_after).count() as f64
    };
    assert!((synced(Op::Rewrite) / count(Op::Rewrite) - 0.5).abs() < 0.01);
    assert!((synced(Op::Read)).abs() < 0.5);
    let all = draw(&stream("rewrite_fraction = 1"), 1000, 1 << 40);
    assert!(all.iter().all(|request| request.op == Op::Rewrite));
}

#[test]
fn backward_requests_end_where_the_one_before_began_and_start_over_at_the_end() {
    let offsets = |options: &str, bytes: u64| -> Vec<u64> {
        let requests = draw(&stream(options), 7, bytes);
        requests
            .iter()
            .map(|request| request.offset >> 10)
            .collect()
    };
    let same = "pattern = 'backward'\nsize = '4KiB'";
    assert_eq!(offsets(same, 20 << 10), [16, 12, 8, 4, 0, 16, 12]);
    // A rest at the front without room for a whole request is left out, as at the end for sequential ones.
    assert_eq!(offsets(same, 18 << 10), [12, 8, 4, 0, 12, 8, 4]);
    let two = "pattern = 'backward'\nsize = '4KiB'\nworkers = 2";
    assert_eq!(offsets(two, 16 << 10), [4, 0, 4, 0, 4, 0, 4]);
    let apart = "pattern = 'backward'\nsize = '2KiB'\nalign = '8KiB'";
    assert_eq!(offsets(apart, 32 << 10), [24, 16, 8, 0, 24, 16, 8]);
}

/// Within a pass no place comes twice; with one request more, one does.
#[test]
fn a_pass_of_an_ordered_pattern_visits_each_of_its_places_once() {
    for pattern in ["sequential", "backward", "strided"] {
        for (size, align) in [("4KiB", "none"), ("4KiB", "16KiB"), ("64KiB", "4KiB")] {
            for workers in [1, 3] {
                let spec = stream(&format!(
                    "pattern = '{pattern}'\nsize = '{size}'\nalign = '{align}'\nworkers = {workers}\nstop_passes = 1"
                ));
                for worker in 0..workers {
                    let mut requests = open(&spec, worker, 7, 9_999_872, 512);
                    let Some(Passes::Requests(visits)) = requests.passes() else {
                        panic!("sizes are fixed");
                    };
                    let mut seen = HashSet::new();
                    for _ in 0..visits {
                        assert!(seen.insert(requests.next_request().offset), "{spec:?}");
                    }
                    assert!(!seen.insert(requests.next_request().offset), "{spec:?}");
                }
            }
        }
    }
}

#[test]
fn passes_of_all_workers_together_ask_for_what_the_region_holds() {
    for (pattern, workers) in [
        ("sequential", 3),
        ("backward", 3),
        ("uniform", 5),
        ("zipf", 1),
    ] {
        let spec = stream(&format!(
            "pattern = '{pattern}'\nsize = '4KiB'\nregion = '25%-75%'\nstop_passes = 1\nworkers = {workers}"
        ));
        let passes = (0..workers).map(|worker| match open(&spec, worker, 7, 1 << 20, 1).passes() {
            Some(Passes::Requests(requests)) => requests,
            _ => panic!("sizes are fixed"),
        });
        assert_eq!(passes.sum::<u64>(), 128, "{pattern}");
    }
}

#[test]
fn every_kth_write_is_followed_by_fsync() {
    let requests = draw(
        &stream("write_fraction = 0.5\nfsync_every = 3"),
        10_000,
        1 << 40,
    );
    let writes: Vec<bool> = requests
        .iter()
        .filter(|request| request.op == Op::Write)
        .map(|request| request.fsync_after)
        .collect();
    assert!(
        writes
            .iter()
            .enumerate()
            .all(|(index, &fsync)| fsync == (index % 3 == 2))
    );
    assert!(
        requests
            .iter()
            .all(|request| request.op == Op::Write || !request.fsync_after)
    );
}

/// Chi-square of counts against equal expectations.
fn chi_square(counts: &[u32]) -> f64 {
    let expected = counts.iter().map(|&n| f64::from(n)).sum::<f64>() / counts.len() as f64;
    counts
        .iter()
        .map(|&n| (f64::from(n) - expected).powi(2) / expected)
        .sum()
}

#[test]
fn uniform_offsets_are_uniform() {
    // A count of places that is no power of two, and 1000 cells.
    let places = 1_000_000_u64;
    for seed in 0..5 {
        let mut requests = open(&stream(""), 0, seed, places * 4096, 512);
        let mut cells = vec![0_u32; 1000];
        let mut low = vec![0_u32; 64];
        for _ in 0..1_000_000 {
            let place = requests.next_request().offset / 4096;
            cells[(place * 1000 / places) as usize] += 1;
            low[(place % 64) as usize] += 1;
        }
        // 999 degrees of freedom: mean 999, standard deviation 44.7; five sigma.
        let chi2 = chi_square(&cells);
        assert!((775.0..1223.0).contains(&chi2), "seed {seed}: {chi2}");
        let chi2 = chi_square(&low);
        assert!(
            (20.0..130.0).contains(&chi2),
            "seed {seed}, low bits: {chi2}"
        );
    }
}

#[test]
fn every_place_can_be_drawn() {
    for pattern in ["uniform", "zipf", "hot-set"] {
        let stream = stream(&format!("pattern = '{pattern}'"));
        let mut requests = open(&stream, 0, 1, 64 * 4096 + 100, 1);
        let seen: HashSet<u64> = (0..20_000)
            .map(|_| requests.next_request().offset)
            .collect();
        assert_eq!(seen.len(), 64, "{pattern}");
    }
}

#[test]
fn zipf_places_are_as_popular_as_theory_says_and_the_same_for_all_workers() {
    let stream = stream("pattern = 'zipf'\nzipf_theta = 0.99\nworkers = 2");
    let places = 100_000_u64;
    let mut counts = std::collections::HashMap::<u64, [u32; 2]>::new();
    for worker in 0..2 {
        let mut requests = open(&stream, worker, 3, places * 4096, 512);
        for _ in 0..1_000_000 {
            counts.entry(requests.next_request().offset).or_default()[worker as usize] += 1;
        }
    }
    let mut ranked: Vec<(u64, [u32; 2])> = counts.into_iter().collect();
    ranked.sort_by_key(|(_, counts)| std::cmp::Reverse(counts[0] + counts[1]));
    let norm: f64 = (1..=places).map(|k| (k as f64).powf(-0.99)).sum();
    for (index, (_, counts)) in ranked.iter().take(20).enumerate() {
        let expected = ((index + 1) as f64).powf(-0.99) / norm * 1e6;
        for &count in counts {
            let error = (f64::from(count) - expected).abs();
            assert!(
                error < 5.0 * expected.sqrt(),
                "rank {index}: {count} for {expected}"
            );
        }
    }
    let near = ranked
        .windows(2)
        .take(1000)
        .filter(|pair| pair[0].0.abs_diff(pair[1].0) == 4096)
        .count();
    assert!(
        near < 10,
        "popular places are scattered, {near} are neighbours"
    );
}

#[test]
fn a_shuffled_pass_visits_every_place_once_and_each_pass_in_another_order() {
    for places in [1_u64, 2, 3, 7, 64, 1000, 4097] {
        let stream = stream("pattern = 'shuffled'\nworkers = 2");
        let mut passes = Vec::new();
        for worker in 0..2 {
            let mut requests = open(&stream, worker, 3, places * 4096, 512);
            for _ in 0..2 {
                let pass: Vec<u64> = (0..places)
                    .map(|_| requests.next_request().offset / 4096)
                    .collect();
                let mut sorted = pass.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..places));
                passes.push(pass);
            }
        }
        if places > 60 {
            for (index, pass) in passes.iter().enumerate() {
                assert!(passes[..index].iter().all(|other| other != pass));
            }
        }
    }
}

/// Distances between neighbours in time are those of independent draws: no seek is shorter than by chance.
#[test]
fn a_shuffled_order_has_the_seeks_of_chance() {
    const PLACES: u64 = 1 << 16;
    let stream = stream("pattern = 'shuffled'");
    for seed in 0..8 {
        let mut requests = open(&stream, 0, seed, PLACES * 4096, 512);
        let order: Vec<u64> = (0..PLACES)
            .map(|_| requests.next_request().offset / 4096)
            .collect();
        for lag in [1, 2, 3] {
            let mut seen = [0_u32; 32];
            for pair in order.windows(lag + 1) {
                let step = (pair[lag] + PLACES - pair[0]) % PLACES;
                seen[(step * 32 / PLACES) as usize] += 1;
            }
            // 31 degrees of freedom: 1 in 10^6 exceeds 82.
            let chi2 = chi_square(&seen);
            assert!(chi2 < 82.0, "seed {seed}, lag {lag}: chi-square {chi2}");
        }
    }
}

#[test]
fn zones_have_their_shares_and_are_uniform_within() {
    let stream = stream("pattern = 'zoned'\nzones = '10%:60,20%:30,30%:0,40%:10'");
    let mut seen = [0_u32; 100];
    for request in draw(&stream, 400_000, 10_000 * 4096) {
        seen[(request.offset / 4096 / 100) as usize] += 1;
    }
    for (zone, share) in [(0..10, 0.6), (10..30, 0.3), (60..100, 0.1)] {
        let part = &seen[zone];
        let count: u32 = part.iter().sum();
        let expected = 400_000.0 * share;
        assert!((f64::from(count) - expected).abs() < 5.0 * expected.sqrt());
        let degrees = part.len() as f64 - 1.0;
        assert!(chi_square(part) < degrees + 6.0 * (2.0 * degrees).sqrt());
    }
    assert!(seen[30..60].iter().all(|count| *count == 0));
}

#[test]
fn zones_in_bytes_begin_behind_each_other() {
    let stream = stream("pattern = 'zoned'\nzones = '40KiB:1,8KiB:3'\nregion = '1MiB-2MiB'");
    let mut seen = [0_u32; 12];
    for request in draw(&stream, 100_000, 1 << 30) {
        seen[((request.offset - (1 << 20)) / 4096) as usize] += 1;
    }
    for (place, count) in seen.iter().enumerate() {
        let expected = if place < 10 { 2_500.0_f64 } else { 37_500.0 };
        assert!((f64::from(*count) - expected).abs() < 5.0 * expected.sqrt());
    }
}

#[test]
fn runs_of_fixed_length_go_on_or_stay() {
    let stream_of = |repeat: bool| {
        stream(&format!(
            "pattern = 'runs'\nrun_length = 8\nrun_fixed = true\nrun_repeat = {repeat}"
        ))
    };
    for repeat in [false, true] {
        let step = if repeat { 0 } else { 4096 };
        for run in draw(&stream_of(repeat), 8_000, 1 << 40).chunks(8) {
            for pair in run.windows(2) {
                assert_eq!(pair[1].offset, pair[0].offset + step);
            }
        }
    }
}

#[test]
fn writes_apart_have_a_position_and_sizes_of_their_own() {
    let stream = stream(
        "pattern = 'sequential'\nsize = '4KiB'\nwrite_size = '16KiB'\nwrite_fraction = '30%'\nregion = '0-100%'",
    );
    let mut next = [0_u64, 0];
    for request in draw(&stream, 10_000, 1 << 40) {
        let (index, len) = if request.op == Op::Write {
            (1, 16_384)
        } else {
            (0, 4_096)
        };
        assert_eq!((request.offset, request.len), (next[index], len));
        next[index] += u64::from(len);
    }
    assert_eq!(RequestStream::max_len(&stream, 512).unwrap(), 16_384);
}

#[test]
fn a_stream_that_only_writes_uses_the_keys_of_writes() {
    let stream = stream("size = '4KiB'\nwrite_size = '16KiB'\nwrite_fraction = '100%'");
    assert!(
        draw(&stream, 100, 1 << 30)
            .iter()
            .all(|request| request.len == 16_384)
    );
}

#[test]
fn a_trim_comes_before_each_write_of_the_same_place() {
    let stream = stream("trim_first = true\nwrite_fraction = '100%'\nsize = '4KiB-64KiB'");
    for pair in draw(&stream, 10_000, 1 << 30).chunks(2) {
        assert_eq!((pair[0].op, pair[1].op), (Op::Trim, Op::Write));
        assert_eq!((pair[0].offset, pair[0].len), (pair[1].offset, pair[1].len));
    }
}

#[test]
fn parts_of_passes_are_rounded_up_and_varying_sizes_go_by_the_bytes_of_the_region() {
    let passes = |text: &str| open(&stream(text), 0, 7, 1_000_000, 1).passes();
    assert_eq!(passes(""), None);
    assert_eq!(passes("stop_passes = 1"), Some(Passes::Requests(244)));
    assert_eq!(passes("stop_passes = 2.5"), Some(Passes::Requests(610)));
    assert_eq!(passes("stop_passes = 0.01"), Some(Passes::Requests(3)));
    assert_eq!(
        passes("stop_passes = 3\nregion = '0-10000'"),
        Some(Passes::Requests(6))
    );
    assert_eq!(
        passes("stop_passes = 3\nsize = '4KiB-8KiB'\nregion = '0-10000'"),
        Some(Passes::Bytes(30_000))
    );
    // Each place is trimmed and written.
    assert_eq!(
        passes("stop_passes = 1\nwrite_fraction = 1\ntrim_first = true"),
        Some(Passes::Requests(488))
    );
}

#[test]
fn the_hot_set_has_its_share_of_places_and_requests() {
    let stream = stream("pattern = 'hot-set'\nhot_space = '10%'\nhot_access = '90%'");
    let places = 10_000_u64;
    let mut requests = open(&stream, 0, 1, places * 4096, 512);
    let mut counts = vec![0_u32; places as usize];
    for _ in 0..2_000_000 {
        counts[(requests.next_request().offset / 4096) as usize] += 1;
    }
    // Hot places are drawn 1800 times each, the others 22 times: 300 separates them.
    let hot: Vec<u32> = counts
        .iter()
        .copied()
        .filter(|&count| count > 300)
        .collect();
    assert_eq!(hot.len(), 1000);
    let share = f64::from(hot.iter().sum::<u32>()) / 2e6;
    assert!((share - 0.9).abs() < 0.002, "{share}");
    let thirds = counts
        .chunks(3334)
        .map(|part| part.iter().filter(|&&count| count > 300).count());
    assert!(
        thirds.clone().all(|hot| (250..420).contains(&hot)),
        "{:?}",
        thirds.collect::<Vec<_>>()
    );
}

fn mean_size(stream: &Stream, block: u32) -> f64 {
    let mut requests = open(stream, 0, 5, 1 << 40, block);
    (0..2_000_000)
        .map(|_| f64::from(requests.next_request().len))
        .sum::<f64>()
        / 2e6
}

#[test]
fn log_normal_sizes_have_the_mean_asked_for_whatever_the_target_s_block() {
    for block in [1, 512, 4096] {
        let oltp = stream("size = 'log-normal:mean=26KiB,sigma=1,min=1KiB,max=512KiB'");
        let mean = mean_size(&oltp, block);
        assert!(
            (mean / 26_624.0 - 1.0).abs() < 0.005,
            "block {block}: {mean}"
        );
    }
    let wide = stream("size = 'log-normal:mean=300KiB,sigma=2'");
    let mean = mean_size(&wide, 512);
    assert!((mean / 307_200.0 - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn log_normal_sizes_have_the_spread_asked_for() {
    let stream = stream("size = 'log-normal:mean=1MiB,sigma=0.5,min=512,max=1GiB'");
    let mut requests = open(&stream, 0, 5, 1 << 40, 512);
    let logs: Vec<f64> = (0..200_000)
        .map(|_| f64::from(requests.next_request().len).ln())
        .collect();
    let mean = logs.iter().sum::<f64>() / 2e5;
    let sigma = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 2e5).sqrt();
    assert!((sigma - 0.5).abs() < 0.005, "{sigma}");
    assert!(
        (mean - ((1_048_576.0_f64).ln() - 0.125)).abs() < 0.01,
        "{mean}"
    );
}

#[test]
fn log_normal_sizes_are_multiples_of_the_step() {
    let stream = stream("size = 'log-normal:mean=26KiB,min=1KiB,step=4KiB'");
    let requests = draw(&stream, 10_000, 1 << 40);
    assert!(requests.iter().all(|request| request.len % 4096 == 0));
    assert_eq!(requests.iter().map(|request| request.len).min(), Some(4096));
}

#[test]
fn ranges_and_lists_have_their_means() {
    assert!(
        (mean_size(&stream("size = '4KiB-64KiB:step=4KiB'"), 512) / 34_816.0 - 1.0).abs() < 0.003
    );
    let expected = 4096.0 * 0.7 + 65_536.0 * 0.3;
    assert!((mean_size(&stream("size = '4KiB:7,64KiB:3'"), 512) / expected - 1.0).abs() < 0.005);
}

#[test]
fn streams_that_a_target_cannot_take_are_refused_with_a_reason() {
    let refused = |options: &str, bytes, block| {
        RequestStream::new(&stream(options), 0, 0, 1, bytes, block).unwrap_err()
    };
    assert_eq!(
        refused("size = 512", 1 << 30, 4096),
        StreamError::SizeNotBlocks {
            bytes: 512,
            block: 4096
        }
    );
    assert_eq!(
        refused("size = '8KiB'\nalign = 512", 1 << 30, 4096),
        StreamError::AlignNotBlocks {
            align: 512,
            block: 4096
        }
    );
    assert_eq!(
        refused("region = '1GiB-2GiB'", 3 << 29, 512),
        StreamError::RegionBeyond {
            end: 2 << 30,
            size: 3 << 29
        }
    );
    assert!(matches!(
        refused("size = '64KiB'", 65_535, 1),
        StreamError::RegionSmall { .. }
    ));
    assert!(matches!(
        refused("pattern = 'sequential'\nworkers = 5", 4 * 4096, 512),
        StreamError::RegionSmall { .. }
    ));
    assert!(matches!(
        refused("size = '600-1000'", 1 << 30, 512),
        StreamError::NoSize { .. }
    ));
    for error in [refused("", 0, 512), refused("size = 512", 1 << 30, 4096)] {
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn constant_arrivals_of_all_workers_are_evenly_spaced() {
    let stream = stream("rate = '1000 IOPS'\nworkers = 4");
    let mut all: Vec<u64> = (0..4)
        .flat_map(|worker| {
            let mut arrivals = Arrivals::new(&stream, 0, worker, 1).unwrap();
            (0..1000).map(move |_| arrivals.next_ns())
        })
        .collect();
    all.sort_unstable();
    assert!(
        all.iter()
            .enumerate()
            .all(|(index, &at)| at == index as u64 * 1_000_000)
    );
}

#[test]
fn constant_arrivals_do_not_drift_in_a_day() {
    let stream = stream("rate = '3000 IOPS'");
    let mut arrivals = Arrivals::new(&stream, 0, 0, 1).unwrap();
    let last = (0..30_000_001_u64)
        .map(|_| arrivals.next_ns())
        .last()
        .unwrap();
    assert!(last.abs_diff(10_000_000_000_000) <= 1, "{last}");
}

#[test]
fn poisson_arrivals_have_the_rate_and_the_spread_of_theory() {
    let stream = stream("rate = '500 IOPS'\nspacing = 'poisson'\nworkers = 2");
    let mut all: Vec<u64> = (0..2)
        .flat_map(|worker| {
            let mut arrivals = Arrivals::new(&stream, 0, worker, 9).unwrap();
            (0..200_000).map(move |_| arrivals.next_ns())
        })
        .collect();
    all.sort_unstable();
    // Both workers together, as long as both go on.
    let gaps: Vec<f64> = all[..390_000]
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let sdev =
        (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    assert!((mean / 2e6 - 1.0).abs() < 0.01, "mean {mean}");
    assert!(
        (sdev / mean - 1.0).abs() < 0.02,
        "coefficient of variation {}",
        sdev / mean
    );
}

#[test]
fn closed_loops_have_no_arrivals_and_open_loops_no_pauses() {
    let closed = stream("think = '10ms'");
    assert_eq!(closed.arrival, Arrival::Closed);
    assert!(Arrivals::new(&closed, 0, 0, 1).is_none());
    assert_eq!(
        Thinker::new(&closed, 0, 0, 1).unwrap().pause_ns(),
        10_000_000
    );
    let open = stream("rate = '10 IOPS'");
    assert_eq!(
        open.arrival,
        Arrival::Open {
            rate_iops: 10.0,
            spacing: Spacing::Constant
        }
    );
    assert!(Thinker::new(&open, 0, 0, 1).is_none());
}

#[test]
fn exponential_pauses_have_their_mean() {
    let stream = stream("think = '10ms'\nthink_spread = 'exponential'");
    let mut thinker = Thinker::new(&stream, 0, 0, 1).unwrap();
    let mean = (0..200_000).map(|_| thinker.pause_ns() as f64).sum::<f64>() / 2e5;
    assert!((mean / 1e7 - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn content_is_as_random_as_asked_and_never_repeats() {
    for (content, random) in [
        (Content::Random, 4096),
        (Content::Zero, 0),
        (Content::Compressible { ratio: 0.25 }, 1024),
        (Content::Compressible { ratio: 1.0 }, 4096),
    ] {
        let mut filler = ContentFiller::new(content, 0, 0, 1);
        let mut buffer = vec![0xaa_u8; 65_536 + 13];
        filler.fill(&mut buffer);
        let mut heads = HashSet::new();
        for unit in buffer.chunks_exact(4096) {
            assert!(unit[random..].iter().all(|&byte| byte == 0));
            let mut counts = vec![0_u32; 256];
            unit[..random]
                .iter()
                .for_each(|&byte| counts[byte as usize] += 1);
            if random > 0 {
                assert!(heads.insert(unit[..16].to_vec()));
                // 255 degrees of freedom; the smallest units have 4 bytes a cell.
                assert!(chi_square(&counts) < 400.0);
            }
        }
        let before = buffer.clone();
        filler.fill(&mut buffer);
        assert_eq!(before == buffer, random == 0);
        let mut again = ContentFiller::new(content, 0, 0, 1);
        again.fill(&mut buffer);
        assert_eq!(before, buffer, "the same seed gives the same data");
    }
}

/// Figures that were drawn once on x86-64 and must come out on any machine and with any later version: a
/// change here changes what an old result's seed means.
#[test]
fn requests_of_a_seed_never_change() {
    let digest = |options: &str| {
        let stream = stream(options);
        let mut requests = open(&stream, 0, 42, 1 << 40, 512);
        let mut arrivals = Arrivals::new(&stream, 0, 0, 42);
        (0..10_000).fold(0_u64, |sum, _| {
            let request = requests.next_request();
            let at = arrivals.as_mut().map_or(0, Arrivals::next_ns);
            [
                request.offset,
                u64::from(request.len),
                request.op as u64,
                u64::from(request.fsync_after),
                at,
            ]
            .iter()
            .fold(sum, |sum, word| {
                (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
            })
        })
    };
    let got: Vec<u64> = [
        "write_fraction = 0.2\nfsync_fraction = 0.1",
        "pattern = 'sequential'\nsize = '4KiB-64KiB'",
        "pattern = 'zipf'\nsize = 'log-normal:mean=26KiB,max=512KiB'",
        "pattern = 'hot-set'\nsize = '4KiB:70,64KiB:30'",
        "pattern = 'runs'\nrate = 100\nspacing = 'poisson'",
    ]
    .map(digest)
    .to_vec();
    assert_eq!(
        got,
        [
            2918811599380240505,
            16231449725207962296,
            9099773750615465205,
            11486228686045926804,
            16469096392530381856
        ]
    );
}

/// Places of requests of 4 KiB, in units of that.
fn places(options: &str, count: usize, bytes: u64) -> Vec<u64> {
    let stream = stream(options);
    draw(&stream, count, bytes)
        .iter()
        .map(|request| request.offset / 4096)
        .collect()
}

#[test]
fn a_window_holds_the_requests_until_it_moves_on_and_the_first_comes_after_the_last() {
    let load = "pattern = 'sequential'\nwindow = '32KiB'\nwindow_bytes = '16KiB'\nwindow_skip = '8KiB'\nregion = '8KiB-128KiB'";
    assert_eq!(
        places(load, 14, 1 << 20),
        [2, 3, 4, 5, 12, 13, 14, 15, 22, 23, 24, 25, 2, 3]
    );
    // More than it holds: round and round in it.
    let load =
        "pattern = 'sequential'\nwindow = '16KiB'\nwindow_bytes = '24KiB'\nregion = '0-32KiB'";
    assert_eq!(
        places(load, 13, 1 << 20),
        [0, 1, 2, 3, 0, 1, 4, 5, 6, 7, 4, 5, 0]
    );
    // The part before the end is used as far as it goes.
    let load = "pattern = 'sequential'\nwindow = '16KiB'\nregion = '0-24KiB'";
    assert_eq!(places(load, 9, 1 << 20), [0, 1, 2, 3, 4, 5, 4, 5, 0]);
}

#[test]
fn a_window_shuffles_its_own_places_and_none_other() {
    let load = "pattern = 'shuffled'\nwindow = '64KiB'\nwindow_skip = '64KiB'";
    let drawn = places(load, 64, 512 << 10);
    for (number, window) in drawn.chunks(16).enumerate() {
        let mut sorted = window.to_vec();
        sorted.sort_unstable();
        let first = number as u64 * 32;
        assert_eq!(sorted, (first..first + 16).collect::<Vec<_>>());
        assert_ne!(sorted, window);
    }
    assert_eq!(drawn, places(load, 64, 512 << 10));
}

#[test]
fn windows_that_cannot_be_are_refused_in_one_line() {
    for (load, message) in [
        (
            "pattern = 'zipf'\nwindow = '1MiB'",
            "sequential, uniform and shuffled",
        ),
        ("window_skip = '1MiB'", "only means something with `window`"),
        (
            "window = '1MiB'\nown_writes = true",
            "excludes writes that go on their own",
        ),
        ("window = '0B'", "must be above 0"),
        (
            "dedupe = '10%'\nverify = true\nwrite_fraction = 1",
            "exclude each other",
        ),
        ("dedupe_set = 10", "only means something with `dedupe`"),
        (
            "mapped = true\ndirect = true",
            "goes through the page cache",
        ),
        ("ends = 'nobody'", "nobody"),
    ] {
        let error = Workload::parse(load, "test.toml", "test", &[])
            .expect_err(load)
            .to_string();
        assert!(
            error.contains(message) && !error.contains('\n'),
            "{load}: {error}"
        );
    }
    let stream = stream("window = '6KiB'");
    let error = RequestStream::new(&stream, 0, 0, 1, 1 << 20, 512).expect_err("odd");
    assert!(matches!(error, StreamError::Window { .. }));
}

#[test]
fn streams_that_end_with_another_are_named_once_and_never_itself() {
    let text = "[[stream]]\nname = 'a'\nends = 'all'\n[[stream]]\nname = 'b'\nends = 'a, c,a'\n[[stream]]\nname = 'c'\n";
    let workload = Workload::parse(text, "test.toml", "test", &[]).expect("a workload");
    let ends: Vec<_> = workload
        .streams
        .iter()
        .map(|stream| stream.ends.join(" "))
        .collect();
    assert_eq!(ends, ["b c", "a c", ""]);
}
