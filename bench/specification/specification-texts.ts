/*
 * One structure in two languages: many VMs from one template of 22 attributes, each with one attribute of its own. Both
 * texts name every VM, as an author or a program that writes specifications does.
 */
const attributesOfEach = 24;

/** VMs that make about so many attributes. */
export const vmsFor = (attributes: number): number => Math.round(attributes / attributesOfEach);

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

export const smartFrogText = (vms: number): string => `
Server extends VM {
  x.memory 2048; x.cpus 2; x.cpuSpeed 0; x.desiredState "on"; x.restartOnFailure true; x.priority 5;
  x.liveness.protocol "icmp"; x.liveness.intervalMs 2000; x.liveness.failures 3;
  x.data extends {
    role "web"; port 8080;
    settings extends { level "info"; workers 4; cache 256; timeout 30; host "web.example"; tls true; retries 3; }
  }
}
shop extends Cell {
${range(vms)
  .map((index) => `  vm${index} extends Server { index ${index}; }`)
  .join("\n")}
}
`;

/** The same from one function, which an author would write as a loop: names are not written out. */
export const typescriptText = (vms: number): string => `
import { cell, vm } from "cells/model";
const server = (index: number) => vm({
  memory: 2048, cpus: 2, cpuSpeed: 0, desiredState: "on", restartOnFailure: true, priority: 5,
  liveness: { protocol: "icmp", intervalMs: 2000, failures: 3 },
  data: {
    role: "web", port: 8080,
    settings: { level: "info", workers: 4, cache: 256, timeout: 30, host: "web.example", tls: true, retries: 3 },
  },
}, { index });
const all: Record<string, ReturnType<typeof server>> = {};
for (let index = 0; index < ${vms}; index++) all["vm" + index] = server(index);
export default cell("shop", all);
`;

export const jsonnetText = (vms: number): string => `
local Server = {
  "x.type": "VM",
  "x.memory": 2048, "x.cpus": 2, "x.cpuSpeed": 0, "x.desiredState": "on", "x.restartOnFailure": true, "x.priority": 5,
  "x.liveness.protocol": "icmp", "x.liveness.intervalMs": 2000, "x.liveness.failures": 3,
  "x.data": {
    role: "web", port: 8080,
    settings: { level: "info", workers: 4, cache: 256, timeout: 30, host: "web.example", tls: true, retries: 3 },
  },
};
{ shop: { "x.type": "Cell",
${range(vms)
  .map((index) => `  vm${index}: Server { index: ${index} },`)
  .join("\n")}
} }
`;

/** A cell of machines, each with a disk and a card: four elements for each; `memoryMiB` is that of every tenth. */
export const elementsText = (elements: number, memoryMiB: number): string => `
shop extends Cell {
  image extends Volume { x.size 64; x.access "ro"; }
  net extends Subnet { x.size 65536; }
${range(Math.floor((elements - 2) / 4))
  .map(
    (index) => `  vm${index} extends VM { x.memory ${index % 10 === 0 ? memoryMiB : 64}; }
  disk${index} extends VolumeCopy { x.image "<ref:/shop/image>"; }
  connection${index} extends VolumeConnection { x.vm "<ref:../vm${index}>"; x.volume "<ref:../disk${index}>"; }
  card${index} extends VirtualInterface { x.vm "<ref:../vm${index}>"; x.subnet "<ref:/shop/net>"; }`,
  )
  .join("\n")}
}
`;
