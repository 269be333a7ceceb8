#pragma once
#include <fmt/format.h>

#include "core/report/report.h"

namespace sheaf::test {

inline Answer answer_of(size_t tokens, Ending ending = Ending::delimiter) {
  Answer answer;
  answer.tokens.assign(tokens, 1);
  answer.ending = ending;
  return answer;
}

/// A run of `steps` steps, each of 0.5 s, 100 tokens and one item of the category `category`.
inline Report made_up_report(int steps, const std::string& category = "Shoes") {
  Report report;
  report.job = "jobs/night.yaml";
  report.model = "models/small";
  report.backend = "CPU, fp32, 2 threads";
  report.method = "hpd";
  report.usd_per_hour = 3.6;
  report.devices = 2;
  report.open_seconds = 1;
  EngineStats& engine = report.engine;
  PipelineStats& pipeline = report.pipeline;
  for (int i = 0; i < steps; ++i) {
    ++engine.steps;
    engine.prefill_tokens += 90;
    engine.decode_tokens += 10;
    engine.answer_tokens += 12;
    engine.answers += 2;
    pipeline.answers += 2;
    engine.alone_tokens += 300;
    engine.step_seconds += 0.4;
    engine.host_seconds += 0.1;
    engine.idle_seconds += 0.05;
    ++pipeline.records;
    ++pipeline.decoded;
    report.statistics.step(0.5 * (i + 1), engine, pipeline);
    const RowAnswer colour = i % 4 ? RowAnswer{"red"} : RowAnswer{nullptr, "cut"};
    const Row row{i, ExtractedValues{category, {{"Colour", colour}, {"Size", {42}}}}};
    report.statistics.row(row, {answer_of(4), answer_of(8, i % 4 ? Ending::delimiter : Ending::length)});
  }
  report.total_seconds = 1 + 0.5 * steps;
  return report;
}

}  // namespace sheaf::test
