import assert from "node:assert/strict";
import { test } from "node:test";
import { componentOf, controllerElements, volumesOf } from "../../core/cells/controller-vm.ts";
import type { CellReport, CellWorkAnswer, FoundController, WantedController } from "../../core/cells/work.ts";
import { toJson } from "../../core/outbox.ts";
import { cellName, elementPath, ipv4, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { checkDocument } from "../../model/specification/specification.ts";
import { eventually } from "../installation.testing.ts";
import { network } from "../installation.ts";
import { makeControllers } from "./maker.ts";

/** The Cell Manager's side of the work, and the root cell's model, with what was asked of it. */
class World {
  readonly model = new Map<string, JsonObject>();
  readonly calls: string[] = [];
  readonly reports: string[] = [];
  failing: string | null = null;
  /** Null: it did not say yet which controllers there are. */
  found: readonly FoundController[] | null = null;
  /** Elements that left the model and are not gone. */
  readonly leaving = new Map<string, () => void>();
  readonly #stop = new AbortController();
  #version = 0;
  #controllers: readonly WantedController[] = [];
  #asking: (() => void) | null = null;
  running: Promise<void>;
  readonly #tries: (() => void)[] = [];
  constructor(isStarted = true) {
    this.running = isStarted ? this.run() : Promise.resolve();
  }
  /** It has tried once more, in vain. */
  failed(): Promise<void> {
    return new Promise((resolve) => this.#tries.push(resolve));
  }
  run(): Promise<void> {
    return makeControllers({
      report: (report) => this.#report(report),
      signal: this.#stop.signal,
      retryMs: { first: 1, last: 5 },
      components: {
        all: async () => {
          for (const tried of this.#tries.splice(0)) tried();
          if (this.failing !== null) throw new Error(this.failing);
          return Object.fromEntries(this.model);
        },
        read: async (name) => this.#called(`read ${name}`, this.model.get(name) ?? null),
        put: async (name, elements) => {
          this.#called(`put ${name}`, null);
          this.model.set(name, elements);
        },
        remove: async (name) => {
          this.#called(`remove ${name}`, null);
          this.model.delete(name);
        },
        gone: async (name) => {
          this.#called(`gone ${name}`, null);
          if (this.leaving.has(name)) return false;
          return new Promise((resolve) => this.leaving.set(name, () => resolve(true)));
        },
      },
    });
  }
  #called(what: string, value: Json): Json {
    this.calls.push(what);
    if (this.failing !== null) throw new Error(this.failing);
    return value;
  }
  async #report(report: CellReport): Promise<Json> {
    if (report.kind === "found") {
      this.found = report.controllers;
      return null;
    }
    if (report.kind !== "work" && report.kind !== "instances") {
      this.reports.push(
        report.kind === "failed" ? `failed ${report.uid}: ${report.reason}` : `${report.kind} ${report.uid}`,
      );
      return null;
    }
    while (report.kind === "work" && report.known === this.#version)
      await new Promise<void>((resolve) => (this.#asking = resolve));
    return toJson({ version: this.#version, controllers: this.#controllers } satisfies CellWorkAnswer);
  }
  want(...controllers: readonly Partial<WantedController>[]): void {
    this.#version += 1;
    this.#controllers = controllers.map((each) => ({ ...wanted, ...each }));
    this.#asking?.();
  }
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#version += 1;
    this.#asking?.();
    await this.running;
  }
}
const wanted: WantedController = {
  uid: uid("root-9"),
  cell: cellName("shop"),
  controller: peerName("controller.shop"),
  cellNumber: 2,
  state: "run",
  answers: false,
  services: { placer: 1, storageManager: 2 },
};

test("a controller's VM is put into the root cell's model once, and counts as made when it answers", async () => {
  const world = new World();
  world.want({});
  await eventually("it is there", () => world.reports.length === 1);
  assert.deepEqual(world.reports, ["making root-9"]);
  world.want({ answers: true });
  await eventually("it is made", () => world.reports.includes("made root-9"));
  world.want({ answers: false });
  world.want({ answers: true });
  await world.stop();
  assert.deepEqual(world.calls, ["read shop", "put shop"]);
  // Nothing is sent when it is so already.
  const again = new World();
  again.model.set("shop", structuredClone(world.model.get("shop") ?? {}));
  again.want({ answers: true });
  await eventually("it is adopted", () => again.reports.includes("made root-9"));
  await again.stop();
  assert.deepEqual(again.calls, ["read shop"]);
});

test("what cannot be done is said, and tried again", async () => {
  const world = new World();
  world.failing = "the root controller does not answer";
  world.want({});
  await eventually("it says so", () => world.reports.length > 2);
  assert.equal(world.reports[0], "failed root-9: the root controller does not answer");
  world.failing = null;
  await eventually("it is there", () => world.model.has("shop"));
  await eventually("and that is said", () => world.reports.includes("making root-9"));
  world.want({ uid: uid("root-10"), cellNumber: network.lastController + 1 });
  await eventually("there are no more addresses", () => world.reports.some((each) => /no address left/.test(each)));
  await world.stop();
});

test("a cell's end is the end of its elements, and is reported when nothing of them is left", async () => {
  const world = new World();
  world.want({});
  await eventually("it is there", () => world.model.has("shop"));
  world.want({ state: "end" });
  await eventually("it waits", () => world.leaving.has("shop"));
  assert.ok(!world.reports.includes("ended root-9"));
  assert.ok(!world.model.has("shop"));
  world.leaving.get("shop")?.();
  await eventually("it has ended", () => world.reports.includes("ended root-9"));
  world.want();
  await world.stop();
  assert.equal(world.calls.filter((call) => call === "remove shop").length, 1);
});

test("every cell's component has a name of its own, and its controller an address", () => {
  const names = ["web.shop", "web-shop", "a.b-c", "a-b.c", "a--b", "a.b"].map((name) => componentOf(cellName(name)));
  assert.equal(new Set(names).size, names.length);
  assert.equal(componentOf(cellName("web.shop")), "web-shop");
  assert.equal(componentOf(cellName("-".repeat(40))), null);
  const addresses = [1, 2, 254, 255, network.lastController].map((number) => network.controller(number));
  assert.deepEqual(addresses, ["10.0.3.1", "10.0.3.2", "10.0.3.254", "10.0.4.1", "10.0.254.254"]);
});

test("the elements are a part of a sound root cell", () => {
  const elements = controllerElements(wanted, "shop", ipv4("10.0.3.2"));
  const checked = checkDocument({
    root: {
      "x.type": "Cell",
      images: { service: { "x.type": "Volume", "x.size": 64, "x.access": "ro", "x.import": "service" } },
      management: { "x.type": "Subnet", "x.cidr": "10.0.0.0/16" },
      controllers: { shop: elements },
    },
  });
  assert.ok(checked.ok, JSON.stringify(checked));
  const data = checked.value.elements.get(elementPath("root/controllers/shop/vm"));
  assert.deepEqual(data?.type === "VM" ? data.data : null, {
    service: { roles: { controller: { cell: "shop", cellUid: "root-9", cellNumber: 2, storageManager: 2 } } },
  });
  const destroyed = [...checked.value.elements.values()].flatMap(({ type, path }) =>
    (type === "Volume" || type === "VolumeCopy") && path.startsWith("root/controllers/") ? [path] : [],
  );
  assert.deepEqual([...volumesOf("shop")].sort(), destroyed.sort());
});

test("which controllers there are is said first, as the root cell's model has them, as soon as that can be read", async () => {
  const world = new World(false);
  world.model.set("shop", controllerElements(wanted, "shop", ipv4("10.0.3.2")));
  world.model.set("other", { vm: { "x.type": "VM" } });
  world.failing = "the root controller does not answer";
  world.running = world.run();
  world.want({});
  await world.failed();
  assert.deepEqual([world.found, world.calls], [null, []]);
  world.failing = null;
  await eventually("it is said", () => world.found !== null);
  const { uid: cellUid, cell, cellNumber, services } = wanted;
  assert.deepEqual(world.found, [{ uid: cellUid, cell, cellNumber, services }]);
  await eventually("it goes on", () => world.reports.length > 0);
  await world.stop();
});
