//! The writers of a durability test, and the check after the crash. `spindle` makes the header and keeps the journal.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use spindle_engine::StreamFile;
use spindle_engine::durable::{self, Durability, Header, SinkKind, SyncKind};

use crate::failure::{Failure, reason, status_of_signal};
use crate::options::{CheckOptions, WriterOptions};
use crate::output;
use crate::stopping::{StopSignal, Work};
use crate::target;

/// A header is a few hundred bytes.
const LARGEST_HEADER: u64 = 1 << 16;

/// Writes until its time is over, a signal comes or the power is cut. Standard output is the journal.
pub(crate) fn write(options: &WriterOptions) -> Result<u8, Failure> {
    let stopping = StopSignal::begin()?;
    let header = header_of(&options.header)?;
    let opened = target::open_kept(options, &stopping)?;
    let workers = header.plan.workers as usize;
    let dsync = header.plan.sync == SyncKind::Dsync;
    let files = opened.files_for(workers, true, !options.is_buffered, dsync)?;
    let targets: Vec<StreamFile> = files.described.iter().flatten().copied().collect();
    let journal = std::io::stdout().as_raw_fd();
    let started = Durability::start(header, &targets, journal, SinkKind::Stream, options.seconds);
    let test = Arc::new(started.map_err(|error| Failure::usage(error.to_string()))?);
    stopping.watch(Work::Durability(Arc::clone(&test)));
    let figures = test
        .finish()
        .map_err(|error| Failure::failed(error.to_string()))?;
    if let Some(failure) = figures.failure {
        let path = &options.target;
        return Err(Failure::failed(format!(
            "{path}: {}: {}",
            failure.what, failure.why
        )));
    }
    Ok(stopping.signal().map_or(0, status_of_signal))
}

/// Prints the findings as JSON.
pub(crate) fn check(options: &CheckOptions) -> Result<u8, Failure> {
    let name = &options.journal;
    let wrong = |why: String| Failure::usage(format!("--journal {name}: {why}"));
    let journal = File::open(name).map_err(|error| wrong(reason(&error)))?;
    let opened = target::open_read(&options.target)?;
    let files = opened.files_for(1, false, true, false)?;
    let [file] = files
        .described
        .iter()
        .flatten()
        .copied()
        .collect::<Vec<_>>()[..]
    else {
        return Err(wrong("no descriptor of the target".to_owned()));
    };
    let findings =
        durable::check(journal.as_raw_fd(), file).map_err(|error| wrong(error.to_string()))?;
    let text = serde_json::to_string(&findings).map_err(|error| wrong(error.to_string()))?;
    output::print(&(text + "\n"))
}

fn header_of(name: &str) -> Result<Header, Failure> {
    let wrong = |why: String| Failure::usage(format!("--header {name}: {why}"));
    let file = File::open(name).map_err(|error| wrong(reason(&error)))?;
    let mut text = String::new();
    file.take(LARGEST_HEADER)
        .read_to_string(&mut text)
        .map_err(|error| wrong(reason(&error)))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}
