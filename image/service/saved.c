/*
 * Start from a saved state (decision 85). Most of a start is the same for every service VM: the kernel, its modules, and
 * Node with a bundle. So the image is started once without an identity (no seed, no data volume, no network card), to the
 * point where processes wait on a pipe for their roles, and is saved there. A machine that goes on from that state becomes
 * itself first:
 *
 *   time and random bytes of its host → the kernel's generator and clock → "done" → disks and cards are plugged in
 *
 * Nobody has listened, or made a key, before. What a loaded process has drawn before is put aside in start.cjs.
 */
#define _GNU_SOURCE
#include "init.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most_loaded = 4, load_limit_ms = 60000, port_limit_ms = 10000, most_random = 256, spare_kib = 12 * 1024, block_size = 4096 };

static struct loaded {
    char program[32];
    pid_t pid; /* 0: taken, or ended */
    int beats, orders;
} all_loaded[most_loaded];
static int loaded_count;

static const char option[] = "cells.save=";

static int read_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    if (file >= 0) close(file);
    text[length < 0 ? 0 : length] = 0;
    return length > 0;
}

/* The programs to load, with commas in between, from the kernel's command line. */
static int programs_to_load(char *programs, size_t size) {
    char line[4096];
    if (!read_text("/proc/cmdline", line, sizeof line)) return 0;
    const char *found = strstr(line, option);
    if (found == NULL) return 0;
    found += sizeof option - 1;
    snprintf(programs, size, "%.*s", (int)strcspn(found, " \n"), found);
    return 1;
}

int is_to_be_saved(void) {
    char programs[200];
    return programs_to_load(programs, sizeof programs);
}

