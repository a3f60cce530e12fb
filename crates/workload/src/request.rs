//! One request, as the engine issues it and the simulator models it.

/// What a request asks of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Read `len` bytes.
    Read = 0,
    /// Write `len` bytes.
    Write = 1,
    /// Discard (TRIM, UNMAP) `len` bytes.
    Trim = 2,
    /// Write zeroes without sending data (`BLKZEROOUT`, `FALLOC_FL_ZERO_RANGE`).
    Zero = 3,
}

impl Op {
    /// Every operation, in the order of its discriminant.
    pub const ALL: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Zero];

    /// Whether the operation changes what is stored.
    #[must_use]
    pub const fn changes_data(self) -> bool {
        !matches!(self, Op::Read)
    }
}

/// One request: where, how much, what, and whether an fsync of the file follows its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// First byte, counted from the start of the target.
    pub offset: u64,
    /// Length in bytes; never 0.
    pub len: u32,
    /// What is asked.
    pub op: Op,
    /// The worker syncs the file after this request completed and before its slot issues another.
    pub fsync_after: bool,
}
