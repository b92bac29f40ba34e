import { serve } from "../../diverter/testing/serve.testing.ts";
import { createTags, type Tag } from "../tags/tags.ts";

/** Tags of one machine of a test, as its host's process has them. Arguments: where its bpffs is mounted, another object than the committed one. */
const tags = createTags(process.argv[2] ?? "", process.argv[3]);
serve((method, args) => (method === "read" ? tags.read() : tags.apply(args[0] as readonly Tag[])));
