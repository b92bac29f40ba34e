import assert from "node:assert/strict";
import { test } from "node:test";
import { closedFor, defaultsOf } from "./agent.ts";
import { readMachineFile } from "./machine-file.ts";

test("who is told views by the Network View Manager closes what goes out, and the installation's own network, where its file says nothing", () => {
  const told = defaultsOf(closedFor("one", "10.0.0.0/16"));
  assert.deepEqual([told.outgoingClosed, told.underlay, told.underlayOpen], [true, ["10.0.0.0/16"], false]);
  assert.ok(told.metadataHere, "and answers its instances for metadata itself");
  const alone = defaultsOf(closedFor(undefined, "10.0.0.0/16"));
  assert.deepEqual(
    [alone.outgoingClosed, alone.metadataHere, alone.underlay],
    [false, false, []],
    "as in the original",
  );
  const file = readMachineFile("CELLS_OUTGOING_CLOSED=N\nCELLS_UNDERLAY_OPEN=Y\n", told);
  assert.ok(file.ok);
  assert.deepEqual([file.value.outgoingClosed, file.value.underlayOpen], [false, true]);
});
