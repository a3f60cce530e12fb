//! The simulator against what can be computed.

mod common;

use common::{machine, read, run};
use spindle_drive::{Device, Drive, ServerParams, ServiceTime, Settings, drive};
use spindle_sim::{Machine, Scheduler};

/// A server of one command at a time; whoever waits does so in the host's queue.
fn server(service: ServiceTime, scheduler: Scheduler) -> Machine {
    let mut machine = Machine::server(ServerParams {
        capacity_blocks: 1 << 30,
        queue_depth: 1,
        service,
        bytes_per_s: None,
        flush_ns: None,
        servers: 1,
        rotational: true,
        seed: 3,
    });
    machine.queue.scheduler = Some(scheduler);
    machine.queue.nr_requests = Some(100_000);
    machine
}

const POISSON: &str = "
seconds = 3000
ramp = '100s'
[[stream]]
name = 'arrivals'
pattern = 'uniform'
size = '4KiB'
workers = 1
depth = 4096
rate = '700 IOPS'
spacing = 'poisson'
";

#[test]
fn waits_are_those_of_pollaczek_and_khinchine() {
    // Service of 1 ms on average, 0.7 of the time: W = rho / (1 - rho) x (1 + c^2) / 2 x S.
    for (service, spread) in [
        (ServiceTime::Constant(1_000_000), 0.0),
        (ServiceTime::Uniform(0, 2_000_000), 1.0 / 3.0),
        (ServiceTime::Exponential(1_000_000), 1.0),
    ] {
        let figures = run(&server(service, Scheduler::Fcfs), POISSON);
        let wait = read(&figures).latency.mean_ns - 1e6;
        let expected = 0.7 / 0.3 * (1.0 + spread) / 2.0 * 1e6;
        let off = wait / expected - 1.0;
        assert!(off.abs() < 0.02, "{service:?}: off by {off}");
    }
}

#[test]
fn requests_of_several_workers_that_wait_for_a_tag_get_it_in_order() {
    // M/D/1, first come first served: Var(W) = E(W)^2 + lambda E(S^3) / (3 (1 - rho)).
    let text = "[queue]\nscheduler = 'none'\n[[drive]]\nservice = '2ms'\ncapacity = '1GiB'\nqueue_depth = 1\n";
    let load = "seconds = 300\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\nworkers = 8\ndepth = 8\nrate = '350 IOPS'\nspacing = 'poisson'";
    let figures = run(&machine(text), load);
    let expected: f64 = 1e6 * ((0.7_f64 / 0.3).powi(2) + 0.35 * 8.0 / (3.0 * 0.3)).sqrt();
    let off = read(&figures).latency.sdev_ns / expected - 1.0;
    assert!(off.abs() < 0.05, "off by {off}");
}

/// Share of the waits of M/D/1 that are at most as long as `t` services, at load `rho` (Crommelin 1932).
fn share_of_waits(rho: f64, t: f64) -> f64 {
    let (mut sum, mut factorial) = (0.0, 1.0);
    for k in 0..=t as u32 {
        factorial *= f64::from(k.max(1));
        let left = rho * (t - f64::from(k));
        sum += (-left).powi(k as i32) / factorial * left.exp();
    }
    (1.0 - rho) * sum
}

#[test]
fn the_longest_waits_are_those_of_first_come_first_served_for_any_number_of_workers() {
    for (workers, depth) in [(1, 64), (8, 8), (700, 1)] {
        let text = "[queue]\nscheduler = 'none'\n[[drive]]\nservice = '1ms'\ncapacity = '1GiB'\nqueue_depth = 1\n";
        let load = format!(
            "seconds = 600\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\nworkers = {workers}\ndepth = {depth}\nrate = '700 IOPS'\nspacing = 'poisson'"
        );
        let figures = run(&machine(text), &load);
        let percentiles = &read(&figures).latency.percentiles;
        let p99 = percentiles.iter().find(|(of, _)| *of == 99.0).unwrap();
        let share = share_of_waits(0.7, p99.1 as f64 / 1e6 - 1.0);
        assert!((share - 0.99).abs() < 0.0015, "{workers} workers: {share}");
    }
}

