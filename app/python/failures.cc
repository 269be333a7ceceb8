#include <algorithm>
#include <filesystem>
#include <new>

#include "app/python/calls.h"
#include "core/base/error.h"
#include "core/base/mistake_list.h"
#include "core/text/printable.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

bool is_key(std::string_view text) {
  return text.find('.') != text.npos &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '.'; });
}

/// Names of files may have spaces: "my jobs/demo.yaml:20".
bool is_place(std::string_view text) {
  const size_t colon = text.find_last_not_of("0123456789");
  const bool line = colon != text.npos && colon + 1 < text.size() && text[colon] == ':';
  return text.find(' ') == text.npos || text.starts_with("set ") || text.starts_with("--set ") ||
         text == "the table" || line || text.ends_with(".yaml") || text.ends_with(".yml");
}

ordered_json mistake_json(const std::string& message) {
  const MistakeParts parts = mistake_parts(message);
  return {{"message", printable_line(message)},
          {"place", printable_line(parts.place)},
          {"fix", printable_line(parts.fix)}};
}

ordered_json mistakes_json(const std::vector<std::string>& messages) {
  ordered_json all = ordered_json::array();
  for (const std::string& message : messages) all.push_back(mistake_json(message));
  return {{"mistakes", all}};
}

ordered_json failure_json(const std::string& message, Fault fault) {
  return {{"failure", printable_line(message)}, {"exit_code", static_cast<int>(fault)}};
}

}  // namespace

MistakeParts mistake_parts(const std::string& message) {
  MistakeParts parts;
  size_t rest = 0;
  if (const size_t end = message.find(": "); end != message.npos && is_place(message.substr(0, end))) {
    parts.place = message.substr(0, end);
    rest = end + 2;
    const size_t key = message.find(": ", rest);
    if (key != message.npos && is_key(message.substr(rest, key - rest))) {
      parts.place = message.substr(0, key);
      rest = key + 2;
    }
  }
  if (const size_t fix = message.rfind("; "); fix != message.npos && fix >= rest)
    parts.fix = message.substr(fix + 2);
  return parts;
}

ordered_json describe_failure() {
  try {
    throw;
  } catch (const Mistakes& mistakes) {
    return mistakes_json(mistakes.all());
  } catch (const Error& error) {
    return error.fault() == Fault::input ? mistakes_json({error.what()})
                                         : failure_json(error.what(), error.fault());
  } catch (const std::filesystem::filesystem_error& error) {
    if (error.path1().empty()) return failure_json(error.what(), Fault::fatal);
    return mistakes_json(
        {fmt::format("{}: {}; choose another path", error.path1().string(), error.code().message())});
  } catch (const std::bad_alloc&) {
    return failure_json("out of memory; free some memory, or use a machine with more", Fault::fatal);
  } catch (const std::exception& error) {
    return failure_json(error.what(), Fault::fatal);
  }
}

}  // namespace sheaf
