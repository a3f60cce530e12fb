//! A machine as data, and the construction of its parts.

mod bitmap;
mod catalogue;
mod files;
mod filesystem;
mod parse;
mod ranges;

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_array::{Array, ArrayConfig, DEFAULT_READ_AHEAD, Level, MemberSet};
use spindle_config::Range;
use spindle_drive::{DataSheet, Device, Drive, FlashState, Server, ServerParams, Settings};
use spindle_workload::{Size, Stream, Workload};

use crate::cache::{CacheSetup, PAGE, ReadAheadLimits};
use crate::controller::{Controller, ControllerSheet, ControllerUnit, DestageOrder, Unit};
use crate::elevator::Scheduler;
use crate::engine::{
    Bitmap, Engine, Fabric, Limits, Method, Queue, Rebuild, Rules, Setup, SimOptions, Target,
    ThrottleSetup, lay_out, word_width,
};
use crate::error::SimError;
use crate::figures::SimFigures;
use crate::kernel::Kernel;

use self::filesystem::Geometry;

pub use self::bitmap::BitmapSetup;
pub use self::catalogue::{UnknownMachine, machine_names, machine_text};
pub use self::files::{Files, FilesKind};
pub use self::filesystem::FileSystem;
pub(crate) use self::filesystem::{Extent, LeftInStripes, Log, LogKind, Logged, NewFile};
pub use self::ranges::PartRange;

/// Bytes of a block.
pub(crate) const BLOCK: u64 = 512;
/// Deepest queue of an ATA drive. Deeper ones have a queue for each CPU, and queue their flushes too.
const ATA_DEPTH: u32 = 32;
/// `BLKDEV_DEFAULT_RQ`: requests of a queue before blk-mq, and half of the most since (`blk_mq_init_sched`).
const DEFAULT_REQUESTS: u32 = 128;

/// A machine: host, queues, array, drives.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Name, from the file.
    pub name: String,
    /// One line for people.
    pub about: String,
    /// The host.
    pub host: Host,
    /// The queue of each drive.
    pub queue: QueueSetup,
    /// Software RAID over all drives; without it, there is one drive.
    pub array: Option<ArraySetup>,
    /// The adapter between host and drives; without it, the drives are the host's own.
    pub controller: Option<ControllerSetup>,
    /// First byte of the partition that the load gets; 0: all of the array or drive.
    pub partition_start: u64,
    /// File system on it.
    pub filesystem: Option<FileSystem>,
    /// The file system of the load's files, as far as the simulator models it.
    pub files: Option<Files>,
    /// The drives, in slot order.
    pub drives: Vec<DriveSetup>,
}

/// The host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Kernel whose rules are followed.
    pub kernel: Kernel,
    /// CPU time a worker spends on each request, ns.
    pub cpu_per_request_ns: u64,
    /// Time that a reading of the clock takes where nothing else takes any, in the lab: ns.
    #[serde(skip_serializing_if = "is_zero")]
    pub clock_reading_ns: u64,
    /// Memory, bytes; `None` for 1 GiB.
    pub memory: Option<u64>,
    /// Limits of dirty pages.
    pub dirty: DirtyLimits,
    /// Bytes that a processor copies to or from the page cache in a second.
    pub copy_rate: u64,
    /// CPU time for each page of a block device that the kernel asks for one by one (until 3.17), ns.
    #[serde(skip_serializing_if = "is_zero")]
    pub ask_page_ns: u64,
    /// CPU time for each dirty page that is handed to the drives, ns.
    #[serde(skip_serializing_if = "is_zero")]
    pub send_page_ns: u64,
    /// Time of md's thread for each page of RAID4/5/6 that it copies to or from its cache, or that parity is computed from, ns.
    #[serde(skip_serializing_if = "is_zero")]
    pub stripe_page_ns: u64,
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl Host {
    /// Its memory, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.unwrap_or(DEFAULT_MEMORY)
    }
}

/// Limits of dirty pages (`/proc/sys/vm/dirty_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DirtyLimits {
    /// Percentage of the memory from which the kernel writes (`dirty_background_ratio`).
    pub background_ratio: u8,
    /// Percentage of the memory that is never exceeded (`dirty_ratio`).
    pub ratio: u8,
    /// Instead of the percentage, bytes (`dirty_background_bytes`).
    pub background_bytes: Option<u64>,
    /// Instead of the percentage, bytes (`dirty_bytes`).
    pub bytes: Option<u64>,
    /// Age from which dirty pages are written (`dirty_expire_centisecs`), ns.
    pub expire_ns: u64,
    /// Interval in which the kernel looks for them (`dirty_writeback_centisecs`), ns.
    pub writeback_ns: u64,
}

