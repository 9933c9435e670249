"""Recognizes sentences that decline to answer: "The documents do not say …", "I could not find …".

The rules look at form and are tuned to English. They distinguish a silent document from a rule that forbids: "The
policy does not state a limit" declines, "The policy does not cover water damage" answers.
"""

import re
from functools import cache
from typing import NamedTuple

from tasks.text.words import lower

RULES = 2  # raised when the same sentence is read differently

# Nouns that can only mean the evidence, and nouns that may also be the subject of the question.
_EVIDENCE = (
    r"(?:documents?|documentation|passages?|sources?|references?|contexts?|texts?|excerpts?|extracts?|"
    r"snippets?|chunks?|docs?|"
    r"paragraphs?|search results?|knowledge base)(?!\s+(?:code|menus?)\b)"
)
_MATTER = (
    r"(?:manuals?|leaflets?|guides?|guidelines?|handbooks?|reports?|rules?|regulations?|brochures?|"
    r"web ?sites?|contracts?|"
    r"polic(?:y|ies)|instructions?|articles?|pages?|records?|files?|results?|information|notices?|terms|"
    r"conditions|lists?|"
    r"catalog(?:ue)?s?|sheets?|entries|entry|faqs?|factsheets?|overviews?|descriptions?|answers?|data|materials?|"
    r"provisions?|clauses?|procedures?|protocols?|sops?|statutes?|notes?|calendars?)"
)
_YOURS = (
    r"(?:(?:that\s+)?you(?:['’]ve|\s+have)?\s+(?:provided|uploaded|shared|sent|given|gave)(?:\s+me)?|"
    r"(?:that\s+)?i(?:['’]ve|\s+have)?(?:\s+(?:been\s+)?(?:given|got|seen)|\s+have|\s+can\s+see)?|at\s+hand)"
)
_EVIDENCE = rf"(?:{_EVIDENCE}|{_MATTER}\s+{_YOURS})"
_BETWEEN = (
    r"(?:[^\s.,;:!?]+\s+){0,4}?"  # words that stand between article and noun, or after the noun: "provided", "at hand"
)
_WHICH = r"(?:the|these|those|this|that|any|all|my|your|our|any of the|all of the|both)\s+"
_EVIDENCES = rf"\b(?:{_WHICH}{_BETWEEN})?{_EVIDENCE}"
_MATTERS = rf"\b{_WHICH}{_BETWEEN}{_MATTER}"
_INFORMATION = (
    r"(?:information|answers?|details?|mentions?|indications?|statements?|references?|figures?|data|evidence|words?|"
    r"explanations?|descriptions?|particulars|specifics|clues?|hints?)"
)
_SAY = (
    r"(?:says?|states?|mentions?|specif(?:y|ies)|tells?|indicates?|explains?|describes?|discuss(?:es)?|"
    r"reveals?|address(?:es)?|"
    r"disclos(?:es?)|names?|notes?|details?|clarif(?:y|ies)|answers?|speaks?|refers?|comments?|"
    r"go(?:es)? into|touch(?:es)? on|"
    r"deals? with|talks? about|defines?|identif(?:y|ies)|quotes?|sheds?|settles?)"
)
_HOLD = (
    r"(?:contains?|includes?|provides?|gives?|holds?|offers?|covers?|lists?|has|have(?!\s+to\b)|supply|supplies|"
    r"presents?|shows?|reports?|makes?)"
)
_STATED = (
    r"(?:mentioned|stated|specified|indicated|documented|said|told|disclosed|addressed|answered|described|discussed|"
    r"explained|named|quoted|noted|detailed|defined)"
)
_HELD = (
    r"(?:given|covered|contained|included|found|listed|provided|recorded|present|available|to be found|"
    r"set out|part of)"
)
# What a policy does not cover, or a price list does not include, is an answer.
_FOUND = r"(?:given|contained|found|to be found|set out)"
_ADVERB = r"(?:\s+(?:[a-z]+ly|even|also|either|anywhere|in fact|seem to|appear to|itself|themselves|here))*"
_DO_NOT = r"(?:(?:do|does|did|can|could|would|will)\s+not|(?:do|does|did|ca|could|would|wo)n['’]t|cannot)"
_NOT = rf"(?:{_DO_NOT}|fails? to|never|nowhere|neither){_ADVERB}"
_ARE_NOT = rf"(?:is|are|was|were|be|been|has been|have been)(?:\s+(?:not|nowhere|never|neither)|n['’]t){_ADVERB}"
_PLACE = r"(?:[^.;!?]{0,60}?\s)?(?:in|by|within|among|from|of|on|under)\s+"
_PLACED = rf"{_PLACE}(?:{_EVIDENCES}|{_MATTERS})"
_ANY = r"(?:(?!personal|private|confidential|sensitive)\w+\s+){0,3}?"  # "no personal information" is a promise
_ABOUT = (
    r"(?:about|on|of|in|as to|regarding|concerning|for|to|relating|related|given|provided|available|whether|"
    r"which|that|how|why|when|where)\b"
)
_OPEN = r"(?=\s+(?:from|whether|if|how|what|which|who|when|where|why|that)\b|\W*$)"  # a question or the end follows
_NONE = r"(?:no|not any|little|hardly any|insufficient|not enough|too little|neither)"

