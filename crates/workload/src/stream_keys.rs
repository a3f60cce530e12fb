//! Keys of a stream: each is read and written here, side by side.

use spindle_config::units::{self, Rate, UnitError};
use spindle_config::{ConfigError, Value, clean};

use crate::file_tables;
use crate::key_texts::{self, KeyTexts};
use crate::keys::{self, Key, Level, PatternKind};
use crate::parse::unknown;
use crate::patterns::{self, pattern};
use crate::settings::{Layer, Settings};
use crate::sizes::{self, sizes};
use crate::spec;
use crate::spec::{
    Arrival, Content, End, Mix, Priority, PriorityClass, RateLimit, Region, Repeats, Size, Stream,
    Sync, Think, Window, Workload, WriteWalk,
};
use crate::trees;

/// For `ends`: each other stream.
const ALL: &str = "all";

/// A stream that would begin after the end of the run is a slip of units.
pub(crate) fn begins_before(
    run_length_ns: Option<u64>,
    stream: &Stream,
    settings: &Settings,
) -> Result<(), ConfigError> {
    match run_length_ns {
        Some(length_ns) if stream.start_delay_ns >= length_ns => {
            let what =
                "the run, ramp included, ends before the stream would begin; lengthen seconds";
            Err(settings.value(&keys::START_DELAY).error(what))
        }
        _ => Ok(()),
    }
}

pub(crate) fn read(name: &str, settings: &Settings) -> Result<Stream, ConfigError> {
    settings.check_needs(Level::Stream)?;
    let size = sizes(&settings.value(&keys::SIZE))?;
    let align_bytes = align(settings, &size, &keys::ALIGN, &keys::SIZE)?;
    let (mix, trim_first) = mix(settings)?;
    let workers = settings.integer(&keys::WORKERS)? as u32;
    let arrival = arrival(settings, &size, workers)?;
    let pattern = pattern(settings, &size, align_bytes, &keys::ZONES)?;
    let separate_writes = separate_writes(settings, &size, align_bytes, trim_first)?;
    let apart = separate_writes.is_some();
    Ok(Stream {
        name: name.to_owned(),
        mix,
        pattern,
        separate_writes,
        trim_first,
        window: window(settings, apart, trim_first)?,
        repeats: repeats(settings)?,
        ends: Vec::new(),
        mapped: mapped(settings)?,
        size,
        align_bytes,
        workers,
        depth: settings.integer(&keys::DEPTH)? as u32,
        per_worker: settings.value(&keys::PER_WORKER).flag()?,
        arrival,
        rate_limit: rate_limit(settings)?,
        think: think(settings)?,
        direct: settings.value(&keys::DIRECT).flag()? && !mapped(settings)?,
        sync: sync(settings)?,
        priority: settings
            .optional(&keys::PRIORITY)
            .map(|value| priority(&value))
            .transpose()?,
        region: region(settings)?,
        files: None,
        content: content(&settings.value(&keys::CONTENT))?,
        verify: settings.value(&keys::VERIFY).flag()?,
        verify_fatal: settings.value(&keys::VERIFY_FATAL).flag()?,
        start_delay_ns: settings.value(&keys::START_DELAY).duration()?,
        end: End {
            time_ns: settings.positive(&keys::STOP_AFTER, Value::seconds)?,
            bytes: settings.positive(&keys::STOP_BYTES, Value::size)?,
            requests: settings.optional_integer(&keys::STOP_REQUESTS)?,
            ..End::default()
        },
        passes: settings
            .optional(&keys::STOP_PASSES)
            .map(|_| settings.number(&keys::STOP_PASSES))
            .transpose()?,
        names: None,
    })
}