impl DirtyLimits {
    /// The kernel's defaults (`mm/page-writeback.c`).
    pub const DEFAULT: DirtyLimits = DirtyLimits {
        background_ratio: 10,
        ratio: 20,
        background_bytes: None,
        bytes: None,
        expire_ns: 30_000_000_000,
        writeback_ns: 5_000_000_000,
    };

    /// Files of `/proc/sys/vm` with other values than the kernel's own.
    #[must_use]
    pub fn changed(&self) -> BTreeMap<&'static str, u64> {
        let own = DirtyLimits::DEFAULT;
        let set = |value: u64, default: u64| (value != default).then_some(value);
        let centiseconds = |ns: u64| ns / 10_000_000;
        let files = [
            (
                "dirty_background_ratio",
                set(self.background_ratio.into(), own.background_ratio.into()),
            ),
            ("dirty_ratio", set(self.ratio.into(), own.ratio.into())),
            ("dirty_background_bytes", self.background_bytes),
            ("dirty_bytes", self.bytes),
            (
                "dirty_expire_centisecs",
                set(centiseconds(self.expire_ns), centiseconds(own.expire_ns)),
            ),
            (
                "dirty_writeback_centisecs",
                set(
                    centiseconds(self.writeback_ns),
                    centiseconds(own.writeback_ns),
                ),
            ),
        ];
        files
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

/// Memory of a host whose machine file does not name it, bytes.
const DEFAULT_MEMORY: u64 = 1 << 30;
/// Bytes a second that a processor copies unless the machine file names them: one core of a server since about 2010.
pub(crate) const DEFAULT_COPY_RATE: u64 = 5_000_000_000;

/// The block layer's queue, the same for each drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueSetup {
    /// Elevator; `None` for the kernel's default for the drive.
    pub scheduler: Option<Scheduler>,
    /// Limit of requests (`nr_requests`); `None` for the kernel's default.
    pub nr_requests: Option<u32>,
    /// Longest request, bytes (`max_sectors_kb`); `None` for the default.
    pub max_request: Option<u64>,
    /// Read-ahead of the device under test, bytes (`read_ahead_kb`); `None` for the kernel's default.
    pub read_ahead: Option<u64>,
}

/// An adapter with a processor of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct ControllerSetup {
    /// Its numbers.
    pub sheet: ControllerSheet,
    /// Writes are answered from its cache.
    pub write_cache: bool,
    /// The cache outlives a loss of power, so a flush of the host needs nothing.
    pub battery: bool,
    /// The order in which cached writes leave.
    pub destage_order: DestageOrder,
    /// Adapters, each with as many of the drives; 1 with an array of its own.
    pub count: u32,
    /// The array that it makes of all drives; `None`: each drive is a unit.
    pub array: Option<ArrayConfig>,
}

impl ControllerSetup {
    /// True if the write caches of its drives are on, unless a drive's own setting says otherwise: where its own cache is
    /// switched off, so are theirs (3ware 9000 series user guides, "unit write cache").
    pub(crate) fn keeps_drive_caches(&self) -> bool {
        self.sheet.drive_write_cache && (self.write_cache || self.sheet.cache == 0)
    }
}

/// Software RAID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArraySetup {
    /// Level, layout, chunk, members.
    pub config: ArrayConfig,
    /// Bytes before the data on each member, with md's superblock; 0: the superblock is not modelled.
    pub data_offset: u64,
    /// `stripe_cache_size`: rows of 4 KiB blocks under way.
    pub stripe_cache: u32,
    /// Slots of members that are gone.
    pub missing: Vec<u32>,
    /// md has synced or checked all of it since it was assembled, and takes the heads of all members to be at their ends.
    pub synced: bool,
    /// A member that is being rebuilt on a new drive, or a check of all.
    pub rebuild: Option<RebuildSetup>,
    /// An internal write-intent bitmap.
    pub bitmap: Option<BitmapSetup>,
}

/// A rebuild or a check (`sync_action`), and its pace (`sync_speed_min`, `sync_speed_max`), bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RebuildSetup {
    /// Slot of the member that is rebuilt; `None`: a check, which reads all.
    pub member: Option<u32>,
    /// Reached regardless of the load.
    pub speed_min: u64,
    /// Never exceeded.
    pub speed_max: u64,
}

/// One drive.
#[derive(Debug, Clone, PartialEq)]
pub struct DriveSetup {
    /// Model, for people.
    pub model: String,
    /// Kind of the drive.
    pub kind: DriveKind,
    /// Settings that differ from those it ships with.
    pub settings: Settings,
    /// First byte used.
    pub start: u64,
    /// Bytes used.
    pub len: u64,
    /// Its uncertain numbers.
    pub ranges: Vec<Range>,
}

