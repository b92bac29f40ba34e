import { oneWriter } from "./01-one-writer.ts";
import { noOldWrite } from "./02-no-old-write.ts";
import { numbersGrow } from "./03-numbers-grow.ts";
import { onePlace } from "./04-one-place.ts";
import { presenceNeverFences } from "./06-presence-never-fences.ts";
import { unknownIsNotStopped } from "./07-unknown-is-not-stopped.ts";
import { doneIsSeen } from "./08-done-is-seen.ts";
import { legalTransitions } from "./10-legal-transitions.ts";
import { noRepeatedEffect } from "./11-no-repeated-effect.ts";
import { deadGeneration } from "./14-dead-generation.ts";
import { liveSource } from "./15-live-source.ts";
import { viewsAgree } from "./16-views-agree.ts";
import { refutedNeverDies } from "./17-refuted.ts";
import { room } from "./18-room.ts";
import { reconciled } from "./19-reconciled.ts";
import { rulesBeforePackets } from "./20-rules-before-packets.ts";
import { allOrNone } from "./21-all-or-none.ts";
import { needToKnow } from "./22-need-to-know.ts";
import { neverBackwards } from "./23-never-backwards.ts";
import { heardIsAlive } from "./24-heard-is-alive.ts";
import { quotas } from "./25-quotas.ts";
import { nothingLeft } from "./26-nothing-left.ts";
import { certainEnd } from "./27-certain-end.ts";
import { starts } from "./28-starts.ts";
import { severalPlacers } from "./29-several-placers.ts";
import { rulesInForce } from "./30-rules-in-force.ts";
import { documentsRead } from "./33-documents-read.ts";
import { lostStores } from "./44-lost-stores.ts";
import type { Invariant } from "./invariant.ts";

/** Every invariant that existing code can violate; README.md says why the others are not here. */
export const invariants: readonly Invariant[] = [
  oneWriter,
  noOldWrite,
  numbersGrow,
  onePlace,
  presenceNeverFences,
  unknownIsNotStopped,
  doneIsSeen,
  legalTransitions,
  noRepeatedEffect,
  deadGeneration,
  liveSource,
  viewsAgree,
  refutedNeverDies,
  room,
  reconciled,
  rulesBeforePackets,
  allOrNone,
  needToKnow,
  neverBackwards,
  heardIsAlive,
  quotas,
  nothingLeft,
  certainEnd,
  starts,
  severalPlacers,
  rulesInForce,
  documentsRead,
  lostStores,
];
