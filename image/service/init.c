/*
 * The first process of a service VM, and its only one beside the services: from the initial RAM file system through the
 * root file system to the last sync. One static program in place of a shell, its tools and scripts: every program that is
 * run costs an emulated processor tens of milliseconds, and what is not there cannot be misused.
 *
 *   modules → root (squashfs) → seed volume → data volume (made where blank, checked where dirty) → network → processes
 *
 * The seed volume holds secrets of every role, so root alone reads it: each role is given what is its own (`roles.c`),
 * and a data volume that was blank is given what its roles are born with (`disks.c`).
 *
 * Roles share a process, but for those that must not share memory with others (`roles.c`). A process that ends is started
 * again, ever later. Each has a pipe (descriptor 3) that it writes to every two seconds while all its roles answer; while one
 * of them is silent, the kernel answers no echo request, so that the VM's liveness probe is answered exactly while all roles
 * answer. It ends at the power button (or SIGTERM), after the roles did and their data is on the volume.
 *
 * What cannot be mended here is said on the console, and the VM is turned off: its host tells the VM's controller.
 */
#define _GNU_SOURCE
#include "init.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/input.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A line in the form of all lines of our logs. The words are ours: nothing in them needs an escape. */
void say(const char *level, const char *format, ...) {
    char words[400], line[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    int length = snprintf(line, sizeof line, "{\"level\":\"%s\",\"service\":\"init\",\"upMs\":%ld,\"event\":\"%s\"}\n", level,
                          now_ms(), words);
    if (write(1, line, (size_t)length) < 0) return;
}

void put(const char *path, const char *value) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, value, strlen(value)) < 0) say("warn", "%s cannot be set: %s", path, strerror(errno));
    close(file);
}

void turn_off(void) {
    sync();
    reboot(RB_POWER_OFF);
    for (;;) pause();
}

void give_up(const char *format, ...) {
    char words[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    say("error", "%s; this VM is turned off", words);
    turn_off();
    for (;;) pause();
}

void must_mount(const char *what, const char *where, const char *type, unsigned long flags, const char *options) {
    if (mount(what, where, type, flags, options) != 0)
        give_up("%s cannot be mounted at %s: %s", what, where, strerror(errno));
}

/* Modules in the order in which they need one another; each is forgotten once the kernel has it. */
static void load_modules(void) {
    FILE *order = fopen("/modules/order", "re");
    if (order == NULL) give_up("the initial RAM file system holds no /modules/order");
    char name[100], path[120];
    while (fscanf(order, "%99s", name) == 1) {
        snprintf(path, sizeof path, "/modules/%s", name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 || (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST))
            give_up("the kernel does not take its module %s: %s", name, strerror(errno));
        close(file);
        unlink(path);
    }
    fclose(order);
}

/* The power button is an input device of the kernel's ACPI driver; a keyboard may have such a key, too. */
static int open_button(void) {
    for (int number = 0; number < 8; number += 1) {
        char path[40], name[80] = "";
        snprintf(path, sizeof path, "/dev/input/event%d", number);
        int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (file < 0) continue;
        if (ioctl(file, EVIOCGNAME(sizeof name), name) >= 0 && strcmp(name, "Power Button") == 0) return file;
        close(file);
    }
    say("warn", "there is no power button, so this VM cannot be asked to stop");
    return -1;
}

__attribute__((noreturn)) static void serve(void) {
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    sigprocmask(SIG_BLOCK, &taken, NULL);
    int signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    int button = open_button();
    for (;;) {
        struct pollfd watched[2 + most_roles] = {{signals, POLLIN, 0}, {button, POLLIN, 0}};
        int wait = turn();
        for (int at = 0; at < process_count; at += 1) {
            /* A pipe whose writer ended would wake us again and again until its end is known. */
            watched[2 + at].fd = processes[at].pid > 0 ? processes[at].beats : -1;
            watched[2 + at].events = POLLIN;
        }
        poll(watched, 2 + (nfds_t)process_count, wait);
        struct signalfd_siginfo signal;
        while (read(signals, &signal, sizeof signal) == sizeof signal)
            if (signal.ssi_signo != SIGCHLD) stop_processes();
        reap();
        struct input_event event;
        while (button >= 0 && read(button, &event, sizeof event) == sizeof event)
            if (event.type == EV_KEY && event.code == KEY_POWER && event.value == 1) stop_processes();
    }
}

static const struct {
    const char *name, *value;
} settings[] = {
    {"net/ipv4/icmp_echo_ignore_all", "1"},
    /* DNS. Nobody else is here whose ports these could be. */
    {"net/ipv4/ip_unprivileged_port_start", "0"},
    {"net/ipv4/ip_forward", "0"},
    {"net/ipv4/conf/all/accept_redirects", "0"},
    /* An address that has moved here is known at once to all who had it elsewhere. */
    {"net/ipv4/conf/all/arp_notify", "1"},
    {"net/ipv6/conf/all/disable_ipv6", "1"},
    {"kernel/modules_disabled", "1"},
    {"kernel/sysrq", "0"},
    {"kernel/dmesg_restrict", "1"},
    {"kernel/kptr_restrict", "2"},
    {"kernel/unprivileged_bpf_disabled", "1"},
};

int main(void) {
    mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755");
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2");
    mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
    int console = open("/dev/console", O_RDWR | O_NOCTTY);
    if (console >= 0)
        for (int descriptor = 0; descriptor < 3; descriptor += 1) dup2(console, descriptor);
    if (console > 2) close(console);
    reboot(RB_DISABLE_CAD);
    load_modules();
    int saved = is_to_be_saved();
    if (saved) find_root();
    else find_disks();
    enter_root();
    must_mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=16m");
    for (size_t at = 0; at < sizeof settings / sizeof settings[0]; at += 1) {
        char path[100];
        snprintf(path, sizeof path, "/proc/sys/%s", settings[at].name);
        put(path, settings[at].value);
    }
    if (saved) {
        wait_to_be_somebody(root_device);
        find_disks();
        say("info", "goes on from a saved state");
    }
    must_mount(seed_device, "/data", "iso9660", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
               "overriderockperm,dmode=0500,mode=0400");
    open_data_volume();
    give_birth();
    set_up_network();
    read_roles();
    for (int at = 0; at < process_count; at += 1) start(&processes[at]);
    end_loaded();
    serve();
}
