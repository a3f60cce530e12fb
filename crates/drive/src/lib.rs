//! Models of drives: what a disk or flash drive does with a command, and when it is done.
//!
//! A [`Device`] is a deterministic machine in simulated time with integer nanoseconds. `docs/explanation/drives.md` tells the
//! models, their formulas and sources, and how they were held against measurements of real drives.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod closed_loop;
mod command;
pub mod datasheet;
mod device;
pub mod disksim;
mod drive;
mod error;
mod flash;
mod geometry;
mod mechanical;
mod mechanics;
mod params;
mod reciprocal;
mod rotation;
mod seek;
mod segments;
mod server;
pub mod show;
mod stream;
mod transfer;
pub mod validate;

pub use command::{Command, Completion, Op, Phases, ServedFrom};
pub use datasheet::{DataSheet, Settings, drive, drive_names, sheet};
pub use device::Device;
pub use drive::Drive;
pub use error::{DriveError, SubmitError};
pub use flash::{Flash, FlashParams};
pub use geometry::{Geometry, GeometrySpec, Mapping, Place, Sparing, ZoneSpec};
pub use mechanical::Mechanical;
pub use params::{
    AccessTime, AfterOp, Buffer, Bus, DriveParams, ExtraDisconnect, Overheads, Queue, ReadAhead,
    Scheduling, WriteBack,
};
pub use rotation::{Angle, Rotation};
pub use seek::SeekCurve;
pub use server::{Server, ServerParams, ServiceTime};
