//! A drive from the dozen numbers of its data sheet.
//!
//! A sheet is a TOML file, one per model, in `catalogue/drives`. Every number names where it comes from in the table
//! `[source]` under the same key; a source that begins with `assumed` says that the sheet is silent. `docs/explanation/drives.md`
//! derives zones, skews and the seek curve from the numbers.

use spindle_config::catalogue::DRIVES;
use spindle_config::units::Rate;
use spindle_config::{Change, ConfigError, Document, Range, Table, units};

use crate::drive::Drive;
use crate::error::DriveError;
use crate::flash::{Collection, Flash, FlashParams, FlashState, SlcCache, defaults};
use crate::geometry::{GeometrySpec, Mapping, Sparing, ZoneSpec};
use crate::mechanical::Mechanical;
use crate::offer::{self, Offer};
use crate::params::{
    AccessTime, AfterOp, Buffer, Bus, DriveParams, Overheads, Queue, ReadAhead, Scheduling,
    WriteBack,
};
use crate::seek::SeekCurve;
use crate::segments::MOST as MOST_SEGMENTS;

/// Bytes of a block.
const BLOCK: u64 = 512;

/// Settings of a host that differ from those a drive ships with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Commands the host lets be outstanding; never more than the drive takes.
    pub queue_depth: Option<u32>,
    /// The write cache is on.
    pub write_cache: Option<bool>,
    /// Scheduling of the drive's queue.
    pub scheduling: Option<Scheduling>,
    /// State of a flash drive at the beginning.
    pub state: Option<FlashState>,
}

/// A number of the sheet and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Key in the file.
    pub key: String,
    /// Source of the number.
    pub source: String,
}

/// The sheet of a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSheet {
    /// Model number.
    pub name: String,
    /// Maker and family, for people.
    pub title: String,
    /// Kind of drive.
    pub kind: Kind,
    /// Sources of the numbers.
    pub sources: Vec<Fact>,
    /// Failure rates, power and place.
    pub offer: Offer,
    /// Numbers of the model for which the sheet states a range.
    stated: Vec<Range>,
}

/// Disk or flash.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A mechanical drive.
    Disk(Box<DiskSheet>),
    /// A flash drive.
    Flash(Box<FlashParams>),
}

/// The numbers of a disk drive's sheet. Times are nanoseconds, rates bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskSheet {
    /// Bytes.
    pub capacity: u64,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Heads.
    pub surfaces: u32,
    /// Recording zones.
    pub zones: u32,
    /// Sustained rate of the outermost tracks.
    pub outer_rate: f64,
    /// Sustained rate of the innermost tracks.
    pub inner_rate: f64,
    /// From the last block of a track to the first of the next.
    pub track_switch_ns: u64,
    /// Read seek to the next cylinder.
    pub seek_single_ns: u64,
    /// Mean read seek over random pairs of cylinders.
    pub seek_average_ns: u64,
    /// Read seek from the first to the last cylinder.
    pub seek_full_ns: u64,
    /// Additional time of a write seek over a read seek.
    pub write_settle_ns: u64,
    /// Buffer, bytes.
    pub cache: u64,
    /// Segments of the buffer.
    pub segments: u32,
    /// Reads find what was read before or ahead of them; if not, only a read that continues the one before it does, or skips
    /// little.
    pub read_cache: bool,
    /// Writes the write cache holds.
    pub cached_writes: u32,
    /// Rate of the interface.
    pub interface_rate: f64,
    /// Processing of a command that needs the medium, before the arm leaves.
    pub command_ns: u64,
    /// The same of a read that is in the buffer; `command_ns` where the sheet is silent.
    pub read_hit_ns: u64,
    /// The same of a write that the write cache takes; `command_ns` where the sheet is silent.
    pub write_hit_ns: u64,
    /// Queue depth; 1 without command queueing.
    pub queue_depth: u32,
    /// Scheduling of the queue.
    pub scheduling: Scheduling,
    /// A command that has waited longer goes first.
    pub age_bound_ns: u64,
    /// Time that the scheduler adds to a seek before it counts on catching a block; `None` where the sheet is silent.
    pub settle_margin_ns: Option<u64>,
    /// Commands of the queue between two cached writes while writes of the host wait for room in the cache.
    pub ahead_of_cached: u32,
}

/// A settling margin and the range in which it is uncertain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettleMargin {
    /// That of the model.
    pub ns: u64,
    /// That of the best firmware.
    pub least_ns: u64,
    /// That of the most cautious.
    pub most_ns: u64,
}

