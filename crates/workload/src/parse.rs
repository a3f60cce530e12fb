//! From TOML and options to a resolved workload.

use spindle_config::units::{self, Rate, UnitError};
use spindle_config::{ConfigError, Document, Place, Problem, Table, Value, clean, nearest};

use crate::file_tables::{self, SetOfFile};
use crate::keys::{self, KEYS, Key, Level, PatternKind};
use crate::patterns::pattern;
use crate::phases::{self, PhaseOfFile};
use crate::settings::{Layer, Settings};
use crate::sizes::sizes;
use crate::spec;
use crate::spec::{
    Arrival, Content, End, Mix, Priority, PriorityClass, RateLimit, Region, Repeats, Size,
    SteadyRule, Stream, Sync, Think, Window, Workload, WriteWalk,
};
use crate::trees;

/// Most streams of a workload.
const MAX_STREAMS: usize = 64;
/// Most workers, and most outstanding requests, of a workload.
const MAX_OUTSTANDING: u64 = 65_536;
/// Time limit of a run until steady, if none is given, ns.
const STEADY_LIMIT_NS: u64 = 600_000_000_000;
/// The same in windows, where they are longer than a minute.
const STEADY_LIMIT_WINDOWS: u64 = 10;
/// For `ends`: each other stream.
const ALL: &str = "all";
/// Sixty samples in a window: shorter ones would be counted by chance.
const SHORTEST_STEADY_NS: u64 = 3_000_000_000;
const LONGEST_STEADY_NS: u64 = 86_400_000_000_000;

impl Workload {
    /// Resolves a workload file.
    ///
    /// `source` is the file as messages should name it, `name` the workload's name (a preset's, or the
    /// file's stem). `overrides` are options of the command line, applied in order: (`size`, `64KiB`) for
    /// all streams, (`log.size`, `64KiB`) for the stream `log`, (`seconds`, `10`) for the workload. In a workload of
    /// phases (`read.size`, `64KiB`) is for the streams of the phase `read`, (`read.log.size`, `64KiB`) for one of them.
    pub fn parse(
        text: &str,
        source: &str,
        name: &str,
        overrides: &[(String, String)],
    ) -> Result<Workload, ConfigError> {
        let mut file = File::read(text, source)?;
        for (key, value) in overrides {
            file.apply(key, value)?;
        }
        let mut workload = file.resolve(name, &file.filesets)?;
        workload.filesets = file_tables::resolve(&file.filesets, &workload)?;
        let loads = std::iter::once(&file).chain(file.phases.iter().map(|phase| &phase.load));
        let settings = loads.flat_map(|load| load.streams.iter().map(|(_, settings)| settings));
        trees::check_options(&workload, settings)?;
        for phase in &mut workload.phases {
            phase.load.filesets = workload.filesets.clone();
        }
        Ok(workload)
    }
}

/// A file as settings by layer.
pub(crate) struct File {
    pub(crate) workload: Settings,
    /// Of the whole file: phases share them.
    pub(crate) filesets: Vec<SetOfFile>,
    pub(crate) streams: Vec<(String, Settings)>,
    /// Each an ordinary load of its own; with any, `streams` is empty.
    pub(crate) phases: Vec<PhaseOfFile>,
}

impl File {
    fn read(text: &str, source: &str) -> Result<File, ConfigError> {
        let mut head = Document::parse(text, source)?;
        let place = head.place().clone();
        let tables = head.take("stream");
        let phases = head.take("phase");
        let filesets = file_tables::read(&mut head)?;
        let mut workload = Settings::new(place.clone());
        workload.take(&mut head, Level::Workload, Layer::Head);
        let mut common = Settings::new(place);
        common.take(&mut head, Level::Stream, Layer::Head);
        refuse_phase_keys(&mut head)?;
        refuse_file_keys(&mut head)?;
        head.finish()?;
        match (tables, phases) {
            (tables, None) => Ok(File {
                workload,
                filesets,
                streams: streams(tables, common)?,
                phases: Vec::new(),
            }),
            (None, Some(tables)) => Ok(File {
                phases: phases::read(tables, &workload, &common)?,
                workload,
                filesets,
                streams: Vec::new(),
            }),
            (Some(streams), Some(_)) => Err(streams.error(
                "streams and phases exclude each other; write each [[stream]] as [[phase.stream]] behind its [[phase]]",
            )),
        }
    }

