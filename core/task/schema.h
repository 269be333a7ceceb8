#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/text/locale.h"
#include "core/text/pattern.h"

namespace sheaf {

struct JsonFile;

enum class ValueType : uint8_t {
  text,
  number,
  integer,  ///< a number without a fraction
  boolean,  ///< its options are true and false
  date,     ///< a text: 2026-03-01
  pattern,  ///< a text that the attribute's pattern matches
  enumeration,
  list,
  span,     ///< a text that the document holds
  object,   ///< values of its own: the attribute's fields
  entries,  ///< a list of objects, each with the attribute's fields
};

constexpr int32_t kDeepest = 4;          ///< attributes inside of attributes, the outermost counted
constexpr size_t kMostFields = 1000;     ///< of one attribute, those of its fields counted
constexpr int32_t kUsualEntries = 20;    ///< of a list of objects, if it does not say how many
constexpr int32_t kEntriesLimit = 1000;  ///< of a list of objects

constexpr int32_t kMostDecimals = 9;  ///< digits behind the point of a number

/// What a number with so many digits behind the point is a multiple of: 0.01 of 2.
double decimal_step(int32_t digits);
/// The digits behind the point of multiples of 0.1, 0.01, …; nothing for other steps.
std::optional<int32_t> decimals_of(const std::optional<double>& step);

/// Bounds of a value, each within them.
struct ValueLimits {
  std::optional<double> least = {}, most = {};         ///< of a number
  std::optional<double> above = {}, below = {};        ///< of a number, neither of which it may be
  std::optional<double> multiple_of = {};              ///< of a number
  std::optional<double> shortest = {}, longest = {};   ///< of a text, in characters
  std::optional<double> fewest = {}, most_items = {};  ///< texts of a list
  bool unique = false;                                 ///< no text stands twice in a list
};

/// One attribute to extract.
struct Attribute {
  /// What a text that matches the pattern must be besides: no 25:00, no 30 February.
  enum class Moment : uint8_t { any, time, date_time };

  std::string name;
  std::string description;  ///< shown to the model; may be empty
  ValueType type = ValueType::text;
  std::vector<std::string> options = {};  ///< the allowed values of an enumeration or a boolean
  std::string unit = {};                  ///< of a number: parsed away, and no other is accepted
  std::shared_ptr<const Pattern> pattern = {};
  Moment moment = Moment::any;
  Locale locale = {};  ///< of a number or a date: how it is written
  ValueLimits limits = {};
  bool nullable = true;  ///< of an AnswerObject: null is a value too. What is extracted may always be null
  std::vector<Attribute> fields = {};   ///< of an object, or of each entry of a list of objects
  size_t anchor = 0;                    ///< of a list of objects: the field that tells its entries apart
  int32_t max_entries = kUsualEntries;  ///< of a list of objects: the others are left out, with a note
  int32_t line = 0;                     ///< of the schema file; 0: it stands in none

  bool nested() const { return type == ValueType::object || type == ValueType::entries; }
};

struct Category {
  std::string name;
  std::vector<Attribute> attributes;
};

/// A JSON object that a request wants as its answer.
struct AnswerObject {
  std::string schema;  ///< as it was written: equal ones have equal attributes
  std::vector<Attribute> attributes;
};

/// What to extract from the documents of each category.
struct Schema {
  std::vector<Category> categories;
  std::string file = {};  ///< path of the schema file; empty: none
  /// The category called `name`, or nullptr.
  const Category* find(std::string_view name) const;
  /// The category of a record that is known to have one.
  const Category& of(std::string_view name) const;
  /// Where an attribute stands, for messages: "schemas/tea.yaml:7".
  std::string place(const Attribute& attribute) const;
};

/// The first attribute that has fields, or null.
const Attribute* find_nested(const Schema& schema);

/// The fields of an attribute, and theirs.
size_t count_fields(const Attribute& attribute);

/// Why an attribute with fields cannot be as it is: too deep, or too many fields; empty: it can. Fields are
/// expected to be checked.
std::string fields_trouble(const Attribute& attribute);

/// What is wrong with the anchor of a list of objects.
enum class AnchorTrouble : uint8_t {
  nothing,
  unknown,    ///< no field has the name
  unfit,      ///< the field is not a text, span, enum, date or pattern
  none_fits,  ///< no name is given, and no field can be one
};

/// Sets the anchor of a list of objects: the field called `name`; where that is empty, the first text or
/// span, else the first field that can be one.
AnchorTrouble set_anchor(Attribute& list, std::string_view name);

/// The names of the fields of an attribute.
std::vector<std::string> field_names(const Attribute& attribute);

/// An attribute as the model reads it in a list: "Size: of the shoe (a number)" and a newline.
std::string attribute_line(const Attribute& attribute);

/// Whether a text can be decoded under the pattern; else it can only be checked.
bool can_decode(const Pattern& pattern);

/// Gives numbers and dates without a locale of their own this one.
void add_locale(Schema& schema, const Locale& locale);

/// Makes texts of spans: the prompts stay the same, and answers are not bound to their documents. For where
/// no answer is decoded.
void free_spans(Schema& schema);

/// The properties of a JSON Schema of an object as attributes, in their order; Pydantic's model_json_schema()
/// and zod-to-json-schema print such. Reads `properties`, also of objects in objects and lists, `type`,
/// `enum`, `const`, `description`, `items`, `pattern`, formats, bounds and lengths, null beside one type, and
/// `$ref` to a part of the schema that does not lead back to itself; `x-anchor` beside `items` or in them
/// names their anchor. Annotations are passed over. Refuses everything else at once, by paths that begin with
/// `path`, behind the places of a `file` (null: the schema stands in none).
std::vector<Attribute> read_json_schema(const nlohmann::ordered_json& schema, const std::string& path,
                                        const JsonFile* file = nullptr);

}  // namespace sheaf
