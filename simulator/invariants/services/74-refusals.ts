import { isObject } from "../../../core/outbox.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Invariant } from "../invariant.ts";

/**
 * The first few refusals of each part of the cloud have a record in the audit of `tenancy`, whatever is refused to others, as long as those are
 * of a few domains; and what is written of a refusal, at whatever service, takes nothing of what is kept of changes. What was asked and answered, and
 * what was written with it, is seen at the service itself.
 */
const tenancy = peerName("tenancy");
const [few, fewParts] = [5, 4];
const [ofChange, ofRefusal] = [/^audit\/\d+$/, /^audit-refusals\/\d+$/];

export const refusals: Invariant = {
  number: 74,
  title: "nobody's refusals keep another's, or a change, out of the audit",
  watch: ({ kernel }, verdict) => {
    /** Refusals, by the domain or account right below the root. */
    const ofPart = new Map<string, number>();
    const sessions = new Map<string, { readonly label: string; readonly part: string }>();
    kernel.watchers.push({
      stepped: (who, _input, effects) => {
        const written = effects.filter((effect) => effect.kind === "write");
        const refused = written.find(({ value }) => isObject(value) && value.outcome === "refused");
        if (refused === undefined) return;
        // One step may answer several: a change that it takes has a record, too, in whose stead the oldest one may go.
        const records = written.filter(({ key }) => ofChange.test(key));
        const isDone = ({ value }: (typeof written)[number]): boolean => isObject(value) && value.outcome !== "refused";
        const taken = records.find((each) => !isDone(each) && !(each.value === null && records.some(isDone)));
        verdict.check(
          taken === undefined,
          () => `${who} refused something, and with that ${taken?.key} of its changes was written or removed`,
        );
      },
    });
    kernel.watchers.push({
      stepped: (who, input, effects) => {
        if (who !== tenancy || input.kind !== "request" || !isObject(input.request)) return;
        const { kind, by, session } = input.request;
        const reply = effects.find((effect) => effect.kind === "reply");
        const { status = 0, body } = isObject(reply?.response) ? reply.response : {};
        if (kind === "login-end" && status === 201 && isObject(body) && isObject(body.user)) {
          const { name, domain, account } = body.user;
          const part = String(account).split("/").slice(0, 2).join("/");
          sessions.set(String(session), { label: `${name}@${domain}`, part });
        }
        const asker = isObject(by) ? sessions.get(String(by.session)) : undefined;
        // Who is not known is a stranger.
        if (kind !== "ask" || asker === undefined || Number(status) < 400 || status === 401) return;
        const count = (ofPart.get(asker.part) ?? 0) + 1;
        ofPart.set(asker.part, count);
        if (count > few || ofPart.size > fewParts) return;
        const record = effects.find((effect) => effect.kind === "write" && ofRefusal.test(effect.key));
        const written = record?.kind === "write" && isObject(record.value) ? record.value : {};
        verdict.check(
          written.outcome === "refused" && written.who === asker.label,
          () =>
            `${asker.label} was refused, which is number ${count} of ${asker.part}, and the audit has no record of it`,
        );
      },
    });
    return undefined;
  },
};
