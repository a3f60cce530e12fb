//! Quantities as people write them.

use pyo3::prelude::*;
use spindle_config::units;

use crate::errors;

#[pyfunction]
fn parse_size(text: &str) -> PyResult<u64> {
    units::parse_size(text).map_err(errors::config)
}

#[pyfunction]
fn parse_duration(text: &str) -> PyResult<u64> {
    units::parse_duration(text).map_err(errors::config)
}

#[pyfunction]
fn format_duration(ns: u64) -> String {
    units::format_duration(ns)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_size, module)?)?;
    module.add_function(wrap_pyfunction!(parse_duration, module)?)?;
    module.add_function(wrap_pyfunction!(format_duration, module)?)
}
