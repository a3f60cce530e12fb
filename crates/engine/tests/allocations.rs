//! While a load is on, its workers allocate nothing.
#![allow(unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use common::*;
use spindle_engine::{EngineChoice, NullTarget, Options, Run};
use spindle_workload::{Arrival, Spacing, Stream, Think};

/// Counts what threads named after the engine's workers allocate while it is armed.
struct Counting;

static ARMED: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// True on a worker's thread: looked up once.
    static IS_WORKER: Cell<Option<bool>> = const { Cell::new(None) };
}

fn is_worker() -> bool {
    IS_WORKER.with(|known| {
        known.get().unwrap_or_else(|| {
            let mut name = [0_u8; 16];
            // SAFETY: the kernel writes at most 16 bytes.
            unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
            let is = name.starts_with(b"spindle-io-");
            known.set(Some(is));
            is
        })
    })
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ARMED.load(SeqCst) && is_worker() {
            COUNT.fetch_add(1, SeqCst);
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count_during(run: &Run) -> u64 {
    while run.progress().phase != spindle_engine::Phase::Measure {
        assert!(!run.wait(Duration::from_millis(1)), "over too early");
    }
    COUNT.store(0, SeqCst);
    ARMED.store(true, SeqCst);
    assert!(!run.wait(Duration::from_millis(250)), "over too early");
    ARMED.store(false, SeqCst);
    run.stop();
    assert!(requests(&run.finish().expect("figures"), 0) > 100);
    COUNT.load(SeqCst)
}

/// One test: the counter is one for the whole process.
#[test]
fn workers_allocate_nothing_while_the_load_is_on() {
    let scratch = Scratch::new(8 << 20);
    let mut kinds: Vec<(&str, Stream)> = Vec::new();
    let mut mixed = stream("mixed");
    mixed.mix.write = 0.5;
    mixed.depth = 8;
    mixed.sync.fsync_fraction = 0.01;
    kinds.push(("mixed", mixed.clone()));
    let mut open = stream("open");
    open.depth = 8;
    open.arrival = Arrival::Open {
        rate_iops: 5_000.0,
        spacing: Spacing::Poisson,
    };
    kinds.push(("open loop", open));
    let mut thinking = stream("thinking");
    thinking.depth = 8;
    thinking.think = Some(Think {
        mean_ns: MS,
        exponential: true,
        every: 0,
        work_ns: 0,
        spin_ns: 0,
    });
    kinds.push(("thinking", thinking));

    for (name, stream) in kinds {
        let mut load = workload(vec![stream]);
        load.end.time_ns = Some(20_000 * MS);
        for engine in BOTH {
            let run = Run::start(&load, vec![vec![scratch.stream_file()]], options(engine))
                .expect("start");
            assert_eq!(count_during(&run), 0, "{name}, {engine:?}");
        }
        let target = NullTarget {
            size_bytes: 1 << 30,
            service_ns: 0,
        };
        let run = Run::start_null(&load, target, Options::default()).expect("start");
        assert_eq!(count_during(&run), 0, "{name}, null");
    }

    // The counter can count: a worker that is set up allocates.
    COUNT.store(0, SeqCst);
    ARMED.store(true, SeqCst);
    let run = run_with(
        &workload(vec![mixed]),
        &scratch,
        options(EngineChoice::IoUring),
    );
    ARMED.store(false, SeqCst);
    assert!(requests(&run, 0) > 0);
    assert!(COUNT.load(SeqCst) > 0);
}
