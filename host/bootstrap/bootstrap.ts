import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type BootstrapModel, bootstrapModel } from "../../core/bootstrap/bootstrap-model.ts";
import type { DesiredVm } from "../../core/documents/vocabulary.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import { bundleMediaType } from "../../model/api.ts";
import type { Bundle, Cell } from "../../model/cell/cell.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { readSpecification } from "../../model/specification/specification.ts";
import { peerRequest } from "../../runtime/http/https.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { heapOptions } from "../../runtime/life/heap.ts";
import { makeDirectoryDurably } from "../../runtime/process/durable-files.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { type RestoredBirth, readRestoredBirth } from "./bootstrap-restored.ts";
import { birthConfigurations, birthDirectory, birthFiles } from "./bootstrap-roles.ts";

/**
 * How an installation comes to run in itself (decision 31), carried out by the Host Manager of one host. What was reached
 * is durable, so that a Host Manager that ends in the middle goes on where it was:
 *
 *   process       a child runs the services that make the first VM; the bootstrap model is submitted to them
 *   handing-over  the child has ended for good; the VM gets its stores at every start until it has answered
 *   done          the whole root specification was accepted by the controller in the VM; the stores here are gone
 */
export interface Bootstrap {
  /** What the VM that takes over finds on its seed volume; null for every other, and once it has answered. */
  birth(desired: DesiredVm): Promise<Readonly<Record<string, Buffer>> | null>;
  /** Ends the child; what is not done is taken up at the next start. */
  close(): Promise<void>;
}
export interface BootstrapOptions {
  readonly configuration: ProcessConfiguration;
  readonly log: (event: EventName, fields: { readonly [key: string]: Json }) => void;
}

type Stage = "process" | "handing-over" | "done";
/** File `bootstrap/progress.json` of the host's directory: `cells up` shows the steps as they come. */
export interface BootstrapProgress {
  readonly stage: Stage;
  /** What was done, oldest first; `at`: milliseconds since 1970. */
  readonly steps: readonly { readonly at: number; readonly text: string }[];
  /** What it waits for now; null: nothing is wrong. */
  readonly trouble: string | null;
}
export const progressFile = (directory: string): string => join(directory, "bootstrap", "progress.json");

const childProgram = fileURLToPath(new URL("../../runtime/service-vm/bootstrap-main.ts", import.meta.url));
const rootController = peerName("controller.root");
const retryMs = 1000;
const run = promisify(execFile);

/** Null where the configuration has no part `bootstrap`. Rejects with what is wrong with the root specification. */
export const startBootstrap = async (options: BootstrapOptions): Promise<Bootstrap | null> => {
  const { configuration } = options;
  if (configuration.bootstrap === undefined) return null;
  const bundle = await readBundle(configuration.bootstrap.specificationFile);
  const birth = new Birth(options, bundle, modelOf(bundle));
  await birth.start();
  return birth;
};

/** The file, and what lies beside it and may be included. */
export const readBundle = async (file: string): Promise<Bundle> => {
  const names = (await readdir(dirname(file))).filter((name) => extname(name) === extname(file));
  const texts = names.map(async (name) => [name, await readFile(join(dirname(file), name), "utf8")] as const);
  return { main: basename(file), files: Object.fromEntries(await Promise.all(texts)) };
};

/** Of a root specification. Throws a sentence that says what is wrong with it, and where. */
export const readRoot = (bundle: Bundle): Cell => {
  const cell = readSpecification(bundle);
  if (cell.ok) return cell.value;
  const [fault] = cell.error;
  throw new Error(`${fault?.position?.file ?? bundle.main}, line ${fault?.position?.line ?? "?"}: ${fault?.message}`);
};

const modelOf = (bundle: Bundle): BootstrapModel => {
  const model = bootstrapModel(readRoot(bundle));
  if (!model.ok) throw new Error(`${bundle.main}: ${model.error}`);
  return model.value;
};

