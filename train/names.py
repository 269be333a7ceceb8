"""Names of makers, shops, series and models that do not exist, so that a model looks for a name and not for one that it
knows."""
from wordings import ENDINGS, MAKERS, SYLLABLES

SHOPS = """Mart Store Shop Outlet Direct Depot Deals Superstore Warehouse Bazaar Market Express Online Supplies Traders
Megastore Discounts Wholesale Emporium Center""".split()
DOMAINS = [".com", ".com", ".com", ".net", ".co.uk", ".de", ".eu", ".fr", ".es", ".shop"]
THINGS = """Nomad Voyager Captain Pilot Traveler Explorer Cruiser Hiker Metro Cloud Breeze Comet Orbit Pulse Spark Echo
Drift Matrix Vertex Horizon Journey Legend Spirit Wonder Harmony Comfort Festival Weekend Morning Winter Titan Duke Baron
Countess Marquis Badger Panda Tiger Domino Bistro Avenue Boulevard Plaza Piazza Corsica Lisbon Oslo Kyoto Havana""".split()
SERIES_ENDS = "Pro Plus Line Max Elite Classic Series Edge Air One Lite Prime Station".split()
WORK_NOUNS = """Garden Harvest Lighthouse Kingdom Orchestra Voyage Lantern Cartographer Widow Island Letters Machine Winter
Silence Daughter Empire Clockmaker River Shadow Thief Summer Bridge Carnival Archive Dragon Bakery Mountain Signal Harbour
Feast Labyrinth Comet Stranger Village Meadow Promise Engine Beekeeper""".split()
WORK_ADJECTIVES = """Last Hidden Crooked Golden Forgotten Quiet Burning Little Endless Broken Secret Wandering Frozen Great
Restless Paper Velvet Distant Wild Borrowed Invisible Second""".split()
ROMAN = ["II", "III", "IV", "V", "X", "G2", "G3", "2.0", "XL", "Mini", "SE"]


def made_up(pick):
    """The name of a maker that does not exist."""
    kind = pick.random()
    if kind < 0.2:
        name = "".join(pick.sample(SYLLABLES, pick.choice([2, 3]))).capitalize()
    elif kind < 0.4:
        name = pick.choice(MAKERS) + pick.choice(MAKERS).lower()
    elif kind < 0.65:
        name = pick.choice([" & ", " and ", " "]).join(pick.sample(MAKERS, 2))
    elif kind < 0.85:
        name = f"{pick.choice(MAKERS)} {pick.choice(ENDINGS)}"
    else:
        name = pick.choice(MAKERS) + pick.choice(["'s", "", "a", "o"])
    return name.upper() if pick.random() < 0.12 else name


def shop_name(pick):
    """The name of a shop that does not exist."""
    first = pick.choice(MAKERS)
    kind = pick.random()
    if kind < 0.4:
        return f"{first}{pick.choice(SHOPS + [''])}{pick.choice(DOMAINS)}"
    if kind < 0.7:
        return f"{first} {pick.choice(SHOPS)}"
    if kind < 0.9:
        return f"{first}{pick.choice(SHOPS)} {pick.choice(['Online', 'UK', 'USA', 'Inc.', 'Ltd', 'GmbH', ''])}".strip()
    return f"The {first} {pick.choice(SHOPS)}"


def short_maker(pick):
    """A maker's name as technology has them: Korvex, TNQ, Ardomek."""
    if pick.random() < 0.3:
        return "".join(pick.sample("ABCDEFGHJKLMNPQRSTVWXZ", pick.choice([2, 3, 3, 4])))
    return "".join(pick.sample(SYLLABLES, pick.choice([2, 2, 3]))).capitalize() + pick.choice(
        ["x", "tek", "n", "on", "is", "", "", "sys", "ron", "k", "tech", "com"])


def series_name(pick):
    """ProStation, Lumen II, Kestrel Air."""
    kind = pick.random()
    first = pick.choice(MAKERS) if pick.random() < 0.5 else "".join(pick.sample(SYLLABLES, 2)).capitalize()
    if kind < 0.35:
        return first + pick.choice(SERIES_ENDS)
    if kind < 0.6:
        return f"{first} {pick.choice(SERIES_ENDS)}"
    if kind < 0.75:
        return f"{first} {pick.choice(ROMAN)}"
    return "".join(pick.sample(SYLLABLES, 2)).capitalize()


def model_name(pick):
    """A name that a model has in place of a number: Oslo 40, Domino, Vela 3 Pro."""
    name = pick.choice(MAKERS + THINGS) if pick.random() < 0.7 else "".join(pick.sample(SYLLABLES, 2)).capitalize()
    kind = pick.random()
    if kind < 0.3:
        name += f" {pick.choice([1, 2, 3, 5, 7, 10, 12, 20, 22, 30, 35, 38, 50, 65, 90, 100, 200, 300, 500, 1000])}"
    if kind < 0.1 or kind > 0.85:
        name += f" {pick.choice([*SERIES_ENDS, *ROMAN])}"
    return name


def work_title(pick):
    """What a book, a game or a bar of chocolate is called: The Crooked Lantern, Letters from Oslo, Thief & Comet."""
    first, second = pick.sample(WORK_NOUNS, 2)
    adjective, place = pick.choice(WORK_ADJECTIVES), pick.choice(MAKERS + THINGS)
    return pick.choice([
        f"The {adjective} {first}", f"The {adjective} {first}", f"{adjective} {first}", f"The {first} of {place}",
        f"{first} of the {second}", f"{first} {pick.choice(['&', 'and'])} {second}", f"A {first} for {place}",
        f"{pick.choice(['Two', 'Three', 'Seven', 'Nine'])} {place}s", f"How to Find a {first}", f"{place} {first}",
        f"The {place} {first}", first, f"{first}{second.lower()}", f"My {adjective} {first}", f"{first} from {place}",
        f"{place}: The {adjective} {first}", f"{adjective} {first} {pick.choice([2, 3, 'II'])}"])
