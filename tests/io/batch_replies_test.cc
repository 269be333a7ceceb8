// The replies of a service: what is read, what is told of the rest, and that no file does harm.
#include "io/files/batch_replies.h"

#include <gtest/gtest.h>

#include "tests/errors.h"
#include "tests/fuzz.h"

namespace sheaf {
namespace {

std::string reply_line(const std::string& id, const std::string& content) {
  return R"({"id": "b", "custom_id": ")" + id +
         R"(", "response": {"status_code": 200, "body": {"choices": [{"index": 0, "message": {"role": "assistant", "content": )" +
         content + R"(}, "finish_reason": "stop"}]}}, "error": null})" + "\n";
}

/// What find() says of an id: the text, "-" where there is none, or what is wrong.
std::string said(BatchReplies& replies, const std::string& id) {
  try {
    const auto reply = replies.find(id);
    return !reply ? "-" : reply->text + (reply->cut ? "…" : "");
  } catch (const BadText& bad) {
    return "! " + bad.reason;
  }
}

TEST(BatchReplies, AreFoundById) {
  const TempFolder folder;
  const std::string path = folder.write(
      "r.jsonl",
      reply_line("a", "\"one\"") +
          reply_line("b", R"([{"type": "text", "text": "t"}, {"type": "text", "text": "wo"}])") +
          R"({"custom_id": 7, "response": {"body": {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}}})" +
          "\n\n");
  BatchReplies replies({path});
  EXPECT_EQ(replies.size(), 3);
  EXPECT_EQ(said(replies, "a"), "one");
  EXPECT_EQ(said(replies, "b"), "two");
  EXPECT_EQ(said(replies, "7"), "x…");
  EXPECT_EQ(said(replies, "c"), "-");
  EXPECT_TRUE(replies.left().empty());
}

TEST(BatchReplies, SayWhyThereIsNoAnswer) {
  const TempFolder folder;
  const std::string path = folder.write(
      "r.jsonl",
      reply_line("twice", "\"x\"") + reply_line("twice", "\"x\"") + reply_line("empty", "null") +
          R"({"custom_id": "failed", "response": null, "error": {"code": "x", "message": "the server is full"}})"
          "\n"
          R"({"custom_id": "status", "response": {"status_code": 500, "body": {}}, "error": null})"
          "\n"
          R"({"custom_id": "body", "response": {"status_code": 429, "body": {"error": {"message": "slower"}}}})"
          "\n"
          R"({"custom_id": "bare"})"
          "\n"
          R"({"custom_id": "choices", "response": {"body": {"choices": []}}})"
          "\n"
          R"({"custom_id": "no", "response": {"body": {"choices": [{"message": {"content": null, "refusal": "I will not"}}]}}})"
          "\n");
  BatchReplies replies({path});
  EXPECT_EQ(said(replies, "twice"), "! 2 replies have the custom_id");
  EXPECT_EQ(said(replies, "empty"), "! the response has no text in \"choices[0].message.content\"");
  EXPECT_EQ(said(replies, "failed"), "! the service failed: the server is full");
  EXPECT_EQ(said(replies, "status"), "! the service failed with status 500");
  EXPECT_EQ(said(replies, "body"), "! the service failed: slower");
  EXPECT_EQ(said(replies, "bare"), "! the line has no \"response\"");
  EXPECT_EQ(said(replies, "choices"), "! the response has no \"choices\"");
  EXPECT_EQ(said(replies, "no"), "! the model refused: I will not");
}

TEST(BatchReplies, TellOfLinesThatNobodyAskedFor) {
  const TempFolder folder;
  const std::string path = folder.write(
      "r.jsonl", reply_line("a", "\"x\"") + "{not JSON\n[]\n{\"id\": 1}\n" + reply_line("z", "\"y\""));
  BatchReplies replies({path});
  said(replies, "a");
  const std::vector<Reject> left = replies.left();
  ASSERT_EQ(left.size(), 4u);
  EXPECT_EQ(left[0].place.row, 2);
  EXPECT_TRUE(left[0].reason.starts_with("not valid JSON")) << left[0].reason;
  EXPECT_EQ(left[1].reason, "not a JSON object");
  EXPECT_EQ(left[2].reason, "the line has no \"custom_id\"");
  EXPECT_EQ(left[3].id, "z");
  EXPECT_EQ(left[3].reason, "no request of the job has this custom_id");
}

TEST(BatchReplies, AFileWithoutRepliesIsRefused) {
  const TempFolder folder;
  EXPECT_NE(error_of([&] { BatchReplies({folder.write("e.jsonl", "")}); }).find("the file has no replies"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              BatchReplies({folder.write("e.csv", "id,text\n1,x\n")});
            }).find("e.csv:1: not valid JSON"),
            std::string::npos);
  EXPECT_NE(error_of([&] { BatchReplies({folder.path("missing")}); }), "no error");
}

TEST(Fuzz, BatchReplies) {
  const TempFolder folder;
  const std::string seed = reply_line("a", "\"{\\\"Brand\\\": \\\"Oak\\\"}\"") +
                           reply_line("b", R"([{"type": "text", "text": "t"}])") +
                           R"({"custom_id": "c", "response": null, "error": {"message": "m"}})" + "\n";
  fuzz_target("batch_replies", {seed}, kJsonWords, [&](const std::string& text) {
    BatchReplies replies({folder.write("r.jsonl", text)});
    ASSERT_GT(replies.size(), 0);
    for (const char* id : {"a", "b", "c", ""}) said(replies, id);
    for (const Reject& each : replies.left()) ASSERT_FALSE(each.reason.empty());
  });
}

}  // namespace
}  // namespace sheaf
