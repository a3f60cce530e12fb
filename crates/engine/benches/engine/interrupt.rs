//! Ctrl-C: the bench stops between two runs and puts everything back.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From now on a signal that asks to end is only noted.
pub(crate) fn watch() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler does nothing but store to an atomic, which a handler may; the structure is plain data and
        // whole. System calls go on after it: what is cut short by it would look like a failure of its own.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// True if an interrupt came.
pub(crate) fn came() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
