#include "io/corpus/batch_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/text/spelling.h"
#include "io/corpus/cells.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kMostMessages = 10'000;
constexpr std::string_view kUrl = "/v1/chat/completions";

/// Keys of the body that change nothing about the answer.
constexpr std::array<std::string_view, 8> kIdle = {
    "messages", "model", "user", "metadata", "store", "service_tier", "stream_options", "safety_identifier"};

/// What an unsupported key may hold without asking for anything.
bool asks_nothing(const json& value) {
  return value.is_null() || value == false || value == 0 || (value.is_structured() && value.empty());
}

/// A text, or a list of parts that are all text, joined by line breaks.
std::string content_of(const json& content, const std::string& name) {
  if (!content.is_array()) {
    if (!content.is_string()) reject("{} is {}, not text", name, kind_of(content));
    return text_of(content, name);
  }
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string part = fmt::format("{}[{}]", name, i);
    if (!content[i].is_object()) reject("{} is {}, not an object", part, kind_of(content[i]));
    const std::string type = text_of(cell(content[i], "type"), part + ".type");
    if (type != "text") reject("{}.type is \"{}\"; only text is supported", part, shorten_text(type, 40));
    if (i > 0) text += '\n';
    text += text_of(cell(content[i], "text"), part + ".text");
  }
  return text;
}

void read_messages(const json& messages, Dialog& dialog) {
  if (!messages.is_array()) reject("body.messages is {}, not a list", kind_of(messages));
  if (messages.size() > kMostMessages)
    reject("body.messages has {} entries; at most {} are allowed", messages.size(), kMostMessages);
  size_t bytes = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    const json& message = messages[i];
    const std::string name = fmt::format("body.messages[{}]", i);
    if (!message.is_object()) reject("{} is {}, not an object", name, kind_of(message));
    for (const auto& [key, value] : message.items())
      if (key != "role" && key != "content" && key != "name" && !asks_nothing(value))
        reject("{}.{} is not supported", name, shorten_text(key, 40));
    if (!message.contains("role")) reject("{}.role is missing", name);
    const std::string role = text_of(message["role"], name + ".role");
    const bool first = i == 0 && role == "system";
    const std::string expected = dialog.turns.size() % 2 ? "assistant" : "user";
    if (!first && role != expected)
      reject(
          "{}.role is \"{}\", but must be {}: after an optional system message, user and assistant take "
          "turns",
          name, shorten_text(role, 40), expected);
    if (!message.contains("content")) reject("{}.content is missing", name);
    std::string text = content_of(message["content"], name + ".content");
    bytes += text.size();
    if (bytes > kLongestDocument) reject("body.messages has more than {} bytes in all", kLongestDocument);
    if (first)
      dialog.system = std::move(text);
    else
      dialog.turns.push_back(std::move(text));
  }
  if (dialog.turns.size() % 2 == 0) reject("body.messages must end with a user message");
}

/// A number that must be the job's own, because one job has one way to pick tokens.
void must_equal(const json& value, float own, std::string_view key) {
  if (!value.is_number()) reject("body.{} is {}, not a number", key, kind_of(value));
  if (std::abs(value.get<double>() - static_cast<double>(own)) > 1e-6)
    reject("body.{} is {}, but the job's method.{} is {}; a job uses one value for all requests", key,
           value.dump(), key, own);
}

void must_equal(const json& value, uint64_t own, std::string_view key) {
  if (value != own)
    reject("body.{} is {}, but the job's method.{} is {}; a job uses one value for all requests", key,
           shorten_text(value.dump(), 40), key, own);
}

void read_option(const std::string& key, const json& value, const Job::Method& method, Record& record) {
  if (key == "max_tokens" || key == "max_completion_tokens") {
    if (!value.is_number_integer() || value < 1) reject("body.{} must be a whole number above 0", key);
    const auto most = static_cast<int32_t>(std::min<uint64_t>(value.get<uint64_t>(), INT32_MAX));
    record.max_tokens = record.max_tokens == 0 ? most : std::min(record.max_tokens, most);
  } else if (key == "temperature") {
    must_equal(value, method.temperature, key);
  } else if (key == "top_p" || key == "top_k" || key == "seed") {
    if (method.temperature == 0) return;  // the likeliest token is the likeliest of any share
    if (key == "top_p") must_equal(value, method.top_p, key);
    if (key == "top_k") must_equal(value, static_cast<uint64_t>(method.top_k), key);
    if (key == "seed") must_equal(value, method.seed, key);
  } else if (key == "n") {
    if (value != 1)
      reject("body.n is {}; only 1 answer per request is supported", shorten_text(value.dump(), 40));
  } else if (key == "response_format") {
    if (value != json{{"type", "text"}})
      reject("body.response_format must have the type text; no other is supported");
  } else if (key == "tool_choice") {
    if (value != "none") reject("body.tool_choice is not supported");
  } else if (!asks_nothing(value)) {
    reject("body.{} is not supported", shorten_text(key, 40));
  }
}

}  // namespace

void map_batch_line(const json& cells, const Job::Method& method, Record& record) {
  record.id = id_of(cell(cells, "custom_id"), "custom_id");
  if (const auto verb = cells.find("method"); verb != cells.end() && !verb->is_null() && *verb != "POST")
    reject("method is {}, not \"POST\"", shorten_text(verb->dump(), 40));
  if (const auto url = cells.find("url"); url != cells.end() && !url->is_null() && *url != kUrl)
    reject("url is {}, not \"{}\"", shorten_text(url->dump(), 60), kUrl);
  const json& body = cell(cells, "body");
  if (!body.is_object()) reject("body is {}, not an object", kind_of(body));
  for (const auto& [key, value] : body.items())
    if (!value.is_null() && std::find(kIdle.begin(), kIdle.end(), key) == kIdle.end())
      read_option(key, value, method, record);
  if (!body.contains("messages")) reject("body.messages is missing");
  read_messages(body["messages"], record.dialog);
}

}  // namespace sheaf
