//! From TOML and options to a resolved workload.

use spindle_config::{ConfigError, Document, Place, Problem, Table, Value, clean, nearest};

use crate::file_tables::{self, SetOfFile};
use crate::keys::{self, KEYS, Key, Level, MAX_OUTSTANDING};
use crate::phases::{self, PhaseOfFile};
use crate::presets;
use crate::run_keys;
use crate::settings::{Layer, Settings};
use crate::spec::{End, Workload};
use crate::stream_keys;
use crate::trees;

/// Most streams of a workload.
const MAX_STREAMS: usize = 64;

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
    /// Sets of files of the whole file: phases share them.
    pub(crate) filesets: Vec<SetOfFile>,
    pub(crate) streams: Vec<(String, Settings)>,
    /// Each an ordinary load of its own; with any, `streams` is empty.
    pub(crate) phases: Vec<PhaseOfFile>,
}

impl File {
    pub(crate) fn read(text: &str, source: &str) -> Result<File, ConfigError> {
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
        let place = match key {
            Some(key) if key.option && owner.is_none() => Place::Option {
                name: key.name.into(),
            },
            _ if owner.is_none() => Place::Argument, // the message names it
            _ => Place::Option {
                name: option.into(),
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

    /// Resolves everything but the sets themselves, against whose names streams are checked.
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
            let mut stream = stream_keys::read(name, settings)?;
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
        stream_keys::read_ends(&mut streams, &self.streams)?;
        if ramp_ns > 0 && streams.iter().any(|stream| stream.names.is_some()) {
            let what = "would use up names that then do not count; leave it out";
            return Err(workload.value(&keys::RAMP).error(what));
        }
        let end = if self.phases.is_empty() {
            run_keys::read_end(workload, trees::end_by_themselves(&streams))?
        } else {
            End::default() // each phase has its own
        };
        let run_length_ns = end.time_ns.map(|time_ns| ramp_ns.saturating_add(time_ns));
        for (stream, (_, settings)) in streams.iter().zip(&self.streams) {
            stream_keys::begins_before(run_length_ns, stream, settings)?;
        }
        Ok(Workload {
            name: name.to_owned(),
            about: about.text()?.chars().filter(|c| !c.is_control()).collect(),
            table: workload
                .value(&keys::TABLE)
                .choice(&presets::tables())?
                .to_owned(),
            seed: workload.integer(&keys::SEED)?,
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
