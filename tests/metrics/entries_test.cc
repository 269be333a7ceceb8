// Objects and lists of objects: which entries are paired, and how their fields and entries count.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <numeric>
#include <random>

#include "core/metrics/assignment.h"
#include "tests/metrics/score_command.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::Ran;
using test::read_json_lines;
using test::ScoreCommand;

struct Worth {
  int64_t right = 0, apart = 0;  // fields, and squares of the differences of places

  bool operator==(const Worth&) const = default;
  bool better_than(const Worth& other) const {
    return right != other.right ? right > other.right : apart < other.apart;
  }
};

Worth worth_of(const std::vector<int64_t>& right, size_t given, const std::vector<size_t>& pairs) {
  Worth worth;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i] == kUnpaired) continue;
    const int64_t apart = static_cast<int64_t>(i) - static_cast<int64_t>(pairs[i]);
    worth.right += right[i * given + pairs[i]];
    worth.apart += apart * apart;
  }
  return worth;
}

/// The best of all ways to pair the smaller side with entries of the larger one.
Worth try_all(const std::vector<int64_t>& right, size_t gold, size_t given) {
  std::vector<size_t> order(std::max(gold, given));
  std::iota(order.begin(), order.end(), 0);
  std::optional<Worth> best;
  do {
    std::vector<size_t> pairs(gold, kUnpaired);
    for (size_t i = 0; i < gold; ++i)
      if (order[i] < given) pairs[i] = order[i];
    const Worth worth = worth_of(right, given, pairs);
    if (!best || worth.better_than(*best)) best = worth;
  } while (std::ranges::next_permutation(order).found);
  return *best;
}

TEST(PairEntries, ArePairedAsWellAsAnyPairing) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    const size_t gold = random() % 7, given = random() % 7;
    std::vector<int64_t> right(gold * given);
    for (int64_t& each : right) each = static_cast<int64_t>(random() % 4);
    const std::vector<size_t> pairs = pair_entries(right, gold, given);
    ASSERT_EQ(pairs.size(), gold);
    std::vector<size_t> used;
    std::ranges::copy_if(pairs, std::back_inserter(used), [](size_t j) { return j != kUnpaired; });
    EXPECT_EQ(used.size(), std::min(gold, given)) << "round " << round;
    std::ranges::sort(used);
    EXPECT_TRUE(std::ranges::adjacent_find(used) == used.end()) << "an entry is in two pairs";
    EXPECT_TRUE(used.empty() || used.back() < given);
    EXPECT_EQ(worth_of(right, given, pairs), try_all(right, gold, given)) << "round " << round;
  }
}

