//! Workloads that come with the program.

use spindle_config::{ConfigError, Place, Problem, nearest};

/// Name and TOML of each preset, in the order they are listed.
const PRESETS: [(&str, &str); 16] = [
    (
        "randomio",
        include_str!("../../../catalogue/presets/randomio.toml"),
    ),
    (
        "seeker",
        include_str!("../../../catalogue/presets/seeker.toml"),
    ),
    (
        "sdd-read",
        include_str!("../../../catalogue/presets/sdd-read.toml"),
    ),
    (
        "sdd-write",
        include_str!("../../../catalogue/presets/sdd-write.toml"),
    ),
    ("trim", include_str!("../../../catalogue/presets/trim.toml")),
    (
        "hdparm",
        include_str!("../../../catalogue/presets/hdparm.toml"),
    ),
    (
        "hddtest",
        include_str!("../../../catalogue/presets/hddtest.toml"),
    ),
    ("oltp", include_str!("../../../catalogue/presets/oltp.toml")),
    (
        "mixed",
        include_str!("../../../catalogue/presets/mixed.toml"),
    ),
    (
        "metadata",
        include_str!("../../../catalogue/presets/metadata.toml"),
    ),
    (
        "paraseq",
        include_str!("../../../catalogue/presets/paraseq.toml"),
    ),
    ("wal", include_str!("../../../catalogue/presets/wal.toml")),
    (
        "backup",
        include_str!("../../../catalogue/presets/backup.toml"),
    ),
    (
        "bonnie",
        include_str!("../../../catalogue/presets/bonnie.toml"),
    ),
    (
        "iozone",
        include_str!("../../../catalogue/presets/iozone.toml"),
    ),
    (
        "saturate",
        include_str!("../../../catalogue/presets/saturate.toml"),
    ),
];

/// Names of all presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> + Clone {
    PRESETS.iter().map(|(name, _)| *name)
}

/// TOML of a preset; the error names the nearest one.
pub fn preset_text(name: &str) -> Result<&'static str, ConfigError> {
    if let Some((_, text)) = PRESETS.iter().find(|(preset, _)| *preset == name) {
        return Ok(text);
    }
    let problem = Problem::Unknown {
        kind: "preset",
        name: name.to_owned(),
        scope: String::new(),
        nearest: nearest(name, preset_names()).map(str::to_owned),
        allowed: preset_names().map(str::to_owned).collect(),
    };
    Err(ConfigError::new(Place::Argument, problem))
}
