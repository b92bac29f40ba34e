import { type HaSetting, haSettings, investigatorNames } from "./ha-settings.ts";
import {
  type AttributeKind,
  type AttributeSchema,
  choice,
  flag,
  integer,
  label,
  limit,
  type TypeSchema,
} from "./kinds.ts";
import { placementSettings } from "./placement-settings.ts";

/** Of a cell's `x.policy.*`. */
function asParent(otherwise: string): string {
  return `Absent: as its parent has it for its child cells (\`x.defaults\`), and never more open than that; ${otherwise} where nobody says otherwise.`;
}
function defaults(name: string, kind: AttributeKind): AttributeSchema {
  const docs = `\`x.policy.${name}\` of child cells that say nothing of it, and the most that they may have; of the root cell: of all cells. Absent: as its own parent has it for this cell.`;
  return { kind, effect: "change", docs };
}

/** Of the root cell. */
function settingAttributes(prefix: string, settings: Readonly<Record<string, HaSetting>>): TypeSchema {
  return Object.fromEntries(
    Object.entries(settings).map(([name, { preset, least, most, unit, docs }]) => [
      `${prefix}.${name}`,
      {
        kind: integer(least, most),
        effect: "none" as const,
        docs: `${docs}. Of the root cell alone. Absent: ${preset}.`,
        ...(unit === undefined ? {} : { unit }),
      },
    ]),
  );
}
function haAttributes(): TypeSchema {
  return {
    ...settingAttributes("x.ha", haSettings),
    "x.ha.investigators": {
      kind: { kind: "words", values: investigatorNames },
      effect: "none",
      docs: "What is asked whether a VM of a lost host runs, in the order in which `cells ha why VM` shows it; what is left out is not asked. None of them makes anything start elsewhere that can still write. Of the root cell alone. Absent: all, in this order.",
    },
  };
}

/** Attributes of a cell itself. */
export const cellAttributes: TypeSchema = {
  "x.name": { kind: label, effect: "none", docs: "Name of the cell, if not that of its component." },
  "x.policy.subnetConnectivity": {
    kind: flag,
    effect: "change",
    docs: `Whether two VMs of one subnet may talk without a rule. ${asParent("false")}`,
  },
  "x.policy.internet": {
    kind: choice("none", "out"),
    effect: "change",
    docs: `Whether VMs that have a way out of the installation may open connections there without a rule ("out"). ${asParent('"none"')}`,
  },
  "x.policy.broadcast": {
    kind: choice("off", "on"),
    effect: "change",
    docs: `Whether a packet to a broadcast address or a multicast group reaches those to whom a rule lets its sender send it ("on"), or nobody ("off"). ${asParent('"on"')}`,
  },
  "x.policy.resolvers": {
    kind: { kind: "addresses" },
    effect: "change",
    docs: 'Which of the resolvers that its parent lets it have the cell\'s name server asks for names outside, for as long as a rule of the cell opens something towards "internet"; an empty list: none. Absent: all of them.',
  },
  "x.policy.forward": {
    kind: flag,
    default: false,
    effect: "none",
    docs: "Whether whoever may (`vm.forward`) reaches a TCP port of a VM by `cells forward`, though no rule lets anybody in. The root cell lets nobody.",
  },
  "x.policy.isolation": {
    kind: choice("by-rules", "none"),
    default: "by-rules",
    effect: "none",
    docs: 'Whether nobody reaches a VM whom no rule lets in ("by-rules"), or the cell puts up with machines that anybody in the site\'s own network reaches ("none"): without that word its networks are made by no mode that isolates nothing (STATIC, SYSTEM). Where rules can hold they do, whatever it says.',
  },
  "x.policy.deploy": {
    kind: choice("as-possible", "all-or-none"),
    default: "as-possible",
    effect: "none",
    docs: 'Whether as much is deployed as can be had ("as-possible"), or nothing until all of it can be ("all-or-none").',
  },
  "x.defaults.subnetConnectivity": defaults("subnetConnectivity", flag),
  "x.defaults.internet": defaults("internet", choice("none", "out")),
  "x.defaults.broadcast": defaults("broadcast", choice("off", "on")),
  "x.defaults.resolvers": {
    kind: { kind: "addresses" },
    effect: "change",
    docs: "Resolvers that child cells may ask for names outside. The root cell declares them, on the management network, from where controllers ask; any other cell may only name some of those that it has itself. Absent: as its own parent has it for this cell, and none where nobody says so.",
  },
  "x.limits.vms": limit("Most VMs, running or not. What a child cell has counts here too, and so in each limit."),
  "x.limits.memory": limit("Most memory of all VMs.", "MiB"),
  "x.limits.cpus": limit("Most processors of all VMs."),
  "x.limits.volumes": limit("Most volumes and volume copies."),
  "x.limits.storage": limit("Most storage of all volumes.", "MiB"),
  "x.limits.subnets": limit("Most subnets."),
  "x.limits.addresses": limit("Most addresses of all subnets."),
  "x.limits.publicAddresses": limit(
    'Most addresses of subnets with `x.addressRange "external"`, which count among all too.',
  ),
  "x.limits.vmStartsPerMinute": {
    kind: integer(1, 1_000_000),
    effect: "none",
    docs: "Most starts of VMs a minute, its child cells' included; ten minutes' worth may come at once. Never more than its parent lets it have, which is 120 where nobody says otherwise.",
  },
  "x.backup.publicKey": {
    kind: { kind: "text" },
    effect: "none",
    docs: "Of the root cell alone: backups of the management are made by themselves, sealed to this key of `cells management key`, and kept on every storage server.",
  },
  "x.backup.period": {
    kind: integer(10, 525_600),
    unit: "min",
    default: 1440,
    effect: "none",
    docs: "How often, beside `x.backup.publicKey`.",
  },
  "x.backup.keep": {
    kind: integer(1, 100),
    default: 14,
    effect: "none",
    docs: "How many each storage server keeps.",
  },
  ...haAttributes(),
  ...settingAttributes("x.placement", placementSettings),
  "x.pools.external": {
    kind: { kind: "networks" },
    effect: "none",
    docs: 'Of the root cell alone: from one to eight networks that are routed to the hosts, from which subnets with `x.addressRange "external"` get addresses, in this order. One of which a subnet has addresses stays in the list until they are given back. Absent: 198.18.0.0/15.',
  },
  "x.zone.name": {
    kind: { kind: "text" },
    effect: "none",
    docs: "Of the root cell alone: the domain under which external addresses that have a public name are found outside. The DNS Manager hands it to `x.zone.secondaries`, whom everybody asks.",
  },
  "x.zone.servers": {
    kind: { kind: "text" },
    effect: "none",
    docs: "Beside `x.zone.name`: names of the name servers that answer for it, one to eight with blanks between them, as the zone above it names them.",
  },
  "x.zone.secondaries": {
    kind: { kind: "addresses" },
    effect: "none",
    docs: "Beside `x.zone.name`: addresses on the management network from which these servers fetch the zone (AXFR).",
  },
  "x.zone.key": {
    kind: { kind: "text" },
    effect: "none",
    docs: "Beside `x.zone.name`: name of the key with which the zone's transfers are signed (TSIG, hmac-sha256). With it what is not signed is refused. Its secret is in no specification: `cells zone key` takes it.",
  },
};
