#include "core/report/add_reports.h"

#include <algorithm>

#include "core/report/common_values.h"
#include "core/report/report_fields.h"
#include "core/report/row_sample.h"
#include "core/report/throughput.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

/// Adds every number of an object; keys that only one of them has stay.
void add_numbers(const ordered_json& from, ordered_json& to) {
  for (const auto& [key, value] : from.items()) {
    if (!to.contains(key))
      to[key] = value;
    else if (to[key].is_number_float() || value.is_number_float())
      to[key] = to[key].get<double>() + value.get<double>();
    else
      to[key] = to[key].get<int64_t>() + value.get<int64_t>();
  }
}

void add_field(const ReportField& field, const ordered_json& earlier, ordered_json& sum) {
  using Adds = ReportField::Adds;
  if (field.adds == Adds::last || field.adds == Adds::anew) return;
  const auto place = field.pointer();
  if (!field.always && !earlier.contains(place)) return;
  const ordered_json& before = earlier.at(place);
  if (field.adds == Adds::first || (!field.always && !sum.contains(place))) {
    sum[place] = before;
    return;
  }
  ordered_json& now = sum.at(place);
  if (field.adds == Adds::most)
    now = std::max(before.get<double>(), now.get<double>());
  else if (field.kind == ReportField::Kind::number)
    now = before.get<double>() + now.get<double>();
  else
    now = before.get<int64_t>() + now.get<int64_t>();
}

/// Bins are as wide as a power of two, so those of the finer histogram fall whole into the coarser one's.
ordered_json add_histograms(const ordered_json& a, const ordered_json& b) {
  const auto count_a = a.at("count").get<int64_t>(), count_b = b.at("count").get<int64_t>();
  const int64_t count = count_a + count_b;
  const auto width = std::max(a.at("bin_width").get<int64_t>(), b.at("bin_width").get<int64_t>());
  std::vector<int64_t> bins;
  for (const ordered_json* each : {&a, &b}) {
    const auto own = std::max<int64_t>(1, each->at("bin_width").get<int64_t>());
    for (size_t i = 0; i < each->at("bins").size(); ++i) {
      const auto bin = static_cast<size_t>(static_cast<int64_t>(i) * own / width);
      if (bin >= bins.size()) bins.resize(bin + 1);
      bins[bin] += each->at("bins")[i].get<int64_t>();
    }
  }
  const double sum = a.at("mean").get<double>() * static_cast<double>(count_a) +
                     b.at("mean").get<double>() * static_cast<double>(count_b);
  return {{"count", count},
          {"mean", count > 0 ? sum / static_cast<double>(count) : 0.0},
          {"largest", std::max(a.at("largest").get<int64_t>(), b.at("largest").get<int64_t>())},
          {"bin_width", width},
          {"bins", bins}};
}

void replay(const ordered_json& from, double begin, Throughput& to) {
  const double width = from.at("point_seconds");
  const ordered_json& steps = from.at("steps");
  for (size_t i = 0; i < steps.size(); ++i) {
    const double middle = std::min((static_cast<double>(i) + 0.5) * width, from.at("seconds").get<double>());
    to.add(begin + middle,
           {steps[i].get<int64_t>(), from.at("rows").at(i).get<int64_t>(),
            from.at("tokens").at(i).get<int64_t>(), from.at("answer_tokens").at(i).get<int64_t>()});
  }
  to.add(begin + from.at("seconds").get<double>(), {});
}

ordered_json add_throughput(const ordered_json& earlier, const ordered_json& later) {
  Throughput sum;
  replay(earlier, 0, sum);
  replay(later, earlier.at("seconds"), sum);
  return sum.json();
}

ordered_json* find_by(ordered_json& list, const char* key, const ordered_json& value) {
  for (ordered_json& entry : list)
    if (entry.at(key) == value) return &entry;
  return nullptr;
}

