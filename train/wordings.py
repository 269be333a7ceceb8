"""Other words for attributes, instructions and sentences, so that a model learns the task and not one schema."""

# Names under which shops keep an attribute, and what a schema may say about it.
NAMES = {
    "Brand": (["Brand", "Brand name", "Manufacturer", "Maker", "Label", "Made by", "Company", "Producer"],
              ["the company that makes it", "who makes it", "the brand on the label", "the name of the brand"]),
    "Gender": (["Gender", "Target gender", "For", "Sex", "Department", "Intended for"],
               ["the gender it is made for", "men, women or both", "whom it is made for"]),
    "Model name": (["Model name", "Model", "Product name", "Series", "Style name", "Product line", "Line"],
                   ["the model's own name", "what the maker calls it", "the product's own name"]),
    "Model Number": (["Model Number", "Model", "Model no.", "Article number", "Part number", "Item model"],
                     ["the model's number or name", "the maker's number", "the model"]),
    "Color": (["Color", "Colour", "Color name", "Shade", "Finish", "Main color"],
              ["which color it has", "the color as it is written", "the shade"]),
    "Size": (["Size", "Dimensions", "Item size", "Size label", "Fit"],
             ["the size", "how large it is", "the size, with its unit"]),
    "Material": (["Material", "Made of", "Fabric", "Material type", "Composition", "Main material"],
                 ["the materials it consists of", "the material", "the stuff it is made from"]),
    "Shoe type": (["Shoe type", "Kind of shoe", "Footwear type", "Type", "Product type"],
                  ["which kind of shoe", "what kind of product it is"]),
    "Product type": (["Product type", "Type", "What it is", "Category of item", "Kind of product", "Item type", "Article",
                      "Product", "Type of product", "Item"],
                     ["what the product is", "the kind of product", "what one buys here",
                      "the noun for the product, without maker and properties"]),
    "Seller": (["Seller", "Shop", "Reseller", "Store", "Sold by", "Merchant", "Dealer", "Retailer", "Vendor", "Marketplace"],
               ["who sells it, not who makes it", "the shop that offers it", "the name of the store"]),
    "Sport": (["Sport", "Sport type", "Activity", "Suitable sport", "Used for"],
              ["the sport it is made for", "the activity it is for"]),
    "Age": (["Age", "Age group", "Age range", "Life stage", "Audience", "Suitable age"],
            ["the age group it is made for", "the buyers it is meant for", "babies, kids or adults"]),
    "Closure": (["Closure", "Fastening", "Closure type", "Fastener"], ["how one closes it", "what closes it"]),
    "Supplement type": (["Supplement type", "Supplement", "Main ingredient", "Active ingredient", "Vitamin"],
                        ["the kind of supplement", "the main ingredient"]),
    "Net content": (["Net content", "Contents", "Net quantity", "Package quantity", "Amount", "Net weight",
                     "Package size", "Unit count"],
                    ["how much is in the package", "the content of a package, with its unit", "the amount"]),
    "Item form": (["Item form", "Form", "Product form", "Format", "Consistency", "Type of item"],
                  ["liquid, powder, pieces and so on", "in which form it comes"]),
    "Dosage": (["Dosage", "Strength", "Dose", "Amount per serving"], ["the dose, with its unit", "how strong it is"]),
    "Health benefit": (["Health benefit", "Benefit", "Health claim", "Helps with"],
                       ["what it is good for", "the benefit it claims"]),
    "Flavor": (["Flavor", "Flavour", "Taste", "Variety", "Flavor name"], ["flavor or taste", "what it tastes of"]),
    "Diet": (["Diet", "Diet type", "Dietary claim", "Suitable for diet"], ["the diet it suits", "vegan, kosher and so on"]),
    "Specialty": (["Specialty", "Special feature", "Features", "Claims", "Highlights", "Key features"],
                  ["what it claims to be", "what is special about it", "special features"]),
    "Pack size": (["Pack size", "Pack", "Number of packs", "Packs", "Multipack", "Quantity"],
                  ["how many of it are in the offer", "the number of packs", "how many you get"]),
    "Caffeine content": (["Caffeine content", "Caffeine", "Caffeine level"],
                         ["says if it has caffeine", "what it says about caffeine"]),
    "Machine type": (["Machine type", "Compatible with", "Fits machine", "Compatible devices"],
                     ["the machine it fits", "what it works with"]),
    "Roast type": (["Roast type", "Roast", "Roast level"], ["light to dark", "how dark the roast is"]),
    "Container type": (["Container type", "Container", "Packaging", "Package type"],
                       ["box, bag, bottle and so on", "the kind of package"]),
    "Country": (["Country", "Origin", "Country of origin", "Made in", "Region"],
                ["where it comes from", "where it was made or grown"]),
    "Power source": (["Power source", "Power", "Powered by", "Power supply"], ["batteries, mains or another source"]),
    "Operation mode": (["Operation mode", "Operation", "Operating mode"], ["how it is operated", "electric or manual"]),
    "Firmness": (["Firmness", "Bristle firmness", "Hardness", "Softness"], ["how soft or hard it is"]),
    "Protection level": (["Protection level", "SPF", "Sun protection factor", "Protection"],
                         ["the protection factor", "how strongly it protects"]),
    "Scent": (["Scent", "Fragrance", "Smell", "Aroma"], ["the scent", "what it smells of"]),
    "Skin type": (["Skin type", "Suitable skin", "For skin"], ["which skin it suits"]),
    "Hair type": (["Hair type", "Suitable hair", "For hair"], ["which hair it suits"]),
    "Benefit": (["Benefit", "Effect", "What it does", "Function"], ["what it does", "the effect it promises"]),
    "Volume": (["Volume", "Net volume", "Contents", "Capacity"], ["how much it holds, with its unit", "the volume"]),
    "Load size": (["Load size", "Loads", "Number of loads", "Washes"], ["for how many loads it lasts"]),
    "Specific uses": (["Specific uses", "Use", "Intended use", "Used for", "Application"], ["what it is used for"]),
    "Reusability": (["Reusability", "Reusable", "Usage"], ["reusable or disposable"]),
    "Tea variety": (["Tea variety", "Kind of tea", "Tea type"], ["which tea it is"]),
    "Pattern": (["Pattern", "Print", "Design", "Motif"], ["the pattern", "print or solid"]),
    "Style": (["Style", "Look", "Fashion style"], ["the style"]),
    "Feature": (["Feature", "Features", "Highlight", "Special feature"], ["a feature named in the text"]),
    "Season": (["Season", "Suitable season", "Time of year"], ["the season it is made for"]),
    "Fabric Type": (["Fabric Type", "Fabric", "Cloth"], ["the fabric"]),
    "Length": (["Length", "Item length", "How long"], ["the length, with its unit"]),
    "Weight": (["Weight", "Item weight", "Net weight"], ["weight and unit", "how heavy it is"]),
    "Fuel": (["Fuel", "Fuel type", "Runs on"], ["what it burns"]),
}
SAME = {"Brand Name": "Brand", "Age range": "Age", "Sport Type": "Sport", "Closure type": "Closure",
        "Container": "Container type", "Package type": "Container type", "Applicable People": "Age",
        "Department Name": "Age", "Stove Type": "Product type", "Eyewear Type": "Product type", "Model": "Model Number", "Frame Color": "Color", "Body Material": "Material"}

