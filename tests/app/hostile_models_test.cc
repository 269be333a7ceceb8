// Names in model files and tokenizers that would command a terminal.
#include <fmt/format.h>

#include "tests/app/hostile.h"
#include "tests/model/gguf_bytes.h"
#include "tests/tokenizer/tiny_gguf.h"

namespace sheaf {
namespace {

using nlohmann::json;
using test::hostile_texts;
using test::kHostile;
using test::Ran;
using test::run_clean;
using test::run_sheaf;

std::string output_of(const TempFolder& scratch, const std::string& arguments, const std::string& input) {
  const Ran ran = run_sheaf(scratch, arguments + " <" + input);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  return ran.out;
}

TEST(HostileNames, InGgufFilesAreEscaped) {
  const TempFolder scratch;
  for (const std::string& each : kHostile) {
    const auto refused = [&](const std::function<void(GgufBytes&)>& fill) {
      GgufBytes file;
      fill(file);
      run_clean(scratch, "inspect " + scratch.write("m.gguf", file.bytes()), 2);
    };
    refused([&](GgufBytes& file) {
      file.text("general.architecture", each);
      file.tensor("t", {32}, 0, 0);
      file.data.resize(128);
    });
    refused([&](GgufBytes& file) {
      file.text(each, each);
      file.text(each, each);
    });
    refused([&](GgufBytes& file) {
      file.text("general.architecture", "llama");
      file.tensor(each, {32}, 0, 0);
      file.tensor(each, {32}, 0, 128);
      file.data.resize(256);
    });
    refused([&](GgufBytes& file) { file.text("tokenizer.ggml.model", each); });
  }
}

TEST(HostileNames, InSafetensorsFilesAreEscaped) {
  const TempFolder scratch;
  const auto refused = [&](const std::string& header, size_t bytes) {
    const std::string file = raw<uint64_t>(header.size()) + header + std::string(bytes, '\0');
    run_clean(scratch, "inspect " + scratch.write("m.safetensors", file), 2);
  };
  for (const std::string& each : kHostile) {
    const std::string tensor = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
    const std::string name = valid_prefix(each) == each.size() ? json(each).dump() : "\"" + each + "\"";
    refused("{" + name + ":" + tensor + "}", 8);
    refused("{" + name + ":" + tensor + "," + name + ":" + tensor + "}", 8);
    refused("{\"a\":{\"dtype\":" + name + ",\"shape\":[2],\"data_offsets\":[0,8]}}", 8);
    refused(each, 0);
  }
}

TEST(HostileNames, InTokenizersAreEscaped) {
  const TempFolder scratch;
  for (const std::string& each : hostile_texts()) {
    json file = tiny_json({});
    auto& token = file["added_tokens"][0];
    token["content"] = each;
    const std::string path = scratch.write("tokenizer.json", file.dump());
    run_clean(scratch, "inspect " + path, 0);
    const Ran shown = run_clean(scratch, "inspect --json " + path, 0);
    EXPECT_EQ(json::parse(shown.out)["tokenizer"]["first_specials"][0]["text"], each);

    const std::string ids = scratch.write("ids", json::array({token["id"]}).dump() + "\n");
    const std::string decode = "tokenize --decode --model " + path;
    const std::string decoded = output_of(scratch, decode + " --json-lines", ids);
    test::expect_clean(decoded);
    EXPECT_EQ(json::parse(decoded, nullptr, false), each);
    EXPECT_EQ(output_of(scratch, decode, ids), each + "\n") << "a pipe gets the bytes; a terminal does not";
    file["model"]["type"] = each;
    run_clean(scratch, "inspect " + scratch.write("tokenizer.json", file.dump()), 2);
  }
  for (const std::string& each : kHostile) {
    GgufBytes gguf;
    std::vector<std::string> tokens = {each, "a", "b"};
    gguf.text("general.architecture", "llama");
    gguf.text("tokenizer.ggml.model", "llama");
    gguf.texts("tokenizer.ggml.tokens", tokens);
    gguf.numbers("tokenizer.ggml.scores", 6, std::vector<float>(3, 0));
    gguf.numbers("tokenizer.ggml.token_type", 5, std::vector<int32_t>{3, 1, 1});
    gguf.u32("tokenizer.ggml.eos_token_id", 0);
    const std::string path = scratch.write("v.gguf", gguf.bytes());
    SCOPED_TRACE(json(valid_utf8(each)).dump(-1, ' ', true));
    for (const char* option : {"", "--json "})
      test::expect_clean(run_sheaf(scratch, std::string("inspect ") + option + path));
  }
}

}  // namespace
}  // namespace sheaf
