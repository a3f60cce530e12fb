//! The drive catalogue, drives shown, and drives held against measured traces.

use std::path::Path;

use pyo3::prelude::*;
use spindle_config::catalogue::DRIVES;

use crate::errors;

/// Names of the drives in the catalogue.
#[pyfunction]
fn drive_names() -> Vec<&'static str> {
    spindle_drive::drive_names()
}

/// The own performance of a drive of the catalogue, as JSON.
#[pyfunction]
fn drive_show(python: Python<'_>, name: &str) -> PyResult<String> {
    let sheet = spindle_drive::sheet(name).map_err(errors::config)?;
    let shown = python
        .detach(|| spindle_drive::show::show(&sheet))
        .map_err(errors::config)?;
    errors::json(&shown)
}

/// The data sheet of a drive of the catalogue, as TOML.
#[pyfunction]
fn drive_sheet(name: &str) -> PyResult<&'static str> {
    let sheet = spindle_drive::sheet(name).map_err(errors::config)?;
    let found = DRIVES.iter().find(|(known, _)| *known == sheet.name);
    Ok(found.map_or("", |(_, text)| *text))
}

/// A drive of the catalogue in a line, as JSON.
#[pyfunction]
fn drive_line(python: Python<'_>, name: &str) -> PyResult<String> {
    let sheet = spindle_drive::sheet(name).map_err(errors::config)?;
    let line = python
        .detach(|| spindle_drive::show::line(&sheet))
        .map_err(errors::config)?;
    errors::json(&line)
}

/// Capacity, rates, failure rates, power and place of a drive of the catalogue, as JSON. Runs nothing.
#[pyfunction]
fn drive_facts(name: &str) -> PyResult<String> {
    let sheet = spindle_drive::sheet(name).map_err(errors::config)?;
    errors::json(&spindle_drive::show::facts(&sheet))
}

/// The example of a file of prices.
#[pyfunction]
fn example_prices() -> &'static str {
    spindle_config::catalogue::PRICES
}

/// The traces of a directory replayed on the drives it describes, as JSON.
#[pyfunction]
fn validate_drives(python: Python<'_>, directory: &str) -> PyResult<String> {
    let report = python.detach(|| spindle_drive::validate::validate_drives(Path::new(directory)));
    errors::json(&report.map_err(errors::config)?)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(drive_names, module)?)?;
    module.add_function(wrap_pyfunction!(drive_show, module)?)?;
    module.add_function(wrap_pyfunction!(drive_line, module)?)?;
    module.add_function(wrap_pyfunction!(drive_sheet, module)?)?;
    module.add_function(wrap_pyfunction!(drive_facts, module)?)?;
    module.add_function(wrap_pyfunction!(example_prices, module)?)?;
    module.add_function(wrap_pyfunction!(validate_drives, module)?)
}
