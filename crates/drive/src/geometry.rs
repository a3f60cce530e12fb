//! The layout of blocks: zones, tracks, skew, spares, slips and remapped defects.
//!
//! The vocabulary is DiskSim's (manual, CMU-PDL-08-101, appendix A): *places* are sectors of a zone counted along its
//! tracks, spares and defects included; blocks (LBNs) are numbered over the places that are left.

use crate::error::DriveError;
use crate::reciprocal::Reciprocal;
use crate::rotation::Angle;

/// The order in which blocks follow one another over surfaces and cylinders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mapping {
    /// Every cylinder from the first surface to the last (scheme 0).
    #[default]
    Conventional,
    /// Every other cylinder of a zone from the last surface to the first (scheme 1).
    SerpentineInZone,
    /// Every other cylinder of the drive from the last surface to the first (scheme 2).
    SerpentineOverDrive,
}

/// The positions of spare places, and the effect of slipped places on the numbering after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sparing {
    /// No spares (scheme 0).
    #[default]
    None,
    /// Whole tracks at the end of the zone; slips and defects are tracks too (1).
    TracksAtZoneEnd,
    /// At the end of each cylinder (2).
    CylinderEnd,
    /// At the end of each track (3).
    TrackEnd,
    /// At the end of each cylinder; slips use spares at the end of the drive instead (4).
    CylinderEndSlipToEnd,
    /// At the front of each cylinder (5).
    CylinderFront,
    /// At the front of each cylinder; slips use spares at the end of the drive instead (6).
    CylinderFrontSlipToEnd,
    /// At the end of the drive (7).
    DriveEnd,
    /// At the end of each range of cylinders (8).
    RangeEnd,
    /// At the end of each zone (9).
    ZoneEnd,
    /// At the end of each zone; slips use spares at the end of the drive instead (10).
    ZoneEndSlipToEnd,
}

impl Sparing {
    /// Every scheme, in the order of its number.
    pub const ALL: [Sparing; 11] = [
        Sparing::None,
        Sparing::TracksAtZoneEnd,
        Sparing::CylinderEnd,
        Sparing::TrackEnd,
        Sparing::CylinderEndSlipToEnd,
        Sparing::CylinderFront,
        Sparing::CylinderFrontSlipToEnd,
        Sparing::DriveEnd,
        Sparing::RangeEnd,
        Sparing::ZoneEnd,
        Sparing::ZoneEndSlipToEnd,
    ];
}

/// A zone: neighbouring cylinders with the same number of blocks on every track.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ZoneSpec {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Places on every track.
    pub blocks_per_track: u32,
    /// Position of the first place of the zone's first track, in turns.
    pub first_block_turns: f64,
    /// Offset of the start of the cylinder's next track, in turns.
    pub track_skew_turns: f64,
    /// Offset of the start of the next cylinder's first track, in turns.
    pub cylinder_skew_turns: f64,
    /// Blocks at the front of the zone that are not numbered.
    pub dead_blocks: u64,
    /// Spares per track, cylinder, range or zone; in tracks for [`Sparing::TracksAtZoneEnd`], else in places.
    pub spares: u64,
    /// Places (or tracks) skipped in numbering, rising.
    pub slips: Vec<u64>,
    /// Places (or tracks) that are defective, each with its replacement.
    pub defects: Vec<(u64, u64)>,
}

/// The layout of a drive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GeometrySpec {
    /// Surfaces (heads).
    pub surfaces: u32,
    /// Cylinders.
    pub cylinders: u32,
    /// Order of tracks.
    pub mapping: Mapping,
    /// Spares.
    pub sparing: Sparing,
    /// Cylinders of a range, for [`Sparing::RangeEnd`].
    pub range_cylinders: u32,
    /// The zones, from block 0 on.
    pub zones: Vec<ZoneSpec>,
}

/// The position of a block, and the rest of its track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub surface: u32,
    /// Angle of the block's start on the track.
    pub angle: Angle,
    /// Blocks, this one included, that follow one another on the track without a gap.
    pub run: u32,
    /// Zone.
    pub zone: u32,
}

