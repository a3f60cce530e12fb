//! Where mkfs.xfs puts the parts of XFS (xfsprogs 6.1 `calc_default_ag_geometry`, `align_ag_geometry`, `start_superblock_setup`),
//! and where its first file goes (Linux 6.1 `fs/xfs/libxfs/xfs_bmap.c`).

use super::{BLOCK, Extent, Logged, NewFile};

pub(super) const SECTOR: u64 = 512;
/// Blocks at the begin of an allocation group: headers, roots of its trees, a free list. In all but the first, the log may follow
/// them.
const HEADERS: u64 = 10;
const BEFORE_LOG: u64 = 6;
/// Blocks before the first inodes: headers and roots of the first allocation group, up to the alignment of inodes.
const BEFORE_INODES: u64 = 16;
/// Blocks of the first 64 inodes.
const INODES: u64 = 8;
/// Bytes of a cluster of inodes (`XFS_INODE_BIG_CLUSTER_SIZE`, doubled for inodes of 512 bytes).
const CLUSTER: u64 = 16 << 10;
/// Blocks with the roots of the trees of an allocation group: free space by place and by length, inodes, free inodes.
const BY_PLACE: u64 = 1;
const BY_LENGTH: u64 = 2;
const OF_INODES: u64 = 3;
const OF_FREE_INODES: u64 = 4;
/// Sector with the list of free blocks (`XFS_AGFL_DADDR`).
const FREE_LIST: u64 = 3;
/// Bytes of a record of the log: header, and an inode with its headers; with a new file; with a new extent.
pub(super) const RECORD: u64 = 1024;
const RECORD_OF_CREATION: u64 = 2560;
const RECORD_OF_EXTENT: u64 = 1536;
/// Bytes of the log: mkfs's least for more than 300 MB, its most, and the share of the volume in between.
const LEAST_LOG: u64 = 64 << 20;
const MOST_LOG: u64 = 2 << 30;
const SHARE_OF_LOG: u64 = 2048;
/// mkfs.xfs takes a `su` of more than the first for the log as the second.
const LONGEST_LOG_UNIT: u64 = 256 << 10;
const LOG_UNIT: u64 = 32 << 10;
/// Pages whose extents are converted together when they are written (`IOEND_BATCH_SIZE`).
const PAGES_OF_IOEND: u64 = 4096;
/// Longest allocation group, bytes.
const LONGEST_GROUP: u64 = 1 << 40;
/// Files up to this are given no room beyond their end (`xfs_iomap_prealloc_size`).
const LITTLE: u64 = 64 << 10;

/// The layout of a volume.
#[derive(Debug, Clone, Copy)]
pub(super) struct Xfs {
    blocks: u64,
    /// Blocks of an allocation group.
    group: u64,
    /// Blocks to whose multiples inodes and files are aligned; 1: none.
    unit: u64,
}

impl Xfs {
    /// `unit` and `stripe`: bytes of a chunk and of a full stripe, if mkfs knows of them.
    pub(super) fn new(bytes: u64, unit: Option<u64>, stripe: u64) -> Xfs {
        let blocks = bytes / BLOCK;
        let count = match (unit, bytes >> 30) {
            (None, 4096..) | (Some(_), 32768..) => bytes.div_ceil(LONGEST_GROUP),
            (None, _) => 4,
            (Some(_), _) if bytes > 512 << 30 => 32,
            (Some(_), _) if bytes > 8 << 30 => 16,
            (Some(_), _) => 8,
        };
        let mut group = blocks.div_ceil(count).min(LONGEST_GROUP / BLOCK);
        let unit = unit.map_or(1, |unit| (unit / BLOCK).max(1));
        let stripe = stripe / BLOCK;
        if unit > 1 {
            group = group.next_multiple_of(unit);
            if stripe > unit && group.is_multiple_of(stripe) && group > unit {
                group -= unit;
            }
        }
        Xfs {
            blocks,
            group: group.max(1),
            unit,
        }
    }

    /// Blocks before the first inodes.
    pub(super) fn before_inodes(&self) -> u64 {
        BEFORE_INODES.next_multiple_of(self.unit)
    }

    /// First byte of a file that is written at once.
    pub(super) fn first_byte(&self) -> u64 {
        (self.before_inodes() + INODES).next_multiple_of(self.unit) * BLOCK
    }

    /// First byte and bytes of the cluster of the first inodes.
    pub(super) fn cluster(&self) -> (u64, u64) {
        (self.before_inodes() * BLOCK, CLUSTER)
    }

