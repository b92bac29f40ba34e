import type { ControllerState } from "../../core/controller/state.ts";
import { leftoversOf } from "../../core/distribution/node/release.ts";
import { sentenceOf } from "../../model/cause/sentence.ts";
import type { Uid } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { type CellText, childOf, labelOf, ruleName } from "./cell-text.ts";
import type { Installation } from "./installation.ts";
import { isAgreed } from "./traffic.ts";
import type { Users } from "./wishes.ts";

/**
 * Every cell that should be there, and what it should have; null: nothing. What the outermost cells should have their users
 * say. A child was born with whatever its parent said by then, and may have been changed since, so what it should have is
 * what its model says, wherever that came from; and its machines are looked at all the same.
 */
const expectedCells = (installation: Installation, { accepted }: Users): ReadonlyMap<string, CellText | null> => {
  const expected = new Map<string, CellText | null>();
  const add = (cell: string, text: CellText | null): void => {
    expected.set(cell, text);
    for (const { name } of text?.children ?? []) {
      const child = childOf(cell, name);
      add(child, textOfModel(installation.controllers.get(child)?.state?.model.document ?? null));
    }
  };
  for (const [cell, text] of accepted) if (installation.cells.includes(cell)) add(cell, text);
  return expected;
};

const isComponent = (json: Json | undefined): json is JsonObject =>
  typeof json === "object" && json !== null && !Array.isArray(json);
const textOfModel = (document: JsonObject | null): CellText | null => {
  const [cell] = Object.values(document ?? {}).filter(isComponent);
  if (cell === undefined) return null;
  const elements = Object.entries(cell).flatMap(([name, each]) => (isComponent(each) ? [{ name, each }] : []));
  const machines = elements.flatMap(({ name, each }) =>
    each["x.type"] === "VM"
      ? [{ ...noFlags, name, memoryMiB: Number(each["x.memory"]), off: each["x.desiredState"] === "off" }]
      : [],
  );
  const none: CellText = { machines: [], rules: [], allOrNone: false };
  const children = elements.flatMap(({ name, each }) =>
    each["x.type"] === "CellController" ? [{ name, text: none }] : [],
  );
  return { machines, rules: [], allOrNone: false, children };
};
const noFlags = { data: false, live: false, once: false, apart: null } as const;

/** What is not yet as its users want it, in sentences; empty: everything is. Looked at where machines are, not where they are believed. */
export const unsettled = (installation: Installation, users: Users): readonly string[] => {
  const faults: string[] = [];
  for (const process of installation.processes.values())
    if (!process.isRunning) faults.push(`${process.name} does not run`);
  const apart = membershipFault(installation);
  if (apart !== null) faults.push(apart);
  if (installation.history.operator) faults.push(...leftOver(installation));
  const owned = new Set<Uid>();
  const expected = expectedCells(installation, users);
  for (const cell of expected.keys())
    if (!installation.controllers.has(cell)) faults.push(`${cell} should be there, and has no controller`);
  for (const [cell, controller] of installation.controllers) {
    const wish = users.wishes.get(cell);
    const isChild = !installation.cells.includes(cell);
    if (isChild && !expected.has(cell)) faults.push(`${cell}: its controller is still there`);
    if (!isChild && wish === undefined) continue;
    if (wish?.answered === false) faults.push(`${cell}: the last wish was not answered`);
    const { state } = controller;
    if (state === null) continue;
    for (const { uid } of state.elements.values()) owned.add(uid);
    const text = expected.get(cell) ?? null;
    if (text === null) {
      if (state.elements.size > 0) faults.push(`${cell}: deleted, but ${describe(state)} is left`);
    } else faults.push(...unsettledCell(installation, cell, text, { state, expected }));
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

/** What an operator would still find to do, or would have to and cannot find. */
const leftOver = ({ processes }: Installation): readonly string[] =>
  [...processes.values()].flatMap(({ name, distribution }) => {
    const { clients, receivers } =
      distribution === null ? { clients: [], receivers: [] } : leftoversOf(distribution, (peer) => processes.has(peer));
    const unwanted = [...(distribution?.clients ?? [])].flatMap(([client, { documents }]) => {
      const desired = processes.get(client)?.distribution?.targets.get(name)?.documents;
      const isUnwanted = (key: string): boolean => (desired?.get(key)?.value ?? null) === null;
      const keys = client.startsWith("controller.") ? [...documents.keys()].filter(isUnwanted) : [];
      return keys.length === 0 ? [] : [`${name} has ${keys.join(", ")} of ${client}, which does not desire it`];
    });
    const unclaimed = clients.flatMap(({ client, keys }) => {
      const documents = distribution?.clients.get(client)?.documents;
      const left = client.startsWith("controller.") ? keys.filter((key) => documents?.has(key) !== true) : [];
      return left.length === 0 ? [] : [`${name} names ${left.join(", ")} of ${client}, which nobody wishes for`];
    });
    return [
      ...unclaimed,
      ...clients.flatMap(({ client, forked }) => (forked ? [`${name} names the store of ${client} as lost`] : [])),
      ...unwanted,
      ...receivers.map(({ receiver }) => `${name} or ${receiver} has a store that was lost`),
    ];
  });

const describe = (state: ControllerState): string =>
  [...state.elements.values()]
    .map(({ path, phase, causes }) => `${path} (${phase}: ${sentenceOf(causes) ?? ""})`)
    .join(", ");

/** Do other cells let this element have its effect? */
const isLet = (cell: string, path: string, text: CellText, accepted: ReadonlyMap<string, CellText | null>): boolean => {
  const copy = (text.copies ?? []).find(({ name }) => path === `${labelOf(cell)}/${name}`);
  if (copy !== undefined) return accepted.get(copy.of)?.grants?.includes(cell) === true;
  const rule = text.rules.find((each) => path === `${labelOf(cell)}/${ruleName(each)}`);
  return rule !== undefined && isAgreed(cell, rule, accepted);
};

const unsettledCell = (
  installation: Installation,
  cell: string,
  accepted: CellText,
  { state, expected }: { readonly state: ControllerState; readonly expected: ReadonlyMap<string, CellText | null> },
): readonly string[] => {
  const faults: string[] = [];
  // There may be fewer whole hosts than are asked for: one that no machine needs waits for as long as others have them.
  const isPoolNeeded = accepted.machines.some(({ pool }) => pool !== undefined);
  for (const { path, type, phase, causes, deleting } of state.elements.values()) {
    if (type === "PoolHost" && phase === "waiting" && !isPoolNeeded) continue;
    // A VM that its user wants left down after a crash stays failed, and what belongs to it waits.
    const isLeft = accepted.machines.some(({ name, once }) => once && path.startsWith(`${labelOf(cell)}/${name}`));
    // What names another cell waits until that one lets it.
    const isForeign =
      path.includes("Of") || (accepted.copies ?? []).some(({ name }) => path === `${labelOf(cell)}/${name}`);
    if (phase === "ready" || isLeft || (isForeign && phase === "waiting" && !isLet(cell, path, accepted, expected)))
      continue;
    faults.push(`${path} is ${deleting ? "still there" : `${phase}: ${sentenceOf(causes) ?? ""}`}`);
  }
  for (const { name, off, once } of accepted.machines) {
    const record = [...state.elements.values()].find(
      (each) => each.path === `${labelOf(cell)}/${name}` && !each.deleting,
    );
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
