#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/tokenizer/chat_template.h"
#include "core/tokenizer/read_tokenizer.h"
#include "io/model/model_files.h"
#include "tests/files.h"
#include "tests/rendered.h"
#include "tests/skip.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

using test::rendered;

ChatChoice choose(const std::string& jinja) {
  const auto tokenizer = read_tokenizer_json(tiny_json({}).dump(), "", "tiny");
  return choose_chat_template(jinja, *tokenizer);
}

const std::string kChatml =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// ChatML whose system text, where none is given, is `text`.
std::string with_default(const std::string& text) {
  return "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\n" + text +
         "<|im_end|>\\n' }}{% endif %}" + kChatml;
}

TEST(ChooseChat, AKnownTemplateThatRendersTheSame) {
  const std::string smollm = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
  for (const auto& [jinja, name] :
       {std::pair{kChatml, "chatml"},
        {with_default(smollm), "smollm2"},
        {with_default("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."), "qwen2.5"},
        {"{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor "
         "%}<|assistant|>\n\n",
         "phi"}}) {
    const ChatChoice choice = choose(jinja);
    EXPECT_EQ(choice.chat.name, name);
    EXPECT_EQ(choice.why, "the model's own template renders the same");
    EXPECT_EQ(choice.warning, "");
  }
}

TEST(ChooseChat, RecognizesRealTemplates) {
  const std::string folder = "../shared/tokenizers/";
  NEED_SHARED(folder);
  NEED_MODEL();
  for (const auto& [file, name] : {std::pair{"Qwen-Qwen3-0.6B.jinja", "qwen3"},
                                   {"meta-llama-Llama-3.1-8B-Instruct.jinja", "llama3.1"},
                                   {"mistralai-Mistral-Nemo-Instruct-2407.jinja", "mistral"}}) {
    const ChatChoice choice = choose(read_text(folder + file));
    EXPECT_EQ(choice.chat.name, name);
    EXPECT_EQ(choice.warning, "");
  }
  for (const auto& [path, name] :
       {std::pair<std::string, const char*>{folder + "qwen3", "qwen3"}, {test::kDefaultModel, "smollm2"}}) {
    const LoadedTokenizer loaded = load_tokenizer(path);
    const ChatChoice choice = choose_chat_template(loaded.chat_template, *loaded.tokenizer);
    EXPECT_EQ(choice.chat.name, name);
    EXPECT_EQ(choice.why, "the model's own template renders the same");
  }
}

/// No known template, so the model's own is read from what it renders.
void expect_own(const std::string& jinja, const Dialog& dialog, const std::string& text,
                const std::string& warning = "") {
  const ChatChoice choice = choose(jinja);
  EXPECT_EQ(choice.chat.name, "own") << jinja << "\n" << choice.warning;
  EXPECT_EQ(choice.why, "read from the model's own template");
  EXPECT_EQ(choice.warning, warning);
  EXPECT_EQ(rendered(choice.chat, dialog), text);
}

const std::string kAlpaca =
    "{% set ns = namespace(system='Below is an instruction.') %}"
    "{% for m in messages if m.role == 'system' %}{% set ns.system = m.content %}{% endfor %}{{ ns.system + "
    "'\\n\\n' }}"
    "{% for m in messages %}{% if m.role == 'user' %}{{ '### Instruction:\\n' + m.content + '\\n\\n### "
    "Response:\\n' }}"
    "{% elif m.role == 'assistant' %}{{ m.content + eos_token + '\\n\\n' }}{% endif %}{% endfor %}";

TEST(ChooseChat, AnAlpacaTemplateIsNotReplaced) {
  const Dialog dialog{{}, {"a", "b", "c"}};
  const std::string end = "\n\n### Response:\n";
  const std::string text = "Below is an instruction.\n\n### Instruction:\na" + end;
  expect_own(kAlpaca, {{}, {"a"}}, text);
  expect_own(kAlpaca, {"s", {"a"}}, "s\n\n### Instruction:\na" + end);
  // The tiny tokenizer has no eos.
  expect_own(kAlpaca, dialog, text + "b\n\n### Instruction:\nc" + end);
}

