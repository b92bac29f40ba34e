import type { CellReport, CellWorkAnswer, FoundController, WantedController } from "../../core/cells/work.ts";
import { type Ipv4, ipv4, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { network } from "../../runtime/installation.ts";
import type { Life } from "../kernel/process.ts";

/** What makes and ends controllers of child cells, as processes. */
export interface Controllers {
  /** All that there are. */
  readonly list: () => readonly FoundController[];
  readonly has: (wanted: WantedController) => boolean;
  readonly add: (wanted: WantedController, address: Ipv4) => void;
  /** Its process and its store, for good. */
  readonly remove: (wanted: WantedController) => void;
}

const makeMs = 150;
const again = { waitMs: 500 } as const;

/** Children's controllers have addresses of a range of their own. */
export const childAddress = (cellNumber: number): Ipv4 =>
  ipv4(network.controller(cellNumber % 200).replace("10.0.3.", `10.0.${4 + Math.floor(cellNumber / 200)}.`));

/** Carries out what the Cell Manager wants: one task per cell at a time, always by the newest work known. */
export const beginCellMaker = (life: Life, controllers: Controllers): void => {
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => life.after(ms, resolve));
  const report = (said: CellReport): Promise<Json> => life.request(said as unknown as Json);
  const wanted = new Map<Uid, WantedController>();
  const busy = new Set<Uid>();
  const done = new Map<Uid, WantedController["state"]>();
  const act = async (uid: Uid): Promise<void> => {
    if (busy.has(uid)) return;
    busy.add(uid);
    for (let now = wanted.get(uid); now !== undefined && done.get(uid) !== now.state; now = wanted.get(uid)) {
      if (now.state === "run") {
        const address = childAddress(now.cellNumber);
        if (!controllers.has(now)) {
          await sleep(makeMs);
          controllers.add(now, address);
        }
        await report({ kind: "made", uid, address });
      } else {
        await sleep(makeMs);
        controllers.remove(now);
        await report({ kind: "ended", uid });
      }
      done.set(uid, now.state);
    }
    busy.delete(uid);
  };
  const follow = async (): Promise<void> => {
    await sleep(makeMs);
    await report({ kind: "found", controllers: controllers.list() });
    for (let known = 0; life.isAlive(); ) {
      const answer = (await report({ kind: "work", known })) as unknown as CellWorkAnswer;
      known = answer.version;
      wanted.clear();
      for (const each of answer.controllers) {
        wanted.set(each.uid, each);
        void act(each.uid);
      }
      await sleep(again.waitMs / 100);
    }
  };
  void follow();
};
