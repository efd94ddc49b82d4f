import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';

const PAGE = path.join(import.meta.dirname, '..', '..', 'dist', 'ui');
const read = (file: string): string => readFileSync(path.join(PAGE, file), 'utf8');
const assets = readdirSync(path.join(PAGE, 'assets')).map((name) => `assets/${name}`);

it('has a page of at most 250 KB, compressed', () => {
  const bytes = ['index.html', ...assets].reduce((sum, file) => sum + gzipSync(read(file)).length, 0);
  console.info(`the built page has ${Math.round(bytes / 1024)} KB, compressed`);
  expect(bytes).toBeLessThanOrEqual(250 * 1024);
});

it('asks no other host for anything, and runs no inline script', () => {
  const page = read('index.html');
  const sources = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, source]) => source as string);
  expect(sources.filter((source) => !/^(?:\/|\.\/)?assets\/|^data:,$/.test(source))).toEqual([]);
  expect(page).not.toMatch(/<style|\sstyle=|<script(?![^>]* src=)|\son\w+=/);
  for (const sheet of assets.filter((file) => file.endsWith('.css'))) expect(read(sheet)).not.toMatch(/@import|url\(/);
});

it('carries the licences of the libraries in it', () => {
  const texts = read('licenses.txt');
  for (const name of ['preact', 'sigma', 'graphology', 'uplot', 'diff', '@tanstack/virtual-core']) {
    expect(texts).toContain(`${name}\n\n`);
  }
  expect(texts.match(/Permission is hereby granted|Redistribution and use/g)?.length).toBeGreaterThanOrEqual(10);
});
