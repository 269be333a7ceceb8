// The mask that a graph implies, against the masks and position ids that the papers define.
#include "tests/segments/mask.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/error.h"
#include "core/methods/method.h"
#include "tests/random_parts.h"

namespace sheaf {
namespace {

using test::make_random_records;
using test::RandomRecords;

/// Every token of a stack in memory order: known ones, then `decoded[s]` tokens of slot s.
struct Layout {
  std::vector<TokenPlace> places;
  std::vector<int32_t> positions;
  std::vector<int32_t> slot;  ///< of a decoded token, else -1
};

Layout lay_out(const Stack& stack, const std::vector<int32_t>& decoded) {
  Layout layout;
  auto add = [&](SegmentId segment, int32_t index, int32_t slot) {
    layout.places.push_back({segment, index});
    layout.positions.push_back(stack.segments[static_cast<size_t>(segment)].first_position + index);
    layout.slot.push_back(slot);
  };
  for (size_t i = 0; i < stack.segments.size(); ++i)
    for (size_t t = 0; t < stack.segments[i].tokens.size(); ++t)
      add(static_cast<SegmentId>(i), static_cast<int32_t>(t), -1);
  for (size_t s = 0; s < stack.slots.size(); ++s) {
    const SegmentId answer = stack.slots[s].answer;
    const auto known = static_cast<int32_t>(stack.segments[static_cast<size_t>(answer)].tokens.size());
    for (int32_t t = 0; t < decoded[s]; ++t) add(answer, known + t, static_cast<int32_t>(s));
  }
  return layout;
}

std::vector<int32_t> random_lengths(std::mt19937& random, const Stack& stack) {
  std::vector<int32_t> lengths;
  for (const Slot& slot : stack.slots)
    lengths.push_back(std::uniform_int_distribution<int32_t>(0, slot.max_tokens - 1)(random));
  return lengths;
}

TEST(Mask, IppdEqualsThePapersFinalMask) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto records =
        make_random_records({.records = 1 + static_cast<int32_t>(seed % 4), .own_questions = true}, seed);
    std::vector<Stack> stacks;
    build_tree(records, stacks);
    ASSERT_EQ(stacks.size(), 1u);
    const Stack& stack = stacks[0];
    check_stack(stack);
    const Layout layout = lay_out(stack, random_lengths(random, stack));

    // Virtual positions and the context and question ids of section 4.1, from the records alone.
    const size_t p = records[0].bin->instruction.size();
    std::vector<int32_t> virt, context, question;
    for (size_t i = 0; i < p; ++i)
      virt.push_back(static_cast<int32_t>(i)), context.push_back(0), question.push_back(0);
    std::vector<std::pair<size_t, size_t>> slot_of;
    for (size_t j = 0; j < records.size(); ++j) {
      const size_t c = records[j].document.size();
      for (size_t i = 0; i < c; ++i)
        virt.push_back(static_cast<int32_t>(p + i)), context.push_back(static_cast<int32_t>(j + 1)),
            question.push_back(0);
      for (size_t k = 0; k < records[j].questions().size(); ++k) {
        slot_of.emplace_back(j, k);
        for (size_t i = 0; i < records[j].questions()[k].tokens.size(); ++i) {
          virt.push_back(static_cast<int32_t>(p + c + i));
          context.push_back(static_cast<int32_t>(j + 1));
          question.push_back(static_cast<int32_t>(k + 1));
        }
      }
    }
    std::vector<int32_t> answered(stack.slots.size(), 0);
    for (size_t i = virt.size(); i < layout.places.size(); ++i) {
      const auto s = static_cast<size_t>(layout.slot[i]);
      const auto [j, k] = slot_of[s];
      virt.push_back(
          static_cast<int32_t>(p + records[j].document.size() + records[j].questions()[k].tokens.size()) +
          answered[s]++);
      context.push_back(static_cast<int32_t>(j + 1));
      question.push_back(static_cast<int32_t>(k + 1));
    }
    ASSERT_EQ(virt, layout.positions);
    const auto mask = dense_mask(stack, layout.places);
    const size_t n = layout.places.size();
    for (size_t q = 0; q < n; ++q)
      for (size_t k = 0; k < n; ++k) {
        const bool causal = virt[q] >= virt[k];
        const bool same_context = context[q] == context[k] || context[k] == 0;
        const bool same_question = question[q] == question[k] || question[k] == 0;
        ASSERT_EQ(mask[q * n + k] != 0, causal && same_context && same_question)
            << "seed " << seed << ": " << q << ", " << k;
      }
  }
}

/// What a token is in the HPD paper: prompt, the n-th attribute, or the k-th token of the n-th value (both
/// from 1).
struct HpdToken {
  int32_t document = -1;  ///< -1: instruction
  int32_t attribute = 0;
  int32_t step = 0;
};