TEST(PairEntries, KeepTheOrderWhereNothingDecides) {
  EXPECT_EQ(pair_entries(std::vector<int64_t>(9, 1), 3, 3), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(pair_entries(std::vector<int64_t>(6, 0), 3, 2), (std::vector<size_t>{0, 1, kUnpaired}));
  EXPECT_EQ(pair_entries(std::vector<int64_t>(6, 0), 2, 3), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(pair_entries({}, 0, 3), std::vector<size_t>());
  EXPECT_EQ(pair_entries({}, 2, 0), (std::vector<size_t>{kUnpaired, kUnpaired}));
}

TEST(PairEntries, TheGreedyChoiceIsNotTheBest) {
  // The first entry of gold shares 3 fields with the first of the answer, and 2 with the second.
  EXPECT_EQ(pair_entries({3, 2, 2, 0}, 2, 2), (std::vector<size_t>{1, 0}));
}

/// The counts of the metric.
json counts(const json& scores) {
  json some;
  for (const char* name : {"nn", "nv", "vn", "vc", "vw", "entries", "entries_given", "entries_found"})
    some[name] = scores.value(name, json());
  return some;
}

class NestedScores : public ScoreCommand {
 protected:
  /// Gold and rows of one record.
  json score_record(std::string gold, std::string values, const std::string& options = "") {
    std::ranges::replace(gold, '\n', ' ');
    std::ranges::replace(values, '\n', ' ');
    const std::string wanted =
        write("gold.jsonl", R"({"id": 1, "category": "Shirt", "gold": )" + gold + "}\n");
    const std::string rows =
        write("rows.jsonl", R"({"id": 1, "category": "Shirt", "values": )" + values + "}\n");
    return score("--metric attributes --gold " + wanted + " --pred " + rows + " " + options);
  }
};

TEST_F(NestedScores, CountFieldsOfPairedEntries) {
  // M is paired with M, S with the entry without a size, for its price; L is missed, XL invented.
  const json scores = score_record(
      R"({"Brand": "Oak", "sizes": [{"size": "S", "price": 10, "stock": null}, {"size": "M", "price": 12, "stock": 3},
          {"size": "L", "price": 15, "stock": null}]})",
      R"({"Brand": "Oak", "sizes": [{"size": "M", "price": 13, "stock": 3}, {"size": null, "price": 10.0, "stock": null},
          {"size": "XL", "price": 18, "stock": 4}, {"size": "XXL", "price": 19, "stock": null}]})");
  // Right: Brand, S's price, M's size and stock. Wrong: M's price, and XL's two with which L is paired.
  // Invented: XL's stock, XXL's size and price. Missed: S's size. Rightly absent: S's stock.
  EXPECT_EQ(counts(scores), (json{{"vc", 4},
                                  {"vw", 3},
                                  {"nv", 3},
                                  {"vn", 1},
                                  {"nn", 1},
                                  {"entries", 3},
                                  {"entries_given", 4},
                                  {"entries_found", 2}}));
  EXPECT_DOUBLE_EQ(scores["micro_precision"].get<double>(), 40.0);
  EXPECT_DOUBLE_EQ(scores["micro_recall"].get<double>(), 50.0);
  EXPECT_DOUBLE_EQ(scores["entry_precision"].get<double>(), 50.0);
  EXPECT_DOUBLE_EQ(scores["entry_recall"].get<double>(), 66.67);
  EXPECT_DOUBLE_EQ(scores["entry_f1"].get<double>(), 57.14);
  const json& price = scores["groups"]["Shirt"]["attributes"]["sizes.price"];
  EXPECT_EQ(price["vc"], 1);
  EXPECT_EQ(price["vw"], 2);
  EXPECT_EQ(price["nv"], 1);
}

TEST_F(NestedScores, ShowNoFiguresOfFieldsForAListAsAWhole) {
  const std::string gold =
      write("gold.jsonl", R"({"id": 1, "category": "Shirt", "gold": {"sizes": [{"size": "S", "price": 10}]}})"
                          "\n");
  const std::string rows = write(
      "rows.jsonl", R"({"id": 1, "category": "Shirt", "values": {"sizes": [{"size": "S", "price": 11}]}})"
                    "\n");
  const Ran text = run("--metric attributes --resamples 0 --gold " + gold + " --pred " + rows);
  EXPECT_NE(text.out.find("    sizes                     -            -        - "), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("    sizes.price            0.00         0.00     0.00 "), std::string::npos)
      << text.out;
}

TEST_F(NestedScores, DoNotDependOnTheOrderOfEntries) {
  const char* const gold = R"({"sizes": [{"size": "S", "price": 10}, {"size": "M", "price": 12}]})";
  const json same =
      score_record(gold, R"({"sizes": [{"size": "M", "price": 12}, {"size": "S", "price": 10}]})");
  EXPECT_EQ(counts(same), (json{{"vc", 4},
                                {"vw", 0},
                                {"nv", 0},
                                {"vn", 0},
                                {"nn", 0},
                                {"entries", 2},
                                {"entries_given", 2},
                                {"entries_found", 2}}));
  EXPECT_DOUBLE_EQ(same["micro_f1"].get<double>(), 100);
}

TEST_F(NestedScores, FieldsOfPlainObjectsCountOnTheirOwn) {
  const json scores =
      score_record(R"({"address": {"street": "Elm 3", "city": {"name": "Oak", "zip": "12345"}}})",
                   R"({"address": {"street": "Elm 3", "city": {"name": "Ash"}}})");
  EXPECT_EQ(counts(scores), (json{{"vc", 1},
                                  {"vw", 1},
                                  {"nv", 0},
                                  {"vn", 1},
                                  {"nn", 0},
                                  {"entries", nullptr},
                                  {"entries_given", nullptr},
                                  {"entries_found", nullptr}}));
  const json none =
      score_record(R"({"address": {"street": "Elm 3", "city": {"name": "Oak"}}})", R"({"address": null})");
  EXPECT_EQ(none["vn"], 2);
}

