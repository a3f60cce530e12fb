//! Where mke2fs puts the parts of ext4 (e2fsprogs 1.47 `ext2fs_initialize`, `ext2fs_allocate_group_table`), and where its first
//! file goes (Linux 6.1 `fs/ext4/mballoc.c`).

use super::{Extent, Logged, NewFile};

/// mke2fs makes blocks of 1 KiB on smaller volumes (`mke2fs.conf`: `small`), and an inode for each 4 KiB.
const SMALL: u64 = 512 << 20;
/// Volumes from which mke2fs makes an inode for each 32 and for each 64 KiB (`big`, `huge`).
const BIG: u64 = 4 << 40;
const HUGE: u64 = 16 << 40;
/// Groups whose tables are together (`flex_bg`).
const FLEX: u64 = 16;
const INODE: u64 = 256;
/// Bytes of a group's descriptor (`64bit`).
const DESCRIPTOR: u64 = 64;
/// The file system can grow to so many times its size (`calc_reserved_gdt_blocks`).
const GROWTH: u64 = 1024;
/// Blocks -> blocks of the journal (`ext2fs_default_journal_size`): at least so many blocks.
const JOURNALS: [(u64, u64); 8] = [
    (32768 << 10, 262_144),
    (16384 << 10, 131_072),
    (8192 << 10, 65536),
    (4096 << 10, 32768),
    (512 << 10, 16384),
    (256 << 10, 8192),
    (32 << 10, 4096),
    (0, 1024),
];
/// Numbers of the root folder and of the first file.
const ROOT: u64 = 2;
const FIRST_FILE: u64 = 12;
/// Blocks that are allocated at a time for small files (`MB_DEFAULT_GROUP_PREALLOC`), blocks of a file that is small
/// (`MB_DEFAULT_STREAM_THRESHOLD`), and most that are mapped and sent at once (`MAX_WRITEPAGES_EXTENT_LEN`).
const SHARED: u64 = 512;
const SMALL_FILE: u64 = 16;
const PIECE: u64 = 2048;

/// The layout of a volume.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ext4 {
    /// Bytes of a block.
    pub(super) block: u64,
    blocks: u64,
    /// First block of the first group.
    first: u64,
    groups: u64,
    /// Blocks of descriptors, with those that are kept for growth.
    descriptors: u64,
    /// Blocks of a group's inodes.
    inodes: u64,
    /// `stripe-width`, blocks.
    stripe: u64,
}

impl Ext4 {
    /// `stripe`: bytes of a full stripe, 0 if there is none.
    pub(super) fn new(bytes: u64, stripe: u64) -> Ext4 {
        let block = if bytes < SMALL { 1024 } else { 4096 };
        let blocks = (bytes / block).max(2);
        let first = u64::from(block == 1024);
        let of_group = 8 * block;
        let groups = (blocks - first).div_ceil(of_group).max(1);
        let in_block = block / DESCRIPTOR;
        let used = groups.div_ceil(in_block);
        let most = (blocks * GROWTH).min(u64::from(u32::MAX));
        let grown = (most - first).div_ceil(of_group).div_ceil(in_block);
        let ratio = match bytes {
            HUGE.. => 65536,
            BIG.. => 32768,
            SMALL.. => 16384,
            _ => 4096,
        };
        let in_group = (bytes / ratio).div_ceil(groups).min(of_group);
        // Whole blocks of inodes, and a number that is a multiple of 8 (`ext2fs_initialize`: `ipg`).
        let inodes = (in_group * INODE).div_ceil(block);
        let inodes = (inodes * block / INODE / 8 * 8 * INODE).div_ceil(block);
        Ext4 {
            block,
            blocks,
            first,
            groups,
            descriptors: used + grown.saturating_sub(used).min(block / 4),
            inodes,
            stripe: stripe / block,
        }
    }

    fn of_group(&self) -> u64 {
        8 * self.block
    }

    fn start(&self, group: u64) -> u64 {
        self.first + group * self.of_group()
    }

