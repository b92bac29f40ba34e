/* Which disk is what, the root file system, and the data volume: made where blank, checked where dirty, given what its roles are born with. */
#define _GNU_SOURCE
#include "init.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a disk is, by what is written on it: an interface's order or a slot would tie the image to one host's habits. */
enum content { nothing, root_system, seed, blank, ext4, ext4_dirty, other };

static int all_zero(const unsigned char *bytes, size_t length) {
    for (size_t at = 0; at < length; at += 1)
        if (bytes[at] != 0) return 0;
    return 1;
}

static enum content content_of(const char *device) {
    static unsigned char head[72 * 1024];
    int file = open(device, O_RDONLY | O_CLOEXEC);
    if (file < 0) return nothing;
    ssize_t length = read(file, head, sizeof head);
    close(file);
    if (length < 40 * 1024) return other;
    if (memcmp(head, "hsqs", 4) == 0) return root_system;
    /* ISO 9660, 8.4: the volume descriptor and in it the volume's name. */
    if (memcmp(head + 32769, "CD001", 5) == 0) return memcmp(head + 32808, "CIDATA ", 7) == 0 ? seed : other;
    const unsigned char *super = head + 1024;
    if (super[0x38] == 0x53 && super[0x39] == 0xef) {
        /* s_state: valid, has errors; s_feature_incompat: the journal is to be replayed (ext4's documentation). */
        int clean = (super[0x3a] & 1) != 0 && (super[0x3a] & 2) == 0 && (super[0x60] & 4) == 0;
        return clean ? ext4 : ext4_dirty;
    }
    /* mke2fs writes the superblock last, so one that was cut off has left these bytes as they were; anything else with a
       first page or the superblock of btrfs is somebody's data. */
    return all_zero(head, 4096) && (length < (ssize_t)sizeof head || memcmp(head + 65600, "_BHRfS_M", 8) != 0) ? blank
                                                                                                          : other;
}

char root_device[32], seed_device[32];
static char data_device[32];
static enum content data_content;

/* Of a machine that has no other disk yet. */
void find_root(void) {
    for (long end = now_ms() + disk_limit_ms; now_ms() < end; usleep(20000))
        for (char letter = 'a'; letter <= 'z'; letter += 1) {
            snprintf(root_device, sizeof root_device, "/dev/vd%c", letter);
            if (content_of(root_device) == root_system) return;
        }
    give_up("no virtio disk holds the root file system");
}

void find_disks(void) {
    long end = now_ms() + disk_limit_ms;
    do {
        root_device[0] = seed_device[0] = data_device[0] = 0;
        for (char letter = 'a'; letter <= 'z'; letter += 1) {
            char device[32];
            snprintf(device, sizeof device, "/dev/vd%c", letter);
            enum content found = content_of(device);
            if (found == root_system && root_device[0] == 0) strcpy(root_device, device);
            else if (found == seed) strcpy(seed_device, device);
            else if (found != nothing) {
                if (data_device[0] != 0) give_up("%s and %s could both be the data volume", data_device, device);
                strcpy(data_device, device);
                data_content = found;
            }
        }
        if (root_device[0] != 0 && seed_device[0] != 0 && data_device[0] != 0) return;
        usleep(20000);
    } while (now_ms() < end);
    if (root_device[0] == 0) give_up("no virtio disk holds the root file system");
    if (seed_device[0] == 0) give_up("no virtio disk is the seed volume CIDATA, so nothing says what this VM is");
    give_up("there is no data volume: a service VM needs a second virtio disk for what must outlive it");
}

/* Replaces the initial RAM file system by the root. */
void enter_root(void) {
    must_mount(root_device, "/root", "squashfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "");
    const char *moved[] = {"/dev", "/proc", "/sys"};
    for (int at = 0; at < 3; at += 1) {
        char target[32];
        snprintf(target, sizeof target, "/root%s", moved[at]);
        must_mount(moved[at], target, "", MS_MOVE, "");
    }
    if (chdir("/root") != 0 || mount(".", "/", "", MS_MOVE, "") != 0 || chroot(".") != 0 || chdir("/") != 0)
        give_up("the root file system cannot be entered: %s", strerror(errno));
}

/* Runs a program of the image and waits for it. Its exit code, or -1. */
static int run(char *const arguments[]) {
    char *const environment[] = {NULL};
    pid_t pid = fork();
    if (pid == 0) {
        execve(arguments[0], arguments, environment);
        _exit(127);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

static int data_volume_is_empty(void) {
    DIR *entries = opendir(DATA);
    int empty = 1;
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lost+found") != 0) empty = 0;
    if (entries != NULL) closedir(entries);
    return empty;
}

/*
 * A data volume that was blank takes over the stores that are on the seed volume, `birth/<role>/…` (the bootstrap's, whose
 * roles go on here). `unborn` is there before the first of them and becomes `born` after all are durable: one that was cut
 * off between is copied again, and one that has lived is never touched.
 */
void give_birth(void) {
    if (access(DATA "/.born", F_OK) == 0) return;
    if (access(DATA "/.unborn", F_OK) != 0 && !data_volume_is_empty()) return;
    int mark = open(DATA "/.unborn", O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    if (mark < 0 || fsync(mark) != 0) give_up("the data volume takes no file: %s", strerror(errno));
    close(mark);
    DIR *all = opendir("/data/birth");
    for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        const struct passwd *user = user_of(entry->d_name);
        if (user == NULL) give_up("the seed volume has stores of %.40s, a role that this image has not", entry->d_name);
        char from[path_size], to[path_size];
        join(from, "/data/birth", entry->d_name);
        join(to, DATA, entry->d_name);
        make_directory(to, user, 0700);
        copy_below(from, to, "", user, 0600);
        say("info", "%s goes on from what it was born with", user->pw_name);
    }
    if (all != NULL) closedir(all);
    sync();
    if (rename(DATA "/.unborn", DATA "/.born") != 0) give_up("the data volume takes no file: %s", strerror(errno));
    sync();
}

void open_data_volume(void) {
    if (data_content == other)
        give_up("the data volume %s is neither blank nor ext4, and nothing is done to it", data_device);
    if (data_content == blank) {
        char *make[] = {"/sbin/mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-L", "cells-data", data_device, NULL};
        int code = run(make);
        if (code != 0) give_up("no file system could be made on the data volume (mke2fs ended with %d)", code);
        say("info", "the data volume was blank and has a file system now");
    } else if (data_content == ext4_dirty) {
        char *check[] = {"/sbin/e2fsck", "-p", data_device, NULL};
        int code = run(check);
        /* 1: mended. 2 asks for a restart, which a volume that is not mounted needs not. */
        if (code < 0 || code > 3) give_up("the data volume is damaged beyond what e2fsck mends by itself (%d)", code);
        say("info", "the data volume was not closed properly, and is in order (e2fsck ended with %d)", code);
    }
    must_mount(data_device, DATA, "ext4", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, "errors=remount-ro");
}
