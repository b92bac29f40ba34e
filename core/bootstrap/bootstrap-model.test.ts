import assert from "node:assert/strict";
import { test } from "node:test";
import { checkDocument, readSpecification } from "../../model/specification/specification.ts";
import { addressOfRole, bootstrapModel, firstPlaces } from "./bootstrap-model.ts";

const root = (roles: string): string => `
ServiceVm extends {
  boot extends VolumeCopy { x.image "<ref:/root/images/service>"; }
  vm extends VM { x.memory 160; }
  bootDisk extends VolumeConnection { x.vm "<ref:../vm>"; x.volume "<ref:../boot>"; }
  card extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:/root/management>"; }
}
root extends Cell {
  images extends { service extends Volume { x.size 128; x.access "ro"; x.import "service"; } other extends Volume { x.size 1; } }
  management extends Subnet { x.size 256; x.cidr "10.0.0.0/24"; }
  core1 extends ServiceVm { vm:x.data extends { service extends { roles extends { ${roles} } } }; }
  core2 extends ServiceVm;
  rule extends NetworkRule { x.address1 "<ref:/root/core1/card>"; x.address2 "<ref:/root/core2/card>"; }
}
`;
const cellOf = (text: string) => {
  const read = readSpecification({ main: "root.sf", files: { "root.sf": text } });
  assert.ok(read.ok, JSON.stringify(read));
  return read.value;
};
const all = 'controller extends { cell "root"; } authority extends {} placer extends {} storage-manager extends {}';
const withAddress = (text: string) =>
  text.replace("core1 extends ServiceVm {", 'core1 extends ServiceVm { card:x.address "10.0.0.31";');

test("the VM of the root controller with all that it needs, and nothing else, is a cell of its own", () => {
  const model = bootstrapModel(cellOf(withAddress(root(all))));
  assert.ok(model.ok, JSON.stringify(model));
  assert.deepEqual([model.value.vm, model.value.address], ["root/core1/vm", "10.0.0.31"]);
  const again = checkDocument(model.value.document);
  assert.ok(again.ok, JSON.stringify(again));
  assert.deepEqual([...again.value.elements.keys()].sort(), [
    "root/core1/boot",
    "root/core1/bootDisk",
    "root/core1/card",
    "root/core1/vm",
    "root/images/service",
    "root/management",
  ]);
});

test("where a role is, and what everybody knows at first", () => {
  const cell = cellOf(withAddress(root(all)));
  const [core, nowhere] = [addressOfRole(cell, "placer"), addressOfRole(cell, "gateway")];
  assert.deepEqual([core, nowhere], ["10.0.0.31", undefined]);
  assert.ok(core !== undefined);
  const expected = { authority: "10.0.0.31:7124:7125", "controller.root": "10.0.0.31:7100:7101" };
  assert.deepEqual(firstPlaces(core), expected);
});

test("what a root specification lacks is said", () => {
  for (const [text, says] of [
    [withAddress(root("placer extends {}")), /no VM of root carries the controller/],
    [withAddress(root('controller extends { cell "shop"; }')), /no VM of root carries the controller/],
    [
      withAddress(root('controller extends { cell "root"; } placer extends {}')),
      /must carry authority and storage-manager/,
    ],
    [root(all), /no VirtualInterface with a fixed x.address/],
  ] as const) {
    const model = bootstrapModel(cellOf(text));
    assert.ok(!model.ok && says.test(model.error), JSON.stringify(model));
  }
});
