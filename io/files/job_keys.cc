#include "io/files/job_keys.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "core/base/error.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using Strings = std::vector<std::string>;

/// Bounds as people write them.
template <class Number>
std::string range_text(Range<Number> range, Number largest, std::string_view what) {
  if (range.most >= largest && range.least <= -largest) return std::string(what);
  if (range.most >= largest) return fmt::format("{} ≥ {}", what, range.least);
  return fmt::format("{} to {}", range.least, range.most);
}

void read_one(const JobKey& key, YamlMap& map, Job& job) {
  const Takes& takes = key.takes;
  if (!takes.old.empty()) map.accept_old(key.name(), takes.old);
  std::visit(
      [&](const auto& member) {
        using Member = std::decay_t<decltype(member)>;
        if constexpr (std::is_same_v<Member, WordMember>) {
          std::string word(member.get(job));
          map.choice(key.name(), word, member.words());
          member.set(job, word);
        } else if constexpr (!std::is_same_v<Member, std::monostate>) {
          auto& value = member(job);
          using Value = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, bool>) {
            map.boolean(key.name(), value);
          } else if constexpr (std::is_same_v<Value, Strings>) {
            map.text_list(key.name(), value);
          } else if constexpr (std::is_same_v<Value, std::string>) {
            if (takes.path)
              map.file_path(key.name(), value);
            else if (takes.words)
              map.choice(key.name(), value, takes.words());
            else
              map.text(key.name(), value);
          } else {
            const YamlPtr given = map.node(key.name());
            if (given && !takes.word.empty() && given->kind == YamlNode::Kind::scalar &&
                given->text == takes.word)
              value = static_cast<Value>(takes.word_means);
            else if constexpr (std::is_same_v<Value, uint64_t>)
              map.integer(key.name(), value);
            else if constexpr (std::is_integral_v<Value>)
              map.integer(key.name(), value, takes.whole);
            else
              map.number(key.name(), value, takes.real);
          }
        }
      },
      key.member);
}

}  // namespace

std::vector<std::string> JobKey::words() const {
  Strings words = takes.words ? takes.words() : Strings();
  if (const auto* member_words = std::get_if<WordMember>(&member)) words = member_words->words();
  if (std::holds_alternative<MemberOf<bool>>(member)) words = {"true", "false"};
  if (!takes.word.empty()) words.emplace_back(takes.word);
  return words;
}

std::string JobKey::type() const {
  if (!takes.text.empty()) return std::string(takes.text);
  std::string numbers;
  if (std::holds_alternative<MemberOf<uint64_t>>(member)) numbers = "whole number ≥ 0";
  if (std::holds_alternative<MemberOf<int32_t>>(member) || std::holds_alternative<MemberOf<int64_t>>(member))
    numbers = range_text<int64_t>(takes.whole, INT64_MAX, "whole number");
  if (std::holds_alternative<MemberOf<float>>(member) || std::holds_alternative<MemberOf<double>>(member))
    numbers = range_text<double>(takes.real, std::numeric_limits<double>::max(), "number");
  Strings parts = words();
  if (!numbers.empty()) parts.insert(parts.begin(), numbers);
  if (takes.path) parts.emplace_back("a path");
  return parts.empty() ? "text" : fmt::format("{}", fmt::join(parts, ", "));
}

ordered_json JobKey::value(const Job& job) const {
  return std::visit(
      [&](const auto& access) -> ordered_json {
        using Member = std::decay_t<decltype(access)>;
        if constexpr (std::is_same_v<Member, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<Member, WordMember>) {
          return access.get(job);
        } else {
          const auto& value = access(const_cast<Job&>(job));  // members are of jobs that are read, too
          if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
            if (!takes.word.empty() && static_cast<double>(value) == takes.word_means) return takes.word;
          return value;
        }
      },
      member);
}

const JobKey* find_job_key(std::string_view path) {
  const auto found = std::ranges::find(job_keys(), path, &JobKey::path);
  return found == job_keys().end() ? nullptr : &*found;
}

namespace {

bool is_required(const JobKey& key, const Job& job) {
  if (key.path == "input.path") return !job.input.table;
  if (key.path == "output.path") return job.output.needs_path;
  return key.takes.required;
}

}  // namespace

void read_keys(std::string_view section, YamlMap& map, Job& job, MistakeList& found) {
  for (const JobKey& key : job_keys()) {
    if (key.section() != section) continue;
    if (!key.takes.own_reader) found.attempt([&] { read_one(key, map, job); });
    if (is_required(key, job)) map.require(key.name());
  }
}

void check_scopes(std::string_view section, const YamlMap& map, const Job& job, MistakeList& found) {
  static const Job plain;
  for (const JobKey& key : job_keys()) {
    if (key.section() != section || !map.has(key.name())) continue;
    // A default that is written down changes nothing, wherever it stands.
    const bool held = !std::holds_alternative<std::monostate>(key.member);
    if (held && key.value(job) == key.value(plain)) continue;
    const auto broken =
        std::ranges::find_if(key.scopes, [&](const Scope& scope) { return !scope.holds(job); });
    if (broken != key.scopes.end())
      found.add(fmt::format("{}: {} works only with {}; remove it", map.where(key.name()),
                            map.path(key.name()), broken->text));
  }
}

ordered_json job_settings(const Job& job, Decides least) {
  ordered_json settings = ordered_json::object();
  for (const JobKey& key : job_keys()) {
    if (key.decides != Decides::answers && (key.decides != Decides::rows || least != Decides::rows)) continue;
    const size_t dot = key.path.find('.');
    settings[key.path.substr(0, dot)][key.path.substr(dot + 1)] =
        key.takes.told ? key.takes.told(job) : key.value(job);
  }
  return settings;
}

}  // namespace sheaf
