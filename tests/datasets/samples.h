#pragma once
#include <string>
#include <vector>

#include "tests/files.h"

namespace sheaf {

/// A small dataset written by hand in the public format.
struct Sample {
  std::string format;
  std::string file;  ///< its name in the folder; the dataset's path, unless `path` says otherwise
  std::string text;
  std::string path;  ///< of the dataset in the folder, where it is not `file`
};

inline const std::string kSummaries =
    "document_id,set,summary,summary_tokenized\n"
    "s1,train,\" A keeper lights a lamp.\nShips pass.\",x\n"
    "s2,test,\"The \"\"Gull\"\", a boat, sinks.\",x\n"
    "s3,train,Two sisters bake bread.,x\n";

inline const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = {
      {"squad",
       "dev.json",
       R"({"version": "v2.0", "data": [
        {"title": "Mills", "paragraphs": [
          {"context": "The mill of Arn was built in 1802.", "qas": [
            {"id": "q1", "question": " When was it built? ", "is_impossible": false,
             "answers": [{"text": "1802", "answer_start": 29}, {"text": "in 1802", "answer_start": 26}]},
            {"id": "q2", "question": "Who owns it?", "is_impossible": true, "answers": [],
             "plausible_answers": [{"text": "Arn", "answer_start": 12}]}]},
          {"context": "It grinds rye.", "qas": [
            {"id": "q3", "question": "What does it grind?", "answers": [{"text": "rye", "answer_start": 10}]}]}]}]})",
       {}},
      {"race", "test/high/7.txt", R"({"id": "high7.txt", "article": "Mia walks to school. It rains.",
        "questions": ["How does Mia go to school?", "The weather is _ ."],
        "options": [["By bus", "On foot", "By car", "By train"], ["dry", "hot", "wet", "windy"]],
        "answers": ["B", "C"]})",
       "test"},
      {"narrativeqa", "qaps.csv",
       "document_id,set,question,answer1,answer2,question_tokenized,answer1_tokenized,answer2_tokenized\n"
       "s1,train,What does the keeper light?,A lamp,the lamp,x,x,x\n"
       "s2,test,\"What sinks, in the end?\",\"The \"\"Gull\"\"\",A boat ,x,x,x\n"
       "s2,test,Who watches?,Nobody,no one,x,x,x\n"
       "s3,train,Who bakes?,two sisters,Sisters,x,x,x\n",
       "."},
      {"longhealth",
       "benchmark.json",
       R"({"patient_01": {"name": "Ann Example", "birthday": "1970-01-02", "diagnosis": "Gout", "texts": {
          "text_0": "Letter one.", "text_1": "Letter two.", "text_10": "Letter three."},
        "questions": [{"No": 0, "question": "Which letter is the last?", "answer_a": "one", "answer_b": "two",
          "answer_c": "three", "answer_d": "four", "answer_e": "none", "correct": "three",
          "answer_location": {"text_10": {"start": [0], "end": [1]}}}],
        "canaray-string": "text"}, "canary": "text"})",
       {}},
      {"quac",
       "val.json",
       R"({"data": [{"title": "Tom Reed", "section_title": "Early life", "background": "A painter.",
        "paragraphs": [{"id": "C_1", "context": "He was born in Leith. He drew boats. CANNOTANSWER", "qas": [
          {"id": "C_1_q#0", "question": "Where was he born?", "yesno": "x", "followup": "y",
           "answers": [{"text": "Leith", "answer_start": 15}, {"text": "in Leith", "answer_start": 12}],
           "orig_answer": {"text": "Leith", "answer_start": 15}},
          {"id": "C_1_q#1", "question": "Did he marry?", "yesno": "n", "followup": "n",
           "answers": [{"text": "CANNOTANSWER", "answer_start": 37}, {"text": "He drew boats", "answer_start": 22}],
           "orig_answer": {"text": "CANNOTANSWER", "answer_start": 37}},
          {"id": "C_1_q#2", "question": "What did he draw?", "yesno": "x", "followup": "m",
           "answers": [{"text": "boats", "answer_start": 30}],
           "orig_answer": {"text": "boats", "answer_start": 30}}]}]}]})",
       {}},
      {"drop",
       "drop.json",
       R"({"nfl_1": {"passage": "Reds scored 7, then 3. Dale and Orr ran on 4 May 1990.",
        "wiki_url": "x", "qa_pairs": [
          {"query_id": "d1", "question": "How many points?", "answer": {"number": "10", "spans": [],
            "date": {"day": "", "month": "", "year": ""}, "worker_id": "a"}, "validated_answers": [
            {"number": "", "spans": ["7, then 3"], "date": {"day": "", "month": "", "year": ""}}]},
          {"query_id": "d2", "question": "Who ran?", "answer": {"number": "", "spans": ["Dale", "Orr"],
            "date": {"day": "", "month": "", "year": ""}}},
          {"query_id": "d3", "question": "When?", "answer": {"number": "", "spans": [],
            "date": {"day": "4", "month": "May", "year": "1990"}}}]}})",
       {}},
      {"hotpotqa",
       "hotpot.json",
       R"([{"_id": "h1", "question": "Where is the bridge?", "answer": "Oss",
        "type": "bridge", "level": "easy", "supporting_facts": [["Bridge", 0]],
        "context": [["Bridge", ["The bridge is in Oss.", " It is old."]], ["Oss", ["Oss is a town."]]]}])",
       {}},
      {"musique",
       "musique.jsonl",
       R"({"id": "2hop__1", "question": "Who built the bridge?", "answer": "Ada Lind", "answer_aliases": ["Lind"], "answerable": true, "paragraphs": [{"idx": 0, "title": "Bridge", "paragraph_text": "Ada Lind built it.", "is_supporting": true}]})"
       "\n"
       R"({"id": "2hop__2", "question": "Who sold it?", "answer": "Nobody", "answer_aliases": [], "answerable": false, "paragraphs": [{"idx": 0, "title": "Bridge", "paragraph_text": "It is old.", "is_supporting": false}]})"
       "\n",
       {}},
      {"loft",
       "test_queries.jsonl",
       R"({"qid": "t1", "query_text": "Where is the bridge? ", "metadata": {"qrels": [["p1", 1]]}, "answers": ["Oss"]})"
       "\n"
       R"({"qid": "t2", "query_text": "Which towns have mills?", "metadata": {}, "answers": ["Oss", "Arn"]})"
       "\n",
       {}},
      {"longbench",
       "trec.jsonl",
       R"({"_id": "b1", "input": "Question: How far is Oss?\nType:", "context": "Question: Who is Ada?\nType: Individual", "answers": ["Distance"], "length": 12, "dataset": "trec", "language": "en", "all_classes": ["Distance", "Individual"]})"
       "\n"
       R"({"_id": "b2", "input": "", "context": "x = 1\n", "answers": ["y = 2"], "length": 2, "dataset": "lcc", "language": "python", "all_classes": null})"
       "\n",
       {}},
      {"oa-mine",
       "test.jsonl",
       R"({"input": "Acme Roast, 12 oz", "category": "Coffee", "target_scores": {"Size": {"12 oz": 1}, "Brand": {"Acme": 1}}})"
       "\n"
       R"({"input": "Tea bags", "category": "Tea", "target_scores": {"Brand": {"n/a": 1, "Acme": 1}}})"
       "\n",
       {}},
      {"amazon-reviews",
       "meta_All_Beauty.jsonl",
       R"({"main_category": "All Beauty", "title": "Oak Soap ", "average_rating": 4.8, "rating_number": 10, "features": ["Two bars", " "], "description": ["Smells of oak.", "Made in Arn."], "price": null, "images": [], "videos": [], "store": "Oak", "categories": [], "details": {"Brand": "Oak"}, "parent_asin": "B01", "bought_together": null})"
       "\n"
       R"({"main_category": null, "title": "Comb", "features": [], "description": [], "price": 4.5, "store": null, "details": {}, "parent_asin": "B02"})"
       "\n",
       {}},
  };
  return all;
}

/// Writes the sample and gives the dataset's path.
inline std::string write_sample(const TempFolder& folder, const Sample& sample, const std::string& text) {
  folder.write(sample.file, text);
  if (sample.format == "narrativeqa") folder.write("summaries.csv", kSummaries);
  return folder.path(sample.path.empty() ? sample.file : sample.path);
}
inline std::string write_sample(const TempFolder& folder, const Sample& sample) {
  return write_sample(folder, sample, sample.text);
}

inline const Sample& sample(const std::string& format) {
  for (const Sample& one : samples())
    if (one.format == format) return one;
  throw std::runtime_error("no sample of " + format);
}

}  // namespace sheaf