# What every product has: null would be wrong for the products of other categories.
EVERYWHERE = {"Product type", "Shoe type", "Stove Type", "Eyewear Type", "Lure Type", "Mask type", "Cereal type",
              "Item", "Name", "Description", "Type"}

# What the products of a category are called in their titles.
TYPES = {"Coffee": "coffee(?: pods| beans)?", "Toothbrush": "toothbrush(?:es)?", "Sunscreen": "sunscreen|sunblock",
         "Breakfast Cereal": "(?:breakfast )?cereal|granola|oatmeal|muesli", "Conditioner": "(?:hair )?conditioner",
         "Laundry Detergent": "(?:laundry )?detergent", "Safety Mask": "(?:face )?masks?|respirator",
         "Tea": "tea(?: bags)?"}

# Words for makers that do not exist, so that a model looks for a maker's name and not for one that it knows.
MAKERS = """Alder Anchor Ashford Aspen Atlas Aurora Bay Birch Blue Bramble Brook Calder Canyon Cedar Clay Cliff Clover
Copper Coral Crane Crest Dale Dawn Delta Dover Eagle East Elm Ember Falcon Fern Field Finch Fox Garnet Glen Gold Grand
Granite Grove Harbor Hart Haven Hazel Heron High Hill Holly Iron Ivy Jasper Juniper Kestrel Kite Lake Lark Laurel Linden
Lion Lotus Lumen Lux Maple Marble Marsh Meadow Mill Moon Moss Nest Noble North Nova Oak Ocean Olive Onyx Opal Orchard
Otter Owl Peak Pearl Pine Pioneer Prime Quartz Quill Raven Red Reed Ridge River Robin Rose Rowan Royal Ruby Sable Sage
Shore Silver Sky Slate Sol South Spruce Star Stone Storm Summit Sun Swift Tern Thorn Tide Timber True Vale Verde Vista
Wave West White Wild Willow Wolf Wren Yarrow Zen Zephyr""".split()
ENDINGS = """Co. Labs Works Foods Farms Goods Supply Brothers Outfitters House Kitchen Naturals Organics Gear Wear
Studio Home Trading Mills Garden Tea Coffee Sport""".split() + ["& Co."]
SYLLABLES = "al ba bel cor da den el fa fen gra hal in ka kor la lin lo ma mer mo na nor o pa ra ri ro sa so ta tor va ve zo".split()

