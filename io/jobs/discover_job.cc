#include "io/jobs/discover_job.h"

#include <algorithm>
#include <filesystem>
#include <fmt/ranges.h>
#include <map>
#include <unordered_map>

#include "core/base/random_stream.h"
#include "core/task/prompt_template.h"
#include "core/text/spelling.h"
#include "io/base/file_layer.h"
#include "io/base/store_uri.h"
#include "io/base/yaml_reader.h"
#include "io/corpus/column_facts.h"
#include "io/corpus/corpus.h"
#include "io/files/batch_request.h"
#include "io/files/predictions.h"

namespace sheaf {
namespace {

constexpr size_t kLongestProduct = 1000;  // bytes of a product's text that a prompt shows
constexpr size_t kMostNames = 10'000;     // categories of a corpus
constexpr size_t kLongestCategory = 200;  // bytes, as in a schema file
constexpr size_t kShownExamples = 5;
constexpr int32_t kPromptTokens = 32768;

/// A product of the sample.
struct Shown {
  uint64_t rank = 0;   ///< random: the lowest of a category are shown
  int64_t record = 0;  ///< its number in the corpus
  std::string text;
};

struct Sampled {
  std::string name;
  int64_t records = 0;
  std::vector<Shown> shown = {};  ///< in the order of the corpus once all is read
};

/// Products of each category, chosen by seed and number, so that a corpus has the same sample however it is
/// read.
class Sample {
 public:
  Sample(const Job& job, const DiscoverSettings& settings) : job_(job), settings_(settings) {}

  /// False where it was interrupted.
  bool read(DiscoverEnd& end) {
    const Schema any;
    const auto corpus = open_corpus(job_, &any);
    for (int64_t number = corpus->position(); auto next = corpus->next(); number = corpus->position()) {
      if (*job_.stop) return false;
      if (const auto* reject = std::get_if<Reject>(&*next)) {
        if (end.rejects == 0)
          end.first_reject = fmt::format("{}:{}: {}", reject->place.file, reject->place.row, reject->reason);
        end.rejects += reject->records;
      } else {
        add(std::get<Record>(*next), number, end);
      }
    }
    return true;
  }

  std::vector<Sampled> take(DiscoverEnd& end) {
    if (all_.empty() && end.without_category > 0)
      refuse("{}: column \"{}\" names no category: it is blank or longer than {} bytes in every record",
             job_.input.path, job_.input.category, kLongestCategory);
    if (all_.empty())
      refuse("{}: no record can be read{}", job_.input.path,
             end.rejects > 0 ? "; the first: " + end.first_reject : "");
    std::vector<size_t> order(all_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return all_[i].records; });
    const auto most = static_cast<size_t>(settings_.categories);
    end.further_categories = std::max<int64_t>(0, std::ssize(order) - static_cast<int64_t>(most));
    order.resize(std::min(order.size(), most));
    std::ranges::sort(order);
    std::vector<Sampled> taken;
    for (const size_t i : order) {
      std::ranges::sort(all_[i].shown, {}, &Shown::record);
      taken.push_back(std::move(all_[i]));
    }
    return taken;
  }

 private:
  void add(Record& record, int64_t number, DiscoverEnd& end) {
    std::string name = job_.input.category.empty() ? only_category() : record.category;
    if (name.find_first_not_of(" \t\r\n") == std::string::npos || name.size() > kLongestCategory) {
      ++end.without_category;
      return;
    }
    const auto [found, fresh] = places_.try_emplace(name, all_.size());
    if (fresh && all_.size() == kMostNames)
      refuse(
          "{}: column \"{}\" has more than {} different values; set input.category to the column with the "
          "category, or leave it out where all records are of one category",
          job_.file, job_.input.category, kMostNames);
    if (fresh) all_.push_back({std::move(name)});
    Sampled& category = all_[found->second];
    ++category.records;
    const Shown shown{mix(settings_.seed, static_cast<uint64_t>(number)), number, {}};
    auto& heap = category.shown;
    const bool full = std::ssize(heap) == settings_.products;
    if (full && heap.front().rank <= shown.rank) return;
    if (full) {
      std::ranges::pop_heap(heap, {}, &Shown::rank);
      heap.pop_back();
    }
    heap.push_back(shown);
    heap.back().text = shorten_text(record.document, kLongestProduct);
    std::ranges::push_heap(heap, {}, &Shown::rank);
  }

  /// Of a corpus without a column for it: the name of its file.
  std::string only_category() const {
    const std::string stem = std::filesystem::path(job_.input.path).stem().stem().string();
    return stem.empty() || stem.find_first_of("*?[") != std::string::npos ? "Item" : stem;
  }

