import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

/**
 * What a personality in somebody else's hands reads beside it in the gateway's VM: the directories are made by what makes them there
 * (`image/service/roles.c`), with the users of the image, in a mount namespace of its own; then somebody acts as each user.
 */
const run = promisify(execFile);
const service = join(import.meta.dirname, "service");
const compiler = spawnSync("clang", ["--version"]).status === 0;
const skip = process.getuid?.() !== 0 ? "needs root, for namespaces" : compiler ? false : "needs clang";

/** What the first process has beside: it says why it gives up, and writes no setting of this machine. */
const beside = `
#include "init.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
void say(const char *level, const char *format, ...) { (void)level; (void)format; }
void give_up(const char *format, ...) {
    va_list words;
    va_start(words, format);
    vfprintf(stderr, format, words);
    exit(1);
}
void put(const char *path, const char *value) { (void)path; (void)value; }
int main(void) { read_roles(); }
`;
const roles = ["gateway", "personality.caas"] as const;
type User = (typeof roles)[number] | "root";

/** A root of its own, so that nothing of this machine is written to. */
const setUp = (directory: string): string => `set -e
mount --make-rprivate /
root=${directory}/root
mkdir $root
mount -t tmpfs none $root
for each in usr proc etc run mnt tmp data var/lib/cells program; do mkdir -p $root/$each; done
for each in bin sbin lib lib64; do ln -s usr/$each $root/$each; done
mount --rbind /usr $root/usr
mount --rbind /proc $root/proc
mknod -m 666 $root/null c 1 3
mkdir $root/dev && mv $root/null $root/dev/null
cp ${directory}/roles ${directory}/inside $root/program
cp ${join(service, "passwd")} $root/etc/passwd
mount -t tmpfs none $root/data
exec chroot $root /bin/sh /program/inside
`;
const inside = `set -e
echo x > /data/interfaces
for role in ${roles.join(" ")}; do
  mkdir -p /data/data/roles/$role
  echo "told $role" > /data/data/roles/$role/word
done
/program/roles
by() { echo "--reuid=$(id -u "$1") --regid=$(id -g "$1") --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all"; }
as() { user=$1; shift; setpriv $(by "$user") "$@"; }
for role in ${roles.join(" ")}; do
  as $role sh -c 'umask 077; mkdir -p "$0/identity"; echo key > "$0/identity/key"; echo store > "$0/store"; umask 022; echo careless > "$0/open"' /var/lib/cells/$role
  (exec setpriv $(by $role) sleep 60 > /dev/null 2>&1) &
  echo $! > /mnt/$role
done
sleep 0.5
`;
const secretsOf = (role: string): readonly string[] => [
  `/var/lib/cells/${role}/identity/key`,
  `/var/lib/cells/${role}/store`,
  `/var/lib/cells/${role}/open`,
  `/run/cells/${role}/seed/role/word`,
  `/proc/$(cat /mnt/${role})/environ`,
];

test("a personality reads none of the gateway's keys, stores, words and memory, nor signals it, and all of its own", {
  skip,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-whose-files-"));
  try {
    await writeFile(join(directory, "main.c"), beside);
    const program = join(directory, "roles");
    const sources = [join(directory, "main.c"), join(service, "roles.c"), join(service, "files.c")];
    await run("clang", ["-static", "-o", program, "-I", service, ...sources]);
    const attempts = (["gateway", "personality.caas", "root"] as const satisfies readonly User[]).flatMap((user) =>
      roles.flatMap((role) => [
        ...secretsOf(role).map((path) => ({ what: `${user} reads ${path}`, user, tries: `cat ${path} > /dev/null` })),
        { what: `${user} lists ${role}`, user, tries: `ls /var/lib/cells/${role} > /dev/null` },
        { what: `${user} writes for ${role}`, user, tries: `echo x > /var/lib/cells/${role}/new` },
        { what: `${user} signals ${role}`, user, tries: `kill -0 $(cat /mnt/${role})` },
      ]),
    );
    const script = [
      inside,
      ...attempts.map(
        ({ user, tries }, at) =>
          `if ${user === "root" ? "" : `as ${user} `}sh -c '${tries}' 2> /dev/null; then echo "${at} yes"; else echo "${at} no"; fi`,
      ),
      `kill $(cat /mnt/gateway) $(cat /mnt/personality.caas)`,
    ].join("\n");
    await writeFile(join(directory, "inside"), script);
    await writeFile(join(directory, "script"), setUp(directory));
    const { stdout } = await run("unshare", ["--mount", "sh", join(directory, "script")]);
    const may = new Map(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.split(" ") as [string, string]),
    );
    for (const [at, { what, user }] of attempts.entries()) {
      const isOwn =
        user === "root" || what.includes(`/${user}/`) || what.endsWith(` ${user}`) || what.includes(`mnt/${user})`);
      assert.equal(may.get(String(at)), isOwn ? "yes" : "no", what);
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
