#include <gtest/gtest.h>

#include "io/datasets/dataset.h"
#include "tests/datasets/samples.h"
#include "tests/errors.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

std::vector<DatasetRow> read_rows(const std::string& format, const std::string& path,
                                  const DatasetOptions& options = {}) {
  std::vector<DatasetRow> rows;
  const auto reader = open_dataset(format, path, options);
  while (auto row = reader->next()) rows.push_back(std::move(*row));
  return rows;
}

/// The rows of a sample; none may be broken.
ordered_json cells_of(const std::string& format, const DatasetOptions& options = {}) {
  const TempFolder folder;
  ordered_json cells = ordered_json::array();
  for (const DatasetRow& row : read_rows(format, write_sample(folder, sample(format)), options)) {
    EXPECT_EQ(row.error, "");
    cells.push_back(row.cells);
  }
  return cells;
}

TEST(Readers, ReadsSquad) {
  EXPECT_EQ(cells_of("squad"), ordered_json::parse(R"([
    {"id": "Mills/0", "context": "The mill of Arn was built in 1802.", "questions": [
      {"id": "q1", "question": "When was it built?", "answers": ["1802", "in 1802"]},
      {"id": "q2", "question": "Who owns it?", "answers": []}]},
    {"id": "Mills/1", "context": "It grinds rye.", "questions": [
      {"id": "q3", "question": "What does it grind?", "answers": ["rye"]}]}])"));
}

TEST(Readers, ReadsRace) {
  EXPECT_EQ(cells_of("race"), ordered_json::parse(R"([
    {"id": "high7.txt", "context": "Mia walks to school. It rains.", "questions": [
      {"id": "high7.txt/0", "question": "How does Mia go to school?",
       "options": ["By bus", "On foot", "By car", "By train"], "answers": ["B"], "extra": {"level": "high"}},
      {"id": "high7.txt/1", "question": "The weather is _ .", "options": ["dry", "hot", "wet", "windy"],
       "answers": ["C"], "extra": {"level": "high"}}]}])"));
}

TEST(Readers, ReadsTheQuestionsOfANarrativeQaSplit) {
  EXPECT_EQ(cells_of("narrativeqa"), ordered_json::parse(R"([
    {"id": "s2", "context": "The \"Gull\", a boat, sinks.", "questions": [
      {"id": "s2/0", "question": "What sinks, in the end?", "answers": ["The \"Gull\"", "A boat"]},
      {"id": "s2/1", "question": "Who watches?", "answers": ["Nobody", "no one"]}]}])"));
  DatasetOptions train;
  train.split = "train";
  const ordered_json rows = cells_of("narrativeqa", train);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["context"], "A keeper lights a lamp.\nShips pass.");
  EXPECT_EQ(rows[1]["id"], "s3");
}

TEST(Readers, LongHealthTurnsTheRightTextIntoItsLetter) {
  EXPECT_EQ(cells_of("longhealth"), ordered_json::parse(R"([
    {"id": "patient_01", "context": "Letter one.\n\n--------------\n\nLetter two.\n\n--------------\n\nLetter three.",
     "questions": [{"id": "patient_01/0", "question": "Which letter is the last?",
       "options": ["one", "two", "three", "four", "none"], "answers": ["C"]}]}])"));
}

TEST(Readers, QuacPutsEarlierTurnsBeforeAQuestion) {
  const ordered_json rows = cells_of("quac");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["context"], "He was born in Leith. He drew boats.");
  const ordered_json& questions = rows[0]["questions"];
  EXPECT_EQ(questions[0]["question"], "Where was he born?");
  EXPECT_EQ(
      questions[2]["question"],
      "Where was he born?\nAnswer: Leith\nQuestion: Did he marry?\nAnswer: CANNOTANSWER\nQuestion: What did "
      "he draw?");
  EXPECT_EQ(questions[1]["answers"], ordered_json({"CANNOTANSWER", "He drew boats"}));
  EXPECT_EQ(questions[1]["extra"], ordered_json({{"dialog", "C_1"}, {"yesno", "n"}, {"followup", "n"}}));
  DatasetOptions one, none;
  one.turns = 1;
  none.turns = 0;
  EXPECT_EQ(cells_of("quac", one)[0]["questions"][2]["question"],
            "Did he marry?\nAnswer: CANNOTANSWER\nQuestion: What did he draw?");
  EXPECT_EQ(cells_of("quac", none)[0]["questions"][2]["question"], "What did he draw?");
}

