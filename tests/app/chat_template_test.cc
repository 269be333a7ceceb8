// What the program says and records of the chat template that it uses.
#include <gtest/gtest.h>

#include "tests/app/program.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::run_sheaf;

const std::string kChatml =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{{ '<|im_start|>assistant\\n' }}";

class ChatTemplateOfAJob : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("corpus.jsonl", "{\"c\": \"Box\", \"q\": \"What?\"}\n");
    scratch_.write("job.yaml", "model: {path: " + model_ +
                                   "}\ninput: {path: " + scratch_.path("corpus.jsonl") +
                                   ", context: c, question: q}\ntask: {kind: ask}\nmethod: {name: ippd, "
                                   "max_value_tokens: 4}\nengine: {device: cpu}\noutput: {path: " +
                                   scratch_.path("out") + "}\n");
  }

  void give_template(const std::string& jinja) const { scratch_.write("model/chat_template.jinja", jinja); }
  Ran run(const std::string& more) const {
    return run_sheaf(scratch_, "run " + scratch_.path("job.yaml") + more);
  }
  std::string used() const {
    return json::parse(read_text(scratch_.path("out/report.json"))).at("chat").get<std::string>();
  }

  const TempFolder scratch_;
  const std::string model_ = test::make_tiny_model(scratch_);
};

TEST_F(ChatTemplateOfAJob, IsShownByInspectAndRecorded) {
  give_template(kChatml);
  const Ran same = run_sheaf(scratch_, "inspect " + model_);
  EXPECT_NE(same.out.find("chat        chatml: the model's own template renders the same\n"),
            std::string::npos)
      << same.out;
  const Ran ran = run(" --restart");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err.find("template"), std::string::npos) << ran.err;
  EXPECT_EQ(used(), "chatml");

  give_template("{% for m in messages %}{{ '[' + m.role + ']' + m.content + ';' }}{% endfor %}[assistant]");
  const json own = json::parse(run_sheaf(scratch_, "inspect --json " + model_).out)["tokenizer"];
  EXPECT_EQ(own["chat_template"], "own");
  EXPECT_EQ(own["chat_template_why"], "read from the model's own template");
  EXPECT_EQ(run(" --restart").exit_code, 0);
  EXPECT_EQ(used(), "own");
}

TEST_F(ChatTemplateOfAJob, OneThatIsNotUnderstoodIsWarnedOf) {
  give_template("{{ '<|im_start|>' }}{{ messages | tojson }}");
  for (const char* command : {"run", "plan", "estimate"}) {
    const Ran ran = run_sheaf(scratch_, std::string(command) + " " + scratch_.path("job.yaml"));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE((ran.out + ran.err).find("not understood (line 1: the filter \"tojson\" is not supported)"),
              std::string::npos)
        << command << ran.out << ran.err;
  }
  EXPECT_EQ(used(), "chatml");
  const Ran named = run(" --restart --set model.chat=chatml");
  EXPECT_EQ(named.err.find("template"), std::string::npos) << named.err;
}

TEST_F(ChatTemplateOfAJob, InAFileIsPartOfTheFingerprint) {
  const std::string file = scratch_.write("mine.yaml", "user_open: '<'\nturn: '>'\n");
  const std::string set = " --set model.chat=" + file;
  ASSERT_EQ(run(set).exit_code, 0);
  EXPECT_EQ(used(), "mine");
  EXPECT_NE(run(set).err.find("already finished"), std::string::npos);
  scratch_.write("mine.yaml", "user_open: '<<'\nturn: '>'\n");
  const Ran changed = run(set);
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_NE(changed.err.find("the chat template (model.chat) changed"), std::string::npos) << changed.err;

  scratch_.write("mine.yaml", "user_open: '<'\n");
  const Ran wrong = run(set);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("mine.yaml:1: "), std::string::npos) << wrong.err;
  const Ran missing = run(" --set model.chat=none.yaml");
  EXPECT_NE(missing.err.find("model.chat: no such file or folder: none.yaml"), std::string::npos)
      << missing.err;
}

}  // namespace
}  // namespace sheaf