    /// Applies an option.
    fn apply(&mut self, option: &str, text: &str) -> Result<(), ConfigError> {
        let (owner, name) = match option.rsplit_once('.') {
            Some((owner, name)) => (Some(owner), name),
            None => (None, option),
        };
        let key = keys::find(&name.replace('-', "_"));
        let place = Place::Option {
            name: match key {
                Some(key) if key.option && owner.is_none() => {
                    format!("--{}", key.name.replace('_', "-")).into()
                }
                _ => format!("--set {option}").into(),
            },
        };
        let key = key.ok_or_else(|| unknown_option(&place, name))?;
        let value = Value::typed(key.name, text, place.clone());
        if !key.option {
            return Err(value.error("can only be set in a file"));
        }
        match owner {
            _ if key.level == Level::Files => {
                let trees = self.trees();
                file_tables::apply(&mut self.filesets, &trees, key, owner, value, &place)
            }
            _ if !self.phases.is_empty() => self.apply_to_phases(key, owner, value, &place),
            None => {
                self.set(key, value, Layer::Option);
                Ok(())
            }
            Some(_) if key.level == Level::Workload => {
                Err(value.error(format!("belongs to the whole workload; write {}", key.name)))
            }
            Some(stream) => {
                if self.set_in_stream(stream, key, &value) {
                    return Ok(());
                }
                let names = self.streams.iter().map(|(name, _)| name.as_str());
                Err(unknown(place, "stream", stream, names))
            }
        }
    }

    /// Names of the sets that are trees.
    fn trees(&self) -> Vec<String> {
        let loads = std::iter::once(self).chain(self.phases.iter().map(|phase| &phase.load));
        let settings = loads.flat_map(|load| load.streams.iter().map(|(_, settings)| settings));
        settings
            .filter_map(|settings| trees::name_of(settings, &self.filesets))
            .collect()
    }

    /// Sets a key of the load, or of all its streams.
    pub(crate) fn set(&mut self, key: &'static Key, value: Value, layer: Layer) {
        match key.level {
            Level::Stream => {
                for (_, settings) in &mut self.streams {
                    settings.set(key, layer, value.clone());
                }
            }
            Level::Workload | Level::Phase => self.workload.set(key, layer, value),
            Level::Files => {} // see `apply`
        }
    }

    /// Sets a key of one stream, if there is one of that name.
    pub(crate) fn set_in_stream(&mut self, stream: &str, key: &'static Key, value: &Value) -> bool {
        let found = self.streams.iter_mut().find(|(name, _)| name == stream);
        let Some((_, settings)) = found else {
            return false;
        };
        settings.set(key, Layer::StreamOption, value.clone());
        true
    }

    /// Everything but the sets themselves, whose names streams are held against.
    pub(crate) fn resolve(
        &self,
        name: &str,
        filesets: &[SetOfFile],
    ) -> Result<Workload, ConfigError> {
        let workload = &self.workload;
        let about = workload.value(&keys::ABOUT);
        if about.text()?.chars().count() > 200 {
            return Err(about.error("is longer than 200 characters"));
        }
        let ramp_ns = workload.value(&keys::RAMP).duration()?;
        let mut streams = Vec::with_capacity(self.streams.len());
        let mut outstanding = 0;
        for (name, settings) in &self.streams {
            let mut stream = stream(name, settings)?;
            match trees::of_stream(settings, filesets)? {
                Some(names) => trees::apply(&mut stream, names),
                None => stream.files = file_tables::of_stream(settings, filesets)?,
            }
            outstanding += u64::from(stream.workers) * u64::from(stream.depth);
            if outstanding > MAX_OUTSTANDING {
                return Err(settings.last_set(&[&keys::WORKERS, &keys::DEPTH]).error(format!(
                    "workers x depth of all streams come to {outstanding}; at most {MAX_OUTSTANDING} requests \
                     can be outstanding"
                )));
            }
            streams.push(stream);
        }
        trees::check_shared(&streams, &self.streams)?;
        ends(&mut streams, &self.streams)?;
        if ramp_ns > 0 && streams.iter().any(|stream| stream.names.is_some()) {
            let what = "would use up names that then do not count; leave it out";
            return Err(workload.value(&keys::RAMP).error(what));
        }
        let end = if self.phases.is_empty() {
            run_end(workload, trees::end_by_themselves(&streams))?
        } else {
            End::default() // each phase has its own
        };
        let run_length_ns = end.time_ns.map(|time_ns| ramp_ns.saturating_add(time_ns));
        for (stream, (_, settings)) in streams.iter().zip(&self.streams) {
            begins_before(run_length_ns, stream, settings)?;
        }
        Ok(Workload {
            name: name.to_owned(),
            about: about.text()?.chars().filter(|c| !c.is_control()).collect(),
            table: workload.value(&keys::TABLE).choice(keys::TABLES)?,
            seed: workload.value(&keys::SEED).integer(0..=u64::MAX)?,
            ramp_ns,
            end,
            filesets: Vec::new(),
            streams,
            phases: phases::resolve(&self.phases, filesets)?,
        })
    }
}

