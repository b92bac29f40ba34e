import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Cell, VmElement } from "../../model/cell/cell.ts";
import { namedChild } from "../../model/cell/child-document.ts";
import { elementPath } from "../../model/cell/identifiers.ts";
import { elementSchemas } from "../../model/cell/schema.ts";
import type { JsonObject } from "../../model/json/json.ts";
import { checkDocument, readSpecification } from "../../model/specification/specification.ts";
import { controllersPath, provided } from "../cells/controller-vm.ts";
import { isServiceRole, serviceRoles } from "../documents/service-roles.ts";
import { addressOfRole, gatewayAddress } from "./bootstrap-model.ts";

/*
 * The specifications that an operator starts from, `examples/root/`: each has every service, and what others count on to be
 * in the root cell.
 */
const range = elementSchemas.Subnet["x.addressRange"]?.kind;
const skip =
  range?.kind === "choice" && range.values.includes("management")
    ? false
    : "the language has no management network yet";

const text = (name: string): string => readFileSync(new URL(`../../examples/root/${name}`, import.meta.url), "utf8");
const read = (main: string): Cell => {
  const cell = readSpecification({ main, files: { [main]: text(main), "service.sf": text("service.sf") } });
  assert.ok(cell.ok, JSON.stringify(cell));
  return cell.value;
};
const elements = (cell: Cell) => [...cell.elements.values()];
const rolesOf = ({ data }: VmElement): [string, JsonObject][] => {
  const { service } = data as { readonly service: { readonly roles: Readonly<Record<string, JsonObject>> } };
  return Object.entries(service.roles);
};
const vmsOf = (cell: Cell): VmElement[] => elements(cell).filter((element) => element.type === "VM");

/** Those that share none with others have one each, all others one together (image/service/roles.c). */
const apart = ["authority", "presence", "gateway"];
const processesOf = (roles: readonly string[]): number =>
  roles.filter((role) => apart.includes(role)).length + (roles.some((role) => !apart.includes(role)) ? 1 : 0);

for (const [profile, count] of [
  ["small", 3],
  ["large", 9],
] as const)
  test(`the root cell's profile "${profile}" has every service once, in VMs that can run it`, { skip }, () => {
    const cell = read(`${profile}.sf`);
    const vms = vmsOf(cell);
    assert.deepEqual([cell.name, vms.length], ["root", count]);
    const names = vms.flatMap((vm) => rolesOf(vm).map(([role, { number = "" }]) => `${role}${number}`));
    // The gateway and personalities are not among them: the root cell has none. The HA Manager is a part of the root controller.
    const elsewhere = ["presence", "gateway", "ha-manager", "personality.caas"];
    const others = Object.keys(serviceRoles).filter((role) => !elsewhere.includes(role));
    assert.deepEqual(names.sort(), [...others, "presence1", "presence2", "presence3"].sort());
    for (const vm of vms) {
      const roles = rolesOf(vm).map(([role]) => role);
      assert.ok(roles.every(isServiceRole));
      assert.ok(!(roles.includes("controller") && roles.includes("dns-manager")), "both answer at port 53");
      const least = 160 + 48 * (processesOf(roles) - 1) + 4 * (roles.length - processesOf(roles));
      assert.ok(vm.memoryMiB >= least, `${vm.path} has ${vm.memoryMiB} MiB`);
      assert.ok(vm.restartOnFailure && vm.liveness?.protocol === "icmp");
      const below = elements(cell).filter(({ path }) => path.startsWith(vm.path.replace(/vm$/, "")));
      const types = below.map(({ type }) => type).sort();
      assert.deepEqual(types, [
        "VM",
        "VirtualInterface",
        "Volume",
        "VolumeConnection",
        "VolumeConnection",
        "VolumeCopy",
      ]);
    }
    const addresses = elements(cell).flatMap((each) => (each.type === "VirtualInterface" ? [each.address] : []));
    assert.equal(new Set(addresses).size, count);
    const paths = elements(cell).map(({ path }) => `${path}`);
    for (const path of Object.values(provided)) assert.ok(paths.includes(path), path);
    const root = cell.document.root as JsonObject;
    assert.deepEqual(
      [Object.keys(root.cells as JsonObject), root[controllersPath.split("/")[1] ?? ""]],
      [["primary"], {}],
    );
  });