class Birth implements Bootstrap {
  readonly #options: BootstrapOptions;
  readonly #bundle: Bundle;
  readonly #model: BootstrapModel;
  readonly #directory: string;
  #progress: BootstrapProgress = { stage: "process", steps: [], trouble: null };
  /** It goes on from a backup: the root controller has its whole model, and nothing is submitted to it. */
  #restored: RestoredBirth | null = null;
  #child: ChildProcess | null = null;
  #handingOver: Promise<void> | null = null;
  /** The child runs, or will never run again. */
  readonly #begun = Promise.withResolvers<void>();
  readonly #closing = new AbortController();
  /** All that goes on in the background. */
  #work: Promise<void> = Promise.resolve();

  constructor(options: BootstrapOptions, bundle: Bundle, model: BootstrapModel) {
    this.#options = options;
    this.#bundle = bundle;
    this.#model = model;
    this.#directory = join(options.configuration.directory, "bootstrap");
  }

  async start(): Promise<void> {
    await makeDirectoryDurably(this.#directory, 0o700);
    this.#restored = await readRestoredBirth(this.#options.configuration.directory);
    const file = progressFile(this.#options.configuration.directory);
    if (existsSync(file)) this.#progress = JSON.parse(await readFile(file, "utf8")) as BootstrapProgress;
    const { stage } = this.#progress;
    if (stage !== "process") {
      this.#begun.resolve();
      // An earlier life may have ended before it came to this.
      await this.#setAddress("del");
    }
    if (stage === "done") return;
    this.#work = (stage === "process" ? this.#runProcess() : this.#grow()).catch((error: Error) => {
      if (!this.#closing.signal.aborted) this.#options.log("bootstrap/failed", { why: error.message });
    });
  }

  async birth(desired: DesiredVm): Promise<Readonly<Record<string, Buffer>> | null> {
    if (desired.restart !== "host" || this.#progress.stage === "done") return null;
    await this.#begun.promise;
    // A start that failed is repeated, and finds the child gone.
    this.#handingOver ??= this.#handOver(desired);
    await this.#handingOver;
    return birthFiles(this.#options.configuration);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#begun.resolve();
    await this.#endChild();
    await this.#work;
  }

  async #say(text: string, stage: Stage = this.#progress.stage): Promise<void> {
    this.#options.log("bootstrap/step", { text });
    const steps = [...this.#progress.steps, { at: Date.now(), text }];
    await this.#save({ stage, steps, trouble: null });
  }
  async #save(progress: BootstrapProgress): Promise<void> {
    this.#progress = progress;
    await replaceFile(progressFile(this.#options.configuration.directory), `${JSON.stringify(progress, null, 2)}\n`);
  }
  /** Said once each. */
  async #trouble(why: string): Promise<void> {
    if (this.#progress.trouble === why) return;
    this.#options.log("bootstrap/waits", { why });
    await this.#save({ ...this.#progress, trouble: why });
  }

  async #runProcess(): Promise<void> {
    const { configuration } = this.#options;
    const { address } = this.#model;
    await this.#setAddress("add");
    const rolesFile = join(this.#directory, "roles.json");
    const roles = await birthConfigurations(configuration, address);
    await replaceFile(rolesFile, JSON.stringify(roles));
    await this.#startChild(rolesFile);
    await this.#say(
      `the authority, the root controller, the Storage Manager and the Placer run as a process, at ${address}`,
    );
    if (this.#restored !== null) {
      await this.#say(`they go on from the backup of ${this.#restored.from}: ${this.#model.vm} is made anew`);
      return;
    }
    await this.#submit(
      "the part of the root cell that makes the first VM",
      { "content-type": "application/json" },
      JSON.stringify(this.#model.document),
    );
    await this.#say(`the bootstrap model was accepted: ${this.#model.vm} is made`);
  }

  /** Resolves when all roles run. A child that ends before it is ended is started again. */
  async #startChild(rolesFile: string): Promise<void> {
    for (;;) {
      this.#closing.signal.throwIfAborted();
      const child = spawn(
        process.execPath,
        ["--disable-warning=ExperimentalWarning", ...heapOptions, childProgram, rolesFile],
        {
          stdio: ["ignore", "inherit", "inherit", "ipc"],
        },
      );
      this.#child = child;
      const ended = new Promise<string>((resolve) => {
        child.once("error", (error) => resolve(error.message));
        child.once("exit", (code, signal) => resolve(`it ended with ${signal ?? code}`));
      });
      const running = new Promise<null>((resolve) => child.once("message", () => resolve(null)));
      const why = await Promise.race([running, ended]);
      if (why === null) {
        this.#begun.resolve();
        ended.then(() => {
          if (this.#child !== child || this.#progress.stage !== "process" || this.#closing.signal.aborted) return;
          this.#work = this.#work.then(() => this.#startChild(rolesFile)).catch(() => undefined);
        });
        return;
      }
      await this.#trouble(`the services of the bootstrap did not start: ${why}`);
      await sleep(retryMs, undefined, { signal: this.#closing.signal });
    }
  }

  /** As by a crash: what they say to others stays said until their next life in the VM. */
  async #endChild(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async #handOver(desired: DesiredVm): Promise<void> {
    if (this.#progress.stage === "handing-over") return;
    await this.#save({ ...this.#progress, stage: "handing-over" });
    await this.#endChild();
    await this.#setAddress("del");
    await this.#say(`the process has ended, and ${desired.path} starts with its stores, at the same address`);
    const before = this.#work;
    this.#work = before.then(() => this.#grow()).catch(() => undefined);
  }

  async #grow(): Promise<void> {
    if (this.#restored === null) {
      await this.#submit(
        "the root cell's specification",
        { "content-type": bundleMediaType },
        JSON.stringify(this.#bundle),
      );
      await this.#say(`the controller in ${this.#model.vm} has accepted the whole of ${this.#bundle.main}`, "done");
    } else {
      await this.#untilTaken("the controller in its VM does not answer yet", { method: "GET" });
      await this.#say(`the controller in ${this.#model.vm} has the root cell as it was in the backup`, "done");
    }
    await rm(birthDirectory(this.#options.configuration), { recursive: true, force: true });
  }

  /** Until it is accepted. Nothing is lost by asking again: the same model changes nothing. */
  #submit(what: string, headers: Readonly<Record<string, string>>, body: string): Promise<void> {
    return this.#untilTaken(`${what} is not accepted yet`, { method: "PUT", headers, body });
  }
  async #untilTaken(
    trouble: string,
    { headers = {}, ...asked }: { method: string; headers?: Readonly<Record<string, string>>; body?: string },
  ): Promise<void> {
    const { configuration } = this.#options;
    const credential = (await readFile(configuration.bootstrap?.credentialFile ?? "", "utf8")).trim();
    for (;;) {
      this.#closing.signal.throwIfAborted();
      const refused = await peerRequest(configuration, rootController, {
        ...asked,
        path: "/cells/root/model",
        signal: this.#closing.signal,
        headers: { ...headers, authorization: `Bearer ${credential}` },
      }).then(
        async (answer) => (answer.status === 200 ? null : `${answer.status} ${(await answer.text()).slice(0, 2000)}`),
        (error: Error) => error.message,
      );
      if (refused === null) return;
      await this.#trouble(`${trouble}: ${refused}`);
      await sleep(retryMs, undefined, { signal: this.#closing.signal });
    }
  }

  /** Of the process, until the VM has it. */
  async #setAddress(verb: "add" | "del"): Promise<void> {
    const { host } = this.#options.configuration;
    const device = host?.bridge ?? host?.uplink ?? "";
    const address = `${this.#model.address}/32`;
    const held = await run("ip", ["-o", "address", "show", "dev", device, "to", address]);
    if ((held.stdout.trim() === "") === (verb === "del")) return;
    await run("ip", ["address", verb, address, "dev", device]);
  }
}
