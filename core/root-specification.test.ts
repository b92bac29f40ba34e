import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Cell, VmElement } from "../model/cell.ts";
import type { JsonObject } from "../model/json.ts";
import { elementSchemas } from "../model/schema.ts";
import { readSpecification } from "../model/specification.ts";
import { controllersPath, provided } from "./cells/controller-vm.ts";
import { isServiceRole, serviceRoles } from "./service-roles.ts";

/*
 * The specifications that an operator starts from, `examples/root/`: each has every service, and what others count on to be
 * in the root cell.
 */
const range = elementSchemas.Subnet["x.addressRange"]?.kind;
const skip =
  range?.kind === "choice" && range.values.includes("management")
    ? false
    : "the language has no management network yet";

const text = (name: string): string => readFileSync(new URL(`../examples/root/${name}`, import.meta.url), "utf8");
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

for (const [profile, count] of [
  ["small", 4],
  ["large", 9],
] as const)
  test(`the root cell's profile "${profile}" has every service once, in VMs that can run it`, { skip }, () => {
    const cell = read(`${profile}.sf`);
    const vms = vmsOf(cell);
    assert.deepEqual([cell.name, vms.length], ["root", count]);
    const names = vms.flatMap((vm) => rolesOf(vm).map(([role, { number = "" }]) => `${role}${number}`));
    const others = Object.keys(serviceRoles).filter((role) => role !== "presence");
    assert.deepEqual(names.sort(), [...others, "presence1", "presence2", "presence3"].sort());
    for (const vm of vms) {
      const roles = rolesOf(vm).map(([role]) => role);
      assert.ok(roles.every(isServiceRole));
      assert.ok(!(roles.includes("controller") && roles.includes("dns-manager")), "both answer at port 53");
      assert.ok(vm.memoryMiB >= 160 + 48 * (roles.length - 1), `${vm.path} has ${vm.memoryMiB} MiB`);
      assert.ok(vm.restartOnFailure && vm.liveness?.protocol === "icmp");
      const below = elements(cell).filter(({ path }) => path.startsWith(vm.path.replace(/vm$/, "")));
      const types = below.map(({ type }) => type).sort();
      assert.deepEqual(types, [
        ...["VM", "VirtualInterface", "Volume", "VolumeConnection", "VolumeConnection", "VolumeCopy"],
      ]);
    }
    const addresses = elements(cell).flatMap((each) => (each.type === "VirtualInterface" ? [each.address] : []));
    assert.equal(new Set(addresses).size, count);
    const paths = elements(cell).map(({ path }) => `${path}`);
    for (const path of Object.values(provided)) assert.ok(paths.includes(path), path);
    const root = cell.document.root as JsonObject;
    assert.deepEqual([root.cells, root[controllersPath.split("/")[1] ?? ""]], [{}, {}]);
  });

test("going from one profile to the other leaves the authority and the gateway where they are", { skip }, () => {
  const at = (profile: string, role: string): unknown => {
    const cell = read(`${profile}.sf`);
    const vm = vmsOf(cell).find((each) => rolesOf(each).some(([name]) => name === role));
    return elements(cell).flatMap((each) =>
      each.type === "VirtualInterface" && each.vm === vm?.path ? [`${vm.path} ${each.address}`] : [],
    );
  };
  for (const role of ["controller", "authority", "gateway"]) assert.deepEqual(at("large", role), at("small", role));
});
