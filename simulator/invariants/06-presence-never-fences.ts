import type { MachineTruth } from "../world/truth.ts";
import type { Invariant } from "./invariant.ts";

/**
 * What runs on a host that is declared dead, or was lost with its power, is left alone until the host itself says more: nobody
 * stops it or cuts its disks off, and it starts nowhere else. And whoever is told of a death desires nothing of anyone for it.
 */
export const presenceNeverFences: Invariant = {
  number: 6,
  title: "presence alone never fences",
  watch: ({ kernel, truth, installation, users }, verdict) => {
    /** Host → the life that was declared over, until it is heard of in a later one. */
    const dead = new Map<string, number>();
    /** Last machine of each VM whose end its host could tell nobody. */
    const there = new Map<string, MachineTruth>();
    // Deleting it changes it too, and so does what is done to a cell that it is in.
    const isLeft = (cell: string): boolean =>
      (users.submitted.get(cell) ?? []).length < 2 &&
      users.wishes.get(cell)?.text !== null &&
      (!cell.includes(".") || isLeft(cell.slice(cell.indexOf(".") + 1)));
    const returns = (host: string): void => {
      dead.delete(host);
      for (const [vm, machine] of there) if (machine.host === host && !truth.machines.has(machine)) there.delete(vm);
    };
    kernel.watchers.push({
      began: (who) => returns(who.replace("host.", "")),
      log: (who, event, fields) => {
        if (event === "distribution/reborn") returns(who.replace("host.", ""));
        if (event !== "lease/fencing") return;
        for (const { vm, host, disks } of there.values()) {
          if (!dead.has(host)) continue;
          const isIts = disks.some(
            ({ attachment: { volume, epoch } }) => volume === fields.volume && epoch === fields.epoch,
          );
          if (isIts) verdict.violate(`${who} fences ${fields.volume} of ${vm}, which is on ${host}, declared dead`);
        }
      },
      frame: (from, _to, frame) => {
        const host = from.replace("host.", "");
        if (frame.frame === "hello" && (frame.life ?? 0) > (dead.get(host) ?? Number.POSITIVE_INFINITY)) returns(host);
      },
      stepped: (who, input, effects) => {
        if (input.kind === "actual" && input.key.startsWith("dead/") && !who.startsWith("presence.")) {
          const asked = effects.find(({ kind }) => kind === "desire" || kind === "unsubscribe");
          verdict.check(asked === undefined, () => `${who} was told of a death and did: ${JSON.stringify(asked)}`);
        }
        if (!who.startsWith("presence.")) return;
        for (const effect of effects) {
          if (effect.kind !== "publish" || !effect.key.startsWith("dead/")) continue;
          const host = effect.key.replace("dead/", "");
          if (input.kind === "start" || dead.has(host)) continue;
          dead.set(host, (effect.value as unknown as { readonly generation: number }).generation);
          for (const machine of there.values()) if (machine.host === host) verdict.check(true, () => "");
        }
      },
    });
    truth.watchers.push({
      machineStarted: (machine) => {
        const before = there.get(machine.vm);
        if (before !== undefined && dead.has(before.host) && before.host !== machine.host)
          verdict.violate(
            `${machine.vm} starts at ${machine.host} and is on ${before.host}, which was only declared dead`,
          );
        there.set(machine.vm, machine);
      },
      machineEnded: (machine, how) => {
        if (there.get(machine.vm) !== machine || !kernel.network.isUp(machine.host)) return;
        there.delete(machine.vm);
        const cell = installation.boundCell(machine.vm)?.cell ?? "";
        if (how === "stopped" && dead.has(machine.host) && isLeft(cell))
          verdict.violate(
            `${machine.vm} of ${cell}, which nobody changed, was stopped when ${machine.host} was declared dead`,
          );
      },
    });
    return undefined;
  },
};
