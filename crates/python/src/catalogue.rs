//! Data files of `catalogue/` that Python reads.

use pyo3::prelude::*;

#[pyfunction]
fn device_classes() -> &'static str {
    include_str!("../../../catalogue/classes.toml")
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(device_classes, module)?)
}
