//! A load in progress on its own threads.

use std::time::Duration;

use spindle_measure::RunFigures;
use spindle_workload::Workload;

use crate::{EngineError, NullTarget, Options, Progress, StreamFile};

/// A load in progress. It starts when constructed; dropping it stops it.
#[derive(Debug)]
pub struct Run {}

impl Run {
    /// Starts the workload on open files, one for each stream in the order of the workload.
    ///
    /// # Errors
    /// When the load cannot be started as asked.
    pub fn start(
        workload: &Workload,
        files: Vec<StreamFile>,
        options: Options,
    ) -> Result<Run, EngineError> {
        let _ = (workload, files, options);
        Err(EngineError::System {
            what: "engine".into(),
            why: "not built yet".into(),
        })
    }

    /// Starts it on a target that needs no system call: the generator's own cost.
    ///
    /// # Errors
    /// When the load cannot be started as asked.
    pub fn start_null(
        workload: &Workload,
        target: NullTarget,
        options: Options,
    ) -> Result<Run, EngineError> {
        let _ = (workload, target, options);
        Err(EngineError::System {
            what: "engine".into(),
            why: "not built yet".into(),
        })
    }

    /// A snapshot of where it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        unimplemented!("lands with the ring loop")
    }

    /// Asks it to end; figures up to then are kept.
    pub fn stop(&self) {}

    /// Whether it is over; waits at most `timeout` for that.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let _ = timeout;
        true
    }

    /// Waits for the end and gives the figures; may be called again.
    ///
    /// # Errors
    /// When a worker broke down.
    pub fn finish(&self) -> Result<RunFigures, EngineError> {
        Err(EngineError::System {
            what: "engine".into(),
            why: "not built yet".into(),
        })
    }
}