TEST_F(NestedScores, ListsInsideOfEntriesArePairedToo) {
  // Blue's prices decide which entry is paired with it.
  const json scores = score_record(
      R"({"colours": [{"colour": "red", "sizes": [{"size": "S", "price": 1}]},
                      {"colour": "blue", "sizes": [{"size": "S", "price": 2}, {"size": "M", "price": 3}]}]})",
      R"({"colours": [{"colour": null, "sizes": [{"size": "M", "price": 3}, {"size": "S", "price": 2}]},
                      {"colour": "red", "sizes": []}]})");
  EXPECT_EQ(counts(scores), (json{{"vc", 5},
                                  {"vw", 0},
                                  {"nv", 0},
                                  {"vn", 3},
                                  {"nn", 0},
                                  {"entries", 5},
                                  {"entries_given", 4},
                                  {"entries_found", 3}}))
      << "red has 1 of 3 values";
}

TEST_F(NestedScores, EmptyListsAndNullsSayThereIsNoEntry) {
  const json none = score_record(R"({"sizes": null, "Brand": "Oak"})", R"({"sizes": [], "Brand": "Oak"})");
  EXPECT_EQ(none["vc"], 1);
  EXPECT_EQ(none["vw"], 0);
  EXPECT_FALSE(none.contains("entry_f1"));
  const json invented = score_record(
      R"({"sizes": []})", R"({"sizes": [{"size": "S", "price": 10}, {"size": "M", "price": null}]})");
  EXPECT_EQ(counts(invented), (json{{"vc", 0},
                                    {"vw", 0},
                                    {"nv", 3},
                                    {"vn", 0},
                                    {"nn", 0},
                                    {"entries", 0},
                                    {"entries_given", 2},
                                    {"entries_found", 0}}));
  const json missed = score_record(R"({"sizes": [{"size": "S", "price": 10}]})", R"({"sizes": null})");
  EXPECT_EQ(counts(missed), (json{{"vc", 0},
                                  {"vw", 0},
                                  {"nv", 0},
                                  {"vn", 2},
                                  {"nn", 0},
                                  {"entries", 1},
                                  {"entries_given", 0},
                                  {"entries_found", 0}}));
}

TEST_F(NestedScores, WhatIsNoObjectIsAnInventedEntry) {
  const json scores =
      score_record(R"({"sizes": [{"size": "S"}, {"size": "M"}]})", R"({"sizes": ["S", {"size": "M"}]})");
  EXPECT_EQ(counts(scores), (json{{"vc", 1},
                                  {"vw", 0},
                                  {"nv", 1},
                                  {"vn", 1},
                                  {"nn", 0},
                                  {"entries", 2},
                                  {"entries_given", 2},
                                  {"entries_found", 1}}));
}

TEST_F(NestedScores, KeysThatGoldNeverNamesCountWhereAsked) {
  const char *const gold = R"({"sizes": [{"size": "S"}]})", *const values =
                                                                R"({"sizes": [{"size": "S", "sku": "x"}]})";
  EXPECT_EQ(score_record(gold, values)["nv"], 0);
  EXPECT_EQ(score_record(gold, values, "--unmentioned-absent")["nv"], 1);
}

TEST_F(NestedScores, AWrongKeyIsNamed) {
  const std::string gold = write("g.jsonl", R"({"id": 1, "gold": {"sizes": [{"size": "S", "prize": 1}]}})");
  const std::string rows = write("r.jsonl", R"({"id": 1, "values": {"sizes": [{"size": "S", "price": 1}]}})");
  expect_told("--metric attributes --gold " + gold + " --pred " + rows,
              "1 attribute of the gold that no row has, counted as null: \"sizes.prize\" (did you mean "
              "\"sizes.price\"?)");
}

