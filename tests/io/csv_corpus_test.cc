#include <algorithm>
#include <gtest/gtest.h>

#include "io/base/csv_reader.h"
#include "io/base/process.h"
#include "tests/errors.h"
#include "tests/fuzz.h"
#include "tests/io/corpus_records.h"
#include "tests/packed_text.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::pack;

/// "line: document" of records, "line! reason" of rejects, in their order.
std::vector<std::string> told(const Job& job, const Schema* schema = &kSchema) {
  std::vector<std::string> all;
  const auto corpus = open_corpus(job, schema);
  while (const auto row = corpus->next()) {
    if (const auto* record = std::get_if<Record>(&*row))
      all.push_back(fmt::format("{}: {}", record->place.row, record->document));
    else
      all.push_back(fmt::format("{}! {}", std::get<Reject>(*row).place.row, std::get<Reject>(*row).reason));
  }
  return all;
}

using Told = std::vector<std::string>;

constexpr const char* kTooLong =
    "the row has more than 16 MB, the most that sheaf reads of one; shorten it, or split it";

TEST(CsvCorpus, MapsColumns) {
  const TempFolder folder;
  const std::string path = folder.write("c.csv",
                                        "\xEF\xBB\xBFsku,category,\"title\",x,text\r\n"
                                        "007,Tea,\"Oak, \"\"fine\"\"\",,Green\r\n\r\n"
                                        "8,Coffee,\"two\r\nlines\",1,\"\"\r\n"
                                        "9,Tea,27\" wide,1,last");
  Job job = extract_job(path);
  job.input.keep = {"x"};
  const CorpusRecords rows = read_all(job, &kSchema);
  ASSERT_EQ(rows.records.size(), 3u);
  EXPECT_TRUE(rows.rejects.empty());
  EXPECT_EQ(rows.records[0].id, json("007"));
  EXPECT_EQ(rows.records[0].document, "Oak, \"fine\"\nGreen");
  EXPECT_EQ(rows.records[0].kept["x"], json());
  EXPECT_EQ(rows.records[1].category, "Coffee");
  EXPECT_EQ(rows.records[1].document, "two\r\nlines");
  EXPECT_EQ(rows.records[1].kept["x"], json("1"));
  EXPECT_EQ(rows.records[2].document, "27\" wide\nlast");
  EXPECT_EQ(rows.order, (std::vector<int64_t>{2, 4, 6}));
}

TEST(CsvCorpus, SeparatorsComeFromTheNameOrTheHeader) {
  const TempFolder folder;
  const auto read = [&](const std::string& name, const std::string& text) {
    return told(extract_job(folder.write(name, text)));
  };
  EXPECT_EQ(read("a.tsv", "sku\tcategory\ttitle\ttext\n1\tTea\ta,b\t;\n"), Told{"2: a,b\n;"});
  EXPECT_EQ(read("b.csv", "sku;category;title;text\n1;Tea;a,b;c\n"), Told{"2: a,b\nc"});
  EXPECT_EQ(read("c.csv", "sku|category|title|text\n1|Tea|a|c\n"), Told{"2: a\nc"});
  EXPECT_EQ(read("d.TSV.gz", pack("sku\tcategory\ttitle\ttext\n1\tTea\ta\tb\n", "gz")), Told{"2: a\nb"});
  EXPECT_EQ(read("e.csv.zst", pack("sku,category,title,text\n1,Tea,a,b\n", "zst")), Told{"2: a\nb"});
}

TEST(CsvCorpus, AFirstLineMayNameTheSeparator) {
  const TempFolder folder;
  for (const char* first : {"sep=;\n", "SEP=;\r\n", "\xef\xbb\xbfsep=;\n"}) {
    CsvReader reader(folder.write("a.csv", std::string(first) + "id;a,b,c\n1;x\n"));
    EXPECT_EQ(reader.columns(), (std::vector<std::string>{"id", "a,b,c"})) << first;
    const auto row = reader.next();
    ASSERT_TRUE(row) << first;
    EXPECT_EQ(row->line, 3) << first;
    EXPECT_EQ(reader.field(1), "x") << first;
  }
  EXPECT_EQ(CsvReader(folder.write("a.csv", "sep=,b\n1,2\n")).columns(),
            (std::vector<std::string>{"sep=", "b"}));
  EXPECT_EQ(CsvReader(folder.write("a.csv", "sep=;")).columns(), (std::vector<std::string>{"sep=", ""}));
}

