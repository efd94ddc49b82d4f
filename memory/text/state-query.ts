import { contentTokens } from './keywords.ts';

/** The last thing that came of the work, what is open, and what was decided. */
export type StateKind = 'outcome' | 'open' | 'decided';

/** A question about where the work stands. */
export interface StateQuery {
  /** In order of weight. */
  readonly wants: readonly StateKind[];
  /** Words of the subject; empty where the whole project is asked about. */
  readonly about: readonly string[];
  /** Of a question for decisions, words of the sentences around it. */
  readonly beside?: readonly string[];
}

/** A longer prompt is work, whatever it ends with. */
const MOST_CHARS = 400;
const MOST_ABOUT = 6;
/** Of a sentence without spaces, beside the phrase. */
const REST_CHARS = 20;

/** Ways to ask; the first list is of languages that set spaces. A phrase ends where its subject may follow. */
const PHRASES: Readonly<Record<StateKind, readonly [spaced: readonly string[], unspaced: readonly string[]]>> = {
  outcome: [
    [
      'where (?:were|are|had) we(?: (?:at|up to|left off|stopped))?',
      'where did we (?:leave (?:off|things|it)|left off|stop|get to|end(?: up)?|break off)',
      'where (?:do |did )?(?:we|things) stand',
      'how far (?:did we get|are we|have we (?:got|come))',
      '(?:(?:let.?s )?(?:pick|continue|carry on|go on|resume)(?: it)?(?: up)? (?:from )?)?where we (?:left off|stopped|were)',
      'what (?:were we (?:doing|working on|up to)|did we do|have we done)(?: so far| last time| yesterday| last session)?',
      '(?:catch|get|bring) me (?:back )?up(?: to (?:speed|date))?',
      '(?:what(?: i|.)s )?(?:the )?(?:current |project )?(?:status(?: update)?|state of (?:play|affairs|things|the project|this project))',
      'what(?: i|.)s the (?:current )?state',
      'recap',
      'wo (?:waren|sind|standen|stehen|bleiben) wir(?: (?:gerade|denn|stehen ?geblieben))?',
      'wo (?:haben|hatten) wir (?:gestern |zuletzt |denn )?(?:aufgehört|abgebrochen|unterbrochen)',
      'wie (?:weit (?:sind|waren) wir|(?:ist|war) der (?:aktuelle )?stand)',
      '(?:was ist der (?:aktuelle )?)?stand der dinge',
      'wo geht.?s weiter',
      'was haben wir (?:zuletzt|bisher|gestern) gemacht',
      '(?:(?:en |por )?d[óo]nde|(?:en|por) qu[ée](?: punto)?) (?:est[áa]bamos|nos quedamos|quedamos|lo dejamos|[íi]bamos|vamos)',
      'cu[áa]l es el estado',
      'où (?:(?:en )?(?:étions|sommes|etions)[- ]nous|(?:est|était)[- ]ce qu.on (?:en )?(?:était|est)|(?:on )?en (?:était|est)(?:[- ]on)?|nous en étions)',
      'on en (?:était|est) où',
      'quel est l.état',
    ],
    [
      '(?:说|做|进行|进展|聊|讲|搞|停)到(?:哪|什么(?:地方|程度|阶段))(?:里|儿|一步|了)*|到哪一步了?|进度(?:如何|怎么样|怎样)|(?:目前|现在)的?(?:进度|进展)',
      '어디까지|어디였|(?:진행|현재) ?상황|뭘 하고 있었',
      'どこまで|どこから(?:でした|だっけ|再開)|どこだった|進捗(?:は|状況)|(?:現在|今)の状況',
    ],
  ],
  open: [
    [
      'what(?: i|.)s (?:still )?(?:left|missing|open|outstanding|pending|remaining|to do|next)(?: to (?:do|be done|finish))?',
      'what(?: is| are|.s|.re)? (?:there )?(?:still|else|left|yet) (?:is )?(?:left|missing|open|outstanding|pending|remaining|to do|to be done|needs? (?:doing|to be done))(?: to (?:do|be done))?',
      'what (?:do|did|must|should|can) (?:we|i) (?:still |next )?(?:have|need|want)?(?: still)?(?: left)?(?: to)? ?(?:do|finish|be doing)(?: next| still| now)',
      'what (?:do|did) (?:we|i) (?:still )?(?:have|need)(?: left)? to (?:do|finish)',
      'what (?:do|did) (?:we|i) still (?:have|need)',
      'what (?:still )?(?:remains|needs to be done|has to be done)(?: to (?:do|be done))?',
      '(?:what|which|any|list|show(?: me)?)(?: are| is)?(?: the| our| my| all)?(?: still)? (?:open|remaining|outstanding|pending|unfinished|left(?:over)?) (?:items|tasks|to-?dos?|questions|points|issues|work|things)',
      'what(?: i|.)s on (?:my|our|the) (?:to-?do list|list|plate)',
      '(?:my|our|the) (?:open )?(?:to-?dos?|to-?do list)',
      '(?:what are the )?next steps',
      'was (?:ist|bleibt|steht|wäre|gibt es|fehlt|liegt)(?: denn| uns)? noch(?: alles)?(?: (?:offen|übrig|zu tun|zu erledigen|aus|an))?',
      'was (?:ist|bleibt|steht) (?:offen|übrig|zu tun|an|aus)|was kommt als nächstes',
      'was (?:müssen|muss|sollten|soll|haben|habe) (?:wir|ich) (?:noch|als nächstes)(?: alles)? (?:tun|machen|erledigen|zu tun)',
      '(?:welche )?offene[nr]? (?:punkte|aufgaben|fragen|todos?)',
      'nächste schritte|próximos pasos|prochaines étapes',
      '(?:qué|que) (?:nos |me )?(?:queda|falta|quedaba|faltaba)(?:n)?(?: por hacer| pendiente| por terminar| hacer)?',
      '(?:qué|que) (?:(?:hay|está|tenemos|tengo) pendiente|sigue)',
      '(?:las )?(?:tareas|cosas|preguntas) (?:pendientes|abiertas)',
      '(?:qu.est[- ]ce qu(?:i|.il)|que) (?:nous )?reste(?:[- ]t[- ]il)?(?: à faire| encore)*',
      '(?:il )?reste (?:quoi(?: à faire)?|à faire)',
      '(?:les )?(?:tâches|points|questions) (?:restant(?:e)?s|ouvert(?:e)?s|en suspens)',
    ],
    [
      '还(?:有|剩|差|缺|需要|要|得)(?:下)?(?:什么|哪些|做什么|啥)(?:没做|没完成|要做|待办|事)?|还有(?:什么|哪些)(?:没|要|需)|剩(?:下|余)(?:了?(?:什么|哪些)|的?(?:工作|任务)(?:是什么|有哪些|$))|(?:什么|哪些)(?:待办|未完成|没做完)|待办(?:事项|列表)?(?:是什么|有哪些|$)|接下来(?:要)?(?:做|干)?什么|下一步(?:是|做|要)?(?:做)?什么?',
      '(?:뭐|뭐가|무엇이|무엇|어떤 (?:일|작업)이?) ?(?:아직 )?남(?:았|아|은)|(?:남은|미완료) ?(?:일|작업|것|게|할 일)(?:이|은)? ?(?:뭐|무엇|있|$)|할 ?일(?:이|은)? ?(?:뭐|무엇|있|$)|다음(?:에|은)? ?(?:뭐|무엇|할)',
      '(?:何|なに|なん)(?:が|を)?(?:まだ)?(?:残って|残り|やり残|すれば)|残(?:り|って(?:いる|る))の?(?:もの|タスク|作業)?は(?:何|なに|$)|(?:やること|未完了のタスク)は(?:何|なに|$)|次は(?:何|なに)|(?:まだ)?(?:何|なに)をすべき',
    ],
  ],
  decided: [
    [
      '(?:what|which (?:decisions?|options?|things)|what decisions?) (?:did|have|had) we (?:already |finally |actually )?(?:decided?|agreed?|settled?|chosen?|choose|made?|make|picked?)(?: (?:on|to do|upon))?',
      'what (?:was|were|has been|got) (?:decided|agreed|settled)(?: (?:on|upon))?',
      '(?:list|show(?: me)?|recap|remind me of) (?:all )?(?:the|our|all) decisions',
      '(?:remind me )?what we (?:decided|agreed|settled)(?: (?:on|upon))?',
      '(?:what(?: a|.)re )?(?:the|our) decisions(?: so far)?',
      'was (?:(?:haben|hatten) wir|wurde) (?:denn )?(?:beschlossen|entschieden|vereinbart|ausgemacht|abgemacht|festgelegt)',
      'worauf haben wir uns geeinigt',
      'welche entscheidungen(?: (?:haben|hatten) wir getroffen)?',
      '(?:qué|que) (?:decidimos|acordamos|habíamos decidido|hemos decidido|se decidió|se acordó|decisiones(?: tomamos)?)',
      '(?:qu.avons[- ]nous|qu.est[- ]ce qu.on a|qu.est[- ]ce que nous avons|qu.a[- ]t[- ]on) (?:décidé|convenu|choisi)',
      'quelles décisions',
    ],
    [
      '(?:决定|商定|确定|定|选)(?:了|下来)(?:的)?(?:是)?(?:什么|哪些|啥)|(?:做|作)(?:了|出了?)(?:什么|哪些)决定|(?:有)?哪些决定',
      '(?:뭘|뭐를|무엇을|뭐라고|뭐로|어떻게|어떤) ?(?:결정|정)(?:을|했|하기로|한)|결정(?:한|된|했던) ?(?:게|것|거|사항)',
      '(?:何|なに)(?:を|に)(?:決め|決定|決ま)|決まった(?:こと|の)|決めた(?:こと|の)は|決定事項',
    ],
  ],
};

