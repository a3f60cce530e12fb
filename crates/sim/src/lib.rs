//! A machine in a file: drives, queues, elevators and arrays in simulated time.
//!
//! `docs/simulator.md` tells the model, `docs/elevators.md` the elevators.

pub mod elevator;
mod kernel;
mod request;

pub use elevator::{Elevator, Scheduler};
pub use kernel::Kernel;
pub use request::{BlockRequest, Id};
