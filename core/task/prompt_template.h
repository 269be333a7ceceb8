#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf {

/// A text with fields in braces, "Question: {question}"; {{ and }} stand for braces.
class PromptTemplate {
 public:
  PromptTemplate() = default;
  /// Refuses a brace that opens or closes no field. `where` begins the message.
  explicit PromptTemplate(std::string_view text, std::string_view where = "");

  /// Each once, in the order of the text.
  std::vector<std::string> fields() const;
  bool has(std::string_view field) const;

  /// The text with what `value_of` gives for each field. A line of which only empty fields are left goes.
  std::string fill(const std::function<std::string(std::string_view field)>& value_of) const;

  /// The template with a text in place of a field.
  PromptTemplate with(std::string_view field, std::string_view value) const;
  /// What stands before the first `field`, and what follows it; everything stands before where it has none.
  std::pair<PromptTemplate, PromptTemplate> split(std::string_view field) const;

  /// The white space that it begins or ends with, which it loses.
  std::string take_first_space();
  std::string take_last_space();
  bool ends_with_space() const;
  /// The text before its first field, and after its last one; empty where it begins or ends with a field.
  std::string first_text() const;
  std::string last_text() const;

 private:
  struct Piece {
    std::string text;
    bool field = false;
  };
  std::vector<Piece> pieces_;
};

}  // namespace sheaf
