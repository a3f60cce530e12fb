//! What a latency is: histograms, summaries, time series and the steady-state rule.
//!
//! Each worker has a [`StreamRecorder`] and calls [`record`](StreamRecorder::record) on every completion. At the end the
//! recorders are [`finish`](StreamRecorder::finish)ed, the records of a stream's workers merged, and
//! [`RunFigures::new`] makes of all streams the figures of the run. Times are ns on one clock, zero at the start of the
//! run; how they are taken is the caller's matter.

mod codec;
mod errors;
mod figures;
mod histogram;
mod kind;
mod little;
mod record;
mod recorder;
mod series;
pub mod steady;
pub mod trend;

pub use codec::DecodeError;
pub use figures::*;
pub use histogram::Histogram;
pub use kind::OpKind;
pub use little::little;
pub use record::{MergeError, PERCENTILES, RunFacts, StreamRecord};
pub use recorder::{Plan, StreamRecorder, Totals};
