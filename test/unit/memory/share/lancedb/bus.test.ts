import { expect, test } from 'vitest';
import { explained } from '../../../../../memory/share/lancedb/bus.ts';

test.each([
  [
    'Error performing GET http://127.0.0.1:1/b in 401.6ms, after 2 retries - HTTP error: error sending request',
    'answer',
  ],
  [
    'Error performing GET http://127.0.0.1:1/b in 507.2ms, after 2 retries - HTTP error: error sending request',
    'answer',
  ],
  ['Server returned non-2xx status code: 401 Unauthorized', 'credentials are not accepted'],
  ['RetryError(Status { status: 403, body: None })', 'credentials are not accepted'],
  ['Server returned non-2xx status code: 403 Forbidden', 'credentials are not accepted'],
  ['lance error: LanceError(IO): Read-only file system (os error 30) at path "/b/a.lance"', 'folder is read-only'],
  ['Server returned non-2xx status code: 507 Insufficient Storage', 'storage is full'],
])('explains: %s', (reason, check) => {
  expect(explained('s3://bucket/a', new Error(reason)).message).toContain(check);
});
