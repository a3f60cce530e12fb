//! The source of a worker's requests: its own stream, or, where several threads share one worker's
//! outstanding requests (pread), a stream they share. Times are ns since the start of the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use spindle_workload::{Arrivals, NameStream, Passes, Request, RequestStream};

use crate::shared::lock;

/// Requests of one worker with the times they are due.
#[derive(Debug)]
pub(crate) struct Feed {
    requests: RequestStream,
    /// Open loop: intended starts after `origin`, the stream's start.
    arrivals: Option<Arrivals>,
    origin: u64,
    /// Drawn by a thread that could not pay for it: the next one.
    unpaid: Option<(u64, Request)>,
}

/// The answer of a source that is asked for a request.
#[derive(Debug)]
pub(crate) enum Drawn {
    /// With the time it is due, ns; 0 in a closed loop: at once.
    Request(u64, Request),
    /// There is one, but the thread cannot pay for it. It stays the next one, for any thread: of a stream that threads
    /// share, each request must be somebody's.
    Unpaid,
    Ended,
}

/// A feed as one thread sees it.
#[derive(Debug)]
pub(crate) enum Source {
    Own(Box<Feed>),
    /// Held for the ~10 ns of one draw; order of the requests is that of the draws.
    Shared(Arc<Mutex<Feed>>),
    /// Operations on names, which end by themselves.
    Names(Arc<Mutex<NameFeed>>),
}

/// Operations of one worker with the times they are due.
#[derive(Debug)]
pub(crate) struct NameFeed {
    names: NameStream,
    arrivals: Option<Arrivals>,
    origin: u64,
    unpaid: Option<(u64, Request)>,
}

impl NameFeed {
    pub(crate) fn new(names: NameStream, arrivals: Option<Arrivals>, origin: u64) -> NameFeed {
        NameFeed {
            names,
            arrivals,
            origin,
            unpaid: None,
        }
    }

    fn next(&mut self) -> Option<(u64, Request)> {
        if let Some(unpaid) = self.unpaid.take() {
            return Some(unpaid);
        }
        let request = self.names.next_request()?;
        let due = match &mut self.arrivals {
            None => 0,
            Some(arrivals) => self.origin + arrivals.next_ns(),
        };
        Some((due, request))
    }

    fn next_paid(&mut self, pay: impl FnOnce(u32) -> bool) -> Drawn {
        match self.next() {
            None => Drawn::Ended,
            Some(next) => paid(next, pay, &mut self.unpaid),
        }
    }
}

/// The request, or the place where it waits for a thread that can pay for it.
fn paid(
    next: (u64, Request),
    pay: impl FnOnce(u32) -> bool,
    unpaid: &mut Option<(u64, Request)>,
) -> Drawn {
    let (due, request) = next;
    if pay(request.len) {
        return Drawn::Request(due, request);
    }
    *unpaid = Some(next);
    Drawn::Unpaid
}

impl Feed {
    pub(crate) fn new(requests: RequestStream, arrivals: Option<Arrivals>, origin: u64) -> Feed {
        Feed {
            requests,
            arrivals,
            origin,
            unpaid: None,
        }
    }

    #[inline(always)]
    fn next(&mut self) -> (u64, Request) {
        if let Some(unpaid) = self.unpaid.take() {
            return unpaid;
        }
        let due = match &mut self.arrivals {
            None => 0,
            Some(arrivals) => self.origin + arrivals.next_ns(),
        };
        (due, self.requests.next_request())
    }

    fn next_paid(&mut self, pay: impl FnOnce(u32) -> bool) -> Drawn {
        let next = self.next();
        paid(next, pay, &mut self.unpaid)
    }
}

impl Source {
    /// The next request of an endless stream, and its due time, ns; 0 in a closed loop: at once.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> (u64, Request) {
        match self {
            Source::Own(feed) => feed.next(),
            Source::Shared(feed) => next_of_shared(feed),
            Source::Names(_) => unreachable!("{}", Self::ENDS),
        }
    }

    /// The next request of a closed loop that never ends.
    #[inline(always)]
    pub(crate) fn next_request(&mut self) -> Request {
        match self {
            Source::Own(feed) => feed.requests.next_request(),
            Source::Shared(feed) => Request::unpacked(next_request_of_shared(feed)),
            Source::Names(_) => unreachable!("{}", Self::ENDS),
        }
    }

    /// The next request, if there is one, and its due time.
    #[inline]
    pub(crate) fn next_if_any(&mut self) -> Option<(u64, Request)> {
        match self {
            Source::Names(feed) => lock(feed).next(),
            _ => Some(self.next()),
        }
    }

    /// The next request, if it can be paid for: drawn and paid as one, so that threads pay in the order of the requests.
    #[inline]
    pub(crate) fn next_paid(&mut self, pay: impl FnOnce(u32) -> bool) -> Drawn {
        match self {
            Source::Own(feed) => feed.next_paid(pay),
            Source::Shared(feed) => lock(feed).next_paid(pay),
            Source::Names(feed) => lock(feed).next_paid(pay),
        }
    }

    /// Length after which its worker has gone over its part as often as requested.
    pub(crate) fn passes(&self) -> Option<Passes> {
        match self {
            Source::Own(feed) => feed.requests.passes(),
            Source::Shared(feed) => lock(feed).requests.passes(),
            Source::Names(_) => None,
        }
    }

    /// True if it may end.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Source::Names(_))
    }

    const ENDS: &str = "what may end is asked with `next_if_any`";

    /// Notes the files of a set for which it had requests that change them.
    pub(crate) fn note_changed(&self, changed: &[AtomicBool]) {
        let note = |feed: &Feed| {
            for file in feed.requests.changed_files() {
                if let Some(changed) = changed.get(file as usize) {
                    changed.store(true, Ordering::Relaxed);
                }
            }
        };
        match self {
            Source::Own(feed) => note(feed),
            Source::Shared(feed) => note(&lock(feed)),
            Source::Names(_) => {}
        }
    }
}

/// Apart, so that the drawing is compiled into the loop only once.
#[inline(never)]
fn next_of_shared(feed: &Mutex<Feed>) -> (u64, Request) {
    lock(feed).next()
}

/// As `next_of_shared`, in a closed loop.
#[inline(never)]
fn next_request_of_shared(feed: &Mutex<Feed>) -> (u64, u64) {
    lock(feed).requests.next_request().packed()
}
