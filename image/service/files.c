#define _GNU_SOURCE
#include "init.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies a file, durably on a file system that is; gives up if it cannot. */
void copy_file(const char *from, const char *to, const struct passwd *owner, mode_t mode) {
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

void make_directory(const char *path, const struct passwd *owner, mode_t mode) {
    if ((mkdir(path, mode) != 0 && errno != EEXIST) || chown(path, owner->pw_uid, owner->pw_gid) != 0 ||
        chmod(path, mode) != 0)
        give_up("%s cannot be made: %s", path, strerror(errno));
}

void join(char *path, const char *directory, const char *name) {
    if (snprintf(path, path_size, "%s/%s", directory, name) >= path_size) give_up("%s holds a path that is too long", directory);
}

/* What is below a directory, but for one name, into another one that is there; files get `mode`, directories may be entered. */
void copy_below(const char *from, const char *to, const char *except, const struct passwd *owner, mode_t mode) {
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
const struct passwd *user_of(const char *name) {
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
