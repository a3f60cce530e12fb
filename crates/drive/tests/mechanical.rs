//! The behaviour of a disk, compared with closed forms, with itself, and with measurements of real drives.

use spindle_drive::closed_loop::{Load, run};
use spindle_drive::datasheet::Kind;
use spindle_drive::{
    Command, Completion, Device, DriveParams, Mechanical, Op, Scheduling, ServedFrom, Settings,
    WriteBack, drive, drive_names, sheet,
};

const NAME: &str = "HDS725050KLA360";

fn params(name: &str, settings: Settings) -> DriveParams {
    let sheet = sheet(name).unwrap();
    let Kind::Disk(disk) = &sheet.kind else {
        panic!("{name} is not a disk")
    };
    disk.params(name, settings)
}

fn build(change: impl FnOnce(&mut DriveParams)) -> Mechanical {
    let mut params = params(NAME, Settings::default());
    change(&mut params);
    Mechanical::new(&params).unwrap()
}

/// Gives a drive the read cache that its sheet denies it.
fn finds_what_it_read(params: &mut DriveParams) {
    params.buffer.hits_within = u64::MAX;
    params.buffer.drop_requested = false;
}

/// A small generator, so that the tests draw the same everywhere.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }
}

/// Runs `count` commands with `depth` outstanding; every completion, in order.
fn drive_all(
    drive: &mut Mechanical,
    depth: u32,
    count: u64,
    mut next: impl FnMut(u64) -> Command,
) -> Vec<Completion> {
    let mut all = Vec::new();
    let mut submitted = 0;
    let mut now_ns = 0;
    while (all.len() as u64) < count {
        while submitted < count && drive.outstanding() < depth {
            drive.submit(now_ns, next(submitted)).unwrap();
            submitted += 1;
        }
        now_ns = drive.next_event_ns().expect("commands are outstanding");
        drive.advance(now_ns, &mut |completion| all.push(completion));
    }
    all
}

fn load(depth: u32) -> Load {
    Load {
        depth,
        blocks: 8,
        span_blocks: u64::MAX,
        writes: 0.0,
        requests: 40_000,
        seed: 3,
    }
}

#[test]
fn random_reads_one_at_a_time_take_overhead_seek_half_a_turn_and_transfer() {
    let mut disk = build(|_| {});
    let geometry = disk.geometry().clone();
    let mut draw = Draw(1);
    let mut random = || geometry.locate(draw.next() % (geometry.blocks() / 8) * 8);
    let pairs = 200_000;
    let (mut seek_ns, mut block_ns) = (0.0, 0.0);
    let mut from = random();
    for _ in 0..pairs {
        let to = random();
        let mut ns = disk.seek_ns(from.cylinder.abs_diff(to.cylinder));
        if from.surface != to.surface {
            ns = ns.max(1_500_000);
        }
        seek_ns += ns as f64 / f64::from(pairs);
        block_ns += disk.turn_ns() as f64
            / f64::from(geometry.blocks_per_track(to.zone))
            / f64::from(pairs);
        from = to;
    }
    let overhead_ns = 880_000.0;
    let bus_block_ns = 512e9 / 300e6;
    let expected_ns =
        overhead_ns + seek_ns + disk.turn_ns() as f64 / 2.0 + 8.0 * block_ns + bus_block_ns;
    let outcome = run(&mut disk, &load(1));
    let off = outcome.mean_ms * 1e6 / expected_ns - 1.0;
    assert!(
        off.abs() < 0.01,
        "{} ms instead of {} ms",
        outcome.mean_ms,
        expected_ns / 1e6
    );
}

#[test]
fn what_the_buffer_has_takes_the_overhead_of_a_hit() {
    let Kind::Disk(disk) = sheet(NAME).unwrap().kind else {
        panic!("{NAME} is not a disk")
    };
    assert!(disk.read_hit_ns < disk.command_ns && disk.write_hit_ns < disk.command_ns);
    let bus_ns = 8 * 512_000_000_000 / 300_000_000;
    for (op, overhead_ns) in [(Op::Read, disk.read_hit_ns), (Op::Write, disk.write_hit_ns)] {
        let mut drive = build(|_| {});
        // A stream that is slower than the medium: read-ahead and the write cache are ahead of it.
        let done = drive_all(&mut drive, 1, 2000, |number| Command {
            id: number,
            lbn: 8 * number,
            blocks: 8,
            op,
            force_unit_access: false,
        });
        let mut taken_ns: Vec<u64> = done.iter().map(|of| of.phases.total_ns()).collect();
        taken_ns.sort_unstable();
        let median_ns = taken_ns[taken_ns.len() / 2];
        assert!(
            median_ns.abs_diff(overhead_ns + bus_ns) < 1000,
            "{op:?}: {median_ns} ns"
        );
    }
}

