export { neutralLine } from '../../common/text.ts';
export { documentText } from '../ingest/chunk-document.ts';
export { parseFileLink } from '../model/turn.ts';
export { contentTokens } from '../text/keywords.ts';
export { contentTags, terseMeta } from '../text/tags.ts';
export { uniqueTokens } from '../text/tokenizer.ts';
export { memoryLine, provenance } from './format-memory.ts';
export { staleNote } from './staleness.ts';
