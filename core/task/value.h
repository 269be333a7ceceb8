#pragma once
#include <utility>

#include "core/task/row.h"
#include "core/task/schema.h"

namespace sheaf {

// Each gives a value, of its attribute's type or null, and a note that says what was wrong, if anything.

/// Reads what the model wrote after `"Attribute":`, up to its newline: a JSON literal with a trailing comma
/// as a rule, anything at all as an exception. `cut`: the answer hit its length limit.
RowAnswer read_value(const Attribute& attribute, std::string_view text, bool cut);

/// The text of a JSON string whose opening quote stands before `text`, as far as it goes: whatever it holds.
std::string read_string(std::string_view text);

/// Reads a text that is the value, without quotes around it.
RowAnswer read_text_value(const Attribute& attribute, std::string_view text);

/// The members of an object as they are written.
struct WrittenObject {
  std::vector<std::pair<std::string, std::string>> members = {};  ///< key, and the value's JSON
  bool whole = false;                                             ///< nothing was cut off or broken
  std::string broken = {};                                        ///< what stands behind them, if anything
};

/// The object whose members the model wrote after a `{`, as far as it can be read: a cut or broken one loses
/// its last members only.
WrittenObject read_object(std::string_view written);

/// Reads the JSON of a value.
RowAnswer read_json_value(const Attribute& attribute, std::string_view text);

/// Makes a value null that breaks a limit of its attribute, and says which.
void hold_limits(const Attribute& attribute, RowAnswer& answer);

/// What to say of a list with `count` entries where it may have fewer.
std::string left_out(const Attribute& list, size_t count);

/// The beginning of a text in quotes, for a note.
std::string in_quotes(std::string_view text);

/// The note of a value that a cut answer does not reach.
constexpr const char* kCutBefore = "the answer was cut at the length limit before this value";

/// The attribute's value in an object, an object or a list of objects with all that is in it; `cut`: the
/// answer hit its length limit.
RowAnswer read_member(const Attribute& attribute, const WrittenObject& object, bool cut);

/// What a model wrote under one number of a list.
struct ListEntry {
  int32_t count = 0;  ///< how often the number occurs; more than once: ambiguous, so null
  std::string text;   ///< its line, of the first
  bool last = false;  ///< nothing stands after it
};

/// Splits a numbered list ("1. red\n2) blue") into `questions` entries. `beyond` becomes the highest number
/// above that, or 0. Lines without a number are left out.
std::vector<ListEntry> split_list(std::string_view text, size_t questions, size_t& beyond);

/// A free-text answer: its first line; null where it is the word null or nothing.
RowAnswer read_line(std::string_view text, bool cut);
/// The same with all its lines.
RowAnswer read_lines(std::string_view text, bool cut);

/// Whether the answer reached its length limit before the value was complete.
bool is_cut(const RowAnswer& answer);

/// Makes the value of such an answer null.
void drop_cut_value(RowAnswer& answer);

/// Whether what is left of a cut value says something true: a part of a number or a date does not.
bool has_sense_when_cut(ValueType type);

/// Where the model was asked and gave no answer.
RowAnswer no_answer();

}  // namespace sheaf
