#include "io/base/foreign_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>

#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/line_reader.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;

bool fits_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

/// A word of a shell command.
std::string shell_word(const std::string& text) {
  if (std::ranges::all_of(text, [](char c) { return fits_name(c) || c == '/' || c == ':'; })) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// The name of the converted file, which must not be that of the file itself. `ending`: empty where it stays.
std::string converted_name(fs::path path, std::string ending = {}) {
  if (path.extension() == ".gz" || path.extension() == ".zst") path.replace_extension();
  if (ending.empty()) ending = path.extension().string();
  if (ending == path.extension()) ending = ".new" + ending;
  return shell_word(path.replace_extension(ending).string());
}

/// A shell line in which `command` reads the file, unpacked.
std::string reading(const std::string& command, const std::string& path, const std::string& to) {
  const std::string file = shell_word(path);
  if (path.ends_with(".gz")) return fmt::format("zcat {} | {} > {}", file, command, to);
  if (path.ends_with(".zst")) return fmt::format("zstd -dc {} | {} > {}", file, command, to);
  return fmt::format("{} < {} > {}", command, file, to);
}

std::string convert_array(const std::string& path) {
  return "convert it: " +
         reading("python3 -c \"import json, sys; [print(json.dumps(row)) for row in json.load(sys.stdin)]\"",
                 path, converted_name(path, ".jsonl"));
}

/// Objects that begin at the beginning of a line; what is inside them is indented.
std::string convert_objects(const std::string& path) {
  return "convert it: " +
         reading(
             "python3 -c \"import json, re, sys; [print(json.dumps(json.loads(one))) for one in "
             "re.split(r'\\n(?={)', sys.stdin.read().strip())]\"",
             path, converted_name(path, ".jsonl"));
}

std::string convert_excel(const std::string& path) {
  return fmt::format(
      "convert it (with pandas and openpyxl): python3 -c \"import pandas, sys; "
      "pandas.read_excel(sys.argv[1]).to_json(sys.argv[2], orient='records', lines=True)\" {} {}",
      shell_word(path), converted_name(path, ".jsonl"));
}

/// A shell loop over documents that a tool makes text of, each a JSON line.
std::string convert_documents(const std::string& path, const std::string& ending) {
  const std::string tool = ending == ".pdf" ? "pdftotext \"$f\" -" : "pandoc -t plain \"$f\"";
  const fs::path folder = fs::path(path).parent_path();
  const std::string files =
      (folder.empty() ? std::string() : shell_word(folder.string()) + "/") + "*" + ending;
  return fmt::format(
      "extract the text of such files first, with {}: for f in {}; do {} | python3 -c \"import json, sys; "
      "print(json.dumps({{'id': sys.argv[1], 'text': sys.stdin.read()}}))\" \"$f\"; done > documents.jsonl",
      ending == ".pdf" ? "pdftotext (poppler-utils)" : "pandoc", files, tool);
}

/// How to fetch what a URL of Hugging Face names: OWNER/NAME, and perhaps more.
std::string fetch_advice(std::string_view url) {
  for (const std::string_view head : {"https://huggingface.co/", "hf://"}) {
    if (!url.starts_with(head)) continue;
    url.remove_prefix(head.size());
    const bool dataset = url.starts_with("datasets/");
    if (dataset) url.remove_prefix(9);
    const size_t slash = url.find('/');
    if (slash == std::string_view::npos) return {};
    const size_t end = std::min(url.find('/', slash + 1), url.size());
    return fmt::format("hf download {}{} --local-dir {}", shell_word(std::string(url.substr(0, end))),
                       dataset ? " --repo-type dataset" : "",
                       shell_word(std::string(url.substr(slash + 1, end - slash - 1))));
  }
  return {};
}

std::string_view begin_of_text(std::string_view first) {
  if (first.starts_with(kByteOrderMark)) first.remove_prefix(kByteOrderMark.size());
  return first.substr(std::min(first.find_first_not_of(" \t\r\n"), first.size()));
}

/// Whether another line of an object follows, which is indented or begins with a key.
bool goes_on(std::string_view rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of("\r\n"), rest.size()));
  return rest.starts_with(' ') || rest.starts_with('\t') || rest.starts_with('"');
}

/// A URL without what may be a key: the user's part, and signatures after a question mark.
std::string without_secrets(std::string url) {
  url = url.substr(0, url.find('?'));
  const size_t host = url.find("://") + 3, at = url.find('@', host);
  if (at < url.find('/', host)) url.erase(host, at + 1 - host);
  return url;
}

std::string copy_advice(const std::string& url) {
  if (std::string fetch = fetch_advice(url); !fetch.empty()) return fetch;
  const std::string word = shell_word(url);
  if (url.starts_with("s3://")) return fmt::format("aws s3 cp {} .", word);
  if (url.starts_with("gs://")) return fmt::format("gcloud storage cp {} .", word);
  if (url.starts_with("http://") || url.starts_with("https://")) return fmt::format("curl -LO {}", word);
  return "";
}

/// What to do about UTF-16, by the first bytes of a file; empty where it is none.
std::string describe_utf16(const std::string& path, std::string_view first) {
  const bool marked = first.starts_with("\xff\xfe") || first.starts_with("\xfe\xff");
  const size_t zero = first.substr(0, 2).find('\0');
  if (!marked && zero == first.npos) return {};
  return "the file is UTF-16, not UTF-8; " + convert_text(path, marked      ? "UTF-16"
                                                                : zero == 0 ? "UTF-16BE"
                                                                            : "UTF-16LE");
}

}  // namespace

