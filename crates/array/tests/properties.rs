//! Properties of every array.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::sample::select;
use spindle_array::{
    Array, ArrayConfig, Layout, Level, MemberRequest, MemberSet, Merger, Piece, Place, RmwLevel,
    Role, WriteMethod, WritePlanner, WriteRule, WriteStep,
};

const BLOCK: u64 = 4096;

/// Arrays of every level and layout, small enough to walk through.
fn arrays() -> impl Strategy<Value = Array> {
    let kinds = [
        (Level::Linear, vec!["default"]),
        (Level::Raid0, vec!["original", "alternate"]),
        (Level::Raid1, vec!["default"]),
        (
            Level::Raid10,
            vec![
                "n2", "n3", "f2", "f3", "o2", "o3", "n2f2", "n2o2", "f2s17", "f2s18", "n4", "o2s18",
            ],
        ),
        (Level::Raid4, vec!["default"]),
        (
            Level::Raid5,
            vec!["la", "ra", "ls", "rs", "parity-first", "parity-last"],
        ),
        (
            Level::Raid6,
            vec![
                "la",
                "ra",
                "ls",
                "rs",
                "parity-first",
                "parity-last",
                "ddf-zero-restart",
                "ddf-N-restart",
                "ddf-N-continue",
                "left-asymmetric-6",
                "right-asymmetric-6",
                "left-symmetric-6",
                "right-symmetric-6",
                "parity-first-6",
            ],
        ),
        (Level::Raid50, vec!["ls", "ra"]),
        (
            Level::Raid60,
            vec!["ls", "ddf-N-continue", "right-symmetric-6"],
        ),
    ];
    let kinds: Vec<(Level, &str)> = kinds
        .into_iter()
        .flat_map(|(level, layouts)| layouts.into_iter().map(move |layout| (level, layout)))
        .collect();
    (
        select(kinds),
        0usize..9,
        select(vec![4096u64, 8192, 16384]),
        prop::collection::vec(0u64..20, 24),
        any::<bool>(),
    )
        .prop_filter_map(
            "md has no such array",
            |((level, layout), more, chunk, extra, equal)| {
                let groups = if level.of_groups().is_some() { 2 } else { 1 };
                let members = (level.fewest_members() + more) / groups as usize * groups as usize;
                let size = |at: usize| 40 * chunk + if equal { 0 } else { extra[at] * 3 * BLOCK };
                let sizes = (0..members).map(size).collect();
                let config = ArrayConfig::new(level, sizes)
                    .layout(Layout::parse(level, layout).unwrap())
                    .groups(groups);
                let config = match level {
                    Level::Linear | Level::Raid1 => config,
                    _ => config.chunk(chunk),
                };
                Array::new(config).ok()
            },
        )
}

fn present(count: u32, missing: &[u32]) -> (MemberSet, MemberSet) {
    let missing: MemberSet = missing.iter().map(|member| member % count).collect();
    (MemberSet::first(count).without(&missing), missing)
}

/// The members' content after every block of the array was written with its own content.
fn filled(array: &Array) -> Vec<HashMap<u64, Vec<u8>>> {
    let mut members = vec![HashMap::new(); array.members() as usize];
    for logical in (0..array.capacity()).step_by(BLOCK as usize) {
        for place in array.places(logical) {
            members[place.member as usize].insert(place.offset, content(logical));
        }
    }
    members
}

