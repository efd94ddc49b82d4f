import type { Command } from 'commander';

export interface FlagHelp {
  readonly short: string | null;
  readonly long: string;
  readonly description: string;
  readonly takesValue: boolean;
  /** Empty where any value is allowed. */
  readonly values: readonly string[];
}

export interface CommandHelp {
  /** Names from below the program down to it; empty for the program itself. */
  readonly path: readonly string[];
  readonly flags: readonly FlagHelp[];
  /** Its subcommands, or what its first argument may be. */
  readonly words: readonly { readonly name: string; readonly description: string }[];
}

/** The program and every command below it, as `--help` shows them. */
export function listCommands(command: Command, path: readonly string[] = []): CommandHelp[] {
  const help = command.createHelp();
  const flags = help.visibleOptions(command).flatMap((option): FlagHelp[] => {
    const { short, long, description, argChoices } = option;
    if (long === undefined) return [];
    const takesValue = option.required || option.optional;
    return [{ short: short ?? null, long, description, takesValue, values: argChoices ?? [] }];
  });
  const below = help.visibleCommands(command);
  const choices = command.registeredArguments[0]?.argChoices ?? [];
  const words = [
    ...below.map((each) => ({ name: each.name(), description: each.description() })),
    ...choices.map((name) => ({ name, description: '' })),
  ];
  return [{ path, flags, words }, ...below.flatMap((each) => listCommands(each, [...path, each.name()]))];
}

/** Each flag with a value, by the words that precede that value. */
export function valueFlags(command: CommandHelp): { readonly after: string[]; readonly values: readonly string[] }[] {
  return command.flags
    .filter((flag) => flag.takesValue)
    .map(({ short, long, values }) => ({
      after: [short, long].flatMap((name) => (name === null ? [] : `'${commandPath(command)} ${name}'`)),
      values,
    }));
}

/** Names joined by slashes, as '/memory/ls'; '' for the program itself. */
export function commandPath({ path }: Pick<CommandHelp, 'path'>): string {
  return path.map((name) => `/${name}`).join('');
}
