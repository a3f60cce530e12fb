//! Overhead of the engine for an operation on a name: the same system calls on the same names, made by a bare loop,
//! and by the engine with its clock, recorder and ends. Rounds alternate; the fastest of each are compared, which
//! nothing else on the machine has slowed down.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use spindle_engine::{Options, Run, StreamFile};
use spindle_measure::OpKind;
use spindle_workload::{Each, Names, Op, Order, Tree, Workload};

/// Most that the engine may add to an operation, ns.
const GOAL_NS: f64 = 1000.0;
const USAGE: &str = "\
cargo bench -p spindle-engine --bench names -- [OPTIONS]
  --rounds N        rounds of each comparison (default 15)
  --files N         files of a round (default 20000)
  --directories N   directories they are in (default 500)
  --dir DIRECTORY   where the tree is made; may be repeated (default: /dev/shm and the temporary directory)";

struct Settings {
    rounds: usize,
    files: u64,
    directories: u64,
    places: Vec<PathBuf>,
}

fn main() {
    let Some(options) = options() else {
        println!("{USAGE}");
        return;
    };
    for place in &options.places {
        compare(place, &options);
    }
}

fn options() -> Option<Settings> {
    let mut options = Settings {
        rounds: 15,
        files: 20_000,
        directories: 500,
        places: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bench" => {}
            "--rounds" => options.rounds = arguments.next()?.parse().ok()?,
            "--files" => options.files = arguments.next()?.parse().ok()?,
            "--directories" => options.directories = arguments.next()?.parse().ok()?,
            "--dir" => options.places.push(arguments.next()?.into()),
            _ => return None,
        }
    }
    if options.places.is_empty() {
        options.places = vec!["/dev/shm".into(), std::env::temp_dir()];
    }
    Some(options)
}

fn compare(place: &Path, options: &Settings) {
    let folder = place.join(format!("spindle-bench-names-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder of its own");
    let root = File::open(&folder).expect("folder");
    println!(
        "\n{}: {} files in {} directories, ns an operation, fastest of {} alternating rounds",
        place.display(),
        options.files,
        options.directories,
        options.rounds
    );
    println!("{:10} {:>10} {:>10} {:>10}", "", "loop", "spindle", "added");
    let operations = [
        Op::Mkdir,
        Op::Create,
        Op::Stat,
        Op::Open,
        Op::Rename,
        Op::Unlink,
        Op::Rmdir,
    ];
    let (mut bare, mut ours) = (vec![Vec::new(); 7], vec![Vec::new(); 7]);
    for _ in 0..options.rounds {
        for (index, &operation) in operations.iter().enumerate() {
            bare[index].push(by_loop(root.as_raw_fd(), operation, options));
        }
        for (index, &operation) in operations.iter().enumerate() {
            ours[index].push(by_engine(&root, operation, options));
        }
    }
    for (index, operation) in operations.iter().enumerate() {
        let (bare, ours) = (fastest(&bare[index]), fastest(&ours[index]));
        let added = ours - bare;
        let name = format!("{operation:?}").to_lowercase();
        let goal = if added < GOAL_NS { "" } else { "  MISS" };
        println!("{name:10} {bare:10.0} {ours:10.0} {added:10.0}{goal}");
    }
    std::fs::remove_dir(&folder).expect("everything was removed");
}

fn fastest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Plain calls, one after another: names are made beforehand, directories are open.
fn by_loop(root: RawFd, operation: Op, options: &Settings) -> f64 {
    let in_each = options.files.div_ceil(options.directories);
    let name = |text: String| CString::new(text).expect("name");
    let directories: Vec<CString> = (0..options.directories)
        .map(|number| name(format!("d{number:07}")))
        .collect();
    if operation.is_on_directories() {
        let begun = Instant::now();
        for directory in &directories {
            // SAFETY: the name is a valid string.
            let done = unsafe {
                match operation {
                    Op::Mkdir => libc::mkdirat(root, directory.as_ptr(), 0o700),
                    _ => libc::unlinkat(root, directory.as_ptr(), libc::AT_REMOVEDIR),
                }
            };
            assert_eq!(done, 0);
        }
        return begun.elapsed().as_nanos() as f64 / options.directories as f64;
    }
    let open: Vec<RawFd> = directories
        .iter()
        // SAFETY: the name is a valid string.
        .map(|directory| unsafe {
            libc::openat(root, directory.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY)
        })
        .collect();
    let old: Vec<CString> = (0..options.files)
        .map(|number| name(format!("f{number:010}")))
        .collect();
    let new: Vec<CString> = (0..options.files)
        .map(|number| name(format!("r{number:010}")))
        .collect();
    let begun = Instant::now();
    for number in 0..options.files as usize {
        let directory = open[number / in_each as usize];
        // After the renaming the files are called by their new names.
        let (file, other) = match operation {
            Op::Unlink => (new[number].as_ptr(), old[number].as_ptr()),
            _ => (old[number].as_ptr(), new[number].as_ptr()),
        };
        // SAFETY: the names are valid strings, the descriptors are closed once, `status` takes the answer.
        let done = unsafe {
            match operation {
                Op::Create => {
                    const FLAGS: libc::c_int = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
                    libc::close(libc::openat(
                        directory,
                        file,
                        FLAGS | libc::O_NOFOLLOW,
                        0o600,
                    ))
                }
                Op::Open => libc::close(libc::openat(
                    directory,
                    file,
                    libc::O_RDONLY | libc::O_NOFOLLOW,
                )),
                Op::Stat => {
                    let mut status: libc::stat = std::mem::zeroed();
                    libc::fstatat(directory, file, &raw mut status, libc::AT_SYMLINK_NOFOLLOW)
                }
                Op::Rename => libc::renameat(directory, file, directory, other),
                _ => libc::unlinkat(directory, file, 0),
            }
        };
        assert_eq!(done, 0);
    }
    let each = begun.elapsed().as_nanos() as f64 / options.files as f64;
    for fd in open {
        // SAFETY: opened above.
        unsafe { libc::close(fd) };
    }
    each
}

fn by_engine(root: &File, operation: Op, options: &Settings) -> f64 {
    let mut load = Workload::parse("seconds = 60", "bench", "bench", &[]).expect("defaults");
    load.streams[0].names = Some(Names {
        operation,
        order: Order::Sequential,
        passes: Some(1),
        tree: Tree {
            name: "files".to_owned(),
            files: options.files,
            directories: options.directories,
            size: None,
            each: Each::Stream,
        },
    });
    let target = StreamFile {
        fd: root.as_raw_fd(),
        size_bytes: 0,
        block_bytes: 1,
        memory_align: 1,
    };
    let run = Run::start(&load, vec![vec![target]], Options::default()).expect("start");
    let figures = run.finish().expect("figures");
    let kind = OpKind::ALL[operation as usize];
    let done = figures.streams[0].of(kind).expect("operations");
    // The time between the first issue and the last completion, as in the loop.
    figures.streams[0].measured_ns as f64 / done.requests as f64
}
