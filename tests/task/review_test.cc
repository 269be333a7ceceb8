// The page for the person who checks values: which values it asks about, and that their texts stay texts.
#include "core/report/review.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

#include "core/report/pair_review.h"
#include "core/text/json_reader.h"

namespace sheaf {
namespace {

using nlohmann::json;

RowAnswer row_answer(RowValue value, std::optional<double> confidence = {},
                     std::optional<double> logprob = {}) {
  RowAnswer answer{std::move(value)};
  answer.confidence = confidence;
  answer.logprob = logprob;
  return answer;
}

using Chosen = std::vector<std::pair<std::string, int64_t>>;  // attribute, row

/// Ten rows of two attributes; of row i the model is i / 10 sure, backwards for Size.
Chosen choose(size_t count, uint64_t seed, bool backwards = false, bool sure = true) {
  ReviewSample sample(count, seed);
  for (int64_t i = 0; i < 10; ++i) {
    const int64_t row = backwards ? 9 - i : i;
    const double share = static_cast<double>(row) / 10;
    const auto maybe = [&](double confidence) { return sure ? std::optional(confidence) : std::nullopt; };
    sample.add(std::to_string(row), {row, "Tea", "Brand", row_answer("x", maybe(share))});
    sample.add(std::to_string(row), {row, "Tea", "Size", row_answer("x", maybe(1 - share))});
  }
  EXPECT_EQ(sample.strata(), 2u);
  EXPECT_EQ(sample.by_sureness(), sure);
  Chosen chosen;
  for (const ReviewValue& value : std::move(sample).take()) chosen.emplace_back(value.attribute, value.row);
  return chosen;
}

TEST(ReviewSample, StrataTakeTurnsAndTheLeastSureComeFirst) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    std::map<std::string, std::vector<int64_t>> rows;
    const Chosen chosen = choose(6, seed);
    for (size_t i = 0; i < chosen.size(); ++i) {
      rows[chosen[i].first].push_back(chosen[i].second);
      EXPECT_NE(chosen[i].first, chosen[i ^ 1].first) << "one of each in a round";
    }
    EXPECT_EQ(rows["Brand"], (std::vector<int64_t>{0, 1, 2}));
    EXPECT_EQ(rows["Size"], (std::vector<int64_t>{9, 8, 7}));
  }
}

TEST(ReviewSample, DoesNotDependOnTheOrderOfRows) {
  for (const bool sure : {true, false})
    for (const uint64_t seed : {0, 7}) {
      const Chosen chosen = choose(7, seed, false, sure);
      EXPECT_EQ(chosen.size(), 7u);
      EXPECT_EQ(chosen, choose(7, seed, true, sure));
      const Chosen more = choose(12, seed, false, sure);
      EXPECT_EQ(chosen, Chosen(more.begin(), more.begin() + 7)) << "a smaller sample begins a larger one";
    }
}

TEST(ReviewSample, WithoutSurenessTheSeedDecides) {
  std::set<Chosen> samples;
  for (uint64_t seed = 0; seed < 8; ++seed) samples.insert(choose(4, seed, false, false));
  EXPECT_GT(samples.size(), 4u);
}

TEST(ReviewSample, TakesAllRowsWhereTheyAreFew) {
  const Chosen all = choose(1000, 0);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 20u);
  EXPECT_EQ(all.size(), 20u);
}

TEST(ReviewSample, LogprobsStandInForConfidence) {
  EXPECT_EQ(sureness(row_answer("x", 0.25, -0.1)), 0.25);
  EXPECT_EQ(sureness(row_answer("x", {}, 0.0)), 1.0);
  EXPECT_EQ(sureness(row_answer("x")), std::nullopt);
  ReviewSample sample(1, 0);
  sample.add("1", {1, "Tea", "Brand", row_answer("x", {}, -0.5)});
  sample.add("2", {2, "Tea", "Brand", row_answer("x", {}, std::nan(""))});
  sample.add("3", {3, "Tea", "Brand", row_answer("x", {}, -3.0)});
  EXPECT_EQ(std::move(sample).take().at(0).row, 2) << "what is not a number is not sure";
}

