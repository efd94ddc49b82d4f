/** Finds a fact in a clause, without its lead-in and its final point; the group `value` of `pattern` is the value. */
export interface FactRule {
  readonly concept: string;
  readonly pattern: RegExp;
  readonly polarity?: 'negated';
  /** Read the assistant's sentences too. */
  readonly fromAssistant?: true;
  /** To be named is enough: found anywhere in a sentence, also in a question or a condition. */
  readonly named?: true;
}

const LANGUAGES =
  'Arabic|Bengali|Chinese|Czech|Danish|Dutch|English|Finnish|French|German|Greek|Hebrew|Hindi|Hungarian|Indonesian|Italian|Japanese|Korean|Mandarin|Norwegian|Persian|Polish|Portuguese|Romanian|Russian|Spanish|Swedish|Thai|Turkish|Ukrainian|Vietnamese';
const ANSWERING = '(?:answer|reply|respond|talk|write)(?:ing)?(?: back)?(?: to me)?(?: always| only)? in';
const TASKS = 'build|compile|deploy|format|install|launch|lint|migrate|release|reset|run|seed|start|test';
/** What somebody is asked to do always or never; "always here to help" asks for nothing. */
const ORDERS =
  '(?:add|answer|ask|avoid|begin|bump|call|change|check|commit|create|delete|document|edit|explain|force-push|format|import|include|install|keep|log|merge|mock|modify|name|prefer|push|put|read|rebase|reply|respond|return|run|show|sort|squash|start|store|test|touch|update|use|verify|wrap|write)\\b';
/** Speaks of code, so of this project, and not of how the user likes to work. */
const CODES = '(?:always |never )(?:call|import|include|log|mock|name|return|sort|store|use|wrap)\\b';
/** Names a thing of the project. */
const NAMES = '.{0,80}(?:["`]|\\w[._/]\\w|[a-z]-\\d|\\bthis (?:codebase|package|project|repo|repository)\\b)';
const THINGS =
  'api|app|back-?end|cli|code ?base|database|front-?end|library|package|project|repo|repository|server|service|site|stack';
const DAY =
  '(?:\\d|tomorrow|tonight|today|next |end of|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november|december|noon|midnight)';

