/** Words of a shell command that can be nothing but paths: no addresses, no URLs, no import paths of a host. */
export function pathsInCommand(command: string): string[] {
  const words = command.split(/[\s"'`=;|&<>()]+/);
  return words.filter(
    (word) => /[./]/.test(word) && !/[@$*{}\\]|:\/\//.test(word) && !/^[\w-]+(?:\.[\w-]+)+\/|^-|^\d/.test(word),
  );
}

/** Relative to the project, without `./` and without what follows a `:`. */
export function normalizedPath(text: string, projectDir: string): string {
  const own = text.startsWith(`${projectDir}/`) ? text.slice(projectDir.length + 1) : text;
  return own
    .replace(/^\.\//, '')
    .replace(/:.*$/, '')
    .replace(/[/,.]+$/, '');
}
