import { usage } from "../program/failure.ts";

/** A question: does this connection pass? Ends are paths of VMs or interfaces, or addresses. */
export interface Connection {
  readonly from: string;
  readonly to: string;
  readonly protocol: "tcp" | "udp" | "icmp";
  readonly port: number | null;
}

const example = 'write for example: cells why "shop/web/vm -> shop/app/vm:8080"';

const portOf = (text: string): number => {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65535) throw usage(`\`${text}\` is no port: 1 to 65535; ${example}`);
  return port;
};

/** Reads `A -> B:80`, in one word or several, `A to B`, `A B:80` and `A B 80`. */
export const parseConnection = (words: readonly string[], protocol: string | undefined): Connection => {
  if (words.at(-1) === "-") {
    throw usage(
      `the shell took \`->\` for a redirection (and made a file of that name): quote it, or leave it out; ${example}`,
    );
  }
  const parts = words
    .join(" ")
    .split(/\s+|->|→/)
    .filter((part) => part !== "" && part !== "to");
  const [from, target, extra, ...more] = parts;
  if (from === undefined || target === undefined || more.length > 0) {
    throw usage(`a connection has two ends; ${example}`);
  }
  const option = parts.find((part) => part.startsWith("-"));
  if (option !== undefined)
    throw usage(`\`${option}\` is no option of \`cells why\`, which has --protocol and --output`);
  const colon = target.lastIndexOf(":");
  const inTarget = colon < 0 ? undefined : target.slice(colon + 1);
  if (inTarget !== undefined && extra !== undefined)
    throw usage(`there are two ports, ${inTarget} and ${extra}; ${example}`);
  const portText = inTarget ?? extra;
  const port = portText === undefined ? null : portOf(portText);
  const chosen = protocol ?? (port === null ? "icmp" : "tcp");
  if (chosen !== "tcp" && chosen !== "udp" && chosen !== "icmp") {
    throw usage(`\`${chosen}\` is no protocol here: tcp, udp or icmp`);
  }
  if (chosen === "icmp" && port !== null) throw usage("icmp has no ports: leave the port out, or choose tcp or udp");
  if (chosen !== "icmp" && port === null) throw usage(`${chosen} needs the port of the second end; ${example}`);
  return { from, to: colon < 0 ? target : target.slice(0, colon), protocol: chosen, port };
};