/// The streams of a load: tables headed `[[stream]]`, or, without any, one by the common settings.
pub(crate) fn streams(
    tables: Option<Value>,
    common: Settings,
) -> Result<Vec<(String, Settings)>, ConfigError> {
    let tables_place = tables.as_ref().map(|tables| tables.place().clone());
    let mut tables = tables.map_or(Ok(Vec::new()), Value::into_tables)?;
    if let Some(place) = tables_place
        && tables.len() > MAX_STREAMS
    {
        let what = format!(
            "{} streams are too many; at most {MAX_STREAMS} can run",
            tables.len()
        );
        return Err(ConfigError::new(place, Problem::Other { what }));
    }
    let only = tables.len() <= 1;
    if !only && common.layer(&keys::NAME) != Layer::Default {
        return Err(common
            .value(&keys::NAME)
            .error("each of several streams needs a name of its own"));
    }
    let mut streams: Vec<(String, Settings)> = Vec::new();
    for table in &mut tables {
        let mut settings = common.clone();
        let name = stream_name(table, &mut settings, only)?;
        if streams.iter().any(|(other, _)| *other == name) {
            return Err(settings
                .value(&keys::NAME)
                .error(format!("there are two streams `{name}`")));
        }
        settings.take(table, Level::Stream, Layer::Stream);
        refuse_workload_keys(table)?;
        refuse_phase_keys(table)?;
        refuse_file_keys(table)?;
        streams.push((name, settings));
    }
    for table in tables {
        table.finish()?;
    }
    if streams.is_empty() {
        let name = valid_name(&common.value(&keys::NAME))?;
        streams.push((name, common));
    }
    Ok(streams)
}

fn stream_name(
    table: &mut Table,
    settings: &mut Settings,
    only: bool,
) -> Result<String, ConfigError> {
    match table.take(keys::NAME.name) {
        Some(value) => {
            let name = valid_name(&value)?;
            settings.set(&keys::NAME, Layer::Stream, value);
            table.describe(format!("[stream \"{name}\"]"));
            Ok(name)
        }
        None if only => valid_name(&settings.value(&keys::NAME)),
        None => Err(table.missing(keys::NAME.name)),
    }
}

/// Names appear in options (`log.size`), tables and file names.
pub(crate) fn valid_name(value: &Value) -> Result<String, ConfigError> {
    let name = value.text()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
        let shown = clean(name);
        return Err(value.error(format!("`{shown}` is not 1 to 32 letters, digits, - or _")));
    }
    Ok(name.to_owned())
}

/// A workload's key in a stream is a likelier mistake than a misspelling.
fn refuse_workload_keys(table: &mut Table) -> Result<(), ConfigError> {
    let misplaced = KEYS
        .iter()
        .filter(|key| key.level == Level::Workload)
        .find(|key| table.keys().any(|left| left == key.name));
    match misplaced.and_then(|key| table.take(key.name)) {
        Some(value) => {
            Err(value.error("belongs to the whole workload; write it before the first [[stream]]"))
        }
        None => Ok(()),
    }
}

