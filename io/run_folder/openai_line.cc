#include "io/run_folder/openai_line.h"

#include "core/base/error.h"
#include "core/job/words.h"
#include "core/text/json_reader.h"
#include "io/base/sha256.h"

namespace sheaf {
namespace {

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

std::string openai_line(const Row& row, const std::string& model, int64_t created) {
  const auto& answer = std::get<RowAnswer>(row.content);
  const auto* text = std::get_if<std::string>(&answer.value);
  const int64_t prompt = row.prompt_tokens.value_or(0), completion = row.answer_tokens.value_or(0);
  const ordered_json choice{{"index", 0},
                            {"message", {{"role", "assistant"}, {"content", text ? *text : ""}}},
                            {"finish_reason", finish_name(answer.finish.value_or(Finish::stop))}};
  ordered_json error;
  if (answer.finish == Finish::error) error = {{"code", "unreadable_value"}, {"message", answer.note}};
  const ordered_json id = row.id;
  const std::string digest = digest_of(dump(id));
  return line_of(id, digest, kOk,
                 {{"id", "chatcmpl-" + digest},
                  {"object", "chat.completion"},
                  {"created", created},
                  {"model", model},
                  {"choices", ordered_json::array({choice})},
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
