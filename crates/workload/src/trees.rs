//! Streams that work on names: their keys, and the trees that they work on.

use spindle_config::{ConfigError, Value};

use crate::file_tables::SetOfFile;
use crate::key_texts::KeyTexts;
use crate::keys::{self, KEYS, Key};
use crate::parse::unknown;
use crate::request::Op;
use crate::settings::{Layer, Settings};
use crate::sizes::{self, file_sizes};
use crate::spec::{
    Arrival, End, FileSize, Mix, Names, Order, Pattern, Region, Size, Stream, Sync, Tree, Workload,
};

/// Largest file that is made, bytes.
const MAX_FILE: u64 = 1 << 30;

/// Keys about data.
fn data_keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.data)
}

/// The names that a stream works on; `None`: it moves data.
pub(crate) fn of_stream(
    settings: &Settings,
    filesets: &[SetOfFile],
) -> Result<Option<Names>, ConfigError> {
    let asked = settings.value(&keys::OPERATION);
    let operation = asked.choice(keys::OPERATIONS)?;
    let Some(operation) = operation else {
        return Ok(None);
    };
    let layer = settings.layer(&keys::OPERATION);
    let beside =
        |key: &&Key| settings.layer(key) == layer || settings.layer(key) == Layer::StreamOption;
    if let Some(key) = data_keys().find(beside) {
        return Err(no_data(&settings.value(key)));
    }
    let Some((name, set)) = set_of(settings, filesets)? else {
        return Err(
            asked.error("needs a tree to work on: write [[files]] with nrfiles and directories")
        );
    };
    Ok(Some(Names {
        operation,
        order: settings.value(&keys::ORDER).choice(keys::ORDERS)?,
        passes: passes(settings, operation)?,
        tree: tree(name, set)?,
    }))
}

/// Name of the set that a stream with `operation` works on, before anything is resolved.
pub(crate) fn name_of(settings: &Settings, filesets: &[SetOfFile]) -> Option<String> {
    if settings.layer(&keys::OPERATION) == Layer::Default {
        return None;
    }
    let named = settings.optional(&keys::FILES);
    match named.as_ref().and_then(|value| value.text().ok()) {
        Some(name) => Some(name.to_owned()),
        None => filesets.first().map(|(name, _)| name.clone()),
    }
}

fn no_data(value: &Value) -> ConfigError {
    value.error("only means something for data; leave it out beside `operation`")
}

/// An option about data where no stream moves any.
pub(crate) fn check_options<'a>(
    workload: &Workload,
    mut settings: impl Iterator<Item = &'a Settings>,
) -> Result<(), ConfigError> {
    let mut streams = workload.loads().flat_map(|load| &load.streams);
    if streams.any(|stream| stream.names.is_none()) {
        return Ok(());
    }
    let idle = settings.find_map(|settings| {
        let key = data_keys().find(|key| settings.layer(key) >= Layer::Option)?;
        Some(settings.value(key))
    });
    idle.map_or(Ok(()), |value| Err(no_data(&value)))
}

/// The set that a stream names, or the first.
fn set_of<'a>(
    settings: &Settings,
    filesets: &'a [SetOfFile],
) -> Result<Option<&'a SetOfFile>, ConfigError> {
    let Some(value) = settings.optional(&keys::FILES) else {
        return Ok(filesets.first());
    };
    let name = value.text()?;
    match filesets.iter().find(|(other, _)| other == name) {
        Some(set) => Ok(Some(set)),
        None => {
            let known = filesets.iter().map(|(name, _)| name.as_str());
            Err(unknown(value.place().clone(), "set of files", name, known))
        }
    }
}

fn passes(settings: &Settings, operation: Op) -> Result<Option<u32>, ConfigError> {
    if settings.layer(&keys::STOP_PASSES) == Layer::Default {
        return Ok(Some(1));
    }
    let value = settings.value(&keys::STOP_PASSES);
    let passes = match settings.optional(&keys::STOP_PASSES) {
        None => None,
        Some(value) => Some(value.integer(1..=u64::from(u32::MAX))? as u32),
    };
    if passes != Some(1) && !operation.is_repeatable() {
        return Err(value.error(
            "must be 1: only open, stat, readdir and rename can be done to a name more than once",
        ));
    }
    Ok(passes)
}

