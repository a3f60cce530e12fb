//! Operations on names: each done once, counted as the file system counts, never outside the folder.

mod common;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use common::{is_root, stream, workload};
use spindle_engine::{EngineError, NullTarget, Options, Run, StreamFile};
use spindle_measure::{EndedBy, OpKind, RunFigures};
use spindle_workload::*;

/// A folder that goes with the value.
struct Folder {
    path: PathBuf,
    file: File,
}

impl Folder {
    fn new() -> Folder {
        Folder::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("spindle-names-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("folder");
        let file = File::open(&path).expect("folder");
        Folder { path, file }
    }

    fn stream_file(&self) -> StreamFile {
        StreamFile {
            fd: self.file.as_raw_fd(),
            size_bytes: 0,
            block_bytes: 1,
            memory_align: 1,
        }
    }

    /// Paths below the folder that are not directories, and the directories.
    fn content(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut files, mut directories) = (BTreeSet::new(), BTreeSet::new());
        let name = |path: &Path| {
            path.strip_prefix(&self.path)
                .expect("below")
                .to_string_lossy()
                .into_owned()
        };
        for directory in fs::read_dir(&self.path).expect("folder") {
            let directory = directory.expect("entry").path();
            directories.insert(name(&directory));
            for file in fs::read_dir(&directory).expect("directory") {
                files.insert(name(&file.expect("entry").path()));
            }
        }
        (files, directories)
    }

    fn run(&self, load: &Workload) -> RunFigures {
        self.start(load).expect("start").finish().expect("figures")
    }

