//! What a latency is: histograms, summaries, time series and the steady-state rule.

mod figures;

pub use figures::*;