std::string describe_missing(const std::string& path) {
  if (path.find("://") != std::string::npos) {
    const std::string shown = without_secrets(path), command = copy_advice(shown);
    return fmt::format(
        "{}: sheaf cannot use this URI here (only corpora and runs may be s3://, gs://, az://, abfs://, "
        "hdfs:// or file://); copy it to this machine first{}{}",
        shown, command.empty() ? "" : ": ", command);
  }
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 && errno == EACCES)
    return path + ": permission denied; a folder on this path is closed to you";
  return "no such file or folder: " + path;
}

std::string download_advice(std::string_view name, Hosted what) {
  static constexpr std::array<std::string_view, 12> kFileEndings = {
      ".gguf", ".safetensors", ".jsonl", ".ndjson", ".json", ".parquet",
      ".csv",  ".tsv",         ".xlsx",  ".txt",    ".gz",   ".zst"};
  const size_t slash = name.find('/');
  if (what == Hosted::model && name.substr(name.rfind('/') + 1) == "smollm2.gguf")
    return "`sheaf get-model` fetches the default model";
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == name.size() || name.starts_with('.') ||
      std::ranges::any_of(kFileEndings, [&](std::string_view ending) { return name.ends_with(ending); }) ||
      !std::ranges::all_of(name, [&](const char& c) { return fits_name(c) || &c == &name[slash]; }))
    return {};
  const std::string_view own = name.substr(slash + 1);
  if (what == Hosted::dataset)
    return fmt::format(
        "if this is the name of a dataset on Hugging Face, download it with `hf download {0} --repo-type "
        "dataset --local-dir data/{1}` and name its files, such as data/{1}/*.parquet",
        name, own);
  return fmt::format(
      "if this is the name of {} on Hugging Face, download it with `hf download {} "
      "--local-dir models/{}` and name that folder",
      what == Hosted::model ? "a model" : "an adapter", name, own);
}

std::string convert_advice(const std::string& path) {
  const std::string ending = small_letters(fs::path(path).extension().string());
  if (ending == ".xlsx" || ending == ".xls") return convert_excel(path);
  if (ending == ".pdf" || ending == ".docx" || ending == ".html" || ending == ".epub")
    return convert_documents(path, ending);
  if (ending == ".bin" || ending == ".pt" || ending == ".pth") {
    const fs::path folder = fs::path(path).parent_path();
    return convert_weights(folder.empty() ? "." : folder.string());
  }
  if (ending == ".json")
    return "if it has an object on each line, set input.format: jsonl; if it is one array, " +
           convert_array(path);
  return {};
}

std::string convert_weights(const std::string& folder) {
  const std::string to = folder + "-safetensors";
  return fmt::format(
      "sheaf does not read PyTorch's pickled weights, which can run code; convert them (with transformers "
      "and "
      "torch): python3 -c \"import sys, transformers as t; "
      "[each.from_pretrained(sys.argv[1]).save_pretrained("
      "sys.argv[2]) for each in (t.AutoModelForCausalLM, t.AutoTokenizer)]\" {} {}; then name {}",
      shell_word(folder), shell_word(to), to);
}

std::string convert_text(const std::string& path, std::string_view encoding) {
  return "convert it: " + reading(fmt::format("iconv -f {} -t UTF-8", encoding), path, converted_name(path));
}

std::string convert_line_ends(const std::string& path) {
  return "convert it: " + reading("tr '\\r' '\\n'", path, converted_name(path));
}

std::string describe_no_csv(const std::string& path, std::string_view first) {
  if (std::string wide = describe_utf16(path, first); !wide.empty()) return wide;
  if (first.starts_with("PAR1"))
    return fmt::format("the file is Parquet, not CSV; rename it: mv {} {} (or set input.format: parquet)",
                       shell_word(path), shell_word(fs::path(path).replace_extension(".parquet").string()));
  if (first.starts_with("PK\x03\x04"))
    return "the file is packed, perhaps an Excel sheet, not CSV; save it as CSV (UTF-8) where it was made";
  first = begin_of_text(first);
  if (first.starts_with("{\"") || first.starts_with("[{"))
    return fmt::format("the file is JSON, not CSV; rename it: mv {} {} (or set input.format: jsonl)",
                       shell_word(path), converted_name(path, ".jsonl"));
  return {};
}

std::string describe_foreign(const std::string& path, std::string_view first) {
  if (std::string wide = describe_utf16(path, first); !wide.empty()) return wide;
  if (first.starts_with("PAR1")) return "the file is Parquet; set input.format: parquet";
  first = begin_of_text(first);
  if (first.starts_with('['))
    return "the file is one JSON array, not an object on each line; " + convert_array(path);
  const std::string_view line = first.substr(0, first.find('\n'));
  if (first.starts_with('{'))
    return line.find('}') == line.npos && goes_on(first.substr(line.size()))
               ? "the file has objects over several lines, not one on each line; " + convert_objects(path)
               : std::string();
  if (line.find_first_of("\t;,") != line.npos)
    return "the file looks like CSV, not JSON lines; set input.format: csv";
  return {};
}

std::string describe_no_parquet(const std::string& path, std::string_view first) {
  first = begin_of_text(first);
  const std::string_view line = first.substr(0, first.find('\n'));
  if (first.starts_with('{') && line.find('}') != line.npos)
    return fmt::format(
        "the file has JSON lines, not Parquet; rename it: mv {} {} (or set input.format: jsonl)",
        shell_word(path), converted_name(path, ".jsonl"));
  return first.starts_with("PAR") ? std::string() : describe_foreign(path, first);
}

}  // namespace sheaf