/// The way in which places are counted between spares and slips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    /// No slips, no spares between.
    Plain,
    /// Slips are tracks.
    Tracks,
    /// Slips push all that follows in the zone; spares recur every region.
    Zone,
    /// Slips use the spares of their own region.
    Region,
}

#[derive(Debug, Clone)]
struct Zone {
    first_lbn: u64,
    blocks: u64,
    first_cylinder: u32,
    last_cylinder: u32,
    numbering: Numbering,
    track: Reciprocal,
    region_places: Reciprocal,
    region_blocks: Reciprocal,
    /// Spares before the blocks of each region.
    front: u64,
    dead: u64,
    offset: Angle,
    track_skew: Angle,
    cylinder_skew: Angle,
    width: Angle,
    /// True if slips push on the skew of the tracks after them.
    slips_push_skew: bool,
    /// Slipped places (tracks), rising.
    slips: Vec<u64>,
    /// For [`Numbering::Zone`]: slips counted in places that are not spares, each less those before it.
    pushed: Vec<u64>,
    /// Defects by place, and by replacement.
    defects: Vec<(u64, u64)>,
    stand_ins: Vec<(u64, u64)>,
}

/// The layout of a drive, computed.
#[derive(Debug, Clone)]
pub struct Geometry {
    zones: Vec<Zone>,
    surfaces: Reciprocal,
    cylinders: u32,
    mapping: Mapping,
    blocks: u64,
    /// First zone that may contain the blocks of each bucket of 2^`bucket_bits` blocks.
    buckets: Vec<u16>,
    bucket_bits: u32,
}

fn turns(turns: f64) -> Angle {
    // Whole turns change nothing; `as` saturates, so a fraction of exactly 1 by rounding stays within the turn.
    ((turns - turns.floor()) * 18_446_744_073_709_551_616.0) as u64
}

impl Geometry {
    /// Computes a layout.
    pub fn new(spec: &GeometrySpec) -> Result<Self, DriveError> {
        let bad = |problem: String| Err(DriveError::parameter("geometry", problem));
        if !(1..=1024).contains(&spec.surfaces) {
            return bad(format!("{} surfaces; allowed are 1 to 1024", spec.surfaces));
        }
        if !(1..=1 << 26).contains(&spec.cylinders) {
            return bad(format!(
                "{} cylinders; allowed are 1 to 67108864",
                spec.cylinders
            ));
        }
        if spec.zones.is_empty() || spec.zones.len() > 4096 {
            return bad(format!("{} zones; allowed are 1 to 4096", spec.zones.len()));
        }
        let mut zones: Vec<Zone> = Vec::with_capacity(spec.zones.len());
        let mut blocks = 0;
        for (index, zone) in spec.zones.iter().enumerate() {
            if zone.last_cylinder < zone.first_cylinder || zone.last_cylinder >= spec.cylinders {
                return bad(format!(
                    "zone {index} has cylinders {} to {}; they must rise and be below {}",
                    zone.first_cylinder, zone.last_cylinder, spec.cylinders
                ));
            }
            if zones.iter().any(|z| {
                zone.first_cylinder <= z.last_cylinder && z.first_cylinder <= zone.last_cylinder
            }) {
                return bad(format!("zone {index} shares cylinders with another zone"));
            }
            let zone = Zone::new(zone, spec, blocks).map_err(|problem| {
                DriveError::parameter("geometry", format!("zone {index}: {problem}"))
            })?;
            blocks += zone.blocks;
            zones.push(zone);
        }
        let bucket_bits = (64 - (blocks >> 12).leading_zeros()).max(1);
        let mut buckets = Vec::with_capacity((blocks >> bucket_bits) as usize + 1);
        let mut zone = 0;
        for bucket in 0..=(blocks >> bucket_bits) {
            while zone + 1 < zones.len() && zones[zone + 1].first_lbn <= bucket << bucket_bits {
                zone += 1;
            }
            buckets.push(zone as u16);
        }
        Ok(Self {
            zones,
            surfaces: Reciprocal::new(u64::from(spec.surfaces)),
            cylinders: spec.cylinders,
            mapping: spec.mapping,
            blocks,
            buckets,
            bucket_bits,
        })
    }