/// A phase's key elsewhere.
fn refuse_phase_keys(table: &mut Table) -> Result<(), ConfigError> {
    let misplaced = KEYS
        .iter()
        .filter(|key| key.level == Level::Phase)
        .find(|key| table.keys().any(|left| left == key.name));
    match misplaced.and_then(|key| table.take(key.name)) {
        Some(value) => Err(value.error("belongs to a phase; write it behind its [[phase]]")),
        None => Ok(()),
    }
}

/// A key of a set of files elsewhere.
pub(crate) fn refuse_file_keys(table: &mut Table) -> Result<(), ConfigError> {
    let misplaced = KEYS
        .iter()
        .filter(|key| key.level == Level::Files)
        .find(|key| table.keys().any(|left| left == key.name));
    match misplaced.and_then(|key| table.take(key.name)) {
        Some(value) => Err(value.error("belongs to a set of files; write it in [[files]]")),
        None => Ok(()),
    }
}

fn unknown_option(place: &Place, name: &str) -> ConfigError {
    let options = KEYS.iter().filter(|key| key.option).map(|key| key.name);
    unknown(place.clone(), "key", name, options)
}

pub(crate) fn unknown<'a>(
    place: Place,
    kind: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> ConfigError {
    let problem = Problem::Unknown {
        kind,
        name: name.to_owned(),
        scope: String::new(),
        nearest: nearest(name, known.clone()).map(str::to_owned),
        allowed: known.map(str::to_owned).collect(),
    };
    ConfigError::new(place, problem)
}

/// `passes`: every stream ends by itself when it has gone over its part, or its names.
fn run_end(workload: &Settings, passes: bool) -> Result<End, ConfigError> {
    let time_ns = positive(workload, &keys::SECONDS, Value::seconds)?;
    let bytes = positive(workload, &keys::BYTES, Value::size)?;
    let requests = positive(workload, &keys::REQUESTS, |value| {
        value.integer(1..=u64::MAX)
    })?;
    let steady = workload.value(&keys::UNTIL_STEADY).flag()?;
    let steady_rule = steady_rule(workload, steady)?;
    let time_ns = match workload.layer(&keys::SECONDS) {
        // The default is for runs that nothing else ends.
        Layer::Default if bytes.is_some() || requests.is_some() || passes => None,
        Layer::Default if steady => {
            let window_ns = steady_rule.map_or(0, |rule| rule.window_ns);
            Some(STEADY_LIMIT_NS.max(window_ns.saturating_mul(STEADY_LIMIT_WINDOWS)))
        }
        _ => time_ns,
    };
    if time_ns.is_none() && bytes.is_none() && requests.is_none() && !steady && !passes {
        let what =
            "nothing ends the run; set seconds, bytes, requests, until_steady or stop_passes";
        return Err(workload.value(&keys::SECONDS).error(what));
    }
    Ok(End {
        time_ns,
        bytes,
        requests,
        steady,
        steady_rule,
    })
}

/// The rule of a run that ends when it has settled.
fn steady_rule(workload: &Settings, steady: bool) -> Result<Option<SteadyRule>, ConfigError> {
    for key in [
        &keys::STEADY_METRIC,
        &keys::STEADY_WINDOW,
        &keys::STEADY_RANGE,
        &keys::STEADY_SLOPE,
        &keys::STEADY_DRIFT,
    ] {
        workload.only_with(key, &keys::UNTIL_STEADY, steady, "until_steady")?;
    }
    if !steady {
        return Ok(None);
    }
    let window = workload.value(&keys::STEADY_WINDOW);
    let window_ns = window.duration()?;
    if !(SHORTEST_STEADY_NS..=LONGEST_STEADY_NS).contains(&window_ns) {
        return Err(window.error("must be 3s to 24h"));
    }
    let share = |key: &Key| -> Result<f64, ConfigError> {
        let value = workload.value(key);
        match value.fraction()? {
            fraction if fraction > 0.0 => Ok(fraction),
            _ => Err(value.error("must be above 0%")),
        }
    };
    Ok(Some(SteadyRule {
        metric: workload
            .value(&keys::STEADY_METRIC)
            .choice(keys::STEADY_METRICS)?,
        window_ns,
        range: share(&keys::STEADY_RANGE)?,
        slope: share(&keys::STEADY_SLOPE)?,
        drift_per_minute: workload
            .optional(&keys::STEADY_DRIFT)
            .map(|_| share(&keys::STEADY_DRIFT))
            .transpose()?,
    }))
}

