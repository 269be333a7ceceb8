#include "io/datasets/convert.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "io/base/table_writer.h"

namespace sheaf {
namespace {

namespace fs = std::filesystem;
using Type = TableColumn::Type;

constexpr size_t kBuffer = 1 << 20;
constexpr size_t kShownValues = 3;

/// JSON's quotes are YAML's too.
std::string yaml_text(const std::string& text) {
  return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// Gathers the attributes that the gold values of an extract dataset name, category by category, and writes
/// them as a schema file: every attribute with its commonest values as its description, and how often it has
/// a value as a comment.
class SchemaWriter {
 public:
  void add(const ordered_json& row) {
    Category& category = categories_[row["category"].get<std::string>()];
    ++category.rows;
    for (const auto& [name, values] : row["gold"].items()) {
      auto found = std::find_if(category.attributes.begin(), category.attributes.end(),
                                [&key = name](const Attribute& a) { return a.name == key; });
      if (found == category.attributes.end())
        found = category.attributes.insert(category.attributes.end(), {name, 0, {}});
      bool any = false;
      for (const ordered_json& value : values) {
        const auto text = value.get<std::string>();
        if (text == "n/a") continue;
        any = true;
        ++found->values[text];
      }
      if (any) ++found->found;
    }
  }

  /// `source` is named in the file's first line.
  std::string text(const std::string& source) const {
    std::string out =
        fmt::format("# The categories and attributes that occur in {}.\n\ncategories:\n", source);
    for (const auto& [name, category] : categories_) {
      out += fmt::format("  {}:  # {} rows\n", yaml_text(name), category.rows);
      if (category.attributes.empty()) out += "    []\n";
      for (const Attribute& attribute : category.attributes) {
        std::vector<std::pair<std::string, int64_t>> values(attribute.values.begin(), attribute.values.end());
        std::stable_sort(values.begin(), values.end(),
                         [](const auto& a, const auto& b) { return a.second > b.second; });
        std::string shown;
        for (size_t i = 0; i < std::min(values.size(), kShownValues); ++i)
          shown += (i == 0 ? "for example " : ", ") + values[i].first;
        out += fmt::format("    - {{name: {}, description: {}}}  # in {} of them\n",
                           yaml_text(attribute.name), yaml_text(shown), attribute.found);
      }
    }
    return out;
  }

 private:
  struct Attribute {
    std::string name;
    int64_t found = 0;                      // rows that hold a value for it
    std::map<std::string, int64_t> values;  // how often each
  };
  struct Category {
    int64_t rows = 0;
    std::vector<Attribute> attributes;  // in the order of their first appearance
  };
  std::map<std::string, Category> categories_;
};

}  // namespace

CorpusWriter::CorpusWriter(const std::string& path, TaskKind task)
    : path_(path), task_(task), lines_path_(path + ".lines.part") {
  if (!path.ends_with(".jsonl") && !path.ends_with(".parquet"))
    refuse("{}: the name of the corpus must end in .jsonl or .parquet", path);
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    real_files().make_folder(folder.string());
  real_files().remove(lines_path_);
  lines_ = real_files().open(lines_path_);
}

CorpusWriter::~CorpusWriter() {
  if (!lines_) return;
  std::error_code ignored;
  fs::remove(lines_path_, ignored);
}

void CorpusWriter::add(const ordered_json& row) {
  documents_ = documents_ || row.contains("documents");
  text_ids_ = text_ids_ || row["id"].is_string();
  buffer_ += row.dump() + "\n";
  if (buffer_.size() < kBuffer) return;
  lines_->append(buffer_);
  buffer_.clear();
}

void CorpusWriter::finish() {
  lines_->append(buffer_);
  buffer_.clear();
  if (!path_.ends_with(".parquet")) {
    lines_.reset();
    real_files().rename(lines_path_, path_);
    return;
  }
  std::vector<TableColumn> columns;
  if (task_ == TaskKind::extract) {
    columns = {{"id", text_ids_ ? Type::text : Type::integer},
               {"category", Type::text},
               {"document", Type::text},
               {"gold", Type::text}};
  } else {
    columns = {{"id", Type::text}, {"context", Type::text}};
    if (documents_) columns.push_back({"documents", Type::texts});
    columns.push_back({"questions", Type::questions});
  }
  const std::string staged = path_ + ".part";
  real_files().remove(staged);
  write_parquet_lines(lines_path_, columns, *real_files().open(staged));
  real_files().rename(staged, path_);
}

Converted convert_dataset(const std::string& format, const std::string& from, const std::string& to,
                          const ConvertSettings& settings,
                          const std::function<void(const DatasetRow&)>& on_reject) {
  const auto reader = open_dataset(format, from, settings.dataset);
  const TaskKind task = find_dataset_format(format)->task;
  if (!settings.schema.empty() && task != TaskKind::extract)
    refuse("--schema works only with datasets of attributes; {} has questions", format);
  CorpusWriter writer(to, task);
  SchemaWriter schema;
  Converted done;
  while (settings.limit == 0 || done.rows + done.rejects < settings.limit) {
    const auto row = reader->next();
    if (!row) break;
    if (!row->error.empty()) {
      ++done.rejects;
      on_reject(*row);
      continue;
    }
    ++done.rows;
    writer.add(row->cells);
    if (task == TaskKind::extract) {
      schema.add(row->cells);
      continue;
    }
    for (const auto& question : row->cells["questions"]) {
      ++done.questions;
      if (question.contains("answers") && question["answers"].empty()) ++done.unanswerable;
    }
  }
  if (done.rows == 0 && done.rejects == 0) refuse("{}: the file has no entries; nothing was written", from);
  if (done.rows == 0)
    refuse("{}: none of its {} entries can be read as {}; nothing was written", from, done.rejects, format);
  writer.finish();
  if (!settings.schema.empty()) {
    const std::filesystem::path path(settings.schema);
    if (!path.parent_path().empty()) real_files().make_folder(path.parent_path().string());
    write_whole(real_files(), path.has_parent_path() ? path.parent_path().string() : ".",
                path.filename().string(), schema.text(std::filesystem::path(from).filename().string()));
  }
  return done;
}

}  // namespace sheaf
