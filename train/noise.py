"""What titles of real offers have around them: repetitions, a shop's name, leftovers of tables and markup. A title's
values stay in it letter by letter, or change with it."""
import re

from names import shop_name

NULLS = ["null", "Null", "NULL", "N/A", "n/a", "null null", "Null, Null", "None", "nan", "-"]
MARKS = ['"', "''", "|", "|", "/", "//", "-", "--", "*", ",", ";", "&nbsp;", "<br>", "&quot;", "…", " "]
TAGS = ["@en", "@en", "@en-US", "@en-us", "", ""]
TALK = ["FREE SHIPPING", "NEW", "Sale!", "BUY NOW", "Best Price", "L@@K", "Hot Deal", "Buy online", "Lowest price",
        "Special offer", "Clearance", "In our shop"]


def parts(value):
    """The texts that a value consists of."""
    return [] if value is None else value if isinstance(value, list) else [value]


def gaps(title, values):
    """Where words of the title meet, outside of its values."""
    free = title
    for value in values.values():
        for text in parts(value):
            free = free.replace(text, text.replace(" ", "_"))
    return [at for at, letter in enumerate(free) if letter == " "]


def repeat(title, values, pick):
    words = title.split(" ")
    half = " ".join(words[:max(2, len(words) // 2)])
    between = pick.choice([" ", " ", " - ", " | ", ", ", " / ", ": "])
    return pick.choice([title + between + title, half + between + title, title + between + half,
                        f"{half}...{between}{title}"]), values


def add_shop(title, values, pick):
    """A shop's name, which is a value if sellers are."""
    shop = shop_name(pick)
    values = values | {"Seller": shop} if "Seller" in values else values
    if pick.random() < 0.25:
        return shop + pick.choice([" - ", ": ", " | ", " ", " » "]) + title, values
    return title + pick.choice([" - {}", " - {}", " | {}", " | {}", " ({})", " at {}", ", {}", " @ {}", " {}",
                                " - Buy at {}", " from {}", " : {}"]).format(shop), values


def add_null(title, values, pick):
    null = pick.choice(NULLS)
    return pick.choice([f"{null} {title}", f"{title} {null}", f"{title}, {null}", f"{null} - {title}", f"{title} | {null}",
                        f"{title} {null} {pick.choice(NULLS)}"]), values


def add_marks(title, values, pick):
    places = gaps(title, values)
    for at in sorted(pick.sample(places, min(len(places), pick.choice([1, 1, 2, 3]))), reverse=True):
        mark = pick.choice(MARKS)
        title = title[:at] + pick.choice([f" {mark} ", f"{mark} ", f" {mark}"]) + title[at + 1:]
    return title if places else title + pick.choice(['"', " |", " /", ","]), values


def shout(title, values, pick):
    change = pick.choice([str.upper, str.upper, str.upper, str.lower])
    return change(title), {name: [change(text) for text in value] if isinstance(value, list) else value and change(value)
                           for name, value in values.items()}


def cut(title, values, pick):
    """The title up to a word; what stands behind it is absent."""
    places = [at for at in gaps(title, values) if at > len(title) / 2]
    if not places:
        return title, values
    short = title[:pick.choice(places)].rstrip(" ,-|/(")
    left = {name: value if all(text in short for text in parts(value)) else None for name, value in values.items()}
    # A list of which one part is left, or a value that stands in what is left of another, would be neither here nor there.
    if any(left[name] is None and any(text in short for text in parts(value)) for name, value in values.items()):
        return title, values
    return short + pick.choice(["...", "...", " ...", "…", ""]), left


def escape(title, values, pick):
    for at in reversed([m.start() for m in re.finditer("[&']", title)]):
        if not any(text and text in title[max(0, at - len(text)):at + len(text)] for value in values.values()
                   for text in parts(value) if title[at] in text):
            title = title[:at] + {"&": "&amp;", "'": "&#39;"}[title[at]] + title[at + 1:]
    if pick.random() < 0.5:
        title = pick.choice(["{} <br />", "<b>{}</b>", "{}&nbsp;", "&gt; {}", "{} &amp; more", "<h1>{}</h1>", "{} &reg;",
                             "{}\\n", "<p>{}"]).format(title)
    return title, values


def quote(title, values, pick):
    tag = pick.choice(TAGS)
    return pick.choice([f'"{title}"{tag}', f'"{title}"{tag}', f'{title} "{tag}', f'"{title}"{tag} "{title}"{tag}']), values


def add_price(title, values, pick):
    amount = pick.randint(2, 400) + pick.choice([0.99, 0.95, 0.5, 0.49, 0])
    price = pick.choice([f"${amount:.2f}", f"${amount:.2f} USD", f"USD {amount:.2f}", f"£{amount:.2f}",
                         f"{amount:.2f} €".replace(".", ","), f"EUR {amount:.2f}", f"${amount:.0f}"])
    return pick.choice([f"{title} {price}", f"{title} - {price}", f"{title} for {price}", f"{title} | {price}",
                        f"{title} (only {price})", f"{price} {title}"]), values


def add_talk(title, values, pick):
    talk = pick.choice(TALK)
    return pick.choice([f"{talk} {title}", f"{title} {talk}", f"{title} - {talk}", f"*{talk}* {title}",
                        f"{title} !!{talk}!!"]), values


def add_code(title, values, pick):
    """A shop's own number; not where a model's number is asked for, with which it could be confused."""
    code = pick.choice([f"{pick.randint(0, 99999):05}", f"{pick.randint(0, 99999):05}-{pick.choice('ABCDEHKLMNPRSTX')}",
                        f"{pick.choice('ABCDHKLMPRST')}{pick.choice('ABCDHKLMPRST')}{pick.randint(10, 9999)}",
                        f"{pick.randint(10, 999)}-{pick.randint(100, 9999)}"])
    return pick.choice([f"{code} {title}", f"{code} {title}", f"{code} - {title}", f"[{code}] {title}", f"{title} {code}",
                        f"SKU {code} {title}", f"{title} (Item #{code})", f"#{code} {title}"]), values


KINDS = {repeat: 3, add_shop: 4, add_null: 2, add_marks: 4, shout: 2, cut: 2, escape: 2, quote: 1, add_price: 1,
         add_talk: 2, add_code: 2}


def make_noise(title, values, pick, without=()):
    """The title with one to three kinds of noise, and its values in it: texts, lists of texts, or None."""
    kinds = [kind for kind in KINDS if kind not in without]
    for kind in dict.fromkeys(pick.choices(kinds, [KINDS[kind] for kind in kinds], k=pick.choice([1, 1, 2, 3]))):
        noisy, changed = kind(title, values, pick)
        if all(text in noisy for value in changed.values() for text in parts(value)):
            title, values = noisy, changed
    return title, values