_FORMS = (
    # The evidence does not say.
    rf"{_EVIDENCES}\b(?:\s+[^\s.;:!?,]+){{0,5}}?\s+{_NOT}\s+(?:{_SAY}|{_HOLD})\b",
    rf"{_MATTERS}\b(?:\s+[^\s.;:!?,]+){{0,3}}?\s+{_NOT}\s+{_SAY}\b",
    rf"{_MATTERS}\b(?:\s+[^\s.;:!?,]+){{0,3}}?\s+{_NOT}\s+{_HOLD}\s+{_ANY}{_INFORMATION}\b(?!\s+to\b)",
    # The evidence says nothing.
    rf"{_EVIDENCES}\b(?:\s+[^\s.;:!?,]+){{0,5}}?\s+(?:{_SAY}|{_HOLD})\s+(?:nothing|nor\b|{_NONE}\b|none\b|"
    rf"not a word)",
    rf"{_MATTERS}\b(?:\s+[^\s.;:!?,]+){{0,3}}?\s+{_SAY}\s+(?:nothing|not a word)\b"
    rf"(?!\s+(?:is|are|was|were|has|had|can|could|may|must|will)\b)",
    rf"{_MATTERS}\b(?:\s+[^\s.;:!?,]+){{0,3}}?\s+(?:{_SAY}|{_HOLD})\s+{_NONE}\s+{_ANY}{_INFORMATION}\b(?!\s+to\b)",
    rf"(?:{_EVIDENCES}|{_MATTERS})\b(?:\s+[^\s.;:!?,]+){{0,3}}?\s+(?:(?:is|are|remains?)\s+silent|"
    rf"lacks?\s+{_ANY}{_INFORMATION}|leaves?\s[^.;!?]{{0,60}}?\bunanswered)\b",
    rf"{_EVIDENCES}\b(?:\s+[^\s.;:!?,]+){{0,3}}?\s+(?:lacks?|omits?|leaves?\s[^.;!?]{{0,60}}?\b(?:open|unanswered))\b",
    rf"(?:none|neither|nothing|not one|not a single one)\s+(?:of|in|from|among)\s+(?:{_EVIDENCES}|{_MATTERS})\b"
    rf"(?:\s+[^\s.;:!?,]+){{0,5}}?\s+(?:{_SAY}|{_HOLD}|is about|are about|relates?|helps?)\b",
    rf"\bnothing\s+(?:here|at\s+hand|i\s+have|in\s+(?:here|(?:my|the|our)\s+notes))\s+(?:{_SAY}|{_HOLD}|about\b)",
    r"^\W*(?:(?:sorry|unfortunately|regrettably|sadly)\W+)?no\s+[^.;!?,]{1,60}?\s(?:is|are)\s+(?:given|stated|specified|"
    r"mentioned|named|documented|indicated)\b(?!\s+to\b)",
    rf"\b(?:no|neither|not a single)\s+(?:\w+\s+)?{_EVIDENCE}\s+(?:{_BETWEEN})?(?:{_SAY}|{_HOLD})\b",
    # There is nothing.
    rf"\bthere(?:\s+(?:is|are|was|were|seems? to be|appears? to be)|['’]s)\s+(?:\w+ly\s+)?(?:no|not any|"
    rf"nothing|not enough|insufficient|hardly any)\s+(?:\w+\s+){{0,3}}?(?!(?:data|evidence|figures?)\b){_INFORMATION}"
    rf"(?:\s+{_ABOUT}|\s*$|[.,;:])",
    # "There is no evidence of a link" is a finding, not a refusal.
    rf"\bthere(?:\s+(?:is|are)|['’]s)\s+no\s+(?:\w+\s+)?(?:data|evidence|figures?)\b{_PLACE}{_EVIDENCES}\b",
    r"\bthere\s+is(?:\s+not|n['’]t)\s+(?:enough|sufficient|any)\s+information\b",
    r"\bthere(?:\s+(?:is|was)|['’]s)\s+nothing\s+(?:\w+\s+)?(?:in|about|on|regarding|concerning)\b",
    rf"^\W*(?:(?:sorry|unfortunately|regrettably|however)\W+)?{_NONE}\s+(?:\w+\s+){{0,3}}?{_INFORMATION}"
    rf"\s+(?:{_ABOUT}\s[^.;!?]{{0,120}}?)?(?:is|are|was|were|can be|could be|has been|have been)"
    rf"\s+(?!recorded)(?:{_STATED}|{_HELD})(?!\s+to\b)",
    r"^\W*(?:(?:sorry|unfortunately|regrettably)\W+)?(?:no|insufficient|not enough)\s+(?:\w+"
    r"\s+){0,2}?information\s+(?:about|on|regarding|concerning|available|found)\b",
    r"\b(?:nothing|not a word)\s+(?:\w+\s+){0,2}?(?:is|was|could be|can be)\s+(?:said|stated|mentioned|"
    r"found|known)\b",
    r"\bno\s+(?:mention|reference)\s+(?:is|was)\s+made\b",
    r"(?:\b(?:have|had|is|was|due\s+to|because\s+of)|^\W*(?:(?:sorry|unfortunately|regrettably)\W+)?)\s*"
    r"\b(?:not\s+enough|insufficient|too\s+little|not\s+sufficient)\s+information\b",
    # The answer is not in the evidence.
    rf"\b{_ARE_NOT}\s+(?:{_STATED}|{_HELD}|clear|evident|apparent|known){_PLACE}{_EVIDENCES}\b",
    rf"\b{_ARE_NOT}\s+(?:{_STATED}|{_FOUND}|clear|evident|apparent|known){_PLACE}{_MATTERS}\b",
    rf"\b{_NOT}\s+(?:be\s+(?:{_HELD}|seen|taken)|appear|occur|emerge|come up)\b{_PLACE}{_EVIDENCES}\b",
    rf"\b{_NOT}\s+(?:be\s+(?:{_STATED}|{_FOUND}|determined|established|inferred|derived|concluded)|follow)\b{_PLACED}\b",
    rf"\b(?:is|are)\s+(?:missing|absent)\s+from\s+(?:{_EVIDENCES}|{_MATTERS})\b",
    rf"^(?!.*\b(?:if|unless|where|when|whose|which|that)\b.*\bnot\b).*\b{_ARE_NOT}\s+(?:mentioned|stated|"
    rf"specified|indicated|documented|answered)\b"
    rf"(?!\s+(?:by|as|with|on|in|at|under)\s+(?!(?:any|it|them|these|those|this|what|the\s+above)\b))",
    rf"\b(?:questions?|this|that|it)\s+{_DO_NOT}\s+be\s+(?:answered|determined|established|said|inferred)\b"
    rf"(?!\s+(?:by|through|without|until|before)\b)",
    r"\bremains?\s+unanswered\b",
    r"\bit\s+(?:is|remains?)\s+(?:unclear|an\s+open\s+question)\b",
    r"\bit\s+(?:is|was)(?:\s+not|n['’]t)\s+(?:\w+\s+)?possible\s+to\s+(?:answer|say|give an answer)\b",
    rf"\bit\s+(?:is|was)(?:\s+not|n['’]t)\s+(?:\w+\s+)?possible\s+to\s+(?:tell|determine|find|establish|judge|infer)"
    rf"(?:\s+(?:this|that|it|out|the\s+answer))?{_OPEN}",
    rf"\bit\s+(?:is|was)(?:\s+not|n['’]t)\s+(?:\w+ly\s+)?(?:clear|evident|apparent|known|said|stated|"
    rf"mentioned|specified|indicated)(?:\s+anywhere)?{_OPEN}",
    # The speaker can't answer.
    r"\bi(?:(?:['’]m|\s+am|\s+was)\s+(?:\w+\s+)?(?:unable|not\s+able)|\s+wasn['’]t\s+able)\s+to\s+(?:find|answer|locate|"
    r"determine|say|tell|provide|give|help|identify|confirm|see|judge|assess|verify)\b",
    r"\b(?:is|are|lies?|falls?)\s+(?:(?:a\s+bit|well|somewhat|far)\s+)?(?:beyond|outside)(?:\s+of)?\s+what\s+i\s+(?:can|could|am\s+able\s+to)\b",
    r"\b(?:is|are)(?:\s+not|n['’]t)\s+(?:documented|covered|mentioned)\s+(?:anywhere|as\s+far\s+as\s+i|"
    r"(?:in|by)\s+what\s+i\s+(?:have|was))\b",
    rf"\bi\s+(?:\w+\s+)?{_DO_NOT}(?:\s+\w+ly)?\s+(?:find|answer|locate|determine|say|tell|know|provide|"
    rf"give|help|identify|confirm|see|judge|assess|verify|predict|establish|trace|work\s+out|make\s+out|have(?!\s+to\b))\b",
    r"\bi\s+(?:can\s*not|can['’]t|am\s+not\s+(?:allowed|permitted)\s+to)\s+(?!wait|be\b|thank|believe|imagine|stress|emphasi|blame|"
    r"help\s+but|agree|complain)\w+",
    r"\bi(?:['’]m|\s+am)\s+not\s+in\s+a\s+position\s+to\b",
    r"\bi\s+can\s+only\s+(?:help|assist|answer|advise|speak|support)\b",
    r"\bi\s+(?:came|come|have\s+come)\s+up\s+(?:empty|short)\b|\bi\s+(?:drew|draw)\s+a\s+blank\b",
    r"\bi\s+(?:have\s+)?(?:found|come\s+across|came\s+across)\s+(?:no|none|nothing)\b",
    r"\bi\b[^.;]{0,80}\b(?:and|but)\s+found\s+(?:none|nothing)\b",
    r"^\W*(?:i\s+have\s+|i['’]ve\s+(?:got\s+)?)?no\s+(?:idea|clue)\b",
    r"(?:\bnot|n['’]t)\s+something\s+(?:that\s+)?i(?:['’]m|\s+am)?\s+(?:able\s+to|can)\s+\w+"
    r"|\bsomething\s+(?:that\s+)?i(?:['’]m\s+not|\s+am\s+not)?\s+(?:able\s+to|cannot|can['’]t)\s+\w+",
    rf"^\W*(?:\w+\W+)?i\b[^.;]{{0,40}}\bbut\s+(?:i\s+)?{_DO_NOT}\s+find\s+(?:any(?:thing)?|nothing)\b",
    rf"\bi\s+(?:have\s+)?(?:find|found|have|see|know)\s+(?:nothing|no\s+(?:\w+\s+){{0,3}}?"
    rf"(?:{_INFORMATION}|{_EVIDENCE}|idea|way|means)\b|no\s{_PLACED}\b)",
    r"\bi\s+(?:have\s+not|haven['’]t)\s+(?:been able to\s+)?(?:found|find|seen|come across|been given)\b",
    rf"\b(?:we|one)\s+(?:\w+\s+)?{_DO_NOT}\s+(?:find\s+(?:any|an?|the)\s+(?:\w+\s+){{0,2}}?(?:information|"
    rf"answer|mention|details?)|answer\s+(?:this|the|your)\s+question|determine|tell\s+from)\b",
)
# Every form contains one of these. They are searched first, because the forms are slow.
_NEGATION = re.compile(
    r"\b(?:no|not|nor|none|nothing|nowhere|never|neither|cannot|unable|unclear|unanswered|silent|hardly|little|lacks?|omits?|"
    r"insufficient|missing|absent|fails?|leaves?|open|beyond|outside|only|empty|short|blank)\b|n['’]t\b"
)


