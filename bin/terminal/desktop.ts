const OPENERS: Readonly<Record<string, readonly [file: string, ...args: string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};
const OPENER_MS = 10_000;

/** Opens a folder or an address with the desktop's own program; false where there is none, or it fails. */
export async function openOnDesktop(target: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  if (!OPENERS[process.platform] && !env['DISPLAY'] && !env['WAYLAND_DISPLAY']) return false;
  const { execa } = await import('execa');
  const [file, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const options = { env, extendEnv: false, stdio: 'ignore', reject: false, timeout: OPENER_MS } as const;
  return !(await execa(file, [...args, target], options)).failed;
}