TEST(CsvCorpus, ABadRowLosesOnlyItsLine) {
  const TempFolder folder;
  const std::string path = folder.write("c.csv",
                                        "sku,category,title,text\n"
                                        "1,Tea,a,b\n"
                                        "2,Tea,short\n"
                                        "3,Tea,a,b,more\n"
                                        "4,Tea,\"never closed,b\n"
                                        "5,Tea,\"fine, too\",b\n"
                                        "6,Tea,\"a\" x,b\n"
                                        "7,Tea,\xff,b\n"
                                        "8,Cofee,a,b\n"
                                        "9,Tea,,\n"
                                        ",Tea,a,b\n"
                                        "11,Tea,\"a\nb\",c\n"
                                        "12,Tea,ok,\"to the end\n");
  EXPECT_EQ(told(extract_job(path)),
            (Told{"2: a\nb", "3! the row has 3 fields, but the header has 4",
                  "4! the row has 5 fields, but the header has 4",
                  "5! text follows the closing quote of field 3; quotes in a quoted field are doubled",
                  "6: fine, too\nb",
                  "7! text follows the closing quote of field 3; quotes in a quoted field are doubled",
                  "8! not valid UTF-8 at byte 7",
                  "9! category \"Cofee\" is not in the schema; did you mean \"Coffee\"?",
                  "10! the document is empty", "11! column \"sku\" is empty", "12: a\nb\nc",
                  "14! a quote is not closed"}));
}

TEST(CsvCorpus, ListsAreReadFromJsonCells) {
  const TempFolder folder;
  const Job job = ask_job(folder.write(
      "c.csv", "context,questions\nBox,\"[\"\"What?\"\", {\"\"question\"\": \"\"Why?\"\"}]\"\nBox,What?\n"));
  const CorpusRecords rows = read_all(job, nullptr);
  ASSERT_EQ(rows.records.size(), 1u);
  ASSERT_EQ(rows.records[0].questions.size(), 2u);
  EXPECT_EQ(rows.records[0].questions[1].text, "Why?");
  ASSERT_EQ(rows.rejects.size(), 1u);
  EXPECT_EQ(rows.rejects[0].reason,
            "column \"questions\" is text, not a list of questions; write a JSON list");
}

TEST(CsvCorpus, AHeaderThatCannotServeIsRefused) {
  using namespace std::string_literals;
  const TempFolder folder;
  const auto refusal = [&](const std::string& text) {
    const std::string path = folder.write("c.csv", text);
    std::string message = error_of([&] { told(extract_job(path)); });
    for (size_t at; (at = message.find(path)) != std::string::npos;) message.replace(at, path.size(), "F");
    return message;
  };
  EXPECT_EQ(refusal("sku,category,titel,text\n"),
            "job.yaml: input.document: F has no column \"title\"; did you mean \"titel\"?");
  EXPECT_EQ(refusal("sku,category,title,text,title\n"),
            "job.yaml: input.document: F has more than one column \"title\"; rename one of them");
  EXPECT_TRUE(refusal("\xff\xfes\0k\0"s).starts_with("F: the file is UTF-16, not UTF-8; convert it: iconv "));
  EXPECT_TRUE(refusal("sku,gr\xf6\xdf,x\n").starts_with("F: the header is not valid UTF-8 at byte 7; if "));
  EXPECT_TRUE(
      refusal("sku,category\r1,Tea\r").starts_with("F: the lines end in CR without LF; convert it: "));
  EXPECT_EQ(refusal("\"sku,category\n"),
            "F: the first line is not the header of a CSV file: a quote is not closed");
  EXPECT_EQ(told(extract_job(folder.write("empty.csv", ""))), Told{});
}

