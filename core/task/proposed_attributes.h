#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

/// An attribute as a model proposes it.
struct ProposedAttribute {
  std::string name;         ///< at most kLongestName bytes, one line
  std::string description;  ///< one line; may be empty
  bool numerical = false;
  std::vector<std::string> examples = {};  ///< values, of the description or in elements of their own

  static constexpr size_t kLongestName = 60, kLongestDescription = 160;  // bytes
};

/// What a model is asked about some products of a category, with the fields {products} and {most}: the prompt
/// of the HPD paper (figure 10).
std::string_view discover_prompt();

/// The attributes of a reply: an element <name>, and after it <description>, <datatype> and any <value> or
/// <example>. Names that cannot be used and those about prices are left out, and one that the reply breaks
/// off in. None: the reply cannot be read.
std::vector<ProposedAttribute> read_proposals(std::string_view reply);

/// What all names of one attribute have in common: its words in small letters, in the singular and in
/// American spelling, sorted; without those that say nothing ("product", "type of"), those of the category,
/// and what stands in parentheses, as long as another word is left.
std::string attribute_key(std::string_view name, std::string_view category);

/// The values that a description gives as examples: "Finish, e.g. matte, brushed brass".
std::vector<std::string> example_values(std::string_view description);

/// What several replies about one category say of one attribute.
struct MergedAttribute {
  /// The spelling and description that most replies have; numerical where most say so and the examples agree.
  ProposedAttribute as;
  int64_t replies = 0;              ///< how many propose the attribute
  std::vector<std::string> others;  ///< further spellings of its name
  size_t examples = 0;              ///< different values that replies name
  std::vector<std::string> found;   ///< examples that stand in products, the most frequent first
  int64_t products = 0;             ///< how many have at least one of the examples
};

/// The attributes of a category from its replies: those of most replies first, then those that stand first.
/// `products`: the texts that were shown, where examples are looked up.
std::vector<MergedAttribute> merge_proposals(const std::vector<std::vector<ProposedAttribute>>& replies,
                                             std::string_view category,
                                             const std::vector<std::string>& products);

}  // namespace sheaf
