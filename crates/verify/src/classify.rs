//! Classifies blocks with wrong content.

use std::fmt;
use std::ops::RangeInclusive;

use crate::seal::is_sealed;
use crate::stamp::{Claim, MAGIC, SECTOR, Stamp};

/// The expected content of a block: any of some generations of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The run that wrote it.
    pub run: u64,
    /// Number of the file within the run.
    pub file: u32,
    /// First byte of the block, counted from the start of the file.
    pub offset: u64,
    /// Generations that may be there: one, or several where the last write is not known.
    pub generations: RangeInclusive<u32>,
}

impl Expected {
    /// Exactly the content of the stamp.
    #[must_use]
    pub fn exactly(stamp: &Stamp) -> Expected {
        Expected {
            run: stamp.run,
            file: stamp.file,
            offset: stamp.offset,
            generations: stamp.generation..=stamp.generation,
        }
    }

    /// The stamp of the newest generation.
    fn newest(&self) -> Stamp {
        Stamp {
            run: self.run,
            file: self.file,
            generation: *self.generations.end(),
            offset: self.offset,
        }
    }
}

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It has the content from before the run: nothing of the run, and no trace of an earlier write of it.
    NeverWritten,
    /// It, or some of its sectors, are zeroes although the run had written the block before: zeroed or discarded.
    Zeroed,
    /// All of it is an earlier write of the run to this very place (or a later one than was expected).
    Stale,
    /// Some sectors are of one write and some of another, or of the content from before the run.
    Torn,
    /// It, or some of its sectors, belong to another place of the run.
    Misplaced,
    /// Content that was never written: a CRC is wrong, or something else took the place of some sectors.
    Corrupt,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Kind; 6] = [
        Kind::NeverWritten,
        Kind::Zeroed,
        Kind::Stale,
        Kind::Torn,
        Kind::Misplaced,
        Kind::Corrupt,
    ];

    /// Name in figures: `never-written`, `torn` ...
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::NeverWritten => "never-written",
            Kind::Zeroed => "zeroed",
            Kind::Stale => "stale",
            Kind::Torn => "torn",
            Kind::Misplaced => "misplaced",
            Kind::Corrupt => "corrupt",
        }
    }
}

/// A block that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: Kind,
    /// Number of wrong sectors.
    pub sectors: u32,
    /// The first of them, counted from 0.
    pub first: u32,
    /// The stamp of the first of them, if its CRC is right.
    pub found: Option<Stamp>,
}

impl fmt::Display for Fault {
    /// `torn: 3 sectors from sector 5 on, generation 2`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            kind,
            sectors,
            first,
            ..
        } = self;
        let plural = if *sectors == 1 { "" } else { "s" };
        write!(
            out,
            "{}: {sectors} sector{plural} from sector {first} on",
            kind.name()
        )?;
        match &self.found {
            None => Ok(()),
            Some(stamp) if *kind == Kind::Misplaced => write!(
                out,
                ", of offset {} of file {}",
                stamp.offset.wrapping_sub(u64::from(*first) * SECTOR as u64),
                stamp.file
            ),
            Some(stamp) => write!(out, ", generation {}", stamp.generation),
        }
    }
}

/// The content of one sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sector {
    /// A write of this run, at its place, whole; of this generation.
    Here(u32),
    /// A write of this run, whole, but of another place.
    Elsewhere,
    /// A sector of this run or of this layout, with a wrong CRC.
    Damaged,
    /// Nothing but zeroes.
    Zero,
    /// Something else: content from before, or of another run.
    Foreign,
}

/// Returns the generation of `expected` that the block has, or its fault. Any bytes will do; they may be of any length.
///
/// The kinds, in the order in which they are checked:
///
/// 1. a sector that has the mark of this layout or of the run, and whose CRC is wrong: corrupt;
/// 2. a sector of another place: misplaced;
/// 3. sectors of the run at their place beside zeroes: zeroed, or torn if the block was written only once, as zeroes may
///    then be the content from before; beside anything else: corrupt, or torn in the same case;
/// 4. nothing of the run: never written; but zeroes where the run wrote more than once: zeroed;
/// 5. all sectors of the run at their place: torn if they are of several generations, otherwise stale.
///
/// # Errors
/// The fault, if it is none of the expected generations.
pub fn classify(block: &[u8], expected: &Expected) -> Result<u32, Fault> {
    let (sectors, rest) = block.as_chunks::<SECTOR>();
    let asked = expected.newest();
    if is_sealed(block, &asked) {
        return Ok(asked.generation);
    }
    let mut seen = SectorCounts::default();
    for (index, sector) in sectors.iter().enumerate() {
        seen.add(look(sector, &asked.of_sector(index)));
    }
    if !rest.is_empty() {
        seen.add(Sector::Foreign);
    }
    if seen.only(seen.here)
        && seen.lowest == seen.highest
        && expected.generations.contains(&seen.lowest)
    {
        return Ok(seen.lowest);
    }
    // Before the first write there was something unknown; before a later one, the write before it.
    let first_write = *expected.generations.start() <= 1;
    let kind = if seen.damaged > 0 {
        Kind::Corrupt
    } else if seen.elsewhere > 0 {
        Kind::Misplaced
    } else if seen.here == 0 {
        match (seen.foreign, first_write) {
            (0, false) => Kind::Zeroed,
            _ => Kind::NeverWritten,
        }
    } else if seen.zero + seen.foreign > 0 {
        match (seen.foreign, first_write) {
            (_, true) => Kind::Torn,
            (0, false) => Kind::Zeroed,
            (_, false) => Kind::Corrupt,
        }
    } else if seen.lowest != seen.highest {
        Kind::Torn
    } else {
        Kind::Stale
    };
    Err(fault(kind, sectors, rest, expected, &asked))
}

