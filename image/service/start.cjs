/*
 * What Node is told to run in the guest: the bundle beside this file, from the code that V8 made of it when the image was
 * built. Parsing half a megabyte costs an emulated processor half a second. V8 itself refuses code of another version.
 */
"use strict";
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { Script } = require("node:vm");

const roles = process.argv.slice(2);
const program = ["gateway", "authority"].find((alone) => roles.includes(alone)) ?? "service";
const filename = join(__dirname, `${program}.js`);
const cachedData = readFileSync(join(__dirname, `${program}.cache`));
// It is all ASCII, and needs no decoding.
const script = new Script(readFileSync(filename, "latin1"), { filename, cachedData });
if (script.cachedDataRejected)
  process.stderr.write('{"level":"warn","event":"the compiled code is of another Node"}\n');
const bundle = { exports: {} };
script.runInThisContext()(require, bundle, bundle.exports);
bundle.exports.serve(roles);
