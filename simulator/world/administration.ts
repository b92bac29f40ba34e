import type { Json, JsonObject } from "../../model/json/json.ts";
import { flavor, labelOf, offerings } from "./cell-text.ts";
import type { Installation } from "./installation.ts";

/**
 * The operator's word about hosts, as `cells host drain`, `cells host resume` and `cells move` say it: to the root cell's controller, and to
 * that of a VM's cell. Who gets no answer asks again, until there is one or something else is said.
 */
const askAgainMs = 1000;
const patienceMs = 8000;
/** What a host has is elsewhere by then, or ends by itself. */
const drainsMs = 4000;

/** Hosts that the operator ever had in maintenance, and VMs that he ever had go elsewhere, by their paths in their cells. */
export interface SentAway {
  readonly hosts: Set<string>;
  readonly vms: Set<string>;
}

export class Administration {
  readonly #installation: Installation;
  /** By what it is about, the number of the last word. */
  readonly #last = new Map<string, number>();
  #serial = 0;
  /** All faults have ended: who could not be sent elsewhere until now stays. */
  isHealing = false;

  readonly #sentAway: SentAway;
  readonly #hosts: Record<string, JsonObject> = {};
  readonly #dedications = new Map<string, JsonObject>();
  #flavors: JsonObject | null = null;
  /** By which the root controller knows of further Placers and Storage Managers; they are off, since those are processes here. */
  readonly #services: readonly (readonly [name: string, vm: JsonObject])[];

