//! The program as a whole: the null target, and files in a temporary folder.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const AGENT: &str = env!("CARGO_BIN_EXE_spindle-agent");

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("spindle-agent-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir(&path).expect("a folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("text").to_owned()
    }

    /// A workload file.
    fn workload(&self, text: &str) -> String {
        let path = self.path("w.toml");
        fs::write(&path, text).expect("the workload");
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder").flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn agent(arguments: &[&str]) -> Output {
    Command::new(AGENT)
        .args(arguments)
        .output()
        .expect("the agent")
}

fn run(workload: &str, target: &str, output: &str, more: &[&str]) -> Output {
    let own = [
        "run",
        "--workload",
        workload,
        "--target",
        target,
        "--output",
        output,
    ];
    agent(&[&own, more].concat())
}

/// Its result, of a run that went well.
fn result(done: &Output) -> Value {
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// The one line of a failure.
fn complaint(done: &Output, status: i32) -> String {
    let said = String::from_utf8(done.stderr.clone()).expect("text");
    assert_eq!(done.status.code(), Some(status), "{said}");
    assert!(
        said.starts_with("spindle-agent: ") && said.lines().count() == 1,
        "{said}"
    );
    assert!(!said.contains("panicked"), "{said}");
    said
}

const READS: &str = "size = '4KiB'\nworkers = 2\nrequests = 300\ndirect = false\n";

#[test]
fn the_null_target_completes_each_request() {
    let folder = Folder::new("null");
    let found = result(&run(&folder.workload(READS), "null:1GiB", "-", &[]));
    let figures = &found["runs"][0]["figures"];
    assert_eq!(figures["streams"][0]["read"]["requests"], 300);
    assert_eq!(figures["streams"][0]["read"]["bytes"], 300 * 4096);
    assert_eq!(figures["generator"]["engine"], "null");
    assert_eq!(found["target"]["kind"], "null");
}

#[test]
fn a_file_is_read_and_stays_as_it_is() {
    let folder = Folder::new("read");
    let (file, output) = (folder.path("data"), folder.path("r.json"));
    let content: Vec<u8> = (0..1 << 20).map(|place: u32| (place % 251) as u8).collect();
    fs::write(&file, &content).expect("data");
    let done = run(
        &folder.workload(READS),
        &file,
        &output,
        &["--engine", "pread"],
    );
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let found: Value =
        serde_json::from_slice(&fs::read(&output).expect("the result")).expect("JSON");
    assert_eq!(
        found["runs"][0]["figures"]["streams"][0]["read"]["requests"],
        300
    );
    assert_eq!(found["target"]["size_bytes"], 1 << 20);
    assert_eq!(fs::read(&file).expect("data"), content);
}

#[test]
fn a_file_that_it_did_not_make_is_not_written() {
    let folder = Folder::new("foreign");
    let file = folder.path("data");
    fs::write(&file, [7; 8192]).expect("data");
    let writes = folder.workload(&format!("{READS}write_fraction = 0.1\n"));
    assert!(complaint(&run(&writes, &file, "-", &[]), 3).contains(&file));
    let erased = run(&writes, &file, "-", &["--erase", &file]);
    assert!(complaint(&erased, 3).contains("not a device"));
    let made = run(&writes, &file, "-", &["--create", "1MiB"]);
    assert!(complaint(&made, 2).contains("exists already"));
    assert_eq!(fs::read(&file).expect("data"), [7; 8192]);
}

#[test]
fn a_test_file_is_written_and_gone_at_the_end() {
    let folder = Folder::new("create");
    let writes = folder.workload(&format!("{READS}write_fraction = 1.0\n"));
    for target in [
        folder.path("new.bin"),
        folder.0.to_str().expect("text").to_owned(),
    ] {
        let found = result(&run(&writes, &target, "-", &["--create", "1MiB"]));
        assert_eq!(
            found["runs"][0]["figures"]["streams"][0]["write"]["requests"],
            300
        );
        assert_eq!(found["target"]["created"], true);
    }
    assert_eq!(folder.names(), ["w.toml"]);
}

#[test]
fn what_was_written_is_read_back() {
    let folder = Folder::new("verify");
    let writes = folder.workload(&format!("{READS}write_fraction = 1.0\nverify = true\n"));
    let found = result(&run(
        &writes,
        &folder.path("new"),
        "-",
        &["--create", "1MiB"],
    ));
    let read_back = &found["runs"][0]["figures"]["verification"]["read_back"];
    assert_eq!(read_back["complete"], true);
    assert!(read_back["expected"].as_u64().expect("a number") > 0);
    assert_eq!(read_back["expected"], read_back["found"]["blocks"]);
}

#[test]
fn settings_and_the_standard_streams_are_taken() {
    let mut child = Command::new(AGENT)
        .args([
            "run",
            "--workload",
            "-",
            "--target",
            "null:1MiB",
            "--output",
            "-",
        ])
        .args(["--set", "requests=40", "size=8KiB"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent");
    let mut stdin = child.stdin.take().expect("its input");
    stdin.write_all(READS.as_bytes()).expect("the workload");
    drop(stdin);
    let found = result(&child.wait_with_output().expect("its output"));
    let read = &found["runs"][0]["figures"]["streams"][0]["read"];
    assert_eq!(
        (&read["requests"], &read["bytes"]),
        (&40.into(), &(40 * 8192).into())
    );
}

#[test]
fn phases_run_one_after_another() {
    let folder = Folder::new("phases");
    let text = "size = '4KiB'\ndirect = false\nrequests = 64\n\n[[phase]]\nname = 'write'\nwrite_fraction = 1\n\n[[phase]]\nname = 'read'\n";
    let found = result(&run(
        &folder.workload(text),
        &folder.path("new"),
        "-",
        &["--create", "1MiB"],
    ));
    let runs = found["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["figures"]["streams"][0]["write"]["requests"], 64);
    assert_eq!(runs[1]["figures"]["streams"][0]["read"]["requests"], 64);
    assert_eq!(found["left_out"], 0);
}

#[test]
fn a_result_never_replaces_a_file_and_leaves_none_without_a_run() {
    let folder = Folder::new("output");
    let workload = folder.workload(READS);
    let taken = folder.path("taken");
    fs::write(&taken, "mine").expect("a file");
    assert!(complaint(&run(&workload, "null:1MiB", &taken, &[]), 2).contains("exists already"));
    assert_eq!(fs::read(&taken).expect("a file"), b"mine");
    complaint(
        &run(
            &workload,
            &folder.path("missing"),
            &folder.path("r.json"),
            &[],
        ),
        2,
    );
    assert_eq!(folder.names(), ["taken", "w.toml"]);
}

#[test]
fn wrong_input_gives_one_line() {
    let folder = Folder::new("wrong");
    let good = folder.workload(READS);
    let bad = folder.path("bad.toml");
    fs::write(&bad, "sise = '4KiB'\n").expect("a workload");
    let bytes = folder.path("bytes.toml");
    fs::write(&bytes, [0xff, 0xfe]).expect("a workload");
    let empty = folder.path("empty");
    fs::write(&empty, "").expect("a file");
    let place = folder.0.to_str().expect("text");
    for (workload, target, more, named) in [
        ("no-preset", "null:1MiB", &[][..], "no-preset"),
        (&bad, "null:1MiB", &[], "size"),
        (&bytes, "null:1MiB", &[], "UTF-8"),
        (place, "null:1MiB", &[], "not a file"),
        (&good, "null:much", &[], "much"),
        (&good, "null:1MiB", &["--create", "1MiB"], "--create"),
        (&good, "null:1MiB", &["--set", "size=0"], "--set size"),
        (&good, "null:1MiB", &["--engine", "aio"], "aio"),
        (&good, place, &[], "folder"),
        (&good, "/dev/null", &[], "/dev/null"),
        (&good, &empty, &[], "empty"),
        (&good, "/dev/none-such", &["--create", "1MiB"], "/dev"),
        (&good, "/none/such", &["--create", "1MiB"], "/none"),
        (&good, place, &["--create", "100000TiB"], "free"),
        ("paraseq", place, &["--create", "1MiB"], "spindle run"),
    ] {
        assert!(
            complaint(&run(workload, target, "-", more), 2).contains(named),
            "{named}"
        );
    }
}

/// Ends it with SIGTERM, and sees that it says so.
fn terminated(child: &mut Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.expect("kill").success());
    assert_eq!(child.wait().expect("its end").code(), Some(128 + 15));
}

#[test]
fn a_signal_ends_the_run_and_its_figures_are_kept() {
    let folder = Folder::new("signal");
    let workload = folder.workload("workers = 2\nseconds = 600\nthink = '1ms'\n");
    let output = folder.path("r.json");
    let mut child = Command::new(AGENT)
        .args([
            "run",
            "--workload",
            &workload,
            "--target",
            "null:1GiB",
            "--output",
            &output,
        ])
        .spawn()
        .expect("the agent");
    // The result file is made after the signals are taken care of.
    while !Path::new(&output).exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    terminated(&mut child);
    let found: Value =
        serde_json::from_slice(&fs::read(&output).expect("the result")).expect("JSON");
    assert_eq!(found["runs"][0]["figures"]["ended_by"]["kind"], "stopped");
}

#[test]
fn a_signal_ends_the_time_before_the_load() {
    let folder = Folder::new("settle");
    let workload = folder.workload("seconds = 1\n");
    let output = folder.path("r.json");
    let mut child = Command::new(AGENT)
        .args(["run", "--workload", &workload, "--target", "null:1GiB"])
        .args(["--settle", "600s", "--output", &output])
        .spawn()
        .expect("the agent");
    std::thread::sleep(std::time::Duration::from_millis(300));
    terminated(&mut child);
    assert!(!Path::new(&output).exists(), "nothing was measured");
}

#[test]
fn it_says_its_version() {
    let said = String::from_utf8(agent(&["--version"]).stdout).expect("text");
    assert_eq!(
        said,
        concat!("spindle-agent ", env!("CARGO_PKG_VERSION"), "\n")
    );
    assert!(agent(&["--help"]).status.success());
    complaint(&agent(&[]), 2);
}

const HEADER: &str = r#"{"run": "00000000000000ab", "plan": {"seed": 7, "workers": 2, "pattern": "mixed", "block_bytes": 4096,
    "batch": 3, "sync": "fdatasync", "region_blocks": 64}, "about": {}}"#;

#[test]
fn acknowledged_writes_are_there_and_a_change_is_found() {
    let folder = Folder::new("durability");
    let (header, target, journal) = (folder.path("h"), folder.path("t"), folder.path("j"));
    fs::write(&header, HEADER).expect("the header");
    let own = ["durability", "--header", &header, "--target", &target];
    let more = ["--create", "512KiB", "--seconds", "0.2", "--buffered"];
    let done = agent(&[&own[..], &more].concat());
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    fs::write(&journal, &done.stdout).expect("the journal");

    let check = ["check", "--journal", &journal, "--target", &target];
    assert_eq!(result(&agent(&check))["verdict"], "kept");

    fs::write(&target, vec![0; 512 << 10]).expect("the loss");
    let found = result(&agent(&check));
    assert!(found["blocks"]["lost"].as_u64() > Some(0), "{found}");

    // A file that is there is never written to.
    complaint(&agent(&[&own[..], &more].concat()), 2);
    complaint(&agent(&[&own[..], &["--seconds", "0.2"]].concat()), 3);
    complaint(
        &agent(&["check", "--journal", &header, "--target", &target]),
        2,
    );
}
