import type { ServerResponse } from "node:http";
import type { ControllerRequest } from "../../../core/controller/requests/requests.ts";
import { rootCell } from "../../../core/documents/cells.ts";
import { type Veil, veiled, veiledStates } from "../../../model/cause/veil.ts";
import type { RouteName } from "../../../model/contract/routes.ts";
import type { Json } from "../../../model/json/json.ts";
import { answerThrough } from "../../http/http.ts";
import { sharedReading } from "../../observation/shared-reading.ts";
import type { CellEvents } from "../events.ts";
import type { Caller } from "./callers.ts";

type Ask = (request: Json) => Promise<Json>;

/** Answers that are a document of the cell, in which the state of each element is said. */
const documents: ReadonlySet<RouteName> = new Set(["readModel", "readElement"] as const);
/** Answers that are a tenant's own words, or what his guests say. */
const own: ReadonlySet<RouteName> = new Set([
  ...(["readSource", "listVersions", "listCredentials", "addCredential", "revokeCredential", "exec"] as const),
]);

/** Of one controller: names that are known to be of machines, and through what its answers go that are for others than the operator. */
export class Veils {
  readonly #ask: Ask;
  readonly #peers: () => Promise<Iterable<string>>;
  readonly #machines = new Set<string>();
  /** A name stays one that is not told: what was said of it is still read. */
  readonly veil: Veil = { machines: this.#machines };
  /** Shared: it begins after whatever those who ask for it are about to tell. */
  readonly look: () => Promise<void> = sharedReading(() => this.#look());

  /** @param peers names of machines that may be asked; those that have nothing of this cell are among them */
  constructor(ask: Ask, peers: () => Promise<Iterable<string>> = async () => []) {
    this.#ask = ask;
    this.#peers = peers;
  }

  /** Whoever is not the operator learns of no machine. Of the root cell's own credentials, whoever has one runs the machines. */
  static isFor(caller: Caller | null, cell: string): boolean {
    return caller !== null && !caller.operator && (cell !== rootCell || "tenant" in caller);
  }

  async #look(): Promise<void> {
    const asked = this.#ask({ method: "MACHINES" } satisfies ControllerRequest);
    const [known, peers] = await Promise.all([asked, this.#peers()]);
    const { body } = known as { readonly body: Json };
    for (const name of Array.isArray(body) ? body : []) this.#machines.add(String(name));
    for (const name of peers) this.#machines.add(name);
  }

  /** All that this one answers goes through it. */
  async over(response: ServerResponse, name: RouteName): Promise<void> {
    await this.look();
    answerThrough(response, (body, status) => {
      if (status !== null && status >= 400) return veiled(body, this.veil);
      if (own.has(name)) return body;
      return documents.has(name) ? veiledStates(body, this.veil) : veiled(body, this.veil);
    });
  }

  /** A host that joined since a stream was opened is not told in it either. Who hears it is let go when too much waits for that. */
  lookedAtFirst(
    response: Pick<ServerResponse, "destroy">,
    subscribe: CellEvents["subscribe"],
  ): CellEvents["subscribe"] {
    return (listener) => {
      let [before, behind] = [Promise.resolve(), 0];
      return subscribe((event) => {
        behind += 1;
        if (behind > mostBehind) {
          response.destroy();
          return;
        }
        before = Promise.all([before, this.look()]).then(
          () => listener(event),
          () => void response.destroy(),
        );
        before = before.then(() => {
          behind -= 1;
        });
      });
    };
  }
}
const mostBehind = 2_000;