#[test]
fn the_published_drive_does_what_was_measured_on_it() {
    // Kernel list, June 2006: 4 KiB O_DIRECT random reads in the first 32 GiB.
    for (depth, measured, within) in [(1, 122.0, 0.05), (32, 235.0, 0.10)] {
        let mut disk = drive(NAME, Settings::default()).unwrap();
        let iops = run(
            &mut disk,
            &Load {
                span_blocks: 32 << 21,
                ..load(depth)
            },
        )
        .iops;
        assert!(
            (iops / measured - 1.0).abs() < within,
            "{iops} IOPS at depth {depth} instead of {measured}"
        );
    }
}

/// Disks of the catalogue.
fn disks() -> Vec<&'static str> {
    let mut names = drive_names();
    names.retain(|name| matches!(sheet(name).unwrap().kind, Kind::Disk(_)));
    names
}

#[test]
fn every_disk_gains_with_every_doubling_of_its_queue() {
    for name in disks() {
        for span_blocks in [32 << 21, u64::MAX] {
            let iops = |depth| {
                let load = Load {
                    span_blocks,
                    requests: 10_000,
                    ..load(depth)
                };
                run(&mut drive(name, Settings::default()).unwrap(), &load).iops
            };
            let curve: Vec<f64> = [1, 2, 4, 8, 16, 32].map(iops).to_vec();
            assert!(
                curve.windows(2).all(|pair| pair[1] > 1.03 * pair[0]),
                "{name}: {curve:?}"
            );
            // Without short strokes a second command is worth the same on all.
            assert!(
                span_blocks < u64::MAX || (1.12..1.22).contains(&(curve[1] / curve[0])),
                "{name}: {curve:?}"
            );
        }
    }
}

#[test]
fn a_command_that_comes_when_another_ends_takes_part_in_the_choice() {
    let mut disk = build(|_| {});
    let far = disk.capacity_blocks() - 8;
    let mut order = Vec::new();
    disk.submit(0, Command::read(0, 8_000_000, 8)).unwrap();
    disk.submit(0, Command::read(1, far, 8)).unwrap();
    while let Some(event) = disk.next_event_ns() {
        let before = order.len();
        disk.advance(event, &mut |completion| order.push(completion.id));
        if before == 0 && order.len() == 1 {
            // Half a turn ahead on the same track: far sooner reached than the other end of the drive.
            disk.submit(event, Command::read(2, 8_000_450, 8)).unwrap();
        }
    }
    assert_eq!(order, [0, 2, 1]);
}

#[test]
fn commands_that_continue_each_other_are_served_in_their_order() {
    // Eight pieces of 512 KiB arrive at once, in any order, while the heads are elsewhere.
    let finished = |keeps_runs: bool, first: u64| {
        let mut drive = build(|params| params.queue.keeps_runs = keeps_runs);
        let all = drive_all(&mut drive, 9, 9, |number| match number {
            0 => Command::read(0, 600_000_000, 8),
            piece => Command::read(piece, first + (piece * 5 % 8) * 1024, 1024),
        });
        let order: Vec<u64> = all[1..].iter().map(|done| done.id * 5 % 8).collect();
        (order, all[8].finish_ns)
    };
    let mut sorted = 0;
    for first in (0..50).map(|number| 1_000_000 + number * 7_777_777) {
        let (order, kept_ns) = finished(true, first);
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7], "at {first}");
        let (other, nearest_ns) = finished(false, first);
        sorted += u32::from(other == order);
        assert!(kept_ns < nearest_ns + 10_000_000, "at {first}");
    }
    assert!(sorted < 50, "nearness alone keeps every order");
}

