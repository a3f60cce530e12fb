//! Conversions of arguments that several classes take from Python.

use std::time::Duration;

use pyo3::prelude::*;
use spindle_engine::StreamFile;

use crate::errors;

/// A file as Python passes it: (descriptor, size in bytes, offset/length alignment, memory alignment).
pub(crate) type FileTuple = (i32, u64, u32, u32);

/// A file as the engine takes it.
pub(crate) fn stream_file((fd, size_bytes, block_bytes, memory_align): FileTuple) -> StreamFile {
    StreamFile {
        fd,
        size_bytes,
        block_bytes,
        memory_align,
    }
}

/// Time to wait.
pub(crate) fn timeout(timeout_s: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(timeout_s)
        .map_err(|error| errors::config(format!("timeout_s: {error}")))
}