/// The source of a drive's parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum DriveKind {
    /// A data sheet.
    Sheet(Box<DataSheet>),
    /// A service time, for what queueing theory has formulas for.
    Server(ServerParams),
}

impl DriveSetup {
    /// Builds the drive, idle and with empty caches.
    pub fn build(&self) -> Result<Drive, spindle_drive::DriveError> {
        match &self.kind {
            DriveKind::Sheet(sheet) => sheet.build(self.settings),
            DriveKind::Server(params) => Ok(Drive::Server(Box::new(Server::new(*params)?))),
        }
    }

    /// True if the drive may acknowledge a write before it is on the medium, so that a host sends flushes.
    #[must_use]
    pub fn has_write_cache(&self) -> bool {
        match &self.kind {
            DriveKind::Sheet(_) => self.settings.write_cache != Some(false),
            DriveKind::Server(params) => params.flush_ns.is_some(),
        }
    }

    /// Cache of the drive, bytes; 0 if its sheet does not say.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        match &self.kind {
            DriveKind::Sheet(sheet) => sheet.cache_bytes(),
            DriveKind::Server(_) => 0,
        }
    }

    /// State of a flash drive at the beginning; `None` for one that has none.
    #[must_use]
    pub fn state(&self) -> Option<FlashState> {
        match &self.kind {
            DriveKind::Sheet(sheet) if sheet.is_flash() => {
                Some(self.settings.state.unwrap_or_default())
            }
            _ => None,
        }
    }

    /// True for a drive on ATA; `depth`: of its queue.
    #[must_use]
    pub fn is_ata(&self, depth: u32) -> bool {
        depth <= ATA_DEPTH && matches!(self.kind, DriveKind::Sheet(_))
    }

    /// True for a drive without moving heads.
    #[must_use]
    pub fn is_flash(&self) -> bool {
        match &self.kind {
            DriveKind::Sheet(sheet) => sheet.is_flash(),
            DriveKind::Server(params) => !params.rotational,
        }
    }
}

impl Machine {
    /// A machine of one drive that is only a service time, with the elevator `none`: for comparisons with queueing theory.
    #[must_use]
    pub fn server(params: ServerParams) -> Machine {
        Machine {
            name: "server".to_owned(),
            about: "a single server".to_owned(),
            host: Host {
                kernel: Kernel::DEFAULT,
                cpu_per_request_ns: 0,
                clock_reading_ns: 0,
                memory: None,
                dirty: DirtyLimits::DEFAULT,
                copy_rate: DEFAULT_COPY_RATE,
                ask_page_ns: 0,
                send_page_ns: 0,
                stripe_page_ns: 0,
            },
            queue: QueueSetup {
                scheduler: Some(Scheduler::None),
                nr_requests: None,
                max_request: None,
                read_ahead: None,
            },
            array: None,
            controller: None,
            partition_start: 0,
            filesystem: None,
            files: None,
            drives: vec![DriveSetup {
                model: "server".to_owned(),
                kind: DriveKind::Server(params),
                settings: Settings::default(),
                start: 0,
                len: params.capacity_blocks * BLOCK,
                ranges: Vec::new(),
            }],
        }
    }

    /// Bytes that a load can address: the partition, or the test file in its file system.
    pub fn capacity(&self) -> Result<u64, SimError> {
        match &self.filesystem {
            Some(filesystem) => Ok(filesystem.size),
            None => self.partition_bytes(),
        }
    }

    fn partition_bytes(&self) -> Result<u64, SimError> {
        let whole = match self.array_config() {
            Some(config) => Array::new(config.clone())?.capacity(),
            None => self.drives.first().map_or(0, |drive| drive.len),
        };
        Ok(whole.saturating_sub(self.partition_start))
    }

    /// The array over all drives, by md or by the controller.
    #[must_use]
    pub fn array_config(&self) -> Option<&ArrayConfig> {
        let by_controller = self.controller.as_ref().and_then(|of| of.array.as_ref());
        by_controller.or(self.array.as_ref().map(|array| &array.config))
    }

    /// Commands that all units together take.
    pub fn queue_depth(&self) -> Result<u32, SimError> {
        let units = self.units()?;
        Ok(units
            .iter()
            .fold(0, |sum, (unit, _)| sum.saturating_add(unit.queue_depth())))
    }

