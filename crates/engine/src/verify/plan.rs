//! Which streams of a load take part in the verification, and the table they share.

use std::sync::Arc;

use spindle_workload::{RequestStream, Workload};

use super::findings::Findings;
use super::written::{NewFile, Verify, Written, WrittenFile, gcd, run_number};
use crate::target::{OpenFile, Target};
use crate::{EngineError, StreamFile};

const SECTOR: u64 = spindle_verify::SECTOR as u64;

/// `None`: no stream asks for it. A stream that does not ask but uses the same file as one that does takes part as well:
/// its writes would otherwise be taken for faults. `written`: what earlier loads wrote, to go on with if it suits.
pub(crate) fn plan(
    workload: &Workload,
    targets: &[Target],
    written: Option<Arc<Written>>,
) -> Result<Option<Arc<Verify>>, EngineError> {
    let mut files: Vec<&OpenFile> = Vec::new();
    for (stream, target) in workload
        .streams
        .iter()
        .zip(targets)
        .filter(|pair| pair.0.verify)
    {
        let opened = opened(target);
        if opened.is_empty() {
            return Err(EngineError::Workload {
                stream: stream.name.clone(),
                why: "its target stores no data that could be verified; leave `verify` out"
                    .to_owned(),
            });
        }
        for open in opened {
            if !files
                .iter()
                .any(|known| known.identity() == open.identity())
            {
                files.push(open);
            }
        }
    }
    if files.is_empty() {
        return Ok(None);
    }
    let takes_part = |target: &Target| {
        let opened = opened(target);
        let mut known = opened
            .iter()
            .map(|open| files.iter().any(|file| file.identity() == open.identity()));
        !opened.is_empty() && known.all(|known| known)
    };
    let parts: Vec<bool> = targets.iter().map(takes_part).collect();
    let unit = unit(workload, targets, &parts)?;
    let known = |open: &&&OpenFile| {
        written
            .as_ref()
            .is_some_and(|written| written.number(open.identity()).is_some())
    };
    let further: Vec<NewFile> = files
        .iter()
        .filter(|open| !known(open))
        .map(|open| {
            let (path, best) = (path_of(open.file.fd), best(targets, open));
            let bytes = open.file.size_bytes;
            (WrittenFile { path, bytes }, Some((open.identity(), best)))
        })
        .collect();
    let written = match written {
        Some(written) => written.go_on(unit, further),
        None => Written::new(unit, run_number(), further).map(Arc::new),
    };
    let written = written
        .map_err(|error| EngineError::system("cannot get memory for what is verified", &error))?;
    let numbers = |target: &Target| {
        opened(target)
            .into_iter()
            .filter_map(|open| written.number(open.identity()))
            .collect()
    };
    let streams = targets
        .iter()
        .zip(&parts)
        .map(|(target, part)| if *part { numbers(target) } else { Vec::new() })
        .collect();
    Ok(Some(Arc::new(Verify {
        written,
        fatal: workload
            .streams
            .iter()
            .any(|stream| stream.verify && stream.verify_fatal),
        streams,
        findings: Findings::default(),
        waited: Default::default(),
    })))
}

fn opened(target: &Target) -> Vec<&OpenFile> {
    match target {
        Target::Files(open) => open.iter().collect(),
        Target::Folder(_) | Target::Null { .. } => Vec::new(),
    }
}

/// The largest block that all requests of all streams that take part are made of, bytes.
fn unit(workload: &Workload, targets: &[Target], parts: &[bool]) -> Result<u64, EngineError> {
    let mut unit = 0;
    for (index, stream) in workload.streams.iter().enumerate() {
        if !parts[index] {
            continue;
        }
        let refuse = |why: String| EngineError::Workload {
            stream: stream.name.clone(),
            why,
        };
        let granule = RequestStream::granule(stream, targets[index].block_bytes())
            .map_err(|error| refuse(error.to_string()))?;
        if !granule.is_multiple_of(SECTOR) {
            return Err(refuse(format!(
                "verified requests begin and end at multiples of {SECTOR} bytes, but these only at multiples of {granule}; \
                 set `size` and `align`, or leave `verify` out"
            )));
        }
        unit = gcd(granule, unit);
    }
    Ok(unit)
}

/// The file as the stream has it open that passes by the page cache, if there is one.
fn best(targets: &[Target], wanted: &OpenFile) -> StreamFile {
    let all = targets.iter().flat_map(opened);
    let direct = all
        .filter(|open| open.identity() == wanted.identity() && open.can_read)
        .max_by_key(|open| open.is_direct);
    direct.unwrap_or(wanted).file
}

fn path_of(fd: i32) -> String {
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    path.map_or_else(
        |_| String::new(),
        |path| path.to_string_lossy().into_owned(),
    )
}
