/*
 * The loads of measured cases (spindle.validation.kernel), for the lab only: it writes to what it is given.
 *
 *   load timed MARKER READINGS COMMAND...                 read the clock so often, flush and drop the page cache, then
 *                                                         run a command between two reads of a marker drive, of its
 *                                                         sectors 0 and 1
 *   load requests PATH MODE BYTES DEPTH COUNT SEED SPAN   MODE: read, write (sequential), randread, randwrite, fsync
 *   load append PATH BYTES COUNT                          appends, an fsync after each
 *
 * Requests are direct I/O through io_submit, one each; every completion is replaced at once. `fsync` writes random
 * blocks through the page cache, an fsync after each. Each reading of the clock takes time in the lab, so there are as
 * many as where the cases were measured, in the same places.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECTOR = 512, PAGE = 4096 };

static void fail(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void *pages(size_t bytes, int content)
{
	void *found;

	if ((errno = posix_memalign(&found, PAGE, bytes)))
		fail("memory");
	memset(found, content, bytes);
	return found;
}

static int opened(const char *path, int flags)
{
	int file = open(path, flags, 0644);

	if (file < 0)
		fail(path);
	return file;
}

static void drop_caches(void)
{
	const char *path = "/proc/sys/vm/drop_caches";
	int file = opened(path, O_WRONLY);

	if (write(file, "3", 1) != 1)
		fail(path);
	close(file);
}

static void mark(const char *marker, int sector)
{
	int file = opened(marker, O_RDONLY | O_DIRECT);
	void *buffer = pages(PAGE, 0);

	if (pread(file, buffer, SECTOR, sector * SECTOR) != SECTOR)
		fail(marker);
	close(file);
	free(buffer);
}

static int timed(const char *marker, int readings, char **command)
{
	int status = 0;
	uint64_t begin, end;
	pid_t child;

	while (readings--)
		now_ns();
	sync();
	drop_caches();
	mark(marker, 0);
	begin = now_ns();
	child = fork();
	if (!child) {
		execvp(command[0], command);
		fail(command[0]);
	}
	waitpid(child, &status, 0);
	end = now_ns();
	mark(marker, 1);
	printf("elapsed_ns %llu\n", (unsigned long long)(end - begin));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

struct places {
	int is_random;
	uint64_t state, bytes, count;
};

static uint64_t place_of(struct places *places, uint64_t index)
{
	if (!places->is_random)
		return index * places->bytes;
	places->state = places->state * 6364136223846793005ull + 1442695040888963407ull;
	return (places->state >> 33) % places->count * places->bytes;
}

static void synced(int file, struct places *places, uint64_t count)
{
	void *buffer = pages(places->bytes, 'b');
	uint64_t begin = now_ns(), index;

	for (index = 0; index < count; index++)
		if (pwrite(file, buffer, places->bytes, place_of(places, index)) != (ssize_t)places->bytes ||
		    fsync(file))
			fail("write");
	printf("requests %llu elapsed_ns %llu\n", (unsigned long long)count,
	       (unsigned long long)(now_ns() - begin));
}

struct load {
	aio_context_t context;
	struct iocb *requests;
	uint64_t *begun;
	struct places places;
	uint64_t submitted, mean, longest;
};

static void submit(struct load *load, int slot)
{
	struct iocb *request = &load->requests[slot];

	request->aio_offset = place_of(&load->places, load->submitted++);
	load->begun[slot] = now_ns();
	if (syscall(SYS_io_submit, load->context, 1, &request) != 1)
		fail("io_submit");
}

static void asynchronous(int file, struct places places, int is_write, int depth, uint64_t count)
{
	struct io_event *events = calloc(depth, sizeof(*events));
	struct load load = {
		.requests = calloc(depth, sizeof(*load.requests)),
		.begun = calloc(depth, sizeof(*load.begun)),
		.places = places,
	};
	uint64_t done = 0, total = 0, begin, elapsed;
	int slot, place, found;

	if (syscall(SYS_io_setup, depth < 8 ? 8 : depth, &load.context))
		fail("io_setup");
	for (slot = 0; slot < depth; slot++) {
		load.requests[slot].aio_buf = (uintptr_t)pages(places.bytes, 'c' + slot % 20);
		load.requests[slot].aio_fildes = file;
		load.requests[slot].aio_lio_opcode = is_write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
		load.requests[slot].aio_nbytes = places.bytes;
		load.requests[slot].aio_data = slot;
	}
	begin = now_ns();
	for (slot = 0; slot < depth && load.submitted < count; slot++)
		submit(&load, slot);
	while (done < count) {
		uint64_t now;

		found = syscall(SYS_io_getevents, load.context, 1, depth, events, NULL);
		now = now_ns();
		if (found < 1)
			fail("io_getevents");
		for (place = 0; place < found; place++) {
			uint64_t latency = now - load.begun[slot = events[place].data];

			if (events[place].res != (int64_t)places.bytes) {
				errno = events[place].res < 0 ? -events[place].res : EIO;
				fail("request");
			}
			total += latency;
			load.longest = latency > load.longest ? latency : load.longest;
			done++;
			if (load.submitted < count)
				submit(&load, slot);
		}
	}
	elapsed = now_ns() - begin;
	printf("requests %llu elapsed_ns %llu mean_ns %llu longest_ns %llu\n", (unsigned long long)count,
	       (unsigned long long)elapsed, (unsigned long long)(total / count), (unsigned long long)load.longest);
}

static int requests(char **words)
{
	const char *mode = words[1];
	int is_buffered = !strcmp(mode, "fsync"), is_write = is_buffered || strstr(mode, "write");
	int file = opened(words[0], (is_write ? O_RDWR : O_RDONLY) | (is_buffered ? 0 : O_DIRECT));
	struct places places = {
		.is_random = is_buffered || !strncmp(mode, "rand", 4),
		.state = strtoull(words[5], NULL, 0),
		.bytes = strtoull(words[2], NULL, 0),
	};

	places.count = strtoull(words[6], NULL, 0) / places.bytes;
	if (is_buffered)
		synced(file, &places, strtoull(words[4], NULL, 0));
	else
		asynchronous(file, places, is_write, atoi(words[3]), strtoull(words[4], NULL, 0));
	return 0;
}

static int append(char **words)
{
	int file = opened(words[0], O_WRONLY | O_CREAT | O_APPEND), index;
	int bytes = atoi(words[1]), count = atoi(words[2]);
	char *buffer = malloc(bytes);

	memset(buffer, 'a', bytes);
	for (index = 0; index < count; index++)
		if (write(file, buffer, bytes) != bytes || fsync(file))
			fail(words[0]);
	return 0;
}

int main(int count, char **words)
{
	if (count >= 5 && !strcmp(words[1], "timed"))
		return timed(words[2], atoi(words[3]), words + 4);
	if (count == 9 && !strcmp(words[1], "requests"))
		return requests(words + 2);
	if (count == 5 && !strcmp(words[1], "append"))
		return append(words + 2);
	fputs("load: timed, requests or append\n", stderr);
	return 2;
}
