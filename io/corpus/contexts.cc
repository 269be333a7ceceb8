#include "io/corpus/contexts.h"

#include <charconv>
#include <cstring>

#include "io/base/sha256.h"

namespace sheaf {
namespace {

/// Stands before the name of the file and the text.
struct Head {
  int64_t row = 0;
  int64_t name_bytes = 0, text_bytes = 0;
};

uint64_t from_hex(std::string_view digits) {
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

}  // namespace

Contexts::Key Contexts::key_of(const nlohmann::json& id) {
  const std::string sum = sha256(id.dump());
  return {from_hex(std::string_view(sum).substr(0, 16)), from_hex(std::string_view(sum).substr(16, 16))};
}

void Contexts::add(const nlohmann::json& id, const std::string& text, const Place& place) {
  if (!places_.try_emplace(key_of(id), file_.size()).second) return;
  const Head head{place.row, static_cast<int64_t>(place.file.size()), static_cast<int64_t>(text.size())};
  std::string record(sizeof head, '\0');
  std::memcpy(record.data(), &head, sizeof head);
  file_.append(record.append(place.file).append(text));
}

std::optional<Contexts::Context> Contexts::find(const nlohmann::json& id) const {
  const auto at = places_.find(key_of(id));
  if (at == places_.end()) return std::nullopt;
  Head head;
  std::memcpy(&head, file_.read(at->second, sizeof head).data(), sizeof head);
  std::string name =
      file_.read(at->second + static_cast<int64_t>(sizeof head), head.name_bytes + head.text_bytes);
  std::string text = name.substr(static_cast<size_t>(head.name_bytes));
  name.resize(static_cast<size_t>(head.name_bytes));
  return Context{std::move(text), {std::move(name), head.row}};
}

std::shared_ptr<const Contexts> gather_contexts(Corpus& corpus, const std::string& near) {
  auto contexts = std::make_shared<Contexts>(near);
  while (const auto row = corpus.next())
    if (const auto* record = std::get_if<Record>(&*row); record && !record->document.empty())
      contexts->add(record->id, record->document, record->place);
  return contexts;
}

}  // namespace sheaf