/// The keys of a stream; `first` is the set of files that is used where none is named.
pub(crate) fn write(stream: &Stream, load: &Workload, first: Option<&str>) -> KeyTexts {
    let mut said = KeyTexts::default();
    said.put(&keys::NAME, &stream.name);
    match &stream.names {
        None => write_data(stream, first, &mut said),
        Some(names) => trees::write(names, first, &mut said),
    }
    write_content(stream.content, &mut said);
    said.fraction(&keys::FSYNC_FRACTION, stream.sync.fsync_fraction);
    said.put(&keys::FSYNC_EVERY, stream.sync.fsync_every);
    said.put(&keys::FDATASYNC_EVERY, stream.sync.fdatasync_every);
    said.put(&keys::FSYNC_BETWEEN, stream.sync.fsync_between);
    said.put(&keys::END_FSYNC, stream.sync.end_fsync);
    said.put(&keys::WORKERS, stream.workers);
    said.put(&keys::DEPTH, stream.depth);
    said.put(&keys::PER_WORKER, stream.per_worker);
    write_arrival(stream.arrival, &mut said);
    write_rate_limit(stream.rate_limit, &mut said);
    write_think(stream.think, &mut said);
    write_priority(stream.priority, &mut said);
    said.duration(&keys::START_DELAY, stream.start_delay_ns);
    said.optional_duration(&keys::STOP_AFTER, stream.end.time_ns);
    said.optional_size(&keys::STOP_BYTES, stream.end.bytes);
    said.optional(&keys::STOP_REQUESTS, stream.end.requests);
    write_ends(stream, &load.streams, &mut said);
    said
}

/// The keys that only streams of data have.
fn write_data(stream: &Stream, first: Option<&str>, said: &mut KeyTexts) {
    said.put(&keys::OPERATION, keys::NONE);
    patterns::write(stream, said);
    said.put(&keys::SIZE, sizes::write(&stream.size));
    said.optional_size(&keys::ALIGN, some(stream.align_bytes));
    write_region(stream.region, said);
    write_apart(stream, said);
    write_window(stream.window, said);
    write_mix(stream, said);
    write_repeats(stream.repeats, said);
    said.put(&keys::VERIFY, stream.verify);
    said.put(&keys::VERIFY_FATAL, stream.verify_fatal);
    said.put(&keys::MAPPED, stream.mapped);
    said.put_or(&keys::DIRECT, stream.direct, stream.direct || stream.mapped);
    said.put(&keys::DSYNC, stream.sync.dsync);
    said.put(&keys::OSYNC, stream.sync.osync);
    said.optional(&keys::STOP_PASSES, stream.passes);
    if let Some(files) = &stream.files {
        file_tables::write_use(files, first, said);
    }
}

/// A number; `None` for 0.
fn some(number: u64) -> Option<u64> {
    Some(number).filter(|number| *number > 0)
}

/// The walk of the writes, if a key of theirs is set.
fn separate_writes(
    settings: &Settings,
    size: &Size,
    align_bytes: u64,
    trim_first: bool,
) -> Result<Option<WriteWalk>, ConfigError> {
    let zoned = settings.value(&keys::PATTERN).choice(keys::PATTERNS)? == PatternKind::Zoned;
    let zones = zoned.then_some(&keys::WRITE_ZONES);
    let own = [&keys::WRITE_SIZE, &keys::WRITE_ALIGN];
    let set: Vec<&Key> = own
        .into_iter()
        .chain(zones)
        .filter(|key| settings.optional(key).is_some())
        .collect();
    if set.is_empty() && !settings.value(&keys::WRITES_APART).flag()? {
        return Ok(None);
    }
    if trim_first {
        let named: Vec<&Key> = set.into_iter().chain([&keys::WRITES_APART]).collect();
        return Err(settings
            .last_set(&named)
            .error("excludes `trim_first`: a write goes to the place of its trim"));
    }
    let own_size = settings.optional(&keys::WRITE_SIZE);
    let size = own_size.map_or_else(|| Ok(size.clone()), |value| sizes(&value))?;
    let align_bytes = match settings.optional(&keys::WRITE_ALIGN) {
        Some(_) => align(settings, &size, &keys::WRITE_ALIGN, &keys::WRITE_SIZE)?,
        None if settings.optional(&keys::WRITE_SIZE).is_some() => 0,
        None => align_bytes,
    };
    let zones = match settings.optional(&keys::WRITE_ZONES) {
        Some(_) => &keys::WRITE_ZONES,
        None => &keys::ZONES,
    };
    Ok(Some(WriteWalk {
        pattern: pattern(settings, &size, align_bytes, zones)?,
        size,
        align_bytes,
    }))
}

