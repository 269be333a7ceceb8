// The table of job keys: what is documented, read and compared goes by it.
#include "io/files/job_keys.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "io/base/file_layer.h"
#include "io/files/job_file.h"
#include "io/files/job_fingerprint.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

const char* const kSource = SHEAF_SOURCE_DIR;

/// The lines of the tables of docs/job.md by the section that they are in.
std::map<std::string, std::vector<std::string>> documented_rows() {
  std::map<std::string, std::vector<std::string>> rows;
  std::istringstream text(read_whole(std::string(kSource) + "/docs/job.md").value());
  std::string section;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (line.starts_with("| `")) rows[section].push_back(line);
  }
  return rows;
}

std::string in_code(std::string_view name) {
  return "`" + std::string(name) + "`";
}

TEST(JobKeys, AreAllDocumentedWithTheirDefaultsAndWords) {
  const auto sections = documented_rows();
  for (const JobKey& key : job_keys()) {
    const std::string section = key.path.substr(0, key.path.find('.'));
    const std::string rest = key.path.substr(section.size() + 1);
    ASSERT_TRUE(sections.contains(section)) << key.path;
    const std::vector<std::string>& rows = sections.at(section);
    auto row = std::ranges::find_if(rows, [&](const auto& each) {
      const std::string first = each.substr(0, each.find(" | "));
      return first.find(in_code(rest)) != std::string::npos;
    });
    const bool of_its_own = row != rows.end();
    if (!of_its_own)  // a key of a map, which is documented as one
      row = std::ranges::find_if(rows, [&](const auto& each) {
        return each.find(in_code(key.name())) != std::string::npos ||
               each.find(std::string(key.name()) + ",") != std::string::npos ||
               each.find("{" + std::string(key.name())) != std::string::npos;
      });
    ASSERT_NE(row, rows.end()) << key.path << " is not in docs/job.md";
    if (!of_its_own || key.takes.required || std::holds_alternative<std::monostate>(key.member)) continue;
    if (std::holds_alternative<WordMember>(key.member) && row->find("the same") == std::string::npos)
      for (const std::string& word : key.words()) {
        if (key.path == "model.cpu_dtype" && only_on_gpu(*read_word<Precision>(word))) continue;
        EXPECT_NE(row->find(in_code(word)), std::string::npos) << key.path << ": " << word;
      }
    const ordered_json value = key.value(Job());
    if (value.is_number() || value.is_boolean()) {
      EXPECT_NE(row->find("| " + value.dump().substr(0, value.dump().find(".0")) + " |"), std::string::npos)
          << key.path << " is " << value << " by default";
    }
  }
}

TEST(JobKeys, HaveOneLineOfHelp) {
  std::set<std::string> paths;
  for (const JobKey& key : job_keys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path << " is there twice";
    EXPECT_GT(key.help.size(), 10u) << key.path;
    EXPECT_EQ(key.help.find('\n'), std::string::npos) << key.path;
    EXPECT_FALSE(key.type().empty()) << key.path;
  }
}

/// A job with one more key is read: the key is known, whatever becomes of its value.
TEST(JobKeys, AreAllRead) {
  const YamlPtr root =
      parse_yaml("job",
                 "{model: {path: m}, input: {path: i, context: c, question: q}, task: {kind: ask}, "
                 "method: {name: standard}, output: {path: o}}");
  for (const JobKey& key : job_keys()) {
    try {
      read_job("job", root, set_options({key.path + "={x: y}"}), false);
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("unknown key \"" + std::string(key.name()) + "\""), std::string::npos) << text;
    }
  }
}

TEST(JobKeys, DecideWhatAFingerprintHolds) {
  const ordered_json rows = job_settings(Job(), Decides::rows),
                     answers = job_settings(Job(), Decides::answers);
  EXPECT_TRUE(changed_settings(rows).empty());
  int64_t count = 0;
  for (const JobKey& key : job_keys()) {
    const size_t dot = key.path.find('.');
    const auto holds = [&](const ordered_json& settings) {
      return settings.contains(key.path.substr(0, dot)) &&
             settings.at(key.path.substr(0, dot)).contains(key.path.substr(dot + 1));
    };
    EXPECT_EQ(holds(rows), key.decides == Decides::rows || key.decides == Decides::answers) << key.path;
    EXPECT_EQ(holds(answers), key.decides == Decides::answers) << key.path;
    count += holds(answers) ? 1 : 0;
  }
  EXPECT_GT(count, 20);
  Job job;
  job.method.contrast = 0.5f;
  job.engine.kv_store.bits = 8;  // of no store
  EXPECT_EQ(changed_settings(job_settings(job, Decides::rows)), std::vector<std::string>{"method.contrast"});
  job.engine.kv_store.path = "kv";
  EXPECT_EQ(job_settings(job, Decides::answers).at("engine").at("kv_store.bits"), 8);
}

}  // namespace
}  // namespace sheaf
