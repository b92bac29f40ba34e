import assert from "node:assert/strict";
import { test } from "node:test";
import { costs, derive, hashPassword, verifyPassword } from "./passwords.ts";

test("argon2id is that of RFC 9106, section 5.3", async () => {
  const tag = await derive(Buffer.alloc(32, 0x01), Buffer.alloc(16, 0x02), { memory: 32, passes: 3, lanes: 4 }, 32, {
    secret: Buffer.alloc(8, 0x03),
    associatedData: Buffer.alloc(12, 0x04),
  });
  assert.equal(tag.toString("hex"), "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659");
});

/** As the reference implementation's own test has them (phc-winner-argon2, test.c, argon2id v=19). */
test("PHC strings of the reference implementation are read", async () => {
  const known = [
    ["password", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"],
    ["password", "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"],
    ["password", "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc"],
  ] as const;
  for (const [password, phc] of known) {
    assert.equal((await verifyPassword(password, phc)).matched, true, phc);
    assert.equal((await verifyPassword(`${password} `, phc)).matched, false, phc);
  }
});

test("a password's own string verifies it and nothing else, and cheaper ones grow", async () => {
  const phc = await hashPassword("a horse of another colour");
  assert.match(phc, new RegExp(`^\\$argon2id\\$v=19\\$m=${costs.memory},t=${costs.passes},p=${costs.lanes}\\$`));
  assert.notEqual(await hashPassword("a horse of another colour"), phc, "each has a salt of its own");
  assert.deepEqual(await verifyPassword("a horse of another colour", phc), { matched: true, grown: null });
  assert.deepEqual(await verifyPassword("a horse of another color", phc), { matched: false, grown: null });
  const cheap = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
  const { grown } = await verifyPassword("password", cheap);
  assert.equal((await verifyPassword("password", grown)).matched, true);
});

test("what is no hash of ours, and nobody at all, fits nothing", async () => {
  for (const phc of [
    null,
    "",
    "plain",
    "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR",
    "$argon2id$v=19$m=0,t=0,p=0$$",
  ])
    assert.deepEqual(await verifyPassword("password", phc), { matched: false, grown: null }, String(phc));
});
