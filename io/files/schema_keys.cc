#include "io/files/schema_keys.h"

namespace sheaf {
namespace {

constexpr SchemaKey kKeys[] = {
    {"attributes", "a map of name to definition; of an object or a list of objects a list of definitions",
     "Definitions that categories share; what an object or the entries of a list hold"},
    {"categories", "a map of name to a list of attributes",
     "The attributes of each category, in their order"},
    {"name", "a text", "The attribute's name, its key in the output"},
    {"description", "a text", "What the model is told of the attribute"},
    {"type", "text, span, number, integer, enum, boolean, date, pattern, list or object",
     "The type of the value in the output"},
    {"options", "a list", "The allowed values of an enum"},
    {"pattern", "a regular expression", "What the whole value of a pattern matches"},
    {"unit", "a text, such as oz", "The unit of a number or an integer"},
    {"decimals", "1 to 9", "The digits behind the point of a number"},
    {"locale", "a language, alone or with a country", "How a number or a date is written: de, en-US"},
    {"anchor", "the name of one of the attributes", "What tells the entries of a list of objects apart"},
    {"max_entries", "1 to 1000",
     "The most entries of a list of objects; the others are left out, with a note"}};

}  // namespace

std::span<const SchemaKey> schema_keys() {
  return kKeys;
}

}  // namespace sheaf
