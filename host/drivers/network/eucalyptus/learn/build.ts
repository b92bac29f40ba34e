import { programBuild } from "../../diverter/program/build.ts";

/** Compiles learn.c; the object is committed with the record of what it was made from. `node build.ts` renews both. */
export const { sourceHash, readRecord, compile, renew } = programBuild(import.meta.dirname, "learn");

if (import.meta.main) renew();
