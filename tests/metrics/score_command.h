#pragma once
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf::test {

inline constexpr const char* kGold =
    R"({"id": "q1", "answers": ["the Old Mill", "a mill"]}
{"id": "q2", "answers": ["1994"]}
{"id": "q3", "answers": []}
{"id": 4, "answers": ["Ann"]}
)";

class ScoreCommand : public testing::Test {
 protected:
  ScoreCommand() { scratch_.write("gold.jsonl", kGold); }

  std::string write(const std::string& name, const std::string& text) const {
    scratch_.write(name, text);
    return scratch_.path(name);
  }

  Ran run(const std::string& arguments) const { return run_sheaf(scratch_, "score " + arguments); }

  nlohmann::json score(const std::string& arguments) const {
    const Ran ran = run(arguments + " --json");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return nlohmann::json::parse(ran.out, nullptr, false);
  }

  void expect_refusal(const std::string& arguments, const std::string& part) const {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }

  void expect_told(const std::string& arguments, const std::string& part) const {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  }

  std::string squad() const { return "--metric squad --gold " + scratch_.path("gold.jsonl") + " --pred "; }

  TempFolder scratch_;
};

}  // namespace sheaf::test
