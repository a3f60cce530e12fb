//! A run as its caller sees it: started, watched, stopped, read.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use spindle_measure::{OpKind, RunFigures};
use spindle_workload::{Stream, Workload};

use crate::calibrate::{self, Choice};
use crate::load::{BackendKind, Load, Plan};
use crate::progress::{Phase, Progress, StreamProgress};
use crate::shared::lock;
use crate::target::{OpenFile, OpenFiles, Target};
use crate::verify::{self, ExpectedContent, Verify};
use crate::{EngineChoice, EngineError, NullTarget, Options, StreamFile, ring, thread};

/// A load in progress on its own threads. It starts when constructed; dropping it stops it.
#[derive(Debug)]
pub struct Run {
    control: Arc<Control>,
    coordinator: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Control {
    workload: Workload,
    /// The load that is on: a trial, then the run itself.
    load: Mutex<Option<Current>>,
    stop: AtomicBool,
    outcome: Mutex<Option<Result<RunFigures, EngineError>>>,
    over: Condvar,
    verify: Option<Arc<Verify>>,
}

#[derive(Debug)]
struct Current {
    load: Arc<Load>,
    is_trial: bool,
    /// The choices of back ends; empty for a trial.
    choices: Vec<Choice>,
}

impl Run {
    /// Starts the workload on open files: for each stream, in the order of the workload, its target, or the files of the
    /// set it uses in the order of the set.
    ///
    /// # Errors
    /// If the load cannot be started as requested.
    pub fn start(
        workload: &Workload,
        files: Vec<Vec<StreamFile>>,
        options: Options,
    ) -> Result<Run, EngineError> {
        Self::start_after(workload, files, options, None)
    }

    /// The same after other loads on the same open files: their writes are known, and checked when they are read.
    ///
    /// # Errors
    /// If the load cannot be started as requested.
    pub fn start_after(
        workload: &Workload,
        files: Vec<Vec<StreamFile>>,
        options: Options,
        written: Option<Arc<ExpectedContent>>,
    ) -> Result<Run, EngineError> {
        if files.len() != workload.streams.len() || files.is_empty() {
            return Err(EngineError::FileCount {
                streams: workload.streams.len(),
                files: files.len(),
            });
        }
        let mut targets = Vec::new();
        for (stream, files) in workload.streams.iter().zip(files) {
            targets.push(inspect_all(workload, stream, files, &options)?);
        }
        check_growing(workload, &targets)?;
        if options.engine == EngineChoice::IoUring
            && let Some(why) = ring::refusal()
        {
            return Err(EngineError::NoIoUring { why });
        }
        check_threads(workload, &options)?;
        Self::launch(workload, targets, options, written)
    }

    /// Starts it on a target without system calls: the generator's own cost.
    ///
    /// # Errors
    /// If the load cannot be started as requested.
    pub fn start_null(
        workload: &Workload,
        target: NullTarget,
        options: Options,
    ) -> Result<Run, EngineError> {
        let target = Target::Null {
            size_bytes: target.size_bytes,
            service_ns: target.service_ns,
        };
        let targets = vec![target; workload.streams.len()];
        Self::launch(workload, targets, options, None)
    }

    fn launch(
        workload: &Workload,
        targets: Vec<Target>,
        mut options: Options,
        written: Option<Arc<ExpectedContent>>,
    ) -> Result<Run, EngineError> {
        if !workload.phases.is_empty() {
            return Err(EngineError::Phases);
        }
        options.interval_ns = options.interval_ns.max(1_000_000);
        // Refuses what cannot run before any thread is started.
        let mut plan = Plan {
            workload: workload.clone(),
            backends: vec![BackendKind::Null; targets.len()],
            targets,
            options,
            verify: None,
        };
        let verify = verify::plan(workload, &plan.targets, written)?;
        plan.verify = verify.clone();
        let log = None; // it has its rings when it is sure to run
        Load::new(Plan {
            options: Options {
                log,
                ..plan.options.clone()
            },
            ..plan.clone()
        })?;
        let control = Arc::new(Control {
            workload: workload.clone(),
            load: Mutex::new(None),
            stop: AtomicBool::new(false),
            outcome: Mutex::new(None),
            over: Condvar::new(),
            verify,
        });
        let own = Arc::clone(&control);
        let coordinator = Builder::new()
            .name("spindle-run".to_owned())
            .spawn(move || {
                let _guard = EndNotifier(&own);
                let outcome = own.conduct(plan);
                *lock(&own.outcome) = Some(outcome);
            })
            .map_err(|error| EngineError::system("cannot start a thread", &error))?;
        Ok(Run {
            control,
            coordinator: Mutex::new(Some(coordinator)),
        })
    }

