import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { LoginRequest } from "../../model/contract/tenancy/tenancy.ts";

/*
 * Ten thousand wrong logins a minute, of names that are there and of others, from several addresses, beside good ones. What a wrong one costs is
 * bounded where it is done, so most are told to come again; whoever has the right password is in after a few tries.
 */
const everyMs = 30;
const atOnce = 5;
const lastsMs = 3000;
const addresses = 8;
const longestMs = 15_000;

/** @param url of the gateway */
export async function tryFlood(url: string, good: LoginRequest): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const logIn = (body: LoginRequest, localAddress: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      const asked = request(`${url}/logins`, { agent, localAddress, method: "POST", headers }, (answer) => {
        answer.resume().once("end", () => resolve(answer.statusCode ?? 0));
      });
      asked.once("error", reject);
      asked.end(JSON.stringify(body));
    });
  const wrong: Promise<number>[] = [];
  const flood = async (): Promise<void> => {
    const beganMs = performance.now();
    for (let at = beganMs; at < beganMs + lastsMs; at += everyMs) {
      await sleep(Math.max(0, at - performance.now()));
      for (let each = 0; each < atOnce; each += 1) {
        const n = wrong.length;
        const user = n % 3 === 0 ? good.user : `nobody${n}`;
        wrong.push(logIn({ ...good, user, password: `wrong ${n}` }, `127.0.1.${1 + (n % addresses)}`));
      }
    }
  };
  const isOver = flood();
  let [come, longest] = [0, 0];
  try {
    for (const beganMs = performance.now(); performance.now() < beganMs + lastsMs; come += 1) {
      const triedMs = performance.now();
      for (let status = 0; status !== 201; ) {
        status = await logIn(good, "127.0.0.1");
        assert.ok([201, 503].includes(status), `a good login was answered ${status}`);
        assert.ok(performance.now() < triedMs + longestMs, "a good login gets in");
        if (status === 503) await sleep(100);
      }
      longest = Math.max(longest, performance.now() - triedMs);
    }
    await isOver;
    const answers = Map.groupBy(await Promise.all(wrong), (status) => status);
    const counts = [...answers].map(([status, all]) => `${all.length} times ${status}`).join(", ");
    assert.equal(wrong.length, (lastsMs / everyMs) * atOnce);
    for (const status of answers.keys()) assert.ok([401, 429, 503].includes(status), counts);
    assert.ok(answers.has(401) && answers.has(503), `they were too few to matter: ${counts}`);
    assert.ok(come >= 1, `${come} good ones got in, the slowest after ${Math.round(longest)} ms; ${counts}`);
  } finally {
    agent.destroy();
  }
}
