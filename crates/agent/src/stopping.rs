//! Signals end a run cleanly: the load stops, and its figures up to then are kept.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use spindle_engine::durable::Durability;
use spindle_engine::kernel::EndingSignals;
use spindle_engine::{ReadBack, Run};

use crate::failure::{Failure, reason};

/// A rest is cut short at most so late after a signal.
const LOOK: Duration = Duration::from_millis(50);

/// The work that a signal stops.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Load(Arc<Run>),
    ReadBack(Arc<ReadBack>),
    Durability(Arc<Durability>),
}

impl Work {
    fn stop(&self) {
        match self {
            Work::Load(run) => run.stop(),
            Work::ReadBack(reading) => reading.stop(),
            Work::Durability(test) => test.stop(),
        }
    }
}

/// The signal that came, if one did.
#[derive(Debug, Default)]
pub(crate) struct StopSignal {
    signal: AtomicI32,
    current: Mutex<Option<Work>>,
}

impl StopSignal {
    /// Waits for signals from now on; to be called before any other thread is started.
    pub(crate) fn begin() -> Result<Arc<StopSignal>, Failure> {
        let signals = EndingSignals::block();
        let stopping = Arc::new(StopSignal::default());
        let own = Arc::clone(&stopping);
        std::thread::Builder::new()
            .name("spindle-signals".to_owned())
            .spawn(move || {
                loop {
                    own.signal.store(signals.wait(), Ordering::SeqCst);
                    own.stop_current();
                }
            })
            .map_err(|error| {
                Failure::failed(format!("cannot start a thread: {}", reason(&error)))
            })?;
        Ok(stopping)
    }

    /// The number of the signal.
    pub(crate) fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|&number| number != 0)
    }

    /// Stops everything as SIGHUP does: whoever gave the orders is gone.
    pub(crate) fn hang_up(&self) {
        let none =
            self.signal
                .compare_exchange(0, libc::SIGHUP, Ordering::SeqCst, Ordering::SeqCst);
        if none.is_ok() {
            self.stop_current();
        }
    }

    /// An error if a signal came: nothing more is begun.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.signal() {
            Some(signal) => Err(Failure::Stopped(signal)),
            None => Ok(()),
        }
    }

    /// Nothing is done for this time, unless a signal comes.
    pub(crate) fn rest(&self, time: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        while let Some(left) = time.checked_sub(begun.elapsed()) {
            self.check()?;
            std::thread::sleep(left.min(LOOK));
        }
        self.check()
    }

    /// From now on a signal stops this; one that has come already stops it at once.
    pub(crate) fn watch(&self, work: Work) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        if self.signal().is_some() {
            self.stop_current();
        }
    }

    fn stop_current(&self) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(work) = current.as_ref() {
            work.stop();
        }
    }
}
