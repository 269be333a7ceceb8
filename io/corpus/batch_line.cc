#include <algorithm>

#include "core/task/schema.h"
#include "core/text/spelling.h"
#include "io/corpus/record_mapper.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kMostMessages = 10'000;
constexpr int64_t kMostAnswers = 1024;
constexpr std::string_view kUrl = "/v1/chat/completions";

/// Keys of the body that change nothing about the answer.
constexpr std::array<std::string_view, 10> kIdle = {
    "messages",
    "response_format",  // read by themselves
    "model",           "user",           "metadata",          "store",
    "service_tier",    "stream_options", "safety_identifier", "prompt_cache_key"};

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
    const bool first = i == 0 && (role == "system" || role == "developer");
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

double number_of(const json& value, std::string_view key, double least, double most) {
  if (!value.is_number()) reject("body.{} is {}, not a number", key, kind_of(value));
  const auto number = value.get<double>();
  if (!(number >= least && number <= most))
    reject("body.{} is {}, but must be from {} to {}", key, shorten_text(value.dump(), 40), least, most);
  return number;
}

int64_t integer_of(const json& value, std::string_view key, int64_t least) {
  // A seed may have any sign.
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < least))
    reject("body.{} must be a whole number{}", key, least > INT64_MIN ? fmt::format(" from {}", least) : "");
  return value.get<int64_t>();
}

/// A text, or a list of up to four.
std::vector<std::string> stops_of(const json& value) {
  constexpr size_t kMostStops = 4, kLongestStop = 1000;
  const json list = value.is_array() ? value : json::array({value});
  if (list.size() > kMostStops)
    reject("body.stop has {} entries; at most {} are allowed", list.size(), kMostStops);
  std::vector<std::string> stops;
  for (const json& stop : list) {
    if (!stop.is_string()) reject("body.stop is {}, not a text or a list of texts", kind_of(stop));
    stops.push_back(text_of(stop, "body.stop"));
    if (stops.back().empty()) reject("body.stop has an empty text");
    if (stops.back().size() > kLongestStop)
      reject("body.stop has a text of more than {} bytes", kLongestStop);
  }
  return stops;
}

/// Makes numbers JSON's, not copies, and refuses patterns that no value can be decoded under.
void make_decodable(std::vector<Attribute>& attributes, const std::string& path) {
  for (Attribute& each : attributes) {
    const std::string own = path + "." + shorten_text(each.name, 60);
    each.locale.decimal = Locale::Decimal::point;
    if (each.pattern && !each.nullable && !can_decode(*each.pattern))
      reject(
          "{}.pattern: values cannot be decoded under it; use a pattern of letters, digits and classes such "
          "as "
          "[A-Z]{{2}}-\\d{{4}}, or allow null, which stands for what does not match",
          own);
    const bool list = each.type == ValueType::entries;
    make_decodable(each.fields, own + (list ? ".items.properties" : ".properties"));
  }
}

/// The schema of the object that is wanted, with its keys in the order in which they are written.
std::shared_ptr<const AnswerObject> object_of(const json& cells, std::string_view line) {
  constexpr const char* kPath = "body.response_format.json_schema";
  const json& format = cells.at("body").at("response_format");
  for (const auto& [key, value] : format.items())
    if (key != "type" && key != "json_schema")
      reject("body.response_format.{} is not supported", shorten_text(key, 40));
  const auto given = format.find("json_schema");
  if (given == format.end() || !given->is_object()) reject("{} must be an object with a schema", kPath);
  for (const auto& [key, value] : given->items())
    if (key != "name" && key != "schema" && key != "strict" && key != "description")
      reject("{}.{} is not supported", kPath, shorten_text(key, 40));
  if (!given->contains("schema")) reject("{}.schema is missing", kPath);
  auto whole = read_json<ordered_json>(line, {.values = 1'000'000});
  if (!whole.is_object()) whole = cells;
  const ordered_json& schema = whole.at("body").at("response_format").at("json_schema").at("schema");
  try {
    auto object = std::make_shared<AnswerObject>(
        AnswerObject{schema.dump(-1, ' ', false, ordered_json::error_handler_t::replace),
                     read_json_schema(schema, std::string(kPath) + ".schema")});
    make_decodable(object->attributes, std::string(kPath) + ".schema.properties");
    return object;
  } catch (const Error& error) {
    if (error.fault() != Fault::input) throw;
    throw BadText(error.what());
  }
}

