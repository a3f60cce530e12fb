//! The cost of measuring: per request, and per summary.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spindle_measure::{Histogram, OpKind, PERCENTILES, Plan, StreamRecorder};

const REQUESTS: u64 = 1 << 16;

/// Latencies such as a disk's: most within one power of two, a tail over several.
fn latencies(scale_ns: u64) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..REQUESTS)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let tail = (state & 0xff).leading_zeros() - 56;
            scale_ns + (state >> 32) % (scale_ns << tail.min(8)).max(1)
        })
        .collect()
}

fn plan(kinds: &'static [OpKind], service: bool) -> Plan<'static> {
    Plan {
        kinds,
        service,
        ramp_ns: 0,
        start_ns: 0,
        interval_ns: 1_000_000_000,
        expected_ns: None,
        end_ns: None,
        max_intervals: Plan::DEFAULT_MAX_INTERVALS,
    }
}

fn record(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record");
    group.throughput(Throughput::Elements(REQUESTS));
    for (name, scale_ns) in [("40 ns", 40), ("80 us", 80_000)] {
        let latencies = latencies(scale_ns);
        group.bench_function(format!("histogram, {name}"), |bencher| {
            let mut histogram = Histogram::new();
            bencher.iter(|| {
                for &latency in &latencies {
                    histogram.record(black_box(latency));
                }
            });
        });
        group.bench_function(format!("recorder, {name}"), |bencher| {
            let mut recorder = StreamRecorder::new(&plan(&[OpKind::Read], false));
            let mut now = 0;
            bencher.iter(|| {
                for &latency in &latencies {
                    now += latency;
                    recorder.record(black_box(OpKind::Read), now, black_box(latency), 4096);
                }
            });
        });
        group.bench_function(format!("recorder, mixed kinds, {name}"), |bencher| {
            let mut recorder = StreamRecorder::new(&plan(&[OpKind::Read, OpKind::Write], false));
            let mut now = 0;
            bencher.iter(|| {
                for &latency in &latencies {
                    now += latency;
                    let kind = if latency % 5 == 0 {
                        OpKind::Write
                    } else {
                        OpKind::Read
                    };
                    recorder.record(black_box(kind), now, black_box(latency), 4096);
                }
            });
        });
        group.bench_function(format!("recorder, open loop, {name}"), |bencher| {
            let mut recorder = StreamRecorder::new(&plan(&[OpKind::Read], true));
            let mut now = 0;
            bencher.iter(|| {
                for &latency in &latencies {
                    now += latency;
                    recorder.record_open(
                        black_box(OpKind::Read),
                        now,
                        black_box(latency + 7),
                        latency,
                        4096,
                    );
                }
            });
        });
        group.bench_function(format!("outstanding, twice a request, {name}"), |bencher| {
            let mut recorder = StreamRecorder::new(&plan(&[OpKind::Read], false));
            let mut now = 0;
            bencher.iter(|| {
                for &latency in &latencies {
                    recorder.set_outstanding(now, black_box(1));
                    now += latency;
                    recorder.set_outstanding(now, black_box(0));
                }
            });
        });
    }
    group.finish();
}

/// Each request closes an interval: the cost of the series' differences and of its coarse counts.
fn close(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("close");
    for (name, scale_ns) in [("80 us", 80_000), ("5 ms", 5_000_000)] {
        let latencies = latencies(scale_ns);
        group.bench_function(format!("an interval, {name}"), |bencher| {
            let mut recorder = StreamRecorder::new(&Plan {
                interval_ns: 1 << 40,
                max_intervals: 1 << 20,
                expected_ns: Some(1 << 60),
                ..plan(&[OpKind::Read, OpKind::Write], false)
            });
            latencies
                .iter()
                .for_each(|&ns| recorder.record(OpKind::Read, 0, ns, 4096));
            let mut now = 0;
            bencher.iter(|| {
                now += 1 << 40;
                recorder.record(black_box(OpKind::Read), now, scale_ns, 4096);
            });
        });
    }
    group.finish();
}

fn summarise(criterion: &mut Criterion) {
    let mut histogram = Histogram::new();
    latencies(80_000)
        .iter()
        .for_each(|&ns| histogram.record(ns));
    let text = histogram.encode();
    let mut group = criterion.benchmark_group("summary");
    group.bench_function("13 percentiles", |bencher| {
        bencher.iter(|| black_box(&histogram).percentiles(&PERCENTILES));
    });
    group.bench_function("merge", |bencher| {
        let mut sum = Histogram::new();
        bencher.iter(|| sum.merge(black_box(&histogram)));
    });
    group.bench_function("encode", |bencher| {
        bencher.iter(|| black_box(&histogram).encode())
    });
    group.bench_function("decode", |bencher| {
        bencher.iter(|| Histogram::decode(black_box(&text)));
    });
    let series: Vec<f64> = (0..3600)
        .map(|index| 1000.0 + f64::from(index * 7919 % 101))
        .collect();
    group.bench_function("steady report of an hour", |bencher| {
        bencher.iter(|| spindle_measure::steady::report(black_box(&series)));
    });
    group.finish();
}

criterion_group!(benches, record, close, summarise);
criterion_main!(benches);
