//! `spindle-agent`: one workload or durability test on one target, without Python; its result as JSON, which `spindle`
//! reads.
//!
//! The load is that of `spindle run`: the same parser of workloads, the same engine. What the agent adds is what Python does
//! there around a load: the guard in small, the counters and settings of the block stack as the kernel prints them.
//! `docs/reference/agent.md` is its page.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod capture;
mod counters;
mod devices;
mod document;
mod durability;
mod failure;
mod journal;
mod knobs;
mod measure;
mod options;
mod output;
mod session;
mod stopping;
mod target;
mod usage;

use std::io::Write;
use std::process::ExitCode;

use failure::Failure;
use options::Command;

fn main() -> ExitCode {
    match carry_out() {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            // Nobody may be left to read it.
            drop(writeln!(std::io::stderr(), "spindle-agent: {failure}"));
            ExitCode::from(failure.status())
        }
    }
}

fn carry_out() -> Result<u8, Failure> {
    match options::parse(std::env::args_os().skip(1))? {
        Command::Version => {
            output::print(concat!("spindle-agent ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        Command::Help => output::print(options::HELP),
        Command::Run(options) => measure::carry_out(&options),
        Command::Session => session::carry_out(),
        Command::Restore => knobs::restore_all(),
        Command::Keep => knobs::keep(),
        Command::Durability(options) => durability::write(&options),
        Command::Check(options) => durability::check(&options),
    }
}
