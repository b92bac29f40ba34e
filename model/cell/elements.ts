import type { Position } from "../diagnostics/diagnostic.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { Meaning } from "./attribute-value.ts";
import type {
  AffinityGroupElement,
  CellControllerElement,
  DedicationElement,
  Element,
  ElementType,
  HostElement,
  HostFlavorElement,
  OfferingElement,
  PoolElement,
  PoolHostElement,
  PortRange,
  RuleEnd,
  VolumeGrantElement,
} from "./cell.ts";
import { type Cidr, cidr, type ElementPath, elementPath, ipv4, mac } from "./identifiers.ts";
import { cellModeOf } from "./network/network-mode.ts";
import { attributeSchema } from "./schema.ts";
import { groupKinds } from "./tenants/affinity/affinity.ts";
import { tenantFields } from "./tenants/fields.ts";
import { poolFields } from "./tenants/pools/attributes.ts";

/** The checked attributes of one element, with the table's defaults where nothing was written. */
export class AttributeValues {
  readonly #type: ElementType | "Cell";
  readonly #meanings: ReadonlyMap<string, Meaning>;

  constructor(type: ElementType | "Cell", meanings: ReadonlyMap<string, Meaning>) {
    this.#type = type;
    this.#meanings = meanings;
  }
  #default(name: string): Json | undefined {
    return attributeSchema(this.#type, name)?.default;
  }
  #need<T>(name: string, value: T | undefined): T {
    if (value === undefined) throw new Error(`a checked ${this.#type} has ${name}`);
    return value;
  }

  number(name: string): number | undefined {
    const meaning = this.#meanings.get(name);
    if (meaning?.kind === "number") return meaning.value;
    const fallback = this.#default(name);
    return typeof fallback === "number" ? fallback : undefined;
  }
  text(name: string): string | undefined {
    const meaning = this.#meanings.get(name);
    if (meaning?.kind === "text") return meaning.value;
    const fallback = this.#default(name);
    return typeof fallback === "string" ? fallback : undefined;
  }
  ports(name: string): PortRange | undefined {
    const meaning = this.#meanings.get(name);
    return meaning?.kind === "ports" ? meaning.value : undefined;
  }
  data(name: string): Json | undefined {
    const meaning = this.#meanings.get(name);
    return meaning?.kind === "data" ? meaning.value : undefined;
  }
  needNumber(name: string): number {
    return this.#need(name, this.number(name));
  }
  needText(name: string): string {
    return this.#need(name, this.text(name));
  }
  needBoolean(name: string): boolean {
    const meaning = this.#meanings.get(name);
    const fallback = this.#default(name);
    return this.#need(
      name,
      meaning?.kind === "boolean" ? meaning.value : typeof fallback === "boolean" ? fallback : undefined,
    );
  }
  needEnd(name: string): RuleEnd {
    const meaning = this.#meanings.get(name);
    return this.#need(name, meaning?.kind === "end" ? meaning.value : undefined);
  }
  /** One of the values of a choice, as its own type. */
  needChoice<T extends string>(name: string, values: readonly T[]): T {
    const text = this.text(name);
    return this.#need(
      name,
      values.find((value) => value === text),
    );
  }
  link(name: string): ElementPath {
    return elementPath(this.needText(name));
  }
  flag(name: string): boolean | undefined {
    const meaning = this.#meanings.get(name);
    return meaning?.kind === "boolean" ? meaning.value : undefined;
  }
  optionalLink(name: string): ElementPath | undefined {
    const path = this.text(name);
    return path === undefined ? undefined : elementPath(path);
  }
  texts(name: string): readonly string[] | undefined {
    const meaning = this.#meanings.get(name);
    return meaning?.kind === "texts" ? meaning.value : undefined;
  }
  /** Data attributes that begin with `prefix`, without it. */
  group(prefix: string): JsonObject {
    const pairs: [string, Json][] = [];
    for (const [name, meaning] of this.#meanings)
      if (name.startsWith(prefix) && meaning.kind === "data") pairs.push([name.slice(prefix.length), meaning.value]);
    return Object.freeze(Object.fromEntries(pairs));
  }
}

const forwarded = (text: string): Cidr | "internet" => (text === "internet" ? text : cidr(text));
const nothing = Object.freeze({});
/** Leaves out what is undefined, as `exactOptionalPropertyTypes` wants it. */
function optional<K extends string, V>(key: K, value: V | undefined): { readonly [key in K]?: V } {
  if (value === undefined) return nothing;
  const pair: { [key in K]?: V } = {};
  pair[key] = value;
  return pair;
}

