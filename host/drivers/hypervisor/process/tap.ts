import { closeSync, constants, openSync } from "node:fs";
import koffi from "koffi";

// <linux/if_tun.h>
const tunSetInterface = 0x400454ca;
const flagTap = 0x0002;
const flagNoPacketInformation = 0x1000;
const flagVnetHeader = 0x4000;

const libc = koffi.load("libc.so.6");
const ioctl = libc.func("int ioctl(int descriptor, unsigned long request, void *argument)");

/**
 * Opens a persistent tap that the network driver made and returns its descriptor, to be handed to QEMU and closed here.
 * QEMU itself may not open it: it runs without any capability.
 */
export const openTap = (name: string): number => {
  if (!/^[A-Za-z0-9._-]{1,15}$/.test(name))
    throw new Error(`"${name}" is no device name: at most 15 letters, digits, "." "_" "-"`);
  const descriptor = openSync("/dev/net/tun", constants.O_RDWR | constants.O_NONBLOCK);
  // struct ifreq: 16 bytes of name, then the flags.
  const request = Buffer.alloc(40);
  request.write(name, 0, "latin1");
  request.writeUInt16LE(flagTap | flagNoPacketInformation | flagVnetHeader, 16);
  if (ioctl(descriptor, tunSetInterface, request) !== 0) {
    closeSync(descriptor);
    throw new Error(
      `the tap "${name}" cannot be opened: it is in use by another process or this one lacks CAP_NET_ADMIN`,
    );
  }
  return descriptor;
};
