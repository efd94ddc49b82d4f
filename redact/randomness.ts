/** A letter, and those that often follow it in English words and identifiers: nine of ten pairs of a word. */
const WORD_PAIRS = (
  'abcdgilmnprstuy baeilou caehiklortu dacdeiorsu eabcdefgilmnopqrstvwxy faefio geir haeio iacdefglmnoprstvz je kes ' +
  'ladeilostuy mabeimops nacdefgiknopstuv obcdfilmnoprstuvw paeiloprstu qu racdegimnorstuy sacehiopstuy ' +
  'tacdehioprstuy ueilmnprst vaei weir xt ynps zeo'
).split(' ');
const IS_WORD_PAIR = new Set(WORD_PAIRS.flatMap(([a = '', ...rest]) => rest.map((b) => a + b)));
const SAMPLE = 200;

/** Share of neighboring characters that words do not have, 0 to 1: words about .1, random keys above .6. */
export function randomness(value: string): number {
  let pairs = 0;
  let odd = 0;
  const text = value.slice(0, SAMPLE);
  for (let i = 1; i < text.length; i += 1) {
    const [a, b] = [text.charAt(i - 1), text.charAt(i)];
    const [before, after] = [getKind(a), getKind(b)];
    // Words of an identifier meet where a capital follows a small letter.
    if (before === '' || after === '' || (before === 'a' && after === 'A')) continue;
    pairs += 1;
    if (before === '0' && after === '0') odd += 0.3;
    else if (before === '0' || after === '0') odd += 1;
    else if (!IS_WORD_PAIR.has((a + b).toLowerCase())) odd += 1;
  }
  return pairs === 0 ? 0 : odd / pairs;
}

export function isRandomWord(text: string): boolean {
  return /^[A-Za-z]{8,}$/.test(text) && new Set(text).size >= 5 && randomness(text) >= 0.5;
}

function getKind(character: string): '' | 'a' | 'A' | '0' {
  if (character >= 'a' && character <= 'z') return 'a';
  if (character >= 'A' && character <= 'Z') return 'A';
  return character >= '0' && character <= '9' ? '0' : '';
}

const MARK = /\[REDACTED:[a-z-]{1,40}:[0-9a-f]{8}\]/;

/** A sign that also begins placeholders and paths begins one generated password in ten. */
const SIGNED = /^(?![<{[(].*[>}\])]$|[<{[(%]{2}|%[\ds]|%.*%$)[<{[(%~/](?=.*\d)\S{9,}$/;
export const isGenerated = (text: string): boolean => SIGNED.test(text) && randomness(text) >= 0.5;

/** A placeholder instead of a secret: a redaction mark, `$TOKEN`, `<token>`, `your-token`, `{{ token }}`, `%s`, `***`. */
export function isPlaceholder(text: string): boolean {
  if (isGenerated(text)) return MARK.test(text);
  return MARK.test(text) || /^(?:[<{%[(]|\$(?:[{(]|\w{1,80}$)|\*+$|\.{3}|x+$|your[-_])/i.test(text);
}
