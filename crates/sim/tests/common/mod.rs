//! Shared parts of the tests: runs from text, and laws that apply to each.
#![allow(dead_code)] // Each test binary uses a part.

use spindle_measure::little;
use spindle_measure::{OpFigures, StreamFigures};
use spindle_sim::{Machine, SimFigures, SimOptions, simulate};
use spindle_workload::Workload;

pub(crate) fn machine(text: &str) -> Machine {
    Machine::parse(text, "machine.toml").unwrap()
}

pub(crate) fn workload(text: &str) -> Workload {
    Workload::parse(text, "load.toml", "load", &[]).unwrap()
}

/// Runs a load on a machine and checks what holds in every run.
pub(crate) fn run(machine: &Machine, load: &str) -> SimFigures {
    let figures = simulate(machine, &workload(load), SimOptions::default()).unwrap();
    check(&figures);
    figures
}

/// Little's law for each stream, and books that balance.
pub(crate) fn check(figures: &SimFigures) {
    for stream in &figures.run.streams {
        let ops: Vec<&OpFigures> = ops(stream).collect();
        let rate: f64 = ops.iter().map(|op| op.iops).sum();
        if ops.iter().map(|op| op.requests).sum::<u64>() < 1000 {
            continue;
        }
        let time_ns: f64 = ops
            .iter()
            .map(|op| op.iops * op.service.as_ref().unwrap_or(&op.latency).mean_ns)
            .sum();
        let off = little(rate, time_ns / rate, stream.mean_outstanding).unwrap();
        assert!(
            off.abs() < 0.02,
            "{}: Little's law is off by {off}",
            stream.name
        );
    }
    for drive in &figures.drives {
        let served = drive.reads + drive.writes + drive.discards + drive.flushes;
        let from =
            drive.from_medium + drive.from_buffer + drive.partly_buffer + drive.to_write_cache;
        assert_eq!(served, from, "{}", drive.name);
    }
}

pub(crate) fn ops(stream: &StreamFigures) -> impl Iterator<Item = &OpFigures> {
    [
        &stream.read,
        &stream.write,
        &stream.trim,
        &stream.zero,
        &stream.fsync,
    ]
    .into_iter()
    .flatten()
}

pub(crate) fn read(figures: &SimFigures) -> &OpFigures {
    figures.run.streams[0].read.as_ref().unwrap()
}

pub(crate) fn write(figures: &SimFigures) -> &OpFigures {
    figures.run.streams[0].write.as_ref().unwrap()
}
