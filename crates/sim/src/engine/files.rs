//! Files of a workload on a machine that knows addresses only: one after another from its first byte on, each in one
//! piece, as a file system that is new and large enough lays them out. The file system's own reads and writes are
//! not modelled.

use spindle_workload::{FileSize, Workload};

use crate::error::SimError;

/// Files begin at multiples of this, bytes: the block of most file systems.
const BLOCK: u64 = 4096;

/// The files of one set.
#[derive(Debug, Clone)]
pub(crate) struct FileLayout {
    /// Size of each, bytes.
    pub(crate) sizes: Vec<u64>,
    /// First byte of each on the machine.
    pub(crate) starts: Vec<u64>,
}

/// Lays out every set of a workload, in its order. Sets whose size depends on the caches share the rest of the machine.
pub(crate) fn lay_out(workload: &Workload, capacity: u64) -> Result<Vec<FileLayout>, SimError> {
    let sizes = |index: usize, auto_bytes: u64| {
        let set = &workload.filesets[index];
        set.sizes(index, workload.seed, auto_bytes)
            .map_err(|error| SimError::Files {
                set: set.name.clone(),
                error,
            })
    };
    let room = |sizes: &[u64]| -> u64 {
        let rooms = sizes.iter().map(|bytes| bytes.div_ceil(BLOCK) * BLOCK);
        rooms.fold(0, u64::saturating_add)
    };
    let is_auto = |index: &usize| workload.filesets[*index].filesize == FileSize::Auto;
    let (auto, fixed): (Vec<usize>, Vec<usize>) = (0..workload.filesets.len()).partition(is_auto);
    let mut taken: u64 = 0;
    for &index in &fixed {
        taken = taken.saturating_add(room(&sizes(index, 0)?));
    }
    let left = capacity.saturating_sub(taken) / auto.len().max(1) as u64;
    let mut laid = Vec::with_capacity(workload.filesets.len());
    let mut next: u64 = 0;
    for index in 0..workload.filesets.len() {
        let sizes = sizes(index, left)?;
        let mut starts = Vec::with_capacity(sizes.len());
        for bytes in &sizes {
            starts.push(next);
            next = next.saturating_add(bytes.div_ceil(BLOCK) * BLOCK);
        }
        laid.push(FileLayout { sizes, starts });
    }
    if next > capacity {
        return Err(SimError::FilesTooLarge {
            bytes: next,
            capacity,
        });
    }
    Ok(laid)
}
