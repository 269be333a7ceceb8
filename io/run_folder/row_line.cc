#include "io/run_folder/row_line.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/job/words.h"
#include "core/task/value_path.h"
#include "core/text/json_reader.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

ordered_json span_json(const std::optional<RowSpan>& span) {
  if (!span) return nullptr;
  return {{"column", span->column}, {"start", span->start}, {"end", span->end}};
}

/// Of a list one for each of its texts; otherwise one, null where the value is.
ordered_json spans_json(const RowAnswer& answer) {
  if (!std::holds_alternative<std::vector<std::string>>(answer.value))
    return answer.spans->empty() ? ordered_json() : span_json(answer.spans->front());
  ordered_json list = ordered_json::array();
  for (const auto& span : *answer.spans) list.push_back(span_json(span));
  return list;
}

/// The documents that spoke an answer, those with the most tokens first.
ordered_json citations_json(const std::vector<SpokenPiece>& trace) {
  std::vector<SpokenPiece> cited;
  for (const SpokenPiece& piece : trace) {
    const auto known = std::ranges::find(cited, piece.document, &SpokenPiece::document);
    if (known == cited.end())
      cited.push_back(piece);
    else
      known->tokens += piece.tokens;
  }
  std::ranges::stable_sort(cited, std::greater<>(), &SpokenPiece::tokens);
  ordered_json list = ordered_json::array();
  for (const SpokenPiece& each : cited)
    list.push_back({{"document", each.document}, {"tokens", each.tokens}});
  return list;
}

ordered_json trace_json(const std::vector<SpokenPiece>& trace) {
  ordered_json list = ordered_json::array();
  for (const SpokenPiece& piece : trace)
    list.push_back({{"text", piece.text}, {"document", piece.document}, {"tokens", piece.tokens}});
  return list;
}

void add_answer(const RowAnswer& answer, ordered_json& out) {
  out["answer"] = value_json(answer.value);
  if (answer.option) out["option"] = *answer.option;
  if (!answer.note.empty()) out["note"] = answer.note;
  if (answer.finish) out["finish"] = finish_name(*answer.finish);
  if (answer.logprob) out["logprob"] = *answer.logprob;
  if (answer.raw) out["raw"] = *answer.raw;
  if (answer.reasoning) out["reasoning"] = *answer.reasoning;
  if (answer.confidence) out["confidence"] = *answer.confidence;
  if (answer.null_margin) out["null_margin"] = *answer.null_margin;
  if (answer.spans) out["spans"] = spans_json(answer);
  if (answer.trace) {
    out["citations"] = citations_json(*answer.trace);
    out["trace"] = trace_json(*answer.trace);
  }
}

/// `split`: of a document that was asked in parts.
void add_values(bool split, const ExtractedValues& extracted, ordered_json& out) {
  out["category"] = extracted.category;
  ordered_json& values = out["values"] = ordered_json::object();
  for (const auto& [name, answer] : extracted.values) values[name] = value_json(answer.value);
  // Notes stand first; of a split document they stand where the first value that has one puts them.
  bool noted = false;
  visit_values(extracted.values,
               [&](const std::string&, const RowAnswer& answer) { noted = noted || !answer.note.empty(); });
  if (noted && !split) out["notes"] = ordered_json::object();
  visit_values(extracted.values, [&](const std::string& name, const RowAnswer& answer) {
    if (!answer.note.empty()) out["notes"][name] = answer.note;
    if (answer.logprob) out["logprobs"][name] = *answer.logprob;
    if (answer.raw) out["raw"][name] = *answer.raw;
    if (answer.confidence) out["confidence"][name] = *answer.confidence;
    if (answer.null_margin) out["null_margins"][name] = *answer.null_margin;
    if (answer.spans) out["spans"][name] = spans_json(answer);
    if (answer.source) out["sources"][name] = *answer.source;
  });
  if (extracted.logprob) out["logprobs"] = *extracted.logprob;
  if (extracted.raw) out["raw"] = *extracted.raw;
}

void add_content(bool split, const RowContent& content, ordered_json& out) {
  if (const auto* extracted = std::get_if<ExtractedValues>(&content)) {
    add_values(split, *extracted, out);
  } else if (const auto* answers = std::get_if<std::vector<QuestionAnswer>>(&content)) {
    ordered_json& list = out["answers"] = ordered_json::array();
    for (const QuestionAnswer& question : *answers) {
      list.push_back({{"id", question.id}});
      add_answer(question.answer, list.back());
    }
  } else {
    add_answer(std::get<RowAnswer>(content), out);
  }
}

// Reading back. A wrong type throws the JSON library's exception, which read_row() catches.

RowValue read_value(const ordered_json& value) {
  if (value.is_null()) return nullptr;
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return row_number(value);
  return value.get<std::vector<std::string>>();
}

RowValue read_attribute_value(const ordered_json& value);

RowObject read_object(const ordered_json& from) {
  RowObject object;
  for (const auto& [name, value] : from.get_ref<const ordered_json::object_t&>())
    object.values.push_back({name, {read_attribute_value(value)}});
  return object;
}

