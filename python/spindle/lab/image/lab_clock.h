/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lab's clock: a part of arch/um/kernel/time.c in place of the messages of
 * um_timetravel.h, of which a request took seven and their answers.
 *
 * One message asks, one answers. Kicks of the disks' rings wait here until
 * time passes; they carry the time at which they were made. Until the lookahead
 * has passed no disk can have returned what they brought. The answer to a
 * kernel that waits has the interrupts. crates/lab/src/time_travel has the
 * other side.
 */
#define LAB_KICKS 64

enum lab_op { LAB_START = 1, LAB_KICK, LAB_WAIT, LAB_DEVICE };

static struct {
	u32 op, count;
	u64 now, request;
	struct {
		u64 time;
		u16 device, ring, available, unused;
	} kicks[LAB_KICKS];
} lab_message;

static struct {
	u32 count, unused;
	u64 time, free_until;
	struct {
		u16 device, ring;
	} interrupts[256];
} lab_answer;

static unsigned long long lab_lookahead;

/*
 * A reading of the clock takes this time, which is also the clock's
 * resolution. Loops that wait for a time must end: readings that follow many
 * others without a sleep of the kernel between them take TIMER_MULTIPLIER.
 */
static unsigned long lab_reading_ns = 1;
static unsigned int lab_readings;
#define LAB_READINGS 4096

static unsigned long lab_reading(void)
{
	if (lab_readings == LAB_READINGS)
		return TIMER_MULTIPLIER;
	lab_readings++;
	return lab_reading_ns;
}

static int __init lab_setup_clock(char *text)
{
	if (kstrtoul(text, 0, &lab_reading_ns) || !lab_reading_ns)
		panic("lab-clock=%s is not a number of nanoseconds\n", text);
	return 1;
}
__setup("lab-clock=", lab_setup_clock);

static void lab_ask(enum lab_op op, unsigned long long request)
{
	int len = offsetof(typeof(lab_message), kicks) +
		  lab_message.count * sizeof(lab_message.kicks[0]);
	int ret;

	lab_message.op = op;
	lab_message.now = time_travel_time;
	lab_message.request = request;
	block_signals_hard();
	os_write_file(time_travel_ext_fd, &lab_message, len);
	lab_message.count = 0;
	do
		ret = os_read_file(time_travel_ext_fd, &lab_answer,
				   sizeof(lab_answer));
	while (ret == -EINTR);
	unblock_signals_hard();
	if (ret < (int)offsetof(typeof(lab_answer), interrupts))
		panic("time-travel external link is broken\n");
	time_travel_ext_free_until = lab_answer.free_until;
}

void lab_kick(u16 device, u16 ring, u16 available, bool at_once)
{
	unsigned int place = lab_message.count++;

	lab_message.kicks[place].time = time_travel_time;
	lab_message.kicks[place].device = device;
	lab_message.kicks[place].ring = ring;
	lab_message.kicks[place].available = available;
	if (at_once || lab_message.count == LAB_KICKS)
		lab_ask(LAB_KICK, 0);
	else
		time_travel_ext_free_until = min(time_travel_ext_free_until,
						 time_travel_time + lab_lookahead);
}

/* A message for a device follows. */
void lab_speak_to(u16 device)
{
	lab_ask(LAB_DEVICE, device);
}

static void lab_start(unsigned long long id)
{
	lab_ask(LAB_START, id);
	time_travel_start = lab_answer.time;
	time_travel_start_set = true;
	lab_lookahead = lab_answer.free_until;
	time_travel_ext_free_until = 0;
}

static bool time_travel_ext_request(unsigned long long time)
{
	return time >= time_travel_ext_free_until;
}

static void time_travel_ext_wait(unsigned long long time)
{
	u32 i;

	time_travel_ext_waiting++;
	lab_ask(LAB_WAIT, time);
	time_travel_set_time(lab_answer.time);
	for (i = 0; i < lab_answer.count; i++)
		lab_interrupt(lab_answer.interrupts[i].device,
			      lab_answer.interrupts[i].ring);
	time_travel_ext_waiting--;
}