/// Keys of a disk drive's sheet, besides `name`, `title` and `kind`.
const DISK_KEYS: [&str; 24] = [
    "capacity",
    "rpm",
    "surfaces",
    "zones",
    "outer_rate",
    "inner_rate",
    "track_switch",
    "seek_single",
    "seek_average",
    "seek_full",
    "write_settle",
    "cache",
    "segments",
    "read_cache",
    "cached_writes",
    "interface_rate",
    "command_overhead",
    "read_hit_overhead",
    "write_hit_overhead",
    "queue_depth",
    "scheduling",
    "age_bound",
    "settle_margin",
    "ahead_of_cached",
];

/// Keys of a flash drive's sheet, besides `name`, `title` and `kind`.
const FLASH_KEYS: [&str; 21] = [
    "capacity",
    "channels",
    "dies_per_channel",
    "page",
    "read_page",
    "program_page",
    "channel_rate",
    "interface_rate",
    "command_overhead",
    "command_rate",
    "queue_depth",
    "write_cache",
    "mapping",
    "spare",
    "pages_per_block",
    "erase_block",
    "collection",
    "choices",
    "slc_cache",
    "slc_cache_empty",
    "slc_program_page",
];

/// Commands of the queue between two cached writes while the cache is full, where the sheet is silent. Assumed; 0 (cached
/// writes alone until there is room, as in the second stage of US patent 6 789 163) to 4 are plausible.
pub const AHEAD_OF_CACHED: u32 = 1;
/// The largest plausible number.
const MOST_AHEAD_OF_CACHED: u32 = 4;
/// Blocks ahead of read-ahead within which a read waits for it rather than seeks. Assumed; US patent 5 890 212 (Western Digital) has
/// such reads ("skip ahead sequential access").
const FORWARD_GAP: u32 = 256;
/// The same without a read cache. Assumed; 8 to 120 blocks are plausible, and differ by 3 % at most for published streams: near
/// copies of md leave out a page of 4 KiB, at which a Deskstar lost nothing, and RAID5 a chunk of 64 KiB, at which it lost a turn.
const SKIP: u32 = 32;

impl DataSheet {
    /// Reads a sheet; `source` names the file in messages.
    pub fn parse(text: &str, source: &str) -> Result<Self, DriveError> {
        DataSheet::parse_changed(text, source, &[])
    }

    fn parse_changed(text: &str, source: &str, changes: &[Change]) -> Result<Self, DriveError> {
        Document::parse(text, source)
            .and_then(|table| read_sheet(table, changes))
            .map_err(|error| DriveError::Parameter {
                place: error.place.to_string(),
                problem: error.problem.to_string(),
            })
    }

    /// Reads a sheet from a table of a larger file, with changed numbers.
    pub fn read(table: Table, changes: &[Change]) -> Result<Self, ConfigError> {
        read_sheet(table, changes)
    }

    /// The uncertain numbers: those for which the sheet states a range, and those that the sheet leaves out and on which
    /// drives that are sold differ. Those of a flash drive matter once it has been written in full.
    #[must_use]
    pub fn ranges(&self) -> Vec<Range> {
        let mut ranges = self.stated.clone();
        ranges.extend(match &self.kind {
            Kind::Disk(sheet) => sheet.silent_ranges(),
            Kind::Flash(params) => silent_ranges_of_flash(params),
        });
        let is_given = |key: &str| self.sources.iter().any(|fact| fact.key == key);
        let is_stated = |key: &str| self.stated.iter().any(|range| range.key == key);
        ranges.retain(|range| is_stated(range.key) || !is_given(range.key));
        ranges
    }

    /// Cache that can hide the medium, bytes; 0 for flash, whose cache is part of the medium's work.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Disk(sheet) => sheet.cache,
            Kind::Flash(_) => 0,
        }
    }

    /// True if the drive has no moving head.
    #[must_use]
    pub fn is_flash(&self) -> bool {
        matches!(self.kind, Kind::Flash(_))
    }

    /// Builds the drive.
    pub fn build(&self, settings: Settings) -> Result<Drive, DriveError> {
        match &self.kind {
            Kind::Disk(sheet) => {
                let params = sheet.params(&self.name, settings);
                Ok(Drive::Mechanical(Box::new(Mechanical::new(&params)?)))
            }
            Kind::Flash(params) => {
                let mut params = (**params).clone();
                if let Some(depth) = settings.queue_depth {
                    params.queue_depth = depth.clamp(1, params.queue_depth);
                }
                if settings.write_cache == Some(false) {
                    params.write_cache_blocks = 0;
                }
                params.state = settings.state.unwrap_or(params.state);
                Ok(Drive::Flash(Box::new(Flash::new(&params)?)))
            }
        }
    }
}

