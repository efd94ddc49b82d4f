import { readdirSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { createContext } from '../../../bin/context.ts';
import { openProgram } from '../../../bin/program.ts';
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
  const commands = below(await openProgram(createContext()));
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

/** Commands as a page has them, without those of a shell before or behind. */
function getMentions(page: string): string[] {
  const text = readFileSync(page, 'utf8').replace(/\\(?=\|)|[[\]]/g, '');
  const found = [...text.matchAll(/`(comet-cc [^`\n]+)`|^(?:\$ )?(comet-cc [^#\n]+)/gm)];
  return found.map(([, inline, block]) => (inline ?? block ?? '').split(/ (?:&&|\|) /)[0] ?? '');
}

it('pages name only commands, flags and choices that there are', async () => {
  const commands = new Map(below(await openProgram(createContext())));
  const pages = ['README.md', ...readdirSync('docs').flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : []))];
  const mentions = pages.flatMap((page) => getMentions(page).map((mention) => ({ page, mention })));
  const wrong = mentions.filter(({ mention }) => {
    const words = mention.split(' ');
    const at = words.findIndex((_, index) => !commands.has(words.slice(0, index + 1).join(' ')));
    const command = commands.get(words.slice(0, at < 0 ? words.length : at).join(' ')) as Command;
    const rest = words.slice(at < 0 ? words.length : at);
    const choices = [...command.registeredArguments, ...command.options].flatMap(({ argChoices = [] }) => argChoices);
    const known = new Set([...command.commands.map((each) => each.name()), ...choices]);
    const isUnknown = (word: string): boolean => /^[a-z]/.test(word) && known.size > 0 && !known.has(word);
    const flags = command.name() === 'run' ? [] : (rest.join(' ').match(/--[a-z-]+/g) ?? []);
    return (
      flags.some((flag) => !getHelp(command).includes(flag)) ||
      rest.some((word) => word.includes('|') && word.split('|').some(isUnknown))
    );
  });
  expect(mentions.length).toBeGreaterThan(150);
  expect(wrong).toEqual([]);
});
