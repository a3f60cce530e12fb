//! Patterns as people write them: `pattern` and the keys of its parameters.

use spindle_config::units::{self, parse_place};
use spindle_config::{ConfigError, Value, clean};

use crate::keys::{self, Key, PatternKind};
use crate::settings::Settings;
use crate::spec::{Pattern, Peak, Place, Size, Zone};

/// Most zones of a pattern.
const MAX_ZONES: usize = 256;

/// Parameters and the patterns they belong to.
const OWNERS: &[(&Key, &[PatternKind])] = &[
    (&keys::ZIPF_THETA, &[PatternKind::Zipf]),
    (&keys::PARETO_SHARE, &[PatternKind::Pareto]),
    (&keys::DEVIATION, &[PatternKind::Normal]),
    (
        &keys::CENTER,
        &[PatternKind::Zipf, PatternKind::Pareto, PatternKind::Normal],
    ),
    (
        &keys::SCATTERED,
        &[PatternKind::Zipf, PatternKind::Pareto, PatternKind::Normal],
    ),
    (&keys::HOT_SPACE, &[PatternKind::HotSet]),
    (&keys::HOT_ACCESS, &[PatternKind::HotSet]),
    (&keys::ZONES, &[PatternKind::Zoned]),
    (&keys::WRITE_ZONES, &[PatternKind::Zoned]),
    (&keys::STRIDE, &[PatternKind::Strided]),
    (&keys::RUN_LENGTH, &[PatternKind::Runs]),
    (&keys::RUN_FIXED, &[PatternKind::Runs]),
    (&keys::RUN_REPEAT, &[PatternKind::Runs]),
];

/// The pattern of requests of this size and alignment; its zones are those of the key `zones`.
pub(crate) fn pattern(
    settings: &Settings,
    size: &Size,
    align: u64,
    zones: &Key,
) -> Result<Pattern, ConfigError> {
    let kind = settings.value(&keys::PATTERN).choice(keys::PATTERNS)?;
    for (key, owners) in OWNERS {
        let names: Vec<String> = keys::PATTERNS
            .iter()
            .filter(|(_, kind)| owners.contains(kind))
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        settings.only_with(
            key,
            &keys::PATTERN,
            owners.contains(&kind),
            &format!("pattern = {}", names.join(" or ")),
        )?;
    }
    Ok(match kind {
        PatternKind::Sequential => Pattern::Sequential,
        PatternKind::Backward => Pattern::Backward,
        PatternKind::Uniform => Pattern::Uniform,
        PatternKind::Shuffled => Pattern::Shuffled,
        PatternKind::Zipf => Pattern::Zipf {
            theta: settings.value(&keys::ZIPF_THETA).number(0.01..=10.0)?,
            peak: peak(settings)?,
        },
        PatternKind::Pareto => Pattern::Pareto {
            share: share(settings, &keys::PARETO_SHARE)?,
            peak: peak(settings)?,
        },
        PatternKind::Normal => {
            let value = settings.value(&keys::DEVIATION);
            let deviation = value.fraction()?;
            if deviation <= 0.0 {
                return Err(value.error("must be above 0%"));
            }
            Pattern::Normal {
                deviation,
                peak: peak(settings)?,
            }
        }
        PatternKind::HotSet => Pattern::HotSet {
            space: share(settings, &keys::HOT_SPACE)?,
            access: share(settings, &keys::HOT_ACCESS)?,
        },
        PatternKind::Zoned => Pattern::Zoned {
            zones: zones_of(&settings.value(zones))?,
        },
        PatternKind::Strided => strided(settings, size, align)?,
        PatternKind::Runs => runs(settings)?,
    })
}

/// A share that leaves something on both sides.
fn share(settings: &Settings, key: &Key) -> Result<f64, ConfigError> {
    let value = settings.value(key);
    match value.fraction()? {
        fraction if fraction > 0.0 && fraction < 1.0 => Ok(fraction),
        _ => Err(value.error("must be above 0% and below 100%")),
    }
}

