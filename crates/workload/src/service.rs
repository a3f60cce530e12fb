//! Chooses the file of a worker's next request.
//!
//! Each file has a walk of its own. Patterns that have an end (sequential, backward, strided) pass through every file once before
//! any is begun again: a file at its end drops out until all are through, as fio's do.

use crate::request::Op;
use crate::rng::Rng;
use crate::spec::{FileService, StreamFiles};
use crate::stream::Passes;
use crate::walk::Walk;

/// The files of one worker.
#[derive(Debug, Clone)]
pub(crate) struct FileWalks {
    walks: Box<[FileWalk]>,
    order: Order,
    /// The file in turn: an index of `walks`.
    current: u32,
    /// Requests to a file before the next; `u32::MAX`: until it is finished.
    turn: u32,
    /// Requests left in the turn.
    left: u32,
    /// Files are finished after as many bytes as their region has, also by patterns without an end.
    by_bytes: bool,
}

#[derive(Debug, Clone)]
struct FileWalk {
    walk: Walk,
    /// Number of the file in the stream.
    file: u32,
    /// A request was drawn that changes it.
    changed: bool,
    /// Length of its region, and the rest of it in this pass, bytes.
    bytes: u64,
    left: u64,
}

/// Files that are not yet through in this pass.
#[derive(Debug, Clone)]
enum Order {
    /// Each with the one after it, and the one before the current.
    Ring { next: Box<[u32]>, before: u32 },
    /// The first `active`, in no order; `at` is the place of the current one.
    Bag {
        files: Box<[u32]>,
        active: usize,
        at: usize,
        rng: Rng,
    },
}

impl FileWalks {
    /// `walks`: at least one, each with its file and the length of its region, bytes.
    pub(crate) fn new(
        walks: Vec<(u32, Walk, u64)>,
        files: Option<&StreamFiles>,
        rng: Rng,
    ) -> FileWalks {
        let (service, requests) = files.map_or((FileService::RoundRobin, 1), |files| {
            (files.service, files.requests)
        });
        let walks: Box<[FileWalk]> = walks
            .into_iter()
            .map(|(file, walk, bytes)| FileWalk {
                walk,
                file,
                changed: false,
                bytes,
                left: bytes,
            })
            .collect();
        let count = walks.len() as u32;
        let order = match service {
            FileService::RoundRobin | FileService::Sequential => Order::Ring {
                next: (0..count).map(|file| (file + 1) % count).collect(),
                before: count - 1,
            },
            FileService::Random => Order::Bag {
                files: (0..count).collect(),
                active: walks.len(),
                at: 0,
                rng,
            },
        };
        let turn = match service {
            FileService::Sequential => u32::MAX,
            FileService::RoundRobin | FileService::Random => requests.max(1),
        };
        let mut walks = FileWalks {
            walks,
            order,
            current: 0,
            turn,
            left: turn,
            by_bytes: service == FileService::Sequential,
        };
        walks.order.draw(&mut walks.current);
        walks
    }

    /// File and offset of the next request.
    #[inline(never)]
    pub(crate) fn next_place(&mut self, len: u32, op: Op) -> (u32, u64) {
        if self.left == 0 {
            self.order.advance(&mut self.current);
            self.left = self.turn;
        }
        while self.is_through(len) {
            self.retire();
            self.left = self.turn;
        }
        if self.turn != u32::MAX {
            self.left -= 1;
        }
        let walk = &mut self.walks[self.current as usize];
        walk.left = walk.left.saturating_sub(u64::from(len));
        walk.changed |= op.changes_data();
        (walk.file, walk.walk.next_offset(len))
    }

    /// Length of one pass over all of them.
    pub(crate) fn pass(&self, fixed: Option<u32>, workers: u32, worker: u32) -> Passes {
        let walks = self.walks.iter();
        let passes = walks.map(|own| own.walk.pass(fixed, own.bytes, workers, worker));
        passes.fold(Passes::Requests(0), Passes::and)
    }

    /// Files for which a request was drawn that changes them.
    pub(crate) fn changed(&self) -> impl Iterator<Item = u32> {
        let changed = self.walks.iter().filter(|walk| walk.changed);
        changed.map(|walk| walk.file)
    }

    /// True if the current file is done for this pass. Each has room for the largest request, so none is before its first.
    fn is_through(&self, len: u32) -> bool {
        let current = &self.walks[self.current as usize];
        current.walk.is_through(len)
            || self.by_bytes && !current.walk.has_end() && current.left < u64::from(len)
    }

    /// Leaves the current file out for the rest of the pass; after the last one a new pass begins.
    #[cold]
    fn retire(&mut self) {
        let walk = &mut self.walks[self.current as usize];
        walk.walk.rewind();
        walk.left = walk.bytes;
        self.order.retire(&mut self.current);
    }
}

impl Order {
    /// The first file.
    fn draw(&mut self, current: &mut u32) {
        if let Order::Bag { .. } = self {
            self.advance(current);
        }
    }

    fn advance(&mut self, current: &mut u32) {
        match self {
            Order::Ring { next, before } => {
                *before = *current;
                *current = next[*current as usize];
            }
            Order::Bag {
                files,
                active,
                at,
                rng,
            } => {
                *at = rng.below(*active as u64) as usize;
                *current = files[*at];
            }
        }
    }

    fn retire(&mut self, current: &mut u32) {
        match self {
            Order::Ring { next, before } => {
                let after = next[*current as usize];
                if after == *current {
                    let count = next.len() as u32;
                    for (file, next) in next.iter_mut().enumerate() {
                        *next = (file as u32 + 1) % count;
                    }
                    (*before, *current) = (count - 1, 0);
                } else {
                    next[*before as usize] = after;
                    *current = after;
                }
            }
            Order::Bag {
                files, active, at, ..
            } => {
                *active -= 1;
                files.swap(*at, *active);
                if *active == 0 {
                    *active = files.len();
                }
                self.advance(current);
            }
        }
    }
}