    /// The drives that the host sees, with the setup of the first real drive of each.
    fn units(&self) -> Result<Vec<(Unit, &DriveSetup)>, SimError> {
        let mut drives = Vec::with_capacity(self.drives.len());
        for (slot, setup) in self.drives.iter().enumerate() {
            let drive = setup.build().map_err(|error| SimError::Drive {
                name: format!("drive{slot}"),
                error,
            })?;
            drives.push((drive, setup));
        }
        let Some(controller) = &self.controller else {
            return Ok(drives
                .into_iter()
                .map(|(drive, setup)| (Unit::Drive(drive), setup))
                .collect());
        };
        let unit = |sheet: &ControllerSheet, board, array, drives| {
            Unit::Controller(Box::new(Controller::new(ControllerUnit {
                board,
                sheet: sheet.clone(),
                write_back: controller.write_cache,
                battery: controller.battery,
                order: controller.destage_order,
                array,
                drives,
            })))
        };
        let Some(config) = &controller.array else {
            let boards: Vec<_> = (0..controller.count)
                .map(|_| controller.sheet.board())
                .collect();
            // As many drives on each, whose units share the cache alike.
            let each = drives.len().div_ceil(boards.len());
            let mut sheet = controller.sheet.clone();
            sheet.cache /= each as u64;
            return Ok(drives
                .into_iter()
                .enumerate()
                .map(|(slot, (drive, setup))| {
                    let blocks = drive.capacity_blocks();
                    let board = boards[slot / each].clone();
                    (unit(&sheet, board, None, vec![(drive, 0, blocks)]), setup)
                })
                .collect());
        };
        let array = Array::new(config.clone())?;
        let members = drives
            .into_iter()
            .map(|(drive, setup)| (drive, setup.start / BLOCK, setup.len / BLOCK))
            .collect();
        let sheet = &controller.sheet;
        let unit = unit(sheet, sheet.board(), Some(array), members);
        Ok(vec![(unit, &self.drives[0])])
    }

