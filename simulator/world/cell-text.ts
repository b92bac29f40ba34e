import { childName } from "../../core/documents/cells.ts";
import { cellName } from "../../model/cell/identifiers.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { ownRoles } from "./hosts/own-vm.ts";

/**
 * A cell in one line, as scenarios write it and the generator makes it:
 *
 *   vm:NAME:MEMORY[:off][:data][:apart=OTHER][:live][:once][:shown][:scratch][:strict][:in=GROUP][:of=POOL][:as=OFFERING][:prio=NUMBER][:own]   rule:FROM>TO:PORT[:udp]   all-or-none
 *   grant:CELL   copy:NAME:CELL   hold:VOLUME:CELL/COPY   keep:COPY:CELL/VOLUME   limit:WHAT:AMOUNT   child:NAME ( … )
 *   account:NAME:HOW[:VMS]   group:NAME:apart|together   pool:NAME[:offerings=NAME+NAME …][:images=NAME+NAME …]   whole:NAME:POOL[:off]
 *   outside:RANGE[,RANGE …]   out:NAME:SIZE   elastic:SUBNET   plain
 *
 * Every VM has a disk that is a copy of one golden image, an interface in one of two subnets, and with `data` a second, empty
 * volume. `live` gives it liveness probes; `once` leaves it down after a crash; what `scratch` writes may be lost; `shown` lets other cells refer to it, as
 * `CELL/NAME` in a rule. `grant` shows the golden image and lets another cell copy it, which that one does with `copy`.
 * `hold` keeps a volume, such as `a1Data`, until the copy is made for which another cell says `keep`.
 * `child` is a child cell, named `NAME.CELL` from then on, or `NAME` where it is the root cell's, whose child may be an account's
 * (`child:NAME@ROOT/dev`); `child:NAME:guard=2` asks for that HA Manager; `limit` is a quota, such as `limit:vms:3`; `spare:N` of the root cell keeps room for the VMs of so many hosts,
 * `asked:NAME,…` names the investigators that are asked, and `set:maxRetries:2` is a setting of the HA Manager.
 * `outside` declares the external pools of the root cell; `out` is an external subnet without machines; `elastic:net0` makes one of the two subnets external.
 * `plain` puts up with a mode that isolates nothing.
 * `account` declares `ROOT/NAME` in the root cell as `enabled`, `locked` or `disabled`, with a limit of its VMs.
 */
export interface MachineText {
  readonly name: string;
  readonly memoryMiB: number;
  readonly off: boolean;
  readonly data: boolean;
  readonly live: boolean;
  readonly once: boolean;
  readonly apart: string | null;
  readonly shown?: true;
  readonly scratch?: true;
  /** It asks for no VM of another account beside it. */
  readonly strict?: true;
  /** The group by which it asks for dedicated hosts, or an affinity group of its account. */
  readonly group?: string;
  /** A pool of its cell. */
  readonly pool?: string;
  /** What the operator offers by that name; of `offerings`. */
  readonly offering?: string;
  /** `x.priority` */
  readonly priority?: number;
  /** The root controller's own VM. */
  readonly own?: true;
}
/** An end in another cell is `CELL/NAME`. */
export interface RuleText {
  readonly from: string;
  readonly to: string;
  readonly port: number;
  /** Absent: TCP. */
  readonly protocol?: "udp";
}
export interface CellText {
  readonly machines: readonly MachineText[];
  readonly rules: readonly RuleText[];
  readonly allOrNone: boolean;
  /** Cells that may copy its golden image. */
  readonly grants?: readonly string[];
  /** Copies of the golden images of other cells. */
  readonly copies?: readonly { readonly name: string; readonly of: string }[];
  /** Volumes that stay until a copy is made, and copies that are made of such ones. */
  readonly holds?: readonly HeldText[];
  readonly keeps?: readonly HeldText[];
  readonly limits?: Readonly<Record<string, number>>;
  /** `x.ha.spareHosts`, of the root cell. */
  readonly spare?: number;
  /** `x.ha.investigators`, of the root cell. */
  readonly asked?: readonly string[];
  /** Other settings of `x.ha`, of the root cell. */
  readonly settings?: Readonly<Record<string, number>>;
  readonly children?: readonly ChildText[];
  /** Affinity groups, strict. */
  readonly groups?: readonly GroupText[];
  /** Pools, and whole hosts in them, of the only flavour. */
  readonly pools?: readonly PoolText[];
  readonly wholes?: readonly WholeText[];
  /** Of the root cell. */
  readonly accounts?: readonly AccountText[];
  /** `x.pools.external`, of the root cell. */
  readonly outside?: readonly string[];
  /** External subnets. */
  readonly outs?: readonly OutText[];
  /** Of the two subnets, which are external. */
  readonly elastic?: readonly string[];
  /** `x.policy.isolation "none"`. */
  readonly plain?: true;
}

