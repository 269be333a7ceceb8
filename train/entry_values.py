"""Values of made-up entries: as a text writes them in its language and country, and what they are as numbers, dates or
options."""
from dataclasses import dataclass

from extras import English, make_code
from names import made_up, model_name, series_name, shop_name, short_maker, work_title

FIRST = """Mara Teodor Priya Kenji Elise Graham Lucia Sunniva Omar Ines Tomasz Aylin Pieter Noor Carla Dmitri Hanna Joao
Freya Malik Ottilie Ruben Saoirse Tariq Ulla Viktor Wanda Yusuf Zora Anton Bea Cosmo Delphine Emeka Fiona Gustav Henk Iris
Jamal Kirsten Leif Milena Nikhil Olga Paolo Quentin Rosa Stefan Thea Ursula Jürgen Zoé André Björn Núria""".split()
LAST = """Quist Vale Watt Okoro Marchand Pell Ferrer Berg Haddad Moreau Nowak Demir Jansen Aziz Rossi Volkov Lind Costa
Hansen Rahman Keller Ortiz Byrne Saleh Weber Ivanov Kowalski Yilmaz Adler Brandt Castell Dubois Eriksen Faure Grant Hofer
Iversen Jung Klein Lambert Meier Novak Olsen Petit Roth Sommer Tanaka Urban Vogel Winter Zeller Özkan Müller Lefèvre
Garnier Whitlock Penrose Ashby Thorne Mackay""".split()
PLACES = """Aldermoor Brackwell Cressing Dunhallow Eastmere Fernleigh Grayport Hollins Inverlay Kestrel-Bay Langdon Marrow
Northby Ottersea Pelham Rookhurst Stanlow Tarrant Upwell Wexcombe""".split()
TOWNS = {
    "en": PLACES, "de": """Altenrode Birkenau Dornfeld Eschwalde Grünbach Hohenried Kaltenberg Lindheim Moorhausen Neuwerth
Oberstein Rabenau Steinfurt Tannhagen Weidach""".split(),
    "fr": """Argenton Beaulieu Chantemerle Fontbrune Grandval Laroche Montclair Noirmont Périgny Roquefeuil Saint-Aubin
Sauvigny Valmont Vernay""".split(),
}
STREETS = {
    "en": ["{n} {w} Street", "{n} {w} Road", "{n} {w} Lane", "{n} {w} Avenue", "{n} Old {w} Way", "{w} House, {n} High Street"],
    "de": ["{w}straße {n}", "{w}weg {n}", "{w}gasse {n}", "Am {w} {n}", "{w}platz {n}"],
    "fr": ["{n} rue {w}", "{n}, rue {w}", "{n} avenue {w}", "{n} bis, boulevard {w}", "{n} place {w}"],
}
STREET_WORDS = {
    "en": "Mill Church Orchard Station Quarry Victoria Harbour Willow Market Abbey Cedar Foundry".split(),
    "de": "Linden Garten Schul Mühlen Kirch Bahnhof Berg Wiesen Rosen Ufer Markt Birken".split(),
    "fr": ["des Lilas", "du Moulin", "Victor-Noir", "de la Gare", "des Carmes", "Pasteur", "du Port", "de l'Église",
           "des Écoles", "Saint-Martin"],
}
COMPANY_ENDS = {
    "en": ["Ltd", "Logistics", "Foods", "Labs", "Group", "& Sons", "Partners", "Hospital", "Council", "Museum", "Bakery",
           "Systems", "Engineering", "School", "Hotel", "University", "Bank", "Press", "Motors", "Insurance", ""],
    "de": ["GmbH", "AG", "& Söhne", "Logistik", "Klinik", "Stadtwerke", "Verlag", "Maschinenbau", "KG", "Bäckerei", "Hotel",
           "Versicherung", "Bank", "Gymnasium", ""],
    "fr": ["SARL", "SA", "et Fils", "Conseil", "Transports", "Hôpital", "Éditions", "Ingénierie", "Hôtel", "Banque",
           "Assurances", "Lycée", ""],
}
MARKS = {"en": [(".", ","), (".", ","), (".", ""), (".", " ")], "de": [(",", "."), (",", "."), (",", ""), (".", "'")],
         "fr": [(",", " "), (",", "\u202f"), (",", ""), (",", ".")]}
MONEY = {
    "en": ["${}", "£{}", "€{}", "{} USD", "{} EUR", "{} euros", "{} dollars", "{}", "GBP {}", "US${}", "{} CHF", "{} kr",
           "A${}", "{} €", "EUR {}"],
    "de": ["{} EUR", "{} €", "{} Euro", "EUR {}", "CHF {}", "{}", "{}€", "Fr. {}", "{} Franken"],
    "fr": ["{} €", "{} EUR", "{} euros", "{}€", "{}", "{} CHF", "{} $", "{} fr."],
}
CURRENCIES = {"$": "USD", "dollars": "USD", "£": "GBP", "€": "EUR", "euros": "EUR", "Euro": "EUR", "Fr.": "CHF",
              "Franken": "CHF", "kr": "SEK", "fr.": "CHF", "A$": "AUD", "US$": "USD"}