fn content(logical: u64) -> Vec<u8> {
    let mut state = logical.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let bytes = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    });
    bytes.take(64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_map_is_a_bijection(array in arrays()) {
        // Every byte has its copies, all in different places, and they lead back to it.
        let mut seen: HashMap<Place, u64> = HashMap::new();
        for logical in (0..array.capacity()).step_by(BLOCK as usize) {
            let places: Vec<Place> = array.places(logical).collect();
            prop_assert_eq!(places.len() as u32, array.copies());
            prop_assert_eq!(array.locate(logical).unwrap().place(), places[0]);
            for (copy, place) in (0..).zip(places) {
                prop_assert!(seen.insert(place, logical).is_none(), "{place:?} holds two blocks");
                prop_assert_eq!(array.role_at(place), Role::Data { logical, copy });
            }
        }
        // And every byte of a member is one of those, or parity, or unused.
        let mut data = 0;
        for (member, size) in (0..).zip(&array.config().members) {
            for offset in (0..*size).step_by(BLOCK as usize) {
                let place = Place { member, offset };
                match array.role_at(place) {
                    Role::Data { logical, .. } => {
                        data += 1;
                        prop_assert_eq!(seen.get(&place), Some(&logical));
                    }
                    _ => prop_assert!(!seen.contains_key(&place)),
                }
            }
        }
        prop_assert_eq!(data, seen.len());
    }

    #[test]
    fn splitting_leaves_no_gap_and_never_overlaps(array in arrays(), from in any::<u64>(), len in 1u64..400_000) {
        let offset = from % array.capacity();
        let len = len.min(array.capacity() - offset);
        let mut pieces: Vec<Piece> = Vec::new();
        array.pieces(offset, len, |piece| pieces.push(piece)).unwrap();
        let mut at = offset;
        for piece in &pieces {
            prop_assert_eq!(piece.logical, at);
            prop_assert!(piece.len > 0);
            at += piece.len;
            // Both ends of the piece are where the map says, so the piece is one stretch.
            for byte in [0, piece.len / 2, piece.len - 1] {
                let place = array.places(piece.logical + byte).next().unwrap();
                prop_assert_eq!(place, Place { member: piece.member, offset: piece.offset + byte });
            }
        }
        prop_assert_eq!(at, offset + len);

        // Merged, the same bytes of the same members, each once.
        let mut merger = Merger::new(array.members());
        let mut requests: Vec<MemberRequest> = Vec::new();
        array.requests(offset, len, &mut merger, |request| requests.push(request)).unwrap();
        prop_assert_eq!(requests.iter().map(|request| request.len).sum::<u64>(), len);
        prop_assert_eq!(requests.iter().map(|request| request.pieces).sum::<u32>(), pieces.len() as u32);
        prop_assert!(requests.len() <= pieces.len());
        let mut stretches: Vec<(u32, u64, u64)> = requests.iter().map(|r| (r.member, r.offset, r.end())).collect();
        stretches.sort_unstable();
        for pair in stretches.windows(2) {
            prop_assert!(pair[0].0 < pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?} overlap");
        }
        for piece in &pieces {
            let inside = stretches.iter().any(|(member, start, end)| {
                *member == piece.member && *start <= piece.offset && piece.offset + piece.len <= *end
            });
            prop_assert!(inside);

        }
        // The merger is empty again.
        let mut left = 0;
        merger.flush(&mut |_| left += 1);
        prop_assert_eq!(left, 0);
    }

    #[test]
    fn any_tolerated_loss_is_rebuilt_bit_for_bit(
        array in arrays().prop_filter("with parity", |array| array.stripe_code(0).is_some()),
        seed in any::<u64>(),
        lost in prop::collection::vec(any::<u32>(), 1..3),
        len in select(vec![1usize, 64, 200, 4096]),
    ) {
        let parities = array.level().parities() as usize;
        for stripe in 0..array.members() as u64 + 1 {
            let code = array.stripe_code(stripe).unwrap();
            let members = code.exponents.len();
            let random = |at: usize| -> Vec<u8> {
                (0..len as u64).map(|i| (i.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ at as u64) >> 29) as u8).collect()
            };
            let mut blocks: Vec<Vec<u8>> = (0..members).map(random).collect();
            code.encode(&mut blocks).unwrap();
            let whole = blocks.clone();
            // The given loss, and every pair with the parities.
            let q = code.q.unwrap_or(code.p);
            let given: Vec<usize> = lost.iter().map(|member| *member as usize % members).collect();
            let data = given[0];
            for lost in [given.clone(), vec![code.p, q], vec![code.p, data], vec![q, data], vec![code.p], vec![q]] {
                let mut lost = lost;
                lost.sort_unstable();
                lost.dedup();
                let mut broken = whole.clone();
                for member in &lost {
                    broken[*member].fill(0xdb);
                }
                let result = code.recover(&mut broken, &lost);
                if lost.len() > parities {
                    prop_assert!(result.is_err());
                } else {
                    prop_assert!(result.is_ok());
                    prop_assert_eq!(&broken, &whole, "lost {:?} of stripe {}", lost, stripe);
                }
            }
        }
    }

    #[test]
    fn reads_with_missing_members_touch_only_present_ones_and_suffice(
        array in arrays(), from in any::<u64>(), len in 1u64..100_000, missing in prop::collection::vec(any::<u32>(), 0..3),
    ) {
        let offset = from % array.capacity();
        let len = len.min(array.capacity() - offset);
        let (present, missing) = present(array.members(), &missing);
        let mut merger = Merger::new(array.members());
        let mut read: Vec<MemberRequest> = Vec::new();
        let result = array.plan_read(offset, len, &missing, &mut merger, |request| read.push(request));
        if missing.len() <= array.tolerance().guaranteed {
            prop_assert!(result.is_ok());
        }
        prop_assert!(read.iter().all(|request| present.contains(request.member)));
        if result.is_err() {
            return Ok(());
        }
        let holds = |place: Place| read.iter().any(|r| r.member == place.member && (r.offset..r.end()).contains(&place.offset));
        let mut pieces = Vec::new();
        array.pieces(offset, len, |piece| pieces.push(piece)).unwrap();
        for piece in pieces {
            let direct = array.places(piece.logical).any(&holds);
            // Else all others of the stripe.
            let parity = array.parity(piece.logical).unwrap();
            // (of its group), as many as the stripe has data blocks.
            let width = array.members() / array.config().groups;
            let group = piece.member / width;
            let computed = parity.is_some_and(|_| {
                let others = (group * width..(group + 1) * width)
                    .map(|member| Place { member, offset: piece.offset })
                    .filter(|place| holds(*place))
                    .count() as u32;
                others >= width - array.level().parities()
            });
            prop_assert!(direct || computed, "{piece:?} cannot be had from {read:?}");
        }
    }

    #[test]
    fn rebuilding_reads_what_gives_the_member_back(array in arrays(), member in any::<u32>(), at in any::<u64>()) {
        let member = member % array.members();
        let size = array.config().members[member as usize] / BLOCK * BLOCK;
        let offset = at % (size / BLOCK) * BLOCK;
        let role = array.role_at(Place { member, offset });
        let mut merger = Merger::new(array.members());
        let mut read = Vec::new();
        let result = array.plan_rebuild(member, offset, BLOCK, &MemberSet::EMPTY, &mut merger, |r| read.push(r));
        if array.tolerance().guaranteed == 0 && role != Role::Unused {
            return Ok(());
        }
        prop_assert!(result.is_ok());
        prop_assert!(read.iter().all(|request| request.member != member));
        let members = filled(&array);
        match role {
            Role::Unused => prop_assert!(read.is_empty()),
            Role::Data { logical, .. } if array.level().parities() == 0 => {
                prop_assert_eq!(&members[read[0].member as usize][&read[0].offset], &content(logical));
            }
            _ => prop_assert_eq!(read.len() as u32, array.members() / array.config().groups - 1),
        }
    }

    #[test]
    fn planned_writes_cover_data_and_parity_and_read_only_what_they_do_not_overwrite(
        array in arrays(), from in any::<u64>(), len in 1u64..200_000, missing in prop::collection::vec(any::<u32>(), 0..3),
        old in any::<bool>(), level in select(vec![RmwLevel::Never, RmwLevel::Cheaper, RmwLevel::Preferred]),
    ) {
        let offset = from % array.capacity();
        let len = len.min(array.capacity() - offset);
        let (present, missing) = present(array.members(), &missing);
        let rule = if old { WriteRule::LINUX_2_6_32 } else { WriteRule { rmw_level: level, ..WriteRule::LINUX_6_1 } };
        let mut planner = WritePlanner::new(array.members());
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let result = array.plan_write(offset, len, rule, &missing, &mut planner, |step| match step {
            WriteStep::Read(request) => reads.push(request),
            WriteStep::Write(request) => writes.push(request),
        });
        if missing.len() <= array.tolerance().guaranteed {
            prop_assert!(result.is_ok(), "{result:?}");
        }
        if result.is_err() {
            return Ok(());
        }
        prop_assert_eq!(result.unwrap(), (reads.len() as u32, writes.len() as u32));
        prop_assert!(reads.iter().chain(&writes).all(|request| present.contains(request.member)));
        let written = |place: Place| writes.iter().filter(|w| w.member == place.member && (w.offset..w.end()).contains(&place.offset)).count();
        let mut at = offset;
        while at < offset + len {
            let copies = array.places(at).filter(|place| present.contains(place.member));
            let parity = array.parity(at).unwrap();
            let parity = parity.into_iter().flat_map(|places| [Some(places.p), places.q]).flatten();
            for place in copies.chain(parity).filter(|place| present.contains(place.member)) {
                prop_assert_eq!(written(place), 1, "{:?} of byte {}", place, at);
            }
            at = (at / BLOCK + 1) * BLOCK;
        }
        if array.level().parities() == 0 {
            prop_assert!(reads.is_empty());
            prop_assert_eq!(writes.iter().map(|w| w.len).sum::<u64>() >= len, true);
        }
    }

    #[test]
    fn a_full_stripe_is_written_without_reading(array in arrays().prop_filter("with parity", |array| array.stripe_code(0).is_some()), stripe in 0u64..20) {
        let width = array.chunk().unwrap() * (u64::from(array.members() / array.config().groups) - u64::from(array.level().parities()));
        let mut methods = Vec::new();
        array.rows(stripe * width, width, |rows| {
            methods.push(rows.plan(&MemberSet::EMPTY, &MemberSet::EMPTY, WriteRule::LINUX_6_1).unwrap().method);
        }).unwrap();
        prop_assert_eq!(methods, [WriteMethod::FullStripe]);
    }
}

