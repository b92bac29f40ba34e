import type { HeardTap, Learner } from "../learn/learn.ts";
import type { LocalPlan } from "../plan/plan.ts";
import type { FoundTag, Tags } from "../tags/tags.ts";
import { type Command, type Devices, deviceChanges, readDevices } from "./devices.ts";
import { isLearningDue, listeners } from "./learning.ts";
import type { Run } from "./run.ts";
import { areTagsDue, probeForm, segmentChanges, type TagForm, wantedTags } from "./segments.ts";

/** What a plan says of devices, and of the programs at them. */
type Wanted = Pick<
  LocalPlan,
  "bridge" | "bridges" | "wire" | "tunnels" | "taps" | "learns" | "forwards" | "filtersBridges"
>;
interface Found {
  readonly devices: Devices;
  readonly tags: readonly FoundTag[];
  readonly heard: readonly HeardTap[];
}
const nothing: Wanted = {
  bridge: null,
  bridges: [],
  wire: "",
  tunnels: [],
  taps: [],
  learns: false,
  forwards: false,
  filtersBridges: null,
};

/** Devices of a machine, with the programs that are at some of them. */
export class DeviceHandler {
  readonly #run: Run;
  readonly #tags: Tags | undefined;
  readonly #learner: Learner | undefined;
  #form: TagForm | undefined;

  constructor({ run, tags, learner }: { readonly run: Run; readonly tags?: Tags; readonly learner?: Learner }) {
    this.#run = run;
    this.#tags = tags;
    this.#learner = learner;
  }
  isDue(plan: Wanted, { devices, tags, heard }: Found): boolean {
    return (
      deviceChanges(plan, devices).length + segmentChanges(plan, devices).length > 0 ||
      areTagsDue(wantedTags(plan, devices), tags) ||
      (this.#learner !== undefined && isLearningDue(plan, devices, heard))
    );
  }
  async apply(plan: Wanted, found: Found): Promise<void> {
    // A tap is a port of a group's bridge.
    await this.#segments(plan, found);
    await this.#runAll(deviceChanges(plan, found.devices));
    await this.#listen(plan, found);
  }
  async clear(found: Found): Promise<void> {
    await this.#runAll(deviceChanges(nothing, found.devices));
    await this.#listen(nothing, found);
    await this.#segments(nothing, found);
  }
  async #segments(plan: Wanted, { devices, tags: before }: Found): Promise<void> {
    const [run, tags] = [this.#run, this.#tags];
    if (plan.bridges.length > 0) this.#form ??= await probeForm(run, plan.wire);
    const form = this.#form;
    if (form === "program" && tags === undefined)
      throw new Error("the kernel has no devices for VLANs (802.1Q), and nothing else gives tags on this machine");
    await this.#runAll(segmentChanges(plan, devices, form));
    if (form === "program" || before.length > 0) await tags?.apply(wantedTags(plan, await readDevices(run)));
  }
  async #listen(plan: Wanted, { heard }: Found): Promise<void> {
    if (plan.learns || heard.length > 0) await this.#learner?.apply(listeners(plan, await readDevices(this.#run)));
  }
  /** What `ip` has to do one behind the other is one call of it: a machine may have a thousand groups. It ends at the first that fails. */
  async #runAll(commands: readonly Command[]): Promise<void> {
    for (const [program, ...calls] of grouped(commands))
      if (program === "ip" && calls.length > 1)
        await this.#run("ip", ["-batch", "-"], calls.map((args) => `${args.join(" ")}\n`).join(""));
      else for (const args of calls) await this.#run(program, args);
  }
}
/** Calls of one program in a row, by its name. */
function grouped(
  commands: readonly Command[],
): readonly (readonly [program: string, ...calls: (readonly string[])[]])[] {
  const groups: [program: string, ...calls: (readonly string[])[]][] = [];
  for (const [program, ...args] of commands) {
    const last = groups.at(-1);
    // The kernel takes up to 0.1 s for a device that goes, and no call lasts for ever.
    if (last?.[0] === program && last.length <= mostInOne) last.push(args);
    else groups.push([program, args]);
  }
  return groups;
}
const mostInOne = 200;