fn read_sheet(mut table: Table, changes: &[Change]) -> Result<DataSheet, ConfigError> {
    let name = table
        .take_text("name")?
        .ok_or_else(|| table.missing("name"))?;
    let title = table
        .take_text("title")?
        .ok_or_else(|| table.missing("title"))?;
    let disk = table
        .take_choice("kind", &[("disk", true), ("flash", false)])?
        .ok_or_else(|| table.missing("kind"))?;
    let keys: &[&'static str] = if disk { &DISK_KEYS } else { &FLASH_KEYS };
    let all: Vec<&'static str> = keys.iter().chain(&offer::KEYS).copied().collect();
    let given: Vec<&'static str> = all
        .iter()
        .copied()
        .filter(|key| table.keys().any(|found| found == *key))
        .collect();
    let (stated, offered): (Vec<Range>, Vec<Range>) = table
        .take_ranges(&all)?
        .into_iter()
        .partition(|range| keys.contains(&range.key));
    let offer = Offer::read(&mut table, &offered)?;
    table.change(&name, changes);
    let kind = if disk {
        Kind::Disk(Box::new(read_disk(&mut table)?))
    } else {
        Kind::Flash(Box::new(read_flash(&mut table, &name)?))
    };
    let mut facts = table
        .take_table("source")?
        .ok_or_else(|| table.missing("source"))?;
    facts.describe("[source]".to_owned());
    let mut sources = Vec::new();
    for key in given {
        let source = facts.take_text(key)?.ok_or_else(|| facts.missing(key))?;
        sources.push(Fact {
            key: key.to_owned(),
            source,
        });
    }
    facts.finish()?;
    table.finish()?;
    Ok(DataSheet {
        name,
        title,
        kind,
        sources,
        offer,
        stated,
    })
}

/// The numbers of a flash drive that its sheet may leave out, with the range of drives that are sold.
fn silent_ranges_of_flash(params: &FlashParams) -> Vec<Range> {
    let range = |key, (least, most): (&str, &str), value| Range {
        key,
        least: least.to_owned(),
        value,
        most: most.to_owned(),
    };
    vec![
        range(
            "spare",
            defaults::SPARE_RANGE,
            units::format_fraction(params.spare),
        ),
        range(
            "pages_per_block",
            defaults::PAGES_PER_BLOCK_RANGE,
            params.pages_per_block.to_string(),
        ),
        range(
            "erase_block",
            defaults::ERASE_BLOCK_RANGE,
            units::format_duration(params.erase_block_ns),
        ),
    ]
}

fn bytes_per_second(table: &mut Table, key: &'static str) -> Result<f64, ConfigError> {
    match table.take(key) {
        None => Err(table.missing(key)),
        Some(value) => match value.rate()? {
            Rate::Bytes(rate) => Ok(rate),
            Rate::Iops(_) => Err(value.error("expected a rate in bytes, such as '76 MB/s'")),
        },
    }
}

fn duration(table: &mut Table, key: &'static str) -> Result<u64, ConfigError> {
    table.take_duration(key)?.ok_or_else(|| table.missing(key))
}

fn integer(table: &mut Table, key: &'static str, most: u64) -> Result<u32, ConfigError> {
    table
        .take_integer(key, 1..=most)?
        .map(|number| number as u32)
        .ok_or_else(|| table.missing(key))
}

fn size(table: &mut Table, key: &'static str) -> Result<u64, ConfigError> {
    table.take_size(key)?.ok_or_else(|| table.missing(key))
}

fn read_disk(table: &mut Table) -> Result<DiskSheet, ConfigError> {
    let command_ns = duration(table, "command_overhead")?;
    let mut sheet = DiskSheet {
        capacity: size(table, "capacity")?,
        rpm: table
            .take_number("rpm", 1000.0..=30_000.0)?
            .ok_or_else(|| table.missing("rpm"))?,
        surfaces: integer(table, "surfaces", 64)?,
        zones: integer(table, "zones", 1000)?,
        outer_rate: bytes_per_second(table, "outer_rate")?,
        inner_rate: bytes_per_second(table, "inner_rate")?,
        track_switch_ns: duration(table, "track_switch")?,
        seek_single_ns: duration(table, "seek_single")?,
        seek_average_ns: duration(table, "seek_average")?,
        seek_full_ns: duration(table, "seek_full")?,
        write_settle_ns: duration(table, "write_settle")?,
        cache: size(table, "cache")?,
        segments: integer(table, "segments", u64::from(MOST_SEGMENTS))?,
        read_cache: table.take_flag("read_cache")?.unwrap_or(true),
        cached_writes: integer(table, "cached_writes", 4096)?,
        interface_rate: bytes_per_second(table, "interface_rate")?,
        command_ns,
        read_hit_ns: table
            .take_duration("read_hit_overhead")?
            .unwrap_or(command_ns),
        write_hit_ns: table
            .take_duration("write_hit_overhead")?
            .unwrap_or(command_ns),
        queue_depth: integer(table, "queue_depth", 4096)?,
        scheduling: table
            .take_choice(
                "scheduling",
                &[
                    ("fifo", Scheduling::Fifo),
                    ("shortest_seek", Scheduling::ShortestSeek),
                    ("shortest_positioning", Scheduling::ShortestPositioning),
                ],
            )?
            .unwrap_or(Scheduling::ShortestPositioning),
        age_bound_ns: table.take_duration("age_bound")?.unwrap_or(0),
        settle_margin_ns: table.take_duration("settle_margin")?,
        ahead_of_cached: table
            .take_integer("ahead_of_cached", 0..=4096)?
            .map_or(AHEAD_OF_CACHED, |number| number as u32),
    };
    if sheet.age_bound_ns == 0 {
        sheet.age_bound_ns = sheet.default_age_bound_ns();
    }
    if sheet.capacity < 1 << 30 || sheet.capacity > 1 << 50 {
        return Err(table.error("`capacity` must be between 1 GiB and 1 PiB"));
    }
    if sheet.inner_rate > sheet.outer_rate {
        return Err(table.error("`inner_rate` must not exceed `outer_rate`"));
    }
    if !(sheet.seek_single_ns <= sheet.seek_average_ns
        && sheet.seek_average_ns <= sheet.seek_full_ns)
    {
        return Err(table.error("the seeks must rise: `seek_single`, `seek_average`, `seek_full`"));
    }
    if sheet.outer_track() > 1 << 20 || sheet.inner_track() < 1 {
        return Err(
            table.error("`outer_rate` and `inner_rate` must give tracks of 1 to 1048576 blocks")
        );
    }
    if u64::from(sheet.zones) > sheet.cylinders() {
        return Err(table.error("there must be at least one cylinder per zone"));
    }
    Ok(sheet)
}

fn read_flash(table: &mut Table, name: &str) -> Result<FlashParams, ConfigError> {
    let capacity = size(table, "capacity")?;
    let page = size(table, "page")?;
    if page % BLOCK != 0 || !(BLOCK..=1 << 24).contains(&page) {
        return Err(table.error("`page` must be a multiple of 512 bytes, at most 16 MiB"));
    }
    let command_rate = match table.take("command_rate") {
        None => return Err(table.missing("command_rate")),
        Some(value) => match value.rate()? {
            Rate::Iops(rate) => rate,
            Rate::Bytes(_) => {
                return Err(value.error("expected commands per second, such as '500000 IOPS'"));
            }
        },
    };
    let mapping = table.take_size("mapping")?;
    let unit = mapping.unwrap_or(page.min(defaults::MAPPING));
    if unit == 0 || unit % BLOCK != 0 || page % unit != 0 {
        return Err(
            table.error("`page` must consist of whole units of `mapping`, and these of 512 bytes")
        );
    }
    let params = FlashParams {
        name: name.to_owned(),
        capacity_blocks: capacity / BLOCK,
        channels: integer(table, "channels", 1024)?,
        dies_per_channel: integer(table, "dies_per_channel", 1024)?,
        page_blocks: (page / BLOCK) as u32,
        read_page_ns: duration(table, "read_page")?,
        program_page_ns: duration(table, "program_page")?,
        channel_block_q16: block_q16(bytes_per_second(table, "channel_rate")?),
        bus_block_q16: block_q16(bytes_per_second(table, "interface_rate")?),
        command_ns: duration(table, "command_overhead")?,
        command_gap_ns: (1e9 / command_rate).round() as u64,
        queue_depth: integer(table, "queue_depth", 1 << 16)?,
        write_cache_blocks: (size(table, "write_cache")? / BLOCK).min(u64::from(u32::MAX)) as u32,
        unit_blocks: (unit / BLOCK) as u32,
        spare: table.take_fraction("spare")?.unwrap_or(defaults::SPARE),
        pages_per_block: table
            .take_integer("pages_per_block", 1..=1 << 16)?
            .map_or(defaults::PAGES_PER_BLOCK, |pages| pages as u32),
        erase_block_ns: table
            .take_duration("erase_block")?
            .unwrap_or(defaults::ERASE_BLOCK_NS),
        collection: read_collection(table)?,
        slc: read_slc(table)?,
        state: FlashState::default(),
    };
    if params.spare < 0.005 {
        return Err(table.error("`spare` must be at least 0.5 % of the capacity"));
    }
    if !(1 << 20..=1 << 50).contains(&capacity) {
        return Err(table.error("`capacity` must be between 1 MiB and 1 PiB"));
    }
    Ok(params)
}

fn read_collection(table: &mut Table) -> Result<Collection, ConfigError> {
    let choices = table.take_integer("choices", 1..=1000)?;
    let collection = table.take_choice(
        "collection",
        &[
            ("greedy", Collection::Greedy),
            ("oldest", Collection::Oldest),
            ("choices", Collection::Choices(defaults::CHOICES)),
        ],
    )?;
    match (collection.unwrap_or(defaults::COLLECTION), choices) {
        (Collection::Choices(_), Some(choices)) => Ok(Collection::Choices(choices as u32)),
        (_, Some(_)) => Err(table.error("`choices` needs `collection = \"choices\"`")),
        (collection, None) => Ok(collection),
    }
}

fn read_slc(table: &mut Table) -> Result<Option<SlcCache>, ConfigError> {
    let always = table.take_size("slc_cache")?;
    let empty = table.take_size("slc_cache_empty")?;
    let program_page_ns = table.take_duration("slc_program_page")?;
    match (always, empty, program_page_ns) {
        (None, None, None) => Ok(None),
        (always, empty, Some(program_page_ns)) if always.or(empty).is_some() => {
            let always = always.unwrap_or(0);
            Ok(Some(SlcCache {
                blocks: always / BLOCK,
                extra_blocks: empty.unwrap_or(always).saturating_sub(always) / BLOCK,
                program_page_ns,
            }))
        }
        _ => Err(table
            .error("an SLC cache needs `slc_program_page`, and `slc_cache` or `slc_cache_empty`")),
    }
}

/// Nanoseconds per block at a rate in bytes per second, times 2^16.
fn block_q16(rate: f64) -> u64 {
    (BLOCK as f64 * 1e9 / rate * 65_536.0).round() as u64
}

impl DiskSheet {
    fn turn_ns(&self) -> f64 {
        60e9 / self.rpm
    }

    /// Time that a command may wait before it goes first, where the sheet is silent: twice the wait in a full
    /// queue served first come, first served. A lower bound would turn every full queue into such a one.
    fn default_age_bound_ns(&self) -> u64 {
        let service_ns = self.command_ns + self.seek_average_ns + (self.turn_ns() / 2.0) as u64;
        2 * u64::from(self.queue_depth) * service_ns
    }

    /// Time that the scheduler adds to a seek, and the least and most that it may be. A firmware that sorts by positioning
    /// time weighs the risk of coming too late by a turn against the time (US patents 6 725 327, 6 763 404). Where the
    /// sheet is silent, the uncertainty is taken to be within what a write waits longer than a read for the head to
    /// settle: none of it for a firmware that knows its seeks exactly, all of it for one that counts on the worst.
    #[must_use]
    pub fn settle_margin(&self) -> SettleMargin {
        match self.settle_margin_ns {
            Some(ns) => SettleMargin {
                ns,
                least_ns: ns,
                most_ns: ns,
            },
            None => SettleMargin {
                ns: self.write_settle_ns / 2,
                least_ns: 0,
                most_ns: self.write_settle_ns,
            },
        }
    }

    /// The numbers that the sheet may leave out and on which drives differ.
    fn silent_ranges(&self) -> Vec<Range> {
        let margin = self.settle_margin();
        let ahead = self.ahead_of_cached;
        vec![
            Range {
                key: "settle_margin",
                least: units::format_duration(margin.least_ns),
                value: units::format_duration(margin.ns),
                most: units::format_duration(margin.most_ns),
            },
            Range {
                key: "ahead_of_cached",
                least: "0".to_owned(),
                value: ahead.to_string(),
                most: MOST_AHEAD_OF_CACHED.max(ahead).to_string(),
            },
        ]
    }

    /// Blocks of a track at a sustained rate: the blocks that pass in a turn and a track switch.
    fn track_at(&self, rate: f64) -> u64 {
        (rate * (self.turn_ns() + self.track_switch_ns as f64) / 1e9 / BLOCK as f64).round() as u64
    }

    fn outer_track(&self) -> u64 {
        self.track_at(self.outer_rate)
    }

    fn inner_track(&self) -> u64 {
        self.track_at(self.inner_rate)
    }

    fn blocks(&self) -> u64 {
        self.capacity / BLOCK
    }

    /// Blocks of a track of each zone, falling in equal steps from the outermost to the innermost.
    fn tracks(&self) -> impl Iterator<Item = u64> + '_ {
        let steps = u64::from(self.zones.max(2) - 1);
        let (outer, inner) = (self.outer_track(), self.inner_track());
        (0..u64::from(self.zones)).map(move |zone| outer - (outer - inner) * zone / steps)
    }

    fn cylinders(&self) -> u64 {
        let per_cylinder: u64 = self.tracks().sum::<u64>() * u64::from(self.surfaces);
        (self.blocks() * u64::from(self.zones))
            .div_ceil(per_cylinder.max(1))
            .max(1)
    }

    fn geometry(&self) -> GeometrySpec {
        let zones = u64::from(self.zones);
        let cylinders = self.cylinders();
        let mut left = self.blocks();
        let mut first = 0;
        let mut specs = Vec::with_capacity(self.zones as usize);
        for (index, track) in self.tracks().enumerate() {
            let per_cylinder = track * u64::from(self.surfaces);
            let planned = cylinders * (index as u64 + 1) / zones - first;
            // The innermost zone takes the blocks that rounding leaves.
            let last_zone = index as u64 + 1 == zones;
            let needed = left.div_ceil(per_cylinder);
            let count = if last_zone {
                needed.max(1)
            } else {
                planned.min(needed.max(1))
            };
            let places = count * per_cylinder;
            let skew = |ns: u64| (ns as f64 / self.turn_ns() * track as f64).ceil() / track as f64;
            let single = self
                .track_switch_ns
                .max(self.seek_single_ns + self.write_settle_ns);
            specs.push(ZoneSpec {
                first_cylinder: first as u32,
                last_cylinder: (first + count - 1) as u32,
                blocks_per_track: track as u32,
                track_skew_turns: skew(self.track_switch_ns),
                cylinder_skew_turns: skew(single),
                spares: places.saturating_sub(left),
                ..ZoneSpec::default()
            });
            first += count;
            left -= places.min(left);
            if left == 0 {
                break;
            }
        }
        GeometrySpec {
            surfaces: self.surfaces,
            cylinders: first as u32,
            mapping: Mapping::SerpentineInZone,
            sparing: Sparing::ZoneEnd,
            range_cylinders: 1,
            zones: specs,
        }
    }

    /// The parameters of the drive.
    #[must_use]
    pub fn params(&self, name: &str, settings: Settings) -> DriveParams {
        let geometry = self.geometry();
        let ms = |ns: u64| ns as f64 / 1e6;
        let seek = SeekCurve::through(
            ms(self.seek_single_ns),
            ms(self.seek_average_ns),
            ms(self.seek_full_ns),
            geometry.cylinders,
        );
        let depth = settings
            .queue_depth
            .map_or(self.queue_depth, |depth| depth.clamp(1, self.queue_depth));
        let cache_blocks = self.cache / BLOCK;
        let write_back = if settings.write_cache == Some(false) {
            WriteBack::Through
        } else {
            WriteBack::Cache {
                commands: self.cached_writes,
                blocks: (cache_blocks / 2).max(1) as u32,
            }
        };
        let bus = block_q16(self.interface_rate);
        let command = AfterOp::both(self.command_ns);
        let (hits_within, forward_gap) = match self.read_cache {
            true => (u64::MAX, FORWARD_GAP),
            false => (u64::from(SKIP), SKIP),
        };
        DriveParams {
            name: name.to_owned(),
            geometry,
            rpm: self.rpm,
            seek,
            head_switch_ns: self.track_switch_ns,
            // Sheets give one time for a change of tracks, and tracks are skewed by it: a stream of writes misses no turn.
            head_switch_settles: true,
            write_settle_ns: self.write_settle_ns.min(1 << 40) as i64,
            access_time: AccessTime::TrueRotation,
            overheads: Overheads {
                dispatch_ns: self.command_ns,
                read_hit: AfterOp::both(self.read_hit_ns),
                read_miss: command,
                write_hit: AfterOp::both(self.write_hit_ns),
                write_miss: command,
                ..Overheads::default()
            },
            bus: Bus {
                read_block_q16: bus,
                write_block_q16: bus,
                hold_for_read: false,
            },
            buffer: Buffer {
                segments: self.segments,
                segment_blocks: (cache_blocks / 2 / u64::from(self.segments)).clamp(1, 1 << 30)
                    as u32,
                read_ahead: ReadAhead::SegmentFull,
                // Sent data make room at once: a stream longer than a segment goes on without losing a turn.
                keep_requested: false,
                read_ahead_on_hit: true,
                keep_passing: self.read_cache,
                drop_requested: !self.read_cache,
                hits_within,
                read_on_arrival: true,
                write_on_arrival: true,
                write_back,
                combine_writes: true,
                hits_on_written: true,
                almost_hits: true,
                forward_gap,
                hits_beside: true,
                leave_early: true,
                ..Buffer::default()
            },
            queue: Queue {
                depth,
                scheduling: settings.scheduling.unwrap_or(self.scheduling),
                age_bound_ns: self.age_bound_ns,
                settle_margin_ns: self.settle_margin().ns,
                keeps_runs: true,
                ahead_of_cached: self.ahead_of_cached,
            },
        }
    }
}

