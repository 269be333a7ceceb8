#include "io/files/batch_replies.h"

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/json_file.h"
#include "io/base/line_reader.h"
#include "io/files/predictions.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr int kGood = 200;  // HTTP status

/// A member of an object; null where there is none, or `from` is no object.
const json& inner(const json& from, const char* key) {
  static const json none;
  const auto at = from.is_object() ? from.find(key) : from.end();
  return from.is_object() && at != from.end() ? *at : none;
}

std::string error_text(const json& error) {
  const json& message = inner(error, "message");
  return shorten_text(message.is_string() ? message.get<std::string>() : error.dump(), 200);
}

/// Text, or the texts of a list of parts.
std::optional<std::string> content_text(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array() || content.empty()) return std::nullopt;
  std::string text;
  for (const json& part : content) {
    if (!inner(part, "text").is_string()) return std::nullopt;
    text += inner(part, "text").get_ref<const std::string&>();
  }
  return text;
}

/// The answer of a line. Throws a BadText that says why there is none.
SpelledReply read_reply(const json& line) {
  if (const json& error = inner(line, "error"); !error.is_null())
    throw BadText("the service failed: " + error_text(error));
  const json& response = inner(line, "response");
  if (!response.is_object()) throw BadText("the line has no \"response\"");
  const json& body = inner(response, "body");
  if (const json& error = inner(body, "error"); !error.is_null())
    throw BadText("the service failed: " + error_text(error));
  if (const json& status = inner(response, "status_code"); !status.is_null() && status != kGood)
    throw BadText(fmt::format("the service failed with status {}", shorten_text(status.dump(), 40)));
  const json& choices = inner(body, "choices");
  if (!choices.is_array() || choices.empty()) throw BadText("the response has no \"choices\"");
  const json& choice = choices.front();
  const json& message = inner(choice, "message");
  if (const json& refusal = inner(message, "refusal"); refusal.is_string() && !refusal.empty())
    throw BadText("the model refused: " + shorten_text(refusal.get<std::string>(), 200));
  auto text = content_text(inner(message, "content"));
  if (!text) throw BadText("the response has no text in \"choices[0].message.content\"");
  return {*std::move(text), inner(choice, "finish_reason") == "length"};
}

}  // namespace

BatchReplies::BatchReplies(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    LineReader reader(path);
    while (const auto line = reader.next_record()) {
      const Place place{path, line->number};
      try {
        line->check();
        add(place, line->text);
      } catch (const BadText& bad) {
        broken_.push_back({place, nullptr, bad.reason});
      }
      if (!line->damage.empty()) break;
    }
  }
  if (!by_id_.empty()) return;
  if (!broken_.empty())
    refuse("{}:{}: {}; give the output file of a batch (JSON lines with custom_id and response)",
           broken_[0].place.file, broken_[0].place.row, broken_[0].reason);
  refuse("{}: the file has no replies; give the output file of a batch", paths.front());
}

void BatchReplies::add(const Place& place, std::string_view text) {
  const json line = parse_json_line(text);
  const json& id = inner(line, "custom_id");
  if (!id.is_string() && !id.is_number()) throw BadText("the line has no \"custom_id\"");
  const auto [found, fresh] = by_id_.try_emplace(id_text(id));
  if (!fresh) {
    ++found->second.times;
    return;
  }
  ids_.push_back(found->first);
  Entry& entry = found->second;
  entry.place = place;
  try {
    entry.reply = read_reply(line);
  } catch (const BadText& bad) {
    entry.trouble = bad.reason;
  }
}

std::optional<SpelledReply> BatchReplies::find(const std::string& id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  Entry& entry = found->second;
  entry.asked_for = true;
  if (entry.times > 1) throw BadText(fmt::format("{} replies have the custom_id", entry.times));
  if (!entry.trouble.empty()) throw BadText(entry.trouble);
  return entry.reply;
}

std::vector<Reject> BatchReplies::left() const {
  std::vector<Reject> all = broken_;
  for (const std::string& id : ids_)
    if (const Entry& entry = by_id_.at(id); !entry.asked_for)
      all.push_back({entry.place, id, "no request of the job has this custom_id"});
  return all;
}

}  // namespace sheaf
