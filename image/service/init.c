/*
 * The first process of a service VM, and its only one beside the services: from the initial RAM file system through the
 * root file system to the last sync. One static program in place of a shell, its tools and scripts: every program that is
 * run costs an emulated processor tens of milliseconds, and what is not there cannot be misused.
 *
 *   modules → root (squashfs) → seed volume → data volume (made where blank, checked where dirty) → network → processes
 *
 * The seed volume holds secrets of every role, so root alone reads it: each role is given what is its own (`hand_over`),
 * and a data volume that was blank is given what its roles are born with (`give_birth`).
 *
 * Roles share a process, but for those that must not share memory with others (`apart`). A process that ends is started
 * again, ever later. Each has a pipe (descriptor 3) that it writes to every two seconds while all its roles answer; while one
 * of them is silent, the kernel answers no echo request, so that the VM's liveness probe is answered exactly while all roles
 * answer. It ends at the power button (or SIGTERM), after the roles did and their data is on the volume.
 *
 * What cannot be mended here is said on the console, and the VM is turned off: its host tells the VM's controller.
 */
#define _GNU_SOURCE
#include "init.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/input.h>
#include <net/if.h>
#include <net/route.h>
#include <arpa/inet.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    most_roles = 10,
    disk_limit_ms = 10000,
    first_backoff_ms = 200,
    longest_backoff_ms = 10000,
    /* A role that ran for so long is started at once when it ends. */
    lasting_ms = 30000,
    /* A role writes every 2 s; on a busy host its processor may stand still for a while. */
    silence_ms = 8000,
    stop_limit_ms = 6000,
    path_size = 512,
};

#define DATA "/var/lib/cells"
#define RUN "/run/cells"

/*
 * Who has a process and a user of its own in any case: who signs certificates, who decides that hosts are dead, and who
 * talks to the outside. All others read what tenants wrote, and trust one another with it.
 */
static const char *const apart[] = {"authority", "presence", "gateway", NULL};
/* The user of the process that several roles share, and its name in the log. */
static const char shared_name[] = "services";

/* Roles that run in one process, by the name of its user: a role's own where it is alone. */
struct process {
    char name[32];
    char roles[most_roles][32];
    int role_count;
    uid_t uid;
    gid_t gid;
    pid_t pid; /* 0: does not run */
    int beats; /* read end of its pipe, -1: none */
    long started_ms, heard_ms, due_ms;
    long backoff_ms;
    int answers;
};
static struct process processes[most_roles];
static int process_count;
static int stopping;

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

static void put(const char *path, const char *value) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, value, strlen(value)) < 0) say("warn", "%s cannot be set: %s", path, strerror(errno));
    close(file);
}

