//! The differences between kernels.

use serde::{Serialize, Serializer};
use spindle_array::{WriteRule, balance::BalanceRule};

use crate::cache::ReadAheadRule;
use crate::engine::StripeRules;

/// A kernel version, as far as rules depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kernel {
    version: (u16, u16, u16),
}

impl Kernel {
    /// The kernel that is modelled unless a machine names another.
    pub const DEFAULT: Kernel = Kernel::new(6, 1, 0);

    /// Version `a.b.c`.
    #[must_use]
    pub const fn new(a: u16, b: u16, c: u16) -> Kernel {
        Kernel { version: (a, b, c) }
    }

    /// Reads `6.1` or `2.6.25`; 2.6.0 or later.
    #[must_use]
    pub fn parse(text: &str) -> Option<Kernel> {
        let mut parts = text.split('.').map(str::parse::<u16>);
        let (a, b) = (parts.next()?.ok()?, parts.next()?.ok()?);
        let c = parts.next().map_or(Some(0), Result::ok)?;
        let kernel = Kernel::new(a, b, c);
        (parts.next().is_none() && kernel >= Kernel::new(2, 6, 0)).then_some(kernel)
    }

    /// blk-mq: tags instead of two pools of requests. The drivers of disks changed over in 5.0.
    #[must_use]
    pub fn multi_queue(self) -> bool {
        self >= Kernel::new(5, 0, 0)
    }

    /// Threads that a program starts one after another on one processor run in another order: the first six last, in turn.
    /// The more wait already, the less a new one is put behind the others, until eight run (`START_DEBIT` and
    /// `sched_nr_latency`: `place_entity` and `sched_vslice` in `kernel/sched/fair.c`, 6.1). 6.6 has another scheduler;
    /// kernels before blk-mq were not looked at.
    #[must_use]
    pub fn runs_first_threads_last(self) -> bool {
        self.multi_queue() && self < Kernel::new(6, 6, 0)
    }

    /// fsync of a block device empties the drive's write cache, and md passes flushes on (2.6.33: `blkdev_issue_flush`
    /// in `block_fsync`, "md: support barrier requests on all personalities").
    #[must_use]
    pub fn flushes(self) -> bool {
        self >= Kernel::new(2, 6, 33)
    }

    /// Reads and writes have requests of their own (`get_request`); since 2.6.30 synchronous ones and others have ("block:
    /// change the request allocation/congestion logic to be sync/async based").
    #[must_use]
    pub fn counts_requests_by_direction(self) -> bool {
        self < Kernel::new(2, 6, 30)
    }

    /// A queue holds up what comes while its elevator is empty, until there is more or someone waits for it
    /// (`blk_plug_device`; until 2.6.39: "block: initial patch for on-stack per-task plugging").
    #[must_use]
    pub(crate) fn plugs_queues(self) -> bool {
        self < Kernel::new(2, 6, 39)
    }

    /// Read-ahead with a current window and one ahead of it (`page_cache_readahead`), until 2.6.23 ("readahead: on-demand
    /// readahead logic").
    #[must_use]
    pub(crate) fn read_ahead_rule(self) -> ReadAheadRule {
        if self < Kernel::new(2, 6, 10) {
            ReadAheadRule::Linux2_6_5
        } else if self < Kernel::new(2, 6, 23) {
            ReadAheadRule::Linux2_6_18
        } else {
            ReadAheadRule::OnDemand
        }
    }

    /// Readers that wait for a semaphore get it together, also those behind a writer (5.3 "locking/rwsem: Wake up almost all
    /// readers in wait queue"). In the lab's traces writers that wait go before them.
    #[must_use]
    pub fn wakes_all_readers(self) -> bool {
        self >= Kernel::new(5, 3, 0)
    }

    /// fsync has the lock of the file (`i_mutex`) until its log is on the drives (`do_fsync`; until 3.1: "fs: push i_mutex
    /// and filemap_write_and_wait down into ->fsync() handlers"), and direct reads of XFS take it for a moment before
    /// they are sent (`xfs_read`).
    #[must_use]
    pub fn syncs_lock_files(self) -> bool {
        self < Kernel::new(3, 1, 0)
    }

    /// A barrier waits until the drive has nothing to do, and everything else waits for the barrier
    /// (`QUEUE_ORDERED_DRAIN`, 2.6.16 to 2.6.36).
    #[must_use]
    pub fn drains_for_barriers(self) -> bool {
        (Kernel::new(2, 6, 16)..Kernel::new(2, 6, 37)).contains(&self)
    }

