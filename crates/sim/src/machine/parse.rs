//! Reads machine files. Every error is one line: the place, the problem, the allowed values.

use spindle_array::{
    Array, ArrayConfig, ArrayError, DEFAULT_CHUNK, Layout, Level, MemberSet, Merger,
};
use spindle_config::units::{Place, Rate};
use spindle_config::{Change, ConfigError, Document, Problem, Range, Table, Value, nearest};
use spindle_drive::{
    DataSheet, Device, DriveError, FlashState, Scheduling, ServerParams, ServiceTime, Settings,
    changed_sheet, drive_names,
};

use super::bitmap::least_chunk;
use super::{
    ArraySetup, BLOCK, BitmapSetup, ControllerSetup, DEFAULT_COPY_RATE, DirtyLimits, DriveKind,
    DriveSetup, FileSystem, Files, Host, Machine, QueueSetup, RebuildSetup,
};
use crate::controller::{ControllerSheet, DestageOrder};
use crate::elevator::{Parameter, ParameterValue, Scheduler};
use crate::error::SimError;
use crate::kernel::Kernel;

/// md's `stripe_cache_size`.
const STRIPE_CACHE: u64 = 256;
/// md's `speed_limit_min` and `speed_limit_max`, bytes per second.
const SPEED_MIN: u64 = 1000 * 1024;
const SPEED_MAX: u64 = 200_000 * 1024;
/// Most drives of a machine.
const MOST_DRIVES: usize = spindle_array::MAX_MEMBERS;

/// Model of a drive that is only a service time.
const SERVER: &str = "server";
/// Its numbers that may have a range.
const OF_SERVER: [&str; 3] = ["service", "transfer_rate", "flush"];

/// Keys of `[array]` that a controller's array does not have.
const OF_MD: [&str; 10] = [
    "stripe_cache_size",
    "data_offset",
    "missing",
    "synced",
    "rebuild",
    "check",
    "sync_speed_min",
    "sync_speed_max",
    "bitmap",
    "bitmap_chunk",
];

impl Machine {
    /// Reads a machine file; `source` names it in messages.
    pub fn parse(text: &str, source: &str) -> Result<Machine, ConfigError> {
        Machine::parse_changed(text, source, &[])
    }

    /// Reads a machine file with other numbers for some of its parts ([`Machine::ranges`]).
    pub fn parse_changed(
        text: &str,
        source: &str,
        changes: &[Change],
    ) -> Result<Machine, ConfigError> {
        let mut table = Document::parse(text, source)?;
        let name = table.take_text("name")?.unwrap_or_else(|| stem(source));
        let about = table.take_text("about")?.unwrap_or_default();
        let host = read_host(table.take_table("host")?)?;
        let queue = read_queue(table.take_table("queue")?, host.kernel)?;
        let own = read_sheets(table.take_tables("sheet")?, changes)?;
        let controller = table.take_table("controller")?;
        let mut controller = controller
            .map(|table| read_controller(table, changes))
            .transpose()?;
        let array = table.take_table("array")?;
        let filesystem = table.take_table("filesystem")?;
        let filesystem = filesystem.map(FileSystem::read).transpose()?;
        let files = table.take_table("files")?;
        let files = files
            .map(|table| Files::read(table, host.kernel))
            .transpose()?;
        let tables = table.take_tables("drive")?;
        if tables.is_empty() {
            return Err(table.missing("drive"));
        }
        let mut drives = Vec::new();
        let mut extra = None;
        for drive in tables {
            let place = drive.place().clone();
            drives.extend(read_drive(drive, &own, changes)?);
            if drives.len() > 1 {
                extra.get_or_insert(place.clone());
            }
            if drives.len() > MOST_DRIVES {
                return Err(other(
                    place,
                    format!("a machine has at most {MOST_DRIVES} drives"),
                ));
            }
        }
        if controller
            .as_ref()
            .is_some_and(|of| !of.keeps_drive_caches())
        {
            for drive in &mut drives {
                drive.settings.write_cache.get_or_insert(false);
            }
        }
        let array = match array {
            Some(array) => read_array(array, &drives, controller.as_mut())?,
            None => None,
        };
        let is_array = array.is_some() || controller.as_ref().is_some_and(|of| of.array.is_some());
        if let (false, Some(place)) = (is_array, extra) {
            let what = format!(
                "{} drives need an `[array]`; without one a machine has a single drive",
                drives.len()
            );
            return Err(other(place, what));
        }
        let partition = table.take_table("partition")?;
        table.finish()?;
        let mut machine = Machine {
            name,
            about,
            host,
            queue,
            array,
            controller,
            partition_start: 0,
            filesystem,
            files,
            drives,
        };
        if let Some(partition) = partition {
            machine.partition_start = read_partition(partition, machine.capacity())?;
        }
        Ok(machine)
    }
}

