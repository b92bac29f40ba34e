import { usage } from "../terminal/failure.ts";

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

const protocols = ["tcp", "udp", "icmp"] as const;
type Protocol = (typeof protocols)[number];
const protocolOf = (text: string): Protocol | undefined => protocols.find((each) => each === text.toLowerCase());

/** `B:53/udp`, `B:53`, `B/icmp` or `B`: an end, and what else stands in it. */
const splitTarget = (target: string): { readonly to: string; readonly port?: string; readonly protocol?: string } => {
  const [, to, port, protocol] = /^(.*):([^:/]*)(?:\/([^:/]*))?$/.exec(target) ?? [];
  if (to !== undefined && port !== undefined) return { to, port, ...(protocol === undefined ? {} : { protocol }) };
  const slash = target.lastIndexOf("/");
  const last = target.slice(slash + 1);
  return slash > 0 && protocolOf(last) !== undefined ? { to: target.slice(0, slash), protocol: last } : { to: target };
};
/** `53/udp`, `53` or `icmp`, behind the end. */
const splitExtra = (extra: string): { readonly port?: string; readonly protocol?: string } => {
  const [port = "", protocol] = extra.split(/\/(.*)/);
  if (protocolOf(extra) !== undefined) return { protocol: extra };
  return { port, ...(protocol === undefined ? {} : { protocol }) };
};

/**
 * Reads `A -> B:80`, in one word or several, `A to B`, `A B:80` and `A B 80`; the protocol may stand behind the port, as in
 * `:53/udp`, or alone, as in `A -> B icmp`.
 */
export const parseConnection = (words: readonly string[], option: string | undefined): Connection => {
  if (words.at(-1) === "-") {
    throw usage(
      `the shell took \`->\` for a redirection (and made a file of that name): quote it, or leave it out; ${example}`,
    );
  }
  const parts = words
    .join(" ")
    .split(/\s+|->|→/)
    .filter((part) => part !== "" && part !== "to");
  const [from, target, ...extras] = parts;
  if (from === undefined || target === undefined || extras.length > 2) {
    throw usage(`a connection has two ends; ${example}`);
  }
  const unknown = parts.find((part) => part.startsWith("-"));
  if (unknown !== undefined)
    throw usage(`\`${unknown}\` is no option of \`cells why\`, which has --protocol and --output`);
  const { to, ...inTarget } = splitTarget(target);
  const said = [inTarget, ...extras.map(splitExtra)];
  const ports = [...new Set(said.flatMap(({ port }) => port ?? []))];
  if (ports.length > 1) {
    const isPort = ports.every((port) => /^\d+$/.test(port));
    throw usage(
      isPort ? `there are two ports, ${ports.join(" and ")}; ${example}` : `a connection has two ends; ${example}`,
    );
  }
  const named = [
    ...new Set([option, ...said.map(({ protocol }) => protocol)].flatMap((each) => each?.toLowerCase() ?? [])),
  ];
  if (named.length > 1) throw usage(`there are two protocols, ${named.join(" and ")}; ${example}`);
  const port = ports[0] === undefined ? null : portOf(ports[0]);
  const chosen = named[0] ?? (port === null ? "icmp" : "tcp");
  const protocol = protocolOf(chosen);
  if (protocol === undefined) throw usage(`\`${chosen}\` is no protocol here: tcp, udp or icmp`);
  if (protocol === "icmp" && port !== null) throw usage("icmp has no ports: leave the port out, or choose tcp or udp");
  if (protocol !== "icmp" && port === null) throw usage(`${protocol} needs the port of the second end; ${example}`);
  return { from, to, protocol, port };
};
