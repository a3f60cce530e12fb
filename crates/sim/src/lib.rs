//! A machine in a file: drives, queues, elevators and arrays in simulated time.
//!
//! [`Machine::parse`] reads a machine file, [`simulate`] runs a workload on it and gives the same figures as a run on
//! real storage, [`simulate_many`] does so on all cores. `docs/explanation/simulator.md` describes the model,
//! `docs/explanation/elevators.md` the elevators.
//!
//! ```
//! use spindle_sim::{Machine, SimOptions, simulate};
//! use spindle_workload::{Workload, preset_text};
//!
//! let machine = Machine::parse("[[drive]]\nmodel = 'HDS725050KLA360'", "one.toml")?;
//! let options = [("seconds".to_owned(), "10".to_owned())];
//! let workload = Workload::parse(preset_text("seeker")?, "seeker", "seeker", &options)?;
//! let figures = simulate(&machine, &workload, SimOptions::default())?;
//! let reads = figures.run.streams[0].read.as_ref().unwrap();
//! assert!((60.0..90.0).contains(&reads.iops));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cache;
mod controller;
pub mod elevator;
mod engine;
mod error;
mod figures;
mod kernel;
mod machine;
mod many;
mod progress;
mod request;
mod ticks;

pub use controller::{ControllerSheet, DestageOrder};
pub use elevator::{Elevator, ParameterValue, Scheduler};
pub use engine::SimOptions;
pub use error::SimError;
pub use figures::{DriveFigures, FlashFigures, PageCacheFigures, RebuildFigures, SimFigures};
pub use kernel::Kernel;
pub use machine::{
    ArraySetup, BitmapSetup, ControllerSetup, DirtyLimits, DriveKind, DriveSetup, FileSystem,
    Files, FilesKind, Host, Machine, PartRange, QueueSetup, RebuildSetup, UnknownMachine,
    machine_names, machine_text, simulate,
};
pub use many::simulate_many;
pub use progress::{Progress, StreamCounts};
pub use request::{BlockRequest, Id};
pub use ticks::Ticks;
