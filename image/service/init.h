/* What the parts of the guest's first process share; see init.c. */
#ifndef CELLS_INIT_H
#define CELLS_INIT_H
#include <sys/types.h>

enum { beat_descriptor = 3 };

long now_ms(void);
void say(const char *level, const char *format, ...);
__attribute__((format(printf, 1, 2), noreturn)) void give_up(const char *format, ...);
/*
 * In a child: what a service need not have is gone before its first instruction. With `changes_user` it may still take
 * another user, and loses that with it.
 */
void confine(int input, int beats, int changes_user);

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