@cache
def _declines() -> re.Pattern[str]:
    """The forms as one pattern, compiled on first use, because compiling takes long."""
    return re.compile("|".join(f"(?:{form})" for form in _FORMS))


# Where a declining sentence changes to another statement, before or after.
_TURN = re.compile(
    r"\s*(?:[,;–—]\s*|\s)(?:but|however|although|though|yet|while|whereas|even though)\b,?\s*|\s*;\s*|\s*[–—]\s+",
    re.IGNORECASE,
)
# Phrases that only introduce what the evidence says.
_ATTRIBUTION = re.compile(
    rf"^\W*(?:(?:and|but|however|still|instead|nevertheless|only|also|that said|in addition|besides)\b,?\s+)*"
    rf"(?:what\s+)?(?:they|it|{_EVIDENCES}|{_MATTERS})(?:\s+(?:only|merely|just|do|does|also|however|"
    rf"instead|simply))*"
    rf"\s+(?:says?|states?|mentions?|notes?|adds?|explains?|tells?(?:\s+(?:us|you))?|shows?|reports?|"
    rf"specif(?:y|ies)|points?\s+out)(?:\s+(?:only|merely|just))?"
    rf"(?:\s*,?\s*(?:though|however)\s*,?)?(?:\s+is)?(?:\s+that\b|:)\s*"
    rf"|^\W*(?:and|but)\s+that\s+"
    rf"|^\W*(?:according\s+to|as\s+stated\s+in|as\s+per|per)\s+{_EVIDENCES}(?:\s+(?:provided|given))?\s*,\s*",
    re.IGNORECASE,
)


