// A museum guide that remembers its visitor: `node museum.js` reads the talk by rules, `node museum.js --model` by a model
// whose answers are written below, so that it runs without a network.
import { readFileSync } from 'node:fs';
import {
  contextBlock,
  createFactStore,
  extractByRules,
  extractFacts,
  filteredBlock,
  fuzzySimilarity,
  parseOntology,
} from 'comet-cc/facts';

const TALK = [
  ["Hello! I'm deaf, so please write things down.", 'Welcome. I will write everything down for you.'],
  ['I like photography.', 'Then start in the east wing: portraits from 1860 on.'],
  ['I have an hour. I want a coffee.', 'The café is behind the stairs, and an hour is enough for two rooms.'],
  ['Who took this one?', 'A studio in Lyon; the name is lost.'],
  ['What is in the next room?', 'Landscapes, taken from a balloon.'],
  ['I like photographs of cities.', 'The third room has forty of them.'],
  ['Thank you, that was it.', 'Come back soon.'],
];

const RULES = [
  { concept: 'Visitor.Need', pattern: /^i(?:'m| am) (?<value>deaf|blind|hard of hearing)\b/i },
  { concept: 'Visitor.Interest', pattern: /^i (?:like|love) (?<value>.+)$/i },
  { concept: 'Visitor.Time', pattern: /^i have (?<value>(?:an?|\d+) (?:hours?|minutes?))$/i },
  { concept: 'Visitor.Wish', pattern: /^i (?:want|need) an? (?<value>.+)$/i },
];

/** What a model might answer; the last two are dropped: the visitor named no age, and did not say "bored". */
const ANSWERS = {
  [TALK[0][0]]: [{ concept: 'Visitor.Need', value: 'deaf', polarity: 'asserted', evidence: "I'm deaf" }],
  [TALK[1][0]]: [
    { concept: 'Visitor.Interest', value: 'photography', polarity: 'asserted', evidence: 'I like photography' },
  ],
  [TALK[2][0]]: [
    { concept: 'Visitor.Time', value: 'an hour', polarity: 'asserted', evidence: 'I have an hour' },
    { concept: 'Visitor.Wish', value: 'coffee', polarity: 'asserted', evidence: 'I want a coffee' },
  ],
  [TALK[5][0]]: [
    { concept: 'Visitor.Interest', value: 'photographs', polarity: 'asserted', evidence: 'photographs of cities' },
    { concept: 'Visitor.Age', value: 'over 60', polarity: 'asserted', evidence: 'photographs of cities' },
    { concept: 'Visitor.Wish', value: 'to leave', polarity: 'asserted', evidence: 'I am bored' },
  ],
};

// A real one sends `prompt` and `schema` to its API and returns the parsed answer.
const scriptedModel = async ({ turn }) => ({ facts: ANSWERS[turn.user] ?? [] });
const rules = ({ turn }) => extractByRules(turn, RULES);
const model = process.argv.includes('--model') ? scriptedModel : rules;

const parsed = parseOntology(JSON.parse(readFileSync(new URL('ontology.json', import.meta.url), 'utf8')));
if (!parsed.ok) throw new Error(parsed.problems.map(({ path, message }) => `${path}: ${message}`).join('\n'));
const { ontology } = parsed;
const similarity = fuzzySimilarity(0.8);

const store = createFactStore({ ontology, similarity });
for (const [at, [user, assistant]] of TALK.entries()) {
  const { facts, dropped } = await extractFacts({ ontology, turn: { user, assistant }, model });
  store.applyTurn(facts, { turnId: `turn-${at + 1}`, sessionId: 'monday', atMs: Date.UTC(2026, 4, 4, 10, at) });
  const held = store.facts.map(({ value, salience }) => `${value} ${salience.toFixed(2)}`);
  console.log(`${at + 1}. ${user}\n   ${held.join(', ')}`);
  const lost = Object.entries(dropped).filter(([, count]) => count > 0);
  if (lost.length > 0) console.log(`   dropped: ${lost.map(([reason, count]) => `${reason} ${count}`).join(', ')}`);
}

console.log(`\nThe guide is told:\n${contextBlock(store)}`);
console.log(`\nThe ticket desk is told:\n${filteredBlock(store, { prefixes: ['Visitor.Time.'], classes: [] })}`);

store.endSession('monday');
const saved = JSON.stringify(store.serialize());
const nextVisit = createFactStore({ ontology, similarity, state: JSON.parse(saved) });
console.log(`\nOn the next visit the guide knows:\n${contextBlock(nextVisit)}`);
