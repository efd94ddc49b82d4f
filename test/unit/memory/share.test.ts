import { expect, test } from 'vitest';
import { shareAddress } from '../../../memory/share.ts';

test.each(['s3://bucket/folder', 'gs://bucket', '/mnt/OneDrive - Büro/memory #1 @home'])('%s may be shared', (url) => {
  expect(shareAddress.safeParse(url).success).toBe(true);
});

test.each(['s3://key@bucket', 's3://bucket?token=x', 's3://my bucket', 's3:///folder', 'https://host', 'folder'])(
  '%s may not be shared',
  (url) => {
    expect(shareAddress.safeParse(url).success).toBe(false);
  },
);
