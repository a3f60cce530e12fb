//! Cost of one request, one arrival, and of filling a buffer.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use spindle_workload::{Arrivals, ContentFiller, RequestStream, Stream, Workload};

const TARGET_BYTES: u64 = 1 << 40;

fn stream(options: &str) -> Stream {
    let workload = Workload::parse(options, "bench", "bench", &[]);
    workload.expect("a valid workload").streams.remove(0)
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("request");
    group.throughput(Throughput::Elements(1));
    for (name, options) in [
        ("sequential", "pattern = 'sequential'\nsize = '1MiB'"),
        ("uniform", ""),
        (
            "uniform-mixed-fsync",
            "write_fraction = 0.2\nfsync_fraction = 0.1",
        ),
        ("uniform-range", "size = '4KiB-64KiB'"),
        ("uniform-weighted", "size = '4KiB:70,64KiB:30'"),
        (
            "uniform-log-normal",
            "size = 'log-normal:mean=26KiB,min=1KiB,max=512KiB'",
        ),
        ("strided", "pattern = 'strided'"),
        ("runs", "pattern = 'runs'"),
        ("hot-set", "pattern = 'hot-set'"),
        ("zipf", "pattern = 'zipf'"),
        ("zipf-1.2", "pattern = 'zipf'\nzipf_theta = 1.2"),
    ] {
        let stream = stream(options);
        let mut requests =
            RequestStream::new(&stream, 0, 0, 1, TARGET_BYTES, 512).expect("a stream");
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(requests.next_request()))
        });
    }
    group.finish();
}

fn arrivals(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("arrival");
    group.throughput(Throughput::Elements(1));
    for spacing in ["constant", "poisson"] {
        let stream = stream(&format!("rate = '500 IOPS'\nspacing = '{spacing}'"));
        let mut arrivals = Arrivals::new(&stream, 0, 0, 1).expect("an open loop");
        group.bench_function(spacing, |bencher| {
            bencher.iter(|| black_box(arrivals.next_ns()))
        });
    }
    group.finish();
}

fn content(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("content");
    let mut buffer = vec![0_u8; 65_536];
    group.throughput(Throughput::Bytes(buffer.len() as u64));
    for kind in ["random", "zero", "compressible:50%"] {
        let stream = stream(&format!("content = '{kind}'"));
        let mut filler = ContentFiller::new(stream.content, 0, 0, 1);
        group.bench_function(BenchmarkId::from_parameter(kind), |bencher| {
            bencher.iter(|| filler.fill(black_box(&mut buffer)));
        });
    }
    group.finish();
}

criterion_group!(benches, requests, arrivals, content);
criterion_main!(benches);
