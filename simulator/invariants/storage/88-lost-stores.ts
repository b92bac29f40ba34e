import type { CellText } from "../../world/cell-text.ts";
import { isGivenUp, watchHa } from "../ha/said-over.ts";
import type { Invariant } from "../invariant.ts";

/**
 * No file of a volume that its owner never took back is removed, and no VM that its owner never stopped is stopped, whatever
 * store was lost or is older than what others have seen. Looked at in cells whose texts only ever grew: there nobody has
 * taken anything back. The premise is a file or a machine that is there when a store is lost, and at every end of either.
 */
export const lostStores: Invariant = {
  number: 88,
  title: "a lost store destroys nothing",
  watch: ({ kernel, truth, users, installation }, verdict) => {
    const hasGrownOnly = (element: string): boolean => {
      // An operator says that nobody wants it any more, after its controller was let count without it.
      if (installation.endedByHand.has(element)) return false;
      const cell = installation.boundCell(element)?.cell;
      const wish = cell === undefined ? undefined : users.wishes.get(cell);
      if (cell === undefined || wish === undefined || wish.text === null) return false;
      // A child goes with its parent's element.
      if (!installation.cells.includes(cell)) return false;
      const texts = users.submitted.get(cell) ?? [];
      // What is deployed all or none is given back where some of it cannot be had.
      if (texts.some(({ allOrNone }) => allOrNone)) return false;
      return texts.every((text, index) => index === 0 || holds(text, texts[index - 1] ?? text));
    };
    const said = watchHa(kernel);
    /** Given up by their controllers, since they may be lost. */
    const recreated = new Set<string>();
    kernel.watchers.push({
      // Also of a step whose process crashes behind its commit.
      stepped: (_who, _input, effects) => {
        for (const effect of effects)
          if (effect.kind === "log" && effect.event === "volume/recreated") recreated.add(String(effect.fields.uid));
      },
      log: (who, verb) => {
        if (who !== "history" || (verb !== "lose" && verb !== "put-back")) return;
        for (const { vm } of truth.machines) if (hasGrownOnly(vm)) verdict.check(true, () => "");
      },
    });
    truth.watchers.push({
      fileRemoved: (server, volume) => {
        if (!recreated.has(volume) && hasGrownOnly(volume))
          verdict.violate(`the file of ${volume} was removed at ${server}`);
      },
      machineEnded: ({ vm, name, host, incarnation }, how) => {
        // Its host was given up, or gives up itself: it runs elsewhere, or will (31 and 37 look at that).
        if (isGivenUp(said, { vm, incarnation })) return;
        if (how !== "stopped" || !hasGrownOnly(vm) || installation.losses.size === 0) return;
        const [live] = (users.submitted.get(installation.boundCell(vm)?.cell ?? "") ?? []).flatMap(({ machines }) =>
          machines.filter((machine) => machine.name === name && machine.live),
        );
        if (live === undefined) verdict.violate(`${name}, ${vm}.${incarnation}, was stopped at ${host}`);
      },
    });
    return undefined;
  },
};

/** Everything of the earlier text is in the later one, as it was. */
const holds = (later: CellText, earlier: CellText): boolean => {
  const has = <T>(all: readonly T[] | undefined, one: T): boolean =>
    (all ?? []).some((each) => JSON.stringify(each) === JSON.stringify(one));
  return (
    earlier.machines.every((machine) => has(later.machines, machine)) &&
    (earlier.copies ?? []).every((copy) => has(later.copies, copy)) &&
    (earlier.children ?? []).every((child) => has(later.children, child)) &&
    earlier.allOrNone === later.allOrNone
  );
};
