import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../../docs/testing/documents.testing.ts";
import { withTestbed } from "../harness.ts";
import { carryOut, faultsOf } from "./pages.testing.ts";

/** The tutorial is carried out from the first file to the end of the cell. */
const tutorial = "docs/tutorial.md";
const skip = process.getuid?.() === 0 ? false : "needs root";

test("the tutorial prints what it shows", { skip }, () =>
  withTestbed({ hosts: 2, servers: 2 }, (t) => carryOut(t, tutorial, ["shop"], 31)),
);

test("a line that is not printed is found, and one that a cell's events say is not", () => {
  const entry = (output: readonly string[]): Entry => ({ line: 1, command: "cells apply a", output });
  const ready = "✓ ready    shop/vm  VM  power on, on h1, incarnation 1";
  const booting = "… working  shop/vm  VM  its guest boots";
  const event = "12:00:01 controller.shop element/state shop/vm working its guest boots";
  const faults = (output: readonly string[], printed: readonly string[], events: readonly string[] = []): number =>
    faultsOf(tutorial, entry(output), printed, events).length;
  assert.equal(faults([booting, ready], [booting, ready]), 0);
  assert.equal(faults([booting, ready], [ready]), 1);
  assert.equal(faults([booting, ready], [ready], [event]), 0);
  assert.equal(faults([booting, ready], [booting]), 1);
  assert.equal(faults([ready], [ready.replace("h1", "h2")]), 0);
  assert.equal(faults([ready], [ready.replace("incarnation 1", "incarnation 2")]), 1);
  assert.equal(faults(["10.64.0.2"], ["10.64.0.30"]), 0);
  assert.equal(faults([], ["a word"]), 1);
});