TEST_F(NestedScores, RunsAreComparedOnTheSameItems) {
  const std::string gold = write("g.jsonl", R"({"id": 1, "gold": {"sizes": [{"size": "S", "price": 1}]}}
{"id": 2, "gold": {"sizes": [{"size": "M", "price": 2}]}}
)");
  const std::string first = write("a.jsonl", R"({"id": 1, "values": {"sizes": [{"size": "S", "price": 1}]}}
{"id": 2, "values": {"sizes": [{"size": "L", "price": 3}, {"size": "M", "price": 2}]}}
)");
  const std::string second = write("b.jsonl", R"({"id": 1, "values": {"sizes": null}}
{"id": 2, "values": {"sizes": [{"size": "M", "price": 3}]}}
)");
  const std::string items = scratch_.path("items.jsonl");
  const json scores = score("--metric attributes --gold " + gold + " --pred " + first + " --against " +
                            second + " --items " + items);
  EXPECT_EQ(scores["vc"], 4);
  EXPECT_EQ(scores["nv"], 2);
  EXPECT_EQ(scores["against"]["vc"], 1);
  EXPECT_EQ(scores["against"]["vn"], 2);
  EXPECT_EQ(scores["against"]["vw"], 1);
  std::vector<std::string> ids;
  for (const json& item : read_json_lines(read_text(items))) ids.push_back(item["id"]);
  EXPECT_EQ(ids,
            (std::vector<std::string>{"1/sizes[0].price", "1/sizes[0].size", "1/sizes[]", "1/sizes[].price",
                                      "1/sizes[].size", "2/sizes[0].price", "2/sizes[0].size", "2/sizes[]",
                                      "2/sizes[].price", "2/sizes[].size"}));
}

TEST_F(NestedScores, ConfidenceIsThatOfThePairedEntry) {
  const std::string gold =
      write("g.jsonl", R"({"id": 1, "gold": {"sizes": [{"size": "S"}, {"size": "M"}]}})");
  const std::string rows =
      write("r.jsonl", R"({"id": 1, "values": {"sizes": [{"size": "M"}, {"size": "X"}]},)"
                       R"( "confidence": {"sizes[0].size": 0.9, "sizes[1].size": 0.2}})");
  const json scores = score("--metric attributes --gold " + gold + " --pred " + rows);
  const json& values = scores["confidence"]["values"];
  EXPECT_EQ(values["items"], 2);
  EXPECT_EQ(values["right"], 1);
  EXPECT_NEAR(values["ece"].get<double>(), 0.15, 1e-9) << "0.9 is of the right value, 0.2 of the wrong one";
}

TEST_F(NestedScores, GoldOfTwoShapesIsRefused) {
  const std::string gold = write("g.jsonl", R"({"id": 1, "category": "A", "gold": {"sizes": [{"size": "S"}]}}
{"id": 2, "category": "A", "gold": {"sizes": "S, M"}}
)");
  const std::string rows = write("r.jsonl", R"({"id": 2, "values": {"sizes": null}})");
  expect_refusal("--metric attributes --gold " + gold + " --pred " + rows,
                 "g.jsonl:2: \"gold\": sizes must be a list of objects, not a text");
  const std::string mixed = write("m.jsonl", R"({"id": 1, "gold": {"sizes": [{"size": "S"}, "M"]}})");
  expect_refusal("--metric attributes --gold " + mixed + " --pred " + rows,
                 "has an object among other values");
}

TEST_F(NestedScores, LongListsArePairedInLotsAndThatIsTold) {
  std::string gold, values;
  for (int i = 0; i < 1500; ++i) {
    gold += fmt::format("{}{{\"n\": {}, \"v\": {}}}", i ? "," : "", i, i % 7);
    // In reverse order, and every fifth with another value.
    values +=
        fmt::format("{}{{\"n\": {}, \"v\": {}}}", i ? "," : "", 1499 - i, i % 5 == 0 ? 9 : (1499 - i) % 7);
  }
  const std::string wanted = write("g.jsonl", "{\"id\": 1, \"gold\": {\"list\": [" + gold + "]}}");
  const std::string rows = write("r.jsonl", "{\"id\": 1, \"values\": {\"list\": [" + values + "]}}");
  const std::string arguments = "--metric attributes --gold " + wanted + " --pred " + rows;
  expect_told(arguments, "1 long list of objects, whose entries were paired where equal");
  const json scores = score(arguments);
  EXPECT_EQ(scores["entries"], 1500);
  EXPECT_GE(scores["vc"], 2 * 1200) << "equal entries are found in any order";
}