    /// Blocks of the drive.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Cylinders of the drive.
    #[must_use]
    pub const fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Surfaces of the drive.
    #[must_use]
    pub const fn surfaces(&self) -> u32 {
        self.surfaces.divisor() as u32
    }

    /// Zones, each as its first block, its blocks, and the places of one of its tracks.
    pub fn zones(&self) -> impl Iterator<Item = (u64, u64, u32)> + '_ {
        self.zones
            .iter()
            .map(|zone| (zone.first_lbn, zone.blocks, zone.track.divisor() as u32))
    }

    /// Places on every track of a zone.
    #[must_use]
    pub fn blocks_per_track(&self, zone: u32) -> u32 {
        self.zones[zone as usize].track.divisor() as u32
    }

    /// The angle one block takes up in a zone.
    #[must_use]
    #[inline]
    pub fn block_angle(&self, zone: u32) -> Angle {
        self.zones[zone as usize].width
    }

    #[inline]
    fn zone_of(&self, lbn: u64) -> usize {
        let mut zone = self.buckets[(lbn >> self.bucket_bits) as usize] as usize;
        while zone + 1 < self.zones.len() && self.zones[zone + 1].first_lbn <= lbn {
            zone += 1;
        }
        zone
    }

    /// The position of block `lbn`.
    ///
    /// # Panics
    /// If the drive has no such block.
    #[must_use]
    #[inline]
    pub fn locate(&self, lbn: u64) -> Place {
        assert!(
            lbn < self.blocks,
            "block {lbn} of a drive of {} blocks",
            self.blocks
        );
        let index = self.zone_of(lbn);
        let zone = &self.zones[index];
        let left = zone.first_lbn + zone.blocks - lbn;
        let counted = lbn - zone.first_lbn + zone.dead;
        let (place, unbroken) = match zone.numbering {
            Numbering::Plain => (counted, left),
            _ => zone.place_of(counted, left),
        };
        let (track, sector) = zone.track.div_rem(place);
        let run = (zone.track.divisor() - sector).min(unbroken) as u32;
        self.at(index, track, sector, run)
    }

    /// The place `sector` of track `track` of a zone.
    #[inline]
    fn at(&self, index: usize, track: u64, sector: u64, run: u32) -> Place {
        let zone = &self.zones[index];
        let (cylinder, order) = self.surfaces.div_rem(track);
        let switches = (self.surfaces.divisor() - 1) * cylinder + order;
        let mut angle = zone
            .offset
            .wrapping_add(zone.track_skew.wrapping_mul(switches))
            .wrapping_add(zone.cylinder_skew.wrapping_mul(cylinder))
            .wrapping_add(zone.width.wrapping_mul(sector));
        if zone.slips_push_skew {
            angle = angle.wrapping_add(
                zone.width
                    .wrapping_mul(zone.pushed_sectors(track, cylinder)),
            );
        }
        let absolute = zone.first_cylinder + cylinder as u32;
        let backwards = match self.mapping {
            Mapping::Conventional => false,
            Mapping::SerpentineInZone => cylinder % 2 == 1,
            Mapping::SerpentineOverDrive => absolute % 2 == 1,
        };
        let surface = if backwards {
            self.surfaces.divisor() - 1 - order
        } else {
            order
        };
        Place {
            cylinder: absolute,
            surface: surface as u32,
            angle,
            run,
            zone: index as u32,
        }
    }

    /// First and last block of the track that contains block `lbn`; blocks that were remapped to the track from elsewhere
    /// do not count, those remapped away from it do.
    #[must_use]
    pub fn track_bounds(&self, lbn: u64) -> (u64, u64) {
        let zone = &self.zones[self.zone_of(lbn.min(self.blocks - 1))];
        let counted = lbn - zone.first_lbn + zone.dead;
        let per_track = zone.track.divisor();
        let (first, end) = if zone.numbering == Numbering::Plain {
            let (_, sector) = zone.track.div_rem(counted);
            (counted - sector, counted - sector + per_track)
        } else {
            let (track, _) = zone.track.div_rem(zone.original_place_of(counted));
            (
                zone.counted_below(track * per_track),
                zone.counted_below((track + 1) * per_track),
            )
        };
        (zone.lbn(first), zone.lbn(end).max(zone.lbn(first) + 1) - 1)
    }

    /// First block of the track that contains block `lbn`, which is at `place`.
    #[inline]
    #[must_use]
    pub fn track_start(&self, lbn: u64, place: &Place) -> u64 {
        let zone = &self.zones[place.zone as usize];
        let run = u64::from(place.run);
        // Its run may end with the zone instead of the track.
        if zone.numbering != Numbering::Plain || lbn + run >= zone.first_lbn + zone.blocks {
            return self.track_bounds(lbn).0;
        }
        let sector = zone.track.divisor() - run;
        lbn.saturating_sub(sector).max(zone.first_lbn)
    }

    /// The block at a place, given by cylinder, surface and sector of the track; `None` for spares, slips,
    /// defects and places that are not numbered.
    #[must_use]
    pub fn block_at(&self, cylinder: u32, surface: u32, sector: u32) -> Option<u64> {
        let zone = self
            .zones
            .iter()
            .find(|zone| (zone.first_cylinder..=zone.last_cylinder).contains(&cylinder))?;
        let surfaces = self.surfaces.divisor();
        if u64::from(surface) >= surfaces || u64::from(sector) >= zone.track.divisor() {
            return None;
        }
        let relative = u64::from(cylinder - zone.first_cylinder);
        let backwards = match self.mapping {
            Mapping::Conventional => false,
            Mapping::SerpentineInZone => relative % 2 == 1,
            Mapping::SerpentineOverDrive => cylinder % 2 == 1,
        };
        let order = if backwards {
            surfaces - 1 - u64::from(surface)
        } else {
            u64::from(surface)
        };
        let here = (relative * surfaces + order) * zone.track.divisor() + u64::from(sector);
        let place = zone.original(here)?;
        let counted = zone.counted_below(place);
        let inside = counted >= zone.dead && counted < zone.dead + zone.blocks;
        (inside && zone.place_of(counted, 1).0 == here)
            .then(|| counted - zone.dead + zone.first_lbn)
    }
}

