//! Memory does not depend on the length of a run: nothing is allocated once everything has been as busy as it gets.

mod common;

use common::{machine, workload};
use spindle_sim::{Scheduler, SimOptions, simulate};

/// Allocations of a whole run.
fn allocations(text: &str, requests: u32) -> (u64, u64) {
    let (machine, load) = (
        machine(text),
        workload(&format!(
            "requests = {requests}\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '16KiB'\nworkers = 48\n\
             write_fraction = 0.3\nfsync_fraction = 0.1\nthink = '1ms'"
        )),
    );
    let seen = allocation_counter::measure(|| {
        let options = SimOptions {
            // A single interval: a longer series is a longer list.
            interval_ns: 1 << 60,
            ..SimOptions::default()
        };
        simulate(&machine, &load, options).unwrap();
    });
    (seen.count_total, seen.bytes_max)
}

#[test]
fn a_run_ten_times_as_long_allocates_no_more() {
    for scheduler in Scheduler::NAMES {
        let array = format!(
            "[queue]\nscheduler = '{scheduler}'\n[array]\nlevel = 'raid5'\nchunk = '64KiB'\n\
             [[drive]]\nmodel = 'HDS725050KLA360'\ncount = 4\nqueue_depth = 4\n"
        );
        let (short, long) = (allocations(&array, 20_000), allocations(&array, 200_000));
        // Lists may double once or twice more when a rarer crowd comes.
        assert!(
            long.0 < short.0 + 40,
            "{scheduler}: {} and {} allocations",
            short.0,
            long.0
        );
        assert!(
            long.1 < short.1 * 11 / 10 + (64 << 10),
            "{scheduler}: {} and {} bytes",
            short.1,
            long.1
        );
    }
}