/** `own`: a volume of the cell; `other`: its copy in another cell, or what it is a copy of there, as `CELL/NAME`. */
export interface HeldText {
  readonly own: string;
  readonly other: string;
}
export interface AccountText {
  readonly name: string;
  readonly state: string;
  readonly vms?: number;
}
export interface OutText {
  readonly name: string;
  readonly size: number;
}
/** Absent: its VMs may be of any offering, and boot from any image. */
export interface PoolText {
  readonly name: string;
  readonly offerings?: readonly string[];
  readonly images?: readonly string[];
}
export interface WholeText {
  readonly name: string;
  readonly pool: string;
  readonly off: boolean;
}
export interface GroupText {
  readonly name: string;
  readonly kind: "apart" | "together";
}
export interface ChildText {
  readonly name: string;
  readonly account?: string;
  /** `x.services.haManager`. */
  readonly guard?: number;
  readonly text: CellText;
}

export const parseCell = (words: readonly string[]): CellText => {
  const isOutward = (word: string, at: number): boolean =>
    /^(?:(?:out|outside|elastic):|plain$)/.test(word) && depthAt(words, at) === 0;
  const top = words.filter(isOutward).map((word) => word.split(":"));
  const outside = top.flatMap(([kind, names = ""]) => (kind === "outside" ? names.split(",") : []));
  const outs = top.flatMap(([kind, name = "", size]) => (kind === "out" ? [{ name, size: Number(size) }] : []));
  const elastic = top.flatMap(([kind, name = ""]) => (kind === "elastic" ? [name] : []));
  return {
    ...parseMost(words.filter((word, at) => !isOutward(word, at))),
    ...(elastic.length === 0 ? {} : { elastic }),
    ...(top.some(([kind]) => kind === "plain") ? { plain: true as const } : {}),
    ...(outside.length === 0 ? {} : { outside }),
    ...(outs.length === 0 ? {} : { outs }),
  };
};
const depthAt = (words: readonly string[], at: number): number =>
  words.slice(0, at).reduce((depth, word) => depth + Number(word === "(") - Number(word === ")"), 0);
