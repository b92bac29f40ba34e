import type { ExecAnswer } from "../../model/api.ts";

/** One connection to be tried with real packets, in a guest. */
export interface Probe {
  /** Paths of VMs. */
  readonly from: string;
  readonly to: string;
  readonly protocol: "tcp" | "udp" | "icmp";
  readonly port: number | null;
  readonly expected: "passes" | "blocked";
}

/** Said by the sender, and said again by whoever answers: an answer proves both ways. */
const word = "cells-probe";
/** So long is waited for an answer that shall not come; for one that shall, as long as a busy machine with emulated guests takes. */
const waitSeconds = { blocked: 2, passes: 8 } as const;

/** Starts something that says back what it hears; harmless where it runs already. */
export const listenerCommand = (protocol: "tcp" | "udp", port: number): readonly string[] => [
  "sh",
  "-c",
  `socat ${protocol.toUpperCase()}4-LISTEN:${port},fork,reuseaddr EXEC:cat >/dev/null 2>&1 </dev/null & sleep 0.2`,
];

/** The packets of a probe. Its output says whether an answer came; exit codes of these tools differ too much. */
export const probeCommand = ({ protocol, port, expected }: Probe, address: string): readonly string[] => {
  const seconds = waitSeconds[expected];
  if (protocol === "icmp") return ["ping", "-c", "2", "-W", String(seconds), address];
  const timeout = protocol === "tcp" ? `,connect-timeout=${seconds}` : "";
  const target = `${protocol.toUpperCase()}4:${address}:${port}${timeout}`;
  // Over UDP nobody says that this was all, and the whole time is waited.
  const rest = protocol === "tcp" ? seconds : waitSeconds.blocked;
  return ["sh", "-c", `echo ${word} | socat -t${rest} - ${target}`];
};

/** What was seen. A refused TCP connection is an answer: the packet arrived, and so did the reset. */
export const seenIn = (probe: Probe, { exitCode, stdout, stderr }: ExecAnswer): "passes" | "blocked" => {
  if (probe.protocol === "icmp") return exitCode === 0 ? "passes" : "blocked";
  return stdout.includes(word) || stderr.includes("refused") ? "passes" : "blocked";
};

const [web, app, db] = ["shop/web/vm", "shop/app/vm", "shop/db/vm"] as const;

/** Every kind of connection that examples/shop permits, and the ones beside them that it does not. */
export const shopProbes: readonly Probe[] = [
  { from: web, to: app, protocol: "tcp", port: 8080, expected: "passes" },
  { from: app, to: db, protocol: "tcp", port: 5432, expected: "passes" },
  { from: app, to: db, protocol: "udp", port: 5353, expected: "passes" },
  { from: web, to: app, protocol: "icmp", port: null, expected: "passes" },
  { from: app, to: web, protocol: "icmp", port: null, expected: "passes" },
  { from: web, to: db, protocol: "tcp", port: 5432, expected: "blocked" },
  { from: web, to: db, protocol: "udp", port: 5353, expected: "blocked" },
  { from: web, to: db, protocol: "icmp", port: null, expected: "blocked" },
  { from: web, to: app, protocol: "tcp", port: 22, expected: "blocked" },
  { from: app, to: web, protocol: "tcp", port: 80, expected: "blocked" },
  { from: app, to: db, protocol: "icmp", port: null, expected: "blocked" },
  { from: db, to: app, protocol: "tcp", port: 8080, expected: "blocked" },
  { from: db, to: app, protocol: "icmp", port: null, expected: "blocked" },
];

/**
 * Tries all, the guests at the same time: of each the ones that shall pass, one after the other, so that an emulated guest
 * answers one alone; then at once those that shall not, which only wait. Answers in the order of `probes`.
 */
export const tryAll = async <T>(
  probes: readonly Probe[],
  tryOut: (probe: Probe) => Promise<T>,
): Promise<readonly T[]> => {
  const answers = new Map<Probe, T>();
  const attempt = async (probe: Probe): Promise<void> => {
    answers.set(probe, await tryOut(probe));
  };
  const guests = [...new Set(probes.map(({ from }) => from))];
  await Promise.all(
    guests.map(async (guest) => {
      const own = probes.filter(({ from }) => from === guest);
      for (const probe of own) if (probe.expected === "passes") await attempt(probe);
      await Promise.all(own.filter(({ expected }) => expected === "blocked").map(attempt));
    }),
  );
  return probes.map((probe) => answers.get(probe) as T);
};

export interface Listener {
  readonly vm: string;
  readonly protocol: "tcp" | "udp";
  readonly port: number;
}
/** Where they go, each once: something shall listen there, also where none may arrive. */
export const listenersOf = (probes: readonly Probe[]): readonly Listener[] => {
  const known = new Map(
    probes.flatMap(({ to: vm, protocol, port }) =>
      protocol === "icmp" || port === null ? [] : [[`${vm} ${protocol} ${port}`, { vm, protocol, port }] as const],
    ),
  );
  return [...known.values()];
};
