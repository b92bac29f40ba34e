import { useEffect, useState, useSyncExternalStore } from "react";
import { type Known, store } from "../data/store.ts";
import { addressOf, type Place, placeOf } from "../state/place.ts";

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
export function go(place: Exclude<Place, { readonly page: "unknown" }>): void {
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
