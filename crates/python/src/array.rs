//! Address maps of RAID arrays.

use std::path::Path;

use pyo3::prelude::*;
use spindle_array::{ArrayConfig, Layout, LayoutReport, Level};

use crate::errors;

/// An array explained, as JSON. Sizes are bytes; what is left out is as mdadm would choose it.
#[pyfunction]
#[pyo3(signature = (level, drives, *, layout=None, chunk=None, groups=None, outer_chunk=None, rows=None))]
fn array_layout(
    level: &str,
    drives: Vec<u64>,
    layout: Option<&str>,
    chunk: Option<u64>,
    groups: Option<u32>,
    outer_chunk: Option<u64>,
    rows: Option<u64>,
) -> PyResult<String> {
    let level: Level = level.parse().map_err(errors::config)?;
    let mut config = ArrayConfig::new(level, drives);
    if let Some(name) = layout {
        config.layout = Layout::parse(level, name).map_err(errors::config)?;
    }
    config.chunk = chunk.unwrap_or(config.chunk);
    config.groups = groups.unwrap_or(config.groups);
    config.outer_chunk = outer_chunk;
    let report = LayoutReport::new(config, rows).map_err(errors::config)?;
    errors::json(&report)
}

/// Address maps against the lists of real arrays in a directory, as JSON.
#[pyfunction]
fn validate_maps(directory: &str) -> PyResult<String> {
    let report = spindle_array::validate_maps(Path::new(directory)).map_err(errors::config)?;
    errors::json(&report)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(array_layout, module)?)?;
    module.add_function(wrap_pyfunction!(validate_maps, module)?)
}
