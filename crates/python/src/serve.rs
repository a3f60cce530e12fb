//! A modelled drive as a disk in real time, on a thread of its own.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use pyo3::prelude::*;
use spindle_disk::serve::{Place, ServeError, ServeOptions, Server, Stopper, Summary, reopen};
use spindle_drive::DataSheet;
use spindle_sim::DriveSetup;

use crate::convert::timeout;
use crate::errors;

/// One modelled drive with its settings.
#[pyclass(frozen, module = "spindle._core")]
struct ModelledDrive(DriveSetup);

#[pymethods]
impl ModelledDrive {
    #[staticmethod]
    #[pyo3(signature = (keys, source, sheet = None, sheet_source = ""))]
    fn parse(keys: &str, source: &str, sheet: Option<&str>, sheet_source: &str) -> PyResult<Self> {
        let sheet = sheet
            .map(|text| DataSheet::parse(text, sheet_source))
            .transpose()
            .map_err(errors::config)?;
        DriveSetup::parse(keys, source, sheet)
            .map(Self)
            .map_err(errors::config)
    }

    #[staticmethod]
    fn sheet_name(sheet: &str, source: &str) -> PyResult<String> {
        let sheet = DataSheet::parse(sheet, source).map_err(errors::config)?;
        Ok(sheet.name)
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.0.len
    }
}

/// A server that ends on another thread.
#[pyclass(frozen, module = "spindle._core")]
struct DriveServer {
    stopper: Stopper,
    ended: Mutex<Receiver<Result<Summary, ServeError>>>,
    summary: Mutex<Option<Result<Summary, ServeError>>>,
}

#[pymethods]
impl DriveServer {
    #[new]
    #[pyo3(signature = (drive, protocol, place, *, contents = None, spin_ns = 0))]
    fn new(
        drive: &ModelledDrive,
        protocol: &str,
        place: &str,
        contents: Option<i32>,
        spin_ns: u64,
    ) -> PyResult<Self> {
        let place = match protocol {
            "vhost-user" => Place::Vhost(PathBuf::from(place)),
            "nbd-socket" => Place::NbdSocket(PathBuf::from(place)),
            "nbd" => Place::NbdAddress(place.to_owned()),
            "fuse" => Place::Folder(PathBuf::from(place)),
            _ => return Err(errors::config(format!("protocol {protocol} is unknown"))),
        };
        let contents = contents.map(reopen).transpose().map_err(errors::run)?;
        let (server, stopper) = Server::new(&drive.0, contents, &place, ServeOptions { spin_ns })
            .map_err(errors::run)?;
        let (end, ended) = channel();
        thread::Builder::new()
            .name("disk".to_owned())
            .spawn(move || {
                // It is received in `wait`, or nobody wants it.
                let _ = end.send(server.run());
            })
            .map_err(errors::run)?;
        Ok(Self {
            stopper,
            ended: Mutex::new(ended),
            summary: Mutex::new(None),
        })
    }

    fn stop(&self) {
        self.stopper.stop();
    }

    fn wait(&self, python: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = timeout(timeout_s)?;
        python.detach(|| {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            match ended.recv_timeout(timeout) {
                Ok(summary) => {
                    let mut place = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
                    *place = Some(summary);
                    Ok(true)
                }
                Err(error) => Ok(error == RecvTimeoutError::Disconnected),
            }
        })
    }

    fn summary(&self) -> PyResult<String> {
        let place = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        match &*place {
            Some(Ok(summary)) => errors::json(summary),
            Some(Err(error)) => Err(errors::run(error)),
            None => Err(errors::run("the server has not ended, or broke down")),
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ModelledDrive>()?;
    module.add_class::<DriveServer>()
}
