import { readFileSync } from "node:fs";
import { createAgentService } from "../../core/storage/agent/agent.ts";
import { ipv4 } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { runService } from "../../runtime/process/process.ts";

/** `agent-process.ts FILE`: a storage agent that has no volumes, with its store and its connections as it has them everywhere. Says when it listens. */
const configuration = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as ProcessConfiguration;
const service = createAgentService({ server: "s1", address: ipv4("127.0.0.1"), firstPort: 20_000 });
await runService({ configuration, service, goodbye: false });
process.stdout.write("listening\n");
