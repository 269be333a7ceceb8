#include <algorithm>
#include <fmt/ranges.h>
#include <ranges>

#include "core/base/error.h"
#include "core/tokenizer/pretokenize.h"

namespace sheaf {
namespace {

struct KnownRegex {
  std::string_view name;
  CutRule rule;
  std::string_view regex;
};

constexpr KnownRegex known_regexes[] = {
    {"GPT-2", CutRule::gpt2, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"GPT-2", CutRule::gpt2, R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"cl100k (Llama 3, OLMo-2, Phi-4)", CutRule::cl100k,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"cl100k", CutRule::cl100k,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"},
    {"Qwen2", CutRule::qwen2,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"tekken (Mistral Nemo)", CutRule::tekken,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"o200k", CutRule::o200k,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"single numbers", CutRule::number_each, R"(\p{N})"},
    {"runs of numbers", CutRule::number_run, R"(\p{N}+)"},
    {"three digits", CutRule::ascii_triples, R"([0-9][0-9][0-9])"},
};

struct KnownPre {
  std::string_view name;
  std::vector<CutRule> rules;
  bool whole_words_first;
};

const std::vector<KnownPre>& known_pres() {
  using enum CutRule;
  static const std::vector<KnownPre> known = [] {
    std::vector<KnownPre> all;
    const auto add = [&all](const std::vector<CutRule>& rules, bool whole,
                            std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names) all.push_back({name, rules, whole});
    };
    add({punct, gpt2, number_run, ascii_triples}, false, {"default"});
    add({gpt2}, false, {"gpt-2", "phi-2", "olmo", "mpt", "jais", "roberta-bpe", "gigachat", "modern-bert"});
    add({cl100k}, true, {"llama-bpe", "llama3", "llama-v3", "falcon3"});
    add({cl100k}, false, {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "cl100k"});
    add({qwen2}, false, {"qwen2", "qwen3", "deepseek-r1-qwen", "stablelm2", "megrez"});
    add({digits_each, gpt2}, false,
        {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"});
    add({punct_falcon, gpt2, ascii_triples}, false, {"falcon"});
    add({tekken}, true, {"tekken"});
    add({o200k}, false, {"gpt-4o", "llama4"});
    return all;
  }();
  return known;
}

}  // namespace

CutRule rule_of_regex(std::string_view regex, std::string_view source) {
  const auto* found = std::ranges::find(known_regexes, regex, &KnownRegex::regex);
  if (found == std::end(known_regexes))
    refuse("{}: the pre-tokenizer pattern \"{}\" is not supported (supported: those of {})", source,
           regex.substr(0, 400), fmt::join(std::views::transform(known_regexes, &KnownRegex::name), ", "));
  return found->rule;
}

GgufPre pre_of_gguf(std::string_view pre, std::string_view source) {
  const auto found = std::ranges::find(known_pres(), pre, &KnownPre::name);
  if (found == known_pres().end())
    refuse("{}: the pre-tokenizer \"{}\" (tokenizer.ggml.pre) is not supported (supported: {})", source,
           pre.substr(0, 100), fmt::join(std::views::transform(known_pres(), &KnownPre::name), ", "));
  const bool nfc = pre == "qwen2" || pre == "qwen3" || pre == "deepseek-r1-qwen";
  return {{std::string(pre), found->rules}, found->whole_words_first, nfc};
}

}  // namespace sheaf
