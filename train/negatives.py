"""Questions that a text almost answers."""
import functools
import re

WORD = re.compile(r"[^\W_]+")
STOP = set("a an the of in on at to for from by with and or as is was were are be been did do does has had have what which who "
           "whom whose when where why how many much long far old it its his her their he she they this that these those not "
           "there than then name called known used first".split())
OPPOSITES = [pair.split("/") for pair in (
    "first/last largest/smallest biggest/smallest most/least highest/lowest oldest/youngest best/worst before/after "
    "early/late earlier/later north/south northern/southern east/west eastern/western male/female men/women king/queen "
    "father/mother son/daughter brother/sister husband/wife increase/decrease increased/decreased rise/fall win/lose "
    "won/lost start/end began/ended begin/end opened/closed built/destroyed bought/sold positive/negative "
    "public/private summer/winter hot/cold old/new older/younger rich/poor more/less more/fewer long/short high/low "
    "modern/ancient left/right upper/lower accepted/rejected allowed/forbidden same/different success/failure "
    "strong/weak major/minor inside/outside joined/left born/died winner/loser friend/enemy support/oppose "
    "supported/opposed agree/disagree agreed/disagreed arrived/departed gained/lost import/export").split()]
OPPOSITE = {a: b for one, other in OPPOSITES for a, b in ((one, other), (other, one))}
DENIED = {"is": "isn't", "was": "wasn't", "were": "weren't", "are": "aren't", "did": "didn't", "does": "doesn't",
          "do": "don't", "has": "hasn't", "had": "hadn't", "could": "couldn't", "would": "wouldn't"}
NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
NAME = re.compile(r"(?<![.?!\"] )(?<!^)\b[A-Z][\w’'.-]*(?:\s+(?:of the |of |the )?[A-Z][\w’'.-]*)*")


@functools.cache
def content_words(text):
    return frozenset(word for word in WORD.findall(text.lower()) if word not in STOP)


@functools.cache
def found(pattern, text):
    return tuple(dict.fromkeys(match.group().rstrip(".,") for match in pattern.finditer(text)))


def replaced(pattern, question, text, article, rng):
    """The question with another number or name of the text, or of its article, in place of its own."""
    own = found(pattern, question)
    if not own:
        return None
    old = rng.choice(own)
    nearby = text if rng.random() < 0.6 else rng.choice(article).get("text", text)
    others = [new for new in found(pattern, nearby)
              if new not in question and old not in new and new not in old and len(new.split()) <= 5 and
              (pattern is not NUMBER or (len(new) == 4) == (len(old) == 4))]
    if pattern is NUMBER and len(old) == 4 and old.isdigit() and (not others or rng.random() < 0.4):
        others = [str(int(old) + step) for step in (-10, -7, -3, -2, -1, 1, 2, 3, 6, 10) if str(int(old) + step) not in text]
    return question.replace(old, rng.choice(others), 1) if others else None


def opposed(question, rng):
    words = [word for word in WORD.findall(question) if word in OPPOSITE]
    if not words:
        return None
    word = rng.choice(words)
    return re.sub(rf"\b{word}\b", OPPOSITE[word], question, count=1)


def denied(question, rng):
    words = [word for word in WORD.findall(question) if word in DENIED]
    return re.sub(rf"\b{words[0]}\b", DENIED[words[0]], question, count=1) if words else None


def changed(question, text, article, rng):
    """The question with another name, number or word, so that the text probably does not answer it; None: no way found."""
    ways = [lambda: replaced(NAME, question, text, article, rng), lambda: replaced(NUMBER, question, text, article, rng),
            lambda: opposed(question, rng), lambda: replaced(NAME, question, text, article, rng)]
    rng.shuffle(ways)
    if rng.random() < 0.12:
        ways.insert(0, lambda: denied(question, rng))
    return next((made for way in ways if (made := way()) and made != question), None)


def exchanged(article, text, own, rng, tried=60):
    """Questions about other paragraphs whose answer does not stand in the text, the likest to the text first."""
    words = content_words(text)
    pool = [q for paragraph in article if paragraph.get("text") != text for q in paragraph["questions"]
            if q["question"] not in own and not (q.get("answer") and q["answer"].lower() in text.lower())]
    pool = rng.sample(pool, min(tried, len(pool)))

    def likeness(q):
        asked = content_words(q["question"])
        return len(asked & words) / (len(asked) or 1) + 0.35 * rng.random()
    return list(dict.fromkeys(q["question"] for q in sorted(pool, key=likeness, reverse=True)))
