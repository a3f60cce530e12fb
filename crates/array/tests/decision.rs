//! The write decision against the kernel's own passes over a stripe, transcribed flag by flag: counters and
//! flags of one `stripe_head`, handled again and again until it is written.

use proptest::prelude::*;
use spindle_array::{MemberSet, RmwLevel, Rows, WriteMethod, WriteRule};

#[derive(Clone, Copy, Default)]
struct Dev {
    towrite: bool,
    overwrite: bool,
    insync: bool,
    uptodate: bool,
    wantcompute: bool,
    locked: bool,
    /// Was read from the device at some time.
    read: bool,
}

struct Stripe {
    dev: Vec<Dev>,
    pd_idx: usize,
    qd_idx: Option<usize>,
    failed_num: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kernel {
    V2_6_32,
    V6_1(RmwLevel),
}

impl Stripe {
    fn disks(&self) -> usize {
        self.dev.len()
    }

    fn is_parity(&self, i: usize) -> bool {
        i == self.pd_idx || Some(i) == self.qd_idx
    }

    fn uptodate(&self) -> usize {
        self.dev
            .iter()
            .filter(|dev| dev.uptodate || dev.wantcompute)
            .count()
    }

    /// `need_this_block` of 6.1; the condition of `fetch_block5` and `fetch_block6` of 2.6.32.
    fn need_this_block(&self, i: usize, kernel: Kernel) -> bool {
        let dev = &self.dev[i];
        if dev.locked || dev.uptodate || dev.wantcompute {
            return false;
        }
        if dev.towrite && !dev.overwrite {
            return true;
        }
        if self.failed_num.is_empty() {
            return false;
        }
        let fdev: Vec<&Dev> = self.failed_num.iter().map(|f| &self.dev[*f]).collect();
        match kernel {
            Kernel::V2_6_32 if self.qd_idx.is_some() => true,
            Kernel::V2_6_32 => fdev[0].towrite && !fdev[0].overwrite,
            Kernel::V6_1(rmw_level) => {
                let mut force_rcw = rmw_level == RmwLevel::Never;
                let known = |dev: &Dev| dev.uptodate || dev.wantcompute;
                for (f, dev) in self.failed_num.iter().zip(&fdev) {
                    if dev.towrite && !known(dev) && !dev.overwrite {
                        return true;
                    }
                    if fdev.len() >= 2 && (dev.towrite || self.is_parity(*f)) && !known(dev) {
                        force_rcw = true;
                    }
                }
                force_rcw
                    && self
                        .failed_num
                        .iter()
                        .zip(&fdev)
                        .any(|(f, dev)| !self.is_parity(*f) && !known(dev) && !dev.overwrite)
            }
        }
    }

    fn handle_stripe_fill(&mut self, kernel: Kernel) {
        let disks = self.disks();
        for i in (0..disks).rev() {
            if !self.need_this_block(i, kernel) {
                continue;
            }
            let failed = self.failed_num.contains(&i);
            let p_of_six = kernel != Kernel::V2_6_32 && self.qd_idx.is_some() && i == self.pd_idx;
            if self.uptodate() == disks - 1 && (failed || p_of_six) {
                self.dev[i].wantcompute = true;
                return;
            } else if self.uptodate() + 2 == disks && self.failed_num.len() >= 2 {
                for dev in &mut self.dev {
                    dev.wantcompute |= !dev.uptodate;
                }
                return;
            } else if self.dev[i].insync {
                self.dev[i].locked = true;
                self.dev[i].read = true;
            }
        }
    }

    /// Returns the method once the stripe can be written.
    fn handle_stripe_dirtying(&mut self, kernel: Kernel) -> Option<WriteMethod> {
        let disks = self.disks();
        let old = |s: &Stripe, i: usize| {
            let dev = &s.dev[i];
            (dev.towrite || s.is_parity(i)) && !dev.locked && !dev.uptodate && !dev.wantcompute
        };
        let rest = |s: &Stripe, i: usize| {
            let dev = &s.dev[i];
            !dev.overwrite && !s.is_parity(i) && !dev.locked && !dev.uptodate && !dev.wantcompute
        };
        let (mut rmw, mut rcw) = (0, 0);
        let forced = match kernel {
            Kernel::V2_6_32 => self.qd_idx.is_some(),
            Kernel::V6_1(level) => level == RmwLevel::Never,
        };
        if forced {
            (rcw, rmw) = (1, 2);
        } else {
            for i in (0..disks).rev() {
                let cost = if self.dev[i].insync { 1 } else { 2 * disks };
                if old(self, i) {
                    rmw += cost;
                }
                if rest(self, i) {
                    rcw += cost;
                }
            }
        }
        let prefer = kernel == Kernel::V6_1(RmwLevel::Preferred);
        if (rmw < rcw || (rmw == rcw && prefer)) && rmw > 0 {
            for i in (0..disks).rev() {
                if old(self, i) && self.dev[i].insync {
                    self.dev[i].locked = true;
                    self.dev[i].read = true;
                }
            }
        }
        if (rcw < rmw || (rcw == rmw && !prefer)) && rcw > 0 {
            rcw = 0;
            for i in (0..disks).rev() {
                if rest(self, i) {
                    rcw += 1;
                    if self.dev[i].insync {
                        self.dev[i].locked = true;
                        self.dev[i].read = true;
                    }
                }
            }
        }
        let locked = self.dev.iter().any(|dev| dev.locked);
        let ready = if forced {
            rcw == 0
        } else {
            rcw == 0 || rmw == 0
        };
        (!locked && ready).then_some(if rcw == 0 {
            WriteMethod::ReconstructWrite
        } else {
            WriteMethod::ReadModifyWrite
        })
    }

