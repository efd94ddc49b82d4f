/** Said so that something is said, or true only while it is said. A decision in the same sentence outweighs it. */
const PASSING: readonly RegExp[] = [
  /^\W*(?:heartbeat|ping|pong|keep-?alive|tick|noop|no-op|beep)(?:[\W\d]|ok|ack)*$/i,
  /\bheartbeat[_ ]?(?:ok|ack\w*|received)\b|\b(?:periodic|scheduled|automatic|routine) (?:heartbeat|keep-?alive|check-in|poll|wake-?up)\b/i,
  /\b(?:nothing (?:new |else |further )?to (?:report|do)|no (?:new |pending |further )?(?:messages|events|tasks|changes|notifications) (?:since|to report|pending|found|arrived|yet)|still (?:alive|here|idle|quiet|nothing))\b/i,
  /^\W*(?:request interrupted by user|api error\b|conversation compacted|no response requested)/i,
  /^\W*(?:status|health(?: ?check)?|system)\s*[:=]\s*(?:ok|idle|alive|green|healthy|nominal)\W*$/i,
  /\b(?:is|are|am|'s|'re|was) (?:still |now |currently )?(?:running|compiling|downloading|in progress|uploading|installing|loading|spinning up|warming up|halfway|queued)\b(?! (?:on|at|under|with|behind|in|as|from|by)\b)/i,
  /\b(?:waiting|wait) for (?:the |a |an |its? |your )?(?:build|tests?|lock|response|output|it|process|download|server|command|install\w*|next)\b/i,
  /\b\d+ ?(?:\/|of|out of) ?\d+ (?:\w+ )?(?:done|complete[d]?|finished|so far|processed|remaining)\b|\b\d+ ?(?:%|percent) (?:is )?(?:done|complete|finished|through|downloaded|used up)\b/i,
  /\b(?:pid|process id) ?[:#=]? ?\d+|\b(?:eta|elapsed|time left|remaining time|uptime)\b\s*(?:is|[:=])?\s*(?:about )?\d/i,
  /\bi(?:'m| am) (?:now |currently |just )?(?:reading|looking|checking|opening|running|editing|scrolling|going to|about to|on line)\b/i,
  /\b(?:the )?cursor (?:is|stands) (?:at|on)\b|\battempt \d+ of \d+\b|\b(?:right now|at (?:the|this) moment|as we speak)\b.*\b(?:line|step|screen|tab|window|prompt|spinner|terminal|branch is clean)\b/i,
];

/** A command of the client, with nothing said to it. */
const COMMAND = /^\/[\w:-]+$/;

/** What an agent is told about itself; as a memory it would be taken for the user's wish. */
const INSTRUCTIONS =
  /\byou are (?:claude\b|an? (?:[\w'-]+ ){0,3}(?:ai|language model|coding agent|cli agent)\b)|\bi(?:'m| am) (?:claude\b|an? (?:[\w'-]+ ){0,2}(?:ai|language model)\b)|\bas an ai\b|\b(?:my|your) (?:system prompt|(?:core |system |hidden |developer |own )?(?:instructions|guidelines|directives)|knowledge cutoff|tool list)\b|\b(?:the )?system prompt\b.*\b(?:says?|states?|tells?|requires?|begins?|contains?|asks?)\b/i;
/** The same where the agent says it; a user may well build an agent. */
const OWN_RULES =
  /\b(?:the )?(?:assistant|model|agent|claude) (?:must|should|will|may|is (?:instructed|expected|told))\b/i;

/** An assistant's guess at who it talks to; what users say of themselves is said by the user. */
const PROFILE =
  /\b(?:you|the (?:user|developer|human)) (?:(?:probably|likely|clearly|apparently|also|generally|usually|really|obviously) )?(?:seems?|appears? to|sounds?|comes? across|enjoys?|loves?|likes?|prefers?|values?|lives?|grew up|works? as|(?:is|are) an? (?:[\w-]+ ){0,3}(?:developer|engineer|person|designer|founder|parent|student|manager|enthusiast|expert|beginner))\b|\buser(?:'s)? (?:profile|persona|preferences?|personality|mood)\b|\b(?:your|the (?:user|developer|human)'s) (?:name|age|hometown|family|hobby|hobbies|favou?rite|personality|mood|communication style|temperament)\b/i;

/**
 * Whether a sentence holds nothing that will matter once the turn is over: heartbeats and progress, an agent's
 * instructions, guesses about the user.
 *
 * @param decides  it tells a decision or a rule
 */
export function isNoise(sentence: string, by: 'user' | 'assistant', decides: boolean): boolean {
  if (INSTRUCTIONS.test(sentence) || COMMAND.test(sentence)) return true;
  if (by === 'assistant' && (OWN_RULES.test(sentence) || PROFILE.test(sentence))) return true;
  return !decides && PASSING.some((sign) => sign.test(sentence));
}
