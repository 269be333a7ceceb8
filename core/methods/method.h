#pragma once

#include "core/methods/builder.h"
#include "core/task/task.h"

namespace sheaf {

/// A method: what it does to prompts, said once. Every list, check, default and text about methods is read
/// from here; no other file asks for a method by its name.
struct Method {
  std::string_view name;
  std::vector<TaskKind> tasks;  ///< tasks that it serves

  Wording wording = {};

  // Packing.
  bool one_question = false;     ///< every prompt has one question
  bool takes_documents = false;  ///< a prompt holds method.documents of them
  bool shares = true;            ///< equal parts of prompts are computed once

  std::string_view packing = {};                          ///< in words; empty: so many documents in a prompt
  std::string_view baseline = "one prompt per question";  ///< what it is verified against, in words
  std::string_view verified_as = {};  ///< the method that words the baseline's prompts; empty: this one
  Builder (*builder)(const Job::Method& method, bool shared);  ///< nothing shared: the baseline's

  bool serves(TaskKind task) const;
};

std::span<const Method> all_methods();
/// Refuses an unknown name.
const Method& find_method(std::string_view name);
/// In the order of the table; of those that serve a task where `task` names one.
std::vector<std::string> method_names(TaskKind task = TaskKind::none);

/// Why its prompts cannot have examples; empty where they can.
std::string examples_trouble(const Job::Method& method);
/// Why task.list_attributes cannot be as the job says; empty: it can.
std::string list_trouble(const Job& job);

/// The task of a job, worded as its method wants it. The task keeps references to all of these.
std::unique_ptr<Task> make_task(const Tokenizer& tokenizer, const ChatTemplate& chat, const Job& job,
                                const Schema& schema, const Examples* examples = nullptr);

}  // namespace sheaf
