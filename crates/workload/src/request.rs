//! One request, as the engine issues it and the simulator models it.

use serde::{Deserialize, Serialize};

/// The operation of a request, on data or on the names of a tree of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    // 4 is the fsync of `measure::OpKind`, which is not an operation of a request.
    /// Make a file that does not exist yet, write `len` bytes to it, close it.
    Create = 5,
    /// Open a file for reading, close it.
    Open = 6,
    /// Look up the attributes of a file.
    Stat = 7,
    /// Rename a file within its directory.
    Rename = 8,
    /// Remove a file.
    Unlink = 9,
    /// Make a directory.
    Mkdir = 10,
    /// Remove an empty directory.
    Rmdir = 11,
    /// Open a directory, read all its entries, close it.
    Readdir = 12,
    /// Read `len` bytes, then write them back in place.
    Rewrite = 13,
}

impl Op {
    /// The operations on data, in the order of the documentation.
    pub const DATA: [Op; 5] = [Op::Read, Op::Write, Op::Trim, Op::Zero, Op::Rewrite];

    /// Every operation, in the order of its discriminant.
    pub const ALL: [Op; 13] = [
        Op::Read,
        Op::Write,
        Op::Trim,
        Op::Zero,
        Op::Create,
        Op::Open,
        Op::Stat,
        Op::Rename,
        Op::Unlink,
        Op::Mkdir,
        Op::Rmdir,
        Op::Readdir,
        Op::Rewrite,
    ];

    /// Operations by discriminant; a read where there is none.
    const BY_NUMBER: [Op; 16] = {
        let mut ops = [Op::Read; 16];
        let mut index = 0;
        while index < Op::ALL.len() {
            ops[Op::ALL[index] as usize] = Op::ALL[index];
            index += 1;
        }
        ops
    };

    /// True if the operation changes stored data or names.
    #[must_use]
    pub const fn changes_data(self) -> bool {
        !matches!(self, Op::Read | Op::Open | Op::Stat | Op::Readdir)
    }

    /// True if it works on the names of directories; otherwise on those of files.
    #[must_use]
    pub const fn is_on_directories(self) -> bool {
        matches!(self, Op::Mkdir | Op::Rmdir | Op::Readdir)
    }

    /// True if it can be repeated on the same names.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Op::Open | Op::Stat | Op::Readdir | Op::Rename)
    }
}

/// One request: its place, length and operation, and whether an fsync of the file follows its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// First byte, counted from the start of the target or of its file; number of the name for operations on names.
    pub offset: u64,
    /// Length in bytes; 0 only for operations on names.
    pub len: u32,
    /// Number of the file in the stream, from 0; always 0 if the target is one.
    pub file: u32,
    /// The operation.
    pub op: Op,
    /// The worker syncs the file after this request completed and before its slot issues another.
    pub fsync_after: bool,
}

impl Request {
    /// Most files of a stream.
    pub(crate) const MAX_FILES: u64 = 1 << 28;

    /// In two registers, for functions that are not compiled into the engine's loop: the structure itself would pass
    /// through memory, where the loop waits for it. `len` is below 2^31 and `file` below 2^28.
    #[inline(always)]
    #[must_use]
    pub const fn packed(self) -> (u64, u64) {
        let file = (self.file as u64) << 36;
        let op = (self.op as u64) << 32;
        let sync = (self.fsync_after as u64) << 31;
        (self.offset, file | op | sync | self.len as u64)
    }

    /// Reverses `packed`.
    #[inline(always)]
    #[must_use]
    pub const fn unpacked((offset, rest): (u64, u64)) -> Request {
        Request {
            offset,
            len: rest as u32 & (u32::MAX >> 1),
            file: (rest >> 36) as u32,
            op: Op::BY_NUMBER[(rest >> 32 & 15) as usize],
            fsync_after: rest >> 31 & 1 == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_request_comes_out_as_it_was() {
        for op in Op::BY_NUMBER {
            for (len, file) in [(0, 0), (1 << 30, 5), (4096, (1 << 28) - 1)] {
                for fsync_after in [false, true] {
                    let request = Request {
                        offset: u64::MAX - 7,
                        len,
                        file,
                        op,
                        fsync_after,
                    };
                    assert_eq!(Request::unpacked(request.packed()), request);
                }
            }
        }
    }
}
