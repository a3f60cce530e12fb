//! The result file: a new one, never another's.
#![allow(clippy::disallowed_methods)] // Opened with O_EXCL: it cannot be a target or anyone's file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use crate::failure::{Failure, reason};
use crate::options::STANDARD;

/// Where the result goes. A file is made at once, so that no load runs for nothing, and is removed if there is no result.
#[derive(Debug)]
pub(crate) struct Output {
    name: String,
    file: Option<File>,
    written: bool,
}

impl Output {
    pub(crate) fn reserve(name: &str) -> Result<Output, Failure> {
        let mut output = Output {
            name: name.to_owned(),
            file: None,
            written: false,
        };
        if name != STANDARD {
            let made = OpenOptions::new().write(true).create_new(true).open(name);
            output.file = Some(made.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Failure::usage(format!(
                    "--output {name}: exists already; name a new file, or remove it"
                )),
                _ => Failure::usage(format!("--output {name}: {}", reason(&error))),
            })?);
        }
        Ok(output)
    }

    pub(crate) fn write(mut self, text: &str) -> Result<(), Failure> {
        let done = match &mut self.file {
            Some(file) => file
                .write_all(text.as_bytes())
                .and_then(|()| file.sync_all()),
            None => put(text),
        };
        self.written = done.is_ok();
        done.map_err(|error| {
            Failure::failed(format!(
                "the result cannot be written to {}: {}",
                self.name,
                reason(&error)
            ))
        })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.file.is_some() && !self.written {
            drop(std::fs::remove_file(&self.name));
        }
    }
}

/// To standard output.
pub(crate) fn print(text: &str) -> Result<u8, Failure> {
    match put(text) {
        Ok(()) => Ok(0),
        Err(error) => Err(Failure::failed(format!(
            "the output cannot be written: {}",
            reason(&error)
        ))),
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