TEST(Readers, DropSaysNumbersSpansAndDatesInWords) {
  const ordered_json questions = cells_of("drop")[0]["questions"];
  EXPECT_EQ(questions[0]["answers"], ordered_json({"10", "7, then 3"}));
  EXPECT_EQ(questions[1]["answers"], ordered_json({"Dale, Orr"}));
  EXPECT_EQ(questions[2]["answers"], ordered_json({"4 May 1990"}));
  EXPECT_EQ(questions[0]["extra"]["answers"][0]["number"], "10");
  EXPECT_EQ(questions[0]["extra"]["answers"].size(), 2u);
}

TEST(Readers, ReadsHotpotQaAndMusiqueDocuments) {
  EXPECT_EQ(cells_of("hotpotqa"), ordered_json::parse(R"([
    {"id": "h1", "context": "Bridge\nThe bridge is in Oss. It is old.\n\nOss\nOss is a town.",
     "documents": ["Bridge\nThe bridge is in Oss. It is old.", "Oss\nOss is a town."],
     "questions": [{"id": "h1", "question": "Where is the bridge?", "answers": ["Oss"]}]}])"));
  const ordered_json rows = cells_of("musique");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["questions"][0]["answers"], ordered_json({"Ada Lind", "Lind"}));
  EXPECT_EQ(rows[1]["questions"][0]["answers"], ordered_json::array());
}

TEST(Readers, ReadsLoftAndLongBench) {
  EXPECT_EQ(cells_of("loft"), ordered_json::parse(R"([
    {"id": "t1", "context": "", "questions": [{"id": "t1", "question": "Where is the bridge?", "answers": ["Oss"]}]},
    {"id": "t2", "context": "",
     "questions": [{"id": "t2", "question": "Which towns have mills?", "answers": ["Oss", "Arn"]}]}])"));
  EXPECT_EQ(cells_of("longbench"), ordered_json::parse(R"([
    {"id": "b1", "context": "Question: Who is Ada?\nType: Individual", "questions": [{"id": "b1",
      "question": "Question: How far is Oss?\nType:", "answers": ["Distance"],
      "extra": {"level": "trec", "classes": ["Distance", "Individual"]}}]},
    {"id": "b2", "context": "x = 1\n", "questions": [{"id": "b2", "question": "Next line of code:",
      "answers": ["y = 2"], "extra": {"level": "lcc"}}]}])"));
}

TEST(Readers, ExtractGptKeepsTheOrderOfValues) {
  EXPECT_EQ(cells_of("oa-mine"), ordered_json::parse(R"([
    {"id": 1, "category": "Coffee", "document": "Acme Roast, 12 oz", "gold": {"Size": ["12 oz"], "Brand": ["Acme"]}},
    {"id": 2, "category": "Tea", "document": "Tea bags", "gold": {"Brand": ["n/a", "Acme"]}}])"));
}

TEST(Readers, ABrokenEntryCostsItselfOnly) {
  const TempFolder folder;
  const auto errors = [&](const std::string& format, const std::string& file, const std::string& text) {
    std::vector<std::string> found;
    for (const DatasetRow& row : read_rows(format, folder.write(file, text)))
      found.push_back(
          row.error.empty() ? "good" : place_text(row).substr(folder.path(file).size()) + ": " + row.error);
    return found;
  };
  using Errors = std::vector<std::string>;
  EXPECT_EQ(errors("squad", "a.json",
                   R"({"data": [{"paragraphs": [{"qas": []}, {"context": "c", "qas": [{"id": "1"}]},
              {"context": "c", "qas": []}]}, {"title": "x"}]})"),
            (Errors{": article 1, paragraph 1: no \"context\"", ": article 1, paragraph 2: no \"question\"",
                    "good", ": article 2: no \"paragraphs\" list"}));
  EXPECT_EQ(
      errors("drop", "d.json", R"({"nfl_1": {"passage": "p", "qa_pairs": []}, "nfl_2": {"qa_pairs": []}})"),
      (Errors{"good", ": passage nfl_2: no \"passage\""}));
  EXPECT_EQ(errors("hotpotqa", "h.json", R"([{"context": []}])"), (Errors{": entry 1: no \"_id\""}));
  EXPECT_EQ(errors("musique", "m.jsonl", sample("musique").text + "{\"id\": 3\n\n[1]\n").size(), 4u);
  EXPECT_EQ(
      errors("oa-mine", "o.jsonl",
             R"({"input": "x", "category": "c", "target_scores": {"A": {}}})"
             "\n"
             R"({"input": 1, "category": "c", "target_scores": {}})"),
      (Errors{":1: \"A\" of \"target_scores\" is not {value: 1}", ":2: \"input\" is a number, not text"}));
  EXPECT_EQ(errors("longhealth", "l.json", R"({"p": {"texts": {"text_0": "a"}, "questions": [{"question": "q",
              "answer_a": "1", "answer_b": "2", "answer_c": "3", "answer_d": "4", "answer_e": "5", "correct": "6"}]}})"),
            (Errors{": patient p: question p/0: \"correct\" is not one of the options"}));
}

