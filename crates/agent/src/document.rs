//! The result as JSON (docs/reference/agent.md). Workload and figures are the very types that `spindle run` records.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use spindle_measure::RunFigures;
use spindle_workload::Workload;

use crate::capture::Capture;
use crate::devices::text_of;

/// Version of the document; it grows when an older reader would misread it.
pub(crate) const FORMAT: u32 = 1;

/// Everything.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    pub(crate) kind: &'static str,
    pub(crate) format: u32,
    pub(crate) tool: Tool,
    pub(crate) host: Host,
    pub(crate) target: Place<'a>,
    pub(crate) request: Request<'a>,
    /// The whole, with its phases.
    pub(crate) workload: &'a Workload,
    /// One for each phase; one without phases.
    pub(crate) runs: Vec<Load<'a>>,
    /// Phases that did not run, because one before them was stopped or failed.
    pub(crate) left_out: usize,
}

/// Who measured.
#[derive(Debug, Serialize)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// Facts that no file of the kernel has.
#[derive(Debug, Serialize)]
pub(crate) struct Host {
    pub(crate) name: Option<String>,
    pub(crate) architecture: &'static str,
    /// CPUs that the agent may use.
    pub(crate) cpus: Option<usize>,
}

impl Host {
    /// This machine.
    pub(crate) fn this() -> Host {
        Host {
            name: text_of(Path::new("/proc/sys/kernel/hostname")),
            architecture: std::env::consts::ARCH,
            cpus: std::thread::available_parallelism().ok().map(usize::from),
        }
    }
}

/// The workload as it was requested.
#[derive(Debug, Serialize)]
pub(crate) struct Request<'a> {
    /// `preset oltp`, or the path of the workload file.
    pub(crate) source: &'a str,
    /// Its text.
    pub(crate) toml: &'a str,
    /// Keys that were set, with their values as given.
    pub(crate) options: &'a [(String, String)],
}

/// Where the load ran.
#[derive(Debug, Serialize)]
pub(crate) struct Place<'a> {
    pub(crate) asked: &'a str,
    /// `device`, `file` or `null`.
    pub(crate) kind: &'static str,
    pub(crate) size_bytes: u64,
    pub(crate) created: bool,
    pub(crate) writes: bool,
    /// Number of the device under test, or of the one under the file.
    pub(crate) device: Option<String>,
    /// Numbers of the devices below it, nearest first.
    pub(crate) below: Vec<String>,
    /// The line of mountinfo of the mount that a file is on.
    pub(crate) mount: Option<String>,
}

/// One load.
#[derive(Debug, Serialize)]
pub(crate) struct Load<'a> {
    /// Seconds since 1970.
    pub(crate) started_s: u64,
    pub(crate) workload: &'a Workload,
    pub(crate) dropped_cache: bool,
    pub(crate) figures: RunFigures,
    pub(crate) before: Moment<Capture>,
    /// The changes since.
    pub(crate) after: Moment<Changes>,
}

/// Files whose content is another than before; `None`: gone.
#[derive(Debug, Serialize)]
pub(crate) struct Changes {
    pub(crate) files: BTreeMap<String, Option<String>>,
}

/// The kernel's files at one moment of the monotonic clock.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Moment<T> {
    pub(crate) at_ns: u64,
    #[serde(flatten)]
    pub(crate) seen: T,
}
