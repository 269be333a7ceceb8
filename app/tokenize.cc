#include <cstdio>
#include <cstdlib>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/text/json_reader.h"
#include "core/text/printable.h"
#include "core/text/utf8.h"
#include "io/model/model_files.h"

namespace sheaf {
namespace {

struct TokenizeOptions {
  std::string model;
  bool json_lines = false;
  bool bos = false;
  bool eos = false;
  bool raw = false;
  bool decode = false;
};

/// Calls `use` with each line of standard input, without its newline, and its number; lines may hold NUL.
void read_lines(const std::function<void(std::string_view line, int64_t number)>& use) {
  struct Buffer {
    char* bytes = nullptr;
    ~Buffer() { std::free(bytes); }
  } buffer;
  size_t capacity = 0;
  for (int64_t number = 1;; ++number) {
    const ssize_t got = getline(&buffer.bytes, &capacity, stdin);
    if (got < 0 && std::ferror(stdin)) fail("standard input: read error");
    if (got < 0) return;
    std::string_view line(buffer.bytes, static_cast<size_t>(got));
    if (line.ends_with('\n')) line.remove_suffix(1);
    use(line, number);
  }
}

nlohmann::json parse_line(std::string_view line, int64_t number) {
  std::string trouble;
  auto value = read_json(line, {}, &trouble);
  if (!trouble.empty()) refuse("line {}: {}", number, trouble);
  return value;
}

void encode_lines(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  Tokens ids;
  std::string row;
  read_lines([&](std::string_view line, int64_t number) {
    ids.clear();
    if (options.bos) ids.push_back(*tokenizer.bos);
    if (options.json_lines) {
      const nlohmann::json value = parse_line(line, number);
      if (!value.is_string()) refuse("line {}: this is not a JSON string", number);
      tokenizer.encode(value.get_ref<const std::string&>(), !options.raw, ids);
    } else {
      tokenizer.encode(line, !options.raw, ids);
    }
    if (options.eos) ids.push_back(*tokenizer.eos);
    row = "[";
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i > 0) row += ", ";
      const fmt::format_int digits(ids[i]);
      row.append(digits.data(), digits.size());
    }
    row += "]\n";
    print_data(row);
  });
}

void decode_lines(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  read_lines([&](std::string_view line, int64_t number) {
    const nlohmann::json value = parse_line(line, number);
    if (!value.is_array()) refuse("line {}: this is not a JSON array of ids", number);
    Tokens ids;
    for (const nlohmann::json& id : value) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= tokenizer.vocab_size())
        refuse("line {}: {} is not a token id from 0 to {}", number,
               id.is_number() ? id.dump() : std::string("a value that is not a number"),
               tokenizer.vocab_size() - 1);
      ids.push_back(id.get<TokenId>());
    }
    const std::string text = tokenizer.decode(ids, false);
    print_data((options.json_lines ? printable_json(nlohmann::json(valid_utf8(text)).dump()) : text) + "\n");
  });
}

void tokenize(const TokenizeOptions& options) {
  const LoadedTokenizer loaded = load_tokenizer(options.model);
  const Tokenizer& tokenizer = *loaded.tokenizer;
  if (options.bos && !tokenizer.bos) refuse("--bos: {} has no beginning-of-text token", options.model);
  if (options.eos && !tokenizer.eos) refuse("--eos: {} has no end-of-text token", options.model);
  if (options.decode)
    decode_lines(tokenizer, options);
  else
    encode_lines(tokenizer, options);
}

}  // namespace

void add_tokenize_command(Program& program) {
  auto options = std::make_shared<TokenizeOptions>();
  add_command(program, "tokenize", "Turn text lines on standard input into token ids, or back",
              {{"--model", options->model,
                "A GGUF file, tokenizer.json, SentencePiece .model, tiktoken file or model folder",
                value_name("MODEL"), kRequired},
               {"--json-lines", options->json_lines,
                "Read and write text as one JSON string per line, which may contain newlines"},
               {"--bos", options->bos, "Put the beginning-of-text token first"},
               {"--eos", options->eos, "Put the end-of-text token last"},
               {"--raw", options->raw, "Do not look for special tokens in the text"},
               {"--decode", options->decode,
                "Read JSON arrays of ids and print their text (special tokens spelled out)"}},
              [options] { tokenize(*options); });
}

}  // namespace sheaf
