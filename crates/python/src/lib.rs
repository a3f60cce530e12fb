//! The Python module `spindle._core`.
