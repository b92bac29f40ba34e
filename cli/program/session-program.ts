import { mostViewers } from "../../model/cell/session-messages.ts";
import { secondsOf } from "../context/context.ts";
import type { Register } from "../context/register-type.ts";
import { usage } from "../terminal/failure.ts";
import { wholeNumber } from "./options.ts";

const positiveSecondsOf = (text: string): number => {
  const seconds = secondsOf(text);
  if (seconds === 0) throw usage("0 seconds are too few; leave the option out for no limit");
  return seconds;
};

/** Commands that open a session into a running VM. */
export const sessionCommands: Register = (program, context, withHelp) => {
  streams(program, context, withHelp);
  ports(program, context, withHelp);
  consoles(program, context, withHelp);
};

const streams: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("exec")
      .description("run a command in a VM; its output comes as it is written, its exit code becomes this command's")
      .argument("<vm>", "path of the VM")
      .argument("<command...>", "the command, after --")
      .option("-i, --stdin", "give it this command's standard input, as it comes and of any length")
      .option(
        "--timeout <seconds>",
        "kill it after this long (default: it may take as long as it wants)",
        positiveSecondsOf,
      )
      .action(async (vm, command, options) =>
        (await import("../sessions/exec.ts")).exec(context(), vm, command, {
          timeoutMs: options.timeout === undefined ? null : options.timeout * 1000,
          stdin: options.stdin === true,
        }),
      ),
    [
      "cells exec shop/web/vm -- uname -a",
      "cells exec -i shop/web/vm -- sh < set-up.sh",
      "tar c site | cells exec -i shop/web/vm -- tar x -C /srv",
    ],
    `Ctrl-C interrupts the command in the guest, a second one kills it. It also ends when this command's connection does.
What it leaves running in the guest is heard no longer than itself: give that another place to write to.`,
  );
  withHelp(
    program
      .command("cp")
      .description("copy one file into a VM or out of it; it is there whole or not at all")
      .argument("<from>", "a file here, or VM:PATH")
      .argument("<to>", "the other one; a directory keeps the name (in a VM with a `/` at the end)")
      .option(
        "--most <MiB>",
        "take no more than this out of a VM, whose guest says when its file ends",
        wholeNumber,
        16_384,
      )
      .action(async (from, to, options) => (await import("../sessions/cp.ts")).copy(context(), from, to, options.most)),
    ["cells cp site.tar shop/web/vm:/srv/", "cells cp shop/web/vm:/var/log/messages ."],
    `The guest needs its agent and sh, cat, mv and sha256sum. A file here with a \`:\` in its name is written as ./NAME.`,
  );
};

const ports: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("forward")
      .description("reach a TCP port of a VM by a port of this machine, until Ctrl-C")
      .argument("<vm>", "path of the VM")
      .argument("<ports>", "HERE:THERE, or THERE alone; HERE 0: any that is free")
      .option("--stdio", "one connection, by this command's standard input and output")
      .action(async (vm, ports, options) =>
        (await import("../sessions/forward.ts")).forward(context(), vm, ports, { stdio: options.stdio === true }),
      ),
    [
      "cells forward shop/web/vm 8080:80",
      "cells forward shop/db/vm 5432",
      "printf 'HEAD / HTTP/1.0\\r\\n\\r\\n' | cells forward --stdio shop/web/vm 80",
    ],
    `The cell says that it may be done: x.policy.forward true. Nobody but this machine reaches the port here. At most 16 connections
are open at a time, and each is recorded. The guest needs its agent and nc; what listens on its 127.0.0.1 alone is not reached.`,
  );
  withHelp(
    program
      .command("ssh")
      .description("log in to a VM by this machine's `ssh`, whose server is known beforehand by the guest's agent")
      .argument("<vm>", "path of the VM, or USER@ and its path")
      .argument("[arguments...]", "for ssh, after --: its options, then a command")
      .option("-p, --port <n>", "where the guest's server listens", "22")
      .action(async (vm, given, options) =>
        (await import("../sessions/ssh.ts")).ssh(context(), vm, given, { port: options.port }),
      ),
    [
      "cells ssh root@shop/web/vm",
      "cells ssh root@shop/web/vm -- -L 8080:localhost:80 -N",
      "cells ssh root@shop/web/vm -- uptime",
      "cells ssh root@shop/web/vm --output json",
    ],
    `The cell says that it may be done: x.policy.forward true. Who asks needs vm.exec, by which the server's keys are read, and vm.forward.
The keys are read anew each time and stand in a file of this VM alone: no key is believed because it was the first, and your own known_hosts is
not touched. --output json starts nothing: it prints the file and the command, as scp and rsync need them.`,
  );
};

