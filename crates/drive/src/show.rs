//! The own performance of a drive of the catalogue: its seek curve, its rate over the address space, and the figures of
//! a closed loop of random reads.

use serde::Serialize;

use crate::closed_loop::{Load, run};
use crate::command::Command;
use crate::datasheet::{DataSheet, DiskSheet, Kind, Settings};
use crate::device::Device;
use crate::drive::Drive;
use crate::error::DriveError;
use crate::mechanical::Mechanical;
use crate::offer::Offer;
use crate::params::Scheduling;

/// Requests of a closed loop behind each figure.
const REQUESTS: u64 = 5_000;

/// The performance of a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveProfile {
    /// Model number.
    pub name: String,
    /// Maker and family.
    pub title: String,
    /// `disk` or `flash`.
    pub kind: &'static str,
    /// Bytes.
    pub capacity: u64,
    /// Commands that may be outstanding.
    pub queue_depth: u32,
    /// Revolutions per minute; `None` for flash.
    pub rpm: Option<f64>,
    /// Cylinders; `None` for flash.
    pub cylinders: Option<u32>,
    /// Failure rates, power and place.
    pub offer: Offer,
    /// Source of each number of the data sheet.
    pub sources: Vec<Source>,
    /// Read seek by distance; empty for flash.
    pub seek_curve: Vec<SeekPoint>,
    /// Sequential reads over the address space.
    pub transfer_rate: Vec<RatePoint>,
    /// Random reads of one size after the other, one outstanding.
    pub iops_by_size: Vec<SizePoint>,
    /// Random 4 KiB reads, more and more outstanding.
    pub iops_by_depth: Vec<DepthPoint>,
    /// How far the deepest queue's figure is uncertain; `None` where the sheet gives all that it depends on.
    pub band: Option<Band>,
}

/// A drive in a line of the catalogue: the few figures of [`DriveProfile`] by which drives differ, at a tenth of the cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Model number.
    pub name: String,
    /// Maker and family.
    pub title: String,
    /// Bytes.
    pub capacity: u64,
    /// Revolutions per minute; `None` for flash.
    pub rpm: Option<f64>,
    /// Sequential reads at its start, bytes per second.
    pub bytes_per_second: f64,
    /// Random 4 KiB reads, one outstanding.
    pub alone: DepthPoint,
    /// The same at the deepest queue of [`DriveProfile::iops_by_depth`].
    pub deepest: DepthPoint,
}

/// A drive as a buyer compares it, without a simulation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// Model number.
    pub name: String,
    /// Maker and family.
    pub title: String,
    /// `disk` or `flash`.
    pub kind: &'static str,
    /// Bytes.
    pub capacity: u64,
    /// Revolutions per minute; `None` for flash.
    pub rpm: Option<f64>,
    /// Sequential reads at its start, bytes per second.
    pub bytes_per_second: f64,
    /// Sequential reads at its end, bytes per second; for flash the same.
    pub inner_bytes_per_second: f64,
    /// Failure rates, power and place.
    pub offer: Offer,
}

/// A number's source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Key in the sheet.
    pub key: String,
    /// Source of the number.
    pub source: String,
}

/// A point of the seek curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SeekPoint {
    /// Distance, cylinders.
    pub cylinders: u32,
    /// Milliseconds.
    pub ms: f64,
}

/// A point of the rate over the address space.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatePoint {
    /// Bytes from the start of the drive.
    pub offset: u64,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// A point of IOPS against size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizePoint {
    /// Bytes of a request.
    pub size: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// A point of IOPS against queue depth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DepthPoint {
    /// Requests outstanding.
    pub depth: u32,
    /// Requests per second.
    pub iops: f64,
    /// Mean response time, milliseconds.
    pub mean_ms: f64,
}

