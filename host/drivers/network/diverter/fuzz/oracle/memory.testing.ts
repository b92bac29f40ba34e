/** What an interface remembers of its flows. Seconds of the fuzz's own clock. */
export interface Flow {
  /** The interface itself opened it. */
  readonly isOut: boolean;
  readonly remote: number;
  readonly protocol: number;
  readonly localPort: number;
  readonly remotePort: number;
  lastSeen: number;
  openerEnded: boolean;
  otherEnded: boolean;
  wasReset: boolean;
}
export interface FlowKey {
  readonly remote: number;
  readonly protocol: number;
  readonly localPort: number;
  readonly remotePort: number;
}
interface Fragments {
  readonly flow: Flow;
  readonly lastSeen: number;
}
const icmp = 1;
const tcp = 6;
const nameOf = ({ remote, protocol, localPort, remotePort }: FlowKey): string =>
  `${remote} ${protocol} ${localPort} ${remotePort}`;

export const isOver = ({ openerEnded, otherEnded, wasReset }: Flow): boolean => wasReset || (openerEnded && otherEnded);
const idleSeconds = (flow: Flow): number => {
  if (flow.protocol === icmp) return 30;
  if (flow.protocol !== tcp) return 180;
  return isOver(flow) ? 10 : 3600;
};

export class Memory {
  readonly #flows = new Map<string, Flow>();
  readonly #fragments = new Map<string, Fragments>();
  readonly #many = new Map<string, number>();

  find(key: FlowKey, now: number): Flow | null {
    const found = this.#flows.get(nameOf(key));
    return found === undefined || now - found.lastSeen > idleSeconds(found) ? null : found;
  }
  put(key: FlowKey, isOut: boolean, now: number): Flow {
    const flow = { ...key, isOut, lastSeen: now, openerEnded: false, otherEnded: false, wasReset: false };
    this.#flows.set(nameOf(key), flow);
    return flow;
  }
  /** What was sent to many, whoever they are. */
  putMany({ protocol, localPort, remotePort }: Omit<FlowKey, "remote">, now: number): void {
    this.#many.set(`${protocol} ${localPort} ${remotePort}`, now);
  }
  hasMany({ protocol, localPort, remotePort }: FlowKey, now: number): boolean {
    const seen = this.#many.get(`${protocol} ${localPort} ${remotePort}`);
    return seen !== undefined && now - seen <= (protocol === icmp ? 30 : 180);
  }
  forget(key: FlowKey): void {
    this.#flows.delete(nameOf(key));
  }
  /** The flow that the first fragment of a datagram belonged to. `isOut`: this interface sends it. */
  fragments(remote: number, protocol: number, id: number, isOut: boolean, now: number): Flow | null {
    const found = this.#fragments.get(`${remote} ${protocol} ${id} ${isOut}`);
    return found === undefined || now - found.lastSeen > 30 ? null : found.flow;
  }
  putFragments(remote: number, protocol: number, id: number, isOut: boolean, flow: Flow, now: number): void {
    this.#fragments.set(`${remote} ${protocol} ${id} ${isOut}`, { flow: { ...flow }, lastSeen: now });
  }
  forgetFragments(remote: number, protocol: number, id: number, isOut: boolean): void {
    this.#fragments.delete(`${remote} ${protocol} ${id} ${isOut}`);
  }
}
