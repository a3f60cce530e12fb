//! Commands per second of a drive alone: 4 KiB random reads on a 7200 rpm drive, one and 32 outstanding.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use spindle_drive::closed_loop::{Load, run};
use spindle_drive::{Settings, drive};

const REQUESTS: u64 = 10_000;

fn random_reads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("random 4 KiB reads");
    group.throughput(Throughput::Elements(REQUESTS + REQUESTS / 10));
    for (name, depth) in [
        ("HDS725050KLA360", 1),
        ("HDS725050KLA360", 32),
        ("970-PRO-1TB", 1),
        ("970-PRO-1TB", 32),
    ] {
        let fresh = drive(name, Settings::default()).expect("a drive of the catalogue");
        let load = Load {
            depth,
            blocks: 8,
            span_blocks: u64::MAX,
            writes: 0.0,
            requests: REQUESTS,
            seed: 1,
        };
        group.bench_function(format!("{name} depth {depth}"), |bencher| {
            bencher.iter_batched_ref(
                || fresh.clone(),
                |drive| run(drive, &load),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, random_reads);
criterion_main!(benches);
