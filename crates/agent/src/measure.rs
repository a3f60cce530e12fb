//! One call from its workload to its result.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use spindle_engine::{Appointment, EngineError, ExpectedContent, Phase, ReadBack, Run};
use spindle_measure::{EndedBy, RunFigures};
use spindle_workload::{Stream, Workload, preset_names, preset_text};

use crate::capture::Capture;
use crate::devices::Device;
use crate::document::{Changes, Document, FORMAT, Host, Load, Moment, Place, Request, Tool};
use crate::failure::{Failure, reason, status_of_signal};
use crate::options::{Options, STANDARD};
use crate::output::Output;
use crate::stopping::{StopSignal, Work};
use crate::target::{self, Kind, OpenedTarget, Target};

/// So short that the last counters before the load contain hardly any requests of the calibration.
const CALIBRATION_POLL: Duration = Duration::from_millis(5);
/// Workload files are shorter; a device or a disk image given by mistake is not.
const LARGEST_FILE: u64 = 1 << 20;

pub(crate) fn carry_out(options: &Options) -> Result<u8, Failure> {
    let stopping = StopSignal::begin()?;
    let source = read_workload(&options.workload)?;
    let workload = source.parse(&options.overrides)?;
    let output = Output::reserve(&options.output)?;
    let (text, status) = measure(&source, &workload, options, &stopping, &AtOnce)?;
    output.write(&(text + "\n"))?;
    Ok(status)
}

/// Decides when each load begins, and hears how it goes on.
pub(crate) trait Starter {
    /// The start that a load waits for; `None`: it starts at once.
    fn appointment(&self) -> Option<Arc<Appointment>> {
        None
    }

    /// Sets the time of the appointment. `refresh` reads the counters before the load again.
    fn begin(
        &self,
        _run: &Run,
        _phase: usize,
        _appointment: &Appointment,
        _refresh: &mut dyn FnMut(),
    ) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns when the load is over.
    fn follow(&self, _run: &Run) -> Result<(), Failure> {
        Ok(())
    }
}

/// Each load starts when it is ready.
struct AtOnce;

impl Starter for AtOnce {}

/// The result as one line of JSON, and the exit status.
pub(crate) fn measure(
    source: &Source,
    workload: &Workload,
    options: &Options,
    stopping: &StopSignal,
    starter: &dyn Starter,
) -> Result<(String, u8), Failure> {
    let steps = steps_of(workload);
    let streams: Vec<&Stream> = steps.iter().flat_map(|step| &step.load.streams).collect();
    let target = target::open(options, &streams, stopping)?;
    stopping.rest(options.settle)?;
    let mut bench = LoadRunner::new(options, &target, stopping, starter);
    let mut runs = Vec::new();
    let mut failed = None;
    for (number, step) in steps.iter().enumerate() {
        match bench.measure(number, step) {
            Ok(run) => runs.push(run),
            Err(failure) if runs.is_empty() => return Err(failure),
            Err(failure) => failed = Some(failure.status()),
        }
        let is_partial = runs.last().is_some_and(|run| is_partial(&run.figures));
        if failed.is_some() || is_partial {
            break;
        }
    }
    let failed = failed.or_else(|| {
        let ended = runs.iter().any(|run| is_error(&run.figures));
        ended.then_some(1)
    });
    let left_out = steps.len() - runs.len();
    let document = bench.document(source, workload, runs, left_out, &streams);
    let text = serde_json::to_string(&document)
        .map_err(|error| Failure::failed(format!("the result cannot be written: {error}")))?;
    let stopped = stopping.signal().map(status_of_signal);
    Ok((text, stopped.or(failed).unwrap_or(0)))
}

/// A phase, or the whole load.
struct Step<'a> {
    load: &'a Workload,
    drop_caches: bool,
    /// Written blocks are read back after it.
    read_back: bool,
}

fn steps_of(workload: &Workload) -> Vec<Step<'_>> {
    let verifies = |load: &Workload| load.streams.iter().any(|stream| stream.verify);
    if workload.phases.is_empty() {
        return vec![Step {
            load: workload,
            drop_caches: true,
            read_back: true,
        }];
    }
    // All writes are read back once, after the last phase that verifies.
    let phases = workload.phases.iter();
    let last = workload
        .phases
        .iter()
        .rposition(|phase| verifies(&phase.load));
    let steps = phases.enumerate().map(|(place, phase)| Step {
        load: &phase.load,
        drop_caches: phase.drop_caches,
        read_back: last == Some(place),
    });
    steps.collect()
}

fn is_partial(figures: &RunFigures) -> bool {
    matches!(figures.ended_by, EndedBy::Stopped) || is_error(figures)
}