/// Writes each key of the writes only where it differs from the rest.
fn write_apart(stream: &Stream, said: &mut KeyTexts) {
    let own = stream.separate_writes.as_ref();
    let size = own.filter(|own| own.size != stream.size || align_is_lost(own, stream));
    let aligned = own.filter(|own| {
        own.align_bytes > 0 && (size.is_some() || own.align_bytes != stream.align_bytes)
    });
    said.optional(&keys::WRITE_SIZE, size.map(|own| sizes::write(&own.size)));
    said.optional_size(&keys::WRITE_ALIGN, aligned.map(|own| own.align_bytes));
    let zones = patterns::write_zones_apart(stream, said);
    let said_so = size.is_some() || aligned.is_some() || zones;
    said.put_or(&keys::WRITES_APART, own.is_some(), own.is_none() || said_so);
}

/// True if the writes have no alignment of their own but the rest has: only a size of their own expresses that.
fn align_is_lost(own: &WriteWalk, stream: &Stream) -> bool {
    own.align_bytes == 0 && stream.align_bytes > 0
}

/// The part of the region that moves.
fn window(
    settings: &Settings,
    apart: bool,
    trim_first: bool,
) -> Result<Option<Window>, ConfigError> {
    let length = settings.positive(&keys::WINDOW, Value::size)?;
    let Some(length_bytes) = length else {
        return Ok(None);
    };
    let pattern = settings.value(&keys::PATTERN);
    let fits = [
        PatternKind::Sequential,
        PatternKind::Uniform,
        PatternKind::Shuffled,
    ];
    if !fits.contains(&pattern.choice(keys::PATTERNS)?) {
        return Err(settings
            .last_set(&[&keys::WINDOW, &keys::PATTERN])
            .error("a window is for the patterns sequential, uniform and shuffled"));
    }
    if apart || trim_first {
        return Err(settings.value(&keys::WINDOW).error(
            "all requests share it: it excludes writes that go on their own and `trim_first`",
        ));
    }
    Ok(Some(Window {
        length_bytes,
        moved_bytes: settings
            .positive(&keys::WINDOW_BYTES, Value::size)?
            .unwrap_or(length_bytes),
        skip_bytes: settings.value(&keys::WINDOW_SKIP).size()?,
    }))
}

fn write_window(window: Option<Window>, said: &mut KeyTexts) {
    said.optional_size(&keys::WINDOW, window.map(|window| window.length_bytes));
    if let Some(window) = window {
        let moved = some(window.moved_bytes).filter(|moved| *moved != window.length_bytes);
        said.optional_size(&keys::WINDOW_BYTES, moved);
        said.size(&keys::WINDOW_SKIP, window.skip_bytes);
    }
}

/// Writes whose content was written before.
fn repeats(settings: &Settings) -> Result<Option<Repeats>, ConfigError> {
    let fraction = settings.value(&keys::DEDUPE).fraction()?;
    if fraction <= 0.0 {
        return Ok(None);
    }
    if settings.value(&keys::VERIFY).flag()? {
        return Err(settings
            .last_set(&[&keys::DEDUPE, &keys::VERIFY])
            .error("`dedupe` and `verify` exclude each other: a verified block contains its own address, so none equals another"));
    }
    let set = settings.optional_integer(&keys::DEDUPE_SET)?;
    Ok(Some(Repeats {
        fraction,
        set: set.map(|set| set as u32),
    }))
}

