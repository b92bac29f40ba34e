import { limits } from "../../limits.ts";
import { cellPage, type DiagnosticPage, filesPage, requestPage } from "../diagnostic-page.ts";

const net = 'net extends Subnet { x.cidr "10.64.1.0/24"; }\n';
const vm = "vm extends VM { x.memory 128; }\n";
const link = (rest: string): string =>
  `${vm}${net}nic extends VirtualInterface {\n  x.vm "<ref:../vm>"; x.subnet "<ref:../net>";\n  ${rest}\n}`;

const copies = (count: number): string =>
  Array.from({ length: count }, (_, at) => `v${at + 1} extends VolumeCopy { x.image "<ref:../v${at}>"; }\n`).join("");

/** What no element shows alone: how they fit together, and onto the installation. */
export const cellPages: Readonly<Record<string, DiagnosticPage>> = {
  "cell/duplicate": cellPage(
    "two elements with what only one can have",
    "Addresses, MAC addresses and host names are unique in a cell, a volume is connected to a VM once, and a former path is that of one element.",
    link('x.vifName "web";').replace("nic extends", "other extends") +
      link('x.vifName "web";').slice(vm.length + net.length - 1),
    link('x.vifName "web";').replace("nic extends", "other extends") +
      link('x.vifName "app";').slice(vm.length + net.length - 1),
  ),
  "cell/overlap": cellPage(
    "subnets that share addresses",
    "Every address belongs to one subnet. Ranges given with `x.cidr` must not overlap; those given by `x.size` never do.",
    'a extends Subnet { x.cidr "10.64.0.0/16"; }\nb extends Subnet { x.cidr "10.64.1.0/24"; }',
    'a extends Subnet { x.cidr "10.64.0.0/24"; }\nb extends Subnet { x.cidr "10.64.1.0/24"; }',
  ),
  "cell/address": cellPage(
    "an address that its subnet cannot give",
    "A fixed address must lie in the subnet's `x.cidr`, and be none of the first two addresses (network and gateway) nor the last (broadcast).",
    link('x.address "10.64.2.5";'),
    link('x.address "10.64.1.5";'),
  ),
  "cell/subnet-size": cellPage(
    "a range smaller than the size asked for",
    "`x.cidr` fixes both range and size; `x.size` beside it may only ask for as many addresses as the range has, or fewer.",
    'net extends Subnet { x.cidr "10.64.1.0/28"; x.size 64; }',
    'net extends Subnet { x.cidr "10.64.1.0/26"; x.size 64; }',
  ),
  "cell/backup": cellPage(
    "a schedule for backups where none can be, or with another key",
    "`x.backup` is for the root cell alone, and `x.backup.publicKey` is what `cells management key` prints.",
    'x.backup.publicKey "mine";',
    "x.limits.vms 10;",
  ),
  "cell/zone": cellPage(
    "names for the outside where none can be, or told to nobody",
    "`x.zone` is for the root cell alone, and says three things together: the domain, the names of its name servers, and from where these fetch it.",
    'x.zone.name "cloud.example.org";',
    "x.limits.vms 10;",
  ),
  "cell/pools": cellPage(
    "pools of external addresses where none can be, or that overlap",
    "`x.pools` is for the root cell alone. `x.pools.external` lists networks that are routed to the hosts; none overlaps another one or the installation's own.",
    'x.pools.external ["203.0.113.0/24"];',
    "x.limits.vms 10;",
  ),
  "cell/ha": cellPage(
    "settings of the HA Manager where none can be, or that contradict one another",
    "`x.ha` beside a VM says what becomes of that VM. Beside the cell it sets what the HA Manager does for all cells, and is for the root cell alone. How often a VM was started elsewhere is counted from the work that is still known, so `x.ha.timeBetweenCleanup` is no shorter than `x.ha.timeBetweenFailures`.",
    "x.ha.maxRetries 3;",
    'vm extends VM { x.memory 128; x.restartOnFailure true; x.ha.isolated "restart"; }',
  ),
  "cell/placement": cellPage(
    "settings of the Placers where none can be",
    "`x.placement` beside a VM says what that VM wants of its host. Beside the cell it sets how VMs of all cells are placed, and is for the root cell alone.",
    "x.placement.lastHostS 600;",
    'vm extends VM { x.memory 128; x.placement.dedication "preferred"; }',
  ),
  "cell/tenants": cellPage(
    "a domain, an account or a role of tenants where none can be",
    "`Domain`, `Account` and `Role` say who tenants are, and stand in the component `tenants` of the root cell alone: `root/tenants/acme/dev` is what commands call `ROOT/acme/dev`. They have the names that they are called by, and are in domains. The operator's account and the built-in roles stay as they are.",
    "dev extends Account { x.limits.vms 10; }",
    "x.limits.vms 10;",
  ),
  "cell/recreatable": cellPage(
    "a volume that may be lost, and that others rest on",
    "Where the host of a VM is lost and nobody can end its writing, volumes with `x.recreatable true` are made anew for it. Such a volume is written by one VM of its own cell, and nothing is a copy of it: what rests on it would be lost with it.",
    'disk extends Volume { x.size 64; x.recreatable true; }\ncopy extends VolumeCopy { x.image "<ref:../disk>"; }',
    'disk extends Volume { x.size 64; }\ncopy extends VolumeCopy { x.image "<ref:../disk>"; x.recreatable true; }',
  ),
  "cell/copy-cycle": cellPage(
    "volumes that are copies of one another",
    "A copy begins as what its origin holds. Somewhere at the end there must be a `Volume` of its own.",
    'a extends VolumeCopy { x.image "<ref:../b>"; }\nb extends VolumeCopy { x.image "<ref:../a>"; }',
    'a extends VolumeCopy { x.image "<ref:../b>"; }\nb extends Volume { x.size 64; }',
  ),
  "cell/copy-depth": cellPage(
    "too many copies of copies",
    `A copy reads what it did not write itself from its origin, and so on down to the first volume. At most ${limits.layers} volumes may lie on one another like that, since a VM's host opens all of them before it starts.`,
    `v0 extends Volume { x.size 64; }\n${copies(limits.layers)}`,
    `v0 extends Volume { x.size 64; }\n${copies(2)}`,
  ),
  "cell/shrink": cellPage(
    "a copy smaller than its origin",
    "A copy holds all that its origin holds, so it cannot be smaller. Without `x.size` it is as large.",
    'disk extends Volume { x.size 64; }\ncopy extends VolumeCopy { x.image "<ref:../disk>"; x.size 32; }',
    'disk extends Volume { x.size 64; }\ncopy extends VolumeCopy { x.image "<ref:../disk>"; x.size 128; }',
  ),
  "cell/rule": cellPage(
    "a rule that can permit nothing",
    "One end of a rule at least is in this cell: a subnet, VM, interface or the controller. ICMP has no ports. A packet to a broadcast address or to a multicast group reaches each machine to whom its sender may send the same packet, so no rule names such an address. A host holds eight ranges of source ports (`x.port1`, `1to2`) for one port between the same two ends.",
    `${vm}rule extends NetworkRule {\n  x.address1 "<ref:../vm>"; x.address2 "internet";\n  x.protocol "icmp"; x.port2 80;\n}`,
    `${vm}rule extends NetworkRule {\n  x.address1 "<ref:../vm>"; x.address2 "internet";\n  x.protocol "tcp"; x.port2 80;\n}`,
  ),
  "cell/router": cellPage(
    "a router that cannot be one",
    "`x.router` of an internal subnet names the interface that takes what goes outside of the installation. The answers come with addresses that are not that interface's own, so its `x.forwards` says for whom it may send.",
    `${vm}net extends Subnet { x.size 8; x.router "<ref:../way>"; }\nway extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; }`,
    `${vm}net extends Subnet { x.size 8; x.router "<ref:../way>"; }\nway extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; x.forwards ["internet"]; }`,
  ),
  "cell/forwards": cellPage(
    "networks for which an interface cannot speak",
    "With `x.forwards` the interface of a router on an internal subnet may send in the name of networks outside, to machines of its cell. Addresses of the installation have interfaces of their own, and nobody speaks for those.",
    link('x.forwards ["127.0.0.0/8"];'),
    link('x.forwards ["192.168.0.0/16"];'),
  ),
  "cell/moved": cellPage(
    "a former path that is still in use",
    "`x.movedFrom` says that an element is the one that had that path before, so no other may have it now. Remove it once the move is done.",
    'web extends VM { x.memory 128; }\napp extends VM { x.memory 128; x.movedFrom "shop/web"; }',
    'app extends VM { x.memory 128; x.movedFrom "shop/web"; }',
  ),
  "cell/liveness": cellPage(
    "probes to an interface of another VM",
    "`x.liveness.interface` says which of the VM's own interfaces is asked whether it lives. Without it the first is.",
    `${vm}net extends Subnet { x.size 8; }\ncard extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; }\nother extends VM {\n  x.memory 128; x.liveness.protocol "icmp"; x.liveness.interface "<ref:../card>";\n}`,
    `net extends Subnet { x.size 8; }\ncard extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; }\nvm extends VM {\n  x.memory 128; x.liveness.protocol "icmp"; x.liveness.interface "<ref:../card>";\n}`,
  ),
  "cell/grant": cellPage(
    "a grant to nobody, to several, or one that holds for a copy that it does not allow",
    "A `VolumeGrant` says who may use the volume: a VM with `x.vm`, another cell with `x.cell`, the cells of an account with `x.account`, or those of a domain with `x.domain`. It names one of them. With `x.hold` it holds the volume for a copy in the cell that `x.cell` names, and lets that cell make it.",
    'disk extends Volume { x.size 64; }\ngrant extends VolumeGrant { x.volume "<ref:../disk>"; x.grant "copy"; }',
    'disk extends Volume { x.size 64; }\ngrant extends VolumeGrant {\n  x.volume "<ref:../disk>"; x.grant "copy";\n  x.cell "<ref://other.cells.example.com/>";\n}',
  ),
  "cell/no-host": cellPage(
    "a VM that no host could ever hold",
    "Even an empty host has less than this VM asks for, so it would wait for ever. The hint says what can be had. `cells spec check` knows no hosts; `cells plan` asks the installation.",
    "vm extends VM { x.memory 1048576; }",
    "vm extends VM { x.memory 1024; }",
  ),
  "cell/offering": cellPage(
    "a VM of an offering that is none, or with more than it has",
    "`x.placement.offering` names an `Offering` of the cell `root`, by which the operator says what a machine of that kind has at most and beside whom it stands. The VM writes its own `x.memory` and `x.cpus`, so that its text alone says what it costs, and may write no more than the offering has. `cells spec check` knows no offerings; `cells plan` asks the installation.",
    'vm extends VM { x.memory 4096; x.placement.offering "small"; }',
    'vm extends VM { x.memory 1024; x.placement.offering "small"; }',
  ),
  "cell/management": cellPage(
    "the management network is not like others",
    "A subnet with `x.addressRange \"management\"` is the underlay itself, on which hosts and services find each other. Only the cell `root`, which is the operator's, may have one, and for its gateway the child cell to which it gives `x.gateway`. Its addresses are given out by nobody, so each interface there has a fixed `x.address`; an `x.cidr` can only repeat the underlay's; rules are not asked there.",
    `${vm}net extends Subnet { x.addressRange "management"; }\ncard extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; }`,
    `${vm}net extends Subnet { x.addressRange "management"; }\ncard extends VirtualInterface {\n  x.vm "<ref:../vm>"; x.subnet "<ref:../net>";\n  x.address "10.0.0.30";\n}`,
  ),
  "cell/network-mode": cellPage(
    "what a mode of Eucalyptus cannot do",
    "`x.networkMode` of a CellController says by which rules its networks are made. In a mode of Eucalyptus a subnet is a security group: a rule is about all its members, is between groups and networks, and asks for no source port; members always reach one another. A VM has one interface, addresses come from the network configuration, and nothing is forwarded or sent to many.",
    `shop extends CellController {\n  x.networkMode "EDGE";\n  x.cell extends Cell {\n    web extends VM { x.memory 128; }\n    net extends Subnet { x.size 8; x.cidr "10.64.0.0/29"; }\n    card extends VirtualInterface { x.vm "<ref:../web>"; x.subnet "<ref:../net>"; }\n  }\n}`,
    `shop extends CellController {\n  x.networkMode "EDGE";\n  x.cell extends Cell {\n    web extends VM { x.memory 128; }\n    net extends Subnet { x.size 8; }\n    card extends VirtualInterface { x.vm "<ref:../web>"; x.subnet "<ref:../net>"; }\n  }\n}`,
  ),
  "cell/account": requestPage(
    "a child cell that is given to nobody who is there",
    "`x.account` of a CellController says whose the child cell is, as the path of an account from the root of all domains. Only the cell `root`, which is the operator's, gives its child cells away; a cell inside another one goes with that. The way into the cloud (`x.gateway`) stays the operator's.",
    'PUT /model   (to the cell "root")\nshop extends CellController { x.account "dev"; … }',
    'PUT /model   (to the cell "root")\nshop extends CellController { x.account "ROOT/acme/dev"; … }',
  ),
  "cell/host": requestPage(
    "a host that is none, or stands elsewhere than in the root cell",
    "A `Host` is a machine of the installation, and what the operator says of it. It stands in the component `hosts` of the cell `root`, under the machine's name, and is written there by itself when the machine has joined.",
    'PUT /model   (to the cell "root")\nhosts extends { h9 extends Host { x.state "maintenance"; } }',
    'PUT /model   (to the cell "root")\nhosts extends { h1 extends Host { x.state "maintenance"; } }',
  ),
  "cell/place": requestPage(
    "a place that is none, or stands in no place that it could be a part of",
    "Zones, pods and clusters are parts of the installation: a cluster of a pod, a pod of a zone. Each stands within the one that it is a part of, in the component `places` of the cell `root`. A host says with `x.cluster` where it stands, by the names of zone, pod and cluster. No zone has the name of a host, so that one name says what is meant.",
    'PUT /model   (to the cell "root")\nplaces extends { c1 extends Cluster; }\nhosts extends { h1 extends Host { x.cluster "c1"; } }',
    'PUT /model   (to the cell "root")\nplaces extends { z1 extends Zone { p1 extends Pod { c1 extends Cluster; } } }\nhosts extends { h1 extends Host { x.cluster "z1/p1/c1"; } }',
  ),
  "cell/dedication": requestPage(
    "a zone, pod, cluster or host that cannot be this owner's",
    "A resource is dedicated once, and the innermost dedication rules a host. Below what an account has nothing is dedicated again. Below what a domain has only to that domain, to domains below it and to accounts in these. So what is given above, or what was given below, stands against it: the message names it. Owners are said by the path of a domain, and by the name of an account in it where one has it alone.",
    'PUT /model   (to the cell "root")\ndedications extends {\n  rack extends Dedication { x.of "z1/p1"; x.to "ROOT/acme"; }\n  one extends Dedication { x.of "h1"; x.to "ROOT/other"; }   (h1 stands in z1/p1)\n}',
    'PUT /model   (to the cell "root")\ndedications extends {\n  rack extends Dedication { x.of "z1/p1"; x.to "ROOT/acme"; }\n  one extends Dedication { x.of "h1"; x.to "ROOT/acme"; x.account "dev"; }\n}',
  ),
  "cell/pool": requestPage(
    "a host flavour or a pool that cannot be so",
    "A `HostFlavor` stands in the component `flavors` of the cell `root`, and `x.flavor` of a Host names one. A host goes into a flavour disabled and empty, since it takes nobody's VMs from then on but those of the pool that it is in; in a pool it keeps its flavour. A `Pool` and its `PoolHost`s stand in a cell that an account has in the cell `root`. A cell has at most 256 of the two together. `x.offerings` and `x.images` of a Pool have at most 64 words each; there are at most 256 offerings. Names are unique in a pool. A host leaves its pool disabled and empty: what is told names the VMs that are there.",
    'PUT /model   (to the cell "root")\nhosts extends { h1 extends Host { x.flavor "large"; } }   (h1 takes VMs)',
    'PUT /model   (to the cell "root")\nhosts extends { h1 extends Host { x.state "disabled"; } }\nand once h1 is empty\nhosts extends { h1 extends Host { x.flavor "large"; } }',
  ),
  "cell/no-open-host": requestPage(
    "no host would be left for the management",
    "A host whose `x.state` is `maintenance` or `disabled` takes no VM. The machines of the management are VMs as well: with every host closed, those that end could start nowhere, and nobody would be left to open a host again. A host of a flavour (`x.flavor`) takes VMs of its pool alone, so none of theirs either. At least one host that is there, and that could hold the largest machine of the cell `root`, stays enabled and of no flavour. To empty the last one, let another machine join or take one back with `cells host resume` first. To switch the whole cloud off, no host has to be closed: `cells ha pause`, then switch the machines off in order.",
    'PUT /model   (to the cell "root"; h1 and h2 are all hosts there are)\nhosts extends { h1 extends Host { x.state "maintenance"; } h2 extends Host { x.state "maintenance"; } }',
    'PUT /model   (to the cell "root")\nhosts extends { h1 extends Host { x.state "maintenance"; } h2 extends Host { } }',
  ),
  "cell/own-vm": requestPage(
    "the VM of the root controller stays as it was made",
    "The controller of the root cell runs in a VM of that cell. To change what a VM is started with, its controller ends it and starts the next one; of its own VM nobody would be left to do that. Its host can try another boot volume by itself, so the image may change. Its memory, processors, roles and further disks are chosen when an installation is made. Further roles can stand in another service VM.",
    'PUT /model   (to the cell "root"; core1/vm was made with x.memory 416)\ncore1 { vm extends VM { x.memory 640; … } … }',
    'PUT /model   (to the cell "root"; core1/vm was made with x.memory 416)\ncore1 { vm extends VM { x.memory 416; … } … }',
  ),
  "cell/volume-shrinks": requestPage(
    "a volume that would become smaller",
    "A volume can grow, also while a VM uses it. It cannot shrink: what lies at its end would be cut off. Write the size back that it has. To have less, make a smaller volume under another name, copy the data over in a VM that has both, and delete the large one. One to which no VM was ever given is made anew with the smaller size.",
    "PUT /model   (shop/disk has x.size 64 and was used)\nshop extends Cell { disk extends Volume { x.size 32; } }",
    "PUT /model   (shop/disk has x.size 64 and was used)\nshop extends Cell { disk extends Volume { x.size 64; } }",
  ),
  "cell/volume-is-origin": requestPage(
    "an origin of copies that would grow",
    "What others were made from, or read, never changes. A copy can be larger than its origin: give the size to the copy that needs the room.",
    'PUT /model   (shop/golden has x.size 64, and copies)\nshop extends Cell {\n  golden extends Volume { x.size 128; }\n  disk extends VolumeCopy { x.image "<ref:../golden>"; }\n}',
    'PUT /model   (shop/golden has x.size 64, and copies)\nshop extends Cell {\n  golden extends Volume { x.size 64; }\n  disk extends VolumeCopy { x.image "<ref:../golden>"; x.size 128; }\n}',
  ),
  "cell/held": requestPage(
    "a volume that is held for a copy, and would be made anew or lose its grant",
    "`x.hold` of a VolumeGrant names a copy in another cell. Until that is made the volume stays, even where it leaves the model together with the grant, or its cell is deleted. It is not made anew meanwhile. To have it go without a copy, remove the grant, or its `x.hold`, in a change that leaves the volume as it is; then change the volume.",
    'PUT /model   (shop/disk was held by shop/hold and is used)\nshop extends Cell {\n  disk extends Volume { x.size 64; x.import "tiny"; }\n  hold extends VolumeGrant { x.volume "<ref:../disk>"; x.hold "primary/volumes/a1"; … }\n}',
    "PUT /model   (shop/disk was held by shop/hold and is used)\nshop extends Cell {\n  disk extends Volume { x.size 64; }\n}",
  ),
  "cell/wrong-name": requestPage(
    "the specification of another cell",
    "Each cell has its own controller, which keeps the cell's name for life. Submit the specification as the cell that it names, or give it an `x.name`.",
    'PUT /model   (to the cell "shop")\nstore extends Cell { }',
    'PUT /model   (to the cell "shop")\nstore extends Cell { x.name "shop"; }',
  ),
};

