#pragma once
#include "core/model/shapes.h"
#include "io/estimate/inputs.h"
#include "io/files/hardware_file.h"
#include "io/jobs/bench.h"

namespace sheaf::test {

inline HardwareList hardware_for(const Job::ModelPart& model = {},
                                 KvPrecision keys = KvPrecision::automatic) {
  return read_hardware(SHEAF_SOURCE_DIR "/configs/hardware.yaml", model, keys);
}
inline const HardwareList& listed_hardware() {
  static const HardwareList list = hardware_for();
  return list;
}

inline DescribedModel shape_of(const std::string& name) {
  return {shape_by_name(name)};
}

/// A workload with the given lengths.
inline Workload make_up_workload(const RecordStatistics& statistics, int64_t records) {
  auto bin = std::make_shared<BinParts>();
  bin->instruction = make_up_tokens(statistics.instruction.value_or(0));
  Workload workload;
  workload.name = "statistics";
  workload.vocab = 30000;
  workload.common = static_cast<int64_t>(bin->instruction.size());
  std::vector<RecordParts>& parts = workload.bins.emplace_back();
  for (ReadyRecord& record : make_up_records(statistics, records, {{"", bin}}, INT32_MAX)) {
    record.parts.record = static_cast<int32_t>(parts.size());
    record.parts.stream = parts.size();
    workload.questions += static_cast<int64_t>(record.parts.own_questions.size());
    parts.push_back(std::move(record.parts));
  }
  return workload;
}

/// A run over made-up rows, predicted.
inline SimulatedRun predict(const char* shape, const Hardware& device, const RecordStatistics& statistics,
                            int64_t rows, const Job::Method& packing) {
  const EstimateCase each{shape, shape_by_name(shape), &device};
  return simulate(each, plan_memory(each), 0,
                  pack(make_up_workload(statistics, rows), {packing}, each.config.context));
}

inline SimulatedRun predict(const char* shape, const char* device, const RecordStatistics& statistics,
                            int64_t rows, const Job::Method& packing) {
  return predict(shape, listed_hardware().find(device), statistics, rows, packing);
}

}  // namespace sheaf::test
