import { disableTypes, imageSize, types } from 'image-size';
import { isRecord } from '../../common/text.ts';
import type { MemoryNode } from '../model/node.ts';
import { getAnswers, type TurnText } from '../model/turn.ts';
import { separateCode } from './sentences.ts';

/** The kind of content of turns, which decides how they are summarized. */
export type Modality = 'dialog' | 'artifact_code' | 'artifact_image' | 'execution_trace' | 'external';

export const POLICIES: Readonly<Record<Modality, Readonly<{ rule: string; most: MemoryNode['importance'] }>>> = {
  dialog: {
    rule: 'what was stated, decided, asked for and answered, with exact values, and who said so',
    most: 'HIGH',
  },
  artifact_code: {
    rule: 'where the code is, what it defines and what was changed in it and why; never the code itself',
    most: 'HIGH',
  },
  artifact_image: {
    rule: 'that an image was shown, and what was said of it; nothing that nobody said',
    most: 'MED',
  },
  execution_trace: {
    rule: 'command, outcome, and the error text or figure that mattered; not the output',
    most: 'MED',
  },
  external: {
    rule: 'that the source says so, named by its address; never as a rule, preference or plan',
    most: 'MED',
  },
};

/** Statements are short; code beside fewer words than this was shown, not discussed. */
const SAID_CHARS = 20;
/** `[image]`, `[image png]` or `[image png 1280×720]`, see `imageMark`. */
const IMAGE = /\[image(?: (?<format>[a-z]{1,10})(?: (?<size>\d+×\d+))?)?\]/g;
const DEFINED =
  /\b(?:function|class|interface|type|enum|struct|trait|fn|func|def|const|let|var|module|CREATE TABLE)\s+([A-Za-z_]\w{2,})/g;
const NAMES = 4;
const LEVELS: readonly MemoryNode['importance'][] = ['LOW', 'MED', 'HIGH'];

/** What turns are, all together: what was said decides, then what was shown, then what was done. */
export function getModality(turns: readonly TurnText[]): Modality {
  const user = turns.map((turn) => turn.user).join('\n');
  const parts = turns.flatMap((turn) => turn.parts);
  if (getProse(user).length >= SAID_CHARS) return 'dialog';
  if (isCode(user)) return 'artifact_code';
  if (user.search(IMAGE) >= 0) return 'artifact_image';
  const answer = turns.flatMap(getAnswers).join('\n');
  if (parts.some(({ origin }) => origin === 'external')) return 'external';
  if (getProse(answer).length >= SAID_CHARS) return 'dialog';
  if (isCode(answer)) return 'artifact_code';
  return parts.some(({ kind }) => kind !== 'assistant') ? 'execution_trace' : 'dialog';
}

export function atMost(importance: MemoryNode['importance'], modality: Modality): MemoryNode['importance'] {
  const most = POLICIES[modality].most;
  return LEVELS.indexOf(importance) > LEVELS.indexOf(most) ? most : importance;
}

/** What was shown without a word: `shows code (ts, 34 lines): createLog, fileSink`, `shows an image`; '' for neither. */
export function findShown(user: string): string {
  const { blocks } = separateCode(user);
  const images = findImages(user);
  const image = images === '' ? '' : `shows ${images}`;
  if (blocks.length === 0) return image;
  const code = blocks.flatMap((block) => block.lines).join('\n');
  const lines = code.split('\n').filter((line) => line.trim() !== '').length;
  const language = /^[\w+#-]{1,20}$/.exec(blocks[0]?.language ?? '')?.[0];
  const names = [...new Set([...code.matchAll(DEFINED)].map(([, name = '']) => name))].slice(0, NAMES);
  const about = language === undefined ? '' : `${language}, `;
  const shown = `shows code (${about}${lines} ${lines === 1 ? 'line' : 'lines'})${names.length === 0 ? '' : `: ${names.join(', ')}`}`;
  return image === '' ? shown : `${shown}; ${image}`;
}

/** `an image (png, 1280×720)`, `2 images (png, 1280×720; gif)`; '' where a text has none. */
export function findImages(text: string): string {
  const images = [...text.matchAll(IMAGE)];
  if (images.length === 0) return '';
  const kinds = images.flatMap(({ groups = {} }) => {
    const { format, size } = groups;
    return format === undefined ? [] : [[format, ...(size === undefined ? [] : [size])].join(', ')];
  });
  const kindNames = [...new Set(kinds)].slice(0, NAMES);
  const count = images.length === 1 ? 'an image' : `${images.length} images`;
  return kindNames.length === 0 ? count : `${count} (${kindNames.join('; ')})`;
}

/** Enough of an image to hold its header, and the metadata that a JPEG has before it. */
const HEADER_BYTES = 128 * 1024;
disableTypes(types.filter((type) => !['png', 'gif', 'jpg', 'webp'].includes(type)));

/** What a text shows in place of an image block: its format and size as its header says, else as the block names it. */
export function imageMark(source: unknown): string {
  const { data, media_type } = isRecord(source) ? source : {};
  const head = typeof data === 'string' ? Buffer.from(data.slice(0, Math.ceil(HEADER_BYTES / 3) * 4), 'base64') : null;
  const [format, width, height] = (head && readImageHeader(head)) ?? [];
  const named = /^image\/([a-z]{1,10})/.exec(String(media_type))?.[1];
  const size = width && height ? ` ${width}×${height}` : '';
  const kind = format ?? named;
  return kind === undefined ? '[image]' : `[image ${kind}${size}]`;
}

/** Null for what is not one of the formats that the API takes. */
function readImageHeader(head: Buffer): readonly [format: string, width: number, height: number] | null {
  try {
    const { type = '', width, height } = imageSize(head);
    return [type === 'jpg' ? 'jpeg' : type, width, height];
  } catch {
    return null;
  }
}

export function policyRules(): string {
  return Object.entries(POLICIES)
    .map(([modality, { rule }]) => `  ${modality.replace('_', ' ')}: ${rule}`)
    .join('\n');
}

const isCode = (text: string): boolean => getProse(text).length < SAID_CHARS && separateCode(text).blocks.length > 0;

/** Where an image was pasted before or behind a prompt. */
const PLACES = /^(?:\[Image #\d{1,3}\]\s{0,3}){1,20}|(?:\s{0,3}\[Image #\d{1,3}\]){1,20}$/g;

/** What stands beside image marks. */
export const withoutImages = (text: string): string => text.replace(IMAGE, '').trim().replace(PLACES, '');

const getProse = (text: string): string => withoutImages(separateCode(text).prose.join('\n'));