#[test]
fn cached_writes_far_from_the_reads_do_not_starve_while_a_host_waits_to_write() {
    // Reads keep the heads at the start of the drive; all writes are at its end.
    let longest_ms = |ahead_of_cached| {
        let mut disk = build(|params| {
            params.queue.ahead_of_cached = ahead_of_cached;
            params.queue.age_bound_ns = 0;
        });
        let end = disk.capacity_blocks() - 8;
        let mut draw = Draw(7);
        let all = drive_all(&mut disk, 16, 4_000, |id| {
            let place = draw.next();
            if id % 4 == 0 {
                Command::write(id, end - place % 1_000_000, 8)
            } else {
                Command::read(id, place % 20_000_000, 8)
            }
        });
        let writes = all.iter().filter(|completion| completion.op == Op::Write);
        writes
            .map(|write| write.finish_ns - write.submit_ns)
            .max()
            .unwrap()
            / 1_000_000
    };
    let (alternating, nearest) = (longest_ms(1), longest_ms(u32::MAX));
    // At most 16 writers wait, each for a cached write and a read, with a long seek each.
    assert!(alternating < 16 * 2 * 30, "{alternating} ms");
    assert!(
        nearest > 2 * alternating,
        "{nearest} ms against {alternating} ms"
    );
}

#[test]
fn a_flush_waits_for_no_write_that_came_after_it() {
    let mut disk = build(|_| {});
    for id in 0..8 {
        disk.submit(0, Command::write(id, 900_000_000 + id * 1_000_003, 8))
            .unwrap();
    }
    disk.submit(0, Command::flush(100)).unwrap();
    // A host that goes on writing near the heads.
    let mut flushed_after = 0;
    let mut id = 1_000;
    while flushed_after == 0 {
        let event = disk.next_event_ns().unwrap();
        let mut done = 0;
        disk.advance(event, &mut |completion| {
            if completion.id == 100 {
                flushed_after = completion.finish_ns;
            }
            done += 1;
        });
        for _ in 0..done {
            if disk.outstanding() < 24 {
                id += 1;
                disk.submit(event, Command::write(id, id * 4_099 % 1_000_000, 8))
                    .unwrap();
            }
        }
    }
    assert!(flushed_after < 8 * 2 * 30_000_000, "{flushed_after} ns");
}

#[test]
fn a_drive_of_today_does_what_its_data_sheet_says() {
    // Seagate Exos X18 data sheet: 170 random 4 KiB reads/s at depth 16.
    let mut disk = drive("ST18000NM000J", Settings::default()).unwrap();
    let iops = run(&mut disk, &load(16)).iops;
    assert!((iops / 170.0 - 1.0).abs() < 0.10, "{iops} IOPS");
}

#[test]
fn the_better_the_scheduling_the_more_gets_done() {
    let iops = |scheduling| {
        run(
            // Seeks known exactly: with a margin, some of what sorting by time gains is lost.
            &mut build(|params| {
                params.queue.scheduling = scheduling;
                params.queue.settle_margin_ns = 0;
            }),
            &load(16),
        )
        .iops
    };
    let fifo = iops(Scheduling::Fifo);
    let seek = iops(Scheduling::ShortestSeek);
    let positioning = iops(Scheduling::ShortestPositioning);
    assert!(
        seek > 1.15 * fifo && positioning > 1.1 * seek,
        "{fifo} {seek} {positioning}"
    );
    let one = run(&mut build(|_| {}), &load(1)).iops;
    assert!(
        (fifo / one - 1.0).abs() < 0.03,
        "a queue served in order gains nothing: {fifo} against {one}"
    );
}

#[test]
fn no_command_waits_much_longer_than_the_age_bound() {
    let bound_ns = 300_000_000;
    let mut disk = build(|params| params.queue.age_bound_ns = bound_ns);
    let longest = run(&mut disk, &load(16)).max_ms;
    // When it comes due, at most the others that came before it are ahead.
    let limit = bound_ns as f64 / 1e6 + 16.0 * 28.0;
    assert!(longest < limit, "{longest} ms, limit {limit} ms");
    let unbound = run(
        &mut build(|params| params.queue.age_bound_ns = 0),
        &load(16),
    )
    .max_ms;
    assert!(
        unbound > longest,
        "the bound has no effect: {unbound} against {longest}"
    );
}

#[test]
fn every_command_completes_once_and_its_phases_add_up() {
    let mut draw = Draw(9);
    let mut disk = build(|params| {
        params.buffer.write_back = WriteBack::Cache {
            commands: 8,
            blocks: 512,
        }
    });
    let capacity = disk.capacity_blocks();
    let mut busy_until = 0;
    let all = drive_all(&mut disk, 32, 20_000, |id| {
        let lbn = if draw.next().is_multiple_of(3) {
            draw.next() % 4096
        } else {
            draw.next() % (capacity - 2048)
        };
        let blocks = 1 + (draw.next() % 700) as u32;
        match draw.next() % 10 {
            0 => Command::flush(id),
            1 => Command {
                force_unit_access: true,
                ..Command::write(id, lbn, blocks)
            },
            2..=4 => Command::write(id, lbn, blocks),
            _ => Command::read(id, lbn, blocks),
        }
    });
    let mut seen = vec![false; 20_000];
    for completion in &all {
        assert!(
            !std::mem::replace(&mut seen[completion.id as usize], true),
            "{completion:?} twice"
        );
        assert_eq!(
            completion.phases.total_ns(),
            completion.finish_ns - completion.submit_ns,
            "{completion:?}"
        );
        assert!(
            completion.finish_ns >= busy_until,
            "completions are reported in order"
        );
        busy_until = completion.finish_ns;
    }
    assert!(seen.iter().all(|seen| *seen));
}

