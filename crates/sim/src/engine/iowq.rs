//! Threads to which io_uring hands over what may not wait in the thread that submits it (`io-wq`).
//!
//! Linux 6.1 `io_uring/rw.c`, `io_uring/io-wq.c`: a bio that finds no free request (`REQ_NOWAIT`) and one that the block
//! layer must cut are carried out by a thread that may sleep. While it sleeps another one takes what was handed over next,
//! up to four for each processor; what comes then waits, in order, and requests that are submitted later may overtake it.

use std::collections::VecDeque;

use super::bio::{Bio, Chain, Owner};
use super::{Engine, Outcome};

/// `io_uring_alloc_task_context`: threads of a ring for each processor that work on disks.
const OF_A_PROCESSOR: u32 = 4;

/// Work that waits for a thread.
enum HandedOver {
    /// The rest of a slot's request, all of it if nothing was sent.
    Rest(u32),
    /// A bio for a queue.
    Bio(u32, Chain),
}

/// The threads of one ring, that of a worker.
#[derive(Default)]
struct Ring {
    /// Threads that sleep until a request is free.
    asleep: u32,
    waiting: VecDeque<HandedOver>,
    /// It is in the list of those that run next.
    is_ready: bool,
}

/// The threads of all rings of a host with one processor. With more of them it is taken that there are threads enough.
pub(super) struct IoThreads {
    rings: Vec<Ring>,
    /// Bios of a slot for which a thread sleeps.
    bios: Vec<u32>,
    /// Queues of requests that are free since; their waiters are to be woken.
    pub(super) freed: VecDeque<u32>,
    /// Rings with threads that run next.
    ready: VecDeque<u32>,
    /// A thread goes on, so what it does waits behind nothing.
    at_work: bool,
}

impl IoThreads {
    pub(super) fn new(workers: usize, slots: usize) -> IoThreads {
        IoThreads {
            rings: std::iter::repeat_with(Ring::default)
                .take(workers)
                .collect(),
            bios: vec![0; slots],
            freed: VecDeque::new(),
            ready: VecDeque::new(),
            at_work: false,
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.freed.is_empty() && self.ready.is_empty()
    }

    /// True if what is handed over now has to wait for a thread.
    fn are_busy(&self, worker: u32) -> bool {
        let ring = &self.rings[worker as usize];
        !self.at_work && !ring.waiting.is_empty() || ring.asleep >= OF_A_PROCESSOR
    }
}

impl Engine {
    /// A bio of a slot waits in a queue for a free request: a thread sleeps for it, or it waits for a thread and leaves
    /// the queue.
    pub(super) fn hand_over_bio(&mut self, slot: u32, queue: usize, chain: Chain) {
        let worker = self.load.slots[slot as usize].worker;
        let Some(threads) = &mut self.io_threads else {
            self.queues[queue].waits_alone();
            return;
        };
        if threads.bios[slot as usize] == 0 {
            let busy = threads.are_busy(worker);
            let ring = &mut threads.rings[worker as usize];
            if busy && self.queues[queue].takes_back() {
                ring.waiting.push_back(HandedOver::Bio(queue as u32, chain));
                return;
            }
            ring.asleep += 1;
        }
        threads.bios[slot as usize] += 1;
        self.queues[queue].waits_alone();
    }

    /// A request that a thread has to cut: true if it is left to one, which runs after the threads that were woken before.
    pub(super) fn hand_over_request(&mut self, slot: u32) -> bool {
        let worker = self.load.slots[slot as usize].worker;
        let Some(threads) = self.io_threads.as_mut().filter(|of| !of.at_work) else {
            return false;
        };
        let ring = &mut threads.rings[worker as usize];
        ring.waiting.push_back(HandedOver::Rest(slot));
        if !std::mem::replace(&mut ring.is_ready, true) {
            threads.ready.push_back(worker);
        }
        true
    }

    /// A bio of a request that was handed over has its request: its thread sends what is left, and takes what waits.
    pub(super) fn go_on_in_thread(&mut self, of: &Bio) -> Outcome {
        let Owner::Load(slot) = of.owner else {
            return Ok(());
        };
        let Some(threads) = &mut self.io_threads else {
            return self.send_rest(slot, false);
        };
        // Another thread of the kernel may have slept for it; slots of pages have no number here.
        let Some(bios) = threads
            .bios
            .get_mut(slot as usize)
            .filter(|bios| **bios > 0)
        else {
            return Ok(());
        };
        *bios -= 1;
        if *bios > 0 {
            return Ok(());
        }
        let worker = self.load.slots[slot as usize].worker;
        let ring = &mut threads.rings[worker as usize];
        ring.asleep -= 1;
        ring.waiting.push_front(HandedOver::Rest(slot));
        self.run_threads(worker)
    }

    /// Threads that were woken, or are new, go on.
    pub(super) fn run_ready_threads(&mut self) -> Outcome {
        while let Some(queue) = self.next_freed() {
            let queue = queue as usize;
            self.queues[queue].wakes();
            while self.queues[queue]
                .next_woken(self.now_ns, &mut self.bios)
                .map_err(|error| self.refused(queue, error))?
            {
                self.touch(queue);
                self.go_on_admitted(queue)?;
            }
        }
        while let Some(threads) = &mut self.io_threads
            && let Some(worker) = threads.ready.pop_front()
        {
            threads.rings[worker as usize].is_ready = false;
            self.run_threads(worker)?;
        }
        Ok(())
    }

    /// The threads of a ring take what waits, until all of them sleep.
    fn run_threads(&mut self, worker: u32) -> Outcome {
        self.set_at_work(true);
        while let Some(next) = self.next_handed_over(worker) {
            match next {
                HandedOver::Rest(slot) => self.send_rest(slot, false)?,
                HandedOver::Bio(queue, chain) => self.enqueue(queue as usize, &chain, false)?,
            }
            self.unplug()?;
        }
        self.set_at_work(false);
        Ok(())
    }

    /// True while a thread sends something.
    pub(super) fn is_in_thread(&self) -> bool {
        self.io_threads.as_ref().is_some_and(|of| of.at_work)
    }

    fn set_at_work(&mut self, at_work: bool) {
        if let Some(threads) = &mut self.io_threads {
            threads.at_work = at_work;
        }
    }

    fn next_freed(&mut self) -> Option<u32> {
        self.io_threads.as_mut()?.freed.pop_front()
    }

    fn next_handed_over(&mut self, worker: u32) -> Option<HandedOver> {
        let ring = &mut self.io_threads.as_mut()?.rings[worker as usize];
        match ring.asleep < OF_A_PROCESSOR {
            true => ring.waiting.pop_front(),
            false => None,
        }
    }
}