/// Of an attribute, which may be true or false, or hold values of its own.
RowValue read_attribute_value(const ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_object()) return read_object(value);
  if (!value.is_array() || value.empty() || !value[0].is_object()) return read_value(value);
  std::vector<RowObject> entries;
  for (const ordered_json& entry : value) entries.push_back(read_object(entry));
  return entries;
}

template <class Value>
std::optional<Value> read_member(const ordered_json& object, const std::string& key) {
  const auto at = object.find(key);
  if (at == object.end()) return std::nullopt;
  if constexpr (std::is_same_v<Value, double>)
    if (at->is_null()) return std::numeric_limits<double>::quiet_NaN();  // JSON has no number for it
  return at->get<Value>();
}

std::optional<RowSpan> read_span(const ordered_json& from) {
  if (from.is_null()) return std::nullopt;
  return RowSpan{from.at("column").get<std::string>(), from.at("start").get<int64_t>(),
                 from.at("end").get<int64_t>()};
}

std::optional<std::vector<std::optional<RowSpan>>> read_spans(const ordered_json& all,
                                                              const std::string& name,
                                                              const RowValue& value) {
  const auto at = all.find(name);
  if (at == all.end()) return std::nullopt;
  std::vector<std::optional<RowSpan>> spans;
  if (std::holds_alternative<std::vector<std::string>>(value))
    for (const ordered_json& each : at->get_ref<const ordered_json::array_t&>())
      spans.push_back(read_span(each));
  else if (const auto span = read_span(*at); span || is_found(value))
    spans.push_back(span);
  return spans;
}

std::optional<std::vector<SpokenPiece>> read_trace(const ordered_json& from) {
  const auto at = from.find("trace");
  if (at == from.end()) return std::nullopt;
  std::vector<SpokenPiece> trace;
  for (const ordered_json& piece : at->get_ref<const ordered_json::array_t&>())
    trace.push_back(
        {piece.at("text").get<std::string>(), piece.at("document"), piece.at("tokens").get<int64_t>()});
  return trace;
}

RowAnswer read_answer(const ordered_json& from) {
  RowAnswer answer;
  answer.value = read_value(from.at("answer"));
  answer.option = read_member<std::string>(from, "option");
  answer.note = read_member<std::string>(from, "note").value_or("");
  if (const auto finish = read_member<std::string>(from, "finish"))
    answer.finish = *finish == "length" ? Finish::length : *finish == "error" ? Finish::error : Finish::stop;
  answer.logprob = read_member<double>(from, "logprob");
  answer.raw = read_member<std::string>(from, "raw");
  answer.reasoning = read_member<std::string>(from, "reasoning");
  answer.confidence = read_member<double>(from, "confidence");
  answer.null_margin = read_member<double>(from, "null_margin");
  answer.spans = read_spans(from, "spans", answer.value);
  answer.trace = read_trace(from);
  return answer;
}

ExtractedValues read_values(const ordered_json& from) {
  ExtractedValues extracted;
  extracted.category = from.at("category").get<std::string>();
  const ordered_json none = ordered_json::object();
  const auto about = [&](const char* key) -> const ordered_json& {
    const auto at = from.find(key);
    return at == from.end() ? none : *at;
  };
  const ordered_json &notes = about("notes"), &logprobs = about("logprobs"), &raw = about("raw"),
                     &confidence = about("confidence"), &margins = about("null_margins"),
                     &spans = about("spans"), &sources = about("sources");
  extracted.values = read_object(from.at("values")).values;
  visit_values(extracted.values, [&](const std::string& name, RowAnswer& answer) {
    answer.note = read_member<std::string>(notes, name).value_or("");
    if (logprobs.is_object()) answer.logprob = read_member<double>(logprobs, name);
    if (raw.is_object()) answer.raw = read_member<std::string>(raw, name);
    answer.confidence = read_member<double>(confidence, name);
    answer.null_margin = read_member<double>(margins, name);
    answer.spans = read_spans(spans, name, answer.value);
    answer.source = read_member<std::string>(sources, name);
  });
  if (!logprobs.is_object()) extracted.logprob = read_member<double>(from, "logprobs");
  if (!raw.is_object()) extracted.raw = raw.get<std::string>();
  return extracted;
}

RowContent read_content(const ordered_json& from) {
  if (from.contains("values")) return read_values(from);
  if (!from.contains("answers")) return read_answer(from);
  std::vector<QuestionAnswer> answers;
  for (const ordered_json& answer : from.at("answers").get_ref<const ordered_json::array_t&>())
    answers.push_back({answer.at("id"), read_answer(answer)});
  return answers;
}

