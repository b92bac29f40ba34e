import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";

/** Where instances ask for what they are told (EC2's metadata), which answers at the cloud controller. */
export const metadataText = "169.254.169.254";
export const metadataAddress = parseIpv4(metadataText) ?? 0;
export const metadataPort = 8773;

/** Hands over to the service what an instance asks there. */
export const metadataRule = (enabledClcIp: number): string =>
  `-d ${metadataText}/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination ${formatIpv4(enabledClcIp)}:${metadataPort}`;
