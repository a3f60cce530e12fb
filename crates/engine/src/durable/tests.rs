//! The check against a modelled disk, whose every loss is known; and journals that were cut off or changed.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::content::{crc32c, fill, stamp};
use super::entry::{Entry, Header, MAGIC};
use super::open::memory_file;
use super::plan::{Pattern, Plan, SyncKind};
use super::{BlockContent, Findings, Verdict, check, summarise};
use crate::StreamFile;

const RUN: u64 = 0xfeed_beef_0123_4567;
const SECTOR: usize = 512;

/// xorshift64*.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Disk {
    /// A sync keeps all; of what is not synced, any part may survive a cut.
    Honest,
    /// A sync keeps nothing.
    Lying,
    /// A sync keeps a random part.
    Careless,
}

/// The state of a modelled run at the cut.
struct Cut {
    plan: Plan,
    /// The write on the medium, for each sector; 0: the content from before.
    medium: Vec<u64>,
    journal: Vec<u8>,
    acknowledged: Vec<u64>,
}

impl Cut {
    fn run(disk: Disk, pattern: Pattern, sync: SyncKind, chance: &mut Chance) -> Cut {
        let plan = Plan {
            seed: chance.below(1000),
            workers: 1 + chance.below(3) as u32,
            pattern,
            block_bytes: 2048,
            batch: 5,
            sync,
            region_blocks: 8 + chance.below(24),
        };
        let sectors = plan.block_bytes as usize / SECTOR;
        let mut cut = Cut {
            medium: vec![0; plan.blocks() as usize * sectors],
            journal: beginning(&plan),
            acknowledged: vec![0; plan.workers as usize],
            plan,
        };
        let mut batches: Vec<_> = (0..cut.plan.workers)
            .map(|worker| cut.plan.batches(worker).collect_first(200))
            .collect();
        let mut next = vec![1; cut.plan.workers as usize];
        // (worker, number), in the order in which they were written
        let mut cached: Vec<(u32, u64)> = Vec::new();
        for turn in 0..chance.below(150) {
            let worker = chance.below(u64::from(cut.plan.workers)) as u32;
            let end = batches[worker as usize].remove(0);
            for number in next[worker as usize]..=end {
                cached.push((worker, number));
            }
            next[worker as usize] = end + 1;
            match disk {
                Disk::Honest => {
                    for (worker, number) in cached.drain(..) {
                        keep(&cut.plan, &mut cut.medium, worker, number, sectors);
                    }
                }
                Disk::Lying => {}
                Disk::Careless => cached.retain(|&(worker, number)| {
                    let kept = chance.below(4) > 0;
                    if kept {
                        keep(&cut.plan, &mut cut.medium, worker, number, sectors);
                    }
                    !kept
                }),
            }
            cut.acknowledged[worker as usize] = end;
            let acked = Entry::Acked {
                worker,
                count: end,
                at_ns: 1000 * turn,
            };
            acked.encode(&mut cut.journal);
        }
        // A batch that power is cut in: some of its writes arrive, one of them torn.
        let worker = chance.below(u64::from(cut.plan.workers)) as u32;
        if disk == Disk::Honest {
            for number in next[worker as usize]..=batches[worker as usize][0] {
                let most = chance.below(sectors as u64 + 1) as usize;
                keep(&cut.plan, &mut cut.medium, worker, number, most);
            }
        }
        cut
    }

    /// The target as it is after the cut.
    fn target(&self) -> File {
        let file = memory_file();
        let block_bytes = self.plan.block_bytes as usize;
        for (at, sectors) in self.medium.chunks(block_bytes / SECTOR).enumerate() {
            let worker = at as u64 / self.plan.region_blocks;
            let offset = (at * block_bytes) as u64;
            let mut block = before(at as u64, block_bytes);
            for (index, &number) in sectors.iter().enumerate() {
                if number > 0 {
                    let mut whole = vec![0; block_bytes];
                    fill(&mut whole, RUN);
                    stamp(&mut whole, RUN, worker as u32, offset, number);
                    let range = index * SECTOR..(index + 1) * SECTOR;
                    block[range.clone()].copy_from_slice(&whole[range]);
                }
            }
            file.write_all_at(&block, offset).expect("memory");
        }
        file
    }

    /// Blocks whose last acknowledged write is not whole: known without a look at the target.
    fn lost(&self) -> u64 {
        let sectors = self.plan.block_bytes as usize / SECTOR;
        let mut due = vec![0; self.plan.blocks() as usize];
        for worker in 0..self.plan.workers {
            for number in 1..=self.acknowledged[worker as usize] {
                let block = self.plan.block(worker, number);
                due[(u64::from(worker) * self.plan.region_blocks + block) as usize] = number;
            }
        }
        let lacks = |(at, due): (usize, &u64)| {
            let there = &self.medium[at * sectors..(at + 1) * sectors];
            there.iter().any(|number| number < due)
        };
        due.iter().enumerate().filter(|&each| lacks(each)).count() as u64
    }

    fn check(&self, target: &File) -> Findings {
        check_bytes(&self.journal, target).expect("the journal is whole")
    }
}

