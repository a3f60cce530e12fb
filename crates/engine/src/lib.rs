//! Real I/O: a workload runs on open files through io_uring or pread/pwrite, and gives figures.
//!
//! The engine never opens anything: it is handed descriptors (see `docs/engine.md` for how a request travels).

mod error;
mod options;
mod progress;
mod run;

pub use error::EngineError;
pub use options::{EngineChoice, NullTarget, Options, StreamFile, Timestamps};
pub use progress::{Phase, Progress, StreamProgress};
pub use run::Run;
