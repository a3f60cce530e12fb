//! Data files of `catalogue/` that Python reads.

use pyo3::prelude::*;

macro_rules! campaigns {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../catalogue/campaigns/", $name, ".toml")))),*]
    };
}

const CAMPAIGNS: [(&str, &str); 7] = campaigns![
    "ioprio-mix",
    "md-matrix",
    "outer-vs-inner",
    "readahead-sweep",
    "sched-shootout",
    "threads-by-size",
    "untuned-vs-tuned",
];

#[pyfunction]
fn device_classes() -> &'static str {
    include_str!("../../../catalogue/classes.toml")
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
