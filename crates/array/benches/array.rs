//! Cost of the simulator's hot path and of the parity arithmetic.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spindle_array::{
    Array, ArrayConfig, Layout, Level, MemberSet, Merger, WritePlanner, WriteRule, gf,
};

const CHUNK: u64 = 64 * 1024;

fn array(level: Level, layout: &str, members: usize) -> Array {
    let layout = Layout::parse(level, layout).expect("a layout of the level");
    let config = ArrayConfig::new(level, vec![500_000_000_000; members])
        .layout(layout)
        .chunk(CHUNK);
    Array::new(config).expect("an array md would make")
}

fn arrays() -> Vec<(&'static str, Array)> {
    vec![
        ("raid0-6", array(Level::Raid0, "default", 6)),
        ("raid10-n2-10", array(Level::Raid10, "n2", 10)),
        ("raid10-f2-6", array(Level::Raid10, "f2", 6)),
        ("raid5-6", array(Level::Raid5, "ls", 6)),
        ("raid6-8", array(Level::Raid6, "ls", 8)),
        ("raid50-6", array(Level::Raid50, "ls", 6)),
    ]
}

/// Places of random chunks: each needs a division of its own.
fn random_chunks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("locate");
    group.throughput(Throughput::Elements(1));
    for (name, array) in arrays() {
        let capacity = array.capacity();
        let mut at = 1u64;
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            bench.iter(|| {
                at = at
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                black_box(array.locate((at >> 20) % capacity))
            });
        });
    }
    group.finish();
}

/// Chunks of one long request.
fn consecutive_chunks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pieces");
    group.throughput(Throughput::Elements(1024));
    for (name, array) in arrays() {
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            bench.iter(|| {
                let mut sum = 0;
                array
                    .pieces(black_box(7 * CHUNK), 1024 * CHUNK, |piece| {
                        sum += piece.offset ^ u64::from(piece.member);
                    })
                    .map(|()| sum)
            });
        });
    }
    group.finish();
}

/// A megabyte split and merged again; the plan of a write of 64 KiB.
fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("requests-1MiB");
    group.throughput(Throughput::Elements(16));
    for (name, array) in arrays() {
        let mut merger = Merger::new(array.members());
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            bench.iter(|| {
                let mut sum = 0;
                array
                    .requests(black_box(3 * CHUNK), 16 * CHUNK, &mut merger, |request| {
                        sum += request.len
                    })
                    .map(|()| sum)
            });
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("plan-write-64KiB");
    for (name, array) in arrays() {
        let mut planner = WritePlanner::new(array.members());
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            bench.iter(|| {
                let missing = MemberSet::EMPTY;
                array.plan_write(
                    black_box(CHUNK / 2),
                    CHUNK,
                    WriteRule::LINUX_6_1,
                    &missing,
                    &mut planner,
                    |step| {
                        black_box(step);
                    },
                )
            });
        });
    }
    group.finish();
}

/// Parity of 6 + 2 members' chunks, bytes of data per second.
fn parity(criterion: &mut Criterion) {
    let data: Vec<Vec<u8>> = (0..6)
        .map(|seed| vec![seed * 37 + 1; CHUNK as usize])
        .collect();
    let slots: Vec<Option<&[u8]>> = data.iter().map(|block| Some(block.as_slice())).collect();
    let (mut p, mut q) = (vec![0; CHUNK as usize], vec![0; CHUNK as usize]);
    let mut group = criterion.benchmark_group("parity");
    group.throughput(Throughput::Bytes(6 * CHUNK));
    group.bench_function("xor-6", |bench| {
        bench.iter(|| {
            data.iter()
                .for_each(|block| gf::xor_into(black_box(&mut p), block))
        });
    });
    group.bench_function("p-and-q-6", |bench| {
        bench.iter(|| gf::syndrome(black_box(&slots), &mut p, &mut q));
    });
    group.throughput(Throughput::Bytes(CHUNK));
    group.bench_function("multiply-xor", |bench| {
        bench.iter(|| gf::multiply_xor_into(black_box(&mut q), &data[0], 0x8e));
    });
    group.finish();
}

criterion_group!(benches, random_chunks, consecutive_chunks, requests, parity);
criterion_main!(benches);