/** The frozen element of a type from its attributes, which are sound. */
export function buildElement(
  type: ElementType,
  path: ElementPath,
  values: AttributeValues,
  position: Position | undefined,
): Element {
  const movedFrom = values.text("x.movedFrom");
  const base: { path: ElementPath; public: boolean; movedFrom?: ElementPath; position?: Position } = {
    path,
    public: values.needBoolean("x.public"),
  };
  if (movedFrom !== undefined) base.movedFrom = elementPath(movedFrom);
  if (position !== undefined) base.position = position;
  return Object.freeze(Object.assign(base, attributes(type, values)));
}

type Own<E> = E extends Element ? Omit<E, "path" | "public" | "movedFrom" | "position"> : never;

function attributes(type: ElementType, values: AttributeValues): Own<Element> {
  switch (type) {
    case "VM":
      return vm(values);
    case "Volume":
      return {
        type,
        sizeMiB: values.needNumber("x.size"),
        access: values.needChoice("x.access", ["rw", "ro"]),
        ...optional("import", values.text("x.import")),
        recreatable: values.needBoolean("x.recreatable"),
      };
    case "VolumeCopy":
      return {
        type,
        image: values.link("x.image"),
        recreatable: values.needBoolean("x.recreatable"),
        ...optional("sizeMiB", values.number("x.size")),
      };
    case "Subnet": {
      const network = values.text("x.cidr");
      const whole = network === undefined ? 0 : 2 ** (32 - Number(network.split("/")[1]));
      return {
        type,
        size: values.number("x.size") ?? whole,
        addressRange: values.needChoice("x.addressRange", ["internal", "external", "management"]),
        ...optional("cidr", network === undefined ? undefined : cidr(network)),
        ...optional("router", values.optionalLink("x.router")),
      };
    }
    case "VolumeConnection":
      return volumeConnection(values);
    case "VirtualInterface":
      return virtualInterface(values);
    case "NetworkRule":
      return {
        type,
        address1: values.needEnd("x.address1"),
        address2: values.needEnd("x.address2"),
        protocol: values.needChoice("x.protocol", ["any", "tcp", "udp", "icmp"]),
        ...optional("port1", values.ports("x.port1")),
        ...optional("port2", values.ports("x.port2")),
        direction: values.needChoice("x.direction", ["both", "1to2"]),
      };
    case "VolumeGrant":
      return volumeGrant(values);
    case "CellController": {
      const gateway = values.text("x.gateway");
      return {
        type,
        cell: values.data("x.cell") ?? null,
        ...optional("name", values.text("x.name")),
        ...bound(values),
        ...optional("account", values.text("x.account")),
        ...optional("gateway", gateway === undefined ? undefined : ipv4(gateway)),
        ...optional("networkMode", cellModeOf(values.text("x.networkMode")) ?? undefined),
      };
    }
    case "Zone":
    case "Pod":
    case "Cluster":
      return { type };
    case "AffinityGroup":
    case "Host":
    case "Dedication":
    case "Offering":
    case "HostFlavor":
    case "Pool":
    case "PoolHost":
      return ofInstallation(type, values);
    case "Domain":
    case "Account":
    case "Role":
      return tenantFields(type, values);
  }
}

type OfInstallation =
  | AffinityGroupElement
  | HostElement
  | DedicationElement
  | OfferingElement
  | HostFlavorElement
  | PoolElement
  | PoolHostElement;
function ofInstallation(type: OfInstallation["type"], values: AttributeValues): Own<OfInstallation> {
  if (type === "Dedication")
    return {
      type,
      of: values.needText("x.of"),
      to: values.needText("x.to"),
      ...optional("account", values.text("x.account")),
    };
  if (type === "AffinityGroup") return { type, kind: values.needChoice("x.kind", groupKinds) };
  if (type !== "Host") return poolFields(type, values);
  return {
    type,
    state: values.needChoice("x.state", ["enabled", "disabled", "maintenance"]),
    ...optional("tags", values.texts("x.tags")),
    ...optional("cluster", values.text("x.cluster")),
    ...optional("properties", values.data("x.properties")),
    ...optional("flavor", values.text("x.flavor")),
  };
}

