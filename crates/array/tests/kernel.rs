//! The maps against the kernel's own formulas, transcribed sector by sector with its names and its order
//! of steps (Linux 6.1), over many random arrays. Structured unlike the crate: no tables, no zones by
//! search, no inverses but the kernel's own.

use proptest::prelude::*;
use proptest::sample::select;
use spindle_array::{
    Array, ArrayConfig, ArrayError, CopyLayout, Layout, Level, ParityLayout, Place, Role,
};

const SECTOR: u64 = 512;

/// `raid5_compute_sector`: (device, sector, pd_idx, qd_idx, ddf_layout).
fn raid5_compute_sector(
    level: u32,
    algorithm: u32,
    raid_disks: i64,
    chunk: u64,
    r_sector: u64,
) -> (i64, u64, i64, i64, bool) {
    let data_disks = raid_disks - if level == 6 { 2 } else { 1 };
    let chunk_offset = r_sector % chunk;
    let chunk_number = r_sector / chunk;
    let stripe = chunk_number / data_disks as u64;
    let mut dd_idx = (chunk_number % data_disks as u64) as i64;
    let mut stripe2 = stripe as i64;
    let pd_idx;
    let (mut qd_idx, mut ddf_layout) = (-1, false);
    match (level, algorithm) {
        (4, _) => pd_idx = data_disks,
        (5, 0) => {
            pd_idx = data_disks - stripe2 % raid_disks;
            if dd_idx >= pd_idx {
                dd_idx += 1;
            }
        }
        (5, 1) => {
            pd_idx = stripe2 % raid_disks;
            if dd_idx >= pd_idx {
                dd_idx += 1;
            }
        }
        (5, 2) => {
            pd_idx = data_disks - stripe2 % raid_disks;
            dd_idx = (pd_idx + 1 + dd_idx) % raid_disks;
        }
        (5, 3) => {
            pd_idx = stripe2 % raid_disks;
            dd_idx = (pd_idx + 1 + dd_idx) % raid_disks;
        }
        (5, 4) => {
            pd_idx = 0;
            dd_idx += 1;
        }
        (5, 5) => pd_idx = data_disks,
        (6, 0 | 1 | 8 | 9) => {
            if algorithm == 9 {
                stripe2 += 1;
            }
            pd_idx = match algorithm {
                0 | 9 => raid_disks - 1 - stripe2 % raid_disks,
                _ => stripe2 % raid_disks,
            };
            qd_idx = pd_idx + 1;
            if pd_idx == raid_disks - 1 {
                dd_idx += 1;
                qd_idx = 0;
            } else if dd_idx >= pd_idx {
                dd_idx += 2;
            }
            ddf_layout = algorithm >= 8;
        }
        (6, 2) => {
            pd_idx = raid_disks - 1 - stripe2 % raid_disks;
            qd_idx = (pd_idx + 1) % raid_disks;
            dd_idx = (pd_idx + 2 + dd_idx) % raid_disks;
        }
        (6, 3) => {
            pd_idx = stripe2 % raid_disks;
            qd_idx = (pd_idx + 1) % raid_disks;
            dd_idx = (pd_idx + 2 + dd_idx) % raid_disks;
        }
        (6, 4) => {
            (pd_idx, qd_idx) = (0, 1);
            dd_idx += 2;
        }
        (6, 5) => (pd_idx, qd_idx) = (data_disks, data_disks + 1),
        (6, 10) => {
            pd_idx = raid_disks - 1 - stripe2 % raid_disks;
            qd_idx = (pd_idx + raid_disks - 1) % raid_disks;
            dd_idx = (pd_idx + 1 + dd_idx) % raid_disks;
            ddf_layout = true;
        }
        (6, 16 | 17) => {
            pd_idx = if algorithm == 16 {
                data_disks - stripe2 % (raid_disks - 1)
            } else {
                stripe2 % (raid_disks - 1)
            };
            if dd_idx >= pd_idx {
                dd_idx += 1;
            }
            qd_idx = raid_disks - 1;
        }
        (6, 18 | 19) => {
            pd_idx = if algorithm == 18 {
                data_disks - stripe2 % (raid_disks - 1)
            } else {
                stripe2 % (raid_disks - 1)
            };
            dd_idx = (pd_idx + 1 + dd_idx) % (raid_disks - 1);
            qd_idx = raid_disks - 1;
        }
        (6, 20) => {
            pd_idx = 0;
            dd_idx += 1;
            qd_idx = raid_disks - 1;
        }
        other => panic!("BUG: {other:?}"),
    }
    (
        dd_idx,
        stripe * chunk + chunk_offset,
        pd_idx,
        qd_idx,
        ddf_layout,
    )
}