TEST(CsvCorpus, EveryFileHasItsOwnHeader) {
  const TempFolder folder;
  folder.write("a.csv", "sku,category,title,text\n1,Tea,a,b\n");
  folder.write("b.csv", "");
  folder.write("c.tsv", "text\ttitle\tcategory\tsku\nd\tc\tTea\t2\n");
  EXPECT_EQ(told(extract_job(folder.path())), (Told{"2: a\nb", "2: c\nd"}));
  folder.write("d.csv", "sku,category,title\n");
  EXPECT_NE(error_of([&] { told(extract_job(folder.path())); }).find("d.csv has no column \"text\""),
            std::string::npos);
}

TEST(CsvCorpus, DamagedCompressionEndsAFile) {
  const TempFolder folder;
  std::string text = "sku,category,title,text\n";
  for (int i = 0; i < 30'000; ++i) text += fmt::format("{},Tea,\"a {}\",b\n", i, i * 7919);
  for (const std::string packing : {"gz", "zst"}) {
    const std::string whole = pack(text, packing);
    EXPECT_EQ(told(extract_job(folder.write("b.csv." + packing, whole.substr(0, 15)))),
              Told{"1! the rest of the file cannot be read: it is cut off"});
    const CorpusRecords rows =
        read_all(extract_job(folder.write("a.csv." + packing, whole.substr(0, whole.size() - 3))), &kSchema);
    ASSERT_EQ(rows.rejects.size(), 1u);
    EXPECT_EQ(rows.rejects[0].reason, "the rest of the file cannot be read: it is cut off");
    EXPECT_EQ(rows.order.back(), static_cast<int64_t>(rows.records.size()) + 2);
  }
}

TEST(CsvReader, RowsOfEveryLengthAcrossChunks) {
  const TempFolder folder;
  std::string text = "a,b\n";
  for (size_t i = 0; i < 300; ++i)
    text += fmt::format("{},\"{}\"\"\n{}\"\r\n", i, std::string((i * 7919) % 9000, 'x'), i);
  CsvReader reader(folder.write("l.csv", text));
  int64_t line = 2;
  for (size_t i = 0; i < 300; ++i, line += 2) {
    const auto row = reader.next();
    ASSERT_TRUE(row && row->error.empty()) << i;
    EXPECT_EQ(row->line, line);
    EXPECT_EQ(reader.field(0), std::to_string(i));
    EXPECT_EQ(reader.field(1), fmt::format("{}\"\n{}", std::string((i * 7919) % 9000, 'x'), i));
  }
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.taken(), static_cast<int64_t>(text.size()));
}

