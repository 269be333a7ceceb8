#include "core/estimate/api_cost.h"

#include <cmath>

#include "core/text/format.h"
#include "core/text/printable.h"

namespace sheaf {

ApiTokens count_api_tokens(EstimateCase asked, const SampledRecords& records) {
  const Job::Method own = asked.method;
  asked.method = {};
  asked.method.name = "standard";  // whole prompts that share nothing
  asked.method.max_value_tokens = own.max_value_tokens;
  asked.method.prompt_tokens = own.prompt_tokens;
  const Estimate each = estimate(asked, records);
  // The first token of an answer comes with its prompt.
  const double output = each.answers * each.answer_tokens;
  return {each.answers, each.tokens - (output - each.answers), output};
}

double api_usd(const ApiPrice& price, const ApiTokens& tokens) {
  return (tokens.input * price.input + tokens.output * price.output) / 1e6;
}

std::string api_text(const std::vector<ApiPrice>& prices, const ApiTokens& tokens) {
  const auto whole = [](double value) { return number_text(std::round(value)); };
  std::string text;
  for (const ApiPrice& price : prices) {
    const double usd = api_usd(price, tokens);
    text += fmt::format("api       {}: {}", printable_line(price.title), money_text(usd));
    if (price.batch < 1) text += fmt::format(", {} in batches", money_text(usd * price.batch));
    text += fmt::format("; ${:.2f} and ${:.2f} per million tokens in and out ({}, {})\n", price.input,
                        price.output, printable_line(price.as_of), printable_line(price.source));
  }
  return text +
         fmt::format(
             "          for {} with {} tokens in and {} out, counted by this model's tokenizer; a service "
             "has its own, and may charge less for prompts that begin alike\n",
             tokens.requests == 1 ? "1 request" : whole(tokens.requests) + " requests", whole(tokens.input),
             whole(tokens.output));
}

nlohmann::ordered_json api_json(const std::vector<ApiPrice>& prices, const ApiTokens& tokens) {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (const ApiPrice& price : prices)
    models.push_back({{"name", price.name},
                      {"usd", api_usd(price, tokens)},
                      {"usd_in_batches", api_usd(price, tokens) * price.batch},
                      {"usd_per_million_input", price.input},
                      {"usd_per_million_output", price.output},
                      {"as_of", price.as_of},
                      {"source", price.source}});
  return {{"requests", std::llround(tokens.requests)},
          {"input_tokens", std::llround(tokens.input)},
          {"output_tokens", std::llround(tokens.output)},
          {"models", std::move(models)}};
}

}  // namespace sheaf
