// Where a value stands in its document, to the character.
#include "core/task/find_text.h"

#include <gtest/gtest.h>
#include <random>

#include "core/task/record_row.h"
#include "core/task/value.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"
#include "tests/made_up_tokenizer.h"

namespace sheaf {
namespace {

/// A record as the corpus makes it.
Record make_record(const std::vector<std::pair<std::string, std::string>>& columns) {
  Record record;
  for (const auto& [name, text] : columns) {
    if (!record.columns.empty()) record.document += '\n';
    record.columns.push_back({name, record.document.size()});
    record.document += text;
  }
  return record;
}

std::optional<RowSpan> span(const Record& record, RowValue value) {
  Row row{1, ExtractedValues{"Tea", {{"Brand", {std::move(value)}}}}};
  add_spans(record, nullptr, row);
  const auto& spans = *std::get<ExtractedValues>(row.content).values[0].answer.spans;
  return spans.empty() ? std::nullopt : spans.at(0);
}

std::u32string characters(std::string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size(); at += sequence_bytes(text[at]))
    out += static_cast<char32_t>(decode_valid(text.data() + at).point);
  return out;
}

TEST(FindText, CountsCharactersOfTheColumn) {
  const Record record = make_record({{"title", "\U0001F375 e\u0301te\u0301 tea\r\nOak tea"},
                                     {"description", "Teas of Oak & Co., green tea"}});
  EXPECT_EQ(span(record, "tea"), (RowSpan{"title", 8, 11}));
  EXPECT_EQ(span(record, "e\u0301te\u0301"), (RowSpan{"title", 2, 7})) << "a mark is a character";
  EXPECT_EQ(span(record, "Oak tea"), (RowSpan{"title", 13, 20})) << "CR and LF are two";
  EXPECT_EQ(span(record, "Oak & Co."), (RowSpan{"description", 8, 17}));
  EXPECT_EQ(span(record, "green TEA"), (RowSpan{"description", 19, 28})) << "with other capital letters";
  EXPECT_EQ(span(record, "Tea"), (RowSpan{"title", 8, 11})) << "\"Teas\" is another word";
  EXPECT_EQ(span(record, "tea\nTeas"), std::nullopt) << "in no column";
  EXPECT_EQ(span(record, "ak"), std::nullopt);
  EXPECT_EQ(span(record, "e\u0301te"), std::nullopt) << "its mark is missing";
  EXPECT_EQ(span(record, nullptr), std::nullopt);
}

TEST(FindText, PrefersAnExactMatchToOtherCapitals) {
  const Record record = make_record({{"title", "oak Oak"}});
  EXPECT_EQ(span(record, "Oak"), (RowSpan{"title", 4, 7}));
  EXPECT_EQ(span(record, "OAK"), (RowSpan{"title", 0, 3}));
}

TEST(FindText, FindsNumbersInAnyNotation) {
  const Record record = make_record({{"title", "B12, 1,200.50 g at -5 or 5.0 C, 3 x 12"}});
  EXPECT_EQ(span(record, int64_t{12}), (RowSpan{"title", 1, 3}));
  EXPECT_EQ(span(record, 1200.5), (RowSpan{"title", 5, 13}));
  EXPECT_EQ(span(record, int64_t{-5}), (RowSpan{"title", 19, 21}));
  EXPECT_EQ(span(record, int64_t{5}), (RowSpan{"title", 20, 21}));
  EXPECT_EQ(span(record, int64_t{200}), std::nullopt);
  EXPECT_EQ(span(record, uint64_t{7}), std::nullopt);
}

TEST(FindText, FindsNumbersWithSpacesOrApostrophesBetweenThousands) {
  for (const char* text : {"1 200,50 €", "1 200,50 €", "1 200,50 €", "1 200,50 €", "1'200.50", "1’200.50",
                           "1,200.50", "1.200,50"}) {
    const Record record = make_record({{"t", std::string("for ") + text + " only"}});
    EXPECT_EQ(span(record, 1200.5), (RowSpan{"t", 4, 12})) << text;
    RowAnswer answer{1200.5};
    check_digits(record, {"Price", "", ValueType::number}, true, answer);
    EXPECT_EQ(answer, (RowAnswer{1200.5})) << text;
  }
  EXPECT_EQ(span(make_record({{"t", "12 128 GB"}}), int64_t{128}), (RowSpan{"t", 3, 6})) << "or two numbers";
  EXPECT_EQ(span(make_record({{"t", "1'200"}}), int64_t{200}), std::nullopt);
  EXPECT_EQ(span(make_record({{"t", "nur -,50 €"}}), 0.5), (RowSpan{"t", 5, 8}));
  EXPECT_EQ(span(make_record({{"t", "1 200 300"}}), int64_t{1200300}), (RowSpan{"t", 0, 9}));
}

TEST(FindText, FindsDatesWithOtherLettersAndSpaces) {
  const auto of = [](const std::string& text, const char* iso) {
    return span(make_record({{"t", text}}), iso);
  };
  EXPECT_EQ(of("am 12. März 2026 um acht", "2026-03-12"), (RowSpan{"t", 3, 16}));
  EXPECT_EQ(of("am 12. MÄRZ 2026", "2026-03-12"), (RowSpan{"t", 3, 16}));
  EXPECT_EQ(of("le 12 décembre 2026", "2026-12-12"), (RowSpan{"t", 3, 19}));
  EXPECT_EQ(of("le 12 déc. 2026", "2026-12-12"), (RowSpan{"t", 3, 15}));
  EXPECT_EQ(of("on 12 March 2026", "2026-03-12"), (RowSpan{"t", 3, 16}));
  EXPECT_EQ(of("on 12. März 2026", "2026-03-12"), (RowSpan{"t", 3, 16}));
  EXPECT_EQ(of("Thursday, 12 March 2026", "2026-03-12"), (RowSpan{"t", 10, 23}));
  EXPECT_EQ(of("12.3.26", "2026-03-12"), (RowSpan{"t", 0, 7}));
}

TEST(FindText, ADateWithAnotherMonthIsNotInTheDocument) {
  const auto stands = [](const std::string& text, const char* iso) {
    RowAnswer answer{std::string(iso)};
    check_digits(make_record({{"t", text}}), {"Day", "", ValueType::date}, true, answer);
    EXPECT_EQ(answer.note, is_found(answer.value) ? "" : "not in the document") << text;
    return is_found(answer.value);
  };
  EXPECT_TRUE(stands("le 7 février 2026", "2026-02-07"));
  EXPECT_FALSE(stands("le 7 février 2026", "2026-04-07"));
  EXPECT_TRUE(stands("Programme 2026: le 7 février, à 20 heures", "2026-02-07")) << "the year is elsewhere";
  EXPECT_FALSE(stands("Programme 2026: le 7 février, à 20 heures", "2026-04-07"));
  EXPECT_FALSE(stands("le 7 février", "2026-02-07")) << "no year";
  EXPECT_TRUE(stands("IMG_20260207", "2026-02-07") || stands("20260207", "2026-02-07"));
  EXPECT_TRUE(stands("2026-02-07T20:00", "2026-02-07"));
  EXPECT_TRUE(stands("12/03/2026", "2026-03-12"));
  EXPECT_TRUE(stands("12/03/2026", "2026-12-03")) << "in another country";
}

TEST(FindText, FindsDatesInOtherForms) {
  const auto of = [](const std::string& text) { return span(make_record({{"t", text}}), "2026-03-01"); };
  EXPECT_EQ(of("made 1 March 2026, sold 1.3.2026"), (RowSpan{"t", 5, 17}));
  EXPECT_EQ(of("until 1.3.2026."), (RowSpan{"t", 6, 14}));
  EXPECT_EQ(of("March 1st, 2026"), (RowSpan{"t", 0, 15}));
  EXPECT_EQ(of("the 1st of March, 2026!"), (RowSpan{"t", 4, 22}));
  EXPECT_EQ(of("2026/3/1"), (RowSpan{"t", 0, 8}));
  EXPECT_EQ(of("on 2026-03-01 or 1 March 2026"), (RowSpan{"t", 3, 13})) << "to the letter first";
  EXPECT_EQ(of("11.3.2026, 1.3.20261, 31 March 2026, x1.3.2026"), std::nullopt);
  EXPECT_EQ(of("03/01/2026 or 01/03/2026"), std::nullopt) << "either may be the month";
  EXPECT_EQ(of("1 of 3 in 2026; March"), std::nullopt);
  EXPECT_EQ(span(make_record({{"t", "1 March 2026"}}), "2026-03-1"), std::nullopt);
}

/// A list of variants with a name, a price and colours; `around`: as the only field of an object, or alone.
Attribute variant_list() {
  Attribute name{"name", ""}, price{"price", ""}, colours{"colours", ""}, list{"variants", ""};
  price.type = ValueType::number;
  colours.type = ValueType::list;
  list.type = ValueType::entries;
  list.fields = {price, name, colours};
  list.anchor = 1;
  return list;
}

RowObject variant(double price, const std::string& name, const std::vector<std::string>& colours = {}) {
  return {{{"price", {price}}, {"name", {name}}, {"colours", {colours}}}};
}

/// The texts at the spans of the entries' prices, names and colours: "20@3 S@0 ; 20@10 M@7 red@14".
std::string entry_spans(const std::string& text, const std::vector<RowObject>& entries) {
  const Record record = make_record({{"t", text}});
  const std::vector<Attribute> attributes = {variant_list()};
  Row row{1, ExtractedValues{"Tea", {{"variants", {entries}}}}};
  add_spans(record, &attributes, row);
  std::string out;
  const auto& answer = std::get<ExtractedValues>(row.content).values[0].answer;
  for (const RowObject& entry : std::get<std::vector<RowObject>>(answer.value)) {
    if (!out.empty()) out += "; ";
    for (const AttributeValue& value : entry.values)
      for (const auto& place : *value.answer.spans)
        out += place ? fmt::format("{}@{} ",
                                   text.substr(static_cast<size_t>(place->start),
                                               static_cast<size_t>(place->end - place->start)),
                                   place->start)
                     : "- ";
  }
  return out;
}

TEST(EntrySpans, AreFoundNearTheAnchorOfTheirEntry) {
  EXPECT_EQ(entry_spans("S 20 red, M 20 red, L 5",
                        {variant(20, "S", {"red"}), variant(20, "M", {"red"}), variant(5, "L")}),
            "20@2 S@0 red@5 ; 20@12 M@10 red@15 ; 5@22 L@20 ");
  EXPECT_EQ(entry_spans("M 20, S 20", {variant(20, "S"), variant(20, "M")}), "20@8 S@6 ; 20@2 M@0 ")
      << "in any order";
  EXPECT_EQ(entry_spans("all 7: S, M 7", {variant(7, "S"), variant(7, "M")}), "7@4 S@7 ; 7@12 M@10 ")
      << "the nearest where the entry holds none";
  EXPECT_EQ(entry_spans("20 oz, 20 EUR; 5 oz, 20 EUR", {variant(20, "20 oz"), variant(20, "5 oz")}),
            "20@7 20 oz@0 ; 20@21 5 oz@15 ")
      << "the number of an anchor is not a field";
  EXPECT_EQ(entry_spans("9 and 9", {variant(9, "XL")}), "9@0 - ") << "without a place the first counts";
  EXPECT_EQ(entry_spans("S, M; S 3, M 4", {variant(3, "S"), variant(4, "M")}), "3@8 S@0 ; 4@13 M@3 ");
}

TEST(FindText, FindsEachTextOfAList) {
  const Record record = make_record({{"title", "red, blue"}});
  Row row{1, ExtractedValues{"Tea", {{"Colors", {std::vector<std::string>{"blue", "green"}}}}}};
  add_spans(record, nullptr, row);
  const auto& spans = *std::get<ExtractedValues>(row.content).values[0].answer.spans;
  EXPECT_EQ(spans, (std::vector<std::optional<RowSpan>>{RowSpan{"title", 5, 9}, std::nullopt}));
}

TEST(FindText, TakesTimeThatGrowsWithTheText) {
  // Compared byte by byte at every place, this would be 10^11 steps.
  const Record record = make_record({{"title", std::string(1'000'000, 'a') + "b"}});
  EXPECT_EQ(span(record, std::string(200'000, 'a')), std::nullopt);
  const Record dots = make_record({{"title", std::string(1'000'000, '.') + "b"}});
  EXPECT_EQ(span(dots, std::string(200'000, '.') + "b"), (RowSpan{"title", 800'000, 1'000'001}));
}

TEST(FindText, BindsASpanToItsDocument) {
  const Record record = make_record({{"title", "Oak & Pine tea"}});
  RowAnswer answer{"oak & pine"};
  bind_span(record, false, answer);
  EXPECT_EQ(answer.value, RowValue("Oak & Pine"));
  answer = {"Oak & Pi", "cut at the length limit"};
  bind_span(record, true, answer);
  EXPECT_EQ(answer.value, RowValue("Oak &"));
  EXPECT_EQ(answer.note, "cut at the length limit");
  answer = {"Oa"};
  bind_span(record, true, answer);
  EXPECT_EQ(answer.value, RowValue(nullptr));
  answer = {"Birch"};
  answer.logprob = -1;
  bind_span(record, false, answer);
  EXPECT_EQ(answer.value, RowValue(nullptr));
  EXPECT_EQ(answer.note, "not in the document: \"Birch\"");
  EXPECT_EQ(answer.logprob, -1);
}

TEST(FindText, OfASpanCutInItsFirstWordNothingIsLeft) {
  std::vector<std::pair<std::string, std::string>> cases = {{"O Oak", "Oa"},
                                                            {"Vitamin E Extraordinary", "Extraordi"}};
  for (uint32_t point = 0x410; point < 0x450; ++point) {
    std::string letter;
    append_utf8(point, letter);
    for (const char* end : {"\u0430", "\u0430\uFFFD"})
      cases.emplace_back(letter + " " + letter + "\u0430\u0439", letter + end);
  }
  for (const auto& [document, written] : cases) {
    RowAnswer answer{written, "cut at the length limit"};
    bind_span(make_record({{"title", document}}), true, answer);
    EXPECT_EQ(answer.value, RowValue(nullptr)) << written;
    EXPECT_EQ(answer.note, "cut at the length limit") << written;
  }
}

TEST(FindText, OfACutSpanTheEscapesAreUndone) {
  const Record record = make_record({{"title", "Oak 6\" heel, a\\b boots"}});
  const std::pair<std::string, std::string> cases[] = {
      {" \"Oak 6\\\" hee", "Oak 6\""},       {" \"6\\\"", "6\""}, {" \"6\\", "6"},
      {" \"heel, a\\\\b boo", "heel, a\\b"}, {" \"a\\\\", "a\\"},
  };
  for (const auto& [written, value] : cases) {
    RowAnswer answer = read_value({"Size", "", ValueType::span}, written, true);
    bind_span(record, true, answer);
    EXPECT_EQ(answer.value, RowValue(value)) << written;
    EXPECT_EQ(answer.note, "cut at the length limit") << written;
  }
}

TEST(CheckDigits, AValueThatItsDocumentDoesNotHoldIsNoted) {
  const Record record = make_record({{"title", "Riesling, 11,5 % vol, 1.200 EUR, a set of four, 1 1/2 l"},
                                     {"text", "Bottled on 3 March 2026; -4 °C; 2.5 million sold"}});
  const Attribute number{"n", "", ValueType::number}, date{"d", "", ValueType::date}, text{"t", ""};
  const auto note = [&](const Attribute& attribute, RowValue value, bool copied = false) {
    RowAnswer answer{std::move(value)};
    check_digits(record, attribute, copied, answer);
    return answer.note + (is_found(answer.value) ? "" : " (null)");
  };
  for (const RowValue& held :
       {RowValue(11.5), RowValue(int64_t{1200}), RowValue(1.2), RowValue(int64_t{4}), RowValue(1.5),
        RowValue(int64_t{-4}), RowValue(2.5e6), RowValue(int64_t{2026})})
    EXPECT_EQ(note(number, held), "") << held.index();
  for (const RowValue& made_up :
       {RowValue(int64_t{115}), RowValue(12.0), RowValue(int64_t{7}), RowValue(int64_t{-2026})}) {
    EXPECT_EQ(note(number, made_up), "not in the document");
    EXPECT_EQ(note(number, made_up, true), "not in the document (null)");
  }
  EXPECT_EQ(note(date, std::string("2026-03-03")), "");
  EXPECT_EQ(note(date, std::string("2026-03-07")), "not in the document");
  EXPECT_EQ(note(date, std::string("2025-03-03"), true), "not in the document (null)");
  EXPECT_EQ(note(text, std::string("2025-03-05")), "") << "texts are not looked for";
}

TEST(FindTextFuzz, TheSpanHoldsTheValue) {
  int found = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<std::string, std::string>> columns;
    for (size_t i = 0; i < 1 + seed % 3; ++i)
      columns.emplace_back("column " + std::to_string(i),
                           test::random_document(random, 1 + static_cast<int>(random() % 12)));
    const Record record = make_record(columns);
    const std::u32string document = characters(record.document);
    const size_t begin = random() % document.size();
    std::string value;
    for (const char32_t c : document.substr(begin, 1 + random() % 12)) append_utf8(c, value);
    if (seed % 4 == 0)
      for (char& c : value) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    const auto got = span(record, value);
    // The first place of whole words, by a plain look at all of them; first of those to the letter.
    std::optional<RowSpan> wanted;
    for (const bool fold : {false, true}) {
      for (const auto& [name, text] : columns) {
        const std::u32string in = characters(text), sought = characters(value);
        const auto same = [fold](char32_t a, char32_t b) {
          const auto low = [](char32_t c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; };
          return fold ? low(a) == low(b) : a == b;
        };
        for (size_t at = 0; !wanted && at + sought.size() <= in.size(); ++at)
          if (std::equal(sought.begin(), sought.end(), in.begin() + static_cast<ptrdiff_t>(at), same) &&
              (at == 0 || !joins_word(in[at - 1], in[at])) &&
              (at + sought.size() == in.size() ||
               !joins_word(in[at + sought.size() - 1], in[at + sought.size()])))
            wanted = RowSpan{name, static_cast<int64_t>(at), static_cast<int64_t>(at + sought.size())};
      }
    }
    EXPECT_EQ(got, wanted) << seed << ": " << value;
    found += got.has_value();
  }
  EXPECT_GT(found, 300);
}

}  // namespace
}  // namespace sheaf
