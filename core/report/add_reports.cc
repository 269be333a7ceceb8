#include <algorithm>

#include "core/report/report.h"
#include "core/report/report_fields.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;
using Adds = ReportField::Adds;
using Kind = ReportField::Kind;

void add_number(const ordered_json& from, Kind kind, ordered_json& to) {
  if (kind == Kind::number)
    to = from.get<double>() + to.get<double>();
  else
    to = from.get<int64_t>() + to.get<int64_t>();
}

/// Adds the figures of an object; keys that only one of them has stay.
void add_figures(const ordered_json& from, Kind kind, ordered_json& to) {
  for (const auto& [key, value] : from.items())
    if (to.contains(key))
      add_number(value, kind, to[key]);
    else
      to[key] = value;
}

void add_field(const ReportField& field, const ordered_json& earlier, ordered_json& sum) {
  if (field.adds == Adds::last || field.adds == Adds::derived) return;
  const auto place = field.pointer();
  if (!field.always && !earlier.contains(place)) return;
  const ordered_json& before = earlier.at(place);
  if (field.adds == Adds::first || (!field.always && !sum.contains(place)))
    sum[place] = before;
  else if (field.adds == Adds::most)
    sum.at(place) = std::max(before.get<double>(), sum.at(place).get<double>());
  else
    add_number(before, field.kind, sum.at(place));
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

/// Only mixtures of experts have it, and sessions that ran no step have not.
void add_expert_tokens(const ordered_json& earlier, ordered_json& sum) {
  constexpr const char* kKey = "expert_tokens";
  if (!earlier.contains(kKey)) return;
  sum[kKey] = sum.contains(kKey) ? add_histograms(earlier.at(kKey), sum.at(kKey)) : earlier.at(kKey);
}

void replay(const ordered_json& from, double begin, Throughput& to) {
  const double width = from.at("point_seconds");
  for (size_t i = 0; i < from.at("steps").size(); ++i) {
    const double middle = std::min((static_cast<double>(i) + 0.5) * width, from.at("seconds").get<double>());
    Throughput::Point point;
    for (const auto& [key, count] : Throughput::kCounts) point.*count = from.at(key).at(i).get<int64_t>();
    to.add(begin + middle, point);
  }
  to.add(begin + from.at("seconds").get<double>(), {});
}

ordered_json add_throughput(const ordered_json& earlier, const ordered_json& later) {
  Throughput sum;
  replay(earlier, 0, sum);
  replay(later, earlier.at("seconds"), sum);
  return sum.json();
}

void add_member(const ordered_json& from, const ReportMember& member, ordered_json& to);

/// Entries are the same where their first members are equal.
void add_entries(const ordered_json& from, const std::vector<ReportMember>& members, ordered_json& to) {
  const std::string& name = members[0].key;
  for (const ordered_json& entry : from) {
    const auto known = std::find_if(
        to.begin(), to.end(), [&](const ordered_json& each) { return each.at(name) == entry.at(name); });
    if (known == to.end())
      to.push_back(entry);
    else
      for (const ReportMember& member : members) add_member(entry, member, *known);
  }
}

void add_member(const ordered_json& from, const ReportMember& member, ordered_json& to) {
  const std::string& key = member.key;
  const bool before = from.contains(key), now = to.contains(key);
  if (member.adds == Adds::last || member.kind == Kind::text) {
    if (before && (!now || member.adds == Adds::first)) to[key] = from.at(key);
    if (!before && member.adds == Adds::first) to.erase(key);
  } else if (!before || !now) {
    to.erase(key);  // earlier reports lack it; a part of a sum says nothing
  } else if (member.kind != Kind::list) {
    add_number(from.at(key), member.kind, to.at(key));
  } else {
    add_entries(from.at(key), member.entries, to.at(key));
    if (key == "common") keep_common(to.at(key));
  }
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
  add_figures(earlier.at("device_seconds"), Kind::number, sum.at("device_seconds"));
  for (const char* key : {"endings", "questions"}) add_figures(earlier.at(key), Kind::count, sum.at(key));
  sum["throughput"] = add_throughput(earlier.at("throughput"), later.at("throughput"));
  for (const char* key : {"tokens", "slots"})
    sum["per_step"][key] = add_histograms(earlier.at("per_step").at(key), later.at("per_step").at(key));
  add_expert_tokens(earlier.at("per_step"), sum.at("per_step"));
  sum["value_tokens"] = add_histograms(earlier.at("value_tokens"), later.at("value_tokens"));
  const ReportLists& lists = report_lists();
  add_entries(earlier.at("values"), lists.values.entries, sum.at("values"));
  // A session with one engine has no list: then the lines are of a part of the run.
  if (earlier.contains("engines")) {
    if (!sum.contains("engines")) sum["engines"] = ordered_json::array();
    add_entries(earlier.at("engines"), lists.engines.entries, sum.at("engines"));
  }
  if (earlier.contains("sample") && sum.contains("sample"))
    add_row_sample(earlier.at("sample"), sum.at("sample"));
  ordered_json& reasons = sum.at("reject_reasons");
  add_entries(earlier.at("reject_reasons"), lists.reject_reasons.entries, reasons);
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.at("records") > b.at("records"); });
  set_rates(sum);
  return sum;
}

}  // namespace sheaf