    /// A copy of the superblock is in group 1 and those whose number is a power of 3, 5 or 7 (`sparse_super`).
    fn has_copy(group: u64) -> bool {
        let is_power = |of: u64| {
            let mut power = of;
            while power < group {
                power *= of;
            }
            power == group
        };
        group <= 1 || [3, 5, 7].into_iter().any(is_power)
    }

    /// Blocks of a copy of the superblock and the descriptors.
    fn copy(&self, group: u64) -> u64 {
        match Ext4::has_copy(group) {
            true => 1 + self.descriptors,
            false => 0,
        }
    }

    /// The bitmap of a group's blocks, in the first group of those whose tables are together.
    fn block_bitmap(&self, group: u64) -> u64 {
        let head = group / FLEX * FLEX;
        self.start(head) + self.copy(head) + group % FLEX
    }

    fn inode_bitmap(&self) -> u64 {
        self.block_bitmap(0) + self.groups.min(FLEX)
    }

    fn inode_table(&self) -> u64 {
        self.inode_bitmap() + self.groups.min(FLEX)
    }

    /// Tables that have room in the first group, and the block after them: the root folder.
    fn tables(&self) -> (u64, u64) {
        let room = self.start(1).saturating_sub(self.inode_table()) / self.inodes.max(1);
        let whole = room.min(self.groups.min(FLEX));
        (whole, self.inode_table() + whole * self.inodes)
    }

    /// First byte and bytes of the journal (`get_midpoint_journal_block`): in the emptiest of the groups around the middle; if
    /// that group has the tables of others, in the next one.
    pub(super) fn journal(&self) -> (u64, u64) {
        let middle = (self.blocks - self.first) / 2 / self.of_group();
        let last = self.groups - 1;
        let group = match middle > FLEX {
            true => Some((middle / FLEX * FLEX + 1).min(last)),
            false => {
                let around = middle.saturating_sub(1)..=(middle + 1).min(last);
                around.rev().max_by_key(|group| self.free(*group))
            }
        };
        let group = group.unwrap_or(0);
        let of = JOURNALS.iter().find(|(least, _)| self.blocks >= *least);
        let blocks = of.map_or(0, |(_, journal)| *journal);
        let first = self.start(group) + self.taken(group);
        (first * self.block, blocks * self.block)
    }

    /// Blocks at the begin of a group that mke2fs takes, but for the journal.
    fn taken(&self, group: u64) -> u64 {
        let head = group / FLEX * FLEX;
        let together = (self.groups - head).min(FLEX);
        let tables = match group == head {
            true => together * (2 + self.inodes),
            false if self.has_table_of_its_own(group) => self.inodes,
            false => 0,
        };
        (self.copy(group) + tables).min(self.of_group())
    }

    /// Free blocks of a group before the journal is made, all behind what is there.
    fn free(&self, group: u64) -> u64 {
        let end = self.start(group + 1).min(self.blocks);
        end.saturating_sub(self.start(group) + self.taken(group))
    }

    /// Group 1 has a table of the first groups for which the first one has no room.
    fn has_table_of_its_own(&self, group: u64) -> bool {
        group == 1 && self.tables().0 < self.groups.min(FLEX)
    }

    /// Groups whose bitmap is on the drive (others are `BLOCK_UNINIT`): the first, that of the journal, the last.
    fn is_initialised(&self, group: u64) -> bool {
        let (first, bytes) = self.journal();
        let of = |byte: u64| (byte / self.block - self.first) / self.of_group();
        group == 0
            || group + 1 == self.groups
            || self.has_table_of_its_own(group)
            || (of(first)..=of(first + bytes - 1)).contains(&group)
    }

    /// The group in which the files of the root folder begin: the next one (`ext4_inode_to_goal_block`).
    fn goal(&self) -> u64 {
        1.min(self.groups - 1)
    }

    /// First group with room that needs no reading (`ext4_mb_good_group_nolock`).
    fn first_group(&self) -> u64 {
        let goal = self.goal();
        match self.has_table_of_its_own(goal) {
            true => (goal + 1).min(self.groups - 1),
            false => goal,
        }
    }

