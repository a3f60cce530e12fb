//! Every way in which a block can be wrong is found and called by its name.

use proptest::prelude::*;
use spindle_verify::{
    Expected, Kind, SECTOR, Stamp, classify, classify_zeroes, is_sealed, prepare, seal,
    seal_prepared,
};

const RUN: u64 = 0x1234_5678_9abc_def0;

fn stamp(generation: u32) -> Stamp {
    Stamp {
        run: RUN,
        file: 3,
        generation,
        offset: 1 << 33,
    }
}

fn block(stamp: &Stamp, sectors: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..sectors * SECTOR)
        .map(|at| (at as u64 * 0x9e37 + u64::from(stamp.generation)) as u8)
        .collect();
    seal(&mut bytes, stamp);
    bytes
}

fn kind(block: &[u8], stamp: &Stamp) -> Option<Kind> {
    classify(block, &Expected::exactly(stamp))
        .err()
        .map(|fault| fault.kind)
}

fn foreign(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    (0..length)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect()
}

#[test]
fn what_was_written_is_right_whatever_its_size() {
    for sectors in [1, 2, 3, 7, 8, 16, 17, 33, 256, 2048] {
        let stamp = stamp(1);
        let bytes = block(&stamp, sectors);
        assert!(is_sealed(&bytes, &stamp));
        assert_eq!(classify(&bytes, &Expected::exactly(&stamp)), Ok(1));
    }
}

#[test]
fn a_prepared_payload_gives_the_same_block() {
    let stamp = stamp(9);
    let mut prepared = vec![0; 8];
    let mut bytes = foreign(4096, 5);
    prepare(&bytes, &mut prepared);
    let mut whole = bytes.clone();
    seal(&mut whole, &stamp);
    seal_prepared(&mut bytes, &prepared, &stamp);
    assert_eq!(bytes, whole);
    // And again over the old stamp: only the payload counts.
    let next = Stamp {
        generation: 10,
        ..stamp
    };
    seal_prepared(&mut bytes, &prepared, &next);
    assert!(is_sealed(&bytes, &next) && !is_sealed(&bytes, &stamp));
}

#[test]
fn nothing_of_the_run_was_never_written() {
    assert_eq!(kind(&[0; 4096], &stamp(1)), Some(Kind::NeverWritten));
    assert_eq!(kind(&foreign(4096, 1), &stamp(1)), Some(Kind::NeverWritten));
    assert_eq!(kind(&foreign(4096, 1), &stamp(2)), Some(Kind::NeverWritten));
    // The content of an earlier run counts as content from before.
    let other = Stamp { run: 5, ..stamp(1) };
    assert_eq!(kind(&block(&other, 8), &stamp(1)), Some(Kind::NeverWritten));
    let mut mixed = block(&other, 8);
    mixed[..1024].fill(0);
    assert_eq!(kind(&mixed, &stamp(1)), Some(Kind::NeverWritten));
}

#[test]
fn zeroes_where_the_run_wrote_before_were_zeroed() {
    assert_eq!(kind(&[0; 4096], &stamp(2)), Some(Kind::Zeroed));
    let mut bytes = block(&stamp(2), 8);
    bytes[512..1536].fill(0);
    let fault = classify(&bytes, &Expected::exactly(&stamp(2))).expect_err("zeroed");
    assert_eq!(
        (fault.kind, fault.sectors, fault.first),
        (Kind::Zeroed, 2, 1)
    );
}

#[test]
fn an_earlier_generation_is_stale_and_says_which() {
    let fault = classify(&block(&stamp(4), 8), &Expected::exactly(&stamp(6))).expect_err("stale");
    assert_eq!(
        (fault.kind, fault.sectors, fault.first),
        (Kind::Stale, 8, 0)
    );
    assert_eq!(fault.found, Some(stamp(4)));
    assert_eq!(
        fault.to_string(),
        "stale: 8 sectors from sector 0 on, generation 4"
    );
}

#[test]
fn any_of_several_generations_may_be_allowed() {
    let expected = Expected {
        generations: 3..=5,
        ..Expected::exactly(&stamp(5))
    };
    for generation in 3..=5 {
        assert_eq!(
            classify(&block(&stamp(generation), 8), &expected),
            Ok(generation)
        );
    }
    assert_eq!(
        classify(&block(&stamp(2), 8), &expected).map_err(|fault| fault.kind),
        Err(Kind::Stale)
    );
    let mut torn = block(&stamp(5), 8);
    torn[2048..].copy_from_slice(&block(&stamp(4), 8)[2048..]);
    assert_eq!(
        classify(&torn, &expected).map_err(|fault| fault.kind),
        Err(Kind::Torn)
    );
}

#[test]
fn a_torn_block_tells_which_sectors_are_old() {
    let mut bytes = block(&stamp(6), 8);
    bytes[5 * 512..].copy_from_slice(&block(&stamp(5), 8)[5 * 512..]);
    let fault = classify(&bytes, &Expected::exactly(&stamp(6))).expect_err("torn");
    assert_eq!((fault.kind, fault.sectors, fault.first), (Kind::Torn, 3, 5));
    assert_eq!(fault.found, Some(stamp(5).of_sector(5)));
    // The first write of all, torn over what was there before.
    for before in [vec![0; 4096], foreign(4096, 3)] {
        let mut bytes = block(&stamp(1), 8);
        bytes[..512].copy_from_slice(&before[..512]);
        assert_eq!(kind(&bytes, &stamp(1)), Some(Kind::Torn));
    }
}

