import type { ControllerState } from "../../core/controller/state.ts";
import type { Uid } from "../../model/identifiers.ts";
import type { CellText } from "./cell-text.ts";
import type { Installation } from "./installation.ts";
import type { Users } from "./steps.ts";

/** What is not yet as its users want it, in sentences; empty: everything is. Looked at where machines are, not where they are believed. */
export const unsettled = (installation: Installation, users: Users): readonly string[] => {
  const faults: string[] = [];
  for (const process of installation.processes.values())
    if (!process.isRunning) faults.push(`${process.name} does not run`);
  const apart = membershipFault(installation);
  if (apart !== null) faults.push(apart);
  const owned = new Set<Uid>();
  for (const [cell, controller] of installation.controllers) {
    const wish = users.wishes.get(cell);
    if (wish === undefined) continue;
    if (!wish.answered) faults.push(`${cell}: the last wish was not answered`);
    const { state } = controller;
    if (state === null) continue;
    for (const { uid } of state.elements.values()) owned.add(uid);
    const accepted = users.accepted.get(cell) ?? null;
    if (accepted === null) {
      if (state.elements.size > 0) faults.push(`${cell}: deleted, but ${describe(state)} is left`);
    } else faults.push(...unsettledCell(installation, cell, accepted, state));
  }
  for (const machine of installation.truth.machines)
    if (!owned.has(machine.vm)) faults.push(`${machine.vm} runs on ${machine.host} and is of no cell`);
  return faults;
};

/** Every host holds every host for alive, and so does the Presence group; a sentence about the first that does not. */
const membershipFault = ({ hosts, participants, members }: Installation): string | null => {
  const first = [...participants.values()][0]?.state;
  for (const host of hosts.keys()) {
    const own = participants.get(host)?.state;
    if (own === undefined || first === undefined) return `${host} takes no part in Presence`;
    const { generation } = own.self;
    // Equal digests are equal views, so one of them is enough to be looked at in full.
    const seen = first.members.get(host);
    if (seen?.status !== "alive" || seen.generation !== generation)
      return `${first.self.host} holds ${host} for ${seen?.status ?? "unknown"} of generation ${seen?.generation}, it is of ${generation}`;
    if (own.digest !== first.digest) return `${host} has another view of the hosts than ${first.self.host}`;
    if (own.suspects.size > 0) return `${host} suspects ${[...own.suspects].map((each) => each.host).join(", ")}`;
    for (const [name, member] of members) {
      const view = member.state?.hosts.get(host);
      const dead = view?.declared?.generation ?? -1;
      if (view?.self?.generation !== generation || dead >= generation || view.reachable !== true)
        return `${name} has generation ${view?.self?.generation} of ${host}, dead ${dead}, and it is of ${generation}`;
    }
  }
  return null;
};

const describe = (state: ControllerState): string =>
  [...state.elements.values()].map(({ path, phase, reason }) => `${path} (${phase}: ${reason ?? ""})`).join(", ");

const unsettledCell = (
  installation: Installation,
  cell: string,
  accepted: CellText,
  state: ControllerState,
): readonly string[] => {
  const faults: string[] = [];
  for (const { path, phase, reason, deleting } of state.elements.values()) {
    // A VM that its user wants left down after a crash stays failed, and what belongs to it waits.
    const isLeft = accepted.machines.some(({ name, once }) => once && path.startsWith(`${cell}/${name}`));
    if (phase === "ready" || isLeft) continue;
    faults.push(`${path} is ${deleting ? "still there" : `${phase}: ${reason ?? ""}`}`);
  }
  for (const { name, off, once } of accepted.machines) {
    const record = [...state.elements.values()].find((each) => each.path === `${cell}/${name}` && !each.deleting);
    if (record === undefined) {
      faults.push(`${cell}/${name} is unknown to its controller`);
      continue;
    }
    const running = [...installation.truth.machines].filter(({ vm }) => vm === record.uid);
    if (off && running.length > 0) faults.push(`${cell}/${name} runs on ${running[0]?.host} and should be off`);
    if (!off && !once && running.length !== 1) faults.push(`${cell}/${name} runs ${running.length} times`);
  }
  return faults;
};