/** Requests to a controller, which answer with one of these codes in `error.code`. */
export const requestPages: Readonly<Record<string, DiagnosticPage>> = {
  "document/no-path": requestPage(
    "no such part of the model",
    "A path leads from the document over the names of components: `shop/web/vm`. What is to be replaced may be new, but the component that it stands in must be there.",
    "DELETE /model/shop/wbe",
    "DELETE /model/shop/web",
  ),
  "document/not-an-object": requestPage(
    "a document that is not a JSON object",
    "The model as a whole is one JSON object; single values stand only in attributes.",
    'PUT /model\n{"document": 5}',
    'PUT /model\n{"document": {"shop": {"x.type": "Cell"}}}',
  ),
  "bad-request": requestPage(
    "a request that the controller does not understand",
    "The interface (`docs/rest.md`) has no such method, path or body. The message says which of them it is.",
    "PUT /model\n{}",
    'PUT /model\n{"document": {"shop": {"x.type": "Cell"}}}',
  ),
  "not-found": requestPage(
    "nothing at this path",
    "The model has no element or component of that path. `cells get` shows what there is.",
    "GET /model/shop/wbe",
    "GET /model/shop/web",
  ),
  conflict: requestPage(
    "not possible as things are now",
    "The request is sound, but what it is about is not in the state for it, such as a console of a VM that does not run.",
    "GET /console/shop/vm   (the VM is off)",
    "GET /console/shop/vm   (the VM runs)",
  ),
  "version-mismatch": requestPage(
    "the model has changed in the meantime",
    "`If-Match` names the version that a change was made for. Somebody else has changed the model since: read it again and decide anew.",
    "PUT /model   If-Match: 6   (the version is 7)",
    "PUT /model   If-Match: 7",
  ),
  "idempotency/other-request": requestPage(
    "a key that names another change",
    "An `Idempotency-Key` names one change, so that it can be asked for again where its answer was lost. This one was used within the last day, by the same user, for another request, which was done. Give each change a key of its own, such as a random UUID.",
    "PUT /model/shop/web/x.memory   Idempotency-Key: 7f1c\n512   (after the same key with 256)",
    "PUT /model/shop/web/x.memory   Idempotency-Key: 90ab\n512",
  ),
  "patch/invalid": requestPage(
    "a JSON Patch that cannot be applied",
    "A patch is a list of operations (RFC 6902), and nothing is changed unless each of them can be done: `error.patch` says which one cannot, and its pointer. A pointer begins with the cell's component, `/shop/web/x.memory`; what it leads to must be there for `remove`, `replace`, `move` and `copy`, and what it stands in for `add`. A patch has at most 1,000 operations and 1 MiB. The cell as a whole is deleted with `DELETE`.",
    'PATCH /model\n[{"op": "replace", "path": "/shop/wbe/x.memory", "value": 512}]',
    'PATCH /model\n[{"op": "add", "path": "/shop/web/x.memory", "value": 512}]',
  ),
  "patch/test-failed": requestPage(
    "the model is not what a patch was made for",
    "A `test` of the patch names another value than the model has there: somebody else has changed it since it was read, and nothing was changed now. `error.patch` says what was wanted and what was found. Read the model again and decide anew.",
    'PATCH /model   (web has x.memory 128)\n[{"op": "test", "path": "/shop/web/x.memory", "value": 256}]',
    'PATCH /model   (web has x.memory 128)\n[{"op": "test", "path": "/shop/web/x.memory", "value": 128}]',
  ),
  "change/destroys-data": requestPage(
    "a change that would destroy data",
    "Volumes that are deleted or replaced take with them what was written to them. Name each in `--allow-destroy` (`allowDestroy` of the API) if that is meant, or leave the volume in the specification.",
    "DELETE /model/shop/disk",
    "DELETE /model/shop/disk?allowDestroy=shop/disk",
  ),
  internal: requestPage(
    "a mistake of ours, found before it did harm",
    "Every plan is verified by a second program part that shares no code with the planner. They disagree, so nothing was changed. Please report it with the message.",
    "PUT /model   (and a fault in the planner)",
    "PUT /model",
  ),
  "invalid-specification": requestPage(
    "a specification with errors",
    "Nothing was changed. `error.diagnostics` holds each fault with a code of its own, its position and what would be right.",
    "PUT /model\nshop extends Cell { vm extends VM { } }",
    "PUT /model\nshop extends Cell { vm extends VM { x.memory 128; } }",
  ),
};

