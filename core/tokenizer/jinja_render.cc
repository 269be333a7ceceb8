#include "core/tokenizer/jinja_run.h"

namespace sheaf {
namespace {

// A real template takes some thousand steps on a short dialog.
constexpr size_t kMostSteps = 100'000;
constexpr size_t kMostBytes = 4 << 20;  // of all texts that it makes

}  // namespace

JinjaTemplate::JinjaTemplate(std::string_view text) : root_(parse_jinja(text)) {}

std::string JinjaTemplate::render(const JinjaInputs& inputs) const {
  return JinjaRun(inputs).render(*root_);
}

JinjaRun::JinjaRun(const JinjaInputs& inputs) : steps_left_(kMostSteps), bytes_left_(kMostBytes) {
  Values messages;
  for (const JinjaInputs::Message& message : inputs.messages)
    messages.push_back(
        jinja_map({{"role", jinja_text(message.role)}, {"content", jinja_text(message.content)}}));
  assign("messages", jinja_list(std::move(messages)));
  assign("bos_token", jinja_text(inputs.bos_token));
  assign("eos_token", jinja_text(inputs.eos_token));
  assign("add_generation_prompt", inputs.add_generation_prompt);
  if (inputs.enable_thinking) assign("enable_thinking", *inputs.enable_thinking);
}

void JinjaRun::spend(size_t steps) {
  if (steps > steps_left_) throw BadText(fmt::format("it takes more than {} steps", kMostSteps));
  steps_left_ -= steps;
}

void JinjaRun::spend_bytes(std::string_view text) {
  if (text.size() > bytes_left_)
    throw BadText(fmt::format("it makes more than {} MB of text", kMostBytes >> 20));
  bytes_left_ -= text.size();
}

JinjaValue JinjaRun::made(std::string text) {
  spend_bytes(text);
  return jinja_text(std::move(text));
}

void JinjaRun::write(std::string_view text) {
  spend_bytes(text);
  out_ += text;
}

void JinjaRun::print(const JinjaNode& node) {
  spend(1);
  switch (node.kind) {
    case JinjaNode::Kind::block:
      for (const JinjaNodePtr& part : node.parts) print(*part);
      return;
    case JinjaNode::Kind::text:
      return write(*node.value.text());
    case JinjaNode::Kind::print:
      return write(shown(node, evaluate(*node.parts[0])));
    case JinjaNode::Kind::set:
      return assign(node.name, evaluate(*node.parts[0]));
    case JinjaNode::Kind::set_field:
      return set_field(node);
    case JinjaNode::Kind::set_block: {
      const size_t before = out_.size();
      scopes_.emplace_back();
      print(*node.parts[0]);
      scopes_.pop_back();
      std::string text = out_.substr(before);
      out_.resize(before);
      return assign(node.name, made(std::move(text)));
    }
    case JinjaNode::Kind::loop:
      return print_loop(node);
    case JinjaNode::Kind::branch:
      return print_branch(node);
    default:
      return;
  }
}

void JinjaRun::print_branch(const JinjaNode& node) {
  size_t i = 0;
  for (; i + 1 < node.parts.size(); i += 2)
    if (evaluate(*node.parts[i]).is_true()) return print(*node.parts[i + 1]);
  if (i < node.parts.size()) print(*node.parts[i]);
}

void JinjaRun::set_field(const JinjaNode& node) {
  const JinjaValue space = look_up(node.name);
  if (!space.space()) not_understood(node.line, "\"{}\" is set but was not made by namespace()", node.name);
  JinjaValue value = evaluate(*node.parts[0]);
  if (value.space()) not_understood(node.line, "a namespace inside of another value is not supported");
  space.space()->fields.insert_or_assign(*node.value.text(), std::move(value));
}

JinjaRun::Values JinjaRun::items(const JinjaNode& node, const JinjaValue& value) {
  if (value.is_undefined()) return {};
  Values out;
  if (const JinjaList* list = value.list()) {
    spend(list->items.size());
    out = list->items;
  } else if (const JinjaMap* map = value.map()) {
    spend(map->entries.size());
    for (const auto& entry : map->entries) out.push_back(made(entry.first));
  } else {
    not_understood(node.line, "a loop goes through {}, but it needs a list", value.kind_name());
  }
  return out;
}

void JinjaRun::print_loop(const JinjaNode& node) {
  Values all = items(node, evaluate(*node.parts[0]));
  const auto name_items = [&](const JinjaValue& item) {
    if (node.names.size() == 1) return assign(node.names[0], item);
    const JinjaList* list = item.list();
    if (!list || list->items.size() != node.names.size())
      not_understood(node.line, "an item of a loop does not have as many parts as the loop has names");
    for (size_t i = 0; i < node.names.size(); ++i) assign(node.names[i], list->items[i]);
  };
  if (const JinjaNode* condition = node.parts[2].get()) {
    Values wanted;
    for (JinjaValue& item : all) {
      spend(1);
      scopes_.emplace_back();
      name_items(item);
      const bool keep = evaluate(*condition).is_true();
      scopes_.pop_back();
      if (keep) wanted.push_back(std::move(item));
    }
    all = std::move(wanted);
  }
  if (all.empty() && node.parts[3]) return print(*node.parts[3]);
  const auto count = static_cast<int64_t>(all.size());
  for (int64_t i = 0; i < count; ++i) {
    spend(1);
    const auto at = static_cast<size_t>(i);
    std::vector<std::pair<std::string, JinjaValue>> loop = {
        {"index", i + 1},        {"index0", i},
        {"revindex", count - i}, {"revindex0", count - i - 1},
        {"first", i == 0},       {"last", i + 1 == count},
        {"length", count}};
    if (i > 0) loop.emplace_back("previtem", all[at - 1]);
    if (i + 1 < count) loop.emplace_back("nextitem", all[at + 1]);
    scopes_.emplace_back();
    assign("loop", jinja_map(std::move(loop)));
    name_items(all[at]);
    print(*node.parts[1]);
    scopes_.pop_back();
  }
}

}  // namespace sheaf
