import type { Uid } from "../../model/cell/identifiers.ts";
import { actualKey } from "../documents/vocabulary.ts";
import { cellOfController, progress, publishValue, sameJson, toJson } from "../outbox.ts";
import { type NetworkViewManagerOptions, type NetworkViewState, rulesDigest, unheardOf } from "./state.ts";
import { type Beyond, whyBeyond } from "./too-many-rules.ts";

export const groupKey = "security-group/";

/** How far the rules of groups are. A host that has put a later view in place has them, too. */
export function sayGroups(state: NetworkViewState, options: NetworkViewManagerOptions, beyond: Beyond): void {
  const unheard = unheardOf(state, options);
  for (const [uid, { client, document }] of state.groups) {
    const rules = rulesDigest(document);
    const noted = state.groupSince.get(uid);
    const since = noted !== undefined && sameJson(toJson(noted.rules), toJson(rules)) ? noted.version : null;
    const behind = [
      ...unheard,
      ...[...state.said].flatMap(([host, { version }]) => (since !== null && version < since ? [host] : [])),
    ];
    const tooMany = beyond.get(uid);
    const why =
      tooMany !== undefined
        ? `${whyBeyond[tooMany]}: until there are fewer nobody is let in here`
        : since === null
          ? "there is no view of the network yet: no configuration, or no host in one of its clusters"
          : behind.length === 0
            ? null
            : `${behind.sort().slice(0, 3).join(", ")} ${behind.length === 1 ? "has" : "have"} yet to put view ${since} in place`;
    publishValue(state.outbox, actualKey(client, `${groupKey}${uid}`), {
      ...progress(why === null ? "ready" : "waiting", why),
      rules,
      id: state.ids.of("sg", uid),
    });
  }
}

/** Only once who may have something has said so: of each cell its controller, since those of cells on no mode never speak here. */
export function sweepIds(state: NetworkViewState, options: NetworkViewManagerOptions): void {
  const { book, ids, wanted, groups, unread, controllers, complete, said } = state;
  if (book.recovery !== null || unread.size > 0) return;
  state.isIdDue = false;
  const inBook = new Set([
    ...[...book.instances.values()].flatMap((instance) => [instance.id, ...instance.groups]),
    ...[...book.addresses.values()].flatMap(({ instance, segment }) => [instance ?? "", segment ?? ""]),
    ...book.segments.keys(),
  ]);
  const unsaid = new Set(
    [...controllers].flatMap((each) => (complete.has(each) ? [] : (cellOfController(each) ?? []))),
  );
  const mayBeNamed = (cell: string | null): boolean => (cell === null ? unsaid.size > 0 : unsaid.has(cell));
  const isHeld = (uid: Uid, id: string): boolean =>
    wanted.has(uid) || groups.has(uid) || inBook.has(id) || mayBeNamed(ids.cellOf(uid));
  const versions = [...said.values()].map(({ version }) => version);
  const everywhere = unheardOf(state, options).length > 0 || versions.length === 0 ? null : Math.min(...versions);
  ids.sweep(isHeld, book.version, everywhere);
}
