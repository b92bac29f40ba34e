/**
 * What looks again whenever something may have changed: one look at a time, and after it another one if somebody has woken it
 * meanwhile. `isClosed`: no further look. An error ends this look and is the caller's to tell; the next wake looks again.
 */
export const wakeable = (
  look: () => Promise<void>,
  isClosed: () => boolean,
  failed: (error: Error) => void = () => undefined,
): (() => Promise<void>) => {
  let looking = false;
  let again = false;
  return async () => {
    again = true;
    if (looking) return;
    looking = true;
    try {
      while (again && !isClosed()) {
        again = false;
        await look();
      }
    } catch (error) {
      failed(error as Error);
    } finally {
      looking = false;
    }
  };
};