fn is_error(figures: &RunFigures) -> bool {
    matches!(figures.ended_by, EndedBy::Error { .. })
}

// --- the workload ----------------------------------------------------------------------------------------------------

/// The text of a workload, before it is parsed.
pub(crate) struct Source {
    pub(crate) text: String,
    /// As messages name it.
    pub(crate) named: String,
    /// The workload's own name.
    pub(crate) name: String,
}

impl Source {
    /// The workload with these keys changed, if the agent can run it.
    pub(crate) fn parse(&self, overrides: &[(String, String)]) -> Result<Workload, Failure> {
        let workload = Workload::parse(&self.text, &self.named, &self.name, overrides)
            .map_err(|error| wrong_workload(&error.to_string()))?;
        check(&workload)?;
        Ok(workload)
    }
}

fn read_workload(name: &str) -> Result<Source, Failure> {
    if name == STANDARD {
        return Ok(Source {
            text: text_in(std::io::stdin().lock(), "standard input")?,
            named: "standard input".to_owned(),
            name: "workload".to_owned(),
        });
    }
    if preset_names().any(|preset| preset == name) {
        let text = preset_text(name).map_err(|error| Failure::usage(error.to_string()))?;
        return Ok(Source {
            text: text.to_owned(),
            named: format!("preset {name}"),
            name: name.to_owned(),
        });
    }
    let path = Path::new(name);
    let cannot = |why: String| Failure::usage(format!("workload {name}: {why}"));
    if path.exists() && !path.is_file() {
        return Err(cannot(
            "is not a file; give a TOML file or a preset".to_owned(),
        ));
    }
    let file = std::fs::File::open(path)
        .map_err(|error| cannot(format!("{}; give a TOML file or a preset", reason(&error))))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Source {
        text: text_in(file, name)?,
        named: name.to_owned(),
        name: stem.into_owned(),
    })
}

/// The parser names a wrong setting as a keyword, `` `size=` ``.
fn wrong_workload(error: &str) -> Failure {
    let setting = error
        .strip_prefix('`')
        .and_then(|rest| rest.split_once("=`"));
    Failure::usage(match setting {
        Some((key, why)) => format!("--set {key}{why}"),
        None => error.to_owned(),
    })
}

fn text_in(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    source
        .take(LARGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("workload {name}: {}", reason(&error))))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(Failure::usage(format!(
            "workload {name}: larger than 1 MiB; this is not a workload file"
        )));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("workload {name}: not UTF-8 text; save it as UTF-8")))
}

fn check(workload: &Workload) -> Result<(), Failure> {
    let name = &workload.name;
    let steps = steps_of(workload);
    let mut streams = steps.iter().flat_map(|step| &step.load.streams);
    if let Some(stream) = streams.find(|stream| stream.names.is_some()) {
        return Err(Failure::usage(format!(
            "workload {name}: stream {:?} works on names, for which spindle-agent makes no tree; use `spindle run`",
            stream.name
        )));
    }
    if !workload.filesets.is_empty() {
        return Err(Failure::usage(format!(
            "workload {name}: has sets of files, which spindle-agent does not make; use `spindle run`"
        )));
    }
    Ok(())
}

// --- the load --------------------------------------------------------------------------------------------------------

struct LoadRunner<'a> {
    options: &'a Options,
    target: &'a Target,
    stopping: &'a StopSignal,
    starter: &'a dyn Starter,
    /// Under test, then below.
    devices: Vec<Device>,
    begun: Instant,
    /// Blocks that earlier loads wrote, where the workload verifies.
    written: Option<Arc<ExpectedContent>>,
}

