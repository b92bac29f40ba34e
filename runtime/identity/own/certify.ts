import type { ProcessConfiguration } from "../../installation.ts";
import { stopAtSignals } from "../../life/signals.ts";
import type { Observer } from "../../observation/observer.ts";

/**
 * Gets a process its certificate before it serves or dials, where the certificate was not issued for good, and keeps it
 * from ending. What it takes for that is loaded only then.
 */
export const certify = async (configuration: ProcessConfiguration, observer: Observer): Promise<void> => {
  if (configuration.enrolment === undefined) return;
  const { keepIdentity, readToken } = await import("./enrol.ts");
  const token = await readToken(configuration);
  const enrolled = keepIdentity({ configuration, token, log: observer.log });
  stopAtSignals(async () => enrolled.stop());
  await enrolled.ready;
};
