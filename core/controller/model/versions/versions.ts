import type { BundleBody } from "../../../../model/api.ts";
import { isoTime } from "../../../../model/cell/iso-time.ts";
import type { ModelSource, ModelVersion, ModelVersions } from "../../../../model/contract/versions.ts";
import type { Json } from "../../../../model/json/json.ts";
import type { Plan } from "../../../../model/plan/plan-types.ts";
import { fail, ok, type Result } from "../../../../model/result.ts";
import { isObject, sameJson, toJson, write } from "../../../outbox.ts";
import type { ControllerState } from "../../state.ts";
import { type Asked, type Asker, actorIn } from "../audited.ts";

/**
 * The texts that a model was made from. Its document is canonical JSON, which has neither templates nor comments, so whoever wants to see,
 * compare or return to what somebody wrote needs the text. Each version of the model has a record, written in the transaction that makes it: who sent
 * it, what its plan did, and its text if it came as one. A patch, or a part that was put or taken away, has none and is named.
 *
 * Nothing rests on these records: a store without them, or with some of them, as an earlier version leaves it, is as good. Numbers of versions
 * have no gaps, so what is not kept shows.
 *
 * A text holds what was in the model then. When all of the model is deleted the texts go with it.
 */

/** Of a cell: versions with a text and without one, and characters of all texts. What goes first is what is oldest; the newest text stays. */
export const keptVersions = { texts: 20, others: 100, characters: 4 * 1024 * 1024, parts: 100 } as const;

interface Person {
  readonly who: string;
  readonly account?: string;
}
interface VersionRecord extends Person {
  readonly version: number;
  readonly wallMs: number;
  readonly verb: string;
  readonly target: string;
  readonly changes: ModelVersion["changes"];
  readonly parts: ModelVersion["parts"];
  readonly lost?: readonly string[];
  readonly text?: BundleBody;
  readonly sent?: Person & { readonly wallMs: number };
}
/** Record `versions`: those that are kept, oldest first, and how long the text of each is; 0: it has none. */
interface Index {
  readonly kept: readonly Kept[];
}
interface Kept {
  readonly version: number;
  readonly characters: number;
}
const indexKey = "versions";
const keyOf = (version: number): string => `version/${version}`;

const indexIn = ({ outbox }: ControllerState): readonly Kept[] =>
  (outbox.records.get(indexKey) as unknown as Index | undefined)?.kept ?? [];
const recordIn = ({ outbox }: ControllerState, version: number): VersionRecord | undefined =>
  outbox.records.get(keyOf(version)) as unknown as VersionRecord | undefined;

/** What a whole model was sent as; undefined: as no text. What is evaluated of a text is made of it again. */
export function textOf(method: string, path: string, bundle: BundleBody | undefined, json: Json | undefined) {
  if (method !== "PUT" || path !== "") return undefined;
  if (bundle !== undefined) return { main: bundle.main, files: bundle.files };
  if (!isObject(json)) return undefined;
  return { main: "model.json", files: { "model.json": `${JSON.stringify(json, null, 2)}\n` } };
}
const lengthOf = ({ files }: BundleBody): number =>
  Object.entries(files).reduce((sum, [name, text]) => sum + name.length + text.length, 0);

const personOf = (state: ControllerState, by: Asker | undefined): Person => {
  const { who, account } = actorIn(state, by);
  return { who, ...(account === undefined ? {} : { account }) };
};

/** To be called in the step that takes in a model, after that has its new number. */
export function keepVersion(state: ControllerState, plan: Plan, { by, verb, target, text }: Asked): void {
  // Changes of the root cell name accounts and their cells, of which nothing may be left once they have gone: its texts alone are kept.
  if (state.options.root !== undefined && text === undefined) return;
  const { version, document } = state.model;
  const changed = plan.steps.filter(({ action }) => action !== "none");
  const changes: Record<string, number> = {};
  for (const { action } of changed) changes[action] = (changes[action] ?? 0) + 1;
  const lost = changed.filter(({ losesData }) => losesData).map(({ path }) => path);
  const kept: VersionRecord = {
    version,
    wallMs: state.now.wallMs,
    ...personOf(state, by),
    verb,
    target: target === "" ? state.options.cell : target,
    changes,
    parts: [...(plan.cell === undefined ? [] : [plan.cell]), ...changed]
      .slice(0, keptVersions.parts)
      .map(({ path, action }) => ({ path, action })),
    ...(lost.length === 0 ? {} : { lost: lost.slice(0, keptVersions.parts) }),
    ...(text === undefined ? {} : { text }),
  };
  write(state.outbox, keyOf(version), kept);
  // A store that was put back may have made this number before.
  const before = indexIn(state).filter((each) => each.version < version);
  for (const each of indexIn(state)) if (each.version > version) write(state.outbox, keyOf(each.version), null);
  bound(state, [...before, { version, characters: text === undefined ? 0 : lengthOf(text) }], document === null);
}