/// Random 4 KiB reads at the deepest queue of [`DriveProfile::iops_by_depth`], by the firmware's settling margin, which data sheets do not give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Band {
    /// Requests outstanding.
    pub depth: u32,
    /// The model's margin, milliseconds.
    pub margin_ms: f64,
    /// The least that is plausible, milliseconds.
    pub least_margin_ms: f64,
    /// The most that is plausible, milliseconds.
    pub most_margin_ms: f64,
    /// Requests per second with the most.
    pub least_iops: f64,
    /// Requests per second with the least.
    pub most_iops: f64,
}

/// Measures the model of a drive.
pub fn show(sheet: &DataSheet) -> Result<DriveProfile, DriveError> {
    let drive = sheet.build(Settings::default())?;
    let (rpm, cylinders, seek_curve) = match (&sheet.kind, &drive) {
        (Kind::Disk(disk), Drive::Mechanical(mechanical)) => {
            let cylinders = mechanical.geometry().cylinders();
            (
                Some(disk.rpm),
                Some(cylinders),
                seek_curve(mechanical, cylinders),
            )
        }
        _ => (None, None, Vec::new()),
    };
    let fresh = || drive.clone();
    Ok(DriveProfile {
        name: sheet.name.clone(),
        title: sheet.title.clone(),
        kind: if rpm.is_some() { "disk" } else { "flash" },
        capacity: drive.capacity_blocks() * 512,
        queue_depth: drive.queue_depth(),
        rpm,
        cylinders,
        offer: sheet.offer.clone(),
        sources: sheet
            .sources
            .iter()
            .map(|fact| Source {
                key: fact.key.clone(),
                source: fact.source.clone(),
            })
            .collect(),
        seek_curve,
        transfer_rate: transfer_rate(fresh),
        iops_by_size: (9..=24)
            .map(|power| by_size(&mut fresh(), 1 << power))
            .collect(),
        iops_by_depth: depths(drive.queue_depth())
            .map(|depth| by_depth(&mut fresh(), depth))
            .collect(),
        band: match &sheet.kind {
            Kind::Disk(disk) => band(disk, &sheet.name)?,
            Kind::Flash(_) => None,
        },
    })
}

/// The facts of a drive.
#[must_use]
pub fn facts(sheet: &DataSheet) -> Facts {
    let (kind, capacity, rpm, outer, inner) = match &sheet.kind {
        Kind::Disk(disk) => (
            "disk",
            disk.capacity,
            Some(disk.rpm),
            disk.outer_rate,
            disk.inner_rate,
        ),
        Kind::Flash(flash) => {
            let rate = 512e9 * 65_536.0 / flash.bus_block_q16.max(1) as f64;
            ("flash", flash.capacity_blocks * 512, None, rate, rate)
        }
    };
    Facts {
        name: sheet.name.clone(),
        title: sheet.title.clone(),
        kind,
        capacity,
        rpm,
        bytes_per_second: outer,
        inner_bytes_per_second: inner,
        offer: sheet.offer.clone(),
    }
}

fn band(disk: &DiskSheet, name: &str) -> Result<Option<Band>, DriveError> {
    let margin = disk.settle_margin();
    let depth = depths(disk.queue_depth).last().unwrap_or(1);
    if margin.least_ns == margin.most_ns
        || depth < 2
        || disk.scheduling != Scheduling::ShortestPositioning
    {
        return Ok(None);
    }
    let iops = |margin_ns: u64| -> Result<f64, DriveError> {
        let mut params = disk.params(name, Settings::default());
        params.queue.settle_margin_ns = margin_ns;
        let mut drive = Drive::Mechanical(Box::new(Mechanical::new(&params)?));
        Ok(by_depth(&mut drive, depth).iops)
    };
    let ms = |ns: u64| ns as f64 / 1e6;
    Ok(Some(Band {
        depth,
        margin_ms: ms(margin.ns),
        least_margin_ms: ms(margin.least_ns),
        most_margin_ms: ms(margin.most_ns),
        least_iops: iops(margin.most_ns)?,
        most_iops: iops(margin.least_ns)?,
    }))
}

