//! Loads that begin when their caller says so.

mod common;

use std::sync::Arc;
use std::time::Duration;

use spindle_engine::{Appointment, EngineChoice, NullTarget, Options, Phase, Run, kernel};
use spindle_measure::EndedBy;
use spindle_workload::Workload;

const PATIENCE: Duration = Duration::from_secs(20);

fn waiting() -> (Run, Arc<Appointment>) {
    let workload = Workload::parse("seconds = 0.1\n", "test", "test", &[]).expect("a workload");
    let appointment = Arc::new(Appointment::default());
    let options = Options {
        appointment: Some(Arc::clone(&appointment)),
        ..common::options(EngineChoice::Auto)
    };
    let target = NullTarget {
        size_bytes: 1 << 30,
        service_ns: 0,
    };
    let run = Run::start_null(&workload, target, options).expect("a load");
    assert!(appointment.is_ready(PATIENCE));
    (run, appointment)
}

#[test]
fn a_load_begins_at_its_time_and_not_before() {
    let (run, appointment) = waiting();
    assert_eq!(appointment.started_ns(Duration::from_millis(50)), None);
    assert_eq!(run.progress().phase, Phase::Ramp);
    let wanted = kernel::monotonic_ns() + 100_000_000;
    appointment.set(wanted);
    let started = appointment.started_ns(PATIENCE).expect("a start");
    assert!(started >= wanted);
    let figures = run.finish().expect("figures");
    assert!(kernel::monotonic_ns() >= wanted + 100_000_000);
    assert_eq!(figures.ended_by, EndedBy::Time);
}

#[test]
fn a_time_that_has_passed_means_at_once() {
    let (run, appointment) = waiting();
    appointment.set(1);
    let started = appointment.started_ns(PATIENCE).expect("a start");
    assert!(started <= kernel::monotonic_ns() + 100_000_000);
    assert!(run.finish().is_ok());
}

#[test]
fn a_load_that_waits_can_be_stopped() {
    let (run, appointment) = waiting();
    run.stop();
    assert_eq!(run.finish().expect("figures").ended_by, EndedBy::Stopped);
    assert!(appointment.started_ns(PATIENCE).is_some());

    let (run, appointment) = waiting();
    appointment.set(kernel::monotonic_ns() + 3_600_000_000_000);
    run.stop();
    assert_eq!(run.finish().expect("figures").ended_by, EndedBy::Stopped);
}