#[test]
fn nothing_is_faster_than_the_bus() {
    let mut disk = build(finds_what_it_read);
    // Every other read asks for what the one before it got.
    let all = drive_all(&mut disk, 1, 5_000, |id| {
        Command::read(id, id / 2 * 999_983 % 900_000_000, 64)
    });
    let bus_ns = (64.0 * 512e9 / 300e6) as u64;
    let hits = all
        .iter()
        .filter(|completion| completion.served_from == ServedFrom::Buffer)
        .count();
    assert!(hits >= 2_500, "{hits} hits");
    assert!(
        all.iter()
            .all(|completion| completion.finish_ns - completion.submit_ns >= bus_ns)
    );
    let first = all
        .iter()
        .map(|completion| completion.submit_ns)
        .min()
        .unwrap();
    let last = all
        .iter()
        .map(|completion| completion.finish_ns)
        .max()
        .unwrap();
    assert!(last - first >= bus_ns * 5_000);
}

#[test]
fn a_sequential_stream_runs_at_the_rate_of_the_medium() {
    for depth in [1, 2, 8] {
        let mut disk = build(|_| {});
        let all = drive_all(&mut disk, depth, 2_000, |id| {
            Command::read(id, id * 256, 256)
        });
        let seconds = (all[1999].finish_ns - all[199].finish_ns) as f64 / 1e9;
        let rate = 1800.0 * 256.0 * 512.0 / seconds / 1e6;
        assert!(
            (rate / 64.8 - 1.0).abs() < 0.03,
            "{rate} MB/s at depth {depth}"
        );
    }
}

#[test]
fn every_disk_has_small_reads_of_a_stream_in_its_buffer() {
    // Drives of 2005 come to 25 to 40 MB/s. Sheets with the overhead of a random read for these came to 8.
    for name in disks() {
        let mut disk = Mechanical::new(&params(name, Settings::default())).unwrap();
        let all = drive_all(&mut disk, 1, 20_000, |id| Command::read(id, id * 8, 8));
        let seconds = (all[all.len() - 1].finish_ns - all[0].finish_ns) as f64 / 1e9;
        let rate = (all.len() - 1) as f64 * 4096.0 / 1e6 / seconds;
        assert!(rate > 20.0, "{name}: {rate:.1} MB/s");
    }
}

#[test]
fn every_disk_writes_a_stream_into_its_cache_as_fast_as_it_reads_one() {
    for name in disks() {
        for (depth, blocks) in [(1, 2_048), (8, 128)] {
            let rate = |op: fn(u64, u64, u32) -> Command| {
                let mut params = params(name, Settings::default());
                // The largest caches would take minutes to fill.
                if let WriteBack::Cache { blocks, .. } = &mut params.buffer.write_back {
                    *blocks = (*blocks).min(32_768);
                }
                let mut disk = Mechanical::new(&params).unwrap();
                let count = 800 * 2_048 / u64::from(blocks);
                let all = drive_all(&mut disk, depth, count, |id| {
                    op(id, id * u64::from(blocks), blocks)
                });
                // The writes that the cache swallows at first do not show the medium's rate.
                let from = all.len() / 4;
                let moved = (all.len() - 1 - from) as f64 * f64::from(blocks) * 512.0;
                moved * 1e9 / (all[all.len() - 1].finish_ns - all[from].finish_ns) as f64
            };
            let share = rate(Command::write) / rate(Command::read);
            assert!(
                (0.97..1.06).contains(&share),
                "{name}: {share:.3} of the read rate at depth {depth}"
            );
        }
    }
}

