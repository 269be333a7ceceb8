#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "core/segments/stack.h"

namespace sheaf {

struct ModelConfig;

/// The keys and values of one segment as they lie in the paged pool: page p holds slots
/// [p × page_size, (p + 1) × page_size). Key j of the span is slot pages[j / page_size] × page_size + j %
/// page_size.
struct KeySpan {
  int32_t first_page;    ///< index into StepBatch::pages
  int32_t keys;          ///< keys in the span once this step's rows are written
  int32_t position = 0;  ///< of its first key; the others follow one by one

  /// The first key that a row sees in a layer with a window, which 0 is not.
  int32_t first_seen(int32_t row_position, int32_t window) const {
    return window > 0 ? std::max(row_position - window + 1 - position, 0) : 0;
  }
};

/// One row looking at a span: it sees the span's first `visible` keys (all of them, or fewer inside its own
/// segment); in a layer with a window, of these only the ones from first_seen() on.
struct TileRow {
  int32_t row;
  int32_t visible;
};

/// The rows that look at one span. The span is read once for all of them.
struct AttentionTile {
  int32_t span;       ///< index into StepBatch::spans
  int32_t first_row;  ///< index into StepBatch::tile_rows
  int32_t row_count;
  bool apart = false;  ///< its rows weigh the span's keys by StepBatch::document_softmax
};

/// Rows that follow each other.
struct RowRun {
  int32_t first, count;
};

/// A key and value that are also wanted in another slot.
struct KeyCopy {
  int32_t from, to;  ///< slots
};

/// How the next token of a wanted row is chosen. A pick with chains is chosen from its own row (the amateur,
/// which has seen no document) and those of the picks right after it together, which choose nothing
/// themselves.
struct Pick {
  int32_t row = 0;        ///< whose next token is wanted
  float temperature = 0;  ///< 0: the most likely token, lowest id on a tie
  int32_t top_k = 0;      ///< 0: no limit
  float top_p = 1;
  float uniform = 0;          ///< a number in [0, 1) that decides the sample; unused when greedy
  int32_t first_allowed = 0;  ///< index into StepBatch::allowed
  int32_t allowed_count = 0;  ///< 0: every token is allowed
  float* listed =
      nullptr;          ///< where log-probabilities of all allowed tokens go [allowed_count]; null: unwanted
  bool rivals = false;  ///< whether Picked.second and Picked.watched are wanted
  TokenId watch = -1;   ///< a token apart, among the allowed: its bias decides too; -1: none
  float bias = 0;       ///< added to the logit of `watch` in the choice, not in log-probabilities
  int32_t chains = 0;   ///< how many picks after it are its chains
  float contrast = 0;   ///< with chains: how far they are pushed away from the amateur, or dynamic
  Aggregate aggregate = Aggregate::max;
  float prior = 0;  ///< of a chain: added to its scores
};

/// Everything a backend needs for one step, as plain arrays. It says nothing of methods.
/// The keys and values of all rows are written, and then copied, before any row attends, so a row may see
/// rows of its own step.
struct StepBatch {
  std::vector<TokenId> tokens;     ///< [rows]
  std::vector<int32_t> positions;  ///< [rows] for the rotary embedding
  std::vector<int32_t> kv_slots;   ///< [rows] where the row's key and value go
  std::vector<KeyCopy>
      copies;  ///< of slots that hold their keys and values by then; none from another's `to`

  std::vector<int32_t> pages;  ///< page numbers of all spans, one after the other
  std::vector<KeySpan> spans;
  std::vector<TileRow> tile_rows;
  std::vector<AttentionTile> tiles;  ///< for each row, its tiles come in the order of its keys
  DocumentSoftmax document_softmax;  ///< of each row over the keys of all its tiles that are apart

  std::vector<Pick> picks;  ///< rows that reach the output projection, ascending rows
  Tokens allowed;           ///< token lists that picks point into, ascending ids

