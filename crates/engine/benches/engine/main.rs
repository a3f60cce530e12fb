//! Cost of a request: the engine beside bare loops that keep no statistics, and beside fio.
//!
//! One worker pinned to one core, 4 KiB random reads, full histogram, exact time stamps. The contenders take turns within
//! each round, so that what the machine does besides hits all of them; a figure is the median over the rounds of
//! the ratio within a round. Run it with `make bench-engine`; `--help` lists the options.
#![allow(unsafe_code)]

mod bare;
mod fio;
mod interrupt;
mod ours;
#[path = "../../src/system.rs"]
mod system;
mod table;
mod target;

use std::process::ExitCode;

use table::{Bound, Contender, Section};
use target::{CachedFile, Loop, Zram};

/// The result of one contender in one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    iops: f64,
    user_ns_per_io: f64,
    system_ns_per_io: f64,
}

struct Settings {
    rounds: usize,
    seconds: f64,
    cpu: usize,
    only: Option<String>,
    depths: Vec<u32>,
    fio: bool,
    directory: std::path::PathBuf,
}

const HELP: &str = "cargo bench -p spindle-engine --bench engine -- [OPTIONS]
  --rounds N        rounds of each comparison (default 7)
  --seconds S       length of each run; fio's are a whole second at least (default 0.5)
  --cpu N           CPU that all contenders are pinned to (default 1, or 0 if there is no other)
  --only SECTION    cached, loop, zram or null
  --depth N         only this many outstanding requests
  --without-fio     leave fio out
  --dir DIRECTORY   where the cached file is made (default: the temporary directory)";