static void turn_off(void) {
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

static void must_mount(const char *what, const char *where, const char *type, unsigned long flags, const char *options) {
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

static char root_device[32], seed_device[32], data_device[32];
static enum content data_content;

/* Of a machine that has no other disk yet. */
static void find_root(void) {
    for (long end = now_ms() + disk_limit_ms; now_ms() < end; usleep(20000))
        for (char letter = 'a'; letter <= 'z'; letter += 1) {
            snprintf(root_device, sizeof root_device, "/dev/vd%c", letter);
            if (content_of(root_device) == root_system) return;
        }
    give_up("no virtio disk holds the root file system");
}

static void find_disks(void) {
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
static void enter_root(void) {
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

/* Copies a file, durably on a file system that is; gives up if it cannot. */
static void copy_file(const char *from, const char *to, const struct passwd *owner, mode_t mode) {
    static char bytes[64 * 1024];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (in < 0 || out < 0) give_up("%s cannot be copied to %s: %s", from, to, strerror(errno));
    for (ssize_t length; (length = read(in, bytes, sizeof bytes)) != 0;)
        if (length < 0 || write(out, bytes, (size_t)length) != length)
            give_up("%s cannot be copied to %s: %s", from, to, strerror(errno));
    if (fchown(out, owner->pw_uid, owner->pw_gid) != 0 || fchmod(out, mode) != 0 || fsync(out) != 0)
        give_up("%s cannot be handed over: %s", to, strerror(errno));
    close(in);
    close(out);
}

static void make_directory(const char *path, const struct passwd *owner, mode_t mode) {
    if ((mkdir(path, mode) != 0 && errno != EEXIST) || chown(path, owner->pw_uid, owner->pw_gid) != 0 ||
        chmod(path, mode) != 0)
        give_up("%s cannot be made: %s", path, strerror(errno));
}

static void join(char *path, const char *directory, const char *name) {
    if (snprintf(path, path_size, "%s/%s", directory, name) >= path_size) give_up("%s holds a path that is too long", directory);
}

/* What is below a directory, but for one name, into another one that is there; files get `mode`, directories may be entered. */
static void copy_below(const char *from, const char *to, const char *except, const struct passwd *owner, mode_t mode) {
    DIR *entries = opendir(from);
    if (entries == NULL) give_up("%s cannot be read: %s", from, strerror(errno));
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char source[path_size], target[path_size];
        struct stat what;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || strcmp(entry->d_name, except) == 0)
            continue;
        join(source, from, entry->d_name);
        join(target, to, entry->d_name);
        if (lstat(source, &what) != 0) give_up("%s cannot be read: %s", source, strerror(errno));
        if (S_ISDIR(what.st_mode)) {
            make_directory(target, owner, mode | 0100);
            copy_below(source, target, "", owner, mode);
        } else if (S_ISREG(what.st_mode)) copy_file(source, target, owner, mode);
    }
    closedir(entries);
}

/* The user that a role runs as, from the image's /etc/passwd; NULL for what is no role. Good until the next call. */
static const struct passwd *user_of(const char *name) {
    static struct passwd found;
    static char kept[32];
    FILE *users = fopen("/etc/passwd", "re");
    struct passwd *user = NULL;
    while (users != NULL && (user = fgetpwent(users)) != NULL && strcmp(user->pw_name, name) != 0) continue;
    if (users != NULL) fclose(users);
    if (user == NULL || user->pw_uid == 0 || strlen(name) >= sizeof kept) return NULL;
    found = *user;
    found.pw_name = strcpy(kept, name);
    return &found;
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
static void give_birth(void) {
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

static void open_data_volume(void) {
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

static void set_address(int control, const char *device, unsigned long request, const char *address) {
    struct ifreq wish = {0};
    struct sockaddr_in *to = (struct sockaddr_in *)&wish.ifr_addr;
    strncpy(wish.ifr_name, device, IFNAMSIZ - 1);
    to->sin_family = AF_INET;
    if (inet_pton(AF_INET, address, &to->sin_addr) != 1 || ioctl(control, request, &wish) != 0)
        give_up("%s cannot have the address or mask %s", device, address);
}

static void up(int control, const char *device) {
    struct ifreq wish = {0};
    strncpy(wish.ifr_name, device, IFNAMSIZ - 1);
    wish.ifr_flags = IFF_UP;
    if (ioctl(control, SIOCSIFFLAGS, &wish) != 0) give_up("%s cannot be turned on: %s", device, strerror(errno));
}

static int device_of(const char *mac, char *device) {
    DIR *cards = opendir("/sys/class/net");
    int found = 0;
    for (struct dirent *card; !found && cards != NULL && (card = readdir(cards)) != NULL;) {
        char path[300], address[32] = "";
        if (card->d_name[0] == '.' || strlen(card->d_name) >= IFNAMSIZ) continue;
        snprintf(path, sizeof path, "/sys/class/net/%s/address", card->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL) continue;
        found = fscanf(file, "%31s", address) == 1 && strcasecmp(address, mac) == 0;
        fclose(file);
        if (found) strcpy(device, card->d_name);
    }
    if (cards != NULL) closedir(cards);
    return found;
}

/*
 * The seed's file `interfaces`: MAC ADDRESS NETMASK GATEWAY …, one line for each; the first one's gateway is the way out.
 * A gateway of 0.0.0.0 is none: the card is on the underlay, where every address is reached directly. A card comes up with
 * its address, so that `arp_notify` makes it known to switches which last saw the address elsewhere.
 */
static void set_up_network(void) {
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    up(control, "lo");
    FILE *list = fopen("/data/interfaces", "re");
    if (list == NULL) give_up("the seed volume has no file `interfaces`");
    char line[400], device[IFNAMSIZ], mac[32], address[32], mask[32], gateway[32];
    for (int number = 0; fgets(line, sizeof line, list) != NULL; number += 1) {
        if (sscanf(line, "%31s %31s %31s %31s", mac, address, mask, gateway) != 4) continue;
        /* It may be plugged in while we look. */
        for (long end = now_ms() + disk_limit_ms; !device_of(mac, device); usleep(10000))
            if (now_ms() > end) give_up("there is no network card %s", mac);
        set_address(control, device, SIOCSIFADDR, address);
        set_address(control, device, SIOCSIFNETMASK, mask);
        up(control, device);
        if (number > 0) continue;
        struct rtentry route = {0};
        ((struct sockaddr_in *)&route.rt_dst)->sin_family = AF_INET;
        ((struct sockaddr_in *)&route.rt_genmask)->sin_family = AF_INET;
        struct sockaddr_in *via = (struct sockaddr_in *)&route.rt_gateway;
        via->sin_family = AF_INET;
        int known = inet_pton(AF_INET, gateway, &via->sin_addr) == 1;
        route.rt_flags = via->sin_addr.s_addr == INADDR_ANY ? RTF_UP : RTF_UP | RTF_GATEWAY;
        route.rt_dev = device;
        if (!known || ioctl(control, SIOCADDRT, &route) != 0)
            say("warn", "there is no route through %s: %s", gateway, strerror(errno));
    }
    fclose(list);
    close(control);
}

/* What a role is told, in a directory that nobody else may enter: see runtime/service-vm/service-data.ts for its files. */
static void hand_over(const char *role, const struct passwd *user) {
    char own[path_size], to[path_size], from[path_size];
    join(own, RUN, role);
    make_directory(own, user, 0700);
    join(to, own, "seed");
    make_directory(to, user, 0500);
    join(to, own, "seed/interfaces");
    copy_file("/data/interfaces", to, user, 0400);
    join(to, own, "seed/data");
    make_directory(to, user, 0500);
    copy_below("/data/data", to, "roles", user, 0400);
    join(to, own, "seed/role");
    make_directory(to, user, 0500);
    join(from, "/data/data/roles", role);
    copy_below(from, to, "", user, 0400);
}

static void write_map(pid_t pid, const char *what, unsigned inside, unsigned outside) {
    char path[64], map[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    int length = snprintf(map, sizeof map, "%u %u 1", inside, outside);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, map, (size_t)length) != length) give_up("%s cannot be written: %s", path, strerror(errno));
    close(file);
}

/* A user namespace in which `inside` is `outside` and nobody else is anybody. */
static int user_namespace(const struct passwd *inside, const struct passwd *outside) {
    int ends[2], begun[2];
    char path[64], byte = 0;
    if (pipe2(ends, O_CLOEXEC) != 0 || pipe2(begun, O_CLOEXEC) != 0) give_up("no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        int failed = unshare(CLONE_NEWUSER) != 0 ? errno : 0;
        if (write(begun[1], &failed, sizeof failed) != sizeof failed) _exit(1);
        /* Lives until the other end closes. */
        _exit(read(ends[0], &byte, 1) < 0);
    }
    int failed = EIO;
    if (pid < 0 || read(begun[0], &failed, sizeof failed) != sizeof failed || failed != 0)
        give_up("there is no user namespace: %s", strerror(failed));
    write_map(pid, "uid_map", inside->pw_uid, outside->pw_uid);
    write_map(pid, "gid_map", inside->pw_gid, outside->pw_gid);
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    int namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0) give_up("%s cannot be opened: %s", path, strerror(errno));
    for (int at = 0; at < 2; at += 1) {
        close(ends[at]);
        close(begun[at]);
    }
    waitpid(pid, NULL, 0);
    return namespace;
}

/*
 * Files on the data volume belong to their role's own user, whatever runs it: so a role may move to a process of its own, or
 * to an earlier release of this image, and has its files. A process that several roles share has their directories through
 * mounts that turn each role's user into its own (mount_setattr(2), "ID-mapped mounts").
 */
static void lend(const struct passwd *owner, const struct passwd *borrower) {
    char home[path_size];
    join(home, DATA, owner->pw_name);
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, home, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    int namespace = user_namespace(owner, borrower);
    struct mount_attr mapped = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)namespace};
    if (tree < 0 || syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &mapped, sizeof mapped) != 0 ||
        syscall(SYS_move_mount, tree, "", AT_FDCWD, home, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        give_up("%s cannot be lent to %s: %s", home, borrower->pw_name, strerror(errno));
    close(tree);
    close(namespace);
}

static int is_apart(const char *role) {
    for (int at = 0; apart[at] != NULL; at += 1)
        if (strcmp(role, apart[at]) == 0) return 1;
    return 0;
}

/* The process that a role is to run in. */
static struct process *process_of(const char *role, int sharing) {
    const char *name = !is_apart(role) && sharing > 1 ? shared_name : role;
    for (int at = 0; at < process_count; at += 1)
        if (strcmp(processes[at].name, name) == 0) return &processes[at];
    const struct passwd *user = user_of(name);
    if (user == NULL) give_up("this image has no user %.40s", name);
    struct process *process = &processes[process_count];
    process_count += 1;
    strcpy(process->name, user->pw_name);
    process->uid = user->pw_uid;
    process->gid = user->pw_gid;
    process->beats = -1;
    process->backoff_ms = first_backoff_ms;
    return process;
}

static int is_role(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

/* The roles are the directories below x.data's `roles`; the users that they run as are the image's /etc/passwd. */
static void read_roles(void) {
    struct dirent **names;
    int count = scandir("/data/data/roles", &names, is_role, alphasort), sharing = 0;
    if (count <= 0) give_up("x.data names no roles, so this VM has nothing to do");
    if (count > most_roles) give_up("x.data names more than %d roles", most_roles);
    mkdir(RUN, 0755);
    for (int at = 0; at < count; at += 1) sharing += !is_apart(names[at]->d_name);
    for (int at = 0; at < count; at += 1) {
        const char *role = names[at]->d_name;
        const struct passwd *user = strcmp(role, shared_name) == 0 ? NULL : user_of(role);
        if (user == NULL) give_up("x.data names a role that this image has not");
        struct passwd owner = *user;
        char home[path_size], owner_name[32];
        owner.pw_name = strcpy(owner_name, role);
        join(home, DATA, role);
        make_directory(home, &owner, 0700);
        struct process *process = process_of(role, sharing);
        struct passwd runs = {.pw_name = process->name, .pw_uid = process->uid, .pw_gid = process->gid};
        strcpy(process->roles[process->role_count], role);
        process->role_count += 1;
        if (runs.pw_uid != owner.pw_uid) lend(&owner, &runs);
        hand_over(role, &runs);
    }
    /* Nobody needs these any more, and what is not there cannot be read or used. */
    if (umount2("/data", MNT_DETACH) != 0) say("warn", "the seed volume stays mounted: %s", strerror(errno));
    put("/proc/sys/user/max_user_namespaces", "0");
}

void confine(int input, int beats, int changes_user) {
    struct rlimit no_core = {0, 0}, files = {16384, 16384};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    umask(077);
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_NOFILE, &files);
    if (dup2(input, 0) < 0 || dup2(beats, beat_descriptor) < 0) _exit(126);
    syscall(SYS_close_range, beat_descriptor + 1, ~0U, 0);
    int kept[] = {CAP_SETGID, CAP_SETUID};
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability += 1)
        if (!changes_user || (capability != kept[0] && capability != kept[1])) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(126);
}

/* The bundle that has the role; as in start.cjs. */
static const char *program_of(const struct process *process) {
    const char *role = process->roles[0];
    return strcmp(role, "gateway") == 0 || strcmp(role, "authority") == 0 ? role : "service";
}

/* In the child. */
__attribute__((noreturn)) static void become(struct process *process, int beats) {
    char home[80];
    snprintf(home, sizeof home, DATA "/%s", process->roles[0]);
    char *arguments[3 + most_roles] = {"/usr/bin/node", "/usr/lib/cells/start.cjs"};
    for (int at = 0; at < process->role_count; at += 1) arguments[2 + at] = process->roles[at];
    char *const environment[] = {"NODE_ENV=production", NULL};
    confine(open("/dev/null", O_RDONLY), beats, 0);
    if (setgroups(0, NULL) != 0 || setresgid(process->gid, process->gid, process->gid) != 0 ||
        setresuid(process->uid, process->uid, process->uid) != 0 || chdir(home) != 0)
        _exit(126);
    execve(arguments[0], arguments, environment);
    _exit(127);
}

static int start_loaded(struct process *process) {
    char home[80], roles[most_roles * 32] = "";
    snprintf(home, sizeof home, DATA "/%s", process->roles[0]);
    for (int at = 0; at < process->role_count; at += 1) {
        if (at > 0) strcat(roles, " ");
        strcat(roles, process->roles[at]);
    }
    process->pid = take_loaded(program_of(process), process->uid, process->gid, home, roles, &process->beats);
    process->started_ms = now_ms();
    process->answers = 0;
    return process->pid != 0;
}

static void start(struct process *process) {
    int ends[2];
    if (start_loaded(process)) return;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    /* What it writes must never stop it, and what it inherits is its own copy. */
    pid_t pid = fork();
    if (pid == 0) become(process, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        process->due_ms = now_ms() + process->backoff_ms;
        return;
    }
    process->pid = pid;
    process->beats = ends[0];
    process->started_ms = now_ms();
    process->answers = 0;
}

static void ended(struct process *process, int status) {
    long now = now_ms();
    if (process->beats >= 0) close(process->beats);
    process->beats = -1;
    process->pid = 0;
    process->answers = 0;
    if (stopping) return;
    if (now - process->started_ms >= lasting_ms) process->backoff_ms = first_backoff_ms;
    say("warn", "%s ended (%s %d) and is started again in %ld ms", process->name, WIFSIGNALED(status) ? "signal" : "code",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), process->backoff_ms);
    process->due_ms = now + process->backoff_ms;
    process->backoff_ms = process->backoff_ms * 2 > longest_backoff_ms ? longest_backoff_ms : process->backoff_ms * 2;
}