impl DriveSetup {
    /// Reads a single drive from the keys of a `[[drive]]`; `source` names them in messages. Its `model` is `sheet`, if
    /// there is one, or in the catalogue.
    pub fn parse(
        keys: &str,
        source: &str,
        sheet: Option<DataSheet>,
    ) -> Result<DriveSetup, ConfigError> {
        let table = Document::parse(keys, source)?;
        let place = table.place().clone();
        match read_drive(table, sheet.as_slice(), &[])?.as_slice() {
            [drive] => Ok(drive.clone()),
            drives => Err(other(place, format!("{} drives, not 1", drives.len()))),
        }
    }
}

fn other(place: spindle_config::Place, what: String) -> ConfigError {
    ConfigError::new(place, Problem::Other { what })
}

fn stem(source: &str) -> String {
    let file = source.rsplit('/').next().unwrap_or(source);
    file.strip_suffix(".toml").unwrap_or(file).to_owned()
}

fn read_host(table: Option<Table>) -> Result<Host, ConfigError> {
    let mut host = Host {
        kernel: Kernel::DEFAULT,
        cpu_per_request_ns: 0,
        clock_reading_ns: 0,
        memory: None,
        dirty: DirtyLimits::DEFAULT,
        copy_rate: DEFAULT_COPY_RATE,
        ask_page_ns: 0,
        send_page_ns: 0,
        stripe_page_ns: 0,
    };
    let Some(mut table) = table else {
        return Ok(host);
    };
    table.describe("[host]".to_owned());
    if let Some(value) = table.take("kernel") {
        host.kernel = Kernel::parse(value.text()?).ok_or_else(|| {
            value.error("expected a kernel version such as \"6.1\" or \"2.6.25\", 2.6.0 or later")
        })?;
    }
    if let Some(value) = table.take("cpu_per_request") {
        host.cpu_per_request_ns = value.duration()?;
        if host.cpu_per_request_ns > 1_000_000_000 {
            return Err(value.error("expected at most a second"));
        }
    }
    if let Some(value) = table.take("clock_reading") {
        host.clock_reading_ns = value.duration()?;
        if host.clock_reading_ns > 1_000_000 {
            return Err(value.error("expected at most a millisecond"));
        }
    }
    if let Some(value) = table.take("memory") {
        let memory = value.size()?;
        if !(64 << 20..=1 << 40).contains(&memory) {
            return Err(value.error("expected 64 MiB to 1 TiB"));
        }
        host.memory = Some(memory);
    }
    host.copy_rate = read_byte_rate(&mut table, "copy_rate")?.unwrap_or(DEFAULT_COPY_RATE);
    host.ask_page_ns = table.take_duration("ask_page")?.unwrap_or(0);
    host.send_page_ns = table.take_duration("send_page")?.unwrap_or(0);
    host.stripe_page_ns = table.take_duration("stripe_page")?.unwrap_or(0);
    read_dirty_limits(&mut table, &mut host.dirty, host.kernel)?;
    table.finish()?;
    Ok(host)
}

