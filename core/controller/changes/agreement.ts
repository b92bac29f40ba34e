import type { Effect, Input, Instant, Service, Step } from "../../env.ts";
import { sameJson, toJson } from "../../outbox.ts";
import { createController } from "../controller.ts";
import type { ControllerOptions, ControllerState } from "../state.ts";
import { Changes, Everything } from "./pass.ts";
import { isWorking, sliceTimer } from "./slices.ts";

const others = new WeakMap<ControllerState, ControllerState>();
/** For a test that changes by hand what a controller knows: its state, and that of the one beside it. */
export function bothOf(state: ControllerState): readonly ControllerState[] {
  const other = others.get(state);
  return other === undefined ? [state] : [state, other];
}

/**
 * A controller beside one that looks at everything after every input: each step of the two must have the same effects, in the
 * same order. What this one overlooks, the other one does. It takes each step in many slices, of which nobody sees anything: they
 * have to come to the same. Of simulations and tests; it costs what the other one costs.
 */
export function createCheckedController(options: ControllerOptions): Service<ControllerState> {
  const service = createController(options, (tracking, outbox) => new Changes(tracking, outbox, keysInSlice));
  const whole = createController(options, () => new Everything());
  return {
    ...service,
    restore: (restored) => {
      const state = service.restore(restored);
      others.set(state, whole.restore(restored));
      return state;
    },
    step: (state, input, now): Step<ControllerState> => {
      const other = others.get(state);
      if (other === undefined) throw new Error("the state is of another controller");
      const effects = inSlices(service, state, input, now);
      const fault = differenceOf(effects, whole.step(other, input, now).effects);
      if (fault !== null) throw new Error(`after ${JSON.stringify(input).slice(0, 300)}: ${fault}`);
      return { state, effects };
    },
  };
}
const keysInSlice = 5;

/** The effects of all slices of a step. */
function inSlices(
  service: Service<ControllerState>,
  state: ControllerState,
  input: Input,
  now: Instant,
): readonly Effect[] {
  const effects: Effect[] = [];
  for (let next = input; ; next = { kind: "timer", name: sliceTimer }) {
    effects.push(...service.step(state, next, now).effects.filter((effect) => !isSlice(effect)));
    if (!isWorking(state)) return effects;
  }
}
const isSlice = (effect: Effect): boolean => effect.kind === "timer" && effect.name === sliceTimer;

/** Null: there is none. */
function differenceOf(effects: readonly Effect[], expected: readonly Effect[]): string | null {
  for (let at = 0; at < Math.max(effects.length, expected.length); at += 1) {
    const [one, other] = [effects[at], expected[at]];
    if (one !== undefined && other !== undefined && sameJson(toJson(one), toJson(other))) continue;
    return `a pass over what changed has the effect ${shown(one)}, and one over everything ${shown(other)}`;
  }
  return null;
}
const shown = (effect: Effect | undefined): string =>
  effect === undefined ? "(none)" : JSON.stringify(effect).slice(0, 600);
