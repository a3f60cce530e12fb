//! Real I/O: a workload runs on open files through io_uring or pread/pwrite, and gives figures.
//!
//! The engine never opens anything: it receives descriptors. `docs/explanation/engine.md` describes the path of a request.
//!
//! ```
//! use spindle_engine::{NullTarget, Options, Run};
//! use spindle_workload::Workload;
//!
//! let workload = Workload::parse("requests = 1000\nseconds = 'none'", "load.toml", "load", &[])?;
//! let target = NullTarget { size_bytes: 1 << 30, service_ns: 0 };
//! let figures = Run::start_null(&workload, target, Options::default())?.finish()?;
//! assert_eq!(figures.streams[0].read.as_ref().map(|reads| reads.requests), Some(1000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod appointment;
mod backend;
mod blocking;
mod budget;
mod buffers;
mod calibrate;
mod clock;
pub mod durable;
mod error;
mod feed;
mod figures;
mod free;
mod helpers;
pub mod kernel;
mod load;
mod log;
mod mapped;
mod names;
mod null;
mod one_call;
mod options;
mod pace;
mod progress;
mod ring;
mod run;
mod shared;
mod slots;
mod snapshot;
mod steady;
mod system;
#[cfg(test)]
mod system_tests;
mod target;
mod thread;
mod verify;
mod worker;

pub use appointment::Appointment;
pub use error::EngineError;
pub use options::{EngineChoice, NullTarget, Options, StreamFile, Timestamps, UnknownName};
pub use progress::{Phase, Progress, StreamProgress};
pub use run::Run;
pub use verify::{ExpectedContent, ReadBack, ReadBackProgress, StateError, WrittenFile};
