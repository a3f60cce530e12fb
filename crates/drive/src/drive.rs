//! Any drive.

use crate::command::{Command, Completion};
use crate::device::Device;
use crate::error::SubmitError;
use crate::flash::Flash;
use crate::mechanical::Mechanical;
use crate::server::Server;

/// A drive of any kind, chosen at run time.
#[derive(Debug, Clone)]
pub enum Drive {
    /// A disk.
    Mechanical(Box<Mechanical>),
    /// A flash drive.
    Flash(Box<Flash>),
    /// A service time.
    Server(Box<Server>),
}

macro_rules! each {
    ($drive:expr, $inner:ident => $call:expr) => {
        match $drive {
            Drive::Mechanical($inner) => $call,
            Drive::Flash($inner) => $call,
            Drive::Server($inner) => $call,
        }
    };
}

impl Drive {
    /// A lower bound of the time from a command's submission to its completion, nanoseconds. A flush counts only where
    /// there is a write cache.
    #[must_use]
    pub fn least_latency_ns(&self) -> u64 {
        each!(self, drive => drive.least_latency_ns())
    }
}

impl Device for Drive {
    #[inline]
    fn capacity_blocks(&self) -> u64 {
        each!(self, drive => drive.capacity_blocks())
    }

    #[inline]
    fn queue_depth(&self) -> u32 {
        each!(self, drive => drive.queue_depth())
    }

    #[inline]
    fn outstanding(&self) -> u32 {
        each!(self, drive => drive.outstanding())
    }

    #[inline]
    fn submit(&mut self, now_ns: u64, command: Command) -> Result<(), SubmitError> {
        each!(self, drive => drive.submit(now_ns, command))
    }

    #[inline]
    fn next_event_ns(&self) -> Option<u64> {
        each!(self, drive => drive.next_event_ns())
    }

    #[inline]
    fn advance(&mut self, now_ns: u64, done: &mut impl FnMut(Completion)) {
        each!(self, drive => drive.advance(now_ns, done));
    }
}