#[test]
fn without_a_write_cache_every_disk_streams_what_is_in_its_queue_and_loses_a_turn_otherwise() {
    for name in disks() {
        let rate = |depth: u32, op: fn(u64, u64, u32) -> Command| {
            let settings = Settings {
                write_cache: Some(false),
                ..Settings::default()
            };
            let mut disk = Mechanical::new(&params(name, settings)).unwrap();
            let all = drive_all(&mut disk, depth, 400, |id| op(id, id * 1_024, 1_024));
            let moved = 300.0 * 1_024.0 * 512.0;
            moved * 1e9 / (all[399].finish_ns - all[99].finish_ns) as f64
        };
        let read = rate(1, Command::read);
        for depth in [2, 8, 32] {
            let share = rate(depth, Command::write) / read;
            assert!(
                (0.97..1.03).contains(&share),
                "{name}: {share:.3} of the read rate at depth {depth}"
            );
        }
        // One at a time, the next command comes when its place has passed under the head: half a megabyte takes a turn more,
        // somewhat less if a change of track comes just then.
        let bytes = 1_024.0 * 512.0;
        let alone_ns = bytes * 1e9 / rate(1, Command::write);
        let turn_ns = {
            let disk = Mechanical::new(&params(name, Settings::default())).unwrap();
            disk.turn_ns() as f64
        };
        let lost = (alone_ns - bytes * 1e9 / read) / turn_ns;
        assert!((0.8..1.1).contains(&lost), "{name}: {lost:.2} turns lost");
    }
}

#[test]
fn a_write_in_line_does_not_pass_what_has_waited_too_long() {
    let mut disk = build(|params| {
        params.buffer.write_back = WriteBack::Through;
        params.queue.age_bound_ns = 50_000_000;
    });
    // A stream of writes, and one read far away.
    let far = disk.capacity_blocks() - 10_000;
    let all = drive_all(&mut disk, 4, 400, |id| match id {
        3 => Command::read(id, far, 8),
        _ => Command::write(id, id * 128, 128),
    });
    let of_read = all
        .iter()
        .find(|completion| completion.op == Op::Read)
        .unwrap();
    let waited_ns = of_read.finish_ns - of_read.submit_ns;
    assert!(
        (50_000_000..90_000_000).contains(&waited_ns),
        "{waited_ns} ns"
    );
}

#[test]
fn without_a_read_cache_only_what_continues_a_read_is_found() {
    // A chunk of 64 KiB, the next, that one again, and one after a gap of a chunk.
    let chunks = [0, 1, 1, 3].map(|chunk| 1_000_000 + 128 * chunk);
    let served = |change: fn(&mut DriveParams)| {
        let mut disk = build(change);
        drive_all(&mut disk, 1, 4, |id| {
            Command::read(id, chunks[id as usize], 128)
        })
        .iter()
        .map(|completion| completion.served_from)
        .collect::<Vec<_>>()
    };
    let [_, next, again, beyond] = served(|_| {})[..] else {
        panic!("four reads");
    };
    assert_ne!(next, ServedFrom::Medium);
    assert_eq!((again, beyond), (ServedFrom::Medium, ServedFrom::Medium));
    let [_, next, again, _] = served(finds_what_it_read)[..] else {
        panic!("four reads");
    };
    assert_ne!(next, ServedFrom::Medium);
    assert_eq!(again, ServedFrom::Buffer);
}

#[test]
fn gaps_in_a_stream_cost_turns_where_the_buffer_finds_only_what_continues_a_read() {
    // Chunks of 64 KiB as a member of a RAID5 is read: one of six is parity, and left out.
    let chunk_ns = |name| {
        let mut disk = Mechanical::new(&params(name, Settings::default())).unwrap();
        let all = drive_all(&mut disk, 1, 3_000, |id| {
            Command::read(id, 128 * (id / 5 * 6 + id % 5), 128)
        });
        all.last().unwrap().finish_ns / 3_000
    };
    let turn_ns = 8_333_333;
    assert!(chunk_ns("HDS725050KLA360") > turn_ns / 5 + 1_000_000);
    assert!(chunk_ns("WD3200AAKS") < 1_100_000);
}

#[test]
fn a_page_left_out_of_a_stream_costs_no_turn_without_a_read_cache() {
    // As md reads a drive of near copies: the other one has given the first page of a chunk.
    let mut disk = Mechanical::new(&params("HDS725050KLA360", Settings::default())).unwrap();
    let chunks = 3_000;
    let all = drive_all(&mut disk, 1, chunks, |id| {
        Command::read(id, 128 * id + 8, 120)
    });
    let chunk_ns = all.last().unwrap().finish_ns / chunks;
    assert!(chunk_ns < 1_150_000, "{chunk_ns} ns");
}

