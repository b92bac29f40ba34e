import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Frame } from "./frames.ts";
import type { LogLine, NodeOutput } from "./types.ts";

/** Who carries out what some steps want together: a process, or a simulated one. */
export interface BatchEffects {
  /** Makes all of it durable at once, and then calls `durable`; never calls it where the process ends first. */
  commit(writes: ReadonlyMap<string, Json>, durable: () => void): void;
  log(line: LogLine): void;
  reply(id: number, response: Json): void;
  connect(peer: PeerName): void;
  send(connection: number, frames: readonly Frame[]): void;
  close(connection: number): void;
}

/** Many steps share one commit, and nothing of any of them leaves before it is durable: whoever was told of it can rely on it. */
export const carryOutBatch = (outputs: readonly NodeOutput[], effects: BatchEffects): void => {
  const writes = new Map<string, Json>();
  for (const output of outputs) for (const { key, value } of output.writes) writes.set(key, value);
  effects.commit(writes, () => leave(outputs, effects));
};

const leave = (outputs: readonly NodeOutput[], effects: BatchEffects): void => {
  const frames = new Map<number, Frame[]>();
  for (const output of outputs) {
    for (const line of output.logs) effects.log(line);
    for (const { id, response } of output.replies) effects.reply(id, response);
    for (const peer of output.connects) effects.connect(peer);
    for (const { connection, frame } of output.sends) {
      const list = frames.get(connection) ?? [];
      list.push(frame);
      frames.set(connection, list);
    }
  }
  for (const [connection, list] of frames) effects.send(connection, list);
  for (const output of outputs) for (const connection of output.closes) effects.close(connection);
};