/// Classifies a block that should be zeroes because the run zeroed it: stale if it has a write of the run,
/// torn if only some sectors do, never written if it has the content from before, corrupt if other content
/// is between zeroes.
///
/// # Errors
/// The fault, if there is anything but zeroes.
pub fn classify_zeroes(block: &[u8], expected: &Expected) -> Result<(), Fault> {
    if is_zero(block) {
        return Ok(());
    }
    let asked = expected.newest();
    let (sectors, rest) = block.as_chunks::<SECTOR>();
    let mut seen = SectorCounts::default();
    let mut wrong = Vec::new();
    for (index, sector) in sectors.iter().enumerate() {
        let sort = look(sector, &asked.of_sector(index));
        if sort != Sector::Zero {
            wrong.push(index);
        }
        seen.add(sort);
    }
    if !is_zero(rest) {
        seen.add(Sector::Foreign);
    }
    let kind = if seen.damaged > 0 {
        Kind::Corrupt
    } else if seen.elsewhere > 0 {
        Kind::Misplaced
    } else if seen.only(seen.here) {
        Kind::Stale
    } else if seen.only(seen.foreign) {
        Kind::NeverWritten
    } else if seen.foreign > 0 {
        Kind::Corrupt
    } else {
        Kind::Torn
    };
    let first = wrong.first().copied();
    Err(Fault {
        kind,
        sectors: (wrong.len() + usize::from(!is_zero(rest))) as u32,
        first: first.unwrap_or(sectors.len()) as u32,
        found: first.and_then(|first| Stamp::of(&sectors[first])),
    })
}

/// True if all bytes are zero.
#[must_use]
pub fn is_zero(bytes: &[u8]) -> bool {
    // Parts that are compared without a branch for each word, until one is not zero.
    let (parts, rest) = bytes.as_chunks::<128>();
    let zero = |part: &[u8]| part.iter().fold(0, |sum, byte| sum | byte) == 0;
    parts.iter().all(|part| zero(part)) && zero(rest)
}

/// Finds the wrong sectors.
fn fault(
    kind: Kind,
    sectors: &[[u8; SECTOR]],
    rest: &[u8],
    expected: &Expected,
    asked: &Stamp,
) -> Fault {
    let highest = sectors
        .iter()
        .enumerate()
        .filter_map(
            |(index, sector)| match look(sector, &asked.of_sector(index)) {
                Sector::Here(generation) => Some(generation),
                _ => None,
            },
        )
        .max();
    // In a torn block the wrong sectors are those that its newest write did not reach.
    let newest = highest.filter(|newest| expected.generations.contains(newest));
    let right = |index: usize, sector: &[u8; SECTOR]| match look(sector, &asked.of_sector(index)) {
        Sector::Here(generation) => newest.is_some_and(|newest| generation == newest),
        _ => false,
    };
    let mut wrong = sectors
        .iter()
        .enumerate()
        .filter(|(index, sector)| !right(*index, sector))
        .map(|(index, _)| index);
    let first = wrong.next();
    Fault {
        kind,
        sectors: (usize::from(first.is_some()) + wrong.count() + usize::from(!rest.is_empty()))
            as u32,
        first: first.unwrap_or(sectors.len()) as u32,
        found: first.and_then(|first| Stamp::of(&sectors[first])),
    }
}

/// Number of sectors of each sort in a block.
#[derive(Debug)]
struct SectorCounts {
    here: u32,
    elsewhere: u32,
    damaged: u32,
    zero: u32,
    foreign: u32,
    lowest: u32,
    highest: u32,
}

impl Default for SectorCounts {
    fn default() -> Self {
        SectorCounts {
            here: 0,
            elsewhere: 0,
            damaged: 0,
            zero: 0,
            foreign: 0,
            lowest: u32::MAX,
            highest: 0,
        }
    }
}

impl SectorCounts {
    fn add(&mut self, sector: Sector) {
        match sector {
            Sector::Here(generation) => {
                self.here += 1;
                self.lowest = self.lowest.min(generation);
                self.highest = self.highest.max(generation);
            }
            Sector::Elsewhere => self.elsewhere += 1,
            Sector::Damaged => self.damaged += 1,
            Sector::Zero => self.zero += 1,
            Sector::Foreign => self.foreign += 1,
        }
    }

    /// True if there are sectors of this sort, and of no other.
    fn only(&self, count: u32) -> bool {
        let all = self.here + self.elsewhere + self.damaged + self.zero + self.foreign;
        count > 0 && count == all
    }
}

fn look(sector: &[u8; SECTOR], asked: &Stamp) -> Sector {
    match Stamp::of(sector) {
        Some(stamp) if stamp.run != asked.run => Sector::Foreign,
        Some(stamp) if (stamp.file, stamp.offset) != (asked.file, asked.offset) => {
            Sector::Elsewhere
        }
        Some(stamp) => Sector::Here(stamp.generation),
        None if is_zero(sector) => Sector::Zero,
        None => {
            let claim = Claim::of(sector);
            // One of the two may be the damaged part.
            if claim.magic == MAGIC || claim.stamp.run == asked.run {
                Sector::Damaged
            } else {
                Sector::Foreign
            }
        }
    }
}