fn write_repeats(repeats: Option<Repeats>, said: &mut KeyTexts) {
    said.fraction(
        &keys::DEDUPE,
        repeats.map_or(0.0, |repeats| repeats.fraction),
    );
    if let Some(repeats) = repeats {
        said.optional(&keys::DEDUPE_SET, repeats.set);
    }
}

/// True if the stream uses a mapping, which is never direct.
fn mapped(settings: &Settings) -> Result<bool, ConfigError> {
    let mapped = settings.value(&keys::MAPPED).flag()?;
    let direct = settings.value(&keys::DIRECT).flag()?;
    if mapped && direct && settings.layer(&keys::DIRECT) != Layer::Default {
        return Err(settings.last_set(&[&keys::MAPPED, &keys::DIRECT]).error(
            "a mapping goes through the page cache; set `direct = false` (`direct=False`)",
        ));
    }
    Ok(mapped)
}

/// Streams that end with each stream.
pub(crate) fn read_ends(
    streams: &mut [Stream],
    settings: &[(String, Settings)],
) -> Result<(), ConfigError> {
    let names: Vec<String> = streams.iter().map(|stream| stream.name.clone()).collect();
    for (stream, (_, settings)) in streams.iter_mut().zip(settings) {
        let Some(value) = settings.optional(&keys::ENDS) else {
            continue;
        };
        let text = value.text()?;
        let mut named: Vec<String> = Vec::new();
        for name in text.split(',').map(str::trim) {
            if text == ALL {
                named.extend(names.iter().filter(|name| **name != stream.name).cloned());
                break;
            }
            if !names.iter().any(|known| known == name) {
                let known = names.iter().map(String::as_str);
                return Err(unknown(value.place().clone(), "stream", name, known));
            }
            if name != stream.name && !named.iter().any(|known| known == name) {
                named.push(name.to_owned());
            }
        }
        stream.ends = named;
    }
    Ok(())
}

fn write_ends(stream: &Stream, streams: &[Stream], said: &mut KeyTexts) {
    let others = streams.iter().map(|other| &other.name);
    let text = match &stream.ends[..] {
        [] => None,
        ends if others.filter(|name| **name != stream.name).eq(ends) => Some(ALL.to_owned()),
        // A stream may be called `all`; named twice, it is one.
        [only] if only == ALL => Some(format!("{ALL},{ALL}")),
        ends => Some(ends.join(",")),
    };
    said.optional(&keys::ENDS, text);
}

/// Shares, and true if each write follows a trim of its place.
fn mix(settings: &Settings) -> Result<(Mix, bool), ConfigError> {
    let shares = [
        &keys::WRITE_FRACTION,
        &keys::TRIM_FRACTION,
        &keys::ZERO_FRACTION,
        &keys::REWRITE_FRACTION,
    ];
    let mix = Mix {
        write: settings.value(shares[0]).fraction()?,
        trim: settings.value(shares[1]).fraction()?,
        zero: settings.value(shares[2]).fraction()?,
        rewrite: settings.value(shares[3]).fraction()?,
    };
    let sum = mix.changes();
    // Shares such as 0.7 + 0.2 + 0.1 may come out a rounding error above 1.
    if sum > 1.0 + 1e-9 {
        let sum = units::format_fraction(sum);
        return Err(settings.last_set(&shares).error(format!(
            "writes, trims, zeroes and rewrites come to {sum}, above 100%"
        )));
    }
    let trim_first = settings.value(&keys::TRIM_FIRST).flag()?;
    if trim_first && mix.write < 1.0 {
        let value = settings.last_set(&[&keys::TRIM_FIRST, &keys::WRITE_FRACTION]);
        return Err(value.error("`trim_first` is for streams that only write: write_fraction 100%"));
    }
    if trim_first {
        let half = Mix {
            write: 0.5,
            trim: 0.5,
            ..Mix::READS
        };
        return Ok((half, true));
    }
    Ok((mix, false))
}

