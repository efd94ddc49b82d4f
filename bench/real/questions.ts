/**
 * The questions of the corpus in other words, in its order: as few of its content words as a developer who remembers the
 * matter but not the wording would use.
 */
export const PARAPHRASES: readonly string[] = [
  'the sha we stored points nowhere after an amend, what ties the two together instead',
  'metadata folder layout when two chats land on one commit',
  'which text is displayed at the far right when listing sessions',
  'reason we no longer write a checkpoint when the Task tool kicks off',
  'where does the blank agent kind in the saved session json come from',
  "which approach won for telling a human's edits from the agent's ones",
  'how long do we wait for git when pulling the metadata from the remote',
  'under which condition do we roll over to shadow branch -2 rather than append',
  'the agent rewrote history halfway, are the shadow checkpoints lost then',
  'what made claude crash on launch when we had tried out the test repo',
  'path of the design decision document about who wrote which lines',
  'output of enable if the git hooks are already installed',
  'how do I silence the message that another session is active',
  'a crashed session keeps showing up as active, when does that go away',
  'what do we call the agent if we cannot tell which one made the change',
  'which dates were not stored in UTC',
  'number of steps recorded by the other strategy, the one without shadow branches',
  'can git tell us when somebody moves HEAD back',
  'how are the release notes laid out, what did we settle on',
  'whose name is on the commit when user.name and user.email cannot be read',
];

/** About what the corpus discusses, but details that it never settles. */
export const HARD: readonly string[] = [
  'how many checkpoints may one session have before entire refuses more',
  'which test coverage does CI demand before a PR of the strategy package can be merged',
  'with which key are the transcripts on entire/checkpoints/v1 encrypted',
  'how many dollars does one full run of the e2e tests cost',
  'after how many days are orphaned shadow branches deleted on their own',
  'who has to approve an ADR before it counts as accepted',
  'does entire resume work with an ssh key that has a passphrase',
  'what is the oldest gemini cli version that our hooks support',
  'what happens to the files of git submodules when a checkpoint is written',
  'in which languages besides English does entire enable print its messages',
];