const parseMost = (words: readonly string[]): CellText => {
  const machines: MachineText[] = [];
  const rules: RuleText[] = [];
  const [grants, asked]: [string[], string[]] = [[], []];
  const pools: PoolText[] = [];
  const copies: { name: string; of: string }[] = [];
  const [holds, keeps]: [HeldText[], HeldText[]] = [[], []];
  const limits: Record<string, number> = {};
  const settings: Record<string, number> = {};
  let spare = 0;
  const children: ChildText[] = [];
  const accounts: AccountText[] = [];
  const groups: GroupText[] = [];
  const wholes: WholeText[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    const [kind, name = "", third = "", ...flags] = word.split(":");
    if (kind === "vm") {
      machines.push(parseMachine(word, name, third, flags));
    } else if (kind === "rule") {
      const [from = "", to = ""] = name.split(">");
      const isUdp = flags.includes("udp");
      rules.push({ from, to, port: Number(third), ...(isUdp ? { protocol: "udp" as const } : {}) });
    } else if (kind === "grant") grants.push(name);
    else if (kind === "copy") copies.push({ name, of: third });
    else if (kind === "hold") holds.push({ own: name, other: third });
    else if (kind === "keep") keeps.push({ own: name, other: third });
    else if (kind === "limit") limits[name] = Number(third);
    else if (kind === "group") groups.push({ name, kind: third === "apart" ? third : "together" });
    else if (kind === "pool") pools.push(parsePool(name, [third, ...flags]));
    else if (kind === "whole") wholes.push({ name, pool: third, off: flags.includes("off") });
    else if (kind === "spare") spare = Number(name);
    else if (kind === "set") settings[name] = Number(third);
    else if (kind === "asked") asked.push(...name.split(","));
    else if (kind === "account") {
      const [vms] = flags;
      accounts.push({ name, state: third, ...(vms === undefined ? {} : { vms: Number(vms) }) });
    } else if (kind === "child") {
      const end = closing(words, at + 1);
      const [own = "", account] = name.split("@");
      const text = parseCell(words.slice(at + 2, end));
      const guard = third.startsWith("guard=") ? { guard: Number(third.slice("guard=".length)) } : {};
      children.push({ name: own, ...(account === undefined ? {} : { account }), ...guard, text });
      at = end;
    } else if (word !== "all-or-none")
      throw new Error(`"${word}" is no part of a cell: vm:, rule:, grant:, copy: or all-or-none`);
  }
  return {
    machines,
    rules,
    allOrNone: words.includes("all-or-none"),
    ...(grants.length === 0 ? {} : { grants }),
    ...(copies.length === 0 ? {} : { copies }),
    ...(holds.length === 0 ? {} : { holds }),
    ...(keeps.length === 0 ? {} : { keeps }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(spare === 0 ? {} : { spare }),
    ...(asked.length === 0 ? {} : { asked }),
    ...(Object.keys(settings).length === 0 ? {} : { settings }),
    ...(children.length === 0 ? {} : { children }),
    ...(accounts.length === 0 ? {} : { accounts }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(pools.length === 0 ? {} : { pools }),
    ...(wholes.length === 0 ? {} : { wholes }),
  };
};

const parseMachine = (word: string, name: string, third: string, flags: readonly string[]): MachineText => {
  const named = (what: string): string | undefined =>
    flags.find((flag) => flag.startsWith(`${what}=`))?.slice(what.length + 1);
  const apart = named("apart") ?? null;
  const [group, pool, offering, priority] = [named("in"), named("of"), named("as"), named("prio")];
  const has = (flag: string): boolean => flags.includes(flag);
  const memoryMiB = Number(third);
  if (!(memoryMiB >= 16)) throw new Error(`"${word}" needs the form vm:NAME:MEMORY, with at least 16 MiB`);
  return {
    name,
    memoryMiB,
    off: has("off"),
    data: has("data"),
    live: has("live"),
    once: has("once"),
    apart,
    ...(has("shown") ? { shown: true } : {}),
    ...(has("scratch") ? { scratch: true } : {}),
    ...(has("strict") ? { strict: true } : {}),
    ...(has("own") ? { own: true } : {}),
    ...(group === undefined ? {} : { group }),
    ...(pool === undefined ? {} : { pool }),
    ...(offering === undefined ? {} : { offering }),
    ...(priority === undefined ? {} : { priority: Number(priority) }),
  };
};
const parsePool = (name: string, flags: readonly string[]): PoolText => {
  const listed = (what: string): readonly string[] | undefined =>
    flags
      .find((flag) => flag.startsWith(`${what}=`))
      ?.slice(what.length + 1)
      .split("+");
  const [offerings, images] = [listed("offerings"), listed("images")];
  return {
    name,
    ...(offerings === undefined ? {} : { offerings }),
    ...(images === undefined ? {} : { images }),
  };
};
const formatPool = ({ name, offerings, images }: PoolText): string =>
  [
    `pool:${name}`,
    ...(offerings === undefined ? [] : [`offerings=${offerings.join("+")}`]),
    ...(images === undefined ? [] : [`images=${images.join("+")}`]),
  ].join(":");

/** Where the bracket that opens at a word closes. */
const closing = (words: readonly string[], from: number): number => {
  let depth = 0;
  for (let at = from; at < words.length; at += 1) {
    if (words[at] === "(") depth += 1;
    if (words[at] === ")") depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error(`"${words[from - 1] ?? ""}" needs a cell in brackets behind it, with spaces around each`);
};

export const formatCell = (text: CellText): string => {
  const { machines, rules, allOrNone, grants = [], copies = [], limits = {}, spare = 0, children = [] } = text;
  const {
    accounts = [],
    groups = [],
    pools = [],
    wholes = [],
    outside = [],
    outs = [],
    elastic = [],
    asked = [],
  } = text;
  return [
    ...(outside.length === 0 ? [] : [`outside:${outside.join(",")}`]),
    ...outs.map(({ name, size }) => `out:${name}:${size}`),
    ...elastic.map((name) => `elastic:${name}`),
    ...(text.plain === true ? ["plain"] : []),
    ...pools.map(formatPool),
    ...wholes.map(({ name, pool, off }) => `whole:${name}:${pool}${off ? ":off" : ""}`),
    ...groups.map(({ name, kind }) => `group:${name}:${kind}`),
    ...machines.map(({ name, memoryMiB, off, data, live, once, apart, shown = false, scratch = false, ...asks }) => {
      const words = [off && "off", data && "data", live && "live", once && "once", shown && "shown"];
      const { strict = false, own = false, group, pool, offering, priority } = asks;
      const wishes = [
        strict && "strict",
        own && "own",
        group !== undefined && `in=${group}`,
        pool !== undefined && `of=${pool}`,
        offering !== undefined && `as=${offering}`,
        priority !== undefined && `prio=${priority}`,
      ];
      const flags = [...words, scratch && "scratch", apart !== null && `apart=${apart}`, ...wishes];
      return ["vm", name, String(memoryMiB), ...flags.filter((flag) => flag !== false)].join(":");
    }),
    ...rules.map(({ from, to, port, protocol }) =>
      ["rule", `${from}>${to}`, String(port), ...(protocol === undefined ? [] : [protocol])].join(":"),
    ),
    ...grants.map((cell) => `grant:${cell}`),
    ...copies.map(({ name, of }) => `copy:${name}:${of}`),
    ...(text.holds ?? []).map(({ own, other }) => `hold:${own}:${other}`),
    ...(text.keeps ?? []).map(({ own, other }) => `keep:${own}:${other}`),
    ...Object.entries(limits).map(([what, amount]) => `limit:${what}:${amount}`),
    ...(spare === 0 ? [] : [`spare:${spare}`]),
    ...(asked.length === 0 ? [] : [`asked:${asked.join(",")}`]),
    ...Object.entries(text.settings ?? {}).map(([name, amount]) => `set:${name}:${amount}`),
    ...children.map((child) => `child:${nameIn(child)} ( ${formatCell(child.text)} )`.replace("(  )", "( )")),
    ...accounts.map(({ name, state, vms }) => ["account", name, state, ...(vms === undefined ? [] : [vms])].join(":")),
    ...(allOrNone ? ["all-or-none"] : []),
  ].join(" ");
};

const nameIn = ({ name, account, guard }: ChildText): string =>
  [account === undefined ? name : `${name}@${account}`, ...(guard === undefined ? [] : [`guard=${guard}`])].join(":");

/** The cell's own part of its name: `k1` of `k1.c1`. */
export const labelOf = (cell: string): string => cell.split(".")[0] ?? cell;
/** The name of its element, in its cell. */
export const ruleName = ({ from, to, port, protocol }: RuleText): string =>
  `${from}To${to}At${port}${protocol === "udp" ? "Udp" : ""}`.replaceAll("/", "Of");
/** The text with those of all cells below it, by name. */
export const familyOf = (cell: string, text: CellText): readonly (readonly [string, CellText])[] => [
  [cell, text],
  ...(text.children ?? []).flatMap((child) => familyOf(childOf(cell, child.name), child.text)),
];
export const childOf = (cell: string, label: string): string => childName(cellName(cell), label);

/** A name of this cell, or `CELL/NAME` of another one. */
const refFrom = (cell: string, name: string): string => {
  const [other = "", own] = name.split("/");
  return own === undefined
    ? `<ref:/${labelOf(cell)}/${name}>`
    : `<ref://${other}.cells.internal/${labelOf(other)}/${own}>`;
};

/** Of whole hosts; the operator puts hosts into it by the step `flavor`. */
export const flavor = "large";
/** What the operator offers with it: `alone` is strict, whatever the VM itself asks for. */
export const offerings: Readonly<Record<string, JsonObject>> = {
  small: { "x.type": "Offering", "x.memory": 64 },
  alone: { "x.type": "Offering", "x.memory": 64, "x.planner": "ImplicitDedicationPlanner", "x.mode": "Strict" },
};
const kinds = { apart: "host anti-affinity", together: "host affinity" } as const;

/** Volumes that others have a part in: grants, copies, what is held, and what is kept of theirs. */
const withOthers = (
  { grants = [], copies = [], holds = [], keeps = [] }: CellText,
  ref: (name: string) => string,
): Record<string, JsonObject> => {
  const elements: Record<string, JsonObject> = {};
  for (const other of grants) {
    const domain = `<ref://${other}.cells.internal/>`;
    elements[`for${other}`] = {
      "x.type": "VolumeGrant",
      "x.volume": ref("golden"),
      "x.cell": domain,
      "x.grant": "copy",
    };
  }
  for (const { own, other } of holds) {
    const [there = "", copy = ""] = other.split("/");
    elements[`${own}Hold`] = {
      "x.type": "VolumeGrant",
      "x.volume": ref(own),
      "x.cell": `<ref://${there}.cells.internal/>`,
      "x.grant": "copy",
      "x.hold": `${labelOf(there)}/${copy}`,
    };
  }
  for (const { own, other } of keeps) elements[own] = { "x.type": "VolumeCopy", "x.image": ref(other) };
  for (const { name, of } of copies) elements[name] = { "x.type": "VolumeCopy", "x.image": ref(`${of}/golden`) };
  return elements;
};

/** Pools, and the whole hosts that they are to have. */
const wholeHosts = ({ pools = [], wholes = [] }: CellText, ref: (name: string) => string): Record<string, JsonObject> =>
  Object.fromEntries([
    ...pools.map(({ name, offerings: only, images }) => [
      name,
      {
        "x.type": "Pool",
        ...(only === undefined ? {} : { "x.offerings": [...only] }),
        ...(images === undefined ? {} : { "x.images": [...images] }),
      },
    ]),
    ...wholes.map(({ name, pool, off }) => [
      name,
      { "x.type": "PoolHost", "x.pool": ref(pool), "x.flavor": flavor, "x.enabled": !off },
    ]),
  ]);

const wishesOf = ({ strict, own, group, pool, offering, priority }: Partial<MachineText>): JsonObject => ({
  ...(own ? { "x.data": ownRoles } : {}),
  ...(priority === undefined ? {} : { "x.priority": priority }),
  ...(strict ? { "x.placement.dedication": "strict" } : {}),
  ...(group === undefined ? {} : { "x.placement.groups": [group] }),
  ...(pool === undefined ? {} : { "x.placement.pool": pool }),
  ...(offering === undefined ? {} : { "x.placement.offering": offering }),
});
/** The specification's document. */
export const documentOf = (cell: string, text: CellText): JsonObject => {
  const { machines, rules, grants = [], limits = {}, children = [] } = text;
  const ref = (name: string): string => refFrom(cell, name);
  const subnet = (name: string): JsonObject => ({
    "x.type": "Subnet",
    "x.size": 64,
    "x.addressRange": text.elastic?.includes(name) === true ? "external" : "internal",
  });
  const elements: Record<string, JsonObject> = {
    golden: {
      "x.type": "Volume",
      "x.size": 64,
      "x.import": "tiny",
      "x.access": "ro",
      ...(grants.length === 0 ? {} : { "x.public": true }),
    },
    net0: subnet("net0"),
    net1: subnet("net1"),
  };
  machines.forEach(({ name, memoryMiB, off, data, live, once, apart, shown, scratch, ...asks }, index) => {
    const lossy: JsonObject = scratch ? { "x.recreatable": true } : {};
    elements[name] = {
      "x.type": "VM",
      "x.memory": memoryMiB,
      "x.desiredState": off ? "off" : "on",
      "x.restartOnFailure": !once,
      ...(shown ? { "x.public": true } : {}),
      ...(live ? { "x.liveness.protocol": "icmp" } : {}),
      ...(apart === null ? {} : { "x.placement.apartFrom": [apart] }),
      ...wishesOf(asks),
    };
    elements[`${name}Disk`] = { "x.type": "VolumeCopy", "x.image": ref("golden"), ...lossy };
    elements[`${name}Boot`] = connection(ref(name), ref(`${name}Disk`));
    if (data) {
      elements[`${name}Data`] = { "x.type": "Volume", "x.size": 32, ...lossy };
      elements[`${name}Store`] = connection(ref(name), ref(`${name}Data`));
    }
    elements[`${name}Card`] = {
      "x.type": "VirtualInterface",
      "x.vm": ref(name),
      "x.subnet": ref(subnetOf(name, index)),
      "x.vifName": name,
    };
  });
  for (const rule of rules) {
    const { from, to, port, protocol = "tcp" } = rule;
    elements[ruleName(rule)] = {
      "x.type": "NetworkRule",
      "x.address1": ref(from),
      "x.address2": ref(to),
      "x.protocol": protocol,
      "x.port2": port,
    };
  }
  for (const { name, size } of text.outs ?? [])
    elements[name] = { "x.type": "Subnet", "x.size": size, "x.addressRange": "external" };
  for (const { name, kind } of text.groups ?? []) elements[name] = { "x.type": "AffinityGroup", "x.kind": kinds[kind] };
  Object.assign(elements, withOthers(text, ref), wholeHosts(text, ref));
  for (const child of children) {
    const below = documentOf(childOf(cell, child.name), child.text);
    elements[child.name] = {
      "x.type": "CellController",
      "x.name": child.name,
      "x.cell": below,
      ...(child.account === undefined ? {} : { "x.account": child.account }),
      ...(child.guard === undefined ? {} : { "x.services.haManager": child.guard }),
    };
  }
  for (const { name, state, vms } of text.accounts ?? []) {
    const limits: JsonObject = vms === undefined ? {} : { "x.limits.vms": vms };
    elements.tenants = { ...elements.tenants, [name]: { "x.type": "Account", "x.state": state, ...limits } };
  }
  const quotas = Object.fromEntries(Object.entries(limits).map(([what, amount]) => [`x.limits.${what}`, amount]));
  const policy = policyOf(text);
  const ha = haOf(text);
  const outside: JsonObject = text.outside === undefined ? {} : { "x.pools.external": [...text.outside] };
  const label = labelOf(cell);
  return { [label]: { "x.type": "Cell", "x.name": label, ...policy, ...quotas, ...ha, ...outside, ...elements } };
};

const policyOf = ({ allOrNone, plain }: CellText): JsonObject => ({
  ...(allOrNone ? { "x.policy.deploy": "all-or-none" } : {}),
  ...(plain === true ? { "x.policy.isolation": "none" } : {}),
});
const haOf = ({ spare = 0, asked, settings = {} }: CellText): JsonObject => ({
  ...Object.fromEntries(Object.entries(settings).map(([name, amount]) => [`x.ha.${name}`, amount])),
  ...(spare === 0 ? {} : { "x.ha.spareHosts": spare }),
  ...(asked === undefined ? {} : { "x.ha.investigators": [...asked] }),
});

/** @param index among the cell's machines, which counts where a name has no number */
export const subnetOf = (machine: string, index: number): string => {
  const number = /\d+$/.exec(machine)?.[0];
  return `net${number === undefined ? index % 2 : Number(number) % 2}`;
};
const connection = (vm: string, volume: string): JsonObject => ({
  "x.type": "VolumeConnection",
  "x.vm": vm,
  "x.volume": volume,
  "x.busType": "virtio",
});