fn read_dirty_limits(
    table: &mut Table,
    dirty: &mut DirtyLimits,
    kernel: Kernel,
) -> Result<(), ConfigError> {
    (dirty.background_ratio, dirty.ratio) = kernel.dirty_ratios();
    let ratio = |table: &mut Table, key| table.take_integer(key, 0..=100);
    if let Some(percent) = ratio(table, "dirty_background_ratio")? {
        dirty.background_ratio = percent as u8;
    }
    if let Some(percent) = ratio(table, "dirty_ratio")? {
        dirty.ratio = percent as u8;
    }
    dirty.background_bytes = table.take_size("dirty_background_bytes")?;
    dirty.bytes = table.take_size("dirty_bytes")?;
    if let Some(age_ns) = table.take_duration("dirty_expire")? {
        dirty.expire_ns = age_ns;
    }
    if let Some(value) = table.take("dirty_writeback") {
        dirty.writeback_ns = value.duration()?;
        if dirty.writeback_ns < 10_000_000 {
            return Err(value.error("expected at least 10 ms"));
        }
    }
    Ok(())
}

fn read_queue(table: Option<Table>, kernel: Kernel) -> Result<QueueSetup, ConfigError> {
    let mut queue = QueueSetup {
        scheduler: None,
        nr_requests: None,
        max_request: None,
        read_ahead: None,
    };
    let Some(mut table) = table else {
        return Ok(queue);
    };
    table.describe("[queue]".to_owned());
    if let Some(value) = table.take("scheduler") {
        let name = value.text()?;
        queue.scheduler =
            Some(Scheduler::named(name, kernel).ok_or_else(|| unknown_scheduler(&value, name))?);
    }
    queue.nr_requests = table
        .take_integer("nr_requests", 1..=1_000_000)?
        .map(|requests| requests as u32);
    if let Some(value) = table.take("max_request") {
        let longest = value.size()?;
        if !longest.is_multiple_of(4096) || !(4096..=1 << 30).contains(&longest) {
            return Err(value.error("expected a multiple of 4096 bytes, at most 1 GiB"));
        }
        queue.max_request = Some(longest);
    }
    if let Some(value) = table.take("read_ahead") {
        let bytes = value.size()?;
        if !bytes.is_multiple_of(4096) || bytes > 1 << 30 {
            return Err(value.error("expected a multiple of 4096 bytes, at most 1 GiB"));
        }
        queue.read_ahead = Some(bytes);
    }
    if let Some(mut settings) = table.take_table("iosched")? {
        settings.describe("[queue.iosched]".to_owned());
        match &mut queue.scheduler {
            Some(scheduler) => read_iosched(&mut settings, scheduler)?,
            None => return Err(settings.error("`[queue.iosched]` needs `scheduler` in `[queue]`")),
        }
        settings.finish()?;
    }
    table.finish()?;
    Ok(queue)
}

fn unknown_scheduler(value: &Value, name: &str) -> ConfigError {
    let hint = match nearest(name, Scheduler::NAMES.iter().copied()) {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None => format!("; one of {}", Scheduler::NAMES.join(", ")),
    };
    value.error(format!(
        "unknown scheduler \"{}\"{hint}",
        spindle_config::clean(name)
    ))
}

fn read_iosched(table: &mut Table, scheduler: &mut Scheduler) -> Result<(), ConfigError> {
    for Parameter { key, value, .. } in scheduler.parameters() {
        match value {
            ParameterValue::Milliseconds(ns) | ParameterValue::Nanoseconds(ns) => {
                *ns = table.take_duration(key)?.unwrap_or(*ns);
            }
            ParameterValue::Blocks(blocks, least) => {
                *blocks = table
                    .take_size(key)?
                    .map_or(*blocks, |bytes| (bytes / BLOCK).max(least));
            }
            ParameterValue::Count(count, least) => {
                *count = table
                    .take_integer(key, u64::from(least)..=1_000_000)?
                    .map_or(*count, |value| value as u32);
            }
            ParameterValue::Factor(factor) => {
                *factor = table.take_integer(key, 1..=1000)?.unwrap_or(*factor);
            }
            ParameterValue::Flag(flag) => *flag = table.take_flag(key)?.unwrap_or(*flag),
        }
    }
    Ok(())
}

