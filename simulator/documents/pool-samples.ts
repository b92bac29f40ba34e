/** What the IP Address Manager says of external pools. */
export const poolsInForce = {
  external: ["203.0.113.0/24"],
  otherwise: "198.18.0.0/15",
  used: ["203.0.113.0/28"],
  kept: ["198.18.0.0/29"],
  inside: ["192.168.4.0/24"],
};
export const zoneWithPools = {
  zone: "cloud.example.org",
  servers: ["ns1.example.org"],
  secondaries: ["10.0.0.9"],
  pools: ["203.0.113.0/24"],
  entrance: { cell: "primary", address: "10.0.0.40" },
};
