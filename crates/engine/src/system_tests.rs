//! Tests of `system`, apart from it as the benches compile that file too.
#![allow(unsafe_code)]

use crate::system::call;

#[test]
fn an_answer_and_an_error_are_distinguished() {
    // SAFETY: no pointer is passed; -1 is no descriptor.
    let (process, closed) = unsafe {
        (
            call(libc::SYS_getpid, []),
            call(libc::SYS_close, [usize::MAX]),
        )
    };
    assert_eq!(process, Ok(std::process::id() as usize));
    assert_eq!(closed, Err(libc::EBADF));
}

#[test]
fn all_six_arguments_arrive() {
    let mut mapped = [0u8; 8];
    let path = c"/proc/self/exe";
    // SAFETY: a mapping of our own is made, read and taken away.
    unsafe {
        let fd = call(
            libc::SYS_openat,
            [libc::AT_FDCWD as usize, path.as_ptr() as usize, 0],
        )
        .expect("the test's own program");
        let page = call(libc::SYS_mmap, [0, 4096, 1, 2, fd, 4096]).expect("a second page");
        let mut file = [0u8; 8];
        let moved = call(libc::SYS_pread64, [fd, file.as_mut_ptr() as usize, 8, 4096]);
        assert_eq!(moved, Ok(8));
        std::ptr::copy_nonoverlapping(page as *const u8, mapped.as_mut_ptr(), 8);
        assert_eq!(mapped, file, "the sixth argument of mmap is the offset");
        call(libc::SYS_munmap, [page, 4096]).expect("unmapped");
        call(libc::SYS_close, [fd]).expect("closed");
    }
}