trait CollectFirst: Iterator<Item = u64> + Sized {
    fn collect_first(self, count: usize) -> Vec<u64> {
        self.take(count).collect()
    }
}

impl<I: Iterator<Item = u64>> CollectFirst for I {}

fn keep(plan: &Plan, medium: &mut [u64], worker: u32, number: u64, sectors: usize) {
    let per_block = plan.block_bytes as usize / SECTOR;
    let block = u64::from(worker) * plan.region_blocks + plan.block(worker, number);
    let first = block as usize * per_block;
    medium[first..first + sectors].fill(number);
}

/// Content of block `at` before the run.
fn before(at: u64, block_bytes: usize) -> Vec<u8> {
    let mut block = vec![0; block_bytes];
    if !at.is_multiple_of(3) {
        fill(&mut block, at + 1);
    }
    block
}

fn beginning(plan: &Plan) -> Vec<u8> {
    let mut journal = MAGIC.to_vec();
    let header = Header {
        run: format!("{RUN:016x}"),
        plan: plan.clone(),
        about: serde_json::json!({}),
    };
    Entry::Header(Box::new(header)).encode(&mut journal);
    let sums = (0..plan.blocks())
        .map(|at| crc32c(&before(at, plan.block_bytes as usize)))
        .collect();
    Entry::Before { first: 0, sums }.encode(&mut journal);
    Entry::Begin.encode(&mut journal);
    journal
}

fn check_bytes(journal: &[u8], target: &File) -> Result<Findings, super::JournalError> {
    let mut file = memory_file();
    file.write_all(journal).expect("memory");
    let target = StreamFile {
        fd: target.as_raw_fd(),
        size_bytes: target.metadata().expect("memory").len(),
        block_bytes: 512,
        memory_align: 512,
    };
    check(file.as_raw_fd(), target)
}

const KINDS: [(Pattern, SyncKind); 4] = [
    (Pattern::Append, SyncKind::Fsync),
    (Pattern::Random, SyncKind::Fdatasync),
    (Pattern::Mixed, SyncKind::Fsync),
    (Pattern::Mixed, SyncKind::Dsync),
];

#[test]
fn an_honest_disk_loses_nothing_wherever_it_is_cut() {
    let mut chance = Chance(1);
    for round in 0..200 {
        let (pattern, sync) = KINDS[round % KINDS.len()];
        let cut = Cut::run(Disk::Honest, pattern, sync, &mut chance);
        let findings = cut.check(&cut.target());
        let expected = if cut.acknowledged.iter().all(|&count| count == 0) {
            Verdict::Nothing
        } else {
            Verdict::Kept
        };
        assert_eq!(findings.verdict, expected, "round {round}: {findings:#?}");
        assert_ne!(findings.order_kept, Some(false), "round {round}");
        assert_eq!(cut.lost(), 0, "the model itself");
    }
}

#[test]
fn every_loss_of_a_lying_disk_is_counted() {
    let mut chance = Chance(2);
    for round in 0..200 {
        let (pattern, sync) = KINDS[round % KINDS.len()];
        let disk = [Disk::Lying, Disk::Careless][round / KINDS.len() % 2];
        let cut = Cut::run(disk, pattern, sync, &mut chance);
        let findings = cut.check(&cut.target());
        assert_eq!(
            findings.blocks.lost,
            cut.lost(),
            "round {round}: {findings:#?}"
        );
        if cut.lost() > 0 {
            let expected = if findings.blocks.of_this_run == 0 {
                Verdict::Absent
            } else {
                Verdict::Lost
            };
            assert_eq!(findings.verdict, expected, "round {round}");
            assert!(findings.first_lost_ns <= findings.last_lost_ns);
        }
    }
}

#[test]
fn a_later_write_tells_of_an_earlier_sync_that_the_journal_has_lost() {
    let plan = Plan {
        seed: 3,
        workers: 1,
        pattern: Pattern::Append,
        block_bytes: 2048,
        batch: 1,
        sync: SyncKind::Fsync,
        region_blocks: 16,
    };
    let mut cut = Cut {
        medium: vec![0; 16 * 4],
        journal: beginning(&plan),
        acknowledged: vec![1],
        plan,
    };
    let acked = Entry::Acked {
        worker: 0,
        count: 1,
        at_ns: 5,
    };
    acked.encode(&mut cut.journal);
    // Five writes, each synced, the third is missing; the journal knows the first.
    for number in [1, 2, 4, 5] {
        keep(&cut.plan, &mut cut.medium, 0, number, 4);
    }
    let findings = cut.check(&cut.target());
    assert_eq!(findings.verdict, Verdict::Reordered);
    assert_eq!((findings.order_kept, findings.reordered), (Some(false), 1));
    let first = &findings.reorderings[0];
    assert_eq!((first.missing_write, first.present_write), (3, 5));
    assert_eq!((first.missing_offset, first.present_offset), (4096, 8192));
}

