//! Every read is checked completely, with the content it had when it came, at whatever time the check runs.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use spindle_measure::{CheckFigures, OpKind};
use spindle_verify::{Stamp, seal};
use spindle_workload::{Content, ContentFiller, Workload};

use super::checked::{CheckingBackend, Memory, Ready};
use super::entry::Entry;
use super::findings::Findings;
use super::written::{ExpectedContent, Verify, WrittenFile};
use crate::backend::{Backend, Call, Errno, Wait};
use crate::buffers::{BufferNeed, Buffers};
use crate::clock::Clock;
use crate::shared::Shared;

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 64;
const DEPTH: u32 = 8;

/// A disk that reads into memory as soon as it receives a request, and completes it later.
struct Disk {
    buffers: Buffers,
    content: Vec<u8>,
    pushed: Vec<(u32, Call)>,
    working: VecDeque<u32>,
    posted: VecDeque<u32>,
    shared: Rc<RefCell<Script>>,
    verify: Arc<Verify>,
}

/// Settings of the test, and its observations.
#[derive(Default)]
struct Script {
    /// Number of requests that end at each call that waits.
    ends: usize,
    /// Answers of `ready`, in order; then nothing.
    ready: VecDeque<Ready>,
    /// For each call: requests handed over, and wrong blocks found until then.
    calls: Vec<(usize, u64)>,
}

impl Backend for Disk {
    fn begin(&mut self, _clock: Clock) {}

    fn push(&mut self, slot: u32, call: &Call) {
        self.pushed.push((slot, *call));
    }

    fn enter(&mut self, wait: Wait) -> Result<(), Errno> {
        let mut script = self.shared.borrow_mut();
        script
            .calls
            .push((self.pushed.len(), wrong(&self.verify.findings.figures())));
        for (slot, call) in self.pushed.drain(..) {
            let content = &self.content[call.offset as usize..][..call.len as usize];
            self.buffers.read_into(slot as usize, content);
            self.working.push_back(slot);
        }
        if wait != Wait::No {
            let ends = script.ends.min(self.working.len());
            self.posted.extend(self.working.drain(..ends));
        }
        Ok(())
    }

    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        for slot in self.posted.drain(..) {
            each(slot, BLOCK as i32);
        }
    }

    fn abandon(self) {}
}

impl Memory for Disk {
    fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    fn works_aside(&self) -> bool {
        true
    }

    fn ready(&mut self) -> Ready {
        let scripted = self.shared.borrow_mut().ready.pop_front();
        scripted.unwrap_or(Ready::No)
    }
}

fn wrong(figures: &CheckFigures) -> u64 {
    figures.faults.iter().map(|fault| fault.blocks).sum()
}

