//! The durability test: writers with a journal, and the check after a crash.

use std::time::Duration;

use pyo3::prelude::*;
use spindle_engine::StreamFile;
use spindle_engine::durable::{self, Header, SinkKind};

use crate::convert::{FileTuple, stream_file, timeout};
use crate::errors;

#[pyclass(frozen, module = "spindle._core")]
struct Durability(durable::Durability);

#[pymethods]
impl Durability {
    #[new]
    #[pyo3(signature = (header, targets, journal, *, receiver = false, seconds = None))]
    fn new(
        py: Python<'_>,
        header: &str,
        targets: Vec<FileTuple>,
        journal: i32,
        receiver: bool,
        seconds: Option<f64>,
    ) -> PyResult<Self> {
        let header: Header = serde_json::from_str(header)
            .map_err(|error| errors::config(format!("header: {error}")))?;
        if seconds.is_some_and(|seconds| Duration::try_from_secs_f64(seconds).is_err()) {
            return Err(errors::config("seconds: must be a time"));
        }
        let kind = if receiver {
            SinkKind::Receiver
        } else {
            SinkKind::File
        };
        let targets: Vec<StreamFile> = targets.into_iter().map(stream_file).collect();
        py.detach(|| durable::Durability::start(header, &targets, journal, kind, seconds))
            .map(Self)
            .map_err(errors::run)
    }

    fn progress(&self) -> PyResult<String> {
        errors::json(&self.0.progress())
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = timeout(timeout_s)?;
        Ok(py.detach(|| self.0.wait(timeout)))
    }

    fn figures(&self, py: Python<'_>) -> PyResult<String> {
        errors::json(&py.detach(|| self.0.finish()).map_err(errors::run)?)
    }
}

#[pyfunction]
fn durability_journal(py: Python<'_>, journal: i32) -> PyResult<String> {
    let summary = py
        .detach(|| durable::summarise(journal))
        .map_err(errors::config)?;
    errors::json(&summary)
}

#[pyfunction]
fn durability_check(py: Python<'_>, journal: i32, target: FileTuple) -> PyResult<String> {
    let findings = py
        .detach(|| durable::check(journal, stream_file(target)))
        .map_err(errors::config)?;
    errors::json(&findings)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Durability>()?;
    module.add_function(wrap_pyfunction!(durability_journal, module)?)?;
    module.add_function(wrap_pyfunction!(durability_check, module)?)
}
