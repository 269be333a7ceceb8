#include "core/segments/stack.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"

namespace sheaf {

const char* role_name(Role role) {
  constexpr const char* kNames[] = {"instruction", "document", "context", "question", "key", "value"};
  return kNames[static_cast<size_t>(role)];
}

const char* stop_name(Stop stop) {
  constexpr const char* kNames[] = {"line", "value", "quoted", "object", "text"};
  return kNames[static_cast<size_t>(stop)];
}

Stack NextRound::expected() const {
  return longest();
}

SegmentId Stack::add(Segment segment) {
  segments.push_back(std::move(segment));
  return static_cast<SegmentId>(segments.size() - 1);
}

SegmentId Stack::add_after(std::vector<Sight> sees, Role role, Tokens tokens, bool shared) {
  const int32_t position = end_position(sees.back().segment);
  return add({role, std::move(tokens), position, std::move(sees), shared});
}

int32_t Stack::end_position(SegmentId id) const {
  const Segment& segment = segments[id];
  return segment.first_position + static_cast<int32_t>(segment.tokens.size());
}

int64_t Stack::prompt_tokens() const {
  int64_t total = 0;
  for (const Segment& segment : segments) total += static_cast<int64_t>(segment.tokens.size());
  return total;
}

int32_t Stack::positions() const {
  const std::vector<int32_t> keys = most_keys();
  int32_t end = 0;
  for (size_t i = 0; i < segments.size(); ++i) end = std::max(end, segments[i].first_position + keys[i]);
  return end;
}

std::vector<int32_t> Stack::most_keys() const {
  std::vector<int32_t> keys;
  for (const Segment& segment : segments) keys.push_back(static_cast<int32_t>(segment.tokens.size()));
  // The last token of an answer is never fed back, so it takes no position and no key.
  for (const Slot& slot : slots)
    for (int32_t i = 0; i < slot.prompts(); ++i) keys[slot.answer + i] += slot.max_tokens - 1;
  return keys;
}

void check_stack(const Stack& stack) {
  std::vector<bool> grows(stack.segments.size(), false);
  for (const Slot& slot : stack.slots) {
    if (stack.segments[slot.prompt].tokens.empty()) fail("a slot continues an empty segment");
    if (stack.segments[slot.prompt].shared) fail("a slot continues a shared segment");
    if (slot.max_tokens < 1) fail("a slot decodes no tokens");
    if (slot.answer != slot.prompt && !stack.segments[slot.answer].tokens.empty())
      fail("a separate value segment must start empty");
    if (grows[slot.answer]) fail("two slots decode into one segment");
    grows[slot.answer] = true;
    if (slot.chain_priors.empty()) continue;
    if (slot.answer != slot.prompt) fail("an answer with chains must continue its prompt");
    for (int32_t i = 0; i < slot.prompts(); ++i) {
      const auto id = static_cast<size_t>(slot.prompt + i);
      if (id >= stack.segments.size() || stack.segments[id].tokens.size() != 1 || stack.segments[id].shared)
        fail("the prompt of chain {} of a slot must have one token", i);
      if (i > 0 && grows[id]) fail("two slots decode into one segment");
      grows[id] = true;
    }
  }
  DocumentSoftmax softmax;
  for (size_t i = 0; i < stack.segments.size(); ++i) {
    int32_t last = -1;
    for (const Sight& sight : stack.segments[i].sees) {
      if (!sight.softmax.plain()) {
        if (stack.segments[i].shared) fail("the shared segment {} has a softmax of documents", i);
        if (softmax.plain()) softmax = sight.softmax;
        if (softmax != sight.softmax)
          fail("segment {} has another softmax of documents than those before it", i);
      }
      const size_t seen = static_cast<size_t>(sight.segment);
      if (seen >= i) fail("segment {} sees the later segment {}", i, seen);
      if (grows[seen] != sight.abreast) fail("segment {} sees segment {} whole while it is decoded", i, seen);
      if (stack.segments[seen].first_position < last) fail("segment {}: its sights are out of order", i);
      last = stack.segments[seen].first_position;
    }
  }
}

namespace {

constexpr size_t kShownOptions = 8;

std::string answer_mark(const Slot& slot,
                        const std::function<std::string(std::span<const TokenId>)>& text_of) {
  const AnswerTrie* list = slot.allowed ? slot.allowed->list() : nullptr;
  if (!list) return fmt::format("[answer: at most {} tokens]", slot.max_tokens);
  std::vector<std::string> options;
  for (const Tokens& answer : list->answers()) {
    if (options.size() == kShownOptions) break;
    std::string text = text_of(answer);
    options.push_back(text.starts_with(' ') ? text.substr(1) : text);
  }
  if (list->answers().size() == 1) return fmt::format("[option: {}]", options[0]);
  const size_t more = list->answers().size() - options.size();
  return fmt::format("[answer: one of {}{}]", fmt::join(options, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string indented(const std::string& text) {
  std::string out = "    ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out + "\n";
}

nlohmann::ordered_json stack_json(const Stack& stack,
                                  const std::function<nlohmann::json(int32_t record)>& record_id) {
  nlohmann::ordered_json out;
  auto& segments = out["segments"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < stack.segments.size(); ++i) {
    const Segment& segment = stack.segments[i];
    nlohmann::ordered_json entry{
        {"id", i}, {"role", role_name(segment.role)}, {"first_position", segment.first_position}};
    entry["tokens"] = segment.tokens;
    entry["sees"] = nlohmann::ordered_json::array();
    entry["abreast"] = nlohmann::ordered_json::array();
    for (const Sight& sight : segment.sees) {
      entry[sight.abreast ? "abreast" : "sees"].push_back(sight.segment);
      if (sight.softmax.plain()) continue;
      auto& documents = entry["documents"];
      documents["temperature"] = sight.softmax.temperature;
      documents["scale"] = sight.softmax.scale;
      documents["segments"].push_back(sight.segment);
    }
    segments.push_back(std::move(entry));
  }
  auto& slots = out["slots"] = nlohmann::ordered_json::array();
  for (const Slot& slot : stack.slots) {
    nlohmann::ordered_json entry{{"prompt", slot.prompt},
                                 {"answer", slot.answer},
                                 {"first_position", stack.end_position(slot.answer)},
                                 {"max_tokens", slot.max_tokens},
                                 {"stop", stop_name(slot.stop)},
                                 {"record", nlohmann::ordered_json(record_id(slot.record))},
                                 {"question", slot.question}};
    if (slot.option > 0) entry["option"] = slot.option;
    if (slot.parent >= 0) {
      entry["parent"] = slot.parent;
      entry["entry"] = slot.entry;
    }
    if (slot.allowed && slot.allowed->list()) entry["allowed"] = slot.allowed->list()->answers();
    for (size_t i = 0; i < slot.chain_priors.size(); ++i)
      entry["chains"].push_back(
          {{"prompt", slot.prompt + 1 + static_cast<int32_t>(i)}, {"prior", slot.chain_priors[i]}});
    slots.push_back(std::move(entry));
  }
  if (stack.next) out["longest_next"] = stack_json(stack.next->longest(), record_id);
  return out;
}

/// The keys of a segment as another one's rows look at them.
struct SeenKeys {
  int64_t keys;
  int64_t position;  ///< of the first key
  bool abreast;      ///< a row sees them up to its own index only
};

/// Keys that rows at consecutive positions see, over all layers.
int64_t keys_seen(int64_t rows, int64_t position, const SeenKeys& seen, const LayerWindows& windows) {
  int64_t sum = 0;
  for (const auto& [window, layers] : windows) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t end = seen.abreast ? std::min(row + 1, seen.keys) : seen.keys;
      const int64_t first = window > 0 ? position + row - window + 1 - seen.position : 0;
      sum += layers * std::max<int64_t>(0, end - std::max<int64_t>(0, first));
    }
  }
  return sum;
}

}  // namespace

std::string dump_stack(const Stack& stack, const std::function<nlohmann::json(int32_t record)>& record_id) {
  return stack_json(stack, record_id).dump();
}

std::string stack_text(const Stack& stack,
                       const std::function<std::string(std::span<const TokenId>)>& text_of,
                       const std::function<std::string(int32_t record)>& record_name) {
  std::map<SegmentId, std::set<int32_t>> records;  // whose answers come from a segment or see it
  std::map<SegmentId, std::string> marks;
  for (const Slot& slot : stack.slots) {
    marks[slot.answer] += answer_mark(slot, text_of);
    for (int32_t i = 0; i < slot.prompts(); ++i) {
      records[slot.prompt + i].insert(slot.record);
      for (const Sight& sight : stack.segments[slot.prompt + i].sees)
        records[sight.segment].insert(slot.record);
    }
  }
  std::string out;
  for (SegmentId id = 0; id < std::ssize(stack.segments); ++id) {
    const Segment& segment = stack.segments[id];
    out += fmt::format("{} {}", id, role_name(segment.role));
    if (const std::set<int32_t>& of = records[id]; of.size() == 1 && segment.role != Role::instruction)
      out += " of " + record_name(*of.begin());
    out += fmt::format(", {} token{}", segment.tokens.size(), segment.tokens.size() == 1 ? "" : "s");
    std::vector<SegmentId> seen;
    for (const Sight& sight : segment.sees) seen.push_back(sight.segment);
    if (!seen.empty()) out += fmt::format(", sees {}", fmt::join(seen, " "));
    out += "\n" + indented(text_of(segment.tokens) + marks[id]);
  }
  return out;
}

void WorkCount::add(const Stack& stack) {
  const std::vector<int32_t> rows = stack.most_keys();
  std::vector<int64_t> serials;
  for (size_t i = 0; i < stack.segments.size(); ++i) {
    const Segment& segment = stack.segments[i];
    const int64_t serial = next_serial_++;
    if (segment.shared) {
      std::vector<int64_t> identity{segment.first_position, static_cast<int64_t>(segment.sees.size())};
      for (const Sight& sight : segment.sees) identity.push_back(serials[sight.segment]);
      identity.insert(identity.end(), segment.tokens.begin(), segment.tokens.end());
      const auto [known, added] = shared_.try_emplace(std::move(identity), serial);
      serials.push_back(known->second);
      if (!added) continue;
    } else {
      serials.push_back(serial);
    }
    work_.rows += rows[i];
    const int32_t position = segment.first_position;
    // Its own keys lie abreast.
    work_.keys += keys_seen(rows[i], position, {rows[i], position, true}, windows_);
    for (const Sight& sight : segment.sees)
      work_.keys += keys_seen(
          rows[i], position,
          {rows[sight.segment], stack.segments[sight.segment].first_position, sight.abreast}, windows_);
  }
  for (const Slot& slot : stack.slots) work_.picks += int64_t{slot.prompts()} * slot.max_tokens;
}

}  // namespace sheaf