/// A stream that would begin after the end of the run is a slip of units.
fn begins_before(
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

fn stream(name: &str, settings: &Settings) -> Result<Stream, ConfigError> {
    let count = |key: &Key| -> Result<u32, ConfigError> {
        Ok(settings.value(key).integer(1..=MAX_OUTSTANDING)? as u32)
    };
    let size = sizes(&settings.value(&keys::SIZE))?;
    let align_bytes = align(settings, &size, &keys::ALIGN, &keys::SIZE)?;
    let (mix, trim_first) = mix(settings)?;
    let workers = count(&keys::WORKERS)?;
    let arrival = arrival(settings, &size, workers)?;
    Ok(Stream {
        name: name.to_owned(),
        mix,
        pattern: pattern(settings, &size, align_bytes, &keys::ZONES)?,
        writes_apart: writes_apart(settings, &size, align_bytes, trim_first)?,
        trim_first,
        window: window(settings, trim_first)?,
        repeats: repeats(settings)?,
        ends: Vec::new(),
        mapped: mapped(settings)?,
        size,
        align_bytes,
        workers,
        depth: count(&keys::DEPTH)?,
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
            time_ns: positive(settings, &keys::STOP_AFTER, Value::seconds)?,
            bytes: positive(settings, &keys::STOP_BYTES, Value::size)?,
            requests: positive(settings, &keys::STOP_REQUESTS, |value| {
                value.integer(1..=u64::MAX)
            })?,
            ..End::default()
        },
        passes: settings
            .optional(&keys::STOP_PASSES)
            .map(|value| value.number(0.001..=1e9))
            .transpose()?,
        names: None,
    })
}

