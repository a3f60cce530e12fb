//! System calls of the hot path, made in line.
//!
//! After a return from the kernel a processor that flushes its return predictor (AMD's "Safe RET", Intel's RSB filling)
//! mispredicts the `ret` of libc's `syscall()`: 100 to 250 ns for each request (`make bench-engine`, an AMD EPYC). A call in
//! line has no `ret`. libc's own `pread` is a cancellation point as well.
#![allow(unsafe_code)]

/// Makes a system call; returns its answer, or its errno.
///
/// # Safety
///
/// As of the call: pointers among the arguments must be valid for the kernel's use of them.
#[inline(always)]
pub(crate) unsafe fn call<const N: usize>(
    number: libc::c_long,
    arguments: [usize; N],
) -> Result<usize, i32> {
    const { assert!(N <= 6) };
    let mut six = [0; 6];
    six[..N].copy_from_slice(&arguments);
    // SAFETY: the caller's.
    let answer = unsafe { raw(number as usize, six) };
    if (-4095..0).contains(&answer) {
        Err(-answer as i32)
    } else {
        Ok(answer as usize)
    }
}

/// The answer, or minus errno (syscall(2), "Architecture calling conventions").
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn raw(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: `syscall` changes rax, rcx and r11, and memory only as the call does; it leaves the stack alone.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn raw(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: `svc 0` changes x0, and memory only as the call does; it leaves the stack alone.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    answer
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
unsafe fn raw(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    // SAFETY: the caller's.
    let answer = unsafe { libc::syscall(number as libc::c_long, a, b, c, d, e, f) };
    if answer >= 0 {
        return answer as isize;
    }
    let errno = std::io::Error::last_os_error().raw_os_error();
    -(errno.unwrap_or(libc::EIO) as isize)
}
