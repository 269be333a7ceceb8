#include "core/tokenizer/jinja.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/model/model_files.h"
#include "tests/files.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

using nlohmann::json;

json read_goldens(const std::string& name) {
  const json goldens = json::parse(read_text("tests/tokenizer/goldens/" + name));
  EXPECT_FALSE(goldens.empty()) << name;
  return goldens;
}

JinjaInputs short_dialog() {
  JinjaInputs inputs;
  inputs.messages = {{"system", "Be brief."}, {"user", "Hi"}, {"assistant", ""}};
  inputs.bos_token = "<s>";
  inputs.eos_token = "</s>";
  inputs.enable_thinking = false;
  return inputs;
}

std::string render(const std::string& text) {
  return JinjaTemplate(text).render(short_dialog());
}

/// Why a template is not understood.
std::string trouble(const std::string& text) {
  try {
    return "rendered: " + render(text);
  } catch (const JinjaRefusal& refusal) {
    return std::string("refused: ") + refusal.what();
  } catch (const BadText& reason) {
    return reason.what();
  }
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Jinja, RendersAsJinjaDoes) {
  const json goldens = read_goldens("jinja.json");
  ASSERT_GT(goldens.size(), 50u);
  for (const json& golden : goldens) {
    const auto text = golden.at("template").get<std::string>();
    const std::string expected = golden.contains("text")
                                     ? "rendered: " + golden["text"].get<std::string>()
                                     : "refused: " + golden.at("refused").get<std::string>();
    EXPECT_EQ(trouble(text), expected) << text;
  }
}

/// The models' own templates, through this interpreter, on the dialogs that Jinja rendered them on.
TEST(Jinja, RendersRealTemplatesAsJinjaDoes) {
  const std::string folder = "../shared/tokenizers/";
  NEED_SHARED(folder);
  NEED_MODEL();
  const std::map<std::string, std::string> templates = {
      {"qwen3", read_text(folder + "Qwen-Qwen3-0.6B.jinja")},
      {"llama3.1", read_text(folder + "meta-llama-Llama-3.1-8B-Instruct.jinja")},
      {"mistral", read_text(folder + "mistralai-Mistral-Nemo-Instruct-2407.jinja")},
      {"smollm2", load_tokenizer(test::kDefaultModel).chat_template}};
  for (json golden : read_goldens("dialogs.json")) {
    JinjaInputs inputs;
    inputs.enable_thinking = false;
    if (golden["system"].is_string()) inputs.messages.push_back({"system", golden["system"]});
    for (size_t i = 0; i < golden["turns"].size(); ++i)
      inputs.messages.push_back({i % 2 ? "assistant" : "user", golden["turns"][i]});
    EXPECT_EQ(JinjaTemplate(templates.at(golden["template"])).render(inputs),
              golden["text"].get<std::string>());
  }
  for (json golden : read_goldens("chat.json")) {
    JinjaInputs inputs;
    inputs.enable_thinking = false;
    inputs.eos_token = "</s>";
    if (golden["system"] != "") inputs.messages.push_back({"system", golden["system"]});
    inputs.messages.push_back({"user", "How many\nlegs?"});
    EXPECT_EQ(JinjaTemplate(templates.at(golden["template"])).render(inputs),
              golden["text"].get<std::string>());
  }
}

TEST(Jinja, UnsupportedSyntaxIsNamed) {
  EXPECT_EQ(trouble("a\n{{ messages | tojson }}"), "line 2: the filter \"tojson\" is not supported");
  EXPECT_EQ(trouble("{% if missing %}{{ messages | tojson }}{% endif %}x"), "rendered: x")
      << "what is not reached does not matter";
  EXPECT_EQ(trouble("{{ strftime_now('%Y') }}"), "line 1: the function \"strftime_now\" is not supported");
  EXPECT_EQ(trouble("{{ messages.append(1) }}"), "line 1: the method \"append\" of a list is not supported");
  EXPECT_EQ(trouble("{{ 'a'.format(1) }}"), "line 1: the method \"format\" of a text is not supported");
  EXPECT_EQ(trouble("{{ 'a'.upper }}"), "line 1: \"upper\" without a call is not supported");
  EXPECT_EQ(trouble("{{ 'a' is lower }}"), "line 1: the test \"lower\" is not supported");
  EXPECT_EQ(trouble("{% include 'x' %}"), "line 1: the tag \"include\" is not supported");
  EXPECT_EQ(trouble("{% macro f() %}{% endmacro %}{{ f() }}"), "line 1: the function \"f\" is not supported");
  EXPECT_EQ(trouble("{{ missing.x }}"), "line 1: \"x\" of an undefined value");
  EXPECT_EQ(trouble("{{ 'a' + 1 }}"), "line 1: a text \"+\" a number is not supported");
  EXPECT_EQ(trouble("{{ messages }}"), "line 1: a list as text is not supported");
  EXPECT_EQ(trouble("{{ 1 < 2 < 3 }}"), "line 1: a chain of comparisons is not supported");
  EXPECT_EQ(trouble("{{ ''.__class__.__mro__[1] }}"), "line 1: \"__mro__\" of an undefined value");
  EXPECT_EQ(trouble("{{ 1 / 2 }}"), "line 1: \"/\" of these numbers is not supported");
  EXPECT_EQ(trouble("{{ 1 // 0 }}"), "line 1: \"//\" of these numbers is not supported");
  EXPECT_EQ(trouble("{{ 9223372036854775807 }}"), "line 1: a number is too large");
  EXPECT_EQ(trouble("{{ 'a'[0] }}"), "line 1: a character of a text is not supported");
  EXPECT_EQ(trouble("\xFF"), "it is not UTF-8");
}

