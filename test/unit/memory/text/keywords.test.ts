import { describe, expect, test } from 'vitest';
import { contentTokens, getAnchors, topicTokens } from '../../../../memory/text/keywords.ts';

describe('words without content count in no language', () => {
  test.each([
    ['wie hoch ist das Skonto?', ['skonto']],
    ['was nehmen wir für neue Endpunkte statt Retrofit?', ['neue', 'endpunkt', 'statt', 'retrofit']],
    ['¿dónde se guardan las sesiones?', ['guardan', 'sesion']],
    ['¿qué CDN usamos?', ['cdn']],
    ["jusqu'à quand l'annulation est-elle gratuite ?", ['jusqu', 'annulation', 'gratuit']],
    ['how high is the discount?', ['high', 'discount']],
  ])('%s', (text, tokens) => expect(contentTokens(text)).toEqual(tokens));

  test.each([
    ['when does the worker die in the war room?', ['worker', 'die', 'war', 'room']],
    ['why is the son process not in the plus plan', ['son', 'process', 'plus', 'plan']],
    ['die roll', ['die', 'roll']],
  ])('an English word keeps its content: %s', (text, tokens) => expect(contentTokens(text)).toEqual(tokens));

  test('neither for topics nor for tags', () => {
    expect(topicTokens('Frau Yilmaz besorgt uns den Zugang')).toEqual(['frau', 'yilmaz', 'besorgt', 'zugang']);
    expect(getAnchors('Wir nehmen für die Alarme den Median')).toEqual(['Alarme', 'Median']);
  });
});