const consoles: Register = (program, context, withHelp) => {
  withHelp(
    program
      .command("display")
      .description("show a VM's screen, keyboard and pointer to a VNC viewer of this machine, until Ctrl-C")
      .argument("<vm>", "path of the VM")
      .option("--port <port>", "of this machine's 127.0.0.1; 0: any that is free", "0")
      .option("--stdio", "one viewer, by this command's standard input and output")
      .action(async (vm, options) =>
        (await import("../sessions/display.ts")).display(context(), vm, {
          port: options.port,
          stdio: options.stdio === true,
        }),
      ),
    ["cells display shop/web/vm", "cells display shop/web/vm --port 5901"],
    `The VM has x.display "vga". Open the address that is printed with any viewer, as in \`remote-viewer vnc://127.0.0.1:5901\`. It asks for no
password: whoever is on this machine reaches it meanwhile. At most ${mostViewers} viewers are at one screen; all see it, all may type, and each is recorded.`,
  );
  withHelp(
    program
      .command("logs")
      .description("print what a VM has written to its serial console, as far as its host has kept it")
      .argument("<vm>", "path of the VM")
      .option("-f, --follow", "go on with what comes, also of the VM's next start, until Ctrl-C")
      .option(
        "--incarnation <n>",
        "of this one alone, which may have ended; with --follow its end ends it",
        wholeNumber,
      )
      .action(async (vm, { follow, incarnation = null }) =>
        (await import("../sessions/serial/logs.ts")).logs(context(), vm, { follow: follow === true, incarnation }),
      ),
    [
      "cells logs shop/web/vm",
      "cells logs shop/web/vm --follow | grep -i error",
      "cells logs shop/web/vm --incarnation 3",
      "cells logs shop/web/vm --output json",
    ],
    "The last 16 KiB of the incarnation that runs are kept, and those of the last three that have ended: for a day, at the host where they ran, until\nthat is switched off. Who deletes the VM has them shown to nobody any more. --output json says of which incarnation\nand host they are; with --follow each piece is a line.",
  );
  withHelp(
    program
      .command("console")
      .description("sit down at a VM's serial console; Ctrl-] leaves it")
      .argument("<vm>", "path of the VM")
      .option("-r, --reconnect", "stay when the VM ends, for its next start, and when the connection is lost")
      .option(
        "--linger <seconds>",
        "without a terminal: leave when the console was silent for this long after the end of the input",
        secondsOf,
        2,
      )
      .action(async (vm, options) =>
        (await import("../sessions/serial/console.ts")).openVmConsole(context(), vm, {
          reconnect: options.reconnect === true,
          lingerMs: options.linger * 1000,
        }),
      ),
    ["cells console shop/web/vm", "cells console shop/web/vm --reconnect", "echo uptime | cells console shop/web/vm"],
    `The end of what was recorded is shown first. Every key goes to the guest, Ctrl-C too. Several may be at one console: all
see the same, all may type. Who reads too slowly misses some of the output and is told so; the guest never waits.
Without a terminal, standard input is typed as it comes.`,
  );
};