/// Drives described in the machine file itself, as in `catalogue/drives`.
fn read_sheets(tables: Vec<Table>, changes: &[Change]) -> Result<Vec<DataSheet>, ConfigError> {
    tables
        .into_iter()
        .map(|mut table| {
            table.describe("[[sheet]]".to_owned());
            DataSheet::read(table, changes)
        })
        .collect()
}

fn read_drive(
    mut table: Table,
    own: &[DataSheet],
    changes: &[Change],
) -> Result<Vec<DriveSetup>, ConfigError> {
    table.describe("[[drive]]".to_owned());
    let ranges = table.take_ranges(&OF_SERVER)?;
    if table.keys().any(|key| key == "service") {
        table.change(SERVER, changes);
    }
    if let Some(service) = table.take("service") {
        return read_server(table, &service, ranges);
    }
    let model = table.take("model").ok_or_else(|| table.missing("model"))?;
    let name = model.text()?;
    let sheet = match own.iter().find(|sheet| sheet.name == name) {
        Some(sheet) => sheet.clone(),
        None => changed_sheet(name, changes).map_err(|error| match error {
            DriveError::Unknown { .. } => unknown_model(&model, name, own),
            error => model.error(error.to_string()),
        })?,
    };
    let count = table
        .take_integer("count", 1..=MOST_DRIVES as u64)?
        .unwrap_or(1);
    let state = table.take("state");
    if let Some(value) = &state
        && !sheet.is_flash()
    {
        return Err(value.error("a disk has no state; leave the key out"));
    }
    let settings = Settings {
        state: state
            .map(|value| value.choice(&FlashState::NAMES))
            .transpose()?,
        queue_depth: table
            .take_integer("queue_depth", 1..=65_536)?
            .map(|depth| depth as u32),
        write_cache: table.take_flag("write_cache")?,
        scheduling: table.take_choice(
            "queueing",
            &[
                ("fifo", Scheduling::Fifo),
                ("shortest_seek", Scheduling::ShortestSeek),
                ("shortest_positioning", Scheduling::ShortestPositioning),
            ],
        )?,
    };
    let built = sheet
        .build(settings)
        .map_err(|error| model.error(error.to_string()))?;
    let capacity = built.capacity_blocks() * BLOCK;
    let (start, len) = match table.take("region") {
        None => (0, capacity),
        Some(value) => read_region(&value, capacity)?,
    };
    table.finish()?;
    let sheet_ranges = sheet.ranges();
    let drive = DriveSetup {
        model: sheet.name.clone(),
        kind: DriveKind::Sheet(Box::new(sheet)),
        settings,
        start,
        len,
        ranges: sheet_ranges,
    };
    Ok(vec![drive; count as usize])
}

/// A drive that is only a service time: for comparisons with queueing theory and with other models.
fn read_server(
    mut table: Table,
    service: &Value,
    ranges: Vec<Range>,
) -> Result<Vec<DriveSetup>, ConfigError> {
    let mean_ns = service.duration()?;
    if !(1..=3_600_000_000_000).contains(&mean_ns) {
        return Err(service.error("expected more than nothing and at most an hour"));
    }
    let spread = table.take_choice(
        "spread",
        &[
            ("constant", ServiceTime::Constant(mean_ns)),
            ("uniform", ServiceTime::Uniform(0, 2 * mean_ns)),
            ("exponential", ServiceTime::Exponential(mean_ns)),
        ],
    )?;
    let capacity = table
        .take("capacity")
        .ok_or_else(|| table.missing("capacity"))?;
    let bytes = capacity.size()?;
    if !(4096..=1 << 60).contains(&bytes) {
        return Err(capacity.error("expected at least 4 KiB and at most 1 EiB"));
    }
    let params = ServerParams {
        capacity_blocks: bytes / BLOCK,
        queue_depth: table.take_integer("queue_depth", 1..=65_536)?.unwrap_or(1) as u32,
        service: spread.unwrap_or(ServiceTime::Constant(mean_ns)),
        bytes_per_s: read_byte_rate(&mut table, "transfer_rate")?,
        flush_ns: table.take_duration("flush")?,
        servers: table.take_integer("servers", 1..=4096)?.unwrap_or(1) as u32,
        rotational: table.take_flag("rotational")?.unwrap_or(true),
        seed: table.take_integer("seed", 0..=u64::MAX)?.unwrap_or(1),
    };
    let count = table
        .take_integer("count", 1..=MOST_DRIVES as u64)?
        .unwrap_or(1);
    table.finish()?;
    let drive = |index: u64| DriveSetup {
        model: SERVER.to_owned(),
        kind: DriveKind::Server(ServerParams {
            seed: params.seed.wrapping_add(index),
            ..params
        }),
        settings: Settings::default(),
        start: 0,
        len: params.capacity_blocks * BLOCK,
        ranges: ranges.clone(),
    };
    Ok((0..count).map(drive).collect())
}