/// The walk of the writes, if a key of theirs is set.
fn writes_apart(
    settings: &Settings,
    size: &Size,
    align_bytes: u64,
    trim_first: bool,
) -> Result<Option<WriteWalk>, ConfigError> {
    let own = [&keys::WRITE_SIZE, &keys::WRITE_ALIGN, &keys::WRITE_ZONES];
    let set: Vec<&Key> = own
        .into_iter()
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

/// The part of the region that moves.
fn window(settings: &Settings, trim_first: bool) -> Result<Option<Window>, ConfigError> {
    let length = positive(settings, &keys::WINDOW, Value::size)?;
    for key in [&keys::WINDOW_BYTES, &keys::WINDOW_SKIP] {
        settings.only_with(key, &keys::WINDOW, length.is_some(), "`window`")?;
    }
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
    let apart = [&keys::WRITE_SIZE, &keys::WRITE_ALIGN];
    let own = settings.value(&keys::WRITES_APART).flag()?
        || apart.iter().any(|key| settings.optional(key).is_some());
    if own || trim_first {
        return Err(settings.value(&keys::WINDOW).error(
            "all requests share it: it excludes writes that go on their own and `trim_first`",
        ));
    }
    Ok(Some(Window {
        length_bytes,
        moved_bytes: positive(settings, &keys::WINDOW_BYTES, Value::size)?.unwrap_or(length_bytes),
        skip_bytes: settings.value(&keys::WINDOW_SKIP).size()?,
    }))
}

/// Writes whose content was written before.
fn repeats(settings: &Settings) -> Result<Option<Repeats>, ConfigError> {
    let fraction = settings.value(&keys::DEDUPE).fraction()?;
    let holds = fraction > 0.0;
    settings.only_with(&keys::DEDUPE_SET, &keys::DEDUPE, holds, "`dedupe`")?;
    if !holds {
        return Ok(None);
    }
    if settings.value(&keys::VERIFY).flag()? {
        return Err(settings
            .last_set(&[&keys::DEDUPE, &keys::VERIFY])
            .error("`dedupe` and `verify` exclude each other: a verified block says where it lies, so none equals another"));
    }
    let set = positive(settings, &keys::DEDUPE_SET, |value| {
        value.integer(1..=u64::from(u32::MAX))
    })?;
    Ok(Some(Repeats {
        fraction,
        set: set.map(|set| set as u32),
    }))
}

/// Whether it goes through a mapping, which is never direct.
fn mapped(settings: &Settings) -> Result<bool, ConfigError> {
    let mapped = settings.value(&keys::MAPPED).flag()?;
    let direct = settings.value(&keys::DIRECT).flag()?;
    if mapped && direct && settings.layer(&keys::DIRECT) != Layer::Default {
        return Err(settings
            .last_set(&[&keys::MAPPED, &keys::DIRECT])
            .error("a mapping goes through the page cache; set `direct = false` (--buffered)"));
    }
    Ok(mapped)
}

/// Which streams end with which.
fn ends(streams: &mut [Stream], settings: &[(String, Settings)]) -> Result<(), ConfigError> {
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

/// An optional number that must not be 0.
fn positive(
    settings: &Settings,
    key: &Key,
    read: impl Fn(&Value) -> Result<u64, ConfigError>,
) -> Result<Option<u64>, ConfigError> {
    let Some(value) = settings.optional(key) else {
        return Ok(None);
    };
    match read(&value)? {
        0 => Err(value.error("must be above 0, or none")),
        number => Ok(Some(number)),
    }
}

/// Shares, and whether each write follows a trim of its place.
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

fn align(
    settings: &Settings,
    size: &Size,
    align_key: &Key,
    size_key: &Key,
) -> Result<u64, ConfigError> {
    let Some(align) = positive(settings, align_key, Value::size)? else {
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
    let set: Vec<&Key> = rates
        .into_iter()
        .filter(|key| settings.optional(key).is_some())
        .collect();
    let open = "`rate` or `worker_rate`";
    settings.only_with(&keys::SPACING, &keys::RATE, !set.is_empty(), open)?;
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
    Ok(Arrival::Open {
        rate_iops: rate_iops * share,
        spacing: settings.value(&keys::SPACING).choice(keys::SPACINGS)?,
    })
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

fn think(settings: &Settings) -> Result<Option<Think>, ConfigError> {
    let mean_ns = positive(settings, &keys::THINK, Value::duration)?;
    settings.only_with(
        &keys::THINK_SPREAD,
        &keys::THINK,
        mean_ns.is_some(),
        "`think`",
    )?;
    let exponential = settings.value(&keys::THINK_SPREAD).choice(keys::THINKS)?;
    for key in [&keys::THINK_EVERY, &keys::THINK_WORK] {
        settings.only_with(key, &keys::THINK, mean_ns.is_some(), "`think`")?;
    }
    let every = positive(settings, &keys::THINK_EVERY, |value| {
        value.integer(1..=u64::from(u32::MAX))
    })?;
    let work_ns = positive(settings, &keys::THINK_WORK, Value::duration)?;
    if every.is_some() && work_ns.is_some() {
        return Err(settings
            .last_set(&[&keys::THINK_EVERY, &keys::THINK_WORK])
            .error("`think_every` and `think_work` exclude each other; set one of them to none"));
    }
    let spin_ns = positive(settings, &keys::THINK_SPIN, Value::duration)?;
    if let (Some(_), None, None) = (spin_ns, every, work_ns) {
        return Err(settings
            .value(&keys::THINK_SPIN)
            .error("only means something with `think_every` or `think_work`"));
    }
    Ok(mean_ns.map(|mean_ns| Think {
        mean_ns,
        exponential,
        every: every.unwrap_or(0) as u32,
        work_ns: work_ns.unwrap_or(0),
        spin_ns: spin_ns.unwrap_or(0),
    }))
}

fn sync(settings: &Settings) -> Result<Sync, ConfigError> {
    let sync = Sync {
        fsync_every: settings
            .value(&keys::FSYNC_EVERY)
            .integer(0..=u64::from(u32::MAX))? as u32,
        fdatasync_every: settings
            .value(&keys::FDATASYNC_EVERY)
            .integer(0..=u64::from(u32::MAX))? as u32,
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
