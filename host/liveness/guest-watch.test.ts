import assert from "node:assert/strict";
import { test } from "node:test";
import { uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { AwaitedGuest } from "../host-requests.ts";
import { createGuestWatch } from "./guest-watch.ts";

/** Lets everything happen that is due without a timer. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const guest = (vm: string, more: Partial<AwaitedGuest> = {}): AwaitedGuest => ({
  vm: uid(vm),
  incarnation: 1,
  reboots: 0,
  ...more,
});

class Scene {
  awaited: readonly AwaitedGuest[] = [];
  readonly questions: string[] = [];
  readonly up: string[] = [];
  readonly answering = new Set<string>();
  readonly pauses: (() => void)[] = [];
  readonly watch = createGuestWatch({
    hypervisor: {
      answers: async (vm, incarnation) => {
        this.questions.push(`${vm}@${incarnation}`);
        return this.answering.has(vm);
      },
    },
    request: async (request) => {
      const { kind, guest } = request as unknown as { readonly kind: string; readonly guest: AwaitedGuest };
      if (kind === "awaited-guests") return this.awaited as unknown as Json;
      this.up.push(`${guest.vm}@${guest.incarnation}.${guest.reboots}`);
      this.awaited = this.awaited.filter(({ vm }) => vm !== guest.vm);
      return null;
    },
    after: (_ms, run) => {
      this.pauses.push(run);
      return () => undefined;
    },
  });

  async wake(...awaited: readonly AwaitedGuest[]): Promise<void> {
    this.awaited = awaited;
    this.watch.wake();
    await settled();
  }
  async pause(): Promise<void> {
    for (const run of this.pauses.splice(0)) run();
    await settled();
  }
}

test("each guest that is waited for is asked again and again until it answers, and then no more", async () => {
  const scene = new Scene();
  await scene.wake(guest("a"), guest("b"));
  await scene.wake(guest("a"), guest("b"));
  assert.deepEqual(scene.questions, ["a@1", "b@1"], "one question at a time");
  scene.answering.add("a");
  await scene.pause();
  assert.deepEqual(scene.up, ["a@1.0"]);
  scene.questions.length = 0;
  await scene.pause();
  assert.deepEqual(scene.questions, ["b@1"]);
});

test("who is not waited for any more is not asked, and who resets itself is asked anew", async () => {
  const scene = new Scene();
  await scene.wake(guest("a"));
  await scene.wake(guest("a", { reboots: 1 }));
  scene.questions.length = 0;
  scene.answering.add("a");
  await scene.pause();
  assert.deepEqual([scene.questions, scene.up], [["a@1"], ["a@1.1"]]);
  await scene.wake();
  await scene.pause();
  assert.equal(scene.questions.length, 1);
});

test("after its end nothing is asked and nothing is said", async () => {
  const scene = new Scene();
  await scene.wake(guest("a"));
  scene.watch.close();
  scene.answering.add("a");
  await scene.pause();
  assert.deepEqual([scene.questions, scene.up], [["a@1"], []]);
});
