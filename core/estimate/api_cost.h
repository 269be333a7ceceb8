#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/estimate/estimate.h"

namespace sheaf {

/// What a service charges for a model, in dollars per million tokens.
struct ApiPrice {
  std::string name;
  std::string title;
  double input = 0, output = 0;
  double batch = 1;    ///< share of both prices that its batches cost; 1: no discount
  std::string as_of;   ///< month or day of the price
  std::string source;  ///< where the price was read
};

/// What a service would read and write for a job: one request per record with all values (extract), or per
/// question.
struct ApiTokens {
  double requests = 0, input = 0, output = 0;
};

/// The tokens of a job's requests, counted by its own tokenizer. `asked`: on a device that holds the model.
ApiTokens count_api_tokens(EstimateCase asked, const SampledRecords& records);

double api_usd(const ApiPrice& price, const ApiTokens& tokens);

/// A line per price, and what the figures rest on.
std::string api_text(const std::vector<ApiPrice>& prices, const ApiTokens& tokens);
nlohmann::ordered_json api_json(const std::vector<ApiPrice>& prices, const ApiTokens& tokens);

}  // namespace sheaf