test("what stands there in a comment beside the gateway makes it a VM with that personality", { skip }, () => {
  const opened = text("service.sf").replace(/\/\/ (personality\.caas extends \{ \})/, "$1");
  const cell = readSpecification({
    main: "primary.sf",
    files: { "primary.sf": text("primary.sf"), "service.sf": opened },
  });
  assert.ok(cell.ok, JSON.stringify(cell));
  const [vm] = vmsOf(cell.value);
  assert.deepEqual(vm && rolesOf(vm).map(([role]) => role), ["gateway", "personality.caas"]);
});

test("with the word of its comment there the primary cell has that personality in a VM that is on its own subnet alone", {
  skip,
}, () => {
  const apart = (name: string): string => text(name).replace("Cell, Primary {", "Cell, PrimaryApart {");
  const read = readSpecification({
    main: "primary.sf",
    files: { "primary.sf": apart("primary.sf"), "service.sf": apart("service.sf") },
  });
  assert.ok(read.ok, JSON.stringify(read));
  const cell = read.value;
  const [gateway, caas] = vmsOf(cell);
  assert.ok(gateway !== undefined && caas !== undefined);
  const door = { "personality.caas": { gateway: "10.127.255.242" } };
  assert.deepEqual(rolesOf(caas), Object.entries(door));
  const cards = elements(cell).flatMap((each) =>
    each.type === "VirtualInterface" ? [[each.vm, each.subnet, each.address]] : [],
  );
  assert.deepEqual(cards.sort(), [
    ["primary/caas/vm", "primary/doors", "10.127.255.243"],
    ["primary/gateway/vm", "primary/doors", "10.127.255.242"],
    ["primary/gateway/vm", "primary/management", "10.0.0.40"],
  ]);
  const ports = elements(cell).flatMap((each) =>
    each.type === "NetworkRule" ? [[each.address1, each.address2, each.port2, each.direction]] : [],
  );
  assert.equal(ports.length, 3);
  const root = readSpecification({
    main: "small.sf",
    files: { "small.sf": text("small.sf"), "service.sf": apart("service.sf") },
  });
  assert.ok(root.ok, JSON.stringify(root));
  assert.deepEqual([...primaryOf(root.value).elements.keys()].sort(), [...cell.elements.keys()].sort());
});

/** The primary cell as the root cell makes it. */
const primaryOf = (cell: Cell): Cell => {
  const element = cell.elements.get(elementPath("root/cells/primary"));
  assert.ok(element?.type === "CellController");
  const child = namedChild(element.cell, element.name, "primary");
  const checked = checkDocument(child?.document ?? {});
  assert.ok(checked.ok, JSON.stringify(checked));
  return checked.value;
};

test("the gateway is the primary cell's, at the address that the root cell gives it, over the root cell's image", {
  skip,
}, () => {
  const root = read("small.sf");
  const born = primaryOf(root);
  for (const cell of [born, primaryOf(read("large.sf")), read("primary.sf")]) {
    assert.deepEqual([...cell.elements].map(([path]) => path).sort(), [...born.elements].map(([path]) => path).sort());
    const [vm, ...more] = vmsOf(cell);
    assert.ok(vm !== undefined && more.length === 0);
    assert.deepEqual([cell.name, rolesOf(vm)], ["primary", [["gateway", {}]]]);
    assert.equal(addressOfRole(cell, "gateway"), gatewayAddress(root));
    const boot = elements(cell).find((each) => each.type === "VolumeCopy");
    assert.equal(boot?.image, `//root.cells.internal/${provided.image}`);
  }
  assert.equal(addressOfRole(root, "gateway"), undefined);
  const image = root.elements.get(elementPath(provided.image));
  const grants = elements(root).filter((each) => each.type === "VolumeGrant");
  assert.equal(image?.public, true);
  assert.deepEqual(
    grants.map(({ volume, to, grant }) => [volume, to, grant]),
    [[provided.image, { kind: "cell", domain: "primary.cells.internal" }, "copy"]],
  );
});

test("going from one profile to the other leaves the authority and the gateway where they are", { skip }, () => {
  const at = (profile: string, role: string): unknown => {
    const cell = read(`${profile}.sf`);
    const vm = vmsOf(cell).find((each) => rolesOf(each).some(([name]) => name === role));
    return elements(cell).flatMap((each) =>
      each.type === "VirtualInterface" && each.vm === vm?.path ? [`${vm.path} ${each.address}`] : [],
    );
  };
  assert.deepEqual(primaryOf(read("large.sf")).document, primaryOf(read("small.sf")).document);
  for (const role of ["controller", "authority"]) assert.deepEqual(at("large", role), at("small", role));
});
