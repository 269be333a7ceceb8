// Damaged chat templates: they are rendered or not understood, and never crash, hang or eat the memory.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/jinja.h"
#include "core/tokenizer/read_tokenizer.h"
#include "io/base/mapped_file.h"
#include "tests/fuzz.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

const std::vector<std::string_view> kJinjaWords = {"{{",
                                                   "}}",
                                                   "{%",
                                                   "%}",
                                                   "{%-",
                                                   "-%}",
                                                   "{#",
                                                   "#}",
                                                   "{{ x }}",
                                                   "(",
                                                   ")",
                                                   "[",
                                                   "]",
                                                   "[::-1]",
                                                   "{",
                                                   "}",
                                                   "'",
                                                   "\\u00e9",
                                                   "|",
                                                   "| trim",
                                                   "| length",
                                                   "| join(x)",
                                                   ".split('')",
                                                   ".replace('a', x)",
                                                   " not ",
                                                   " in ",
                                                   " is ",
                                                   " defined ",
                                                   " if ",
                                                   " else ",
                                                   " + ",
                                                   " ~ ",
                                                   " // ",
                                                   " % ",
                                                   "range(9)",
                                                   "999999999",
                                                   "-1",
                                                   "messages",
                                                   "loop.last",
                                                   "namespace(x=x)",
                                                   "{% for x in messages %}",
                                                   "{% endfor %}",
                                                   "{% set x = x + x %}",
                                                   "{% set ns.x = ns.x + ns.x %}",
                                                   "{% endif %}"};

TEST(FuzzJinja, TemplatesAreRenderedOrRefused) {
  const auto goldens = nlohmann::json::parse(MappedFile::open("tests/tokenizer/goldens/jinja.json")->text());
  std::vector<std::string> seeds = {
      "{% set ns = namespace(x='', n=0) %}{% for m in messages[::-1] %}{% if m.role == 'user' and not "
      "m.content.startswith('<') %}{% set ns.x = ns.x + m.content.split('</think>')[-1].lstrip('\\n') %}{% "
      "set ns.n = "
      "loop.index0 %}{% elif m is defined %}{{ m['content'] | trim + eos_token }}{% endif %}{% endfor %}{{ "
      "ns.x }}"};
  for (const auto& golden : goldens) seeds.push_back(golden.at("template"));
  const auto tokenizer = read_tokenizer_json(tiny_json({}).dump(), "", "tiny");
  JinjaInputs inputs;
  inputs.messages = {
      {"system", "s"}, {"user", "Who?"}, {"assistant", "<think>\n</think>\n\nNobody."}, {"user", "é"}};
  int64_t rendered = 0, other = 0;
  const auto take = [&](const std::string& text) {
    try {
      JinjaTemplate(text).render(inputs);
      ++rendered;
    } catch (const BadText&) {
      ++other;
    }
    EXPECT_FALSE(choose_chat_template(text, *tokenizer).why.empty());
  };
  for (const std::string& found : past_findings("jinja")) take(found);
  fuzz([&](std::mt19937_64& random) { take(mutate(seeds[random() % seeds.size()], random, kJinjaWords)); });
  EXPECT_GT(rendered, 0);
  EXPECT_GT(other, 0);
}

}  // namespace
}  // namespace sheaf
