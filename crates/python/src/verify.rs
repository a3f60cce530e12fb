//! The expected content of a target, and its read-back.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use spindle_engine::StreamFile;

use crate::convert::{FileTuple, stream_file, timeout};
use crate::errors;

#[pyclass(frozen, module = "spindle._core")]
pub(crate) struct ExpectedContent(pub(crate) Arc<spindle_engine::ExpectedContent>);

#[pymethods]
impl ExpectedContent {
    #[staticmethod]
    fn from_state(py: Python<'_>, state: &[u8]) -> PyResult<Self> {
        py.detach(|| spindle_engine::ExpectedContent::from_state(state))
            .map(|written| Self(Arc::new(written)))
            .map_err(errors::config)
    }

    #[pyo3(signature = (paths = Vec::new()))]
    fn to_state<'py>(&self, py: Python<'py>, paths: Vec<String>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.to_state(&paths)))
    }

    fn is_empty(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.is_empty())
    }

    #[getter]
    fn block_bytes(&self) -> u64 {
        self.0.unit()
    }

    #[getter]
    fn run(&self) -> String {
        self.0.run_name()
    }

    #[getter]
    fn files(&self) -> Vec<(String, u64)> {
        self.0
            .files()
            .map(|file| (file.path.clone(), file.bytes))
            .collect()
    }

    #[pyo3(signature = (files = None))]
    fn read_back(&self, py: Python<'_>, files: Option<Vec<FileTuple>>) -> PyResult<ReadBack> {
        let files: Option<Vec<StreamFile>> =
            files.map(|files| files.into_iter().map(stream_file).collect());
        let written = Arc::clone(&self.0);
        py.detach(|| spindle_engine::ReadBack::start(written, files.as_deref()))
            .map(ReadBack)
            .map_err(errors::run)
    }
}

#[pyclass(frozen, module = "spindle._core")]
struct ReadBack(spindle_engine::ReadBack);

#[pymethods]
impl ReadBack {
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
        errors::json(&py.detach(|| self.0.finish()))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ExpectedContent>()?;
    module.add_class::<ReadBack>()
}
