#include <fmt/format.h>

#include "core/text/format.h"
#include "core/text/spelling.h"
#include "core/text/table.h"
#include "io/base/mapped_file.h"
#include "io/jobs/describe_path.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

int64_t whole(const ordered_json& about, const char* key) {
  return about[key].get<int64_t>();
}

std::string text_of(const ordered_json& about, const char* key) {
  return about[key].get<std::string>();
}

std::string expert_text(const ordered_json& experts) {
  if (experts.is_null()) return {};
  const int64_t shared = whole(experts, "shared_ffn");
  return fmt::format(", {} of {} experts of {}{}", whole(experts, "per_token"), whole(experts, "count"),
                     whole(experts, "ffn"), shared > 0 ? fmt::format(" and one of {}", shared) : "");
}

void add_model(const ordered_json& about, TextTable& table) {
  const auto number = [&](const char* key) { return whole(about, key); };
  table.rows.push_back(
      {"  model",
       fmt::format(
           "{}: {} layers, hidden {}, MLP {}{}, {} heads on {} key/value heads of {}, vocabulary {}{}",
           text_of(about, "family"), number("layers"), number("hidden"), number("ffn"),
           expert_text(about["experts"]), number("heads"), number("kv_heads"), number("head_dim"),
           number("vocab"), about["tied_output"].get<bool>() ? ", tied output" : "")});
  std::string types;
  int64_t bytes = 0;
  for (const auto& type : about["tensor_types"]) {
    bytes += whole(type, "bytes");
    types += fmt::format("{}{} {} ({})", types.empty() ? "" : ", ", whole(type, "tensors"),
                         text_of(type, "type"), size_text(whole(type, "bytes")));
  }
  std::string parameters = number_text(static_cast<double>(number("parameters")));
  if (number("active_parameters") < number("parameters"))
    parameters +=
        fmt::format(" ({} for a token)", number_text(static_cast<double>(number("active_parameters"))));
  table.rows.push_back(
      {"  parameters", fmt::format("{}, {} in the file: {}", parameters, size_text(bytes), types)});
  std::string context = fmt::format("{} tokens", number("context"));
  if (number("long_context") > number("context"))
    context += fmt::format(" ({} with model.context)", number("long_context"));
  for (const auto& window : about["windows"])
    context += fmt::format("; {} of {} layers see the last {}", whole(window, "layers"), number("layers"),
                           whole(window, "window"));
  table.rows.push_back({"  context", fmt::format("{}; keys and values take {} per token in fp32", context,
                                                 size_text(number("kv_bytes_per_token")))});
  table.rows.push_back({"  memory", size_text(number("fp32_bytes")) + " as fp32"});
  if (!text_of(about, "notice").empty()) table.rows.push_back({"  notice", text_of(about, "notice")});
}

std::string token_text(const ordered_json& token) {
  return token.is_null() ? "none" : fmt::format("{} {}", whole(token, "id"), shown(text_of(token, "text")));
}

std::string token_list(const ordered_json& tokens) {
  std::string text;
  for (const auto& token : tokens) text += (text.empty() ? "" : ", ") + token_text(token);
  return text.empty() ? "none" : text;
}

void add_tokenizer(const ordered_json& about, TextTable& table) {
  const auto more = whole(about, "specials") - static_cast<int64_t>(about["first_specials"].size());
  const char* const first = about["starts_with_bos"].get<bool>() ? " (starts every prompt)" : "";
  table.rows.push_back({"  tokenizer", text_of(about, "kind")});
  table.rows.push_back({"  begin, end", fmt::format("{}{}; {}", token_text(about["bos"]), first,
                                                    token_list(about["end_tokens"]))});
  table.rows.push_back({"  specials", token_list(about["first_specials"]) +
                                          (more > 0 ? fmt::format(" and {} more", more) : "")});
  table.rows.push_back({"  chat", fmt::format("{}: {}", text_of(about, "chat_template"),
                                              text_of(about, "chat_template_why"))});
}

std::string corpus_text(const ordered_json& about) {
  TextTable table, columns;
  table.rows.push_back({"  corpus", fmt::format("{} in {} {} {}", counted(whole(about, "records"), "record"),
                                                about["files"].dump(), text_of(about, "format"),
                                                plural("file", whole(about, "files")))});
  if (about.contains("damage")) table.rows.push_back({"  damaged", text_of(about, "damage")});
  if (about.contains("unreadable")) {
    const ordered_json& unreadable = about["unreadable"];
    table.rows.push_back({"  unreadable", fmt::format("{} would be rejected; the first: {}",
                                                      counted(whole(unreadable, "records"), "record"),
                                                      text_of(unreadable, "first"))});
  }
  for (const auto& column : about["columns"]) {
    const std::string name = text_of(column, "name");
    const bool has = about["first"].is_object() && about["first"].contains(name);
    const auto replace = ordered_json::error_handler_t::replace;
    columns.rows.push_back({"    " + name, text_of(column, "type"),
                            has ? about["first"][name].dump(-1, ' ', false, replace) : "-"});
  }
  return table.text() + columns.text();
}

std::string dataset_text(const ordered_json& about) {
  const auto mean = [](const ordered_json& number) { return fmt::format("{:.2f}", number.get<double>()); };
  TextTable table;
  std::string counts = counted(whole(about, "records"), "record");
  if (about.contains("questions") && !about.contains("contexts"))
    counts = counted(whole(about, "questions"), "question");
  if (about.contains("contexts")) {
    counts =
        fmt::format("{}, {}, {} per context", counted(whole(about, "contexts"), "context"),
                    counted(whole(about, "questions"), "question"), mean(about["questions_per_context"]));
    if (whole(about, "unanswerable") > 0)
      counts += fmt::format("; {} without an answer", whole(about, "unanswerable"));
  }
  table.rows.push_back({"  dataset", fmt::format("{}: {}", text_of(about, "format"), counts)});
  if (about.contains("tokens")) {
    const ordered_json& tokens = about["tokens"];
    std::string means = fmt::format("instruction {}, context {}, question {}", mean(tokens["instruction"]),
                                    mean(tokens["context"]), mean(tokens["question"]));
    if (!tokens["answer"].is_null()) means += fmt::format(", answer {}", mean(tokens["answer"]));
    table.rows.push_back({"  mean tokens", fmt::format("{}, for {}", means, text_of(tokens, "model"))});
  } else if (about.contains("contexts")) {
    table.rows.push_back({"  mean tokens", "give --model to count them"});
  }
  if (about.contains("broken"))
    table.rows.push_back({"  broken", fmt::format("{} would be rejected; the first: {}",
                                                  counted(whole(about["broken"], "records"), "record"),
                                                  text_of(about["broken"], "first"))});
  return table.text();
}

}  // namespace

std::string description_text(const ordered_json& about) {
  TextTable table;
  if (about.contains("model")) add_model(about["model"], table);
  if (about.contains("tokenizer")) add_tokenizer(about["tokenizer"], table);
  std::string text = table.text();
  if (about.contains("corpus")) text += corpus_text(about["corpus"]);
  if (about.contains("dataset")) text += dataset_text(about["dataset"]);
  return text;
}

}  // namespace sheaf
