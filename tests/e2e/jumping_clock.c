// An LD_PRELOAD library that shifts the time of day by the number of seconds in the file JUMPING_CLOCK.
// Changes take effect at once, also for waits in progress, as if the machine's clock had been set. Monotonic
// clocks are not affected.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* jump;
static long (*the_syscall)(long, ...);
static int (*the_clock_gettime)(clockid_t, struct timespec*);

static void find(void) {
  if (the_syscall != NULL) return;
  the_clock_gettime = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  the_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
}

__attribute__((constructor)) static void open_file(void) {
  find();
  const int file = open(getenv("JUMPING_CLOCK"), O_RDONLY);
  void* mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *jump, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  close(file);
  jump = mapped;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  find();
  const int code = the_clock_gettime(clock, now);
  if (code == 0 && clock == CLOCK_REALTIME && jump != NULL) now->tv_sec += *jump;
  return code;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* now) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != NULL) *now = precise.tv_sec;
  return precise.tv_sec;
}

static int is_before(const struct timespec* a, const struct timespec* b) {
  return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

// Waits until a time of day in slices of 10 ms, to notice jumps of the clock.
static long wait_until(uint32_t* word, int operation, uint32_t expected, const struct timespec* end, uint32_t bits) {
  for (;;) {
    struct timespec now, slice;
    clock_gettime(CLOCK_REALTIME, &now);
    const int last = !is_before(&now, end);
    the_clock_gettime(CLOCK_REALTIME, &slice);
    if (!last) slice.tv_nsec += 10 * 1000 * 1000;
    if (slice.tv_nsec >= 1000 * 1000 * 1000) {
      slice.tv_nsec -= 1000 * 1000 * 1000;
      ++slice.tv_sec;
    }
    const long code = the_syscall(SYS_futex, word, operation, expected, &slice, NULL, bits);
    if (code == 0 || errno != ETIMEDOUT || last) return code;
  }
}

long syscall(long number, ...) {
  find();
  va_list list;
  long a[6];
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  const int until = number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) && a[3] != 0;
  if (until) return wait_until((uint32_t*)a[0], (int)a[1], (uint32_t)a[2], (const struct timespec*)a[3], (uint32_t)a[5]);
  return the_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
