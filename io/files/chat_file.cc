#include <filesystem>

#include "core/base/error.h"
#include "core/job/words.h"
#include "io/files/job_file.h"

namespace sheaf {

template <>
inline constexpr std::string_view kWords<EarlierThoughts>[] = {"keep", "drop", "drop-lines", "until-query"};

namespace {

constexpr size_t kMostChatBytes = 64 << 10;  // of one text

void check_thinking(const YamlMap& map, const ChatThinking& think) {
  const bool any = !think.turn.empty() || !think.end.empty() || !think.close.empty() || !think.cut.empty();
  if (!any) return;
  for (const auto& [key, text] : {std::pair{"think_turn", &think.turn},
                                  {"think_end", &think.end},
                                  {"think_close", &think.close},
                                  {"think_cut", &think.cut}})
    if (text->empty())
      refuse("{}: think_turn, think_end, think_close and think_cut work only together; add {}",
             map.where(key), key);
  if (!think.close.starts_with(think.end))
    refuse("{}: think_close must begin with think_end, which the model writes", map.where("think_close"));
  if (think.cut.find(think.end) == std::string::npos)
    refuse("{}: think_cut must hold think_end", map.where("think_cut"));
}

void check_chat(const YamlMap& map, const ChatTemplate& chat) {
  if (chat.name.empty() || chat.name.size() > 100)
    refuse("{}: name must have 1 to 100 bytes", map.where("name"));
  if (!chat.turn.ends_with(chat.thought))
    refuse("{}: thought must be the end of turn: sheaf leaves it out before earlier answers",
           map.where("thought"));
  if (!chat.thought.empty() && chat.answer_close.empty())
    refuse("{}: thought works only with answer_close; add that or remove thought", map.where("thought"));
  if (!chat.takes_system)
    for (const char* key :
         {"system_open", "system_close", "default_system", "system_in_user", "default_stays"})
      if (map.has(key))
        refuse("{}: {} has no meaning with takes_system: false; remove one of them", map.where(key), key);
  check_thinking(map, chat.think);
  if (chat.default_stays && chat.default_system.empty())
    refuse("{}: default_stays needs default_system", map.where("default_stays"));
}

}  // namespace

ChatTemplate read_chat_file(const std::string& path) {
  YamlMap map(read_yaml(path, "a chat template"), "");
  ChatTemplate chat;
  chat.name = std::filesystem::path(path).stem().string();
  map.text("name", chat.name);
  for (const auto& [key, target] : {std::pair{"opening", &chat.opening},
                                    {"system_open", &chat.system_open},
                                    {"system_close", &chat.system_close},
                                    {"user_open", &chat.user_open},
                                    {"turn", &chat.turn},
                                    {"default_system", &chat.default_system},
                                    {"answer_close", &chat.answer_close},
                                    {"thought", &chat.thought},
                                    {"think_turn", &chat.think.turn},
                                    {"think_end", &chat.think.end},
                                    {"think_close", &chat.think.close},
                                    {"think_cut", &chat.think.cut}}) {
    map.text(key, *target);
    if (target->size() > kMostChatBytes)
      refuse("{}: {} has more than {} KB", map.where(key), key, kMostChatBytes >> 10);
  }
  map.boolean("system_in_user", chat.system_in_user);
  map.boolean("default_stays", chat.default_stays);
  map.boolean("trims", chat.trims);
  map.boolean("takes_system", chat.takes_system);
  std::string thoughts = "keep";
  map.choice("thoughts", thoughts, all_words<EarlierThoughts>());
  chat.thoughts = *read_word<EarlierThoughts>(thoughts);
  map.require("user_open");
  map.require("turn");
  map.finish();
  check_chat(map, chat);
  return chat;
}

}  // namespace sheaf