/// `raid6_d0`, `raid6_next_disk` and `raid6_idx_to_slot`: the slot, and with it the power, of a disk in Q.
fn q_slot(disk: i64, disks: i64, pd_idx: i64, qd_idx: i64, ddf_layout: bool) -> i64 {
    let d0_idx = if ddf_layout || qd_idx == disks - 1 {
        0
    } else {
        qd_idx + 1
    };
    let (mut i, mut count) = (d0_idx, 0);
    loop {
        let slot = count;
        if ddf_layout {
            count += 1;
        }
        if i != pd_idx && i != qd_idx {
            if !ddf_layout {
                count += 1;
            }
            if i == disk {
                return slot;
            }
        }
        i = if i + 1 < disks { i + 1 } else { 0 };
        assert_ne!(i, d0_idx, "disk {disk} holds no data");
    }
}

/// `struct geom` and `setup_geo`, `calc_sectors`.
struct Geom {
    raid_disks: u64,
    near_copies: u64,
    far_copies: u64,
    far_offset: bool,
    far_set_size: u64,
    chunk: u64,
    stride: u64,
    dev_sectors: u64,
    array_sectors: u64,
}

impl Geom {
    fn new(layout: u32, disks: u64, chunk: u64, dev_sectors: u64) -> Geom {
        let (nc, fc) = (u64::from(layout & 255), u64::from(layout >> 8 & 255));
        let far_set_size = match layout >> 17 {
            0 => disks,
            1 => disks / fc,
            _ => fc * nc,
        };
        let far_offset = layout & 1 << 16 != 0;
        let size = dev_sectors / chunk / fc * disks / nc;
        let copies_size = (size * nc * fc).div_ceil(disks);
        Geom {
            raid_disks: disks,
            near_copies: nc,
            far_copies: fc,
            far_offset,
            far_set_size,
            chunk,
            stride: if far_offset {
                chunk
            } else {
                copies_size / fc * chunk
            },
            dev_sectors: copies_size * chunk,
            array_sectors: size * chunk,
        }
    }

    /// `__raid10_find_phys`: (devnum, addr) per slot.
    fn find_phys(&self, r_sector: u64) -> Vec<(u64, u64)> {
        let last_far_set_start = ((self.raid_disks / self.far_set_size) - 1) * self.far_set_size;
        let last_far_set_size = self.far_set_size + self.raid_disks % self.far_set_size;
        let chunk = r_sector / self.chunk * self.near_copies;
        let mut stripe = chunk / self.raid_disks;
        let mut dev = chunk % self.raid_disks;
        if self.far_offset {
            stripe *= self.far_copies;
        }
        let mut sector = r_sector % self.chunk + stripe * self.chunk;
        let mut devs = Vec::new();
        for _ in 0..self.near_copies {
            let (mut d, mut s) = (dev, sector);
            devs.push((d, s));
            for _ in 1..self.far_copies {
                let set = d / self.far_set_size;
                d += self.near_copies;
                if !self.raid_disks.is_multiple_of(self.far_set_size) && d > last_far_set_start {
                    d = (d - last_far_set_start) % last_far_set_size + last_far_set_start;
                } else {
                    d = d % self.far_set_size + self.far_set_size * set;
                }
                s += self.stride;
                devs.push((d, s));
            }
            dev += 1;
            if dev >= self.raid_disks {
                dev = 0;
                sector += self.chunk;
            }
        }
        devs
    }
}

