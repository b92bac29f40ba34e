import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { Asker } from "../../model/contract/actions/actions.ts";
import type { SignedIn } from "../../model/contract/tenancy/sign-in.ts";
import type { WhoAmI } from "../../model/contract/tenancy/tenancy.ts";
import { ask } from "../data/api.ts";
import { type Known, store } from "../data/store.ts";
import { addressOf, type Place, placeOf, type Target } from "../state/place.ts";

export const useKnown = (): Known => useSyncExternalStore(store.subscribe, store.get);

const moved = "cells-moved";
const here = (): string => `${location.pathname}${location.search}`;
const subscribe = (listener: () => void): (() => void) => {
  for (const event of ["popstate", moved]) addEventListener(event, listener);
  return () => {
    for (const event of ["popstate", moved]) removeEventListener(event, listener);
  };
};
export function usePlace(): Place {
  const address = useSyncExternalStore(subscribe, here);
  const [path = "", query] = address.split("?");
  return placeOf(path, query);
}
export function go(place: Target): void {
  const address = addressOf(place);
  if (address === here()) return;
  history.pushState(null, "", address);
  dispatchEvent(new Event(moved));
}

/** The time, each so many ms. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** What was asked of the gateway, anew whenever `key` is another one. */
export interface Asked<T> {
  /** Null: it has not come yet. */
  readonly value: T | null;
  /** Why the last attempt brought nothing, a sentence; null: it did. */
  readonly failed: string | null;
  readonly again: () => Promise<void>;
}
export function useAsked<T>(key: string, work: () => Promise<T>): Asked<T> {
  const [state, setState] = useState<{ readonly value: T | null; readonly failed: string | null }>({
    value: null,
    failed: null,
  });
  const last = useRef(0);
  const again = async (): Promise<void> => {
    last.current += 1;
    const mine = last.current;
    const next = await work().then(
      (value) => ({ value, failed: null }),
      (error: Error) => ({ failed: error.message }),
    );
    // What was asked before and comes later is older.
    if (mine === last.current) setState((before) => ({ ...before, ...next }));
  };
  useEffect(() => void again(), [key]);
  return { ...state, again };
}

let known: { readonly of: string; readonly asker: Promise<Asker> } | null = null;
/** Who asks, by which the table of actions decides what he may; null: it is not known yet. */
export function useAsker({ kind, name }: SignedIn): Asker | null {
  const [asker, setAsker] = useState<Asker | null>(kind === "user" ? null : { kind });
  useEffect(() => {
    if (kind !== "user") {
      setAsker({ kind });
      return;
    }
    if (known?.of !== name) {
      const rules = ask("whoAmI", "GET", "/whoami").then(
        ({ value }): Asker => ({ kind, rules: (value as WhoAmI).rules }),
      );
      known = { of: name ?? "", asker: rules };
    }
    void known?.asker.then(setAsker, () => {
      known = null;
    });
  }, [kind, name]);
  return asker;
}
