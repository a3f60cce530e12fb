//! The elevators by name, with their parameters.

use serde::Serialize;

use super::{
    Elevator, anticipatory, bfq, cfq, classic::Classic, deadline, kyber, mq_deadline, noop::Noop,
    parameter::Parameter,
};
use crate::kernel::Kernel;

/// An elevator and its parameters. Times are nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Scheduler {
    /// First come, first served; nothing is merged while it waits (blk-mq).
    None,
    /// First come, first served, with back merges.
    Noop,
    /// Two directions, one-way sweeps in batches, with expiry (up to 4.x).
    Deadline(deadline::Settings),
    /// The same for blk-mq, with priority classes.
    MqDeadline(mq_deadline::Settings),
    /// Batches of reads and writes, and waiting for the next read of the same thread.
    Anticipatory(anticipatory::Settings),
    /// A queue for each thread, time slices, idling.
    Cfq(cfq::Settings),
    /// A queue for each thread, budgets of blocks.
    Bfq(bfq::Settings),
    /// Tokens for reads and writes, adapted to latency targets.
    Kyber(kyber::Settings),
    /// First come, first served, without merges.
    Fcfs,
    /// The nearest request.
    Sstf,
    /// Up to the end, then down.
    Scan,
    /// Up to the last request, then down.
    Look,
    /// Up to the last request, then again from the lowest.
    CLook,
}

impl Scheduler {
    /// Names, as sysfs and textbooks have them.
    pub const NAMES: [&'static str; 13] = [
        "none",
        "noop",
        "deadline",
        "mq-deadline",
        "anticipatory",
        "cfq",
        "bfq",
        "kyber",
        "fcfs",
        "sstf",
        "scan",
        "look",
        "c-look",
    ];

    /// The elevator of that name with the defaults of a kernel.
    #[must_use]
    pub fn named(name: &str, kernel: Kernel) -> Option<Scheduler> {
        Some(match name {
            "none" => Scheduler::None,
            "noop" => Scheduler::Noop,
            "deadline" => Scheduler::Deadline(deadline::Settings::of(kernel)),
            "mq-deadline" => Scheduler::MqDeadline(mq_deadline::Settings::of(kernel)),
            "anticipatory" => Scheduler::Anticipatory(anticipatory::Settings::default()),
            "cfq" => Scheduler::Cfq(cfq::Settings::of(kernel)),
            "bfq" => Scheduler::Bfq(bfq::Settings::default()),
            "kyber" => Scheduler::Kyber(kyber::Settings::default()),
            "fcfs" => Scheduler::Fcfs,
            "sstf" => Scheduler::Sstf,
            "scan" => Scheduler::Scan,
            "look" => Scheduler::Look,
            "c-look" => Scheduler::CLook,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        Scheduler::NAMES[match self {
            Scheduler::None => 0,
            Scheduler::Noop => 1,
            Scheduler::Deadline(_) => 2,
            Scheduler::MqDeadline(_) => 3,
            Scheduler::Anticipatory(_) => 4,
            Scheduler::Cfq(_) => 5,
            Scheduler::Bfq(_) => 6,
            Scheduler::Kyber(_) => 7,
            Scheduler::Fcfs => 8,
            Scheduler::Sstf => 9,
            Scheduler::Scan => 10,
            Scheduler::Look => 11,
            Scheduler::CLook => 12,
        }]
    }

    /// Makes the elevator for a device with or without a moving head that takes `depth` requests at a time.
    #[must_use]
    pub fn build(&self, flash: bool, depth: u32) -> Box<dyn Elevator> {
        match self {
            Scheduler::None => Box::new(Noop::new(false)),
            Scheduler::Noop => Box::new(Noop::new(true)),
            Scheduler::Deadline(settings) => Box::new(deadline::Deadline::new(*settings)),
            Scheduler::MqDeadline(settings) => Box::new(mq_deadline::MqDeadline::new(*settings)),
            Scheduler::Anticipatory(settings) => {
                Box::new(anticipatory::Anticipatory::new(*settings))
            }
            Scheduler::Cfq(settings) => cfq::build(*settings, flash, depth),
            Scheduler::Bfq(settings) => Box::new(bfq::Bfq::new(*settings, flash)),
            Scheduler::Kyber(settings) => Box::new(kyber::Kyber::new(*settings)),
            Scheduler::Fcfs => Box::new(Classic::fcfs()),
            Scheduler::Sstf => Box::new(Classic::sstf()),
            Scheduler::Scan | Scheduler::Look => Box::new(Classic::look()),
            Scheduler::CLook => Box::new(Classic::c_look()),
        }
    }

    /// Its parameters under the names that sysfs has; none where it has none.
    pub fn parameters(&mut self) -> Vec<Parameter<'_>> {
        match self {
            Scheduler::Deadline(settings) => settings.parameters(),
            Scheduler::MqDeadline(settings) => settings.parameters(),
            Scheduler::Anticipatory(settings) => settings.parameters(),
            Scheduler::Cfq(settings) => settings.parameters(),
            Scheduler::Bfq(settings) => settings.parameters(),
            Scheduler::Kyber(settings) => settings.parameters(),
            _ => Vec::new(),
        }
    }
}