    pub(super) fn new_file(&self, start: u64, size: u64, first: u64) -> NewFile {
        let (_, root) = self.tables();
        let small = SMALL_FILE * self.block;
        // The next groups' bitmaps are read together (`ext4_mb_prefetch`), and that of the first group, to which the search
        // comes at its end: at once for much, later for little.
        let ahead = (self.goal()..self.goal() + FLEX - 1).map(|group| group % self.groups);
        let mut steps = vec![vec![(root, 1)], vec![(self.inode_bitmap(), 1)]];
        match first < small && self.groups >= FLEX {
            true => steps.extend([self.bitmaps(ahead), self.bitmaps([0].into_iter())]),
            false => steps.push(self.bitmaps(ahead.chain([0]))),
        }
        let of_blocks =
            |(first, blocks): (u64, u64)| (start + first * self.block, blocks * self.block);
        let of_step = |step: Vec<(u64, u64)>| step.into_iter().map(of_blocks).collect();
        let of_inode = |number: u64| (number - 1) * INODE / self.block;
        NewFile {
            reads: steps.into_iter().map(of_step).collect(),
            block: self.block,
            piece: Some(PIECE * self.block),
            converted: PIECE * self.block,
            small,
            little: self.extents(start, self.little()),
            at_once: self.extents(start, self.at_once(size)),
            doubles_from: None,
            logged: Logged::Blocks {
                // Folder, bitmap of the inodes, superblock (`ext4_sample_last_mounted`); its inode, if in another block.
                creation: 3 + u64::from(of_inode(ROOT) != of_inode(FIRST_FILE)),
                origin: start + self.first * self.block,
                group: self.of_group() * self.block,
                groups_of_descriptors: self.block / DESCRIPTOR,
            },
        }
    }

    /// First block and blocks of the bitmaps of groups, as far as they are on the drive; those side by side as one.
    fn bitmaps(&self, groups: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        let on_drive = groups.filter(|group| self.is_initialised(*group));
        let mut places: Vec<u64> = on_drive.map(|group| self.block_bitmap(group)).collect();
        places.sort_unstable();
        places.dedup();
        let mut bitmaps: Vec<(u64, u64)> = Vec::new();
        for place in places {
            match bitmaps.last_mut() {
                Some((first, blocks)) if *first + *blocks == place => *blocks += 1,
                _ => bitmaps.push((place, 1)),
            }
        }
        bitmaps
    }

    fn extents(&self, start: u64, blocks: Vec<(u64, u64)>) -> Vec<Extent> {
        let of = |(offset, first): (u64, u64)| Extent {
            offset: offset * self.block,
            first: start + first * self.block,
        };
        blocks.into_iter().map(of).collect()
    }

    /// Blocks of a file that grows little by little -> their places. The first 16 are of those that small files share
    /// (`ext4_mb_group_or_file`), the others go to the first room of 16, around these.
    fn little(&self) -> Vec<(u64, u64)> {
        let length = SHARED.next_multiple_of(self.stripe.max(1));
        let align = match self.stripe {
            2.. if !length.is_power_of_two() => self.stripe,
            _ => length,
        };
        let free = self.start(self.goal()) + self.taken(self.goal());
        let aligned = |at: u64| self.first + (at - self.first).next_multiple_of(align);
        let shared = match self.first_group() == self.goal() {
            true => aligned(free),
            false => self.start(self.first_group()),
        };
        let rest = self.first + (free - self.first).next_multiple_of(SMALL_FILE);
        let mut blocks = vec![(0, shared)];
        match shared.checked_sub(rest) {
            None | Some(0) => blocks.push((SMALL_FILE, shared + length)),
            Some(room) => {
                blocks.push((SMALL_FILE, rest));
                blocks.push((SMALL_FILE + room, shared + length));
            }
        }
        blocks
    }

