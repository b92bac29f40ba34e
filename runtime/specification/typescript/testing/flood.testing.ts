import { writeSync } from "node:fs";

const block = Buffer.alloc(65_536, "x");
for (;;) {
  try {
    writeSync(1, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
  }
}