fn main() -> ExitCode {
    let settings = match settings() {
        Ok(settings) => settings,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    interrupt::watch();
    let fio = fio::version().filter(|_| settings.fio);
    match &fio {
        _ if !settings.fio => println!("without fio, pinned to CPU {}", settings.cpu),
        Some(version) => println!("{version}, pinned to CPU {}", settings.cpu),
        None => println!("fio is not installed (apt-get install fio): its rows are left out"),
    }
    let wanted = |name: &str| settings.only.as_deref().is_none_or(|only| only == name);
    let mut kept = true;
    if wanted("null") {
        kept &= null_section(&settings, fio.is_some());
    }
    if wanted("cached") {
        match CachedFile::new(&settings.directory) {
            Ok(file) => {
                for &depth in &settings.depths {
                    kept &= section(
                        &settings,
                        fio.is_some(),
                        "page-cached file, 256 MiB",
                        file.target(),
                        depth,
                    );
                }
            }
            Err(why) => println!("cached file: skipped, {why}"),
        }
    }
    if wanted("loop") && !interrupt::came() {
        match Loop::new(&settings.directory) {
            Ok(device) => {
                for &depth in &settings.depths {
                    kept &= section(
                        &settings,
                        fio.is_some(),
                        "loop device, O_DIRECT, 256 MiB",
                        device.target(),
                        depth,
                    );
                }
            }
            Err(why) => println!("\nloop device: skipped, {why}"),
        }
    }
    if wanted("zram") && !interrupt::came() {
        match Zram::new() {
            Ok(zram) => {
                for &depth in &settings.depths {
                    kept &= section(
                        &settings,
                        fio.is_some(),
                        "zram, O_DIRECT, 256 MiB",
                        zram.target(),
                        depth,
                    );
                }
            }
            Err(why) => println!("\nzram: skipped, {why}"),
        }
    }
    if interrupt::came() {
        // As a shell reports it: 128 and the number of SIGINT.
        ExitCode::from(130)
    } else if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One target at one depth.
fn section(
    settings: &Settings,
    fio: bool,
    name: &str,
    target: target::BenchTarget<'_>,
    depth: u32,
) -> bool {
    let seconds = settings.seconds;
    let cpu = settings.cpu;
    let mut contenders = Vec::new();
    let (bare, engine, floor) = if depth == 1 {
        ("bare pread loop", ours::Engine::Pread, 0.97)
    } else {
        ("bare ring loop", ours::Engine::Ring, 0.95)
    };
    contenders.push(Contender::new(bare, move || {
        if depth == 1 {
            bare::pread_loop(target, seconds, cpu)
        } else {
            bare::ring_loop(target, depth, seconds, cpu)
        }
    }));
    contenders.push(Contender::new(engine.name(), move || {
        ours::run(target, engine, depth, seconds, cpu)
    }));
    contenders.push(Contender::new("spindle, its own choice", move || {
        ours::run(target, ours::Engine::Auto, depth, seconds, cpu)
    }));
    if fio {
        contenders.push(Contender::new("fio, io_uring, default", move || {
            fio::default_ring(target, depth, seconds, cpu)
        }));
        contenders.push(Contender::new("fio, tuned", move || {
            fio::tuned(target, depth, seconds, cpu)
        }));
    }
    let ring = contenders.len();
    if depth == 1 {
        contenders.push(Contender::new("bare ring loop", move || {
            bare::ring_loop(target, depth, seconds, cpu)
        }));
        contenders.push(Contender::new(ours::Engine::Ring.name(), move || {
            ours::run(target, ours::Engine::Ring, depth, seconds, cpu)
        }));
    }
    let section = Section::measure(
        &format!("{name}, depth {depth}"),
        settings.rounds,
        contenders,
    );
    if interrupt::came() {
        return false;
    }
    section.print();
    let mut bounds = vec![
        Bound::at_least("engine / bare loop", section.ratio(1, 0), floor),
        Bound::at_most(
            "user CPU of the engine, ns per I/O",
            section.user_ns(1),
            60.0,
        ),
    ];
    if depth == 1 {
        bounds.push(Bound::at_least(
            "ring of the engine / bare ring",
            section.ratio(ring + 1, ring),
            0.95,
        ));
    }
    if fio && depth > 1 {
        bounds.push(Bound::at_least(
            "engine / fio default",
            section.ratio(1, 3),
            1.9,
        ));
    }
    table::judge(&bounds)
}

fn null_section(settings: &Settings, fio: bool) -> bool {
    let (seconds, cpu) = (settings.seconds, settings.cpu);
    let mut contenders = vec![
        Contender::new("spindle, depth 1", move || ours::null(1, seconds, cpu)),
        Contender::new("spindle, depth 32", move || ours::null(32, seconds, cpu)),
    ];
    if fio {
        contenders.push(Contender::new("fio, null, default", move || {
            fio::null(false, seconds, cpu)
        }));
        contenders.push(Contender::new("fio, null, norandommap", move || {
            fio::null(true, seconds, cpu)
        }));
    }
    let section = Section::measure("null target (no system call)", settings.rounds, contenders);
    if interrupt::came() {
        return false;
    }
    section.print();
    table::judge(&[
        Bound::at_most("CPU per request, depth 1, ns", section.cpu_ns(0), 40.0),
        Bound::at_most("CPU per request, depth 32, ns", section.cpu_ns(1), 40.0),
    ])
}

fn settings() -> Result<Settings, String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut settings = Settings {
        rounds: 7,
        seconds: 0.5,
        cpu: usize::from(cpus > 1),
        only: None,
        depths: vec![1, 32, 128],
        fio: true,
        directory: std::env::temp_dir(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or(format!("{argument} needs a value\n{HELP}"))
        };
        let number = |text: String| {
            text.parse::<f64>()
                .map_err(|_| format!("{text:?} is not a number\n{HELP}"))
        };
        match argument.as_str() {
            // Passed by cargo.
            "--bench" => {}
            "--rounds" => settings.rounds = (number(value()?)? as usize).max(1),
            "--seconds" => settings.seconds = number(value()?)?.max(0.05),
            "--cpu" => settings.cpu = number(value()?)? as usize,
            "--only" => settings.only = Some(value()?),
            "--depth" => settings.depths = vec![number(value()?)? as u32],
            "--without-fio" => settings.fio = false,
            "--dir" => settings.directory = value()?.into(),
            _ => return Err(HELP.to_owned()),
        }
    }
    Ok(settings)
}
