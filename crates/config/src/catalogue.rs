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
    "postgres",
    "mysql",
    "vm-host",
    "mail",
    "backup-server",
    "video",
    "bonnie",
    "iozone",
    "saturate",
];

/// Data sheets of drives by model number, in alphabetical order.
pub const DRIVES: &[(&str, &str)] = texts![
    "drives":
    "5300-PRO-1920GB",
    "5400-PRO-3840GB",
    "7450-PRO-1920GB",
    "7450-PRO-3840GB",
    "7B300S0",
    "860-EVO-1TB",
    "870-EVO-1TB",
    "870-EVO-4TB",
    "970-PRO-1TB",
    "980-PRO-1TB",
    "980-PRO-2TB",
    "990-PRO-2TB",
    "CD6-R-3840GB",
    "CD8-R-3840GB",
    "HD160JJ",
    "HD321KJ",
    "HDS725050KLA360",
    "HDT725032VLA360",
    "HTS725050A9A364",
    "HUC156060CSS200",
    "HUS726T6TALE6L4",
    "MG08ACA16TE",
    "MG09ACA18TE",
    "MG10ACA20TE",
    "MG11ACA24TE",
    "MX500-1TB",
    "P5520-3840GB",
    "P5800X-800GB",
    "PM893-3840GB",
    "PM893-960GB",
    "PM9A3-1920GB",
    "PM9A3-3840GB",
    "S4510-960GB",
    "S4520-1920GB",
    "ST16000NE000",
    "ST16000NM001G",
    "ST18000NM000J",
    "ST1800MM0129",
    "ST20000NE000",
    "ST20000NM007D",
    "ST22000NM001E",
    "ST22000NT001",
    "ST24000NM002H",
    "ST2400MM0129",
    "ST30000NM004K",
    "ST3320620AS",
    "ST3600057SS",
    "ST600MP0136",
    "ST900MP0146",
    "WD10EACS",
    "WD3000GLFS",
    "WD3200AAKS",
    "WD740GD-00FLA0",
    "WUH721818ALE6L4",
    "WUH722020BLE6L4",
    "WUH722222ALE6L4",
    "WUH722424ALE6L4",
    "WUH722626ALE6L4",
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

/// An example of a file of prices.
pub const PRICES: &str = include_str!("../../../catalogue/prices-example.csv");
