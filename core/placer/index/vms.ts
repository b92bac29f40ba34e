import type { HostName, PeerName, Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import type { Said } from "../../outbox.ts";
import type { Reservation } from "../candidate.ts";
import type { Wanted } from "../state.ts";
import type { ByVm, Few } from "./few.ts";

/*
 * All that a Placer knows of a VM stands in one row: what is asked for, its reservation, where it is, and what was said of it. Each of these had a map of
 * its own, and of hundreds of thousands of VMs the entries of four maps, and the keys of one, took more than what they led to. Each is still used
 * as if it were one (`ByVm`), in the order in which the VMs came.
 *
 * Rejected: to make what was said anew from the reservation where it is compared. That is what is to be said now.
 */
interface Row {
  /** Whose `document` and `said` are. */
  client: PeerName | undefined;
  document: DesiredPlacement | undefined;
  reservation: Reservation | undefined;
  places: Few<HostName> | undefined;
  said: Json | undefined;
}
type Rows = Map<Uid, Row>;
const emptyRow = (): Row => ({
  client: undefined,
  document: undefined,
  reservation: undefined,
  places: undefined,
  said: undefined,
});

interface Regard<Value> {
  read(row: Row): Value | undefined;
  write(row: Row, value: Value | undefined, vm: Uid): void;
}
class Column<Value> implements ByVm<Value> {
  readonly #rows: Rows;
  readonly #regard: Regard<Value>;
  #size = 0;
  constructor(rows: Rows, regard: Regard<Value>) {
    this.#rows = rows;
    this.#regard = regard;
  }
  get size(): number {
    return this.#size;
  }
  get(vm: Uid): Value | undefined {
    const row = this.#rows.get(vm);
    return row === undefined ? undefined : this.#regard.read(row);
  }
  has(vm: Uid): boolean {
    return this.get(vm) !== undefined;
  }
  set(vm: Uid, value: Value): void {
    const row = rowOf(this.#rows, vm);
    if (this.#regard.read(row) === undefined) this.#size += 1;
    this.#regard.write(row, value, vm);
  }
  delete(vm: Uid): boolean {
    const row = this.#rows.get(vm);
    if (row === undefined || this.#regard.read(row) === undefined) return false;
    this.#size -= 1;
    this.#regard.write(row, undefined, vm);
    dropEmpty(this.#rows, vm, row);
    return true;
  }
  *[Symbol.iterator](): MapIterator<[Uid, Value]> {
    for (const [vm, row] of this.#rows) {
      const value = this.#regard.read(row);
      if (value !== undefined) yield [vm, value];
    }
  }
  *keys(): MapIterator<Uid> {
    for (const [vm] of this) yield vm;
  }
  *values(): MapIterator<Value> {
    for (const [, value] of this) yield value;
  }
}
function rowOf(rows: Rows, vm: Uid): Row {
  const known = rows.get(vm);
  if (known !== undefined) return known;
  const made = emptyRow();
  rows.set(vm, made);
  return made;
}
function dropEmpty(rows: Rows, vm: Uid, { document, reservation, places, said }: Row): void {
  if (document === undefined && reservation === undefined && places === undefined && said === undefined)
    rows.delete(vm);
}

const area = "/placement/";
const keyOf = (client: PeerName | undefined, vm: Uid): string => `${client}${area}${vm}`;
/** What was said to the client who asks for a VM stands in its row, all else by its key. */
class SaidOfVms implements Said {
  readonly #rows: Rows;
  readonly #others: Map<string, Json>;
  constructor(rows: Rows, others: Map<string, Json>) {
    this.#rows = rows;
    this.#others = others;
  }
  get(key: string): Json | undefined {
    return this.#rowOf(key)?.said ?? this.#others.get(key);
  }
  has(key: string): boolean {
    return this.get(key) !== undefined;
  }
  set(key: string, value: Json): void {
    const row = this.#rowOf(key);
    if (row === undefined) {
      this.#others.set(key, value);
      return;
    }
    this.#others.delete(key);
    row.said = value;
  }
  delete(key: string): boolean {
    const row = this.#rowOf(key);
    if (row === undefined || row.said === undefined) return this.#others.delete(key);
    row.said = undefined;
    dropEmpty(this.#rows, vmOf(key), row);
    return true;
  }
  *[Symbol.iterator](): Generator<[string, Json]> {
    yield* this.#others;
    for (const [vm, { client, said }] of this.#rows) if (said !== undefined) yield [keyOf(client, vm), said];
  }
  *keys(): Generator<string> {
    for (const [key] of this) yield key;
  }
  #rowOf(key: string): Row | undefined {
    const at = key.indexOf(area);
    const row = at < 0 ? undefined : this.#rows.get(key.slice(at + area.length) as Uid);
    // No text is made to compare it.
    return row?.client !== undefined && row.client.length === at && key.startsWith(row.client) ? row : undefined;
  }
}
const vmOf = (key: string): Uid => key.slice(key.indexOf(area) + area.length) as Uid;

export interface KnownVms {
  readonly wanted: ByVm<Wanted>;
  readonly reservations: ByVm<Reservation>;
  readonly places: ByVm<Few<HostName>>;
  readonly said: Said;
}
export function knownVms(): KnownVms {
  const rows: Rows = new Map();
  const others = new Map<string, Json>();
  const wanted = new Column<Wanted>(rows, {
    // Who has one keeps it while others are asked for: it does not change.
    read: ({ client, document }) => (client === undefined || document === undefined ? undefined : { client, document }),
    write: (row, value, vm) => {
      row.document = value?.document;
      if (value === undefined || value.client === row.client) return;
      if (row.said !== undefined) others.set(keyOf(row.client, vm), row.said);
      row.said = undefined;
      row.client = value.client;
    },
  });
  const reservations = new Column<Reservation>(rows, {
    read: ({ reservation }) => reservation,
    write: (row, value) => {
      row.reservation = value;
    },
  });
  const places = new Column<Few<HostName>>(rows, {
    read: (row) => row.places,
    write: (row, value) => {
      row.places = value;
    },
  });
  return { wanted, reservations, places, said: new SaidOfVms(rows, others) };
}