/** The schema of elements, and references between them. */
export const schemaPages: Readonly<Record<string, DiagnosticPage>> = {
  "schema/no-cell": filesPage(
    "a document without a cell",
    "A document holds one component of type `Cell`; everything that is to be deployed stands inside it, templates and parameters beside it.",
    { "shop.sf": "vm extends VM { x.memory 128; }\n" },
    { "shop.sf": "shop extends Cell {\n  vm extends VM { x.memory 128; }\n}\n" },
  ),
  "schema/several-cells": filesPage(
    "a document with two cells",
    "Each cell has its own controller and changes as a whole, so each has a document of its own.",
    { "shop.sf": "shop extends Cell { }\nbank extends Cell { }\n" },
    { "shop.sf": "shop extends Cell { }\n" },
  ),
  "schema/cell-name": filesPage(
    "a cell's name that cannot be part of a domain",
    "The name of a cell is a DNS label: its VMs are found as `host.cell.…`. It is `x.name`, or else the name of the component.",
    { "shop.sf": "MyShop extends Cell { }\n" },
    { "shop.sf": 'MyShop extends Cell { x.name "my-shop"; }\n' },
  ),
  "schema/name": cellPage(
    "a component whose name cannot be in a path",
    "Paths join names with `/`, and `.` and `..` have a meaning in them.",
    '"web/vm" extends VM { x.memory 128; }',
    '"web-vm" extends VM { x.memory 128; }',
  ),
  "schema/no-type": cellPage(
    "an attribute with `x.` outside of an element",
    "What begins with `x.` is meant for the cloud, which looks at elements only: components made from a standard type. A plain group can have any other attributes. A nested component that is written again in `extends Tier { … }` replaces that of the template, its type included: `vm extends Tier:vm { … }` keeps it.",
    "vm extends { x.memory 128; }",
    "vm extends VM { x.memory 128; }",
  ),
  "schema/unknown-type": cellPage(
    "an unknown type of element",
    "`x.type` is set by the standard prototypes (`extends VM`) and names one of them. A cell does not stand inside a cell: a `CellController` makes child cells.",
    'vm extends { x.type "Machine"; }',
    'vm extends { x.type "VM"; x.memory 128; }',
  ),
  "schema/unknown-attribute": cellPage(
    "an attribute that the element does not have",
    "The cloud would ignore it, which is hardly what was meant. What is your own is written without the prefix `x.`.",
    "vm extends VM { x.memory 128; x.cpu 2; }",
    "vm extends VM { x.memory 128; x.cpus 2; }",
  ),
  "schema/required": cellPage(
    "an attribute that is missing",
    "The element cannot be without it, and there is no sensible default. The prefix `x.` is part of the name. If a template has the attribute: a nested component that is written again replaces the template's and is not merged with it; `vm extends Tier:vm { … }` keeps what is there.",
    "vm extends VM { memory 128; }",
    "vm extends VM { x.memory 128; }",
  ),
  "schema/value": cellPage(
    "a value of the wrong kind",
    "The message says what the attribute takes. Numbers stand without quotes and without units. A reference that is `LAZY` or `DATA` stays as it is written, so it is no value.",
    'vm extends VM { x.memory "2 GiB"; }',
    "vm extends VM { x.memory 2048; }",
  ),
  "schema/range": cellPage(
    "a number out of its range",
    "The message gives the bounds and the unit.",
    "vm extends VM { x.memory 0; }",
    "vm extends VM { x.memory 128; }",
  ),
  "reference/syntax": cellPage(
    "a reference that is not complete",
    "A reference reads `<ref:/path>`, or `ref:/path` without the angle brackets: either both or none.",
    `${vm}nic extends VirtualInterface { x.vm "<ref:../vm"; x.subnet "<ref:../net>"; }\n${net}`,
    `${vm}nic extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; }\n${net}`,
  ),
  "reference/dangling": cellPage(
    "a reference that leads nowhere",
    "A path begins with `/` at the document (whose first part is usually the cell), or with `..` at the parent of the component that holds the attribute.",
    `${vm}nic extends VirtualInterface { x.vm "<ref:/vm>"; x.subnet "<ref:../net>"; }\n${net}`,
    `${vm}nic extends VirtualInterface { x.vm "<ref:/shop/vm>"; x.subnet "<ref:../net>"; }\n${net}`,
  ),
  "reference/circular": cellPage(
    "references that lead back to themselves",
    "Each attribute of the circle refers to the next one, so none has a value.",
    'a "<ref:/shop/b>";\nb "<ref:/shop/a>";\nvm extends VM { x.memory "<ref:/shop/a>"; }',
    'a "<ref:/shop/b>";\nb 128;\nvm extends VM { x.memory "<ref:/shop/a>"; }',
  ),
  "reference/type": cellPage(
    "a reference to an element of the wrong type",
    "The attribute says what it may refer to; the message says what was found there.",
    `${vm}nic extends VirtualInterface { x.vm "<ref:../net>"; x.subnet "<ref:../net>"; }\n${net}`,
    `${vm}nic extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; }\n${net}`,
  ),
  "reference/target": cellPage(
    "a reference to a component where a value belongs, or the other way round",
    "A reference to an attribute takes its value; one to a component is a link to it.",
    'size extends { small 128; }\nvm extends VM { x.memory "<ref:/shop/size>"; }',
    'size extends { small 128; }\nvm extends VM { x.memory "<ref:/shop/size/small>"; }',
  ),
  "reference/outside": filesPage(
    "a reference to a template beside the cell",
    "Only what stands inside the cell is deployed. What stands beside it is a template, so there is nothing to link to.",
    {
      "shop.sf": `disk extends Volume { x.size 64; }\nshop extends Cell {\n  copy extends VolumeCopy { x.image "<ref:/disk>"; }\n}\n`,
    },
    {
      "shop.sf": `shop extends Cell {\n  disk extends Volume { x.size 64; }\n  copy extends VolumeCopy { x.image "<ref:/shop/disk>"; }\n}\n`,
    },
  ),
  "reference/foreign": cellPage(
    "a reference into another cell where none is possible",
    "Images, rule ends and grants may refer to other cells. What holds a cell's own parts together may not.",
    `${net}nic extends VirtualInterface { x.vm "<ref://bank.cells.example.com/bank/vm>"; x.subnet "<ref:../net>"; }`,
    `${vm}${net}nic extends VirtualInterface { x.vm "<ref:../vm>"; x.subnet "<ref:../net>"; }`,
  ),
  "reference/domain": cellPage(
    "a reference into another cell that names no cell",
    "Another cell is named by its domain: `<ref://other.cells.example.com/path>`.",
    'copy extends VolumeCopy { x.image "<ref:///images/golden>"; }',
    'copy extends VolumeCopy { x.image "<ref://images.cells.example.com/images/golden>"; }',
  ),
};