#[test]
fn absurd_requests_are_errors() {
    let array = Array::new(ArrayConfig::new(Level::Raid5, vec![1 << 30; 3])).unwrap();
    let mut merger = Merger::new(3);
    for (offset, len) in [
        (u64::MAX, 1),
        (u64::MAX, u64::MAX),
        (array.capacity(), 1),
        (0, array.capacity() + 1),
    ] {
        assert!(array.pieces(offset, len, |_| ()).is_err());
        assert!(
            array
                .plan_read(offset, len, &MemberSet::EMPTY, &mut merger, |_| ())
                .is_err()
        );
        assert!(array.rows(offset, len, |_| ()).is_err());
        assert!(array.locate(offset).is_err() || offset == 0);
    }
    assert_eq!(
        array.role_at(Place {
            member: 3,
            offset: 0
        }),
        Role::Unused
    );
    assert_eq!(
        array.role_at(Place {
            member: 0,
            offset: u64::MAX
        }),
        Role::Unused
    );
    assert!(
        array
            .plan_rebuild(9, 0, 1, &MemberSet::EMPTY, &mut merger, |_| ())
            .is_err()
    );
    assert_eq!(array.places(array.capacity()).count(), 0);
}

#[test]
fn configurations_that_md_refuses_are_refused() {
    let gib = 1 << 30;
    let refused = [
        ArrayConfig::new(Level::Raid6, vec![gib; 3]),
        ArrayConfig::new(Level::Raid5, vec![gib; 1]),
        ArrayConfig::new(Level::Raid5, vec![gib; 385]),
        ArrayConfig::new(Level::Raid5, vec![gib; 3]).chunk(12 * 1024),
        ArrayConfig::new(Level::Raid5, vec![gib; 3]).chunk(2048),
        ArrayConfig::new(Level::Raid5, vec![gib; 3]).chunk(0),
        ArrayConfig::new(Level::Raid0, vec![gib; 3]).chunk(0),
        ArrayConfig::new(Level::Raid10, vec![gib; 3]).chunk(96 * 1024),
        ArrayConfig::new(Level::Raid1, vec![gib; 2]).chunk(4096),
        ArrayConfig::new(Level::Raid5, vec![gib, gib, 4096]),
        ArrayConfig::new(Level::Raid0, vec![gib, 0]),
        ArrayConfig::new(Level::Raid0, vec![u64::MAX, u64::MAX]),
        ArrayConfig::new(Level::Raid5, vec![gib; 4]).groups(2),
        ArrayConfig::new(Level::Raid50, vec![gib; 7]),
        ArrayConfig::new(Level::Raid50, vec![gib; 6]).outer_chunk(3000),
        ArrayConfig::new(Level::Raid60, vec![gib; 8]).groups(4),
        ArrayConfig::new(Level::Raid50, vec![gib; 6]).groups(0),
        ArrayConfig::new(Level::Raid10, vec![gib; 2])
            .layout(Layout::parse(Level::Raid10, "n3").unwrap()),
        ArrayConfig::new(Level::Raid10, vec![gib; 4])
            .layout(Layout::parse(Level::Raid10, "n1").unwrap()),
        ArrayConfig::new(Level::Raid10, vec![gib; 4]).layout(Layout::Plain),
        ArrayConfig::new(Level::Raid5, vec![gib; 4])
            .layout(Layout::parse(Level::Raid6, "ddf-N-restart").unwrap()),
        ArrayConfig::new(Level::Raid0, vec![gib; 4]).layout(Layout::default_of(Level::Raid5)),
        ArrayConfig::new(Level::Raid6, vec![gib; 300]),
    ];
    for config in refused {
        let error = Array::new(config.clone()).expect_err(&format!("{config:?}"));
        assert!(!error.to_string().contains('\n'));
    }
}