    fn start(&self, load: &Workload) -> Result<Run, EngineError> {
        let files = load
            .streams
            .iter()
            .map(|_| vec![self.stream_file()])
            .collect();
        Run::start(load, files, Options::default())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

const TREE: Tree = Tree {
    name: String::new(),
    files: 1000,
    directories: 7,
    size: None,
    each: Each::Stream,
};

fn names(operation: Op, tree: &Tree) -> Stream {
    let mut names = stream("names");
    names.names = Some(Names {
        operation,
        order: Order::Sequential,
        passes: Some(1),
        tree: tree.clone(),
    });
    names
}

/// A load of one stream that ends by itself.
fn alone(stream: Stream) -> Workload {
    let mut load = workload(vec![stream]);
    load.end = End::default();
    load
}

fn done(operation: Op, tree: &Tree) -> Workload {
    alone(names(operation, tree))
}

fn count(figures: &RunFigures, kind: OpKind) -> u64 {
    figures.streams[0]
        .of(kind)
        .map_or(0, |figures| figures.requests)
}

#[test]
fn each_operation_is_done_once_to_every_name_in_any_order_by_any_number_of_threads() {
    for (workers, depth, order) in [
        (1, 1, Order::Sequential),
        (3, 1, Order::Random),
        (2, 3, Order::Sequential),
        (64, 1, Order::Random),
    ] {
        let folder = Folder::new();
        let run = |operation: Op| {
            let mut stream = names(operation, &TREE);
            (stream.workers, stream.depth) = (workers, depth);
            stream.names.as_mut().expect("names").order = order;
            let figures = folder.run(&alone(stream));
            assert_eq!(figures.ended_by, EndedBy::Requests, "{operation:?}");
            assert_eq!(figures.generator.engine, "names");
            assert!(figures.streams[0].errors.is_empty());
            figures
        };
        assert_eq!(count(&run(Op::Mkdir), OpKind::Mkdir), 7);
        assert_eq!(count(&run(Op::Create), OpKind::Create), 1000);
        let (files, directories) = folder.content();
        assert_eq!((files.len(), directories.len()), (1000, 7));
        assert!(files.contains("d0000000/f0000000000"), "{files:?}");
        // 1000 files in 7 directories: 143 in each but the last.
        assert!(files.contains("d0000006/f0000000999"), "{files:?}");
        assert_eq!(count(&run(Op::Stat), OpKind::Stat), 1000);
        assert_eq!(count(&run(Op::Open), OpKind::Open), 1000);
        assert_eq!(count(&run(Op::Readdir), OpKind::Readdir), 7);
        assert_eq!(folder.content().0, files, "looking changes nothing");

        assert_eq!(count(&run(Op::Rename), OpKind::Rename), 1000);
        let renamed: BTreeSet<_> = files.iter().map(|name| name.replace("/f", "/r")).collect();
        assert_eq!(folder.content().0, renamed);
        // Later operations find them under either name.
        assert_eq!(count(&run(Op::Stat), OpKind::Stat), 1000);
        assert_eq!(count(&run(Op::Unlink), OpKind::Unlink), 1000);
        assert!(folder.content().0.is_empty());
        assert_eq!(count(&run(Op::Rmdir), OpKind::Rmdir), 7);
        assert!(folder.content().1.is_empty());
    }
}

#[test]
fn the_series_holds_what_the_figures_hold() {
    let folder = Folder::new();
    folder.run(&done(Op::Mkdir, &TREE));
    let figures = folder.run(&done(Op::Create, &TREE));
    let writes: u64 = figures
        .series
        .iter()
        .map(|interval| interval.streams[0].writes)
        .sum();
    assert_eq!(writes, 1000);
    let figures = folder.run(&done(Op::Stat, &TREE));
    let reads: u64 = figures
        .series
        .iter()
        .map(|interval| interval.streams[0].reads)
        .sum();
    assert_eq!(reads, 1000);
}

#[test]
fn workers_with_files_of_their_own_have_directories_of_their_own() {
    let folder = Folder::new();
    let tree = Tree {
        files: 10,
        directories: 2,
        each: Each::Worker,
        ..TREE
    };
    for operation in [Op::Mkdir, Op::Create] {
        let mut stream = names(operation, &tree);
        stream.workers = 3;
        let figures = folder.run(&alone(stream));
        let all = if operation == Op::Mkdir { 6 } else { 30 };
        assert_eq!(figures.streams[0].requests(), all);
    }
    let (files, directories) = folder.content();
    assert_eq!((files.len(), directories.len()), (30, 6));
    assert!(files.contains("d0000005/f0000000029"));
}

#[test]
fn files_are_made_with_the_bytes_asked_for_and_none_is_like_another() {
    let folder = Folder::new();
    let tree = Tree {
        files: 40,
        size: Some(Size::Range {
            min: 1,
            max: 20_000,
            step: 1,
        }),
        ..TREE
    };
    folder.run(&done(Op::Mkdir, &tree));
    let figures = folder.run(&done(Op::Create, &tree));
    let (files, _) = folder.content();
    let contents: BTreeSet<Vec<u8>> = files
        .iter()
        .map(|name| fs::read(folder.path.join(name)).expect("file"))
        .collect();
    assert_eq!(contents.len(), 40);
    let bytes: usize = contents.iter().map(Vec::len).sum();
    let create = figures.streams[0].of(OpKind::Create).expect("creates");
    assert_eq!(create.bytes, bytes as u64);
    assert_eq!(figures.streams[0].total_write_bytes, bytes as u64);
    assert!(contents.iter().all(|content| content.len() <= 20_000));
}

#[test]
fn what_can_be_repeated_is_repeated_as_often_as_asked() {
    let folder = Folder::new();
    folder.run(&done(Op::Mkdir, &TREE));
    folder.run(&done(Op::Create, &TREE));
    for operation in [Op::Stat, Op::Rename] {
        let mut load = done(operation, &TREE);
        load.streams[0].names.as_mut().expect("names").passes = Some(3);
        load.streams[0].names.as_mut().expect("names").order = Order::Random;
        assert_eq!(folder.run(&load).streams[0].requests(), 3000);
    }
    // Three times renamed is renamed.
    assert!(folder.content().0.iter().all(|name| name.contains("/r")));

    let mut load = done(Op::Open, &TREE);
    load.streams[0].names.as_mut().expect("names").passes = None;
    load.end.requests = Some(12_345);
    let figures = folder.run(&load);
    assert_eq!(
        (count(&figures, OpKind::Open), figures.ended_by),
        (12_345, EndedBy::Requests)
    );
}

#[test]
fn an_end_by_requests_leaves_the_other_names_alone() {
    let folder = Folder::new();
    folder.run(&done(Op::Mkdir, &TREE));
    let mut load = done(Op::Create, &TREE);
    load.streams[0].end.requests = Some(300);
    assert_eq!(count(&folder.run(&load), OpKind::Create), 300);
    assert_eq!(folder.content().0.len(), 300);
}

#[test]
fn paced_and_open_loops_end_with_the_names() {
    let folder = Folder::new();
    folder.run(&done(Op::Mkdir, &TREE));
    let mut load = done(Op::Create, &TREE);
    load.streams[0].rate_limit = Some(RateLimit::Iops { iops: 20_000.0 });
    let figures = folder.run(&load);
    assert_eq!(count(&figures, OpKind::Create), 1000);
    // 999 spacings of 50 us, at the least.
    assert!(figures.measured_ns > 49_000_000, "{}", figures.measured_ns);

    let mut load = done(Op::Unlink, &TREE);
    load.streams[0].arrival = Arrival::Open {
        rate_iops: 20_000.0,
        spacing: Spacing::Constant,
    };
    let figures = folder.run(&load);
    assert_eq!(count(&figures, OpKind::Unlink), 1000);
    let unlink = figures.streams[0].of(OpKind::Unlink).expect("unlinks");
    assert!(unlink.service.is_some());
}

#[test]
fn changes_are_synced_as_often_as_asked_and_at_the_end() {
    let folder = Folder::new();
    let run = |operation: Op, every: u32| {
        let mut load = done(operation, &TREE);
        load.streams[0].sync.fsync_every = every;
        load.streams[0].sync.end_fsync = every == 0;
        folder.run(&load)
    };
    assert_eq!(count(&run(Op::Mkdir, 1), OpKind::Fsync), 7);
    assert_eq!(count(&run(Op::Create, 4), OpKind::Fsync), 250);
    assert_eq!(
        count(&run(Op::Stat, 1), OpKind::Fsync),
        0,
        "nothing to sync"
    );
    assert_eq!(count(&run(Op::Rename, 10), OpKind::Fsync), 100);
    let last = run(Op::Unlink, 0);
    assert_eq!(count(&last, OpKind::Fsync), 1);
    assert_eq!(count(&run(Op::Rmdir, 0), OpKind::Fsync), 1);
}

#[test]
fn a_name_that_is_taken_ends_the_run_with_its_number() {
    let folder = Folder::new();
    folder.run(&done(Op::Mkdir, &TREE));
    fs::write(folder.path.join("d0000001/f0000000150"), b"foreign").expect("plant");
    let figures = folder.run(&done(Op::Create, &TREE));
    let EndedBy::Error {
        errno,
        ref op,
        offset,
        ..
    } = figures.ended_by
    else {
        panic!("{:?}", figures.ended_by)
    };
    assert_eq!((errno, op.as_str(), offset), (libc::EEXIST, "create", 150));
    assert_eq!(count(&figures, OpKind::Create), 150);
    let planted = fs::read(folder.path.join("d0000001/f0000000150")).expect("planted");
    assert_eq!(planted, b"foreign");
}

#[test]
fn a_full_file_system_ends_the_run() {
    if !is_root() {
        eprintln!("skipped: mounting a small tmpfs needs root");
        return;
    }
    let mount = Folder::new();
    let status = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "none"])
        .arg(&mount.path)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "mount");
    let figures = {
        let folder = Folder::within(&mount.path);
        let tree = Tree {
            size: Some(Size::Fixed { bytes: 4096 }),
            ..TREE
        };
        folder.run(&done(Op::Mkdir, &tree));
        folder.run(&done(Op::Create, &tree))
    };
    let status = std::process::Command::new("umount")
        .arg(&mount.path)
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "nothing is left open"
    );
    let EndedBy::Error { errno, op, .. } = figures.ended_by else {
        panic!("{:?}", figures.ended_by)
    };
    assert_eq!((errno, op.as_str()), (libc::ENOSPC, "create"));
}

