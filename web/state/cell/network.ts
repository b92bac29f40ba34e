import type { NewElement } from "./add-element.ts";

/** Who may talk to whom: a question, and the rule that would make its answer yes. */
export interface Ends {
  readonly from: string;
  readonly to: string;
  readonly protocol: "tcp" | "udp" | "icmp";
  /** Null of icmp. */
  readonly port: number | null;
}
export const ruleBetween = ({ from, to, protocol, port }: Ends): Omit<NewElement, "name"> => ({
  type: "NetworkRule",
  attributes: {
    "x.address1": `<ref:/${from}>`,
    "x.address2": `<ref:/${to}>`,
    "x.protocol": protocol,
    ...(port === null ? {} : { "x.port2": port }),
  },
});

const camel = (path: string): string =>
  path
    .split("/")
    .slice(1)
    .flatMap((part) => part.split(/[^A-Za-z0-9]+/))
    .map((part, at) => (at === 0 ? part : part.slice(0, 1).toUpperCase() + part.slice(1)))
    .join("");
const upper = (name: string): string => name.slice(0, 1).toUpperCase() + name.slice(1);

/** A name for the rule that stands nowhere in the text. */
export function nextName({ from, to, protocol, port }: Ends, text: string): string {
  const wanted = `${camel(from)}To${upper(camel(to))}${port === null ? upper(protocol) : `At${port}`}`;
  const isThere = (name: string): boolean => new RegExp(`(?<![\\w.-])${name}(?![\\w.-])`).test(text);
  for (let at = 0; ; at += 1) {
    const name = at === 0 ? wanted : `${wanted}${at < 26 ? String.fromCharCode(97 + at) : at}`;
    if (!isThere(name)) return name;
  }
}

export function queryOf({ from, to, protocol, port }: Ends): string {
  return String(new URLSearchParams({ from, to, protocol, ...(port === null ? {} : { port: String(port) }) }));
}
