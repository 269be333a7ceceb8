#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

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

/// Lines of standard input, without their newline; they may hold NUL.
class LineReader {
 public:
  LineReader() = default;
  ~LineReader() { std::free(buffer_); }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool next() {
    const ssize_t got = getline(&buffer_, &capacity_, stdin);
    if (got < 0) {
      if (std::ferror(stdin)) fail("standard input: read error");
      return false;
    }
    ++number_;
    line_ = {buffer_, static_cast<size_t>(got)};
    if (line_.ends_with('\n')) line_.remove_suffix(1);
    return true;
  }
  std::string_view line() const { return line_; }
  int64_t number() const { return number_; }

 private:
  char* buffer_ = nullptr;
  size_t capacity_ = 0;
  std::string_view line_;
  int64_t number_ = 0;
};

nlohmann::json parse_line(const LineReader& lines) {
  std::string trouble;
  auto value = read_json(lines.line(), {}, &trouble);
  if (!trouble.empty()) refuse("line {}: {}", lines.number(), trouble);
  return value;
}

void encode_lines(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  LineReader lines;
  Tokens ids;
  std::string row;
  while (lines.next()) {
    ids.clear();
    if (options.bos) ids.push_back(*tokenizer.bos);
    if (options.json_lines) {
      const nlohmann::json value = parse_line(lines);
      if (!value.is_string()) refuse("line {}: this is not a JSON string", lines.number());
      tokenizer.encode(value.get_ref<const std::string&>(), !options.raw, ids);
    } else {
      tokenizer.encode(lines.line(), !options.raw, ids);
    }
    if (options.eos) ids.push_back(*tokenizer.eos);
    row = "[";
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i > 0) row += ", ";
      const fmt::format_int number(ids[i]);
      row.append(number.data(), number.size());
    }
    row += "]\n";
    print_data(row);
  }
}

void decode_lines(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  LineReader lines;
  while (lines.next()) {
    const nlohmann::json value = parse_line(lines);
    if (!value.is_array()) refuse("line {}: this is not a JSON array of ids", lines.number());
    Tokens ids;
    for (const nlohmann::json& id : value) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= tokenizer.vocab_size())
        refuse("line {}: {} is not a token id from 0 to {}", lines.number(),
               id.is_number() ? id.dump() : std::string("a value that is not a number"),
               tokenizer.vocab_size() - 1);
      ids.push_back(id.get<TokenId>());
    }
    const std::string text = tokenizer.decode(ids, false);
    print_data((options.json_lines ? printable_json(nlohmann::json(valid_utf8(text)).dump()) : text) + "\n");
  }
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

void add_tokenize_command(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command =
      app.add_subcommand("tokenize", "Turn text lines on standard input into token ids, or back");
  command
      ->add_option("--model", options->model,
                   "A GGUF file, tokenizer.json, SentencePiece .model, tiktoken file or model folder")
      ->type_name("MODEL")
      ->required();
  command->add_flag("--json-lines", options->json_lines,
                    "Read and write text as one JSON string per line, which may contain newlines");
  command->add_flag("--bos", options->bos, "Put the beginning-of-text token first");
  command->add_flag("--eos", options->eos, "Put the end-of-text token last");
  command->add_flag("--raw", options->raw, "Do not look for special tokens in the text");
  command->add_flag("--decode", options->decode,
                    "Read JSON arrays of ids and print their text (special tokens spelled out)");
  command->callback([options] { tokenize(*options); });
}

}  // namespace sheaf
