//! Adapters with a processor and a cache between the host and the drives.
//!
//! The kernel sees a unit as one drive: with commands of its own, and a cache that answers writes. Behind it are one
//! drive, or several as an array that the controller makes itself.

mod board;
mod device;
mod dirty;
mod sheet;

use spindle_drive::{Command, Completion, Device, Drive, SubmitError};

pub use self::device::DestageOrder;
pub(crate) use self::device::{Controller, ControllerUnit};
pub use self::sheet::ControllerSheet;

/// The receiver of the commands of one of the host's queues.
#[derive(Debug)]
pub(crate) enum Unit {
    /// A drive by itself.
    Drive(Drive),
    /// A unit of a controller.
    Controller(Box<Controller>),
}

impl Unit {
    /// True if the adapter of the unit takes another command, as far as those of its other units go.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Unit::Drive(_) => true,
            Unit::Controller(unit) => unit.has_room(),
        }
    }
}

macro_rules! each {
    ($unit:expr, $inner:ident => $call:expr) => {
        match $unit {
            Unit::Drive($inner) => $call,
            Unit::Controller($inner) => $call,
        }
    };
}

impl Device for Unit {
    #[inline]
    fn capacity_blocks(&self) -> u64 {
        each!(self, unit => unit.capacity_blocks())
    }

    #[inline]
    fn queue_depth(&self) -> u32 {
        each!(self, unit => unit.queue_depth())
    }

    #[inline]
    fn outstanding(&self) -> u32 {
        each!(self, unit => unit.outstanding())
    }

    #[inline]
    fn submit(&mut self, now_ns: u64, command: Command) -> Result<(), SubmitError> {
        each!(self, unit => unit.submit(now_ns, command))
    }

    #[inline]
    fn next_event_ns(&self) -> Option<u64> {
        each!(self, unit => unit.next_event_ns())
    }

    #[inline]
    fn advance(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        each!(self, unit => unit.advance(now_ns, done));
    }
}