    /// md passes barriers on for every level (2.6.33).
    #[must_use]
    pub fn md_takes_barriers(self) -> bool {
        self >= Kernel::new(2, 6, 33)
    }

    /// Percentages of the memory for dirty pages: background and limit (2.6.22: "VM: lower the default dirty_ratio").
    #[must_use]
    pub fn dirty_ratios(self) -> (u8, u8) {
        if self < Kernel::new(2, 6, 22) {
            (10, 40)
        } else if self < Kernel::new(2, 6, 30) {
            (5, 10)
        } else {
            (10, 20)
        }
    }

    /// Direct writes count as synchronous (2.6.18, `fs/direct-io.c`: `WRITE_SYNC`; since 2.6.30 `WRITE_ODIRECT`). md's
    /// RAID10 hands the flag on.
    #[must_use]
    pub fn direct_writes_are_sync(self) -> bool {
        self >= Kernel::new(2, 6, 18)
    }

    /// Pages that an fsync writes count as synchronous (2.6.30: "block_write_full_page: Use synchronous writes for
    /// WBC_SYNC_ALL writebacks").
    #[must_use]
    pub(crate) fn synced_pages_are_sync(self) -> bool {
        self >= Kernel::new(2, 6, 30)
    }

    /// A thread writes to the mirrors of RAID1 and RAID10 itself, and not md's thread (3.6: "md/raid10: submit IO from
    /// originating thread instead of md thread").
    #[must_use]
    pub(crate) fn writes_mirrors_itself(self) -> bool {
        self >= Kernel::new(3, 6, 0)
    }

    /// That is so for pages of the cache too, without a bitmap (6.1.y, backported from 6.5: "md/raid1-10: submit write io
    /// directly if bitmap is not enabled").
    #[must_use]
    pub(crate) fn writes_pages_to_mirrors_itself(self) -> bool {
        self >= Kernel::new(6, 1, 0)
    }

    /// md passes on that a read may not wait for a free request (5.17: "md: add support for REQ_NOWAIT").
    #[must_use]
    pub(crate) fn md_passes_on_nowait(self) -> bool {
        self >= Kernel::new(5, 17, 0)
    }

    /// RAID5 and RAID6 pass on that a write is synchronous (3.6: `R5_SyncIO`).
    #[must_use]
    pub fn parity_writes_are_sync(self) -> bool {
        self >= Kernel::new(3, 6, 0)
    }

    /// Reads of a whole RAID5 or RAID6 that are in one chunk go past the stripe cache (2.6.20: "md: enable bypassing cache
    /// for reads").
    #[must_use]
    pub fn reads_past_stripe_cache(self) -> bool {
        self >= Kernel::new(2, 6, 20)
    }

    /// md's choice of the copy to read.
    #[must_use]
    pub fn balance(self) -> BalanceRule {
        if self < Kernel::new(2, 6, 25) {
            BalanceRule::Linux2_6_20
        } else if self < Kernel::new(3, 5, 0) {
            BalanceRule::Linux2_6_32
        } else {
            BalanceRule::Linux6_1
        }
    }

    /// The rules of md's stripe cache: the cache that grows (4.1: "md/raid5: allow the stripe_cache to grow and shrink"),
    /// synchronous writes (2.6.32: `STRIPE_PREREAD_ACTIVE` in `make_request`, which leaves
    /// the row to md's thread), the plug (2.6.39: "md: fix up raid1/raid10/raid5
    /// unplugging"), `hold_list` (2.6.26: "md: introduce
    /// get_priority_stripe() to improve raid456 write performance"), rows before blocks (6.0:
    /// "md/raid5: Pivot raid5_make_request()").
    #[must_use]
    pub(crate) fn stripe_rules(self) -> StripeRules {
        let since = |a, b, c| self >= Kernel::new(a, b, c);
        StripeRules {
            write: if since(4, 1, 0) {
                WriteRule::LINUX_6_1
            } else {
                WriteRule::LINUX_2_6_32
            },
            grows: since(4, 1, 0),
            sync_at_once: since(2, 6, 32),
            by_writer: !since(2, 6, 32),
            has_plug: !since(2, 6, 39),
            holds: since(2, 6, 26),
            by_rows: since(6, 0, 0),
        }
    }

