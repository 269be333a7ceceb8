#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "core/model/work.h"
#include "core/segments/allowed_answers.h"

namespace sheaf {

using SegmentId = int32_t;

enum class Role : uint8_t { instruction, document, context, question, key, value };
const char* role_name(Role role);

/// How a question attends to documents in APE: their scores are divided by the temperature, and what all
/// their keys together weigh in the softmax, the sum of e^score, is raised to the power `scale`. Both lie in
/// (0, 1]; 1 changes nothing.
struct DocumentSoftmax {
  float temperature = 1;
  float scale = 1;
  bool plain() const { return temperature == 1 && scale == 1; }
  bool operator==(const DocumentSoftmax&) const = default;
};

/// A segment that another one sees.
struct Sight {
  SegmentId segment;
  /// Only its tokens up to and including the looking token's own index: how values that are decoded side by
  /// side see each other under positional causality.
  bool abreast = false;
  /// Where it is not plain: its keys, and those of all such sights of the segment, are weighed so. All such
  /// sights of a stack have the same one, and no shared segment has any.
  DocumentSoftmax softmax = {};
};

/// A run of tokens at consecutive positions. A token attends to every token of the segments its own segment
/// sees, and to itself and the tokens before it in its own segment. Nothing else: a mask is a consequence of
/// this.
struct Segment {
  Role role = Role::instruction;
  Tokens tokens;  ///< known before decoding; a value of its own starts empty
  int32_t first_position = 0;
  std::vector<Sight> sees;  ///< segments of the same stack with lower ids, in the order of their positions
  bool shared =
      false;  ///< an equal segment (same tokens, positions and sights) of another stack is the same one
};

/// When an answer is complete, besides its length limit, its trie and the end-of-text tokens.
enum class Stop : uint8_t {
  line,    ///< at a newline
  value,   ///< at a newline, or once the JSON literal it starts with is complete
  quoted,  ///< at a newline, or at the quote that closes the JSON string opened before the answer
  object,  ///< at the brace that closes the JSON object opened before the answer
  text,    ///< nowhere else
};

const char* stop_name(Stop stop);

constexpr float kDynamicContrast = -1;  ///< found from the rows themselves

/// What is kept of an answer beside its tokens: how likely null and the best other answer were.
struct Watch {
  Tokens null;     ///< how null begins; empty: null is no answer to this question
  float bias = 0;  ///< added to the logit of null's next token where it is chosen or not
};

/// How the tokens of an answer are chosen and what ends it, where a request has wishes of its own.
struct Decoding {
  float temperature = 0;  ///< 0: greedy
  int32_t top_k = 0;      ///< 0: no limit
  float top_p = 1;
  uint64_t seed = 0;
  std::vector<std::string> stops = {};  ///< texts that end the answer, which is without them
};

/// How the likeliest of the allowed answers is searched for (core/engine/likeliest.h).
struct AnswerSearch {
  float length_norm = 0;      ///< scores are log-probabilities divided by this power of the number of tokens
  int32_t most_tokens = 256;  ///< after which the best answer so far is taken
};

/// How an answer thinks before it is given: in an earlier round, after which `close` or `cut` opens the
/// answer.
struct Thinking {
  int32_t budget = 0;  ///< most tokens of a thought
  TokenId end = -1;    ///< ends a thought
  Tokens close;        ///< begins with `end`, and opens the answer
  Tokens cut;          ///< in its place after a thought that reached the budget; holds `end` too
};

/// How the scores of several chains become one row of scores; `core/engine/fuse_chains.cc` defines them.
enum class Aggregate : uint8_t { max, mixture, product };

/// One answer to decode. Chains are further prompts that are fed the answer's tokens and have a say in each:
/// the segments right after `prompt`, one each. They and `prompt`, the amateur's, hold one token, the last of
/// the question, so that all are computed in one step and the next token is picked from all of them together.
struct Slot {
  SegmentId prompt = 0;  ///< the answer's first token follows its last token
  SegmentId answer = 0;  ///< where decoded tokens go: `prompt` itself, or an empty segment of their own
  int32_t max_tokens = 1;
  Stop stop = Stop::line;
  std::shared_ptr<const AllowedAnswers> allowed;  ///< the only possible answers, if there are such
  std::shared_ptr<const Watch> watch;             ///< nothing: only the answer itself is wanted
  std::shared_ptr<const Decoding> decoding;       ///< nothing: as the engine's options say
  std::shared_ptr<const AnswerSearch> search;     ///< nothing: token by token
  std::shared_ptr<const Thinking> thinking;       ///< nothing: it is answered at once
  TokenId last = -1;         ///< a token that ends it besides the end of a text; -1: none
  Tokens thought;            ///< decoded in an earlier round, and part of the answer
  uint64_t stream = 0;       ///< names the slot's random numbers: depends on the record, never on the batch
  int32_t record = 0;        ///< whose answer it is: index into the records of the plan's window
  int32_t question = 0;      ///< index of the question or attribute inside the record
  int32_t option = 0;        ///< of several answers to one question, of which the likeliest is taken
  int32_t parent = -1;       ///< of a later round: the slot of the round before to whose answer this belongs
  int32_t entry = 0;         ///< of a later round: which entry of that answer it is about, from 0
  int32_t alone_tokens = 0;  ///< tokens of the prompt, or prompts, that would ask just this
  std::vector<float> chain_priors;  ///< per chain, added to its scores
  float contrast = 0;               ///< of the chains with the amateur
  Aggregate aggregate = Aggregate::max;

