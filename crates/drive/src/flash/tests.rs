use super::*;
use crate::closed_loop::{Load, Outcome, run};
use crate::validate::complete;

fn params() -> FlashParams {
    FlashParams {
        name: "test".into(),
        capacity_blocks: 1 << 30,
        channels: 4,
        dies_per_channel: 2,
        page_blocks: 8,
        read_page_ns: 50_000,
        program_page_ns: 500_000,
        channel_block_q16: 1000 << 16,
        bus_block_q16: 500 << 16,
        command_ns: 10_000,
        command_gap_ns: 2_000,
        queue_depth: 64,
        write_cache_blocks: 64,
        unit_blocks: 8,
        spare: 0.28,
        pages_per_block: 64,
        erase_block_ns: 3_000_000,
        collection: Collection::Greedy,
        slc: None,
        state: FlashState::Fresh,
    }
}

fn drive() -> Flash {
    Flash::new(&params()).unwrap()
}

#[test]
fn one_page_costs_sensing_and_two_transfers() {
    let mut drive = drive();
    drive.submit(0, Command::read(1, 80, 8)).unwrap();
    assert_eq!(
        complete(&mut drive).finish_ns,
        10_000 + 50_000 + 8_000 + 4_000
    );
}

#[test]
fn pages_on_different_dies_are_read_side_by_side() {
    let mut drive = drive();
    drive.submit(0, Command::read(1, 0, 64)).unwrap();
    // Two dies share each channel, and all share the interface.
    assert_eq!(
        complete(&mut drive).finish_ns,
        10_000 + 50_000 + 8_000 + 8 * 4_000
    );
}

#[test]
fn a_full_write_cache_makes_writes_wait_for_programming() {
    let mut drive = drive();
    let mut times = Vec::new();
    for id in 0..64 {
        drive.submit(0, Command::write(id, id * 8, 8)).unwrap();
    }
    while let Some(event) = drive.next_event_ns() {
        drive.advance(event, &mut |completion| times.push(completion.finish_ns));
    }
    times.sort_unstable();
    assert!(times[7] < 120_000 && times[8] >= 500_000, "{times:?}");
}

#[test]
fn a_flush_waits_until_all_is_programmed() {
    let mut drive = drive();
    drive.submit(0, Command::write(1, 0, 8)).unwrap();
    let written = complete(&mut drive).finish_ns;
    drive.submit(written, Command::flush(2)).unwrap();
    assert!(complete(&mut drive).finish_ns >= written + 500_000);
}

#[test]
fn phases_add_up() {
    let mut drive = drive();
    for id in 0..40 {
        let command = if id % 3 == 0 {
            Command::write(id, id * 24, 40)
        } else {
            Command::read(id, id * 24, 40)
        };
        drive.submit(id * 1000, command).unwrap();
    }
    let mut seen = 0;
    while let Some(event) = drive.next_event_ns() {
        drive.advance(event, &mut |completion| {
            seen += 1;
            assert_eq!(
                completion.phases.total_ns(),
                completion.finish_ns - completion.submit_ns
            );
        });
    }
    assert_eq!(seen, 40);
}

/// A drive of 8 GiB in 32 dies, all of whose units the model follows.
fn small(state: FlashState, spare: f64) -> FlashParams {
    FlashParams {
        capacity_blocks: 16 << 20,
        channels: 8,
        dies_per_channel: 4,
        page_blocks: 32,
        spare,
        pages_per_block: 16,
        channel_block_q16: 640 << 16,
        bus_block_q16: 150 << 16,
        write_cache_blocks: 32_768,
        state,
        ..params()
    }
}

/// The same with 64 GiB: the model follows one unit in eight.
fn large(state: FlashState, spare: f64) -> FlashParams {
    FlashParams {
        capacity_blocks: 128 << 20,
        pages_per_block: 128,
        ..small(state, spare)
    }
}

fn random_writes(drive: &mut Flash, requests: u64) -> f64 {
    outcome(drive, requests).iops
}

fn outcome(drive: &mut Flash, requests: u64) -> Outcome {
    let load = Load {
        depth: 32,
        blocks: 8,
        span_blocks: u64::MAX,
        writes: 1.0,
        requests,
        // The same places once more, in the same order, would be no random writes.
        seed: drive.counts().written,
    };
    run(drive, &load)
}

/// Bytes programmed for each byte written by `act`.
fn amplification(drive: &mut Flash, act: impl FnOnce(&mut Flash)) -> f64 {
    let before = drive.counts();
    act(drive);
    let after = drive.counts();
    FlashCounts {
        written: after.written - before.written,
        moved: after.moved - before.moved,
        padded: after.padded - before.padded,
        ..after
    }
    .write_amplification()
    .unwrap()
}

