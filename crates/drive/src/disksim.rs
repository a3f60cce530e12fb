//! Reads drives described by DiskSim's parameters, kept as JSON.
//!
//! The file maps a drive's key to an object with `name`, `trace`, `controller_cache`, `geometry`, `layout`, `mech`,
//! `host_bus` and, for measured seek curves, `seek_curve_cyl_ms`. Parameter names are those of DiskSim's manual (CMU-PDL-08-101,
//! appendices A and B); a missing parameter takes the manual's default or, where it has none, the value that switches the
//! feature off. Times are in milliseconds.
//!
//! `Use separate write segment` is not read: DiskSim 4.0 accepts it and stores it nowhere (`modules/disk.modspec`), so the
//! drives described in its format were validated without.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::DriveError;
use crate::geometry::{GeometrySpec, Mapping, Sparing, ZoneSpec};
use crate::params::{
    AccessTime, AfterOp, Buffer, Bus, DriveParams, ExtraDisconnect, Overheads, Queue, ReadAhead,
    Scheduling, WriteBack,
};
use crate::seek::SeekCurve;
use crate::segments::MOST as MOST_SEGMENTS;

/// A drive of a parameter file, and the trace it comes with.
#[derive(Debug, Clone, PartialEq)]
pub struct DriveDescription {
    /// Key in the file.
    pub key: String,
    /// Path of its measured trace, relative to the file.
    pub trace: Option<String>,
    /// Its parameters.
    pub params: DriveParams,
    /// Parameters that the model has another value for, in words.
    pub notes: Vec<String>,
}

/// A drive of a parameter file, or the key of one that cannot be read, and the reason.
pub type Described = Result<DriveDescription, (String, DriveError)>;

/// Times of a block on the bus of the host that a drive was measured on, milliseconds. DiskSim keeps them not with the
/// drive but with the machine.
#[derive(Deserialize, Default)]
struct HostBus {
    #[serde(default)]
    read_ms_per_block: f64,
    #[serde(default)]
    write_ms_per_block: f64,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    trace: Option<String>,
    #[serde(default)]
    controller_cache: Map<String, Value>,
    #[serde(default)]
    geometry: Map<String, Value>,
    #[serde(default)]
    layout: Map<String, Value>,
    #[serde(default)]
    mech: Map<String, Value>,
    #[serde(default)]
    seek_curve_cyl_ms: Vec<(u32, f64)>,
    #[serde(default)]
    host_bus: HostBus,
}

/// Reads the drives of a parameter file, in the order of their keys; one that is wrong does not stop the others. `source`
/// names the file in messages.
pub fn read_drives(text: &str, source: &str) -> Result<Vec<Described>, DriveError> {
    let entries: BTreeMap<String, Value> = serde_json::from_str(text)
        .map_err(|error| DriveError::parameter(source, error.to_string()))?;
    let read = |key: &str, value: Value| -> Result<DriveDescription, String> {
        let entry: Entry = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let mut notes = Vec::new();
        Ok(DriveDescription {
            key: key.to_owned(),
            params: entry.params(key, &mut notes)?,
            trace: entry.trace,
            notes,
        })
    };
    Ok(entries
        .into_iter()
        .map(|(key, value)| {
            read(&key, value).map_err(|problem| {
                let place = format!("{source}: {key}");
                (key, DriveError::parameter(place, problem))
            })
        })
        .collect())
}

/// A block of parameters, with the names as DiskSim has them.
struct Block<'a>(&'a Map<String, Value>);