    /// A snapshot of the progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let over = self.is_over();
        match &*lock(&self.control.load) {
            Some(current) if !current.is_trial => Progress {
                phase: if over {
                    Phase::Done
                } else {
                    current.load.phase()
                },
                ..current.load.progress()
            },
            _ => Progress {
                phase: if over { Phase::Done } else { Phase::Calibrate },
                elapsed_ns: 0,
                measured_ns: 0,
                streams: self.control.no_counts(),
            },
        }
    }

    /// Figures of the completions so far, as those of a run that ends now; `None`: the load has not begun, or is over.
    ///
    /// Each worker copies its record at its next check, which it makes once a millisecond. A worker that does not within
    /// `patience`, because it waits for the kernel, counts with the last copy that it has made: none, if it was never
    /// asked before.
    ///
    /// # Errors
    /// If the counts of the workers do not add up.
    pub fn so_far(&self, patience: Duration) -> Result<Option<RunFigures>, EngineError> {
        let (load, choices) = match &*lock(&self.control.load) {
            Some(current) if !current.is_trial => {
                (Arc::clone(&current.load), current.choices.clone())
            }
            _ => return Ok(None),
        };
        let figures = load.so_far(patience);
        let mut figures = figures.map_err(|error| EngineError::sums(&error))?;
        if let Some(figures) = &mut figures {
            self.control.complete(figures, &choices);
        }
        Ok(figures)
    }

    /// Asks it to end; figures up to then are kept.
    pub fn stop(&self) {
        self.control.stop.store(true, Ordering::SeqCst);
        if let Some(current) = &*lock(&self.control.load) {
            current.load.stop();
        }
    }

    /// True if it is over; waits at most `timeout` for that.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now().checked_add(timeout);
        let mut outcome = lock(&self.control.outcome);
        while outcome.is_none() {
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() {
                return false;
            }
            let waited = self.control.over.wait_timeout(outcome, left);
            outcome = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Waits for the end and gives the figures; may be called again.
    ///
    /// # Errors
    /// If the load could not be set up after all, or a worker panicked.
    pub fn finish(&self) -> Result<RunFigures, EngineError> {
        while !self.wait(Duration::from_secs(3600)) {}
        if let Some(coordinator) = lock(&self.coordinator).take() {
            // It has nothing left to do.
            drop(coordinator.join());
        }
        match &*lock(&self.control.outcome) {
            Some(outcome) => outcome.clone(),
            None => Err(lost()),
        }
    }

    /// The written blocks, if they are verified: to be read back, saved, or passed to the next load. Only after the end.
    #[must_use]
    pub fn written(&self) -> Option<Arc<ExpectedContent>> {
        let verify = self.control.verify.as_ref()?;
        Some(Arc::clone(&verify.written))
    }

    fn is_over(&self) -> bool {
        lock(&self.control.outcome).is_some()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
        if let Some(coordinator) = lock(&self.coordinator).take() {
            drop(coordinator.join());
        }
    }
}

/// Wakes waiters when the run is over, also after a panic of the coordinator.
struct EndNotifier<'a>(&'a Control);

impl Drop for EndNotifier<'_> {
    fn drop(&mut self) {
        lock(&self.0.outcome).get_or_insert_with(|| Err(lost()));
        self.0.over.notify_all();
    }
}

fn lost() -> EngineError {
    EngineError::System {
        what: "the run broke down".to_owned(),
        why: "its coordinator ended without figures; this is a defect of spindle, please report it"
            .to_owned(),
    }
}

impl Control {
    /// Chooses back ends and runs the load.
    fn conduct(&self, mut plan: Plan) -> Result<RunFigures, EngineError> {
        let choices = self.choose(&plan);
        plan.backends = choices.iter().map(|choice| choice.backend).collect();
        let (load, sources) = Load::new(plan)?;
        self.hold(&load, false, &choices);
        let mut figures = load.execute(sources)?;
        if let Some(verify) = &self.verify
            && load.gave_up()
        {
            verify.written.table().release_all();
        }
        self.complete(&mut figures, &choices);
        Ok(figures)
    }

    /// Adds the facts that the load itself does not know.
    fn complete(&self, figures: &mut RunFigures, choices: &[Choice]) {
        figures.verification = self.verify.as_ref().map(|verify| verify.figures());
        let generator = &mut figures.generator;
        generator.reason = self.reason(choices);
        generator.ceiling_iops = ceiling(choices);
        generator.calibration = self.calibration(choices);
    }

