#pragma once
#include <string_view>

#include "core/task/task.h"

namespace sheaf {

/// What of its prompt an answer depends on.
enum class AnswerScope : uint8_t {
  question,  ///< the record's document and the question; the record's others may be left out
  record,    ///< all questions of the record
  prompt,    ///< the other records too
};

/// Turns records of one bin into stacks.
struct Builder {
  int32_t documents = 1;  ///< records per stack; 0: as many as fit the token budget
  /// Appends the stacks of `records`, which share one bin.
  std::function<void(std::span<const RecordParts> records, std::vector<Stack>& out)> build;
  bool in_a_row = false;  ///< the questions of a record stand one behind the other, not side by side
  /// What to do about a record that no prompt can hold.
  std::string_view advice = "shorten the document, ask fewer questions, or set input.too_long";
  AnswerScope scope = AnswerScope::question;
};

/// The builder of a job's method (core/methods/method.h).
Builder make_builder(const Job::Method& method);

/// The builder of prompts that share nothing: what the method's answers are verified against. One per
/// question; for pced, one per question and document.
Builder make_separate_builder(const Job::Method& method);

/// One prompt per question, nothing shared: `standard` and `separate`.
void build_separate(std::span<const RecordParts> records, std::vector<Stack>& out);
/// One prompt per question whose instruction and document are shared with the other prompts: `prefix`.
void build_prefix(std::span<const RecordParts> records, std::vector<Stack>& out);
/// One prompt: instruction ← document ← question. `ippd`, `parallel-prompting`, `hpd` with independent
/// values.
void build_tree(std::span<const RecordParts> records, std::vector<Stack>& out);
/// Stacks that `build` makes, each with at most `most` questions: those of a record that has more are spread
/// over several stacks, which share its document where `build` marks it as shared.
void build_at_most(int32_t most,
                   const std::function<void(std::span<const RecordParts>, std::vector<Stack>&)>& build,
                   std::span<const RecordParts> records, std::vector<Stack>& out);
/// One prompt as build_tree makes it, whose documents see each other.
void build_joint_tree(std::span<const RecordParts> records, std::vector<Stack>& out);
/// `hpd` with positional values, as in the paper: keys in one chain with gaps of K_max positions that values
/// fill, each document's chain on its own or, when `joint`, all documents in one chain.
void build_positional(std::span<const RecordParts> records, bool joint, std::vector<Stack>& out);

/// One stack per question: a chain instruction ← document ← question for each document, and one
/// without any, the amateur; all decode one answer together. `shared`: stacks with equal documents compute
/// them once. `pced`.
void build_pced(std::span<const RecordParts> records, const Job::Method& method, bool shared,
                std::vector<Stack>& out);

/// One stack per record: documents that see the instruction but not each other, all at the same positions;
/// a question follows the longest and sees them all, weighed by `softmax`. Equal ones of a record are one.
/// `shared` as above. `ape`.
void build_ape(std::span<const RecordParts> records, bool shared, std::vector<Stack>& out,
               const DocumentSoftmax& softmax = {});

/// One stack per record: a prompt for each document (and question), which gives a finding; the next round is
/// the prompt that asks the record's questions about the findings. `shared`: equal instructions and documents
/// are the same ones, and the questions of the next round share its document. `map-reduce`.
void build_map_reduce(std::span<const RecordParts> records, bool shared, std::vector<Stack>& out);

/// Makes thinking a round before the answers of a stack, where some have Slot::thinking; the others wait for
/// them.
void think_first(Stack& stack);

/// Entries that a list is taken to have where nothing is decoded.
constexpr size_t kExpectedEntries = 4;

/// Gives a stack whose questions list entries (QuestionParts::entries) a later round, which asks every
/// question about every entry that the answers list. Where nothing is shared, each has a prompt of its own;
/// otherwise they see what the list's question saw and the text that opens their entry, and do not see each
/// other; where keys are in a row, those of an entry are, too. `records`: those of the stack.
void ask_entries(Stack& stack, std::span<const RecordParts> records, bool in_a_row);

/// A chain of keys as it grows: each key sees the ones before it; each value sees its key, all keys before,
/// and of the values before it the tokens up to its own step.
struct KeyChain {
  std::vector<Sight> keys;    ///< what the next key sees
  std::vector<Sight> values;  ///< what the next value sees besides its own key
  int32_t position;           ///< where the next key starts

  void add(Stack& stack, Slot slot, Tokens tokens);
};

/// Refuses a record without documents to be read one by one.
void check_chains(const RecordParts& record, std::string_view method);

/// A slot for one question of a record, all fields but the segments filled in.
Slot make_slot(const RecordParts& record, size_t question);
/// The places of the questions that are asked, those of a question's samples together.
std::vector<std::vector<size_t>> asked_places(const RecordParts& record);
/// The slot of a question whose answer continues `prompt`; or one for each of its options, or of its samples,
/// each in a segment of its own.
void add_slots(Stack& stack, const RecordParts& record, std::span<const size_t> places, SegmentId prompt);
/// The slot of an answer that continues `prompt`; or one for each of the options of `list`, if it has any.
void add_slot(Stack& stack, Slot slot, const AnswerTrie* list, SegmentId prompt);

/// A method: what it does to prompts, said once. Every list, check, default and text about methods is read
/// from here; no other file asks for a method by its name.
struct Method {
  std::string_view name;
  std::vector<TaskKind> tasks;  ///< tasks that it serves

  Wording wording = {};

  // Packing.
  bool one_question = false;      ///< every prompt has one question
  bool takes_documents = false;   ///< a prompt holds method.documents of them
  bool takes_questions = false;   ///< a prompt holds at most method.questions of them
  bool shares = true;             ///< equal parts of prompts are computed once
  bool weighs_documents = false;  ///< by method.document_temperature and method.document_scale

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

/// Why a job cannot leave out questions whose answers another model gave; empty where it can.
std::string trust_trouble(const Job::Method& method);
/// Why its prompts cannot have examples; empty where they can.
std::string examples_trouble(const Job::Method& method);
/// Why task.list_attributes cannot be as the job says; empty: it can.
std::string list_trouble(const Job& job);

/// Why a job cannot draw several samples; empty: it can.
std::string samples_trouble(const Job& job);
/// Why a job cannot extract objects and lists of objects; empty: it can, or its schema has none.
std::string nested_trouble(const Job& job, const Schema& schema);
/// Why the questions of a prompt cannot be limited; empty: they can. `task` may be none: any.
std::string questions_trouble(const Job::Method& method, TaskKind task);
/// Why its method cannot word prompts as task.prompt says; empty: it can.
std::string prompt_trouble(const Job& job);

/// The task of a job, worded as its method wants it. The task keeps references to all of these.
std::unique_ptr<Task> make_task(const Tokenizer& tokenizer, const ChatTemplate& chat, const Job& job,
                                const Schema& schema, const Examples* examples = nullptr);

}  // namespace sheaf
