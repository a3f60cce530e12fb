//! Blocks and places over random layouts: every block has one place, every place at most one block.

use std::collections::HashMap;

use proptest::prelude::*;
use spindle_drive::{Geometry, GeometrySpec, Mapping, Sparing, ZoneSpec};

fn layouts() -> impl Strategy<Value = GeometrySpec> {
    let mapping = prop_oneof![
        Just(Mapping::Conventional),
        Just(Mapping::SerpentineInZone),
        Just(Mapping::SerpentineOverDrive)
    ];
    let sparing = (0..Sparing::ALL.len()).prop_map(|index| Sparing::ALL[index]);
    let zones = prop::collection::vec(
        (1_u32..7, 3_u32..20, 0_u64..6, 0_u64..9, any::<u64>()),
        1..4,
    );
    (1_u32..6, mapping, sparing, 1_u32..4, zones).prop_map(
        |(surfaces, mapping, sparing, range_cylinders, zones)| {
            let mut first_cylinder = 0;
            let zones: Vec<ZoneSpec> = zones
                .into_iter()
                .map(|(cylinders, blocks_per_track, spares, dead_blocks, bits)| {
                    let tracks = u64::from(cylinders * surfaces);
                    let units = if sparing == Sparing::TracksAtZoneEnd {
                        tracks
                    } else {
                        tracks * u64::from(blocks_per_track)
                    };
                    let slips = (0..units)
                        .filter(|unit| (bits.rotate_left(*unit as u32 * 7) & 31) == 0)
                        .take(4)
                        .collect();
                    let zone = ZoneSpec {
                        first_cylinder,
                        last_cylinder: first_cylinder + cylinders - 1,
                        blocks_per_track,
                        first_block_turns: (bits % 97) as f64 / 97.0,
                        track_skew_turns: (bits % 11) as f64 / 20.0,
                        cylinder_skew_turns: (bits % 13) as f64 / 20.0,
                        dead_blocks,
                        spares,
                        slips,
                        defects: Vec::new(),
                    };
                    first_cylinder += cylinders;
                    zone
                })
                .collect();
            GeometrySpec {
                surfaces,
                cylinders: first_cylinder,
                mapping,
                sparing,
                range_cylinders,
                zones,
            }
        },
    )
}

/// Random layouts are worth something only if most of them can be, with every scheme and with slips.
#[test]
fn random_layouts_cover_every_scheme_with_slips() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut covered = [0; Sparing::ALL.len()];
    for _ in 0..2000 {
        let spec = layouts().new_tree(&mut runner).unwrap().current();
        let slips = spec.zones.iter().any(|zone| !zone.slips.is_empty());
        if slips && Geometry::new(&spec).is_ok() {
            covered[Sparing::ALL
                .iter()
                .position(|scheme| *scheme == spec.sparing)
                .unwrap()] += 1;
        }
    }
    // Without spares nothing may slip.
    assert!(covered[1..].iter().all(|count| *count >= 10), "{covered:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn blocks_and_places_are_a_bijection(spec in layouts()) {
        // More slips than spares are refused; that is not the point here.
        let Ok(geometry) = Geometry::new(&spec) else { return Ok(()) };
        let mut found = HashMap::new();
        for zone in &spec.zones {
            for cylinder in zone.first_cylinder..=zone.last_cylinder {
                for surface in 0..spec.surfaces {
                    for sector in 0..zone.blocks_per_track {
                        if let Some(lbn) = geometry.block_at(cylinder, surface, sector) {
                            prop_assert!(found.insert(lbn, (cylinder, surface)).is_none(), "block {} twice", lbn);
                        }
                    }
                }
            }
        }
        prop_assert_eq!(found.len() as u64, geometry.blocks());
        for lbn in 0..geometry.blocks() {
            let place = geometry.locate(lbn);
            prop_assert_eq!(found.get(&lbn), Some(&(place.cylinder, place.surface)), "block {}", lbn);
        }
    }

    #[test]
    fn a_run_is_blocks_side_by_side_on_one_track(spec in layouts()) {
        let Ok(geometry) = Geometry::new(&spec) else { return Ok(()) };
        for lbn in 0..geometry.blocks() {
            let place = geometry.locate(lbn);
            prop_assert!(place.run >= 1 && lbn + u64::from(place.run) <= geometry.blocks());
            if place.run > 1 {
                let next = geometry.locate(lbn + 1);
                prop_assert_eq!((next.cylinder, next.surface, next.run), (place.cylinder, place.surface, place.run - 1));
                prop_assert_eq!(next.angle.wrapping_sub(place.angle), geometry.block_angle(place.zone));
            }
        }
    }

    #[test]
    fn the_bounds_of_a_track_are_its_first_and_last_block(spec in layouts()) {
        let Ok(geometry) = Geometry::new(&spec) else { return Ok(()) };
        let track = |lbn| {
            let place = geometry.locate(lbn);
            (place.cylinder, place.surface)
        };
        for lbn in 0..geometry.blocks() {
            let (first, last) = geometry.track_bounds(lbn);
            prop_assert!((first..=last).contains(&lbn), "block {} not in {}..={}", lbn, first, last);
            prop_assert_eq!(geometry.track_start(lbn, &geometry.locate(lbn)), first);
            prop_assert!((first..=last).all(|other| track(other) == track(lbn)));
            prop_assert!(first == 0 || track(first - 1) != track(lbn));
            prop_assert!(last + 1 == geometry.blocks() || track(last + 1) != track(lbn));
        }
    }
}

