import type { HostName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

/**
 * At a host that the operator has closed nothing new is placed, by whoever has heard of it: an incarnation is placed there only if it
 * was placed there before. And a VM is stopped for a move only when some Placer keeps room for it at a host that is not closed. What a
 * Placer has heard, and what it keeps, is read off what it logs and writes. The premise is a placement while some host is closed, and a move.
 */
export const draining: Invariant = {
  number: 41,
  title: "nothing new is placed at a closed host, and who leaves one has room elsewhere",
  watch: ({ kernel, users: { sentAway } }, verdict) => {
    /** By Placer, hosts that it was told are closed. */
    const closed = new Map<string, Set<HostName>>();
    const placed = new Set<string>();
    /** By VM: where room was kept last. */
    const kept = new Map<string, string>();
    const text = (value: Json | undefined): string => String(value);
    kernel.watchers.push({
      // A Placer without its store hears it anew; what it places meanwhile leaves again.
      log: (who, event) => {
        if (event === "store/taken") closed.delete(who);
      },
      stepped: (who, _input, effects) => {
        const at = closed.get(who) ?? new Set<HostName>();
        closed.set(who, at);
        for (const effect of effects) {
          if (effect.kind !== "log") continue;
          const { event, fields } = effect;
          const host = fields.host as HostName;
          if (event === "host/administered") {
            if (fields.state === "enabled") at.delete(host);
            else at.add(host);
          } else if (event === "placement/leaves") {
            kept.set(text(fields.vm), text(fields.to));
            verdict.check(!at.has(fields.to as HostName), () => `${who} keeps room at ${fields.to}, which is closed`);
          } else if (event === "placement/reserved") {
            const key = `${fields.vm} ${fields.incarnation} ${host}`;
            const isNews = !placed.has(key);
            placed.add(key);
            if (at.size > 0 && isNews)
              verdict.check(!at.has(host), () => `${who} places ${fields.vm} at ${host}, which is closed`);
          } else if (event === "vm/moves") {
            const isAsked = sentAway.hosts.has(text(fields.from)) || sentAway.vms.has(text(fields.path));
            verdict.check(isAsked, () => `${fields.path} leaves ${fields.from}, and nobody has ever asked for that`);
            verdict.check(
              kept.get(text(fields.vm)) === fields.to,
              () =>
                `${fields.vm} is stopped for ${fields.to}, and room was kept for it at ${kept.get(text(fields.vm))}`,
            );
          }
        }
      },
    });
    return undefined;
  },
};