TEST(Readers, ReadsProductsAndReviewsOfAmazon) {
  EXPECT_EQ(cells_of("amazon-reviews"), ordered_json::parse(R"([
    {"id": "B01", "category": "All Beauty", "document": "Oak Soap\nTwo bars\nSmells of oak.\nMade in Arn.", "gold": {}},
    {"id": "B02", "category": "All Beauty", "document": "Comb", "gold": {}}])"));
  const TempFolder folder;
  const std::string path = folder.write(
      "Gift_Cards.jsonl",
      R"({"rating": 5.0, "title": "Great", "text": "It worked.", "images": [], "asin": "A1", "parent_asin": "P1", "user_id": "u", "timestamp": 1, "helpful_vote": 0, "verified_purchase": true})"
      "\n"
      R"({"rating": 1.0, "title": "", "text": "", "asin": "A1", "parent_asin": "P1"})"
      "\n"
      R"({"rating": 1.0, "title": 3, "text": "x", "asin": "A1", "parent_asin": "P1"})"
      "\n"
      R"({"title": "x", "features": [1], "parent_asin": "P2"})"
      "\n");
  EXPECT_EQ(guess_dataset_format(path), "amazon-reviews");
  const auto rows = read_rows("amazon-reviews", path);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].cells,
            ordered_json::parse(
                R"({"id": "P1/1", "category": "Gift Cards", "document": "Great\nIt worked.", "gold": {}})"));
  EXPECT_EQ(rows[1].error, "the entry has no text");
  EXPECT_EQ(rows[2].error, "\"title\" is a number, not text");
  EXPECT_EQ(rows[3].error, "\"features\" has a number, not text");
}

TEST(Readers, ARaceFileThatCannotBeReadIsOneBrokenEntry) {
  const TempFolder folder;
  write_sample(folder, sample("race"));
  folder.write("test/high/8.txt", "{\"article\": \"x\"");
  folder.write("test/middle/1.txt",
               R"({"article": "x", "questions": ["q"], "options": [["a", "b"]], "answers": ["C"]})");
  const auto rows = read_rows("race", folder.path("test"));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].error, "");
  EXPECT_TRUE(rows[1].error.starts_with("not valid JSON")) << rows[1].error;
  EXPECT_EQ(rows[2].error, "the answer to question 1 is not the letter of an option");
}

TEST(Readers, NarrativeQaFilesThatDoNotFitTogetherAreReported) {
  const TempFolder folder;
  folder.write("qaps.csv",
               "document_id,set,question,answer1,answer2\nmissing,test,q,a,b\ns2,test,q,a\ns2,test,q,a,b\n"
               "s2,test,\"never closed");
  folder.write("third_party/wikipedia/summaries.csv", kSummaries + "s9,test,lonely,x\n");
  std::vector<std::string> found;
  for (const DatasetRow& row : read_rows("narrativeqa", folder.path()))
    found.push_back(row.error.empty() ? row.cells["id"].get<std::string>()
                                      : fmt::format("{}: {}", row.place.row, row.error));
  EXPECT_EQ(found, (std::vector<std::string>{
                       "3: the row has 4 fields, but the header has 5", "5: a quote is not closed", "s2",
                       "6: document s9 has no questions", "2: document missing has no summary"}));
}

