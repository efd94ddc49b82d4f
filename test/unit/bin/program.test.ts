import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { createContext } from '../../../bin/context.ts';
import { wholeProgram } from '../../../bin/program.ts';
import { INSIDE } from '../../helpers/inside-words.ts';

function getHelp(command: Command): string {
  const parts: string[] = [];
  command.configureOutput({ writeOut: (part) => void parts.push(part) }).outputHelp();
  return parts.join('');
}

function below(command: Command, name = 'comet-cc'): [string, Command][] {
  return [[name, command], ...command.commands.flatMap((each) => below(each, `${name} ${each.name()}`))];
}

it('every command has a help with an example, in words that users know', async () => {
  const commands = below(await wholeProgram(createContext()));
  const found = commands.map(([name, command]) => {
    const help = getHelp(command);
    return {
      name,
      example: /\nExamples?:\n {2}(?:eval|claude mcp|comet-cc)/.test(help),
      inside: INSIDE.exec(help)?.[0] ?? null,
    };
  });
  expect(found.length).toBeGreaterThan(60);
  expect(found.filter(({ example, inside }) => !example || inside !== null)).toEqual([]);
});
