//! One run by the orders of `spindle fleet`, or samples for `spindle monitor --hosts`: lines of JSON on standard input, reports on standard output.
//!
//! ```text
//! orders                                    reports
//!                                           hello      version, host, this clock
//! clock  number                             clock      number, this clock        (any number of times, also later)
//! devices names                             devices    names of the kernel       (before a run)
//! sample                                    sample     the kernel's counters     (the same)
//! restore                                   restored   what agents that were killed had left changed, put back
//! knobs  target, settings                   knobs      changes, read back; until the end of the session
//! run    options, text of the workload      ready      phase                     or failure: status, line
//! start  time on this clock                 started    phase, time; progress each second
//!                                           restored   settings put back, if there were any to change
//!                                           result     status, document (docs/reference/agent.md)
//! alive  at least every few seconds
//! ```
//!
//! Nothing outlives its orders: at the end of standard input, and after [`SILENCE`] without an order, the load stops.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_engine::{Appointment, Run, kernel};

use crate::counters::{self, Counters};
use crate::document::Host;
use crate::failure::{Failure, reason};
use crate::knobs::{self, Changed, Item, Knob, Wanted};
use crate::measure::{Source, Starter, measure};
use crate::options;
use crate::stopping::StopSignal;

/// Version of the orders and reports; both ends must have the same.
const PROTOCOL: u32 = 2;
/// Time without an order after which nobody is there: below the 10 s within which a load without orders must be gone.
const SILENCE: Duration = Duration::from_secs(6);
/// Longest order, bytes: a workload file of 1 MiB, written as JSON.
const LONGEST: usize = 4 << 20;
/// How often a waiting load is looked at.
const LOOK: Duration = Duration::from_millis(20);
const PROGRESS: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Order {
    Clock {
        number: u64,
    },
    Run {
        /// As on the command line of `spindle-agent run`, without workload and output.
        options: Vec<String>,
        /// The workload: its name, its origin for messages, and its text.
        name: String,
        source: String,
        toml: String,
    },
    Start {
        at_ns: u64,
    },
    Alive,
    Devices {
        /// Paths of devices, files or folders, and names of the kernel.
        names: Vec<String>,
    },
    Sample,
    Restore,
    Knobs {
        /// A device, or what is on one.
        target: String,
        wanted: Vec<Wanted>,
        known: Vec<Knob>,
    },
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Report {
    Hello {
        protocol: u32,
        version: &'static str,
        host: Host,
        at_ns: u64,
    },
    Clock {
        number: u64,
        at_ns: u64,
    },
    Ready {
        phase: usize,
    },
    Started {
        phase: usize,
        at_ns: u64,
    },
    Progress {
        elapsed_ns: u64,
        requests: u64,
        bytes: u64,
        errors: u64,
    },
    Failure {
        status: u8,
        line: String,
    },
    Devices {
        found: Vec<Option<String>>,
    },
    Sample(Counters),
    Knobs {
        items: Vec<Item>,
    },
    Restored {
        items: Vec<Item>,
    },
}

pub(crate) fn carry_out() -> Result<u8, Failure> {
    let stopping = StopSignal::begin()?;
    let session = Session {
        orders: listen(&stopping)?,
        stopping: Arc::clone(&stopping),
    };
    report(&Report::Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION"),
        host: Host::this(),
        at_ns: kernel::monotonic_ns(),
    })?;
    let mut changed = None;
    let done = session.run(&mut changed);
    if let Some(changed) = changed.take() {
        // Nobody may be left to read it; the settings are back all the same.
        drop(report(&Report::Restored {
            items: changed.undo(),
        }));
    }
    match done {
        Ok((text, status)) => {
            put(&format!(
                "{{\"kind\":\"result\",\"status\":{status},\"document\":{text}}}"
            ))?;
            Ok(status)
        }
        Err(failure) => {
            report(&Report::Failure {
                status: failure.status(),
                line: failure.to_string(),
            })?;
            Ok(failure.status())
        }
    }
}

struct Session {
    orders: Receiver<Result<Order, Failure>>,
    stopping: Arc<StopSignal>,
}

impl Session {
    fn run(&self, changed: &mut Option<Changed>) -> Result<(String, u8), Failure> {
        let (mut words, source) = loop {
            match self.next(LOOK)? {
                Some(Order::Run {
                    options,
                    name,
                    source,
                    toml,
                }) => {
                    let source = Source {
                        text: toml,
                        named: source,
                        name,
                    };
                    break (options, source);
                }
                Some(Order::Start { .. }) => return Err(out_of_order("start", "no run is ready")),
                Some(Order::Devices { names }) => report(&Report::Devices {
                    found: names.iter().map(|name| counters::device_of(name)).collect(),
                })?,
                Some(Order::Sample) => report(&Report::Sample(Counters::now()))?,
                Some(Order::Restore) => report(&Report::Restored {
                    items: knobs::restore(knobs::PATIENCE),
                })?,
                Some(Order::Knobs { .. }) if changed.is_some() => {
                    return Err(out_of_order("knobs", "some are changed already"));
                }
                Some(Order::Knobs {
                    target,
                    wanted,
                    known,
                }) => {
                    let (made, items) = Changed::make(&target, &wanted, &known)?;
                    *changed = Some(made);
                    report(&Report::Knobs { items })?;
                }
                Some(Order::Clock { .. } | Order::Alive) | None => {}
            }
        };
        if changed.is_none() {
            // Settings that a killed agent left would be measured too.
            let items = knobs::restore(Duration::ZERO);
            if !items.is_empty() {
                report(&Report::Restored { items })?;
            }
        }
        words.extend(["--workload", "-", "--output", "-"].map(str::to_owned));
        let options = options::of_run(words)?;
        let workload = source.parse(&options.overrides)?;
        measure(&source, &workload, &options, &self.stopping, self)
    }