/** Of these the object alone is the value, so that a later negation names the same. */
const ENDED: readonly RegExp[] = [
  /^(?:we|i)(?:'re| are|'m| am)? no longer (?:us(?:e|ing)|prefer|like|want|rely(?:ing)? on) (?<value>.+)$/i,
  /^(?:we|i) (?:don't|do not) (?:use|prefer|like|want) (?<value>.+?) any ?more$/i,
  /^(?:we|i)(?:'ve| have)? (?:stopped using|dropped|abandoned|got rid of|moved away from) (?<value>.+)$/i,
  /^(?:we (?:should|must) )?stop using (?<value>.+)$/i,
  /^we(?:'re| are|'ve| have)? (?:switch|mov|migrat)(?:ed|ing) from (?<value>.{1,80}?) to .+$/i,
];

/** Chooses between ways to do a thing; what follows "add" or "test" is a task. */
const CHOOSES =
  '(?:(?:avoid|call|default|delete|deprecate|disable|drop|enable|hide|ignore|limit|name|only|remove|rename|replace|require|set|skip|store|support|switch|treat|use)\\b|(?:keep|leave|make) (?:the |"|`)|not )';
/** What work on software may aim at. */
const BUILDS =
  '(?:add|automate|build|change|clean up|cut|deploy|document|drop|extract|fix|generate|get rid of|implement|improve|introduce|migrate|move|optimi[sz]e|port|publish|redesign|reduce|refactor|release|remove|rename|replace|rewrite|ship|simplify|speed up|split|store|support|switch|track|upgrade|write)\\b';
const RUNNERS = '(?:bun|composer|deno|mise|npm|nx|pdm|pnpm|poetry|uv|yarn) run';
const BUILDERS =
  '(?:(?:\\./)?gradlew?|bun|bundle exec|cargo|cmake|composer|deno|dotnet|go|hatch|just|make|mix|mvn|npm|npx|pnpm|rake|sbt|swift|task|tox|yarn)';
const PATH = '(?:~|/[\\w.-]{1,40})/[\\w./@-]{1,200}';
const FILES = 'checkout|clone|codebase|repository|(?:test-?)?repo|workspace|worktree';

/** For the default ontology, in English. A sentence that says less than these is left to a model. */
export const DEFAULT_RULES: readonly FactRule[] = [
  ...find('Person.Preference', [
    /^i (?:really |strongly |generally |usually |always |much )?prefer (?!if\b)(?<value>.+)$/i,
    /^i (?:always|usually|only) (?:use|write|work with) (?<value>.+)$/i,
    like`^(?:from now on,? |going forward,? )?(?<value>(?!${CODES})(?:always |never )${ORDERS}(?!${NAMES}).+)$`,
    like`^(?:(?:you|claude) (?:should|must|may|can) |(?:i|we) (?:want|need|expect|would like) you to |(?:please )?(?:make sure|remember|be sure)(?: that you| to)? )(?<value>(?:always |never )${ORDERS}.+)$`,
    like`^(?<value>(?:do not|don't) (?:ever ${ORDERS}.+|${ORDERS}.{0,80}? (?:again|by default|on your own|unless i|without (?:asking|my|permission|tests)).*))$`,
    /^(?<value>(?:i|we) (?:don't|do not|never) (?:ever )?want you to .+)$/i,
    /^(?<value>stop (?:add|apologi[sz]|ask|commit|creat|explain|mention|push|summari[sz]|writ)\w{0,4}ing .+)$/i,
    like`^(?:make sure (?:to|you|that you) |remember to )?(?<value>${ORDERS}.{1,80} before (?:any|every|each|committing|pushing|you (?:commit|push))\b.*)$`,
    /^(?<value>(?:bitte (?:immer|niemals|nie)|ab (?:jetzt|sofort)|por favor,? (?:siempre|nunca)|a partir de ahora|désormais) .+)$/i,
    /^(?<value>(?:请?(?:总是|永远不要|以后都)|항상 |앞으로는? |절대 )[^，。,.]{2,80})/u,
    like`^(?:from now on|going forward),? (?:please )?(?<value>${ORDERS}.+)$`,
  ]),
  ...find('Person.Constraint', [
    /^i(?:'m| am) (?<value>deaf|blind|colou?r-?blind|dyslexic|hard of hearing|partially sighted)$/i,
    /^i (?:use|rely on|work with) (?<value>a (?:screen ?reader|braille display|screen magnifier))$/i,
  ]),
  ...find('Person.Language', [
    like`^(?:always )?${ANSWERING} (?<value>${LANGUAGES})(?: from now on)?$`,
    like`^(?:i speak|my (?:native |first )?language is) (?<value>${LANGUAGES})$`,
  ]),
  ...end('Person.Language', [
    like`^(?:stop|no longer|don't|do not) ${ANSWERING} (?<value>${LANGUAGES})(?: any ?more)?$`,
  ]),
  ...find('Project.Decision', [
    /^(?:we|i)(?:'ve| have)? (?:decided|agreed|settled|opted)(?: (?:yesterday|today|(?:last|in the|with) [\w-]{1,30})){0,3}(?::| on| for| that| to use| to go with| to)? (?<value>.+)$/i,
    /^(?:the )?decision(?: is|:)(?: to use| to)? (?<value>.+)$/i,
    /^(?:lets|let's|we(?:'ll| will)) (?:(?:go|stick) with|use) (?<value>.+)$/i,
    /^we (?:explicitly |deliberately |only )?use (?<value>.+)$/i,
    like`^let'?s (?:rather |better |instead |just |completely |simply ){0,2}(?<value>(?!use\b)${CHOOSES}.+)$`,
    like`^we (?<value>(?:should |must |need to |want to |have to )(?:rather |instead |only |just |not |never |always ){0,2}${CHOOSES}.+)$`,
    /^(?<value>we (?:(?:can't|cannot) (?:add|assume|block|break|change|depend|drop|fail|install|log|rely|remove|require|rename|store|upgrade|use)\b|(?:must not|mustn't|should not|shouldn't|don't want to|do not want to) ).+)$/i,
    /^that(?:'s| is) why we (?<value>.+)$/i,
    like`^(?:this|the|our) (?:${THINGS}) (?:uses|runs on|is (?:built|implemented|written) (?:in|on|with)) (?<value>.+)$`,
    /^we (?<value>(?:build|deploy|format|host|lint|log|monitor|publish|release|test) (?:[\w-]+ ){0,3}?(?:from|on|through|to|using|via|with) .+)$/i,
    /^(?<value>use (?:[^ ,]+ ){1,4}?)(?:instead of|rather than|not) .+$/i,
    /^(?<value>use [^ ,]+), not .+$/i,
    /^we(?:'ve| have)? (?:already |now )?(?<value>(?:(?:deliberately|explicitly|intentionally) )?(?:chose|deprecated|disabled|picked|removed|renamed|replaced) .+)$/i,
    /^we(?:'re| are|'ve| have)? (?:switch|mov|migrat)(?:ed|ing) (?:from .{1,80}? )?to (?<value>.+)$/i,
  ]),
  ...find('Project.Convention', [
    /^(?:(?:our|the) convention is|by convention,?|convention:) (?:that |to )?(?<value>.+)$/i,
    /^(?<value>(?:all|every|each) (?:[\w-]+ ){1,4}(?:must|should|have to|has to|needs? to) .+)$/i,
    like`^we (?:should|must|need to|have to) (?:also )?(?<value>${ORDERS}.{0,100}\b(?:all|always|any|each|every|never)\b.+)$`,
    /^(?:keep in mind|don't forget)(?: that)? (?<value>.{0,40}\b(?:all|always|any|each|every|never|only|must|we)\b.+)$/i,
    like`^we (?<value>(?:always|never) ${ORDERS}.+)$`,
    /^we (?<value>(?:don't|do not) (?:allow|commit|log|mock|push|ship|support|use|write)\b(?!.* any ?more).+)$/i,
    like`^in (?:this|our) (?:${THINGS}),? (?:please |we )?(?<value>(?:(?:don't|do not|never|always) ${ORDERS}|(?:avoid|name|prefer|rebase|squash|use|write)\b).*)$`,
    like`^(?<value>(?:(?:don't|do not|never|always) ${ORDERS}|(?:avoid|name|prefer|use|write) ).{1,100} in (?:this|our) (?:${THINGS})\b.*)$`,
    /^(?<value>(?!(?:it|this|that|he|she|they|you|i|we|there)\b)(?:[\w`"./-]+ ){1,6}(?:must|should) (?:always|never|only) .+)$/i,
    like`^(?:from now on,? |going forward,? )?(?<value>(?=${CODES}|(?:always |never )${ORDERS}${NAMES}).+)$`,
  ]),
  ...find('Project.Environment', [
    /^(?:the |our )?(?<value>(?:[\w.-]+ ){0,3}(?:port|host|hostname|url|version|address|directory|bucket|region|database) is (?:now )?(?=\S*[\d./:_-])\S+)$/i,
    /^(?:the |our )?(?<value>(?:[\w.-]+ ){1,4}(?:runs|listens|lives) (?:on|at) (?:port )?\S{0,60}\d\S{0,60})$/i,
    /^[Ww]e(?:'re| are) (?:on|running) (?<value>\p{Lu}[\w.+#-]* v?\d[\w.]*)$/u,
    /^(?:i'm|i am|we're|we are) (?:on|running|using) (?<value>(?:arch|debian|fedora|linux|mac ?os|nixos|ubuntu|windows|wsl2?)\b.*)$/i,
  ]),
  ...find('Project.Environment', [like`\b(?<value>(?:${FILES})(?: is)?(?: at| in| under)? ${PATH})`]).map(
    (rule): FactRule => ({ ...rule, named: true }),
  ),
  ...find('Project.Command', [
    like`^(?:(?:we|you) )?(?:${TASKS})\b[^\`]{0,60} (?:with|via|using|by running|through) \`(?<value>[^\`]+)\`$`,
    like`^(?:use|run) \`(?<value>[^\`]+)\` to (?:${TASKS})\b`,
    /^(?:the |our )?(?:[\w-]+ ){1,3}command is `(?<value>[^`]+)`$/i,
  ]),
  ...find('Project.Command', [
    like`(?<![\w/-])(?<value>${RUNNERS} (?!(?:and|fails?|in|is|it|on|scripts?|the|with)\b)[a-z][\w:.-]{1,40})`,
    like`\`(?<value>${BUILDERS} (?:${TASKS}|check|ci|clippy|fmt|generate|vet)(?<! run)(?: (?:\./\.{3}|[\w:=-]{1,40})){0,4})\``,
  ]).map((rule): FactRule => ({ ...rule, named: true, fromAssistant: true })),
  ...find('Project.Owner', [
    /^(?<value>(?!(?:It|He|She|This|That|They|We|You|Who|What|One|Everyone|Nobody)\b)(?:[Tt]he (?:[\w-]+ ){1,2}team|\p{Lu}\p{Ll}+(?: \p{Lu}\p{Ll}+)?) (?:owns|maintains|is responsible for|is in charge of) .+)$/u,
  ]),
  ...find('Work.Goal', [
    /^(?:(?:the|our|my) (?:main |overall |current )?(?:goal|aim|objective)(?: here| today| for today| for this session)? is|goal:) (?:to )?(?<value>.+)$/i,
    like`^(?:i'd like|i would like|i want|we want|we'd like|i need|we need|i'm trying|we're trying)(?: us)? to (?<value>${BUILDS}.+)$`,
  ]),
  ...find('Work.Blocker', [
    /^(?:i'm|i am|we're|we are|this is|it's|it is) (?:still )?(?:blocked|stuck) (?:by|on) (?<value>.+)$/i,
    /^blocker: (?<value>.+)$/i,
    /^(?:i'm|i am|we're|we are) (?:still )?waiting (?:for|on) (?<value>.+)$/i,
    /^(?<value>(?!(?:it|this|that|they|these|those|which|what|i|we|you|there|always|never|sometimes)\b)(?:["`]?[\w./:-]+["`]? ){1,5}(?:(?:is|are|keeps?) (?:still |now |again |currently )?(?:failing|broken|red)|(?:still |now |again )?fails?)\b.*)$/i,
    /^(?:the|my|our) (?:only |main |real |actual |current |remaining )?(?:blocker|issue|problem) (?:now |here |right now )?is (?:now |still |just |of course ){0,3}that (?<value>.+)$/i,
    /^(?:we (?:now )?(?:have|get|got)|there (?:is|are)(?: now| still)?) (?<value>(?:an? |some )?(?:[\w-]+ )?(?:(?:build|compile) (?:errors?|failures?)|cycles?|conflicts?|deadlocks?|race conditions?)\b.*)$/i,
  ]),
  ...end('Work.Blocker', [
    /^(?:i'm|i am|we're|we are|this is|it's|it is)? ?(?:no longer|not) (?:blocked|stuck) (?:by|on) (?<value>.+?)(?: any ?more)?$/i,
  ]),
  ...find('Work.NextStep', [
    /^(?:the )?next steps?(?: is|:)(?: to)? (?<value>.+)$/i,
    /^next,? (?:i|we)(?:'ll| will| need to| have to) (?<value>.+)$/i,
  ]).map((rule): FactRule => ({ ...rule, fromAssistant: true })),
  ...find('Work.NextStep', [
    /^(?:i|we) still (?:need|have) to (?<value>.+)$/i,
    /^(?:i'll|i will) (?:later |then |also )?(?<value>(?:ask|check with|discuss|follow up|release|talk to) .+)$/i,
  ]),
  ...find('Work.Deadline', [
    like`^(?:the |our )?deadline(?: for (?:[\w-]+ ){1,5}?)? ?is (?:on )?(?<value>.{0,60}?\b${DAY}.*)$`,
    like`^(?:the |our )?(?<value>(?:[\w-]+ ){1,6}?(?:is due|(?:must|has to|needs to) be (?:done|finished|ready|released|shipped)) (?:by|on|before) .{0,60}?\b${DAY}.*)$`,
    like`^(?:the |our )?(?<value>(?:[\w.-]+ ){1,5}is (?:planned|scheduled|set) (?:for|on) .{0,40}?\b${DAY}.*)$`,
    like`^we (?:have|need|want) to (?<value>(?:deliver|demo|finish|launch|release|ship)\b.{0,60}? (?:before|by|on) .{0,40}?\b${DAY}.*)$`,
  ]),
  ...['Person.Preference', 'Project.Decision'].flatMap((concept) => end(concept, ENDED)),
];

function like(strings: TemplateStringsArray, ...parts: readonly string[]): RegExp {
  return new RegExp(String.raw(strings, ...parts), 'i');
}

function find(concept: string, patterns: readonly RegExp[]): FactRule[] {
  return patterns.map((pattern) => ({ concept, pattern }));
}

function end(concept: string, patterns: readonly RegExp[]): FactRule[] {
  return patterns.map((pattern) => ({ concept, pattern, polarity: 'negated' }));
}
