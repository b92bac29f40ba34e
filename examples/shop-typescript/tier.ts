import { connection, type Data, subnet, type Volume, vif, vm, volumeCopy } from "cells/model";

/** One machine with its disk, in a subnet of its own. */
export function tier(hostName: string, image: Volume, data: Data) {
  // A writable copy of the golden image. It stores only what differs from the image.
  const bootvol = volumeCopy({ image });
  const machine = vm({ memory: 128, restartOnFailure: true, data });
  const net = subnet({ size: 16 }); // addresses; network, gateway and broadcast are among them
  return {
    bootvol,
    vm: machine,
    // The disk of the machine: it must be ready before the machine starts.
    disk: connection({ vm: machine, volume: bootvol, bootOrder: 0 }),
    subnet: net,
    interface: vif({ vm: machine, subnet: net, vifName: hostName }),
    hostName,
  };
}
