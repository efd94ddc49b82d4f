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

test.each([
  ['s3://b', 'Failed to get AWS credentials: ProviderError(…)', 'set AWS_ACCESS_KEY_ID'],
  ['az://b', 'no Azure account name in URI, and no storage account configured.', 'set AZURE_STORAGE_CONNECTION_STRING'],
  ['az://b', 'uri: Some(http://169.254.169.254/metadata/identity/oauth2/token', 'set AZURE_STORAGE_CONNECTION_STRING'],
  [
    'az://b',
    '<Code>ContainerNotFound</Code> uri: Some(http://127.0.0.1:1/x), sending request',
    'bucket does not exist',
  ],
  ['gs://b', 'Unable to open service account file from /a.json', 'set GOOGLE_APPLICATION_CREDENTIALS'],
  ['gs://b', 'uri: Some(http://169.254.169.254/computeMetadata/v1/instance', 'set GOOGLE_APPLICATION_CREDENTIALS'],
])('names what %s is reached with: %s', (uri, reason, check) => {
  expect(explained(uri, new Error(reason)).message).toContain(check);
});
