//! Workloads: presets, keys, parsing, and the request stream for a look at it.

use pyo3::prelude::*;
use spindle_workload::{NameStream, Op, Request, RequestStream};

use crate::errors;

/// A resolved workload.
#[pyclass(frozen, module = "spindle._core")]
pub(crate) struct Workload(pub(crate) spindle_workload::Workload);

#[pymethods]
impl Workload {
    #[staticmethod]
    #[pyo3(signature = (text, source, name, overrides = Vec::new()))]
    fn parse(
        text: &str,
        source: &str,
        name: &str,
        overrides: Vec<(String, String)>,
    ) -> PyResult<Self> {
        spindle_workload::Workload::parse(text, source, name, &overrides)
            .map(Self)
            .map_err(errors::config)
    }

    fn only_names(&self, stream: usize, operation: &str) -> PyResult<Self> {
        Op::on_names(operation)
            .and_then(|operation| self.0.only_names(stream, operation))
            .map(Self)
            .ok_or_else(|| errors::config(format!("stream {stream} does not {operation} names")))
    }

    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        serde_json::from_str(text).map(Self).map_err(errors::config)
    }

    fn to_json(&self) -> PyResult<String> {
        errors::json(&self.0)
    }

    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    #[pyo3(signature = (text, free = Vec::new()))]
    fn options(&self, text: &str, free: Vec<String>) -> Option<Vec<(String, String)>> {
        let free: Vec<&str> = free.iter().map(String::as_str).collect();
        self.0.options(text, &free)
    }

    fn phases(&self) -> Vec<Self> {
        let phases = self.0.phases.iter();
        phases.map(|phase| Self(phase.load.clone())).collect()
    }

    fn file_sizes(&self, fileset: usize, auto_bytes: u64) -> PyResult<Vec<u64>> {
        let set = self.0.filesets.get(fileset).ok_or_else(|| {
            errors::config(format!(
                "set {fileset}: the workload has {} sets of files",
                self.0.filesets.len()
            ))
        })?;
        set.sizes(fileset, self.0.seed, auto_bytes)
            .map_err(|error| errors::config(format!("files {:?}: {error}", set.name)))
    }

    fn check(&self, sizes: Vec<Vec<u64>>, block_bytes: u32) -> PyResult<()> {
        let streams = self.0.streams.iter().enumerate().zip(&sizes);
        let moves_data = streams.filter(|((_, stream), _)| stream.names.is_none());
        for ((index, stream), sizes) in moves_data {
            for worker in 0..stream.workers {
                self.0
                    .requests(index, worker, sizes, block_bytes)
                    .map_err(|error| {
                        errors::config(format!("stream {:?}: {error}", stream.name))
                    })?;
            }
        }
        Ok(())
    }

    fn requests(
        &self,
        stream: usize,
        worker: u32,
        size_bytes: u64,
        block_bytes: u32,
        count: usize,
    ) -> PyResult<Vec<(String, u64, u32, bool)>> {
        let spec = self.0.streams.get(stream).ok_or_else(|| {
            errors::config(format!(
                "stream {stream}: the workload has {} streams",
                self.0.streams.len()
            ))
        })?;
        let as_tuple = |request: Request| {
            let name = serde_json::to_value(request.op).map_err(errors::config)?;
            let name = name.as_str().unwrap_or_default().to_owned();
            Ok((name, request.offset, request.len, request.fsync_after))
        };
        if let Some(names) = &spec.names {
            let mut requests = NameStream::new(spec, names, stream, worker, self.0.seed)
                .map_err(errors::config)?;
            let taken = std::iter::from_fn(|| requests.next_request()).take(count);
            return taken.map(as_tuple).collect();
        }
        let mut requests =
            RequestStream::new(spec, stream, worker, self.0.seed, size_bytes, block_bytes)
                .map_err(errors::config)?;
        (0..count)
            .map(|_| as_tuple(requests.next_request()))
            .collect()
    }
}

#[pyfunction]
fn preset_names() -> Vec<&'static str> {
    spindle_workload::preset_names().collect()
}

#[pyfunction]
fn preset_text(name: &str) -> PyResult<&'static str> {
    spindle_workload::preset_text(name).map_err(errors::config)
}

#[pyfunction]
fn workload_keys() -> PyResult<String> {
    errors::json(&spindle_workload::KEYS)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Workload>()?;
    module.add_function(wrap_pyfunction!(preset_names, module)?)?;
    module.add_function(wrap_pyfunction!(preset_text, module)?)?;
    module.add_function(wrap_pyfunction!(workload_keys, module)?)
}
