//! Modelled machines: read, described, and run.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use pyo3::prelude::*;
use serde::Serialize;
use spindle_config::Change;
use spindle_sim::{Kernel, PartRange, Progress, Scheduler, SimError, SimFigures, SimOptions};

use crate::convert::timeout;
use crate::errors;
use crate::workload::Workload;

/// A machine file, read and checked.
#[pyclass(frozen, module = "spindle._core")]
pub(crate) struct Machine(pub(crate) Arc<spindle_sim::Machine>);

/// The facts about a machine for Python.
#[derive(Serialize)]
struct Described<'a> {
    name: &'a str,
    about: &'a str,
    capacity: u64,
    kernel: String,
    schedulers: Vec<&'static str>,
    drives: Vec<&'a str>,
    level: Option<&'static str>,
    queue_depth: u32,
    cache_bytes: u64,
    /// State of each drive; `None` for one that has none.
    flash_states: Vec<Option<&'static str>>,
}

#[pymethods]
impl Machine {
    #[staticmethod]
    #[pyo3(signature = (text, source, changes = Vec::new()))]
    fn parse(text: &str, source: &str, changes: Vec<(String, String, String)>) -> PyResult<Self> {
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(part, key, value)| Change { part, key, value })
            .collect();
        spindle_sim::Machine::parse_changed(text, source, &changes)
            .map(|machine| Self(Arc::new(machine)))
            .map_err(errors::config)
    }

    fn to_json(&self) -> PyResult<String> {
        let machine = &self.0;
        errors::json(&Described {
            name: &machine.name,
            about: &machine.about,
            capacity: machine.capacity().map_err(errors::config)?,
            kernel: machine.host.kernel.to_string(),
            schedulers: machine.schedulers(),
            drives: machine
                .drives
                .iter()
                .map(|drive| drive.model.as_str())
                .collect(),
            level: machine.array_config().map(|config| config.level.name()),
            queue_depth: machine.queue_depth().map_err(errors::config)?,
            cache_bytes: machine.drives.iter().map(|drive| drive.cache_bytes()).sum(),
            flash_states: machine
                .drives
                .iter()
                .map(|drive| drive.state().map(|state| state.name()))
                .collect(),
        })
    }

    /// The uncertain numbers: part, key, least, value, most.
    fn ranges(&self) -> Vec<(String, &'static str, String, String, String)> {
        let ranges = self.0.ranges().into_iter();
        ranges
            .map(|PartRange { part, range }| {
                (part, range.key, range.least, range.value, range.most)
            })
            .collect()
    }

    /// The numbers that are assumed and have no range: part and key.
    fn assumed(&self) -> Vec<(&str, &str)> {
        self.0.assumed()
    }

    /// When the drive of a slot, alone and idle at first, is done with requests that come at given times: (arrival in ns,
    /// letter as in the lab's trace, first sector, sectors).
    fn finish_times(
        &self,
        slot: usize,
        requests: Vec<(u64, char, u64, u64)>,
    ) -> PyResult<Vec<u64>> {
        let setup = self.0.drives.get(slot);
        let setup = setup.ok_or_else(|| errors::config(format!("no drive {slot}")))?;
        spindle_disk::alone::finish_times(setup, &requests).map_err(errors::config)
    }

    fn kernel_setup(&self) -> PyResult<String> {
        let setup = spindle_lab::KernelSetup::new(&self.0).map_err(errors::config)?;
        errors::json(&setup)
    }
}

/// A run on a modelled machine, on a thread of its own. It starts when constructed.
#[pyclass(frozen, module = "spindle._core")]
struct Simulation {
    shared: Arc<Shared>,
    names: Vec<String>,
    ramp_ns: u64,
    trace: Option<Mutex<Receiver<Vec<u8>>>>,
}

/// Bytes of a piece of a trace, and pieces that may wait to be taken: the run waits for a slow reader.
const PIECE: usize = 1 << 16;
const PIECES: usize = 64;

