//! The exceptions of the core. Each text is one line: the problem, its place, the remedy.

use pyo3::exceptions::PyValueError;
use pyo3::import_exception;
use pyo3::prelude::*;
use serde::Serialize;
use spindle_engine::EngineError;

// Python defines them, below the same root as all others.
import_exception!(spindle.base.errors, ConfigError);
import_exception!(spindle.base.errors, NotModelled);
import_exception!(spindle.base.errors, RunError);

/// A configuration error of any crate as Python's.
pub(crate) fn config(error: impl std::fmt::Display) -> PyErr {
    ConfigError::new_err(error.to_string())
}

/// Something that a model lacks as Python's.
pub(crate) fn not_modelled(error: impl std::fmt::Display) -> PyErr {
    NotModelled::new_err(error.to_string())
}

/// An error of a load as Python's: a workload or an option that this target or machine cannot take is as wrong as one
/// that cannot be read.
pub(crate) fn load(error: EngineError) -> PyErr {
    if error.is_misfit() {
        config(error)
    } else {
        run(error)
    }
}

/// A failure of the core as Python's.
pub(crate) fn run(error: impl std::fmt::Display) -> PyErr {
    RunError::new_err(error.to_string())
}

/// A value of the core as JSON text.
pub(crate) fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ConfigError", module.py().get_type::<ConfigError>())?;
    module.add("NotModelled", module.py().get_type::<NotModelled>())?;
    module.add("RunError", module.py().get_type::<RunError>())
}