impl<'a> LoadRunner<'a> {
    fn new(
        options: &'a Options,
        target: &'a Target,
        stopping: &'a StopSignal,
        starter: &'a dyn Starter,
    ) -> LoadRunner<'a> {
        let devices = match target {
            Target::Null(_) => Vec::new(),
            Target::Open(opened) => {
                let own = opened.device.iter().cloned();
                own.chain(opened.below()).collect()
            }
        };
        LoadRunner {
            options,
            target,
            stopping,
            starter,
            devices,
            begun: Instant::now(),
            written: None,
        }
    }

    fn measure<'w>(&mut self, number: usize, step: &Step<'w>) -> Result<Load<'w>, Failure> {
        self.stopping.check()?;
        let files = match self.target {
            Target::Null(_) => None,
            Target::Open(opened) => Some(opened.files_of(&step.load.streams)?),
        };
        if let Some(files) = files.as_ref().filter(|_| step.drop_caches) {
            files.drop_cache();
        }
        let started_s = seconds_now();
        let mut before = self.moment(Capture::take(&self.devices));
        let described = files.as_ref().map(|files| files.described.clone());
        let appointment = self.starter.appointment();
        let run = self
            .start(step.load, described, appointment.clone())
            .map_err(|error| failure_of(&error))?;
        let run = Arc::new(run);
        self.stopping.watch(Work::Load(Arc::clone(&run)));
        match appointment {
            Some(appointment) => {
                let mut refresh = || before = self.refreshed(&before);
                self.starter
                    .begin(&run, number, &appointment, &mut refresh)?;
            }
            None => self.watch_calibration(&run, &mut before),
        }
        self.starter.follow(&run)?;
        let mut figures = run.finish().map_err(|error| failure_of(&error))?;
        let at_ns = self.now_ns();
        let after = Moment {
            at_ns,
            seen: Changes {
                files: before.seen.changes(),
            },
        };
        self.read_back(&run, step, &mut figures)?;
        Ok(Load {
            started_s,
            workload: step.load,
            dropped_cache: step.drop_caches,
            figures,
            before,
            after,
        })
    }

    fn start(
        &self,
        load: &Workload,
        files: Option<Vec<Vec<spindle_engine::StreamFile>>>,
        appointment: Option<Arc<Appointment>>,
    ) -> Result<Run, EngineError> {
        let options = spindle_engine::Options {
            appointment,
            ..self.options.engine.clone()
        };
        match (self.target, files) {
            (Target::Null(target), _) => Run::start_null(load, *target, options),
            (Target::Open(_), files) => Run::start_after(
                load,
                files.unwrap_or_default(),
                options,
                self.written.clone(),
            ),
        }
    }

    /// The last counters before the load: those of a moment at which the back ends were still compared.
    fn watch_calibration(&self, run: &Run, before: &mut Moment<Capture>) {
        while !run.wait(CALIBRATION_POLL) {
            let fresh = self.refreshed(before);
            if run.progress().phase != Phase::Calibrate {
                return;
            }
            *before = fresh;
        }
    }

    fn refreshed(&self, before: &Moment<Capture>) -> Moment<Capture> {
        let mut fresh = before.seen.clone();
        fresh.refresh();
        self.moment(fresh)
    }

    /// Everything that was written, once, after everything measured.
    fn read_back(
        &mut self,
        run: &Run,
        step: &Step<'_>,
        figures: &mut RunFigures,
    ) -> Result<(), Failure> {
        let Some(verification) = &mut figures.verification else {
            return Ok(());
        };
        self.written = run.written();
        let written = self.written.clone().filter(|written| !written.is_empty());
        let Some(written) = written.filter(|_| step.read_back && self.stopping.signal().is_none())
        else {
            return Ok(());
        };
        let reading = ReadBack::start(written, None).map_err(|error| failure_of(&error))?;
        let reading = Arc::new(reading);
        self.stopping.watch(Work::ReadBack(Arc::clone(&reading)));
        verification.read_back = Some(reading.finish());
        Ok(())
    }

    fn moment(&self, seen: Capture) -> Moment<Capture> {
        Moment {
            at_ns: self.now_ns(),
            seen,
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn document<'d>(
        &'d self,
        source: &'d Source,
        workload: &'d Workload,
        runs: Vec<Load<'d>>,
        left_out: usize,
        streams: &[&Stream],
    ) -> Document<'d> {
        let (kind, size_bytes, opened) = match self.target {
            Target::Null(null) => ("null", null.size_bytes, None),
            Target::Open(opened) => match opened.kind {
                Kind::Device => ("device", opened.size_bytes, Some(opened)),
                Kind::File => ("file", opened.size_bytes, Some(opened)),
            },
        };
        let numbers: Vec<String> = self
            .devices
            .iter()
            .map(|device| device.number.to_string())
            .collect();
        Document {
            kind: "agent",
            format: FORMAT,
            tool: Tool {
                name: "spindle-agent",
                version: env!("CARGO_PKG_VERSION"),
            },
            host: Host::this(),
            target: Place {
                asked: &self.options.target,
                kind,
                size_bytes,
                created: opened.is_some_and(|opened| opened.created),
                writes: streams.iter().any(|stream| stream.mix.changes() > 0.0),
                device: numbers.first().cloned(),
                below: numbers.get(1..).unwrap_or_default().to_vec(),
                mount: opened.and_then(mount_line),
            },
            request: Request {
                source: &source.named,
                toml: &source.text,
                options: &self.options.overrides,
            },
            workload,
            runs,
            left_out,
        }
    }
}

fn mount_line(opened: &OpenedTarget) -> Option<String> {
    opened.mount.as_ref().map(|mount| mount.line.clone())
}

fn failure_of(error: &EngineError) -> Failure {
    Failure::failed(error.to_string())
}

fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
