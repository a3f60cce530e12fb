//! Requests of the load become bios: where they go on the array, and as whose.

use spindle_array::ArrayError;
use spindle_workload::Op;

use super::bio::{Issuer, Manner, Owner};
use super::load::Stage;
use super::stripes::RowManner;
use super::threads::Readings;
use super::{Engine, Outcome, Target};
use crate::request::Origin;

impl Engine {
    /// Sends a request of the load to the drives.
    #[inline(always)]
    pub(super) fn issue(&mut self, slot: u32, plugged: bool) -> Outcome {
        let of = self.load.slots[slot as usize];
        let is_own = !matches!(of.stage, Stage::Pages | Stage::Log);
        if is_own && self.cache.is_some() && self.is_buffered(of.worker) {
            return self.issue_buffered(slot);
        }
        if self.journal.is_some() && (!self.note_access(slot) || self.waits_for_file(slot)) {
            return Ok(());
        }
        self.issue_unlocked(slot, plugged)
    }

    /// Sends a request of the load that has the locks that it needs.
    #[inline(always)]
    pub(super) fn issue_unlocked(&mut self, slot: u32, plugged: bool) -> Outcome {
        let of = self.load.slots[slot as usize];
        let is_own = !matches!(of.stage, Stage::Pages | Stage::Log);
        let request = of.request;
        let (issuer, manner) = self.manner_of(slot);
        let write = manner.write;
        let (offset, len) = (self.place_of(slot), u64::from(request.len));
        let Target::Array(fabric) = &mut self.target else {
            let part = (0, offset, len);
            let bios = self.send_member(Owner::Load(slot), issuer, part, manner, plugged)?;
            return self.all_sent(slot, bios);
        };
        if write && !fabric.superblock.active {
            return self.mark_superblock(slot);
        }
        if write {
            fabric.superblock.begin_write(slot);
        }
        let at_once = self.one_call_each || !is_own;
        if let Some(rebuild) = &mut fabric.rebuild
            && !rebuild.enter(slot, write, offset, at_once)
        {
            return Ok(());
        }
        self.issue_admitted(slot, plugged)
    }

    /// First byte of a request on the array or drive.
    #[inline(always)]
    pub(super) fn place_of(&self, slot: u32) -> u64 {
        let of = &self.load.slots[slot as usize];
        if of.stage == Stage::Log && self.rules.log.is_some() {
            return of.request.offset;
        }
        if let Some(growth) = &self.growth {
            return growth.place(of.request.offset);
        }
        let offset = match &self.rules.files {
            Some(files) if of.stage != Stage::Log => files.place(of.request.offset, self.capacity),
            _ => of.request.offset,
        };
        self.rules.partition_start + offset
    }

    /// Sends a request of the load to the array's members, past the barrier of a rebuild.
    pub(super) fn issue_admitted(&mut self, slot: u32, plugged: bool) -> Outcome {
        let (issuer, manner) = self.manner_of(slot);
        let request = self.load.slots[slot as usize].request;
        let (offset, len) = (self.place_of(slot), u64::from(request.len));
        let write = manner.write;
        let is_bare = self.has_no_plug(slot);
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        if fabric.uses_stripes(write) {
            let manner = RowManner {
                write,
                sync: manner.sync,
                gives_up: self.gives_up(slot),
                // `blkdev_write_iter` has a plug.
                plugged: (plugged || write) && !is_bare || !self.one_call_each,
            };
            return self.issue_rows(slot, manner, offset, len);
        }
        let plugged = !is_bare && (plugged || (write && fabric.has_mirrors()));
        let bios = self.issue_pieces((slot, issuer), manner, (offset, len), plugged)?;
        if bios == 0 {
            // Every copy is on members that are gone.
            let lost = ArrayError::Lost {
                logical: offset,
                missing: 0,
            };
            return Err(lost.into());
        }
        self.all_sent(slot, bios)?;
        if is_bare {
            // kblockd runs the queues when the thread looks whether others are to run (`write_cache_pages`).
            self.dispatch()?;
        }
        Ok(())
    }

    /// Pages of XFS that a thread of the load writes: it has no plug (6.1 `iomap_writepages`, `raid1_add_bio_to_plug`).
    #[inline]
    pub(super) fn has_no_plug(&self, slot: u32) -> bool {
        self.rules.is_xfs
            && self.load.slots[slot as usize].stage == Stage::Pages
            && self.load.slots[slot as usize].request.op == Op::Write
            && self.page_issuer(slot).1
    }

    /// Who sends a request of the load, and how.
    #[inline(always)]
    fn manner_of(&self, slot: u32) -> (Issuer, Manner) {
        let of = &self.load.slots[slot as usize];
        let write = !matches!(of.request.op, Op::Read | Op::Rewrite);
        let (issuer, sync) = if of.stage == Stage::Pages {
            let (issuer, is_waited_for) = self.page_issuer(slot);
            (
                issuer,
                is_waited_for && self.rules.kernel.synced_pages_are_sync(),
            )
        } else if of.stage == Stage::Log {
            (Issuer::kernel(self.md_thread()), self.log_is_sync())
        } else {
            (
                self.load.issuer(slot),
                self.rules.kernel.direct_writes_are_sync(),
            )
        };
        let discard = of.request.op == Op::Trim;
        let manner = Manner {
            write,
            discard,
            fua: false,
            no_merge: false,
            sync: !write || (sync && !discard),
            origin: self.origin_of(slot, write),
        };
        (issuer, manner)
    }