#[test]
fn links_are_never_followed() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let outside = elsewhere.path.join("mine");
    fs::write(&outside, b"keep").expect("outside");
    let tree = Tree {
        files: 10,
        directories: 2,
        ..TREE
    };
    folder.run(&done(Op::Mkdir, &tree));
    folder.run(&done(Op::Create, &tree));

    // A link in the place of a file: looked at as a link, never opened, renamed and removed as a link.
    let file = folder.path.join("d0000000/f0000000003");
    fs::remove_file(&file).expect("remove");
    symlink(&outside, &file).expect("plant");
    let EndedBy::Error { errno, offset, .. } = folder.run(&done(Op::Open, &tree)).ended_by else {
        panic!("a link was opened")
    };
    assert_eq!((errno, offset), (libc::ELOOP, 3));
    assert_eq!(count(&folder.run(&done(Op::Stat, &tree)), OpKind::Stat), 10);
    folder.run(&done(Op::Rename, &tree));
    assert_eq!(fs::read(&outside).expect("outside"), b"keep");

    // A link in the place of a directory.
    let directory = folder.path.join("d0000001");
    fs::rename(&directory, folder.path.join("away")).expect("rename");
    symlink(&elsewhere.path, &directory).expect("plant");
    for operation in [Op::Unlink, Op::Create] {
        let error = folder
            .start(&done(operation, &tree))
            .expect("start")
            .finish();
        let text = error.expect_err("a link was followed").to_string();
        assert!(
            text.contains("d0000001") && text.contains("Not a directory"),
            "{text}"
        );
    }
    let EndedBy::Error { errno, .. } = folder.run(&done(Op::Readdir, &tree)).ended_by else {
        panic!("a link was followed")
    };
    assert!([libc::ELOOP, libc::ENOTDIR].contains(&errno), "{errno}");
    let EndedBy::Error { errno, .. } = folder.run(&done(Op::Rmdir, &tree)).ended_by else {
        panic!("a link was removed")
    };
    assert!([libc::ENOTDIR, libc::ENOTEMPTY].contains(&errno), "{errno}");
    assert_eq!(fs::read_dir(&elsewhere.path).expect("elsewhere").count(), 1);
    assert_eq!(fs::read(&outside).expect("outside"), b"keep");
}

