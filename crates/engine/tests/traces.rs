//! Traces of a run on its target.

mod common;

use std::fs::FileTimes;
use std::time::{Duration, UNIX_EPOCH};

use common::*;
use spindle_workload::End;

#[test]
fn reading_leaves_the_access_time_alone() {
    let scratch = Scratch::new(1 << 20);
    // Older than the last change, so that the kernel would renew it (`relatime`).
    let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let times = FileTimes::new().set_accessed(long_ago);
    scratch.file.set_times(times).expect("own file");
    for engine in BOTH {
        let mut load = workload(vec![stream("reads")]);
        load.end = End {
            requests: Some(50),
            ..End::default()
        };
        run_with(&load, &scratch, options(engine));
        let accessed = scratch.file.metadata().and_then(|data| data.accessed());
        assert_eq!(accessed.expect("an access time"), long_ago, "{engine:?}");
    }
}
