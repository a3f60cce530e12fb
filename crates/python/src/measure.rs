//! Steady state of a series; stored histograms read again.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use spindle_measure::{Histogram, departure, steady};

use crate::errors;

#[pyfunction(name = "steady")]
fn steady_report(series: Vec<f64>) -> PyResult<String> {
    errors::json(&steady::report(&series))
}

#[pyfunction]
fn departures(py: Python<'_>, series: Vec<f64>, beside: usize) -> PyResult<String> {
    errors::json(&py.detach(|| departure::departures(&series, beside)))
}

#[pyfunction]
fn step_ruled_out(py: Python<'_>, series: Vec<f64>) -> Option<f64> {
    py.detach(|| departure::ruled_out(&series))
}

#[pyfunction]
fn histogram_percentiles(
    py: Python<'_>,
    histograms: Vec<String>,
    percentiles: Vec<f64>,
) -> PyResult<Vec<u64>> {
    py.detach(|| {
        let mut whole = Histogram::new();
        for text in &histograms {
            whole.merge(&Histogram::decode(text)?);
        }
        let found = whole.percentiles(&percentiles);
        Ok(found.into_iter().map(|(_, ns)| ns).collect())
    })
    .map_err(|error: spindle_measure::DecodeError| PyValueError::new_err(error.to_string()))
}

#[pyfunction]
fn histogram_of(py: Python<'_>, counts: Vec<(u64, u64)>) -> String {
    py.detach(|| {
        let mut whole = Histogram::new();
        for (ns, times) in counts {
            whole.record_n(ns, times);
        }
        whole.encode()
    })
}

#[pyfunction]
fn histogram_counts(py: Python<'_>, histogram: &str) -> PyResult<Vec<(u64, u64)>> {
    py.detach(|| Histogram::decode(histogram).map(|whole| whole.iter().collect()))
        .map_err(|error: spindle_measure::DecodeError| PyValueError::new_err(error.to_string()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(steady_report, module)?)?;
    module.add_function(wrap_pyfunction!(departures, module)?)?;
    module.add_function(wrap_pyfunction!(step_ruled_out, module)?)?;
    module.add_function(wrap_pyfunction!(histogram_of, module)?)?;
    module.add_function(wrap_pyfunction!(histogram_counts, module)?)?;
    module.add_function(wrap_pyfunction!(histogram_percentiles, module)?)
}
