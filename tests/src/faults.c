/* Lets the system calls of one program fail while a test says so, and those of no other program: preloaded, it acts
   only in a process whose arguments begin with the words `monitor run`. The test writes two numbers into the file that
   HEARBACK_TESTS_FAULTS names: which kind of call fails, and how many of a thousand. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { NONE, FILES, THREADS, SPACE, DEVICE };

static volatile uint32_t *control;

__attribute__((constructor)) static void find_the_test(void)
{
    const char *named = getenv("HEARBACK_TESTS_FAULTS");
    char words[4096] = "";
    if (!named)
        return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    long length = syscall(SYS_read, file, words, sizeof words);
    syscall(SYS_close, file);
    if (length <= 0 || !memmem(words, (size_t)length, "\0monitor\0run", 12))
        return;
    file = (int)syscall(SYS_openat, AT_FDCWD, named, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (page != MAP_FAILED)
        control = page;
}

/* Whether this call fails. The third number counts them, so that the test knows that there were any. */
static int fails(enum kind kind)
{
    static _Thread_local uint32_t state;
    if (!control || control[0] != (uint32_t)kind)
        return 0;
    if (!state)
        state = (uint32_t)syscall(SYS_gettid) * 2654435761u | 1;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    if (state % 1000 >= control[1])
        return 0;
    __atomic_add_fetch(&control[2], 1, __ATOMIC_RELAXED);
    return 1;
}

static int is_file(int file)
{
    struct stat about;
    return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

#define FAIL(number) return errno = (number), -1
#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int refused(int flags)
{
    if (fails(FILES))
        return errno = EMFILE;
    if ((flags & O_CREAT) && fails(SPACE))
        return errno = ENOSPC;
    if (fails(DEVICE))
        return errno = EIO;
    return 0;
}

#define OPEN(name, parameters, arguments) \
    int name parameters \
    { \
        mode_t mode = 0; \
        REAL(name); \
        if (flags & (O_CREAT | __O_TMPFILE)) { \
            va_list more; \
            va_start(more, flags); \
            mode = va_arg(more, mode_t); \
            va_end(more); \
        } \
        if (refused(flags)) \
            return -1; \
        return real arguments; \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))

int pipe2(int files[2], int flags)
{
    REAL(pipe2);
    if (fails(FILES))
        FAIL(EMFILE);
    return real(files, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *with)
{
    REAL(pthread_create);
    if (fails(THREADS))
        return EAGAIN;
    return real(thread, how, work, with);
}

pid_t fork(void)
{
    REAL(fork);
    if (fails(THREADS))
        FAIL(EAGAIN);
    return real();
}

ssize_t write(int file, const void *bytes, size_t count)
{
    REAL(write);
    if (fails(SPACE) && is_file(file))
        FAIL(ENOSPC);
    return real(file, bytes, count);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    REAL(mkdirat);
    if (fails(SPACE))
        FAIL(ENOSPC);
    return real(folder, path, mode);
}

int linkat(int from, const char *old, int to, const char *new, int flags)
{
    REAL(linkat);
    if (fails(SPACE))
        FAIL(ENOSPC);
    return real(from, old, to, new, flags);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    REAL(renameat2);
    if (fails(SPACE))
        FAIL(ENOSPC);
    return real(from, old, to, new, flags);
}

ssize_t read(int file, void *into, size_t count)
{
    REAL(read);
    if (fails(DEVICE) && is_file(file))
        FAIL(EIO);
    return real(file, into, count);
}

int fsync(int file)
{
    REAL(fsync);
    if (fails(DEVICE))
        FAIL(EIO);
    return real(file);
}