TEST_F(NestedScores, ValuesAreReadByTheTypesOfTheSchema) {
  write("s.yaml", R"(categories:
  Shirt:
    - {name: sizes, type: list, attributes: [{name: size}, {name: price, type: number}, {name: new, type: boolean}]}
    - {name: maker, type: object, attributes: [{name: since, type: date}]}
)");
  const std::string gold =
      write("g.jsonl", R"({"id": 1, "gold": {"maker": {"since": "4 March 2026"}, "sizes": )"
                       R"([{"size": "S", "price": "12.50", "new": "yes"}]}}
{"id": 2, "gold": {"maker": {"since": null}, "sizes": null}}
)");
  const std::string rows =
      write("r.jsonl", R"({"id": 1, "category": "Shirt", "values": {"maker": {"since": )"
                       R"("2026-03-04"}, "sizes": [{"size": "S", "price": 12.5, "new": true}]}}
{"id": 2, "category": "Shirt", "values": {"maker": {"since": null}, "sizes": []}}
)");
  const json scores = score("--metric attributes --gold " + gold + " --pred " + rows + " --schema " +
                            scratch_.path("s.yaml"));
  EXPECT_EQ(counts(scores), (json{{"vc", 4},
                                  {"vw", 0},
                                  {"nv", 0},
                                  {"vn", 0},
                                  {"nn", 1},
                                  {"entries", 1},
                                  {"entries_given", 1},
                                  {"entries_found", 1}}));
  EXPECT_EQ(scores["types"]["number"]["vc"], 1);
  EXPECT_EQ(scores["types"]["date"]["nn"], 1);
}

TEST_F(NestedScores, GoldMayBeNestedColumnsOfAParquetCorpus) {
  write("s.yaml", R"(categories:
  Shirt:
    - {name: sizes, type: list, attributes: [{name: size}, {name: price, type: number}, {name: from, type: date}]}
)");
  const std::string corpus = scratch_.path("c.parquet");
  const std::string make =
      "PYTHONPATH=build/deps/pyarrow python3 -c 'import sys, datetime, decimal, pyarrow as a, "
      "pyarrow.parquet as p; e = "
      "a.struct([(\"size\", a.string()), (\"price\", a.decimal128(9, 2)), (\"from\", a.date32())]); t = "
      "a.table({\"id\": [1, 2], \"text\": [\"x\", \"y\"], \"sizes\": a.array([[{\"size\": \"S\", \"price\": "
      "decimal.Decimal(\"12.50\"), \"from\": datetime.date(2026, 3, 4)}, {\"size\": \"M\", \"price\": None, "
      "\"from\": "
      "None}], None], a.list_(e))}); p.write_table(t, sys.argv[1])' " +
      corpus;
  ASSERT_EQ(std::system(make.c_str()), 0);
  const std::string job = write("job.yaml",
                                "model: {path: none.gguf}\ninput: {path: c.parquet, id: id, document: text}\n"
                                "task: {kind: extract, schema: s.yaml}\noutput: {path: out}\n");
  const std::string rows =
      write("r.jsonl",
            R"({"id": 1, "category": "Shirt", "values": {"sizes": [{"size": "M", "price": 3, "from": null}, )"
            R"({"size": "S", "price": 12.5, "from": "2026-03-04"}]}}
{"id": 2, "category": "Shirt", "values": {"sizes": [{"size": "L", "price": null, "from": null}]}}
)");
  EXPECT_EQ(counts(score("--metric attributes --job " + job + " --pred " + rows)),
            (json{{"vc", 4},
                  {"vw", 0},
                  {"nv", 2},
                  {"vn", 0},
                  {"nn", 1},
                  {"entries", 2},
                  {"entries_given", 3},
                  {"entries_found", 2}}));
}

}  // namespace
}  // namespace sheaf
