import { serve } from "../../diverter/testing/serve.testing.ts";
import { createLearner, type WatchedTap } from "../learn/learn.ts";
import { createTags, type Tag } from "../tags/tags.ts";

/**
 * Programs of one machine of a test, as its host's process has them. Arguments: where its bpffs are mounted, for tags another object than the
 * committed one.
 */
const [directory = "", object] = process.argv.slice(2);
const [tags, learner] = [createTags(`${directory}-tags`, object), createLearner(`${directory}-learn`)];
serve((method, args) => {
  switch (method) {
    case "read":
      return tags.read();
    case "apply":
      return tags.apply(args[0] as readonly Tag[]);
    case "heard":
      return learner.read();
    case "learn":
      return learner.apply(args[0] as readonly WatchedTap[]);
    default:
      throw new Error(`no method ${method}`);
  }
});
