//! What I/O is asked for: workload specification, presets, and the seeded request stream.

mod alias;
mod arrivals;
mod content;
mod log_normal;
mod request;
mod rng;
mod scatter;
mod sizer;
mod spec;
mod stream;
mod walk;
mod zipf;

pub use arrivals::{Arrivals, Thinker};
pub use content::ContentFiller;
pub use request::{Op, Request};
pub use spec::*;
pub use stream::{RequestStream, StreamError};