static void load(const char *program) {
    int beats[2], orders[2];
    if (loaded_count == most_loaded) give_up("more than %d processes are to be loaded", most_loaded);
    if (pipe2(beats, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(orders, O_CLOEXEC) != 0) give_up("no pipe: %s", strerror(errno));
    struct loaded *process = &all_loaded[loaded_count];
    snprintf(process->program, sizeof process->program, "%s", program);
    pid_t pid = fork();
    if (pid == 0) {
        char *const arguments[] = {"/usr/bin/node", "/usr/lib/cells/start.cjs", "--wait", process->program, NULL};
        char *const environment[] = {"NODE_ENV=production", NULL};
        confine(orders[0], beats[1], 1);
        execve(arguments[0], arguments, environment);
        _exit(127);
    }
    if (pid < 0) give_up("no process: %s", strerror(errno));
    close(beats[1]);
    close(orders[0]);
    process->pid = pid;
    process->beats = beats[0];
    process->orders = orders[1];
    loaded_count += 1;
}

static void await_loaded(const struct loaded *process) {
    struct pollfd watched = {process->beats, POLLIN, 0};
    char byte;
    if (poll(&watched, 1, load_limit_ms) != 1 || read(process->beats, &byte, 1) != 1)
        give_up("the program %s did not load", process->program);
}

/* Free memory holds what was last in it; filled with zeros it takes no room in a file. */
static void clear_free_memory(void) {
    char text[4096];
    const char *line = read_text("/proc/meminfo", text, sizeof text) ? strstr(text, "MemFree:") : NULL;
    long kib = line == NULL ? 0 : strtol(line + 8, NULL, 10) - spare_kib;
    if (kib <= 0) return;
    void *pages = mmap(NULL, (size_t)kib * 1024, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (pages != MAP_FAILED) munmap(pages, (size_t)kib * 1024);
}

/* The serial port with this name, once its driver has it. */
static int open_port(const char *name) {
    for (long end = now_ms() + port_limit_ms; now_ms() < end; usleep(10000)) {
        DIR *ports = opendir("/sys/class/virtio-ports");
        for (struct dirent *port; ports != NULL && (port = readdir(ports)) != NULL;) {
            char path[400], found[100];
            snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", port->d_name);
            if (port->d_name[0] == '.' || !read_text(path, found, sizeof found)) continue;
            found[strcspn(found, "\n")] = 0;
            if (strcmp(found, name) != 0) continue;
            snprintf(path, sizeof path, "/dev/%s", port->d_name);
            int file = open(path, O_RDWR | O_CLOEXEC);
            closedir(ports);
            if (file < 0) give_up("%s cannot be opened: %s", path, strerror(errno));
            return file;
        }
        if (ports != NULL) closedir(ports);
    }
    give_up("there is no serial port %s, at which this VM would be told who it is", name);
}

static void tell(int port, const char *words) {
    if (write(port, words, strlen(words)) != (ssize_t)strlen(words)) give_up("its host does not listen: %s", strerror(errno));
}

/* One line. While no host has connected, a read says that the port has ended. */
static void hear(int port, char *line, size_t size) {
    size_t length = 0;
    while (length + 1 < size) {
        ssize_t more = read(port, line + length, 1);
        if (more == 1 && line[length] == '\n') break;
        if (more == 1) length += 1;
        else usleep(5000);
    }
    line[length] = 0;
}

/* Machines of one state would draw the same numbers. What was drawn before the clock and these bytes came is nobody's. */
static void take_random_numbers(const char *digits) {
    _Alignas(struct rand_pool_info) unsigned char space[sizeof(struct rand_pool_info) + most_random];
    struct rand_pool_info *pool = (struct rand_pool_info *)space;
    unsigned char *bytes = space + sizeof *pool;
    int count = 0;
    for (unsigned value; count < most_random && sscanf(digits + 2 * count, "%2x", &value) == 1; count += 1)
        bytes[count] = (unsigned char)value;
    pool->buf_size = count;
    pool->entropy_count = 8 * count;
    int device = open("/dev/urandom", O_RDWR | O_CLOEXEC);
    if (count < 32 || device < 0 || ioctl(device, RNDADDENTROPY, pool) != 0 || ioctl(device, RNDRESEEDCRNG) != 0)
        give_up("the kernel does not take random numbers: %s", strerror(errno));
    close(device);
    explicit_bzero(space, sizeof space);
}

/* The superblock and the first file, past the cache: a state belongs to the disk that it remembers. */
static int read_disk(const char *device, unsigned char *block) {
    int file = open(device, O_RDONLY | O_DIRECT | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : pread(file, block, block_size, 0);
    if (file >= 0) close(file);
    return length == block_size;
}

void wait_to_be_somebody(const char *root_device) {
    static _Alignas(4096) unsigned char before[block_size], after[block_size];
    char programs[200], line[2 * most_random + 100];
    signal(SIGPIPE, SIG_IGN);
    programs_to_load(programs, sizeof programs);
    for (char *program = strtok(programs, ","); program != NULL; program = strtok(NULL, ",")) load(program);
    for (int at = 0; at < loaded_count; at += 1) await_loaded(&all_loaded[at]);
    int port = open_port("cells.identity");
    if (!read_disk(root_device, before)) give_up("%s cannot be read past the cache: %s", root_device, strerror(errno));
    clear_free_memory();
    tell(port, "waiting\n");
    hear(port, line, sizeof line);
    if (!read_disk(root_device, after) || memcmp(before, after, block_size) != 0) {
        tell(port, "failed disk\n");
        for (;;) pause();
    }
    char *digits;
    struct timespec now = {strtol(line, &digits, 10), 0};
    if (now.tv_sec <= 0 || *digits != ' ') give_up("its host has not told the time");
    take_random_numbers(digits + 1);
    explicit_bzero(line, sizeof line);
    if (clock_settime(CLOCK_REALTIME, &now) != 0) give_up("its clock cannot be set: %s", strerror(errno));
    tell(port, "done\n");
    close(port);
}

pid_t take_loaded(const char *program, uid_t uid, gid_t gid, const char *home, const char *roles, int *beats) {
    for (int at = 0; at < loaded_count; at += 1) {
        struct loaded *process = &all_loaded[at];
        if (process->pid == 0 || strcmp(process->program, program) != 0) continue;
        pid_t pid = process->pid;
        process->pid = 0;
        int told = dprintf(process->orders, "%u %u %s %s\n", uid, gid, home, roles);
        close(process->orders);
        if (told > 0) {
            *beats = process->beats;
            return pid;
        }
        close(process->beats);
    }
    return 0;
}

void end_loaded(void) {
    for (int at = 0; at < loaded_count; at += 1) {
        if (all_loaded[at].pid == 0) continue;
        kill(all_loaded[at].pid, SIGKILL);
        waitpid(all_loaded[at].pid, NULL, 0);
        close(all_loaded[at].beats);
        close(all_loaded[at].orders);
        all_loaded[at].pid = 0;
    }
}