    /// Write-back is throttled by the latency of reads (4.10, `CONFIG_BLK_WBT_MQ`: "block: hook up writeback throttling").
    #[must_use]
    pub(crate) fn throttles_write_back(self) -> bool {
        self.multi_queue()
    }

    /// Longest request unless a limit is set, bytes (`BLK_DEF_MAX_SECTORS`; "block: bump BLK_DEF_MAX_SECTORS to 2560",
    /// 4.3).
    #[must_use]
    pub fn max_request(self) -> u64 {
        let kib = if self < Kernel::new(4, 3, 0) {
            512
        } else {
            1280
        };
        kib * 1024
    }

    /// True if the page cache reads a block device page by page: before 3.18 ("block_dev: implement readpages() to optimize
    /// sequential read").
    #[must_use]
    pub fn reads_devices_page_by_page(self) -> bool {
        self < Kernel::new(3, 18, 0)
    }

    /// Pages of a bio of the page cache, if the device's longest request has `longest_request` of them: not more than that
    /// before 4.3 (`bio_get_nr_vecs` in `mpage_readpages` and `xfs_alloc_ioend_bio`), nor than `BIO_MAX_PAGES`; as many as there
    /// are if they follow each other in memory, since 5.1 ("block: allow bios to hold multi-page bvecs"). That they do is
    /// assumed: the cache is empty when a run begins.
    #[must_use]
    pub(crate) fn pages_of_a_bio(self, longest_request: u64) -> u64 {
        const BIO_MAX_PAGES: u64 = 256;
        if self < Kernel::new(4, 3, 0) {
            BIO_MAX_PAGES.min(longest_request)
        } else if self < Kernel::new(5, 1, 0) {
            BIO_MAX_PAGES
        } else {
            u64::from(u32::MAX) / crate::cache::PAGE
        }
    }

    /// A driver's bios for other devices go before those that it submits to itself (4.11: "blk: improve order of bio
    /// handling in generic_make_request()"), and md submits what is beyond a chunk's end anew (4.12: "md/raid10: simplify
    /// the splitting of requests", "md/raid5: make chunk_aligned_read() split bios more cleanly").
    #[must_use]
    pub(crate) fn sorts_lower_bios_first(self) -> bool {
        self >= Kernel::new(4, 12, 0)
    }

    /// Read-ahead gives up where a degraded parity array has no row free for it (4.19: "mpage: mpage_readpages() should submit
    /// IO as read-ahead").
    #[must_use]
    pub(crate) fn read_ahead_gives_up(self) -> bool {
        self >= Kernel::new(4, 19, 0)
    }

    /// A plug gives the requests of one drive without an elevator to it in the opposite order (5.16:
    /// `blk_add_rq_to_plug` adds at the head; 6.13: "block: don't reorder requests in blk_add_rq_to_plug").
    #[must_use]
    pub fn reverses_plugs(self) -> bool {
        (Kernel::new(5, 16, 0)..Kernel::new(6, 13, 0)).contains(&self)
    }

    /// The elevator a drive gets by default; `several_queues`: its adapter has a queue for each CPU, as NVMe has
    /// (`elevator_get_default`).
    #[must_use]
    pub fn default_scheduler(self, several_queues: bool) -> &'static str {
        if self.multi_queue() {
            if several_queues {
                "none"
            } else {
                "mq-deadline"
            }
        } else if self >= Kernel::new(2, 6, 18) {
            "cfq"
        } else {
            "anticipatory"
        }
    }
}

impl std::fmt::Display for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (a, b, c) = self.version;
        if c > 0 || a < 3 {
            write!(f, "{a}.{b}.{c}")
        } else {
            write!(f, "{a}.{b}")
        }
    }
}

impl Serialize for Kernel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_by_number() {
        assert_eq!(Kernel::parse("2.6.25"), Some(Kernel::new(2, 6, 25)));
        assert_eq!(Kernel::parse("6.1"), Some(Kernel::new(6, 1, 0)));
        assert!(Kernel::parse("6.18").unwrap() > Kernel::parse("6.5").unwrap());
        for wrong in ["", "6", "6.x", "2.4.20", "6.1.0.0", "six.one"] {
            assert_eq!(Kernel::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Kernel::new(2, 6, 25).to_string(), "2.6.25");
        assert_eq!(Kernel::new(6, 1, 0).to_string(), "6.1");
    }
}