INSTRUCTIONS = [
    "Read the product text and fill in the attributes below. Use the words of the text. Write null if the text does "
    "not say.",
    "You get a product from a shop. Extract the listed attributes exactly as they are written; an attribute that is "
    "not mentioned is null.",
    "Find these attributes in the product description. Copy the values word for word. Answer null where nothing is "
    "stated.",
]

# How a description states a value.
STATEMENTS = {
    "Seller": ["Sold by {}.", "Seller: {}.", "Offered by {}.", "Ships from {}."],
    "Brand": ["From {}.", "By {}.", "{} has made it for years.", "A product of {}.", "Made by {}."],
    "Color": ["Comes in {}.", "Color: {}.", "The color is {}.", "In {}."],
    "Material": ["Made of {}.", "Material: {}.", "It is made from {}.", "{} throughout."],
    "Size": ["Size {}.", "Size: {}.", "It measures {}."],
    "Net content": ["Contents: {}.", "{} in each package.", "You get {}.", "Net content {}."],
    "Volume": ["Holds {}.", "{} per bottle.", "Contents: {}."],
    "Flavor": ["Flavor: {}.", "Tastes of {}.", "In the flavor {}."],
    "Scent": ["Scent: {}.", "Smells of {}.", "With a scent of {}."],
    "Pack size": ["Sold as {}.", "{}."],
    "Gender": ["Made for {}.", "For {}."],
    "Age": ["For {}.", "Made for {}."],
    "Country": ["Origin: {}.", "Comes from {}."],
    "Item form": ["Form: {}.", "Comes as {}."],
    "Specialty": ["{}.", "Also {}.", "It is {}."],
    "Weight": ["Weighs {}.", "Weight: {}."],
    "Length": ["Length {}.", "It is {} long."],
    "Sport": ["Made for {}.", "Good for {}."],
}
ANY_STATEMENT = ["{name}: {}.", "{name}: {}", "The {lower} is {}.", "{}."]

# Sentences that state nothing.
FILLER = [
    "Our customers love it.", "Great for every day.", "A gift that always works.", "Ships the next day.",
    "Store in a cool, dry place.", "Questions? Write to us.", "See the last picture for details.",
    "Back in stock after many requests.", "You will wonder how you did without it.", "Read the label before use.",
    "Satisfaction guaranteed or your money back.", "Packed with care.", "A favorite since the first day.",
    "Simple, honest and made to last.", "Easy to use and easy to clean.", "The photo may differ from the product.",
    "Limited stock.", "One of our bestsellers this year.", "Light enough to take along.",
    "No more, no less than you need.", "Recommended by people who know.", "Try it once and you will come back.",
]
