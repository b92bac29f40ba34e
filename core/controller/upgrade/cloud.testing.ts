import assert from "node:assert/strict";
import type { Changed } from "../../../model/api.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredVm, DesiredVolume } from "../../documents/vocabulary.ts";
import { rootMeans } from "../model/root.testing.ts";
import { World } from "../world.testing.ts";

export const roles: Readonly<Record<string, JsonObject>> = {
  core: { controller: { cell: "shop", cellUid: "c1", cellNumber: 7 }, presence: { number: 1 } },
  two: { presence: { number: 2 } },
  three: { gateway: {} },
};
export const service = (name: string): JsonObject => {
  const at = (part: string): string => `<ref:/shop/${name}/${part}>`;
  const disk = (volume: string, order: number): JsonObject => ({
    "x.type": "VolumeConnection",
    "x.vm": at("vm"),
    "x.volume": at(volume),
    "x.bootOrder": order,
  });
  return {
    boot: { "x.type": "VolumeCopy", "x.image": "<ref:/shop/image>" },
    data: { "x.type": "Volume", "x.size": 64 },
    vm: {
      "x.type": "VM",
      "x.memory": 160,
      "x.restartOnFailure": true,
      "x.liveness.protocol": "icmp",
      "x.data": { service: { roles: roles[name] ?? {} } },
    },
    bootDisk: disk("boot", 0),
    dataDisk: disk("data", 1),
    card: { "x.type": "VirtualInterface", "x.vm": at("vm"), "x.subnet": "<ref:/shop/net>" },
  };
};
/** The own controller's VM first, so that its being the last one is no accident. */
export const cloudOf = (image: string, more: JsonObject = {}): JsonObject => ({
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    net: { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" },
    image: { "x.type": "Volume", "x.size": 64, "x.access": "ro", "x.import": image },
    ...Object.fromEntries(Object.keys(roles).map((name) => [name, service(name)])),
    ...more,
  },
});
export const names = Object.keys(roles);

/** A cloud of three service VMs, whose hosts do as they are told; and what a VM does that boots from a broken image. */
export class Cloud {
  readonly world = new World({ root: rootMeans });
  readonly broken = new Set<string>();
  /** Connections from which the host of the own VM has gone back. */
  readonly #refused = new Set<string>();
  constructor() {
    this.put("one");
  }
  put(image: string, more: JsonObject = {}): Changed {
    const changed = this.world.put(cloudOf(image, more)).body as unknown as Changed;
    this.settle();
    return changed;
  }
  /** Machines end and hosts choose, as their images let them. */
  settle(): void {
    let before = "";
    for (let round = 0; ; round += 1) {
      assert.ok(round < 50, "it does not come to rest");
      this.world.settle();
      for (const name of names) this.#play(name);
      this.world.settle();
      const now = JSON.stringify([...this.world.records, ...this.world.ended]);
      if (now === before) return;
      before = now;
    }
  }
  #play(name: string): void {
    const found = this.world.vm(`shop/${name}/vm`);
    if (found === null) return;
    const { document } = found;
    const key = `${document.uid}@${document.incarnation}`;
    const { trial } = document;
    if (trial !== undefined && this.broken.has(this.#imageOf(trial.disk.attachment.volume)))
      this.#refused.add(trial.disk.connection);
    const refused = trial !== undefined && this.#refused.has(trial.disk.connection);
    const why = refused ? "it did not answer" : null;
    const said =
      trial === undefined ? {} : { trial: { connection: trial.disk.connection, boots: !refused, refused: why } };
    const dead = this.broken.has(this.imageOf(name));
    const end = { phase: "failed", power: "off", ended: "crashed", reason: "its kernel found no root" } as const;
    this.world.ended.set(key, dead ? end : { health: "answering", ...said });
    this.#tell();
  }
  /** The host says something else of what it runs: the world tells it with the next news. */
  #tell(): void {
    this.world.settle();
  }
  #volume(uid: string): DesiredVolume | undefined {
    return this.world.documents<DesiredVolume>("storage-manager", "volume").find((each) => each.uid === uid);
  }
  #imageOf(volume: string): string {
    const origin = this.#volume(volume)?.origin;
    if (origin?.kind === "copy") return this.#imageOf(origin.volume);
    return origin?.kind === "image" ? origin.image : "nothing";
  }
  vm(name: string): DesiredVm {
    return this.world.vm(`shop/${name}/vm`)?.document ?? assert.fail(this.world.phase(`shop/${name}/vm`));
  }
  /** Of the first disk that its host was told of. */
  imageOf(name: string): string {
    const [boot] = this.world.vm(`shop/${name}/vm`)?.document.disks ?? [];
    return boot === undefined ? "none" : this.#imageOf(boot.attachment.volume);
  }
  images(): Readonly<Record<string, string>> {
    return Object.fromEntries(names.map((name) => [name, this.imageOf(name)]));
  }
  trying(): readonly string[] {
    const { state } = this.world;
    return [...state.vms.values()].flatMap(({ uid, upgrade }) =>
      upgrade?.trying === undefined ? [] : [state.elements.get(uid)?.path.split("/")[1] ?? ""],
    );
  }
  pass(ms: number): void {
    this.world.wait(ms);
    for (const name of [...this.world.timers.keys()]) this.world.fire(name);
    this.settle();
  }
  volumes(): number {
    return this.world.documents("storage-manager", "volume").length;
  }
}
/** An image, three boot volumes, three data volumes. */
export const atRest = 7;