/// `create_strip_zones`, `find_zone`, `map_sector` of `raid0.c`: (disk, sector) of a sector.
fn raid0_map(rdevs: &[u64], chunk: u64, layout: u32, bio_sector: u64) -> (usize, u64) {
    let sectors: Vec<u64> = rdevs.iter().map(|size| size / chunk * chunk).collect();
    let mut dev_start = 0;
    let mut zone_start = 0;
    loop {
        let devlist: Vec<usize> = (0..sectors.len())
            .filter(|j| sectors[*j] > dev_start)
            .collect();
        let smallest = devlist
            .iter()
            .map(|j| sectors[*j])
            .min()
            .expect("BUG: beyond the last zone");
        let nb_dev = devlist.len() as u64;
        let zone_end = zone_start + (smallest - dev_start) * nb_dev;
        if bio_sector < zone_end {
            let sector_offset = bio_sector - zone_start;
            // The original layout counts chunks from the start of the array.
            let sector = if layout == 1 {
                bio_sector
            } else {
                sector_offset
            };
            let sect_in_chunk = sector % chunk;
            let device_chunk = sector_offset / (chunk * nb_dev);
            let disk = devlist[(sector / chunk % nb_dev) as usize];
            return (disk, device_chunk * chunk + sect_in_chunk + dev_start);
        }
        (zone_start, dev_start) = (zone_end, smallest);
    }
}

fn chunks() -> impl Strategy<Value = u64> {
    (3u32..8).prop_map(|shift| 1 << shift)
}

