#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/methods/builder.h"

namespace sheaf {

/// A method: what it does to prompts, said once. Every list, check, default and text about methods is read
/// from here; no other file asks for a method by its name.
struct Method {
  std::string_view name;
  std::vector<TaskKind> tasks;                  ///< that it serves
  std::vector<std::string_view> settings = {};  ///< keys of `method` that no other method has

  // How prompts are worded.
  bool whole_object = false;  ///< extract: one answer holds all of a row's values, as one JSON object
  bool plain_text = false;    ///< ask: document, question, answer, without the model's chat turns
  bool skeleton = false;  ///< values stand under given keys; method.values and method.stacking are its own
  bool experts = false;   ///< ask: a row's documents are read one by one, each in a chain of its own

  // How they are packed.
  bool one_question = false;     ///< every prompt has one question
  bool takes_documents = false;  ///< a prompt holds method.documents of them
  bool shares = true;            ///< equal parts of prompts are computed once

  std::string_view baseline = "one prompt per question";  ///< what it is verified against, in words
  Builder (*builder)(const Job::Method& method);
  Builder (*separate_builder)(const Job::Method& method);  ///< of the baseline

  bool serves(TaskKind task) const;
};

std::span<const Method> all_methods();
/// Refuses an unknown name.
const Method& find_method(std::string_view name);
/// In the order of the table; of those that serve a task where `task` names one.
std::vector<std::string> method_names(TaskKind task = TaskKind::none);

}  // namespace sheaf