void check_hpd(bool joint) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const RandomRecords wanted{.records = 1 + static_cast<int32_t>(seed % 3),
                               .questions = 1 + static_cast<int32_t>(seed % 5),
                               .max_tokens = 4};
    const auto records = make_random_records(wanted, seed);
    std::vector<Stack> stacks;
    build_positional(records, joint, stacks);
    const Stack& stack = stacks.at(0);
    check_stack(stack);
    const Layout layout = lay_out(stack, random_lengths(random, stack));

    std::vector<HpdToken> tokens(layout.places.size());
    int32_t document = -1, attribute = 0;
    std::vector<HpdToken> of_segment(stack.segments.size());
    for (size_t i = 0; i < stack.segments.size(); ++i) {
      if (stack.segments[i].role == Role::document)
        document = joint ? 0 : document + 1, attribute = joint ? 0 : attribute;
      if (stack.segments[i].role == Role::key) ++attribute;
      const bool head =
          stack.segments[i].role == Role::instruction || stack.segments[i].role == Role::document;
      of_segment[i] = {document, head ? 0 : attribute, 0};
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = of_segment[static_cast<size_t>(layout.places[i].segment)];
      if (layout.slot[i] >= 0) tokens[i].step = layout.places[i].index + 1;
    }

    const auto mask = dense_mask(stack, layout.places);
    const size_t n = layout.places.size();
    for (size_t q = 0; q < n; ++q)
      for (size_t k = 0; k < n; ++k) {
        const HpdToken &a = tokens[q], &b = tokens[k];
        bool allowed = layout.positions[q] >= layout.positions[k];         // causal in position ids
        if (b.document >= 0 && a.document != b.document) allowed = false;  // isolated: documents apart
        if (b.step > 0 && a.step == 0) allowed = false;                    // attributes see no value
        if (b.step > 0 && b.attribute < a.attribute && b.step > a.step)
          allowed = false;  // the red boxes of figure 3
        ASSERT_EQ(mask[q * n + k] != 0, allowed) << "seed " << seed << ": " << q << ", " << k;
      }
  }
}

TEST(Mask, HpdPositionalEqualsThePapersMaskForDocumentsInOneChain) {
  check_hpd(true);
}
TEST(Mask, HpdPositionalEqualsThePapersMaskWithinEachIsolatedDocument) {
  check_hpd(false);
}

TEST(Positions, HpdLeavesGapsAsAlgorithm2) {
  const int32_t k_max = 7;
  const auto records = make_random_records({.records = 2, .questions = 3, .max_tokens = k_max}, 5);
  std::vector<Stack> stacks;
  build_positional(records, true, stacks);
  const Stack& stack = stacks[0];
  // Algorithm 2, literally: range(|s|), then each attribute shifted by K_max per attribute before it.
  int32_t index = 0, offset = 0;
  for (const Segment& segment : stack.segments) {
    if (segment.role == Role::value) continue;
    EXPECT_EQ(segment.first_position, index + offset);
    index += static_cast<int32_t>(segment.tokens.size());
    if (segment.role == Role::key) offset += k_max;
  }
  for (const Slot& slot : stack.slots) {
    const int32_t end = stack.end_position(slot.prompt) - 1;  // position of the attribute's last token
    EXPECT_EQ(stack.segments[static_cast<size_t>(slot.answer)].first_position, end + 1);
  }
}

/// What a slot's answer can see, token by token in the order of positions.
Tokens flatten(const Stack& stack, const Slot& slot) {
  Tokens tokens;
  const Segment& prompt = stack.segments[static_cast<size_t>(slot.prompt)];
  int32_t position = 0;
  for (const Sight& sight : prompt.sees) {
    EXPECT_EQ(stack.segments[static_cast<size_t>(sight.segment)].first_position, position);
    append(tokens, stack.segments[static_cast<size_t>(sight.segment)].tokens);
    position = static_cast<int32_t>(tokens.size());
  }
  EXPECT_EQ(prompt.first_position, position);
  append(tokens, prompt.tokens);
  return tokens;
}

TEST(Tree, EveryQuestionSeesExactlyItsSeparatePrompt) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto records = make_random_records({.records = 3, .own_questions = seed % 2 == 0}, seed);
    std::vector<Stack> alone, tree, prefix;
    build_separate(records, alone);
    build_tree(records, tree);
    build_prefix(records, prefix);
    ASSERT_EQ(alone.size(), tree[0].slots.size());
    ASSERT_EQ(alone.size(), prefix.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      const Tokens& prompt = alone[i].segments[0].tokens;
      EXPECT_EQ(flatten(tree[0], tree[0].slots[i]), prompt);
      EXPECT_EQ(flatten(prefix[i], prefix[i].slots[0]), prompt);
      EXPECT_EQ(tree[0].slots[i].alone_tokens, static_cast<int32_t>(prompt.size()));
      EXPECT_EQ(tree[0].slots[i].stream, alone[i].slots[0].stream);
    }
  }
}

