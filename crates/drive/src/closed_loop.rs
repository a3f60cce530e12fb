//! A drive alone under a closed loop: as many random requests outstanding as asked for, each replaced when it completes.

use serde::Serialize;

use crate::command::{Command, Completion};
use crate::device::Device;
use crate::random::SplitMix;

/// The settings of a closed loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Requests outstanding.
    pub depth: u32,
    /// Blocks of a request, which are aligned to their size.
    pub blocks: u32,
    /// Blocks from the start of the drive within which requests fall; cut to the drive.
    pub span_blocks: u64,
    /// Share of writes.
    pub writes: f64,
    /// Completions that are counted, after a tenth as many that are not.
    pub requests: u64,
    /// Seed.
    pub seed: u64,
}

/// The result of a closed loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outcome {
    /// Completions per second.
    pub iops: f64,
    /// Mean response time, milliseconds.
    pub mean_ms: f64,
    /// Longest response time, milliseconds.
    pub max_ms: f64,
}

/// Runs a closed loop on `drive`. The depth is cut to the drive's queue, the request to the span.
pub fn run(drive: &mut impl Device, load: &Load) -> Outcome {
    let span = load.span_blocks.min(drive.capacity_blocks()).max(1);
    let blocks = u64::from(load.blocks).clamp(1, span);
    let slots = (span / blocks).max(1);
    let writes = (load.writes.clamp(0.0, 1.0) * (1_u64 << 32) as f64) as u64;
    let mut places = SplitMix::new(load.seed);
    let mut next = |id: u64| {
        let lbn = places.below(slots) * blocks;
        if places.next() >> 32 < writes {
            Command::write(id, lbn, blocks as u32)
        } else {
            Command::read(id, lbn, blocks as u32)
        }
    };
    let depth = load.depth.clamp(1, drive.queue_depth());
    for id in 0..u64::from(depth) {
        // Within depth, capacity and size, which are all a drive checks.
        let _ = drive.submit(0, next(id));
    }
    let warm = load.requests / 10;
    let mut ready: Vec<Completion> = Vec::with_capacity(depth as usize);
    let (mut count, mut start_ns, mut sum_ns, mut max_ns, mut now_ns) = (0, 0, 0_u128, 0, 0);
    while count < warm + load.requests {
        let Some(event_ns) = drive.next_event_ns() else {
            break;
        };
        now_ns = event_ns;
        drive.advance(now_ns, &mut |completion| ready.push(completion));
        for completion in ready.drain(..) {
            count += 1;
            let response_ns = completion.finish_ns - completion.submit_ns;
            if count == warm {
                start_ns = now_ns;
            }
            if count > warm {
                sum_ns += u128::from(response_ns);
                max_ns = max_ns.max(response_ns);
            }
            let _ = drive.submit(now_ns, next(completion.id));
        }
    }
    let counted = (count - warm.min(count)).max(1) as f64;
    Outcome {
        iops: counted * 1e9 / (now_ns - start_ns).max(1) as f64,
        mean_ms: sum_ns as f64 / counted / 1e6,
        max_ms: max_ns as f64 / 1e6,
    }
}
