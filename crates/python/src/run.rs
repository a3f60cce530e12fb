//! A load in progress, started, watched and stopped from Python.

use std::sync::Arc;

use pyo3::prelude::*;
use spindle_engine::{NullTarget, Options};

use crate::convert::{FileTuple, stream_file, timeout};
use crate::errors;
use crate::verify::ExpectedContent;
use crate::workload::Workload;

#[pyclass(frozen, module = "spindle._core")]
struct Run(spindle_engine::Run);

#[pymethods]
impl Run {
    #[new]
    #[pyo3(signature = (workload, files, *, engine = "auto", sqpoll = false, iopoll = false, timestamps = "request",
                        tolerate_errors = false, cpus = None, cpus_shared = false, interval_ns = 1_000_000_000, log = None, written = None))]
    #[allow(clippy::too_many_arguments)] // Keyword arguments on the Python side.
    fn new(
        py: Python<'_>,
        workload: &Workload,
        files: Vec<Vec<FileTuple>>,
        engine: &str,
        sqpoll: bool,
        iopoll: bool,
        timestamps: &str,
        tolerate_errors: bool,
        cpus: Option<Vec<usize>>,
        cpus_shared: bool,
        interval_ns: u64,
        log: Option<i32>,
        written: Option<&ExpectedContent>,
    ) -> PyResult<Self> {
        let files = files
            .into_iter()
            .map(|files| files.into_iter().map(stream_file).collect())
            .collect();
        let options = Options {
            engine: engine.parse().map_err(errors::config)?,
            sqpoll,
            iopoll,
            timestamps: timestamps.parse().map_err(errors::config)?,
            tolerate_errors,
            cpus: cpus.unwrap_or_default(),
            cpus_shared,
            interval_ns,
            log,
            ..Options::default()
        };
        let written = written.map(|written| Arc::clone(&written.0));
        py.detach(|| spindle_engine::Run::start_after(&workload.0, files, options, written))
            .map(Self)
            .map_err(errors::load)
    }

    #[staticmethod]
    #[pyo3(signature = (workload, size_bytes, service_ns = 0, *, log = None))]
    fn null(
        py: Python<'_>,
        workload: &Workload,
        size_bytes: u64,
        service_ns: u64,
        log: Option<i32>,
    ) -> PyResult<Self> {
        let target = NullTarget {
            size_bytes,
            service_ns,
        };
        let options = Options {
            log,
            ..Options::default()
        };
        py.detach(|| spindle_engine::Run::start_null(&workload.0, target, options))
            .map(Self)
            .map_err(errors::load)
    }

    fn progress(&self) -> PyResult<String> {
        errors::json(&self.0.progress())
    }

    #[pyo3(signature = (patience_s = 0.2))]
    fn so_far(&self, py: Python<'_>, patience_s: f64) -> PyResult<Option<String>> {
        let patience = timeout(patience_s)?;
        let figures = py.detach(|| self.0.so_far(patience)).map_err(errors::run)?;
        figures.map(|figures| errors::json(&figures)).transpose()
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = timeout(timeout_s)?;
        Ok(py.detach(|| self.0.wait(timeout)))
    }

    fn written(&self) -> Option<ExpectedContent> {
        self.0.written().map(ExpectedContent)
    }

    fn figures(&self, py: Python<'_>) -> PyResult<String> {
        errors::json(&py.detach(|| self.0.finish()).map_err(errors::run)?)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Run>()
}
