//! Chooses the streams of a load that take part in the verification, and makes the table that they share.

use std::collections::HashMap;
use std::sync::Arc;

use spindle_workload::{RequestStream, Workload};

use super::findings::Findings;
use super::written::{ExpectedContent, NewFile, Verify, WrittenFile, gcd, run_number};
use crate::EngineError;
use crate::target::{OpenFile, Target};

const SECTOR: u64 = spindle_verify::SECTOR as u64;

/// `None`: no stream asks for it. A stream that does not ask but uses the same file as one that does takes part as well:
/// its writes would otherwise be taken for faults. `written`: the writes of earlier loads, to continue if they suit.
pub(crate) fn plan(
    workload: &Workload,
    targets: &[Target],
    written: Option<Arc<ExpectedContent>>,
) -> Result<Option<Arc<Verify>>, EngineError> {
    let asking = || {
        workload
            .streams
            .iter()
            .zip(targets)
            .filter(|pair| pair.0.verify)
    };
    if let Some((stream, _)) = asking().find(|(_, target)| opened(target).is_empty()) {
        return Err(EngineError::Workload {
            stream: stream.name.clone(),
            why: "its target stores no data that could be verified; leave `verify` out".to_owned(),
        });
    }
    let files = VerifiedFiles::of(asking().map(|pair| pair.1), targets);
    if files.order.is_empty() {
        return Ok(None);
    }
    let parts: Vec<bool> = targets.iter().map(|target| files.has_all(target)).collect();
    let unit = unit(workload, targets, &parts)?;
    let further: Vec<NewFile> = files
        .order
        .iter()
        .filter(|identity| {
            written
                .as_ref()
                .is_none_or(|written| written.number(**identity).is_none())
        })
        .map(|identity| {
            let file = files.best[identity].file;
            let (path, bytes) = (path_of(file.fd), file.size_bytes);
            (WrittenFile { path, bytes }, Some((*identity, file)))
        })
        .collect();
    let written = match written {
        Some(written) => written.go_on(unit, further),
        None => ExpectedContent::new(unit, run_number(), further).map(Arc::new),
    };
    let written = written
        .map_err(|error| EngineError::system("cannot get memory for what is verified", &error))?;
    let numbers = |target: &Target| {
        let opened = opened(target).iter();
        opened
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

fn opened(target: &Target) -> &[OpenFile] {
    match target {
        Target::Files(open) => open,
        Target::Folder(_) | Target::Null { .. } => &[],
    }
}

/// Files that are verified, each once though several streams may have it open.
struct VerifiedFiles<'a> {
    /// Device and inode, in the order of the streams.
    order: Vec<(u64, u64)>,
    /// The descriptor of the stream that bypasses the page cache, if there is one: the read-back uses it.
    best: HashMap<(u64, u64), &'a OpenFile>,
}

impl<'a> VerifiedFiles<'a> {
    fn of(asking: impl Iterator<Item = &'a Target>, all: &'a [Target]) -> VerifiedFiles<'a> {
        let mut known = VerifiedFiles {
            order: Vec::new(),
            best: HashMap::new(),
        };
        for open in asking.flat_map(opened) {
            if known.best.insert(open.identity(), open).is_none() {
                known.order.push(open.identity());
            }
        }
        for open in all.iter().flat_map(opened) {
            if let Some(best) = known.best.get_mut(&open.identity())
                && (open.can_read, open.is_direct) > (best.can_read, best.is_direct)
            {
                *best = open;
            }
        }
        known
    }

    /// True if the target consists of such files.
    fn has_all(&self, target: &Target) -> bool {
        let opened = opened(target);
        !opened.is_empty()
            && opened
                .iter()
                .all(|open| self.best.contains_key(&open.identity()))
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

fn path_of(fd: i32) -> String {
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    path.map_or_else(
        |_| String::new(),
        |path| path.to_string_lossy().into_owned(),
    )
}
