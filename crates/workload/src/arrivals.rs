//! Times at which requests are issued: open-loop arrivals and think time.

use crate::rng::{Purpose, Rng, sub_seed};
use crate::spec::{Arrival, Spacing, Stream, Think};

/// Intended start times of one worker of an open-loop stream, ns after the stream's start, never falling.
///
/// The stream's rate is shared equally by its workers. Constant spacing: worker w of W has every W-th
/// arrival from the w-th on, so that the stream as a whole is evenly spaced. Poisson: each worker has an
/// independent process of rate / W, which together are one of the whole rate.
#[derive(Debug, Clone)]
pub struct Arrivals {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Constant {
        next: f64,
        step: f64,
        spacing_ns: f64,
    },
    Poisson {
        now_ns: f64,
        mean_ns: f64,
        rng: Rng,
    },
}

impl Arrivals {
    /// Arrivals of a worker, or `None` for a closed loop.
    #[must_use]
    pub fn new(stream: &Stream, stream_index: usize, worker: u32, seed: u64) -> Option<Arrivals> {
        let Arrival::Open { rate_iops, spacing } = stream.arrival else {
            return None;
        };
        let workers = f64::from(stream.workers.max(1));
        let spacing_ns = 1e9 / rate_iops;
        let kind = match spacing {
            Spacing::Constant => Kind::Constant {
                next: f64::from(worker),
                step: workers,
                spacing_ns,
            },
            Spacing::Poisson => {
                let rng = Rng::new(sub_seed(seed, stream_index, worker, Purpose::Arrival));
                Kind::Poisson {
                    now_ns: 0.0,
                    mean_ns: spacing_ns * workers,
                    rng,
                }
            }
        };
        Some(Arrivals { kind })
    }

    /// Intended start of the next request, ns after the stream's start.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        match &mut self.kind {
            Kind::Constant {
                next,
                step,
                spacing_ns,
            } => {
                // A product, not a sum: no error adds up.
                let at = *next * *spacing_ns;
                *next += *step;
                at as u64
            }
            Kind::Poisson {
                now_ns,
                mean_ns,
                rng,
            } => {
                *now_ns += rng.exponential() * *mean_ns;
                *now_ns as u64
            }
        }
    }
}

/// Pauses of one worker of a closed-loop stream.
#[derive(Debug, Clone)]
pub struct Thinker {
    think: Think,
    rng: Rng,
}

impl Thinker {
    /// Pauses of a worker, or `None` if the stream does not think.
    #[must_use]
    pub fn new(stream: &Stream, stream_index: usize, worker: u32, seed: u64) -> Option<Thinker> {
        let think = stream.think.filter(|think| think.mean_ns > 0)?;
        let rng = Rng::new(sub_seed(seed, stream_index, worker, Purpose::Think));
        Some(Thinker { think, rng })
    }

    /// The settings of the pauses.
    #[must_use]
    pub fn think(&self) -> Think {
        self.think
    }

    /// Pause before a slot issues its next request, ns.
    #[inline]
    pub fn pause_ns(&mut self) -> u64 {
        if self.think.exponential {
            (self.rng.exponential() * self.think.mean_ns as f64) as u64
        } else {
            self.think.mean_ns
        }
    }
}
