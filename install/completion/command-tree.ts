import type { Command } from 'commander';

export interface FlagShape {
  readonly short: string | null;
  readonly long: string;
  readonly description: string;
  readonly takesValue: boolean;
  /** Empty where any value may stand. */
  readonly values: readonly string[];
}

export interface CommandShape {
  /** Names from below the program down to it; empty for the program itself. */
  readonly path: readonly string[];
  readonly flags: readonly FlagShape[];
  /** Its subcommands, or what its first argument may be. */
  readonly words: readonly { readonly name: string; readonly description: string }[];
}

/** The program and every command below it, as `--help` shows them. */
export function shapesOf(command: Command, path: readonly string[] = []): CommandShape[] {
  const help = command.createHelp();
  const flags = help.visibleOptions(command).flatMap((option): FlagShape[] => {
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
  return [{ path, flags, words }, ...below.flatMap((each) => shapesOf(each, [...path, each.name()]))];
}

/** How the scripts name a command's place: `/memory/ls`, '' for the program itself. */
export function placeOf({ path }: Pick<CommandShape, 'path'>): string {
  return path.map((name) => `/${name}`).join('');
}