    /// First byte, bytes and unit of the log, in the allocation group in the middle.
    pub(super) fn log(&self) -> (u64, u64, u64) {
        let unit = match self.unit * BLOCK {
            BLOCK => RECORD,
            unit if unit > LONGEST_LOG_UNIT => LOG_UNIT,
            unit => unit,
        };
        let groups = self.blocks.div_ceil(self.group);
        let before = match unit {
            RECORD => BEFORE_LOG * BLOCK,
            _ => (BEFORE_LOG * BLOCK).next_multiple_of(unit),
        };
        let first = groups / 2 * self.group * BLOCK + before;
        let bytes = self.blocks * BLOCK;
        let log = (bytes / SHARE_OF_LOG)
            .clamp(LEAST_LOG, MOST_LOG)
            .min(bytes / 4);
        (first, log / unit * unit, unit)
    }

    /// The group in which a file of so many bytes goes: with the room that is kept for its growth it has to fit.
    fn group_of(&self, size: u64) -> u64 {
        let wanted = 2 * size.next_power_of_two() / BLOCK;
        let room = self.group.saturating_sub(self.before_inodes() + INODES);
        let has_other = self.blocks > self.group + HEADERS;
        u64::from(self.unit == 1 && wanted > room && has_other)
    }

    pub(super) fn new_file(&self, start: u64, size: u64) -> NewFile {
        let group = if size > LITTLE {
            self.group_of(size)
        } else {
            0
        };
        let of = group * self.group * BLOCK;
        let (cluster, bytes) = self.cluster();
        let reads = [
            (OF_FREE_INODES * BLOCK, BLOCK),
            (OF_INODES * BLOCK, BLOCK),
            (cluster, bytes),
            (of + FREE_LIST * SECTOR, SECTOR),
            (of + BY_LENGTH * BLOCK, BLOCK),
            (of + BY_PLACE * BLOCK, BLOCK),
        ];
        let extent = |(offset, first): (u64, u64)| Extent {
            offset: offset * BLOCK,
            first: start + first * BLOCK,
        };
        let after = self.before_inodes() + INODES;
        let little = match self.unit {
            1 => vec![(0, HEADERS), (BEFORE_INODES - HEADERS, after)],
            _ => vec![(0, after)],
        };
        let at_once = match group {
            0 => self.first_byte() / BLOCK,
            _ => group * self.group + HEADERS,
        };
        NewFile {
            reads: reads
                .into_iter()
                .map(|(first, bytes)| vec![(start + first, bytes)])
                .collect(),
            block: BLOCK,
            piece: None,
            converted: PAGES_OF_IOEND * BLOCK,
            small: LITTLE,
            little: little.into_iter().map(extent).collect(),
            at_once: vec![extent((0, at_once))],
            doubles_from: Some(LITTLE),
            logged: Logged::Bytes {
                creation: RECORD_OF_CREATION,
                extent: RECORD_OF_EXTENT,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the volume, chunks of 512 KiB in a stripe -> blocks: of an allocation group, number of the group with the
    /// log, the log's place in it and its length, as mkfs.xfs 6.1.0 makes them (`xfs_db -c 'sb 0' -c p`).
    const MADE: [(u64, u64, [u64; 4]); 9] = [
        (512 << 20, 0, [32768, 2, 6, 16384]),
        (1530 << 20, 0, [97920, 2, 6, 16384]),
        (1530 << 20, 3, [49024, 4, 8, 16384]),
        (20 << 30, 0, [1_310_720, 2, 6, 16384]),
        (20 << 30, 3, [327_680, 8, 8, 16384]),
        (200 << 30, 0, [13_107_200, 2, 6, 25600]),
        (200 << 30, 3, [3_276_800, 8, 8, 25600]),
        (3 << 40, 0, [201_326_592, 2, 6, 393_216]),
        (3 << 40, 3, [25_165_696, 16, 8, 393_216]),
    ];

    #[test]
    fn the_parts_are_where_mkfs_puts_them() {
        for (bytes, chunks, made) in MADE {
            let chunk = 512 << 10;
            let of = Xfs::new(bytes, (chunks > 0).then_some(chunk), chunks * chunk);
            let (first, length, _) = of.log();
            let first = first / BLOCK;
            let here = [of.group, first / of.group, first % of.group, length / BLOCK];
            assert_eq!(here, made, "{bytes} bytes, {chunks} chunks");
        }
    }
}
