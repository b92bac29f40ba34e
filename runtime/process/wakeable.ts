/**
 * What looks again whenever something may have changed: one look at a time, and after it another one if somebody has woken it
 * meanwhile. `isClosed`: no further look. An error ends this look and is the caller's to tell; the next wake looks again. What a
 * wake returns is done when all looks are that it has asked for.
 */
export const wakeable = (
  look: () => Promise<void>,
  isClosed: () => boolean,
  failed: (error: Error) => void = () => undefined,
): (() => Promise<void>) => {
  let looking = false;
  let again = false;
  let looks = Promise.resolve();
  const lookOn = async (): Promise<void> => {
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
  return () => {
    again = true;
    if (!looking) looks = lookOn();
    return looks;
  };
};