TIMES = {
    "en": ["{h}:{m:02}", "{h:02}:{m:02}", "ampm", "am pm", "a.m.", "{h:02}.{m:02}", "{h:02}{m:02}"],
    "de": ["{h}:{m:02} Uhr", "{h:02}:{m:02}", "{h}.{m:02} Uhr", "uhr", "{h:02}.{m:02}"],
    "fr": ["{h}h{m:02}", "{h} h {m:02}", "h", "{h:02}:{m:02}", "{h}h{m:02}"],
}
MONTHS = {
    "en": English.dates, "de": ["Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September",
                                "Oktober", "November", "Dezember"],
    "fr": ["janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre",
           "décembre"],
}


@dataclass
class Stated:
    """A value: as the text writes it, and what it is (a number, a date, an option, a list, true or false)."""
    written: str
    value: object


class Style:
    """How one text writes numbers, money, times and dates."""

    def __init__(self, language, pick, money=None):
        self.language, self.pick = language, pick
        self.point, self.group = pick.choice(MARKS[language])
        self.money = money or pick.choice(MONEY[language])
        self.cents = pick.choice([0, 0, 0.5, 0.5, 1])
        self.whole = pick.choice([False, False, True])
        self.kinds = {}  # of fields with several kinds of words, the one of this text
        self.time = pick.choice(TIMES[language])
        self.date = pick.randrange(5)

    def number(self, number):
        whole, _, rest = f"{number:.10g}".partition(".")
        return self.grouped(int(whole)) + (self.point + rest if rest else "")

    def grouped(self, whole):
        return f"{whole:,}".replace(",", self.group) if abs(whole) > 999 else str(whole)

    def price(self, number):
        whole, cents = int(number), round(number % 1 * 100)
        text = self.grouped(whole)
        if cents or self.cents == 1:
            text += f"{self.point}{cents:02}"
        elif self.language == "de" and self.cents and "{}" != self.money:
            text += ",-" if self.point == "," and self.money.startswith("{} ") and self.pick.random() < 0.3 else ""
        return self.money.format(text)

    def clock(self, minutes):
        h, m = divmod(minutes, 60)
        if self.time in ("ampm", "am pm", "a.m."):
            half = "am" if h < 12 else "pm"
            half = {"ampm": half, "am pm": f" {half}", "a.m.": f" {half[0]}.m."}[self.time]
            return f"{h % 12 or 12}" + (f":{m:02}" if m else "") + half
        if self.time == "uhr":
            return f"{h} Uhr" if not m else f"{h}:{m:02} Uhr"
        if self.time == "h":
            return f"{h}h" if not m else f"{h}h{m:02}"
        return self.time.format(h=h, m=m)

    def day(self, year, month, day):
        if self.language == "en":
            return English.dates(year, month, day)[(0, 1, 2, 5, 9)[self.date]]
        name = MONTHS[self.language][month - 1]
        dot = "." if self.language == "de" else ""
        return [f"{day}{dot} {name} {year}", f"{day:02}.{month:02}.{year}", f"{day}{dot} {name} {year}",
                f"{year}-{month:02}-{day:02}", f"{day}.{month}.{year}"][self.date]


def by_language(words, language):
    return words[language] if isinstance(words, dict) else words


def make_money(field, style, pick):
    low, high = field.get("from", 2), field.get("to", 90)
    number = pick.randint(low, high)
    if high > 3000:
        number -= number % pick.choice([1, 5, 10, 50])
    elif style.cents and not style.whole:
        number += pick.choice([0, 0.5, 0.9, 0.95, 0.99, 0.25, 0.8, 0.49])
    return Stated(style.price(number), int(number) if number == int(number) else round(number, 2))


def make_number(field, style, pick):
    step = field.get("step", 1)
    number = pick.choice(field["of"]) if "of" in field else round(
        field["from"] + step * pick.randint(0, int((field["to"] - field["from"]) / step)), 3)
    number = int(number) if number == int(number) else number
    unit = pick.choice(by_language(field["units"], style.language)) if "units" in field else "{}"
    if "{}" not in unit:
        unit = "{} " + unit if pick.random() < 0.8 or len(unit) > 4 else "{}" + unit
    return Stated(unit.format(style.number(number)), number)


def make_flag(field, style, pick):
    holds = pick.random() < field.get("share", 0.6)
    return Stated(pick.choice(by_language(field["said" if holds else "denied"], style.language)), holds)


def make_choice(field, style, pick):
    option = pick.choice(sorted(field["options"]))
    return Stated(pick.choice(by_language(field["options"][option], style.language)), option)


