#pragma once

#include "core/task/record.h"
#include "core/task/row.h"
#include "core/task/schema.h"

namespace sheaf {

struct ColumnText {
  std::string_view name, text;
  size_t begin;                                ///< in the document
  const std::vector<TextRun>* runs = nullptr;  ///< where the column is HTML
};

/// The columns of the record's document; one, "document", where the corpus names none.
std::vector<ColumnText> columns_of(const Record& record);

/// Bytes [begin, end) of a record's document, in one of its columns.
struct TextPlace {
  size_t begin = 0, end = 0;
};

/// Chooses one of the places where a value stands: the first. Of a field of an entry the first inside of the
/// entry, else the nearest to where the entry begins.
class PlaceChoice {
 public:
  PlaceChoice() = default;
  /// `entry`: the bytes from the end of its anchor to the next one.
  explicit PlaceChoice(const TextPlace& entry) : entry_(entry) {}

  /// Looks at a place; places come in the order of the document. Returns whether a later one may be better.
  bool add(const TextPlace& place);
  /// Whether no other place can be better.
  bool settled() const { return settled_; }
  const std::optional<TextPlace>& best() const { return best_; }

 private:
  std::optional<TextPlace> entry_, best_;
  bool settled_ = false;
};

/// The first place where the document holds `text` from the beginning of a word to the end of one: to the
/// letter, or else with other capital letters (A to Z).
std::optional<TextPlace> find_text(const Record& record, std::string_view text, PlaceChoice choice = {});

/// The first number of the document that is written in digits and is `number`.
std::optional<TextPlace> find_number(const Record& record, double number, PlaceChoice choice = {});

/// The first text of the document that is the date `iso` ("2026-03-01") in another form: "1 March 2026",
/// "1.3.2026" (core/text/date_text.h).
std::optional<TextPlace> find_date(const Record& record, std::string_view iso, PlaceChoice choice = {});

/// Binds the value of a span to its document: it becomes the text that stands there, or null with a note. Of
/// a value that was `cut` at the length limit whole words are left.
void bind_span(const Record& record, bool cut, RowAnswer& answer);

/// Notes where a number or a date stands nowhere in the document in any form, so that the model made it up or
/// computed it; `copied`: such a value becomes null. Small numbers may stand there in words.
void check_digits(const Record& record, const Attribute& attribute, bool copied, RowAnswer& answer);

/// Both of these for a value, as its type wants it, and for those inside of it.
void bind_values(const Record& record, const Attribute& attribute, bool copied, RowAnswer& answer);

/// Notes an anchor that the document does not hold: its entry may be made up.
void note_made_up(const Record& record, RowAnswer& anchor);

/// A place as a row has it.
RowSpan span_of(const Record& record, const TextPlace& place);

/// Where the document holds each text of a value, or its number or date.
std::vector<std::optional<RowSpan>> spans_of(const Record& record, const RowValue& value,
                                             const PlaceChoice& choice = {});

/// Says of every value or answer of a row where the document holds it; what is in an entry of a list of
/// objects is looked for near the entry's anchor. `attributes`: what was extracted; null: nothing was.
void add_spans(const Record& record, const std::vector<Attribute>* attributes, Row& row);

/// The attribute, with a decimal point where the model wrote a number in JSON that the document has with a
/// decimal comma: it was converted, so 1.125 is not 1125.
Attribute as_converted(const Record& record, const Attribute& attribute, std::string_view text);

}  // namespace sheaf
