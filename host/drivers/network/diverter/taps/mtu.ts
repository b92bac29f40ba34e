import { execFileSync } from "node:child_process";

/**
 * Of a device, in bytes. Taps get that of the underlay's device (`diverter.ts`), and guests are told of it with their address
 * (`dhcp.ts`). Throws for a device that is not there.
 */
export function mtuOf(device: string): number {
  const shown = execFileSync("ip", ["-j", "link", "show", "dev", device], { encoding: "utf8" });
  const [link] = JSON.parse(shown) as readonly { readonly mtu?: number }[];
  if (link?.mtu === undefined) throw new Error(`the network device ${device} says no MTU`);
  return link.mtu;
}