def make_several(field, style, pick):
    words = by_language(field["of"], style.language)
    some = pick.sample(words, min(len(words), pick.choice([1, 1, 2, 2, 3])))
    last = {"en": [" and ", ", ", " & "], "de": [" und ", ", "], "fr": [" et ", ", "]}[style.language]
    return Stated(", ".join(some[:-1]) + (pick.choice(last) if len(some) > 1 else "") + some[-1], some)


def make_words(field, style, pick):
    """One of the words, or a form whose parts in angle brackets are words of the field. Of several kinds of words, a text
    has one."""
    words = by_language(field["of"], style.language)
    if isinstance(words, dict):
        kind = style.kinds.setdefault(id(field), pick.choice([*words, None]))
        words = words[kind] if kind else [word for some in words.values() for word in some]
    word = str(pick.choice(words))
    for part, words in field.get("parts", {}).items():
        if f"<{part}>" in word:
            word = word.replace(f"<{part}>", str(pick.choice(by_language(words, style.language))))
    return Stated(word, word)


def make_person(field, style, pick):
    name = f"{pick.choice(FIRST)} {pick.choice(LAST)}"
    kind = pick.random()
    if kind < 0.08:
        name = f"{name.split()[0]} {pick.choice('ABCDEFGHJKLMNPRST')}. {name.split()[1]}"
    elif kind < 0.13:
        name = f"{pick.choice(['Dr', 'Dr.', 'Prof.'])} {name}"
    elif kind < 0.18:
        name += f"-{pick.choice(LAST)}"
    return Stated(name, name)


def make_company(field, style, pick):
    kind = pick.random()
    if kind < 0.25:
        name = pick.choice([made_up, short_maker, series_name])(pick)
    elif kind < 0.5:
        name = f"{pick.choice(LAST)} {pick.choice(COMPANY_ENDS[style.language])}".strip()
    else:
        name = f"{pick.choice(TOWNS[style.language])} {pick.choice(COMPANY_ENDS[style.language])}".strip()
    return Stated(name, name)


def make_product(field, style, pick):
    noun = pick.choice(by_language(field["of"], style.language))
    own = pick.choice([made_up, series_name, short_maker])(pick)
    name = f"{own} {noun}" if style.language != "fr" or pick.random() < 0.3 else f"{noun} {own}"
    name = noun if pick.random() < 0.2 else name
    return Stated(name, name)


def make_time(field, style, pick):
    step = field.get("step", 15)
    minutes = 60 * field.get("from", 8) + step * pick.randint(0, (field.get("to", 20) - field.get("from", 8)) * 60 // step)
    return Stated(style.clock(minutes), minutes)


def make_date(field, style, pick):
    year, month, day = pick.randint(field.get("from", 2018), field.get("to", 2027)), pick.randint(1, 12), pick.randint(1, 28)
    return Stated(style.day(year, month, day), f"{year}-{month:02}-{day:02}")


def plain(make):
    """A maker of a text that is its own value."""
    def made(field, style, pick):
        text = make(field, style, pick)
        return Stated(text, text)
    return made


def street(field, style, pick):
    form = pick.choice(STREETS[style.language])
    return form.format(n=pick.randint(1, 148), w=pick.choice(STREET_WORDS[style.language]))


def email(field, style, pick):
    return (f"{pick.choice(FIRST)}.{pick.choice(LAST)}".lower() if pick.random() < 0.6 else pick.choice(
        ["info", "office", "sales", "desk", "hello"])) + f"@{made_up(pick)}".replace(" ", "").replace("'", "").replace(
            "&", "-").rstrip(".").lower() + pick.choice([".com", ".org", ".de", ".fr", ".example"])


def year(field, style, pick):
    number = pick.randint(field.get("from", 1990), field.get("to", 2026))
    return Stated(str(number), number)


MAKERS = {
    "money": make_money, "number": make_number, "flag": make_flag, "choice": make_choice, "several": make_several,
    "words": make_words, "person": make_person, "company": make_company, "product": make_product, "time": make_time,
    "date": make_date, "year": year, "street": plain(street), "email": plain(email),
    "city": plain(lambda field, style, pick: pick.choice(TOWNS[style.language])),
    "shop": plain(lambda field, style, pick: shop_name(pick) if pick.random() < 0.5 else made_up(pick)),
    "code": plain(lambda field, style, pick: make_code(pick.choice(field["of"]), pick)),
    "title": plain(lambda field, style, pick: work_title(pick)),
    "model": plain(lambda field, style, pick: f"{short_maker(pick)} {model_name(pick)}"),
    "duration": plain(lambda field, style, pick: f"{pick.randint(1, 7)}:{pick.randint(0, 59):02}"),
}


def make(field, style, pick):
    return MAKERS[field["make"]](field, style, pick)