/// One worker's log of 12 writes in 16 blocks, all kept and acknowledged.
fn kept() -> Cut {
    let plan = Plan {
        seed: 3,
        workers: 1,
        pattern: Pattern::Append,
        block_bytes: 2048,
        batch: 1,
        sync: SyncKind::Fsync,
        region_blocks: 16,
    };
    let mut cut = Cut {
        medium: vec![0; 16 * 4],
        journal: beginning(&plan),
        acknowledged: vec![12],
        plan,
    };
    for number in 1..=12 {
        keep(&cut.plan, &mut cut.medium, 0, number, 4);
        let acked = Entry::Acked {
            worker: 0,
            count: number,
            at_ns: number * 10,
        };
        acked.encode(&mut cut.journal);
    }
    cut
}

#[test]
fn what_replaced_a_write_is_called_by_its_name() {
    let cut = kept();
    let found = |change: &dyn Fn(&File)| {
        let target = cut.target();
        change(&target);
        let findings = cut.check(&target);
        assert_eq!(findings.blocks.lost, 1);
        assert_eq!(findings.losses[0].write, 5);
        assert_eq!(findings.losses[0].acknowledged_ns, Some(50));
        (findings.verdict, findings.losses[0].found)
    };
    let block = 4 * 2048;
    let write = |bytes: Vec<u8>, at: u64| {
        move |target: &File| target.write_all_at(&bytes, at).expect("memory")
    };
    let read = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        cut.target().read_exact_at(&mut bytes, at).expect("memory");
        bytes
    };
    let mut flipped = read(block, 2048);
    flipped[700] ^= 16;
    let mut foreign = vec![0; 2048];
    fill(&mut foreign, 99);
    assert_eq!(
        found(&write(flipped, block)),
        (Verdict::Lost, BlockContent::Corrupt)
    );
    assert_eq!(
        found(&write(vec![0; 2048], block)),
        (Verdict::Lost, BlockContent::Zeroes)
    );
    assert_eq!(
        found(&write(before(4, 2048), block)),
        (Verdict::Lost, BlockContent::Before)
    );
    assert_eq!(
        found(&write(before(4, 2048)[512..].to_vec(), block + 512)),
        (Verdict::Lost, BlockContent::Torn)
    );
    assert_eq!(
        found(&write(read(2 * 2048, 2048), block)),
        (Verdict::Lost, BlockContent::Misplaced)
    );
    assert_eq!(
        found(&write(foreign, block)),
        (Verdict::Overwritten, BlockContent::Other)
    );
}

#[test]
fn a_target_that_became_shorter_has_lost_its_end() {
    let cut = kept();
    let target = cut.target();
    target.set_len(10 * 2048 + 700).expect("memory");
    let findings = cut.check(&target);
    assert_eq!((findings.verdict, findings.blocks.lost), (Verdict::Lost, 2));
    assert!(
        findings
            .losses
            .iter()
            .all(|loss| loss.found == BlockContent::Missing)
    );
}

#[test]
fn what_nobody_wrote_to_must_stay_sound() {
    let cut = kept();
    let target = cut.target();
    let mut block = vec![0; 2048];
    target.read_exact_at(&mut block, 0).expect("memory");
    target.write_all_at(&block, 14 * 2048).expect("memory");
    assert_eq!(cut.check(&target).verdict, Verdict::Damaged);
}

#[test]
fn another_target_has_no_block_of_the_run() {
    let cut = kept();
    let other = memory_file();
    other.set_len(16 * 2048).expect("memory");
    let findings = cut.check(&other);
    assert_eq!(findings.verdict, Verdict::Absent);
    assert_eq!(findings.order_kept, None);
}

#[test]
fn a_journal_cut_off_anywhere_promises_less_and_never_more() {
    let cut = kept();
    let target = cut.target();
    let whole = beginning(&cut.plan).len();
    let mut last = 0;
    for length in 0..=cut.journal.len() {
        match check_bytes(&cut.journal[..length], &target) {
            Ok(findings) => {
                let promised = findings.journal.acknowledged[0];
                assert!(promised >= last, "cut at {length}");
                assert!(
                    matches!(findings.verdict, Verdict::Kept | Verdict::Nothing),
                    "cut at {length}: {:?}",
                    findings.verdict
                );
                last = promised;
            }
            Err(_) => assert!(length < whole, "cut at {length}"),
        }
    }
    assert_eq!(last, 12);
}

#[test]
fn a_changed_journal_is_read_up_to_the_change() {
    let cut = kept();
    let target = cut.target();
    let mut chance = Chance(5);
    for _ in 0..2000 {
        let mut journal = cut.journal.clone();
        for _ in 0..=chance.below(3) {
            let at = chance.below(journal.len() as u64) as usize;
            journal[at] = chance.below(256) as u8;
        }
        if let Ok(findings) = check_bytes(&journal, &target) {
            assert!(findings.journal.acknowledged[0] <= 12);
            assert!(matches!(findings.verdict, Verdict::Kept | Verdict::Nothing));
        }
    }
}

#[test]
fn a_file_that_is_not_a_journal_is_refused() {
    for bytes in [&b""[..], b"x", b"spindle durability journal 2\nmore", MAGIC] {
        let mut file = memory_file();
        file.write_all(bytes).expect("memory");
        assert!(summarise(file.as_raw_fd()).is_err());
    }
}
