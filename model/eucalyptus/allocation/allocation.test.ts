import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpv4 } from "../../addresses/addresses.ts";
import { readAllocation, writeAllocation } from "./allocation.ts";

const at = (text: string): number => parseIpv4(text) ?? 0;

test("what is written is read as it was, with the reason of what failed", () => {
  const instances = [
    {
      id: "i-abcdef12",
      publicIp: { address: at("66.123.44.10"), state: "failed", reason: 'no "em1" & no <bridge>' },
      privateIp: { address: at("192.168.1.10"), state: "assigned" },
    },
    { id: "i-21fedcba", privateIp: { address: at("192.168.1.11"), state: "pending" } },
    { id: "i-00000001" },
  ] as const;
  const text = writeAllocation({ instances, appliedVersion: "7" });
  assert.match(text, /<property name="192\.168\.1\.10">Assigned<\/property>/);
  assert.deepEqual(readAllocation(text), { ok: true, value: { instances, appliedVersion: "7" } });
});

test("the other shape of the paper is read too", () => {
  const text = `<network-resources>
    <privateIPs><value>1.111.5.11</value></privateIPs>
    <instances>
      <instance name="i-bb321cba">
        <privateIp name="1.111.5.11"><state>assigned</state></privateIp>
        <publicIp name="10.111.120.10"><state>pending</state></publicIp>
      </instance>
    </instances>
  </network-resources>`;
  assert.deepEqual(readAllocation(text), {
    ok: true,
    value: {
      instances: [
        {
          id: "i-bb321cba",
          privateIp: { address: at("1.111.5.11"), state: "assigned" },
          publicIp: { address: at("10.111.120.10"), state: "pending" },
        },
      ],
    },
  });
});

test("what is no allocation is refused with a sentence", () => {
  for (const [text, why] of [
    ["<network-data/>", /root element is network-data/],
    ["<network-resource-allocation>", /line 1/],
    [
      "<network-resource-allocation><instances><instance/></instances></network-resource-allocation>",
      /an instance has no name/,
    ],
    [
      '<network-resources><instances><instance name="i"><privateIp>1.2.3</privateIp></instance></instances></network-resources>',
      /is no IPv4 address/,
    ],
  ] as const) {
    const read = readAllocation(text);
    assert.ok(!read.ok);
    assert.match(read.error, why);
  }
});
