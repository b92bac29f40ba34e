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
    /** By VM: where room was kept since it moved last. Its controller may act on the last but one, while the next is on its way. */
    const kept = new Map<string, Set<string>>();
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
            // One that is kept for lost VMs takes these: 39 looks at it.
            if (fields.state === "enabled" || fields.state === "reserved") at.delete(host);
            else at.add(host);
          } else if (event === "placement/leaves") {
            const places = kept.get(text(fields.vm)) ?? new Set();
            kept.set(text(fields.vm), places.add(text(fields.to)));
            verdict.check(!at.has(fields.to as HostName), () => `${who} keeps room at ${fields.to}, which is closed`);
          } else if (event === "placement/reserved") {
            const key = `${fields.vm} ${fields.incarnation} ${host}`;
            const isNews = !placed.has(key);
            placed.add(key);
            if (isNews) kept.delete(text(fields.vm));
            if (at.size > 0 && isNews)
              verdict.check(!at.has(host), () => `${who} places ${fields.vm} at ${host}, which is closed`);
          } else if (event === "vm/moves") {
            const isAsked = sentAway.hosts.has(text(fields.from)) || sentAway.vms.has(text(fields.path));
            verdict.check(isAsked, () => `${fields.path} leaves ${fields.from}, and nobody has ever asked for that`);
            const places = [...(kept.get(text(fields.vm)) ?? [])];
            verdict.check(
              places.includes(text(fields.to)),
              () => `${fields.vm} is stopped for ${fields.to}, and room was kept for it at ${places.join(", ")}`,
            );
          }
        }
      },
    });
    return undefined;
  },
};
