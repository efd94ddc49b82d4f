import type { Problem } from '../../common/errors.ts';

/** What is wrong with the store now, and what was put right or set aside since the start; each thing once. */
export interface Troubles {
  /** Stays until the end. */
  report(problem: Problem): void;
  list(): readonly Problem[];
  /** `port`, of which the last failure of these methods is a problem of `file` until one of them works again. */
  watched<T extends object>(port: T, file: string, methods: readonly (keyof T)[]): T;
}

export function createTroubles(onReport: (problem: Problem) => void): Troubles {
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
    list: () => [...lasting.values(), ...passing.values()],
    watched: (port, file, methods) => ({
      ...port,
      ...Object.fromEntries(methods.map((name) => [name, watchedMethod(port, file, port[name])])),
    }),
  };
}