    fn choose(&self, plan: &Plan) -> Vec<Choice> {
        let mut known: Vec<(&OpenFiles, &Stream, Choice)> = Vec::new();
        let mut choices = Vec::new();
        for (index, target) in plan.targets.iter().enumerate() {
            let stream = &self.workload.streams[index];
            let choice = match target {
                Target::Null { .. } => Choice {
                    backend: BackendKind::Null,
                    reason: "the null target needs no system call".to_owned(),
                    rates: Vec::new(),
                },
                Target::Folder(_) => Choice {
                    backend: BackendKind::Names,
                    reason: "operations on names are blocking calls, a thread each".to_owned(),
                    rates: Vec::new(),
                },
                Target::Files(_) if stream.mapped => Choice {
                    backend: BackendKind::Mapped,
                    reason: "the stream asks for a mapping".to_owned(),
                    rates: Vec::new(),
                },
                Target::Files(open) => {
                    let same = known.iter().find(|(other, earlier, _)| {
                        other.same_target(open) && same_load(earlier, stream)
                    });
                    match same {
                        Some((_, _, choice)) => choice.clone(),
                        None => {
                            let hold = |load: &Arc<Load>| self.hold(load, true, &[]);
                            let choice = calibrate::choose(
                                &self.workload,
                                index,
                                open,
                                &plan.options,
                                &hold,
                            );
                            known.push((open, stream, choice.clone()));
                            choice
                        }
                    }
                }
            };
            choices.push(choice);
        }
        choices
    }

    /// Makes this load the one that `progress` and `stop` use.
    fn hold(&self, load: &Arc<Load>, is_trial: bool, choices: &[Choice]) {
        *lock(&self.load) = Some(Current {
            load: Arc::clone(load),
            is_trial,
            choices: choices.to_vec(),
        });
        // An earlier stop applies to this one too; a later one finds it.
        if self.stop.load(Ordering::SeqCst) {
            load.stop();
        }
    }

    fn no_counts(&self) -> Vec<StreamProgress> {
        let streams = self.workload.streams.iter();
        streams
            .map(|stream| StreamProgress {
                name: stream.name.clone(),
                ..StreamProgress::default()
            })
            .collect()
    }

    fn reason(&self, choices: &[Choice]) -> String {
        match choices {
            [first, rest @ ..] if rest.iter().all(|choice| choice.reason == first.reason) => {
                first.reason.clone()
            }
            _ => {
                let named = self.workload.streams.iter().zip(choices);
                let reasons: Vec<_> = named
                    .map(|(stream, choice)| format!("{}: {}", stream.name, choice.reason))
                    .collect();
                reasons.join("; ")
            }
        }
    }

    fn calibration(&self, choices: &[Choice]) -> Vec<(String, f64)> {
        let named = self.workload.streams.iter().zip(choices);
        let mut calibration: Vec<(String, f64)> = named
            .flat_map(|(stream, choice)| {
                choice.rates.iter().map(|(backend, rate)| {
                    let name = if choices.len() == 1 {
                        backend.name().to_owned()
                    } else {
                        format!("{}: {}", stream.name, backend.name())
                    };
                    (name, *rate)
                })
            })
            .collect();
        calibration.dedup();
        calibration
    }
}

/// The rate that the streams could reach together, if each was tried.
fn ceiling(choices: &[Choice]) -> Option<f64> {
    choices.iter().map(Choice::ceiling).sum()
}

/// True if a trial of one is valid for the other.
fn same_load(a: &Stream, b: &Stream) -> bool {
    (a.workers, a.depth, &a.size, a.mix) == (b.workers, b.depth, &b.size, b.mix)
        && a.region == b.region
        && a.files == b.files
}

/// The files of one stream.
fn inspect_all(
    workload: &Workload,
    stream: &Stream,
    files: Vec<StreamFile>,
    options: &Options,
) -> Result<Target, EngineError> {
    let wanted = workload
        .fileset(stream)
        .map_or(1, |(_, set)| set.files as usize);
    let given = files.len();
    if given != wanted {
        return Err(EngineError::StreamFiles {
            stream: stream.name.clone(),
            wanted,
            given,
        });
    }
    let mut open = Vec::with_capacity(given);
    for file in files {
        let file = inspect(stream, file, options)?;
        if file.is_folder {
            return Ok(Target::Folder(file.file.fd));
        }
        open.push(file);
    }
    Ok(Target::Files(OpenFiles::new(open)))
}