#[test]
fn a_missing_directory_is_reported_before_anything_is_done() {
    let folder = Folder::new();
    let run = folder.start(&done(Op::Create, &TREE)).expect("start");
    let text = run.finish().expect_err("no directories").to_string();
    assert!(
        text.contains("directories of the tree") && text.contains("d0000000"),
        "{text}"
    );
}

#[test]
fn names_need_a_folder_and_data_a_file() {
    let folder = Folder::new();
    let text = folder
        .start(&workload(vec![stream("data")]))
        .expect_err("data")
        .to_string();
    assert!(text.contains("the target is a folder"), "{text}");

    let scratch = common::Scratch::new(4096);
    let refused = Run::start(
        &done(Op::Stat, &TREE),
        vec![vec![scratch.stream_file()]],
        Options::default(),
    );
    let text = refused.expect_err("a file").to_string();
    assert!(text.contains("not a folder"), "{text}");
}

#[test]
fn the_generator_alone_takes_every_name_once() {
    let target = NullTarget {
        size_bytes: 0,
        service_ns: 0,
    };
    let run = Run::start_null(&done(Op::Stat, &TREE), target, Options::default()).expect("start");
    let figures = run.finish().expect("figures");
    assert_eq!(count(&figures, OpKind::Stat), 1000);
}

#[test]
fn a_tree_of_many_directories_is_not_bounded_by_the_usual_limit_of_open_files() {
    let folder = Folder::new();
    let tree = Tree {
        files: 3000,
        directories: 1500,
        ..TREE
    };
    folder.run(&done(Op::Mkdir, &tree));
    assert_eq!(
        count(&folder.run(&done(Op::Create, &tree)), OpKind::Create),
        3000
    );
}

#[test]
fn what_is_made_belongs_to_its_owner_alone() {
    let folder = Folder::new();
    folder.run(&done(Op::Mkdir, &TREE));
    folder.run(&done(Op::Create, &TREE));
    let mode = |path: &str| fs::metadata(folder.path.join(path)).expect("there").mode() & 0o777;
    assert_eq!(
        (mode("d0000000"), mode("d0000000/f0000000000")),
        (0o700, 0o600)
    );
}

trait Requests {
    fn requests(&self) -> u64;
}

impl Requests for spindle_measure::StreamFigures {
    fn requests(&self) -> u64 {
        let kinds = OpKind::ALL
            .into_iter()
            .filter(|&kind| kind != OpKind::Fsync);
        kinds
            .filter_map(|kind| self.of(kind))
            .map(|figures| figures.requests)
            .sum()
    }
}