/// Names of the drives in the catalogue, in alphabetical order.
#[must_use]
pub fn drive_names() -> Vec<&'static str> {
    DRIVES.iter().map(|(name, _)| *name).collect()
}

/// The sheet of a drive of the catalogue.
pub fn sheet(name: &str) -> Result<DataSheet, DriveError> {
    changed_sheet(name, &[])
}

/// The same with changed numbers.
pub fn changed_sheet(name: &str, changes: &[Change]) -> Result<DataSheet, DriveError> {
    let found = DRIVES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    let Some((known, text)) = found else {
        let near = spindle_config::nearest(name, DRIVES.iter().map(|(known, _)| *known));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
        return Err(DriveError::Unknown {
            name: spindle_config::clean(name),
            hint,
        });
    };
    DataSheet::parse_changed(text, &format!("catalogue/drives/{known}.toml"), changes)
}

/// A drive of the catalogue, built.
pub fn drive(name: &str, settings: Settings) -> Result<Drive, DriveError> {
    sheet(name)?.build(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    #[test]
    fn every_sheet_of_the_catalogue_is_listed_and_builds_a_drive_of_its_capacity() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogue/drives");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
            .collect();
        files.sort();
        assert_eq!(files, drive_names());
        for name in drive_names() {
            let sheet = sheet(name).unwrap();
            assert_eq!(sheet.name, name);
            let drive = sheet.build(Settings::default()).unwrap();
            let capacity = match &sheet.kind {
                Kind::Disk(disk) => disk.capacity,
                Kind::Flash(flash) => flash.capacity_blocks * BLOCK,
            };
            assert_eq!(drive.capacity_blocks() * BLOCK, capacity, "{name}");
        }
    }

    #[test]
    fn a_slip_in_a_sheet_is_reported_with_its_line() {
        let text = DRIVES
            .iter()
            .find(|(name, _)| *name == "HDS725050KLA360")
            .unwrap()
            .1;
        let error = DataSheet::parse(&text.replace("rpm =", "rpn ="), "x.toml")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("x.toml:") && error.contains("rpm") && error.contains("rpn"),
            "{error}"
        );
        let error = DataSheet::parse(&text.replace("rpm = 7200", "rpm = 72"), "x.toml")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("x.toml:") && error.contains("1000"),
            "{error}"
        );
    }

    #[test]
    fn a_name_that_is_none_suggests_the_nearest() {
        let error = sheet("HDS725050KLA36").unwrap_err().to_string();
        assert!(error.contains("HDS725050KLA360"), "{error}");
    }

    /// The sheet of a drive of the catalogue with lines instead of others.
    fn changed(name: &str, changes: &[(&str, &str)]) -> Result<DataSheet, DriveError> {
        let text = DRIVES.iter().find(|(known, _)| *known == name).unwrap().1;
        let changed = changes.iter().fold(text.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        DataSheet::parse(&changed, "x.toml")
    }

    fn flash(sheet: &DataSheet) -> &FlashParams {
        match &sheet.kind {
            Kind::Flash(params) => params,
            Kind::Disk(_) => panic!("{} is a disk", sheet.name),
        }
    }

    #[test]
    fn a_sheet_without_the_parts_of_a_drive_in_use_has_the_values_of_its_class() {
        let silent = changed(
            "970-PRO-1TB",
            &[
                ("spare = \"7.3%\"\n", ""),
                ("pages_per_block = 512\n", ""),
                ("erase_block = \"3.5ms\"\n", ""),
                (
                    "spare = \"assumed: 1024 GiB of flash, less the capacity\"\n",
                    "",
                ),
                (
                    "pages_per_block = \"assumed: 64 layers, four strings, two bits a cell\"\n",
                    "",
                ),
                ("erase_block = \"assumed: 3D MLC\"", ""),
            ],
        )
        .unwrap();
        let params = flash(&silent);
        assert_eq!(
            (params.spare, params.pages_per_block, params.erase_block_ns),
            (
                defaults::SPARE,
                defaults::PAGES_PER_BLOCK,
                defaults::ERASE_BLOCK_NS
            )
        );
        assert_eq!(u64::from(params.unit_blocks) * BLOCK, defaults::MAPPING);
        assert_eq!(
            (params.collection, params.slc),
            (defaults::COLLECTION, None)
        );
        assert_eq!(params.state, FlashState::Fresh);
    }

    #[test]
    fn the_page_names_the_values_of_the_class() {
        let page = include_str!("../../../docs/explanation/drives.md");
        let default = |key: &str| {
            let row = page
                .lines()
                .find(|line| line.starts_with(&format!("| `{key}`")));
            row.unwrap().split('|').nth(3).unwrap().trim().to_owned()
        };
        assert_eq!(
            default("mapping"),
            format!("{} KiB", defaults::MAPPING >> 10)
        );
        assert_eq!(
            default("spare"),
            format!("{:.0} %", 100.0 * defaults::SPARE)
        );
        assert_eq!(
            default("pages_per_block"),
            defaults::PAGES_PER_BLOCK.to_string()
        );
        let ms = defaults::ERASE_BLOCK_NS as f64 / 1e6;
        assert_eq!(default("erase_block"), format!("{ms} ms"));
        assert_eq!(defaults::COLLECTION, Collection::Greedy);
        assert_eq!(
            default("collection"),
            format!("greedy, {}", defaults::CHOICES)
        );
    }

    #[test]
    fn wrong_parts_of_a_drive_in_use_are_refused() {
        let keys = "spare = \"7.3%\"\n";
        for (line, word) in [
            ("spare = \"0.1%\"\n", "spare"),
            ("spare = \"7%\"\nchoices = 4\n", "collection"),
            ("spare = \"7%\"\nslc_cache = \"6 GB\"\n", "slc_program_page"),
            (
                "spare = \"7%\"\nslc_program_page = \"200us\"\n",
                "slc_cache",
            ),
            ("spare = \"7%\"\nmapping = \"3 KiB\"\n", "mapping"),
            ("spare = \"7%\"\ncollection = \"greed\"\n", "greedy"),
        ] {
            let error = changed("970-PRO-1TB", &[(keys, line)])
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("x.toml:") && error.contains(word),
                "{error}"
            );
        }
        let choices = "spare = \"7%\"\ncollection = \"choices\"\nchoices = 4\n";
        let sources = "[source]\ncollection = \"assumed\"\nchoices = \"assumed\"\n";
        let sheet = changed("970-PRO-1TB", &[(keys, choices), ("[source]\n", sources)]).unwrap();
        assert_eq!(flash(&sheet).collection, Collection::Choices(4));
    }

    #[test]
    fn the_turbo_write_of_the_860_evo_is_that_of_its_sheet() {
        let sheet = sheet("860-EVO-1TB").unwrap();
        let slc = flash(&sheet).slc.unwrap();
        assert_eq!(slc.blocks * BLOCK, 6_000_000_000);
        assert_eq!((slc.blocks + slc.extra_blocks) * BLOCK, 42_000_000_000);
    }

    #[test]
    fn a_queue_is_never_deeper_than_the_drive_has_it() {
        let settings = Settings {
            queue_depth: Some(1000),
            ..Settings::default()
        };
        assert_eq!(
            drive("HDS725050KLA360", settings).unwrap().queue_depth(),
            32
        );
    }
}
