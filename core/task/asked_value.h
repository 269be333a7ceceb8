#pragma once
#include <span>

#include "core/task/task.h"
#include "core/task/value.h"

namespace sheaf {

/// A value that is asked for by itself, under the path of its keys: a plain attribute, a field of an object,
/// or a list of objects, of which the anchors are asked for in one list and all else in a later round.
struct AskedValue {
  Attribute attribute;                  ///< as the model reads it, called by its path: variants.price
  const Attribute* own = nullptr;       ///< as the schema has it, which outlives this
  std::string path = {};                ///< as the schema has it: of a list of objects without the anchor
  std::vector<AskedValue> fields = {};  ///< of a list of objects: of each entry, all but its anchor
};

constexpr int32_t kAnchorTokens = 8;  ///< of each anchor of a list after the first

/// All values that are asked for, in the order of the schema.
std::vector<AskedValue> asked_values(const std::vector<Attribute>& attributes);

/// Entries of one list and of those inside of it, each as long as it may be.
int64_t most_entries(const std::vector<Attribute>& attributes);

/// What of lists of objects is more than a prompt is planned with: "10000 entries inside of each other, more
/// than 2000"; empty: nothing.
std::string too_many_asked(const std::vector<Attribute>& attributes);

/// How many lists of objects stand inside of each other at most; 0: there is none. Each takes a round.
int32_t list_depth(const std::vector<Attribute>& attributes);

/// The attributes of some values, and of those inside of them, in the order in which a prompt lists them.
std::vector<Attribute> listed_attributes(std::span<const AskedValue> values);

struct AskedGold {
  std::optional<nlohmann::json> value = {};  ///< of a list of objects: its anchors; nothing: not known
  std::vector<nlohmann::json> entries = {};  ///< of a list of objects: those that have an anchor
};

/// The gold of each value.
std::vector<AskedGold> asked_gold(const std::vector<Attribute>& attributes, const nlohmann::json& gold);

/// The JSON that a model is to write for each attribute; nothing where gold does not know it.
std::vector<std::optional<std::string>> written_values(const std::vector<Attribute>& attributes,
                                                       const nlohmann::json& gold);

/// A value as an example shows it.
struct ShownValue {
  Attribute attribute;  ///< called by its path
  std::string written;  ///< JSON
};

/// What the rounds write where `known` is right: first all values, then, entry by entry, the anchor and the
/// entry's values. A value that is not known is left out.
std::vector<ShownValue> shown_values(std::span<const AskedValue> values, const std::vector<AskedGold>& known);

/// The answers to learn for some values, with those about the entries of lists of objects. `known`: the gold
/// of each value.
std::vector<WantedAnswer> wanted_values(std::span<const AskedValue> values,
                                        const std::vector<AskedGold>& known, const Tokenizer& tokenizer);

/// The value that is shown and learned: the first of several accepted ones; null where there is none.
nlohmann::json single_gold(const nlohmann::json& gold);

/// What an answer says of the entries of a list of objects.
struct Anchors {
  std::vector<std::string> texts = {};  ///< one for each entry, no text twice
  std::string note = {};                ///< what is wrong with the answer; empty: nothing
  bool readable = true;
};

/// The answers about the entries of a list: that to field f of entry e is at e × fields + f; null: none.
std::vector<const Answer*> inner_answers(const Answer& list, size_t entries, size_t fields);

/// What `encode` makes of an anchor, at most `most` tokens. A longer anchor loses its end.
Tokens fit_anchor(std::string anchor, size_t most, const std::function<Tokens(const std::string&)>& encode);

/// Reads the anchors that the model listed. An anchor that comes again is the same entry; of a list that
/// breaks off, the last text is left out if it is not whole.
Anchors read_anchors(const Attribute& list, std::string_view text);

}  // namespace sheaf