fn tree(name: &str, set: &Settings) -> Result<Tree, ConfigError> {
    let files = set.integer(&keys::NRFILES)?;
    let directories = set.integer(&keys::DIRECTORIES)?;
    if directories > files {
        return Err(set
            .last_set(&[&keys::NRFILES, &keys::DIRECTORIES])
            .error(format!(
                "{directories} directories are more than the {files} files in them"
            )));
    }
    Ok(Tree {
        name: name.to_owned(),
        files,
        directories,
        size: content(set)?,
        each: set.value(&keys::EACH).choice(keys::EACHES)?,
    })
}

pub(crate) fn write(names: &Names, first: Option<&str>, said: &mut KeyTexts) {
    said.choice(&keys::OPERATION, keys::OPERATIONS, &Some(names.operation));
    said.choice(&keys::ORDER, keys::ORDERS, &names.order);
    said.put_or(
        &keys::FILES,
        &names.tree.name,
        first == Some(&names.tree.name),
    );
    let passes = names.passes.map(|passes| passes.to_string());
    let usual = names.passes == Some(1);
    said.put_or(
        &keys::STOP_PASSES,
        passes.as_deref().unwrap_or(keys::NONE),
        usual,
    );
}

/// The keys of a tree's set.
pub(crate) fn write_set(tree: &Tree) -> KeyTexts {
    let mut said = KeyTexts::default();
    said.put_or(&keys::NAME, &tree.name, false);
    said.put(&keys::DIRECTORIES, tree.directories);
    said.put(&keys::NRFILES, tree.files);
    said.put(&keys::FILESIZE, write_content(tree.size.clone()));
    said.choice(&keys::EACH, keys::EACHES, &tree.each);
    said
}

/// A smallest size of 1 is written as 0, which multiples of a step may begin with.
fn write_content(size: Option<Size>) -> String {
    let least = |min| u64::from(if min == 1 { 0 } else { min });
    let file = |size| match size {
        None => FileSize::Auto,
        Some(Size::Fixed { bytes }) => FileSize::Fixed {
            bytes: u64::from(bytes),
        },
        Some(Size::Weighted { choices }) => FileSize::Weighted {
            choices: choices
                .into_iter()
                .map(|(bytes, weight)| (u64::from(bytes), weight))
                .collect(),
        },
        Some(Size::Range { min, max, step }) => FileSize::Range {
            min: least(min),
            max: u64::from(max),
            step: u64::from(step),
        },
        Some(Size::LogNormal {
            mean,
            sigma,
            min,
            max,
            step,
        }) => FileSize::LogNormal {
            mean,
            sigma,
            min: least(min),
            max: u64::from(max),
            step: u64::from(step),
        },
    };
    sizes::write_files(&file(size))
}

/// Bytes written to each new file; `None`: none.
fn content(set: &Settings) -> Result<Option<Size>, ConfigError> {
    let value = set.value(&keys::FILESIZE);
    let bytes = |bytes: u64| match u32::try_from(bytes) {
        Ok(fits) if bytes <= MAX_FILE => Ok(fits),
        _ => Err(value.error("must be at most 1GiB where files are made one after another")),
    };
    // An empty file has no place in a distribution: its smallest has a byte.
    Ok(match file_sizes(&value)? {
        FileSize::Auto | FileSize::Fixed { bytes: 0 } => None,
        FileSize::Fixed { bytes: size } => Some(Size::Fixed {
            bytes: bytes(size)?,
        }),
        FileSize::Range { min, max, step } => Some(Size::Range {
            min: bytes(min.max(1))?,
            max: bytes(max)?,
            step: bytes(step.max(1))?,
        }),
        FileSize::Weighted { choices } => {
            let choices = choices
                .into_iter()
                .map(|(size, weight)| Ok((bytes(size)?, weight)));
            Some(Size::Weighted {
                choices: choices.collect::<Result<_, ConfigError>>()?,
            })
        }
        FileSize::LogNormal {
            mean,
            sigma,
            min,
            max,
            step,
        } => Some(Size::LogNormal {
            mean,
            sigma,
            min: bytes(min.max(1))?,
            max: bytes(max)?,
            step: bytes(step.max(1))?,
        }),
    })
}