TEST(Tree, RowsAboutTheSameContextShareIt) {
  auto records = make_random_records({.records = 3, .own_questions = true}, 3);
  records[1].document = records[0].document;
  std::vector<Stack> stacks;
  build_tree(records, stacks);
  int contexts = 0;
  for (const Segment& segment : stacks[0].segments) contexts += segment.role == Role::context;
  EXPECT_EQ(contexts, 2);
}

TEST(JointTree, KeysSeeAllDocumentsButNoOtherKey) {
  const auto records = make_random_records({.records = 3, .questions = 2}, 8);
  std::vector<Stack> stacks;
  build_joint_tree(records, stacks);
  const Stack& stack = stacks[0];
  check_stack(stack);
  int32_t position = 0;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(stack.segments[i].first_position, position);
    EXPECT_EQ(stack.segments[i].sees.size(), i);
    position = stack.end_position(static_cast<SegmentId>(i));
  }
  for (const Slot& slot : stack.slots) {
    EXPECT_EQ(stack.segments[static_cast<size_t>(slot.prompt)].sees.size(), 4u);
    EXPECT_EQ(stack.segments[static_cast<size_t>(slot.prompt)].first_position, position);
  }
}

TEST(Mask, ApesQuestionsAloneWeighDocumentsApart) {
  auto records = make_random_records({.records = 1, .questions = 2, .own_questions = true}, 4);
  test::add_random_chains(records, 3, 9, 5);
  std::vector<Stack> stacks;
  const DocumentSoftmax softmax{0.5f, 0.75f};
  build_ape(records, true, stacks, softmax);
  Stack& stack = stacks[0];
  check_stack(stack);
  int apart = 0;
  for (const Segment& segment : stack.segments)
    for (const Sight& sight : segment.sees) {
      const bool of_document = stack.segments[sight.segment].role == Role::document;
      EXPECT_EQ(sight.softmax, of_document ? softmax : DocumentSoftmax{});
      apart += of_document;
    }
  EXPECT_GE(apart, 2);
  const std::string dump = dump_stack(stack, [](int32_t) { return nlohmann::json(0); });
  EXPECT_NE(dump.find(R"("documents":{"temperature":0.5,"scale":0.75,"segments":[1)"), std::string::npos)
      << dump;

  Stack shared = stack, other = stack;
  shared.segments.back().shared = true;
  shared.slots.pop_back();
  EXPECT_THROW(check_stack(shared), Error) << "a shared segment would be the same whatever the softmax is";
  other.segments.back().sees[1].softmax.scale = 0.5f;
  EXPECT_THROW(check_stack(other), Error) << "a step has one softmax of documents";
}

TEST(Mask, PcedsChainsAreThePromptsOfOneDocumentEach) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    auto records = make_random_records({.records = 3, .questions = 2, .own_questions = seed % 2 == 0}, seed);
    test::add_random_chains(records, 5, 9, seed);
    std::vector<Stack> stacks;
    build_pced(records, {}, seed % 4 < 2, stacks);
    ASSERT_EQ(stacks.size(), 6u);
    for (size_t s = 0; s < stacks.size(); ++s) {
      const Stack& stack = stacks[s];
      const RecordParts& record = records[s / 2];
      check_stack(stack);
      const Slot& slot = stack.slots[0];
      ASSERT_EQ(slot.chain_priors.size(), record.documents.size());
      std::vector<TokenPlace> places;
      for (size_t i = 0; i < stack.segments.size(); ++i)
        for (size_t t = 0; t < stack.segments[i].tokens.size(); ++t)
          places.push_back({static_cast<SegmentId>(i), static_cast<int32_t>(t)});
      const auto mask = dense_mask(stack, places);
      for (size_t k = 0; k <= record.documents.size(); ++k) {
        const auto prompt = static_cast<SegmentId>(slot.prompt + static_cast<SegmentId>(k));
        const size_t row = static_cast<size_t>(
            std::find_if(places.begin(), places.end(), [&](TokenPlace p) { return p.segment == prompt; }) -
            places.begin());
        // What the last token of a chain sees, in the order of positions, is the plain prompt.
        Tokens seen;
        for (size_t i = 0; i < places.size(); ++i) {
          if (!mask[row * places.size() + i]) continue;
          const Segment& segment = stack.segments[static_cast<size_t>(places[i].segment)];
          EXPECT_EQ(segment.first_position + places[i].index, static_cast<int32_t>(seen.size()));
          seen.push_back(segment.tokens[static_cast<size_t>(places[i].index)]);
        }
        Tokens wanted = record.bin->instruction;
        if (k > 0) append(wanted, record.documents[k - 1].tokens);
        append(wanted, record.bin->opening);
        append(wanted, record.questions()[s % 2].tokens);
        EXPECT_EQ(seen, wanted) << "seed " << seed << ", stack " << s << ", chain " << k;
      }
    }
  }
}

}  // namespace
}  // namespace sheaf
