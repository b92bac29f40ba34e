/** IP protocol numbers; 0 stands for any. */
export const protocolNumbers = { any: 0, icmp: 1, tcp: 6, udp: 17 } as const;
