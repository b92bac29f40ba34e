import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createController } from "../../core/controller/controller.ts";
import { shopOptions } from "../../core/controller/shop.testing.ts";
import type { ControllerState } from "../../core/controller/state.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { openStore, type Store } from "../../runtime/process/store.ts";
import { percentile } from "../measure.ts";
import { Peers } from "./cell-size-peers.ts";

/*
 * One process with one controller, of `cell-size.ts`. Arguments: shape of the cell, number of its elements.
 */
export interface CellSizeReport {
  readonly elements: number;
  /** From the model until every element is ready. */
  readonly readyMs: number;
  /** The answer to the model itself, which says that it was taken in. */
  readonly acceptMs: number;
  /** Of that, what this process had of a processor: what others do on the machine is not in it. */
  readonly cpuMs: number;
  readonly news: number;
  /**
   * Of the state of one element, asked for every few milliseconds, also while nobody is heard: from then until it is answered. In
   * processor time of the thread that answers: what others do on the machine is not in it, and neither is what V8 compiles and
   * collects meanwhile in threads of its own, which holds up nobody on a machine of two cores.
   */
  readonly answerMs: readonly [median: number, p99: number, longest: number];
  readonly residentMiB: number;
  /** On the heap once everything is ready, with garbage collected. */
  readonly heldMiB: number;
}

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);
const golden: JsonObject = { "x.type": "Volume", "x.size": 64, "x.import": "tiny" };

const perSubnet = 25;
const subnetWithRule = (at: number, all: number): readonly [string, JsonObject][] => [
  [`net${at}`, { "x.type": "Subnet", "x.size": 64, "x.addressRange": "internal" }],
  [
    `rule${at}`,
    {
      "x.type": "NetworkRule",
      "x.address1": `<ref:/shop/net${at}>`,
      "x.address2": `<ref:/shop/net${(at + 1) % all}>`,
      "x.protocol": "tcp",
      "x.port2": 80,
    },
  ],
];
const machine = (at: number): readonly [string, JsonObject][] => [
  [`disk${at}`, { "x.type": "VolumeCopy", "x.image": "<ref:/shop/golden>" }],
  [`vm${at}`, { "x.type": "VM", "x.memory": 64, "x.desiredState": "on", "x.restartOnFailure": true }],
  [
    `boot${at}`,
    {
      "x.type": "VolumeConnection",
      "x.vm": `<ref:/shop/vm${at}>`,
      "x.volume": `<ref:/shop/disk${at}>`,
      "x.busType": "virtio",
    },
  ],
  [
    `card${at}`,
    {
      "x.type": "VirtualInterface",
      "x.vm": `<ref:/shop/vm${at}>`,
      "x.subnet": `<ref:/shop/net${Math.floor(at / perSubnet)}>`,
    },
  ],
];

const shapes: Readonly<Record<string, (elements: number) => JsonObject>> = {
  copies: (elements) => ({
    golden,
    ...Object.fromEntries(
      numbers(elements - 1).map((index) => [
        `copy${index}`,
        { "x.type": "VolumeCopy", "x.image": "<ref:/shop/golden>" },
      ]),
    ),
  }),
  chains: (elements) => ({
    golden,
    ...Object.fromEntries(
      numbers(elements - 1).map((index) => [
        `copy${index}`,
        { "x.type": "VolumeCopy", "x.image": `<ref:/shop/${index % 15 === 0 ? "golden" : `copy${index - 1}`}>` },
      ]),
    ),
  }),
  machines: (elements) => {
    const count = Math.floor((elements - 1) / (4 + 2 / perSubnet));
    const subnets = Math.ceil(count / perSubnet);
    return {
      golden,
      ...Object.fromEntries(numbers(subnets).flatMap((at) => subnetWithRule(at, subnets))),
      ...Object.fromEntries(numbers(count).flatMap(machine)),
    };
  },
};

const inMs = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;

const batchMs = 20;
/**
 * Somebody asks every so often, whatever the controller is doing, and is answered when it has come to hear. Whoever asked only
 * after an answer would ask once while a long step lasts, and seldom meet one.
 */
class Asker {
  static readonly everyMs = 5;
  readonly waits: number[] = [];
  readonly #ask: () => void;
  readonly #start = process.threadCpuUsage();
  #askedMs = 0;

  constructor(ask: () => void) {
    this.#ask = ask;
  }
  #nowMs(): number {
    return inMs(process.threadCpuUsage(this.#start));
  }
  /** All who have asked by now are answered; one of them really, and the others no later. */
  hear(): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#askedMs) return;
    this.#ask();
    const thenMs = this.#nowMs();
    for (; this.#askedMs <= nowMs; this.#askedMs += Asker.everyMs) this.waits.push(thenMs - this.#askedMs);
  }
}

function run(shape: string, elements: number, store: Store): CellSizeReport {
  const make = shapes[shape];
  if (make === undefined) throw new Error(`there is no shape "${shape}"`);
  const service = createController({
    ...shopOptions,
    startsPerMinute: 1_000_000,
  });
  const peers = new Peers<ControllerState>(service, shopOptions.self);
  while (peers.state.reachable.size < 4) if (!peers.move()) break;
  const json = { shop: { "x.type": "Cell", "x.name": "shop", ...make(elements) } };
  const path = Object.keys(json.shop).at(-1);
  const asker = new Asker(() => void peers.ask({ method: "GET", path: `shop/${path}`, state: true }));
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const request = peers.request({ method: "PUT", path: "", json: json as unknown as Json });
  asker.hear();
  let accepted: { readonly status: number } | undefined;
  let acceptMs = 0;
  // As a process does it (runtime/process/process.ts): some steps, their commit, and then those who ask.
  for (let isThere = true; isThere; ) {
    const beginMs = performance.now();
    do isThere = peers.move();
    while (isThere && performance.now() - beginMs < batchMs);
    store.commit(peers.takeWrites());
    if (accepted === undefined) {
      accepted = peers.answerOf(request) as typeof accepted;
      acceptMs = performance.now() - start;
    }
    asker.hear();
  }
  if (accepted?.status !== 200) throw new Error(JSON.stringify(accepted).slice(0, 500));
  const readyMs = performance.now() - start;
  const spentMs = inMs(process.cpuUsage(cpu));
  const residentMiB = process.resourceUsage().maxRSS / 1024;
  (globalThis as { readonly gc?: () => void }).gc?.();
  const heldMiB = process.memoryUsage().heapUsed / 1_048_576;
  const { body } = peers.ask({ method: "SUMMARY" }) as { readonly body: JsonObject };
  const phases = JSON.stringify(body.phases);
  if (phases !== `{"ready":${peers.state.elements.size}}`) throw new Error(`not everything is ready: ${phases}`);
  const three = (of: readonly number[]): readonly [number, number, number] =>
    of.length === 0 ? [0, 0, 0] : [percentile(of, 0.5), percentile(of, 0.99), Math.max(...of)];
  return {
    elements: peers.state.elements.size,
    readyMs,
    cpuMs: spentMs,
    acceptMs,
    news: peers.steps,
    answerMs: three(asker.waits),
    residentMiB,
    heldMiB,
  };
}

if (import.meta.main) {
  const [shape = "", elements = "0"] = process.argv.slice(2);
  const directory = mkdtempSync(join(tmpdir(), "cells-cell-size-"));
  try {
    process.stdout.write(`${JSON.stringify(run(shape, Number(elements), openStore(join(directory, "store"))))}\n`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
