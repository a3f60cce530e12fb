//! `[files]`: what a file system adds to the load's own requests in the simulator.

use serde::Serialize;
use spindle_config::{ConfigError, Table};

use crate::kernel::Kernel;

/// Files and groups begin at multiples of this, bytes.
const ALIGNMENT: u64 = 1 << 20;

/// A kind of file system, as far as the rules depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FilesKind {
    /// Extents; a log in the middle of the file system.
    Xfs,
    /// Extents; a journal in the middle of the file system.
    Ext4,
    /// Blocks of block numbers; a journal at the beginning.
    Ext3,
    /// Blocks of block numbers, no journal.
    Ext2,
}

impl FilesKind {
    /// Dirty pages that follow each other go in one bio: XFS since 2.6.16 (`xfs_submit_ioend`), ext4 since 2.6.37
    /// (`ext4_bio_write_page`), ext2 always (`mpage_writepages`), ext3 never (`block_write_full_page`).
    pub(crate) fn writes_long_bios(self, kernel: Kernel) -> bool {
        match self {
            FilesKind::Xfs => kernel >= Kernel::new(2, 6, 16),
            FilesKind::Ext4 => kernel >= Kernel::new(2, 6, 37),
            FilesKind::Ext3 => false,
            FilesKind::Ext2 => true,
        }
    }
}

/// The file system that the load's files are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Files {
    /// Its kind.
    pub kind: FilesKind,
    /// Writes of the log are barriers, if what is below takes barriers.
    pub barriers: bool,
    /// The load writes them for the first time, so block numbers need not be read.
    pub new: bool,
    /// Bytes of a file of the load: a longer stretch of addresses is several files, one after another. By default all is one file.
    pub file_size: u64,
    /// Allocation groups to which these files go in turn; 1: they are in one piece.
    pub groups: u64,
    /// CPU time for each page that is read into the page cache, ns: allocation, mapping, completion.
    pub read_page_ns: u64,
    /// CPU time for each page that is written to, ns: allocation in memory, mapping, its journal.
    pub write_page_ns: u64,
    /// CPU time beyond that for each page that gets its block when it is written, as in new files of ext2 and ext3, ns.
    pub allocate_page_ns: u64,
}

impl Files {
    /// True if an fsync writes a log.
    #[must_use]
    pub fn has_log(&self) -> bool {
        self.kind != FilesKind::Ext2
    }

    /// True if block numbers are in blocks of their own, which have to be read.
    #[must_use]
    pub fn has_block_maps(&self) -> bool {
        matches!(self.kind, FilesKind::Ext3 | FilesKind::Ext2)
    }

    /// CPU time of the load's thread for each page that is written to, ns.
    #[must_use]
    pub fn written_page_ns(&self) -> u64 {
        match self.new {
            true => self.write_page_ns + self.allocate_page_ns,
            false => self.write_page_ns,
        }
    }

    /// First byte on the machine of a byte of the load's files. `capacity`: of the file system, bytes.
    #[must_use]
    pub fn place(&self, offset: u64, capacity: u64) -> u64 {
        if self.groups == 1 {
            return offset;
        }
        let group = capacity / self.groups / ALIGNMENT * ALIGNMENT;
        let (file, within) = (offset / self.file_size, offset % self.file_size);
        let place = file % self.groups * group + file / self.groups * self.file_size + within;
        place.min(capacity.saturating_sub(ALIGNMENT))
    }

    pub(super) fn read(mut table: Table, kernel: Kernel) -> Result<Files, ConfigError> {
        table.describe("[files]".to_owned());
        let kinds = [
            ("xfs", FilesKind::Xfs),
            ("ext4", FilesKind::Ext4),
            ("ext3", FilesKind::Ext3),
            ("ext2", FilesKind::Ext2),
        ];
        let kind = table
            .take_choice("type", &kinds)?
            .ok_or_else(|| table.missing("type"))?;
        let barriers = table.take_flag("barriers")?;
        let new = table.take_flag("new")?.unwrap_or(false);
        let groups = table.take_integer("groups", 1..=1_000_000)?.unwrap_or(1);
        let file_size = match table.take("file_size") {
            Some(value) => match value.size()? {
                bytes if bytes >= ALIGNMENT && bytes.is_multiple_of(ALIGNMENT) => bytes,
                _ => return Err(value.error("expected a multiple of 1 MiB")),
            },
            None if groups > 1 => return Err(table.missing("file_size")),
            None => u64::MAX,
        };
        let read_page_ns = table.take_duration("read_page")?;
        let write_page_ns = table.take_duration("write_page")?;
        let allocate_page_ns = table.take_duration("allocate_page")?;
        table.finish()?;
        Ok(Files {
            kind,
            barriers: barriers.unwrap_or_else(|| Files::default_barriers(kind, kernel)),
            new,
            file_size,
            groups,
            read_page_ns: read_page_ns.unwrap_or(0),
            write_page_ns: write_page_ns.unwrap_or(0),
            allocate_page_ns: allocate_page_ns.unwrap_or(0),
        })
    }

    /// The default of mount: XFS since 2.6.17 ("[XFS] Enable write barriers per default"), ext4 since 2.6.26 ("ext4: enable
    /// barriers by default"), ext3 since 3.1 ("ext3: make ext3 mount default to barrier=1"). ext2 has no log.
    fn default_barriers(kind: FilesKind, kernel: Kernel) -> bool {
        match kind {
            FilesKind::Xfs => kernel >= Kernel::new(2, 6, 17),
            FilesKind::Ext4 => kernel >= Kernel::new(2, 6, 26),
            FilesKind::Ext3 => kernel >= Kernel::new(3, 1, 0),
            FilesKind::Ext2 => false,
        }
    }
}