TEST(Readers, AFileOfAnotherKindIsRefused) {
  const TempFolder folder;
  const auto refusal = [&](const std::string& format, const std::string& text) {
    const std::string path = folder.write("file", text);
    const std::string message = error_of([&] { open_dataset(format, path); });
    return message.substr(std::min(message.size(), message.find(": ") + 2));
  };
  EXPECT_EQ(refusal("squad", "{}"), "this is not a SQuAD file: it has no \"data\" list");
  EXPECT_EQ(refusal("quac", "[]"), "this is not a QuAC file: it has no \"data\" list");
  EXPECT_EQ(refusal("drop", "{\"a\": 1}"),
            "this is not a DROP file: it has no passage with a \"qa_pairs\" list");
  EXPECT_EQ(refusal("longhealth", "[]"),
            "this is not a LongHealth file: it has no patient with \"texts\" and \"questions\"");
  EXPECT_EQ(refusal("hotpotqa", "[1]"),
            "this is not a HotpotQA file: it has no entry with a \"context\" list");
  EXPECT_EQ(refusal("musique", "{\"a\": 1}"),
            "this is not a MuSiQue file: it has no line with \"id\", \"question\", \"paragraphs\"");
  EXPECT_EQ(refusal("ae-110k", "{\"a\": 1}"),
            "this is not a ExtractGPT file: it has no line with \"input\", \"category\", \"target_scores\"");
  EXPECT_EQ(refusal("race", "{}"),
            "this is not a RACE file: it has no \"article\" with \"questions\" and \"options\"");
  EXPECT_TRUE(refusal("squad", "{\"data\": [").starts_with("not valid JSON"))
      << refusal("squad", "{\"data\": [");
  EXPECT_EQ(refusal("squad", std::string(40, '[')), "nested more than 32 levels deep");
  EXPECT_NE(error_of([&] { open_dataset("squat", folder.path()); }).find("did you mean \"squad\""),
            std::string::npos);
  EXPECT_NE(error_of([&] { open_dataset("squad", folder.path()); }).find("is a folder"), std::string::npos);
  EXPECT_NE(error_of([&] { open_dataset("narrativeqa", folder.path()); }).find("no qaps.csv"),
            std::string::npos);
  folder.write("qaps.csv", "a,b\n");
  folder.write("summaries.csv", kSummaries);
  EXPECT_NE(error_of([&] { open_dataset("narrativeqa", folder.path()); }).find("no column \"document_id\""),
            std::string::npos);
}

TEST(Readers, TheFormatIsSeenFromTheFile) {
  for (const Sample& one : samples()) {
    const TempFolder folder;
    EXPECT_EQ(guess_dataset_format(write_sample(folder, one)), one.format);
  }
  const TempFolder folder;
  EXPECT_EQ(guess_dataset_format(folder.write("a.jsonl", "{\"id\": 1, \"answers\": []}\n")), "");
  EXPECT_EQ(guess_dataset_format("datasets/catalog"), "") << "a folder with text files is not RACE for that";
}

TEST(Readers, EachFormatRefusesTheOthersAndNamesThem) {
  for (const DatasetFormat& format : dataset_formats()) {
    for (const Sample& one : samples()) {
      const TempFolder folder;
      const std::string path = write_sample(folder, one);
      // ExtractGPT publishes OA-Mine and AE-110k in the same form.
      if (one.format == format.name || (one.format == "oa-mine" && format.name == "ae-110k")) {
        for (const DatasetRow& row : read_rows(format.name, path)) EXPECT_EQ(row.error, "") << format.name;
        continue;
      }
      const std::string message = error_of([&] { open_dataset(format.name, path); });
      const std::string looks = one.format == "oa-mine" ? "oa-mine or ae-110k" : one.format;
      EXPECT_TRUE(message.ends_with("; it looks like " + looks))
          << format.name << " on a file of " << one.format << ": " << message;
    }
  }
}

TEST(Readers, ArticlesOfOneTitleKeepTheirIdsApart) {
  const TempFolder folder;
  const std::string article = R"({"title": "Mills", "paragraphs": [{"context": "c", "qas": []}]})";
  std::vector<std::string> ids;
  for (const DatasetRow& row : read_rows(
           "squad",
           folder.write("a.json",
                        R"({"data": [)" + article + "," + article +
                            R"(, {"title": "Mills#2", "paragraphs": [{"context": "c", "qas": []}]}]})")))
    ids.push_back(row.cells["id"]);
  EXPECT_EQ(ids, (std::vector<std::string>{"Mills/0", "Mills#2/0", "Mills#2#2/0"}));
}

}  // namespace
}  // namespace sheaf