    /// Names of the elevators in use.
    #[must_use]
    pub fn schedulers(&self) -> Vec<&'static str> {
        let Ok(units) = self.units() else {
            return Vec::new();
        };
        let mut names: Vec<_> = units
            .iter()
            .map(|(unit, setup)| self.scheduler(setup, unit.queue_depth()).name())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The first table or key that only a real kernel carries out.
    fn beyond_the_model(&self) -> Option<&'static str> {
        if self.filesystem.as_ref().is_some_and(|of| !of.has_place()) {
            return Some("[filesystem] `type = \"btrfs\"`");
        }
        let array = self.array.as_ref()?;
        let has_groups = matches!(array.config.level, Level::Raid50 | Level::Raid60);
        match array.rebuild {
            Some(of) if has_groups && of.member.is_none() => {
                Some("[array] `check` of raid50 and raid60")
            }
            _ if has_groups && array.bitmap.is_some() => {
                Some("[array] `bitmap` of raid50 and raid60")
            }
            _ => None,
        }
    }

    /// First byte of the load's target on the array or drive: of the partition, or of the test file.
    fn target_start(&self) -> Result<u64, SimError> {
        let Some(filesystem) = &self.filesystem else {
            return Ok(self.partition_start);
        };
        let size = self.partition_bytes()?;
        let room = size
            .checked_sub(filesystem.size)
            .ok_or(SimError::FilesTooLarge {
                bytes: filesystem.size,
                capacity: size,
            })?;
        let start = filesystem.first_byte(self.geometry()?).unwrap_or(0);
        Ok(self.partition_start + start.min(room / BLOCK * BLOCK))
    }

    /// The log of the file system, and whether its writes are between flushes. Before kernel 2.6.37 an fsync only flushes here.
    fn log(&self) -> Result<Option<(Log, bool)>, SimError> {
        let Some(filesystem) = self
            .filesystem
            .as_ref()
            .filter(|_| self.host.kernel.flushes() && self.files.is_none())
        else {
            return Ok(None);
        };
        let log = filesystem.log(self.geometry()?);
        Ok(log.map(|log| (log, filesystem.has_barriers())))
    }

    /// Place of the read that opens the test file.
    fn inode(&self) -> Result<Option<(u64, u64)>, SimError> {
        let geometry = self.geometry()?;
        let of = |filesystem: &FileSystem| filesystem.inode(geometry);
        Ok(self.filesystem.as_ref().and_then(of))
    }

    /// The file that the load makes: if it has a single one that is not filled, through the page cache.
    fn new_file(&self, workload: &Workload) -> Result<Option<NewFile>, SimError> {
        let (Some(filesystem), [set]) = (&self.filesystem, workload.filesets.as_slice()) else {
            return Ok(None);
        };
        let is_direct = |stream: &Stream| stream.direct;
        if set.fill || !self.host.kernel.flushes() || self.files.is_some() {
            return Ok(None);
        }
        let capacity = self.capacity()?;
        match lay_out(workload, capacity)?.as_slice() {
            [layout] if layout.sizes.len() == 1 && !workload.streams.iter().any(is_direct) => {
                // Who syncs each write asks for little room at a time.
                let syncs = |stream: &Stream| {
                    let sync = stream.sync;
                    sync.dsync || sync.osync || sync.fsync_every == 1 || sync.fdatasync_every == 1
                };
                let size = layout.sizes[0];
                let first = match workload.streams.iter().find(|stream| syncs(stream)) {
                    Some(Stream {
                        size: Size::Fixed { bytes },
                        ..
                    }) => u64::from(*bytes),
                    _ => size,
                };
                Ok(filesystem.new_file(self.geometry()?, size, first))
            }
            _ => Ok(None),
        }
    }

    /// The state in which making the file system leaves the stripe cache of a parity array.
    fn left_in_stripes(&self) -> Result<Option<LeftInStripes>, SimError> {
        let level = self.array_config().map(|config| config.level);
        let Some(level) = level.filter(|level| level.parities() > 0) else {
            return Ok(None);
        };
        let geometry = self.geometry()?;
        let left = |of: &FileSystem| of.left_in_stripes(geometry, level);
        Ok(self.filesystem.as_ref().map(left))
    }

    /// The volume that mkfs finds. mkfs.xfs takes no note of the stripes of a small one (xfsprogs 6.1 `calc_stripe_factors`).
    fn geometry(&self) -> Result<Geometry, SimError> {
        let bytes = self.partition_bytes()?;
        let is_xfs = self.filesystem.as_ref().is_some_and(FileSystem::is_xfs);
        let (chunk, stripe) = match self.array_config() {
            Some(config) if !is_xfs || bytes >= LEAST_STRIPED => {
                let array = Array::new(config.clone())?;
                (array.chunk(), Some(array.queue_limits().optimal_io))
            }
            _ => (None, None),
        };
        Ok(Geometry {
            start: self.partition_start,
            bytes,
            chunk,
            stripe: stripe.filter(|bytes| *bytes > 0),
        })
    }

    /// True if every drive takes discards, and the array passes them on: md's parity levels do not by default.
    fn takes_discards(&self) -> bool {
        let parity = self
            .array
            .as_ref()
            .is_some_and(|array| array.config.level.parities() > 0);
        !parity && self.controller.is_none() && self.drives.iter().all(DriveSetup::is_flash)
    }

    fn engine(&self, workload: &Workload, options: SimOptions) -> Result<Engine, SimError> {
        if let Some(key) = self.beyond_the_model() {
            return Err(SimError::NeedsKernel { key });
        }
        let grown = match self.new_file(workload)? {
            Some(_) => None,
            None => self.stripe_cache_of_written_file()?,
        };
        self.engine_with(grown, workload, options)
    }

    /// Rows to which md's stripe cache grows while the test file is written, before the load.
    fn stripe_cache_of_written_file(&self) -> Result<Option<u32>, SimError> {
        let parities = self.array_config().map_or(0, |of| of.level.parities());
        let Some(filesystem) = self.filesystem.as_ref().filter(|_| parities > 0) else {
            return Ok(None);
        };
        let bytes = filesystem.size.min(MOST_WRITTEN) / WRITTEN_AT_ONCE * WRITTEN_AT_ONCE;
        if bytes == 0 {
            return Ok(None);
        }
        let text = format!(
            "seconds = 'none'\nbytes = {bytes}\npattern = 'sequential'\nsize = {WRITTEN_AT_ONCE}\n\
             direct = false\nwrite_fraction = 1\nend_fsync = true\n"
        );
        let Ok(workload) = Workload::parse(&text, "file", "file", &[]) else {
            return Ok(None);
        };
        self.engine_with(None, &workload, SimOptions::default())?
            .grown_stripe_cache()
    }

    fn engine_with(
        &self,
        stripe_cache: Option<u32>,
        workload: &Workload,
        options: SimOptions,
    ) -> Result<Engine, SimError> {
        let units = self.units()?.into_iter().enumerate();
        let queues = units
            .map(|(slot, (unit, setup))| self.queue(slot, unit, setup))
            .collect();
        let (target, capacity) = match &self.array {
            Some(array) => {
                let fabric = self.fabric(array, stripe_cache)?;
                (Target::Array(Box::new(fabric)), self.capacity()?)
            }
            None => {
                // A controller's array begins where its drives' regions do.
                let by_controller = self.array_config().is_some();
                let start = if by_controller {
                    0
                } else {
                    self.drives[0].start
                };
                let start = start / BLOCK;
                (Target::Drive { start }, self.capacity()?)
            }
        };
        let rules = Rules {
            kernel: self.host.kernel,
            cpu_ns: self.host.cpu_per_request_ns,
            reading_ns: self.host.clock_reading_ns,
            stripe_page_ns: match self.host.clock_reading_ns {
                0 => self.host.stripe_page_ns,
                _ => 0,
            },
            takes_discards: self.takes_discards(),
            partition_start: self.target_start()?,
            files: self.files,
            log: self.log()?,
            inode: self.inode()?,
            is_xfs: self.filesystem.as_ref().is_some_and(FileSystem::is_xfs),
            marks_write_back: self.filesystem.as_ref().is_none_or(|of| of.kind != "ext4"),
        };
        let cache = self.cache()?;
        let opens_file = options.opens_file;
        let mut engine = Engine::new(target, queues, capacity, rules, cache, workload, options)?;
        if let Some(file) = self.new_file(workload)? {
            let left = self.left_in_stripes()?;
            engine.make_file(file, opens_file, left.as_ref())?;
        }
        Ok(engine)
    }

    /// Memory and limits of the page cache, in pages.
    fn cache(&self) -> Result<CacheSetup, SimError> {
        let most = dirtyable_memory(self.host.memory_bytes()) / PAGE;
        let dirty = self.host.dirty;
        let limit = |bytes: Option<u64>, ratio: u8| match bytes {
            Some(bytes) => bytes / PAGE,
            None => most * u64::from(ratio) / 100,
        };
        let longest = self
            .queue
            .max_request
            .unwrap_or(self.host.kernel.max_request());
        let (read_ahead, longest_io) = match &self.array {
            Some(setup) => {
                let array = Array::new(setup.config.clone())?;
                let limits = array.queue_limits();
                (limits.read_ahead, limits.max_request.min(longest))
            }
            None => (DEFAULT_READ_AHEAD, longest),
        };
        let kernel = self.host.kernel;
        let has_files = self.files.is_some() || self.filesystem.is_some();
        let pages_of_a_bio = kernel.pages_of_a_bio(longest_io / PAGE);
        let reads_page_by_page = !has_files && kernel.reads_devices_page_by_page();
        let highest = limit(dirty.bytes, dirty.ratio);
        let background = limit(dirty.background_bytes, dirty.background_ratio);
        Ok(CacheSetup {
            most,
            // domain_dirty_limits: the lower limit is below the upper one.
            background: if background < highest {
                background
            } else {
                highest / 2
            },
            limit: highest,
            expire_ns: dirty.expire_ns,
            interval_ns: dirty.writeback_ns,
            read_ahead_rule: kernel.read_ahead_rule(),
            read_ahead: ReadAheadLimits {
                most: self.queue.read_ahead.unwrap_or(read_ahead) / PAGE,
                longest_io: longest_io / PAGE,
            },
            copy_rate: match self.host.clock_reading_ns {
                0 => self.host.copy_rate,
                _ => u64::MAX,
            },
            asks_page_by_page: reads_page_by_page,
            longest_read: match reads_page_by_page {
                true => 1,
                false => pages_of_a_bio,
            },
            ask_page_ns: self.host.ask_page_ns,
            send_page_ns: self.host.send_page_ns,
            piece: u64::MAX,
            longest_write: match self.files {
                _ if self.filesystem.is_some() => PAGES_OF_A_FILE_WRITE,
                Some(files) if files.kind.writes_long_bios(kernel) => {
                    pages_of_a_bio.min(PAGES_OF_A_FILE_WRITE)
                }
                _ => 1,
            },
        })
    }

    /// Longest request that md takes in one piece, bytes: that of the members when the array was made, if it is shorter
    /// (`blk_stack_limits`). Levels with parity set theirs after that (6.1 `raid5_run`).
    fn longest_of_md(&self, array: &Array) -> u64 {
        let own = array.queue_limits().max_request;
        match array.level().parities() {
            0 => own.min(self.queue.max_request.unwrap_or(own)),
            _ => own,
        }
    }

    fn queue(&self, slot: usize, unit: Unit, setup: &DriveSetup) -> Queue {
        let kernel = self.host.kernel;
        let depth = unit.queue_depth();
        let is_ata = self.controller.is_none() && setup.is_ata(depth);
        let longest = self.queue.max_request.unwrap_or(kernel.max_request());
        let (name, model, longest) = match &self.controller {
            Some(of) => {
                let whole = of.array.is_some();
                let model = if whole { &of.sheet.name } else { &setup.model };
                let name = if whole { "unit" } else { "drive" };
                (name, model, longest.min(of.sheet.max_request))
            }
            None => ("drive", &setup.model, longest),
        };
        let scheduler = self.scheduler(setup, depth);
        let passes = matches!(scheduler, Scheduler::None | Scheduler::Noop);
        // Without an elevator, blk-mq has no requests but the drive's own tags.
        let requests = match (&scheduler, self.queue.nr_requests) {
            (Scheduler::None, Some(requests)) => requests.min(depth),
            (Scheduler::None, None) => depth,
            (_, Some(requests)) => requests,
            // Twice the tags of the host adapter: 32 for ATA, whatever the drive's depth is set to.
            (_, None) if kernel.multi_queue() => {
                let tags = if is_ata { ATA_DEPTH } else { depth };
                2 * tags.min(DEFAULT_REQUESTS)
            }
            (_, None) => DEFAULT_REQUESTS,
        };
        let limits = Limits {
            requests,
            multi_queue: kernel.multi_queue() || scheduler == Scheduler::None,
            plugs: kernel.plugs_queues() && scheduler != Scheduler::None,
            by_direction: kernel.counts_requests_by_direction(),
            flushes_for_barriers: self.has_write_cache(setup),
            wake_batch: wake_batch(&scheduler, requests),
            has_shares: matches!(scheduler, Scheduler::Bfq(_) | Scheduler::Kyber(_)),
            depth,
            max_blocks: (longest / BLOCK) as u32,
            flush_alone: is_ata,
            takes_one_ahead: kernel.multi_queue() && !is_ata,
            starts_take_time: self.host.clock_reading_ns > 0,
            throttle: self.throttle(setup, &scheduler, depth),
        };
        let elevator = scheduler.build(setup.is_flash(), depth);
        Queue::new(
            unit,
            format!("{name}{slot}"),
            model.clone(),
            elevator,
            passes,
            limits,
        )
    }

    /// Throttling of write-back: not with bfq (`wbt_disable_default`).
    fn throttle(
        &self,
        setup: &DriveSetup,
        scheduler: &Scheduler,
        depth: u32,
    ) -> Option<ThrottleSetup> {
        let kernel = self.host.kernel;
        let throttles = kernel.throttles_write_back() && !matches!(scheduler, Scheduler::Bfq(_));
        throttles.then(|| ThrottleSetup {
            depth: 2 * depth.min(DEFAULT_REQUESTS),
            write_cache: self.has_write_cache(setup),
            target_ns: if setup.is_flash() {
                2_000_000
            } else {
                75_000_000
            },
            idle_after_writes_ns: self.idle_after_writes_ns(),
        })
    }

    /// Time since nothing but writes went to the drives, if that was so: the test file has just been written, or md has
    /// written the superblocks of a new array, and the load begins a second after that (`mdadm --create`; the lab shows
    /// `wb_normal` 96 then, and 31 a second later).
    fn idle_after_writes_ns(&self) -> Option<u64> {
        let has_superblocks = self
            .array
            .as_ref()
            .is_some_and(|array| !matches!(array.config.level, Level::Linear | Level::Raid0));
        match (self.filesystem.is_some(), has_superblocks) {
            (true, _) => Some(0),
            (false, true) => Some(1_000_000_000),
            (false, false) => None,
        }
    }

    /// True if the host's flushes have an effect on the unit: a controller's cache, or the drive's own.
    fn has_write_cache(&self, setup: &DriveSetup) -> bool {
        match &self.controller {
            Some(controller) => controller.write_cache || setup.has_write_cache(),
            None => setup.has_write_cache(),
        }
    }

    fn scheduler(&self, setup: &DriveSetup, depth: u32) -> Scheduler {
        let kernel = self.host.kernel;
        let several_queues = setup.is_flash() && !setup.is_ata(depth);
        self.queue.scheduler.clone().unwrap_or_else(|| {
            Scheduler::named(kernel.default_scheduler(several_queues), kernel)
                .unwrap_or(Scheduler::None)
        })
    }

    fn fabric(&self, setup: &ArraySetup, stripe_cache: Option<u32>) -> Result<Fabric, SimError> {
        let array = Array::new(setup.config.clone())?;
        let kernel = self.host.kernel;
        let mut missing: MemberSet = setup.missing.iter().copied().collect();
        let rebuild = setup.rebuild.map(|rebuild| {
            rebuild
                .member
                .into_iter()
                .for_each(|member| missing.insert(member));
            let slot = rebuild.member.unwrap_or(0) as usize;
            let size = match array.component() {
                // RAID10 checks by addresses of the array (`resync_max_sectors`).
                _ if rebuild.member.is_none() && array.level() == Level::Raid10 => array.capacity(),
                0 => self.drives[slot].len - setup.data_offset,
                component => component,
            };
            Rebuild::new(
                rebuild.member,
                size,
                self.drives.len(),
                (rebuild.speed_min, rebuild.speed_max),
                rebuild_method(&array),
                kernel,
            )
        });
        let bitmap = setup.bitmap.map(|of| {
            let chunk = of.chunk_of(&array);
            Bitmap::new(chunk, bitmap::covered(&array))
        });
        let setup = Setup {
            starts: self
                .drives
                .iter()
                .map(|drive| (drive.start + setup.data_offset) / BLOCK)
                .collect(),
            data_offset: setup.data_offset / BLOCK,
            longest: self.longest_of_md(&array),
            // mkfs and mount leave them at a log, as mkfs puts it in the middle. A sync ends at the end
            // (`end_sync_read`: `update_head_pos`).
            head: match self.filesystem {
                Some(_) => array.component() / 2,
                None if setup.synced => array.component(),
                None => 0,
            },
            flash: self.drives.iter().map(DriveSetup::is_flash).collect(),
            missing,
            balance: kernel.balance(),
            stripe_rules: kernel.stripe_rules(),
            stripe_cache: stripe_cache.unwrap_or(setup.stripe_cache),
            reads_stripes: !kernel.reads_past_stripe_cache(),
            lower_first: kernel.sorts_lower_bios_first(),
            rebuild,
            bitmap,
        };
        Ok(Fabric::new(array, setup))
    }
}

