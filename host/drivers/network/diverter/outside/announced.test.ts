import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4 } from "../../../../../model/cell/identifiers.ts";
import { bgpPeers, whyUnannounced } from "./announced.ts";

test("BGP connections are read from the kernel's tables, whoever opened them, and no others", () => {
  const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
  const line = (local: string, remote: string, state: string): string =>
    `   0: ${local} ${remote} ${state} 00000000:00000000 02:000006D5 00000000     0        0 2318 2`;
  const tcp = [
    head,
    line("0B0200C0:9C4E", "010200C0:00B3", "01"),
    line("0B0200C0:00B3", "020200C0:A001", "01"),
    line("0B0200C0:9C50", "030200C0:00B3", "02"),
    line("00000000:00B3", "00000000:0000", "0A"),
    line("0B0200C0:B300", "040200C0:01BB", "01"),
    line("0100007F:9C51", "0100007F:00B3", "01"),
  ];
  const tcp6 = [
    head,
    line("B80D0120000000000000000002000000:00B3", "B80D0120000000000000000001000000:8001", "01"),
    line("0000000000000000FFFF00000B0200C0:00B3", "0000000000000000FFFF0000050200C0:8001", "01"),
  ];
  assert.deepEqual(bgpPeers(tcp.join("\n"), tcp6.join("\n")), ["192.0.2.1", "192.0.2.2", "192.0.2.5", "2001:db8::1"]);
  assert.deepEqual(bgpPeers("", ""), []);
});

test("why nobody is told of an address: its route is gone, or no session stands", () => {
  const address = ipv4("198.18.0.10");
  const now = (isRouted: boolean, ...peers: readonly string[]) => ({
    table: 100,
    peers,
    addresses: [{ address, sinceMs: 1, isRouted }],
  });
  assert.equal(whyUnannounced(now(true, "192.0.2.1"), address), null);
  assert.match(whyUnannounced(now(true), address) ?? "", /no BGP connection \(TCP port 179\) with any\. Look at/);
  assert.match(
    whyUnannounced(now(false, "192.0.2.1"), address) ?? "",
    /^table 100 has no route for 198\.18\.0\.10, so no daemon announces it: somebody takes it out as often/,
  );
  assert.match(whyUnannounced(now(true, "192.0.2.1"), ipv4("198.18.0.11")) ?? "", /has no route for 198\.18\.0\.11/);
});