const PREPOSITIONS =
  'with|on|for|about|regarding|concerning|in|around|bei(?: der)?|beim|mit|zu[mr]?|für|über|an|am|con|en|para|sobre|de la|del|avec|pour|sur|dans|à propos de';
/** Between a phrase and its subject, or the end. Another preposition makes it a question about a thing. */
const LEAD = new RegExp(
  `^[\\s,:]*(?:(?:again|now|then|today|so far|last time|yesterday|last session|last week|here|exactly|please|denn|nochmal|gerade|jetzt|zuletzt|letztes mal|heute|ahora|hoy|ayer|encore|maintenant|the last time|before the break)(?![\\p{L}])[\\s,]*)*(?<preposition>(?:${PREPOSITIONS})\\s+(?=[\\p{L}\\p{N}]))?`,
  'iu',
);
const SENTENCE =
  /[.!?？。！…\n;]+|,? (?:and|und|y|et) (?=wh|was |wo |qu|où)|[,，、]\s*(?=wh|was |wo |qu|où|还|哪|什么|뭐|何)/giu;
/** A subject that is the work itself. */
const WORK =
  /^(?:(?:of|this|that|the|our|my|das|dem|der|die|unser\w*|diese\w*|el|la|este|esta|nuestro|le|ce|cette|notre)\s+)*(?:project|repo(?:sitory)?|codebase|work|session|conversation|chat|task|things?|projekt|arbeit|sitzung|proyecto|trabajo|sesión|projet|travail)?$/iu;
