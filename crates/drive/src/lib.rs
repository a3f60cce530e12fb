//! Models of drives: what a disk or flash drive does with a command, and when it is done.
//!
//! A [`Device`] is a deterministic machine in simulated time with integer nanoseconds. `docs/drives.md` tells the
//! models, their formulas and sources, and how they were held against measurements of real drives.

mod command;
mod device;
mod error;

pub use command::{Command, Completion, Op, Phases, ServedFrom};
pub use device::Device;
pub use error::{DriveError, SubmitError};
