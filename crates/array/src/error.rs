//! Errors of a configuration and of questions put to an array.

/// One line each: the problem, its place, and the allowed values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// The level's name is not one that md knows.
    #[error(
        "level: unknown RAID level \"{0}\"; one of linear, raid0, raid1, raid4, raid5, raid6, raid10, raid50, raid60"
    )]
    UnknownLevel(String),

    /// The layout's name or word does not exist for this level.
    #[error("layout: {level} has no layout \"{given}\"; {allowed}")]
    UnknownLayout {
        /// Level the layout was meant for.
        level: &'static str,
        /// The text as written.
        given: String,
        /// The allowed layouts.
        allowed: &'static str,
    },

    /// Too few or too many members for the level.
    #[error("drives: {level} needs {allowed}, not {given}")]
    MemberCount {
        /// Level.
        level: &'static str,
        /// Allowed counts, in words.
        allowed: String,
        /// Members given.
        given: usize,
    },

    /// More copies than members.
    #[error(
        "layout: {layout} keeps {copies} copies of each chunk, which needs at least {copies} drives, not {members}"
    )]
    TooManyCopies {
        /// Layout as written.
        layout: String,
        /// Copies of each chunk.
        copies: u32,
        /// Members given.
        members: usize,
    },

    /// The chunk size is not one md accepts for the level.
    #[error("chunk: {level} wants {allowed}, not {given} bytes")]
    Chunk {
        /// Level.
        level: &'static str,
        /// Allowed chunk sizes, in words.
        allowed: &'static str,
        /// Chunk given, bytes.
        given: u64,
    },

    /// md's own map puts two different chunks in one place for this layout and member count.
    #[error(
        "layout: with {members} drives, md's own map of {layout} puts different data in the same place; use a multiple of {multiple} drives"
    )]
    Overlap {
        /// Layout as md writes it.
        layout: String,
        /// Members given.
        members: usize,
        /// Member counts that work are multiples of this.
        multiple: u32,
    },

    /// A member is smaller than one chunk.
    #[error("drive size: {given} bytes is too small, each drive must have at least {needed} bytes")]
    MemberTooSmall {
        /// Smallest member, bytes.
        given: u64,
        /// Smallest size that works, bytes.
        needed: u64,
    },

    /// The array would be larger than a 64-bit count of bytes.
    #[error("drive size: the array would be larger than 2^64 bytes")]
    TooLarge,

    /// Groups were given for a level that has none, or do not divide the members.
    #[error("groups: {0}")]
    Groups(String),

    /// A request reaches beyond the end of the array or of a member.
    #[error("request at {offset} + {len} bytes reaches beyond the end at {end} bytes")]
    BeyondEnd {
        /// First byte of the request.
        offset: u64,
        /// Length of the request, bytes.
        len: u64,
        /// Size of the array or member, bytes.
        end: u64,
    },

    /// More members are missing than the layout tolerates.
    #[error("data at byte {logical} is lost: {missing} members are missing")]
    Lost {
        /// First lost byte of the array.
        logical: u64,
        /// Missing members.
        missing: u32,
    },

    /// More members of a stripe are missing than it has parities.
    #[error("{missing} members of the stripe are missing, {parities} can be")]
    StripeLost {
        /// Missing members.
        missing: u32,
        /// How many may be.
        parities: u32,
    },

    /// Asked for parity of an array that has none.
    #[error("{0} keeps no parity")]
    NoParity(&'static str),

    /// Blocks of different lengths, or of the wrong number, given to the parity arithmetic.
    #[error("parity: {0}")]
    Blocks(&'static str),
}
