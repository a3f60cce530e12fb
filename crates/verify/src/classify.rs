//! What a block is that is not what it should be.

use std::fmt;
use std::ops::RangeInclusive;

use crate::seal::is_sealed;
use crate::stamp::{Claim, MAGIC, SECTOR, Stamp};

/// What a block should be: any of some generations of one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The run that wrote it.
    pub run: u64,
    /// Number of the file within the run.
    pub file: u32,
    /// First byte of the block, counted from the start of the file.
    pub offset: u64,
    /// Generations that may be there: one, or several where it is not known which write came last.
    pub generations: RangeInclusive<u32>,
}

impl Expected {
    /// Exactly what the stamp says.
    #[must_use]
    pub fn exactly(stamp: &Stamp) -> Expected {
        Expected {
            run: stamp.run,
            file: stamp.file,
            offset: stamp.offset,
            generations: stamp.generation..=stamp.generation,
        }
    }

    /// The newest of them.
    fn newest(&self) -> Stamp {
        Stamp {
            run: self.run,
            file: self.file,
            generation: *self.generations.end(),
            offset: self.offset,
        }
    }
}

/// What is wrong with a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// It holds what was there before the run: nothing of the run, and nothing that tells of an earlier write of it.
    NeverWritten,
    /// It, or some of its sectors, hold zeroes although the run had written the block before: zeroed or discarded.
    Zeroed,
    /// All of it is an earlier write of the run to this very place (or a later one than was expected).
    Stale,
    /// Some sectors are of one write and some of another, or of what was there before the run.
    Torn,
    /// It, or some of its sectors, belong to another place of the run.
    Misplaced,
    /// Content that was never written: a CRC is wrong, or something else took the place of some sectors.
    Corrupt,
}

impl Kind {
    /// All kinds, in the order in which they are told.
    pub const ALL: [Kind; 6] = [
        Kind::NeverWritten,
        Kind::Zeroed,
        Kind::Stale,
        Kind::Torn,
        Kind::Misplaced,
        Kind::Corrupt,
    ];

    /// Its name in figures: `never-written`, `torn` ...
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
    /// What it is.
    pub kind: Kind,
    /// How many of its sectors are not as they should be.
    pub sectors: u32,
    /// The first of them, counted from 0.
    pub first: u32,
    /// What the first of them says of itself, if its CRC is right.
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

/// What one sector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sector {
    /// Of this run, at its place, whole; of this generation.
    Here(u32),
    /// Of this run, whole, but of another place.
    Elsewhere,
    /// Of this run or of this layout, but its CRC is wrong.
    Damaged,
    /// Nothing but zeroes.
    Zero,
    /// Something else: what was there before, another run's content.
    Foreign,
}

/// Which generation of `expected` the block is, or what is wrong with it. Any bytes will do; they may be of any length.
///
/// The kinds, in the order in which they are looked for:
///
/// 1. a sector that bears the mark of this layout or of the run, and whose CRC is wrong: corrupt;
/// 2. a sector of another place: misplaced;
/// 3. sectors of the run at their place beside zeroes: zeroed, or torn if the block was written but once, as zeroes may
///    then be what was there before; beside anything else: corrupt, or torn in the same case;
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
    let mut seen = Seen::default();
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

/// What is wrong with a block that should hold zeroes, the run having zeroed it: stale if it holds a write of the run all
/// the same, torn if only some sectors do, never written if it holds what was there before, corrupt if something else
/// stands between zeroes.
///
/// # Errors
/// The fault, if there is anything but zeroes.
pub fn classify_zeroes(block: &[u8], expected: &Expected) -> Result<(), Fault> {
    if is_zero(block) {
        return Ok(());
    }
    let asked = expected.newest();
    let (sectors, rest) = block.as_chunks::<SECTOR>();
    let mut seen = Seen::default();
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

/// Whether there is nothing but zeroes.
#[must_use]
pub fn is_zero(bytes: &[u8]) -> bool {
    // Parts that are compared without a branch for each word, until one is not zero.
    let (parts, rest) = bytes.as_chunks::<128>();
    let zero = |part: &[u8]| part.iter().fold(0, |sum, byte| sum | byte) == 0;
    parts.iter().all(|part| zero(part)) && zero(rest)
}

/// Finds the sectors that are not as they should be.
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
    // Of a torn block those sectors are wrong that the newest write in it did not reach.
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

/// How many sectors of each sort a block has.
#[derive(Debug)]
struct Seen {
    here: u32,
    elsewhere: u32,
    damaged: u32,
    zero: u32,
    foreign: u32,
    lowest: u32,
    highest: u32,
}

impl Default for Seen {
    fn default() -> Self {
        Seen {
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

impl Seen {
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

    /// Whether there are some of this sort, and of no other.
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
            // One of both may be what was damaged.
            if claim.magic == MAGIC || claim.stamp.run == asked.run {
                Sector::Damaged
            } else {
                Sector::Foreign
            }
        }
    }
}