impl Op {
    /// The operation of this name; `None` for other names.
    #[must_use]
    pub fn on_names(name: &str) -> Option<Op> {
        let found = keys::OPERATIONS.iter().find(|(known, _)| *known == name);
        found.and_then(|(_, operation)| *operation)
    }
}

impl Workload {
    /// The load that does one operation, once and in order, to every name that a stream works on: it makes the names that
    /// the stream needs before it begins.
    #[must_use]
    pub fn only_names(&self, stream: usize, operation: Op) -> Option<Workload> {
        let stream = self.streams.get(stream)?;
        let names = stream.names.as_ref()?;
        let only = Stream {
            arrival: Arrival::Closed,
            rate_limit: None,
            think: None,
            sync: Sync {
                dsync: stream.sync.dsync,
                osync: stream.sync.osync,
                ..Sync::default()
            },
            priority: None,
            start_delay_ns: 0,
            end: End::default(),
            names: Some(Names {
                operation,
                order: Order::Sequential,
                passes: Some(1),
                tree: names.tree.clone(),
            }),
            ..stream.clone()
        };
        Some(Workload {
            ramp_ns: 0,
            end: End::default(),
            streams: vec![only],
            phases: Vec::new(),
            filesets: Vec::new(),
            ..self.clone()
        })
    }
}

/// Makes a stream one of names; its settings about data have no effect any more.
pub(crate) fn apply(stream: &mut Stream, names: Names) {
    stream.mix = Mix {
        write: 0.0,
        trim: 0.0,
        zero: 0.0,
        rewrite: 0.0,
    };
    // The defaults, so that a resolved workload written out resolves to itself.
    stream.pattern = Pattern::Uniform;
    stream.size = Size::Fixed { bytes: 4096 };
    stream.align_bytes = 0;
    stream.direct = false;
    stream.region = Region::WHOLE;
    stream.separate_writes = None;
    stream.trim_first = false;
    stream.sync = Sync {
        dsync: false,
        osync: false,
        ..stream.sync
    };
    stream.window = None;
    stream.repeats = None;
    stream.mapped = false;
    stream.verify = false;
    stream.verify_fatal = false;
    stream.passes = None;
    stream.names = Some(names);
}

/// True if every stream ends by itself: when its names are taken, or its part of the data is done.
pub(crate) fn end_by_themselves(streams: &[Stream]) -> bool {
    let ends = |stream: &Stream| match &stream.names {
        Some(names) => names.passes.is_some(),
        None => stream.passes.is_some(),
    };
    !streams.is_empty() && streams.iter().all(ends)
}

/// True if a set of files is a tree that streams work on.
pub(crate) fn is_tree(set: &str, workload: &Workload) -> bool {
    let mut streams = workload.loads().flat_map(|load| &load.streams);
    streams.any(|stream| {
        stream
            .names
            .as_ref()
            .is_some_and(|names| names.tree.name == set)
    })
}

/// Checks that a tree is not also a set of data files of other streams.
pub(crate) fn check_only_tree(
    set: &str,
    settings: &Settings,
    workload: &Workload,
) -> Result<(), ConfigError> {
    let mut streams = workload.loads().flat_map(|load| &load.streams);
    let data = streams.find(|stream| stream.files.as_ref().is_some_and(|files| files.set == set));
    match data {
        None => Ok(()),
        Some(stream) => Err(settings.value(&keys::NRFILES).error(format!(
            "the set {set} is a tree for operations on names; give the stream {} another one (`files`)",
            stream.name
        ))),
    }
}

/// Checks that streams of one load do not remove each other's names.
pub(crate) fn check_shared(
    streams: &[Stream],
    settings: &[(String, Settings)],
) -> Result<(), ConfigError> {
    for (index, stream) in streams.iter().enumerate() {
        let Some(names) = &stream.names else { continue };
        let other = streams[..index].iter().find(|other| {
            other.names.as_ref().is_some_and(|theirs| {
                theirs.tree.name == names.tree.name
                    && (theirs.operation.changes_data() || names.operation.changes_data())
            })
        });
        if let Some(other) = other {
            return Err(settings[index].1.value(&keys::OPERATION).error(format!(
                "the streams {} and {} work on the same tree at the same time and one changes it; \
                 give each a set of files of its own",
                other.name, stream.name
            )));
        }
    }
    Ok(())
}
