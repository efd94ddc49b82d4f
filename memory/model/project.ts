/**
 * `host/owner/repo` of a git remote, the same for ssh, https and scp-like forms, without credentials, port or
 * `.git`; null for a remote that is a path of this machine.
 */
export function normalizeRemote(url: string): string | null {
  const text = url.trim();
  const match = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? fromUrl(text) : fromScp(text);
  if (match === null) return null;
  const repo = match.path.replace(/^\/+|\/+$/g, '').replace(/\.git$/i, '');
  return match.host === '' || repo === '' ? null : `${match.host}/${repo}`.toLowerCase();
}

/** The url of `origin` in the text of a git config, else of the first remote, else null. */
export function remoteUrl(config: string): string | null {
  let remote: string | null = null;
  const found = new Map<string, string>();
  for (const line of config.split(/\r?\n/)) {
    const section = /^\s*\[([^\]]*)\]/.exec(line);
    if (section !== null) remote = /^remote\s+"(.+)"$/.exec((section[1] ?? '').trim())?.[1] ?? null;
    const url = /^\s*url\s*=\s*(.+?)\s*$/.exec(line)?.[1];
    if (remote !== null && url !== undefined && !found.has(remote)) found.set(remote, url.replace(/^"(.*)"$/, '$1'));
  }
  return found.get('origin') ?? [...found.values()][0] ?? null;
}

interface Remote {
  readonly host: string;
  readonly path: string;
}

function fromUrl(text: string): Remote | null {
  if (!URL.canParse(text) || /^file:/i.test(text)) return null;
  const url = new URL(text);
  return { host: url.hostname, path: decodeURI(url.pathname) };
}

/** `user@host:path`; a single letter before the colon is a Windows drive. */
function fromScp(text: string): Remote | null {
  const match = /^(?:[^@/\s]+@)?([^:/\s]{2,}):(?!\/\/)(.+)$/.exec(text);
  return match === null ? null : { host: match[1] as string, path: match[2] as string };
}