#[test]
fn a_block_of_another_place_is_misplaced_and_says_whence() {
    let other = Stamp {
        offset: 4096,
        ..stamp(2)
    };
    let fault = classify(&block(&other, 8), &Expected::exactly(&stamp(2))).expect_err("misplaced");
    assert_eq!((fault.kind, fault.sectors), (Kind::Misplaced, 8));
    assert_eq!(
        fault.to_string(),
        "misplaced: 8 sectors from sector 0 on, of offset 4096 of file 3"
    );
    let other_file = Stamp {
        file: 4,
        ..stamp(2)
    };
    assert_eq!(
        kind(&block(&other_file, 8), &stamp(2)),
        Some(Kind::Misplaced)
    );
    // Two sectors of one block exchanged.
    let mut bytes = block(&stamp(2), 8);
    let (left, right) = bytes.split_at_mut(512);
    left.swap_with_slice(&mut right[..512]);
    let fault = classify(&bytes, &Expected::exactly(&stamp(2))).expect_err("misplaced");
    assert_eq!(
        (fault.kind, fault.sectors, fault.first),
        (Kind::Misplaced, 2, 0)
    );
}

#[test]
fn something_else_in_some_sectors_is_corrupt() {
    let mut bytes = block(&stamp(2), 8);
    bytes[1024..1536].copy_from_slice(&foreign(512, 8));
    let fault = classify(&bytes, &Expected::exactly(&stamp(2))).expect_err("corrupt");
    assert_eq!(
        (fault.kind, fault.sectors, fault.first),
        (Kind::Corrupt, 1, 2)
    );
    // Zeroes that do not fill whole sectors are damage as well.
    let mut bytes = block(&stamp(2), 8);
    bytes[100..700].fill(0);
    assert_eq!(kind(&bytes, &stamp(2)), Some(Kind::Corrupt));
}

#[test]
fn a_zeroed_block_must_hold_zeroes() {
    let expected = Expected::exactly(&stamp(3));
    let kind = |bytes: &[u8]| {
        classify_zeroes(bytes, &expected)
            .err()
            .map(|fault| fault.kind)
    };
    assert_eq!(kind(&[0; 4096]), None);
    assert_eq!(kind(&block(&stamp(3), 8)), Some(Kind::Stale));
    assert_eq!(kind(&foreign(4096, 2)), Some(Kind::NeverWritten));
    let mut half = block(&stamp(3), 8);
    half[..2048].fill(0);
    assert_eq!(kind(&half), Some(Kind::Torn));
    let mut bit = [0; 4096];
    bit[777] = 1;
    assert_eq!(kind(&bit), Some(Kind::Corrupt));
    let other = Stamp {
        offset: 0,
        ..stamp(3)
    };
    assert_eq!(kind(&block(&other, 8)), Some(Kind::Misplaced));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_flipped_bit_is_always_found_and_corrupt(sectors in 1_usize..20, at in any::<usize>(), generation in any::<u32>()) {
        let stamp = stamp(generation);
        let mut bytes = block(&stamp, sectors);
        let bit = at % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!is_sealed(&bytes, &stamp));
        let fault = classify(&bytes, &Expected::exactly(&stamp)).expect_err("a bit is flipped");
        prop_assert_eq!((fault.kind, fault.sectors, fault.first as usize), (Kind::Corrupt, 1, bit / 4096));
    }

    #[test]
    fn any_mixture_of_two_writes_is_torn(sectors in 2_usize..20, mask in any::<u64>(), new in 2_u32.., back in 1_u32..5) {
        let old = new.saturating_sub(back).max(1);
        prop_assume!(old < new);
        let (fresh, stale) = (block(&stamp(new), sectors), block(&stamp(old), sectors));
        let mask = mask % ((1 << sectors) - 2) + 1;
        let mut bytes = fresh;
        for sector in (0..sectors).filter(|sector| mask >> sector & 1 == 1) {
            let part = sector * SECTOR..(sector + 1) * SECTOR;
            bytes[part.clone()].copy_from_slice(&stale[part]);
        }
        let fault = classify(&bytes, &Expected::exactly(&stamp(new))).expect_err("it is torn");
        prop_assert_eq!((fault.kind, fault.sectors, fault.first), (Kind::Torn, mask.count_ones(), mask.trailing_zeros()));
    }

    #[test]
    fn any_bytes_of_any_length_can_be_judged(
        bytes in proptest::collection::vec(any::<u8>(), 0..3000),
        run in any::<u64>(), file in any::<u32>(), offset in any::<u64>(), oldest in any::<u32>(), newest in any::<u32>(),
    ) {
        let expected = Expected { run, file, offset, generations: oldest..=newest };
        let fault = classify(&bytes, &expected).expect_err("nobody sealed it");
        prop_assert!(fault.sectors as usize <= bytes.len() / SECTOR + 1);
        prop_assert!(!fault.to_string().is_empty());
        let _ = classify_zeroes(&bytes, &expected);
    }

    #[test]
    fn pieces_of_right_blocks_put_together_anyhow_are_judged_and_never_right(
        cuts in proptest::collection::vec((0_usize..4, 0_usize..8, 0_usize..8, 1_usize..600), 1..6), odd in 0_usize..700,
    ) {
        let sources = [
            block(&stamp(3), 8),
            block(&Stamp { offset: 0, ..stamp(2) }, 8),
            vec![0; 4096],
            foreign(4096, 77),
        ];
        let mut bytes = block(&stamp(2), 8);
        for (source, from, to, length) in cuts {
            let (from, to) = (from * SECTOR + odd % 64, to * SECTOR);
            let length = length.min(4096 - from).min(4096 - to);
            bytes[to..to + length].copy_from_slice(&sources[source][from..from + length]);
        }
        let right = bytes == block(&stamp(2), 8);
        prop_assert_eq!(classify(&bytes, &Expected::exactly(&stamp(2))).is_ok(), right);
        prop_assert_eq!(is_sealed(&bytes, &stamp(2)), right);
    }
}