TEST(Jinja, MalformedTemplatesAreRefused) {
  for (const char* text : {"{{",
                           "{% if true %}",
                           "{% endif %}",
                           "{{ 'a }}",
                           "{# a",
                           "{{ ) }}",
                           "{{ 1 + }}",
                           "{% for in x %}",
                           "{% set %}",
                           "{{ a[1 }}",
                           "{{ a | }}",
                           "{{ a is }}",
                           "{% set a.b %}",
                           "{{ {'a' 1} }}",
                           "{{ ; }}",
                           "{% if true %}{% endfor %}",
                           "{{ 1.5 }}",
                           "{% for a in [1] %}{% else %}",
                           "{{ f(a=) }}",
                           "{{ '\\u12' }}"})
    EXPECT_TRUE(trouble(text).starts_with("line 1: ")) << text << ": " << trouble(text);
}

TEST(Jinja, HostileTemplatesEndSoon) {
  const std::string grows = "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(99) %}";
  EXPECT_EQ(trouble(grows + "{% set ns.x = ns.x + ns.x %}{% endfor %}"), "it makes more than 4 MB of text");
  EXPECT_EQ(trouble(grows + "{% set ns.x = ns.x | replace('a', ns.x) %}{% endfor %}"),
            "it takes more than 100000 steps");
  EXPECT_EQ(
      trouble(
          "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"),
      "it takes more than 100000 steps");
  EXPECT_EQ(trouble("{% for i in range(9999999999) %}{% endfor %}"), "it takes more than 100000 steps");
  const std::string loops = repeat("{% for i in range(99) %}", 20) + repeat("{% endfor %}", 20);
  EXPECT_EQ(trouble(loops), "it takes more than 100000 steps");
  EXPECT_EQ(trouble(grows.substr(0, grows.find("{% for")) +
                    "{% for i in range(19) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"
                    "{% for i in range(999) %}{{ (ns.x + 'b') in ns.x }}{% endfor %}"),
            "it makes more than 4 MB of text");
  EXPECT_EQ(
      trouble("{% set ns = namespace(x=[]) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}"),
      "a list nests too deep");
  EXPECT_EQ(trouble("{% set ns = namespace() %}{% set ns.x = ns %}"),
            "line 1: a namespace inside of another value is not supported");
  EXPECT_EQ(trouble("{% set ns = namespace() %}{% set ns.x = [ns] %}"),
            "a namespace inside of another value is not supported");
  for (const auto& [open, close] : {std::pair{"(", ")"}, {"[", "]"}, {"{'a':", "}"}, {"not ", ""}, {"-", ""}})
    EXPECT_EQ(trouble("{{ " + repeat(open, 5000) + "1" + repeat(close, 5000) + " }}"),
              "line 1: it nests too deep");
  for (const char* more : {"+1", ".a", "[0]", "|trim", " is none", " if 1", "~1", " and 1", " or 1"})
    EXPECT_EQ(trouble("{{ 1" + repeat(more, 5000) + " }}"), "line 1: it nests too deep") << more;
  EXPECT_EQ(trouble(repeat("{% if 1 %}", 5000)), "line 1: it nests too deep");
  EXPECT_EQ(trouble(repeat("x", 200'000)), "it has more than 128 KB");
  EXPECT_EQ(trouble("{{ 'abc'[::9223372036854775] }}{{ 'abc'[-922337203685477580:] }}"), "rendered: aabc");
  EXPECT_EQ(trouble("{{ 999999999999999999 * 999999999999999999 }}"), "line 1: a number is too large");
}

}  // namespace
}  // namespace sheaf