static void reap(void) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (int at = 0; at < process_count; at += 1)
            if (processes[at].pid == pid) ended(&processes[at], status);
}

static void stop_processes(void) {
    stopping = 1;
    say("info", "asked to stop");
    for (int at = 0; at < process_count; at += 1)
        if (processes[at].pid > 0) kill(processes[at].pid, SIGTERM);
    long end = now_ms() + stop_limit_ms;
    for (int running = 1; running && now_ms() < end; usleep(running ? 20000 : 0)) {
        reap();
        running = 0;
        for (int at = 0; at < process_count; at += 1) running |= processes[at].pid > 0;
    }
    kill(-1, SIGKILL);
    while (wait(NULL) > 0) continue;
    /* What is lent is mounted on it. */
    for (int at = 0; at < process_count; at += 1)
        for (int role = 0; strcmp(processes[at].name, shared_name) == 0 && role < processes[at].role_count; role += 1) {
            char home[path_size];
            join(home, DATA, processes[at].roles[role]);
            umount(home);
        }
    if (umount(DATA) != 0) mount("", DATA, "", MS_REMOUNT | MS_RDONLY, "");
    say("info", "stopped");
    turn_off();
}

/* Takes what the roles wrote, starts those whose time has come. Milliseconds until something may be due. */
static int turn(void) {
    static int answering = -1;
    long now = now_ms(), next = 60000;
    int all = 1;
    for (int at = 0; at < process_count; at += 1) {
        struct process *process = &processes[at];
        if (process->pid == 0) {
            if (now >= process->due_ms) start(process);
            else if (process->due_ms - now < next) next = process->due_ms - now;
            all = 0;
            continue;
        }
        char beats[64];
        if (read(process->beats, beats, sizeof beats) > 0) {
            if (!process->answers) say("info", "%s answers", process->name);
            process->answers = 1;
            process->heard_ms = now;
        } else if (process->answers && now - process->heard_ms > silence_ms) {
            say("warn", "%s is silent", process->name);
            process->answers = 0;
        }
        if (process->answers && process->heard_ms + silence_ms + 1 - now < next) next = process->heard_ms + silence_ms + 1 - now;
        all &= process->answers;
    }
    if (all != answering) {
        answering = all;
        put("/proc/sys/net/ipv4/icmp_echo_ignore_all", all ? "0" : "1");
    }
    return next < 1 ? 1 : (int)next;
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
