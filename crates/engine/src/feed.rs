//! Where a worker's requests come from: its own stream, or, where several threads stand for one worker's
//! outstanding requests (pread), a stream they share. Times are ns since the start of the run.

use std::sync::{Arc, Mutex};

use spindle_workload::{Arrivals, Request, RequestStream};

use crate::shared::lock;

/// Requests of one worker with the times they are due.
#[derive(Debug)]
pub(crate) struct Feed {
    requests: RequestStream,
    /// Open loop: intended starts after `origin`, the stream's start.
    arrivals: Option<Arrivals>,
    origin: u64,
}

/// A feed as one thread sees it.
#[derive(Debug)]
pub(crate) enum Source {
    Own(Box<Feed>),
    /// Held for the ~10 ns of one draw; order of the requests is that of the draws.
    Shared(Arc<Mutex<Feed>>),
}

impl Feed {
    pub(crate) fn new(requests: RequestStream, arrivals: Option<Arrivals>, origin: u64) -> Feed {
        Feed {
            requests,
            arrivals,
            origin,
        }
    }

    #[inline(always)]
    fn next(&mut self) -> (u64, Request) {
        let due = match &mut self.arrivals {
            None => 0,
            Some(arrivals) => self.origin + arrivals.next_ns(),
        };
        (due, self.requests.next_request())
    }
}

impl Source {
    /// The next request and when it is due, ns; 0 in a closed loop: at once.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> (u64, Request) {
        match self {
            Source::Own(feed) => feed.next(),
            Source::Shared(feed) => next_of_shared(feed),
        }
    }
}

/// Apart, so that the drawing is compiled into the loop only once.
#[inline(never)]
fn next_of_shared(feed: &Mutex<Feed>) -> (u64, Request) {
    lock(feed).next()
}