Record make_record(nlohmann::json id, const std::vector<std::pair<std::string, std::string>>& columns) {
  Record record;
  record.id = std::move(id);
  record.category = "Tea";
  for (const auto& [name, text] : columns) {
    if (!record.columns.empty()) record.document += '\n';
    record.columns.push_back({name, record.document.size()});
    record.document += text;
  }
  return record;
}

/// What the script reads.
json data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const size_t begin = page.find(open) + open.size();
  return read_json(page.substr(begin, page.find("</script>", begin) - begin));
}

Review made_up_review(const std::string& text) {
  Review review;
  review.run = text;
  review.key = "k";
  review.records.push_back(make_record(text, {{text, "one " + text + " two"}}));
  review.records.back().category = text;
  review.items.push_back({0, {text, text, ValueType::enumeration, {text}, text}, row_answer(text, 0.5)});
  review.items.back().answer.note = text;
  review.items.back().answer.spans.emplace(1);  // one text, which is nowhere
  return review;
}

TEST(ReviewHtml, EscapesTextsOfAnyKind) {
  const std::string plain = review_html(made_up_review("x"), "SCRIPT", "STYLE");
  const auto count = [](const std::string& page, const std::string& text) {
    size_t found = 0;
    for (size_t at = 0; (at = page.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  for (const std::string hostile :
       {"</script><script>alert(1)</script>", "<!--<script>", "]]>", "\" onload='x' \\", "a\u2028b\u2029c",
        "\u202eevil\u202c", "&lt;b&gt;&amp;", "\x07\x7f\t\r\n", "\xff\xfe", "${1}`"}) {
    const std::string page = review_html(made_up_review(hostile), "SCRIPT", "STYLE");
    EXPECT_EQ(count(page, "<script"), 2u) << hostile;
    EXPECT_EQ(count(page, "</script"), 2u) << hostile;
    EXPECT_EQ(count(page, "<!--"), 0u) << hostile;
    for (const char* hidden : {"\u2028", "\u2029", "\u202e", "\u202c", "\x07", "\x7f", "\xff"})
      EXPECT_EQ(count(page, hidden), 0u) << hostile;
    const json data = data_of(page);
    ASSERT_TRUE(data.is_object()) << page;
    const std::string kept = hostile == "\xff\xfe" ? "\uFFFD\uFFFD" : hostile;
    EXPECT_EQ(data["run"], kept);
    EXPECT_EQ(read_json(data["records"][0]["id"].get<std::string>()), kept);
    EXPECT_EQ(data["records"][0]["columns"][0][1], "one " + kept + " two");
    const json& item = data["items"][0];
    EXPECT_EQ(read_json(item["value"].get<std::string>()), kept);
    for (const char* key : {"attribute", "description", "unit", "note"}) EXPECT_EQ(item[key], kept);
    EXPECT_EQ(item["options"], json::array({kept}));
    EXPECT_EQ(item["absent"], json::array({kept}));
    EXPECT_EQ(data["records"][0]["category"], kept);
  }
  EXPECT_NE(plain.find("default-src 'none'; script-src 'sha256-SCRIPT'; style-src 'sha256-STYLE'"),
            std::string::npos);
  for (const char* outside : {"http://", "https://", "unsafe", "innerHTML", "eval(", " src="})
    EXPECT_EQ(count(plain, outside), 0u) << outside;
}

TEST(ReviewHtml, MarksWhatTheRowSaysElseWhatASearchFinds) {
  Review review;
  review.records.push_back(make_record(7, {{"title", "Oak and oak"}, {"text", "ash, 1,200 ml"}}));
  const Attribute brand{"Brand", ""};
  review.items.push_back({0, brand, row_answer("Oak")});
  using Spans = std::vector<std::optional<RowSpan>>;
  review.items.back().answer.spans = Spans{RowSpan{"title", 8, 11}};
  review.items.push_back({0, brand, row_answer("Ash", {}, -1)});
  review.items.push_back({0, brand, row_answer(std::vector<std::string>{"Oak", "Elm"})});
  review.items.push_back({0, brand, row_answer("Oak", 0.5)});
  review.items.back().answer.spans = Spans{std::nullopt};
  review.items.push_back({0, brand, row_answer(nullptr)});
  review.items.push_back({0, {"Size", "", ValueType::number}, row_answer(int64_t{1200})});
  review.items.push_back({0, {"Size", "", ValueType::number}, row_answer(2.5)});
  review.items.push_back({0, {"Open", "", ValueType::boolean, {"true", "false"}}, row_answer(true)});
  review.items.back().answer.spans = Spans{std::nullopt};
  review.items.push_back({0, {"Day", "", ValueType::date}, row_answer("2026-03-01")});
  const json items = data_of(review_html(review, "", ""))["items"];
  EXPECT_EQ(items[0]["marks"], json::parse(R"([{"column": 0, "start": 8, "end": 11}])"));
  EXPECT_EQ(items[1]["marks"], json::parse(R"([{"column": 1, "start": 0, "end": 3}])"));
  EXPECT_EQ(items[1]["sureIs"], "probability");
  EXPECT_EQ(items[2]["marks"].size(), 1u);
  EXPECT_EQ(items[2]["absent"], json::array({"Elm"}));
  EXPECT_EQ(items[3]["marks"], json::array()) << "the row knows better than a search";
  EXPECT_EQ(items[3]["absent"], json::array({"Oak"}));
  EXPECT_EQ(items[3]["sureIs"], "confidence");
  EXPECT_EQ(items[4]["value"], "null");
  EXPECT_EQ(items[4]["marks"], json::array());
  EXPECT_EQ(items[4]["absent"], json::array());
  EXPECT_EQ(items[4]["sure"], nullptr);
  EXPECT_EQ(items[5]["marks"], json::parse(R"([{"column": 1, "start": 5, "end": 10}])"));
  EXPECT_EQ(items[6]["absent"], json::array({"2.5"}));
  EXPECT_EQ(items[6]["type"], "number");
  EXPECT_EQ(items[7]["type"], "boolean");
  EXPECT_EQ(items[7]["absent"], json::array()) << "no document says \"true\"";
  EXPECT_EQ(items[8]["type"], "date");
}

TEST(ReviewHtml, NumbersKeepTheirDigits) {
  Review review;
  review.records.push_back(make_record(uint64_t{18446744073709551615u}, {{"title", "x"}}));
  review.items.push_back({0, {"Size", "", ValueType::number}, row_answer(uint64_t{9007199254740993u})});
  const json data = data_of(review_html(review, "", ""));
  EXPECT_EQ(data["records"][0]["id"], "18446744073709551615");
  EXPECT_EQ(data["items"][0]["value"], "9007199254740993");
}

TEST(PairHtml, EscapesTextsAndKeepsDigits) {
  const std::string hostile = "</script><script>alert(1)</script>\u202e";
  PairReview review;
  review.key = "k";
  review.seed = 18446744073709551615u;
  review.records.push_back(make_record(uint64_t{18446744073709551615u}, {{hostile, hostile}}));
  review.items.push_back({0, 3, {{hostile, row_answer(hostile), row_answer(uint64_t{9007199254740993u})}}});
  review.items.push_back({0, -1, {{"Size", row_answer(nullptr), std::nullopt}}});
  const std::string page = pair_html(review, "SCRIPT", "STYLE");
  for (const char* outside :
       {"http://", "https://", "unsafe", "innerHTML", "eval(", " src=", "alert(1)</script>"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  const json data = data_of(page);
  EXPECT_EQ(data["seed"], "18446744073709551615");
  EXPECT_EQ(data["records"][0]["id"], "18446744073709551615");
  EXPECT_EQ(data["items"][0]["question"], 3);
  EXPECT_EQ(data["items"][0]["values"][0]["right"]["value"], "9007199254740993");
  EXPECT_EQ(read_json(data["items"][0]["values"][0]["left"]["value"].get<std::string>()), hostile);
  EXPECT_EQ(data["items"][1]["values"][0]["left"]["value"], "null");
  EXPECT_EQ(data["items"][1]["values"][0]["right"], nullptr);
}

TEST(PairHtml, SidesAreEvenAndStayTheSame) {
  int left = 0;
  for (int i = 0; i < 1000; ++i) {
    left += first_is_left("pair", 7, std::to_string(i)) ? 1 : 0;
    EXPECT_EQ(first_is_left("pair", 7, std::to_string(i)), first_is_left("pair", 7, std::to_string(i)));
  }
  EXPECT_GT(left, 430);
  EXPECT_LT(left, 570);
}

}  // namespace
}  // namespace sheaf
