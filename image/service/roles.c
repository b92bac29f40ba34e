/* Which roles this VM has, in which processes, and whose files are whose. */
#define _GNU_SOURCE
#include "init.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Who has a process and a user of its own in any case: who signs certificates, who decides that hosts are dead, and all who
 * talk to the outside. All others read what tenants wrote, and trust one another with it.
 */
static const char *const apart[] = {"authority", "presence", "gateway", "personality.caas", NULL};
/* The user of the process that several roles share, and its name in the log. */
const char shared_name[] = "services";

struct process processes[most_roles];
int process_count;

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
void read_roles(void) {
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
