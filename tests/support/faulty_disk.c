/* Put before the C library (LD_PRELOAD): writes to a store hang while the file $FAULTS/stuck exists, and find no space
   left while $FAULTS/full does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int is_there(const char *name) {
    char path[4096];
    const char *folder = getenv("FAULTS");
    if (folder == NULL) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static int is_store(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, ".sqlite") != NULL;
}

static int fails(int file) {
    if (!is_store(file)) return 0;
    while (is_there("stuck")) usleep(5000);
    return is_there("full");
}

#define NEXT(kind, name, types) ((kind(*) types)dlsym(RTLD_NEXT, name))
#define NO_SPACE (errno = ENOSPC, -1)

ssize_t pwrite(int file, const void *from, size_t count, off_t at) {
    if (fails(file)) return NO_SPACE;
    return NEXT(ssize_t, "pwrite", (int, const void *, size_t, off_t))(file, from, count, at);
}

ssize_t pwrite64(int file, const void *from, size_t count, off64_t at) {
    if (fails(file)) return NO_SPACE;
    return NEXT(ssize_t, "pwrite64", (int, const void *, size_t, off64_t))(file, from, count, at);
}

int fdatasync(int file) {
    if (fails(file)) return NO_SPACE;
    return NEXT(int, "fdatasync", (int))(file);
}

int fsync(int file) {
    if (fails(file)) return NO_SPACE;
    return NEXT(int, "fsync", (int))(file);
}
