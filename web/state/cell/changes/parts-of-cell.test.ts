import assert from "node:assert/strict";
import { test } from "node:test";
import { readSpecification } from "../../../../model/specification/specification.ts";
import { addSubnet, addVolume } from "./parts-of-cell.ts";

const shop = "// kept\nshop extends Cell {\n  web extends VM { x.memory 64; } // kept, too\n}\n";
const cellOf = (text: string) => {
  const read = readSpecification({ main: "shop.sf", files: { "shop.sf": text } });
  return read.ok ? read.value : assert.fail(JSON.stringify(read.error));
};
const written = (result: ReturnType<typeof addVolume>): string =>
  result.ok ? result.value : assert.fail(result.error);

test("a volume is written into the text, as a disk of a machine where one is named, and all else stays", () => {
  const text = written(
    addVolume(shop, "shop.sf", "shop", { name: "data", sizeMiB: 64, image: "debian", machine: "shop/web" }),
  );
  assert.equal(
    text,
    shop.replace(
      /}\n$/,
      '  data extends Volume { x.size 64; x.import "debian"; }\n  dataDisk extends VolumeConnection { x.vm "<ref:/shop/web>"; x.volume "<ref:../data>"; }\n}\n',
    ),
  );
  assert.deepEqual([...cellOf(text).elements.keys()], ["shop/web", "shop/data", "shop/dataDisk"]);
  const alone = written(addVolume(shop, "shop.sf", "shop", { name: "data", sizeMiB: 64, image: null, machine: null }));
  assert.deepEqual([...cellOf(alone).elements.keys()], ["shop/web", "shop/data"]);
});

test("a subnet has a size or a range of its own", () => {
  const of = (more: { readonly range?: "external"; readonly cidr?: string }) =>
    written(addSubnet(shop, "shop.sf", "shop", { name: "net", size: 16, range: "internal", cidr: null, ...more }));
  assert.match(of({}), /net extends Subnet { x.size 16; }/);
  assert.match(of({ range: "external" }), /{ x.size 16; x.addressRange "external"; }/);
  assert.match(of({ cidr: "10.64.9.0/28" }), /{ x.cidr "10.64.9.0\/28"; }/);
  for (const text of [of({}), of({ range: "external" }), of({ cidr: "10.64.9.0/28" })])
    assert.equal(cellOf(text).elements.size, 2);
});

test("a name that is none, or taken, is refused and nothing is written", () => {
  const why = (name: string): string => {
    const added = addSubnet(shop, "shop.sf", "shop", { name, size: 16, range: "internal", cidr: null });
    return added.ok ? "" : added.error;
  };
  assert.match(why("web"), /web stands in the text already: give the subnet another name/);
  assert.match(why("1net"), /begins with a letter/);
  assert.match(why("a".repeat(10_000)), /63 at most/);
});
