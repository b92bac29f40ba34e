import { formatIpv4 } from "../../../../../model/addresses/addresses.ts";
import { prefixOfNetmask } from "../../../../../model/eucalyptus/addresses/ranges.ts";
import type { AddressSet, Chain, DhcpPlan, DhcpSubnet, LocalPlan, Table } from "./plan.ts";

/*
 * A plan as text: as `iptables-restore`, `ipset restore` and a DHCP server take it, and as people compare it. Names of files are those
 * that the original's recordings have.
 */

/** As the kernel's tools print a rule, and take it. */
export const ruleText = (chain: string, rule: readonly string[]): string => `-A ${chain} ${rule.join(" ")}`;

/** For `iptables-restore`: all tables, with their chains, whole. */
export const restoreText = (tables: readonly Table[]): string =>
  tables
    .flatMap(({ name, chains }) => [
      `*${name}`,
      ...chains.map((chain) => `:${chain.name} ${chain.policy ?? "-"} [0:0]`),
      ...chains.flatMap((chain) => chain.rules.map((rule) => `[0:0] ${ruleText(chain.name, rule)}`)),
      "COMMIT",
      "",
    ])
    .join("\n");

/** For `ipset restore`. */
export const setsText = (sets: readonly AddressSet[]): string =>
  sets
    .flatMap(({ name, members }) => [
      `create ${name} hash:net family inet hashsize 2048 maxelem 65536`,
      `flush ${name}`,
      ...members.map((member) => `add ${name} ${member}`),
      "",
    ])
    .filter((line) => line !== "")
    .map((line) => `${line}\n`)
    .join("");
const membersText = (sets: readonly AddressSet[]): string =>
  sets.map(({ name, members }) => `set ${name} ref=${members.length}: ${members.join(" ")}\n`).join("");

const own = ({ policy }: Chain): boolean => policy === null;
/** Table, chain, rule, in order: first the jumps of the system's own chains. */
const bridgeText = (tables: readonly Table[]): string => {
  const lines = (wanted: (chain: Chain) => boolean): readonly string[] =>
    tables.flatMap(({ name, chains }) =>
      chains.filter(wanted).flatMap((chain) => chain.rules.map((rule) => `${name} ${chain.name} ${rule.join(" ")}\n`)),
    );
  return [...lines((chain) => !own(chain)), ...lines(own)].join("");
};

const dhcpSubnetText = ({ domain, nameServers }: DhcpPlan, subnet: DhcpSubnet): readonly string[] => [
  `  subnet ${formatIpv4(subnet.subnet)} netmask ${formatIpv4(subnet.netmask)} {`,
  `    option subnet-mask ${formatIpv4(subnet.netmask)};`,
  `    option broadcast-address ${formatIpv4(subnet.broadcast)};`,
  `    option domain-name "${domain}";`,
  `    option domain-name-servers ${nameServers.map(formatIpv4).join(", ")};`,
  `    option routers ${formatIpv4(subnet.router)};`,
  "  }",
];
/** For ISC dhcpd, which the original had. */
export const dhcpText = (dhcp: DhcpPlan): string =>
  [
    "# automatically generated config file for DHCP server",
    "default-lease-time 86400;",
    "max-lease-time 86400;",
    "ddns-update-style none;",
    "",
    ...(dhcp.subnets.length === 0
      ? []
      : [
          "shared-network euca {",
          ...dhcp.subnets.flatMap((subnet) => dhcpSubnetText(dhcp, subnet)),
          ...dhcp.hosts.flatMap(({ mac, address }) => [
            "",
            `  host node-${formatIpv4(address)} {`,
            `    hardware ethernet ${mac};`,
            `    fixed-address ${formatIpv4(address)};`,
            "  }",
          ]),
          "}",
        ]),
    "",
  ].join("\n");

const segmentsText = ({ segments }: LocalPlan): string =>
  segments
    .map(({ tag, first, last }) => {
      const prefix = prefixOfNetmask(2 ** 32 - (last - first + 1));
      return `segment vlan=${tag} subnet=${formatIpv4(first)}/${prefix} gw=${formatIpv4(first + 1)} bcast=${formatIpv4(last)}\n`;
    })
    .join("");

/** What of a plan belongs to a machine, by the names of the recordings' files; what there is nothing of is left out. */
export function planFiles(plan: LocalPlan): readonly (readonly [file: string, text: string])[] {
  const { iptables, sets, ebtables, dhcp, segments } = plan;
  return [
    ...(iptables.length > 0 ? [["iptables-restore.txt", restoreText(iptables)] as const] : []),
    ...(sets.length > 0
      ? [
          ["ipset-restore.0.txt", setsText(sets)] as const,
          ["ipset-restore.1.txt", setsText(sets)] as const,
          ["ipsets.txt", membersText(sets)] as const,
        ]
      : []),
    ...(ebtables.length > 0 ? [["ebtables-rules.txt", bridgeText(ebtables)] as const] : []),
    ...(dhcp === null ? [] : [["euca-dhcp.conf", dhcpText(dhcp)] as const]),
    ...(segments.length > 0 ? [["segments.txt", segmentsText(plan)] as const] : []),
  ];
}
