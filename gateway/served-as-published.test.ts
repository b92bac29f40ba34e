import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { peerName } from "../model/cell/identifiers.ts";
import { openApi } from "../model/contract/openapi.ts";
import { publishedPath } from "../model/contract/route.ts";
import { routeNames, routeOf } from "../model/contract/routes.ts";
import { hashCredential } from "../runtime/http/bearer.ts";
import { createTestInstallation } from "../runtime/installation.testing.ts";
import { createGateway } from "./gateway.ts";

test("what the gateway serves is what its OpenAPI document says, and it gives that document", async () => {
  const installation = await createTestInstallation("as-published");
  const supervisorSocket = join(installation.directory, "supervisor.sock");
  const supervisor = createServer((_request, response) => response.end("[]"));
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  const role = { listenFd: -1, supervisorSocket, credentialHashes: [hashCredential("operator")] };
  const { configuration } = await installation.configure(peerName("gateway"), {
    change: { role: "gateway", gateway: role },
  });
  const app = createGateway(configuration);
  try {
    await app.ready();
    const answer = await app.inject({ url: "/openapi.json", headers: { authorization: "Bearer operator" } });
    assert.equal(answer.statusCode, 200);
    const document = openApi();
    assert.deepEqual(JSON.parse(answer.body), document);
    const paths = document.paths as unknown as Record<string, Record<string, unknown>>;
    for (const name of routeNames) {
      const route = routeOf(name);
      const operation = paths[publishedPath(route).replace("*}", "}")]?.[route.method.toLowerCase()];
      assert.ok(operation !== undefined, `${name} is in the document`);
      // What a controller answers is passed on below one path.
      const isOwn = route.at === "gateway" || route.at === "caas";
      const url = isOwn ? route.path.replaceAll(/\{(\w+)\}/g, ":$1") : "/cells/:cell/*";
      assert.ok(app.hasRoute({ method: route.method, url }), `${name} (${route.method} ${url}) is served`);
    }
    const count = Object.values(paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0);
    assert.equal(count, routeNames.length, "and nothing besides is in it");
  } finally {
    await app.close();
    supervisor.close();
    await installation.remove();
  }
});
