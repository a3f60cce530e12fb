//! The lab: the calendar and the drives of one boot of the kernel, on a thread of their own.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use spindle_disk::contents::Contents;
use spindle_lab::{Fault, LabError, LabOptions, Output, Report};

use crate::convert::timeout;
use crate::errors;
use crate::sim::Machine;

type Finished = JoinHandle<Result<Report, LabError>>;

/// The drives of a machine, for one boot of the lab's kernel.
#[pyclass(frozen, module = "spindle._core")]
struct Lab {
    lab: Arc<Mutex<spindle_lab::Lab>>,
    arguments: Vec<String>,
    keyboard: Option<Mutex<UnixStream>>,
    far_keyboard: Mutex<Option<UnixStream>>,
    output: Mutex<Option<Receiver<Output>>>,
    finished: Mutex<Option<Finished>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Lab {
    #[new]
    #[pyo3(signature = (machine, folder, *, interactive = false, trace = false, cpu = None, faults = Vec::new(),
                        time_limit_ns = None))]
    fn new(
        machine: &Machine,
        folder: PathBuf,
        interactive: bool,
        trace: bool,
        cpu: Option<usize>,
        faults: Vec<String>,
        time_limit_ns: Option<u64>,
    ) -> PyResult<Self> {
        let faults: Result<Vec<Fault>, LabError> =
            faults.iter().map(|text| Fault::parse(text)).collect();
        let options = LabOptions {
            in_real_time: interactive,
            is_traced: trace,
            cpu,
            faults: faults.map_err(errors::run)?,
            time_limit_ns,
        };
        let mut lab =
            spindle_lab::Lab::listen(&machine.0, &folder, options).map_err(errors::run)?;
        let (near, far) = match interactive {
            true => UnixStream::pair()
                .map(|(near, far)| (Some(near), Some(far)))
                .map_err(errors::run)?,
            false => (None, None),
        };
        Ok(Self {
            arguments: lab.kernel_arguments(),
            lab: Arc::new(Mutex::new(lab)),
            keyboard: near.map(Mutex::new),
            far_keyboard: Mutex::new(far),
            output: Mutex::new(None),
            finished: Mutex::new(None),
        })
    }

    #[getter]
    fn kernel_arguments(&self) -> Vec<String> {
        self.arguments.clone()
    }

    fn start(&self) -> PyResult<()> {
        let (pieces, taken) = channel();
        let lab = self.lab.clone();
        let keyboard = locked(&self.far_keyboard).take();
        let thread = thread::Builder::new()
            .name("lab".to_owned())
            .spawn(move || locked(&lab).run(&pieces, keyboard))
            .map_err(errors::run)?;
        *locked(&self.output) = Some(taken);
        *locked(&self.finished) = Some(thread);
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> PyResult<()> {
        match &self.keyboard {
            Some(keyboard) => locked(keyboard).write_all(bytes).map_err(errors::run),
            None => Ok(()),
        }
    }

    fn output(&self, python: Python<'_>, timeout_s: f64) -> PyResult<Option<(u8, Vec<u8>)>> {
        let timeout = timeout(timeout_s)?;
        let taken = python.detach(|| match &*locked(&self.output) {
            Some(output) => output.recv_timeout(timeout),
            None => Err(RecvTimeoutError::Disconnected),
        });
        Ok(match taken {
            Ok(Output { port, bytes }) => Some((port as u8, bytes)),
            Err(RecvTimeoutError::Timeout) => Some((0, Vec::new())),
            Err(RecvTimeoutError::Disconnected) => None,
        })
    }

    fn report(&self, python: Python<'_>) -> PyResult<String> {
        let Some(finished) = locked(&self.finished).take() else {
            return Err(errors::run(
                "the lab was not started, or its report was taken",
            ));
        };
        match python.detach(|| finished.join()) {
            Ok(Ok(report)) => errors::json(&report),
            Ok(Err(error)) => Err(errors::run(error)),
            Err(_) => Err(errors::run("the lab's thread ended without a report")),
        }
    }

    /// Puts bytes on the drive of a slot, before the start.
    fn put(&self, slot: usize, offset: u64, bytes: &[u8]) {
        if let Some(contents) = locked(&self.lab).contents(slot) {
            // Contents in memory do not fail.
            let _ = contents.write(offset, bytes);
        }
    }

    /// Offsets of the pages of 64 KiB of a drive that were written; after the report.
    fn pages(&self, slot: usize) -> Vec<u64> {
        let mut lab = locked(&self.lab);
        lab.contents(slot)
            .map(|contents| contents.pages())
            .unwrap_or_default()
    }

    /// One page of a drive.
    fn page<'py>(&self, python: Python<'py>, slot: usize, offset: u64) -> Bound<'py, PyBytes> {
        let mut bytes = vec![0; Contents::PAGE as usize];
        if let Some(contents) = locked(&self.lab).contents(slot) {
            let _ = contents.read(offset, &mut bytes);
        }
        PyBytes::new(python, &bytes)
    }

    /// Each request at the drives as CSV, drive by drive in the order of arrival.
    fn trace(&self, python: Python<'_>) -> String {
        python.detach(|| {
            let mut text = "drive,arrive_ns,finish_ns,operation,sector,sectors\n".to_owned();
            for (drive, served) in locked(&self.lab).traces().enumerate() {
                for one in served {
                    let finish = one.finish_ns.map(|at| at.to_string()).unwrap_or_default();
                    // Writing to a text cannot fail.
                    let _ = writeln!(
                        text,
                        "{drive},{},{finish},{},{},{}",
                        one.arrive_ns, one.operation, one.sector, one.sectors
                    );
                }
            }
            text
        })
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Lab>()
}
