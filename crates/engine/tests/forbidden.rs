//! Where io_uring is forbidden the load runs all the same.
#![allow(unsafe_code)]

mod common;

use common::*;
use spindle_engine::{EngineChoice, EngineError, Options, Run};

/// Forbids the calling thread, and what it starts from now on, to make rings, as container runtimes do.
fn forbid_io_uring() {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        // Offset 0 of `struct seccomp_data`: the number of the system call.
        step(LOAD, 0, 0, 0),
        step(EQUAL, 0, 1, libc::SYS_io_uring_setup as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the program is valid during the call, which copies it; it binds this thread only.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program),
            0
        );
    }
}

#[test]
fn pread_takes_over_and_the_reason_is_recorded() {
    let scratch = Scratch::new(1 << 20);
    let test = || {
        forbid_io_uring();
        let mut reads = stream("reads");
        reads.depth = 4;
        let load = workload(vec![reads]);
        let figures = run_with(&load, &scratch, Options::default());
        assert!(requests(&figures, 0) > 0);
        assert_eq!(figures.generator.engine, "pread");
        assert!(
            figures.generator.reason.contains("forbidden"),
            "{}",
            figures.generator.reason
        );

        let refused = Run::start(
            &load,
            vec![vec![scratch.stream_file()]],
            options(EngineChoice::IoUring),
        );
        let error = refused.expect_err("asked for by name");
        assert!(matches!(error, EngineError::NoIoUring { .. }), "{error}");
    };
    std::thread::scope(|scope| scope.spawn(test).join().expect("test"));
}