void read_response_format(const json& cells, std::string_view line, Record& record) {
  const json& format = cells.at("body").at("response_format");
  if (!format.is_object()) reject("body.response_format is {}, not an object", kind_of(format));
  const json type = format.value("type", json());
  if (type == "text") return;
  if (type != "json_schema")
    reject("body.response_format.type is {}; use json_schema with the schema of an object, or text",
           shorten_text(type.dump(), 40));
  record.object = object_of(cells, line);
}

/// What a key asks for, in `own` and `record`.
void read_option(const std::string& key, const json& value, Decoding& own, Record& record) {
  if (key == "max_tokens" || key == "max_completion_tokens") {
    if (!value.is_number_integer() || value < 1) reject("body.{} must be a whole number above 0", key);
    const auto most = static_cast<int32_t>(std::min<uint64_t>(value.get<uint64_t>(), INT32_MAX));
    record.max_tokens = record.max_tokens == 0 ? most : std::min(record.max_tokens, most);
  } else if (key == "temperature") {
    own.temperature = static_cast<float>(number_of(value, key, 0, 1000));
  } else if (key == "top_p") {
    own.top_p = static_cast<float>(number_of(value, key, 0, 1));
    if (!(own.top_p > 0)) reject("body.top_p must be above 0");
  } else if (key == "top_k") {
    own.top_k = static_cast<int32_t>(std::min<int64_t>(integer_of(value, key, 0), INT32_MAX));
  } else if (key == "seed") {
    own.seed = static_cast<uint64_t>(integer_of(value, key, INT64_MIN));
  } else if (key == "stop") {
    own.stops = stops_of(value);
  } else if (key == "n") {
    const int64_t wanted = integer_of(value, key, 1);
    if (wanted < 1 || wanted > kMostAnswers)
      reject("body.n is {}; it must be from 1 to {}", shorten_text(value.dump(), 40), kMostAnswers);
    record.samples = static_cast<int32_t>(wanted);
  } else if (key == "tool_choice") {
    if (value != "none") reject("body.tool_choice is not supported");
  } else if (!asks_nothing(value)) {
    reject("body.{} is not supported", shorten_text(key, 40));
  }
}

bool is_same(const Decoding& own, const Job::Method& method) {
  return own.temperature == method.temperature && own.top_k == method.top_k && own.top_p == method.top_p &&
         own.seed == method.seed && own.stops.empty();
}

}  // namespace

void map_batch_line(const json& cells, std::string_view line, const Job::Method& method, Record& record) {
  record.id = id_of(cell(cells, "custom_id"), "custom_id");
  if (const auto verb = cells.find("method"); verb != cells.end() && !verb->is_null() && *verb != "POST")
    reject("method is {}, not \"POST\"", shorten_text(verb->dump(), 40));
  if (const auto url = cells.find("url"); url != cells.end() && !url->is_null() && *url != kUrl)
    reject("url is {}, not \"{}\"", shorten_text(url->dump(), 60), kUrl);
  const json& body = cell(cells, "body");
  if (!body.is_object()) reject("body is {}, not an object", kind_of(body));
  Decoding own{method.temperature, method.top_k, method.top_p, method.seed};
  for (const auto& [key, value] : body.items())
    if (!value.is_null() && std::find(kIdle.begin(), kIdle.end(), key) == kIdle.end())
      read_option(key, value, own, record);
  if (!body.contains("messages")) reject("body.messages is missing");
  read_messages(body["messages"], record.dialog);
  if (const auto format = body.find("response_format"); format != body.end() && !format->is_null())
    read_response_format(cells, line, record);
  if (record.object && !own.stops.empty())
    reject(
        "body.stop does not work with response_format json_schema, whose object ends by itself; remove it");
  if (!is_same(own, method)) record.decoding = std::make_shared<const Decoding>(std::move(own));
}

}  // namespace sheaf
