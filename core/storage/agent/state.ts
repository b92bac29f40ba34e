import type { Uid } from "../../../model/cell/identifiers.ts";
import type { Restored } from "../../env.ts";
import { createBeats } from "../heartbeat/beats.ts";
import { createRequests } from "../heartbeat/requests.ts";
import { createEvidence } from "../succession-evidence.ts";
import { restoredMarks } from "./mark.ts";
import { restoredOwners } from "./owners.ts";
import type { AgentState } from "./records.ts";
import type { AgentOptions, LeaseRecord, OriginRecord, VolumeRecord } from "./work.ts";

/** As its store has it; what its clients desire is told to it before it starts. */
export function restoreAgent(options: AgentOptions, restored: Restored): AgentState {
  const volumes = new Map<Uid, VolumeRecord>();
  const leases = new Map<Uid, LeaseRecord>();
  const origins = new Map<Uid, OriginRecord>();
  const portsInUse = new Set<number>();
  for (const [key, value] of restored.records) {
    const uid = key.slice(key.indexOf("/") + 1) as Uid;
    if (key.startsWith("volume/")) volumes.set(uid, value as unknown as VolumeRecord);
    if (key.startsWith("lease/")) leases.set(uid, value as unknown as LeaseRecord);
    if (key.startsWith("readers/")) origins.set(uid, value as unknown as OriginRecord);
  }
  for (const record of [...leases.values(), ...origins.values()])
    if (record.access !== null) portsInUse.add(record.access.port);
  return {
    options,
    started: false,
    desired: { volume: new Map(), lease: new Map(), readers: new Map(), succession: new Map() },
    evidence: createEvidence(leases),
    beats: createBeats(),
    requests: createRequests(),
    volumes,
    leases,
    origins,
    owners: restoredOwners(volumes),
    promisedMiB: new Map(),
    space: null,
    heldBack: new Set(),
    portsInUse,
    failures: new Map(),
    badImages: new Set(),
    usedMiB: new Map(),
    missing: new Set(),
    images: new Set(),
    bin: null,
    marks: restoredMarks(restored.records.get("mark")),
    work: new Map(),
    workVersion: 1,
    waiting: [],
    published: new Map(),
  };
}
