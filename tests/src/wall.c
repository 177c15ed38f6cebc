/* Shows a program another wall clock, and moves no other: preloaded, it adds as many seconds as are in the file that
   HEARBACK_TESTS_WALL names, which may change at any time. It keeps nothing and shares nothing, so a process that
   is killed while it looks at the clock keeps no other from looking. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static char path[4096];

/* Early: Wine has its own idea of an environment later. */
__attribute__((constructor)) static void find_the_wall(void)
{
    const char *named = getenv("HEARBACK_TESTS_WALL");
    if (named && strlen(named) < sizeof path)
        strcpy(path, named);
}

static time_t moved_by(void)
{
    char text[32] = "";
    int before = errno;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) < 0)
            text[0] = 0;
        close(file);
    }
    errno = before;
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t which, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, which, now);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        now->tv_sec += moved_by();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int failed = (int)syscall(SYS_gettimeofday, now, zone);
    if (!failed)
        now->tv_sec += moved_by();
    return failed;
}

time_t time(time_t *into)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (into)
        *into = now.tv_sec;
    return now.tv_sec;
}
