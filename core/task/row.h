#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sheaf {

struct AttributeValue;

/// The values of an object, in the schema's order.
struct RowObject {
  std::vector<AttributeValue> values;

  bool operator==(const RowObject& other) const;
};

/// What was found: nothing, a text, a number, true or false, a list of texts, an object, or a list of
/// objects. An empty list that is read back from a row is one of texts.
using RowValue = std::variant<std::nullptr_t, std::string, int64_t, uint64_t, double, bool,
                              std::vector<std::string>, RowObject, std::vector<RowObject>>;

/// Why the answer to a dialog ended.
enum class Finish : uint8_t {
  stop,
  length,
  error,  ///< a value of an object cannot be read
};

/// Where a text stands: characters [start, end) of a column, counted in code points.
struct RowSpan {
  std::string column;
  int64_t start = 0, end = 0;

  bool operator==(const RowSpan&) const = default;
};

/// A stretch of an answer that one document spoke (pced).
struct SpokenPiece {
  std::string text;
  nlohmann::json document;  ///< its id
  int64_t tokens = 0;

  bool operator==(const SpokenPiece&) const = default;
};

/// An answer or an attribute's value, and what is said about it.
struct RowAnswer {
  RowValue value = nullptr;
  std::string note = {};                      ///< what was wrong with it; empty: nothing
  std::optional<std::string> option = {};     ///< multiple choice: the text of the letter in `value`
  std::optional<Finish> finish = {};          ///< chat only
  std::optional<double> logprob = {};         ///< where the job asks for it
  std::optional<std::string> raw = {};        ///< where the job asks for it: what the model wrote
  std::optional<std::string> reasoning = {};  ///< where the job asks for it: what it thought before
  std::optional<double> confidence = {};      ///< where the job asks for it: in [0, 1]
  std::optional<double> null_margin =
      {};  ///< beside it, where null is an answer: the null_bias that makes it null
  std::optional<std::vector<SpokenPiece>> trace = {};  ///< pced, where the job asks for it
  std::optional<std::string> source = {};  ///< extract, where the job asks for it: the model that gave it
  /// Where the job asks for them: of each text of the value, nothing for one that its document does not hold.
  std::optional<std::vector<std::optional<RowSpan>>> spans = {};

  bool operator==(const RowAnswer&) const = default;
};

struct AttributeValue {
  std::string name;
  RowAnswer answer;

  bool operator==(const AttributeValue&) const = default;
};

/// The values of all attributes of a category, in the schema's order.
struct ExtractedValues {
  std::string category;
  std::vector<AttributeValue> values = {};
  std::optional<double> logprob = {};   ///< where one answer holds all values: of that answer
  std::optional<std::string> raw = {};  ///< where one answer holds all values: its text

  bool operator==(const ExtractedValues&) const = default;
};

struct QuestionAnswer {
  nlohmann::json id;  ///< of the question; null where the corpus has none
  RowAnswer answer;

  bool operator==(const QuestionAnswer&) const = default;
};

using RowContent = std::variant<ExtractedValues, RowAnswer, std::vector<QuestionAnswer>>;

/// The output of one record.
struct Row {
  nlohmann::json id;  ///< of the record: string or number
  RowContent content = {};
  std::vector<RowContent> samples = {};  ///< what each sample says, where the job asks for all
  int32_t parts = 1;                     ///< parts of the document, where it was split
  int32_t cut_tokens = 0;                ///< document tokens left out at its end
  std::optional<int64_t> document_tokens = {}, answer_tokens = {};  ///< where the job asks for them
  std::optional<int64_t> prompt_tokens = {};                        ///< where the job asks for token counts
  std::optional<double> seconds = {};                               ///< where the job asks for it
  nlohmann::ordered_json kept = {};  ///< columns of the corpus, by name; null: none

  bool operator==(const Row&) const = default;
};

/// Whether a row may have a key or a column of that name of its own, which no kept column can have.
bool is_row_key(std::string_view name);

/// "stop" or "length".
const char* finish_name(Finish finish);

/// Whether a value says something: not null, no empty list, and no object without such a value.
bool is_found(const RowValue& value);

/// Whether it is an object or a list of objects, whose values have notes and spans of their own.
bool is_nested(const RowValue& value);

/// The value as JSON, objects inside of it with their keys in order.
nlohmann::ordered_json value_json(const RowValue& value);

/// A number of JSON as a value.
RowValue row_number(const nlohmann::json& number);

}  // namespace sheaf
