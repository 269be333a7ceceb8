#include "core/tokenizer/chat_template.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/tokenizer/read_tokenizer.h"
#include "tests/files.h"
#include "tests/tokenizer/tiny_tokenizer.h"

namespace sheaf {
namespace {

std::string joined(const std::vector<TextPiece>& pieces) {
  std::string text;
  for (const TextPiece& piece : pieces) text += piece.text;
  return text;
}

TEST(ChatTemplate, EqualsTheModelsOwn) {
  const auto goldens = nlohmann::json::parse(read_text("tests/tokenizer/goldens/chat.json"));
  ASSERT_EQ(goldens.size(), 5u);
  for (const auto& golden : goldens) {
    const ChatTemplate& chat = chat_template(golden.at("template").get<std::string>());
    std::string system = golden.at("system");
    if (system.empty()) system = chat.default_system;
    EXPECT_EQ(joined(chat_pieces(chat, system, "How many\nlegs?")), golden.at("text").get<std::string>())
        << chat.name;
  }
}

TEST(ChatTemplate, DialogsEqualTheModelsOwn) {
  const auto goldens = nlohmann::json::parse(read_text("tests/tokenizer/goldens/dialogs.json"));
  ASSERT_EQ(goldens.size(), 66u);
  for (const auto& golden : goldens) {
    Dialog dialog;
    if (!golden.at("system").is_null()) dialog.system = golden.at("system").get<std::string>();
    dialog.turns = golden.at("turns").get<std::vector<std::string>>();
    const DialogPieces pieces =
        dialog_pieces(chat_template(golden.at("template").get<std::string>()), dialog);
    EXPECT_EQ(joined(pieces.before) + joined(pieces.last), golden.at("text").get<std::string>()) << golden;
  }
  EXPECT_THROW(dialog_pieces(chat_template("mistral"), {{}, {"a", "b", "c"}}), Error);
}

TEST(ChatTemplate, HarmonyEqualsItsRenderer) {
  const auto goldens = nlohmann::json::parse(read_text("tests/tokenizer/goldens/harmony.json"));
  ASSERT_EQ(goldens.size(), 18u);
  for (const auto& golden : goldens) {
    const ChatTemplate chat =
        with_effort(chat_template("harmony"), golden.at("reasoning").get<std::string>());
    Dialog dialog;
    if (!golden.at("system").is_null()) dialog.system = golden.at("system").get<std::string>();
    dialog.turns = golden.at("turns").get<std::vector<std::string>>();
    const DialogPieces pieces = dialog_pieces(chat, dialog);
    const std::string text = joined(pieces.before) + joined(pieces.last);
    const auto rendered = golden.at("text").get<std::string>();
    EXPECT_EQ(text, rendered + "<|channel|>final<|message|>");
    ASSERT_TRUE(rendered.ends_with("<|end|><|start|>assistant"));
    EXPECT_EQ(text.substr(0, text.size() - chat.turn.size()) + chat.think.turn,
              rendered + "<|channel|>analysis<|message|>");
    EXPECT_EQ(joined(chat_pieces(chat, dialog.system.value_or(""), "Hi")).find(chat.opening), 0U);
  }
  EXPECT_EQ(with_effort(chat_template("qwen3"), "high").turn, chat_template("qwen3").turn);
}

TEST(ChatTemplate, ThoughtsOpenAndClose) {
  for (const std::string& name : chat_template_names()) {
    const ChatThinking& think = chat_template(name).think;
    EXPECT_EQ(think.turn.empty(), name != "qwen3" && name != "harmony") << name;
    EXPECT_TRUE(think.close.starts_with(think.end)) << name;
    EXPECT_NE(think.cut.find(think.end), std::string::npos) << name;
  }
}

TEST(ChatTemplate, RefusesAnUnknownNameAndListsTheKnown) {
  try {
    chat_template("chattml");
    FAIL();
  } catch (const Error& e) {
    const std::string message = e.what();
    for (const char* name : {"chattml", "chatml", "qwen3", "llama3", "mistral", "phi", "plain"})
      EXPECT_NE(message.find(name), std::string::npos) << name;
  }
}

TEST(EncodePieces, TextNeverBecomesASpecialToken) {
  const auto t = read_tokenizer_json(tiny_json({{"a", "b"}}).dump(), "", "tiny");
  const TokenId end = *t->find("<|end|>");
  Tokens ids;
  t->encode_pieces(
      std::vector<TextPiece>{{"x<|end|>", false}, {"<|end|>", true}, {"<|en", true}, {"d|>", false}}, ids);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 1);
  EXPECT_EQ(t->decode(ids, false), "x<|end|><|end|><|end|>");
}

TEST(EncodePieces, TextBetweenSpecialTokensIsOneRun) {
  const auto t = read_tokenizer_json(tiny_json({{"a", "b"}}).dump(), "", "tiny");
  Tokens ids;
  t->encode_pieces(
      std::vector<TextPiece>{{"<|end|>a", true}, {"b", false}, {"a", false}, {"b<|e", true}, {"nd|>", true}},
      ids);
  EXPECT_EQ(ids, ids_of(*t, "<|end|>abab<|end|>"));
}

}  // namespace
}  // namespace sheaf