fn peak(settings: &Settings) -> Result<Peak, ConfigError> {
    let center = settings.optional(&keys::CENTER);
    Ok(Peak {
        center: center.map(|value| value.fraction()).transpose()?,
        scattered: settings.value(&keys::SCATTERED).flag()?,
    })
}

fn strided(settings: &Settings, size: &Size, align: u64) -> Result<Pattern, ConfigError> {
    let value = settings.value(&keys::STRIDE);
    let stride_bytes = stride_bytes(&value, size)?;
    let align = match *size {
        Size::Fixed { bytes } if align == 0 => u64::from(bytes),
        _ => align.max(1),
    };
    if stride_bytes == 0 || !stride_bytes.is_multiple_of(align) {
        let align = units::format_size(align);
        return Err(value.error(format!(
            "must be a positive multiple of the alignment, {align}"
        )));
    }
    Ok(Pattern::Strided { stride_bytes })
}

/// `1MiB`, or `17x` for 17 requests.
fn stride_bytes(value: &Value, size: &Size) -> Result<u64, ConfigError> {
    let times = value.text().ok().and_then(|text| text.strip_suffix('x'));
    let Some(times) = times.and_then(|times| times.parse::<u32>().ok()) else {
        return value.size();
    };
    match *size {
        Size::Fixed { bytes } => Ok(u64::from(times) * u64::from(bytes)),
        _ => Err(value.error("counts requests, whose sizes vary; give it in bytes")),
    }
}

fn runs(settings: &Settings) -> Result<Pattern, ConfigError> {
    let value = settings.value(&keys::RUN_LENGTH);
    let mean_requests = value.number(1.0..=1e9)?;
    let fixed = settings.value(&keys::RUN_FIXED).flag()?;
    if fixed && mean_requests.fract() != 0.0 {
        return Err(value.error("must be a whole number with run_fixed"));
    }
    Ok(Pattern::Runs {
        mean_requests,
        fixed,
        repeat: settings.value(&keys::RUN_REPEAT).flag()?,
    })
}

/// Reads `10%:60,20%:30` or `1GiB:60,4GiB:40`.
fn zones_of(value: &Value) -> Result<Vec<Zone>, ConfigError> {
    let text = value.text()?;
    let mut zones = Vec::new();
    for part in text.split(',') {
        let form = || {
            let part = clean(part);
            value.error(format!(
                "`{part}` is not a length and a weight such as 10%:60"
            ))
        };
        let (length, weight) = part.split_once(':').ok_or_else(form)?;
        let length = match parse_place(length.trim()) {
            Ok(units::Place::Bytes(bytes)) => Place::Bytes { bytes },
            Ok(units::Place::Fraction(fraction)) => Place::Fraction { fraction },
            Err(error) => return Err(value.error(error.to_string())),
        };
        let weight = weight.trim();
        let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        let weight = Some(weight)
            .filter(|text| text.len() <= 20 && text.bytes().all(plain))
            .and_then(|text| text.parse::<f64>().ok())
            .ok_or_else(form)?;
        zones.push(Zone { length, weight });
    }
    if zones.len() > MAX_ZONES {
        return Err(value.error(format!("has more than {MAX_ZONES} zones")));
    }
    if zones.iter().all(|zone| zone.weight == 0.0) {
        return Err(value.error("gives no zone a request; one weight must be above 0"));
    }
    let whole: f64 = zones
        .iter()
        .map(|zone| match zone.length {
            Place::Fraction { fraction } => fraction,
            Place::Bytes { .. } => 0.0,
        })
        .sum();
    if whole > 1.0 + 1e-9 {
        let whole = units::format_fraction(whole);
        return Err(value.error(format!("its zones come to {whole}, above 100%")));
    }
    Ok(zones)
}
