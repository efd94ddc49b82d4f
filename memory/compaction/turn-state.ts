import { clip, oneLine, trimEnd } from '../../common/text.ts';
import { isCleanOrigin, isContinuation, lowestOrigin, type Origin } from '../../common/turn.ts';
import { withAbsoluteDates } from '../model/dates.ts';
import type { Decision, StatedItem } from '../model/node.ts';
import { DIALOGS, getAnswers, type TurnPart, type TurnText } from '../model/turn.ts';
import { getUrls } from '../text/actions.ts';
import { findImages, withoutImages } from '../text/content-type.ts';
import { contentTokens } from '../text/keywords.ts';
import { sharedWords } from '../text/paraphrase.ts';
import { repeatsShown } from '../text/repetition.ts';
import {
  asksUser,
  getConcept,
  getValues,
  isAsking,
  isNoise,
  isQuestion,
  LEAD_IN,
  REVISES,
  STANDING,
  splitSentences,
} from '../text/sentences.ts';
import { readStateQuery } from '../text/state-query.ts';
import { findStatements, type Statement } from '../text/statements.ts';
import { findSpoken, getLetters, type SpokenStatement, typedText, withoutMarkup } from '../text/typed-text.ts';
import { INSTEAD_OF } from '../text/validity.ts';

export type SkipReason = 'empty' | 'greeting' | 'notification' | 'command' | 'interrupted' | 'recalled';

/** What a turn leaves behind. All texts are quotes of the turn, with dates made absolute. */
export interface TurnState {
  readonly title: string;
  /** What the user typed, without what was pasted; '' where nothing was typed. */
  readonly asked: string;
  /** What was done or answered: the verdict and the end of the last answer. */
  readonly outcome: string;
  readonly outcomeOrigin: Origin;
  readonly decisions: readonly Decision[];
  /** To-dos, and the question that waits for the user. */
  readonly open: readonly StatedItem[];
  /** `asked` holds the user's own words only, as far as can be told. */
  readonly isTyped: boolean;
  /** What the assistant offers to do next; '' where it offers nothing. */
  readonly offer: string;
  readonly values: readonly string[];
  /** HIGH: the user decided or set a rule. */
  readonly importance: 'HIGH' | 'MED' | 'LOW';
  /** The user set a rule that outlives the task. */
  readonly rules: readonly string[];
  readonly told: readonly string[];
  readonly said: readonly string[];
  /** The question or offer of the turn before that it answers; '' where it answers none. */
  readonly answers: string;
  readonly answersOrigin: Origin;
  /** The turn only answers the turn before. */
  readonly isReply: boolean;
  /** It only lets the assistant do what it offers. */
  readonly isLeave: boolean;
  /** It lets the assistant do what it offers: the reply with the offer; '' otherwise. */
  readonly accepts: string;
  /** The assistant agrees to change what it said or did in the turn before. */
  readonly amends: boolean;
  /** It was wrong. */
  readonly refutes: boolean;
  /** Why the turn makes no memory; null where it makes one. */
  readonly skip: SkipReason | null;
}

const TITLE_CHARS = 70;
/** Takes what follows. */
const SHORT_TITLE = 30;
const ASKED_CHARS = 240;
const OUTCOME_CHARS = 420;
const VERDICT_CHARS = 240;
const ITEM_CHARS = 280;
const ITEMS = 12;
const VALUES = 20;
/** A longer reply states its subject itself. */
const REPLY_WORDS = 25;
const SHORT_REPLY = 6;
/** A prompt of so few words that got no answer says nothing. */
const SHORT_WORDS = 3;
const BARE_WORDS = 4;
/** Less of what is only shown says nothing. */
const SHOWN_CHARS = 60;
const SAID_TRIED = 5;
/** No block of one text continues in another. */
const MOST_BLOCKS = 100_000;
const SMALL_OUTCOME = 40;

const POLITE =
  /^(?:(?:ok(?:ay)?|yes|yeah|sure|hi|hey|hello|claude|great|thanks|please|so|and|now|also|well|question|can you|could you|would you|can we|could we|should we|let'?s|i(?:'d| would) like (?:you )?to|i want (?:you )?to|u[mh]+|(?:i've been|i was) thinking (?:about|that)|bitte|(?:kannst|könntest) du(?: (?:mir|uns|mal))?|por favor|pued[eo]s|podrías|peux-tu|pourrais-tu)(?![\p{L}\p{N}'])[\s,.!:-]{0,20}){1,6}/iu;
/** Says what is done next; after the turn it says nothing. */
const NARRATION =
  /^(?:(?:ok(?:ay)?|great|good|perfect|sure|alright|excellent|got it|right)\b[\s,.!—-]*){0,3}(?:now )?(?:let me|let's (?!use|go)|i'll|i will|i'm going to|i need to|i should|i have (?:an?|the|all) (?:\w{3,14} ){0,2}(?:picture|understanding|context|overview|design|information)\b|first,? (?:let|i)\b|now i|looking at|next,? (?:let|i)\b|here(?:'s| is| are) |(?:now )?(?:try|give) |you can (?:now )?(?:run|try|test|rebuild))/i;