  int32_t prompts() const { return 1 + static_cast<int32_t>(chain_priors.size()); }
};

struct Stack;
struct EarlierRound;  // core/engine/answer.h

/// A later round: a prompt that is made from the answers to another one.
class NextRound {
 public:
  virtual ~NextRound() = default;
  /// Whether the answers that it is made from are wanted too; else only its own are.
  virtual bool keeps_answers() const { return false; }
  /// `logprobs`: of the answers.
  virtual Stack after(std::span<const Tokens> answers, std::span<const double> logprobs) const = 0;
  /// The longest that it can be. The tokens of its answers mean nothing.
  virtual Stack longest() const = 0;
  /// As long as it may well be, where nothing is decoded. The tokens of its answers mean nothing.
  virtual Stack expected() const;
};

/// Records packed into one prompt: a small graph of segments and the answers wanted.
struct Stack {
  std::vector<Segment> segments;
  std::vector<Slot> slots;
  std::shared_ptr<const NextRound> next;             ///< decoded in its place, once its answers are complete
  bool later_round = false;                          ///< made of an earlier one's answers
  std::shared_ptr<const EarlierRound> earlier = {};  ///< the round that it was made of, if that is kept
  int64_t window = 0;                                ///< the window of the corpus that its records belong to

  SegmentId add(Segment segment);
  /// A segment that begins where the last one that it sees ends.
  SegmentId add_after(std::vector<Sight> sees, Role role, Tokens tokens, bool shared = false);
  int32_t end_position(SegmentId id) const;  ///< the position after the segment's last known token
  /// Whether nobody but the next round reads its answers.
  bool feeds_next() const { return next && !next->keeps_answers(); }
  int64_t prompt_tokens() const;           ///< known tokens of all segments
  int32_t positions() const;               ///< one more than the highest position any token can take
  std::vector<int32_t> most_keys() const;  ///< per segment, the most keys it can come to hold
};

/// Throws a fatal error where the graph breaks its rules: sights of later segments, unordered sights, an
/// answer that is wholly seen (it is never finished when it is looked at), an empty prompt.
void check_stack(const Stack& stack);

/// The graph as one JSON object: every segment's role, tokens, first position, what it sees, and the slots
/// with the id of their record.
std::string dump_stack(const Stack& stack, const std::function<nlohmann::json(int32_t record)>& record_id);

/// The graph as a person reads it: every segment's text under a line with its number, its role and what it
/// sees, and a mark where an answer goes. `text_of` spells tokens, `record_name` names a record.
std::string stack_text(const Stack& stack,
                       const std::function<std::string(std::span<const TokenId>)>& text_of,
                       const std::function<std::string(int32_t record)>& record_name);

/// Counts the work of stacks whose answers all reach their full length, on a model with such layers. Equal
/// shared segments are counted once, as an engine computes them that never has to give one up for want of
/// pages.
class WorkCount {
 public:
  explicit WorkCount(LayerWindows windows) : windows_(std::move(windows)) {}

  void add(const Stack& stack);
  const Work& work() const { return work_; }

 private:
  LayerWindows windows_;
  Work work_;
  std::map<std::vector<int64_t>, int64_t> shared_;  ///< what tells a segment from others → its serial
  int64_t next_serial_ = 0;
};

}  // namespace sheaf
