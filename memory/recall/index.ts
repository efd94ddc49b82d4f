export { documentText } from '../ingest/chunk-document.ts';
export { FOREIGN } from '../ingest/turn-trust.ts';
export { parseFileLink } from '../model/file-link.ts';
export { contentTokens } from '../text/keywords.ts';
export { neutralLine } from '../text/sanitize-line.ts';
export { contentTags, terseMeta } from '../text/system-tags.ts';
export { uniqueTokens } from '../text/tokenizer.ts';
export { memoryLine, provenance } from './format-memory.ts';
export { staleNote } from './staleness.ts';