impl Block<'_> {
    fn number_or(&self, key: &str, default: f64) -> Result<f64, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => value
                .as_f64()
                .or_else(|| value.as_bool().map(|flag| f64::from(u8::from(flag))))
                .filter(|number| number.is_finite())
                .ok_or_else(|| format!("'{key}' must be a number, not {value}")),
        }
    }

    fn number(&self, key: &str) -> Result<f64, String> {
        if self.0.contains_key(key) {
            self.number_or(key, 0.0)
        } else {
            Err(format!("'{key}' is missing"))
        }
    }

    fn count_or(&self, key: &str, default: u32) -> Result<u32, String> {
        let number = self.number_or(key, f64::from(default))?;
        if (0.0..=4e9).contains(&number) && number.fract() == 0.0 {
            Ok(number as u32)
        } else {
            Err(format!(
                "'{key}' must be a whole number of at least 0, not {number}"
            ))
        }
    }

    fn count(&self, key: &str) -> Result<u32, String> {
        if self.0.contains_key(key) {
            self.count_or(key, 0)
        } else {
            Err(format!("'{key}' is missing"))
        }
    }

    fn flag_or(&self, key: &str, default: bool) -> Result<bool, String> {
        Ok(self.number_or(key, f64::from(u8::from(default)))? != 0.0)
    }

    fn ns_or(&self, key: &str, default_ms: f64) -> Result<u64, String> {
        let ms = self.number_or(key, default_ms)?;
        if (0.0..=1e6).contains(&ms) {
            Ok((ms * 1e6).round() as u64)
        } else {
            Err(format!(
                "'{key}' must be between 0 and 1000000 ms, not {ms}"
            ))
        }
    }

    /// A time that may be negative.
    fn signed_ns_or(&self, key: &str, default_ms: f64) -> Result<i64, String> {
        let ms = self.number_or(key, default_ms)?;
        if (-1e6..=1e6).contains(&ms) {
            Ok((ms * 1e6).round() as i64)
        } else {
            Err(format!(
                "'{key}' must be between -1000000 and 1000000 ms, not {ms}"
            ))
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn list(&self, key: &str) -> Result<Vec<f64>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| {
                    item.as_f64()
                        .ok_or_else(|| format!("'{key}' must be a list of numbers, not {item}"))
                })
                .collect(),
            Some(value) => Err(format!("'{key}' must be a list of numbers, not {value}")),
        }
    }

    fn places(&self, key: &str) -> Result<Vec<u64>, String> {
        self.list(key)?
            .into_iter()
            .map(|number| {
                if number >= 0.0 && number.fract() == 0.0 {
                    Ok(number as u64)
                } else {
                    Err(format!(
                        "'{key}' must have whole numbers of at least 0, not {number}"
                    ))
                }
            })
            .collect()
    }
}

impl Entry {
    fn params(&self, key: &str, notes: &mut Vec<String>) -> Result<DriveParams, String> {
        let mech = Block(&self.mech);
        let cache = Block(&self.controller_cache);
        Ok(DriveParams {
            name: self.name.clone().unwrap_or_else(|| key.to_owned()),
            geometry: self.geometry()?,
            rpm: mech.number("Rotation speed (in rpms)")?,
            seek: self.seek()?,
            head_switch_ns: mech.ns_or("Head switch time", 0.0)?,
            head_switch_settles: false,
            write_settle_ns: mech.signed_ns_or("Add. write settling delay", 0.0)?,
            access_time: access_time(&mech)?,
            overheads: overheads(&cache)?,
            bus: bus(&cache, &self.host_bus)?,
            buffer: buffer(&cache)?,
            queue: queue(&cache, notes)?,
        })
    }