    /// Where a write comes from. md's levels with copies or parity drop the flags of what they write to members, so that
    /// the flusher's writes are like others; ext4 does not set its flag (`ext4_io_submit`).
    pub(super) fn origin_of(&self, slot: u32, write: bool) -> Origin {
        let keeps = !self.has_mirrors && !self.has_parity;
        if !write {
            return Origin::Direct;
        }
        if self.load.slots[slot as usize].stage != Stage::Pages {
            return match keeps || !self.rules.kernel.throttles_write_back() {
                true => Origin::Direct,
                false => Origin::Passed,
            };
        }
        let by_flusher = !self.page_issuer(slot).1;
        match by_flusher && keeps && self.rules.marks_write_back {
            true => Origin::Flusher,
            false => Origin::Cache,
        }
    }

    /// Sends a stretch of the array to its members; the number of bios, and one for a rest that is sent later.
    fn issue_pieces(
        &mut self,
        (slot, issuer): (u32, Issuer),
        manner: Manner,
        (offset, len): (u64, u64),
        plugged: bool,
    ) -> Outcome<u32> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(0);
        };
        let is_cut = fabric.is_cut_by_the_block_layer();
        let copies = fabric.copies();
        if !manner.write && fabric.has_mirrors() {
            return self.read_mirror((slot, issuer), (offset, len), plugged);
        }
        let mut requests = std::mem::take(&mut self.requests);
        if manner.write {
            fabric.write(offset, len, &mut requests)?;
        } else {
            fabric.read(offset, len, &mut requests)?;
        }
        let of_pages = self.load.slots[slot as usize].stage == Stage::Pages;
        let by_worker = is_cut && requests.len() > 1 && !self.one_call_each && !of_pages;
        if by_worker && self.hand_over_request(slot) {
            requests.clear();
            self.requests = requests;
            self.load.slots[slot as usize].rest = Some((offset, len));
            return Ok(1);
        }
        let (mut bios, mut sent) = (0, 0);
        let is_bare = self.has_no_plug(slot);
        self.load.slots[slot as usize].waits = false;
        let copies = match manner.write {
            true => copies,
            false => 1,
        };
        let holds = manner.write && self.has_bitmap;
        if holds && let Some(bitmap) = self.bitmap() {
            bitmap.begin_of(slot, offset, len);
        }
        for (at, request) in requests.iter().enumerate() {
            if at == 0 {
                self.begin_bio(slot)?;
            } else if at.is_multiple_of(copies) {
                self.read_clock(if is_cut { Readings::CUT } else { Readings::BIO })?;
            }
            let part = (request.member, request.offset, request.len);
            // Writes of a device go under a plug, each call's by themselves (`blkdev_write_iter`).
            let plugged = manner.write && !is_bare || (plugged && !by_worker);
            bios += match holds {
                true => self.hold_write(slot, issuer, part, manner),
                false => self.send_member(Owner::Load(slot), issuer, part, manner, plugged)?,
            };
            sent += request.len;
            if by_worker && self.load.slots[slot as usize].waits && sent < len {
                self.load.slots[slot as usize].rest = Some((offset + sent, len - sent));
                bios += 1;
                break;
            }
        }
        requests.clear();
        self.requests = requests;
        Ok(bios)
    }

    /// A copy is chosen for each piece when the bio of the one before it is sent: its member is busy then.
    fn read_mirror(
        &mut self,
        (slot, issuer): (u32, Issuer),
        (offset, len): (u64, u64),
        plugged: bool,
    ) -> Outcome<u32> {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(0);
        };
        let mut pieces = std::mem::take(&mut self.pieces);
        fabric.cut(offset, len, &mut pieces);
        self.read_clock(Readings::BIO)?;
        let (mut bios, mut sent) = (0, 0);
        for piece in &pieces {
            self.sleeps = false;
            if piece.is_cut_above {
                self.read_clock(Readings::CUT)?;
            }
            let Target::Array(fabric) = &mut self.target else {
                return Ok(0);
            };
            let place = fabric.choose(piece.offset, piece.len)?;
            let part = (place.member, place.offset, piece.len);
            if piece.is_cut && self.rules.reading_ns > 0 {
                fabric.sent(place.member as usize);
                self.read_clock(Readings::BIO)?;
                if let Target::Array(fabric) = &mut self.target {
                    fabric.sends_now(place.member as usize);
                }
            }
            bios += self.send_member(Owner::Load(slot), issuer, part, Manner::READ, plugged)?;
            sent += piece.len;
            if self.sleeps && sent < len && !self.one_call_each && self.cache.is_none() {
                let of = &mut self.load.slots[slot as usize];
                of.rest = Some((offset + sent, len - sent));
                let worker = of.worker as usize;
                self.load.workers[worker].held.push_front(slot);
                bios += 1;
                break;
            }
        }
        pieces.clear();
        self.pieces = pieces;
        Ok(bios)
    }

    /// Sends what a request's thread has not sent yet.
    pub(super) fn send_rest(&mut self, slot: u32, plugged: bool) -> Outcome {
        let Some(rest) = self.load.slots[slot as usize].rest.take() else {
            return Ok(());
        };
        let (issuer, manner) = self.manner_of(slot);
        let bios = self.issue_pieces((slot, issuer), manner, rest, plugged)?;
        // The rest itself was a part.
        self.all_sent(slot, bios - 1)
    }

    /// Hands a request to the stripe cache; its thread sleeps until each row has a head.
    fn issue_rows(&mut self, slot: u32, manner: RowManner, offset: u64, len: u64) -> Outcome {
        let Target::Array(fabric) = &mut self.target else {
            return Ok(());
        };
        let rows = fabric.add_rows(slot, manner, offset, len)?;
        self.load.slots[slot as usize].left = rows;
        self.sleep(slot);
        self.begin_bio(slot)
    }
}
