//! Steady state of a series.

use pyo3::prelude::*;
use spindle_measure::steady;

use crate::errors;

#[pyfunction(name = "steady")]
fn steady_report(series: Vec<f64>) -> PyResult<String> {
    errors::json(&steady::report(&series))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(steady_report, module)?)
}