fn near(found: f64, expected: f64, share: f64, what: &str) {
    let difference = found / expected - 1.0;
    println!(
        "{what}: {found:.4}, expected {expected:.4}, {:+.2} %",
        100.0 * difference
    );
    assert!(difference.abs() < share, "{what}: {found} {expected}");
}

/// Hands over commands one after the other, as many outstanding as the drive takes; the time when all are done.
fn carry_out(drive: &mut Flash, commands: impl IntoIterator<Item = Command>) -> u64 {
    let from_ns = drive.active_ns;
    carry_out_from(drive, from_ns, commands)
}

fn carry_out_from(
    drive: &mut Flash,
    mut now_ns: u64,
    commands: impl IntoIterator<Item = Command>,
) -> u64 {
    let mut commands = commands.into_iter().peekable();
    let mut last_ns = now_ns;
    loop {
        while drive.outstanding() < drive.queue_depth()
            && let Some(command) = commands.next()
        {
            drive.submit(now_ns, command).unwrap();
        }
        if drive.outstanding() == 0 && commands.peek().is_none() {
            return last_ns;
        }
        now_ns = drive.next_event_ns().expect("commands are under way");
        drive.advance(now_ns, &mut |completion| last_ns = completion.finish_ns);
    }
}

fn in_order(
    from: u64,
    to: u64,
    step: u64,
    command: fn(u64, u64, u32) -> Command,
) -> impl Iterator<Item = Command> {
    (from..to)
        .step_by(step as usize)
        .map(move |lbn| command(0, lbn, step as u32))
}

/// Lets the drive do what it does by itself.
fn rest(drive: &mut Flash) -> u64 {
    let mut now_ns = drive.active_ns;
    while let Some(event_ns) = drive.next_event_ns() {
        now_ns = event_ns;
        drive.advance(now_ns, &mut |_| {});
    }
    now_ns
}

#[test]
fn a_used_drive_writes_as_much_as_the_closed_form_says_however_large_it_is() {
    for (spare, params) in [
        (0.07, small(FlashState::Used, 0.07)),
        (0.28, small(FlashState::Used, 0.28)),
        (0.07, large(FlashState::Used, 0.07)),
        (0.28, large(FlashState::Used, 0.28)),
        (0.5, large(FlashState::Used, 0.5)),
    ] {
        let mut drive = Flash::new(&params).unwrap();
        let requests = params.capacity_blocks / 8 / 8;
        let found = amplification(&mut drive, |drive| {
            random_writes(drive, requests);
        });
        let expected = amplification::uniform(params.collection, spare);
        let what = format!("spare {spare}, one in {}", 1 << drive.translation.shift());
        near(found, expected, 0.02, &what);
        near(drive.translation.spare(), spare, 0.01, "spare");
    }
}

#[test]
fn sustained_writes_are_as_fast_as_the_dies_program_read_and_erase() {
    for spare in [0.1, 0.28] {
        let params = small(FlashState::Used, spare);
        let mut drive = Flash::new(&params).unwrap();
        let Outcome { iops, max_ms, .. } = outcome(&mut drive, 100_000);
        // A die moves what a page brings before the next page, not what all that wait for it bring.
        assert!(max_ms < 20.0, "{max_ms}");
        // For each page of the host: its program, and A - 1 moved pages with the reads that fill them.
        let moved = amplification::uniform(params.collection, spare) - 1.0;
        let valid = moved / (moved + 1.0);
        let reads = (1.0 - (1.0 - valid).powi(4)) / valid;
        let channel_us = 32.0 * 0.64;
        let program_us = 500.0 + channel_us;
        let page_us = program_us
            + moved * (reads * 50.0 + 2.0 * channel_us + 500.0)
            + (1.0 + moved) * 3000.0 / 16.0;
        let expected = 32.0 * 4.0 / page_us * 1e6;
        near(iops, expected, 0.05, &format!("requests/s at {spare}"));
    }
}

#[test]
fn a_fresh_drive_is_fast_until_its_space_is_used_up() {
    let mut drive = Flash::new(&small(FlashState::Fresh, 0.28)).unwrap();
    let fresh = random_writes(&mut drive, 100_000);
    assert_eq!(drive.counts().moved, 0);
    assert_eq!(drive.counts().erases, 0);
    // Every unit once, then random ones, more than all of the drive's space.
    carry_out(&mut drive, in_order(0, 16 << 20, 1024, Command::write));
    random_writes(&mut drive, 6 << 20);
    assert!(drive.counts().moved > 0 && drive.counts().erases > 0);
    let mut used = 0.0;
    let moved = amplification(&mut drive, |drive| used = random_writes(drive, 2 << 20));
    near(
        moved,
        amplification::uniform(Collection::Greedy, 0.28),
        0.02,
        "write amplification",
    );
    let mut drawn = Flash::new(&small(FlashState::Used, 0.28)).unwrap();
    let drawn = random_writes(&mut drawn, 2 << 20);
    assert!(used < 0.5 * fresh, "{used} {fresh}");
    near(
        used,
        drawn,
        0.05,
        "requests/s written until used, and drawn",
    );
}

