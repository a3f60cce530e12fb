//! Every elevator under every kernel, with shallow and deep queues, before disks and flash: no request is ever forgotten.

mod common;

use common::{machine, run};
use spindle_sim::Scheduler;

const LOAD: &str = "
requests = 1500
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
        for kernel in ["2.6.20", "2.6.32", "6.18"] {
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
                        done >= 1500,
                        "{scheduler} {kernel} {depth} {requests} {model}"
                    );
                    runs += 1;
                }
            }
        }
    }
    assert_eq!(runs, 13 * 3 * 5 * 3);
}
