#pragma once
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sheaf {

/// Why an entry of a dataset cannot be used; readers turn it into a broken row.
struct BadEntry {
  std::string reason;
};

template <class... Args>
[[noreturn]] void bad_entry(fmt::format_string<Args...> format, Args&&... args) {
  throw BadEntry{fmt::format(format, std::forward<Args>(args)...)};
}

/// Parses untrusted JSON of any size; keys stay in file order. Throws BadEntry for what is not UTF-8, not
/// JSON, or nested more than 32 levels deep.
nlohmann::ordered_json parse_entry(std::string_view text);

/// A cell of a CSV file: null where it is empty; lists and objects stand there as JSON; anything else is
/// text.
nlohmann::ordered_json csv_cell(std::string text);

/// The JSON of a whole file (.gz and .zst are unpacked). Refuses what cannot be read or parsed, naming it.
nlohmann::ordered_json read_json_dataset(const std::string& path);

// The field of an object; each throws BadEntry where it is missing or of another kind.
const nlohmann::ordered_json& field(const nlohmann::ordered_json& object, const char* key);
const nlohmann::ordered_json& list_field(const nlohmann::ordered_json& object, const char* key);
std::string text_field(const nlohmann::ordered_json& object, const char* key);
/// Text or a number, as it stands.
nlohmann::ordered_json id_field(const nlohmann::ordered_json& object, const char* key);

/// Whether `value` is an object that has `key` as a list.
bool has_list(const nlohmann::ordered_json& value, const char* key);

/// Without white space at its ends.
std::string trimmed(std::string_view text);

}  // namespace sheaf
