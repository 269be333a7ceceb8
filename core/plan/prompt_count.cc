#include "core/plan/prompt_count.h"

#include "core/base/random_stream.h"

namespace sheaf {
namespace {

std::string_view bytes_of_tokens(const Tokens& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(TokenId)};
}

}  // namespace

void PromptCount::add(const RecordParts& record) {
  uint64_t hash = mix(hash_text(bytes_of_tokens(record.head)), hash_text(bytes_of_tokens(record.document)));
  for (const DocumentParts& each : record.documents)
    hash = mix(hash, hash_text(bytes_of_tokens(each.tokens)));
  if (contexts_.insert(hash).second) context_tokens_ += static_cast<int64_t>(record.document_tokens());
  ++records_;
  instruction_tokens_ += std::ssize(record.bin->instruction);
  for (const QuestionParts& question : record.questions()) {
    ++questions_;
    question_tokens_ += std::ssize(record.bin->opening) + std::ssize(question.tokens);
  }
}

}  // namespace sheaf