/** The model stays as it is, and its text is another one: a comment was written, or a change that was made by a patch. */
export function keepText(state: ControllerState, text: BundleBody, by: Asker | undefined): void {
  const { version } = state.model;
  const before = recordIn(state, version);
  if (before?.text !== undefined && sameJson(toJson(before.text), toJson(text))) return;
  const sent = { ...personOf(state, by), wallMs: state.now.wallMs };
  const record: VersionRecord =
    before === undefined
      ? { version, ...sent, verb: "putModel", target: state.options.cell, changes: {}, parts: [], text }
      : { ...before, text, sent };
  write(state.outbox, keyOf(version), record);
  const others = indexIn(state).filter((each) => each.version !== version);
  bound(state, [...others, { version, characters: lengthOf(text) }], false);
}

/** @param isDeleted the model is; its texts go */
function bound(state: ControllerState, kept: readonly Kept[], isDeleted: boolean): void {
  const room = {
    texts: keptVersions.texts,
    others: keptVersions.others,
    characters: keptVersions.characters as number,
  };
  const newestText = kept.findLast(({ characters }) => characters > 0);
  const stay: Kept[] = [];
  for (const each of kept.toReversed()) {
    const isText = each.characters > 0;
    if (isText) {
      room.texts -= 1;
      room.characters -= each.characters;
    } else room.others -= 1;
    const fits = isText ? room.texts >= 0 && (room.characters >= 0 || each === newestText) : room.others >= 0;
    if (fits && !(isText && isDeleted)) stay.unshift(each);
    else write(state.outbox, keyOf(each.version), null);
  }
  write(state.outbox, indexKey, { kept: stay } satisfies Index);
}

function shown({ wallMs, text, sent, ...record }: VersionRecord): ModelVersion {
  return {
    ...record,
    time: isoTime(wallMs),
    ...(text === undefined ? {} : { text: { main: text.main, characters: lengthOf(text) } }),
    ...(sent === undefined ? {} : { sent: sentAs(sent) }),
  };
}
const sentAs = ({ wallMs, ...person }: Person & { readonly wallMs: number }): Person & { readonly time: string } => ({
  ...person,
  time: isoTime(wallMs),
});

const recordsOf = (state: ControllerState): readonly VersionRecord[] =>
  indexIn(state).flatMap(({ version }) => recordIn(state, version) ?? []);

/** The versions that are kept, the last one first. */
export const versionsOf = (state: ControllerState): ModelVersions => ({
  version: state.model.version,
  versions: recordsOf(state).map(shown).toReversed(),
});

/**
 * The text of a version, or the newest one that is kept.
 * @returns what changed the model in other ways since then; or, where there is no such text, a sentence that says why
 */
export function sourceOf(state: ControllerState, asked?: number): Result<ModelSource, string> {
  // An earlier version deletes a model without its texts.
  const records = state.model.document === null ? [] : recordsOf(state);
  const texts = records.filter(({ text }) => text !== undefined);
  const found = asked === undefined ? texts.at(-1) : texts.find(({ version }) => version === asked);
  if (found?.text === undefined) return fail(whyNoText(state, asked, records));
  const { version, text, who, account, wallMs, sent } = found;
  const since = records.filter((each) => each.version > version && each.text === undefined).map(shown);
  const later = records.filter((each) => each.version > version).length;
  return ok({
    main: text.main,
    files: text.files,
    version,
    ...sentAs(sent ?? { who, wallMs, ...(account === undefined ? {} : { account }) }),
    since,
    unknown: Math.max(0, state.model.version - version - later),
  });
}

function whyNoText({ options, model }: ControllerState, asked: number | undefined, records: readonly VersionRecord[]) {
  const { cell } = options;
  const texts = records.flatMap(({ version, text }) => (text === undefined ? [] : [version]));
  if (texts.length === 0 && model.document === null) return `the cell ${cell} has no model, and no text is kept of it`;
  if (texts.length === 0)
    return `no text is kept of the cell ${cell}: its model was sent before texts were kept, or was made by parts and patches. The next specification that is sent for it is kept`;
  const there = `there are texts of ${texts.join(", ")}`;
  if (asked === undefined || asked > model.version)
    return `the model of ${cell} has not had the version ${asked} yet, it has ${model.version}; ${there}`;
  const known = records.find(({ version }) => version === asked);
  return known === undefined
    ? `the version ${asked} of ${cell} is not kept any more; ${there}`
    : `the version ${asked} of ${cell} has no text: ${known.who} made it by ${known.verb} of ${known.target}; ${there}`;
}