/// A disk of which all was written once, and every block in `wrong` has another content.
fn with_disk(
    wrong: impl Fn(u64) -> bool,
    act: impl FnOnce(&mut CheckingBackend<'_, Disk>, &RefCell<Script>, &Verify),
) -> CheckFigures {
    let file = WrittenFile {
        path: "disk".to_owned(),
        bytes: BLOCKS * BLOCK,
    };
    let written = Arc::new(ExpectedContent::new(BLOCK, 5, vec![(file, None)]).expect("memory"));
    let mut content = vec![7; (BLOCKS * BLOCK) as usize];
    for (block, bytes) in content.chunks_exact_mut(BLOCK as usize).enumerate() {
        written.table().set(block, Entry::default().written());
        let stamp = Stamp {
            run: 5,
            file: 0,
            generation: 1,
            offset: block as u64 * BLOCK + if wrong(block as u64) { BLOCK } else { 0 },
        };
        seal(bytes, &stamp);
    }
    let verify = Arc::new(Verify {
        written,
        streams: vec![vec![0]],
        fatal: false,
        findings: Findings::default(),
        waited: Default::default(),
    });
    let need = BufferNeed {
        depth: DEPTH as usize,
        max_len: BLOCK as usize,
        align: 512,
        reads: true,
        looks: true,
        writes: false,
        zeroes: false,
        repeats: None,
        stamp_seed: 1,
    };
    let script = Rc::new(RefCell::new(Script::default()));
    let disk = Disk {
        buffers: Buffers::new(&need, &mut ContentFiller::new(Content::Zero, 0, 0, 1))
            .expect("memory"),
        content,
        pushed: Vec::new(),
        working: VecDeque::new(),
        posted: VecDeque::new(),
        shared: Rc::clone(&script),
        verify: Arc::clone(&verify),
    };
    let workload = Workload::parse("seconds = 1", "test", "test", &[]).expect("a workload");
    let shared = Shared::new(&workload, &[1], &[0]);
    let mut checked =
        CheckingBackend::new(disk, &verify, &shared, 0, DEPTH as usize, BLOCK as usize);
    act(&mut checked, &script, &verify);
    drop(checked);
    verify.findings.figures()
}

fn read(block: u64) -> Call {
    Call {
        kind: OpKind::Read,
        file: 0,
        offset: block * BLOCK,
        len: BLOCK as u32,
        done: 0,
    }
}

/// Reads one block after the other, `ends` of them ending together; returns the number of reads.
fn read_on(checked: &mut CheckingBackend<'_, Disk>, requests: u64) -> u64 {
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let (mut issued, mut ended) = (0, 0);
    while ended < requests {
        while issued < requests
            && let Some(slot) = free.pop()
        {
            checked.push(slot, &read(issued % BLOCKS));
            issued += 1;
        }
        checked.enter(Wait::One).expect("no error");
        checked.reap(|slot, result| {
            assert_eq!(result, BLOCK as i32);
            free.push(slot);
            ended += 1;
        });
    }
    checked.catch_up();
    ended
}

#[test]
fn each_read_is_looked_at_before_its_memory_is_used_again() {
    for ends in 1..=DEPTH as usize {
        for pause in 0..5 {
            let figures = with_disk(
                |block| block % 3 == 0,
                |checked, script, _| {
                    script.borrow_mut().ends = ends;
                    // Completions come after this many looks.
                    let looks = (0..10_000).map(|look| match look % (pause + 1) {
                        0 => Ready::Announced,
                        _ => Ready::No,
                    });
                    script.borrow_mut().ready = looks.collect();
                    assert_eq!(read_on(checked, 10 * BLOCKS), 10 * BLOCKS);
                },
            );
            assert_eq!(figures.blocks, 10 * BLOCKS, "{ends} {pause}");
            let planted = 10 * BLOCKS.div_ceil(3);
            assert_eq!(wrong(&figures), planted, "{ends} {pause}: {figures:?}");
        }
    }
}

#[test]
fn the_next_requests_go_out_before_what_was_read_is_looked_at() {
    with_disk(
        |_| true,
        |checked, script, verify| {
            script.borrow_mut().ends = DEPTH as usize;
            read_on(checked, 3 * u64::from(DEPTH));
            let deep = u64::from(DEPTH);
            let calls = std::mem::take(&mut script.borrow_mut().calls);
            // Two calls for each further eight: one that hands them over, one that waits.
            assert_eq!(calls, [(8, 0), (8, 0), (0, deep), (8, deep), (0, 2 * deep)]);
            assert_eq!(wrong(&verify.findings.figures()), 3 * deep);
        },
    );
}

#[test]
fn few_reads_are_looked_at_at_once() {
    with_disk(
        |_| true,
        |checked, script, _| {
            script.borrow_mut().ends = 1;
            read_on(checked, 12);
            let calls = std::mem::take(&mut script.borrow_mut().calls);
            let found: Vec<u64> = calls.iter().map(|call| call.1).collect();
            assert_eq!(found, (0..12).collect::<Vec<_>>());
        },
    );
}

#[test]
fn a_completion_ends_the_looking() {
    with_disk(
        |_| true,
        |checked, script, verify| {
            script.borrow_mut().ends = 4;
            for slot in 0..DEPTH {
                checked.push(slot, &read(u64::from(slot)));
            }
            checked.enter(Wait::One).expect("no error");
            checked.reap(|_, _| {});
            assert_eq!(wrong(&verify.findings.figures()), 0);
            script.borrow_mut().ready = [Ready::No, Ready::Posted].into();
            checked.enter(Wait::One).expect("no error");
            assert_eq!(wrong(&verify.findings.figures()), 1);
            assert!(checked.catch_up() && !checked.catch_up());
            assert_eq!(wrong(&verify.findings.figures()), 4);
        },
    );
}

#[test]
fn a_write_that_begins_after_a_read_has_ended_does_not_excuse_it() {
    let figures = with_disk(
        |block| block < 4,
        |checked, script, verify| {
            script.borrow_mut().ends = DEPTH as usize;
            for slot in 0..DEPTH {
                checked.push(slot, &read(u64::from(slot)));
            }
            checked.enter(Wait::One).expect("no error");
            checked.reap(|_, _| {});
            assert!(verify.written.table().claim(0..DEPTH as usize));
            checked.catch_up();
        },
    );
    assert_eq!((figures.blocks, wrong(&figures), figures.raced), (8, 4, 0));
}
