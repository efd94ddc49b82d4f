import { expect, test } from 'vitest';
import { looksSecret } from '../../../../memory/storage/secret-path.ts';

test.each([
  '.env',
  'app/.env.production',
  'prod.env',
  '.envrc',
  '.npmrc',
  '.netrc',
  'deploy/id_rsa',
  'id_ed25519.pub',
  'certs/server.KEY',
  'certs/ca.pem.bak',
  'config/credentials.json',
  'config/master_secret.txt',
  'service-account.json',
  'api_token',
  'tokens.json',
  'infra/prod.tfvars',
  '.ssh/config',
  'home/.aws/anything.txt',
  'k8s/secrets/db.yaml',
  '.git/config',
])('%s may hold secrets', (path) => {
  expect(looksSecret(path)).toBe(true);
});

test.each([
  'src/db.ts',
  'src/tokens.ts',
  'src/password-form.tsx',
  'docs/secrets.md',
  '.env.example',
  'config/credentials.sample.json',
  'environment.ts',
  'tokenizer.json',
  'keys.go',
  'package.json',
])('%s is source', (path) => {
  expect(looksSecret(path)).toBe(false);
});
