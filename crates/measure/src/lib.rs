//! Measurement of latency: histograms, summaries, time series and the steady-state rule.
//!
//! Each worker has a [`StreamRecorder`] and calls [`record`](StreamRecorder::record) on every completion. At the end the
//! recorders are [`finish`](StreamRecorder::finish)ed, the records of a stream's workers merged, and
//! [`RunFigures::new`] combines all streams into the figures of the run. Times are ns on one clock, zero at the start of the
//! run; the caller takes them.
//!
//! ```
//! use spindle_measure::{CpuFigures, EndedBy, GeneratorFigures, OpKind, Plan, RunFacts, RunFigures, StreamRecorder};
//!
//! let mut recorder = StreamRecorder::new(&Plan {
//!     kinds: &[OpKind::Read],
//!     service: false,
//!     ramp_ns: 0,
//!     start_ns: 0,
//!     interval_ns: 1_000_000_000,
//!     expected_ns: Some(2_000_000_000),
//!     end_ns: None,
//!     max_intervals: Plan::DEFAULT_MAX_INTERVALS,
//! });
//! recorder.set_outstanding(0, 1);
//! for n in 1..=20_000 {
//!     // A read of 4 KiB that took 100 us.
//!     recorder.record(OpKind::Read, n * 100_000, 100_000, 4096);
//! }
//! let record = recorder.finish(2_000_000_000);
//! let facts = RunFacts {
//!     elapsed_ns: 2_000_000_000,
//!     ended_by: EndedBy::Time,
//!     cpu: CpuFigures::default(),
//!     generator: GeneratorFigures::default(),
//!     steady: None,
//! };
//! let run = RunFigures::new(vec![("main".to_owned(), record)], facts)?;
//! let read = run.streams[0].read.as_ref().expect("there were reads");
//! assert_eq!((read.iops, read.latency.mean_ns), (10_000.0, 100_000.0));
//! assert_eq!(run.streams[0].mean_outstanding, 1.0);
//! assert_eq!(run.series.len(), 2);
//! # Ok::<(), spindle_measure::MergeError>(())
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod coarse;
mod codec;
pub mod departure;
mod errors;
mod figures;
mod histogram;
mod kind;
mod little;
mod record;
mod recorder;
mod series;
pub mod settle;
pub mod steady;
pub mod trend;
mod verification;

pub use coarse::{LATENCY_BUCKETS, latency_bucket_ns};
pub use codec::DecodeError;
pub use figures::*;
pub use histogram::Histogram;
pub use kind::OpKind;
pub use little::little;
pub use record::{MergeError, PERCENTILES, RunFacts, StreamRecord};
pub use recorder::{Plan, StreamRecorder, Totals};
pub use settle::SteadyFigures;
pub use verification::*;
