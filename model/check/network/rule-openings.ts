import type { NetworkRuleElement, PortRange } from "../../cell/cell.ts";

export const anyPort: PortRange = { from: 0, to: 65535 };

export interface Opening {
  readonly direction: "1to2" | "2to1";
  readonly sourcePorts: PortRange;
  readonly ports: PortRange;
}

/**
 * Who may open a flow. "both" lets each side open towards a port that the rule gives the other side, or anywhere if it
 * gives none: a side whose service port is named is then only ever answered to, and cannot open flows from that port.
 */
export function openings(rule: NetworkRuleElement): readonly Opening[] {
  const ported = rule.protocol === "tcp" || rule.protocol === "udp";
  const port1 = ported ? rule.port1 : undefined;
  const port2 = ported ? rule.port2 : undefined;
  if (rule.direction === "1to2") {
    return [{ direction: "1to2", sourcePorts: port1 ?? anyPort, ports: port2 ?? anyPort }];
  }
  const neither = port1 === undefined && port2 === undefined;
  const result: Opening[] = [];
  if (neither || port2 !== undefined) {
    result.push({ direction: "1to2", sourcePorts: anyPort, ports: port2 ?? anyPort });
  }
  if (neither || port1 !== undefined) {
    result.push({ direction: "2to1", sourcePorts: anyPort, ports: port1 ?? anyPort });
  }
  return result;
}