# "If there is not enough information, the claim is rejected" states a rule, so its condition does not decline.
_CONDITION = re.compile(r"^\W*(?:if|unless|whenever|should|in case|as long as)\b[^,;]*[,;]", re.IGNORECASE)


class Declined(NamedTuple):
    """A sentence that declines.

    Attributes:
        rest: The remaining statement; blank if there is none.
        leads: Whether part of it stands before the declining part.
    """

    rest: str
    leads: bool


def declined(sentence: str) -> Declined | None:
    """What a sentence states besides declining; None if it does not decline."""
    lowered = lower(sentence)
    if not _NEGATION.search(lowered):
        return None
    condition = _CONDITION.match(sentence)
    begins = condition.end() if condition else 0
    found = _declines().search(lowered[begins:])
    if found is None:
        return None
    turns = list(_TURN.finditer(sentence))
    after = next((turn.end() for turn in turns if turn.start() >= begins + found.end()), len(sentence))
    before = next((turn.start() for turn in reversed(turns) if turn.end() <= begins + found.start()), 0)
    parts = (sentence[:before], sentence[after:])
    lead, tail = ("" if _declines().search(lower(part)) else part.strip(" ,;.") for part in parts)
    return Declined(_capital(f"{lead} {tail}".strip()), bool(lead))


def unattributed(sentence: str) -> str:
    """The sentence without an introduction such as "What they do say is that" or "According to the documents,"."""
    stripped = _ATTRIBUTION.sub("", sentence, count=1)
    return _capital(stripped) if stripped.strip() and stripped != sentence else sentence


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
