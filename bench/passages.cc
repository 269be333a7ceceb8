// How long passages take to index and to search, and how well BM25 finds what a question needs:
//   ninja -C build/release bench_passages
//   build/release/bench/bench_passages speed 1000000 /tmp/passages      so many made-up passages, in that
//   folder build/release/bench/bench_passages recall hotpot_dev_distractor_v1.json /tmp/passages
// The passages of `speed` have 100 words each, drawn from 500,000 by Zipf's law; a question has 12 words of
// one passage. `recall` pools the paragraphs of all questions of HotpotQA (or of MuSiQue, by its field
// "paragraphs") and prints the share of needed paragraphs among the first N, and of questions with all of
// theirs.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "io/base/process.h"
#include "io/passages/build_index.h"

namespace sheaf {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

constexpr size_t kWords = 500'000, kPassageWords = 100, kQuestions = 1000, kQuestionWords = 12, kBest = 20;

/// How long some work takes: on the clock, and of processors, which other programs do not disturb as much.
json seconds_of(const auto& work) {
  const auto begun = std::chrono::steady_clock::now();
  const double used = process_use().seconds;
  work();
  return {{"clock", std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()},
          {"processors", process_use().seconds - used}};
}

std::string made_up_word(size_t number) {
  std::string word;
  for (number += 26; number > 0; number /= 26) word += static_cast<char>('a' + number % 26);
  return word;
}

Texts write_passages(size_t count, const std::string& path) {
  std::mt19937_64 random(1);
  std::vector<double> upto(kWords);
  double all = 0;
  for (size_t i = 0; i < kWords; ++i) upto[i] = all += 1 / static_cast<double>(i + 1);
  std::uniform_real_distribution<double> any(0, all);
  std::ofstream file(path);
  Texts questions;
  for (size_t i = 0; i < count; ++i) {
    std::string text, question;
    for (size_t word = 0; word < kPassageWords; ++word) {
      const auto at = std::ranges::lower_bound(upto, any(random)) - upto.begin();
      text += made_up_word(static_cast<size_t>(at)) + (word + 1 < kPassageWords ? " " : ".");
      if (word < kQuestionWords) question = text;
    }
    file << "{\"id\": " << i << ", \"title\": \"Passage " << i << "\", \"text\": \"" << text << "\"}\n";
    if (i % (count / std::min(count, kQuestions)) == 0 && questions.size() < kQuestions)
      questions.push_back(question + "?");
  }
  return questions;
}

void time_passages(size_t count, const std::string& folder) {
  const std::string path = folder + "/passages.jsonl";
  const Texts questions = write_passages(count, path);
  const int threads = usable_cores().threads();
  std::filesystem::remove(path + ".bm25");
  Texts notices;
  std::shared_ptr<const PassageIndex> index;
  const json made = seconds_of([&] { index = open_passages({path, {}, {}}, notices); });
  index.reset();
  const json opened = seconds_of([&] { index = open_passages({path, {}, {}}, notices); });
  std::atomic<size_t> next = 0, first = 0;
  const json searched = seconds_of([&] {
    std::vector<std::jthread> searchers;
    for (int i = 0; i < threads; ++i)
      searchers.emplace_back([&] {
        for (size_t at; (at = next++) < questions.size();) {
          const auto found = index->search(questions[at], kBest);
          const std::string text = index->passage(found.at(0).passage).text;
          first += text.starts_with(questions[at].substr(0, questions[at].size() - 1));
        }
      });
  });
  fmt::print("{}\n", json{{"passages", count},
                          {"threads", threads},
                          {"corpus_bytes", std::filesystem::file_size(path)},
                          {"index_bytes", std::filesystem::file_size(path + ".bm25")},
                          {"words", index->terms()},
                          {"make_seconds", made},
                          {"open_seconds", opened},
                          {"questions", questions.size()},
                          {"search_seconds", searched},
                          {"own_passage_first", first.load()}}
                         .dump());
}

/// What is in a file of JSON lines, or of one JSON list.
std::vector<json> read_questions(const std::string& path) {
  std::ifstream file(path);
  std::vector<json> rows;
  if (file.peek() == '[') return json::parse(file).get<std::vector<json>>();
  for (std::string line; std::getline(file, line);) rows.push_back(json::parse(line));
  return rows;
}

void measure_recall(const std::string& dataset, const std::string& folder) {
  const std::string path = folder + "/pooled.jsonl";
  std::map<std::string, size_t> numbers;  // of a paragraph
  std::vector<std::pair<std::string, std::set<std::string>>> questions;
  {
    std::ofstream file(path);
    const auto add = [&](const std::string& title, const std::string& text) {
      const std::string name = title + "\n" + text;
      if (numbers.try_emplace(name, numbers.size()).second)
        file << json{{"id", name}, {"title", title}, {"text", text}}.dump() << "\n";
      return name;
    };
    for (const json& row : read_questions(dataset)) {
      auto& [question, needed] = questions.emplace_back(row.at("question"), std::set<std::string>());
      for (const json& paragraph : row.value("paragraphs", json::array())) {
        const std::string name = add(paragraph.at("title"), paragraph.at("paragraph_text"));
        if (paragraph.at("is_supporting")) needed.insert(name);
      }
      for (const json& paragraph : row.value("context", json::array())) {
        std::string text;
        for (const json& sentence : paragraph[1]) text += sentence.get<std::string>();
        const std::string name = add(paragraph[0], text);
        for (const json& fact : row.at("supporting_facts"))
          if (fact[0] == paragraph[0]) needed.insert(name);
      }
    }
  }
  Texts notices;
  const auto index = open_passages({path, {}, {}}, notices);
  fmt::print("{} questions, {} passages pooled\n  N   needed passages found   questions with all of theirs\n",
             questions.size(), index->passages());
  for (const size_t most : {1, 2, 4, 8, 16, 32, 64, 128}) {
    size_t found = 0, needed = 0, whole = 0;
    for (const auto& [question, wanted] : questions) {
      size_t here = 0;
      for (const auto& each : index->search(question, most))
        here += wanted.contains(index->passage(each.passage).id.get<std::string>());
      found += here;
      needed += wanted.size();
      whole += here == wanted.size();
    }
    fmt::print("{:>3}   {:>20.1f} %   {:>26.1f} %\n", most,
               100 * static_cast<double>(found) / static_cast<double>(needed),
               100 * static_cast<double>(whole) / static_cast<double>(questions.size()));
  }
}

}  // namespace
}  // namespace sheaf

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() != 3 || (words[0] != "speed" && words[0] != "recall")) {
    fmt::print(stderr,
               "usage: bench_passages speed COUNT FOLDER\n       bench_passages recall DATASET FOLDER\n");
    return 2;
  }
  try {
    std::filesystem::create_directories(words[2]);
    if (words[0] == "speed")
      sheaf::time_passages(std::stoul(words[1]), words[2]);
    else
      sheaf::measure_recall(words[1], words[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_passages: {}\n", error.what());
    return 1;
  }
}
