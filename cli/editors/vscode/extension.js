// @ts-check

const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

/** @type {LanguageClient | undefined} */
let client;

/** Starts `cells spec serve`; it says itself what it can do. A program that cannot be started is told with the setting. */
async function start() {
  const command = workspace.getConfiguration("cells").get("path", "cells");
  const files = ["smartfrog", "json", "yaml"].map((language) => ({ scheme: "file", language }));
  client = new LanguageClient(
    "cells",
    "Cells specifications",
    { command, args: ["spec", "serve"] },
    { documentSelector: files },
  );
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `The program \`${command}\` could not be started as a language server (${error}): set \`cells.path\` to where it is.`,
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  // One that never started has nothing to stop.
  await running?.stop().catch(() => {});
}

async function restart() {
  await stop();
  await start();
}

/** @param {import("vscode").ExtensionContext} context */
async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand("cells.restartServer", restart),
    workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("cells.path")) void restart();
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
