import fc from 'fast-check';

/** What a property is tried with is the same in every run; `COMET_TEST_SEED` looks for what nobody has met yet. */
fc.configureGlobal({ seed: Number(process.env['COMET_TEST_SEED']) || 1 });
