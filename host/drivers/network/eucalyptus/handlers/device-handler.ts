import { PartlyFailed } from "../../service/mode-driver.ts";
import type { HeardTap, Learner } from "../learn/learn.ts";
import type { LocalPlan } from "../plan/plan.ts";
import type { FoundTag, Tags } from "../tags/tags.ts";
import { type Command, type Devices, deviceChanges, readDevices, vlanOf } from "./devices.ts";
import { isLearningDue, mostTaps, unwatchedTaps, watchedTaps } from "./learning.ts";
import type { Run } from "./run.ts";
import { areTagsDue, probeForm, segmentChanges, type TagForm, tunnelOf, wantedTags } from "./segments.ts";

/** What a plan says of devices, and of the programs at them. */
type Wanted = Pick<
  LocalPlan,
  "bridge" | "bridges" | "wire" | "tunnels" | "taps" | "learns" | "holds" | "forwards" | "filtersBridges"
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
  holds: false,
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
  /**
   * What is of one group or of one tap keeps nothing of others from being made.
   * @returns devices as they were found, where none was touched; null: they have to be read
   */
  async apply(plan: Wanted, found: Found): Promise<Devices | null> {
    const trouble = new Trouble(plan);
    // A tap is a port of a group's bridge.
    const areSegmentsSame = await this.#segments(plan, found, trouble);
    const changes = deviceChanges(plan, found.devices);
    await this.#runAll(changes, trouble);
    const now = areSegmentsSame && changes.length === 0 ? found.devices : null;
    await this.#listen(plan, found, now, trouble);
    trouble.end();
    return now;
  }
  async clear(found: Found): Promise<void> {
    const trouble = new Trouble(nothing);
    await this.#runAll(deviceChanges(nothing, found.devices), trouble);
    await this.#listen(nothing, found, null, trouble);
    await this.#segments(nothing, found, trouble);
  }
  /** Whether all devices were there, and no others. */
  async #segments(plan: Wanted, { devices, tags: before }: Found, trouble: Trouble): Promise<boolean> {
    const [run, tags] = [this.#run, this.#tags];
    if (plan.bridges.length > 0) this.#form ??= await probeForm(run, plan.wire);
    const form = this.#form;
    if (form === "program" && tags === undefined)
      throw new Error("the kernel has no devices for VLANs (802.1Q), and nothing else gives tags on this machine");
    const changes = segmentChanges(plan, devices, form);
    await this.#runAll(changes, trouble);
    const isSame = changes.length === 0;
    if (tags !== undefined && (form === "program" || before.length > 0))
      await tags.apply(wantedTags(plan, isSame ? devices : await readDevices(run)));
    return isSame;
  }
  /** @param now null: devices have changed since they were read */
  async #listen(plan: Wanted, { heard }: Found, now: Devices | null, trouble: Trouble): Promise<void> {
    const isWanted = (plan.learns || plan.holds) && plan.taps.length > 0;
    if (this.#learner === undefined || !(isWanted || heard.length > 0)) return;
    const devices = now ?? (await readDevices(this.#run));
    await this.#learner.apply(watchedTaps(plan, devices));
    for (const name of unwatchedTaps(plan, devices)) trouble.isUnwatched(name);
  }
  async #runAll(commands: readonly Command[], trouble: Trouble): Promise<void> {
    for (const calls of grouped(commands))
      for (let next = 0; next < calls.length; ) next += await this.#some(calls.slice(next), trouble);
  }
  /**
   * What `ip` has to do one behind the other is one call of it: a machine may have a thousand groups. It ends at the first that fails.
   * @returns how many have been made, have failed, or are of what had failed before
   */
  async #some(calls: readonly Command[], trouble: Trouble): Promise<number> {
    const due = calls.filter((call) => !trouble.isOf(call));
    const [first] = due;
    if (first === undefined) return calls.length;
    const [program, ...args] = first;
    const batch = program === "ip" && due.length > 1 ? due : [first];
    try {
      if (batch.length === 1) await this.#run(program, args);
      else await this.#run("ip", ["-batch", "-"], batch.map(([, ...each]) => `${each.join(" ")}\n`).join(""));
      return calls.indexOf(batch.at(-1) ?? first) + 1;
    } catch (error) {
      const { message } = error as Error;
      const line = batch.length === 1 ? 1 : Number(/^Command failed -:(\d+)$/m.exec(message)?.[1] ?? 0);
      const call = batch[line - 1];
      if (call === undefined) throw error;
      trouble.happened(call, error as Error);
      return calls.indexOf(call) + 1;
    }
  }
}
interface Part {
  /** A group's or a tap's. */
  readonly name: string;
  readonly words: string;
}
/** What could not be made, by the group or the tap whose it is; of any other call an error is one of all. */
class Trouble {
  readonly #failed = new Map<string, string>();
  /** By the names of devices. */
  readonly #parts = new Map<string, Part>();

  constructor({ bridges, taps }: Pick<Wanted, "bridges" | "taps">) {
    for (const { name, tag } of bridges)
      for (const device of [name, vlanOf(tag), tunnelOf(tag)])
        this.#parts.set(device, { name, words: `the group ${name} (tag ${tag})` });
    for (const { name } of taps) this.#parts.set(name, { name, words: `the tap ${name}` });
  }
  /** Something before it that is of the same has failed. */
  isOf(call: Command): boolean {
    return this.#failed.has(this.#partOf(call)?.name ?? "");
  }
  happened(call: Command, error: Error): void {
    const part = this.#partOf(call);
    if (part === undefined) throw error;
    const why = error.message.replace(/\nCommand failed -:\d+$/, "");
    this.#failed.set(part.name, `${part.words} is not in place: ${why}`);
  }
  /** Nobody hears what it says, nor holds its requests to its MAC. */
  isUnwatched(tap: string): void {
    const why = `this machine watches the first ${mostTaps} taps, and it is none of these`;
    this.#failed.set(tap, `the tap ${tap} is not watched: ${why}`);
  }
  end(): void {
    if (this.#failed.size > 0) throw new PartlyFailed(this.#failed);
  }
  /** The device that a call is about is named before the bridge whose port it becomes. */
  #partOf(call: Command): Part | undefined {
    return this.#parts.get(call.find((word) => this.#parts.has(word)) ?? "");
  }
}
/** Calls of one program in a row. */
function grouped(commands: readonly Command[]): readonly (readonly Command[])[] {
  const groups: Command[][] = [];
  for (const command of commands) {
    const last = groups.at(-1);
    // The kernel takes up to 0.1 s for a device that goes, and no call lasts for ever.
    if (last?.[0]?.[0] === command[0] && last.length < mostInOne) last.push(command);
    else groups.push([command]);
  }
  return groups;
}
const mostInOne = 200;