TEST(CsvReader, ARowThatNeverEndsCostsItsLine) {
  const TempFolder folder;
  std::string text = "a,b\n1,\"open\n";
  for (int i = 0; text.size() < CsvReader::kLongestRow + 100'000; ++i) text += fmt::format("{},x\n", i);
  text += "2," + std::string(CsvReader::kLongestRow + 1000, 'y') + "\nlast,z\n";
  CsvReader reader(folder.write("l.csv", text));
  auto row = reader.next();
  ASSERT_TRUE(row);
  EXPECT_EQ(row->error, "a quote is not closed");
  int64_t good = 0;
  std::vector<std::string> errors;
  std::string last;
  while ((row = reader.next())) {
    if (row->error.empty()) last = reader.field(0);
    row->error.empty() ? void(++good) : errors.push_back(row->error);
  }
  EXPECT_GT(good, 1'000'000);
  EXPECT_EQ(errors, std::vector<std::string>{kTooLong});
  EXPECT_EQ(last, "last");
}

/// A cell with more lines than a reject each could bear, written as people and as attackers write them.
TEST(CsvCorpus, ACellThatIsTooLongIsOneReject) {
  const TempFolder folder;
  for (const std::string line :
       {"\n", "x\n", "a,b,c,d\r\n", "he said \"\"no\"\", \"\"\"\"\n", "1,Tea,a,b\n"}) {
    std::string text = "sku,category,title,text\n1,Tea,a,b\n2,Tea,\"begins\n";
    while (text.size() < CsvReader::kLongestRow + 500'000) text += line;
    text += "ends\",\"more\ntext\"\n3,Tea,c,\"d\ne\"\n4,Tea,f,g\n";
    const auto last = std::ranges::count(text, '\n');
    const Told expected{"2: a\nb", fmt::format("3! {}", kTooLong), fmt::format("{}: c\nd\ne", last - 2),
                        fmt::format("{}: f\ng", last)};
    EXPECT_EQ(told(extract_job(folder.write("l.csv", text))), expected) << line;
    if (line.size() > 2) {
      EXPECT_EQ(told(extract_job(folder.write("l.csv.gz", pack(text, "gz")))), expected) << line;
    }
  }
}

TEST(CsvReader, QuotesThatAreNeverClosedAreFoundBehindAnyLength) {
  const TempFolder folder;
  // Twelve quotes that stay open, with more than a row may have behind each.
  std::string text = "a,b\n";
  int64_t rows = 0;
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("{},\"open\n", i);
    for (size_t size = 0; size < 3000; size += 4, ++rows) text += "x,y\n";
  }
  const auto count = [&](const std::string& path) {
    CsvReader reader(path, "", 1000);
    std::pair<int64_t, int64_t> good_bad;
    while (const auto row = reader.next()) ++(row->error.empty() ? good_bad.first : good_bad.second);
    return good_bad;
  };
  EXPECT_EQ(count(folder.write("l.csv", text)), (std::pair<int64_t, int64_t>{rows, 12}));
  // A packed file is read from its beginning for the first few. Then what is behind such a quote is lost, and
  // that is told.
  CsvReader reader(folder.write("l.csv.gz", pack(text, "gz")), "", 1000);
  int64_t read = 0, told_lost = 0;
  while (const auto row = reader.next()) {
    ++read;
    const size_t lines = row->error.find("; lines ");
    if (lines == std::string::npos) continue;
    int64_t first = 0, last = 0;
    ASSERT_EQ(std::sscanf(row->error.c_str() + lines, "; lines %ld to %ld are skipped", &first, &last), 2);
    EXPECT_EQ(first, row->line + 1);
    told_lost += last - first + 1;
  }
  EXPECT_GE(read, rows * 2 / 3);
  EXPECT_EQ(read + told_lost, rows + 12);
}

/// Every row is what a reader finds that begins with its line.
TEST(Fuzz, CsvRowsDoNotDependOnBrokenOnesBefore) {
  const TempFolder folder;
  const std::vector<std::string> pieces = {"a",     "\"",   "\"\"", ",",   "\n",
                                           "\",\"", "\"\n", "\n\"", "a\"", "b,c,d\n"};
  int64_t broken = 0;
  fuzz([&](std::mt19937_64& random) {
    std::vector<std::string> lines{""};
    for (size_t n = random() % 120; n > 0; --n)
      for (const char c : pieces[random() % pieces.size()]) {
        lines.back() += c;
        if (c == '\n') lines.emplace_back();
      }
    const auto from = [&](size_t line) {
      std::string text = "id,b,c\n";
      for (; line < lines.size(); ++line) text += lines[line];
      return text;
    };
    CsvReader reader(folder.write("f.csv", from(0)));
    while (const auto row = reader.next()) {
      CsvReader alone(folder.write("g.csv", from(static_cast<size_t>(row->line - 2))));
      const auto first = alone.next();
      ASSERT_TRUE(first && first->line == 2) << from(0);
      ASSERT_EQ(first->error.empty(), row->error.empty()) << from(0);
      for (size_t k = 0; row->error.empty() && k < 3; ++k) ASSERT_EQ(reader.field(k), alone.field(k));
      broken += !row->error.empty();
    }
  });
  EXPECT_GT(broken, 50);
}

/// A bound changes nothing but that rows beyond it are broken, each of them once.
TEST(Fuzz, CsvRowsThatAreTooLongCostThemselvesOnly) {
  const TempFolder folder;
  const std::vector<std::string> pieces = {"a",      "\"",    "\"\"", ",",    "\n",
                                           "\r\n",   "\",\"", "\"\n", "\n\"", "\"\n\"",
                                           "\"\"\"", ",,,",   "\r",   "é",    "xxxxxxxxxxxxxxxx"};
  int64_t too_long = 0;
  fuzz([&](std::mt19937_64& random) {
    std::string text = "id,b,c\n";
    for (size_t n = random() % 200; n > 0; --n) text += pieces[random() % pieces.size()];
    const std::string path = folder.write("f.csv", text);
    const size_t longest = 8 + random() % 60;
    CsvReader all(path), bounded(path, "", longest);
    for (;;) {
      const auto expected = all.next(), row = bounded.next();
      ASSERT_EQ(expected.has_value(), row.has_value()) << text;
      if (!row) return;
      ASSERT_EQ(row->line, expected->line) << text;
      if (row->error.starts_with("the row has more than")) {
        ++too_long;
        continue;
      }
      ASSERT_EQ(row->error, expected->error) << text;
      for (size_t k = 0; row->error.empty() && k < 3; ++k) ASSERT_EQ(bounded.field(k), all.field(k)) << text;
    }
  });
  EXPECT_GT(too_long, 50);
}

/// Lines that open a quote each would make a reader that starts over at every one of them quadratic.
TEST(CsvReader, ManyOpenQuotesAreReadInLinearTime) {
  const TempFolder folder;
  for (const std::string line : {"1,\"x\n", "\"\"\"\n", ",\"\"x\"\"\n", "1,\"\"\"\",\"\n", "a\",\"\n"}) {
    std::string text = "a,b\n";
    while (text.size() < (4 << 20)) text += line;
    CsvReader reader(folder.write("l.csv", text));
    const double before = process_use().seconds;
    while (reader.next()) {
    }
    EXPECT_LT(process_use().seconds - before, 20) << line << ", seconds of a processor";
  }
}

/// What was written comes back, and rows around a broken one come back too.
TEST(Fuzz, CsvRowsComeBack) {
  const TempFolder folder;
  const std::vector<std::string> pieces = {"a", "\"", ",", "\n", "\r\n", " ", "é", "\t", ";", "[", "0"};
  fuzz([&](std::mt19937_64& random) {
    std::vector<std::vector<std::string>> rows;
    std::string text = "id,b,c\n";
    for (size_t i = 0; i < 1 + random() % 20; ++i) {
      rows.push_back({fmt::format("r{}", i), {}, {}});
      for (size_t k = 1; k < 3; ++k)
        for (size_t n = random() % 6; n > 0; --n) rows.back()[k] += pieces[random() % pieces.size()];
      for (size_t k = 0; k < 3; ++k) {
        text += k ? ",\"" : "\"";
        for (const char c : rows.back()[k]) text += c == '"' ? std::string("\"\"") : std::string(1, c);
        text += "\"";
      }
      text += random() % 2 ? "\n" : "\r\n";
    }
    CsvReader reader(folder.write("f.csv", text));
    for (const auto& expected : rows) {
      const auto row = reader.next();
      ASSERT_TRUE(row && row->error.empty()) << text;
      for (size_t k = 0; k < 3; ++k) ASSERT_EQ(reader.field(k), expected[k]) << text;
    }
    ASSERT_FALSE(reader.next());
  });
}

TEST(Fuzz, CsvCorpora) {
  const TempFolder folder;
  const std::vector<std::string> seeds = {
      "sku,category,title,text\n1,Tea,\"a, \"\"b\"\"\",c\n2,Coffee,x,\n\n3,Tea,\"two\nlines\",z\r\n",
      "sku;category;title;text\n1;Tea;a;b\n"};
  const std::vector<std::string_view> words = {
      "\"", "\"\"", ",", ";", "\n", "\r", "\r\n", "\t", "\"\n", "\xff", "\xEF\xBB\xBF", "Tea", "\",\""};
  fuzz_target("csv_corpus", seeds, words, [&](const std::string& text) {
    const std::string path = folder.write("c.csv", text);
    const auto corpus = open_corpus(extract_job(path), &kSchema);
    const CorpusRecords rows = read_all(*corpus);
    const auto lines = std::ranges::count(text, '\n') + 1;
    EXPECT_LE(static_cast<int64_t>(rows.order.size()), lines);
    EXPECT_TRUE(std::ranges::is_sorted(rows.order));
    for (const int64_t line : rows.order) EXPECT_TRUE(line > 1 && line <= lines) << line;
    EXPECT_EQ(corpus->count_records(), rows.count);
    EXPECT_EQ(corpus->position(), rows.count);
  });
}

}  // namespace
}  // namespace sheaf
