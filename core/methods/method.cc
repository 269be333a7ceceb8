#include "core/methods/method.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/task/prompt_text.h"
#include "core/task/samples.h"

namespace sheaf {
namespace {

using Records = std::span<const RecordParts>;

constexpr std::string_view kShortenLongest =
    "shorten its longest document, or use a model with a longer context";

constexpr std::string_view kShortenFindings =
    "shorten its longest document, lower method.finding_tokens or input.top_documents, or use a model with a "
    "longer context";

Builder separate(const Job::Method&, bool) {
  return {1, build_separate};
}

Builder prefix(const Job::Method&, bool shared) {
  return {1, shared ? build_prefix : build_separate};
}

/// The builder with prompts of at most `questions` questions; 0: as many as there are.
Builder limited(Builder builder, int32_t questions) {
  if (questions == 0) return builder;
  builder.build = [questions, build = std::move(builder.build)](Records records, std::vector<Stack>& out) {
    build_at_most(questions, build, records, out);
  };
  return builder;
}

Builder tree(const Job::Method& method, bool shared) {
  if (!shared) return {1, build_separate};
  return limited({find_method(method.name).takes_documents ? method.documents : 1, build_tree},
                 method.questions);
}

Builder skeleton(const Job::Method& method, bool shared) {
  if (!shared) return {1, build_separate};
  const bool joint = method.stacking == Stacking::joint;
  Builder builder{method.documents, joint ? build_joint_tree : build_tree};
  if (method.values == ValueSight::positional) {
    builder.build = [joint](Records records, std::vector<Stack>& out) {
      build_positional(records, joint, out);
    };
    builder.in_a_row = true;
    builder.scope = AnswerScope::record;
  }
  if (joint) builder.scope = AnswerScope::prompt;
  return builder.scope == AnswerScope::question ? limited(std::move(builder), method.questions) : builder;
}

Builder fused_chains(const Job::Method& method, bool shared) {
  return {
      .build = [=](Records records, std::vector<Stack>& out) { build_pced(records, method, shared, out); },
      .advice = kShortenLongest};
}

Builder documents_abreast(const Job::Method& method, bool shared) {
  const DocumentSoftmax softmax{method.document_temperature, method.document_scale};
  return limited(
      {.build = [=](Records records, std::vector<Stack>& out) { build_ape(records, shared, out, softmax); },
       .advice = kShortenLongest},
      shared ? method.questions : 0);
}

Builder two_rounds(const Job::Method&, bool shared) {
  return {.build = [=](Records records, std::vector<Stack>& out) { build_map_reduce(records, shared, out); },
          .advice = kShortenFindings};
}

const std::vector<Method>& table() {
  static const std::vector<Method> methods = {
      {.name = "hpd",
       .tasks = {TaskKind::extract},
       .wording = {.skeleton = true},
       .takes_documents = true,
       .takes_questions = true,
       .builder = skeleton},
      {.name = "ippd",
       .tasks = {TaskKind::ask, TaskKind::chat},
       .takes_documents = true,
       .takes_questions = true,
       .builder = tree},
      {.name = "parallel-prompting",
       .tasks = {TaskKind::ask},
       .wording = {.plain_text = true},
       .takes_questions = true,
       .builder = tree},
      {.name = "standard",
       .tasks = {TaskKind::extract, TaskKind::ask, TaskKind::chat},
       .wording = {.answers = AnswerForm::object},
       .one_question = true,
       .shares = false,
       .packing = "one question per prompt",
       .builder = separate},
      {.name = "separate",
       .tasks = {TaskKind::extract, TaskKind::ask, TaskKind::chat},
       .one_question = true,
       .shares = false,
       .packing = "one question per prompt",
       .builder = separate},
      {.name = "prefix",
       .tasks = {TaskKind::extract, TaskKind::ask, TaskKind::chat},
       .wording = {.answers = AnswerForm::object},
       .one_question = true,
       .packing = "one question per prompt",
       .builder = prefix},
      {.name = "pced",
       .tasks = {TaskKind::ask},
       .wording = {.one_by_one = true, .fused = true},
       .one_question = true,
       .packing = "one question per prompt, a chain for each document",
       .baseline = "one prompt per question and document",
       .builder = fused_chains},
      {.name = "ape",
       .tasks = {TaskKind::ask},
       .wording = {.one_by_one = true},
       .takes_questions = true,
       .weighs_documents = true,
       .packing = "the documents of a record side by side, with all its questions",
       .baseline = "the same prompts with nothing shared",
       .builder = documents_abreast},
      {.name = "map-reduce",
       .tasks = {TaskKind::ask},
       .wording = {.one_by_one = true, .findings = true},
       .packing = "a prompt for each document of a record, then one with what they gave",
       .baseline = "the same two rounds with one prompt per document and question",
       .builder = two_rounds},
      {.name = "seqbatch",
       .tasks = {TaskKind::extract, TaskKind::ask},
       .wording = {.answers = AnswerForm::list},
       .one_question = true,
       .packing = "all questions of a document in one list, one list per prompt",
       .verified_as = "separate",
       .builder = prefix},
  };
  return methods;
}

std::unique_ptr<Task> make_sample_task(const Tokenizer& tokenizer, const ChatTemplate& chat, const Job& job,
                                       const Schema& schema, const Examples* examples) {
  const TaskContext context{tokenizer, chat, job, find_method(job.method.name).wording, examples};
  if (examples && !examples->by_category.empty())
    if (const std::string trouble = examples_trouble(job.method); !trouble.empty()) refuse("{}", trouble);
  if (job.task.kind == TaskKind::chat) return make_chat_task(context);
  check_tokenizer(context);
  if (job.task.kind == TaskKind::extract)
    if (const std::string trouble = nested_trouble(job, schema); !trouble.empty()) refuse("{}", trouble);
  if (context.wording.answers == AnswerForm::list) return make_list_task(context, schema);
  return job.task.kind == TaskKind::ask ? make_ask_task(context) : make_extract_task(context, schema);
}

}  // namespace

bool Method::serves(TaskKind task) const {
  return std::ranges::find(tasks, task) != tasks.end();
}

std::span<const Method> all_methods() {
  return table();
}

const Method& find_method(std::string_view name) {
  const auto found = std::ranges::find(table(), name, &Method::name);
  if (found == table().end())
    refuse("unknown method \"{}\"; use one of {}", name, fmt::join(method_names(), ", "));
  return *found;
}

std::vector<std::string> method_names(TaskKind task) {
  std::vector<std::string> names;
  for (const Method& method : table())
    if (task == TaskKind::none || method.serves(task)) names.emplace_back(method.name);
  return names;
}

std::string examples_trouble(const Job::Method& method) {
  const Wording& wording = find_method(method.name).wording;
  if (wording.answers == AnswerForm::list || wording.plain_text || wording.one_by_one)
    return fmt::format("task.examples does not work with method.name {}; use {}separate, standard or prefix",
                       method.name, find_method(method.name).serves(TaskKind::extract) ? "hpd, " : "ippd, ");
  if (wording.skeleton && method.stacking == Stacking::joint)
    return "task.examples works only with method.stacking isolated, not with joint";
  return {};
}

std::string trust_trouble(const Job::Method& method) {
  const bool apart = make_builder(method).scope == AnswerScope::question;
  if (apart && find_method(method.name).wording.answers == AnswerForm::each) return {};
  return fmt::format(
      "task.trust needs values that do not depend on each other, which method.name {}{} does not have; use "
      "hpd or "
      "separate with method.values independent and method.stacking isolated",
      method.name, apart ? "" : " with these settings");
}

std::string list_trouble(const Job& job) {
  if (job.task.list_attributes) return {};
  const Wording& wording = find_method(job.method.name).wording;
  if (wording.answers != AnswerForm::each)
    return fmt::format("task.list_attributes: false does not work with method.name {}; use hpd or separate",
                       job.method.name);
  if (job.method.values != ValueSight::independent || job.method.stacking == Stacking::joint)
    return "task.list_attributes: false works only with method.values independent and method.stacking "
           "isolated";
  if (job.method.keys == KeyForm::marker)
    return "task.list_attributes: false works only with method.keys name: a number means nothing without the "
           "list";
  if (!job.task.examples.path.empty())
    return "task.list_attributes: false does not work with task.examples, which show all attributes; leave "
           "out one of them";
  return {};
}

std::string samples_trouble(const Job& job) {
  const Job::Method& method = job.method;
  if (method.samples == 1) return {};
  if (find_method(method.name).wording.findings)
    return fmt::format("method.samples does not work with method.name {}, which decodes in two rounds",
                       method.name);
  if (method.values == ValueSight::positional)
    return "method.samples works only with method.values independent: positional values see each other";
  if (!job.task.trust.run.empty())
    return "method.samples does not work with task.trust, whose values are not drawn; leave out one of them";
  if (method.temperature == 0 && job.task.kind != TaskKind::chat)
    return "method.samples needs a method.temperature above 0: at 0 all samples are the same";
  return {};
}

std::string questions_trouble(const Job::Method& method, TaskKind task) {
  if (method.questions == 0) return {};
  const Method& known = find_method(method.name);
  if (!known.takes_questions) {
    std::vector<std::string_view> fit;
    for (const Method& other : all_methods())
      if (other.takes_questions && (task == TaskKind::none || other.serves(task))) fit.push_back(other.name);
    return fmt::format("method.questions does not work with method.name {}, which packs {}; use {}",
                       method.name, known.packing, fmt::join(fit, ", "));
  }
  if (make_builder(method).scope != AnswerScope::question)
    return "method.questions works only with method.values independent and method.stacking isolated: other "
           "values depend on what else is in the prompt";
  return {};
}

std::string prompt_trouble(const Job& job) {
  const Wording& wording = find_method(job.method.name).wording;
  if (wording.answers == AnswerForm::list)
    return fmt::format("task.prompt does not work with method.name {}, which asks for one numbered list",
                       job.method.name);
  return {};
}

std::unique_ptr<Task> make_task(const Tokenizer& tokenizer, const ChatTemplate& chat, const Job& job,
                                const Schema& schema, const Examples* examples) {
  if (job.method.samples > 1 || job.task.kind == TaskKind::chat)
    return std::make_unique<SampledTask>(job, [&](const Job& of_sample) {
      return make_sample_task(tokenizer, chat, of_sample, schema, examples);
    });
  return make_sample_task(tokenizer, chat, job, schema, examples);
}

Builder make_builder(const Job::Method& method) {
  return find_method(method.name).builder(method, true);
}

Builder make_separate_builder(const Job::Method& method) {
  return find_method(method.name).builder(method, false);
}

}  // namespace sheaf