  const Job& job_;
  const DiscoverSettings& settings_;
  std::vector<Sampled> all_;
  std::unordered_map<std::string, size_t> places_;  ///< by name
};

PromptTemplate read_prompt_file(const std::string& path) {
  if (path.empty()) return PromptTemplate(discover_prompt());
  YamlMap map(read_yaml(path, "a prompt"), "");
  std::string text;
  map.text("request", text);
  map.require("request");
  map.finish();
  const std::string place = fmt::format("{}: request", map.where("request"));
  PromptTemplate words(text, place);
  const std::vector<std::string> known = {"products", "most", "category"};
  for (const std::string& field : words.fields())
    if (std::ranges::find(known, field) == known.end())
      refuse("{}: {{{}}} has no meaning here{}", place, shorten_text(field, 60),
             suggest_spelling(field, known));
  if (!words.has("products")) refuse("{}: {{products}} is missing", place);
  return words;
}

/// The request about some products of a category.
struct Asked {
  std::string id;  ///< "Desk Lamp 2"
  size_t category = 0;
};

class Discovery {
 public:
  Discovery(const Job& job, const DiscoverSettings& settings, RunListener& listener)
      : job_(job), settings_(settings), listener_(listener), words_(read_prompt_file(settings.prompt)) {
    if (job.task.kind != TaskKind::extract)
      refuse("{}: discover finds the attributes of task.kind extract; this job has task.kind {}", job.file,
             word_of(job.task.kind));
    if (job.input.path == "-")
      refuse("{}: discover does not read standard input; set input.path to a file", job.file);
    end_.work = settings.work.empty() ? job.output.path + ".discover" : settings.work;
    if (is_uri(end_.work))
      refuse("{}: output.path is a URI; name a folder of this machine for the replies with --work", job.file);
  }

  DiscoverEnd run() {
    Sample sample(job_, settings_);
    if (!sample.read(end_)) {
      end_.interrupted = "interrupted while reading the corpus";
      return std::move(end_);
    }
    sampled_ = sample.take(end_);
    write_requests();
    RunSettings how;
    how.restart = how.take_finished = true;  // a finished run of the same requests is not run again
    how.allow_empty = true;
    const RunEnd run = run_job(chat_job(), how, listener_);
    if (run.exit_code == 130) {
      end_.interrupted = run.interrupted;
      return std::move(end_);
    }
    read_replies();
    end_.schema = discovered_schema(
        end_.categories,
        fmt::format("Attributes that {} proposed for the categories of {}", asked_model(), job_.input.path));
    check_schema();
    return std::move(end_);
  }

 private:
  const std::string& asked_model() const {
    return settings_.model.empty() ? job_.model.path : settings_.model;
  }

  std::string request(const std::string& id, const Sampled& category, size_t first, size_t last) const {
    std::string products;
    for (size_t i = first; i < last; ++i)
      products += fmt::format("{}<product>\n{}\n</product>", i > first ? "\n" : "", category.shown[i].text);
    const std::string text = words_.fill([&](std::string_view field) {
      return field == "products" ? products
             : field == "most"   ? fmt::to_string(settings_.attributes)
                                 : category.name;
    });
    return batch_request(id, {std::nullopt, {text}}, {{"max_tokens", settings_.reply_tokens}});
  }

  void write_requests() {
    std::string lines;
    for (size_t c = 0; c < sampled_.size(); ++c) {
      const Sampled& category = sampled_[c];
      const size_t size = category.shown.size(), together = static_cast<size_t>(settings_.together);
      for (size_t first = 0; first < size; first += together) {
        asked_.push_back({fmt::format("{} {}", category.name, first / together + 1), c});
        lines += request(asked_.back().id, category, first, std::min(size, first + together));
      }
    }
    real_files().make_folder(end_.work);
    // The run knows its corpus by the time of its last change too.
    if (read_whole(requests()) != lines) write_whole(real_files(), end_.work, "requests.jsonl", lines);
  }

  std::string requests() const { return end_.work + "/requests.jsonl"; }

  Job chat_job() const {
    Job job;
    job.file = job_.file;
    job.model = job_.model;
    job.model.path = asked_model();
    job.model.adapter.clear();  // it was trained for another task
    job.input.path = requests();
    job.input.format = "openai-batch";
    job.input.id = "custom_id";
    job.task.kind = TaskKind::chat;
    job.method.name = "prefix";
    job.method.prompt_tokens = kPromptTokens;
    job.method.max_value_tokens = settings_.reply_tokens;
    job.engine = job_.engine;
    job.engine.kv_store = {};
    job.output.path = end_.work + "/run";
    return job;
  }