/// Measures the few figures of a line.
pub fn line(sheet: &DataSheet) -> Result<Line, DriveError> {
    let drive = sheet.build(Settings::default())?;
    let alone = by_depth(&mut drive.clone(), 1);
    let deepest = match depths(drive.queue_depth()).last() {
        Some(depth) if depth > 1 => by_depth(&mut drive.clone(), depth),
        _ => alone,
    };
    Ok(Line {
        name: sheet.name.clone(),
        title: sheet.title.clone(),
        capacity: drive.capacity_blocks() * 512,
        rpm: match &sheet.kind {
            Kind::Disk(disk) => Some(disk.rpm),
            _ => None,
        },
        bytes_per_second: rate_at(drive, 0).bytes_per_second,
        alone,
        deepest,
    })
}

fn seek_curve(mechanical: &crate::mechanical::Mechanical, cylinders: u32) -> Vec<SeekPoint> {
    let last = cylinders.saturating_sub(1).max(1);
    let mut distances: Vec<u32> = (0..=48)
        .map(|step| f64::from(last).powf(f64::from(step) / 48.0).round() as u32)
        .chain((1..=32).map(|step| (u64::from(last) * step / 32) as u32))
        .collect();
    distances.sort_unstable();
    distances.dedup();
    distances.retain(|distance| *distance > 0);
    distances
        .into_iter()
        .map(|distance| SeekPoint {
            cylinders: distance,
            ms: mechanical.seek_ns(distance) as f64 / 1e6,
        })
        .collect()
}

const RATE_REQUEST: u64 = 512;
const RATE_REQUESTS: u64 = 128;

/// The rate at 33 places.
fn transfer_rate(fresh: impl Fn() -> Drive) -> Vec<RatePoint> {
    let reach = fresh()
        .capacity_blocks()
        .saturating_sub(RATE_REQUEST * RATE_REQUESTS);
    (0..=32)
        .map(|step| rate_at(fresh(), reach / 32 * step))
        .collect()
}

/// Reads 32 MiB from block `start` in requests of 256 KiB, and counts the last three quarters: two outstanding, which a
/// disk needs for its rate; 32 at flash, as its makers measure.
fn rate_at(mut drive: Drive, start: u64) -> RatePoint {
    let outstanding = match drive {
        Drive::Flash(_) => 32,
        Drive::Mechanical(_) | Drive::Server(_) => 2,
    };
    let total = RATE_REQUESTS.min(drive.capacity_blocks() / RATE_REQUEST);
    let (mut submitted, mut done, mut from_ns, mut now_ns) = (0, 0, 0, 0);
    while done < total {
        while submitted < RATE_REQUESTS
            && drive.outstanding() < outstanding.min(drive.queue_depth())
        {
            let at = start + submitted * RATE_REQUEST;
            let command = Command::read(submitted, at, RATE_REQUEST as u32);
            if drive.submit(now_ns, command).is_err() {
                break;
            }
            submitted += 1;
        }
        let Some(event_ns) = drive.next_event_ns() else {
            break;
        };
        now_ns = event_ns;
        drive.advance(now_ns, &mut |_| {
            done += 1;
            if done == RATE_REQUESTS / 4 {
                from_ns = now_ns;
            }
        });
    }
    let bytes = (RATE_REQUESTS - RATE_REQUESTS / 4) * RATE_REQUEST * 512;
    RatePoint {
        offset: start * 512,
        bytes_per_second: bytes as f64 * 1e9 / (now_ns - from_ns).max(1) as f64,
    }
}

fn load(depth: u32, blocks: u32) -> Load {
    Load {
        depth,
        blocks,
        span_blocks: u64::MAX,
        writes: 0.0,
        requests: REQUESTS,
        seed: 1,
    }
}

fn by_size(drive: &mut Drive, size: u64) -> SizePoint {
    let outcome = run(drive, &load(1, (size / 512) as u32));
    SizePoint {
        size,
        iops: outcome.iops,
        bytes_per_second: outcome.iops * size as f64,
    }
}

