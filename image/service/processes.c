/* The processes of the roles: how one starts, what it may, when it is started again, and how all are stopped. */
#define _GNU_SOURCE
#include "init.h"
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    longest_backoff_ms = 10000,
    /* A role that ran for so long is started at once when it ends. */
    lasting_ms = 30000,
    /* A role writes every 2 s; on a busy host its processor may stand still for a while. */
    silence_ms = 8000,
    stop_limit_ms = 6000,
};
static int stopping;

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
    if (strncmp(role, "personality.", strlen("personality.")) == 0) return "gateway";
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
    if (process->pid != 0) say("info", "%s goes on in a process of the state", process->name);
    return process->pid != 0;
}

void start(struct process *process) {
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

void reap(void) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (int at = 0; at < process_count; at += 1)
            if (processes[at].pid == pid) ended(&processes[at], status);
}

void stop_processes(void) {
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
int turn(void) {
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
