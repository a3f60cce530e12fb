//! Commands per second of a drive alone: 4 KiB random reads, and 4 KiB random writes to flash drives that collect.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use spindle_drive::closed_loop::{Load, run};
use spindle_drive::datasheet::Kind;
use spindle_drive::{Device, Drive, Flash, FlashState, Settings, drive, sheet};

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

/// A used drive of the catalogue, of which the model follows one unit in 128, and the same with 8 GiB, of which it follows all.
fn random_writes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("random 4 KiB writes, used");
    group.throughput(Throughput::Elements(REQUESTS + REQUESTS / 10));
    for (name, capacity_blocks) in [("970-PRO-1TB", None), ("970-PRO-1TB", Some(8 << 21))] {
        let Kind::Flash(mut params) = sheet(name).expect("a drive of the catalogue").kind else {
            unreachable!("a flash drive");
        };
        params.state = FlashState::Used;
        params.capacity_blocks = capacity_blocks.unwrap_or(params.capacity_blocks);
        let mut used = Drive::Flash(Box::new(Flash::new(&params).expect("a drive")));
        for writes in [1.0, 0.3] {
            let load = Load {
                depth: 32,
                blocks: 8,
                span_blocks: u64::MAX,
                writes,
                requests: REQUESTS,
                seed: 1,
            };
            // Makes the mapping.
            run(&mut used, &load);
            let id = format!(
                "{name} of {} GB, {:.0} % writes",
                used.capacity_blocks() * 512 / 1_000_000_000,
                100.0 * writes
            );
            group.bench_function(id, |bencher| {
                bencher.iter_batched_ref(
                    || used.clone(),
                    |drive| run(drive, &load),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, random_reads, random_writes);
criterion_main!(benches);