const GREETING =
  /^(?:(?:hi|hey|hello|morning|good (?:morning|evening|afternoon)|ok(?:ay)?|so|well|and|alright|right|now|hallo|moin|guten (?:morgen|tag|abend)|also|und|hola|buenos días|y|bueno|bonjour|salut|et|alors|please|can you (?:tell|remind) me|could you (?:tell|remind) me|tell me|remind me|do you (?:know|remember)|kannst du mir sagen|weißt du(?: noch)?|sag mir)(?!\p{L})[\s,:!—-]*|[¿¡\s]+)+/iu;

/** What a prompt asks about the state of the work; null where it asks something else. */
export function readStateQuery(prompt: string): StateQuery | null {
  const text = prompt.trim();
  if (text === '' || text.length > MOST_CHARS) return null;
  const wants = new Set<StateKind>();
  const about = new Set<string>();
  const beside: string[] = [];
  for (const sentence of text.split(SENTENCE)) {
    const reading = readSentence(sentence.trim().replace(GREETING, ''));
    if (reading === null) beside.push(...contentTokens(sentence));
    else wants.add(reading.kind);
    for (const token of reading?.about ?? []) about.add(token);
  }
  if (wants.size === 0 || about.size > MOST_ABOUT) return null;
  const isForDecisions = beside.length > 0 && [...wants].join() === 'decided';
  return { wants: [...wants], about: [...about], ...(isForDecisions && { beside }) };
}

function readSentence(sentence: string): { readonly kind: StateKind; readonly about: readonly string[] } | null {
  if (!HINTS.some((hint) => hint.test(sentence))) return null;
  for (const { kind, sign, spaced } of SIGNS) {
    const match = sign.exec(sentence);
    if (match === null) continue;
    const about = spaced ? getSubject(sentence.slice(match[0].length)) : [];
    if (about === null || (!spaced && sentence.length - match[0].length > REST_CHARS)) continue;
    return { kind, about };
  }
  return null;
}

/** Words of what follows a phrase; null where that makes it a question about a thing. */
function getSubject(after: string): string[] | null {
  const lead = LEAD.exec(after);
  const subject = after.slice(lead?.[0].length).trim();
  if (WORK.test(subject)) return [];
  const about = lead?.groups?.['preposition'] === undefined ? [] : contentTokens(subject);
  return about.length === 0 ? null : about;
}

const SIGNS = (Object.keys(PHRASES) as StateKind[]).flatMap((kind) => {
  const [spaced, unspaced] = PHRASES[kind];
  return [
    ...spaced.map((phrase) => ({ kind, spaced: true, sign: new RegExp(`^(?:${phrase})(?![\\p{L}\\p{N}'’])`, 'iu') })),
    ...unspaced.map((phrase) => ({ kind, spaced: false, sign: new RegExp(phrase, 'u') })),
  ];
});

/** If none of these matches, none of `SIGNS` does. V8 discards compiled code of rarely used expressions; two compile faster than all. */
const [SPACED, UNSPACED] = ([0, 1] as const).map((at) => Object.values(PHRASES).flatMap((each) => each[at]));
const HINTS = [new RegExp(`^(?:${SPACED?.join('|')})`, 'iu'), new RegExp(`${UNSPACED?.join('|')}`, 'u')];
