#pragma once
#include <span>

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

/// All values that are asked for, in the order of the schema.
std::vector<AskedValue> asked_values(const std::vector<Attribute>& attributes);

/// The attributes of some values, and of those inside of them, in the order in which a prompt lists them.
std::vector<Attribute> listed_attributes(std::span<const AskedValue> values);

/// The gold of each value: a list of objects has that of its anchors. Nothing where the gold does not say.
std::vector<std::optional<nlohmann::json>> asked_gold(const std::vector<Attribute>& attributes,
                                                      const nlohmann::json& gold);

/// What an answer says of the entries of a list of objects.
struct Anchors {
  std::vector<std::string> texts = {};  ///< one for each entry, no text twice
  std::string note = {};                ///< what is wrong with the answer; empty: nothing
  bool readable = true;
};

/// Reads the anchors that the model listed. An anchor that comes again is the same entry; of a list that
/// breaks off, the last text is left out if it is not whole.
Anchors read_anchors(const Attribute& list, std::string_view text);

}  // namespace sheaf