    fn geometry(&self) -> Result<GeometrySpec, String> {
        let geometry = Block(&self.geometry);
        let layout = Block(&self.layout);
        let mapping = match layout.count_or("LBN-to-PBN mapping scheme", 0)? {
            0 => Mapping::Conventional,
            1 => Mapping::SerpentineInZone,
            2 => Mapping::SerpentineOverDrive,
            other => {
                return Err(format!(
                    "'LBN-to-PBN mapping scheme' {other}; known are 0, 1 and 2"
                ));
            }
        };
        let scheme = layout.count_or("Sparing scheme used", 0)?;
        let sparing = *Sparing::ALL
            .get(scheme as usize)
            .ok_or_else(|| format!("'Sparing scheme used' {scheme}; known are 0 to 10"))?;
        let zones = match self.layout.get("Zones") {
            Some(Value::Array(zones)) => zones,
            _ => return Err("'Zones' must be a list".to_owned()),
        };
        let unit = layout.text("Skew units").unwrap_or("sectors");
        let zones = zones
            .iter()
            .enumerate()
            .map(|(index, zone)| {
                let fields = zone
                    .as_object()
                    .ok_or_else(|| format!("zone {index} must be an object"))?;
                zone_of(&Block(fields), unit).map_err(|problem| format!("zone {index}: {problem}"))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let cylinders = geometry.count("Number of cylinders")?;
        // DiskSim takes the last zone's last cylinder as it is: some files count cylinders from 1 there.
        let one_more = zones.iter().any(|zone| zone.last_cylinder == cylinders);
        Ok(GeometrySpec {
            surfaces: geometry.count("Number of data surfaces")?,
            cylinders: cylinders.saturating_add(u32::from(one_more)),
            mapping,
            sparing,
            range_cylinders: layout.count_or("Rangesize for sparing", 1)?.max(1),
            zones,
        })
    }

    fn seek(&self) -> Result<SeekCurve, String> {
        let mech = Block(&self.mech);
        let kind = mech
            .text("Seek type")
            .unwrap_or(if self.seek_curve_cyl_ms.is_empty() {
                "curve"
            } else {
                "extracted"
            });
        let three = || -> Result<(f64, f64, f64), String> {
            Ok((
                mech.number("Single cylinder seek time")?,
                mech.number("Average seek time")?,
                mech.number("Full strobe seek time")?,
            ))
        };
        Ok(match kind {
            "extracted" => {
                if self.seek_curve_cyl_ms.is_empty() {
                    return Err(
                        "'Seek type' is 'extracted', but 'seek_curve_cyl_ms' has no points"
                            .to_owned(),
                    );
                }
                SeekCurve::Table(self.seek_curve_cyl_ms.clone())
            }
            "constant" => SeekCurve::Constant(mech.number("Constant seek time")?),
            "curve" => {
                let (single, average, full) = three()?;
                SeekCurve::Lee {
                    single,
                    average,
                    full,
                }
            }
            "linear" => {
                let (single, average, full) = three()?;
                SeekCurve::Linear {
                    single,
                    average,
                    full,
                }
            }
            "hpl" | "hplplus10" => {
                let values = mech.list("HPL seek equation values")?;
                let [bound, a, b, c, e, one] = values[..] else {
                    return Err(format!(
                        "'HPL seek equation values' has {} values; it needs 6",
                        values.len()
                    ));
                };
                let first = if kind == "hplplus10" {
                    mech.list("First ten seek times")?
                } else {
                    Vec::new()
                };
                SeekCurve::TwoRange {
                    bound: bound.max(0.0) as u32,
                    a,
                    b,
                    c,
                    e,
                    one: (one >= 0.0).then_some(one),
                    first,
                }
            }
            other => {
                return Err(format!(
                    "'Seek type' '{other}'; known are extracted, constant, hpl, hplplus10, curve and linear"
                ));
            }
        })
    }
}

fn access_time(mech: &Block<'_>) -> Result<AccessTime, String> {
    match mech
        .text("Access time type")
        .unwrap_or("trackSwitchPlusRotation")
    {
        "trackSwitchPlusRotation" => Ok(AccessTime::TrueRotation),
        "averageRotation" => Ok(AccessTime::MeanRotation),
        "constant" => Ok(AccessTime::Constant(
            mech.ns_or("Constant access time", 0.0)?,
        )),
        other => Err(format!(
            "'Access time type' '{other}'; known are trackSwitchPlusRotation, averageRotation and constant"
        )),
    }
}

fn zone_of(zone: &Block<'_>, drive_unit: &str) -> Result<ZoneSpec, String> {
    let blocks_per_track = zone.count("Blocks per track")?;
    let to_turns = match zone.text("Skew units").unwrap_or(drive_unit) {
        "revolutions" => 1.0,
        "sectors" => 1.0 / f64::from(blocks_per_track.max(1)),
        other => {
            return Err(format!(
                "'Skew units' '{other}'; known are sectors and revolutions"
            ));
        }
    };
    let defects = zone.places("defects")?;
    if defects.len() % 2 != 0 {
        return Err("'defects' must be pairs: a defect and its replacement".to_owned());
    }
    let mut slips = zone.places("slips")?;
    slips.sort_unstable();
    slips.dedup();
    Ok(ZoneSpec {
        first_cylinder: zone.count("First cylinder number")?,
        last_cylinder: zone.count("Last cylinder number")?,
        blocks_per_track,
        first_block_turns: zone.number_or("Offset of first block", 0.0)? * to_turns,
        track_skew_turns: zone.number_or("Skew for track switch", 0.0)? * to_turns,
        cylinder_skew_turns: zone.number_or("Skew for cylinder switch", 0.0)? * to_turns,
        dead_blocks: u64::from(zone.count_or("Empty space at zone front", 0)?),
        spares: u64::from(zone.count_or("Number of spares", 0)?),
        slips,
        defects: defects
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
            .collect(),
    })
}

fn overheads(cache: &Block<'_>) -> Result<Overheads, String> {
    let scale = cache.number_or("Time scale for overheads", 1.0)?;
    if !(0.0..=1e3).contains(&scale) {
        return Err(format!(
            "'Time scale for overheads' must be between 0 and 1000, not {scale}"
        ));
    }
    let time = |key: &str| -> Result<u64, String> {
        Ok((cache.ns_or(key, 0.0)? as f64 * scale).round() as u64)
    };
    let after = |read: &str, write: &str| -> Result<AfterOp, String> {
        Ok(AfterOp {
            read_ns: time(read)?,
            write_ns: time(write)?,
        })
    };
    let extra_disconnect = if cache.flag_or("Extra write disconnect", false)? {
        Some(ExtraDisconnect {
            command_ns: time("Extradisc command overhead")?,
            disconnect_ns: time("Extradisc disconnect overhead")?,
            between_ns: cache.ns_or("Extradisc inter-disconnect delay", 0.0)?,
            second_disconnect_ns: time("Extradisc 2nd disconnect overhead")?,
            seek_delta_ns: time("Extradisc seek delta")?,
        })
    } else {
        None
    };
    Ok(Overheads {
        command_ns: time("Per-request overhead time")?,
        dispatch_ns: 0,
        read_hit: after("Read hit over. after read", "Read hit over. after write")?,
        read_miss: after("Read miss over. after read", "Read miss over. after write")?,
        write_hit: after("Write hit over. after read", "Write hit over. after write")?,
        write_miss: after(
            "Write miss over. after read",
            "Write miss over. after write",
        )?,
        read_complete_ns: time("Read completion overhead")?,
        write_complete_ns: time("Write completion overhead")?,
        data_preparation_ns: time("Data preparation overhead")?,
        reselect_ns: time("First reselect overhead")?,
        reselect_again_ns: time("Other reselect overhead")?,
        read_disconnect: after("Read disconnect afterread", "Read disconnect afterwrite")?,
        write_disconnect_ns: time("Write disconnect overhead")?,
        extra_disconnect,
        minimum_write_seek_ns: cache.ns_or("Minimum seek delay", 0.0)?,
    })
}

fn bus(cache: &Block<'_>, host: &HostBus) -> Result<Bus, String> {
    let own = cache.number_or("Bulk sector transfer time", 0.0)?;
    let q16 = |name: &str, ms: f64| {
        if (0.0..=1e3).contains(&ms) {
            Ok((ms * 1e6 * 65536.0).round() as u64)
        } else {
            Err(format!("{name} must be between 0 and 1000 ms, not {ms}"))
        }
    };
    let own = q16("'Bulk sector transfer time'", own)?;
    // A block takes as long as the slower of the drive's interface and the host's bus.
    Ok(Bus {
        read_block_q16: own.max(q16(
            "'host_bus': 'read_ms_per_block'",
            host.read_ms_per_block,
        )?),
        write_block_q16: own.max(q16(
            "'host_bus': 'write_ms_per_block'",
            host.write_ms_per_block,
        )?),
        hold_for_read: cache.flag_or("Hold bus entire read xfer", false)?,
    })
}

fn buffer(cache: &Block<'_>) -> Result<Buffer, String> {
    let write_back = match cache.count_or("Fast write level", 0)? {
        0 => WriteBack::Through,
        1 => WriteBack::Single { interleaved: false },
        2 => WriteBack::Single { interleaved: true },
        other => return Err(format!("'Fast write level' {other}; known are 0, 1 and 2")),
    };
    let read_ahead = match cache.count_or("Buffer continuous read", 0)? {
        0 => ReadAhead::None,
        1 => ReadAhead::TrackEnd,
        2 => ReadAhead::CylinderEnd,
        3 => ReadAhead::SegmentFull,
        4 => ReadAhead::TrackAhead,
        other => {
            return Err(format!(
                "'Buffer continuous read' {other}; known are 0 to 4"
            ));
        }
    };
    let read_watermark = cache.number_or("High (read) water mark", 0.0)?;
    if !(0.0..=1.0).contains(&read_watermark) {
        return Err(format!(
            "'High (read) water mark' must be between 0 and 1, not {read_watermark}"
        ));
    }
    let over = cache.number_or("Read-ahead over requested", 1.0)?;
    let segments = cache.count_or("Number of buffer segments", 1)?;
    if !(1..=MOST_SEGMENTS).contains(&segments) {
        return Err(format!(
            "'Number of buffer segments' {segments}; allowed are 1 to {}",
            MOST_SEGMENTS
        ));
    }
    Ok(Buffer {
        segments,
        segment_blocks: cache.count_or("Segment size (in blks)", 64)?.max(1),
        caching: cache.count_or("Enable caching in buffer", 1)? != 0,
        read_ahead,
        least_read_ahead: cache.count_or("Minimum read-ahead (blks)", 0)?,
        most_read_ahead: cache.count_or("Maximum read-ahead (blks)", 0)?,
        // DiskSim 4.0 computes it so (`disk_buffer_get_max_readahead`), although its manual describes the name differently.
        keep_requested: over > 0.0,
        drop_requested: over < 0.0,
        hits_within: u64::MAX,
        read_ahead_on_hit: cache.flag_or("Read-ahead on idle hit", false)?,
        keep_passing: cache.flag_or("Read any free blocks", false)?,
        read_on_arrival: cache.count_or("Immediate buffer read", 0)? != 0,
        write_on_arrival: cache.count_or("Immediate buffer write", 0)? != 0,
        write_back,
        combine_writes: cache.flag_or("Combine seq writes", false)?,
        hits_on_written: cache.flag_or("Allow read hits on write data", false)?,
        almost_hits: cache.flag_or("Allow almost read hits", false)?,
        forward_gap: 0,
        hits_beside: cache.flag_or("Allow sneaky full read hits", false)?,
        send_partial_at_once: cache.flag_or("Immed transfer partial hit", true)?,
        stop_in_block: cache.flag_or("Stop prefetch in sector", false)?,
        write_stops_read_ahead: cache.flag_or("Write hit stop prefetch", true)?,
        read_watermark,
        watermark_of_request: cache.flag_or("Set watermark by reqsize", true)?,
        leave_early: cache.count_or("Preseeking level", 0)? == 2,
    })
}

/// DiskSim's scheduling policies by number (`disksim_ioqueue.h`), each with the nearest of the model's, and whether that is
/// the same.
const POLICIES: [(&str, Scheduling, bool); 28] = [
    ("first come first served", Scheduling::Fifo, true),
    ("elevator by block", Scheduling::ShortestSeek, false),
    ("cyclic scan by block", Scheduling::ShortestSeek, false),
    ("shortest seek by block", Scheduling::ShortestSeek, false),
    ("elevator by cylinder", Scheduling::ShortestSeek, false),
    ("cyclic scan by cylinder", Scheduling::ShortestSeek, false),
    ("shortest seek by cylinder", Scheduling::ShortestSeek, true),
    (
        "shortest positioning time (SPTF)",
        Scheduling::ShortestPositioning,
        true,
    ),
    ("SPCTF", Scheduling::ShortestPositioning, false),
    ("SATF", Scheduling::ShortestPositioning, false),
    ("weighted SPTF", Scheduling::ShortestPositioning, false),
    ("weighted SPCTF", Scheduling::ShortestPositioning, false),
    ("weighted SATF", Scheduling::ShortestPositioning, false),
    ("aged SPTF", Scheduling::ShortestPositioning, false),
    ("aged SPCTF", Scheduling::ShortestPositioning, false),
    ("aged SATF", Scheduling::ShortestPositioning, false),
    ("VSCAN by block", Scheduling::ShortestSeek, false),
    ("VSCAN by cylinder", Scheduling::ShortestSeek, false),
    ("VSCAN with priorities", Scheduling::ShortestSeek, false),
    (
        "aged SPTF with priorities",
        Scheduling::ShortestPositioning,
        false,
    ),
    (
        "aged SPCTF with priorities",
        Scheduling::ShortestPositioning,
        false,
    ),
    (
        "shortest distance, approximate",
        Scheduling::ShortestSeek,
        false,
    ),
    ("shortest distance", Scheduling::ShortestSeek, false),
    ("SPTF by rotation", Scheduling::ShortestPositioning, false),
    (
        "SPTF with a weight for rotation",
        Scheduling::ShortestPositioning,
        false,
    ),
    (
        "SPTF with a weight for seeks",
        Scheduling::ShortestPositioning,
        false,
    ),
    ("TSPS", Scheduling::ShortestPositioning, false),
    ("batches in order", Scheduling::Fifo, false),
];

fn queue(cache: &Block<'_>, notes: &mut Vec<String>) -> Result<Queue, String> {
    let scheduler = cache.0.get("Scheduler").and_then(Value::as_object);
    let policy = scheduler.map_or(Ok(1), |scheduler| {
        Block(scheduler).count_or("Scheduling policy", 1)
    })?;
    let index = policy.checked_sub(1).map(|index| index as usize);
    let Some((name, scheduling, same)) = index.and_then(|index| POLICIES.get(index)) else {
        return Err(format!(
            "'Scheduling policy' {policy}; known are 1 to {}",
            POLICIES.len()
        ));
    };
    if !same {
        let by = match scheduling {
            Scheduling::Fifo => "first come first served",
            Scheduling::ShortestSeek => "shortest seek first",
            Scheduling::ShortestPositioning => "shortest positioning time first",
        };
        notes.push(format!(
            "scheduling policy {policy} ({name}) is modelled as {by}; a trace, with one command at a time, does not \
             depend on it"
        ));
    }
    Ok(Queue {
        depth: cache.count_or("Max queue length", 1)?.clamp(1, 4096),
        scheduling: *scheduling,
        ..Queue::default()
    })
}
