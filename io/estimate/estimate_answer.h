#pragma once
#include "core/estimate/api_cost.h"
#include "core/estimate/sweep.h"
#include "io/estimate/inputs.h"

namespace sheaf {

/// What an estimate may tell besides time and money.
struct EstimateExtras {
  std::string api;       ///< models of services to compare with; empty: none
  std::string api_file;  ///< their prices; empty: the installed ones
  int32_t shards = 0;    ///< of an array of them; 0: not asked for
  bool explain = false;  ///< FLOPs and bytes of each phase; of one device
};

/// What services would charge for the job.
struct ApiCosts {
  std::vector<ApiPrice> prices = {};  ///< none: nobody asked
  ApiTokens tokens = {};

  ApiCosts() = default;
  /// `asked`: on a device that holds the model.
  ApiCosts(const EstimateExtras& extras, const EstimateCase& asked, const SampledRecords& records);
  void add_to(nlohmann::ordered_json& json) const;
};

EstimateHead estimate_head(const std::string& model, const AskedEstimate& made);

/// One device in detail, with the best setting on it.
struct DeviceAnswer {
  /// Refuses a model that the device cannot hold.
  DeviceAnswer(const AskedEstimate& made, const EstimateExtras& extras);
  nlohmann::ordered_json json(const AskedEstimate& made) const;

  EstimateCase asked;
  Estimate estimate;
  BestPacking best;
  ApiCosts apis;
  std::optional<ShardsEstimate> shards;
  EstimateHead head;
  bool in_time;
};

/// Settings side by side.
struct SweepAnswer {
  SweepAnswer(const AskedEstimate& made, const EstimateExtras& extras);
  nlohmann::ordered_json json() const;

  std::vector<SweepRow> rows;
  std::vector<std::string> notes;
  EstimateHead head;
  ApiCosts apis;
};

/// Nothing is left to decode, as JSON.
nlohmann::ordered_json nothing_json(const NothingToDecode& end);

/// What was asked, as JSON.
nlohmann::ordered_json estimate_answer(const EstimateAsked& asked, const EstimateExtras& extras = {});

}  // namespace sheaf