const FILLER =
  /^(?:(?:(?:that'?s |this is )?(?:a |an )?(?:great|good|nice|excellent|interesting|clever|clean) (?:questions?|points?|catch|idea|call|thinking|approach|middle ground|solution)|exactly right|found it|updated|got it)(?=.{0,20}$)|you'?re (?:absolutely |completely )?right|(?:you'?re |you are )?welcome|(?:i'?m )?(?:so )?sorry(?: about that)?|my (?:bad|mistake)|sure|perfect|great|thanks?|thank you|noted|understood|ok(?:ay)?|of course|done|fixed|yes|no|absolutely|exactly|gern(?: geschehen)?|gut|alles klar|verstanden|de nada|vale|de acuerdo|entendido|d'accord|tut mir leid|不客气|抱歉|천만에요|알겠습니다|죄송합니다)[\s.!,—-]*$|^[\p{L}' -]{2,24}!$/iu;
const IS_DONE = /^(?:done|fixed|committed|pushed|merged|erledigt|fertig|hecho|listo|完成|好了|완료)[.!]*$/i;
/** Says that all is well. */
const PASSES =
  /^(?:all |the |both )?(?:\d+ )?(?:tests?|build|lint\w*)\b[^.]{0,60}\b(?:pass(?:es|ing)?|clean|green|issues)\b/i;
/** Says less than any other statement. */
const WEAK = /^(?:yes|no)\b.{0,20}$|^.{0,20}$/i;
/** Offers to go on. */
const OFFER =
  /^(?:(?:do you |if you(?:'d)? )?(?:want|like)(?:ed)? me to|would you like|shall i|should i|want me to|let me know|feel free|ready (?:to|for)|happy to|soll ich|möchtest du|quieres que|¿quieres que|要我|需要我)(?![\p{L}])|(?:what do you think|sounds? good|let me know|feel free|anything else)[^?]{0,80}[?!.]?$/iu;
const CHOSEN =
  /\b(?:decid(?:ed|e)(?= (?:to|on|that|against|for|yesterday|today|last|in the|with)\b|:)|(?:we|i)(?:'ll| will) (?:use|take|go with|stick with)|we(?:'re| are) using|let'?s (?:\w{1,30} ){0,2}(?:use|take|go with|keep|stick|remove|drop|rename|move|only|not|leave|skip|switch|set|store|ignore|make (?:it|th\w+))|(?:go(?:ing)?|stay|stick) with|(?:i(?:'d| would)? |we )(?:rather|prefere?)|(?:i|we)(?:'ve| have)? (?:\w{3,12}ly )?(?:cho(?:se|sen|osed)|picked|opted (?:for|to|against)|settled (?:on|for))|we went with|(?:i|we) (?:do not|don'?t) want(?! to\b)|(?:use|take|keep|no,) [^.]{0,60}\binstead|(?:(?:use|take|keep)s?|(?:must|should|ha(?:s|ve) to|needs? to) be) [^.,;]{1,60}(?<! to)(?:,? not)(?! (?:yet|only|sure|\p{L}+ing)\b)|(?:must|should|ha(?:s|ve) to|needs? to) [^.,;]{2,60} instead of|what (?:i|we) want is|on purpose|deliberately|that(?:'s| is) why we|not worth (?:it|the)|instead of [^.]{2,60}? (?:we should|use|take|do)|agreed (?:with [\w '-]{1,40} )?(?:to|on|that)|changed (?:my|our) minds?|(?:that's|it's|that is|it is) (?:now )?(?:decided|settled)|(?:we|i)(?:'re| are)? no longer|no longer (?:use|need|want|support)|only ever|(?:not in|out of) scope|overkill|(?:is|are) (?:forbidden|not allowed)|(?:undo|scrap|revert) (?:it|th(?:is|at|ese|ose)))\b|\d\p{L}{0,2},? not \d|(?:^|[,;:.] )(?:and |then |so )?(?:back to \d|make it (?:an? )?(?:\d|one|two|three|half))|\bit is(?: then)?[.!]*$|^[^.,;]{2,40} for now(?=[.!,;]|$)|^(?:(?:ok(?:ay)?|actually|no|please|let'?s|hmm)[,. ]+){0,3}(?:go|change|switch|revert) (?:it )?back to\b|(?:^|[,;:.] )(?:just |please )?(?:leave|keep) (?:it|them|this|that) (?!out\b)\S|^agreed[,:.] \p{L}|^(?:no|nope|nein)\b[^.?]{0,60}(?:must(?:n'?t| not)|d(?:arf|ürfen) (?:nicht|kein))\b|^(?:no|nope|nein)[,.]? (?:remove|revert|keep|use|do(?:n'?t)?|leave|drop|undo|ignore|rather|just)\b|(?:^|[,;:.] |\b(?:please|and|but|so|also|just|no|stop|wait) )(?:do not|don'?t)\b(?! (?:forget|let (?:me|us) forget|worry|ask|know|mind|think|see|understand|care)\b|[^,.;]{1,60} (?:yet|for now)\b| \w{1,20} (?:anything|any (?:code|files?))(?:\W{0,9}$|[,.;:!]| [—–-]| (?:but|just)\b))|(?:하기로|말고|쓰자|사용하자|결정|지 ?(?:마세요|말아|말자)|[걸으]?로 (?:가죠|가자|갑시다|하죠|합시다))|(?:决定|不要|改用|就用|不再|别用|改回|还是用)|決定|ないでください|にしましょう|でいきましょう|(?<!\p{L})(?:entschieden|stattdessen|nehmen wir|wir nehmen|lieber|nicht mehr|bleiben (?:wir )?bei|(?:heben|senken|setzen|stellen|erhöhen|lassen|machen|streichen|behalten) wir|dann doch|décidé|plutôt|on garde|usemos|prefiero|en vez de|(?:hemos )?decidi(?:mos|do)|acordamos|quedamos (?:con|en)|vamos a usar|al final sí|(?<=^no,? )mejor|volv(?:amos|emos) a|on (?:prend|part sur|revient|reste)|niente|usiamo|prefiro|em vez de|vamos de|не (?:надо|используй|трогай)(?:те)?|давай(?:те)?|вместо|wir (?:bleiben|verwenden|migrieren|lassen)|zurück (?:auf|zu)|nicht (?:anfassen|ändern|löschen|verwenden|nutzen)|(?:nimm|nehmt|nutze?|verwende) [^.,;]{1,40} nicht|us(?:a|ar|e|amos) [^.,;]{2,40} y no)(?!\p{L})/iu;
const BAN =
  /\b(?:(?:must|may) (?:not|never)|mustn'?t)\b|(?<!\p{L})(?:d(?:arf|ürfen) (?:[\p{L}\d_-]{1,20} ){0,4}?(?:nicht|nie|kein\p{L}{0,2})|no deben?|ne doi(?:t|vent) (?:pas|jamais))(?!\p{L})|(?:不得|不能|禁止|면 안 ?[되돼됩])/iu;
const BAN_LEAD = /^(?!(?:if|when|unless|wenn|falls|si|cuando|quand)(?!\p{L})).*(?:[:;]|, (?:and|und|y|et)) /iu;
/** What a short reply agrees with, or turns down. */
export const ADVISES =
  /\b(?:i(?:'d| would) (?:\w+ )?(?:recommend|suggest|use|go (?:with|for)|keep|leave|wait|add|start|stick|prefer|take|pick|choose|avoid|not|lean towards?)\b|i recommend|i suggest|my (?:instinct|take|preference|vote) (?:is|would be)\b|(?:my |the )?recommend(?:ed|ation)\b|(?:would be|is) (?:the )?(?:better|best) (?:choice|option)?)|(?<!\p{L})(?:ich würde|würde ich|(?:ich )?empfehle|besser wäre|(?:yo )?(?:usaría|recomiendo|sugiero|recomendaría)|je recommande|j'utiliserais)(?!\p{L})|建议|推荐|권장|추천/iu;
/** Draws the conclusion from what was just said. */
const THEREFORE =
  /\bthen(?=[.!,]*$|, |,? (?:so|because|since)\b)|^(?:ok(?:ay)?,? )?(?:dann|entonces|pues) (?!noch|als)/iu;
const THEREFORE_WORDS = 12;
/** What an answer comes down to. */
export const CONCLUDES =
  /^(?:(?:(?:the|an?|my|best|final|updated|proposed|recommended) )?(?:\w{2,12}er )?(?:root cause|cause|problem|issue|reason|fix|solution|verdict|conclusion|recommendation|result|answer|bottom line|tl;?dr|summary)\b|(?:my|in short|so the|the key)\b|fazit|ursache|lösung|empfehlung|conclusión|causa|原因|结论|建议|원인|결론)|\b(?:root cause|was caused by|turned out|fixed by|i(?:'d)? recommend|i(?:'d| would) (?:go with|suggest))\b/iu;
/** So is a lead-in without what follows, unless it concludes. */
export const isWeak = (text: string): boolean =>
  PASSES.test(text) || WEAK.test(text) || (text.endsWith(' …') && !CONCLUDES.test(text));
/** Headings of lists that only say where. */
const ASIDE =
  /^(?:(?:rejected|discarded|ruled out|not (?:chosen|taken))\b|alternatives considered|(?:verworfen|abgelehnt|descartad[oa]s?|rechazad[oa]s?)(?!\p{L})|已否决|기각|files?\b|sources?\b|usage\b|examples?\b|references?\b|how to (?:run|test)|visual|test results?|what (?:it|this) does|(?:key )?(?:benefits|advantages|strengths)|pros$|praise|legend\b)/iu;
const OPEN_ITEM =
  /^\[ \]|^(?:but )?(?:i )?(?:have not|haven't|did not|didn't) (?:yet )?(?:run|push|commit|deploy|appl|merge|migrat|updat|re-?\p{L})|\b(?:to-?dos?|still (?:to do|needs?|ha(?:ve|s) to|missing)|remind me|don'?t (?:let (?:me|us) )?forget|(?:need|have) to remember|needs? (?:the|an?|its|\p{L}+'s) (?:change|fix|update|review|sign-?off|approval)|i (?:could(?: not|n't)|can(?:not|'t)|was(?: not|n't) able to|have no way to) (?:test|verify|send|push|deploy|publish)|due (?:by|on|next|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\p{L}* \d)|(?<!\b(?:if|when|until|unless|while|that) [^.]{0,40})(?:still fail(?:s|ing)?|not (?:been )?(?:done|applied|deployed|merged|tested) yet|not yet (?:done|applied|deployed|merged|tested))|needs? to be (?:done|fixed|checked|decided|rotated|updated)|i(?:'ll| will| have to| need to| must) (?:follow up|ask|check with|talk to|come back)|(?:later|at some point),? (?:i|we) (?:have to|must|need to|should))\b|\b(?:remaining|outstanding|next steps?|action items?|follow-?ups?|left(?: to do)?|open(?: (?:questions?|items?|points?))?)(?: (?:for|before|on|in) [\w -]{1,30})?:|\b(?:will|'ll|has to|have to|needs?|should|must|let's|promised|decides|delivers|reviews|sends|signs) (?:[\p{L}\p{N} '_/()-]|\.(?! )){0,80}\b(?:later|at some point|in a follow-up|in q[1-4]|(?:(?:by|until|before|on) )?(?:tomorrow|tonight|next (?:week|month|sprint|release))|(?:by|until|before|on) (?:(?:next |the )?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)|end of|the end|(?:the )?\d{1,2}(?:st|nd|rd|th)|\d{1,2}(?=[.,;!)]|$| ?[ap]m\b|:\d)|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))|(?<!\p{L})(?:(?:noch|weiterhin) offen|offen (?:ist|sind|bleibt|bleiben)|(?:konnte|kann) ich (?:\p{L}+ ){0,3}nicht (?:testen|prüfen|senden)|no (?:puedo|pude|he podido) (?:enviar|probar|verificar|subir)|noch zu tun|fehl(?:t|en) noch|noch fehl(?:t|en)|noch nicht (?:gelaufen|angewendet|getestet|umgesetzt|erledigt)|(?:muss|müssen|sollten?) (?:\p{L}{2,4} )?(?:noch|bis(?! zu ))|bis (?:morgen|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|ende)|pendientes?|(?<!hace )faltan?|todavía hay que|(?:pense[zr]?|penser) à|n'oublie[zr]? pas|(?:il )?reste à|tiene[ns]? que (?:[\p{L}\p{N} '_/()-]){0,80}(?:antes del?|hasta|para el|mañana|el (?:lunes|martes|miércoles|jueves|viernes))|erinner\p{L}{0,2} (?:mich|uns)|(?:nicht |no )(?:vergess|olvid)\p{L}+|vergiss nicht|recuérda(?:me|nos))(?!\p{L})|(?:提醒我|别忘|잊지|待办|还需要|尚未|还没|之前(?:完成|要)|[让请][^，。,]{1,6}在[^，。,]{1,12}前|아직|남은 일|할 일|까지 (?:해야|끝|[^.\n]{0,12}(?:준다|주기로|하기로|보내)))/iu;
/** What the speaker wants to do at a later time; English has its own words for it above. */
const OWN_PLAN =
  /(?<!\p{L})(?:(?:\p{L}{2,12}(?<!hab|hatt|hätt|wär|war|wurd|hieß)e ich|ich \p{L}{2,12}(?<!hab|hatt|hätt|wär|wurd)e) (?:[\p{L}\p{N}_/.-]{1,40} ){0,6}?(?:(?<!heute |gestern )morgen|übermorgen|nachher|nächste woche|(?:am|bis) \p{L}{2,6}tag|(?:am|bis) mittwoch)|(?:(?<!heute |gestern )morgen|übermorgen|nachher|nächste woche) \p{L}{2,12}(?<!hab|hatt|hätt|wär|wurd)e ich|(?:yo|l[ao]s? \p{L}{2,12}(?:o|ré)) (?:[\p{L}\p{N}_/.-]{1,40} ){0,6}?(?:(?<!la |esta )mañana|más tarde|la semana que viene|el (?:lunes|martes|miércoles|jueves|viernes))|je (?:m'en \p{L}{2,14}|(?:l[ae]s? |l')?\p{L}{2,14}(?:rai|ais|is)) (?:[\p{L}\p{N}_/.-]{1,40} ){0,6}?(?:demain|plus tard|la semaine prochaine|(?:lun|mar|mercre|jeu|vendre)di))(?!\p{L})/iu;
const OPEN_HEADING =
  /^(?:next steps?|action items?|to-?dos?|open (?:questions?|items?|points?)|remaining(?: work)?|outstanding|follow-?ups?|still (?:to do|open)|offen(?:e punkte)?|nächste schritte|pendientes|待办|下一步|남은 (?:작업|일)|할 일)(?!\p{L})/iu;
const REPLY =
  /^(?:y|n|yes|yep|yeah|yea|ye|yup|ja|nein|no|nope|sure|k|ok(?:ay)?|do it|do that|go ahead|please do|sounds good|both|all|neither|none|the (?:first|second|third|last)|let'?s|sí|si|vale|dale|claro|adelante|oui|non|d'accord|passt|genau|gerne?|beides?|ambos|ambas|les deux|las dos|sim|não|sì|va bene|да|нет|давай|好的?|是的?|对|不|可以|没问题|都要?|행|네|응|좋아요?|아니요?|둘 다|はい|いいえ|うん)(?![\p{L}\p{N}])/iu;
/** Such a reply only rejects something, so the title is taken from the outcome. */
const SAYS_NO = /^(?:no|nope|nein|non)\b/i;
const BARE =
  /^(?:y|yes|yep|yeah|yea|ye|yup|ja|sure|k|ok(?:ay)?|do it|do that|go ahead|please(?: do)?|sounds good|sí|si|vale|dale|claro|adelante|oui|d'accord|passt|gerne?|sim|sì|va bene|да|давай|好的?|是的?|对|可以|네|응|좋아요?|はい)?[\s.,!]*(?:(?:please(?: do)?|do it|do that|go ahead|let'?s (?:do|try|add|go for) (?:it|this|that)|let'?s)[\s.!]*)?$/iu;
/** After what names an option: nothing, or words that say what is done with it; any other word is what the figure counts. */
const AFTER = String.raw`(?=[\s.!)]*$|\s?[,;:!]|\.\s|\s[-–—]|\s(?:and|or|und|oder|y|o|but|aber|pero|mais|with|mit|please|pls|bitte|for now|first|later|too|also|out|works|is fine|yes|no|not|erstmal?|zuerst|später|weg|raus|auch|nicht|reicht|passt|primero|por ahora|también)(?![\p{L}\p{N}])|[번号])`;
const OPTION = String.raw`#?(\d{1,2}(?!(?![번号])[\p{L}\d%]|[.:]\d)|[a-h]${AFTER})`;
const OPTIONS = `${OPTION}${String.raw`(?:[.)]?\s?(?:,|and|&|\+|und|y)\s?${OPTION})?`.repeat(2)}`;
const NUMBERED = new RegExp(
  String.raw`^(?:(?:yes|yeah|ok(?:ay)?|please|do|go with|let'?s (?:do|go with|try)|implement|take|use|fix|i(?:'d)? (?:like|prefer|go with|take)|ja|nimm|mach|sí|vale|usa|mejor|oui|prends)[\s,]+|(?:好的?|可以|就|用|选|네|응|좋아요)[\s,，]*){0,4}${OPTIONS}`,
  'iu',
);
/** Options that a reply names where it does not begin with them, taken or left out. */
const NAMED = new RegExp(
  String.raw`(?:^(?:(?:yes|yeah|ok(?:ay)?|please|let'?s|ja|sí|oui)[\s,]+){0,3}[\p{L}'-]{2,12}|(?<!\p{L})(?:skip|not|no|except(?: for)?|but|without|drop|ignore|omit|minus|out|only|just|ohne|außer|nicht|nur|lass|kein|sin|menos|salvo|excepto|solo|sans|sauf|pas))\s(?:(?:the|die|der|das|la|el|le|l[oae]s|number)\s)?${OPTIONS}${AFTER}|(?:除了?|不要|跳过|别做)\s?(\d{1,2})|(\d{1,2}|[a-h])(?=[번号])`,
  'giu',
);
/** By their place among the options: `the second one`; without an article it says when, not which. */
const ORDINALS = [
  ['first|erste[nrs]?|primer[ao]?|premi(?:er|ère)', '第一|첫 ?번째'],
  ['second|zweite[nrs]?|segund[ao]|deuxième|seconde?', '第二|두 ?번째'],
  ['third|dritte[nrs]?|tercer[ao]?|troisième', '第三|세 ?번째'],
  ['last|letzte[nrs]?|últim[ao]|derni(?:er|ère)', '最后一|마지막'],
].map(
  ([spaced, unspaced]) =>
    new RegExp(
      `(?:the|die|der|das|den|el|l[ae]) (?:${spaced})(?: (?:one|option|variante?))?${AFTER}|(?:${unspaced})[个種种]?`,
      'iu',
    ),
);
const OPTION_WORD =
  /(?:options?|approach|alternative|s[cz]enario|escenario|plan|variante?|number|nr\.?|opción|方案|选项|옵션)\s?(?=#?(?:\d|[a-h](?!\p{L})))/giu;
const FIGURE = /(?<![\p{L}\p{N}.])\d(?![\p{L}\p{N}%]|[.:]\d)/gu;
/** After a choice; other words say something about the option, and may reject it. */
const CHOSEN_SO =
  /^[번号]?[\s.!)]*(?:$|[,;:–—-]|(?:and|und|y|but|aber|pero|mais|with|mit|please|bitte|works|is fine|reicht|passt)(?!\p{L}))/iu;
/** Names an option: `B) …`, `2. …`, `Option 2 – …`, `Phase 2: …`. */
const LABEL = /^(?:(\p{L}{2,12})\s?(\d{1,2}|[A-H])(?=\s?[:.()–—-]|\s*$)|([A-H]|\d{1,2})[).:]\s)[\s:.–—-]*/u;
export const OF_OPTION =
  /^(?:option|approach|alternative|s[cz]enario|escenario|plan|variante?|opción|方案|选项|옵션)\s?(?:\d{1,2}|[A-H])\s?(?:[:.)–—-]|$)/iu;

/** Options in one sentence: `a) …, b) …`. */
const INLINE = /(?:^|\s)\(?([a-h1-9])\)\s/i;

const COMMAND = /^\/[\w:-]{1,60}(?:\s|$)/;
/** Commands that Claude Code runs itself, in front of the prompt that was typed after them. */
const CLIENT_COMMANDS =
  /^(?:\/(?:add-dir|branch|btw|clear|color|compact|config|context|effort|export|fast|fork|mcp|model|output-style|permissions|plugin|rename|resume|usage)\b[^\n]{0,200}\n\s{1,9}){1,9}(?=\S)/;
const NOTIFICATION =
  /^\W{0,3}(?:\[?heartbeat|(?:ping|pong|keep-?alive|tick|noop|beep)(?:\W{1,3}\w{1,40}){0,2}\W{0,9}$|no response requested|request interrupted|api error\b|this is a scheduled|periodic check-in|\[?(?:system|monitor|cron|webhook)(?: event| notification)?\]?:)/i;
const HEARTBEAT = /\bheartbeat[_ ]?ok\b/i;
const GREETING =
  /^\W{0,3}(?:(?:(?:hi|hey|hello)(?: (?:there|again|claude|everyone))?|good (?:morning|afternoon|evening)|thanks?(?: you)?(?: (?:so|very) much| a lot)?|thx|cheers|great|perfect|nice(?: work)?|awesome|cool|bye|good ?(?:bye|night)|see you(?: \w{1,8})?|bis (?:morgen|bald)|hasta (?:mañana|luego)|that'?s all|danke(?: dir)?|hallo|tschüss|gracias|hola|adiós|merci|谢谢|多谢|你好|再见|감사합니다|고마워|안녕하세요)[\s!.,:)-]{0,20}(?:\p{Extended_Pictographic}\s{0,4})?){1,4}$/iu;

/** Asks for a choice, not for a fact. */
const ASKS_CHOICE =
  /\b(?:should|which|prefer\w*|or(?! (?:are|is|did|was|were)\b)|ok(?:ay)?|agreed?)\b|(?<!\p{L})(?:soll(?:en|te)?|welche\p{L}?|oder|prefieres|cuál|quel(?:le)?|qual[e]?|ou?|или|как\p{L}{2,3})(?!\p{L})|[哪吗]|还是|아니면|それとも/iu;
/** A prompt that only asks to continue. */
const CONTINUE =
  /^(?:(?:yes|ok(?:ay)?|please|sure|ja|bitte|sí|oui)[\s,.]{1,20}){0,4}(?:go on|continue|keep going|proceed|carry on|resume|(?:mach )?weiter(?: so)?|sigue|continúa|continuez?|继续|계속(?:해)?|続けて)(?: (?:please|bitte|with (?:it|that|this)|(?:from )?where you (?:left off|stopped))){0,4}[\s.!。]*$/iu;
const GOES_ON = new Set(
  contentTokens(
    'continue continuing go going keep proceed proceeding carry resume resuming left off work start understood noted sure said echo now weiter mache alles klar ich geht es sigo claro continuo 好的 继续 네 계속 続け',
  ),
);

/** One that ends without a full stop. */
const PARAGRAPH = /[\p{L}\p{N}](?=\n\n)/gu;

const states = new WeakMap<TurnText, { readonly before: TurnText | undefined; readonly state: TurnState }>();

/** Reads what a turn leaves behind. @param before  the turn that it follows in its session */
export function readTurnState(turn: TurnText, before?: TurnText): TurnState {
  const stateOfTurn = states.get(turn);
  if (stateOfTurn !== undefined && stateOfTurn.before === before) return stateOfTurn.state;
  const state = readTurn(turn, before);
  states.set(turn, { before, state });
  return state;
}

function readTurn(turn: TurnText, before: TurnText | undefined): TurnState {
  const typed = withoutResent(typedText(withoutImages(turn.user)).replace(CLIENT_COMMANDS, ''));
  const stated = findStatements(typed);
  const noted = stated.filter(({ text }) => !isNoise(text, 'user'));
  const answer = readAnswer(turn);
  // A passing question is worth its answer.
  const request = noted.length === 0 && answer.said.some(isTelling) ? stated : noted;
  const reply = getReply(typed, turn, before);
  const bound = reply?.isFree === true ? null : reply;
  const spoken = findSpoken(request, typed, before === undefined ? '' : getAnswers(before).join('\n'));
  const own = getOwn(spoken);
  const isWhole = own.length === stated.length && typed.length <= ASKED_CHARS;
  const statedAsked = isWhole ? inSentences(typed) : findRequest(spoken, stated);
  const dated = (text: string): string => withAbsoluteDates(text, turn.atMs);
  const askedText = dated(request.length === 0 ? '' : withQuoted(statedAsked, withoutMarkup(turn.user)));
  const concluded = concluding(answer.said);
  const texts = [...new Set(withOptions(concluded, answer.said).map(dated))];
  const [conclusion = 'no answer', ...others] = texts;
  const statements = turn.unfinished === true ? [`Not finished: ${conclusion}`, ...others] : texts;
  const getOrigin = (text: string): Origin =>
    repeatsShown(text, [turn]) ? lowestOrigin([answer.origin, 'tool']) : answer.origin;
  const outcome = clipOutcome(statements, OUTCOME_CHARS);
  // Asked only where the work stands, an answer says again what memory holds.
  const isRecap = own.every(({ text }) => isAsking(text)) && readStateQuery(typed) !== null;
  const byNumber = findNumbered(typed, turn, before);
  const isByNumber = byNumber.answers.length > 0;
  const amends = before !== undefined && concedes(turn);
  const byUser = isByNumber ? findDecisions(byNumber.after) : findDecisions(own, before, amends);
  const item =
    (origin: Origin) =>
    (text: string): StatedItem => ({ text: dated(clip(text, ITEM_CHARS)), origin, turn: turn.turnId });
  const asUser = item(turn.userOrigin ?? 'user');
  const dialogs = [...findAnswered(turn), ...byNumber.answers].slice(0, ITEMS);
  const answered = dialogs.map(({ text, origin }) => item(origin)(text));
  const quotesOwn = (text: string): boolean => reply?.origin === 'user' && reply.text.includes(text);
  const isWholeReply = reply?.isLeave === false && quotesOwn(oneLine(typed));
  const replied = [
    ...(reply === null || reply.isLeave ? [] : [item(reply.origin)(reply.text)]),
    ...(isWholeReply ? [] : byUser.filter((text) => !quotesOwn(text)).map(asUser)),
  ].slice(0, ITEMS);
  const decisions = [...answered, ...(isByNumber ? byUser.map(asUser) : replied)].map(
    (each): Decision => ({ ...each, by: 'user' }),
  );
  const todos = findTodos(own);
  const open = [
    ...(reply?.origin !== 'user' || todos.length === 0 ? todos : [reply.text]).map(asUser),
    ...(reply?.later ?? []).map(item(reply?.origin ?? 'user')),
    ...waiting(isRecap ? [] : answer.said, todos).map((text) => item(getOrigin(text))(clipItem(text))),
  ].slice(0, ITEMS);
  const rules = turn.userOrigin === undefined ? own.filter(({ text }) => isRule(text)).map(({ text }) => text) : [];
  const isHigh =
    turn.userOrigin === undefined &&
    (rules.length > 0 || byUser.length + answered.length > 0 || reply?.isChoice === true);
  const quoted = [askedText, outcome, ...[...decisions, ...open].map(({ text }) => text)];
  const skip = skipReason(turn, typed, {
    outcome: clipOutcome(texts, OUTCOME_CHARS),
    isEmpty: decisions.length + open.length === 0,
    kept: [...byUser, ...todos],
    noted,
  });
  return {
    title: getTitle(request, texts.find((text) => !isWeak(text)) ?? outcome, bound),
    asked: askedText,
    outcome,
    isTyped: spoken.some((each) => each.own !== ''),
    outcomeOrigin: lowestOrigin([answer.origin, ...concluded.map(({ text }) => getOrigin(text))]),
    decisions,
    open,
    offer: findOffer(answer.said),
    values: [...new Set(quoted.flatMap(getValues))].slice(0, VALUES),
    importance: isHigh ? 'HIGH' : outcome === '' && decisions.length + open.length === 0 ? 'LOW' : 'MED',
    rules,
    told: own.flatMap(({ text }) => (isAsking(text) ? [] : [dated(text)])),
    said: statements,
    answers: bound?.question ?? '',
    answersOrigin: bound?.origin ?? 'user',
    isLeave: bound?.isLeave === true && todos.length === 0,
    accepts: bound?.isLeave === true ? dated(clip(bound.text, ITEM_CHARS)) : '',
    amends,
    refutes: amends && OBJECTS.test(typed),
    isReply: bound !== null || (request.length > 0 && typed.split(/\s+/).length <= BARE_WORDS && REPLY.test(typed)),
    skip,
  };
}

/** With the first line of what was pasted after a colon, such as the message of an error. */
function withQuoted(asked: string, user: string): string {
  return asked.replace(/([^:：]{3,40}[:：]) …/, (whole, lead: string) => {
    const at = user.indexOf(lead.trim());
    const [line = ''] = at < 0 ? [] : (/[^\s`][^\n]*/.exec(user.slice(at + lead.trim().length)) ?? []);
    return line === '' ? whole : `${lead} “${clip(oneLine(line), SHOWN_CHARS)}”`;
  });
}

const inSentences = (typed: string): string => oneLine(typed.replace(PARAGRAPH, '$&.')).replace(LEAD_IN, '');

const RESENT_CHARS = 4_000;
const RESENT_LETTERS = 12;

/** Without a prompt that was stopped and sent again. */
function withoutResent(typed: string): string {
  const prompts = typed.split('\n\n');
  if (prompts.length < 2 || typed.length > RESENT_CHARS) return typed;
  const letters = prompts.map(getLetters);
  const isResent = (own: string, at: number): boolean =>
    own.length >= RESENT_LETTERS && letters.slice(at + 1).some((later) => later.includes(own));
  return prompts.filter((_, at) => !isResent(letters[at] as string, at)).join('\n\n');
}

const getOwn = (spoken: readonly SpokenStatement[]): Statement[] =>
  spoken.flatMap(({ statement, shown }) => (shown === '' ? [statement] : []));

const PICKED = /"([\s\S]{1,400}?)"="([^"]{1,300})"/g;
const APPROVED = /^User has approved [\s\S]*?\n## Approved Plan[^\n]{0,40}:\s+(?:#+ )?(\S[^\n]{0,200})([\s\S]*)/;

/** What the user picked in the client's dialogs, and the plans that they approved. */
function findAnswered({ parts, userOrigin }: TurnText): { readonly text: string; readonly origin: Origin }[] {
  if (userOrigin !== undefined) return [];
  return parts.flatMap(({ kind, tool, text }, at) => {
    if (kind !== 'tool_result' || !DIALOGS.has(tool)) return [];
    const asked = parts.slice(0, at).findLast((part) => part.kind === 'tool_use' && part.tool === tool);
    const origin = isCleanOrigin(asked?.origin ?? 'external') ? 'user' : 'external';
    const [, plan, steps = ''] = (tool === 'ExitPlanMode' && APPROVED.exec(text)) || [];
    const picked = tool === 'ExitPlanMode' ? [] : [...text.matchAll(PICKED)];
    const texts =
      plan === undefined
        ? picked.map(([, to, answer]) => `“${answer}” to “${to}”`)
        : [`plan approved: “${joinWithin([plan, findStatements(steps)[0]?.text ?? ''], ASKED_CHARS)}”`];
    return texts.map((each) => ({ text: each, origin }));
  });
}

/** The last text of the assistant; from an earlier one on where the last only says that all is well. */
function readAnswer(turn: TurnText) {
  const answers = spokenTexts(turn)
    .slice(-SAID_TRIED)
    .map(({ text, origin }, at) => {
      const said = findStatements(text).filter((each) => !isNoise(each.text, 'assistant'));
      return { said: said.map((each) => ({ ...withItems(each), block: each.block + at * MOST_BLOCKS })), origin };
    });
  const findFrom = (test: (each: Statement) => boolean) => answers.findLastIndex(({ said }) => said.some(test));
  const strong = findFrom(({ text }) => !isWeak(text) && (CONCLUDES.test(text) || CHANGED.test(text)));
  const from = strong >= 0 ? strong : findFrom(isTelling);
  const used = answers.slice(from < 0 ? -1 : from);
  return {
    said: used.flatMap(({ said }) => said),
    origin: lowestOrigin(used.length === 0 ? ['assistant'] : used.map(({ origin }) => origin)),
  };
}

/** With all items of a list that was cut. */
const withItems = (each: Statement): Statement =>
  each.text.endsWith(' in all)') ? { ...each, text: each.short } : each;

const spokenTexts = ({ parts }: TurnText): TurnPart[] =>
  parts.filter(({ kind, text }) => kind === 'assistant' && text.trim() !== '' && !isContinuation(text));

/** The assistant takes back what it said or did before. */
const CONCEDES =
  /^(?:(?:ah|oh|hm+|ok(?:ay)?|yes|no)[\s,.!—-]+){0,2}(?:you(?:'re| are) (?:\w{3,12}ly )?(?:right|correct)|(?:good|great) catch|(?:that was )?my (?:mistake|bad)|(?:i'?m )?sorry|apologies|i (?:was wrong|misunderstood|misread|misspoke)|revert(?:ed|ing)|du hast recht|(?:das )?stimmt|mein fehler|tienes razón|tu as raison|vous avez raison)(?![\p{L}])|^(?:你说得对|맞습니다|죄송|抱歉)/iu;

/** The user does not agree. */
const OBJECTS =
  /^(?:(?:hm+|ok(?:ay)?|and|so)[\s,.!]+)?(?:no(?:pe)?|but|sorry|actually|wait|nein|aber|pero|mais)(?!\p{L})|\b(?:wrong|incorrect|not (?:\w{3,8} )?(?:correct|right|true)|undo|revert)\b|(?<!\p{L})(?:falsch|stimmt nicht|incorrecto|faux)(?!\p{L})|(?:不对|错了|아니|틀렸|違)/iu;

/** Says what is to be, in the user's correction. */
const DEMANDS = /\b(?:should(?:n't)?|must(?:n't)?|ha(?:s|ve) to|needs? to|make sure|keep|instead|only)\b/i;

/** Whether the answer begins with taking back what was said or done before. */
const concedes = (turn: TurnText): boolean =>
  turn.userOrigin === undefined &&
  spokenTexts(turn)
    .slice(0, 2)
    .some(({ text }) => CONCEDES.test(text.trimStart().replaceAll('’', "'")));

function isTelling({ text }: Statement): boolean {
  return !NARRATION.test(text) && !OFFER.test(text) && !FILLER.test(text) && !isQuestion(text);
}

const NAMES_OPTION = /\b(?:option|approach|alternative) (\d|[A-H])\b(?!\s?[(:–—-])/i;

/** One of several ways, which the answer need not take; a conclusion below the last of their headings is none. */
function isOption({ text, heading }: Statement): boolean {
  if (OF_OPTION.test(text)) return true;
  return OF_OPTION.test(heading) && !CONCLUDES.test(text) && !NAMES_OPTION.test(text);
}

/** With the name of an option where only its label stands: `I'd take option 2 (“one table”)`. */
function withOptions(concluded: readonly Statement[], said: readonly Statement[]): string[] {
  const texts = concluded.map(({ text }) => text);
  const { options } = findOptions(said);
  // Other sentences may mean options of somebody else.
  return texts.map((text) => (ADVISES.test(text) || CONCLUDES.test(text) ? nameOption(text, options, texts) : text));
}

function nameOption(text: string, options: ReadonlyMap<string, string>, told: readonly string[]): string {
  return text.replace(NAMES_OPTION, (label, id: string) => {
    const name = getName(options.get(id.toUpperCase()) ?? '');
    return told.some((each) => each.includes(trimEnd(name, '…'))) ? label : `${label} (“${name}”)`;
  });
}

/** Says what was done to the work. */
export const CHANGED =
  /\b(?:added|changed|removed|renamed|moved|replaced|updated|created|fixed|extracted|reverted|restored|implemented|rewrote|rewritten|switched|introduced|deleted|simplified|refactored|consolidated|merged|converted|exported|wired|pinned|bumped|wrote|split|built|extended|adjusted|enabled|disabled|now (?:\w{2,12}s|include|use|show|have|only|always|never|correctly))\b|(?<!\p{L})(?:hinzugefügt|geändert|entfernt|umbenannt|verschoben|ersetzt|erstellt|behoben|añad[ií]\p{L}*|cambi[éa]\p{L}*|elimin[éa]\p{L}*|ajouté|modifié|supprimé|remplacé|créé)(?!\p{L})|(?:已(?:添加|修改|删除|更新|修复)|추가했|수정했|삭제했)/iu;

/** A heading, or what announces a list, of what was done. */
const CHANGES =
  /^(?:(?:the|a|key|main|final|here(?:'s| is)|what|summary(?: of)?|all) )*(?:changes?|changed|fix(?:es)?|refactoring)\b(?! (?:needed|required|to)\b)/i;
/** Before a statement whose subject is in one that is left out. */
export const GAP = '… ';

/** The first statement where it is short, conclusions, then the end backwards: answers conclude last. */
function concluding(statements: readonly Statement[]): Statement[] {
  const telling = statements.filter(isTelling);
  const main = telling.filter((each) => !ASIDE.test(each.heading) && !isOption(each));
  const chosen = new Map<Statement, string>();
  let room = OUTCOME_CHARS;
  const take = (each: Statement, text: string | null = each.text): boolean => {
    if (chosen.has(each)) return true;
    const size = (text ?? '').length + 2 + (PRONOUN.test(each.text) ? GAP.length : 0);
    if (text === null || size > room) return false;
    chosen.set(each, text);
    room -= size;
    return true;
  };
  const begin = ({ text, short, items: { length } }: Statement): string | null => {
    if (length === 0) return null;
    if (short.length < room - 4) return short;
    return room - 4 < OUTCOME_CHARS / 2 ? null : beginList(text, room - 4, ` … (${length} in all)`) || null;
  };
  const strong = main.filter(({ text }) => !isWeak(text));
  const [first] = strong;
  if (first !== undefined && first.text.length <= VERDICT_CHARS) take(first);
  const changes = strong.filter(({ heading, lead, text }) =>
    [lead, CHANGED.test(text) ? heading : ''].some((each) => CHANGES.test(each)),
  );
  for (const each of changes.slice(0, 1)) if (!take(each)) take(each, begin(each));
  for (const each of strong.filter(({ text }) => CONCLUDES.test(text)).slice(-2)) take(each);
  const below = ({ heading }: Statement, at: number): boolean =>
    CONCLUDES.test(heading) && strong[at - 1]?.heading !== heading;
  for (const each of strong.filter(below).slice(-1)) take(each);
  for (const each of strong.toReversed()) if (!take(each) && !take(each, begin(each))) break;
  for (const each of main.length > 0 ? main : telling) take(each);
  const hasSubject = (each: Statement): boolean => {
    const before = statements[statements.indexOf(each) - 1];
    return before === undefined || (isTelling(before) && take(before));
  };
  if (chosen.size === 0)
    return telling.length > 0 ? telling.slice(-1) : statements.filter(({ text }) => IS_DONE.test(text)).slice(-1);
  const told = telling.flatMap((each) => {
    const text = chosen.get(each);
    return text === undefined
      ? []
      : [{ ...each, text: PRONOUN.test(text) && !hasSubject(each) ? `${GAP}${text}` : text }];
  });
  return told.toSorted((one, other) => Number(PASSES.test(one.text)) - Number(PASSES.test(other.text)));
}

/** A text that is too long, with the first items of the list in it; '' where it has none. */
export function beginList(text: string, maxChars: number, more = ' …'): string {
  if (text.length <= maxChars) return text;
  const at = text.lastIndexOf('; ', maxChars - more.length);
  return at <= 0 ? '' : `${text.slice(0, at)}${more}`;
}

/** Share of the words by which an item of the answer is what the user has to do, said again. */
const REPEATED = 0.75;

/** To-dos of the answer that are not the user's already, and the question at its end. */
function waiting(statements: readonly Statement[], ofUser: readonly string[]): string[] {
  const todos = statements.flatMap((each, at) => {
    if (OFFER.test(each.text) || NARRATION.test(each.text)) return [];
    const { heading, items, lead } = each;
    const isTold = ofUser.some((todo) => sharedWords(each.text, todo) >= REPEATED);
    if (items.length === 0) return isTodo(each) && !isTold ? [withSubject(each, statements[at - 1])] : [];
    const isList = isTodo({ text: lead, heading });
    return items.flatMap(({ text }) => ((isList ? !CHECKED.test(text) : isTodo({ text, heading })) ? [text] : []));
  });
  const last = statements.at(-1);
  if (last === undefined || !asksUser(last.text) || OFFER.test(last.text)) return todos;
  const isTold = [last, ...last.items].some(({ text }) => todos.some((todo) => todo.endsWith(text)));
  return isTold ? todos : [...todos, inContext(statements, last)];
}

/** A question stays one. */
const clipItem = (text: string): string =>
  text.length > ITEM_CHARS && isQuestion(text) ? `${clip(text, ITEM_CHARS - 1)}?` : clip(text, ITEM_CHARS);

function findOffer(statements: readonly Statement[]): string {
  // A list after it says what would be done.
  const last = statements.findLast(({ text, items }) => items.length === 0 || OFFER.test(text));
  return last !== undefined && OFFER.test(last.text) && isQuestion(last.text)
    ? clipItem(inContext(statements, last))
    : '';
}

/** What says too little alone, such as "I'll ask him.", or begins with a pronoun, with the statement before it. */
function withSubject({ text, block }: Statement, before: Statement | undefined): string {
  const telling = contentTokens(text).filter((token) => !/^[a-z]{1,2}$/.test(token));
  if (block !== before?.block || (telling.length > 1 && !PRONOUN.test(text))) return text;
  return `${clip(before.text, Math.max(SHORT_QUESTION, ITEM_CHARS - text.length - 1))} ${text}`;
}

const CHECKED = /^\[x\]/i;
const JOINS = /^(?:and|und|y|et)(?!\p{L})/iu;
const JOINED = /, (?:and|und|y|et) /iu;
const LISTS =
  /^(?:to-?dos?|remaining|outstanding|left(?: to do)?|next steps?|me falta|pendientes?|noch offen)(?: [^:.]{1,30})?:/iu;

function isTodo({ text, heading }: Pick<Statement, 'text' | 'heading'>): boolean {
  return OPEN_ITEM.test(text) || OWN_PLAN.test(text) || OPEN_HEADING.test(heading);
}

/** Of a list after its lead, and of two to-dos in a sentence, each; one that "and" joins to the list is one too. */
function findTodos(own: readonly Statement[]): string[] {
  let isList = false;
  return own.flatMap((each, at) => {
    const { text, heading, block } = each;
    if (isAsking(text) || readStateQuery(text) !== null) return [];
    const continues = isList && block === own[at - 1]?.block && JOINS.test(text);
    isList = continues || LISTS.test(text);
    if (continues || !isTodo(each)) return continues ? [text] : [];
    const parts = text.split(JOINED);
    const isEach = isList || parts.every((part) => isTodo({ text: part, heading }));
    return isEach && parts.length > 1 ? parts : [withSubject(each, own[at - 1])];
  });
}

const RULE_START = 60;
const RULE_CHARS = 180;

export function isRule(text: string): boolean {
  const at = text.search(STANDING);
  return at >= 0 && at <= RULE_START && text.length <= RULE_CHARS && !isAsking(text);
}

/** A statement that takes something back is one with what it is about, before it, and with all that follows it. */
function findDecisions(own: readonly Statement[], before?: TurnText, amends = false): string[] {
  const at = before === undefined ? -1 : own.findIndex(({ text }) => REVISES.test(text));
  const from = own[at]?.block === own[at - 1]?.block ? at - 1 : at;
  const revised = at < 0 ? [] : own.slice(from).filter(({ text }) => !isAsking(text));
  const whole = revised.map(({ text }) => text).join(' ');
  const decided = own.flatMap((each, at) => {
    const text = each.text.replace(REQUEST, '');
    const isCorrection = amends && DEMANDS.test(text) && text.length <= ITEM_CHARS && !isAsking(text);
    if ((isDecision(text) || isCorrection) && !revised.includes(each))
      return [withSubject({ ...each, text: getBan(text) }, own[at - 1])];
    const clauses = text.length > ITEM_CHARS ? text.split(CLAUSE) : [];
    return [...clauses, ...[...text.matchAll(BRACKETED)].map(([, aside = '']) => aside)].filter(isDecision);
  });
  const last = whole.length > ITEM_CHARS ? (revised.at(-1)?.text ?? '') : whole;
  if (contentTokens(last.replace(REVISES, '')).length < 2) return decided;
  const [former, ...others] = at === 0 && before !== undefined ? readTurn(before, undefined).decisions : [];
  return [...decided, former === undefined || others.length > 0 ? last : `“${last}${INSTEAD_OF}${former.text}”`];
}

function isDecision(text: string): boolean {
  if (text.length > ITEM_CHARS || text.startsWith('(') || isAsking(text)) return false;
  return CHOSEN.test(text) || BAN.test(text) || isRule(text);
}

/** A ban without the clauses before it. */
function getBan(text: string): string {
  const at = CHOSEN.test(text) || isRule(text) ? -1 : text.search(BAN);
  return text.slice(BAN_LEAD.exec(text.slice(0, Math.max(0, at)))?.[0].length ?? 0);
}

/** Where a dictated sentence begins a new clause. */
const CLAUSE =
  /(?:,? (?:u[mh]+|yeah|ähm?|and|und|so|y|et)(?= (?:u[mh]+|yeah|ähm?|let'?s|do(?:n'?t| not)|what (?:i|we) want|please|i|we|ich|wir|bitte)(?![\p{L}'])))+ /iu;
/** May decide something in the midst of a question. */
const BRACKETED = /\(([^()]{10,240})\)/g;
/** After a statement in the same sentence. */
const REQUEST = /[,;] (?:(?:and|but|so|then) )?(?:can|could|would) (?:you|we) [^?]{1,300}\?$/i;
export const PRONOUN =
  /^(?:(?:and|but|so|also|then|however|aber|und|y|pero)[ ,]+)?(?:it|this|that|th[eo]se|they|s?he|das|dies\p{L}{0,2}|er|sie|es|es[oe]|est[oe])(?!\p{L})/iu;
const POINTS_BACK =
  /\b(?:this|that|these|those|it|them|both|the (?:first|second|change|fix))\b|(?<!\p{L})(?:das|dies\w{0,2}|esto|eso)(?!\p{L})|[这那]|이것|그것/iu;
/** A pronoun among the first words. */
const STARTS_BACK =
  /^(?:[^\s,.]+,? ){0,4}(?:(?:it|this|that|these|those|them)\b|(?:das|dies|es[oe]|est[oe])(?=[,.;!]|$))/iu;
const SHORT_QUESTION = 70;

/** Says what may be done. */
const PROPOSES =
  /\b(?:could|should|(?:the|quick) (?:change|fix)\b|proposed|suggest|recommend|(?:is|be) better|best|instead)\b/i;
const NEAR = 4;

/** A question with the statement before it, where it does not say what it asks about; an offer with what is proposed. */
function inContext(statements: readonly Statement[], question: Statement, maxChars = ITEM_CHARS): string {
  const at = statements.indexOf(question);
  const near = statements.slice(Math.max(0, at - NEAR), at).toReversed();
  const proposed = near.find(
    ({ text, heading, lead, items, number }, back) =>
      !PRONOUN.test(text) &&
      !/^options?\b/i.test(lead) &&
      (PROPOSES.test(text) ||
        (back === 0 && (items.length > 0 || number !== null || OFFER.test(text) || CONCLUDES.test(heading)))),
  );
  const before = (OFFER.test(question.text) ? proposed : undefined) ?? near[0];
  const isWhole = question.text.length > SHORT_QUESTION && !POINTS_BACK.test(question.text);
  if (before === undefined || isWhole || question.items.length > 0) return question.text;
  const room = Math.max(SHORT_QUESTION, maxChars - question.text.length - 1);
  const text = before.text.length > room ? clip(before.short, room) : before.text;
  return `${text}${ended(text)} ${question.text}`;
}

interface Reply {
  /** The reply with what it answers. */
  readonly text: string;
  /** Not the user's where the question comes from elsewhere. */
  readonly origin: Origin;
  /** The question or offer; '' where an option was picked. */
  readonly question: string;
  /** Answers in the user's own words: it is a decision and also a prompt. */
  readonly isFree: boolean;
  /** It decides nothing: it only lets the assistant do what it offers, or says what is left to do. */
  readonly isLeave: boolean;
  /** It takes one of several, or says no. */
  readonly isChoice: boolean;
  /** The others, where it takes one first. */
  readonly later?: readonly string[];
}

/** What is asked for may be all of it. */
const ANY = /\b(?:any|some|which) of (?:these|them|those)\b|\bstart with\b/i;
/** Said of an option that is named otherwise. */
const FIRST =
  /(?<!the )\bfirst\b(?! (?:one|option))|(?<!\p{L})(?:zuerst|erstmal|(?<!el )primero|d'abord)(?!\p{L})|先|먼저/iu;

/** A short reply with the question, offer or option that it answers; null where it answers none. */
function getReply(typed: string, turn: TurnText, before: TurnText | undefined): Reply | null {
  const whole = oneLine(typed);
  // Of a longer one only what it says no to; more of it states its subject itself.
  const isPart = whole.split(' ').length > REPLY_WORDS && SAYS_NO.test(whole);
  const reply = isPart ? (findStatements(typed)[0]?.text ?? '') : whole;
  if (before === undefined || turn.userOrigin !== undefined || reply === '') return null;
  if (reply.split(' ').length > REPLY_WORDS || /[?？]$/.test(reply) || COMMAND.test(reply)) return null;
  const { said, origin } = readAnswer(before);
  const getOrigin = quoting(before, origin);
  const { options, words } = findOptions(said);
  const numbered = withFigures(reply, [...options.keys()], words);
  const [match = '', ...chosen] = NUMBERED.exec(numbered) ?? [];
  const rest = numbered.slice(match.length);
  const isChosen = match !== '' && CHOSEN_SO.test(rest);
  // A comment on one option may choose another one.
  const named = [...rest.matchAll(NAMED)].flatMap(([, ...each]) => each);
  const getLabels = (each: string[]) => each.flatMap((label = '') => label.toUpperCase().match(/\S+/) ?? []);
  const figures = isChosen || match === '' ? getLabels(named) : (reply.match(FIGURE) ?? []);
  const further = figures.filter((label) => options.has(label));
  const labels = [...new Set([...getLabels(chosen), ...further])];
  const picked = labels.flatMap((label) => options.get(label) ?? []);
  if (picked.length > 0 && picked.length === labels.length && !isOther(reply, picked)) {
    const others = [...options].filter(([label]) => !labels.includes(label)).map(([, text]) => getName(text));
    const isSole = picked.length === 1 && others.length <= 4 && others.length > 0 && isChosen && further.length === 0;
    const room = Math.floor((ITEM_CHARS - reply.length) / picked.length);
    const asked = said.at(-1)?.text ?? '';
    const isOffer = (OFFER.test(asked) || ANY.test(asked)) && !OF_OPTION.test(picked[0] ?? '');
    const rejected =
      isSole && words.size === 0
        ? clip(`; ${isOffer || FIRST.test(reply) ? 'left out' : 'rejected'}: ${others.join(', ')}`, 120)
        : '';
    const isLabeled = !isChosen || further.length > 0;
    const quotes = picked.map((text, at) => `${isLabeled ? `${labels[at]}: ` : ''}“${clip(text, room)}”`);
    const text = `“${reply}”, that is ${quotes.join(', ')}${rejected}`;
    const later = FIRST.test(reply) ? others.map((each) => `${each} (after ${getName(picked[0] ?? '')})`) : [];
    return { text, origin: getOrigin(text), question: '', isFree: false, isLeave: false, isChoice: true, later };
  }
  const asks = findAsked(reply, said);
  const isAnswer = asks !== undefined && answers(reply, asks);
  const isChosenFrom = isAnswer || isAnswered(reply, said, options.size > 0);
  const question = isChosenFrom ? asks : isCleanOrigin(origin) ? findTakenUp(reply, said) : undefined;
  if (question === undefined) return null;
  const room = Math.max(SHORT_QUESTION, ITEM_CHARS - reply.length - 10);
  const asked = inContext(said, question, room);
  const context = clip(nameOption(asked, options, [asked]), room);
  const text = `“${reply}” to “${context}”`;
  const isOwn = !BARE.test(reply) && (SAYS_NO.test(reply) || getValues(reply).length > 0);
  const isTaken = question !== asks;
  const isLeave = isTaken
    ? OPEN_ITEM.test(reply) && !isDecision(reply)
    : BARE.test(reply) && [question.text, context].some((each) => OFFER.test(each));
  const isChoice = (isOwn && REPLY.test(reply)) || isDecision(reply) || (isTaken && !isLeave && !BARE.test(reply));
  return { text, origin: getOrigin(text), question: context, isFree: isPart || !isAnswer, isLeave, isChoice };
}

/** The last question or offer; of several, the one that has most words of the reply. */
function findAsked(reply: string, said: readonly Statement[]): Statement | undefined {
  const tokens = contentTokens(reply);
  const count = ({ text }: Statement): number => contentTokens(text).filter((token) => tokens.includes(token)).length;
  const asked = said.filter(({ text }) => asksUser(text) || OFFER.test(text)).toReversed();
  return asked.toSorted((one, other) => count(other) - count(one))[0];
}

const ANSWER_NUMBER = /(?:^|[\s,;(])q?(\d{1,2})[.):]\s+/i;

/** Numbered answers, each to what has its number in the answer before, a question or what a yes is for, and what follows. */
function findNumbered(typed: string, { userOrigin }: TurnText, before: TurnText | undefined) {
  const [lead = '', ...parts] = typed.trim().split(ANSWER_NUMBER, 2 * ITEMS + 1);
  const [lastAnswer = '', ...others] = (parts.pop() ?? '').split(/\n\s*\n/);
  parts.push(lastAnswer);
  if (before === undefined || userOrigin !== undefined || lead.replace(POLITE, '') !== '')
    return { answers: [], after: [] };
  const { said, origin } = readAnswer(before);
  const { options: asked } = findOptions(said);
  const getOrigin = quoting(before, origin);
  const bound = parts.flatMap((number, at) => {
    const [question = '', answer] = [asked.get(number), trimEnd(oneLine(parts[at + 1] ?? ''), ' ,;.')];
    const isBound = at % 2 === 0 && question !== '' && answer !== '' && !isAsking(splitSentences(answer)[0] ?? '');
    const text = `“${clip(answer, SHOWN_CHARS * 2)}” to “${clip(question, ITEM_CHARS / 2)}”`;
    const binds = isBound && (/[?？]/.test(question) || REPLY.test(answer));
    return binds ? [{ question, answer, text, origin: getOrigin(text) }] : [];
  });
  // A list that answers nothing has no word of what was asked.
  const isAnswer = bound.some(({ question, answer }) => REPLY.test(answer) || sharesWord(answer, question));
  const answers = isAnswer || bound.every(({ answer }) => contentTokens(answer).length < 2) ? bound : [];
  const after = others.join('\n');
  return { answers, after: getOwn(findSpoken(findStatements(after), after, getAnswers(before).join('\n'))) };
}

/** The user's, unless what they answer comes from elsewhere. */
function quoting(before: TurnText, origin: Origin) {
  return (text: string): Origin => (isCleanOrigin(origin) ? (repeatsShown(text, [before]) ? 'tool' : 'user') : origin);
}

function sharesWord(one: string, other: string): boolean {
  const tokens = contentTokens(one);
  return contentTokens(other).some((token) => tokens.includes(token));
}

/** What a reply that answers no question takes up: advice, or the last word, from which it concludes or to which it points. */
function findTakenUp(reply: string, said: readonly Statement[]): Statement | undefined {
  if (isAsking(reply)) return undefined;
  const tokens = contentTokens(reply);
  const advice = said.findLast(({ text }) => ADVISES.test(text));
  if (advice !== undefined && (BARE.test(reply) || isDecision(reply) || sharesWord(reply, advice.text))) return advice;
  const concludes = THEREFORE.test(reply) && reply.split(' ').length <= THEREFORE_WORDS;
  const points = (isDecision(reply) || OPEN_ITEM.test(reply)) && (tokens.length < 2 || STARTS_BACK.test(reply));
  return concludes || points ? said.findLast((each) => isTelling(each) && !ASIDE.test(each.lead)) : undefined;
}

/** A list item with words of its own, pasted or typed: not a choice, unless it repeats the option. */
function isOther(reply: string, picked: readonly string[]): boolean {
  if (!/^\d{1,2}[.)]\s(?:\S+\s+){3}/.test(reply)) return false;
  const offered = new Set(contentTokens(picked.join(' ')));
  const own = contentTokens(reply);
  return own.filter((token) => offered.has(token)).length < own.length / 2;
}

function answers(reply: string, question: Statement): boolean {
  const isShort = !isAsking(reply) && reply.split(' ').length <= SHORT_REPLY;
  return REPLY.test(reply) || (isShort && sharesWord(reply, question.text));
}

/** Whether the reply answers a choice asked at the end. If options are listed, the reply must share a word with them. */
function isAnswered(reply: string, said: readonly Statement[], hasOptions: boolean): boolean {
  const last = said.at(-1)?.text ?? '';
  if (isAsking(reply) || !isQuestion(last) || !ASKS_CHOICE.test(last) || OFFER.test(last)) return false;
  const asked = new Set(contentTokens(said.map(({ text }) => text).join(' ')));
  return !hasOptions || contentTokens(reply).some((token) => asked.has(token) && !/^\w$/.test(token));
}

/** With the label in place of the words for it: `the second one`, `option 2`, `phase 2`. */
function withFigures(reply: string, labels: readonly string[], words: ReadonlySet<string>): string {
  const getLabel = (at: number): string => labels.at(at === ORDINALS.length - 1 ? -1 : at) ?? '';
  const placed = ORDINALS.reduce((text, each, at) => text.replace(each, `${getLabel(at)}号`), reply.toLowerCase());
  const bare = placed.replace(OPTION_WORD, '').replace(/\b([a-h])\. /g, '$1, ');
  return [...words].reduce((text, word) => text.replaceAll(`${word} `, ''), bare);
}

/** What the assistant numbered, and the words for it, such as "phase"; the last list wins. */
function findOptions(statements: readonly Statement[]) {
  const options = new Map<string, string>();
  const words = new Set<string>();
  const put = (number: number | null, text: string, title = text): void => {
    const [own = '', word, named, letter] = LABEL.exec(title) ?? [];
    choose(number === null ? (named ?? letter) : `${number}`, text);
    if (number === null && word !== undefined && !OF_OPTION.test(own)) words.add(word.toLowerCase());
  };
  const choose = (label: string | undefined, text: string): void => {
    if (label === '1' || label === 'A') for (const each of [options, words]) each.clear();
    if (label !== undefined) options.set(label, trimEnd(text, ':'));
  };
  for (const [at, { items, number, text, heading, lead }] of statements.entries()) {
    for (const item of items) put(item.number, item.text);
    // Of an item of several sentences, the first names it.
    const before = statements[at - 1];
    if (items.length === 0 && (number ?? '') !== before?.number)
      put(number, number === null ? text.slice(lead.length) : text);
    if (heading !== before?.heading) put(null, `${heading}: ${text}`, heading);
    const [, ...inline] = text.split(INLINE);
    for (let part = 0; inline.length > 2 && part < inline.length; part += 2)
      choose(inline[part]?.toUpperCase(), trimEnd(inline[part + 1] ?? '', ' ,;?').replace(/, (?:or|oder)$/, ''));
  }
  return { options, words };
}

function getName(option: string): string {
  const whole = option.replace(LABEL, '');
  const [name = ''] = whole.split(/\s[-–—]\s|[:(]/);
  return clip((name.split('"').length % 2 === 0 ? whole : name).trim(), 40);
}

/** Without the words that only ask for it. */
export const findTask = (text: string): string => text.replace(POLITE, '');

function getTitle(statements: readonly Statement[], outcome: string, reply: Reply | null): string {
  const texts = [...new Set(statements.map(({ text }) => findTask(text)))];
  const most = SAYS_NO.test(texts[0] ?? '') ? 2 : 1;
  const at = texts.findIndex((text) => contentTokens(text).length > most && !SAYS_NO.test(text));
  const whole = joinWithin(texts.slice(at), TITLE_CHARS);
  if (reply === null && at >= 0)
    return (texts[at] ?? '').length < SHORT_TITLE ? whole : clip(texts[at] ?? '', TITLE_CHARS);
  return clip(reply === null || outcome !== '' ? outcome || (statements[0]?.text ?? '') : reply.text, TITLE_CHARS);
}

function skipReason(
  turn: TurnText,
  typed: string,
  { outcome, isEmpty, kept, noted }: { outcome: string; isEmpty: boolean; kept: string[]; noted: Statement[] },
): SkipReason | null {
  if (turn.recalled === true && noted.every(({ text }) => isAsking(text))) return 'recalled';
  const isSignal = HEARTBEAT.test(typed) || (kept.length === 0 && NOTIFICATION.test(typed));
  if (isSignal && outcome.length < VERDICT_CHARS) return 'notification';
  if (GREETING.test(typed) && outcome.length < VERDICT_CHARS) return 'greeting';
  if (!isEmpty) return null;
  if (CONTINUE.test(typed) && saysNothing(turn, typed)) return 'empty';
  if (COMMAND.test(typed) && outcome.length < SMALL_OUTCOME) return 'command';
  if (findImages(turn.user) !== '' || getUrls([turn]).length > 0) return null;
  if (withoutMarkup(turn.user).trim() === '' && outcome.length < SMALL_OUTCOME)
    return turn.user.trim() === '' ? 'empty' : 'notification';
  if (typed !== '' && noted.length === 0 && outcome === '') return 'empty';
  if (outcome !== '' || getValues(typed).length > 0 || getConcept(typed) !== null || (turn.files ?? []).length > 0)
    return null;
  const countWords = (text: string): number => text.split(/\s+/).length;
  if (turn.parts.length > 0) return countWords(typed) <= SHORT_WORDS ? 'empty' : null;
  // What was stated counts without an answer, whatever is asked after it; a task does not.
  const told = noted.filter(({ text }) => !isAsking(text)).map(({ text }) => text);
  return countWords(told.join(' ')) > SHORT_REPLY ? null : 'interrupted';
}

/** Whether the answer to a prompt that asks to continue has no word of its own, and no tool ran. */
function saysNothing({ parts }: TurnText, typed: string): boolean {
  const typedTokens = new Set([...contentTokens(typed), ...GOES_ON]);
  return parts.every(
    ({ kind, text }) => kind === 'assistant' && contentTokens(text).every((token) => typedTokens.has(token)),
  );
}

/** The texts where they fit; else the most telling that fits and what fits beside it; at least one, cut. */
export function clipOutcome(lines: readonly string[], maxChars: number): string {
  if (lines.join(' ').length + lines.length <= maxChars) return joinWithin(lines, maxChars);
  const strong = lines.filter((text) => !isWeak(text));
  const fitting = strong.filter((text) => text.length <= maxChars);
  if (fitting.length === 0) return clip(strong[0] ?? lines[0] ?? '', maxChars);
  const rank = (text: string): number => (CONCLUDES.test(text) ? 2 : 0) + Math.min(2, getValues(text).length);
  const chosen = new Set(fitting.toSorted((one, other) => rank(other) - rank(one)).slice(0, 1));
  const withGap = (text: string): string => {
    const at = lines.indexOf(text);
    return PRONOUN.test(text) && at > 0 && !chosen.has(lines[at - 1] as string) ? `${GAP}${text}` : text;
  };
  let room = maxChars - withGap([...chosen][0] ?? '').length;
  for (const text of strong) {
    if (chosen.has(text) || withGap(text).length + 2 > room) continue;
    chosen.add(text);
    room -= withGap(text).length + 2;
  }
  return joinWithin(strong.filter((text) => chosen.has(text)).map(withGap), maxChars);
}

/** The same, of texts that fit whole; where only the weak do, the first other one within `most`, or its first items. */
export function clipWhole(lines: readonly string[], maxChars: number, most: number): string {
  const within = lines.filter(({ length }) => length < maxChars);
  const strong = lines.filter((text) => !isWeak(text));
  if (strong.some((text) => within.includes(text))) return clipOutcome(within, maxChars);
  return beginList(strong.find(({ length }) => length < most) ?? strong[0] ?? '', most);
}

/** Words of an answer that memory gave already. */
const REPEATED_SHARE = 0.75;
const LEAST_TOKENS = 3;
const LONGEST_REPEAT = 1_500;

/** Whether the answer to a question says only what one of these texts of memory says. */
export function repeatsMemory(turn: TurnText, texts: readonly string[]): boolean {
  const { user, parts } = turn;
  const turnLines = getAnswers(turn).join('\n');
  if (turnLines.length > LONGEST_REPEAT || parts.some(({ kind }) => kind !== 'assistant')) return false;
  if (!findStatements(typedText(user)).some(({ text }) => isAsking(text))) return false;
  const tokens = contentTokens(turnLines);
  const values = getValues(turnLines).filter((value) => /\d/.test(value));
  return texts.some((text) => {
    const given = new Set(contentTokens(`${user}\n${text}`));
    const repeated = tokens.filter((token) => given.has(token)).length;
    const isGiven = tokens.length >= LEAST_TOKENS && repeated >= tokens.length * REPEATED_SHARE;
    return isGiven && values.every((value) => `${user}\n${text}`.includes(value));
  });
}

/** What the user says, with gaps marked; what they only show after it, in quotes, or alone where they say nothing. */
function findRequest(spoken: readonly SpokenStatement[], stated: readonly Statement[]): string {
  const ownStatements = spoken.filter(({ own }) => own !== '');
  const shownTexts = spoken.map(({ shown }) => shown);
  if (ownStatements.length === 0) return joinWithin(shownTexts, ASKED_CHARS);
  const places = new Map(stated.map((statement, at) => [statement, at]));
  const getPlace = (each: SpokenStatement | undefined): number => places.get(each?.statement as Statement) ?? -1;
  const texts = ownStatements.map((each, at) => {
    const { own } = each;
    const before = ownStatements[at - 1];
    const follows = before?.shown === '' && getPlace(before) === getPlace(each) - 1;
    return at === 0 || follows ? own : `… ${own}`;
  });
  const text = joinWithin(texts, ASKED_CHARS);
  const match = shownTexts.find((shown) => shown !== '') ?? '';
  const room = ASKED_CHARS - text.length - 3;
  return match === '' || room < SHOWN_CHARS ? text : `${text} “${clip(match, room)}”`;
}

/** Whole texts while they fit; where that is little, the next is cut. */
export function joinWithin(texts: readonly string[], maxChars: number): string {
  let text = '';
  for (const each of texts) {
    if (text !== '' && text.length + each.length + 2 > maxChars)
      return text.length < maxChars * 0.4 ? `${text}${ended(text)} ${clip(each, maxChars - text.length - 2)}` : text;
    text = text === '' ? clip(each, maxChars) : `${text}${ended(text)} ${each}`;
  }
  return text;
}

const ended = (text: string): string => (/[.!?:;…。！？]$/u.test(text) ? '' : '.');
