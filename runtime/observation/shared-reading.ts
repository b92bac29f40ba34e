/**
 * One reading at a time, for however many ask: who asks while one goes on shares the next one with all others who do, so nobody is told what was
 * so before the question. One that fails fails for those alone who asked for it.
 */
export const sharedReading = <T>(read: () => Promise<T>): (() => Promise<T>) => {
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | null = null;
  return () => {
    next ??= last.then(() => {
      next = null;
      const reading = read();
      last = reading.catch(() => undefined);
      return reading;
    });
    return next;
  };
};