  void read_replies() {
    const std::string folder = end_.work + "/run";
    std::unordered_map<std::string, nlohmann::json> rows;
    if (has_rows(folder)) rows = read_predictions(folder).by_id;
    std::vector<std::vector<std::vector<ProposedAttribute>>> replies(sampled_.size());
    for (const Sampled& category : sampled_)
      end_.categories.push_back({category.name, category.records, std::ssize(category.shown)});
    for (const Asked& asked : asked_) {
      DiscoveredCategory& category = end_.categories[asked.category];
      ++category.prompts;
      const auto row = rows.find(asked.id);
      if (row == rows.end()) {
        end_.rejected.push_back(asked.id);
        continue;
      }
      const nlohmann::json& answer = row->second.at("answer");
      auto proposals = read_proposals(answer.is_string() ? answer.get<std::string>() : "");
      if (proposals.empty()) {
        end_.unread.push_back(asked.id);
        continue;
      }
      ++category.read;
      replies[asked.category].push_back(std::move(proposals));
    }
    for (size_t c = 0; c < sampled_.size(); ++c) {
      std::vector<std::string> products;
      for (const Shown& shown : sampled_[c].shown) products.push_back(shown.text);
      DiscoveredCategory& category = end_.categories[c];
      category.attributes = merge_proposals(replies[c], category.name, products);
      category.left_out = std::max<int64_t>(0, std::ssize(category.attributes) - settings_.attributes);
      category.attributes.resize(category.attributes.size() - static_cast<size_t>(category.left_out));
    }
  }

  static bool has_rows(const std::string& folder) {
    return std::ranges::any_of(list_folder(folder),
                               [](const std::string& name) { return name.starts_with("rows-"); });
  }

  /// Nothing is written that jobs could not read.
  void check_schema() const {
    if (std::ranges::all_of(end_.categories, [](const auto& each) { return each.attributes.empty(); })) {
      if (end_.unread.empty())
        refuse("{}: the model answered none of {}; {}/run/rejects.jsonl says why", job_.file,
               counted(std::ssize(asked_), "prompt"), end_.work);
      refuse(
          "{}: no reply of {} has an attribute as <name>…</name> ({}); name a larger model with --model. The "
          "replies are in {}/run",
          job_.file, asked_model(), counted(std::ssize(end_.unread), "prompt"), end_.work);
    }
    try {
      parse_yaml("the schema", end_.schema);
    } catch (const Error& error) {
      refuse("{}; ask about fewer --categories or --attributes", error.what());
    }
  }

  const Job& job_;
  const DiscoverSettings& settings_;
  RunListener& listener_;
  const PromptTemplate words_;
  std::vector<Sampled> sampled_;
  std::vector<Asked> asked_;
  DiscoverEnd end_;
};

/// For a comment, which ends with its line.
std::string in_comment(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::string found_text(const MergedAttribute& attribute, int64_t shown) {
  if (attribute.found.empty()) return attribute.examples == 0 ? "" : "; none of its examples is in a product";
  std::vector<std::string> some(
      attribute.found.begin(),
      attribute.found.begin() + static_cast<ptrdiff_t>(std::min(attribute.found.size(), kShownExamples)));
  return fmt::format("; in {} of {} products: {}", attribute.products, shown, fmt::join(some, ", "));
}

std::string attribute_line(const MergedAttribute& attribute, const DiscoveredCategory& category) {
  std::string line = fmt::format("    - {{name: {}, type: {}", yaml_word(attribute.as.name),
                                 attribute.as.numerical ? "number" : "text");
  if (!attribute.as.description.empty())
    line +=
        fmt::format(", description: {}", nlohmann::json(attribute.as.description)
                                             .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  line += fmt::format("}}  # in {} of {} {}", attribute.replies, category.read,
                      category.read == 1 ? "reply" : "replies");
  if (!attribute.others.empty()) line += fmt::format("; also {}", fmt::join(attribute.others, ", "));
  return in_comment(line + found_text(attribute, category.shown)) + "\n";
}

}  // namespace

std::string discovered_schema(const std::vector<DiscoveredCategory>& categories, const std::string& about) {
  std::string text = fmt::format(
      "# {}.\n"
      "# Edit it before you use it as task.schema: keep what you want to know, and set types and options\n"
      "# (docs/job.md, \"Schema\"). A comment says how many replies propose the attribute, under which "
      "other\n"
      "# names, and which of its examples stand in the products that the model saw.\n\n",
      in_comment(about));
  std::string body;
  for (const DiscoveredCategory& category : categories) {
    const std::string name = in_comment(yaml_word(category.name));
    if (category.attributes.empty()) {
      body += fmt::format("  # {}: no reply gives an attribute ({})\n", name,
                          counted(category.prompts, "prompt"));
      continue;
    }
    body +=
        fmt::format("  {}:  # {} of {} shown\n", name, category.shown, counted(category.records, "product"));
    for (const MergedAttribute& attribute : category.attributes) body += attribute_line(attribute, category);
    if (category.left_out > 0) body += fmt::format("    # and {} more\n", category.left_out);
  }
  return text + "categories:\n" + body;
}

DiscoverEnd discover_attributes(const Job& job, const DiscoverSettings& settings, RunListener& listener) {
  return Discovery(job, settings, listener).run();
}

}  // namespace sheaf
