//! Phases of a file: each an ordinary load, whose keys inherit from the head of the file.

use spindle_config::{ConfigError, Place, Problem, Table, Value};

use crate::file_tables::SetOfFile;
use crate::keys::{self, Key, Level};
use crate::parse::{File, refuse_file_keys, streams, unknown, valid_name};
use crate::settings::{Layer, Settings};
use crate::spec::Phase;

/// Most phases of a workload, repetitions included.
const MAX_PHASES: u64 = 1024;

/// One phase as settings by layer.
pub(crate) struct PhaseOfFile {
    name: String,
    place: Place,
    settings: Settings,
    pub(crate) load: File,
}

/// The tables headed `[[phase]]`.
pub(crate) fn read(
    tables: Value,
    workload: &Settings,
    common: &Settings,
) -> Result<Vec<PhaseOfFile>, ConfigError> {
    if common.layer(&keys::NAME) != Layer::Default {
        let what = "names a stream or a phase; write it behind its [[phase]] or [[phase.stream]]";
        return Err(common.value(&keys::NAME).error(what));
    }
    let place = tables.place().clone();
    let mut phases: Vec<PhaseOfFile> = Vec::new();
    for table in tables.into_tables()? {
        let phase = one(table, workload, common)?;
        if phases.iter().any(|other| other.name == phase.name) {
            return Err(two(&phase.name, &phase));
        }
        phases.push(phase);
    }
    if phases.is_empty() {
        let what = "no phase is in it; write at least one [[phase]], or [[stream]]".to_owned();
        return Err(ConfigError::new(place, Problem::Other { what }));
    }
    Ok(phases)
}

fn one(
    mut table: Table,
    workload: &Settings,
    common: &Settings,
) -> Result<PhaseOfFile, ConfigError> {
    let name = table
        .take(keys::NAME.name)
        .ok_or_else(|| table.missing(keys::NAME.name))
        .and_then(|value| valid_name(&value))?;
    table.describe(format!("[phase \"{name}\"]"));
    let place = table.place().clone();
    if let Some(shape) = table.take(keys::TABLE.name) {
        let what = "belongs to the whole workload; write it before the first [[phase]]";
        return Err(shape.error(what));
    }
    let tables = table.take("stream");
    let mut settings = Settings::new(place.clone());
    settings.take(&mut table, Level::Phase, Layer::Phase);
    let mut own = workload.clone();
    own.forget(&keys::ABOUT);
    own.forget(&keys::TABLE);
    own.take(&mut table, Level::Workload, Layer::Phase);
    let mut shared = common.clone();
    shared.take(&mut table, Level::Stream, Layer::Phase);
    refuse_file_keys(&mut table)?;
    table.finish()?;
    Ok(PhaseOfFile {
        name,
        place,
        settings,
        load: File {
            workload: own,
            filesets: Vec::new(),
            streams: streams(tables, shared)?,
            phases: Vec::new(),
        },
    })
}

/// The phases in the order in which they run, each as often as it is repeated.
pub(crate) fn resolve(
    phases: &[PhaseOfFile],
    filesets: &[SetOfFile],
) -> Result<Vec<Phase>, ConfigError> {
    let mut found: Vec<Phase> = Vec::new();
    for phase in phases {
        let drop_caches = phase.settings.value(&keys::DROP_CACHES).flag()?;
        let times = phase.settings.integer(&keys::REPEAT)?;
        if found.len() as u64 + times > MAX_PHASES {
            let what = format!("at most {MAX_PHASES} phases can run");
            return Err(ConfigError::new(
                phase.place.clone(),
                Problem::Other { what },
            ));
        }
        for time in 1..=times {
            let name = match times {
                1 => phase.name.clone(),
                _ => format!("{}-{time}", phase.name),
            };
            if found.iter().any(|other| other.load.name == name) {
                return Err(two(&name, phase));
            }
            let load = phase.load.resolve(&name, filesets)?;
            found.push(Phase { drop_caches, load });
        }
    }
    Ok(found)
}

/// The name in the file of each phase that runs.
pub(crate) fn owners(phases: &[PhaseOfFile]) -> Vec<String> {
    let times = |phase: &PhaseOfFile| phase.settings.integer(&keys::REPEAT).unwrap_or(1) as usize;
    let names = phases
        .iter()
        .map(|phase| vec![phase.name.clone(); times(phase)]);
    names.flatten().collect()
}

fn two(name: &str, second: &PhaseOfFile) -> ConfigError {
    let what = format!("there are two phases `{name}`");
    ConfigError::new(second.place.clone(), Problem::Other { what })
}

impl File {
    /// Applies an option to a file of phases: to all of them, or to the phase or the stream that `owner` names.
    pub(crate) fn apply_to_phases(
        &mut self,
        key: &'static Key,
        owner: Option<&str>,
        value: Value,
        place: &Place,
    ) -> Result<(), ConfigError> {
        let Some(owner) = owner else {
            self.workload.set(key, Layer::Option, value.clone());
            if !matches!(key.name, "about" | "table") {
                for phase in &mut self.phases {
                    phase.load.set(key, value.clone(), Layer::Option);
                }
            }
            return Ok(());
        };
        let (name, stream) = match owner.split_once('.') {
            Some((name, stream)) => (name, Some(stream)),
            None => (owner, None),
        };
        if stream.is_some() && key.level == Level::Workload {
            let what = format!("belongs to the whole phase; write {name}.{}", key.name);
            return Err(value.error(what));
        }
        let phase = self.phases.iter_mut().find(|phase| phase.name == name);
        match (phase, stream) {
            (Some(phase), None) => {
                phase.load.set(key, value, Layer::PhaseOption);
                Ok(())
            }
            (Some(phase), Some(stream)) => {
                if phase.load.set_in_stream(stream, key, &value) {
                    return Ok(());
                }
                let names = phase.load.streams.iter().map(|(name, _)| name.as_str());
                Err(unknown(place.clone(), "stream", stream, names))
            }
            // Not a phase: streams of this name, in whichever phases they are.
            (None, None) if key.level == Level::Stream => {
                let mut found = false;
                for phase in &mut self.phases {
                    found |= phase.load.set_in_stream(name, key, &value);
                }
                if found {
                    return Ok(());
                }
                Err(self.no_phase(name, place))
            }
            (None, _) => Err(self.no_phase(name, place)),
        }
    }

    fn no_phase(&self, name: &str, place: &Place) -> ConfigError {
        let names = self.phases.iter().map(|phase| phase.name.as_str());
        unknown(place.clone(), "phase", name, names)
    }
}
