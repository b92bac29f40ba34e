import assert from "node:assert/strict";
import { test } from "node:test";
import type { ActualHost } from "../../core/documents/vocabulary.ts";
import { type Mode, modes } from "../../model/cell/network/modes.ts";
import type { HostState } from "../known.ts";
import { whatIsHere } from "./inventory.ts";

const [address, instance, mac] = ["172.20.0.10", "i-00000001", "d0:0d:00:00:00:01"];
const data = { userData: "#!/bin/sh\njoin --token secret\n" };
const vm = { interfaces: [{ address, instance, mac, hostName: "db" }], data };
const answer = (mode: Mode | null, from: string, stage = "running") =>
  whatIsHere(
    { records: new Map([["db", { stage, vm }]]), network: { mode } } as unknown as HostState,
    {} as ActualHost,
    { kind: "instance", address: from },
  );

test("an instance is known by its address where a mode holds it to that, and nowhere else", () => {
  for (const mode of modes) {
    const isHeld = mode !== "STATIC" && mode !== "SYSTEM";
    const known = { instance, address, mac, hostName: "db", data };
    assert.deepEqual(answer(mode, address), isHeld ? known : null, mode);
    assert.equal(answer(mode, "172.20.0.11"), null);
    assert.equal(answer(mode, address, "ended"), null);
  }
  assert.equal(answer(null, address), null);
});
