import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isObject, type Json } from "../../../model/json/json.ts";
import type { Testbed } from "../../harness.ts";
import * as lab from "../../lab.testing.ts";
import { rootRecord } from "../../record.ts";

/*
 * A testbed with a root cell and a Cell Manager, `{ rootCell: true }`, whose cells are accounts': what is said of accounts goes by way of both. The VMs
 * of controllers stand in the root cell's model and wait for an image that is not there; their controllers are processes, as all services are.
 */
const begin = `
  images extends { service extends Volume { x.size 64; x.access "ro"; x.import "none-such"; } }
  management extends Subnet { x.addressRange "management"; }
`;

/** Applies the root cell with `more` elements in it. */
export const applyRoot = async (t: Testbed, more: string): Promise<void> => {
  const file = join(dirname(t.configFile), "root.sf");
  writeFileSync(file, `root extends Cell {${begin}${more}\n}\n`);
  await lab.cells(t, "apply", file, "--yes", "--no-wait");
};

/** A root cell that is an empty one so far, whose controller has heard of all hosts. */
export const beginRoot = async (t: Testbed, hosts: readonly string[]): Promise<void> => {
  await lab.until(
    "the root cell's controller takes its model",
    async () => applyRoot(t, "").then(() => "taken", String),
    (said) => said === "taken",
  );
  await lab.until(
    "every host has an element",
    () => t.gateway().ask("readModel", { parameters: { cell: "root" }, query: {} }),
    (document) => hosts.every((host) => isObject(partOf(document, "root", "hosts", host))),
  );
};
const partOf = (document: Json, ...names: readonly string[]): Json | undefined =>
  names.reduce<Json | undefined>((at, name) => (isObject(at) ? at[name] : undefined), document);

/** Starts the controllers of child cells as soon as their VMs are in the root cell's model, as hosts would, and waits for the cells. */
export const startCells = async (t: Testbed, names: readonly string[]): Promise<void> => {
  for (const cell of names) {
    const role = await lab.until(
      `the VM of the controller of ${cell} is in the model`,
      async () => {
        const document = await t.gateway().ask("readModel", { parameters: { cell: "root" }, query: {} });
        const vm = partOf(document, "root", "controllers", cell, "vm");
        return isObject(vm) ? partOf(vm["x.data"] ?? null, "service", "roles", "controller") : undefined;
      },
      isObject,
    );
    assert.ok(isObject(role));
    const { cellUid, cellNumber } = role;
    assert.notEqual(cellNumber, rootRecord.cellNumber);
    await t.supervisor("POST", `/cells/${cell}`, { cellUid, cellNumber });
  }
  for (const cell of names)
    await lab.until(
      `${cell} is made`,
      () => lab.stateOf(t, `root/cells/${cell}`),
      (state) => state?.phase === "ready",
    );
};