fn write_mix(stream: &Stream, said: &mut KeyTexts) {
    // Half of its requests are trims then.
    let mix = if stream.trim_first {
        Mix {
            write: 1.0,
            trim: 0.0,
            ..stream.mix
        }
    } else {
        stream.mix
    };
    said.fraction(&keys::WRITE_FRACTION, mix.write);
    said.fraction(&keys::TRIM_FRACTION, mix.trim);
    said.fraction(&keys::ZERO_FRACTION, mix.zero);
    said.fraction(&keys::REWRITE_FRACTION, mix.rewrite);
    said.put(&keys::TRIM_FIRST, stream.trim_first);
}

fn align(
    settings: &Settings,
    size: &Size,
    align_key: &Key,
    size_key: &Key,
) -> Result<u64, ConfigError> {
    let Some(align) = settings.positive(align_key, Value::size)? else {
        return Ok(0);
    };
    if let Size::Fixed { bytes } = *size {
        let bytes = u64::from(bytes);
        if !bytes.is_multiple_of(align) && !align.is_multiple_of(bytes) {
            let (align, size) = (units::format_size(align), units::format_size(bytes));
            return Err(settings.last_set(&[size_key, align_key]).error(format!(
                "neither of size {size} and align {align} is a multiple of the other"
            )));
        }
    }
    if align > 1 << 40 {
        return Err(settings.value(align_key).error("must be at most 1TiB"));
    }
    Ok(align)
}

fn arrival(settings: &Settings, size: &Size, workers: u32) -> Result<Arrival, ConfigError> {
    let rates = [&keys::RATE, &keys::WORKER_RATE];
    // Between options, the later layer decides.
    let layer = rates.iter().map(|key| settings.layer(key)).max();
    let set: Vec<&Key> = rates
        .into_iter()
        .filter(|key| settings.optional(key).is_some() && Some(settings.layer(key)) == layer)
        .collect();
    let Some(&key) = set.first() else {
        return Ok(Arrival::Closed);
    };
    if set.len() > 1 {
        return Err(settings
            .last_set(&set)
            .error("`rate` and `worker_rate` exclude each other; set one of them to none"));
    }
    for closed in [&keys::RATE_LIMIT, &keys::THINK] {
        if settings.optional(closed).is_some() {
            return Err(settings.last_set(&[key, closed]).error(format!(
                "`{}` (open loop) and `{}` (closed loop) exclude each other; leave one out or set it to none",
                key.name, closed.name
            )));
        }
    }
    let value = settings.value(key);
    let rate_iops = match (iops(&value)?, size) {
        (Rate::Iops(iops), _) => iops,
        (Rate::Bytes(bytes_per_s), Size::Fixed { bytes }) if key.name == keys::WORKER_RATE.name => {
            bytes_per_s / f64::from(*bytes)
        }
        (Rate::Bytes(_), _) if key.name == keys::WORKER_RATE.name => {
            return Err(
                value.error("must be in requests per second, such as 5 IOPS, as sizes vary")
            );
        }
        (Rate::Bytes(_), _) => {
            return Err(value.error("must be in requests per second, such as 500 IOPS"));
        }
    };
    let share = if key.name == keys::WORKER_RATE.name {
        f64::from(workers)
    } else {
        1.0
    };
    let rate_iops = rate_iops * share;
    if rate_iops > units::MAX_RATE {
        return Err(value.error("comes to more than 10^15 requests a second"));
    }
    Ok(Arrival::Open {
        rate_iops,
        spacing: settings.value(&keys::SPACING).choice(keys::SPACINGS)?,
    })
}

