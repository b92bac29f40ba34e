import type { Group, Member } from "./groups.ts";
import { reconsider } from "./groups.ts";
import { block, type Host, unblock } from "./world.ts";

/** Cuts, and what is true of them whatever anybody believes. Shares nothing with what it is used to check. */
const namesOf = (group: Group, side: ReadonlySet<string>): { readonly hosts: Host[]; readonly members: Member[] } => ({
  hosts: group.world.hosts.filter(({ name }) => side.has(name)),
  members: group.members.filter(({ name }) => side.has(name)),
});

/** Nothing passes between the two sides, in neither direction, datagrams nor connections. */
export const split = (group: Group, side: ReadonlySet<string>): void => {
  const { hosts, members } = namesOf(group, side);
  const everyone = [...group.world.hosts, ...group.members];
  for (const a of [...hosts, ...members])
    for (const b of everyone) {
      if (side.has(b.name)) continue;
      group.cut.add(`${a.name}>${b.name}`);
    }
  for (const a of hosts)
    for (const b of group.world.hosts) {
      if (side.has(b.name)) continue;
      block(group.world, a, b);
      block(group.world, b, a);
    }
  for (const end of everyone) reconsider(group, end);
};
/** Datagrams from one host to others are lost; connections stand. */
export const silenceDatagrams = (group: Group, from: Host, to: readonly Host[]): void => {
  for (const other of to) if (other !== from) block(group.world, from, other);
};
export const allowDatagrams = (group: Group, from: Host, to: readonly Host[]): void => {
  for (const other of to) unblock(group.world, from, other);
};
/** A host has no connection to these members. */
export const cutFromMembers = (group: Group, host: Host, members: readonly Member[]): void => {
  for (const member of members) group.cut.add(`${host.name}>${member.name}`);
  reconsider(group, host);
};
export const healAll = (group: Group): void => {
  group.cut.clear();
  group.world.blocked.clear();
  for (const end of [...group.world.hosts, ...group.members]) reconsider(group, end);
};

/** Members that run and whose connection to that host has stood for so long. */
export const hearing = (group: Group, host: Host, sinceMs: number): number =>
  group.members.filter((member) =>
    (group.byEnd.get(member) ?? []).some(
      (link) =>
        link.subscriber.member === member &&
        link.source.host === host &&
        link.good &&
        link.changedAt <= group.world.now - sinceMs,
    ),
  ).length;

/** Every host that runs holds exactly those for alive that run, and suspects nobody. @returns what differs, or null */
export const disagreement = (group: Group): string | null => {
  const running = group.world.hosts.filter(({ state }) => state !== null);
  for (const { state, name } of running) {
    if (state === null) continue;
    for (const { name: other, state: truth, generation } of group.world.hosts) {
      const view = state.members.get(other);
      if (truth !== null && (view?.status !== "alive" || view.generation !== generation))
        return `${name} holds ${other} for ${view?.status ?? "unknown"} of generation ${view?.generation}, it is alive of ${generation}`;
      if (truth === null && view?.status === "alive") return `${name} holds ${other} for alive`;
    }
    if (state.digest !== running[0]?.state?.digest) return `${name} has another digest than ${running[0]?.name}`;
  }
  return null;
};
