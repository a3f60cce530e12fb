//! Data files of `catalogue/` that Python reads.

use pyo3::prelude::*;
use spindle_config::catalogue::{CAMPAIGNS, CLASSES};

#[pyfunction]
fn device_classes() -> &'static str {
    CLASSES
}

/// Name and text of each plan, in alphabetical order.
#[pyfunction]
fn campaign_presets() -> Vec<(&'static str, &'static str)> {
    CAMPAIGNS.to_vec()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(device_classes, module)?)?;
    module.add_function(wrap_pyfunction!(campaign_presets, module)?)
}
