"""Entries whose fields belong together: periods that follow each other, a total that is the price times the number."""
from entry_values import Stated, by_language

DAYS = {
    "en": [["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
           ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
           ["Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays"]],
    "de": [["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"],
           ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"],
           ["montags", "dienstags", "mittwochs", "donnerstags", "freitags", "samstags", "sonntags"]],
    "fr": [["lun.", "mar.", "mer.", "jeu.", "ven.", "sam.", "dim."],
           ["lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"],
           ["le lundi", "le mardi", "le mercredi", "le jeudi", "le vendredi", "le samedi", "le dimanche"]],
}
RANGES = {"en": ["{}-{}", "{} to {}", "{} – {}", "{}–{}", "{} through {}", "{} till {}"],
          "de": ["{}-{}", "{} bis {}", "{} – {}", "{}–{}"], "fr": ["{} à {}", "du {} au {}", "{}-{}", "{} au {}"]}
PAIRS = {"en": ["{} and {}", "{} & {}", "{}/{}", "{}, {}"], "de": ["{} und {}", "{} + {}", "{}/{}", "{}, {}"],
         "fr": ["{} et {}", "{}/{}", "les {} et {}"]}
OTHER_DAYS = {"en": ["public holidays", "holidays", "weekends", "daily", "weekdays", "school holidays", "every day"],
              "de": ["feiertags", "an Feiertagen", "täglich", "werktags", "am Wochenende"],
              "fr": ["jours fériés", "tous les jours", "le week-end", "en semaine"]}


def text(written):
    return Stated(written, written)


def day_names(count, language, pick):
    """Days and ranges of days of a week, in their order."""
    kind = pick.choice([0, 1, 1, 2])
    names, day, found = DAYS[language][kind], 0, []
    form, pair = pick.choice(RANGES[language]), pick.choice(PAIRS[language])
    while day < 7 and len(found) < count:
        rest = 6 - day
        last = min(6, day + (pick.choice([0, 0, 1, 3, 4, 2]) if count < 6 else 0))
        two = last == day + 1 or last == day and rest > 2 and pick.random() < 0.12
        if last == day and not two:
            found.append(names[day])
        elif two:
            last = last if last > day else day + 2
            found.append((pair if pick.random() < 0.7 else form).format(names[day], names[last]))
        else:
            range_ = form if kind < 2 or "du" not in form else "{} - {}"
            found.append(range_.format(names[day], names[last]))
        day = last + 1 + (pick.random() < 0.15)
    if pick.random() < 0.15 and len(found) < count:
        found.append(pick.choice(OTHER_DAYS[language]))
    return found


def hours(entries, style, pick):
    """Opening hours: days that follow each other, and a time to close that is later."""
    names = day_names(len(entries), style.language, pick)
    for entry, name in zip(entries, names):
        opens = pick.choice([390, 420, 450, 480, 510, 540, 540, 570, 600, 600, 630, 660, 720, 840, 1020])
        closes = min(1410, opens + pick.choice([180, 210, 240, 300, 360, 480, 510, 540, 600]))
        entry |= {"days": text(name), "opens": text(style.clock(opens)), "closes": text(style.clock(closes))}
    return entries[:len(names)]


def periods(entries, style, pick):
    """Years from and to: the latest first or last, the latest sometimes without an end."""
    now = pick.randint(2012, 2026)
    held = pick.random() < 0.5
    for index, entry in enumerate(entries):
        start = now - pick.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 10])
        entry["start"], entry["end"] = Stated(str(start), start), Stated(str(now), now)
        if index == 0 and held:
            entry.pop("end")
        elif pick.random() < 0.1:
            entry["only"] = entry.pop("start")
            del entry["end"]
        now = start - pick.choice([0, 0, 0, 0, 1, 2])
    return entries[::-1] if pick.random() < 0.4 else entries


def totals(entries, style, pick):
    for entry in entries:
        total = round(entry["price"].value * entry["quantity"].value, 2)
        entry["total"] = Stated(style.price(total), int(total) if total == int(total) else total)
    return entries


def clock(entries, style, pick):
    """Times that rise from entry to entry; an end, where there is one, is not later than the next beginning."""
    now = pick.choice([480, 525, 540, 555, 570, 600, 780, 840, 1020])
    for entry in entries:
        length = pick.choice([20, 30, 30, 45, 45, 60, 75, 90])
        entry["start"] = text(style.clock(now % 1440))
        entry["end"] = text(style.clock((now + length) % 1440))
        now += length + pick.choice([0, 0, 5, 10, 15, 30])
    return entries


AMOUNTS = {
    "g": [5, 10, 15, 20, 30, 40, 50, 60, 75, 80, 100, 120, 125, 150, 180, 200, 250, 300, 350, 400, 500, 600, 750, 800],
    "l": [0.1, 0.2, 0.25, 0.3, 0.5, 0.75, 1, 1.5, 2], "kg": [0.5, 0.75, 1, 1.2, 1.5, 2], "few": [1, 1, 2, 2, 3, 4, 5, 6, 8],
    "some": [0.25, 0.5, 0.5, 0.75, 1, 1, 1.5, 2, 2, 2.5, 3, 4], "oz": [1, 2, 3, 4, 6, 7, 8, 10, 12, 14, 16],
}
PINCHES = {"en": ["pinch", "handful", "dash", "splash", "drizzle"], "de": ["Prise", "Handvoll"], "fr": ["pincée", "poignée"]}
FRACTIONS = {0.25: ["1/4", "¼"], 0.5: ["1/2", "½"], 0.75: ["3/4", "¾"]}


def ingredients(entries, style, pick, rows, units):
    """Ingredients with amounts in units that suit them. `rows`: kind of unit → ingredients; `units`: unit → AMOUNTS."""
    rows, units = by_language(rows, style.language), by_language(units, style.language)
    kinds = [(kind, name) for kind, names in rows.items() for name in names]
    for entry, (kind, name) in zip(entries, pick.sample(kinds, len(entries))):
        entry["name"] = text(name)
        entry.pop("unit", None)
        if kind == "none" or kind == "spice" and pick.random() < 0.3:
            if pick.random() < 0.6:
                entry["pinch"] = text(pick.choice(PINCHES[style.language]))
            continue
        unit, amounts = pick.choice(units[kind])
        number = pick.choice(AMOUNTS[amounts])
        written = style.number(number)
        if number % 1 in FRACTIONS and pick.random() < 0.55:
            share = pick.choice(FRACTIONS[number % 1])
            written = (f"{int(number)} " if len(share) > 1 else str(int(number))) + share if number > 1 else share
        entry["amount"] = Stated(written, number)
        if unit:
            entry["unit"] = text(unit)
    return entries


def scores(entries, style, pick):
    """The guests of one match are not the hosts of it."""
    for entry in entries:
        if entry["home"].written == entry["away"].written:
            entry["away"] = text(entry["away"].written + " II")
    return entries


def ranked(entries, style, pick):
    for place, entry in enumerate(entries, 1):
        entry["place"] = Stated(str(place), place)
    return entries


ROWS = {"hours": hours, "periods": periods, "totals": totals, "clock": clock, "scores": scores, "ranked": ranked}


def arrange(family, entries, style, pick):
    kind = family.get("rows")
    if kind == "ingredients":
        return ingredients(entries, style, pick, family["ingredients"], family["measures"])
    return ROWS[kind](entries, style, pick) if kind else entries