fn read_byte_rate(table: &mut Table, key: &'static str) -> Result<Option<u64>, ConfigError> {
    let Some(value) = table.take(key) else {
        return Ok(None);
    };
    match value.rate()? {
        Rate::Bytes(rate) if (1.0..=1e15).contains(&rate) => Ok(Some(rate.round() as u64)),
        _ => Err(value.error("expected a rate in bytes such as \"200 MB/s\"")),
    }
}

fn unknown_model(value: &Value, name: &str, own: &[DataSheet]) -> ConfigError {
    let known: Vec<&str> = own
        .iter()
        .map(|sheet| sheet.name.as_str())
        .chain(drive_names())
        .collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "`spindle drives` lists the catalogue".to_owned(),
    };
    value.error(format!(
        "unknown drive \"{}\"; {hint}",
        spindle_config::clean(name)
    ))
}

fn read_region(value: &Value, capacity: u64) -> Result<(u64, u64), ConfigError> {
    let (from, to) = value.range()?;
    let byte = |place: Place| match place {
        Place::Bytes(bytes) => bytes,
        Place::Fraction(fraction) => (capacity as f64 * fraction) as u64,
    };
    // Partitions begin and end at whole MiB, as every partitioning tool has them.
    let start = byte(from) / BLOCK * BLOCK;
    let end = byte(to) / BLOCK * BLOCK;
    if end > capacity {
        return Err(value.error(format!(
            "the region ends at byte {end}, the drive at byte {capacity}"
        )));
    }
    if end <= start {
        return Err(value.error("the region is empty"));
    }
    Ok((start, end - start))
}

/// The first byte of a partition, which must leave some room after it.
fn read_partition(mut table: Table, capacity: Result<u64, SimError>) -> Result<u64, ConfigError> {
    table.describe("[partition]".to_owned());
    let start = table.take("start").ok_or_else(|| table.missing("start"))?;
    let bytes = start.size()?;
    let most = capacity.unwrap_or(0).saturating_sub(1 << 20);
    if !bytes.is_multiple_of(BLOCK) || bytes > most {
        return Err(start.error("expected a multiple of 512 bytes, at least 1 MiB before the end"));
    }
    table.finish()?;
    Ok(bytes)
}

