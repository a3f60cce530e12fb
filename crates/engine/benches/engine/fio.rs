//! fio as a contender: as it comes, and with all that makes it faster while it still measures latencies.

use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::Round;
use crate::target::{BenchTarget, SIZE};

pub(crate) fn version() -> Option<String> {
    let output = Command::new("fio").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The job that the manual leads to: engine, depth, pattern, size.
pub(crate) fn default_ring(
    target: BenchTarget<'_>,
    depth: u32,
    seconds: f64,
    cpu: usize,
) -> Result<Round, String> {
    run(file_job(target, "io_uring", depth), seconds, cpu)
}

/// At depth 1 the plain call; deeper registered buffers and file, whole batches, no map of blocks read.
pub(crate) fn tuned(
    target: BenchTarget<'_>,
    depth: u32,
    seconds: f64,
    cpu: usize,
) -> Result<Round, String> {
    let mut job = if depth == 1 {
        file_job(target, "psync", 1)
    } else {
        let mut job = file_job(target, "io_uring", depth);
        job.extend([
            "--fixedbufs=1".to_owned(),
            "--registerfiles=1".to_owned(),
            "--nonvectored=1".to_owned(),
            format!("--iodepth_batch_submit={depth}"),
            "--iodepth_batch_complete_min=1".to_owned(),
            format!("--iodepth_batch_complete_max={depth}"),
        ]);
        job
    };
    job.push("--norandommap=1".to_owned());
    run(job, seconds, cpu)
}

pub(crate) fn null(tuned: bool, seconds: f64, cpu: usize) -> Result<Round, String> {
    let mut job = vec!["--ioengine=null".to_owned(), format!("--size={SIZE}")];
    if tuned {
        job.push("--norandommap=1".to_owned());
    }
    run(job, seconds, cpu)
}

fn file_job(target: BenchTarget<'_>, engine: &str, depth: u32) -> Vec<String> {
    vec![
        format!("--filename={}", target.path.display()),
        format!("--size={SIZE}"),
        format!("--ioengine={engine}"),
        format!("--iodepth={depth}"),
        format!("--direct={}", u8::from(target.direct)),
        // Otherwise fio drops the cached pages before it starts.
        "--invalidate=0".to_owned(),
    ]
}

fn run(job: Vec<String>, seconds: f64, cpu: usize) -> Result<Round, String> {
    let output = Command::new("fio")
        .args([
            "--name=reads",
            "--rw=randread",
            "--bs=4k",
            "--time_based=1",
            "--output-format=json",
        ])
        .arg(format!("--runtime={}", seconds.ceil().max(1.0)))
        .arg(format!("--cpus_allowed={cpu}"))
        .args(job)
        // Out of reach of Ctrl-C, after which fio 3.33 may wait for ever; it ends by itself in a second.
        .process_group(0)
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let json = text
        .find('{')
        .map(|start| &text[start..])
        .unwrap_or_default();
    let result: Value = serde_json::from_str(json).map_err(|_| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        complaint.lines().next().unwrap_or("no output").to_owned()
    })?;
    let job = &result["jobs"][0];
    if job["error"].as_i64() != Some(0) {
        return Err(format!("fio failed with error {}", job["error"]));
    }
    let number = |value: &Value| value.as_f64().ok_or("fio's output lacks a figure");
    let read = &job["read"];
    let requests = number(&read["total_ios"])?;
    let runtime_ns = number(&read["runtime"])? * 1e6;
    Ok(Round {
        iops: number(&read["iops"])?,
        user_ns_per_io: number(&job["usr_cpu"])? / 100.0 * runtime_ns / requests,
        system_ns_per_io: number(&job["sys_cpu"])? / 100.0 * runtime_ns / requests,
    })
}
