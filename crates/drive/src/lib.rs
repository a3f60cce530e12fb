//! Models of drives: a disk or flash drive receives commands, and the model computes when each is done.
//!
//! A [`Device`] is a deterministic machine in simulated time with integer nanoseconds. `docs/explanation/drives.md` describes the
//! models, their formulas and sources, and their comparison with measurements of real drives.
//!
//! ```
//! use spindle_drive::{Command, Device, Settings, drive};
//!
//! let mut disk = drive("HDS725050KLA360", Settings::default())?;
//! disk.submit(0, Command::read(1, 500_000_000, 8))?;
//! let mut finished = None;
//! while let (None, Some(event_ns)) = (finished, disk.next_event_ns()) {
//!     disk.advance(event_ns, &mut |completion| finished = Some(completion));
//! }
//! let completion = finished.expect("the read completes");
//! let ms = (completion.finish_ns - completion.submit_ns) as f64 / 1e6;
//! assert!((1.0..30.0).contains(&ms), "a seek and part of a turn: {ms} ms");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod offer;
pub mod open_loop;
mod params;
mod random;
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
pub use datasheet::{DataSheet, Settings, changed_sheet, drive, drive_names, sheet};
pub use device::{Device, check};
pub use drive::Drive;
pub use error::{DriveError, SubmitError};
pub use flash::{Collection, Flash, FlashCounts, FlashParams, FlashState, SlcCache, amplification};
pub use geometry::{Geometry, GeometrySpec, Mapping, Place, Sparing, ZoneSpec};
pub use mechanical::Mechanical;
pub use offer::{Offer, Uncertain};
pub use params::{
    AccessTime, AfterOp, Buffer, Bus, DriveParams, ExtraDisconnect, Overheads, Queue, ReadAhead,
    Scheduling, WriteBack,
};
pub use rotation::{Angle, Rotation};
pub use seek::SeekCurve;
pub use server::{Server, ServerParams, ServiceTime};
