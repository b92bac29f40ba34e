import {
  type Cell,
  type HostKey,
  holds,
  hostMacs,
  type Interface,
  networks,
  range,
  routerAddresses,
  type Told,
  type View,
  type World,
} from "../world.testing.ts";

/** What one host goes by, to be asked. */
export class Knowledge {
  readonly world: World;
  readonly host: HostKey;
  readonly view: View;
  readonly #byAddress: ReadonlyMap<number, Interface>;
  readonly #here: ReadonlySet<number>;
  readonly #told: ReadonlyMap<number, Told>;

  constructor(world: World, host: HostKey, view: View) {
    this.world = world;
    this.host = host;
    this.view = view;
    this.#byAddress = new Map(world.interfaces.map((each) => [each.address, each]));
    this.#here = new Set(view.here);
    this.#told = new Map(view.elsewhere.map((told) => [told.interface, told]));
  }
  /** The interface of this host with an address. */
  endpoint(address: number): Interface | null {
    const found = this.#byAddress.get(address);
    return found !== undefined && this.#here.has(found.at) ? found : null;
  }
  has(at: number): boolean {
    return this.#here.has(at);
  }
  /** Whoever of that cell has an address, as far as this host knows. */
  interfaceOf(cell: number, address: number): Interface | null {
    const found = this.#byAddress.get(address);
    if (found === undefined || found.cell !== cell) return null;
    return this.#here.has(found.at) || this.#told.get(found.at)?.isOwn === true ? found : null;
  }
  /** An interface here, or at a host that this one was told of. */
  isSomewhere(address: number): boolean {
    return this.endpoint(address) !== null || this.hostOf(address) !== null;
  }
  /** MAC of the other host where an address is. */
  hostOf(address: number): number | null {
    const found = this.#byAddress.get(address);
    if (found === undefined || this.#here.has(found.at)) return null;
    const told = this.#told.get(found.at);
    return told === undefined ? null : hostMacs[told.place];
  }
  /** Where an address is that is no interface here: at another host, or the cell's controller's machine. */
  machineOf(cell: number, address: number): number | null {
    const { controller } = this.cell(cell);
    const isController = this.view.rules.has(cell) && address === controller.address;
    return this.hostOf(address) ?? (isController ? controller.mac : null);
  }
  /**
   * The interface by which a machine of that cell speaks with an address outside, where that one is somebody for whom it may
   * speak, as far as this host knows.
   */
  routerBetween(cell: number, inside: number, outside: number): Interface | null {
    const machine = this.interfaceOf(cell, inside);
    const set = this.view.rules.get(cell);
    const at = machine === null ? undefined : set?.routers.get(machine.subnet.name);
    if (at === undefined || kindOf(outside) !== "outside") return null;
    if (this.endpoint(outside) !== null || this.hostOf(outside) !== null) return null;
    const speaksFor = set!.forwards.filter((each) => each.interface === at).flatMap(({ networks }) => networks);
    return speaksFor.some((each) => each === null || holds(each, outside)) ? this.world.interfaces[at]! : null;
  }
  /** MAC of the other host where an interface of that cell is known to be. */
  placeOf(cell: number, address: number): number | null {
    return this.interfaceOf(cell, address) === null ? null : this.hostOf(address);
  }
  cell(number: number): Cell {
    const found = this.world.cells.find((each) => each.number === number);
    if (found === undefined) throw new Error(`there is no cell ${number}`);
    return found;
  }
}

const unusable = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"].map(range);
/** What an address is to the way out: of an external pool, somewhere outside, or neither. */
export function kindOf(address: number): "external" | "outside" | "inside" {
  if (routerAddresses.includes(address)) return "outside";
  if (holds(networks.external, address)) return "external";
  const taken = [networks.underlay, networks.internal, networks.outside, ...unusable];
  return taken.some((each) => holds(each, address)) ? "inside" : "outside";
}