fn depths(most: u32) -> impl Iterator<Item = u32> {
    (0..=16)
        .map(|power| 1_u32 << power)
        .take_while(move |depth| *depth <= most)
}

fn by_depth(drive: &mut Drive, depth: u32) -> DepthPoint {
    let outcome = run(drive, &load(depth, 8));
    DepthPoint {
        depth,
        iops: outcome.iops,
        mean_ms: outcome.mean_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasheet::sheet;

    #[test]
    fn every_disk_streams_at_about_the_rate_of_its_sheet_however_small_its_segments() {
        for name in crate::datasheet::drive_names() {
            let sheet = sheet(name).unwrap();
            let crate::datasheet::Kind::Disk(disk) = &sheet.kind else {
                continue;
            };
            let rate = line(&sheet).unwrap().bytes_per_second;
            let share = rate / disk.outer_rate;
            assert!(
                (0.93..1.03).contains(&share),
                "{name}: {share:.3} of its sheet's rate"
            );
        }
    }

    #[test]
    fn the_rate_falls_from_the_sheets_outer_to_its_inner_figure() {
        let shown = show(&sheet("HDS725050KLA360").unwrap()).unwrap();
        let first = shown.transfer_rate.first().unwrap().bytes_per_second / 1e6;
        let last = shown.transfer_rate.last().unwrap().bytes_per_second / 1e6;
        assert!((first / 64.8 - 1.0).abs() < 0.03, "{first} MB/s outside");
        assert!((last / 31.0 - 1.0).abs() < 0.03, "{last} MB/s inside");
    }

    #[test]
    fn small_requests_cost_the_same_and_large_ones_reach_the_sequential_rate() {
        let shown = show(&sheet("HDS725050KLA360").unwrap()).unwrap();
        let at = |size: u64| {
            shown
                .iops_by_size
                .iter()
                .find(|point| point.size == size)
                .unwrap()
        };
        assert!((at(512).iops / at(4096).iops - 1.0).abs() < 0.03);
        assert!(at(1 << 24).bytes_per_second > 40e6);
    }

    #[test]
    fn a_line_says_the_same_as_the_whole() {
        for name in ["HDS725050KLA360", "970-PRO-1TB"] {
            let sheet = sheet(name).unwrap();
            let (line, shown) = (line(&sheet).unwrap(), show(&sheet).unwrap());
            assert_eq!((line.capacity, line.rpm), (shown.capacity, shown.rpm));
            assert_eq!(
                line.bytes_per_second,
                shown.transfer_rate[0].bytes_per_second
            );
            assert_eq!(line.alone, shown.iops_by_depth[0]);
            assert_eq!(Some(&line.deepest), shown.iops_by_depth.last());
        }
    }

    #[test]
    fn the_band_of_the_deepest_queue_has_its_figure_within() {
        for name in [
            "HDS725050KLA360",
            "ST3600057SS",
            "WD10EACS",
            "ST24000NM002H",
            "860-EVO-1TB",
        ] {
            let shown = show(&sheet(name).unwrap()).unwrap();
            let Some(band) = shown.band else { continue };
            let deepest = shown.iops_by_depth.last().unwrap();
            assert_eq!(deepest.depth, band.depth);
            assert!(
                band.least_iops < deepest.iops && deepest.iops < band.most_iops,
                "{name}: {band:?} {deepest:?}"
            );
        }
    }

    #[test]
    fn a_deeper_queue_never_costs_throughput() {
        for name in ["HDS725050KLA360", "ST3600057SS", "970-PRO-1TB"] {
            let shown = show(&sheet(name).unwrap()).unwrap();
            for pair in shown.iops_by_depth.windows(2) {
                assert!(pair[1].iops > 0.97 * pair[0].iops, "{name}: {pair:?}");
            }
        }
    }
}
