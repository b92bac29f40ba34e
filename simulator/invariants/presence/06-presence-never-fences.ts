import type { ActualPresenceDeath } from "../../../core/documents/presence.ts";
import type { Effect, Input } from "../../../core/env.ts";
import type { MachineTruth } from "../../world/truth.ts";
import { incarnationOf, isGivenUp, isHaMatter, watchHa } from "../ha/said-over.ts";
import type { Invariant, Verdict } from "../invariant.ts";

/** Whoever is told of a death desires nothing of anyone for it. */
const checkAnswer = (who: string, input: Input, effects: readonly Effect[], verdict: Verdict): void => {
  if (input.kind !== "actual" || !input.key.startsWith("dead/")) return;
  if ((input.value as { readonly ended?: number } | null)?.ended !== undefined) return;
  // Rules that were due from before may leave in the same step; a VM, its disks and its place are another matter.
  const asked = effects.find(
    (effect) =>
      effect.kind === "unsubscribe" || (effect.kind === "desire" && /^(vm|connection|placement)\//.test(effect.key)),
  );
  verdict.check(asked === undefined, () => `${who} was told of a death and did: ${JSON.stringify(asked)}`);
};

/**
 * What runs on a host that is declared dead, or was lost with its power, is left alone until the host itself says more: nobody
 * stops it or cuts its disks off, and it starts nowhere else. And whoever is told of a death desires nothing of anyone for it.
 * It is another matter where somebody said that the host's power is off (27), and where the HA Manager has asked further and
 * fences (31, 32), where an operator has ended it (`cells orphans end`), or the host itself ends what it runs since nobody hears it (37).
 */
export const presenceNeverFences: Invariant = {
  number: 6,
  title: "presence alone never fences",
  watch: ({ kernel, truth, installation, users }, verdict) => {
    const said = watchHa(kernel);
    /** Host → the life that was declared over, until it is heard of in a later one. */
    const dead = new Map<string, number>();
    /** Last machine of each VM whose end its host could tell nobody. */
    const there = new Map<string, MachineTruth>();
    /** Host → the life that is over for certain. */
    const certain = new Map<string, number>();
    const isAsItWas = (cell: string): boolean =>
      (users.submitted.get(cell) ?? []).length < 2 && users.wishes.get(cell)?.text !== null;
    // It goes with the cells around it.
    const isLeft = (cell: string): boolean => installation.lineOf(cell).every(isAsItWas);
    const returns = (host: string): void => {
      dead.delete(host);
      for (const [vm, machine] of there) if (machine.host === host && !truth.machines.has(machine)) there.delete(vm);
    };
    kernel.watchers.push({
      began: (who) => returns(who.replace("host.", "")),
      log: (who, event, fields) => {
        if (event === "distribution/reborn") returns(who.replace("host.", ""));
        if (event !== "lease/fencing" || installation.endedByHand.has(String(fields.volume))) return;
        for (const machine of there.values()) {
          const { vm, host, disks } = machine;
          if (!dead.has(host) || isHaMatter(said, machine)) continue;
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
        if (!who.startsWith("presence.")) {
          checkAnswer(who, input, effects, verdict);
          return;
        }
        for (const effect of effects) {
          if (effect.kind !== "publish" || !effect.key.startsWith("dead/")) continue;
          const host = effect.key.replace("dead/", "");
          const { generation, ended, returned } = effect.value as unknown as ActualPresenceDeath;
          if (ended !== undefined && generation > (certain.get(host) ?? -1)) {
            certain.set(host, generation);
            returns(host);
          }
          // One that has come back is not dead, nor is one that somebody has seen off.
          if (returned !== undefined || generation <= (certain.get(host) ?? -1)) continue;
          if (input.kind === "start" || dead.has(host)) continue;
          dead.set(host, generation);
          for (const machine of there.values()) if (machine.host === host) verdict.check(true, () => "");
        }
      },
    });
    truth.watchers.push({
      machineStarted: (machine) => {
        const before = there.get(machine.vm);
        const isOver = before !== undefined && [said.over, said.forced].some((each) => each.has(incarnationOf(before)));
        if (before !== undefined && dead.has(before.host) && before.host !== machine.host && !isOver)
          verdict.violate(
            `${machine.vm} starts at ${machine.host} and is on ${before.host}, which was only declared dead`,
          );
        there.set(machine.vm, machine);
      },
      machineEnded: (machine, how) => {
        if (there.get(machine.vm) !== machine || !kernel.network.isUp(machine.host)) return;
        there.delete(machine.vm);
        if (isGivenUp(said, machine) || installation.endedByHand.has(machine.vm)) return;
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