  int32_t decode_tokens = 0;        ///< the first rows, which continue answers; the others are of prompts
  std::vector<RowRun> shared_rows;  ///< rows of instructions and documents, ascending; backends need not look

  int32_t rows() const { return static_cast<int32_t>(tokens.size()); }
  void clear();
};

/// A step as two that run one after the other: the first `rows` rows and the rest. No row may see a
/// key that a later row writes; the engine's batches are ordered so. No pick may be cut from its chains.
std::pair<StepBatch, StepBatch> split_batch(const StepBatch& batch, int32_t rows);

/// About half of the rows, so that no pick is cut from its chains; 0 where the step cannot be split.
int32_t middle_row(const StepBatch& batch);

/// The end of the picks from `first` on that are computed together: at most `most`, or one with its chains.
size_t picks_end(const std::vector<Pick>& picks, size_t first, size_t most);
/// The most picks that picks_end() puts together.
size_t most_picks_together(const std::vector<Pick>& picks, size_t most);

/// Checks that every index of the batch points inside what it points into, so that a backend may trust them
/// all. Takes time linear in the batch. A malformed batch is a fatal error that names the entry.
void check_batch(const StepBatch& batch, const ModelConfig& config, int32_t pages, int32_t page_size);

struct Picked {
  TokenId token;
  float logprob;  ///< natural log of the token's probability over the whole vocabulary at temperature 1; NaN
                  ///< where the logits are not sound (pick.h): then the token means nothing
  float contrast = 0;  ///< of a pick with chains: as given, or as found
  int32_t voice = 0;   ///< of a pick with chains: the one that spoke the token, from 1 (fuse_chains())
  // Where the pick asks for its rivals: log-probabilities as above; minus infinity where there is no such
  // token.
  float second = -std::numeric_limits<float>::infinity();   ///< of the likeliest allowed token but these two
  float watched = -std::numeric_limits<float>::infinity();  ///< of Pick.watch
};

/// Chooses a token from one row of logits: the definition that every backend follows. A token outside
/// `allowed` (when not empty) is never chosen. `pick.watch` is allowed; its bias is added to its logit before
/// a token is chosen. Where the logits are not sound (one of the whole vocabulary is NaN or plus infinity, or
/// all are minus infinity) the log-probability is NaN, and the token is some allowed one.
Picked pick_token(std::span<const float> logits, const Pick& pick, std::span<const TokenId> allowed);

/// The scores that a pick with chains chooses from, into `fused` [vocab], which may be its own row of
/// `logits`: `group` is the pick and its chains, whose rows lie `stride` apart. Returns the contrast b.
/// With the amateur's logits a and chain k's e(k), prior p(k) and c(k) = (1 + b) e(k) - b a, the score of a
/// token is
///   max: the largest c(k) + p(k);
///   mixture: log of the sum of w(k) softmax(c(k));  product: the sum of w(k) log softmax(c(k)), w =
///   softmax(p).
/// Where a row has NaN or plus infinity, so have the scores: all are NaN.
/// A dynamic b is the mean over chains of the Jensen-Shannon divergence (natural logarithms) between
/// softmax(e(k)) and softmax(a).
/// A token is spoken by the chain with the largest (1 + b) e(k) + o(k) for it, the first on a tie: o(k) is
/// p(k) for max, else the logarithm of w(k) divided by the sum of e^c(k). `offsets`, where not null, gets
/// o(k); minus infinity for a chain that has no say.
float fuse_chains(std::span<const Pick> group, const float* logits, size_t stride, std::span<float> fused,
                  std::vector<double>* offsets = nullptr);

/// The token of `picks[0]`: from its row of logits, or from it and those of its chains, which lie `stride`
/// apart.
Picked pick_next(std::span<const Pick> picks, std::span<const TokenId> all_allowed, const float* logits,
                 size_t stride, size_t vocab);

}  // namespace sheaf