TEST(ChooseChat, AnUnknownSystemTextIsKept) {
  const std::string jinja = with_default("You are Beryl.");
  const ChatTemplate chat = choose(jinja).chat;
  EXPECT_EQ(chat.default_system, "You are Beryl.");
  EXPECT_EQ(chat.system_open, "<|im_start|>system\n");
  EXPECT_EQ(chat.user_open, "<|im_start|>user\n");
  EXPECT_EQ(chat.answer_close, "<|im_end|>\n");
  expect_own(
      jinja, {{}, {"a"}},
      "<|im_start|>system\nYou are Beryl.<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
  // The model's text stands before any other.
  expect_own(
      "<|im_start|>system\nBeryl. {% if messages[0].role == 'system' %}{{ messages[0].content }}"
      "{% set messages = messages[1:] %}{% endif %}{{ '<|im_end|>\\n' }}" +
          kChatml,
      {"s", {"a"}},
      "<|im_start|>system\nBeryl. s<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChooseChat, RecognizesThinkingVariants) {
  // A thought that is always opened, and answers that lose theirs.
  const std::string drops =
      "{% for m in messages %}{% set text = m.content %}{% if m.role == 'assistant' %}"
      "{% set text = text.split('</think>')[-1] %}{% endif %}{{ '<|' + m.role + '|>' + text + '<|end|>' }}{% "
      "endfor %}"
      "{{ '<|assistant|><think>\\n' }}";
  expect_own(
      drops, {"s", {"a", "<think>\nb\n</think>\n\nc", "d"}},
      "<|system|>s<|end|><|user|>a<|end|><|assistant|>\n\nc<|end|><|user|>d<|end|><|assistant|><think>\n",
      "the model's own chat template opens a thought (<think>) before every answer, so answers begin inside "
      "of "
      "it and short ones may hold nothing else; to use another, set model.chat to a template's name or to a "
      "YAML file");
  EXPECT_EQ(choose(drops).chat.thoughts, EarlierThoughts::drop);
  EXPECT_EQ(choose(drops).chat.thought, "<think>\n");
  std::string lines = drops;
  lines.insert(lines.find("[-1]") + 4, ".lstrip('\\n')");
  EXPECT_EQ(choose(lines).chat.thoughts, EarlierThoughts::drop_lines);
}

TEST(ChooseChat, RecognizesTemplatesThatTrimTexts) {
  std::string jinja = kChatml;
  jinja.replace(jinja.find("m.content"), 9, "(m.content | trim)");
  expect_own(
      jinja, {{}, {" a\n", " b ", "c\n"}},
      "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nc<|im_end|>\n"
      "<|im_start|>assistant\n");
  EXPECT_TRUE(choose(jinja).chat.trims);
}

TEST(ChooseChat, ASystemTextInTheUsersTurnOrNowhere) {
  const std::string in_user =
      "{% if messages[0].role == 'system' %}{% set s = messages[0].content + '\\n--\\n' %}{% set messages = "
      "messages[1:] %}"
      "{% else %}{% set s = '' %}{% endif %}{% for m in messages %}{% if m.role == 'user' %}"
      "{{ '<u>' + (s if loop.first else '') + m.content + '</u>' }}{% else %}{{ m.content + '<end>' }}{% "
      "endif %}{% endfor %}";
  expect_own(in_user, {"s", {"a", "b", "c"}}, "<u>s\n--\na</u>b<end><u>c</u>");
  const std::string refuses =
      "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
      "{% for m in messages %}{{ '<' + m.role + '>' + m.content + '</>' }}{% endfor %}<assistant>";
  expect_own(refuses, {{}, {"a", "b", "c"}}, "<user>a</><assistant>b</><user>c</><assistant>");
  EXPECT_THROW(dialog_pieces(choose(refuses).chat, {"s", {"a"}}), Error);
  EXPECT_FALSE(choose(refuses).chat.takes_system);
}

TEST(ChooseChat, WarnsWhereNothingFits) {
  // The user's text twice: nothing that a layout could say.
  const ChatChoice odd = choose("{{ '<|im_start|>' + messages[-1].content + messages[-1].content }}");
  EXPECT_EQ(odd.chat.name, "chatml");
  EXPECT_EQ(odd.why, "the model's own template renders otherwise");
  EXPECT_EQ(odd.warning,
            "the model's own chat template renders prompts in a way that sheaf does not know; it uses "
            "chatml, which "
            "differs from it; to use another, set model.chat to a template's name or to a YAML file");
  const ChatChoice unknown =
      choose("{% if enable_thinking is defined %}{{ '<|im_start|>' + messages|tojson }}{% endif %}");
  EXPECT_EQ(unknown.chat.name, "qwen3");
  EXPECT_EQ(unknown.warning,
            "the model's own chat template was not understood (line 1: the filter \"tojson\" is not "
            "supported); sheaf "
            "uses qwen3, which looks like it, and may differ; to use another, set model.chat to a template's "
            "name or "
            "to a YAML file");
  EXPECT_NE(choose("{% for i in range(9999) %}{{ messages[0].content }}{% endfor %}")
                .warning.find("(it makes more than 64 KB of a short dialog)"),
            std::string::npos);
  // Only the user's texts are trimmed.
  std::string trims = kChatml;
  trims.replace(trims.find("m.content"), 9, "(m.content | trim if m.role == 'user' else m.content)");
  const ChatChoice almost = choose(trims);
  EXPECT_EQ(almost.chat.name, "chatml");
  EXPECT_EQ(
      almost.warning,
      "the chat template chatml renders as the model's own does, except for white space around texts or "
      "thoughts in earlier answers; to use another, set model.chat to a template's name or to a YAML file");
}

TEST(ChooseChat, FollowsTheSpecialTokensWithoutATemplate) {
  const ChatChoice plain = choose("");
  EXPECT_EQ(plain.chat.name, "plain");
  EXPECT_EQ(plain.why, "the model has no template of its own; chosen by its tokens");
  EXPECT_EQ(plain.warning, "");
  auto file = tiny_json({});
  file["added_tokens"].push_back({{"id", 300}, {"content", "<|im_start|>"}, {"special", true}});
  EXPECT_EQ(choose_chat_template("", *read_tokenizer_json(file.dump(), "", "tiny")).chat.name, "chatml");
  // Not understood: by its words.
  for (const auto& [words, name] : {std::pair{"<|start_header_id|>", "llama3"},
                                    {"[INST]{{x}}[/INST]", "mistral"},
                                    {"[INST] {{x}} [/INST]", "mistral-v1"},
                                    {"<|user|>\n<|end|><|assistant|>", "phi"},
                                    {"<|start|>user<|message|><|channel|>", "harmony"},
                                    {"<|im_start|>user<|im_sep|>", "phi4"}})
    EXPECT_EQ(choose(std::string(words) + "{{ messages | tojson }}").chat.name, name);
}

TEST(ChooseChat, FindsASwitchForThoughts) {
  const std::string turns =
      "{% for m in messages %}{{ '[' + m.role + ']' + m.content + '\\n' }}{% endfor %}{{ '[assistant]' }}";
  const ChatChoice opens =
      choose(turns + "{% if enable_thinking %}<think>{% else %}<think></think>\n\n{% endif %}x");
  EXPECT_EQ(opens.chat.think.turn, "\n[assistant]<think>x");
  EXPECT_EQ(opens.chat.think.close, "</think>\n\nx");
  const ChatChoice silent = choose(turns + "{% if not enable_thinking %}<think></think>{% endif %}");
  EXPECT_EQ(silent.chat.name, "own");
  EXPECT_EQ(silent.chat.turn, "\n[assistant]<think></think>");
  EXPECT_EQ(silent.chat.think.turn, "\n[assistant]<think>\n");
  EXPECT_EQ(silent.chat.think.end, "</think>");
  EXPECT_EQ(silent.chat.think.close, "</think>");
  EXPECT_EQ(silent.chat.think.cut, "\n</think>");
  EXPECT_EQ(choose(turns).chat.think.turn, "");
  EXPECT_EQ(choose(turns + "<think></think>").chat.think.turn, "") << "no switch";
}

TEST(ChooseChat, HarmonyIsChosenByItsMarkup) {
  const ChatChoice choice = choose(
      "{{ '<|start|>system<|message|>' + strftime_now('%Y') + '<|end|><|start|>assistant<|channel|>' }}");
  EXPECT_EQ(choice.chat.name, "harmony");
  EXPECT_EQ(choice.warning, "");
  auto file = tiny_json({});
  TokenId id = 300;
  for (const char* name : {"<|start|>", "<|message|>", "<|channel|>"})
    file["added_tokens"].push_back({{"id", id++}, {"content", name}, {"special", true}});
  EXPECT_EQ(choose_chat_template("", *read_tokenizer_json(file.dump(), "", "tiny")).chat.name, "harmony");
}

TEST(ChooseChat, TheBeginningOfTextIsTheTokenizers) {
  const auto tokenizer = read_tokenizer_json(tiny_json({}).dump(), R"({"bos_token": "<|end|>"})", "tiny");
  ASSERT_TRUE(tokenizer->bos);
  EXPECT_EQ(choose_chat_template("{{ bos_token }}" + kChatml, *tokenizer).chat.name, "chatml");
}

}  // namespace
}  // namespace sheaf
