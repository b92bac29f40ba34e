/**
 * One reading at a time, for however many ask: who asks while one goes on shares the next one with all others who do, so nobody is told what was
 * so before the question.
 */
export const sharedReading = <T>(read: () => Promise<T>): (() => Promise<T>) => {
  let reading: Promise<T> | null = null;
  let next: Promise<T> | null = null;
  const begin = async (): Promise<T> => {
    next = null;
    try {
      return await read();
    } finally {
      reading = null;
    }
  };
  const follow = async (before: Promise<T>): Promise<T> => {
    // Whoever asked for that one is told why it failed.
    await before.catch(() => undefined);
    reading = begin();
    return reading;
  };
  return () => {
    if (next !== null) return next;
    if (reading !== null) {
      next = follow(reading);
      return next;
    }
    reading = begin();
    return reading;
  };
};
