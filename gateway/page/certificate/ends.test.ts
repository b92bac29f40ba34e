import assert from "node:assert/strict";
import { test } from "node:test";
import { certificateWarnings } from "./ends.ts";

const until = "2026-12-20T12:00:00.000Z";
const day = 24 * 3_600_000;
const warned = (daysBefore: number): readonly string[] => {
  const certificate = {
    names: ["cells.example.com", "c.example.com"],
    issuer: "CN=them",
    from: until,
    until,
    chain: 2,
  };
  return certificateWarnings({ certificate, asked: null }, Date.parse(until) - daysBefore * day);
};

test("fourteen days before a certificate of one's own ends it is said, and what to do", () => {
  assert.deepEqual(warned(14.1), []);
  const [first = "", ...more] = warned(14);
  assert.deepEqual(more, []);
  assert.match(first, /^the page's certificate for cells\.example\.com ends in 14 days, on 2026-12-20: /);
  assert.match(first, /`cells gateway certificate FILE`.*`cells gateway request cells\.example\.com c\.example\.com`$/);
  assert.match(warned(0.5)[0] ?? "", /ends within a day, on 2026-12-20/);
  assert.match(warned(0)[0] ?? "", /has ended on 2026-12-20, and browsers refuse the page/);
  assert.match(warned(-400)[0] ?? "", /has ended on 2026-12-20/);
});

test("without one there is nothing to say, but why what was kept is not in force", () => {
  assert.deepEqual(certificateWarnings({ certificate: null, asked: ["x.example.com"] }, 0), []);
  const fault = "what was kept of a certificate cannot be read (x): ask for a new one";
  assert.deepEqual(certificateWarnings({ certificate: null, asked: null, fault }, 0), [
    `the page's certificate is not in force: ${fault}`,
  ]);
});