  constructor(installation: Installation, sentAway: SentAway) {
    this.#installation = installation;
    this.#sentAway = sentAway;
    this.#services = Array.from({ length: installation.history.services - 1 }, (_, index) => {
      const number = index + 2;
      const data = { service: { roles: { placer: { number }, "storage-manager": { number } } } };
      return [`service${number}`, { "x.type": "VM", "x.memory": 16, "x.desiredState": "off", "x.data": data }] as const;
    });
  }

  /** What the root cell's document has of hosts. */
  elements(): JsonObject {
    // A text that dedicates a host names it: after a loss the root controller has no elements that it wrote by itself.
    const dedicated = [...this.#dedications.keys()].map((host) => [host, { "x.type": "Host" }] as const);
    const all: JsonObject = { ...Object.fromEntries(dedicated), ...this.#hosts };
    const hosts: JsonObject = {
      ...(Object.keys(all).length === 0 ? {} : { hosts: all }),
      ...(this.#flavors === null ? {} : { flavors: this.#flavors, offerings }),
      ...Object.fromEntries(this.#services),
    };
    return this.#dedications.size === 0 ? hosts : { ...hosts, dedications: Object.fromEntries(this.#dedications) };
  }

  /** A host is an account's for a while. */
  dedicated([host = "", owner = ""]: readonly string[], lasting: (end: () => void) => void): void {
    this.dedicate(host, owner);
    lasting(() => this.dedicate(host, null));
  }

  /** `owner`: path of an account; null: the host is everybody's again. */
  dedicate(host: string, owner: string | null): void {
    const slash = owner?.lastIndexOf("/") ?? 0;
    const whose = { "x.to": owner?.slice(0, slash) ?? "", "x.account": owner?.slice(slash + 1) ?? "" };
    const json: JsonObject = { "x.type": "Dedication", "x.of": host, ...whose };
    if (owner === null) this.#dedications.delete(host);
    else this.#dedications.set(host, json);
    const path = `root/dedications/${host}`;
    const request = owner === null ? { method: "DELETE", path, allowDestroy: [] } : { method: "PUT", path, json };
    this.#say(`${host} ${owner ?? "everybody"}`, path, "root", request);
  }

  /** `state`: that of the host's element from now on. */
  host(host: string, state: "enabled" | "disabled" | "maintenance"): void {
    if (state === "maintenance") this.#sentAway.hosts.add(host);
    const element = { "x.type": "Host", "x.state": state };
    this.#hosts[host] = element;
    const request = { method: "PUT", path: `root/hosts/${host}`, json: element };
    this.#say(`${host} ${state}`, host, "root", request);
  }

  /** It is kept for VMs whose host was lost. */
  reserve(host: string): void {
    const element = { "x.type": "Host", "x.tags": ["ha"] };
    this.#hosts[host] = element;
    this.#say(`${host} reserved`, host, "root", { method: "PUT", path: `root/hosts/${host}`, json: element });
  }

  /** A host becomes one of those that accounts can have whole: disabled and empty first. @param isDrained what runs there leaves it before */
  flavor(host: string, isDrained = false): void {
    const [kind, at] = [{ "x.type": "HostFlavor", "x.units": 1 }, `root/flavors/${flavor}`];
    const enters = { "x.type": "Host", "x.flavor": flavor };
    const put = (words: string, path: string, json: JsonObject, then?: () => void): void =>
      this.#say(words, path, "root", { method: "PUT", path, json }, then);
    const own = `root/hosts/${host}`;
    this.#flavors = { [flavor]: kind };
    const enter = (): void =>
      put(`${host} disabled`, own, { "x.type": "Host", "x.state": "disabled" }, () =>
        put(`${host} enters`, own, { ...enters, "x.state": "disabled" }, () => {
          this.#hosts[host] = { ...enters, "x.state": "enabled" };
          put(`${host} is whole`, own, { ...enters, "x.state": "enabled" });
        }),
      );
    for (const [name, offered] of Object.entries(offerings)) put(`offers ${name}`, `root/offerings/${name}`, offered);
    put("flavor", at, kind, () => {
      this.#hosts[host] = { "x.type": "Host", "x.state": "disabled" };
      if (!isDrained) return enter();
      this.#sentAway.hosts.add(host);
      put(`${host} drained`, own, { "x.type": "Host", "x.state": "maintenance" }, () =>
        this.#installation.kernel.clock.after(drainsMs, enter),
      );
    });
  }

  /** It leaves its flavour, disabled and in no pool: until then the operator asks again. Afterwards it is a host like others for a while. */
  leave(host: string, lasting: (end: () => void) => void): void {
    if (this.#hosts[host]?.["x.flavor"] === undefined) return;
    const own = `root/hosts/${host}`;
    const is = (words: string, json: JsonObject, then: () => void): void =>
      this.#say(`${host} ${words}`, own, "root", { method: "PUT", path: own, json }, () => {
        this.#hosts[host] = json;
        then();
      });
    is("closes", { "x.type": "Host", "x.flavor": flavor, "x.state": "disabled" }, () =>
      is("leaves", { "x.type": "Host", "x.state": "disabled" }, () =>
        is("is everybody's", { "x.type": "Host", "x.state": "enabled" }, () => lasting(() => this.flavor(host, true))),
      ),
    );
  }

  /** `path`: `CELL/VM`. */
  move(path: string, to: string): void {
    const [cell = "", ...rest] = path.split("/");
    const vm = [labelOf(cell), ...rest].join("/");
    this.#sentAway.vms.add(vm);
    this.#say(`${path} to ${to}`, vm, cell, { method: "MOVE", vm, to, tentative: false });
  }

  #say(words: string, about: string, cell: string, request: Json, then?: () => void): void {
    this.#serial += 1;
    this.#last.set(about, this.#serial);
    this.#ask(words, { about, serial: this.#serial, ...(then === undefined ? {} : { then }) }, cell, request);
  }

  #ask(
    words: string,
    word: { readonly about: string; readonly serial: number; readonly then?: () => void; isAnswered?: true },
    cell: string,
    request: Json,
  ): void {
    const { kernel, controllers } = this.#installation;
    if (word.isAnswered || this.#last.get(word.about) !== word.serial) return;
    if (this.isHealing && this.#sentAway.vms.has(word.about)) return;
    const answer = controllers.get(cell)?.request(request) ?? null;
    kernel.clock.after(answer === null ? askAgainMs : patienceMs, () => this.#ask(words, word, cell, request));
    void answer?.then((response) => {
      const { status, body } = response as unknown as { readonly status: number; readonly body: Json };
      // It has no model yet, the host is not known yet, or the VM does not run now. A root cell that was never taken gets no element.
      // A host that was never empty goes into no flavour any more.
      if (this.isHealing && status !== 200 && (status === 404 || word.then !== undefined)) word.isAnswered = true;
      if (status !== 200 || word.isAnswered) return;
      word.isAnswered = true;
      kernel.log("operator", "administers", { words, status, body: JSON.stringify(body).slice(0, 100) });
      word.then?.();
    });
  }
}