void add_values(const ordered_json& from, ordered_json& to) {
  for (const ordered_json& category : from) {
    ordered_json* known = find_by(to, "category", category.at("category"));
    if (!known) {
      to.push_back(category);
      continue;
    }
    (*known)["rows"] = known->at("rows").get<int64_t>() + category.at("rows").get<int64_t>();
    for (const ordered_json& attribute : category.at("attributes"))
      if (ordered_json* same = find_by(known->at("attributes"), "name", attribute.at("name"))) {
        for (const char* key : {"asked", "found", "noted"})
          (*same)[key] = same->at(key).get<int64_t>() + attribute.at(key).get<int64_t>();
        // Earlier reports lack these; a part of a sum says nothing.
        for (const char* key : {"cut", "literal", "common"})
          if (!attribute.contains(key) || !same->contains(key))
            same->erase(key);
          else if (std::string_view(key) == "common")
            add_common_values(attribute.at(key), same->at(key));
          else
            (*same)[key] = same->at(key).get<int64_t>() + attribute.at(key).get<int64_t>();
      }
  }
}

/// Engines by their names. One that failed in an earlier session may be back.
void add_engines(const ordered_json& from, ordered_json& to) {
  for (const ordered_json& engine : from) {
    ordered_json* known = find_by(to, "name", engine.at("name"));
    if (!known) {
      to.push_back(engine);
      continue;
    }
    for (const char* key : {"answers", "tokens", "steps"})
      (*known)[key] = known->at(key).get<int64_t>() + engine.at(key).get<int64_t>();
    for (const char* key : {"decode_seconds", "idle_seconds"})
      (*known)[key] = known->at(key).get<double>() + engine.at(key).get<double>();
    if (engine.contains("failed") && !known->contains("failed")) (*known)["failed"] = engine.at("failed");
  }
}

void add_reasons(const ordered_json& from, ordered_json& to) {
  for (const ordered_json& reason : from) {
    if (ordered_json* known = find_by(to, "kind", reason.at("kind"))) {
      const auto records = known->at("records").get<int64_t>() + reason.at("records").get<int64_t>();
      *known = reason;  // the example is the first of all
      (*known)["records"] = records;
    } else {
      to.push_back(reason);
    }
  }
  std::stable_sort(to.begin(), to.end(),
                   [](const auto& a, const auto& b) { return a.at("records") > b.at("records"); });
}

}  // namespace

ordered_json add_reports(const ordered_json& earlier, const ordered_json& later) {
  ordered_json sum = later;
  // Half a prediction is none.
  const bool predicted = !earlier.value("predicted", ordered_json()).is_null() &&
                         !later.value("predicted", ordered_json()).is_null();
  if (!predicted) sum["predicted"] = nullptr;
  for (const ReportField& field : report_fields())
    if (predicted || !field.path.starts_with("/predicted/")) add_field(field, earlier, sum);
  for (const char* key : {"device_seconds", "endings", "questions"})
    add_numbers(earlier.at(key), sum.at(key));
  sum["throughput"] = add_throughput(earlier.at("throughput"), later.at("throughput"));
  for (const char* key : {"tokens", "slots"})
    sum["per_step"][key] = add_histograms(earlier.at("per_step").at(key), later.at("per_step").at(key));
  sum["value_tokens"] = add_histograms(earlier.at("value_tokens"), later.at("value_tokens"));
  add_values(earlier.at("values"), sum.at("values"));
  // A session with one engine has no list: then the lines are of a part of the run.
  if (earlier.contains("engines")) {
    if (!sum.contains("engines")) sum["engines"] = ordered_json::array();
    add_engines(earlier.at("engines"), sum.at("engines"));
  }
  if (earlier.contains("sample") && sum.contains("sample"))
    add_row_sample(earlier.at("sample"), sum.at("sample"));
  add_reasons(earlier.at("reject_reasons"), sum.at("reject_reasons"));
  set_rates(sum);
  return sum;
}

}  // namespace sheaf