/// Sectors to look at: the ends, and some within.
fn probes(array_sectors: u64, chunk: u64, seeds: &[u64]) -> Vec<u64> {
    let mut probes: Vec<u64> = seeds.iter().map(|seed| seed % array_sectors).collect();
    probes.extend(
        (0..array_sectors / chunk)
            .take(200)
            .map(|c| c * chunk + c % chunk),
    );
    probes.push(array_sectors - 1);
    probes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn parity_maps_are_the_kernels(
        (level, algorithm) in select(vec![
            (4u32, 0u32), (5, 0), (5, 1), (5, 2), (5, 3), (5, 4), (5, 5),
            (6, 0), (6, 1), (6, 2), (6, 3), (6, 4), (6, 5), (6, 8), (6, 9), (6, 10),
            (6, 16), (6, 17), (6, 18), (6, 19), (6, 20),
        ]),
        more in 0i64..13,
        chunk in chunks(),
        stripes in 1u64..80,
        spare in 0u64..64,
        seeds in prop::collection::vec(any::<u64>(), 20),
    ) {
        let disks = if level == 6 { 4 } else { 2 } + more;
        let data_disks = disks as u64 - if level == 6 { 2 } else { 1 };
        let spindle_level = [Level::Raid4, Level::Raid5, Level::Raid6][level as usize - 4];
        let layout = Layout::from_md(spindle_level, i64::from(algorithm)).unwrap();
        let size = stripes * chunk + spare % chunk;
        let config = ArrayConfig::new(spindle_level, vec![size * SECTOR; disks as usize]).layout(layout).chunk(chunk * SECTOR);
        let array = Array::new(config).unwrap();
        prop_assert_eq!(array.capacity(), stripes * chunk * data_disks * SECTOR);
        prop_assert_eq!(array.component(), stripes * chunk * SECTOR);
        for sector in probes(array.capacity() / SECTOR, chunk, &seeds) {
            let (dev, new_sector, pd, qd, ddf) = raid5_compute_sector(level, algorithm, disks, chunk, sector);
            let place = |member: i64| Place { member: member as u32, offset: new_sector * SECTOR };
            prop_assert_eq!(array.places(sector * SECTOR).collect::<Vec<_>>(), [place(dev)]);
            prop_assert_eq!(array.role_at(place(dev)), Role::Data { logical: sector * SECTOR, copy: 0 });
            let stripe = new_sector / chunk;
            prop_assert_eq!(array.role_at(place(pd)), Role::P { stripe });
            let parity = array.parity(sector * SECTOR).unwrap().unwrap();
            prop_assert_eq!(parity.p, place(pd));
            prop_assert_eq!(parity.q, (qd >= 0).then(|| place(qd)));
            if qd >= 0 {
                prop_assert_eq!(array.role_at(place(qd)), Role::Q { stripe });
                prop_assert_eq!(i64::from(parity.q_exponent), q_slot(dev, disks, pd, qd, ddf));
            }
        }
    }

    #[test]
    fn raid10_maps_are_the_kernels(
        near in 1u32..5,
        far in 1u32..5,
        offset in any::<bool>(),
        sets in 0u32..3,
        more in 0u64..14,
        chunk in chunks(),
        size in 1u64..4000,
        seeds in prop::collection::vec(any::<u64>(), 20),
    ) {
        let copies = u64::from(near * far);
        prop_assume!(copies >= 2);
        let disks = copies + more;
        let word = near | far << 8 | u32::from(offset) << 16 | sets << 17;
        let dev_sectors = (size + chunk * u64::from(far)) / chunk * chunk;
        let geom = Geom::new(word, disks, chunk, dev_sectors);
        let layout = Layout::from_md(Level::Raid10, i64::from(word)).unwrap();
        let config = ArrayConfig::new(Level::Raid10, vec![dev_sectors * SECTOR; disks as usize]).layout(layout).chunk(chunk * SECTOR);
        let all: Vec<Vec<(u64, u64)>> =
            (0..geom.array_sectors / chunk).map(|c| geom.find_phys(c * chunk)).collect();
        let array = match Array::new(config) {
            Ok(array) => array,
            Err(ArrayError::Overlap { .. }) => {
                // Refused only where the kernel itself would overwrite one chunk with another, or would
                // if members were a few stripes longer.
                let longer = Geom::new(word, disks, chunk, dev_sectors + 40 * chunk * u64::from(far));
                let mut places: Vec<(u64, u64)> =
                    (0..longer.array_sectors / chunk).flat_map(|c| longer.find_phys(c * chunk)).collect();
                places.sort_unstable();
                let total = places.len();
                places.dedup();
                prop_assert!(places.len() < total, "{layout} over {disks} refused without cause");
                return Ok(());
            }
            Err(other) => panic!("{other}"),
        };
        prop_assert_eq!(array.capacity(), geom.array_sectors * SECTOR);
        prop_assert_eq!(array.component(), geom.dev_sectors * SECTOR);
        for sector in probes(geom.array_sectors, chunk, &seeds) {
            let expected: Vec<Place> = geom
                .find_phys(sector)
                .into_iter()
                .map(|(member, sector)| Place { member: member as u32, offset: sector * SECTOR })
                .collect();
            prop_assert_eq!(&array.places(sector * SECTOR).collect::<Vec<_>>(), &expected);
            for (copy, place) in (0..).zip(expected) {
                prop_assert_eq!(array.role_at(place), Role::Data { logical: sector * SECTOR, copy });
            }
        }
        // And everything else is unused.
        let mut used: Vec<(u64, u64)> = all.into_iter().flatten().collect();
        used.sort_unstable();
        for dev in 0..disks {
            for row in 0..dev_sectors / chunk {
                let role = array.role_at(Place { member: dev as u32, offset: row * chunk * SECTOR });
                prop_assert_eq!(role == Role::Unused, used.binary_search(&(dev, row * chunk)).is_err());
            }
        }
    }

    #[test]
    fn raid0_maps_are_the_kernels(
        sizes in prop::collection::vec(1u64..40, 1..9),
        odd in prop::collection::vec(0u64..64, 9),
        chunk_kib in select(vec![4u64, 8, 16, 64, 5, 12, 20, 24, 68]),
        word in 1u32..3,
        seeds in prop::collection::vec(any::<u64>(), 20),
    ) {
        let chunk = chunk_kib * 2;
        let sizes: Vec<u64> = sizes.iter().zip(&odd).map(|(size, odd)| size * chunk + odd % chunk).collect();
        let layout = Layout::from_md(Level::Raid0, i64::from(word)).unwrap();
        let bytes = sizes.iter().map(|size| size * SECTOR).collect();
        let config = ArrayConfig::new(Level::Raid0, bytes).layout(layout).chunk(chunk * SECTOR);
        let array = Array::new(config).unwrap();
        // raid0_size, after create_strip_zones has rounded each member down to its chunks
        let expected: u64 = sizes.iter().map(|size| (size / chunk * chunk) & !(chunk - 1)).sum();
        prop_assert_eq!(array.capacity(), expected * SECTOR);
        prop_assume!(expected > 0);
        for sector in probes(expected, chunk, &seeds).into_iter().filter(|sector| *sector < expected) {
            let (disk, at) = raid0_map(&sizes, chunk, word, sector);
            let place = Place { member: disk as u32, offset: at * SECTOR };
            prop_assert_eq!(array.places(sector * SECTOR).collect::<Vec<_>>(), [place]);
            prop_assert_eq!(array.role_at(place), Role::Data { logical: sector * SECTOR, copy: 0 });
        }
    }

    #[test]
    fn linear_maps_go_through_the_members(
        sizes in prop::collection::vec(1u64..5000, 1..9),
        rounding_kib in select(vec![0u64, 4, 64, 100]),
        seeds in prop::collection::vec(any::<u64>(), 20),
    ) {
        let rounding = (rounding_kib * 2).max(1);
        let sizes: Vec<u64> = sizes.iter().map(|size| size + rounding).collect();
        let bytes = sizes.iter().map(|size| size * SECTOR).collect();
        let array = Array::new(ArrayConfig::new(Level::Linear, bytes).chunk(rounding_kib * 1024)).unwrap();
        let kept: Vec<u64> = sizes.iter().map(|size| size / rounding * rounding).collect();
        prop_assert_eq!(array.capacity(), kept.iter().sum::<u64>() * SECTOR);
        for seed in seeds {
            let mut sector = seed % (array.capacity() / SECTOR);
            let logical = sector * SECTOR;
            let mut disk = 0;
            while sector >= kept[disk] {
                sector -= kept[disk];
                disk += 1;
            }
            let place = Place { member: disk as u32, offset: sector * SECTOR };
            prop_assert_eq!(array.places(logical).collect::<Vec<_>>(), [place]);
            prop_assert_eq!(array.role_at(place), Role::Data { logical, copy: 0 });
        }
    }
}

#[test]
fn layouts_that_overlap_in_md_itself_are_refused() {
    let over = |layout: CopyLayout, members| {
        Array::new(
            ArrayConfig::new(Level::Raid10, vec![1 << 30; members]).layout(Layout::Copies(layout)),
        )
    };
    assert!(matches!(
        over(CopyLayout::new(2, 2, true), 5),
        Err(ArrayError::Overlap { .. })
    ));
    assert!(over(CopyLayout::new(2, 2, true), 6).is_ok());
    assert!(over(CopyLayout::new(2, 2, false), 5).is_ok());
}

#[test]
fn every_raid6_layout_has_its_own_name() {
    let mut names: Vec<&str> = ParityLayout::ALL
        .iter()
        .map(|layout| layout.name())
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 14);
}
