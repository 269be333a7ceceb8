#include <filesystem>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/files/job_file.h"
#include "tests/errors.h"
#include "tests/fuzz.h"
#include "tests/rendered.h"

namespace sheaf {
namespace {

using test::rendered;

ChatTemplate read(const std::string& text) {
  const TempFolder folder;
  return read_chat_file(folder.write("c.yaml", text));
}

std::string chat_error(const std::string& text) {
  const TempFolder folder;
  const std::string path = folder.write("c.yaml", text);
  std::string message = error_of([&] { read_chat_file(path); });
  if (message.starts_with(path)) message = "c.yaml" + message.substr(path.size());
  return message;
}

const std::string kWhole = R"(name: mine
system_open: "<s>"
system_close: "</s>"
user_open: "<u>"
turn: "</u><a><t>"
default_system: Be kind.
answer_close: "</a>"
thought: "<t>"
default_stays: true
trims: true
thoughts: drop-lines
)";

TEST(ChatFile, ReadsEveryField) {
  const ChatTemplate chat = read(kWhole);
  EXPECT_EQ(chat.name, "mine");
  EXPECT_EQ(rendered(chat, {" Please.", {"a", "<think>x</think>\n\nb", " c"}}),
            "<s>Be kind.Please.</s><u>a</u><a>b</a><u>c</u><a><t>");
  const ChatTemplate in_user = read("system_in_user: true\nsystem_close: '|'\nuser_open: '<'\nturn: '>'\n");
  EXPECT_EQ(in_user.name, "c") << "the file's name";
  EXPECT_EQ(rendered(in_user, {"s", {"a"}}), "<s|a>");
  EXPECT_THROW(dialog_pieces(read("{user_open: a, turn: b, takes_system: false}"), {"s", {"a"}}), Error);
  const ChatTemplate thinks =
      read(kWhole + "opening: '!'\nthink_turn: t\nthink_end: e\nthink_close: e1\nthink_cut: c2e1\n");
  EXPECT_EQ(rendered(thinks, {"x", {"a"}}), "!<s>Be kind.x</s><u>a</u><a><t>");
  EXPECT_EQ(thinks.think.turn + thinks.think.end + thinks.think.close + thinks.think.cut, "tee1c2e1");
}

TEST(ChatFile, RefusesWithPlaceAndFix) {
  EXPECT_EQ(chat_error("user_open: a\n"), "c.yaml:1: the key \"turn\" is missing; add it");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\nuser_opn: c\n"),
            "c.yaml:3: unknown key \"user_opn\"; did you mean \"user_open\"?");
  EXPECT_EQ(chat_error("user_open: a\nturn: 7\n"),
            "c.yaml:2: turn must be text, not the number 7; put it in quotes if it is text");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\nthoughts: dorp\n"),
            "c.yaml:3: thoughts cannot be \"dorp\"; did you mean \"drop\"?");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\nanswer_close: c\nthought: d\n"),
            "c.yaml:4: thought must be the end of turn: sheaf leaves it out before earlier answers");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\nthought: b\n"),
            "c.yaml:3: thought works only with answer_close; add that or remove thought");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\ntakes_system: false\nsystem_open: c\n"),
            "c.yaml:4: system_open has no meaning with takes_system: false; remove one of them");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\ndefault_stays: true\n"),
            "c.yaml:3: default_stays needs default_system");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\nthink_turn: c\nthink_end: d\nthink_cut: d\n"),
            "c.yaml:1: think_turn, think_end, think_close and think_cut work only together; add think_close");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\nthink_turn: c\nthink_end: d\nthink_cut: d\nthink_close: ed\n"),
            "c.yaml:6: think_close must begin with think_end, which the model writes");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\nthink_turn: c\nthink_end: d\nthink_cut: e\nthink_close: d\n"),
            "c.yaml:5: think_cut must hold think_end");
  EXPECT_EQ(chat_error("user_open: a\nturn: b\nname: ''\n"), "c.yaml:3: name must have 1 to 100 bytes");
  EXPECT_EQ(chat_error("user_open: a\nturn: " + std::string(70'000, 'b') + "\n"),
            "c.yaml:2: turn has more than 64 KB");
}

TEST(ChatFile, ShippedFilesAreReadWithoutErrors) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs/chat")) {
    EXPECT_NO_THROW(read_chat_file(entry.path().string())) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0u);
  EXPECT_EQ(
      rendered(read_chat_file("configs/chat/alpaca.yaml"), {{}, {"How many legs does a spider have?"}}),
      "Below is an instruction that describes a task. Write a response that appropriately completes the "
      "request.\n\n### Instruction:\nHow many legs does a spider have?\n\n### Response:\n");
}

TEST(ChatFile, FuzzedFilesAreReadOrRefused) {
  const TempFolder folder;
  fuzz_target("chat", {kWhole, "{user_open: a, turn: b}"},
              {"\n", ": ", "\"", "true", "thoughts", "takes_system: false\n", "&a", "*a", "7", "- "},
              [&](const std::string& text) {
                dialog_pieces(read_chat_file(folder.write("c.yaml", text)), {{}, {"a"}});
              });
}

}  // namespace
}  // namespace sheaf
