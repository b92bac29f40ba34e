import type { JsonObject } from "../../model/json.ts";

/**
 * A cell in one line, as scenarios write it and the generator makes it:
 *
 *   vm:NAME:MEMORY[:off][:data][:apart=OTHER][:live][:once]   rule:FROM>TO:PORT   all-or-none
 *
 * Every VM has a disk that is a copy of one golden image, an interface in one of two subnets, and with `data` a second, empty
 * volume. `live` gives it liveness probes; `once` leaves it down after a crash.
 */
export interface MachineText {
  readonly name: string;
  readonly memoryMiB: number;
  readonly off: boolean;
  readonly data: boolean;
  readonly live: boolean;
  readonly once: boolean;
  readonly apart: string | null;
}
export interface RuleText {
  readonly from: string;
  readonly to: string;
  readonly port: number;
}
export interface CellText {
  readonly machines: readonly MachineText[];
  readonly rules: readonly RuleText[];
  readonly allOrNone: boolean;
}

export const parseCell = (words: readonly string[]): CellText => {
  const machines: MachineText[] = [];
  const rules: RuleText[] = [];
  for (const word of words) {
    const [kind, name = "", third = "", ...flags] = word.split(":");
    if (kind === "vm") {
      const apart = flags.find((flag) => flag.startsWith("apart="))?.slice("apart=".length) ?? null;
      const has = (flag: string): boolean => flags.includes(flag);
      const memoryMiB = Number(third);
      if (!(memoryMiB >= 16)) throw new Error(`"${word}" needs the form vm:NAME:MEMORY, with at least 16 MiB`);
      machines.push({
        name,
        memoryMiB,
        off: has("off"),
        data: has("data"),
        live: has("live"),
        once: has("once"),
        apart,
      });
    } else if (kind === "rule") {
      const [from = "", to = ""] = name.split(">");
      rules.push({ from, to, port: Number(third) });
    } else if (word !== "all-or-none") throw new Error(`"${word}" is no part of a cell: vm:, rule: or all-or-none`);
  }
  return { machines, rules, allOrNone: words.includes("all-or-none") };
};

export const formatCell = ({ machines, rules, allOrNone }: CellText): string =>
  [
    ...machines.map(({ name, memoryMiB, off, data, live, once, apart }) => {
      const flags = [off && "off", data && "data", live && "live", once && "once", apart !== null && `apart=${apart}`];
      return ["vm", name, String(memoryMiB), ...flags.filter((flag) => flag !== false)].join(":");
    }),
    ...rules.map(({ from, to, port }) => `rule:${from}>${to}:${port}`),
    ...(allOrNone ? ["all-or-none"] : []),
  ].join(" ");

/** The specification's document. */
export const documentOf = (cell: string, { machines, rules, allOrNone }: CellText): JsonObject => {
  const ref = (name: string): string => `<ref:/${cell}/${name}>`;
  const subnet: JsonObject = { "x.type": "Subnet", "x.size": 64, "x.addressRange": "internal" };
  const elements: Record<string, JsonObject> = {
    golden: { "x.type": "Volume", "x.size": 64, "x.import": "tiny", "x.access": "ro" },
    net0: subnet,
    net1: subnet,
  };
  machines.forEach(({ name, memoryMiB, off, data, live, once, apart }, index) => {
    elements[name] = {
      "x.type": "VM",
      "x.memory": memoryMiB,
      "x.desiredState": off ? "off" : "on",
      "x.restartOnFailure": !once,
      ...(live ? { "x.liveness.protocol": "icmp" } : {}),
      ...(apart === null ? {} : { "x.placement.apartFrom": [apart] }),
    };
    elements[`${name}Disk`] = { "x.type": "VolumeCopy", "x.image": ref("golden") };
    elements[`${name}Boot`] = connection(ref(name), ref(`${name}Disk`));
    if (data) {
      elements[`${name}Data`] = { "x.type": "Volume", "x.size": 32 };
      elements[`${name}Store`] = connection(ref(name), ref(`${name}Data`));
    }
    const net = /\d*$/.exec(name)?.[0];
    const subnetOf = net === undefined || net === "" ? `net${index % 2}` : `net${Number(net) % 2}`;
    elements[`${name}Card`] = {
      "x.type": "VirtualInterface",
      "x.vm": ref(name),
      "x.subnet": ref(subnetOf),
      "x.vifName": name,
    };
  });
  for (const { from, to, port } of rules) {
    elements[`${from}To${to}At${port}`] = {
      "x.type": "NetworkRule",
      "x.address1": ref(from),
      "x.address2": ref(to),
      "x.protocol": "tcp",
      "x.port2": port,
    };
  }
  const policy: JsonObject = allOrNone ? { "x.policy.deploy": "all-or-none" } : {};
  return { [cell]: { "x.type": "Cell", "x.name": cell, ...policy, ...elements } };
};

const connection = (vm: string, volume: string): JsonObject => ({
  "x.type": "VolumeConnection",
  "x.vm": vm,
  "x.volume": volume,
  "x.busType": "virtio",
});
