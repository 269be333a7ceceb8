#pragma once
#include <span>

#include "core/engine/step_batch.h"

namespace sheaf {

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
float fuse_chains(std::span<const Pick> group, const float* logits, size_t stride, std::span<float> fused);

/// The token of `picks[0]`: from its row of logits, or from it and those of its chains, which lie `stride`
/// apart.
Picked pick_next(std::span<const Pick> picks, std::span<const TokenId> all_allowed, const float* logits,
                 size_t stride, size_t vocab);

}  // namespace sheaf
