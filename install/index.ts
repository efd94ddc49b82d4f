export type { HookCommands } from './claude-code/entries.ts';
export {
  claudeDirectory,
  findClashes,
  findOtherApi,
  isClaude,
  managedProblem,
  settingsEnv,
  userMemoryFile,
  userSettingsFile,
  withSettings,
} from './claude-code/settings-file.ts';
export { EDITORS, type EditorName, editorSettingsFile } from './editors/editors.ts';
export { withoutMarkedBlock } from './marked-block.ts';
export type { ServicePlan } from './service/index.ts';

// What every command may load at its start; the subfolders' index files load a schema and a JSON parser.