    /// Blocks of a file of so many bytes that is written at once -> their places: pieces of 2048, at multiples of that
    /// (`ext4_mb_normalize_request`), so groups with a copy of the superblock lose one.
    fn at_once(&self, size: u64) -> Vec<(u64, u64)> {
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        let mut group = self.first_group();
        let mut at = self.first_piece(group);
        let pieces = size.div_ceil(PIECE * self.block);
        for piece in 0..pieces {
            while at + PIECE > self.start(group + 1) && group + 1 < self.groups {
                group += 1;
                at = self.first_piece(group);
            }
            let offset = piece * PIECE;
            let goes_on = |(from, first): &(u64, u64)| first + (offset - from) == at;
            if !blocks.last().is_some_and(goes_on) {
                blocks.push((offset, at));
            }
            at += PIECE;
        }
        blocks
    }

    /// First block of the first piece that fits into a group.
    fn first_piece(&self, group: u64) -> u64 {
        let free = self.start(group) + self.taken(group);
        let (first, bytes) = self.journal();
        let taken = match first / self.block == free {
            true => self.taken(group) + bytes / self.block,
            false => self.taken(group),
        };
        self.start(group) + taken.next_multiple_of(PIECE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the volume -> bytes of a block; blocks: first bitmap of blocks and of inodes, root folder, journal and its
    /// length, as mke2fs 1.47.0 makes them (`dumpe2fs`, `debugfs -R 'stat <8>'`).
    const MADE: [(u64, [u64; 6]); 13] = [
        (100 << 20, [1024, 259, 272, 6681, 49153, 4096]),
        (300 << 20, [1024, 261, 277, 7883, 139_265, 8192]),
        (511 << 20, [1024, 262, 278, 7944, 139_265, 8192]),
        (512 << 20, [4096, 65, 69, 2121, 65536, 4096]),
        (1020 << 20, [4096, 129, 137, 4225, 65536, 4096]),
        (1530 << 20, [4096, 193, 205, 6337, 131_072, 8192]),
        (2040 << 20, [4096, 256, 272, 8448, 196_608, 8192]),
        (4 << 30, [4096, 513, 529, 8737, 491_520, 16384]),
        (5 << 30, [4096, 641, 657, 8865, 557_056, 16384]),
        (20 << 30, [4096, 1028, 1044, 9252, 2_655_236, 32768]),
        (200 << 30, [4096, 1050, 1066, 9274, 26_247_168, 262_144]),
        (3 << 40, [4096, 1409, 1425, 9633, 402_685_952, 262_144]),
        (5 << 40, [4096, 1665, 1681, 5793, 671_121_408, 262_144]),
    ];

    #[test]
    fn the_parts_are_where_mke2fs_puts_them() {
        for (bytes, made) in MADE {
            let of = Ext4::new(bytes, 0);
            let (first, length) = of.journal();
            let here = [
                of.block,
                of.block_bitmap(0),
                of.inode_bitmap(),
                of.tables().1,
                first / of.block,
                length / of.block,
            ];
            assert_eq!(here, made, "{bytes} bytes");
        }
    }

    /// First block of the file and its place, of each extent, as `debugfs -R 'stat f'` has them after the load in the lab: 1000
    /// times 512 bytes, each with an fsync; or 64 MiB.
    #[test]
    fn a_new_file_gets_the_blocks_that_the_kernel_gives_it() {
        let chunks = |count: u64| count * (512 << 10);
        type Extents = &'static [(u64, u64)];
        let made: [(u64, u64, Extents); 4] = [
            (511 << 20, 0, &[(0, 16385), (16, 8977)]),
            (512 << 20, 0, &[(0, 33280), (16, 32848)]),
            (1020 << 20, chunks(2), &[(0, 33280), (16, 32912)]),
            (
                1530 << 20,
                chunks(3),
                &[(0, 33024), (16, 32976), (64, 33792)],
            ),
        ];
        for (bytes, stripe, blocks) in made {
            let little = Ext4::new(bytes, stripe).little();
            assert_eq!(little[..blocks.len()], *blocks, "{bytes} bytes");
        }
        let small = Ext4::new(511 << 20, 0).at_once(64 << 20);
        let places = [
            (0, 16385),
            (8192, 26625),
            (22528, 43009),
            (36864, 59393),
            (51200, 75777),
        ];
        assert_eq!(small, places);
        assert_eq!(Ext4::new(512 << 20, 0).at_once(64 << 20), [(0, 34816)]);
    }
}
