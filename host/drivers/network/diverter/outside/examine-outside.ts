import type { Ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { Announced, PacketCheck } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { mostRouters, networkKey, networkKinds, outside, router, word } from "../program/layout.ts";
import { whyUnannounced } from "./announced.ts";
import { macText } from "./arp.ts";

/** What the program says of a packet from or to somebody of whom this host was told nothing: is it outside, and may it pass? */
const pass = (check: string, detail: string): PacketCheck => ({ check, passes: true, detail });
const stop = (check: string, detail: string): PacketCheck => ({ check, passes: false, detail });
const makesExternal = 'an interface of a subnet with `x.addressRange "external"` has one';

const kindOf = ({ maps }: Dataplane, address: Ipv4): number => {
  const found = maps.networks.get(networkKey.encode({ prefix_length: 32, address }));
  return found === null ? networkKinds.elsewhere : word.decode(found).value;
};
const routersOf = ({ maps }: Dataplane) =>
  Array.from({ length: mostRouters }, (_, at) => maps.routers.get(word.encode({ value: at })))
    .flatMap((found) => (found === null ? [] : [router.decode(found)]))
    .filter(({ address }) => address !== "0.0.0.0");
const wayOf = ({ maps }: Dataplane) => {
  const found = maps.outside.get(word.encode({ value: 0 }));
  return found === null ? { device: 0, router: 0n } : outside.decode(found);
};
const numberOf = (mac: bigint): bigint => mac & ~(1n << 40n);

/** Checks on the way between an interface here and a remote end that is nowhere in the installation, as far as this host knows. */
function outsideChecks(
  dataplane: Dataplane,
  own: Ipv4,
  remote: Ipv4,
  what: { readonly check: string; readonly unknown: string },
  through: (way: ReturnType<typeof wayOf>, routers: ReturnType<typeof routersOf>) => PacketCheck,
): PacketCheck {
  const way = wayOf(dataplane);
  if (way.device === 0)
    return stop(
      what.check,
      `${what.unknown}; if it is outside, this host has no way there: \`host.outside\` of its configuration names the upstream routers`,
    );
  if (kindOf(dataplane, remote) !== networkKinds.elsewhere) return stop(what.check, what.unknown);
  if (kindOf(dataplane, own) !== networkKinds.external)
    return stop("outside", `${remote} is outside, and ${own} is no external address: ${makesExternal}`);
  return through(way, routersOf(dataplane));
}

/** Of a packet that leaves: to whom. */
export const examineWayOut = (dataplane: Dataplane, own: Ipv4, remote: Ipv4): PacketCheck => {
  const unknown = `this host was not told where ${remote} is: it runs nowhere, or no rule of both cells joins them`;
  return outsideChecks(dataplane, own, remote, { check: "location", unknown }, (way, routers) => {
    const names = routers.map(({ address }) => address).join(", ");
    if (way.router === 0n)
      return stop(
        "router",
        `${remote} is outside, and no upstream router (${names}) has answered ARP yet: look at the router, the cable and \`host.outside\``,
      );
    const mac = numberOf(way.router);
    const name = routers.find((known) => known.mac === mac)?.address ?? "the upstream router";
    return pass("outside", `${remote} is outside, by device ${way.device} behind ${name} at ${macText(mac)}`);
  });
};

/** Of a packet that comes, and whose sender is outside: whether routers are told that it is to come here. */
const examineAnnounced = (announced: Announced, own: Ipv4): PacketCheck => {
  const why = whyUnannounced(announced, own);
  if (why !== null) return stop("announced", why);
  const peers = announced.peers.join(" and ");
  return pass("announced", `${own} is in table ${announced.table}, whose daemon has a BGP connection with ${peers}`);
};

/** Of a packet that comes: from whom it is believed, and before where addresses are announced by BGP, by whom it is sent here. */
export const examineWayIn = (
  dataplane: Dataplane,
  own: Ipv4,
  remote: Ipv4,
  announced: () => Announced | null = () => null,
): readonly PacketCheck[] => {
  const believed = believedFrom(dataplane, own, remote);
  const isOutside = ["outside", "router"].includes(believed.check) && kindOf(dataplane, own) === networkKinds.external;
  const told = isOutside ? announced() : null;
  return told === null ? [believed] : [examineAnnounced(told, own), believed];
};
const believedFrom = (dataplane: Dataplane, own: Ipv4, remote: Ipv4): PacketCheck => {
  const unknown = `this host was not told where ${remote} is, so frames from it are refused`;
  return outsideChecks(dataplane, own, remote, { check: "source", unknown }, (way, routers) => {
    const known = routers.filter(({ mac }) => mac !== 0n);
    if (known.length === 0)
      return stop("router", `${remote} is outside, and no upstream router has answered ARP yet, so nothing comes in`);
    const names = known.map(({ address, mac }) => `${address} at ${macText(mac)}`).join(" and ");
    return pass(
      "outside",
      `${remote} is outside: frames from it are accepted by device ${way.device} from ${names} alone`,
    );
  });
};
