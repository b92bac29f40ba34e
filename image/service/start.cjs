/*
 * What Node is told to run in the guest: the bundle beside this file, from the code that V8 made of it when the image was
 * built. Parsing half a megabyte costs an emulated processor half a second. V8 itself refuses code of another version.
 *
 * With `--wait PROGRAM` it loads that bundle and waits at its standard input to be told who it is. The machine is saved there
 * (saved.c): what comes after happens in each machine that goes on from the state.
 */
"use strict";
const { closeSync, openSync, readFileSync, readSync, writeSync } = require("node:fs");
const { join } = require("node:path");
const { Script } = require("node:vm");

/** As in init.h: the first process reads signs of life there. */
const beatDescriptor = 3;

const load = (program) => {
  const filename = join(__dirname, `${program}.js`);
  const cachedData = readFileSync(join(__dirname, `${program}.cache`));
  // It is all ASCII, and needs no decoding.
  const script = new Script(readFileSync(filename, "latin1"), { filename, cachedData });
  if (script.cachedDataRejected)
    process.stderr.write('{"level":"warn","event":"the compiled code is of another Node"}\n');
  const bundle = { exports: {} };
  script.runInThisContext()(require, bundle, bundle.exports);
  return bundle.exports;
};

/** UID GID HOME ROLE…, in one line that is written at once. */
const hear = () => {
  const line = Buffer.alloc(4096);
  const length = readSync(0, line);
  // Whoever ends the first process ends this one.
  if (length === 0) process.exit(0);
  const [user, group, home, ...roles] = line.latin1Slice(0, length).trim().split(" ");
  return { user: Number(user), group: Number(group), home, roles };
};

/** Nothing that was drawn or read before the state was saved is used after it: all machines of the state have that. */
const becomeNew = () => {
  process.dlopen({ exports: {} }, join(__dirname, "reseed.node"));
  const { randomBytes } = require("node:crypto");
  // V8 seeded its generator when it started.
  Math.random = () => Number(randomBytes(8).readBigUInt64LE() >> 11n) / 2 ** 53;
  Object.defineProperty(performance, "timeOrigin", { value: Date.now() - performance.now() });
};

const wait = async (program) => {
  const bundle = load(program);
  await bundle.load();
  writeSync(beatDescriptor, ".");
  const { user, group, home, roles } = hear();
  closeSync(0);
  openSync("/dev/null", "r");
  becomeNew();
  process.setgroups([]);
  process.setgid(group);
  process.setuid(user);
  process.chdir(home);
  bundle.serve(roles);
};

const roles = process.argv.slice(2);
if (roles[0] === "--wait") wait(roles[1]);
else if (roles[0].startsWith("personality.")) load("gateway").serve(roles);
else load(["gateway", "authority"].find((alone) => roles.includes(alone)) ?? "service").serve(roles);