fn read_controller(mut table: Table, changes: &[Change]) -> Result<ControllerSetup, ConfigError> {
    table.describe("[controller]".to_owned());
    let model = table.take("model").ok_or_else(|| table.missing("model"))?;
    let name = model.text()?;
    let mut sheet = ControllerSheet::named(name, changes).unwrap_or_else(|| {
        let hint = match nearest(name, ControllerSheet::names()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => {
                let names: Vec<_> = ControllerSheet::names().collect();
                format!("one of {}", names.join(", "))
            }
        };
        let name = spindle_config::clean(name);
        Err(model.error(format!("unknown controller \"{name}\"; {hint}")))
    })?;
    if let Some(cache) = table.take_size("cache")? {
        sheet.cache = cache;
    }
    let write_cache = table.take("write_cache");
    let order = table.take("destage_order");
    let setup = ControllerSetup {
        write_cache: match &write_cache {
            Some(value) => value.flag()?,
            None => sheet.cache > 0,
        },
        battery: table.take_flag("battery")?.unwrap_or(false),
        destage_order: match &order {
            Some(value) => value.choice(&[
                ("address", DestageOrder::Address),
                ("age", DestageOrder::Age),
            ])?,
            None => DestageOrder::Age,
        },
        count: table.take_integer("count", 1..=64)?.unwrap_or(1) as u32,
        sheet,
        array: None,
    };
    if setup.sheet.cache == 0
        && let Some(value) = write_cache.filter(|_| setup.write_cache).or(order)
    {
        return Err(value.error("this controller has no cache; leave the key out"));
    }
    table.finish()?;
    Ok(setup)
}

/// Reads `[array]`: an array of md, or one that the controller makes, which is put there.
fn read_array(
    mut table: Table,
    drives: &[DriveSetup],
    controller: Option<&mut ControllerSetup>,
) -> Result<Option<ArraySetup>, ConfigError> {
    table.describe("[array]".to_owned());
    let mut by_controller = None;
    if let Some(value) = table.take("type") {
        match (value.text()?, controller) {
            ("md", _) => {}
            ("controller", Some(controller)) if controller.count > 1 => {
                return Err(value.error("one controller makes an array; leave out its count"));
            }
            ("controller", Some(controller)) => by_controller = Some(controller),
            ("controller", None) => return Err(value.error("a controller needs `[controller]`")),
            _ => return Err(value.error("expected \"md\" or \"controller\"")),
        }
    }
    if by_controller.is_some() {
        for key in OF_MD {
            if let Some(value) = table.take(key) {
                return Err(value.error("only md has this; leave it out"));
            }
        }
    }
    let level = table.take("level").ok_or_else(|| table.missing("level"))?;
    let parsed: Level = level
        .text()?
        .parse()
        .map_err(|error: ArrayError| level.error(words(&error)))?;
    let data_offset = read_data_offset(&mut table, drives)?;
    let sizes = drives.iter().map(|drive| drive.len - data_offset);
    let mut config = ArrayConfig::new(parsed, sizes.collect());
    let layout = table.take("layout");
    if let Some(value) = &layout {
        config.layout =
            Layout::parse(parsed, value.text()?).map_err(|error| value.error(words(&error)))?;
    }
    let chunk = table.take("chunk");
    if let Some(value) = &chunk {
        config.chunk = value.size()?;
        if parsed == Level::Raid1 {
            return Err(value.error("RAID1 has no chunks; leave the key out"));
        }
    } else if parsed != Level::Raid1 && parsed != Level::Linear {
        config.chunk = DEFAULT_CHUNK;
    }
    let groups = table.take("groups");
    if let Some(value) = &groups {
        config.groups = value.integer(1..=MOST_DRIVES as u64)? as u32;
    }
    let outer = table.take("outer_chunk");
    if let Some(value) = &outer {
        config.outer_chunk = Some(value.size()?);
    }
    let stripe_cache = table
        .take_integer("stripe_cache_size", 17..=32_768)?
        .unwrap_or(STRIPE_CACHE) as u32;
    let missing_value = table.take("missing");
    let missing = match &missing_value {
        None => Vec::new(),
        Some(value) => read_slots(value, drives.len())?,
    };
    let rebuild_value = table.take("rebuild");
    let check_value = table.take("check");
    let rebuild = read_rebuild(
        &mut table,
        rebuild_value.as_ref(),
        check_value.as_ref(),
        drives.len(),
    )?;
    let synced = read_synced(&mut table, parsed, rebuild_value.as_ref())?;
    let bitmap_chunk = table.take("bitmap_chunk");
    let bitmap = read_bitmap(&mut table, parsed, bitmap_chunk.as_ref())?;

    let array = Array::new(config.clone()).map_err(|error| {
        let at = match &error {
            ArrayError::Chunk { .. } => chunk.as_ref(),
            ArrayError::UnknownLayout { .. }
            | ArrayError::TooManyCopies { .. }
            | ArrayError::Overlap { .. } => layout.as_ref(),
            ArrayError::Groups(_) => groups.as_ref().or(outer.as_ref()),
            _ => None,
        };
        at.unwrap_or(&level).error(words(&error))
    })?;
    if let Some(value) = &bitmap_chunk {
        let least = least_chunk(&array, data_offset);
        if bitmap
            .and_then(|of| of.chunk)
            .is_some_and(|chunk| chunk < least)
        {
            let least = least / 1024;
            return Err(value.error(format!(
                "the bitmap has no room before the data; expected at least {least} KiB"
            )));
        }
    }
    let mut gone: MemberSet = missing.iter().copied().collect();
    if let Some(RebuildSetup {
        member: Some(member),
        ..
    }) = rebuild
    {
        if gone.contains(member) {
            let value = rebuild_value.as_ref().unwrap_or(&level);
            return Err(value.error("a member that is being rebuilt is not missing"));
        }
        gone.insert(member);
    } else if rebuild.is_some()
        && let Some(value) = &check_value
    {
        if let Some(missing) = missing_value.as_ref().filter(|_| !gone.is_empty()) {
            return Err(missing.error("a check reads all members; leave the key out"));
        }
        if array.tolerance().guaranteed == 0 {
            return Err(value.error("this level has no copies; leave the key out"));
        }
    }
    if !gone.is_empty() && !survives(&array, &gone) {
        let value = missing_value
            .as_ref()
            .or(rebuild_value.as_ref())
            .unwrap_or(&level);
        let slots: Vec<String> = gone.iter().map(|slot| slot.to_string()).collect();
        return Err(value.error(format!(
            "the array does not survive without the members {}; it survives any {} at least",
            slots.join(", "),
            array.tolerance().guaranteed
        )));
    }
    table.finish()?;
    if let Some(controller) = by_controller {
        controller.array = Some(config);
        return Ok(None);
    }
    Ok(Some(ArraySetup {
        config,
        data_offset,
        stripe_cache,
        missing,
        synced,
        rebuild,
        bitmap,
    }))
}

