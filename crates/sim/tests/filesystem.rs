//! `[filesystem]`: where the test file is, and how its pages are written.

mod common;

use std::io::Write;
use std::sync::{Arc, Mutex};

use common::{machine, workload};
use spindle_sim::{Machine, SimFigures, SimOptions, simulate};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Drives of 100 us and 200 MB/s, 4 GiB each.
fn on(count: u64, tables: &str) -> Machine {
    machine(&format!(
        "{tables}[[drive]]\ncount = {count}\nservice = '100us'\ntransfer_rate = '200 MB/s'\nflush = '100us'\n\
         capacity = '4GiB'\nqueue_depth = 32\n"
    ))
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A command of a drive: drive, first byte, bytes.
type Command = (String, u64, u64);

fn traced(machine: &Machine, load: &str) -> (SimFigures, Vec<Command>) {
    let lines = Lines::default();
    let options = SimOptions {
        trace: Some(Box::new(lines.clone())),
        ..SimOptions::default()
    };
    let figures = simulate(machine, &workload(load), options).unwrap();
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let column = |name: &str| head.iter().position(|of| *of == name).unwrap();
    let (drive, lbn, blocks) = (column("drive"), column("lbn"), column("blocks"));
    let bytes = |text: &str| text.parse::<u64>().unwrap() * 512;
    let commands = rows
        .filter(|row| !row[lbn].is_empty())
        .map(|row| (row[drive].to_owned(), bytes(row[lbn]), bytes(row[blocks])))
        .collect();
    (figures, commands)
}

const READS: &str = "seconds = 'none'\nrequests = 16\npattern = 'sequential'\nsize = '64KiB'\n";

#[test]
fn the_file_begins_where_a_new_file_system_puts_it() {
    // Blocks read with filefrag in the lab: Linux 6.1, e2fsprogs 1.47.0, xfsprogs 6.1.0. The chunks of the array go round.
    let chunk = 512 * KIB;
    for (tables, drives, block) in [
        ("[filesystem]\ntype = 'ext4'\n", 1, 34_816),
        ("[filesystem]\ntype = 'xfs'\n", 1, 24),
        ("[filesystem]\ntype = 'xfs'\nsu = '64KiB'\nsw = 4\n", 1, 32),
        (
            "[filesystem]\ntype = 'xfs'\nsu = '512KiB'\nsw = 4\n",
            1,
            256,
        ),
        ("[filesystem]\ntype = 'xfs'\nsu = '2MiB'\nsw = 4\n", 1, 1024),
        (
            "[array]\nlevel = 'raid0'\nchunk = '512KiB'\n[filesystem]\ntype = 'ext4'\n",
            4,
            34_816,
        ),
        (
            "[array]\nlevel = 'raid0'\nchunk = '512KiB'\n[filesystem]\ntype = 'xfs'\n",
            4,
            256,
        ),
    ] {
        let byte = block * 4096;
        let (slot, place) = match drives {
            1 => (0, byte),
            _ => (byte / chunk % drives, byte / chunk / drives * chunk),
        };
        for direct in [true, false] {
            let load = format!("{READS}direct = {direct}\n");
            let (_, commands) = traced(&on(drives, tables), &load);
            let (drive, first, _) = &commands[0];
            assert_eq!(
                (drive, *first),
                (&format!("drive{slot}"), place),
                "{tables}"
            );
        }
    }
}

#[test]
fn a_load_has_the_test_file_and_no_more() {
    let of = on(1, "[filesystem]\ntype = 'xfs'\nsize = '8MiB'\n");
    assert_eq!(of.capacity().unwrap(), 8 * MIB);
    let load =
        "seconds = 'none'\nrequests = 500\npattern = 'uniform'\nsize = '4KiB'\ndirect = true\n";
    let (_, commands) = traced(&of, load);
    let (first, last) = (24 * 4096, 24 * 4096 + 8 * MIB);
    assert!(
        commands
            .iter()
            .all(|of| of.1 >= first && of.1 + of.2 <= last)
    );
}

#[test]
fn a_file_larger_than_the_device_is_refused() {
    let of = on(1, "[filesystem]\ntype = 'ext4'\nsize = '5GiB'\n");
    let error = simulate(&of, &workload(READS), SimOptions::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("5368709120"), "{error}");
}

#[test]
fn pages_of_a_file_go_in_long_bios_and_those_of_a_device_one_by_one() {
    let load = "seconds = 'none'\nrequests = 1024\npattern = 'sequential'\nsize = '64KiB'\ndirect = false\n\
                write_fraction = 1\nend_fsync = true\nregion = '0-64MiB'\n";
    let writes = |tables: &str| {
        let (figures, _) = traced(&on(1, tables), load);
        assert_eq!(figures.drives[0].write_bytes, 64 * MIB);
        assert_eq!(figures.drives[0].flushes, 1);
        figures.drives[0].writes
    };
    assert_eq!(writes(""), (64 * MIB).div_ceil(1280 * KIB));
    // Bios of 16 MiB, each cut into longest requests.
    assert_eq!(
        writes("[filesystem]\ntype = 'xfs'\n"),
        4 * (16 * MIB).div_ceil(1280 * KIB)
    );
}

/// Least and longest latency of the fsyncs, ns, and their number; what the drive got: 40 writes of 4 KiB, each with what
/// `sync` says.
fn synced(tables: &str, sync: &str) -> (Vec<u64>, Vec<Command>) {
    let load = format!(
        "seconds = 'none'\nrequests = 40\npattern = 'sequential'\nwrite_fraction = 1\n{sync}\n"
    );
    let (figures, commands) = traced(&on(1, tables), &load);
    let of = figures.run.streams[0].fsync.as_ref().unwrap();
    let latencies = vec![of.latency.min_ns, of.latency.max_ns, of.requests];
    (latencies, commands)
}

/// Drives that take so long for bytes of a write, ns, and for a flush.
fn write_ns(bytes: u64) -> u64 {
    100_000 + bytes * 5
}
const FLUSH_NS: u64 = 100_000;
/// Logs are in the middle of 4 GiB; files begin far before that.
const LOG: u64 = 1800 * MIB;

#[test]
fn an_fsync_commits_what_has_changed_once_a_tick() {
    // 220 us for a write and its fsync: 40 of them take 9 ms, with three ticks.
    for (kind, record, commit) in [("ext4", 8 * KIB, Some(4 * KIB)), ("xfs", KIB, None)] {
        let tables = format!("[filesystem]\ntype = '{kind}'\n");
        let (latencies, commands) = synced(&tables, "fsync_every = 1");
        let log: Vec<_> = commands
            .iter()
            .filter(|(_, first, _)| *first >= LOG)
            .collect();
        let whole_ns = write_ns(record) + commit.map_or(0, write_ns) + 2 * FLUSH_NS;
        assert_eq!(latencies, [FLUSH_NS, whole_ns, 40], "{kind}");
        let sizes: Vec<u64> = log.iter().map(|(_, _, bytes)| *bytes).collect();
        let each: Vec<u64> = std::iter::once(record).chain(commit).collect();
        assert!(sizes.len() >= 3 * each.len(), "{kind}: {sizes:?}");
        assert_eq!(sizes, each.repeat(sizes.len() / each.len()), "{kind}");
        // In order, one behind the other.
        assert!(
            log.windows(2).all(|two| two[0].1 + two[0].2 == two[1].1),
            "{kind}: {log:?}"
        );
    }
}

#[test]
fn a_sync_of_the_data_alone_flushes_once() {
    for kind in ["ext4", "xfs"] {
        let tables = format!("[filesystem]\ntype = '{kind}'\n");
        let (latencies, _) = synced(&tables, "fdatasync_every = 1");
        assert_eq!(latencies, [FLUSH_NS, FLUSH_NS, 40], "{kind}");
    }
    let bare = "[filesystem]\ntype = 'ext4'\nmkfs = ['-O', '^has_journal']\n";
    assert_eq!(synced(bare, "fsync_every = 1").0, [FLUSH_NS, FLUSH_NS, 40]);
    let without = "[filesystem]\ntype = 'ext4'\nmount = 'barrier=0'\n";
    let (latencies, _) = synced(without, "fsync_every = 1");
    assert_eq!(latencies, [0, write_ns(8 * KIB) + write_ns(4 * KIB), 40]);
}

#[test]
fn those_who_sync_while_a_commit_is_under_way_share_the_next() {
    let tables = "[filesystem]\ntype = 'ext4'\n";
    let load =
        "seconds = 'none'\nrequests = 64\nwrite_fraction = 1\nfsync_every = 1\nworkers = 16\n";
    // Slower than a tick, so that each write is a change.
    let drive = "[[drive]]\nservice = '5ms'\nflush = '5ms'\ncapacity = '4GiB'\nqueue_depth = 32\n";
    let (figures, commands) = traced(&machine(&format!("{tables}{drive}")), load);
    assert_eq!(figures.run.streams[0].fsync.as_ref().unwrap().requests, 64);
    let commits = commands
        .iter()
        .filter(|(_, first, _)| *first >= LOG)
        .count()
        / 2;
    assert!(commits < 20, "{commits} commits for 64 fsyncs");
}

#[test]
fn who_shares_a_commit_of_xfs_flushes_once_more_after_it() {
    // Three writes one after another on one drive: the first one's fsync begins the commit, at the drive behind the others.
    let load = "seconds = 'none'\nrequests = 3\nwrite_fraction = 1\nfsync_every = 1\nworkers = 3\n\
                pattern = 'sequential'\nregion = '0-12KiB'\n";
    let drives = |count: u32, array: &str, kind: &str| {
        let text = format!(
            "[queue]\nscheduler = 'none'\n{array}[filesystem]\ntype = '{kind}'\n[[drive]]\nservice = '5ms'\n\
             flush = '5ms'\ncapacity = '4GiB'\nqueue_depth = 32\ncount = {count}\n"
        );
        traced(&machine(&text), load).0.run.elapsed_ns / 5_000_000
    };
    // A flush, the record and another flush. Of those who share it the first has a flush of its own, and the second the next.
    assert_eq!(drives(1, "", "xfs"), 3 + 3 + 2);
    // md begins one for both.
    let raid0 = "[array]\nlevel = 'raid0'\n";
    assert_eq!(drives(2, raid0, "xfs"), 3 + 3 + 1);
    // On ext4 the commit's own flush comes after all writes: it is enough.
    assert_eq!(drives(1, "", "ext4"), 3 + 4);
    assert_eq!(drives(2, raid0, "ext4"), 3 + 4);
}

/// Reads a second of seven threads beside one that writes blocks, all through the page cache.
fn reads_beside_writes(kind: &str, sync: &str) -> f64 {
    // Reads take different times: those that begin and end together keep no one waiting.
    let drive = "[[drive]]\nservice = '1ms'\nspread = 'uniform'\nservers = 8\nflush = '15ms'\ncapacity = '4GiB'\n\
                 queue_depth = 32\n";
    let text = format!(
        "[queue]\nscheduler = 'none'\n[filesystem]\ntype = '{kind}'\nsize = '2GiB'\n{drive}"
    );
    let load = format!(
        "seconds = 4\n[[stream]]\nname = 'writer'\ndirect = false\npattern = 'uniform'\nwrite_fraction = 1\n\
         workers = 4\nworker_rate = '10 IOPS'\n{sync}\n\
         [[stream]]\nname = 'reader'\ndirect = false\npattern = 'uniform'\nworkers = 7\n"
    );
    let figures = traced(&machine(&text), &load).0;
    let mut streams = figures.run.streams.iter();
    let reader = streams.find(|of| of.name == "reader").unwrap();
    reader.read.as_ref().unwrap().iops
}

#[test]
fn a_buffered_write_keeps_the_readers_of_its_file_waiting_on_xfs() {
    let lost =
        |sync: &str| 1.0 - reads_beside_writes("xfs", sync) / reads_beside_writes("ext4", sync);
    let for_writes = lost("");
    assert!((0.01..0.1).contains(&for_writes), "{for_writes}");
    // An fsync has the inode until its log is written, 31 ms; the next write comes before that and waits, and the readers for it.
    let for_fsyncs = lost("fsync_every = 1");
    assert!((0.6..0.9).contains(&for_fsyncs), "{for_fsyncs}");
}

#[test]
fn the_record_of_xfs_is_a_stripe_unit_long() {
    let on_array = |chunk: &str| {
        let tables =
            format!("[array]\nlevel = 'raid0'\nchunk = '{chunk}'\n[filesystem]\ntype = 'xfs'\n");
        let load = "seconds = 'none'\nrequests = 1\nwrite_fraction = 1\nfsync_every = 1\n";
        let (_, commands) = traced(&on(2, &tables), load);
        commands.iter().map(|of| of.2).max().unwrap()
    };
    assert_eq!(on_array("64KiB"), 64 * KIB);
    assert_eq!(
        on_array("512KiB"),
        32 * KIB,
        "mkfs.xfs takes no longer ones"
    );
}

/// A file that the load makes, from its first byte on.
fn growing(size: &str, requests: u32, sync: &str) -> String {
    format!(
        "seconds = 'none'\nrequests = {requests}\n[[files]]\nfilesize = '64MiB'\nfill = false\n[[stream]]\n\
         name = 'log'\npattern = 'sequential'\nwrite_fraction = 1\ndirect = false\nsize = {size}\n{sync}\n"
    )
}

#[test]
fn each_append_with_a_sync_writes_the_log() {
    for sync in ["fsync_every = 1", "fdatasync_every = 1"] {
        for (kind, creation, plain, extent, commit) in [
            ("ext4", 7 * 4 * KIB, 8 * KIB, 16 * KIB, Some(4 * KIB)),
            ("xfs", 2560, KIB, 1536, None),
        ] {
            let tables = format!("[filesystem]\ntype = '{kind}'\n");
            let (_, commands) = traced(&on(1, &tables), &growing("512", 24, sync));
            let log: Vec<u64> = commands
                .iter()
                .filter(|of| of.1 >= LOG)
                .map(|of| of.2)
                .collect();
            // The journal's superblock before the first transaction; a new block for each eighth append.
            let head = (kind == "ext4").then_some(4 * KIB);
            let record = |at: u32| match at {
                0 => creation,
                8 | 16 => extent,
                _ => plain,
            };
            let expected: Vec<u64> = head
                .into_iter()
                .chain((0..24).flat_map(|at| std::iter::once(record(at)).chain(commit)))
                .collect();
            assert_eq!(log, expected, "{kind}, {sync}");
        }
    }
}

#[test]
fn nothing_is_read_beyond_the_end_of_a_file_that_grows() {
    for kind in ["ext4", "xfs"] {
        let tables = format!("[filesystem]\ntype = '{kind}'\n");
        let (figures, _) = traced(&on(1, &tables), &growing("512", 100, "end_fsync = true"));
        assert_eq!(figures.drives[0].reads, 0, "{kind}");
        assert_eq!(figures.drives[0].read_bytes, 0, "{kind}");
    }
}

#[test]
fn a_stream_into_a_new_file_of_ext4_goes_in_pieces_of_8_mib() {
    let load = growing("'1MiB'", 64, "end_fsync = true");
    let (_, commands) = traced(&on(1, "[filesystem]\ntype = 'ext4'\n"), &load);
    let is_data = |of: &&Command| of.2 > 0 && of.1 < LOG;
    let data: Vec<_> = commands.iter().filter(is_data).collect();
    let piece = 8 * MIB;
    let first = 34816 * 4096;
    assert_eq!(data[0].1, first);
    assert!(
        data.iter()
            .all(|of| (of.1 - first) / piece == (of.1 + of.2 - 1 - first) / piece),
        "{data:?}"
    );
    assert_eq!(data.iter().map(|of| of.2).sum::<u64>(), 64 * MIB);
}

#[test]
fn parity_writes_a_forced_record_block_by_block() {
    let array = "[array]\nlevel = 'raid5'\nchunk = '512KiB'\n[filesystem]\ntype = 'xfs'\n";
    let sizes = |tables: &str, count: u64| {
        let (_, commands) = traced(&on(count, tables), &growing("4096", 1, "fsync_every = 1"));
        let log = commands.iter().filter(|of| of.1 >= LOG / count);
        log.map(|of| of.2).collect::<Vec<_>>()
    };
    let parity = sizes(array, 4);
    assert!(
        parity.len() >= 16 && parity.iter().all(|bytes| *bytes == 4 * KIB),
        "{parity:?}"
    );
    let stripes = "[array]\nlevel = 'raid0'\nchunk = '512KiB'\n[filesystem]\ntype = 'xfs'\n";
    assert_eq!(sizes(stripes, 4), [32 * KIB]);
}

#[test]
fn a_new_file_that_fills_its_volume_stays_within_it() {
    for kind in ["ext4", "xfs"] {
        let text = format!(
            "[filesystem]\ntype = '{kind}'\nsize = '500MiB'\n[[drive]]\nservice = '1ms'\ncapacity = '600MiB'\n"
        );
        let load = growing("'1MiB'", 500, "end_fsync = true").replace("'64MiB'", "'500MiB'");
        let (_, commands) = traced(&machine(&text), &load);
        assert!(commands.iter().all(|of| of.1 + of.2 <= 600 * MIB), "{kind}");
    }
}
