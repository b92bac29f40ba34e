import { type ChildProcess, spawn } from "node:child_process";

/*
 * A service of OpenStack as Debian's packages have it, in a directory with the Debian that it needs: one worker of uWSGI, on loopback. uWSGI's own HTTP server ends
 * each connection with its answer.
 */
export const patienceMs = 120_000;

/** All its processes end with the first of their name space. @param program its path in there */
export function serve(directory: string, program: string, port: number): ChildProcess {
  const uwsgi = ["uwsgi", "--plugin", "python3", "--http-socket", `127.0.0.1:${port}`];
  const how = ["--wsgi-file", program, "--master", "--processes", "1", "--lazy-apps"];
  const less = ["--disable-logging", "--buffer-size", "65535"];
  const alone = ["--pid", "--fork", "--kill-child", "chroot", directory];
  return spawn("unshare", [...alone, ...uwsgi, ...how, ...less], { stdio: "ignore" });
}
/** @param status of an answer to its first question @throws it has ended, or says nothing of the kind for too long */
export async function untilAnswers(
  name: string,
  child: ChildProcess,
  ask: () => Promise<{ readonly status: number }>,
  status: number,
): Promise<void> {
  for (const until = performance.now() + patienceMs; ; ) {
    if (child.exitCode !== null) throw new Error(`${name}'s server ended with ${child.exitCode}`);
    const is = await ask().then(
      (answer) => answer.status === status,
      () => false,
    );
    if (is) return;
    if (performance.now() > until) throw new Error(`${name} did not answer within ${patienceMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
