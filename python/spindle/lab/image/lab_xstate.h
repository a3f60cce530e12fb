/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Registers of CPUs with AMX: a part of arch/x86/um/os-Linux/registers.c.
 *
 * The state of such a CPU is larger than FP_SIZE, and the host takes the whole
 * of it or nothing (arch/x86/kernel/fpu/regset.c: xstateregs_set). A process in
 * the lab never has the tiles: they take a system call that only the host
 * knows. So the kernel keeps the first FP_SIZE bytes, as always, and the host
 * gets them with the rest as it was at the start. Other CPUs: nothing changes.
 */
#include <string.h>
#include <sys/mman.h>

#define LAB_XSTATE_ROOM (1 << 16)
/* The host's word for the parts that are not in their first state. */
#define LAB_XSTATE_BV (512 / sizeof(unsigned long))
/* Parts that lie within FP_SIZE: x87 to protection keys, and APX. */
#define LAB_XSTATE_KEPT (0x3ff | 1 << 19)

static unsigned long *lab_xstate;
static unsigned long lab_xstate_bytes;

static void lab_find_xstate(int pid)
{
	struct iovec iov = { .iov_len = LAB_XSTATE_ROOM };

	iov.iov_base = mmap(NULL, LAB_XSTATE_ROOM, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (iov.iov_base == MAP_FAILED)
		return;
	lab_xstate = iov.iov_base;
	if (ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &iov) == 0 &&
	    iov.iov_len > FP_SIZE * sizeof(unsigned long)) {
		lab_xstate_bytes = iov.iov_len;
		return;
	}
	munmap(lab_xstate, LAB_XSTATE_ROOM);
	lab_xstate = NULL;
}

static struct iovec lab_whole_xstate(unsigned long *fp_regs)
{
	struct iovec kept = { fp_regs, FP_SIZE * sizeof(unsigned long) };
	struct iovec whole = { lab_xstate, lab_xstate_bytes };

	if (!lab_xstate)
		return kept;
	memcpy(lab_xstate, fp_regs, kept.iov_len);
	lab_xstate[LAB_XSTATE_BV] &= LAB_XSTATE_KEPT;
	return whole;
}