#[test]
fn without_read_ahead_a_sequential_stream_loses_turns() {
    let mut disk = build(|params| {
        params.buffer.read_ahead = spindle_drive::ReadAhead::None;
        params.buffer.almost_hits = false;
        params.buffer.forward_gap = 0;
    });
    let all = drive_all(&mut disk, 1, 500, |id| Command::read(id, id * 64, 64));
    let mean = all[499].finish_ns as f64 / 500.0;
    assert!(mean > 0.9 * disk.turn_ns() as f64, "{mean} ns a request");
}

#[test]
fn a_whole_track_read_on_arrival_takes_one_turn_wherever_the_heads_land() {
    let mean_ms = |on_arrival| {
        let mut disk = build(|params| {
            params.buffer.read_on_arrival = on_arrival;
            // Blocks go to the host in order; how long the bus takes is not the point here.
            params.bus.read_block_q16 = 1;
            params.buffer.read_ahead = spindle_drive::ReadAhead::None;
            params.geometry.mapping = spindle_drive::Mapping::Conventional;
        });
        let track = u64::from(disk.geometry().blocks_per_track(0));
        let mut draw = Draw(4);
        let all = drive_all(&mut disk, 1, 2_000, |id| {
            Command::read(id, draw.next() % 1000 * track, track as u32)
        });
        let ns: u64 = all
            .iter()
            .map(|completion| completion.phases.rotation_ns + completion.phases.transfer_ns)
            .sum();
        ns as f64 / 2_000.0 / disk.turn_ns() as f64
    };
    let (arriving, waiting) = (mean_ms(true), mean_ms(false));
    assert!((arriving - 1.0).abs() < 0.02, "{arriving} turns");
    assert!((waiting - 1.5).abs() < 0.05, "{waiting} turns");
}

#[test]
fn a_flush_ends_when_all_before_it_is_on_the_medium() {
    let mut disk = build(|_| {});
    let mut written = Vec::new();
    for id in 0..8 {
        disk.submit(0, Command::write(id, id * 1_000_003, 8))
            .unwrap();
    }
    disk.submit(0, Command::flush(100)).unwrap();
    while let Some(event) = disk.next_event_ns() {
        disk.advance(event, &mut |completion| written.push(completion));
    }
    assert_eq!(written.len(), 9);
    let flush = written.last().unwrap();
    assert_eq!(flush.op, Op::Flush);
    assert!(
        written[..8].iter().all(
            |write| write.finish_ns < 10_000_000 && write.served_from == ServedFrom::WriteCache
        )
    );
    // Eight writes all over the drive need at least their short seeks.
    assert!(flush.finish_ns > 16_000_000, "{flush:?}");
}

#[test]
fn writes_beyond_the_cache_wait_for_the_medium() {
    let iops = |depth| {
        run(
            &mut build(|_| {}),
            &Load {
                writes: 1.0,
                ..load(depth)
            },
        )
        .iops
    };
    let through = run(
        &mut Mechanical::new(&params(
            NAME,
            Settings {
                write_cache: Some(false),
                ..Settings::default()
            },
        ))
        .unwrap(),
        &Load {
            writes: 1.0,
            ..load(1)
        },
    )
    .iops;
    assert!(
        iops(1) > 1.5 * through,
        "the cache sorts writes: {} against {through}",
        iops(1)
    );
    assert!(iops(1) < 400.0, "but it cannot beat the arm: {}", iops(1));
}

#[test]
fn the_same_commands_give_the_same_times() {
    let once = || {
        let mut disk = build(|_| {});
        let mut draw = Draw(5);
        drive_all(&mut disk, 16, 5_000, |id| {
            Command::read(id, draw.next() % 900_000_000, 8)
        })
    };
    assert_eq!(once(), once());
}

#[test]
fn commands_that_cannot_be_are_refused() {
    let mut disk = build(|params| params.queue.depth = 1);
    let capacity = disk.capacity_blocks();
    assert!(
        disk.submit(0, Command::read(1, capacity - 4, 8))
            .unwrap_err()
            .to_string()
            .contains("past the end")
    );
    assert!(disk.submit(0, Command::read(1, u64::MAX, 8)).is_err());
    assert!(disk.submit(0, Command::read(1, 0, 0)).is_err());
    disk.submit(0, Command::read(1, 0, 8)).unwrap();
    assert!(
        disk.submit(0, Command::read(2, 0, 8))
            .unwrap_err()
            .to_string()
            .contains("full")
    );
    assert_eq!(disk.outstanding(), 1);
}