/// A smaller volume is not aligned to stripes by mkfs.xfs of itself.
const LEAST_STRIPED: u64 = 1 << 30;

/// How md rebuilds a member: RAID10 within chunks.
fn rebuild_method(array: &Array) -> Method {
    match array.level() {
        level if level.parities() > 0 => Method::Rows,
        Level::Raid1 => Method::Buckets,
        _ => Method::Turns {
            longest: array.chunk().unwrap_or(u64::MAX),
        },
    }
}

/// The test file is written in pieces of this size; what is beyond the most of it changes the stripe cache no more.
const WRITTEN_AT_ONCE: u64 = 8 << 20;
const MOST_WRITTEN: u64 = 1 << 30;

/// Pages of a file that are written as one, if they follow each other (6.1 `fs/iomap/buffered-io.c`: `IOEND_BATCH_SIZE`). That they
/// do in memory too is assumed.
const PAGES_OF_A_FILE_WRITE: u64 = 4096;

/// Memory of a kernel and a few programs before any load, bytes. Measured in the lab, of whose memory this and the tables
/// below are missing in `nr_dirty_threshold` of /proc/vmstat: 40 MiB within 2 MiB from 256 MiB to 4 GiB of memory.
const KERNEL_BYTES: u64 = 40 << 20;

/// Memory for the page cache, bytes (6.1 `mm/page-writeback.c`, `global_dirtyable_memory`): without the descriptors of pages
/// (`struct page`, 64 bytes), the hash tables of names, inodes and sockets (a 256th), and what is kept free
/// (`mm/page_alloc.c`: `calculate_min_free_kbytes`, `__setup_per_zone_wmarks`).
fn dirtyable_memory(memory: u64) -> u64 {
    let least_free = ((memory / 1024 * 16).isqrt() * 1024).clamp(128 << 10, 256 << 20);
    let kept_free = least_free + 2 * (least_free / 4).max(memory / 1000);
    memory - memory / 64 - memory / 256 - kept_free - KERNEL_BYTES
}

/// Requests are bits of several words (`sbitmap_calculate_shift`), and an elevator may promise to use only a part of each
/// word (`sbitmap_queue_min_shallow_depth`): an eighth of what is left.
fn wake_batch(scheduler: &Scheduler, requests: u32) -> u32 {
    let word = word_width(requests);
    let least = match scheduler {
        Scheduler::Kyber(_) => (word * 3 / 4).max(1),
        Scheduler::Bfq(_) | Scheduler::MqDeadline(_) => 1,
        _ => word,
    };
    let usable = requests / word * least + (requests % word).min(least);
    (usable / 8).clamp(1, 8)
}

/// Runs a workload on a machine, on the calling thread.
pub fn simulate(
    machine: &Machine,
    workload: &Workload,
    options: SimOptions,
) -> Result<SimFigures, SimError> {
    machine.engine(workload, options)?.run(workload)
}