Row read_members(const ordered_json& from) {
  Row row;
  row.id = from.at("id");
  row.content = read_content(from);
  if (const auto samples = from.find("samples"); samples != from.end())
    for (const ordered_json& sample : samples->get_ref<const ordered_json::array_t&>()) {
      // In a table a sample is a text.
      const ordered_json read =
          sample.is_string() ? read_json<ordered_json>(sample.get_ref<const std::string&>()) : sample;
      row.samples.push_back(read_content(read));
    }
  row.parts = read_member<int32_t>(from, "parts").value_or(1);
  row.cut_tokens = read_member<int32_t>(from, "cut_tokens").value_or(0);
  row.document_tokens = read_member<int64_t>(from, "document_tokens");
  row.answer_tokens = read_member<int64_t>(from, "answer_tokens");
  row.seconds = read_member<double>(from, "seconds");
  for (const auto& [name, cell] : from.items())
    if (!is_row_key(name)) row.kept[name] = cell;
  return row;
}

using nlohmann::ordered_json;

constexpr int kOk = 200, kBadRequest = 400;

std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string line_of(const ordered_json& id, const std::string& digest, int status, ordered_json body,
                    ordered_json error = nullptr) {
  return dump({{"id", "batch_req_" + digest},
               {"custom_id", id},
               {"response", {{"status_code", status}, {"request_id", digest}, {"body", std::move(body)}}},
               {"error", std::move(error)}});
}

std::string digest_of(const std::string& text) {
  return sha256(text).substr(0, 24);
}

std::string error_line(const ordered_json& reject) {
  const ordered_json id = reject.value("id", ordered_json());
  ordered_json message = reject.value("reason", ordered_json());
  if (reject.contains("records") && message.is_string())
    message = fmt::format("{} ({} lines, up to line {})", message.get_ref<const std::string&>(),
                          dump(reject["records"]), dump(reject.value("last_row", ordered_json())));
  return line_of(id, digest_of(dump(id.is_null() ? reject : id)), kBadRequest,
                 {{"error",
                   {{"message", std::move(message)},
                    {"type", "invalid_request_error"},
                    {"param", nullptr},
                    {"code", nullptr}}}});
}

}  // namespace

ordered_json sample_json(const RowContent& sample) {
  ordered_json out = ordered_json::object();
  add_content(false, sample, out);
  return out;
}

std::string row_line(const Row& row) {
  ordered_json out{{"id", row.id}};
  add_content(row.parts > 1, row.content, out);
  if (!row.samples.empty()) out["samples"] = ordered_json::array();
  for (const RowContent& sample : row.samples) out["samples"].push_back(sample_json(sample));
  if (row.parts > 1) out["parts"] = row.parts;
  if (row.cut_tokens > 0) out["cut_tokens"] = row.cut_tokens;
  if (row.document_tokens) out["document_tokens"] = *row.document_tokens;
  if (row.answer_tokens) out["answer_tokens"] = *row.answer_tokens;
  if (row.seconds) out["seconds"] = *row.seconds;
  for (const auto& [name, cell] : row.kept.items()) out[name] = cell;
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::optional<Row> read_row(std::string_view line) {
  const auto read = read_json<ordered_json>(line);
  if (read.is_discarded()) return std::nullopt;
  try {
    return read_members(read);
  } catch (const ordered_json::exception&) {
    return std::nullopt;
  }
}

std::string openai_line(const Row& row, const std::string& model, int64_t created) {
  const std::vector<RowContent> alone{row.content};
  const int64_t prompt = row.prompt_tokens.value_or(0), completion = row.answer_tokens.value_or(0);
  ordered_json choices = ordered_json::array(), error;
  for (const RowContent& content : row.samples.empty() ? alone : row.samples) {
    const auto& answer = std::get<RowAnswer>(content);
    const auto* text = std::get_if<std::string>(&answer.value);
    choices.push_back({{"index", choices.size()},
                       {"message", {{"role", "assistant"}, {"content", text ? *text : ""}}},
                       {"finish_reason", finish_name(answer.finish.value_or(Finish::stop))}});
    if (answer.finish == Finish::error && error.is_null())
      error = {{"code", "unreadable_value"}, {"message", answer.note}};
  }
  const ordered_json id = row.id;
  const std::string digest = digest_of(dump(id));
  return line_of(id, digest, kOk,
                 {{"id", "chatcmpl-" + digest},
                  {"object", "chat.completion"},
                  {"created", created},
                  {"model", model},
                  {"choices", std::move(choices)},
                  {"usage",
                   {{"prompt_tokens", prompt},
                    {"completion_tokens", completion},
                    {"total_tokens", prompt + completion}}}},
                 std::move(error));
}

void write_openai_errors(FileLayer& files, const std::string& folder) {
  const std::string target = folder + "/errors.jsonl", staged = target + ".part";
  {
    const auto file = files.open(staged);
    file->truncate(0);
    read_lines(folder + "/rejects.jsonl", [&](const std::string& line) {
      const auto reject = read_json<ordered_json>(line);
      if (!reject.is_object()) refuse("{}/rejects.jsonl: a line was not written by sheaf", folder);
      file->append(error_line(reject) + "\n");
    });
    file->sync();
  }
  files.rename(staged, target);
  files.sync_folder(folder);
}

bool writes_openai_batch(const ordered_json& fingerprint) {
  const ordered_json::json_pointer format("/job/output/format");
  return fingerprint.contains(format) && fingerprint[format] == word_of(OutputFormat::openai_batch);
}

}  // namespace sheaf