fn has_copies(level: Level) -> bool {
    !matches!(level, Level::Linear | Level::Raid0)
}

fn read_synced(
    table: &mut Table,
    level: Level,
    rebuild: Option<&Value>,
) -> Result<bool, ConfigError> {
    let Some(value) = table.take("synced") else {
        return Ok(false);
    };
    let synced = value.flag()?;
    if synced && !has_copies(level) {
        return Err(value.error("this level has no copies, and so no sync; leave the key out"));
    }
    if synced && rebuild.is_some() {
        return Err(value.error("a member is being rebuilt; leave the key out"));
    }
    Ok(synced)
}

fn read_bitmap(
    table: &mut Table,
    level: Level,
    chunk: Option<&Value>,
) -> Result<Option<BitmapSetup>, ConfigError> {
    let Some(value) = table.take("bitmap") else {
        return match chunk {
            Some(chunk) => Err(chunk.error("there is no bitmap; set `bitmap = \"internal\"`")),
            None => Ok(None),
        };
    };
    match (value.text()?, chunk) {
        ("none", None) => Ok(None),
        ("none", Some(chunk)) => Err(chunk.error("there is no bitmap; leave the key out")),
        ("internal", _) if !has_copies(level) => {
            Err(value.error("this level has no copies, and so no bitmap; leave the key out"))
        }
        ("internal", None) => Ok(Some(BitmapSetup { chunk: None })),
        ("internal", Some(chunk)) => match chunk.size()? {
            bytes if bytes.is_power_of_two() && bytes >= 4096 => {
                Ok(Some(BitmapSetup { chunk: Some(bytes) }))
            }
            _ => Err(chunk.error("expected a power of two of at least 4 KiB")),
        },
        _ => Err(value.error("expected \"internal\" or \"none\"")),
    }
}