function virtualInterface(values: AttributeValues): Own<Element> {
  const [hardware, address] = [values.text("x.mac"), values.text("x.address")];
  return {
    type: "VirtualInterface",
    vm: values.link("x.vm"),
    subnet: values.link("x.subnet"),
    requires: values.needBoolean("x.requires"),
    ...optional("vifName", values.text("x.vifName")),
    ...optional("mac", hardware === undefined ? undefined : mac(hardware)),
    ...optional("address", address === undefined ? undefined : ipv4(address)),
    ...optional("forwards", values.texts("x.forwards")?.map(forwarded)),
    ...optional("groups", values.texts("x.groups")?.map(ipv4)),
  };
}

function bound(values: AttributeValues): Pick<CellControllerElement, "services"> {
  const services = {
    ...optional("placer", values.number("x.services.placer")),
    ...optional("storageManager", values.number("x.services.storageManager")),
    ...optional("haManager", values.number("x.services.haManager")),
  };
  return Object.keys(services).length === 0 ? {} : { services };
}

function vm(values: AttributeValues): Own<Element> {
  const [protocol, asked] = [values.text("x.liveness.protocol"), values.text("x.liveness.interface")];
  const ready = values.text("x.ready") === undefined ? undefined : values.needChoice("x.ready", ["booted", "started"]);
  const liveness =
    protocol === undefined
      ? undefined
      : {
          protocol: values.needChoice("x.liveness.protocol", ["icmp", "udp"]),
          ...optional("port", values.number("x.liveness.port")),
          ...optional("interface", asked === undefined ? undefined : elementPath(asked)),
          intervalMs: values.needNumber("x.liveness.intervalMs"),
          failures: values.needNumber("x.liveness.failures"),
        };
  return {
    type: "VM",
    memoryMiB: values.needNumber("x.memory"),
    cpus: values.needNumber("x.cpus"),
    cpuSpeedMHz: values.needNumber("x.cpuSpeed"),
    desiredState: values.needChoice("x.desiredState", ["on", "off"]),
    ...optional("restart", values.number("x.restart")),
    start: values.needChoice("x.start", ["boot", "resume"]),
    ...(values.needChoice("x.display", ["none", "vga"]) === "vga" ? { display: "vga" as const } : {}),
    ...optional("ready", ready),
    restartOnFailure: values.needBoolean("x.restartOnFailure"),
    ...optional("liveness", liveness),
    ...optional("data", values.data("x.data")),
    placement: values.group("x.placement."),
    priority: values.needNumber("x.priority"),
    ha: { isolated: values.needChoice("x.ha.isolated", ["keep", "restart"]) },
  };
}

function volumeConnection(values: AttributeValues): Own<Element> {
  return {
    type: "VolumeConnection",
    vm: values.link("x.vm"),
    volume: values.link("x.volume"),
    requires: values.needBoolean("x.requires"),
    busType: values.needChoice("x.busType", ["virtio", "ide", "scsi"]),
    ...optional("busNumber", values.number("x.busNumber")),
    ...optional("busSlot", values.number("x.busSlot")),
    ...optional("bootOrder", values.number("x.bootOrder")),
  };
}

function volumeGrant(values: AttributeValues): Own<VolumeGrantElement> {
  const hold = values.text("x.hold");
  return {
    type: "VolumeGrant",
    volume: values.link("x.volume"),
    grant: values.needChoice("x.grant", ["copy", "connect"]),
    to: grantee(values),
    ...optional("hold", hold === undefined ? undefined : elementPath(hold)),
    ...optional("holder", values.text("x.holder")),
  };
}

/** Where nobody is named, or one of `x.account` and `x.domain` beside another, it is a cell without a name, which the checks refuse. */
function grantee(values: AttributeValues): VolumeGrantElement["to"] {
  const [machine, cell] = [values.text("x.vm"), values.text("x.cell")];
  const [account, domain] = [values.text("x.account"), values.text("x.domain")];
  const path = account ?? domain;
  if (path === undefined)
    return machine === undefined ? { kind: "cell", domain: cell ?? "" } : { kind: "vm", vm: elementPath(machine) };
  const isOne = [machine, cell, account, domain].filter((each) => each !== undefined).length === 1;
  return isOne ? { kind: account === undefined ? "tenants" : "account", path } : { kind: "cell", domain: "" };
}