impl Zone {
    fn new(spec: &ZoneSpec, drive: &GeometrySpec, first_lbn: u64) -> Result<Self, String> {
        let per_track = u64::from(spec.blocks_per_track);
        if !(1..=1 << 20).contains(&per_track) {
            return Err(format!(
                "{per_track} blocks per track; allowed are 1 to 1048576"
            ));
        }
        if spec.slips.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err("the slips must rise".to_owned());
        }
        let cylinders = u64::from(spec.last_cylinder - spec.first_cylinder) + 1;
        let surfaces = u64::from(drive.surfaces);
        let cylinder_places = per_track * surfaces;
        let places = cylinder_places * cylinders;
        let range = u64::from(drive.range_cylinders.max(1));
        let slips = spec.slips.len() as u64;
        let spares = spec.spares;
        // Places of a region, spares before and behind its blocks, places lost to the zone as a whole.
        let (region, front, behind, lost) = match drive.sparing {
            Sparing::None => (places, 0, 0, 0),
            Sparing::TracksAtZoneEnd => (places, 0, 0, spares * per_track),
            Sparing::CylinderEnd => (cylinder_places, 0, spares, spares * cylinders),
            Sparing::TrackEnd => (per_track, 0, spares, spares * cylinders * surfaces),
            Sparing::CylinderEndSlipToEnd => {
                (cylinder_places, 0, spares, spares * cylinders + slips)
            }
            Sparing::CylinderFront => (cylinder_places, spares, 0, spares * cylinders),
            Sparing::CylinderFrontSlipToEnd => {
                (cylinder_places, spares, 0, spares * cylinders + slips)
            }
            Sparing::DriveEnd => (places, 0, 0, slips),
            Sparing::RangeEnd => {
                // A last range cut short by the zone's end keeps no spares, but holds no more blocks
                // than a whole one.
                let whole = (cylinder_places * range).saturating_sub(spares);
                let rest = cylinder_places * (cylinders % range);
                let lost = spares * (cylinders / range) + rest.saturating_sub(whole);
                (cylinder_places * range, 0, spares, lost)
            }
            Sparing::ZoneEnd => (places, 0, 0, spares),
            Sparing::ZoneEndSlipToEnd => (places, 0, 0, spares + slips),
        };
        if front + behind >= region {
            return Err(format!("{spares} spares leave nothing of {region} blocks"));
        }
        let blocks = places
            .checked_sub(lost + spec.dead_blocks)
            .filter(|blocks| *blocks > 0)
            .ok_or_else(|| {
                format!("spares, slips and unnumbered blocks leave nothing of {places} blocks")
            })?;
        let region_blocks = region - front - behind;
        let numbering = match drive.sparing {
            Sparing::TracksAtZoneEnd if !spec.slips.is_empty() || !spec.defects.is_empty() => {
                Numbering::Tracks
            }
            Sparing::TracksAtZoneEnd => Numbering::Plain,
            Sparing::CylinderEnd
            | Sparing::TrackEnd
            | Sparing::CylinderFront
            | Sparing::RangeEnd => {
                if spares == 0 && slips == 0 && spec.defects.is_empty() {
                    Numbering::Plain
                } else {
                    Numbering::Region
                }
            }
            _ if region == places && slips == 0 && spec.defects.is_empty() => Numbering::Plain,
            _ => Numbering::Zone,
        };
        let limit = if numbering == Numbering::Tracks {
            cylinders * surfaces
        } else {
            places
        };
        if spec.slips.iter().any(|slip| *slip >= limit)
            || spec
                .defects
                .iter()
                .any(|(defect, stand_in)| *defect >= limit || *stand_in >= limit)
        {
            return Err(format!(
                "a slip or defect is beyond the zone's {limit} places"
            ));
        }
        let mut slips_kept = spec.slips.clone();
        if numbering == Numbering::Zone {
            // A slip among the spares skips nothing.
            slips_kept.retain(|slip| (front..front + region_blocks).contains(&(slip % region)));
        }
        let pushed = slips_kept
            .iter()
            .enumerate()
            .map(|(index, slip)| {
                let within = (slip % region).saturating_sub(front).min(region_blocks);
                ((slip / region) * region_blocks + within).saturating_sub(index as u64)
            })
            .collect();
        let mut defects: Vec<(u64, u64)> = spec
            .defects
            .iter()
            .copied()
            .filter(|(d, r)| d != r)
            .collect();
        defects.sort_unstable();
        let mut stand_ins: Vec<(u64, u64)> = defects.iter().map(|(d, r)| (*r, *d)).collect();
        stand_ins.sort_unstable();
        if stand_ins.windows(2).any(|pair| pair[0].0 == pair[1].0)
            || defects.windows(2).any(|pair| pair[0].0 == pair[1].0)
        {
            return Err("a place is named twice among the defects".to_owned());
        }
        let slips_push_skew = slips > 0
            && matches!(
                drive.sparing,
                Sparing::CylinderEnd
                    | Sparing::TrackEnd
                    | Sparing::CylinderEndSlipToEnd
                    | Sparing::CylinderFront
                    | Sparing::CylinderFrontSlipToEnd
            );
        let width = ((1_u128 << 64) / u128::from(per_track)).min(u128::from(u64::MAX)) as u64;
        // The offset is that of the first numbered place: spares at the front do not shift it.
        let offset = turns(spec.first_block_turns).wrapping_sub(width.wrapping_mul(front));
        let zone = Self {
            first_lbn,
            blocks,
            first_cylinder: spec.first_cylinder,
            last_cylinder: spec.last_cylinder,
            numbering,
            track: Reciprocal::new(per_track),
            region_places: Reciprocal::new(region),
            region_blocks: Reciprocal::new(region_blocks),
            front,
            dead: spec.dead_blocks,
            offset,
            track_skew: turns(spec.track_skew_turns),
            cylinder_skew: turns(spec.cylinder_skew_turns),
            width,
            slips_push_skew,
            slips: slips_kept,
            pushed,
            defects,
            stand_ins,
        };
        zone.check(places)?;
        Ok(zone)
    }

    /// Checks that slips do not push blocks beyond the room for them.
    fn check(&self, places: u64) -> Result<(), String> {
        let last = self.dead + self.blocks - 1;
        let too_many = || Err("there are more slips than spares for them".to_owned());
        match self.numbering {
            Numbering::Plain => Ok(()),
            Numbering::Region => {
                // Regions without slips hold what a region holds; only the last may be cut short.
                let size = self.region_places.divisor();
                let mut regions: Vec<u64> = self.slips.iter().map(|slip| slip / size).collect();
                regions.push(places.div_ceil(size) - 1);
                regions.dedup();
                for region in regions {
                    let slipped = self.slips_in(region).len() as u64;
                    let here = size.min(places - region * size);
                    let before = region * self.region_blocks.divisor();
                    let needed = (last + 1)
                        .saturating_sub(before)
                        .min(self.region_blocks.divisor());
                    if needed + slipped > here || (self.front > 0 && slipped > self.front) {
                        return too_many();
                    }
                }
                Ok(())
            }
            Numbering::Zone | Numbering::Tracks => {
                if self.original_place_of(last) < places {
                    Ok(())
                } else {
                    too_many()
                }
            }
        }
    }

    /// Slips of a region.
    fn slips_in(&self, region: u64) -> &[u64] {
        let start = region * self.region_places.divisor();
        let from = self.slips.partition_point(|slip| *slip < start);
        let to = self
            .slips
            .partition_point(|slip| *slip < start + self.region_places.divisor());
        &self.slips[from..to]
    }

    /// Places of slips before the cylinder (or track) that push its skew on.
    #[cold]
    fn pushed_sectors(&self, track: u64, cylinder: u64) -> u64 {
        let start = if self.region_places.divisor() == self.track.divisor() {
            track * self.track.divisor()
        } else {
            cylinder * self.region_places.divisor()
        };
        self.slips.partition_point(|slip| *slip < start) as u64
    }

    /// The place of the `counted`-th block of the zone before defects are remapped, and nothing else.
    fn original_place_of(&self, counted: u64) -> u64 {
        self.numbered(counted, u64::MAX).0
    }

    /// Place before remapping, and the number of blocks from there on that are numbered without a gap.
    fn numbered(&self, counted: u64, left: u64) -> (u64, u64) {
        match self.numbering {
            Numbering::Plain => (counted, left),
            Numbering::Tracks => {
                let (track, sector) = self.track.div_rem(counted);
                let mut moved = track;
                for slip in &self.slips {
                    if *slip <= moved {
                        moved += 1;
                    }
                }
                (
                    moved * self.track.divisor() + sector,
                    left.min(self.track.divisor() - sector),
                )
            }
            Numbering::Zone => {
                let skipped = self.pushed.partition_point(|slip| *slip <= counted);
                let to_slip = self
                    .pushed
                    .get(skipped)
                    .map_or(u64::MAX, |slip| slip - counted);
                let (region, within) = self.region_blocks.div_rem(counted + skipped as u64);
                let place = region * self.region_places.divisor() + self.front + within;
                (
                    place,
                    left.min(to_slip).min(self.region_blocks.divisor() - within),
                )
            }
            Numbering::Region => {
                let (region, within) = self.region_blocks.div_rem(counted);
                let start = region * self.region_places.divisor();
                let slips = self.slips_in(region);
                let good = within + self.front.saturating_sub(slips.len() as u64);
                let mut skipped = 0;
                while slips
                    .get(skipped)
                    .is_some_and(|slip| slip - start <= good + skipped as u64)
                {
                    skipped += 1;
                }
                let place = start + good + skipped as u64;
                let to_slip = slips.get(skipped).map_or(u64::MAX, |slip| slip - place);
                (
                    place,
                    left.min(to_slip).min(self.region_blocks.divisor() - within),
                )
            }
        }
    }

    /// Place of the `counted`-th block, and the number of blocks that follow one another from there.
    fn place_of(&self, counted: u64, left: u64) -> (u64, u64) {
        let (place, unbroken) = self.numbered(counted, left);
        if self.defects.is_empty() {
            return (place, unbroken);
        }
        let per = if self.numbering == Numbering::Tracks {
            self.track.divisor()
        } else {
            1
        };
        let unit = place / per;
        match self
            .defects
            .binary_search_by_key(&unit, |(defect, _)| *defect)
        {
            Ok(found) => (
                self.defects[found].1 * per + place % per,
                unbroken.min(per - place % per),
            ),
            Err(next) => {
                let to_defect = self
                    .defects
                    .get(next)
                    .map_or(u64::MAX, |(defect, _)| defect * per - place);
                (place, unbroken.min(to_defect))
            }
        }
    }

    /// The place whose block is stored at `here`; `None` if `here` is defective or slipped.
    fn original(&self, here: u64) -> Option<u64> {
        let per = if self.numbering == Numbering::Tracks {
            self.track.divisor()
        } else {
            1
        };
        let (unit, within) = (here / per, here % per);
        if self
            .defects
            .binary_search_by_key(&unit, |(defect, _)| *defect)
            .is_ok()
        {
            return None;
        }
        if let Ok(found) = self
            .stand_ins
            .binary_search_by_key(&unit, |(stand_in, _)| *stand_in)
        {
            return Some(self.stand_ins[found].1 * per + within);
        }
        let slipped = match self.numbering {
            Numbering::Plain => false,
            _ => self.slips.binary_search(&unit).is_ok(),
        };
        (!slipped).then_some(here)
    }

    /// Blocks of the zone, unnumbered ones included, before `place` (ignoring remapping).
    fn counted_below(&self, place: u64) -> u64 {
        match self.numbering {
            Numbering::Plain => place,
            Numbering::Tracks => {
                let track = place / self.track.divisor();
                let slipped = self.slips.partition_point(|slip| *slip < track) as u64;
                let here = self.slips.binary_search(&track).is_ok();
                (track - slipped) * self.track.divisor()
                    + if here {
                        0
                    } else {
                        place % self.track.divisor()
                    }
            }
            Numbering::Zone => {
                let (region, within) = self.region_places.div_rem(place);
                let usable = region * self.region_blocks.divisor()
                    + within
                        .saturating_sub(self.front)
                        .min(self.region_blocks.divisor());
                let slipped = self.slips.partition_point(|slip| *slip < place) as u64;
                usable - slipped.min(usable)
            }
            Numbering::Region => {
                let (region, within) = self.region_places.div_rem(place);
                let slips = self.slips_in(region);
                let start = place - within;
                let slipped = slips.partition_point(|slip| *slip < place) as u64;
                let good = (place - start - slipped)
                    .saturating_sub(self.front.saturating_sub(slips.len() as u64))
                    .min(self.region_blocks.divisor());
                region * self.region_blocks.divisor() + good
            }
        }
    }

    fn lbn(&self, counted: u64) -> u64 {
        counted.saturating_sub(self.dead).min(self.blocks) + self.first_lbn
    }
}