#[test]
fn writing_in_order_moves_nothing() {
    for params in [
        small(FlashState::Filled, 0.07),
        FlashParams {
            capacity_blocks: 64 << 20,
            ..large(FlashState::Filled, 0.07)
        },
    ] {
        let mut drive = Flash::new(&params).unwrap();
        let capacity = params.capacity_blocks;
        let found = amplification(&mut drive, |drive| {
            carry_out(drive, in_order(0, capacity, 1024, Command::write));
            carry_out(drive, in_order(0, capacity / 2, 1024, Command::write));
        });
        assert!(found < 1.01, "{found}");
        assert!(drive.counts().erases > 0);
    }
}

#[test]
fn discards_leave_collection_less_to_move() {
    let params = large(FlashState::Used, 0.07);
    let mut drive = Flash::new(&params).unwrap();
    let half = params.capacity_blocks / 2;
    carry_out(
        &mut drive,
        in_order(half, 2 * half, 1 << 20, Command::discard),
    );
    let load = Load {
        depth: 32,
        blocks: 8,
        span_blocks: half,
        writes: 1.0,
        requests: half / 8,
        seed: 5,
    };
    // The blocks that the discards left half empty are collected first.
    run(
        &mut drive,
        &Load {
            requests: half / 2,
            ..load
        },
    );
    let found = amplification(&mut drive, |drive| {
        run(drive, &load);
    });
    // Half of the space is spare too.
    let expected = amplification::uniform(params.collection, 2.0 * 1.07 - 1.0);
    near(found, expected, 0.02, "half of the drive discarded");
    assert!(found < 0.5 * amplification::uniform(params.collection, 0.07));
}

#[test]
fn a_discard_frees_whole_units_only() {
    let mut drive = Flash::new(&small(FlashState::Filled, 0.28)).unwrap();
    let empty = |drive: &Flash| drive.translation.empty_share() * 2_097_152.0;
    for (lbn, blocks, units) in [
        (1, 7, 0.0),
        (9, 14, 0.0),
        (9, 15, 1.0),
        (0, 8, 1.0),
        (32, 64, 8.0),
    ] {
        let before = empty(&drive);
        carry_out(&mut drive, [Command::discard(0, lbn, blocks)]);
        let after = empty(&drive);
        assert!(
            (after - before - units).abs() < 1e-6,
            "{lbn} {blocks}: {}",
            after - before
        );
    }
    // The last unit of a drive may be shorter than the others.
    let mut drive = Flash::new(&FlashParams {
        capacity_blocks: (16 << 20) - 3,
        ..small(FlashState::Filled, 0.28)
    })
    .unwrap();
    carry_out(&mut drive, [Command::discard(0, (16 << 20) - 8, 5)]);
    assert!((empty(&drive) - 1.0).abs() < 1e-6);
}

#[test]
fn the_same_commands_have_the_same_times() {
    let times = || {
        let mut drive = Flash::new(&FlashParams {
            collection: Collection::Choices(3),
            ..large(FlashState::Used, 0.1)
        })
        .unwrap();
        let iops = random_writes(&mut drive, 20_000);
        (iops.to_bits(), drive.counts())
    };
    assert_eq!(times(), times());
}

fn with_slc(slc: SlcCache, state: FlashState) -> Flash {
    Flash::new(&FlashParams {
        slc: Some(slc),
        program_page_ns: 2_000_000,
        write_cache_blocks: 4096,
        ..small(state, 0.28)
    })
    .unwrap()
}

const SLC: SlcCache = SlcCache {
    blocks: 200_000,
    extra_blocks: 0,
    program_page_ns: 200_000,
};

