import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";

const isObject = (json: Json | undefined): json is { readonly [key: string]: Json } =>
  typeof json === "object" && json !== null && !Array.isArray(json);

/** Is this UID, whole, anywhere in it? */
const names = (json: Json, uid: string): boolean =>
  json === uid ||
  (Array.isArray(json) && json.some((each) => names(each, uid))) ||
  (isObject(json) && Object.values(json).some((each) => names(each, uid)));

/**
 * When an account's record goes, no cell is there that was its: neither in the root cell's model nor as a process. And when everything is at
 * rest, no account is ending any more, and no store of any process has the UID of one that has gone, or of its users: but for what was recorded of
 * who did what. Looked at from outside, in what is durable.
 */
export const endedAccounts: Invariant = {
  number: 72,
  title: "a deleted account goes last, and leaves nothing",
  watch: ({ kernel, installation }, verdict) => {
    const pathOf = new Map<string, string>();
    const gone = new Set<string>();
    const accountOfUser = new Map<string, string>();
    /** By cell, as the root cell's model had it last. */
    const accountOfCell = new Map<string, string>();
    const noteRoot = (value: Json): void => {
      const document = isObject(value) ? value.document : null;
      const [root] = Object.values(isObject(document) ? document : {});
      for (const [name, each] of Object.entries(isObject(root) ? root : {}))
        if (isObject(each) && typeof each["x.account"] === "string") accountOfCell.set(name, each["x.account"]);
    };
    const left = (path: string): readonly string[] =>
      [...accountOfCell].flatMap(([cell, account]) =>
        account === path && [...installation.processes.keys()].some((each) => each === `controller.${cell}`)
          ? [cell]
          : [],
      );
    kernel.watchers.push({
      stepped: (who, _input, effects) => {
        for (const effect of effects) {
          if (effect.kind !== "write") continue;
          if (who === "controller.root" && effect.key === "model") noteRoot(effect.value);
          if (who !== "tenancy") continue;
          const [kind, uid = ""] = effect.key.split("/");
          if (kind === "user" && isObject(effect.value)) accountOfUser.set(uid, String(effect.value.account));
          if (kind !== "account") continue;
          if (isObject(effect.value)) pathOf.set(uid, `ROOT/${effect.value.name}`);
          else {
            const path = pathOf.get(uid) ?? "";
            gone.add(uid);
            const cells = left(path);
            verdict.check(cells.length === 0, () => `${path} has gone, and its cells ${cells.join(", ")} are there`);
          }
        }
      },
    });
    return () => {
      const stores = [...installation.processes.values()].map(({ name, disk }) => ({ name, records: disk.load() }));
      for (const [uid, path] of pathOf) {
        const [record] = stores.flatMap(({ name, records }) =>
          name === "tenancy" ? [records.get(`own/account/${uid}`)] : [],
        );
        verdict.check(!isObject(record) || record.deleting !== true, () => `${path} has not ended`);
      }
      for (const account of gone) {
        const users = [...accountOfUser].flatMap(([user, of]) => (of === account ? [user] : []));
        for (const uid of [account, ...users])
          for (const { name, records } of stores) {
            const keys = [...records].flatMap(([key, value]) =>
              !/(^|\/)audit/.test(key) && (key.split("/").includes(uid) || names(value, uid)) ? [key] : [],
            );
            verdict.check(keys.length === 0, () => `${name} still has ${keys.join(", ")} of ${pathOf.get(account)}`);
          }
      }
    };
  },
};
