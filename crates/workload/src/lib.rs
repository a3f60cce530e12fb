//! What I/O is asked for: workload specification, presets, and the seeded request stream.

mod request;
mod spec;

pub use request::{Op, Request};
pub use spec::*;
