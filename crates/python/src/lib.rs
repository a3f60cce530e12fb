//! The Python module `spindle._core`: thin, no logic of its own. Its types are in `python/spindle/_core.pyi`.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod array;
mod catalogue;
mod convert;
mod drive;
mod durable;
mod errors;
mod lab;
mod measure;
mod run;
mod serve;
mod sim;
mod units;
mod verify;
mod workload;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    units::register(module)?;
    workload::register(module)?;
    run::register(module)?;
    verify::register(module)?;
    measure::register(module)?;
    catalogue::register(module)?;
    array::register(module)?;
    drive::register(module)?;
    durable::register(module)?;
    sim::register(module)?;
    lab::register(module)?;
    serve::register(module)?;
    Ok(())
}
