import assert from "node:assert/strict";
import { test } from "node:test";
import { swimDefaults } from "../../core/presence/swim/configuration.ts";
import { createSwim } from "../../core/presence/swim/swim.ts";
import type { SwimInput, SwimOutput, SwimState, Verdict } from "../../core/presence/swim/types.ts";
import { hostName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { DoubtsRequest } from "../heartbeat/beats-state.ts";
import type { SuccessionRequest } from "../root-vm/succession.ts";
import { createPresencePart } from "./presence-part.ts";
import type { PresenceRequest } from "./presence-state.ts";

const self = hostName("h1");
const nothing: SwimOutput = { packets: [], syncs: [], verdicts: [], deaths: [], above: null, incarnated: false };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A part whose participant only notes what it is given, and whose service answers when it is told to. */
const createPart = async () => {
  const requests: (PresenceRequest | SuccessionRequest | DoubtsRequest)[] = [];
  const answers: ((generation: number) => void)[] = [];
  const lives: number[] = [];
  const dead: string[] = [];
  let output: (output: SwimOutput, state: SwimState) => void = () => undefined;
  let died: (host: string, generation: number) => void = () => undefined;
  const inputs: SwimInput[] = [];
  const state = createSwim({ self, generation: 1, config: swimDefaults, seed: 1 }, 0);
  const making = createPresencePart({
    request: (request) => {
      requests.push(request);
      return request.kind === "presence-enter"
        ? new Promise<Json>((resolve) => void answers.push(resolve))
        : Promise.resolve(null);
    },
    beginLife: (life) => void lives.push(life),
    declaredDead: (peer, life) => void dead.push(`${peer} ${life}`),
    sendView: () => undefined,
    participate: async (options) => {
      output = options.output;
      died = (host, generation) => options.died({ host: hostName(host), generation });
      const input = (given: SwimInput): void => {
        inputs.push(given);
        if (given.kind === "enter") state.self.generation = given.generation;
      };
      return { state, input };
    },
  });
  answers.shift()?.(1);
  const part = await making;
  const said = (change: Partial<SwimOutput>): void => output({ ...nothing, ...change }, state);
  return { part, requests, answers, lives, dead, inputs, said, died, state };
};

test("many that tell a host of its death at once are answered by one new generation", async () => {
  const { said, answers, requests, lives } = await createPart();
  const entered = (): number => requests.filter(({ kind }) => kind === "presence-enter").length;
  for (let count = 0; count < 5; count += 1) said({ above: 1 });
  assert.equal(entered(), 2, "the first of its start, and one more");
  answers.shift()?.(2);
  await turn();
  said({ above: 1 });
  await turn();
  assert.equal(entered(), 2, "it lives in a later one by now");
  assert.deepEqual(lives, [1, 2]);
  said({ above: 2 });
  said({ above: 7 });
  answers.shift()?.(3);
  await turn();
  assert.deepEqual(requests.at(-1), { kind: "presence-enter", above: 7 });
  answers.shift()?.(8);
  await turn();
  assert.deepEqual(lives, [1, 2, 3, 8]);
});

test("a report is published, and taken back once; of whom nothing was reported nothing is taken back", async () => {
  const { said, requests } = await createPart();
  const verdict = (host: string, of: Verdict) => ({ host: hostName(host), generation: 1, incarnation: 0, verdict: of });
  requests.length = 0;
  said({ verdicts: [verdict("h4", "doubted")] });
  said({ verdicts: [verdict("h4", "suspect")] });
  said({ verdicts: [verdict("h2", "alive"), verdict("h3", "failed")] });
  said({ verdicts: [verdict("h3", "alive"), verdict("h2", "suspect")] });
  said({ verdicts: [verdict("h3", "alive")] });
  const publications = requests.flatMap((request) => (request.kind === "presence-said" ? request.publications : []));
  assert.deepEqual(
    publications.map(({ key, value }) => [key, value !== null]),
    [
      ["presence/doubted/h4", true],
      ["presence/doubted/h4", false],
      ["presence/failed/h3", true],
      ["presence/doubted/h3", true],
      ["presence/failed/h3", false],
      ["presence/doubted/h3", false],
    ],
  );
});

test("a death heard by broadcast goes to state distribution, one of a member to the other hosts", async () => {
  const { part, dead, inputs, died } = await createPart();
  died("h2", 4);
  assert.deepEqual(dead, [`${peerName("host.h2")} 4`]);
  part.declared(hostName("h3"), 5);
  assert.deepEqual(inputs, [{ kind: "declared", host: "h3", generation: 5 }]);
  part.missed({ host: hostName("h3"), generation: 6, incarnation: 1 });
  assert.deepEqual(inputs.at(-1), { kind: "missed", host: "h3", generation: 6, incarnation: 1 });
});

test("a host that gets no answers any more says so of itself, when it begins and when it ends", async () => {
  const { said, requests, state } = await createPart();
  const doubts = (): boolean[] => requests.flatMap((each) => (each.kind === "presence-doubts" ? [each.doubts] : []));
  for (const health of [0, 2, 3, 5, 3, 2, 0]) {
    state.localHealth = health;
    said({});
  }
  assert.deepEqual(doubts(), [true, false]);
});
