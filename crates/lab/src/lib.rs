//! The lab: the real Linux kernel in virtual time on modelled drives.
//!
//! The kernel is User Mode Linux, an ordinary process. Two protocols connect it with this crate:
//!
//! | module | role |
//! |---|---|
//! | [`time_travel`] | the calendar: the kernel asks for permission to advance its clock, reports kicks and takes interrupts |
//! | [`spindle_disk`] | the kernel's devices reach their models over sockets (vhost-user, but for kicks and interrupts) |
//! | [`KernelSetup`] | a machine's array and settings as the kernel's tools and files take them |
//! | [`Lab`] | one process with all of it: the event loop |
//!
//! The kernel and the models take turns. While the kernel runs, virtual time stands still except where the kernel reads
//! its clock; when the kernel waits, time jumps to the next event of a drive or of the kernel. No event depends on real
//! time, so equal inputs give equal bytes. `docs/explanation/lab.md` describes the lab, its limits and what was checked.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod error;
mod fault;
mod lab;
mod report;
mod setup;
pub mod time_travel;

pub use error::LabError;
pub use fault::Fault;
pub use lab::{Lab, LabOptions, Output, Port};
pub use report::{DriveReport, Report};
pub use setup::{ArrayCommands, DriveKnobs, KernelSetup, RebuildCommand, device_name};
