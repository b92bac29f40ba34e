/* What the parts of the guest's first process share; see init.c. */
#ifndef CELLS_INIT_H
#define CELLS_INIT_H
#include <pwd.h>
#include <sys/types.h>

enum {
    beat_descriptor = 3,
    most_roles = 10,
    disk_limit_ms = 10000,
    first_backoff_ms = 200,
    path_size = 512,
};

#define DATA "/var/lib/cells"
#define RUN "/run/cells"

long now_ms(void);
void say(const char *level, const char *format, ...);
__attribute__((format(printf, 1, 2), noreturn)) void give_up(const char *format, ...);

void put(const char *path, const char *value);
void turn_off(void);
void must_mount(const char *what, const char *where, const char *type, unsigned long flags, const char *options);

/* files.c */

void copy_file(const char *from, const char *to, const struct passwd *owner, mode_t mode);
void make_directory(const char *path, const struct passwd *owner, mode_t mode);
void join(char *path, const char *directory, const char *name);
void copy_below(const char *from, const char *to, const char *except, const struct passwd *owner, mode_t mode);
const struct passwd *user_of(const char *name);

/* disks.c */

extern char root_device[32], seed_device[32];
void find_root(void);
void find_disks(void);
void enter_root(void);
void open_data_volume(void);
void give_birth(void);

/* network.c */

void set_up_network(void);

/* roles.c */

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
extern struct process processes[most_roles];
extern int process_count;
extern const char shared_name[];
void read_roles(void);

/* processes.c */

/*
 * In a child: what a service need not have is gone before its first instruction. With `changes_user` it may still take
 * another user, and loses that with it.
 */
void confine(int input, int beats, int changes_user);
void start(struct process *process);
void reap(void);
void stop_processes(void);
int turn(void);

/* saved.c */

/* Is this start one whose state is to be saved? */
int is_to_be_saved(void);
/*
 * Loads what processes will need, waits to be saved, and returns in the machine that goes on from the state. Where that has
 * another disk, its host is told, and it does not return.
 */
void wait_to_be_somebody(const char *root_device);
/* Makes a loaded process run these roles as this user. Its number, with the read end of its pipe; 0: there is none. */
pid_t take_loaded(const char *program, uid_t uid, gid_t gid, const char *home, const char *roles, int *beats);
/* Ends the loaded processes that nobody took. */
void end_loaded(void);
#endif
