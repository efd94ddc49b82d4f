import fc from 'fast-check';

/** Unit properties use one seed, so that a run repeats; `COMET_TEST_SEED` tries another. */
fc.configureGlobal({ seed: Number(process.env['COMET_TEST_SEED']) || 1 });
