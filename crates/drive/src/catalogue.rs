//! The data sheets of `catalogue/drives`, built in.

macro_rules! sheets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../catalogue/drives/", $name, ".toml")))),*]
    };
}

/// Every sheet: its model number and its text, in alphabetical order.
pub(crate) const SHEETS: &[(&str, &str)] = sheets![
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