#[test]
fn the_mean_wait_is_the_same_whatever_the_order_of_service() {
    // Kleinrock's conservation law: no order of a work-conserving single server that does not look at service times
    // changes the mean wait; expiry and sweeps only change who waits.
    let reference = run(
        &server(ServiceTime::Constant(1_000_000), Scheduler::Fcfs),
        POISSON,
    );
    for name in ["sstf", "c-look", "deadline", "mq-deadline", "noop"] {
        let mut machine = server(ServiceTime::Constant(1_000_000), Scheduler::Fcfs);
        machine.queue.scheduler = Scheduler::named(name, machine.host.kernel);
        let figures = run(&machine, POISSON);
        let off = read(&figures).latency.mean_ns / read(&reference).latency.mean_ns - 1.0;
        assert!(off.abs() < 0.02, "{name}: off by {off}");
    }
}

/// Mean of seek, half a turn and transfer over random pairs of requests, from the drive's own tables.
fn closed_form_ns(name: &str, blocks: u64) -> f64 {
    let Ok(Drive::Mechanical(disk)) = drive(name, Settings::default()) else {
        panic!("{name} is a disk");
    };
    let places = disk.capacity_blocks() / blocks;
    let (mut state, mut seeks, mut transfers) = (1_u64, 0.0, 0.0);
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(state) * u128::from(places)) >> 64) as u64 * blocks
    };
    let count = 400_000;
    let mut from = disk.geometry().locate(0);
    for _ in 0..count {
        let to = disk.geometry().locate(draw());
        seeks += disk.seek_ns(from.cylinder.abs_diff(to.cylinder)) as f64;
        transfers += blocks as f64 / f64::from(disk.geometry().blocks_per_track(to.zone))
            * disk.turn_ns() as f64;
        from = to;
    }
    (seeks + transfers) / f64::from(count) + disk.turn_ns() as f64 / 2.0
}

#[test]
fn depth_one_is_overhead_seek_half_a_turn_and_transfer() {
    for name in ["HDS725050KLA360", "ST3600057SS", "WD10EACS"] {
        let machine = machine(&format!(
            "[queue]\nscheduler = 'none'\n[[drive]]\nmodel = '{name}'"
        ));
        let figures = run(
            &machine,
            "requests = 400000\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\nworkers = 1\ndepth = 1",
        );
        let of = &figures.drives[0];
        let overhead = of.overhead_ns as f64 / of.reads as f64;
        let expected = closed_form_ns(name, 8) + overhead;
        let off = read(&figures).latency.mean_ns / expected - 1.0;
        assert!(off.abs() < 0.01, "{name}: off by {off}");
    }
}

fn iops(queueing: &str, depth: u32) -> f64 {
    let machine = machine(&format!(
        "[queue]\nscheduler = 'none'\n[[drive]]\nmodel = 'HDS725050KLA360'\nqueueing = '{queueing}'"
    ));
    let load = format!(
        "requests = 60000\n[[stream]]\nname = 's'\npattern = 'uniform'\nsize = '4KiB'\nregion = '0-32GiB'\nworkers = 1\ndepth = {depth}"
    );
    read(&run(&machine, &load)).iops
}

#[test]
fn reordering_gains_with_depth_as_in_the_literature() {
    // Seltzer, Chen, Ousterhout, "Disk Scheduling Revisited" (1990); Worthington, Ganger, Patt, "Scheduling Algorithms
    // for Modern Disk Drives" (1994): with rotation known, a queue of some 30 doubles the throughput of FIFO, seek
    // distance alone gains about half of that, and each further command gains less.
    let single = iops("fifo", 1);
    let (fifo, seek, positioning) = (
        iops("fifo", 32),
        iops("shortest_seek", 32),
        iops("shortest_positioning", 32),
    );
    assert!(
        (fifo / single - 1.0).abs() < 0.1,
        "FIFO gains nothing: {single} {fifo}"
    );
    assert!(
        seek > 1.1 * fifo && positioning > 1.15 * seek,
        "{fifo} {seek} {positioning}"
    );
    assert!(
        (1.6..2.6).contains(&(positioning / fifo)),
        "{fifo} {positioning}"
    );
    let steps: Vec<f64> = [1, 2, 4, 8, 16, 32]
        .into_iter()
        .map(|depth| iops("shortest_positioning", depth))
        .collect();
    assert!(steps.windows(2).all(|pair| pair[1] > pair[0]), "{steps:?}");
}

#[test]
fn a_measured_drive_gives_what_was_measured() {
    // HDS725050KLA360, 4 KiB random reads in the first 32 GiB: 122 IOPS at depth 1, 235 at 32 with NCQ.
    let (one, deep) = (
        iops("shortest_positioning", 1),
        iops("shortest_positioning", 32),
    );
    assert!((one / 122.0 - 1.0).abs() < 0.05, "{one}");
    assert!((deep / 235.0 - 1.0).abs() < 0.10, "{deep}");
}