fn write_arrival(arrival: Arrival, said: &mut KeyTexts) {
    match arrival {
        Arrival::Closed => said.rate(&keys::RATE, None),
        Arrival::Open { rate_iops, spacing } => {
            said.rate(&keys::RATE, Some(Rate::Iops(rate_iops)));
            said.choice(&keys::SPACING, keys::SPACINGS, &spacing);
        }
    }
    said.rate(&keys::WORKER_RATE, None);
}

/// A rate; a bare number is requests per second.
fn iops(value: &Value) -> Result<Rate, ConfigError> {
    value.quantity("a rate such as \"500 IOPS\"", |text| {
        let bare = !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.');
        if bare {
            units::parse_rate(&format!("{text} IOPS"))
        } else {
            units::parse_rate(text)
        }
    })
}

fn rate_limit(settings: &Settings) -> Result<Option<RateLimit>, ConfigError> {
    let Some(value) = settings.optional(&keys::RATE_LIMIT) else {
        return Ok(None);
    };
    Ok(Some(match value.rate()? {
        Rate::Iops(iops) => RateLimit::Iops { iops },
        Rate::Bytes(bytes_per_s) => RateLimit::Bytes { bytes_per_s },
    }))
}

fn write_rate_limit(limit: Option<RateLimit>, said: &mut KeyTexts) {
    let rate = limit.map(|limit| match limit {
        RateLimit::Iops { iops } => Rate::Iops(iops),
        RateLimit::Bytes { bytes_per_s } => Rate::Bytes(bytes_per_s),
    });
    said.rate(&keys::RATE_LIMIT, rate);
}

fn think(settings: &Settings) -> Result<Option<Think>, ConfigError> {
    let mean_ns = settings.positive(&keys::THINK, Value::duration)?;
    let exponential = settings.value(&keys::THINK_SPREAD).choice(keys::THINKS)?;
    let every = settings.optional_integer(&keys::THINK_EVERY)?;
    let work_ns = settings.positive(&keys::THINK_WORK, Value::duration)?;
    if every.is_some() && work_ns.is_some() {
        return Err(settings
            .last_set(&[&keys::THINK_EVERY, &keys::THINK_WORK])
            .error("`think_every` and `think_work` exclude each other; set one of them to none"));
    }
    let spin_ns = settings.positive(&keys::THINK_SPIN, Value::duration)?;
    let spin_ns = spin_ns.filter(|_| every.is_some() || work_ns.is_some());
    Ok(mean_ns.map(|mean_ns| Think {
        mean_ns,
        exponential,
        every: every.unwrap_or(0) as u32,
        work_ns: work_ns.unwrap_or(0),
        spin_ns: spin_ns.unwrap_or(0),
    }))
}

fn write_think(think: Option<Think>, said: &mut KeyTexts) {
    said.optional_duration(&keys::THINK, think.map(|think| think.mean_ns));
    let Some(think) = think else { return };
    said.choice(&keys::THINK_SPREAD, keys::THINKS, &think.exponential);
    said.optional(
        &keys::THINK_EVERY,
        Some(think.every).filter(|every| *every > 0),
    );
    said.optional_duration(&keys::THINK_WORK, some(think.work_ns));
    if think.every > 0 || think.work_ns > 0 {
        said.optional_duration(&keys::THINK_SPIN, some(think.spin_ns));
    }
}

fn sync(settings: &Settings) -> Result<Sync, ConfigError> {
    let sync = Sync {
        fsync_every: settings.integer(&keys::FSYNC_EVERY)? as u32,
        fdatasync_every: settings.integer(&keys::FDATASYNC_EVERY)? as u32,
        fsync_fraction: settings.value(&keys::FSYNC_FRACTION).fraction()?,
        fsync_between: settings.value(&keys::FSYNC_BETWEEN).flag()?,
        dsync: settings.value(&keys::DSYNC).flag()?,
        osync: settings.value(&keys::OSYNC).flag()?,
        end_fsync: settings.value(&keys::END_FSYNC).flag()?,
    };
    if sync.fsync_every > 0 && sync.fsync_fraction > 0.0 {
        return Err(settings
            .last_set(&[&keys::FSYNC_FRACTION, &keys::FSYNC_EVERY])
            .error("`fsync_every` and `fsync_fraction` exclude each other; set one of them to 0"));
    }
    for (key, set) in [
        (&keys::FSYNC_EVERY, sync.fsync_every > 0),
        (&keys::FSYNC_FRACTION, sync.fsync_fraction > 0.0),
    ] {
        if set && sync.fdatasync_every > 0 {
            return Err(settings
                .last_set(&[key, &keys::FDATASYNC_EVERY])
                .error(format!(
                    "`{}` and `fdatasync_every` exclude each other; set one of them to 0",
                    key.name
                )));
        }
    }
    Ok(sync)
}