    /// Passes until it is written; reads complete between them.
    fn write(&mut self, kernel: Kernel) -> WriteMethod {
        for _ in 0..20 {
            let partial = self.dev.iter().any(|dev| dev.towrite && !dev.overwrite);
            let degraded =
                !self.failed_num.is_empty() && (kernel != Kernel::V2_6_32 || self.qd_idx.is_some());
            if partial || degraded {
                self.handle_stripe_fill(kernel);
            }
            if let Some(method) = self.handle_stripe_dirtying(kernel) {
                return method;
            }
            for dev in &mut self.dev {
                dev.uptodate |= dev.locked || dev.wantcompute;
                (dev.locked, dev.wantcompute) = (false, false);
            }
        }
        panic!("the kernel would never write this stripe");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    #[test]
    fn reads_and_method_are_the_kernels(
        six in any::<bool>(),
        more in 0usize..9,
        p in any::<usize>(),
        // per member: 0-2 not written, 3 in part, 4-5 as a whole
        writes in prop::collection::vec(0u8..6, 14),
        cached in prop::collection::vec(0u8..4, 14),
        lost in prop::collection::vec(any::<usize>(), 0..3),
        kernel in prop::sample::select(vec![
            Kernel::V2_6_32,
            Kernel::V6_1(RmwLevel::Cheaper),
            Kernel::V6_1(RmwLevel::Never),
            Kernel::V6_1(RmwLevel::Preferred),
        ]),
    ) {
        let disks = if six { 4 } else { 3 } + more;
        let pd_idx = p % disks;
        let qd_idx = six.then_some((pd_idx + 1) % disks);
        let mut failed_num: Vec<usize> = lost.iter().map(|member| member % disks).collect();
        failed_num.sort_unstable();
        failed_num.dedup();
        failed_num.truncate(if six { 2 } else { 1 });
        let is_parity = |i: usize| i == pd_idx || Some(i) == qd_idx;
        let dev = |i: usize| Dev {
            towrite: writes[i] >= 3 && !is_parity(i),
            overwrite: writes[i] >= 4 && !is_parity(i),
            insync: !failed_num.contains(&i),
            // A block of a lost member cannot have been read.
            uptodate: cached[i] == 0 && !failed_num.contains(&i),
            ..Dev::default()
        };
        let mut stripe = Stripe { dev: (0..disks).map(dev).collect(), pd_idx, qd_idx, failed_num };
        prop_assume!(stripe.dev.iter().any(|dev| dev.towrite));
        let set = |which: &dyn Fn(&Dev) -> bool| -> MemberSet {
            (0..).zip(&stripe.dev).filter(|(_, dev)| which(dev)).map(|(i, _)| i).collect()
        };
        let rows = Rows {
            stripe: 0,
            offset: 0,
            len: 4096,
            members: MemberSet::first(disks as u32),
            p: pd_idx as u32,
            q: qd_idx.map(|q| q as u32),
            full: set(&|dev| dev.overwrite),
            partial: set(&|dev| dev.towrite && !dev.overwrite),
        };
        let rule = match kernel {
            Kernel::V2_6_32 => WriteRule::LINUX_2_6_32,
            Kernel::V6_1(rmw_level) => WriteRule { rmw_level, ..WriteRule::LINUX_6_1 },
        };
        let (cached, missing) = (set(&|dev| dev.uptodate), set(&|dev| !dev.insync));
        let written = set(&|dev| dev.towrite);
        let plan = rows.plan(&cached, &missing, rule).unwrap();
        let method = stripe.write(kernel);
        let reads: MemberSet = (0..).zip(&stripe.dev).filter(|(_, dev)| dev.read).map(|(i, _)| i).collect();
        prop_assert_eq!(plan.reads, reads);
        let parity: MemberSet = [Some(rows.p), rows.q].into_iter().flatten().collect();
        prop_assert_eq!(plan.writes, written.with(&parity).without(&missing));
        if plan.method != WriteMethod::FullStripe {
            prop_assert_eq!(plan.method, method);
        }
    }
}