#[test]
fn writes_slow_down_when_the_slc_cache_is_full_and_recover_when_the_drive_was_idle() {
    let mut drive = with_slc(SLC, FlashState::Fresh);
    // Blocks per nanosecond.
    let rate = |drive: &mut Flash, from_ns: u64, blocks: u64| {
        let commands = in_order(1 << 20, (1 << 20) + blocks, 256, Command::write);
        let end_ns = carry_out_from(drive, from_ns, commands);
        (blocks as f64 / (end_ns - from_ns) as f64, end_ns)
    };
    let (fast, end_ns) = rate(&mut drive, 0, 150_016);
    let (_, end_ns) = rate(&mut drive, end_ns, 100_096);
    let (slow, _) = rate(&mut drive, end_ns, 150_016);
    // The dies take 220 us for a page, then 2020 us.
    near(fast / slow, 2020.0 / 220.0, 0.05, "fast against slow");
    assert_eq!(drive.counts().to_slc, 200_000 * 512);
    let rested_ns = rest(&mut drive);
    assert_eq!((drive.slc_pages, drive.counts().moved), (0, 0));
    // The dies have moved 195 pages each, one after the other.
    let folding_ns = rested_ns - drive.active_ns - IDLE_NS;
    let page_ns = 50_000 + 2 * 32 * 640 + 2_000_000;
    near(
        folding_ns as f64,
        6250.0 / 32.0 * page_ns as f64,
        0.02,
        "emptying the cache",
    );
    near(
        rate(&mut drive, rested_ns, 150_016).0,
        fast,
        0.02,
        "after idling",
    );
}

#[test]
fn an_empty_drive_has_more_slc_cache_than_a_full_one() {
    let slc = SlcCache {
        extra_blocks: 800_000,
        ..SLC
    };
    for (state, blocks) in [
        (FlashState::Fresh, 1_000_000),
        (FlashState::Filled, 200_000),
    ] {
        let mut drive = with_slc(slc, state);
        carry_out(
            &mut drive,
            in_order(0, 1_200_000 / 1024 * 1024, 1024, Command::write),
        );
        assert_eq!(drive.counts().to_slc, blocks / 32 * 32 * 512, "{state:?}");
    }
}

#[test]
fn scattered_pages_are_read_unit_by_unit_until_they_are_written_as_a_whole() {
    let time = |drive: &mut Flash| {
        let before_ns = drive.active_ns;
        carry_out(drive, [Command::read(0, 64, 32)]) - before_ns
    };
    // A page from one die; then units from four, whose transfers are side by side.
    let mut drive = Flash::new(&small(FlashState::Used, 0.28)).unwrap();
    let scattered = time(&mut drive);
    carry_out(&mut drive, in_order(64, 96, 8, Command::write));
    rest(&mut drive);
    let whole = time(&mut drive);
    assert_eq!(
        whole,
        time(&mut Flash::new(&small(FlashState::Fresh, 0.28)).unwrap())
    );
    assert_ne!(scattered, whole);
    // Four dies instead of one are busy: where the dies are the limit, fewer requests are served.
    let iops = |drive: &mut Flash| {
        let load = Load {
            depth: 64,
            blocks: 32,
            span_blocks: u64::MAX,
            writes: 0.0,
            requests: 5000,
            seed: 1,
        };
        run(drive, &load).iops
    };
    let of = |state| {
        iops(
            &mut Flash::new(&FlashParams {
                bus_block_q16: 20 << 16,
                ..small(state, 0.28)
            })
            .unwrap(),
        )
    };
    assert_eq!(of(FlashState::Fresh), of(FlashState::Filled));
    assert!(of(FlashState::Used) < 0.6 * of(FlashState::Fresh));
}

#[test]
fn a_page_that_must_not_wait_is_programmed_with_empty_units() {
    let mut drive = Flash::new(&small(FlashState::Fresh, 0.28)).unwrap();
    for lbn in [0, 80, 800] {
        let command = Command {
            force_unit_access: true,
            ..Command::write(0, lbn, 8)
        };
        carry_out(&mut drive, [command]);
    }
    assert_eq!(drive.counts().padded, 3 * 3 * 4096);
    carry_out(
        &mut drive,
        [Command::write(0, 0, 24), Command::write(0, 400, 16)],
    );
    assert_eq!(drive.counts().padded, 9 * 4096);
    carry_out(&mut drive, [Command::flush(0)]);
    assert_eq!(drive.counts().padded, 9 * 4096 + 3 * 4096);
}

#[test]
fn a_write_cache_that_is_less_than_a_page_does_not_hang() {
    for write_cache_blocks in [0, 8, 24, 32] {
        let mut drive = Flash::new(&FlashParams {
            write_cache_blocks,
            ..small(FlashState::Fresh, 0.28)
        })
        .unwrap();
        assert!(random_writes(&mut drive, 1000) > 0.0);
    }
}

#[test]
fn very_small_drives_work() {
    for (capacity_blocks, spare) in [(1, 0.005), (100, 0.01), (2048, 0.07), (20_000, 1.0)] {
        for state in [FlashState::Fresh, FlashState::Filled, FlashState::Used] {
            for collection in [
                Collection::Greedy,
                Collection::Oldest,
                Collection::Choices(2),
            ] {
                let mut drive = Flash::new(&FlashParams {
                    capacity_blocks,
                    spare,
                    collection,
                    ..small(state, 0.28)
                })
                .unwrap();
                assert!(random_writes(&mut drive, 5000) > 0.0);
            }
        }
    }
}