fn priority(value: &Value) -> Result<Priority, ConfigError> {
    let text = value.text()?;
    let (class, level) = match text.split_once(':') {
        Some((class, level)) => (class, Some(level)),
        None => (text, None),
    };
    let found = keys::PRIORITIES.iter().find(|(name, _)| *name == class);
    let Some((_, class)) = found else {
        let names = keys::priority_names();
        return Err(value.error(format!("`{}` is none of {names}", clean(class))));
    };
    let level = match (class, level) {
        (PriorityClass::Idle, None) => 0,
        (PriorityClass::Idle, Some(_)) => return Err(value.error("idle has no levels")),
        // The kernel's own middle (IOPRIO_NORM in include/linux/ioprio.h).
        (_, None) => 4,
        (_, Some(level)) => level
            .parse()
            .ok()
            .filter(|level| *level <= 7)
            .ok_or_else(|| {
                value.error(format!(
                    "the level `{}` is not 0 (highest) to 7",
                    clean(level)
                ))
            })?,
    };
    Ok(Priority {
        class: *class,
        level,
    })
}

fn write_priority(priority: Option<Priority>, said: &mut KeyTexts) {
    let text = priority.map(|Priority { class, level }| {
        let found = keys::PRIORITIES.iter().find(|(_, known)| *known == class);
        let name = found.map_or("", |(name, _)| name);
        match class {
            PriorityClass::Idle => name.to_owned(),
            _ => format!("{name}:{level}"),
        }
    });
    said.optional(&keys::PRIORITY, text);
}

fn region(settings: &Settings) -> Result<Region, ConfigError> {
    let (offset, end) = settings.value(&keys::REGION).range()?;
    let place = |place| match place {
        units::Place::Bytes(bytes) => spec::Place::Bytes { bytes },
        units::Place::Fraction(fraction) => spec::Place::Fraction { fraction },
    };
    Ok(Region {
        offset: place(offset),
        end: place(end),
    })
}

fn write_region(region: Region, said: &mut KeyTexts) {
    let (offset, end) = (
        key_texts::place(region.offset),
        key_texts::place(region.end),
    );
    said.put(&keys::REGION, format!("{offset}-{end}"));
}

fn content(value: &Value) -> Result<Content, ConfigError> {
    let text = value.text()?;
    match (text, text.strip_prefix("compressible:")) {
        ("random", _) => Ok(Content::Random),
        ("zero", _) => Ok(Content::Zero),
        (_, Some(ratio)) => {
            let parsed = value.quantity("", |_| -> Result<f64, UnitError> {
                units::parse_fraction(ratio)
            })?;
            Ok(Content::Compressible { ratio: parsed })
        }
        _ => {
            let text = clean(text);
            Err(value.error(format!(
                "`{text}` is none of random, zero, compressible:50%"
            )))
        }
    }
}

fn write_content(content: Content, said: &mut KeyTexts) {
    let text = match content {
        Content::Random => "random".to_owned(),
        Content::Zero => "zero".to_owned(),
        Content::Compressible { ratio } => format!("compressible:{}", units::exact_fraction(ratio)),
    };
    said.put(&keys::CONTENT, text);
}
