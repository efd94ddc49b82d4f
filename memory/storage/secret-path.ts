const SECRET_FOLDERS = new Set(
  '.ssh .gnupg .gpg .aws .azure .kube .docker .gcloud .password-store .git .comet-cc secrets .secrets'.split(' '),
);
const SECRET_NAMES = [
  /^\.env(?:\.|rc$|$)/,
  /\.env$/,
  /^\.?(?:netrc|pgpass|npmrc|pypirc|htpasswd|git-credentials|dockercfg|vault-token|my\.cnf)$/,
  /^id_(?:rsa|dsa|ecdsa|ed25519)/,
  /\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg|age|der|crt|cer|csr|tfstate|tfvars)(?:\.|$)/,
  /(?:^|[._-])(?:secrets?|credentials?|passwords?|passwd|shadow|service[_-]?account|tokens?)(?:[._-][^/]*)?$/,
];
/** `tokens.ts` is code about tokens, `tokens.json` may hold some. */
const CODE =
  /\.(?:[cm]?[jt]sx?|py|rb|go|rs|java|kt|swift|c|cc|cpp|h|hpp|cs|php|scala|ex|exs|vue|svelte|md|rst|css|html)$/;
const EXAMPLE = /(?:^|[._-])(?:example|sample|template|dist)(?:\.|$)/;

/** Whether a file's place or name says that it may hold secrets: such a file is never opened, not even to hash it. */
export function looksSecret(path: string): boolean {
  const parts = path.toLowerCase().split('/');
  const name = parts.pop() ?? '';
  if (parts.some((part) => SECRET_FOLDERS.has(part))) return true;
  if (CODE.test(name) || EXAMPLE.test(name)) return false;
  return SECRET_NAMES.some((pattern) => pattern.test(name));
}