/// The space before the data on each member, bytes: md's superblock is there.
fn read_data_offset(table: &mut Table, drives: &[DriveSetup]) -> Result<u64, ConfigError> {
    let Some(value) = table.take("data_offset") else {
        return Ok(0);
    };
    let offset = value.size()?;
    let smallest = drives.iter().map(|drive| drive.len).min().unwrap_or(0);
    if !offset.is_multiple_of(4096) || offset < 8192 || offset >= smallest {
        return Err(
            value.error("expected a multiple of 4096 bytes, at least 8 KiB, within each drive")
        );
    }
    Ok(offset)
}

/// The array's own message, without the key it begins with: the place names it.
fn words(error: &ArrayError) -> String {
    let text = error.to_string();
    match text.split_once(": ") {
        Some((key, rest)) if key.len() < 12 && key != "drives" && key != "drive size" => {
            rest.to_owned()
        }
        _ => text,
    }
}

fn read_slots(value: &Value, drives: usize) -> Result<Vec<u32>, ConfigError> {
    let most = drives as u64 - 1;
    match value.list() {
        Ok(items) => items
            .iter()
            .map(|item| item.integer(0..=most).map(|slot| slot as u32))
            .collect(),
        Err(_) => Ok(vec![value.integer(0..=most)? as u32]),
    }
}

/// A rebuild of a member, or a check, and their speeds.
fn read_rebuild(
    table: &mut Table,
    member: Option<&Value>,
    check: Option<&Value>,
    drives: usize,
) -> Result<Option<RebuildSetup>, ConfigError> {
    let checks = match check {
        Some(value) => value.flag()?,
        None => false,
    };
    if let Some(value) = member.filter(|_| checks) {
        return Err(value.error("md does one of these at a time; leave `rebuild` or `check` out"));
    }
    let mut speed = |key: &'static str| -> Result<Option<(u64, Value)>, ConfigError> {
        let Some(value) = table.take(key) else {
            return Ok(None);
        };
        match value.rate()? {
            Rate::Bytes(rate) if rate >= 1.0 => Ok(Some((rate as u64, value))),
            _ => Err(value.error("expected a rate in bytes such as \"200 MB/s\"")),
        }
    };
    let (least, most) = (speed("sync_speed_min")?, speed("sync_speed_max")?);
    let member = match member {
        Some(value) => Some(value.integer(0..=drives as u64 - 1)? as u32),
        None => None,
    };
    if member.is_none() && !checks {
        if let Some((_, value)) = least.or(most) {
            return Err(value.error(
                "there is no rebuild; set `rebuild` to a member's slot, or `check = true`",
            ));
        }
        return Ok(None);
    }
    let rebuild = RebuildSetup {
        member,
        speed_min: least.as_ref().map_or(SPEED_MIN, |(rate, _)| *rate),
        speed_max: most.as_ref().map_or(SPEED_MAX, |(rate, _)| *rate),
    };
    if rebuild.speed_min > rebuild.speed_max
        && let Some((_, at)) = most.or(least)
    {
        return Err(at.error("`sync_speed_min` is above `sync_speed_max`"));
    }
    Ok(Some(rebuild))
}

/// True if all data can be read without these members: the map repeats itself, so a check of its first stripes and of
/// its last ones is enough.
fn survives(array: &Array, gone: &MemberSet) -> bool {
    let chunk = array.chunk().unwrap_or(BLOCK);
    let mut merger = Merger::new(array.members());
    let stripes = u64::from(array.members()) * u64::from(array.members());
    let capacity = array.capacity();
    let mut readable = |offset: u64| {
        let len = BLOCK.min(capacity.saturating_sub(offset));
        len == 0
            || array
                .plan_read(offset, len, gone, &mut merger, |_| {})
                .is_ok()
    };
    (0..stripes.clamp(4, 4096))
        .map(|index| index * chunk)
        .take_while(|&offset| offset < capacity)
        .all(&mut readable)
        && readable(capacity.saturating_sub(BLOCK))
}
