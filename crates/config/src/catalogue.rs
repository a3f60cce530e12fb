//! The files of `catalogue/`, compiled into the program, by name.

macro_rules! texts {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../catalogue/", $folder, "/", $name, ".toml")))),+]
    };
}

/// Workloads, in the order in which they are listed.
pub const PRESETS: &[(&str, &str)] = texts![
    "presets":
    "randomio",
    "seeker",
    "sdd-read",
    "sdd-write",
    "trim",
    "hdparm",
    "hddtest",
    "oltp",
    "mixed",
    "metadata",
    "paraseq",
    "wal",
    "backup",
    "bonnie",
    "iozone",
    "saturate",
];

/// Data sheets of drives by model number, in alphabetical order.
pub const DRIVES: &[(&str, &str)] = texts![
    "drives":
    "7B300S0",
    "860-EVO-1TB",
    "970-PRO-1TB",
    "HD160JJ",
    "HD321KJ",
    "HDS725050KLA360",
    "HDT725032VLA360",
    "HTS725050A9A364",
    "ST18000NM000J",
    "ST3320620AS",
    "ST3600057SS",
    "WD10EACS",
    "WD3000GLFS",
    "WD3200AAKS",
    "WD740GD-00FLA0",
    "WUH721818ALE6L4",
];

/// Data sheets of controllers by model number, in alphabetical order.
pub const CONTROLLERS: &[(&str, &str)] = texts![
    "controllers":
    "9211-8i",
    "9500S-12",
    "9550SX",
    "9650SE-16ML",
];

/// Modelled machines, in alphabetical order.
pub const MACHINES: &[(&str, &str)] = texts![
    "machines":
    "four-sata-md",
    "one-nvme",
    "one-of-four-sata",
    "one-sata",
    "one-sata-ssd",
    "six-large-raid6-rebuilding",
    "six-sata-f2",
    "six-sata-raid10",
    "six-sata-raid5",
    "ten-sata-raid10",
];

/// Plans of campaigns, in alphabetical order.
pub const CAMPAIGNS: &[(&str, &str)] = texts![
    "campaigns":
    "ioprio-mix",
    "md-matrix",
    "outer-vs-inner",
    "readahead-sweep",
    "sched-shootout",
    "threads-by-size",
    "untuned-vs-tuned",
];

/// Classes of devices.
pub const CLASSES: &str = include_str!("../../../catalogue/classes.toml");
