export { hookCommands } from './entries.ts';
export { findHookedFiles, inspectHooks, installHooks, uninstallHooks } from './hooks.ts';
export { editSettings, findEditedSettings, inspectSettings, planSettings, revertSettings } from './settings.ts';