#[test]
fn a_remapped_block_lies_where_it_was_remapped_to() {
    let zone = ZoneSpec {
        last_cylinder: 3,
        blocks_per_track: 10,
        spares: 5,
        defects: vec![(12, 77)],
        ..ZoneSpec::default()
    };
    let spec = GeometrySpec {
        surfaces: 2,
        cylinders: 4,
        sparing: Sparing::ZoneEnd,
        range_cylinders: 1,
        zones: vec![zone],
        ..GeometrySpec::default()
    };
    let geometry = Geometry::new(&spec).unwrap();
    assert_eq!(geometry.blocks(), 75);
    // Place 77 is sector 7 of the last track; place 12 is sector 2 of the second.
    assert_eq!(geometry.block_at(3, 1, 7), Some(12));
    assert_eq!(geometry.block_at(0, 1, 2), None);
    assert_eq!(
        (
            geometry.locate(12).cylinder,
            geometry.locate(12).surface,
            geometry.locate(12).run
        ),
        (3, 1, 1)
    );
    assert_eq!(geometry.locate(11).run, 1);
    assert_eq!(geometry.locate(13).run, 7);
}

#[test]
fn a_range_cut_short_by_its_zone_holds_no_more_than_a_whole_one() {
    // Ranges of 8 places with 5 spares: the last, of 4 places, gives 3 blocks like the two before.
    let zone = ZoneSpec {
        last_cylinder: 4,
        blocks_per_track: 4,
        spares: 5,
        ..ZoneSpec::default()
    };
    let spec = GeometrySpec {
        surfaces: 1,
        cylinders: 5,
        sparing: Sparing::RangeEnd,
        range_cylinders: 2,
        zones: vec![zone],
        ..GeometrySpec::default()
    };
    let geometry = Geometry::new(&spec).unwrap();
    assert_eq!(geometry.blocks(), 9);
    assert_eq!(geometry.block_at(4, 0, 2), Some(8));
    assert_eq!(geometry.block_at(4, 0, 3), None);
}

#[test]
fn serpentine_order_changes_cylinders_without_changing_heads() {
    let zone = ZoneSpec {
        last_cylinder: 3,
        blocks_per_track: 10,
        ..ZoneSpec::default()
    };
    let spec = GeometrySpec {
        surfaces: 3,
        cylinders: 4,
        mapping: Mapping::SerpentineInZone,
        zones: vec![zone],
        ..GeometrySpec::default()
    };
    let geometry = Geometry::new(&spec).unwrap();
    let tracks: Vec<(u32, u32)> = (0..12)
        .map(|track| {
            let place = geometry.locate(track * 10);
            (place.cylinder, place.surface)
        })
        .collect();
    assert_eq!(
        &tracks[..7],
        [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0), (2, 0)]
    );
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    let zone = ZoneSpec {
        last_cylinder: 3,
        blocks_per_track: 10,
        ..ZoneSpec::default()
    };
    let good = GeometrySpec {
        surfaces: 2,
        cylinders: 4,
        zones: vec![zone.clone()],
        ..GeometrySpec::default()
    };
    assert!(Geometry::new(&good).is_ok());
    let bad = [
        GeometrySpec {
            surfaces: 0,
            ..good.clone()
        },
        GeometrySpec {
            cylinders: 3,
            ..good.clone()
        },
        GeometrySpec {
            zones: Vec::new(),
            ..good.clone()
        },
        GeometrySpec {
            zones: vec![zone.clone(), zone.clone()],
            ..good.clone()
        },
        GeometrySpec {
            zones: vec![ZoneSpec {
                blocks_per_track: 0,
                ..zone.clone()
            }],
            ..good.clone()
        },
        GeometrySpec {
            zones: vec![ZoneSpec {
                dead_blocks: 80,
                ..zone.clone()
            }],
            ..good.clone()
        },
        GeometrySpec {
            sparing: Sparing::ZoneEnd,
            zones: vec![ZoneSpec {
                spares: 1,
                slips: vec![3, 4],
                ..zone.clone()
            }],
            ..good.clone()
        },
        GeometrySpec {
            zones: vec![ZoneSpec {
                slips: vec![4, 3],
                ..zone
            }],
            ..good
        },
    ];
    for (index, spec) in bad.iter().enumerate() {
        assert!(Geometry::new(spec).is_err(), "case {index}");
    }
}
