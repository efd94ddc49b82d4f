import type { Problem } from '../../common/errors.ts';

/** Problems of the store, each once. */
export interface Health {
  /** Adds a problem that lasts until the process ends. */
  report(problem: Problem): void;
  problems(): readonly Problem[];
  /** Wraps `port`: a failure of these methods is a problem of `file` until one of them succeeds. */
  watched<T extends object>(port: T, file: string, methods: readonly (keyof T)[]): T;
}

export function createHealth(onReport: (problem: Problem) => void): Health {
  const lasting = new Map<string, Problem>();
  const passing = new Map<object, Problem>();

  function watchedMethod(port: object, file: string, method: unknown) {
    return async (...args: unknown[]): Promise<unknown> => {
      try {
        const result: unknown = await Reflect.apply(method as () => unknown, port, args);
        passing.delete(port);
        return result;
      } catch (error) {
        passing.set(port, { file, message: error instanceof Error ? error.message : String(error) });
        throw error;
      }
    };
  }

  return {
    report(problem) {
      const key = `${problem.file}\n${problem.message}`;
      if (lasting.has(key)) return;
      lasting.set(key, problem);
      onReport(problem);
    },
    problems: () => [...lasting.values(), ...passing.values()],
    watched: (port, file, methods) => ({
      ...port,
      ...Object.fromEntries(methods.map((name) => [name, watchedMethod(port, file, port[name])])),
    }),
  };
}