/// A growing file can only be read where this load, or one before, wrote it.
fn check_growing(workload: &Workload, targets: &[Target]) -> Result<(), EngineError> {
    let files = |target: &Target| match target {
        Target::Files(open) => Some(open.clone()),
        _ => None,
    };
    let targets: Vec<Option<OpenFiles>> = targets.iter().map(files).collect();
    let writes = |index: usize| OpKind::made_by(&workload.streams[index]).contains(&OpKind::Write);
    let mut written = HashSet::new();
    for (index, open) in targets.iter().enumerate() {
        if let Some(open) = open.as_ref().filter(|open| !open.are_whole())
            && writes(index)
        {
            written.extend(open.iter().map(OpenFile::identity));
        }
    }
    for (stream, open) in workload.streams.iter().zip(&targets) {
        let Some(open) = open else { continue };
        let grows = workload.fileset(stream).is_some_and(|(_, set)| !set.fill);
        if !grows || !OpKind::made_by(stream).contains(&OpKind::Read) {
            continue;
        }
        let short = open
            .iter()
            .position(|file| !file.is_whole() && !written.contains(&file.identity()));
        if let Some(file) = short {
            let OpenFile {
                file: declared,
                length,
                ..
            } = open[file];
            return Err(EngineError::Workload {
                stream: stream.name.clone(),
                why: format!(
                    "it reads file {} of its set, which holds {length} of {} bytes, and nothing writes it; set `fill = true`, \
                     or write it first",
                    file + 1,
                    declared.size_bytes
                ),
            });
        }
    }
    Ok(())
}

fn inspect(stream: &Stream, file: StreamFile, options: &Options) -> Result<OpenFile, EngineError> {
    let refuse = |why: &str| {
        Err(EngineError::Workload {
            stream: stream.name.clone(),
            why: why.to_owned(),
        })
    };
    let open = OpenFile::inspect(file).map_err(|error| {
        EngineError::system(
            format!("stream {:?}: cannot use the file", stream.name),
            &error,
        )
    })?;
    match (&stream.names, open.is_folder) {
        (Some(_), true) if options.iopoll || options.sqpoll => {
            return refuse("operations on names cannot be polled for; leave out the polling");
        }
        (Some(_), true) => return Ok(open),
        (Some(_), false) => return refuse("it works on names, but the target is not a folder"),
        (None, true) => return refuse("it moves data, but the target is a folder"),
        (None, false) => {}
    }
    if stream.mapped && !open.is_whole() {
        return refuse(
            "it goes through a mapping, which cannot make a file longer; set `fill = true`",
        );
    }
    if stream.mapped && (options.iopoll || options.sqpoll) {
        return refuse("a mapping cannot be polled for; leave out the polling");
    }
    if !file.memory_align.is_power_of_two() {
        return refuse("the memory alignment of the target is not a power of two");
    }
    let kinds = OpKind::made_by(stream);
    if kinds.contains(&OpKind::Read) && !open.can_read {
        return refuse("it reads, but the target is open for writing only");
    }
    if kinds.iter().any(|&kind| kind != OpKind::Read) && !open.can_write {
        return refuse("it writes, but the target is open for reading only");
    }
    if options.iopoll && !open.is_direct {
        return refuse(
            "polled completions need direct I/O; set `direct = true` or leave out `iopoll`",
        );
    }
    if options.iopoll && (stream.mix.trim > 0.0 || stream.mix.zero > 0.0) {
        return refuse("trims and zeroing cannot be polled for; leave out `iopoll`");
    }
    if (options.iopoll || options.sqpoll) && options.engine == EngineChoice::Pread {
        return refuse("polling needs io_uring; use `engine=\"io_uring\"`");
    }
    Ok(open)
}

/// CPUs and priorities are tried on a thread of their own, so that a refusal is reported at once.
fn check_threads(workload: &Workload, options: &Options) -> Result<(), EngineError> {
    let trial = std::thread::scope(|scope| {
        let trial = Builder::new().spawn_scoped(scope, || {
            for &cpu in &options.cpus {
                thread::pin(&[cpu]).map_err(|error| EngineError::Cpu {
                    cpu,
                    why: error.to_string(),
                })?;
            }
            for stream in &workload.streams {
                let Some(priority) = stream.priority else {
                    continue;
                };
                thread::set_priority(priority).map_err(|error| EngineError::Priority {
                    stream: stream.name.clone(),
                    class: thread::class_name(priority.class),
                    level: priority.level,
                    why: error.to_string(),
                })?;
            }
            Ok(())
        });
        trial.map(|handle| handle.join().unwrap_or_else(|_| Err(lost())))
    });
    trial.unwrap_or_else(|error| Err(EngineError::system("cannot start a thread", &error)))
}