    /// The next order; clocks are answered. `None`: none within the time.
    fn next(&self, patience: Duration) -> Result<Option<Order>, Failure> {
        loop {
            match self.orders.recv_timeout(patience) {
                Ok(Ok(Order::Clock { number })) => report(&Report::Clock {
                    number,
                    at_ns: kernel::monotonic_ns(),
                })?,
                Ok(Ok(order)) => return Ok(Some(order)),
                Ok(Err(failure)) => return Err(failure),
                Err(RecvTimeoutError::Timeout) => {
                    self.stopping.check()?;
                    return Ok(None);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.stopping.hang_up();
                    self.stopping.check()?;
                }
            }
        }
    }
}

impl Starter for Session {
    fn appointment(&self) -> Option<Arc<Appointment>> {
        Some(Arc::default())
    }

    fn begin(
        &self,
        run: &Run,
        phase: usize,
        appointment: &Appointment,
        refresh: &mut dyn FnMut(),
    ) -> Result<(), Failure> {
        while !appointment.is_ready(LOOK) {
            if run.wait(Duration::ZERO) {
                return Ok(()); // `finish` has the reason
            }
        }
        report(&Report::Ready { phase })?;
        let at_ns = loop {
            match self.next(LOOK)? {
                Some(Order::Start { at_ns }) => break at_ns,
                Some(Order::Run { .. }) => return Err(out_of_order("run", "one is ready")),
                _ if run.wait(Duration::ZERO) => return Ok(()),
                _ => {}
            }
        };
        refresh();
        appointment.set(at_ns);
        while !run.wait(Duration::ZERO) {
            if let Some(at_ns) = appointment.started_ns(LOOK) {
                return report(&Report::Started { phase, at_ns });
            }
        }
        Ok(())
    }

    fn follow(&self, run: &Run) -> Result<(), Failure> {
        while !run.wait(PROGRESS) {
            // The next phase's clocks come later; what is here are signs of life.
            while let Ok(order) = self.orders.try_recv() {
                if let Order::Clock { number } = order? {
                    let at_ns = kernel::monotonic_ns();
                    report(&Report::Clock { number, at_ns })?;
                }
            }
            let progress = run.progress();
            let sum = |count: fn(&spindle_engine::StreamProgress) -> u64| {
                progress.streams.iter().map(count).sum()
            };
            report(&Report::Progress {
                elapsed_ns: progress.elapsed_ns,
                requests: sum(|stream| stream.reads + stream.writes),
                bytes: sum(|stream| stream.read_bytes + stream.write_bytes),
                errors: sum(|stream| stream.errors),
            })?;
        }
        Ok(())
    }
}

fn out_of_order(order: &str, why: &str) -> Failure {
    Failure::usage(format!("session: `{order}` is out of order: {why}"))
}

/// Reads the orders on a thread of its own, and stops everything when there are no more.
fn listen(stopping: &Arc<StopSignal>) -> Result<Receiver<Result<Order, Failure>>, Failure> {
    let (sender, orders) = channel();
    let heard = Arc::new(AtomicU64::new(kernel::monotonic_ns()));
    let (own, ears) = (Arc::clone(stopping), Arc::clone(&heard));
    spawn("spindle-orders", move || {
        if read(&sender, &ears).is_none() {
            own.hang_up();
        }
    })?;
    let own = Arc::clone(stopping);
    spawn("spindle-silence", move || {
        let silent = || {
            kernel::monotonic_ns().saturating_sub(heard.load(Ordering::Relaxed)) > nanos(SILENCE)
        };
        while !silent() {
            std::thread::sleep(PROGRESS / 4);
        }
        own.hang_up();
    })?;
    Ok(orders)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|error| Failure::failed(format!("cannot start a thread: {}", reason(&error))))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Passes orders on to the end of the input (`None`), or to one that is wrong, which ends the session by itself.
fn read(orders: &Sender<Result<Order, Failure>>, heard: &AtomicU64) -> Option<()> {
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = std::io::Read::take(&mut input, LONGEST as u64);
        match limited.read_until(b'\n', &mut line) {
            Ok(length) if length > 0 && line.last() == Some(&b'\n') => {}
            _ => return None,
        }
        heard.store(kernel::monotonic_ns(), Ordering::Relaxed);
        let order = serde_json::from_slice(&line)
            .map_err(|error| Failure::usage(format!("session: not an order: {error}")));
        let is_wrong = order.is_err();
        if orders.send(order).is_err() || is_wrong {
            return Some(());
        }
    }
}

fn report(report: &Report) -> Result<(), Failure> {
    let text = serde_json::to_string(report)
        .map_err(|error| Failure::failed(format!("the report cannot be written: {error}")))?;
    put(&text)
}

fn put(line: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| Failure::failed(format!("nobody reads the reports: {}", reason(&error))))
}
