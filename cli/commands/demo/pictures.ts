import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Context } from "../../context/context.ts";
import { CommandFailure, exitCodes } from "../../terminal/failure.ts";

const size = { hosts: 6, machines: 24, seed: 1, port: 0 } as const;

/** Pictures of the page over a simulated cloud, always the same one, for documents. */
export const pictures = async ({ terminal }: Context, directory: string): Promise<void> => {
  const [{ buildPage }, { serveSimulation }, { takePictures }] = await Promise.all([
    import("../../../web/build.ts"),
    import("../../../simulator/serve/served.ts"),
    import("../../../simulator/serve/pictures.ts"),
  ]);
  const page = await mkdtemp(join(tmpdir(), "cells-page-"));
  try {
    await buildPage(page);
    const served = await serveSimulation({ ...size, page });
    try {
      for (const file of await takePictures(served, directory)) terminal.print(file);
    } catch (error) {
      throw new CommandFailure(exitCodes.refused, (error as Error).message);
    } finally {
      await served.stop();
    }
  } finally {
    await rm(page, { recursive: true, force: true });
  }
};
