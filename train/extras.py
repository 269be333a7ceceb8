"""Statements that are added to a product's text, with their attributes: numbers with units, features, closures and
other things that labelled titles seldom hold, so that a model learns to look for any attribute."""
from wordings import MAKERS, SYLLABLES

COUNTRIES = """Portugal Japan Italy Vietnam Peru Kenya Canada Mexico Norway Turkey India Brazil Spain Poland Thailand
Chile Morocco Austria Greece Taiwan""".split()
SHADES = """Sage Rust Ash Plum Sand Smoke Midnight Moss Cherry Honey Slate Ivory Coral Mint Olive Steel Dusty Light Dark
Matte Pale Deep Bright Heather Forest Ocean Rose Golden Silver Burnt""".split()
COLORS = "Green Blue Red Grey Black White Orange Pink Brown Yellow Purple Beige Navy Teal Gold".split()
STUFFS = """Leather Canvas Nylon Cotton Wool Bamboo Steel Oak Ceramic Glass Linen Rubber Silicone Polyester Suede Felt
Aluminum Cork Denim Mesh""".split()
TREATED = "Vegan Waxed Recycled Organic Brushed Stainless Full-Grain Merino Ripstop Tempered Solid Woven Soft 600D".split()
CLOSURES = ["zip", "buckle", "drawstring", "velcro", "lace-up", "roll-top", "snap", "magnetic", "slip-on", "screw cap"]
FEATURES = ["Rain Cover", "USB Port", "Machine Washable", "Dishwasher Safe", "BPA Free", "Adjustable Straps", "Foldable",
            "Water Resistant", "Non-Slip Sole", "Hidden Pocket", "Removable Lining", "Quick Release", "Anti-Fog",
            "Reflective Strips", "Cordless", "Fair Trade", "Cruelty Free", "Refillable", "Lifetime Warranty",
            "Padded Handle", "Built-In Timer", "Leak Proof", "Child Lock", "Wireless Charging", "Compostable"]


def number_with(units, low, high, halves=False):
    def make(pick):
        number = pick.randint(low, high)
        if halves and pick.random() < 0.3:
            number += pick.choice([0.5, 0.2, 0.6, 0.75])
        return f"{number}{pick.choice([' ', ' ', '', '-'])}{pick.choice(units)}", number
    return make


def one_of(words):
    return lambda pick: (pick.choice(words), None)


def two_of(first, second, alone=0.3):
    return lambda pick: (pick.choice(second) if pick.random() < alone else f"{pick.choice(first)} {pick.choice(second)}",
                         None)


def code(pick):
    kind = pick.random()
    if kind < 0.4:
        name = f"{''.join(pick.sample('ABCDEFGHKLMNPRSTVXZ', pick.choice([1, 2, 3])))}{pick.choice(['-', '', ' '])}"
        return f"{name}{pick.randint(2, 9999)}", None
    word = pick.choice(MAKERS) if kind < 0.8 else "".join(pick.sample(SYLLABLES, 2)).capitalize()
    return word if pick.random() < 0.5 else f"{word} {pick.randint(2, 95)}", None


# Names, descriptions, how a value is made, how a title and how a sentence states it.
EXTRAS = [
    (["Capacity", "Volume", "Holds", "Storage"], ["how much it holds", "the volume in liters"],
     number_with(["L", "l", "Liters", "liter"], 2, 90), ["{}"], ["Holds {}.", "Capacity: {}.", "With {} of space."]),
    (["Weight", "Item weight", "Net weight"], ["how heavy it is", "the weight"],
     number_with(["kg", "lb", "g", "oz", "lbs"], 1, 40, True), ["{}"], ["Weighs {}.", "Weight {}.", "Only {}."]),
    (["Screen size", "Display", "Device size", "Fits devices up to"], ["in inches", "the largest device it fits"],
     number_with(["in", "inch", '"', "inches"], 7, 17, True), ["fits {} laptops", "{} display"],
     ["Fits devices up to {}.", "A screen of {}."]),
    (["Power", "Wattage"], ["in watts"], number_with(["W", "watts", "Watt"], 5, 2400), ["{}"], ["Power: {}.", "Draws {}."]),
    (["Battery", "Battery life", "Runtime"], ["how long a charge lasts"], number_with(["h", "hours", "hrs"], 2, 60),
     ["{} battery"], ["Runs for {}.", "The battery lasts {}."]),
    (["Protein", "Protein per serving"], ["the protein in a serving"], number_with(["g", "grams"], 2, 30),
     ["{} protein"], ["{} of protein per serving.", "Protein: {}."]),
    (["Length", "Item length"], ["how long it is"], number_with(["cm", "in", "mm", "ft", "m"], 2, 250, True), ["{}"],
     ["It is {} long.", "Length: {}."]),
    (["Warranty", "Guarantee"], ["how long it is guaranteed"], number_with(["years", "year", "months"], 1, 10),
     ["{} warranty"], ["With a warranty of {}.", "Guaranteed for {}."]),
    (["Servings", "Number of servings", "Uses"], ["how many servings it has"],
     number_with(["servings", "uses", "cups", "loads"], 8, 150), ["{}"], ["Enough for {}.", "Makes {}."]),
    (["Closure", "Fastening", "Closure type"], ["how it closes"], one_of(CLOSURES), ["{}"],
     ["Closes with a {}.", "The {} keeps it shut.", "With {} closure."]),
    (["Material", "Made of", "Outer material"], ["what it is made of", "the material"], two_of(TREATED, STUFFS), ["{}"],
     ["Made of {}.", "{} outside and in.", "Crafted from {}."]),
    (["Color", "Colour", "Color name"], ["the color"], two_of(SHADES, COLORS), ["{}"],
     ["In {}.", "The color is {}.", "Comes in {}."]),
    (["Country", "Made in", "Origin"], ["where it was made"], one_of(COUNTRIES), ["Made in {}", "from {}"],
     ["Made in {}.", "Grown in {}.", "Imported from {}."]),
    (["Model name", "Model", "Series", "Product line"], ["the name of the model", "what the maker calls it"], code, ["{}"],
     ["Meet the {}.", "The {} is back.", "Model {}."]),
    (["Feature", "Special feature", "Highlight"], ["a feature of the product"], one_of(FEATURES), ["{}"],
     ["{}.", "Now with {}.", "{} included."]),
]

