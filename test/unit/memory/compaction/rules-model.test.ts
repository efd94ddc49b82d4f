import { createLocalModel } from '../../../../memory/compaction/rules-model.ts';
import { languageModelContract } from '../../../contract/language-model.ts';
import { calmReading, oneNode, scriptedModel } from '../../../helpers/scripted-model.ts';

languageModelContract('local', createLocalModel);
languageModelContract('scripted', () =>
  scriptedModel({
    sense: () => calmReading,
    compact: (input) => oneNode(input, 'the shop database'),
    detail: () => ({ sentences: ['It listens on port 5433.'] }),
  }),
);
