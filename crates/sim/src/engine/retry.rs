//! Reads of RAID5 and RAID6 that find no free request.
//!
//! Linux 6.1 `drivers/md/raid5.c`: a read of io_uring may not wait (`REQ_NOWAIT`), and md passes that on to its members. There it
//! fails without a free request (`blk_mq_get_tag`), and md's thread reads what failed again through the stripe cache, row by
//! row, each with a request of its own for which it sleeps (`raid5_align_endio`, `retry_aligned_read`, `R5_ReadNoMerge`). What
//! failed last comes first. Other levels do not pass it on, or fail as a whole; file systems let their reads wait
//! (`iomap_dio_rw`).

use spindle_array::STRIPE_BLOCK;

use super::bio::{Chain, Owner};
use super::load::Stage;
use super::stripes::Retry;
use super::{BLOCK, Engine, Outcome, Target};

/// Longer requests are several bios, of which io_uring leaves the whole to a thread that may wait (`__blkdev_direct_IO`).
const MOST_OF_A_BIO: u64 = 1 << 20;

impl Engine {
    /// True if a read of a parity array has failed since its queue has no free request; md's thread has it now.
    #[inline(always)]
    pub(super) fn is_left_to_md(&mut self, queue: usize, chain: &Chain) -> bool {
        self.has_parity && self.leave_to_md(queue, chain)
    }

    fn leave_to_md(&mut self, queue: usize, chain: &Chain) -> bool {
        let Owner::Load(slot) = self.bios.get(chain.first).owner else {
            return false;
        };
        let Target::Array(fabric) = &mut self.target else {
            return false;
        };
        let Some(stripes) = &mut fabric.stripes else {
            return false;
        };
        let of = &mut self.load.slots[slot as usize];
        let may_not_wait = !chain.request.write
            && !self.one_call_each
            && self.journal.is_none()
            && self.rules.kernel.md_passes_on_nowait()
            && of.stage != Stage::Pages
            && u64::from(of.request.len) <= fabric.longest.min(MOST_OF_A_BIO);
        if !may_not_wait
            || self.queues[queue].has_free(&chain.request, self.plug.count(queue as u32))
        {
            return false;
        }
        let on_member = |lbn: u64| (lbn - fabric.starts[queue]) * BLOCK;
        let (at, end) = (on_member(chain.request.lbn), on_member(chain.request.end()));
        let at = at - at % STRIPE_BLOCK;
        let rows = (end - at).div_ceil(STRIPE_BLOCK) as u32;
        // The rows are parts of the request instead of the bio.
        of.left = of.left.wrapping_add(rows - 1);
        stripes.retry(Retry {
            slot,
            member: queue as u32,
            at,
            end,
        });
        fabric.sends_now(queue);
        self.bios.remove(chain.first);
        true
    }

    /// md's thread reads again what found no free request; false if it sleeps for one itself.
    pub(super) fn reads_again(&mut self) -> Outcome<bool> {
        if let Some(stripes) = self.stripes() {
            stripes.begin_retries();
        }
        loop {
            if self.md_sleeps() {
                return Ok(false);
            }
            let Target::Array(fabric) = &mut self.target else {
                return Ok(true);
            };
            let Some(requests) = fabric.retry_row(&mut self.returned)? else {
                break;
            };
            self.send_rows(&requests)?;
        }
        self.end_round();
        Ok(true)
    }
}