/// Hands a trace over in pieces: files are opened by Python's guard, not here.
struct Pieces(SyncSender<Vec<u8>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .send(bytes.to_vec())
            .map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Shared {
    stop: Arc<AtomicBool>,
    progress: Arc<Progress>,
    outcome: Mutex<Option<Result<SimFigures, SimError>>>,
    over: Condvar,
}

impl Shared {
    fn outcome(&self) -> MutexGuard<'_, Option<Result<SimFigures, SimError>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Progress in the shape that real runs have.
#[derive(Serialize)]
struct ProgressFigures<'a> {
    phase: &'static str,
    elapsed_ns: u64,
    measured_ns: u64,
    streams: Vec<StreamProgressFigures<'a>>,
}

#[derive(Serialize)]
struct StreamProgressFigures<'a> {
    name: &'a str,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    errors: u64,
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (machine, workload, *, trace = false, interval_ns = 1_000_000_000, places = Vec::new(), one_call_each = false, begin = (0, 0, false)))]
    fn new(
        machine: &Machine,
        workload: &Workload,
        trace: bool,
        interval_ns: u64,
        places: Vec<Vec<u64>>,
        one_call_each: bool,
        begin: (u64, u64, bool),
    ) -> PyResult<Self> {
        let shared = Arc::new(Shared {
            stop: Arc::default(),
            progress: Arc::new(Progress::new(workload.0.streams.len())),
            outcome: Mutex::new(None),
            over: Condvar::new(),
        });
        let (pieces, taken) = if trace {
            let (pieces, taken) = sync_channel(PIECES);
            (Some(pieces), Some(Mutex::new(taken)))
        } else {
            (None, None)
        };
        let options = SimOptions {
            trace: pieces.map(|pieces| {
                Box::new(BufWriter::with_capacity(PIECE, Pieces(pieces))) as Box<dyn Write + Send>
            }),
            interval_ns,
            stop: Some(shared.stop.clone()),
            progress: Some(shared.progress.clone()),
            places,
            one_call_each,
            first_tick_ns: begin.0,
            thread_start_ns: begin.1,
            opens_file: begin.2,
        };
        let (machine, load, finished) = (machine.0.clone(), workload.0.clone(), shared.clone());
        let names = load
            .streams
            .iter()
            .map(|stream| stream.name.clone())
            .collect();
        let ramp_ns = load.ramp_ns;
        thread::Builder::new()
            .name("simulation".to_owned())
            .spawn(move || {
                let outcome = spindle_sim::simulate(&machine, &load, options);
                *finished.outcome() = Some(outcome);
                finished.over.notify_all();
            })
            .map_err(errors::run)?;
        Ok(Self {
            shared,
            names,
            ramp_ns,
            trace: taken,
        })
    }

    fn progress(&self) -> PyResult<String> {
        let elapsed_ns = self.shared.progress.now_ns();
        let streams = self.names.iter().zip(self.shared.progress.streams());
        errors::json(&ProgressFigures {
            phase: match self.shared.outcome().is_some() {
                true => "done",
                false if elapsed_ns < self.ramp_ns => "ramp",
                false => "measure",
            },
            elapsed_ns,
            measured_ns: elapsed_ns.saturating_sub(self.ramp_ns),
            streams: streams
                .map(|(name, counts)| StreamProgressFigures {
                    name,
                    reads: counts.reads,
                    writes: counts.writes,
                    read_bytes: counts.read_bytes,
                    write_bytes: counts.write_bytes,
                    errors: 0,
                })
                .collect(),
        })
    }

    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    fn wait(&self, python: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = timeout(timeout_s)?;
        let shared = &self.shared;
        Ok(python.detach(|| {
            let (outcome, _) = shared
                .over
                .wait_timeout_while(shared.outcome(), timeout, |outcome| outcome.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            outcome.is_some()
        }))
    }

    fn trace_piece(&self, python: Python<'_>, timeout_s: f64) -> PyResult<Option<Vec<u8>>> {
        let Some(trace) = &self.trace else {
            return Ok(None);
        };
        let timeout = timeout(timeout_s)?;
        let taken = python.detach(|| {
            trace
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv_timeout(timeout)
        });
        Ok(match taken {
            Ok(piece) => Some(piece),
            Err(RecvTimeoutError::Timeout) => Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => None,
        })
    }

    fn figures(&self, python: Python<'_>) -> PyResult<String> {
        let shared = &self.shared;
        python.detach(|| {
            let outcome = shared
                .over
                .wait_while(shared.outcome(), |outcome| outcome.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            match &*outcome {
                Some(Ok(figures)) => errors::json(figures),
                Some(Err(error)) => Err(refused(error)),
                None => Err(errors::run("the simulation left no figures")),
            }
        })
    }
}

impl Drop for Simulation {
    /// No caller will ask for its figures.
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs on machines, several at a time.
#[pyfunction]
#[pyo3(signature = (runs, *, threads = None, interval_ns = 1_000_000_000))]
fn simulate_many(
    python: Python<'_>,
    runs: Vec<(PyRef<'_, Machine>, PyRef<'_, Workload>)>,
    threads: Option<usize>,
    interval_ns: u64,
) -> PyResult<Vec<String>> {
    let runs: Vec<_> = runs
        .iter()
        .map(|(machine, workload)| (machine.0.clone(), workload.0.clone()))
        .collect();
    let outcomes = python.detach(|| {
        let runs: Vec<_> = runs
            .iter()
            .map(|(machine, workload)| (&**machine, workload))
            .collect();
        spindle_sim::simulate_many(&runs, interval_ns, threads, None)
    });
    outcomes
        .into_iter()
        .map(|outcome| match outcome {
            Ok(figures) => errors::json(&figures),
            Err(error) => Err(refused(&error)),
        })
        .collect()
}

#[pyfunction]
fn machine_names() -> Vec<&'static str> {
    spindle_sim::machine_names().collect()
}

#[pyfunction]
fn machine_text(name: &str) -> PyResult<&'static str> {
    spindle_sim::machine_text(name).map_err(errors::config)
}

/// Name of the parameter's file in sysfs -> (key in a machine file, unit of the file), of each elevator by name.
type Parameters = BTreeMap<&'static str, BTreeMap<&'static str, (&'static str, &'static str)>>;

#[pyfunction]
fn elevator_parameters() -> Parameters {
    Scheduler::NAMES
        .into_iter()
        .filter_map(|name| Some((name, Scheduler::named(name, Kernel::DEFAULT)?)))
        .map(|(name, mut scheduler)| {
            let files = scheduler
                .parameters()
                .into_iter()
                .filter_map(|one| Some((one.file?, (one.key, one.value.unit()))));
            (name, files.collect())
        })
        .collect()
}

/// The refusal of the request, or the failure, as a Python exception.
fn refused(error: &SimError) -> PyErr {
    match error {
        SimError::Refused { .. }
        | SimError::Standstill { .. }
        | SimError::Merge(_)
        | SimError::Trace(_) => errors::run(error),
        SimError::NeedsKernel { .. } => errors::not_modelled(error),
        _ => errors::config(error),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Machine>()?;
    module.add_class::<Simulation>()?;
    module.add_function(wrap_pyfunction!(simulate_many, module)?)?;
    module.add_function(wrap_pyfunction!(elevator_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(machine_names, module)?)?;
    module.add_function(wrap_pyfunction!(machine_text, module)?)
}
